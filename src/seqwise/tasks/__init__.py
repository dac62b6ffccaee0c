"""Tasks: what a file holds, and so how it is read and what is asked of it. TASKS is the table.

text       running text: predict the next token             bits per character
numbers    columns of a .csv: predict the next row          log-likelihood, error and coverage of forecasts
label      sequences with one answer each                   accuracy, or squared error
pairs      a source and its target                          BLEU, chrF, exact matches
"""

from __future__ import annotations

from ..checks import TASK_NAMES, check_task
from ..data.kinds import task_for as task_for
from ..data.kinds import task_of as task_of
from ..errors import ConfigError
from .label import LabelTask
from .numbers import NumbersTask
from .pairs import PairsTask
from .task import Task as Task
from .task import goal_of as goal_of
from .text import TextTask

TASKS: dict[str, Task] = {"text": TextTask(), "numbers": NumbersTask(), "label": LabelTask(), "pairs": PairsTask()}


def register(task: Task) -> None:
    """Add a task from outside: from now on every command knows it by its name."""
    if task.name in TASKS:
        raise ConfigError(f'there is a task "{task.name}" already; give this one another name.')
    TASKS[task.name] = task
    TASK_NAMES.append(task.name)


def task_named(name: str) -> Task:
    check_task(name)
    return TASKS[name]
