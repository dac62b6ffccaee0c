"""seqwise caption: a sentence about each picture."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import options as shared
from .terminal import say


def caption(
    run: shared.RunFolder,
    images: Annotated[list[str], typer.Argument(metavar="IMAGE...", help="Files of pictures.")],
    method: shared.Method = None,
    beam_width: shared.BeamWidth = None,
    length_penalty: shared.LengthPenalty = None,
    seed: Annotated[int, typer.Option(help="Random seed of --method sample.")] = 0,
    as_json: shared.AsJson = False,
) -> None:
    """Describe pictures: a sentence about each, by a model that was trained on pictures with captions."""
    from .preflight import check_not_empty, check_pictures, check_runs

    check_not_empty(method=method)
    check_runs(run)
    check_pictures(images)
    from ..api import TrainedRun

    search: dict[str, Any] = {"method": method, "beam_width": beam_width, "length_penalty": length_penalty}
    written = TrainedRun(run).caption(images, seed=seed, **search)
    if as_json:
        from .results import say_results

        say_results("caption", ({"picture": i, "caption": text} for i, text in zip(images, written, strict=True)))
        return
    for image, text in zip(images, written, strict=True):
        say(text if len(images) == 1 else f"{image}\t{text}")
