"""seqwise export and import: other tools' formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..checks import check_run
from .terminal import note, say


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    path: Annotated[Path, typer.Argument(help="File to write.")],
    to: Annotated[str, typer.Option(help="Format of the file: arpa, word2vec, word2vec-binary or glove.")] = "arpa",
) -> None:
    """Write a model in another tool's format."""
    check_run(run)
    from ..interop.runs import export_run
    from ..run import Run

    for sentence in export_run(Run.open(run), to, path):
        note(f"note: {sentence}")
    say(f"{path}: written ({path.stat().st_size:,} bytes)")


def import_(
    format_: Annotated[
        str,
        typer.Argument(metavar="FORMAT", help="Format of the file: arpa, word2vec, word2vec-binary, glove or llama2c."),
    ],
    path: Annotated[Path, typer.Argument(help="File to read.")],
    out: Annotated[Path, typer.Option(help="Folder of the run to make.")],
    tokenizer: Annotated[Path | None, typer.Option(help="llama2c: the file of the tokenizer, tokenizer.bin.")] = None,
) -> None:
    """Make a run from another tool's file."""
    from ..interop.runs import import_run
    from ..training.card import next_command

    run = import_run(format_, path, out, tokenizer=tokenizer)
    say(f"{run.path}: {run.config.data.description}")
    say(f"next: {next_command(run, str(run.path))}")
