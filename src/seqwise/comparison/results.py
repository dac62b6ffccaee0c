"""What a comparison found, as it stands in compare.json.

An entry is one family with one tokenizer at one share of the budget. Values are as the metric shows them, which says
whether lower or higher is better.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..config import parse_json
from ..errors import DataError
from ..evaluation.segments import Metric as Metric
from .words import KIND_OF_TASK, Words, words_for

FORMAT = 1
RENAMED = {"memorised": "memorization"}  # fields of an entry: their names before, and now
Stage = Literal["ladder", "final"]
Status = Literal["waiting", "running", "stopped", "done", "failed", "left out"]


@dataclass(frozen=True)
class Figure:
    value: float
    low: float
    """95 %, by resampling segments of the data (and seeds, where there are several); without ends where there is too
    little data for an interval."""
    high: float

    @property
    def is_enough(self) -> bool:
        return self.low != -math.inf


@dataclass(frozen=True)
class Point:
    """Of a learning curve, on validation."""

    seconds: float
    tokens: int
    value: float


@dataclass(frozen=True)
class Match:
    """The longest segment of a text that stands in the training part, word for word."""

    length: int
    """Characters."""
    text: str


@dataclass(frozen=True)
class Entry:
    name: str
    """"gpt", "gpt-bpe", "gpt-final"."""
    family: str
    tokenizer: str
    """char, word or bpe; empty where the data is not text."""
    stage: Stage
    minutes: float
    """The share of the budget it was given, all seeds together; what was used is in training_seconds."""
    status: Status = "waiting"
    reason: str = ""
    """Why it failed, stopped or was left out, in a sentence."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know: over a limit, cut short, smaller than by rule."""
    runs: list[str] = field(default_factory=list)
    """Run folders below the comparison's own, one per seed; the best by validation first."""
    settings: str = ""
    """Sizes and optimiser in words."""
    valid: float | None = None
    """Mean over seeds."""
    test: Figure | None = None
    """On the part named by Comparison.scored."""
    by_seed: list[float] = field(default_factory=list)
    """The value of each seed on that part."""
    more: dict[str, float] = field(default_factory=dict)
    """Other scores by name: perplexity; mae, coverage; accuracy."""
    parameters: int = 0
    bytes_on_disk: int = 0
    training_seconds: float = 0.0
    training_tokens_per_second: float = 0.0
    generation_tokens_per_second: float | None = None
    """Many texts at once."""
    ms_per_token: float | None = None
    """One text alone; for numbers and labels, one step or one sequence."""
    peak_bytes: int = 0
    curve: list[Point] = field(default_factory=list)
    by_position: list[tuple[int, float]] = field(default_factory=list)
    """(characters that were read before, value): does it use a long context?"""
    samples: list[str] = field(default_factory=list)
    memorization: Match | None = None
    """Longest segment of the samples that stands in the training part."""
    surprise: list[tuple[str, float]] = field(default_factory=list)
    """The passage, piece by piece, with the bits each took."""
    by_label: list[tuple[str, float, float, float, int]] = field(default_factory=list)
    """Labels and tags: precision, recall, F1 and count of each label, tag or type of entity on the scored part, the
    most frequent first, and not all of many."""
    confusion: dict[str, Any] = field(default_factory=dict)
    """Labels, where they are few: their names, and how often each (row) was answered by each (column) there."""
    confused: list[tuple[str, str, int]] = field(default_factory=list)
    """Labels: which was answered by which other one how often, the most frequent first."""
    reliability: list[tuple[float, float, int]] = field(default_factory=list)
    """Labels: of answers of about the same probability its mean, the share that is right, and their number."""
    answers: list[tuple[int, str, float, float]] = field(default_factory=list)
    """Labels and numbers: for some rows of the scored part (those of the comparison's `examples`) what it says, how
    probable it thinks that, and how probable what was wanted; of numbers minus the distance from it."""
    wrong_tags: list[tuple[int, list[tuple[int, str]]]] = field(default_factory=list)
    """Tags: for some rows of the scored part (those of `tagged`) which words it gives a wrong tag, and which."""
    forecast: list[tuple[float, float, float]] = field(default_factory=list)
    """Numbers: middle, low and high of the first column, step by step from the start of the passage on."""
    updates: int | None = None
    """Of its weights; of a family that learns by gradients."""
    not_trained: str = ""
    """Why it is no candidate: too few updates, or no better on validation than the baseline. It has no sure place."""
    minutes_needed: int = 0
    """The budget in which it would make enough updates, where they were too few."""
    is_on_front: bool = False
    """No other candidate is at once better, smaller and faster."""
    over_limit: bool = False
    """Breaks a limit that was asked for, so it is not recommended."""
    start_from: str = ""
    """The run whose body it kept; empty where it started from scratch."""
    labels: int | None = None
    """Rows of the training part that it learned from; None for all."""


@dataclass(frozen=True)
class Gap:
    """Neighbours in the ranking, tested in pairs on the same segments."""

    better: str
    worse: str
    gain: float
    low: float
    high: float
    is_distinguishable: bool
    is_enough: bool = True
    """Whether there is data enough to tell."""


@dataclass(frozen=True)
class LabelPoint:
    """How a model does after so many labels."""

    model: str
    """"lstm", "lstm-from-lm"."""
    labels: int
    name: str
    """Of the entry: that of its run folders too."""
    figure: Figure | None = None
    """Mean over seeds, with the interval over rows and seeds; None where it is missing."""
    by_seed: list[float] = field(default_factory=list)
    note: str = ""
    """Why it is missing, or says little."""


@dataclass(frozen=True)
class Lead:
    """How far who started from a run is ahead of who started from scratch, on the same rows."""

    labels: int
    started: str
    from_scratch: str
    gain: float
    """Of the value that curves show; below zero where it is behind."""
    low: float
    high: float
    is_enough: bool = True
    """Whether there is data enough to tell."""

    @property
    def is_distinguishable(self) -> bool:
        return self.is_enough and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class LabelCurves:
    """Scores against the number of labels that were learned from."""

    metric: Metric
    """Of the points: accuracy in per cent where the comparison's own metric is a share of wrong answers."""
    counts: list[int]
    """Fewest first."""
    num_rows: int
    """Of the whole training part."""
    points: list[LabelPoint] = field(default_factory=list)
    leads: list[Lead] = field(default_factory=list)

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(point.model for point in self.points))

    def point(self, model: str, labels: int) -> LabelPoint | None:
        return next((one for one in self.points if (one.model, one.labels) == (model, labels)), None)


@dataclass(frozen=True)
class Comparison:
    """All of it. `ladder` is ranked, best first, those without a score last; `final` likewise."""

    data: dict[str, Any]
    """name, description, fingerprint, and parts: {"train": 1003854, ...} in characters, steps or sequences."""
    task: str
    metric: Metric
    scored: str
    """"test", or "valid" where the data has no test part."""
    minutes: float
    seeds: int
    workers: int
    threads: int
    command: str
    """What repeats it."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Where the wall clock went: preparing, training, scoring, measuring, rest."""
    machine: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    ladder: list[Entry] = field(default_factory=list)
    final: list[Entry] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    """Of candidates only."""
    baseline: dict[str, Any] = field(default_factory=dict)
    """What one gets without learning: name, and value on validation; and under "simple" what a simple model gets."""
    winner: str | None = None
    """The name of an entry."""
    recommendation: list[str] = field(default_factory=list)
    """Two to four sentences; the first one says what was not trained."""
    passage: str = ""
    """Text: the segment of the scored part that `surprise` colours."""
    examples: list[tuple[int, str, str]] = field(default_factory=list)
    """Labels and numbers: some rows of the scored part, their texts, and what should be answered."""
    tagged: list[tuple[int, list[str], list[str]]] = field(default_factory=list)
    """Tags: some rows of the scored part, their words, and the tags that these should have."""
    passage_values: list[float | None] = field(default_factory=list)
    """Numbers: what came, first column, for `forecast` to be seen against; None where it is missing."""
    held_out_match: Match | None = None
    """As `memorization`, for as much of the scored part as there are samples: what real text shares with training."""
    is_complete: bool = False
    format: int = FORMAT
    seqwise: str = ""
    kind: str = ""
    """Of the main target."""
    label_curves: LabelCurves | None = None
    """Where numbers of labels were asked for; everything else is then of those with the most."""

    @property
    def words(self) -> Words:
        return words_for(self.kind or KIND_OF_TASK.get(self.task, ""))

    @property
    def entries(self) -> list[Entry]:
        return [*self.ladder, *self.final]

    def entry(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.name == name)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        first = self.recommendation[0] if self.recommendation else "no recommendation yet"
        return f"<Comparison of {', '.join(entry.name for entry in self.ladder) or 'nothing yet'}: {first}>"

    def _repr_html_(self) -> str:
        """For notebooks: the recommendation and the table."""
        from .table import write_html

        return write_html(self)

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Comparison:
        if found.get("format") != FORMAT:
            raise DataError(f"a comparison of format {found.get('format')} is not known here; expected {FORMAT}.")
        made = dict(found)
        made["metric"] = Metric(**found["metric"])
        made["ladder"], made["final"] = ([_entry(one) for one in found[stage]] for stage in ("ladder", "final"))
        made["gaps"] = [_gap(gap) for gap in found["gaps"]]
        for name in ("examples", "tagged"):
            made[name] = [tuple(one) for one in found.get(name, ())]
        made["held_out_match"] = _maybe(Match, found["held_out_match"])
        made["label_curves"] = _label_curves(curves) if (curves := found.get("label_curves")) else None
        return cls(**made)

    @classmethod
    def read(cls, path: Path) -> Comparison:
        try:
            return cls.from_dict(parse_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path} holds no comparison ({error}). Run: seqwise compare DATA.") from None


def with_new_names(found: dict[str, Any]) -> dict[str, Any]:
    """What versions before wrote of an entry, by the names of today."""
    return {RENAMED.get(name, name): value for name, value in found.items()}


def _entry(found: dict[str, Any]) -> Entry:
    found = with_new_names(found)
    return Entry(
        **{
            **found,
            "test": _figure(found["test"]),
            "more": {name: _number(value) for name, value in found["more"].items()},
            "memorization": _maybe(Match, found["memorization"]),
            "curve": [Point(**point) for point in found["curve"]],
            "by_position": [(place, value) for place, value in found["by_position"]],
            "surprise": [(piece, bits) for piece, bits in found["surprise"]],
            "forecast": [(middle, low, high) for middle, low, high in found["forecast"]],
            **of_answers(found),
        }
    )


def of_answers(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of an entry that labels and tags have, from those that stand in JSON."""
    answers = found.get("answers", ())
    return {
        **{name: [tuple(one) for one in found.get(name, ())] for name in ("by_label", "confused", "reliability")},
        "confusion": found.get("confusion", {}),
        "answers": [(row, said, sure, -math.inf if right is None else right) for row, said, sure, right in answers],
        "wrong_tags": [(row, [tuple(one) for one in wrong]) for row, wrong in found.get("wrong_tags", ())],
    }


def _label_curves(found: dict[str, Any]) -> LabelCurves:
    points = [LabelPoint(**{**one, "figure": _figure(one["figure"])}) for one in found["points"]]
    leads = [Lead(**_with_ends(one, not one["is_enough"])) for one in found["leads"]]
    return LabelCurves(**{**found, "metric": Metric(**found["metric"]), "points": points, "leads": leads})


def _figure(found: dict[str, Any] | None) -> Figure | None:
    return _maybe(Figure, found and _with_ends(found, found["value"] is not None))


def _gap(found: dict[str, Any]) -> Gap:
    return Gap(**_with_ends(found, not found.get("is_enough", True)))


def _with_ends(found: dict[str, Any], is_open: bool) -> dict[str, Any]:
    """Numbers without end back in their place; where `is_open`, an interval without a low end has none below."""
    numbers = {name: math.inf if value is None else value for name, value in found.items()}
    return {**numbers, "low": -math.inf} if is_open and found["low"] is None else numbers


def _number(value: float | None) -> float:
    """JSON has no word for what is without end."""
    return math.inf if value is None else value


def _maybe(kind: Any, found: dict[str, Any] | None) -> Any:
    return None if found is None else kind(**found)
