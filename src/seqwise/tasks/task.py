"""What every task can do. Session, command line and API know these verbs, and no task by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..data.batch import Batch
from ..data.vocab import Vocab
from ..decoding.translate import Answer
from ..evaluation.segments import Metric, Segments
from ..settings import DataConfig, TokenizerConfig, TrainingConfig

Tell = Callable[[str], None]
"""Told a sentence on each thing that was decided, found or begun."""
Advance = Callable[[str, int, int], None]
"""Told (what, done, of how many) while data is prepared."""


class Score(Protocol):
    """What evaluation returns: numbers, words for them, and how they were computed."""

    @property
    def signature(self) -> str: ...
    @property
    def metric(self) -> Metric: ...
    @property
    def segments(self) -> Segments:
        """Sums over stretches of the data, by which two models are compared."""
        ...

    def headline(self) -> str: ...
    def rows(self) -> Iterator[tuple[str, str]]: ...
    def to_dict(self) -> dict[str, Any]: ...


class BatchSource(Protocol):
    """Gives the batch of any step by itself, so that a run resumes at the exact place."""

    steps_per_epoch: int

    def batch(self, step: int) -> Batch: ...


@dataclass(frozen=True)
class Facts:
    """What sizes follow from (training/sizing.py)."""

    train_tokens: int
    """Tokens, rows of numbers, or examples in the training part."""
    vocab_size: int
    tokenizer: str
    """Its kind; empty where the data is not text."""
    minutes: float | None
    """None where the budget is in steps or epochs."""
    task: str = "text"
    num_columns: int = 0
    season: int = 0
    """Numbers: steps after which the series resembles itself; 1 where it does not."""
    length: int = 0
    """Labels: steps of a sequence."""
    data: dict[str, Any] = field(default_factory=dict)
    """Settings of the section data that were found in the training part."""


@runtime_checkable
class AnswersLines(Protocol):
    """A task whose models answer line by line."""

    def answer_lines(
        self, model: Any, lines: Iterable[str], vocab: Vocab, config: DataConfig, **options: Any
    ) -> Iterator[Answer]: ...


class Task(Protocol):
    name: str
    title: str
    """What the data is taken for, in words."""
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

    def open(self, config: DataConfig) -> Any: ...
    def open_other(self, source: str, split: str | None, vocab: Vocab, config: DataConfig) -> tuple[Any, str]:
        """Other data than the run's own, to be scored: the data, and which part of it; `config` is the run's."""
        ...

    def learn_vocab(self, data: Any, config: TokenizerConfig, tell: Tell) -> Vocab: ...
    def stores(self, data: Any, vocab: Vocab, advance: Advance = lambda *_: None) -> dict[str, Any]: ...
    def store(self, data: Any, part: str, vocab: Vocab) -> Any: ...
    def facts(self, data: Any, train: Any, vocab: Vocab, minutes: float | None) -> Facts: ...
    def batches(self, store: Any, model: Any, config: TrainingConfig) -> BatchSource: ...
    def sequences(self, store: Any, model: Any) -> list[Any]:
        """The training part as families that learn by EM or counting want it."""
        ...

    def beginning(self, store: Any, most: int) -> Any:
        """The beginning of a part, where it can be cut short."""
        ...

    def validated(self, store: Any, most: int | None) -> Any:
        """The beginning of a part that `validate` reads."""
        ...

    def validate(self, model: Any, store: Any, most: int | None) -> float:
        """Nats per token, step or answer on the beginning of a part."""
        ...

    def loss_as_value(self, score: Score) -> Callable[[float], float] | None:
        """What turns the result of `validate` into the value of a score's metric; None where there is no way."""
        ...

    def score(
        self,
        model: Any,
        store: Any,
        vocab: Vocab,
        config: DataConfig,
        *,
        scored: str,
        advance: Advance = lambda *_: None,
        **options: Any,
    ) -> Score:
        """How well the model does on a part; `advance` is told how far it is, where that takes long."""
        ...

    def sample(self, model: Any, store: Any, vocab: Vocab, config: TrainingConfig) -> str | None:
        """A text as the model writes now, of a part where it needs one; None where it does not write."""
        ...

    def predict(
        self, model: Any, data: Any, part: str, vocab: Vocab, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """Answers, one a line: forecasts, labels or tags."""
        ...

    def next_command(self, path: str) -> str: ...
