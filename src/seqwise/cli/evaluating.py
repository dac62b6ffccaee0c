"""seqwise evaluate: runs scored on the same data, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api import TrainedRun
from ..errors import ConfigError
from ..evaluation.precision import cost_of_precision
from ..wording import counted
from .progress import display
from .results import say_results
from .score_tables import scores_shown
from .tables import columns
from .terminal import say


def open_runs(folders: Sequence[str], precision: str = "float32") -> dict[str, TrainedRun]:
    """By name. Scores of different tasks have nothing in common, so all should have one.

    Of another precision, runs stand beside themselves as they were learned.
    """
    trained = {name: TrainedRun(name) for name in folders}
    if precision != "float32":
        pairs = (
            {name: run, f"{name} in {precision}": TrainedRun(name, precision=precision)}
            for name, run in trained.items()
        )
        trained = {name: run for pair in pairs for name, run in pair.items()}
    tasks = {run.task.name for run in trained.values()}
    if len(tasks) > 1:
        raise ConfigError(f"runs on {' and '.join(sorted(tasks))} cannot be compared; evaluate them one by one.")
    return trained


def score_runs(
    trained: dict[str, TrainedRun], data: str | None, options: dict[str, Any], *, split: str | None, as_json: bool
) -> None:
    with display() as shown:
        scores = {
            name: run.evaluate(data, split=split, on_progress=shown.prepare, tell=shown.tell, **options)
            for name, run in trained.items()
        }
    if as_json:
        say_results("evaluate", ({"run": name, **score.to_dict()} for name, score in scores.items()))
        return
    for line in scores_shown(scores):
        say(line)
    for name, run in trained.items():
        if run.precision != "float32":
            say(f"{name}: {cost_of_precision(scores[str(run.path)], scores[name])}")


def report_on_search(
    trained: dict[str, TrainedRun], data: str | None, options: dict[str, Any], *, split: str | None, as_json: bool
) -> None:
    """Of pairs: what beams of several widths find, and what each misses."""
    reports = ((name, run.report_on_search(data, split=split, **options)) for name, run in trained.items())
    if as_json:
        say_results("evaluate", ({"run": name, **found.to_dict()} for name, found in reports))
        return
    for name, found in reports:
        best = "all texts" if found.has_exhaustive else "the widest beams"
        say(f"{name}: {counted(found.pairs, 'source')}; the best known is that of {best}")
        for line in columns(list(found.rows())):
            say(line)
