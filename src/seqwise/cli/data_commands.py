"""seqwise data: list data sets, get them, check data before training, join phrases."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Columns, SplitAt, Task, Test, Valid, names_of
from .terminal import say

data_app = typer.Typer(help="Data sets: list them, get them, check data before training.", no_args_is_help=True)


@data_app.command("list")
def data_list(as_json: AsJson = False) -> None:
    """List the built-in corpora and the public data sets."""
    from ..data.catalogue import catalogue

    if as_json:
        from .results import say_results

        say_results("data list", map(asdict, catalogue()))
        return
    for found in catalogue():
        where = "built in" if found.built_in else "at hand" if found.at_hand else found.how_to_get
        say(f"{found.name:<21} {found.title} [{found.licence}] ({where})")


@data_app.command("get")
def data_get(names: Annotated[list[str], typer.Argument(help="Names from: seqwise data list.")]) -> None:
    """Download public data sets and check them against their sha256."""
    from ..data.public import PUBLIC, get_public, verify
    from .progress import bytes_bar

    for name in names:
        total = sum(file.num_bytes for file in PUBLIC[name].files.values()) if name in PUBLIC else 0
        with bytes_bar(name, total) as advance:
            found = get_public(name, on_progress=advance)
        for part, path in found.items():
            verify(PUBLIC[name].files[part], path)
            say(f"{name} {part}: {path} (sha256 verified)")


@data_app.command("check")
def data_check(
    data: Annotated[
        list[str],
        typer.Argument(help="Text, pairs, labels, tags, numbers, pictures: files, a folder, or a data set."),
    ],
    task: Task = None,
    columns: Columns = None,
    valid: Valid = None,
    test: Test = None,
    split_at: SplitAt = None,
    as_json: AsJson = False,
) -> None:
    """Check data before training.

    Text: encoding, suspicious lines, leakage between parts, vocabulary, memory and time. Numbers: gaps, outliers,
    season. Pairs: lengths, sides that do not belong together, copies, leakage between parts. Labels and tags: how many
    of each, lengths, texts with two labels, unknown words, leakage between parts. Pictures: sizes, damaged files,
    copies between parts.
    """
    from .preflight import given_data

    data, valid, test = given_data(data, task=task, columns=names_of(columns), valid=valid, test=test)
    from ..settings import DataConfig
    from .checking import check_data

    config = DataConfig(source=data, valid=valid, test=test, split=split_at, columns=names_of(columns) or [])
    check_data(task, config, as_json=as_json)


@data_app.command("phrases")
def data_phrases(
    data: Annotated[
        list[str], typer.Argument(help="Text: files, a folder, or a data set, of which the training part.")
    ],
    out: Annotated[Path, typer.Option(help="File to write.")],
    passes: Annotated[int, typer.Option(min=1, max=4, help="Passes: two find phrases of up to four words.")] = 1,
    threshold: Annotated[
        float, typer.Option(min=0.0, help="How many times as often as by chance two words stand together, at least.")
    ] = 100.0,
    min_count: Annotated[int, typer.Option(min=1, help="How often they stand together, at least.")] = 5,
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Keep capital letters.")] = False,
    as_json: AsJson = False,
) -> None:
    """Join words that stand together more often than by chance (new_york), so that word2vec gives them one vector."""
    from .preflight import given_data

    sources, _, _ = given_data(data, task="text")
    from .phrases import write_phrases

    write_phrases(
        sources,
        out,
        {"passes": passes, "threshold": threshold, "min_count": min_count},
        lower_case=not keep_case,
        as_json=as_json,
    )
