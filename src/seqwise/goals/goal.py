"""What every kind of target can be asked for. Session, comparison, command line and API know these verbs only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..data.batch import Batch
from ..data.schema import ImageSpec, RegionSpec, Schema
from ..data.span_store import SpanStore
from ..decoding.translate import Answer
from ..evaluation.segments import Metric, Segments
from ..models.contract import Translator
from ..models.headed import HeadedModel
from ..settings import DataConfig, TrainingConfig

Tell = Callable[[str], None]
"""Told a sentence on each thing that was decided, found or begun."""
OnProgress = Callable[[str, int, int], None]
"""Told (what, done, of how many) while data is prepared."""


class Score(Protocol):
    """What evaluation returns: numbers, words for them, and how they were computed."""

    @property
    def signature(self) -> str: ...
    @property
    def metric(self) -> Metric: ...
    @property
    def segments(self) -> Segments:
        """Sums over segments of the data, by which two models are compared."""
        ...

    def headline(self) -> str: ...
    def rows(self) -> Iterator[tuple[str, str]]: ...
    def to_dict(self) -> dict[str, Any]: ...


class BatchSource(Protocol):
    """Gives the batch of any step by itself, so that a run resumes at the exact place.

    It is drawn from the seed and the step; a source that samples from the model as it is now is told which.
    """

    steps_per_epoch: int

    def batch(self, step: int, model: object = None) -> Batch: ...


@dataclass(frozen=True)
class Facts:
    """What sizes follow from (training/sizing)."""

    train_tokens: int
    """Tokens, rows of numbers, or examples in the training part."""
    vocab_size: int
    tokenizer: str
    """Its kind; empty where the data is not text."""
    minutes: float | None
    """None where the budget is in steps or epochs."""
    num_columns: int = 0
    season: int = 0
    """Numbers: steps after which the series resembles itself; 1 where it does not."""
    length: int = 0
    """Labels and tags: steps of a sequence, but for a few that are longer. Pairs: of the longest side."""
    tokens: int = 0
    """Labels and tags: tokens of all texts in the training part; 0 where it is not text."""
    is_structured: bool = False
    """Tags: whether they mark where something begins and ends, so that not every tag may follow every other."""
    answer_length: int = 0
    """Spans: tokens of an answer, but for a few that are longer."""
    picture: ImageSpec | RegionSpec | None = None
    """What is looked at; None where nothing is."""
    data: dict[str, Any] = field(default_factory=dict)
    """Settings of the section data that were found in the training part."""


@dataclass(frozen=True)
class ScoreOptions:
    """All that any goal's `score` can be told; each knows some of them."""

    view: str | None = None
    context: int | None = None
    stride: int | None = None
    horizon: int | None = None
    season: int | None = None
    method: str | None = None
    beam_width: int | None = None
    length_penalty: float | None = None
    length_form: str | None = None


D = TypeVar("D", contravariant=True)
"""Data, as it was read."""
S = TypeVar("S")
"""A part of it, encoded."""
M = TypeVar("M", contravariant=True)
"""Models that can do it."""


@runtime_checkable
class AnswersLines(Protocol):
    """A goal whose models answer line by line."""

    def answer_lines(
        self, model: Translator, lines: Iterable[str], schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[Answer]: ...


@runtime_checkable
class AnswersRows(Protocol):
    """A goal whose models answer row by row: labels, tags."""

    def answers(self, model: Any, store: Any, schema: Schema) -> Iterator[dict[str, Any]]:
        """What programs read of each answer: the label and probabilities, words and tags."""
        ...


@runtime_checkable
class ChoosesSettings(Protocol):
    """A goal some of whose settings are chosen when learning is over."""

    def chosen_settings(self, model: HeadedModel, store: SpanStore) -> dict[str, Any]:
        """Of the section model, as suits the validation part best."""
        ...


class Goal(Protocol[D, S, M]):
    """A row of GOALS: what is done about one kind of target."""

    unit: str
    """What a batch is counted in: tokens, steps, answers."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The numbers of a score that can be compared with a published figure."""
        ...

    score_options: tuple[str, ...]
    """What `score` can be told besides."""
    reads_lines: bool
    """Whether `predict` reads lines, one question each."""
    writes_table: bool
    """Whether the lines that `predict` writes are a .csv: first the names of the columns, then numbers."""

    def facts(self, data: D, train: S, schema: Schema, minutes: float | None) -> Facts: ...
    def batches(self, store: S, model: M, config: TrainingConfig) -> BatchSource: ...
    def sequences(self, store: S, model: M) -> list[Any]:
        """The training part as families that learn by EM or counting want it."""
        ...

    def take(self, store: S, limit: int) -> S:
        """The beginning of a part, where it can be cut short."""
        ...

    def validated(self, store: S, limit: int | None) -> S:
        """The beginning of a part that `validate` reads."""
        ...

    def validate(self, model: M, store: S, limit: int | None) -> float:
        """Nats per token, step or answer on the beginning of a part."""
        ...

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        """What turns the result of `validate` into the value of a score's metric; None where there is no way."""
        ...

    def score(
        self,
        model: M,
        store: S,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> Score:
        """How well the model does on a part; `on_progress` is told how far it is, where that takes long."""
        ...

    def beginning_of_text(self, data: D, part: str, num_chars: int) -> str | None:
        """What people read of a part, of pairs its first source; None where it is no text."""
        ...

    def sample(self, model: M, store: S, schema: Schema, config: TrainingConfig) -> str | None:
        """A text as the model writes now, of a part where it needs one; None where it does not write."""
        ...

    def predicted(self, parts: Sequence[str], part: str) -> str:
        """The part that `predict` is given, where this one was meant."""
        ...

    def predict(self, model: M, store: S, schema: Schema, config: DataConfig, **options: Any) -> Iterator[str]:
        """Answers, one a line: forecasts of what comes after the part, labels or tags."""
        ...

    def next_command(self, path: str) -> str: ...


AnyGoal = Goal[Any, Any, Any]
"""Of whatever data, where the kind of target is known only when it runs."""
