"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Method = Annotated[str | None, typer.Option(help="Pairs: beam, greedy, sample, exhaustive.", show_default="beam")]
BeamWidth = Annotated[int | None, typer.Option(help="Pairs: hypotheses kept.", show_default="5")]
LengthPenalty = Annotated[float | None, typer.Option(help="Pairs: power of the norm of lengths.", show_default="1")]
LengthForm = Annotated[str | None, typer.Option(help="Pairs: power or gnmt.", show_default="gnmt")]
Season = Annotated[
    int | None, typer.Option(help="Numbers: steps after which all columns repeat; 1 for none.", show_default="found")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for a program to read.")]


def names_of(listed: str | None) -> list[str] | None:
    """What stands between commas."""
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]
