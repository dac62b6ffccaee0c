"""seqwise export and import: other tools' formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..checks import check_run
from .terminal import note, say


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    path: Annotated[Path, typer.Argument(help="File to write; with hf, a folder.")],
    to: Annotated[
        str, typer.Option(help="Format: arpa, word2vec, word2vec-binary, glove or hf (Hugging Face).")
    ] = "arpa",
) -> None:
    """Write a model in another tool's format."""
    check_run(run)
    from ..interop.runs import export_run
    from ..run import Run

    for sentence in export_run(Run.open(run), to, path):
        note(f"note: {sentence}")
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    say(f"{path}: written ({sum(file.stat().st_size for file in files):,} bytes)")


def import_(
    format_: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="Format: arpa, word2vec, word2vec-binary, glove, llama2c, efficientnet or hf (Hugging Face).",
        ),
    ],
    path: Annotated[Path, typer.Argument(help="File to read; with hf, a folder.")],
    out: Annotated[Path, typer.Option(help="Folder of the run to make.")],
    tokenizer: Annotated[Path | None, typer.Option(help="llama2c: the file of the tokenizer, tokenizer.bin.")] = None,
) -> None:
    """Make a run from another tool's file."""
    from ..interop.runs import import_run
    from ..training.card import next_command

    run = import_run(format_, path, out, tokenizer=tokenizer, tell=lambda sentence: note(f"note: {sentence}"))
    say(f"{run.path}: {run.config.data.description}")
    say(f"next: {next_command(run, str(run.path))}")
