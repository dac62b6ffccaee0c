"""seqwise compare and seqwise report: run or go on with a comparison, show how it goes, print the table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..api import free_path
from ..comparison.aggregate import write_results
from ..comparison.compare import Watch, run_comparison
from ..comparison.label_table import how_to_read, label_rows, notes_of_points
from ..comparison.request import ComparisonRequest
from ..comparison.results import Comparison, LabelCurves
from ..comparison.table import ladder_title, table_rows
from ..comparison.words import Words
from ..comparison.workspace import Workspace
from ..errors import ConfigError
from ..wording import as_option, counted
from .progress import LINE_SECONDS
from .results import say_results
from .tables import columns
from .terminal import note, say, shown_on
from .training import ctrl_c

DEFAULT_DATA = "python-reference"


def run_compare(
    data: list[str], options: dict[str, Any], *, out: Path | None, should_resume: bool, as_json: bool
) -> None:
    if should_resume:
        if out is None:
            raise ConfigError("--resume needs to know which comparison: add --out FOLDER.")
        if data or options:
            named = ", ".join([*data, *map(as_option, options)])
            raise ConfigError(f"--resume goes on with the comparison's own settings; drop {named}.")
        settings, path = None, out
    else:
        data = data or [DEFAULT_DATA]
        settings, path = ComparisonRequest(data, **options).settings(), out or free_path(data, "compare")
    with _watching() as watch, ctrl_c() as wants_stop:
        found = run_comparison(path, settings, watch=watch, wants_stop=wants_stop)
    if as_json:
        say_results("compare", [found.to_dict()])
    else:
        show(found, path)
    if not found.is_complete:
        note(f"stopped; everything is saved. Go on with: seqwise compare --resume --out {path}")
        raise typer.Exit(130)


def rebuild_report(path: Path) -> None:
    write_results(Workspace(path))
    say(f"{path / 'report.html'}: written")


def show(found: Comparison, path: Path) -> None:
    if found.label_curves is not None:
        _show_by_labels(found.label_curves, found.words)
        say(f"{ladder_title(found)}:")
        say()
    for line in columns(table_rows(found)):
        say(line)
    for sentence in found.recommendation:
        say()
        say(sentence)
    say()
    say(f"report: {path / 'report.html'}")


def _show_by_labels(curves: LabelCurves, words: Words) -> None:
    say(how_to_read(curves))
    say()
    for line in (*columns(label_rows(curves, words)), *notes_of_points(curves), ""):
        say(line)


@contextmanager
def _watching() -> Iterator[Watch]:
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        yield _Bars(bar)


class _Bars:
    """A bar for the stage, and one for each trial at work."""

    def __init__(self, bar: Any):
        self.bar, self.stage, self.trials = bar, None, dict[str, Any]()

    def tell(self, sentence: str) -> None:
        self.bar.console.print(shown_on(self.bar.console.file, sentence), markup=False, highlight=False)

    def begin(self, what: str, trials: Sequence[str]) -> None:
        if self.stage is not None:
            self.bar.remove_task(self.stage)
        self.stage = self.bar.add_task(what, total=len(trials), detail=counted(len(trials), "trial"))

    def progress(self, trial: str, line: dict[str, Any]) -> None:
        if trial not in self.trials:
            self.trials[trial] = self.bar.add_task(f"  {trial}", total=1, detail="")
        self.bar.update(self.trials[trial], completed=line["step"], total=line["steps"], detail=_short(line))

    def end(self, trial: str, sentence: str) -> None:
        if trial in self.trials:
            self.bar.remove_task(self.trials.pop(trial))
        self.tell(f"{trial}: {sentence}")
        if self.stage is not None:
            self.bar.advance(self.stage)


class _Lines:
    def __init__(self) -> None:
        self.last = time.monotonic()

    def tell(self, sentence: str) -> None:
        note(sentence)

    def begin(self, what: str, trials: Sequence[str]) -> None:
        note(f"{what}: {', '.join(trials)}")

    def progress(self, trial: str, line: dict[str, Any]) -> None:
        if time.monotonic() - self.last >= LINE_SECONDS:
            self.last = time.monotonic()
            note(f"{trial}: step {line['step']}/{line['steps']}, {_short(line)}")

    def end(self, trial: str, sentence: str) -> None:
        note(f"{trial}: {sentence}")


def _short(line: dict[str, Any]) -> str:
    return f"loss {line['loss']:.3f}, {line['tokens_per_second']:,.0f} tokens/s"
