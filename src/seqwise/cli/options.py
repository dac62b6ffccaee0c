"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[str, typer.Argument(help="Folder of a run.")]
RunData = Annotated[str | None, typer.Argument(help="File or data set to read.", show_default="the run's own")]
Task = Annotated[
    str | None,
    typer.Option(
        help="What to learn: text, numbers, label, tags, pairs, span, masked or reconstruct.",
        show_default="chosen by the data",
    ),
]
Columns = Annotated[str | None, typer.Option(help="Columns to read, separated by commas; of pairs source and target.")]
Season = Annotated[
    int | None,
    typer.Option(
        help="Numbers: steps after which all columns repeat; 1 for no season.", show_default="found in the data"
    ),
]
Valid = Annotated[str | None, typer.Option(help="File to validate on.")]
Test = Annotated[str | None, typer.Option(help="File to test on.")]
SplitAt = Annotated[
    str | None,
    typer.Option(help="Shares of the training, validation and test part in per cent.", show_default="90/5/5"),
]
StartFrom = Annotated[Path | None, typer.Option("--from", help="Start from the weights of another run.")]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Labels or tagged sentences to learn from, each number in turn: 100,500,all.", show_default="all"
    ),
]
Split = Annotated[str | None, typer.Option(help="Part to read: valid or test.", show_default="the run's test part")]
Horizon = Annotated[int | None, typer.Option(help="Numbers: steps ahead to forecast.", show_default="24")]
Method = Annotated[
    str | None, typer.Option(help="Pairs: how to search: beam, greedy, sample or exhaustive.", show_default="beam")
]
BeamWidth = Annotated[
    int | None, typer.Option(help="Pairs: number of hypotheses that beam search keeps.", show_default="5")
]
LengthPenalty = Annotated[
    float | None, typer.Option(help="Pairs: exponent of the length that scores are divided by.", show_default="1")
]
LengthForm = Annotated[
    str | None, typer.Option(help="Pairs: form of the length penalty: power or gnmt.", show_default="gnmt")
]
Precision = Annotated[
    str,
    typer.Option(help="Weights as they were learned (float32), or rounded to 8 bits (int8): a quarter of the memory."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for a program to read.")]


def names_of(listed: str | None) -> list[str] | None:
    """What stands between commas."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]
