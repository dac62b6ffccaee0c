"""seqwise embed, search, similarity: texts as vectors, what is near to what, and how well that agrees with people."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from . import options as shared
from .terminal import note, say

if TYPE_CHECKING:
    import numpy as np

ENDINGS = (".npy", ".npz", ".tsv")
Pooling = Annotated[
    str | None,
    typer.Option(help="What stands for a text: mean, cls, last or max of its states.", show_default="the run's; mean"),
]


def embed(
    run: shared.RunFolder,
    file: Annotated[
        str | None, typer.Argument(help="Text file, a text on each line.", show_default="standard input")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write: .npy, .npz (with the texts) or .tsv.", show_default="to a pipe")
    ] = None,
    pooling: Pooling = None,
    normalise: Annotated[
        bool | None,
        typer.Option("--normalise/--raw", help="Bring vectors to length one, or not.", show_default="the run's; raw"),
    ] = None,
    as_json: shared.AsJson = False,
) -> None:
    """Turn texts into vectors, one for each line: seqwise embed RUN < lines > vectors.npy.

    For every model that makes vectors of its tokens: bert, gpt, elmo, recurrent networks, window, conv, word2vec.
    An empty line has the vector zero; of a text that is too long for the model its beginning is read.
    """
    from .preflight import check_not_empty, check_runs

    check_runs(run)
    check_not_empty(pooling=pooling)
    if out is not None and out.suffix not in ENDINGS:
        raise ConfigError(f"--out {out}: vectors are written as {', '.join(ENDINGS)}; give it one of these endings.")
    if out is None and not as_json and sys.stdout.isatty():
        raise ConfigError("vectors are bytes, which a terminal cannot show: add --out vectors.npy, --json, or a pipe.")
    from ..api import TrainedRun
    from .progress import on_terminal
    from .results import say_results

    texts = [line.rstrip("\r\n") for line in _lines(file)]
    with on_terminal() as on_progress:
        vectors = TrainedRun(run).embed(
            texts,
            pooling=pooling,
            normalise=normalise,
            tell=lambda said: note(f"note: {said}"),
            on_progress=on_progress,
        )
    if as_json:
        say_results("embed", ({"text": text, "vector": row.tolist()} for text, row in zip(texts, vectors, strict=True)))
    elif out is None:
        write_npy(sys.stdout.buffer, vectors)
    else:
        write_vectors(out, texts, vectors)
        note(f"{out}: {len(vectors):,} vectors of {vectors.shape[1]:,} numbers")


def _lines(file: str | None) -> list[str]:
    from ..data.files import lines_of, read_text
    from .predicting import standard_input

    if file is None or file == "-":
        return list(standard_input())
    return list(lines_of(read_text(Path(file))))


def write_npy(to: IO[bytes], vectors: np.ndarray) -> None:
    """As numpy.save writes it, into what cannot be sought, such as a pipe."""
    import numpy as np

    content = np.ascontiguousarray(vectors, dtype="<f4")
    np.lib.format.write_array_header_1_0(to, np.lib.format.header_data_from_array_1_0(content))
    to.write(content.tobytes())
    to.flush()


def write_vectors(path: Path, texts: list[str], vectors: np.ndarray) -> None:
    """Whole or not at all."""
    import numpy as np

    from ..data.files import writing

    with writing(path) as file:
        if path.suffix == ".npy":
            write_npy(file, vectors)
        elif path.suffix == ".npz":
            np.savez(file, vectors=vectors, texts=np.array(texts, dtype=np.str_))
        else:
            for row in vectors:
                file.write(("\t".join(f"{value:.7g}" for value in row) + "\n").encode())


def search(
    run: shared.RunFolder,
    corpus: Annotated[str, typer.Argument(help="File to search: a text on each line, or a .csv, .tsv or .jsonl.")],
    queries: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="What to look for.", show_default="standard input")
    ] = None,
    num: Annotated[int, typer.Option(min=1, help="Number of texts to list for each query.")] = 5,
    columns: Annotated[str | None, typer.Option(help="Column of a table to search.", show_default="found")] = None,
    pooling: Pooling = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Make all vectors anew, and keep none.")] = False,
    as_json: shared.AsJson = False,
) -> None:
    """Search a file for the texts that are nearest to a query, by the cosine of their vectors.

    All of them are compared. The vectors of a file are kept, and made anew where the file or the model changes.
    """
    from ..data.pipes import owned
    from .preflight import check_not_empty, check_runs

    check_runs(run)
    check_not_empty(pooling=pooling, columns=columns)
    if corpus == "-" and not queries:
        raise ConfigError("standard input is the file to search: give queries as arguments.")
    from ..api import TrainedRun
    from .progress import on_terminal
    from .results import say_results

    asked = [query for query in queries or (line.strip() for line in _lines(None)) if query.strip()]
    if not asked:
        raise ConfigError("there is nothing to look for: give a query, or lines of them on standard input.")
    with on_terminal() as on_progress:
        found = TrainedRun(run).search(
            owned([corpus])[0],
            asked,
            num=num,
            columns=shared.names_of(columns) or (),
            pooling=pooling,
            use_cache=not no_cache,
            on_progress=on_progress,
        )
    if as_json:
        say_results(
            "search",
            ({"query": query, "found": [vars(hit) for hit in hits]} for query, hits in zip(asked, found, strict=True)),
        )
        return
    for query, hits in zip(asked, found, strict=True):
        if len(asked) > 1:
            say(query)
        for hit in hits:
            say(f"{hit.cosine:7.3f}  {hit.line:>6}  {hit.text}")


def similarity(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN... [DATA]...", help="Folders of runs, then data (stsb, sick, a table).")
    ],
    split: Annotated[str | None, typer.Option(help="Part to read.", show_default="test")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Of a table: text=NAME,text2=NAME,number=NAME.", show_default="found")
    ] = None,
    pooling: Pooling = None,
    as_json: shared.AsJson = False,
) -> None:
    """Compare how similar runs find sentences with what people say: Spearman's correlation, with nothing learned.

    Data are pairs of texts with a number each; stsb where none is named. Words in common are rated beside the runs.
    """
    from ..data.kinds import check_there
    from .preflight import check_not_empty, check_runs

    check_not_empty(split=split, pooling=pooling, columns=columns)
    folders = [name for name in runs if (Path(name) / "config.toml").exists()]
    sources = [name for name in runs if name not in folders] or ["stsb"]
    if not folders:
        check_runs(runs[0])  # says what is missing
    check_there(sources)
    from .results import say_results
    from .sentence_tables import rate_runs, table_of

    rated = rate_runs(folders, sources, split=split, columns=shared.names_of(columns) or (), pooling=pooling)
    if as_json:
        say_results("similarity", (facts for one in rated for facts in one.facts()))
        return
    for line in table_of(rated):
        say(line)
