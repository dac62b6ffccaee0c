"""The same verbs from Python.

import seqwise
run = seqwise.train("poems.txt", model="lstm", minutes=2)
print(run.generate("Shall I "))
print(run.evaluate().bits_per_char)
print(seqwise.compare("poems.txt", minutes=10).recommendation)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .comparison.request import ComparisonRequest, Source
from .goals.goal import OnProgress, Tell
from .signatures import takes
from .trained_run import TrainedRun as TrainedRun
from .training.preparing import prepare, resume
from .training.report import Report
from .training.request import Request
from .wording import speaks_python

if TYPE_CHECKING:
    from .comparison.results import Comparison


@speaks_python
@takes(Request, without=("source", "model", "out"))
def train(
    data: str | Path | Sequence[str | Path],
    model: str = "gpt",
    *,
    out: str | Path | None = None,
    on_report: Callable[[Report], None] = lambda _: None,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
    **asked: Any,
) -> TrainedRun:
    """Train a model on a file, a folder or a data set, and return the run.

    The budget is one of `minutes` (2 where none is given), `steps` and `epochs`. `overrides` are settings such as
    "model.num_layers=2"; `config_file` is a TOML file of them; `start_from` is a run whose body is kept. `on_report` is
    given each report of training, `tell` what was found in the data and chosen, `on_progress` (what, done, of how many)
    while data is read.
    """
    path = Path(out) if out is not None else free_path(data, model)
    session = prepare(Request.of(data, model=model, out=path, **asked), tell=tell, on_progress=on_progress)
    session.train(on_report)
    return TrainedRun(path)


@partial(speaks_python, resume="continue_comparison")
@takes(ComparisonRequest, without=("source",))
def compare(data: Source, *, out: str | Path | None = None, **asked: Any) -> Comparison:
    """Train all families on the data under one budget of wall clock, and say which to use.

    In a notebook the result shows itself; `.winner`, `.ladder`, `.final` hold what was found, and report.html in the
    folder the pictures.
    """
    from .comparison.compare import run_comparison

    path = Path(out) if out is not None else free_path(data, "compare")
    return run_comparison(path, ComparisonRequest(data, **asked).settings())


@partial(speaks_python, resume="continue_comparison")
def continue_comparison(path: str | Path) -> Comparison:
    """Go on with a comparison that was stopped, to the end; what failed in it is tried again."""
    from .comparison.compare import run_comparison

    return run_comparison(Path(path))


@speaks_python
def load(path: str | Path, *, precision: str = "float32") -> TrainedRun:
    """Open a run folder; with `precision="int8"` its weights are rounded to 8 bits."""
    return TrainedRun(path, precision=precision)


@speaks_python
def continue_training(path: str | Path, *, on_report: Callable[[Report], None] = lambda _: None) -> TrainedRun:
    """Resume a run that was stopped, and train it to the end."""
    resume(Path(path)).train(on_report)
    return TrainedRun(path)


def free_path(data: str | Path | Sequence[str | Path], model: str, folder: Path = Path("runs")) -> Path:
    """runs/poems-lstm, or the first of runs/poems-lstm-2, -3, ... that is free."""
    first = str(data if isinstance(data, str | Path) else data[0])
    name = f"{Path(first).name.split('.')[0].replace(':', '-')}-{model}"
    number = 1
    while (path := folder / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path
