"""Schemas by their sizes alone, for tests of models."""

from __future__ import annotations

from seqwise.data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    RECONSTRUCTION,
    SEQUENCE,
    SEQUENCES,
    SPAN,
    TAG,
    VECTOR,
    ImageSpec,
    LabelSpec,
    NumberSpec,
    Schema,
    SpanSpec,
    TagSpec,
    TokenSpec,
    ValueSpec,
    answer_schema,
    caption_schema,
    choice_schema,
    masked_schema,
    pair_schema,
    picture_schema,
    row_schema,
    seen_schema,
    series_schema,
    span_schema,
    tag_schema,
    text_schema,
    vector_schema,
)
from seqwise.models import MODELS
from seqwise.tasks import TASKS, can_do
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
    labels = [str(label) for label in range(num_labels)]
    return answer_schema(inputs, LabelSpec(labels) if labels else NumberSpec())


def of_kind(kind: str, size: int) -> Schema:
    """Of some kind of target, with tokens, columns or labels in this number."""
    made = {NEXT_TOKEN: of_text(size), NEXT_VALUES: of_numbers(size), SEQUENCE: of_pairs(size)}
    names, words = [str(label) for label in range(size)], TokenSpec(SymbolTokenizer(60), alphabet="0123456789")
    made[MASKED_TOKEN] = masked_schema(SymbolTokenizer(size), next_sentence=True)
    made[SPAN] = span_schema(TokenSpec(SymbolTokenizer(size), num_texts=2), SpanSpec())
    made[RECONSTRUCTION] = row_schema(SymbolTokenizer(size))
    made[CHOICE] = choice_schema(TokenSpec(SymbolTokenizer(60), num_texts=2), LabelSpec(names))
    made[VECTOR] = vector_schema(TokenSpec(SymbolTokenizer(size)))
    made[CAPTION] = caption_schema(ImageSpec(8, 8, (0.5,), (0.5,)), TokenSpec(SymbolTokenizer(size)))
    made |= {LABELS: answer_schema(words, LabelSpec(names), several=True), TAG: tag_schema(words, TagSpec(names))}
    return {**made, LABEL: of_answers(size, num_columns=2), NUMBER: of_answers(0, num_columns=2)}[kind]


def of_pictures(kind: str, side: int, num_labels: int, *, vocab_size: int = 0, channels: int = 1) -> Schema:
    """Square pictures, to be labelled or painted; with a question each where there are words."""
    image = ImageSpec(side, side, (0.3,) * channels, (0.4,) * channels)
    if kind == PICTURE:
        return picture_schema(image)
    if kind == CAPTION:
        return caption_schema(image, TokenSpec(SymbolTokenizer(vocab_size)))
    question = TokenSpec(SymbolTokenizer(vocab_size)) if vocab_size else None
    return seen_schema(image, LabelSpec([str(label) for label in range(num_labels)]), question)


def of_family(name: str, size: int) -> Schema:
    """What a family answers first, of what it reads; tokens, columns or labels in this number."""
    row = MODELS[name]
    kind = next(iter(row.learns))
    if row.can_read(*SEQUENCES) or kind == CAPTION:
        return of_kind(kind, size)
    return of_pictures(kind, 8, size, vocab_size=0 if row.can_read(frozenset({"images"})) else size)


def families(task: str) -> list[str]:
    """Those that do a task, in the order of the lineage."""
    return [name for name, row in MODELS.items() if row.does(TASKS[task].kinds) and can_do(row, TASKS[task])]


def of_pairs(vocab_size: int, boundary: int = 0, *, source_size: int = 0) -> Schema:
    """One vocabulary for both sides, where the source has none of its own."""
    target = SymbolTokenizer(vocab_size, boundary)
    return pair_schema(SymbolTokenizer(source_size) if source_size else target, target)
