"""The folder of a comparison. It grows file by file, each written whole, so that it can be stopped and gone on with.

runs/NAME-compare/
  settings.json          what was asked for
  prepared.json          what was found in the data; vocab/TOKENIZER/ beside it
  plan.json              the trials so far, the sentence that says why those, and how much is scored
  baseline.json          what one gets without learning
  clock.json             how long it has been at work, and whether it is done
  runs/TRIAL/            run folders, ready for generate, evaluate, --resume
  found/TRIAL.*.json     what timing, training and scoring found
  logs/                  what a trial's process printed
  compare.json           all of it, and compare.md, report.html: written anew after each trial
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..checks import check_comparison, check_writable_name
from ..config import parse_json
from ..errors import CheckpointError, ConfigError
from .plan import UNTIMED, Settings, Timing, Trial

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # of a trial or a tokenizer: one file in one folder


def _plain(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!a} is no name of a trial or a tokenizer")
    return name


class Workspace:
    def __init__(self, path: Path):
        self.path = path

    def create(self, settings: Settings) -> None:
        check_writable_name(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file; choose another --out.")
        if self.path.exists() and any(self.path.iterdir()):
            raise ConfigError(
                f"{self.path} exists and is not empty. Go on with it by --resume, or choose another --out."
            )
        self.write("settings.json", settings.to_dict())

    @property
    def settings(self) -> Settings:
        check_comparison(self.path)
        with self._as_written("settings.json"):
            found = Settings.from_dict(self.read("settings.json"))
            for vocabulary in found.vocabularies:
                self.vocab(vocabulary)
            return found

    @property
    def clock(self) -> float:
        """Seconds that the comparison has been at work."""
        return float((self.read_if_there("clock.json") or {"seconds": 0.0})["seconds"])

    @property
    def is_complete(self) -> bool:
        return bool((self.read_if_there("clock.json") or {}).get("is_complete"))

    def save_clock(self, seconds: float, *, is_complete: bool) -> None:
        self.write("clock.json", {"seconds": seconds, "is_complete": is_complete})

    @property
    def trials(self) -> list[Trial]:
        with self._as_written("plan.json"):
            plan = self.read_if_there("plan.json")
            found = [] if plan is None else [Trial(**{"timed_as": one["entry"], **one}) for one in plan["trials"]]
            for trial in found:
                self.run(trial.name)
                self.vocab(trial.tokenizer)
            return found

    def trial(self, name: str) -> Trial:
        return next(trial for trial in self.trials if trial.name == name)

    def save_plan(self, trials: Sequence[Trial], why: str = "", **decided: Any) -> None:
        """What was decided before stays: threads, valid_amount, left_out; scored_amount, measuring_seconds."""
        before = self.read_if_there("plan.json") or {}
        self.write("plan.json", {**before, "trials": [asdict(trial) for trial in trials], "why": why, **decided})

    def timing(self, entry: str) -> Timing:
        """Of an entry, or of what a finalist was in the ladder; the trial of its first seed has the same name."""
        found = self.found(entry.removesuffix("-final"), "timed")
        return UNTIMED if found is None else Timing(**found)

    def run(self, trial: str) -> Path:
        return self.path / "runs" / _plain(trial)

    def vocab(self, tokenizer: str) -> Path:
        return self.path / "vocab" / _plain(tokenizer)

    def found(self, trial: str, what: str) -> dict[str, Any] | None:
        """What a job wrote: `timed`, `trained`, `scored` or `failed`."""
        return self.read_if_there(f"found/{_plain(trial)}.{what}.json")

    def save_found(self, trial: str, what: str, found: dict[str, Any]) -> None:
        self.write(f"found/{_plain(trial)}.{what}.json", found)

    def forget(self, trial: str, what: str) -> None:
        (self.path / f"found/{_plain(trial)}.{what}.json").unlink(missing_ok=True)

    def read(self, name: str) -> dict[str, Any]:
        try:
            found = parse_json((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{self.path / name} cannot be read: {error}. Start the comparison again.") from None
        if not isinstance(found, dict):
            raise CheckpointError(f"{self.path / name} is not what seqwise wrote. Start the comparison again.")
        return found

    @contextmanager
    def _as_written(self, name: str) -> Iterator[None]:
        """What does not hold what it should, or names that would lead out of the folder, were not written by us."""
        try:
            yield
        except (TypeError, KeyError, ValueError) as error:
            why = f": {error}" if type(error) is ValueError else ""
            raise CheckpointError(
                f"{self.path / name} is not what seqwise wrote{why}. Start the comparison again."
            ) from None

    def read_if_there(self, name: str) -> dict[str, Any] | None:
        return self.read(name) if (self.path / name).exists() else None

    def write(self, name: str, content: dict[str, Any]) -> None:
        self.write_text(name, json.dumps(content))

    def write_text(self, name: str, text: str) -> None:
        """Whole or not at all."""
        path = self.path / name
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(text, encoding="utf-8", errors="replace")
            unfinished.replace(path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise CheckpointError(
                f"cannot write {path}: {error.strerror or error}. What was found so far is kept; free some space and "
                f"go on with: seqwise compare --resume --out {self.path}"
            ) from None
