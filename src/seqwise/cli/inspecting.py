"""seqwise inspect: a text, a model or two, and a page to look at."""

from __future__ import annotations

import sys
from pathlib import Path

from ..api import TrainedRun
from ..errors import ConfigError, DataError
from ..inspection.inspect import Inspection, compare_texts, inspect_run
from ..inspection.options import InspectOptions
from ..inspection.page import save_inspection
from ..inspection.reader import UNSEEN
from ..inspection.readers import reader_of
from ..wording import counted
from .results import say_results
from .terminal import note, say


def inspect_runs(
    paths: list[str], texts: list[str] | None, *, target: str | None, out: Path, options: InspectOptions, as_json: bool
) -> None:
    """Two runs on one text, or one run on two texts, stand side by side."""
    texts = texts or []
    if len(paths) * max(1, len(texts)) > 2:
        raise ConfigError(
            f"{counted(len(paths), 'run')} on {counted(max(1, len(texts)), 'text')} do not fit side by side; "
            "look at one or two runs, or at two texts of one run."
        )
    if options.word is not None and (len(paths), len(texts)) != (1, 2):
        raise ConfigError("--word compares a word in two texts that one model reads: give one run, and --text twice.")
    runs = [TrainedRun(path) for path in paths]
    tasks = sorted({run.run.config.task for run in runs})
    if len(tasks) > 1:
        raise ConfigError(f"{' and '.join(paths)} read different things ({', '.join(tasks)}); no text fits both.")
    found: list[Inspection] = []
    wanted: list[str | None] = [_wanted(text) for text in texts] or [_unseen(runs[0])]
    for run in runs:
        for text in wanted:
            note(f"looking into {run.path}")
            one = inspect_run(run, text, target=target, options=options)
            found.append(one)
            for line in one.reading.notes:
                note(f"note: {line}")
    if (len(runs), len(found)) == (1, 2):
        compare_texts(runs[0].model, found[0], found[1], word=options.word)
    if as_json:
        say_results("inspect", (one.to_dict() for one in found))
        return
    say(f"{out}: {save_inspection(found, out) / 1e6:.1f} MB, open it in a browser")


def _unseen(run: TrainedRun) -> str | None:
    """What is read where nothing is given: the first run's held-out text; rows each run finds by itself."""
    if "row" in reader_of(run.run.schema).answers_options:
        return None
    try:
        return run.unseen_text(UNSEEN)
    except DataError as error:
        raise DataError(f"{error} Or give a text of your own: --text.") from None


def _wanted(text: str) -> str:
    """What was given; - is standard input. Bytes that are no UTF-8 are replaced, as they could not be shown."""
    given = sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")
    return given.decode("utf-8", errors="replace")
