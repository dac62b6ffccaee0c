"""Files -> blocks of text, checked: UTF-8 (a mistake is told by line and byte), gzip, xz, bzip2, folders."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ..errors import DataError

OPENERS: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}  # type: ignore[dict-item]
TEXT_SUFFIXES = (".txt", ".text", ".md", ".rst", ".tex", ".py", ".c", ".h", ".cpp", ".js", ".ts", ".java", ".rs", ".go")
TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".json", ".conllu")
BLOCK_BYTES = 1 << 20
MAX_NAMES = 5  # of files in a message
MAX_UNPACKED_RATIO, FREELY_UNPACKED = 200, 32 << 20  # times the size of an archive, and bytes that any may unpack to
MARKS = {  # of other encodings than UTF-8, at the beginning of a file; the longer first
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, with gzip where its name ends in .gz, that appears whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with OPENERS[".gz"](unfinished, "wb") if path.suffix == ".gz" else unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot write: {error.strerror or error}.") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def kind_of(path: Path) -> str:
    """The suffix that tells what a file holds, compression aside: 'poems.txt.gz' -> '.txt'."""
    name = path.name.lower()
    for packed in OPENERS:
        name = name.removesuffix(packed)
    return os.path.splitext(name)[1]


def open_bytes(path: Path) -> IO[bytes]:
    return OPENERS.get(path.suffix.lower(), open)(path, "rb")


def read_bytes(path: Path) -> Iterator[bytes]:
    """The unpacked content in blocks; a damaged archive, one that unpacks without end, an unreadable file is named."""
    unpacked = 0
    try:
        with open_bytes(path) as file:
            packed = path.stat().st_size if path.suffix.lower() in OPENERS else None
            while data := file.read(BLOCK_BYTES):
                unpacked += len(data)
                if packed is not None and unpacked > max(FREELY_UNPACKED, MAX_UNPACKED_RATIO * packed):
                    raise DataError(
                        f"{path}: unpacks to more than {MAX_UNPACKED_RATIO} times its {packed:,} bytes, as text "
                        "never does. If it is what you want, unpack it yourself and give the unpacked file."
                    )
                yield data
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        raise DataError(f"{path}: damaged or cut-off archive ({error}). Get the file again.") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, expected a file.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from None


def read_text(path: Path) -> Iterator[str]:
    """The text in blocks. Lines end in a newline whatever the file has; a byte-order mark is dropped."""
    decode = codecs.getincrementaldecoder("utf-8")()
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    offset, lines, is_start = 0, 1, True  # of what was decoded so far
    for data in read_bytes(path):
        if offset == 0:
            _check_mark(path, data)
        pending = len(decode.getstate()[0])
        try:
            text = decode.decode(data)
        except UnicodeDecodeError as error:
            raise _not_utf8(path, error, offset - pending, lines) from None
        offset += len(data)
        lines += text.count("\n")
        if is_start and text:  # the byte-order mark
            text, is_start = text.removeprefix("\ufeff"), False
        if text := newlines.decode(text):
            yield text
    try:
        text = decode.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error, offset - len(decode.getstate()[0]), lines) from None
    if text := newlines.decode(text, final=True):
        yield text


def lines_of(blocks: Iterator[str]) -> Iterator[str]:
    """Lines without their newline. A line in many blocks is joined once, at its end."""
    pieces: list[str] = []
    for block in blocks:
        first, *rest = block.split("\n")
        pieces.append(first)
        for piece in rest:
            yield "".join(pieces)
            pieces = [piece]
    if last := "".join(pieces):
        yield last


def _check_mark(path: Path, beginning: bytes) -> None:
    found = next((name for mark, name in MARKS.items() if beginning.startswith(mark)), None)
    if found is not None:
        raise DataError(
            f"{path}: is {found} by its byte-order mark, expected UTF-8. "
            f"Convert it, for example: iconv -f {found.lower()} -t utf-8 {path.name}"
        )
    if beginning.count(0) > len(beginning) // 4 and beginning.strip(b"\0\r\n"):
        raise DataError(
            f"{path}: every few bytes are NUL, so it is no UTF-8 text. "
            f"If it is UTF-16, convert it, for example: iconv -f utf-16le -t utf-8 {path.name}"
        )


def _not_utf8(path: Path, error: UnicodeDecodeError, offset: int, lines: int) -> DataError:
    line = lines + error.object[: error.start].count(b"\n")
    bad = error.object[error.start]
    return DataError(
        f"{path}: not UTF-8: line {line}, byte {offset + error.start} is 0x{bad:02x}. "
        f"Convert it, for example: iconv -f latin1 -t utf-8 {path.name}"
    )


def text_files(path: Path) -> list[Path]:
    """The files that `path` stands for: itself, or every text file below it in the order of their names."""
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{path}: no such file or folder.")
        return [path]
    files = sorted(p for p in path.rglob("*") if p.is_file() and kind_of(p) in TEXT_SUFFIXES)
    if not files:
        others = sorted({p.suffix for p in path.rglob("*") if p.is_file()}) or ["nothing"]
        raise DataError(
            f"{path}: no text files ({', '.join(TEXT_SUFFIXES[:4])}, …) in this folder; it holds {', '.join(others)}."
        )
    return files


def unread_files(folder: Path, read: list[Path]) -> list[Path]:
    """The other files below a folder, but for hidden ones."""
    others = (file for file in set(folder.rglob("*")) - set(read) if file.is_file())
    return sorted(file for file in others if not any(name.startswith(".") for name in file.relative_to(folder).parts))


def is_html(path: Path) -> bool:
    """Whether a text begins as a page of the web does."""
    beginning = next(read_text(path), "")[:200].lstrip().lower()
    return beginning.startswith(("<!doctype html", "<html"))


def shown_names(folder: Path, files: list[Path]) -> str:
    """Files below a folder in a message, and not all of many."""
    names = [str(file.relative_to(folder)) for file in files[:MAX_NAMES]]
    return ", ".join(names) + (f" and {len(files) - MAX_NAMES:,} more" if len(files) > MAX_NAMES else "")


def shown(cell: str) -> str:
    """A text in a message: on one line, and not all of a long one."""
    return json.dumps(cell if len(cell) <= 40 else cell[:40] + "…", ensure_ascii=False)
