"""seqwise generate on a run that paints: a folder with a page and its pictures."""

from __future__ import annotations

from pathlib import Path

from ..api import TrainedRun
from ..data.schema import PICTURE
from ..errors import ConfigError
from ..inspection.painted import write_painted
from .results import say_results
from .terminal import say


def write_pictures(trained: TrainedRun, out: Path | None, *, prompt: str, num: int, seed: int, as_json: bool) -> bool:
    """Whether the run paints: then they are written."""
    if trained.run.schema.kind != PICTURE:
        if out is not None:
            raise ConfigError(f"--out goes with runs that paint, and {trained.path} does not; drop it.")
        return False
    if prompt:
        raise ConfigError(f"{trained.path} paints pictures from nothing; drop --prompt.")
    if out is None:
        raise ConfigError(f"{trained.path} paints pictures: name a folder to write them into, --out FOLDER.")
    config, name = trained.run.config, trained.path.name
    facts = {"model": config.model_name, "data": config.data.description}
    command = f"seqwise generate {name} --num {num} --seed {seed}"
    steps = trained.paint(num, seed=seed)
    files = write_painted(out, steps, title=f"What {name} paints", command=command, facts=facts)
    if as_json:
        say_results("generate", [{"pictures": num, "seed": seed, "files": [str(file) for file in files]}])
        return True
    say(f"{files[0]}: {num:,} pictures, step by step; beside it {', '.join(file.name for file in files[1:])}")
    return True
