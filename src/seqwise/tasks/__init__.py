"""Tasks: what a file holds, and so how it is read and what is asked of it. TASKS is the table.

text       running text: predict the next token             bits per character
numbers    columns of a .csv: predict the next row          log-likelihood, error and coverage of forecasts
label      sequences with one answer each                   accuracy, or squared error
tags       words with a tag each                            F1 over entities, or accuracy
pairs      a source and its target                          BLEU, chrF, exact matches
masked     text with words hidden                           accuracy of hidden words, pseudo-perplexity
span       questions on passages                            F1 over words, exact match
reconstruct  rows of text, to be written again                nats per token of the second copy
choice     questions with a few choices each                accuracy
vectors    texts, a vector of each                          none: it is embedded with, or started from
images     pictures with one label each                     accuracy
questions  questions on pictures                            accuracy
captions   pictures or clips with captions                  BLEU, CIDEr
paint      pictures, to be painted                          a bound in nats
seen-choice  questions on pictures with a few choices each    accuracy
seen-masked  pictures with sentences, parts of both hidden    accuracy of hidden words, pictures found
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ..checks import OUTSIDE, TASK_NAMES, check_task
from ..data.kinds import task_for as task_for
from ..data.kinds import task_of as task_of
from ..errors import ConfigError, did_you_mean
from .captions import CaptionsTask
from .choice import ChoiceTask
from .images import ImagesTask
from .label import LabelTask
from .masked import MaskedTask
from .numbers import NumbersTask
from .paint import PaintTask
from .pairs import PairsTask
from .questions import QuestionsTask
from .questions import ask_on_picture as ask_on_picture
from .reconstruct import ReconstructTask
from .seen_choice import SeenChoiceTask
from .seen_masked import SeenMaskedTask
from .span import SpanTask
from .tags import TagsTask
from .task import ReadsQuestions as ReadsQuestions
from .task import Task as Task
from .task import can_do as can_do
from .task import goal_of as goal_of
from .task import reads_of as reads_of
from .text import TextTask
from .vectors import VectorsTask

TASKS: dict[str, Task] = {
    "text": TextTask(),
    "numbers": NumbersTask(),
    "label": LabelTask(),
    "tags": TagsTask(),
    "pairs": PairsTask(),
    "reconstruct": ReconstructTask(),
    "masked": MaskedTask(),
    "span": SpanTask(),
    "choice": ChoiceTask(),
    "vectors": VectorsTask(),
    "images": ImagesTask(),
    "questions": QuestionsTask(),
    "captions": CaptionsTask(),
    "paint": PaintTask(),
    "seen-choice": SeenChoiceTask(),
    "seen-masked": SeenMaskedTask(),
}

ALSO_READ_AS = {"text": ("masked",), "images": ("paint",), "captions": ("seen-masked",)}
"""What the same data is read for by families that do not do the first."""


def register(task: Task) -> None:
    """Add a task from outside: from now on every command knows it by its name, in this process and in those it starts.

    Those read it from its file, where it stands as TASK; the environment's SEQWISE_TASKS names such files.
    """
    if task.name in TASKS:
        raise ConfigError(f'there is a task "{task.name}" already; give this one another name.')
    TASKS[task.name] = task
    TASK_NAMES.append(task.name)
    file = getattr(sys.modules[type(task).__module__], "__file__", None)
    if file is not None and file not in _outside_files():
        os.environ[OUTSIDE] = os.pathsep.join([*_outside_files(), file])


def _outside_files() -> list[str]:
    return [file for file in os.environ.get(OUTSIDE, "").split(os.pathsep) if file]


def load_outside() -> None:
    """Register the task of each file that SEQWISE_TASKS names."""
    for number, file in enumerate(_outside_files()):
        found = spec_from_file_location(f"seqwise_task_{number}", file)
        if found is None or found.loader is None or not Path(file).exists():
            raise ConfigError(f"{OUTSIDE} names {file}, which is no Python file.")
        module = module_from_spec(found)
        sys.modules[found.name] = module
        found.loader.exec_module(module)
        if not hasattr(module, "TASK"):
            raise ConfigError(f"{OUTSIDE} names {file}, which has no TASK.")
        if module.TASK.name not in TASKS:
            register(module.TASK)


def task_named(name: str) -> Task:
    check_task(name)
    if name not in TASKS:
        raise ConfigError(f'unknown task "{name}". {did_you_mean(name, TASK_NAMES)}')
    return TASKS[name]


load_outside()
