"""seqwise fill: what belongs where a text leaves words out."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options as shared
from .terminal import say


def fill(
    run: shared.RunFolder,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Text with [MASK] where words are left out.")],
    num: Annotated[int, typer.Option(min=1, help="Number of words to list for each place.")] = 5,
    as_json: shared.AsJson = False,
) -> None:
    """Fill in words that a text leaves out: the most probable ones at each [MASK], with their probabilities."""
    from .preflight import check_runs

    check_runs(run)
    from ..api import TrainedRun
    from .results import say_results

    trained = TrainedRun(run)
    found = ((text, trained.fill(text, num=num)) for text in texts)
    if as_json:
        say_results("fill", ({"text": text, "places": [place.words for place in places]} for text, places in found))
        return
    for text, places in found:
        for number, place in enumerate(places, start=1):
            say(f"{text}  [{number} of {len(places)}]" if len(places) > 1 else text)
            for word, probability in place.words:
                say(f"{probability:7.3f}  {word}")
