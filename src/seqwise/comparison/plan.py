"""What is trained, and for how long.

First an update and a scoring of each family are timed on this machine. Who could not make enough updates in an equal
share is left out, the most expensive first, so that the others learn something. Then half of the time goes to all that
are left in equal shares and decides the ranking. The other half, and what families that count or iterate did not need,
goes to the finalists: those of the best that still gain from time. Scoring at the end has a reserve of its own, and
scores as much as fits it.

Where each is trained with several numbers of labels, there are no finals. Few labels are soon learned from, so that
nobody gets more than it has use for:

    share_i = min(need_i, level)        (1)

with the level at which all shares together fill the time. It is trained from few labels to many, counting first, and
what is left is shared anew before each round.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..pages.quantities import duration
from ..training.planning import MIN_STEPS
from .entrants import BY_GRADIENTS, Entrant, Start, entrants
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
AMPLE = 1.3  # times the time that a training needs as it was timed: no machine is quite even


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
    start: Start | None = None
    """A run that its family starts from, besides from scratch."""
    label_counts: list[int | None] = field(default_factory=lambda: [None])
    """Rows of the training part to learn from, fewest first; None for all of them."""

    @property
    def is_by_labels(self) -> bool:
        """Whether numbers of labels were asked for, so that scores are drawn against them."""
        return self.label_counts != [None]

    @property
    def vocabularies(self) -> list[str]:
        """Tokenizers, and what the run brings that some start from."""
        return [*self.tokenizers, *([self.start.name] if self.start else [])]

    @property
    def contenders(self) -> list[Contender]:
        return [
            Contender(name, vocabulary, labels)
            for name in self.models
            for vocabulary in self._vocabularies_of(name)
            for labels in self.label_counts
        ]

    def _vocabularies_of(self, name: str) -> list[str]:
        start = self.entrant(name).start
        return self.tokenizers if start is None else [start.name]

    def entrant(self, name: str) -> Entrant:
        return entrants(self.task, self.start)[name]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Settings:
        start = found.get("start")
        return cls(**{**found, "limits": Limits(**found["limits"]), "start": Start(**start) if start else None})


class Contender(NamedTuple):
    """What has a row in the ranking, or a point of a curve."""

    entrant: str
    tokenizer: str
    labels: int | None = None
    """None for all."""


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
    labels: int | None = None
    """Rows of the training part that it learns from; None for all."""
    timed_as: str = ""
    """The entry that was timed for it, where that was another: one number of labels tells for all."""


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
    updates_per_row: float = 0.0
    """Of the training part, until it has read each row as often as that helps; 0 where it does not learn by updates."""

    def min_seconds(self, ranked_by: int = MIN_SCORED) -> float:
        """The shortest share in which it can learn something and be ranked by so many units."""
        learning = max(MIN_SECONDS, PLANNED_UPDATES * self.update / TRAINING_SHARE)
        return self.start + learning + min(ranked_by, self.units) * self.score

    @property
    def scoring_seconds(self) -> float:
        """To be loaded once more, and scored on the least."""
        return self.start + min(MIN_SCORED, self.units) * self.score

    def need(self, labels: int | None, ranked_by: int = MIN_SCORED) -> float:
        """The share with which so many labels are learned from to the end; without end where nobody knows."""
        if labels is None or not self.updates_per_row:
            return math.inf
        learning = max(MIN_STEPS, labels * self.updates_per_row) * self.update / TRAINING_SHARE
        return AMPLE * max(self.min_seconds(ranked_by), self.start + learning + min(ranked_by, self.units) * self.score)


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


def choose_seeds(minutes: float) -> int:
    return 1 + sum(minutes >= enough for enough in SEED_MINUTES)


def seconds_left(settings: Settings, spent: float) -> float:
    """Of the wall clock, to train in, once `spent` of it are gone."""
    return (1 - RESERVE) * settings.minutes * 60 - spent


def ladder(settings: Settings, spent: float, timings: Mapping[str, Timing] | None = None) -> Ladder:
    """Who is trained in equal shares, and who is left out because a share would be too short for it.

    Without timings (by entry) nobody is left out. `spent`: seconds of the wall clock that are gone.
    """
    everyone, seconds = _seeded(settings, settings.contenders, "ladder"), seconds_left(settings, spent)
    if timings is None:
        return Ladder(_in_shares(settings, everyone, LADDER_SHARE * seconds), {})
    made = _fitting(settings, [trial for trial in everyone if trial.timed_as in timings], timings, seconds)
    made.left_out.update({trial.entry: NOT_TIMED for trial in everyone if trial.timed_as not in timings})
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
    everyone = _seeded(settings, settings.contenders, "ladder")
    entering = [trial for trial in everyone if trial.entry in timings.keys() & left_out.keys()]
    trials = _fitting(settings, entering, timings, seconds_left(settings, spent), ranked_by).trials
    trained = {trial.entry for trial in trials}
    return Ladder(trials, {name: why for name, why in left_out.items() if name not in trained})


def shared_anew(
    settings: Settings, spent: float, timings: Mapping[str, Timing], begun: Sequence[Trial], ranked_by: int
) -> Ladder:
    """Numbers of labels: all trials that were not `begun`, in what is left of the time. What earlier ones did not need
    is for them; what those took too long for is not there any more."""
    names = {trial.name for trial in begun}
    everyone = _seeded(settings, settings.contenders, "ladder")
    waiting = [trial for trial in everyone if trial.name not in names and trial.timed_as in timings]
    return _fitting(settings, waiting, timings, seconds_left(settings, spent), ranked_by, begun)


def next_round(settings: Settings, waiting: Sequence[Trial]) -> list[Trial]:
    """Those with the fewest labels; of them first who counts or iterates, as that leaves more time to the others."""

    def place(trial: Trial) -> tuple[float, bool]:
        return trial.labels or math.inf, _learns_by_gradients(settings, trial.entrant)

    first = min(map(place, waiting))
    return [trial for trial in waiting if place(trial) == first]


def _fitting(
    settings: Settings,
    trials: Sequence[Trial],
    timings: Mapping[str, Timing],
    seconds: float,
    ranked_by: int = MIN_SCORED,
    begun: Sequence[Trial] = (),
) -> Ladder:
    """As many entries as can learn something in their shares of the time; the most expensive are left out. `begun`:
    trials that have their share, and will be scored too."""
    by_entry: dict[str, list[Trial]] = {}
    for trial in trials:
        by_entry.setdefault(trial.entry, []).append(trial)
    timed = {entry: (seeds[0].labels, timings[seeds[0].timed_as]) for entry, seeds in by_entry.items()}
    min_seconds = {entry: timing.min_seconds(ranked_by) for entry, (_, timing) in timed.items()}
    needs = {entry: timing.need(labels, ranked_by) for entry, (labels, timing) in timed.items()}

    def shared(entries: Collection[str], part: float = 1.0) -> list[Trial]:
        chosen = [trial for trial in trials if trial.entry in entries]
        lacking = _lacking_to_score(settings, [*begun, *chosen], timings)
        return _in_shares(settings, chosen, part * (seconds - lacking), needs)

    def reason(entry: str, chosen: Sequence[str]) -> str:
        share = next(60 * trial.minutes for trial in shared([*chosen, entry]) if trial.entry == entry)
        return _why_not(min_seconds[entry], max(0.0, share))

    cheapest_first = sorted(by_entry, key=lambda entry: min_seconds[entry] * len(by_entry[entry]))
    for num in range(len(by_entry), 0, -1):
        chosen = cheapest_first[:num]
        for part in (1.0,) if settings.is_by_labels else (LADDER_SHARE, 1.0):  # rather no finals than somebody left out
            made = shared(chosen, part)
            if all(60 * trial.minutes >= min_seconds[trial.entry] for trial in made):
                return Ladder(made, {entry: reason(entry, chosen) for entry in by_entry if entry not in chosen})
    return Ladder([], {entry: reason(entry, cheapest_first[:0]) for entry in by_entry})


def _lacking_to_score(settings: Settings, trials: Sequence[Trial], timings: Mapping[str, Timing]) -> float:
    """Seconds that the reserve lacks for the least that is scored of each. Of many numbers of labels there are many
    trials, and each must be loaded once more."""
    if not settings.is_by_labels:
        return 0.0
    needed = sum(timings.get(trial.timed_as, UNTIMED).scoring_seconds for trial in trials) / settings.workers
    return max(0.0, needed - RESERVE * 60 * settings.minutes)


def _why_not(min_seconds: float, share: float) -> str:
    needed, there = duration(min_seconds), duration(share)
    if share <= 0:
        return f"to learn anything it needs {needed} on this machine now, and no time is left"
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
    """A budget in which nobody is left out; who was not timed is thought to be no slower than the others."""
    num_trials = len(settings.contenders) * settings.seeds
    slowest = max(timing.min_seconds() for timing in timings.values())
    if settings.is_by_labels:  # more than the reserve may be needed to score them all
        slowest += max(timing.scoring_seconds for timing in timings.values())
    return minutes_for(settings, [slowest] * num_trials, spent)


def amount_to_validate(trials: Sequence[Trial], timings: Mapping[str, Timing]) -> int:
    """Units of the validation part that all are ranked by: as many as the slowest has time for."""
    timed = [timings[trial.timed_as] for trial in trials]
    fitting = (
        VALIDATING_SHARE * 60 * min(trial.minutes for trial in trials) / max(1e-12, *(timing.score for timing in timed))
    )
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
    improving = [s for s in ranked if _learns_by_gradients(settings, s.entrant) and s.best_at >= STILL_IMPROVING]
    if not improving:
        return [], "no family was still improving when its share was over, so the rest of the time was not used"
    rivals = [s for s in improving[1:MAX_FINALISTS] if _is_in_reach(s.value, improving[0].value)]
    for chosen in ([improving[0], *rivals], improving[:1]):
        finalists = _seeded(settings, [Contender(s.entrant, s.tokenizer) for s in chosen], "final")
        trials = _in_shares(settings, finalists, seconds)
        if trials[0].minutes >= WORTH_TRAINING_LONGER * share:
            break
    if trials[0].minutes < max(share, MIN_SECONDS / 60):
        return [], "there was no time left to train a finalist for longer than in the ladder"
    return trials, f"{' and '.join(s.name for s in chosen)} went on: the best on validation of those still improving"


def entry_name(
    settings: Settings, entrant: str, tokenizer: str, stage: Stage = "ladder", labels: int | None = None
) -> str:
    parts = [entrant]
    if len(settings.tokenizers) > 1 and tokenizer in settings.tokenizers:
        parts.append(tokenizer)
    if labels is not None:
        parts.append(str(labels))
    return "-".join([*parts, *(["final"] if stage == "final" else [])])


def timed_name(settings: Settings, contender: Contender) -> str:
    """The entry that is timed for it: with the most labels, and in the ladder."""
    return entry_name(settings, contender.entrant, contender.tokenizer, labels=settings.label_counts[-1])


def _learns_by_gradients(settings: Settings, entrant: str) -> bool:
    return settings.entrant(entrant).learns_by == BY_GRADIENTS


def _is_in_reach(value: float, best: float) -> bool:
    """Values may be negative (densities): then the distance is measured by size."""
    return value <= best + STILL_IN_REACH * max(abs(best), 1e-9)


def _seeded(settings: Settings, contenders: Sequence[Contender], stage: Stage) -> list[Trial]:
    """A trial for each seed of each contender, without time yet."""
    trials = []
    for contender in contenders:
        name, tokenizer, labels = contender
        entrant, entry = settings.entrant(name), entry_name(settings, name, tokenizer, stage, labels)
        knows_chance = entrant.learns_by != "counting" or labels is not None  # which labels are drawn is chance
        for seed in range(settings.seeds if knows_chance else 1):
            made = Trial(
                entry if seed == 0 else f"{entry}-seed-{seed}",
                entry,
                name,
                entrant.family,
                tokenizer,
                stage,
                settings.seed + seed,
                minutes=0.0,
                labels=labels,
                timed_as=timed_name(settings, contender),
            )
            trials.append(made)
    return trials


def _in_shares(
    settings: Settings, trials: Sequence[Trial], seconds: float, needs: Mapping[str, float] | None = None
) -> list[Trial]:
    """The trials with their shares, that take `seconds` of the wall clock together: equal ones, but for entries that
    have no use for so many seconds (`needs`)."""
    wanted = [(needs or {}).get(trial.entry, math.inf) for trial in trials]
    level = _level(wanted, seconds, settings.workers)
    return [replace(trial, minutes=min(need, level) / 60) for trial, need in zip(trials, wanted, strict=True)]


def _level(needs: Sequence[float], seconds: float, workers: int) -> float:
    """The level of (1), in seconds, by halving."""
    low, high = seconds / -(-len(needs) // workers), seconds  # trials that follow each other have equal shares
    if not needs or min(needs) >= low:
        return low
    for _ in range(50):
        middle = (low + high) / 2
        fits = _wall_clock([min(need, middle) for need in needs], workers) <= seconds
        low, high = (middle, high) if fits else (low, middle)
    return low


def _wall_clock(shares: Sequence[float], workers: int) -> float:
    """Until the last is done, where each is begun when a worker is free."""
    free_at = [0.0] * workers
    for share in shares:
        first = free_at.index(min(free_at))
        free_at[first] += share
    return max(free_at)
