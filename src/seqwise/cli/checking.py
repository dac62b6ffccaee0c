"""seqwise data check: what can be told of data before training, by the kind of target it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..data.check import check_text
from ..data.check_labels import check_labels, with_warnings
from ..data.check_numbers import check_numbers
from ..data.check_pairs import check_pairs
from ..data.check_seen import check_seen
from ..data.check_spans import check_spans
from ..data.check_tags import check_tags
from ..data.schema import CAPTION, CHOICE, LABEL, NEXT_TOKEN, NEXT_VALUES, PICTURE, SEQUENCE, SPAN, TAG
from ..data.seen import SeenData
from ..data.source import TextData
from ..errors import ConfigError
from ..settings import DataConfig
from ..tasks import TASKS, task_for, task_named
from ..training.estimate import estimate
from .results import say_results
from .tables import check_table, columns
from .terminal import say

Found = tuple[dict[str, Any], Iterable[str]]
"""For programs, and for people."""


def _text(data: TextData) -> Found:
    result = check_text(data)
    cost = estimate(result)
    return {**result.to_dict(), "estimate": cost.to_dict()}, check_table(result, cost)


def _plain(check: Callable[[Any], Any]) -> Callable[[Any], Found]:
    def checked(data: Any) -> Found:
        found = check(data)
        return found.to_dict(), found.sentences()

    return checked


def _tabled(check: Callable[[Any], Any]) -> Callable[[Any], Found]:
    """Sentences, tables, and behind them what is odd."""

    def checked(data: Any) -> Found:
        found = check(data)
        tables = [line for table in found.tables() for line in ("", *columns(table))]
        return found.to_dict(), with_warnings([*found.sentences(), *tables, ""], found.warnings)

    return checked


def _labels(data: Any) -> Found:
    return _tabled(check_seen if isinstance(data, SeenData) else check_labels)(data)


CHECKS: dict[str, Callable[[Any], Found]] = {
    NEXT_TOKEN: _text,
    NEXT_VALUES: _plain(check_numbers),
    LABEL: _labels,
    TAG: _tabled(check_tags),
    CHOICE: _tabled(check_labels),
    SEQUENCE: _plain(check_pairs),
    SPAN: _tabled(check_spans),
    CAPTION: _tabled(check_seen),
    PICTURE: _tabled(check_seen),
}


def check_data(task: str | None, config: DataConfig, *, as_json: bool) -> None:
    chosen = task_named(task_for(task, config.source, config.columns))
    kind = chosen.kinds[0]
    if kind not in CHECKS:
        known = ", ".join(each.name for each in TASKS.values() if each.kinds[0] in CHECKS)
        raise ConfigError(f'--task "{chosen.name}" cannot be checked; these can: {known}.')
    for_programs, lines = CHECKS[kind](chosen.open(config))
    if as_json:
        say_results("data check", [for_programs])
        return
    for line in lines:
        say(line)
