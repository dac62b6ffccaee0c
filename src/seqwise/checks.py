"""Mistakes that can be told before anything that computes is imported: within a second, not after some."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import CheckpointError, ConfigError, did_you_mean

FAMILIES = (
    "ngram",
    "hmm",
    "kalman",
    "window",
    "conv",
    "rnn",
    "gru",
    "lstm",
    "word2vec",
    "elmo",
    "seq2seq",
    "transformer",
    "gpt",
    "bert",
    "captioner",
    "glimpse",
    "draw",
    "crossmodal",
)
"""The names in MODELS."""
TASK_NAMES = ["text", "numbers", "label", "tags", "pairs", "reconstruct", "masked", "span", "choice", "vectors"]
TASK_NAMES += ["images", "questions", "captions", "paint", "seen-choice", "seen-masked"]
"""The names in TASKS; those of tasks that are registered come behind."""


def check_family(name: str) -> None:
    if name not in FAMILIES:
        raise ConfigError(f'unknown model "{name}". {did_you_mean(name, FAMILIES)}')


OUTSIDE = "SEQWISE_TASKS"
"""Names Python files, each of which has a task of its own as TASK."""


def check_task(name: str) -> None:
    """Tasks from outside are known once they are loaded (tasks/__init__.py)."""
    if name not in TASK_NAMES and not os.environ.get(OUTSIDE):
        raise ConfigError(f'unknown task "{name}". {did_you_mean(name, TASK_NAMES)}')


def check_run(path: Path) -> None:
    check_writable_name(path)
    if not (path / "config.toml").exists():
        what = "is not a run folder: it has no config.toml" if path.exists() else "no such run folder"
        raise CheckpointError(f"{path}: {what}. Train one with: seqwise train DATA --out {path}")


def check_comparison(path: Path) -> None:
    if not (path / "settings.json").exists():
        raise CheckpointError(f"{path} holds no comparison. Begin one with: seqwise compare DATA")


def check_writable_name(path: Path | str) -> None:
    """A name that is no UTF-8 cannot be written into settings and cards, and weights are not read from below it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise ConfigError(
            f"{shown}: its name is not UTF-8, and runs are kept and read by such names only. Rename it."
        ) from None
