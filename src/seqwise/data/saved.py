"""Files of JSON that a run is kept in: written whole, and named where they are damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config import parse_json
from ..errors import CheckpointError


def write_whole(path: Path, text: str) -> None:
    """Whole or not at all: a folder of an older format may have a file of this name."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


class damage_named:
    """Reads a file of JSON; whatever is wrong with it, or with what is made of it, is told by its name."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Any:
        try:
            return parse_json(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be read: {error.strerror}.") from None
        except ValueError:
            raise damaged(self.path) from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        if isinstance(error, ValueError | LookupError | TypeError | AttributeError):
            raise damaged(self.path) from None


def damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path}: damaged: not what seqwise wrote. Restore it or train again.")
