"""What every task can do: it reads data, and says what it is made of. What is done about its targets is a goal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ..data.schema import SEQUENCES, Schema
from ..goals import GOALS, AnyGoal
from ..goals.goal import OnProgress, Tell
from ..models import Family
from ..settings import DataConfig, TokenizerConfig


class Task(Protocol):
    name: str
    title: str
    """What the data is taken for, in words."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of target, that its data may ask for: who does the task does all of them."""
        ...

    @property
    def goal(self) -> AnyGoal | None:
        """How its answers are judged, where the goal of their kind would not do."""
        ...

    @property
    def options(self) -> tuple[str, ...]:
        """Of a command, that are for this task alone: tokenizers, season, labels."""
        ...

    def open(self, config: DataConfig) -> Any: ...
    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[Any, str]:
        """Other data than the run's own, to be scored: the data, and which part of it; `config` is the run's."""
        ...

    def schema(self, data: Any, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        """What the training part is made of; inputs as the `base` reads them, where a run starts from another."""
        ...

    def stores(self, data: Any, schema: Schema, on_progress: OnProgress = lambda *_: None) -> dict[str, Any]: ...
    def store(self, data: Any, part: str, schema: Schema) -> Any: ...


@runtime_checkable
class ReadsQuestions(Protocol):
    """A task whose data can be read without its answers, to be answered."""

    def open_questions(self, source: str, schema: Schema, config: DataConfig) -> tuple[Any, str]:
        """What is asked in a file, as data of one part, and the name of the part; `config` is the run's."""
        ...

    def questions(self, asked: Sequence[str | Sequence[str]], schema: Schema) -> Any:
        """The same for texts that are at hand: a store of them."""
        ...


@runtime_checkable
class ReadsPictures(Protocol):
    """A task whose inputs are not sequences alone."""

    @property
    def reads(self) -> tuple[frozenset[str], ...]:
        """Kinds of spec that they may be made of."""
        ...


def reads_of(task: Task) -> tuple[frozenset[str], ...]:
    """Kinds of spec that its inputs may be made of."""
    return task.reads if isinstance(task, ReadsPictures) else SEQUENCES


def can_do(row: Family, task: Task) -> bool:
    """Whether a family answers some of what a task may ask for, and reads what it may be made of."""
    return row.does_some(task.kinds) and row.can_read(*reads_of(task))


def goal_of(task: Task, schema: Schema) -> AnyGoal:
    """What is done about the main target: the task's own goal, or that of the target's kind."""
    return task.goal or GOALS[schema.kind]
