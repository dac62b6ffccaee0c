"""Tasks: what a file holds, and so how it is read, batched, validated and scored. TASKS is the table.

text       running text: predict the next token             bits per character
numbers    columns of a .csv: predict the next row          log-likelihood, error and coverage of forecasts
label      sequences with one answer each                   accuracy, or squared error
pairs      a source and its target                          BLEU, chrF, exact matches
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..data.builtin import is_example_set
from ..data.files import kind_of
from ..data.pairs import looks_like_pairs
from ..errors import ConfigError, did_you_mean
from .label import LabelTask
from .numbers import NumbersTask
from .pairs import PairsTask
from .task import Task as Task
from .text import TextTask

TASKS: dict[str, Task] = {"text": TextTask(), "numbers": NumbersTask(), "label": LabelTask(), "pairs": PairsTask()}


def task_named(name: str) -> Task:
    if name not in TASKS:
        raise ConfigError(f'unknown task "{name}". {did_you_mean(name, TASKS)}')
    return TASKS[name]


def task_of(sources: Sequence[str]) -> str:
    """What the data is taken for where nobody said: by the name of the set, or the suffix of the file."""
    first = str(sources[0])
    if looks_like_pairs([str(source) for source in sources]):
        return "pairs"
    if not Path(first).exists() and is_example_set(first):
        return "label"
    return "numbers" if len(sources) == 1 and kind_of(Path(first)) == ".csv" else "text"
