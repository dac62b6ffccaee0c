"""Public data sets of questions on passages: how each is laid out, and which part is which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import DataError, did_you_mean
from .files import lines_of, read_text
from .public import find_public
from .public_spans import SAMPLE, SHIFTS
from .questions import Question, Reference
from .span_files import SpanParts, checked_questions, read_span_files

LANGUAGES = ("en", "de", "es", "zh")
OFFSETS = "of answers that stand there several times, the first is taken to be meant: the file does not tell which"


def read_span_set(name: str) -> SpanParts:
    """'xquad:de' -> its parts; a set of one part is split by who asked."""
    kind, colon, variant = name.partition(":")
    if kind == "xquad":
        return _xquad(variant or LANGUAGES[0])
    if colon:
        raise DataError(f'"{name}": {kind} has nothing to choose; drop ":{variant}".')
    found = find_public(kind)
    files = {"train": [found[part] for part in (*SHIFTS, "train") if part in found]}
    files |= {"test": [found["test"]]} if "test" in found else {}
    parts = read_span_files(files)
    notes = [*parts.notes, OFFSETS] if kind != "squadshifts" else parts.notes
    if SAMPLE.keys() <= found.keys():
        sample, odd = checked_questions(_sample(found), "train_sample")
        parts.parts["train"] = [*sample, *parts.parts.get("train", [])]
        notes = [*odd, *notes]
    return SpanParts(parts.parts, notes)


def _xquad(language: str) -> SpanParts:
    if language not in LANGUAGES:
        names = [f"xquad:{known}" for known in LANGUAGES]
        raise DataError(f'"xquad:{language}": no such language in this set. {did_you_mean(f"xquad:{language}", names)}')
    return read_span_files({"train": [find_public("xquad", [language])[language]]})


def _sample(files: dict[str, Path]) -> Iterator[tuple[Question, bool]]:
    """Passages as words with spaces between; which of them are the answer stands in a file of its own."""
    columns = [list(lines_of(read_text(files[kind]))) for kind in SAMPLE]
    for number, (passage, question, answer, span) in enumerate(zip(*columns, strict=True)):
        first = int(span.split()[0])
        start = sum(len(word) + 1 for word in passage.split(" ")[:first])
        yield Question(f"sample-{number}", question, passage, (Reference(answer, start),), passage), False
