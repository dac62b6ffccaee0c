"""What people can do wrong, as one small family: the command line prints the sentence, a server answers 400.

Everything else that is raised is our own mistake and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SeqwiseError(Exception):
    """A sentence that tells what was found, what was expected and what to do."""


class ConfigError(SeqwiseError):
    """A setting is unknown, of the wrong type, or does not fit the others."""


class DataError(SeqwiseError):
    """The data cannot be read, or there is too little of it."""


class CheckpointError(SeqwiseError):
    """A run folder, or a file in it, is damaged, missing or belongs to something else."""


class TrainingError(SeqwiseError):
    """Training cannot go on: the loss is not a number, the disk is full."""


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """A closing sentence that names the nearest known word, else all of them. `prefix` stands before each."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if not near:
        near = [word for word in known if name in word or word in name][:1]
    return f'Did you mean "{prefix}{near[0]}"?' if near else f"Known: {', '.join(prefix + word for word in known)}."
