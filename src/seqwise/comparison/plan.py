"""What is trained, and for how long.

Half of the time goes to all families in equal shares and decides the ranking. The other half, and what families that
count or iterate did not need, goes to the finalists: those of the best that still gain from time. Scoring at the end
has a reserve of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..errors import ConfigError, did_you_mean
from ..models import MODELS, Family
from .results import Stage

RESERVE = 0.08  # of the budget, for the scoring at the end
LADDER_SHARE = 0.5  # of the time to train
SHORTEST_SECONDS = 3.0  # to train anything
MOST_FINALISTS = 2
WORTH_TRAINING_LONGER = 1.5  # times its share of the ladder: else one finalist gets all
STILL_IN_REACH = 0.12  # of the first finalist's value: a second one further behind would only take its time
STILL_IMPROVING = 0.7  # of its steps: the best moment was not before
SEED_MINUTES = (60.0, 180.0)  # budgets from which each family is trained with 2 and 3 seeds


@dataclass(frozen=True)
class Entrant:
    """What takes part: a family, or one form of it."""

    name: str
    family: str
    settings: tuple[str, ...] = ()
    """Of its model, besides those that follow from data and budget."""

    @property
    def row(self) -> Family:
        return MODELS[self.family]


ATTENTIONS = ("none", "dot", "general", "additive")
CHOSEN_BY_VALIDATION = {"ngram": ("model.order=0",), "hmm": ("model.num_states=0",)}


def entrants(task: str) -> dict[str, Entrant]:
    """All that do a task, by name, in the order of the lineage. Of seq2seq each kind of attention takes part."""
    found = []
    for name, row in MODELS.items():
        if task not in row.tasks:
            continue
        if name == "seq2seq":
            found += [Entrant(f"{name}-{kind}", name, (f"model.attention={kind}",)) for kind in ATTENTIONS]
        else:
            found.append(Entrant(name, name, CHOSEN_BY_VALIDATION.get(name, ())))
    return {entrant.name: entrant for entrant in found}


@dataclass(frozen=True)
class Limits:
    """What the recommended model must keep to."""

    parameters: int | None = None
    latency_ms: float | None = None
    """Per token, one text alone."""
    megabytes: float | None = None
    """On disk."""

    def to_dict(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    source: list[str]
    minutes: float
    models: list[str]
    """Names of entrants."""
    tokenizers: list[str] = field(default_factory=lambda: ["auto"])
    task: str = "text"
    columns: list[str] = field(default_factory=list)
    season: int | None = None
    """Numbers: of all columns; found in the training part where not set."""
    valid: str | None = None
    test: str | None = None
    split: str | None = None
    seeds: int = 1
    seed: int = 0
    workers: int = 1
    threads: int = 1
    """Of each worker: the same for every family."""
    limits: Limits = field(default_factory=Limits)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Settings:
        return cls(**{**found, "limits": Limits(**found["limits"])})


@dataclass(frozen=True)
class Trial:
    """One run: an entrant, a tokenizer, a seed, and the time it has."""

    name: str
    """Also that of its run folder."""
    entry: str
    """The seeds of one entry share its name."""
    entrant: str
    family: str
    tokenizer: str
    stage: Stage
    seed: int
    minutes: float


@dataclass(frozen=True)
class Standing:
    """How an entry of the ladder did."""

    name: str
    entrant: str
    tokenizer: str
    value: float
    """On validation, lower is better."""
    best_at: float
    """Share of its steps after which it was best."""


def choose_models(asked: Sequence[str] | None, task: str) -> list[str]:
    """Who takes part: all that do the task, or those asked for, by the name of a family or of one form of it."""
    fitting = entrants(task)
    families = {entrant.family for entrant in fitting.values()}
    for name in asked or []:
        if name not in MODELS and name not in fitting:
            raise ConfigError(f'unknown family "{name}". {did_you_mean(name, [*MODELS, *fitting])}')
        if name not in families and name not in fitting:
            raise ConfigError(f"{name} does not do the task {task}. Families that do: {', '.join(fitting)}.")
    return [name for name, entrant in fitting.items() if not asked or name in asked or entrant.family in asked]


def choose_seeds(minutes: float) -> int:
    return 1 + sum(minutes >= enough for enough in SEED_MINUTES)


def seconds_left(settings: Settings, spent: float) -> float:
    """Of the wall clock, to train in, once `spent` of it are gone."""
    return (1 - RESERVE) * settings.minutes * 60 - spent


def ladder(settings: Settings, spent: float) -> list[Trial]:
    entries = [(model, tokenizer) for model in settings.models for tokenizer in settings.tokenizers]
    trials = _in_equal_shares(settings, entries, "ladder", LADDER_SHARE * seconds_left(settings, spent))
    return [replace(trial, minutes=max(SHORTEST_SECONDS / 60, trial.minutes)) for trial in trials]


def finals(
    settings: Settings, standings: Sequence[Standing], *, share: float, seconds: float
) -> tuple[list[Trial], str]:
    """Who goes on, and why, in a sentence. `share`: minutes that a trial of the ladder had; `seconds` that are left."""
    ranked = sorted((s for s in standings if math.isfinite(s.value)), key=lambda standing: standing.value)
    if not ranked:
        return [], "no family could be trained"
    taking_part = entrants(settings.task)
    improving = [
        s for s in ranked if taking_part[s.entrant].row.learns_by == "gradients" and s.best_at >= STILL_IMPROVING
    ]
    if not improving:
        return [], "no family was still improving when its share was over, so the rest of the time was not used"
    rivals = [s for s in improving[1:MOST_FINALISTS] if _is_in_reach(s.value, improving[0].value)]
    for chosen in ([improving[0], *rivals], improving[:1]):
        trials = _in_equal_shares(settings, [(s.entrant, s.tokenizer) for s in chosen], "final", seconds)
        if trials[0].minutes >= WORTH_TRAINING_LONGER * share:
            break
    if trials[0].minutes < max(share, SHORTEST_SECONDS / 60):
        return [], "there was no time left to train a finalist for longer than in the ladder"
    return trials, f"{' and '.join(s.name for s in chosen)} went on: the best on validation of those still improving"


def entry_name(settings: Settings, entrant: str, tokenizer: str, stage: Stage) -> str:
    parts = [entrant, *([tokenizer] if len(settings.tokenizers) > 1 else []), *(["final"] if stage == "final" else [])]
    return "-".join(parts)


def _is_in_reach(value: float, best: float) -> bool:
    """Values may be negative (densities): then the distance is measured by size."""
    return value <= best + STILL_IN_REACH * max(abs(best), 1e-9)


def _in_equal_shares(
    settings: Settings, entries: Sequence[tuple[str, str]], stage: Stage, seconds: float
) -> list[Trial]:
    """A trial for each seed of each entry; together they take `seconds` of the wall clock."""
    taking_part = entrants(settings.task)
    seeded = [
        (taking_part[name], tokenizer, seed)
        for name, tokenizer in entries
        for seed in range(
            settings.seeds if taking_part[name].row.learns_by != "counting" else 1
        )  # counts know no chance
    ]
    rounds = -(-len(seeded) // settings.workers)  # trials that follow each other
    minutes = seconds / rounds / 60
    trials = []
    for entrant, tokenizer, seed in seeded:
        entry = entry_name(settings, entrant.name, tokenizer, stage)
        name = entry if seed == 0 else f"{entry}-seed-{seed}"
        trials.append(Trial(name, entry, entrant.name, entrant.family, tokenizer, stage, settings.seed + seed, minutes))
    return trials
