"""What is asked of training: built once by the command line, by Python or by a comparison, and passed on whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..data.pipes import owned
from ..errors import ConfigError
from .overrides import absolute, merged_settings


@dataclass(frozen=True)
class Request:
    source: list[str]
    """Files, a folder, or the name of a data set."""
    model: str
    """The name of a family."""
    out: Path
    """The run folder."""
    task: str | None = None
    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None
    tokenizer: str | None = None
    valid: str | None = None
    test: str | None = None
    split: str | None = None
    columns: list[str] | None = None
    season: int | list[int] | None = None
    seed: int | None = None
    config_file: Path | None = None
    overrides: list[str] = field(default_factory=list)
    """As --set has them: "model.num_layers=2"."""
    start_from: Path | None = None
    """A run whose body is kept."""

    @classmethod
    def of(cls, source: str | Path | Sequence[str | Path], *, model: str, out: str | Path, **asked: Any) -> Request:
        """From what people write: paths as words or as paths, one file or several, None for what is not asked."""
        sources = [source] if isinstance(source, str | Path) else source
        kinds = {"columns": list, "overrides": list, "valid": str, "test": str, "config_file": Path, "start_from": Path}
        given = {name: value for name, value in asked.items() if value is not None}
        given |= {name: kinds[name](value) for name, value in given.items() if name in kinds}
        return cls(list(map(str, sources)), model, Path(out), **given)

    def checked(self) -> Request:
        """With files by their full path, and pipes read; what contradicts itself is refused."""
        if sum(budget is not None for budget in (self.minutes, self.steps, self.epochs)) > 1:
            raise ConfigError("give one budget: --minutes, --steps or --epochs.")
        sources = [absolute(source) for source in owned(self.source, self.task)]
        valid, test = (part and absolute(owned([part], self.task)[0]) for part in (self.valid, self.test))
        return replace(self, source=sources, valid=valid, test=test)

    @property
    def where(self) -> str:
        """What a message about a setting names."""
        return str(self.config_file) if self.config_file else "--set"

    def settings(self) -> dict[str, dict[str, Any]]:
        """What was set, by section: by the settings file, over it by options, over those by --set."""
        names = ("source", "valid", "test", "split", "season")
        options: dict[str, dict[str, Any]] = {
            "data": {**{name: getattr(self, name) for name in names}, "columns": self.columns or None},
            "tokenizer": {"kind": self.tokenizer},
            "training": {name: getattr(self, name) for name in ("minutes", "steps", "epochs", "seed")},
        }
        return merged_settings(self.config_file, options, self.overrides)
