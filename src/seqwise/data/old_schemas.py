"""The vocab folder of formats 1 and 2, read as a schema: one file, by what the run was trained for.

tokenizer.json   text; of pairs the target
source.json      pairs: the source, where it is made of other tokens than the target
scaling.json     numbers: the columns with their mean and scale
labels.json      answers: the names of the labels, and how many tokens sequences are made of
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..text.symbols import SymbolTokenizer
from .schema import (
    LabelSpec,
    NumberSpec,
    Schema,
    TokenSpec,
    ValueSpec,
    answer_schema,
    damage_named,
    pair_schema,
    series_schema,
    text_schema,
)


def _tokens(path: Path) -> TokenSpec:
    with damage_named(path) as saved:
        return TokenSpec.from_dict(saved)


def _text(folder: Path) -> Schema:
    return text_schema(_tokens(folder / "tokenizer.json").tokenizer)


def _pairs(folder: Path) -> Schema:
    target, other = _tokens(folder / "tokenizer.json").tokenizer, folder / "source.json"
    return pair_schema(_tokens(other).tokenizer if other.exists() else target, target)


def _numbers(folder: Path) -> Schema:
    with damage_named(folder / "scaling.json") as saved:
        return series_schema(ValueSpec.from_dict(saved))


def _label(folder: Path) -> Schema:
    with damage_named(folder / "labels.json") as saved:
        size, labels = int(saved["input_size"]), [str(label) for label in saved["labels"]]
        answer = LabelSpec(labels) if labels else NumberSpec()
        if saved["inputs_are_tokens"]:
            return answer_schema(TokenSpec(SymbolTokenizer(size)), answer)
        return answer_schema(ValueSpec.unscaled([f"column {number}" for number in range(size)]), answer)


LOADERS: dict[str, Callable[[Path], Schema]] = {"text": _text, "pairs": _pairs, "numbers": _numbers, "label": _label}


def load_old_schema(folder: Path, task: str) -> Schema:
    return LOADERS[task](folder)
