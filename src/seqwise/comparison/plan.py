"""What is trained, and for how long.

First an update and a scoring of each family are timed on this machine. Who could not make enough updates in an equal
share is left out, the most expensive first, so that the others learn something. Then half of the time goes to all that
are left in equal shares and decides the ranking. The other half, and what families that count or iterate did not need,
goes to the finalists: those of the best that still gain from time. Scoring at the end has a reserve of its own, and
scores as much as fits it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..data.schema import LABEL, NEXT_TOKEN, NEXT_VALUES, SEQUENCE
from ..errors import ConfigError, did_you_mean
from ..models import MODELS, Family
from ..models.ngram_family import METHODS
from ..pages.quantities import duration
from ..tasks import task_named
from .results import Stage

RESERVE = 0.12  # of the budget, for scoring and measuring at the end
LADDER_SHARE = 0.5  # of the time to train, where that is enough for all
MIN_UPDATES = 100  # with fewer, a network is still close to its random start
PLANNED_UPDATES = 150  # so that a machine that gets slower still makes MIN_UPDATES
MIN_SECONDS = 3.0  # to train anything
TRAINING_SHARE = 0.8  # of a trial's time, at most, that goes into updates: the rest is timing and validation
VALIDATING_SHARE = 0.12  # of a trial's time, for the validation that ranks it
SCORING_SHARE = 0.6  # of what is left at the end; the rest is for samples, speeds and pages
MIN_SCORED, MAX_SCORED = 2_000, 2_000_000  # characters of text, steps, or examples of a part
MAX_FINALISTS = 2
WORTH_TRAINING_LONGER = 1.5  # times its share of the ladder: else one finalist gets all
STILL_IN_REACH = 0.12  # of the first finalist's value: a second one further behind would only take its time
STILL_IMPROVING = 0.7  # of its steps: the best moment was not before
SEED_MINUTES = (60.0, 180.0)  # budgets from which each family is trained with 2 and 3 seeds


@dataclass(frozen=True)
class Entrant:
    """What takes part: a family, or one form of it."""

    name: str
    family: str
    kinds: tuple[str, ...]
    """Of the main target, for which it is this form that takes part."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of its model, besides those that follow from data and budget."""

    @property
    def row(self) -> Family:
        return MODELS[self.family]

    @property
    def learns_by(self) -> str:
        return self.row.learns[self.kinds[0]]

    @property
    def overrides(self) -> list[str]:
        return [f"model.{name}={value}" for name, value in self.settings.items()]

    def does(self, kinds: Sequence[str]) -> bool:
        """Whether it answers all that the data asks for, the main target first."""
        return kinds[0] in self.kinds and self.row.does(kinds)


ATTENTIONS = ("none", "dot", "general", "additive")
FORMS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("ngram", NEXT_TOKEN): {"ngram": {"order": 0}},
    ("ngram", LABEL): {f"ngram-{method}": {"method": method} for method in METHODS},
    ("hmm", NEXT_TOKEN): {"hmm": {"num_states": 0}},
    ("hmm", NEXT_VALUES): {"hmm": {"num_states": 0}},
    ("seq2seq", SEQUENCE): {f"seq2seq-{kind}": {"attention": kind} for kind in ATTENTIONS},
}
"""By family and kind of target: the names of all forms that take part, with their settings, where it is not the family
as it is. An order or a number of states of 0 is chosen by validation."""


def entrants(task: str) -> dict[str, Entrant]:
    """All that do a task, by name, in the order of the lineage."""
    found: dict[str, Entrant] = {}
    for family, row in MODELS.items():
        for kind in (kind for kind in task_named(task).kinds if kind in row.learns):
            for name, settings in FORMS.get((family, kind), {family: {}}).items():
                before = found[name].kinds if name in found else ()
                found[name] = Entrant(name, family, (*before, kind), settings)
    return found


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
class Timing:
    """What one entry costs on this machine, measured before anything is trained. Seconds."""

    start: float
    """Until it can begin: loading data and building the model."""
    update: float
    """Of one update; 0 where it does not learn by updates."""
    score: float
    """Of scoring one unit of a part: a character, step or example."""
    units: int = MAX_SCORED
    """In the validation part."""
    threads: int = 0
    """With which an update is fastest, where that was tried: on a busy machine threads wait for each other."""
    took: float = 0.0
    """To measure all this."""

    def min_seconds(self, ranked_by: int = MIN_SCORED) -> float:
        """The shortest share in which it can learn something and be ranked by so many units."""
        learning = max(MIN_SECONDS, PLANNED_UPDATES * self.update / TRAINING_SHARE)
        return self.start + learning + min(ranked_by, self.units) * self.score


NOT_TIMED = "this machine is so slow now that there was no time to see how long an update of it takes"
MAX_TIMING = 0.25  # of the budget: who is not timed by then is left out
UNTIMED = Timing(0.0, 0.0, 0.0)
"""Of an entry that failed when it was timed; it is tried all the same, and tells its reason then."""


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


@dataclass(frozen=True)
class Ladder:
    trials: list[Trial]
    left_out: dict[str, str]
    """Entries that are not trained, with the reason."""


def choose_models(asked: Sequence[str] | None, task: str) -> list[str]:
    """Who takes part: all that do the task, or those asked for, by the name of a family or of one form of it."""
    fitting = entrants(task)
    families = {entrant.family for entrant in fitting.values()}
    for name in asked or []:
        if name not in MODELS and name not in fitting:
            raise ConfigError(f'unknown family "{name}". {did_you_mean(name, [*MODELS, *fitting])}')
        if name not in families and name not in fitting:
            raise ConfigError(f"{name} does not do the task {task}. Families that do: {', '.join(fitting)}.")
    if asked:
        return [name for name, entrant in fitting.items() if name in asked or entrant.family in asked]
    return [name for name, entrant in fitting.items() if entrant.row.takes_part]


def choose_seeds(minutes: float) -> int:
    return 1 + sum(minutes >= enough for enough in SEED_MINUTES)


def seconds_left(settings: Settings, spent: float) -> float:
    """Of the wall clock, to train in, once `spent` of it are gone."""
    return (1 - RESERVE) * settings.minutes * 60 - spent


def ladder(settings: Settings, spent: float, timings: Mapping[str, Timing] | None = None) -> Ladder:
    """Who is trained in equal shares, and who is left out because a share would be too short for it.

    Without timings (by entry) nobody is left out. `spent`: seconds of the wall clock that are gone.
    """
    everyone = [(model, tokenizer) for model in settings.models for tokenizer in settings.tokenizers]
    seconds = seconds_left(settings, spent)
    if timings is None:
        return Ladder(_in_equal_shares(settings, everyone, "ladder", LADDER_SHARE * seconds), {})
    names = {entry: entry_name(settings, *entry, "ladder") for entry in everyone}
    made = _fitting(settings, [entry for entry in everyone if names[entry] in timings], timings, seconds)
    made.left_out.update({name: NOT_TIMED for name in names.values() if name not in timings})
    if not made.trials:
        min_seconds = min((timing.min_seconds() for timing in timings.values()), default=60 * settings.minutes)
        enough = math.ceil(100 * minutes_for(settings, [min_seconds] * settings.seeds, spent)) / 100
        raise ConfigError(
            f"--minutes {settings.minutes:g} is too short to read this data and to train and score a single model: "
            f"that takes about {enough:g} minutes on this machine now."
        )
    return made


def second_round(
    settings: Settings, spent: float, timings: Mapping[str, Timing], left_out: Mapping[str, str], ranked_by: int
) -> Ladder:
    """Those that were left out (with the reason) and timed, once more: others may have needed less than their share.

    `ranked_by`: units that the first round was ranked by, and that these must have time for too.
    """
    entries = [
        (model, tokenizer)
        for model in settings.models
        for tokenizer in settings.tokenizers
        if entry_name(settings, model, tokenizer, "ladder") in timings.keys() & left_out.keys()
    ]
    trials = _fitting(settings, entries, timings, seconds_left(settings, spent), ranked_by).trials
    trained = {trial.entry for trial in trials}
    return Ladder(trials, {name: why for name, why in left_out.items() if name not in trained})


def _fitting(
    settings: Settings,
    entries: Sequence[tuple[str, str]],
    timings: Mapping[str, Timing],
    seconds: float,
    ranked_by: int = MIN_SCORED,
) -> Ladder:
    """As many entries as can learn something in equal shares of the time; the most expensive are left out."""

    def min_seconds(entry: tuple[str, str]) -> float:
        return timings[entry_name(settings, *entry, "ladder")].min_seconds(ranked_by)

    def alone(entry: tuple[str, str]) -> float:
        """Seconds of the wall clock that all its seeds would take."""
        return min_seconds(entry) * len(_in_equal_shares(settings, [entry], "ladder", 0.0)) / settings.workers

    cheapest_first, share = sorted(entries, key=alone), 0.0
    for num in range(len(entries), 0, -1):
        chosen = [entry for entry in entries if entry in cheapest_first[:num]]
        for part in (LADDER_SHARE, 1.0):  # rather no finals than somebody left out
            trials = _in_equal_shares(settings, chosen, "ladder", part * seconds)
            share = 60 * trials[0].minutes
            if share >= max(map(min_seconds, chosen)):
                left_out = [entry for entry in entries if entry not in chosen]
                shares = {
                    e: 60 * _in_equal_shares(settings, [*chosen, e], "ladder", seconds)[0].minutes for e in left_out
                }
                why = {entry_name(settings, *e, "ladder"): _why_not(min_seconds(e), shares[e]) for e in left_out}
                return Ladder(trials, why)
    return Ladder([], {entry_name(settings, *e, "ladder"): _why_not(min_seconds(e), max(0.0, share)) for e in entries})


def _why_not(min_seconds: float, share: float) -> str:
    needed, there = duration(min_seconds), duration(share)
    short = (
        f"its share would be {there}"
        if share < min_seconds and needed != there
        else "with it no share would be long enough"
    )
    return f"to learn anything it needs {needed} on this machine now, and {short}"


def minutes_for(settings: Settings, min_seconds: Sequence[float], spent: float) -> float:
    """The shortest budget in which trials of these shortest shares (seconds) can all be trained in equal shares."""
    rounds = -(-len(min_seconds) // settings.workers)
    return (rounds * max(min_seconds) + spent) / (1 - RESERVE) / 60


def minutes_for_all(settings: Settings, timings: Mapping[str, Timing], spent: float) -> float:
    """The shortest budget in which nobody is left out; who was not timed is thought to be no slower than the others."""
    num_trials = len(settings.models) * len(settings.tokenizers) * settings.seeds
    return minutes_for(settings, [max(timing.min_seconds() for timing in timings.values())] * num_trials, spent)


def amount_to_validate(trials: Sequence[Trial], timings: Mapping[str, Timing]) -> int:
    """Units of the validation part that all are ranked by: as many as the slowest has time for."""
    timed = [timings[trial.entry] for trial in trials]
    fitting = VALIDATING_SHARE * 60 * trials[0].minutes / max(1e-12, *(timing.score for timing in timed))
    return int(min(MAX_SCORED, max(MIN_SCORED, fitting), *(timing.units for timing in timed)))


def amount_to_score(seconds: float, per_unit: Sequence[float], workers: int) -> int:
    """Units of the scored part: as many as all of them together have time for. `per_unit`: seconds of each."""
    fitting = SCORING_SHARE * seconds * workers / max(1e-12, sum(per_unit))
    return int(min(MAX_SCORED, max(MIN_SCORED, fitting)))


def finals(
    settings: Settings, standings: Sequence[Standing], *, share: float, seconds: float
) -> tuple[list[Trial], str]:
    """Who goes on, and why, in a sentence. `share`: minutes that a trial of the ladder had; `seconds` that are left."""
    ranked = sorted((s for s in standings if math.isfinite(s.value)), key=lambda standing: standing.value)
    if not ranked:
        return [], "no family could be trained"
    taking_part = entrants(settings.task)
    improving = [s for s in ranked if taking_part[s.entrant].learns_by == "gradients" and s.best_at >= STILL_IMPROVING]
    if not improving:
        return [], "no family was still improving when its share was over, so the rest of the time was not used"
    rivals = [s for s in improving[1:MAX_FINALISTS] if _is_in_reach(s.value, improving[0].value)]
    for chosen in ([improving[0], *rivals], improving[:1]):
        trials = _in_equal_shares(settings, [(s.entrant, s.tokenizer) for s in chosen], "final", seconds)
        if trials[0].minutes >= WORTH_TRAINING_LONGER * share:
            break
    if trials[0].minutes < max(share, MIN_SECONDS / 60):
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
        for seed in range(settings.seeds if taking_part[name].learns_by != "counting" else 1)  # counts know no chance
    ]
    rounds = -(-len(seeded) // settings.workers)  # trials that follow each other
    minutes = seconds / rounds / 60
    trials = []
    for entrant, tokenizer, seed in seeded:
        entry = entry_name(settings, entrant.name, tokenizer, stage)
        name = entry if seed == 0 else f"{entry}-seed-{seed}"
        trials.append(Trial(name, entry, entrant.name, entrant.family, tokenizer, stage, settings.seed + seed, minutes))
    return trials
