"""seqwise probe: what each layer of a model knows."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as shared
from .terminal import note, say


def probe(
    run: shared.RunFolder,
    data: Annotated[str, typer.Argument(help="File or data set with labels or tags.")],
    task: Annotated[str | None, typer.Option(help="What the data holds: label or tags.", show_default="found")] = None,
    columns: shared.Columns = None,
    split: Annotated[str, typer.Option(help="Part to judge probes on: valid or test.")] = "test",
    as_json: shared.AsJson = False,
) -> None:
    """Train a linear probe on each layer of a model, and print what each layer knows of labels or tags."""
    from ..data.kinds import check_there
    from .preflight import check_runs

    check_runs(run)
    check_there([data])
    from ..api import TrainedRun
    from .results import say_results

    named = shared.names_of(columns) or ()
    found = TrainedRun(run).probe(data, task=task, columns=named, split=split, tell=note)
    if as_json:
        say_results("probe", ({"run": run, **layer.to_dict(), "baseline": found.baseline} for layer in found.layers))
        return
    for sentence in found.sentences():
        say(sentence)
