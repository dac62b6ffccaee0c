"""Results as lines of text."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

from ..config import settings_of
from ..data.check import CheckResult
from ..models import MODELS, Family, family
from ..tasks import TASKS, can_do
from ..wording import counted

if typing.TYPE_CHECKING:
    from ..training.estimate import Estimate


def columns(rows: list[list[str]]) -> Iterator[str]:
    """Rows of equal length, padded; the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(
            cell.rjust(w) if i > 0 and any(_is_number(other[i]) for other in rows[1:]) else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()


def _is_number(cell: str) -> bool:
    return bool(cell) and (cell[0].isdigit() or cell[0] in "-−.<")


def tasks_of(row: Family) -> list[str]:
    """What a family does."""
    return [name for name, task in TASKS.items() if can_do(row, task)]


def family_table() -> Iterator[str]:
    rows = [["family", "year", "learns by", "does", "its state", "what it brought"]]
    for name, row in MODELS.items():
        rows.append([name, str(row.year), row.learns_by, " ".join(tasks_of(row)), row.state, row.fixed])
    yield from columns(rows)
    yield ""
    yield "Settings of one: seqwise models gpt"


def family_facts(name: str | None) -> Iterator[dict[str, Any]]:
    """The families, or one of them with its settings, for programs."""
    for each, row in MODELS.items() if name is None else [(name, family(name))]:
        facts = {"name": each, "year": row.year, "learns_by": row.learns_by, "tasks": tasks_of(row)}
        facts |= {"state": row.state, "fixed": row.fixed}
        if name is not None:
            facts["settings"] = [
                {
                    "name": f"model.{setting.name}",
                    "default": None if setting.default is dataclasses.MISSING else setting.default,
                    "choices": setting.choices,
                    "about": setting.sentence,
                }
                for setting in settings_of(row.config).values()
            ]
        yield facts


def family_settings(name: str) -> Iterator[str]:
    row = family(name)
    yield f"{name} ({row.year}): {row.fixed}. Learns by {row.learns_by}; its state is {row.state}."
    yield ""
    for setting in settings_of(row.config).values():
        yield f"  model.{setting.name} {_default(setting.default)}{_choices(setting.choices)}"
        yield f"      {setting.sentence}"


def _default(default: Any) -> str:
    if default is dataclasses.MISSING:
        return "(from the tokenizer)"
    return "(not set)" if default is None else f"= {default}"


def _choices(choices: tuple[Any, ...]) -> str:
    return f"   [{', '.join(map(str, choices))}]" if choices else ""


def check_table(result: CheckResult, cost: Estimate) -> Iterator[str]:
    yield result.description
    yield from result.notes
    yield "encoding: UTF-8, read from end to end"
    for part, facts in result.parts.items():
        yield (
            f"{part}: {counted(facts.characters, 'character')}, {counted(facts.words, 'word')}, "
            f"{counted(facts.lines, 'line')} "
            f"(median {counted(facts.median_line, 'character')}, "
            f"longest {facts.longest_line:,} in line {facts.longest_line_number:,})"
        )
    for part, facts in result.parts.items():
        if part != "train":
            yield f"{part}: {facts.repeated_in_train:,} of {facts.comparable_lines:,} longer lines stand in train too"
    yield (
        f"vocabulary of train: {counted(result.distinct_characters, 'character')} "
        f"({result.rare_characters:,} of them once), {counted(result.distinct_words, 'word')}"
    )
    yield from cost.sentences()
    for warning in result.warnings:
        yield f"look at this: {warning}"
    if not result.warnings:
        yield "nothing suspicious found"
