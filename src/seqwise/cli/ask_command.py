"""seqwise ask: questions on a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options as shared
from .terminal import say


def ask(
    run: shared.RunFolder,
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="File of a picture.")],
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="What is asked of it.")],
    num: Annotated[int, typer.Option(min=1, help="Number of answers to list for each question.")] = 3,
    as_json: shared.AsJson = False,
) -> None:
    """Answer questions on a picture: the most probable answers that training knows, with their probabilities."""
    from .preflight import check_runs

    check_runs(run)
    from ..api import TrainedRun
    from .results import say_results

    found = TrainedRun(run).ask(image, questions, num=num)
    if as_json:
        say_results("ask", ({"question": one, "answers": told} for one, told in zip(questions, found, strict=True)))
        return
    for question, told in zip(questions, found, strict=True):
        if len(questions) > 1:
            say(question)
        for name, probability in told.items():
            say(f"{probability:7.3f}  {name}")
