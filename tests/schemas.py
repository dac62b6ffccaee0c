"""Schemas by their sizes alone, for tests of models."""

from __future__ import annotations

from seqwise.data.schema import Schema, TokenSpec, ValueSpec, answer_schema, pair_schema, series_schema, text_schema
from seqwise.text.symbols import SymbolTokenizer


def of_text(vocab_size: int, boundary: int = 0) -> Schema:
    return text_schema(SymbolTokenizer(vocab_size, boundary))


def of_numbers(num_columns: int) -> Schema:
    return series_schema(values(num_columns))


def values(num_columns: int) -> ValueSpec:
    return ValueSpec.unscaled([f"c{number}" for number in range(num_columns)])


def of_answers(num_labels: int, *, vocab_size: int = 0, num_columns: int = 0) -> Schema:
    """Labels, or a number where there are none."""
    inputs = TokenSpec(SymbolTokenizer(vocab_size)) if vocab_size else values(num_columns)
    return answer_schema(inputs, [str(label) for label in range(num_labels)])


def of_pairs(vocab_size: int, boundary: int = 0, *, source_size: int = 0) -> Schema:
    """One vocabulary for both sides, where the source has none of its own."""
    target = SymbolTokenizer(vocab_size, boundary)
    return pair_schema(SymbolTokenizer(source_size) if source_size else target, target)
