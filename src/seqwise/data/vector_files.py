"""Word vectors in other people's files: word2vec's text and binary formats, and GloVe's text.

    text      "V E", then a line for each word: the word, and E numbers, separated by spaces
    binary    "V E", then for each word: the word, a space, E numbers of four bytes (little-endian), perhaps a newline
    glove     as text, without its first line

    vectors = read_vectors("vectors.txt.gz")           # which of the three it is, the file tells
    write_vectors(model.words, "vectors.bin")          # binary where the name ends in .bin, else text

Words of text files may hold spaces where other programs wrote them so: the last E fields of a line are its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Literal

import numpy as np

from ..errors import DataError
from ..machine import check_memory
from .files import lines_of, read_bytes, read_text, shown, writing
from .word_vectors import WordVectors

Format = Literal["text", "binary", "glove"]
HEAD_BYTES = 1 << 12  # by which a format is told
LONGEST_WORD = 1 << 12  # bytes
MAX_WIDTH = 1 << 16  # numbers of a vector: more is another file
NUMBER = np.dtype("<f4")


# -- writing -------------------------------------------------------------------------------------------------------


def write_vectors(vectors: WordVectors, path: str | Path, *, format: Format | None = None) -> None:
    """Write all words in their order; with gzip where the name ends in .gz. The file appears whole.

    Numbers in text have nine digits, so that reading them gives the same bits.
    """
    path = Path(path)
    format = format or ("binary" if path.name.removesuffix(".gz").endswith(".bin") else "text")
    for word in vectors.words:
        if not word or any(letter.isspace() for letter in word):
            raise DataError(
                f"{path}: {shown(word)} has white space, which separates fields in these files: write vectors of words."
            )
    with writing(path) as file:
        _write(vectors, file, format)


def _write(vectors: WordVectors, file: IO[bytes], format: Format) -> None:
    if format != "glove":
        file.write(f"{len(vectors)} {vectors.vectors.shape[1]}\n".encode())
    for word, row in zip(vectors.words, vectors.vectors.astype(NUMBER), strict=True):
        if format == "binary":
            file.write(word.encode() + b" " + row.tobytes() + b"\n")
        else:
            file.write(f"{word} {' '.join(f'{number:.9g}' for number in row.tolist())}\n".encode())


# -- reading -------------------------------------------------------------------------------------------------------


def read_vectors(path: str | Path, *, format: Format | None = None, max_words: int | None = None) -> WordVectors:
    """The words of a file (.gz, .xz, .bz2 too) with their vectors, the first `max_words` where that is set.

    Words are mostly written by falling frequency, so that the first are the most useful.
    """
    path = Path(path)
    format = format or _format_of(path)
    if format == "binary":
        words, rows, width = _read_binary(path, max_words)
    else:
        words, rows, width = _read_text(path, max_words, has_header=format == "text")
    twice = len(words) - len(set(words))
    if twice:
        seen: set[str] = set()
        word = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
        raise DataError(f"{path}: the word {shown(word)} stands there for the second time ({twice} do). Remove one.")
    return WordVectors(words, rows.reshape(-1, width))


def _format_of(path: Path) -> Format:
    """By the beginning of the file: a first line of two whole numbers, and what follows it."""
    head = b""
    for block in read_bytes(path):
        head += block
        if len(head) >= HEAD_BYTES:
            break
    if not head.strip():
        raise DataError(f"{path}: is empty, expected word vectors.")
    first, _, rest = head.partition(b"\n")
    if _header(first.decode("utf-8", "replace")) is None:
        return "glove"
    fields = rest.split(b"\n")[0].split()
    return "text" if len(fields) > 1 and all(_is_number(field) for field in fields[1:3]) else "binary"


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _header(line: str) -> tuple[int, int] | None:
    """Words and width, where a line holds these and nothing else."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isascii() and field.isdigit() for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _checked_header(path: Path, line: str) -> tuple[int, int]:
    found = _header(line)
    if found is None or not (found[0] > 0 and 0 < found[1] <= MAX_WIDTH):
        raise DataError(f'{path}: line 1: {shown(line)}, expected how many words there are and how wide: "400000 300".')
    check_memory(
        found[0] * found[1] * NUMBER.itemsize, f"{path}: {found[0]:,} vectors of {found[1]}", "Read fewer: max_words."
    )
    return found


def _read_text(path: Path, max_words: int | None, *, has_header: bool) -> tuple[list[str], np.ndarray, int]:
    lines = enumerate(lines_of(read_text(path)), start=1)
    num, width = math.inf, 0
    if has_header:
        num, width = _checked_header(path, next(lines, (1, ""))[1])
    limit = num if max_words is None else min(num, max_words)
    words: list[str] = []
    rows: list[np.ndarray] = []
    for number, line in lines:
        if not line.strip():
            continue
        if len(words) == limit:
            if limit == num:
                raise DataError(f"{path}: line {number}: one more than the {num:,} words that line 1 tells of.")
            break
        if not width:
            width = len(line.split()) - 1
            if width < 1:
                raise DataError(f"{path}: line {number}: {shown(line)}, expected a word and the numbers of its vector.")
        fields = line.rstrip().rsplit(" ", width)
        if len(fields) != width + 1:
            raise DataError(
                f"{path}: line {number}: {len(line.split()) - 1} numbers behind {shown(fields[0])}, expected {width}. "
                "The file is cut short, or its vectors have different widths."
            )
        rows.append(_numbers(path, number, fields))
        words.append(fields[0])
    if has_header and len(words) < limit:
        raise DataError(f"{path}: ends after {len(words):,} words, but line 1 tells of {num:,}. It is cut short.")
    if not words:
        raise DataError(f"{path}: holds no word vectors.")
    return words, np.stack(rows), width


def _numbers(path: Path, number: int, fields: list[str]) -> np.ndarray:
    try:
        row = np.array(fields[1:], dtype=NUMBER)
    except ValueError:
        wrong = next(field for field in fields[1:] if not _is_number(field.encode()))
        raise DataError(
            f"{path}: line {number}: {shown(wrong)} behind {shown(fields[0])} is not a number; each line should have a "
            f"word and {len(fields) - 1} numbers."
        ) from None
    if not np.isfinite(row).all():
        raise DataError(f"{path}: line {number}: the vector of {shown(fields[0])} is not finite.")
    return row


def _read_binary(path: Path, max_words: int | None) -> tuple[list[str], np.ndarray, int]:
    first, blocks = _first_line(path)
    num, width = _checked_header(path, first)
    limit = num if max_words is None else min(num, max_words)
    words: list[str] = []
    rows = np.empty((limit, width), dtype=NUMBER)
    held, size = b"", width * NUMBER.itemsize
    for block in chain(blocks, [b""]):
        held, place = held + block, 0
        while len(words) < limit and (space := held.find(b" ", place)) >= 0 and space + 1 + size <= len(held):
            words.append(_word(path, held[place:space], len(words)))
            rows[len(words) - 1] = np.frombuffer(held, NUMBER, width, space + 1)
            place = space + 1 + size
        held = held[place:]
        if held.find(b" ", 0, LONGEST_WORD) < 0 and len(held) > LONGEST_WORD:
            raise _no_word(path, len(words))
        if len(words) == limit:
            break
    if len(words) < limit:
        raise DataError(f"{path}: ends within word {len(words) + 1:,} of {num:,}. It is cut short: get it again.")
    if limit == num and (held + next(blocks, b"")).strip(b"\n"):
        raise DataError(
            f"{path}: goes on behind the {num:,} words of width {width} that its first line tells of: it is damaged, "
            "or its vectors are wider."
        )
    if not np.isfinite(rows).all():
        wrong = words[int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])]
        raise DataError(f"{path}: the vector of {shown(wrong)} is not finite: is its width really {width}?")
    return words, rows, width


def _first_line(path: Path) -> tuple[str, Iterator[bytes]]:
    """The first line, and what comes behind it in blocks."""
    blocks = read_bytes(path)
    head = next(blocks, b"")
    first, _, rest = head.partition(b"\n")
    return first[:LONGEST_WORD].decode("utf-8", "replace"), chain([rest], blocks)


def _word(path: Path, found: bytes, number: int) -> str:
    try:
        word = found.lstrip(b"\n").decode()
    except UnicodeDecodeError:
        raise _no_word(path, number) from None
    if not word:
        raise _no_word(path, number)
    return word


def _no_word(path: Path, number: int) -> DataError:
    return DataError(
        f"{path}: word {number + 1:,} is no UTF-8 text: the file is damaged, or its vectors have another width than "
        "its first line tells."
    )
