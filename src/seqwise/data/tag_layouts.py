"""Files of tagged words -> sentences, and tagged words back into lines of the same layout.

conllu     ten columns with TABs between: UPOS in the fourth, XPOS in the fifth  (universaldependencies.org)
columns    a word on each line, its tag in the last column, blank lines between sentences  (CoNLL 2000, 2003)
slots      seq.in with the words of a row on each line, seq.out with their tags, label with the row's label
objects    a .jsonl with lists: {"words": ["to", "Rome"], "tags": ["O", "B-city"]}
lines      words alone, a sentence on each line
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from ..errors import ConfigError, DataError, did_you_mean
from .annotated import TaggedRow
from .files import OPENERS, kind_of, lines_of, read_text, shown
from .json_lines import json_rows
from .labelled import given_roles

COLUMN_SUFFIXES = (".conll", ".iob", ".iob2", ".bio", ".bioes", ".bilou", ".ner", ".pos", ".chunk")
CONLLU_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
WORD_FIELDS = ("words", "tokens")
TAG_FIELDS = ("tags", "ner_tags", "pos_tags", "upos", "labels")
ENTITY_TAG = re.compile(r"O|[BIESLU]-\S+")
DOCUMENT = "-DOCSTART-"
EXTRA_WORD = re.compile(r"\d+[-.]\d+")  # a range of several words, or an empty node
LOOKED_AT = 1000  # lines
MIN_LINES = 20  # to take words and tags for such that are not marked as entities
MAX_TAG_CHARACTERS = 30


@dataclass(frozen=True)
class TagLayout:
    kind: Literal["conllu", "columns", "slots", "objects", "lines"]
    separator: str = "\t"
    """Between columns."""
    tags: str = ""
    """The field of the tags: upos or xpos in .conllu, a name in .jsonl."""


class Sentence(NamedTuple):
    line: int
    """Of its first word."""
    words: tuple[str, ...]
    tags: tuple[str, ...]
    """None where only words are asked for."""
    label: str | None = None


# -- which layout a file has ---------------------------------------------------------------------------------------


def layout_of(path: Path, columns: Sequence[str] = ()) -> TagLayout:
    """By the name of a file, and by its beginning where the name does not tell."""
    kind, roles = kind_of(path), given_roles(columns)
    if kind == ".conllu":
        return TagLayout("conllu", tags=_conllu_field(roles.get("tags", "upos")))
    if kind == ".jsonl":
        return TagLayout("objects", tags=roles.get("tags", ""))
    if "seq.in" in path.name:
        return TagLayout("slots")
    if kind in (*COLUMN_SUFFIXES, ".tsv") or has_columns(path):
        return TagLayout("columns", _separator(path))
    return TagLayout("lines")


def _conllu_field(name: str) -> str:
    if name.lower() not in CONLLU_FIELDS:
        raise ConfigError(f'--columns "tags={name}": no such field in .conllu. {did_you_mean(name, CONLLU_FIELDS)}')
    return name.lower()


def _separator(path: Path) -> str:
    """A TAB where the first lines have one, else any blanks."""
    first = islice((line for line in lines_of(read_text(path)) if line.strip()), LOOKED_AT)
    return "\t" if any("\t" in line.strip() for line in first) else " "


def has_columns(path: Path) -> bool:
    """Whether a file has a word and its tag on each line, by its beginning: its name need not say so."""
    if not path.is_file():
        return False
    try:
        lines = list(islice(lines_of(read_text(path)), LOOKED_AT))
    except DataError:
        return False
    separator = "\t" if any("\t" in line.strip() for line in lines) else None
    rows = [line.strip().split(separator) for line in lines if line.strip() and not line.startswith(("# ", DOCUMENT))]
    has_breaks = any(not line.strip() for line in lines[:-1])
    if not rows or not has_breaks or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    words, tags = [row[0].strip() for row in rows], [row[-1].strip() for row in rows]
    if all(ENTITY_TAG.fullmatch(tag) for tag in tags):
        return True
    are_words = separator == "\t" and all(len(word.split()) == 1 for word in words)
    are_tags = all(0 < len(tag) <= MAX_TAG_CHARACTERS and " " not in tag for tag in tags)
    return are_words and are_tags and len(tags) >= MIN_LINES and 4 * len(set(tags)) <= len(tags)


def is_tag_file(path: Path) -> bool:
    """Whether a file is taken for tagged words where nobody said so."""
    kind = kind_of(path)
    if kind == ".conllu" or kind in COLUMN_SUFFIXES or ("seq.in" in path.name and _beside(path, "seq.out").exists()):
        return path.is_file()
    if kind == ".jsonl":
        return _has_word_lists(path)
    return kind not in (".csv", ".json") and has_columns(path)


def _has_word_lists(path: Path) -> bool:
    try:
        row = next((row for _, row in json_rows(path, "") if row is not None), None) if path.is_file() else None
    except DataError:
        return False
    lists = {name for name, value in (row or {}).items() if isinstance(value, list)}
    return any(name in lists for name in WORD_FIELDS) and any(name in lists for name in TAG_FIELDS)


# -- reading -------------------------------------------------------------------------------------------------------


def read_sentences(
    path: Path, layout: TagLayout, columns: Sequence[str] = (), *, tagged: bool = True
) -> list[Sentence]:
    """All sentences that have words, and as many tags where they are asked for."""
    if not path.exists():
        raise DataError(f"{path}: no such file or folder.")
    roles = given_roles(columns)
    if layout.kind == "conllu":
        return list(_conllu(path, layout.tags, tagged))
    if layout.kind == "columns":
        return list(_columns(path, layout.separator, roles, tagged))
    if layout.kind == "slots":
        return list(_slots(path, tagged))
    if layout.kind == "objects":
        return list(_objects(path, roles, tagged))
    if tagged:
        raise DataError(
            f"{path}: no tagged words in it. Give a .conllu file, a word and its tag on each line with blank lines "
            "between sentences, or seq.in with seq.out."
        )
    return [Sentence(number, tuple(line.split()), ()) for number, line in enumerate(lines_of(read_text(path)), start=1)]


def blocks_of(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """Numbered lines up to the next blank one: one of white space alone is blank, too."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _conllu(path: Path, field: str, tagged: bool) -> Iterator[Sentence]:
    place = CONLLU_FIELDS.index(field)
    for block in blocks_of(lines_of(read_text(path))):
        first, words, tags = 0, [], []
        for number, line in block:
            if line.startswith("#"):
                continue
            cells = line.split("\t")
            if len(cells) != len(CONLLU_FIELDS):
                raise DataError(
                    f"{path}: line {number} has {len(cells)} columns, and .conllu has 10 with TABs between."
                )
            if EXTRA_WORD.fullmatch(cells[0]):
                continue
            first = first or number
            words.append(cells[1])
            tags.append(cells[place])
        if words:
            yield Sentence(first, tuple(words), tuple(tags) if tagged else ())


def _columns(path: Path, separator: str, roles: dict[str, str], tagged: bool) -> Iterator[Sentence]:
    width = _width(path, separator)
    if width == 0:
        return
    word_place = _place(path, roles.get("text", "1"), width)
    tag_place = _place(path, roles.get("tags", str(width)), width) if tagged else None
    if tag_place == word_place:
        raise DataError(f"{path}: one column, so there are words and no tags. Give a tag behind each word.")
    for block in blocks_of(lines_of(read_text(path))):
        first, words, tags = 0, [], []
        for number, line in block:
            cells = _cells(line, separator)
            if cells[0] == DOCUMENT or (len(cells) != width and line.startswith("#")):
                continue
            if len(cells) != width:
                found = f"line {number} has {len(cells)} columns, and most lines have {width}"
                raise DataError(f"{path}: {found}: {shown(line.strip())}.")
            first = first or number
            words.append(cells[word_place])
            tags.append(cells[tag_place] if tag_place is not None else "")
            if not words[-1] or (tagged and not tags[-1]):
                raise DataError(
                    f"{path}: line {number} has no {'tag' if words[-1] else 'word'}: {shown(line.strip())}."
                )
        if words:
            yield Sentence(first, tuple(words), tuple(tags) if tagged else ())


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in line.split("\t")] if separator == "\t" else line.split()


def _width(path: Path, separator: str) -> int:
    """That most of the first lines have; 0 where all are blank."""
    lines = islice((line for line in lines_of(read_text(path)) if line.strip()), LOOKED_AT)
    widths = Counter(len(_cells(line, separator)) for line in lines if not line.startswith("# "))
    return widths.most_common(1)[0][0] if widths else 0


def _place(path: Path, column: str, width: int) -> int:
    if not (column.isascii() and column.isdecimal()) or not 1 <= int(column) <= width:
        raise ConfigError(f'{path}: it has {width} columns, named by their number; got "{column}". Try tags={width}.')
    return int(column) - 1


def _beside(path: Path, wanted: str) -> Path:
    """'train.seq.in.gz', 'seq.out' -> 'train.seq.out', packed or not."""
    name = path.name.replace("seq.in", wanted)
    for packed in OPENERS:
        name = name.removesuffix(packed)
    found = (path.with_name(name + packed) for packed in ("", *OPENERS))
    return next((file for file in found if file.exists()), path.with_name(name))


def _slots(path: Path, tagged: bool) -> Iterator[Sentence]:
    words = [line.split() for line in lines_of(read_text(path))]
    if not tagged:
        yield from (Sentence(number, tuple(row), ()) for number, row in enumerate(words, start=1))
        return
    tag_file, label_file = _beside(path, "seq.out"), _beside(path, "label")
    tags = [line.split() for line in lines_of(read_text(tag_file))]
    labels: list[str] | list[None] = [None] * len(words)
    if label_file.exists():
        labels = [line.strip() for line in lines_of(read_text(label_file))]
    for file, rows in ((tag_file, tags), (label_file, labels)):
        if len(rows) != len(words):
            raise DataError(f"{path} has {len(words):,} lines and {file} has {len(rows):,}; each line belongs to one.")
    for number, (row, its_tags, label) in enumerate(zip(words, tags, labels, strict=True), start=1):
        _check_number(tag_file, number, len(row), len(its_tags))
        if label is not None and not label:
            raise DataError(f"{label_file}: line {number} has no label.")
        if row:
            yield Sentence(number, tuple(row), tuple(its_tags), label)


def _objects(path: Path, roles: dict[str, str], tagged: bool) -> Iterator[Sentence]:
    for number, row in json_rows(path, '{"words": […], "tags": […]}'):
        if row is None:
            continue
        words = _listed(row, (roles["text"],) if "text" in roles else WORD_FIELDS, f"{path}: line {number}", "text")
        if not tagged:
            yield Sentence(number, words, ())
            continue
        tags = _listed(row, (roles["tags"],) if "tags" in roles else TAG_FIELDS, f"{path}: line {number}", "tags")
        _check_number(path, number, len(words), len(tags))
        label = row.get(roles["label"]) if "label" in roles else None
        if words:
            yield Sentence(number, words, tags, None if label is None else str(label))


def _listed(row: dict[str, object], names: Sequence[str], where: str, role: str) -> tuple[str, ...]:
    name = next((name for name in names if name in row), None)
    value = row.get(name) if name else None
    if isinstance(value, str):
        return tuple(value.split())
    if not isinstance(value, list):
        have = ", ".join(row) or "none"
        raise DataError(
            f"{where} has no list in {' or '.join(names)}; it has {have}. Name it with --columns {role}=NAME."
        )
    return tuple(str(one) for one in value)


def _check_number(path: Path, line: int, num_words: int, num_tags: int) -> None:
    if num_words != num_tags:
        raise DataError(f"{path}: line {line} has {num_tags} tags, and its sentence has {num_words} words.")


# -- writing -------------------------------------------------------------------------------------------------------


def write_tagged(rows: Iterable[TaggedRow], like: TagLayout) -> Iterator[str]:
    """Lines of the layout that was read, without their ends; plain lines of words become columns.

    A label stands before its row: "# label = flight", in slots with a TAB behind it.
    """
    for row in rows:
        if like.kind == "slots":
            yield "\t".join([*([row.label] if row.label is not None else []), " ".join(row.tags)])
            continue
        if like.kind == "objects":
            yield _as_object(row)
            continue
        if row.label is not None:
            yield f"# label = {row.label}"
        for number, (word, tag) in enumerate(zip(row.words, row.tags, strict=True), start=1):
            if like.kind == "conllu":
                cells = ["_"] * len(CONLLU_FIELDS)
                cells[0], cells[1], cells[CONLLU_FIELDS.index(like.tags)] = str(number), word, tag
                yield "\t".join(cells)
            else:
                yield f"{word}{like.separator}{tag}"
        yield ""


def _as_object(row: TaggedRow) -> str:
    found: dict[str, object] = {"words": row.words, "tags": row.tags}
    if row.label is not None:
        found["label"] = row.label
    return json.dumps(found, ensure_ascii=False)
