"""What a reader is: how one kind of target is looked at. Those of all kinds are in readers.py and answer_readers.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..data.schema import Schema, TokenSpec
from ..run import Run
from ..text import Tokenizer
from .options import InspectOptions
from .reading import Reading
from .search_tree import SearchTree

UNSEEN = 500  # characters of held-out text, where none is given


class Inspectable(Protocol):
    """What is asked of a run (trained_run.TrainedRun)."""

    path: Path
    run: Run

    @property
    def model(self) -> Any: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def translate(self, text: str) -> str: ...
    def unseen_text(self, num_chars: int) -> str | None: ...
    def unseen_store(self) -> Any: ...


class Reader(Protocol):
    """A row of READERS."""

    has_source: bool
    """Whether what is read is answered by a sequence of its own."""
    is_running_text: bool
    """Whether it reads on and on: then memory, units and truncation can be looked at."""
    answers_options: tuple[str, ...]
    """Of InspectOptions, that say nothing elsewhere: pairs (of sentences), row, phrase."""
    no_gradients: str
    no_memory: str
    """Why there is nothing to see; empty where there is."""

    def reads_text(self, run: Run) -> bool:
        """Whether it can be given a text; else it reads the run's own held-out data."""
        ...

    def takes_target(self, run: Run) -> bool:
        """Whether it can be given what is to be answered, too."""
        ...

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        """And what was read, or where it is from."""
        ...

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        """From which gradients are followed back."""
        ...

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree | str:
        """How it was found, or could go on; or why there is no search."""
        ...

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        """Of what embeddings stand for and a search finds; None where that has no names."""
        ...


def given_text(run: Inspectable, text: str | None) -> str:
    """A text, or the beginning of the run's own held-out part."""
    found = run.unseen_text(UNSEEN) if text is None else text
    assert found is not None
    return found


Look = Callable[[Inspectable, str | None, str | None, InspectOptions], tuple[Reading, str]]


@dataclass
class WholeReader:
    """Of texts that are answered as a whole: nothing is written step by step, and so nothing is searched for."""

    looks: Look
    """`read` of a Reader."""
    no_search: str
    no_gradients: str
    no_memory: str
    answers_options: tuple[str, ...] = ()
    has_target: bool = False
    """Whether the right answer can be told beside the text."""
    has_source = is_running_text = False

    def reads_text(self, run: Run) -> bool:
        return True

    def takes_target(self, run: Run) -> bool:
        return self.has_target

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        return self.looks(run, text, target, options)

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return []

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> str:
        return self.no_search

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return schema.input("tokens", TokenSpec).tokenizer
