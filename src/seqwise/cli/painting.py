"""seqwise generate on a run that paints: a folder with a page and its pictures."""

from __future__ import annotations

from pathlib import Path

from ..api import TrainedRun
from ..errors import ConfigError
from .results import say_results
from .terminal import say


def write_pictures(trained: TrainedRun, out: Path | None, *, prompt: str, num: int, seed: int, as_json: bool) -> bool:
    """Whether the run paints: then they are written."""
    if not trained.paints:
        if out is not None:
            raise ConfigError(f"--out goes with runs that paint, and {trained.path} does not; drop it.")
        return False
    if prompt:
        raise ConfigError(f"{trained.path} paints pictures from nothing; drop --prompt.")
    if out is None:
        raise ConfigError(f"{trained.path} paints pictures: name a folder to write them into, --out FOLDER.")
    files = trained.write_painted(out, num=num, seed=seed)
    if as_json:
        say_results("generate", [{"pictures": num, "seed": seed, "files": [str(file) for file in files]}])
        return True
    say(f"{files[0]}: {num:,} pictures, step by step; beside it {', '.join(file.name for file in files[1:])}")
    return True
