"""DATA -> text in three parts. A path or the name of a data set becomes train, valid and test, each a stream of blocks.

data = open_text("poems.txt")
data.parts["train"].blocks()       # str, str, ...: never the whole text at once
data.description                   # what we took it for, and why
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError, did_you_mean
from ..wording import counted
from .builtin import (
    BUILTIN,
    CHOICE_TOYS,
    LABEL_TOYS,
    PAIR_TOYS,
    SEEN_TOYS,
    SPAN_TOYS,
    TAG_TOYS,
    builtin_file,
    is_choice_toy,
    is_label_toy,
    is_span_toy,
    is_tag_toy,
)
from .files import TABLE_SUFFIXES, is_html, kind_of, read_text, shown, shown_names, text_files, unread_files
from .public import PUBLIC, find_public, is_label_set, is_pair_set, is_span_set, is_tag_set
from .scan_cache import cached_scan

PARTS = ("train", "valid", "test")
PART_NAMES = {"train": "train", "valid": "valid", "val": "valid", "dev": "valid", "validation": "valid", "test": "test"}
DEFAULT_SPLIT = "90/5/5"
MAX_BLANK_SYMBOLS = 40  # kinds of blanks, NUL among them: with more characters there is something to learn


@dataclass(frozen=True)
class TextPart:
    """A segment of text: some files one after another, or the characters from `start` up to `stop` of them."""

    files: tuple[Path, ...]
    start: int = 0
    stop: int | None = None

    def blocks(self) -> Iterator[str]:
        position = 0
        for block in joined_text(self.files):
            first = max(0, self.start - position)
            last = len(block) if self.stop is None else min(len(block), self.stop - position)
            if first < last:
                yield block[first:last]
            position += len(block)
            if self.stop is not None and position >= self.stop:
                return


@dataclass(frozen=True)
class TextData:
    """Text in up to three parts, read once from end to end: it is UTF-8, and its content is known by fingerprint."""

    name: str
    parts: dict[str, TextPart]
    characters: dict[str, int]
    """Characters in each part."""
    lines: int
    fingerprint: str
    """sha256 of the text of all parts and of where they are cut."""
    split: str
    """How the parts were made, in words."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each thing that was found or left out."""

    @property
    def description(self) -> str:
        total = sum(self.characters.values())
        parts = ", ".join(f"{part} {count:,}" for part, count in self.characters.items())
        size = f"{counted(total, 'character')} of text in {counted(self.lines, 'line')}"
        return f"{self.name}: {size}; {self.split} ({parts})"


def open_text(
    source: str | Path | Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
) -> TextData:
    """Find the text, check it from end to end, and cut it into parts.

    `source` is one or more files, a folder, or the name of a data set. Parts are the files given for them, the files of
    a folder named train, valid (dev, val) and test, or a contiguous split by characters such as "90/5/5" or "90/10".
    """
    sources = [source] if isinstance(source, str | Path) else list(source)
    notes: list[str] = []
    if len(sources) == 1 and not Path(sources[0]).exists():
        name, given, default_split = _named(str(sources[0]))
    else:
        name = Path(sources[0]).name + (f" and {len(sources) - 1} more" if len(sources) > 1 else "")
        given, default_split = _given_parts([Path(s) for s in sources], notes), None
    if valid is not None:
        given["valid"] = text_files(Path(valid))
    if test is not None:
        given["test"] = text_files(Path(test))
    for file in (file for files in given.values() for file in files):
        _check_running_text(file)
        if is_html(file):
            notes.append(f"{file.name} is an HTML page: its tags are learned too, unless you take the text out of it")
    if "valid" in given or "test" in given:
        if split is not None:
            raise ConfigError(f'--split-at "{split}" and files for valid or test exclude each other; drop one.')
        if "valid" not in given:
            raise DataError(f"{name}: there are test files but none to validate on. Add --valid FILE.")
        return replace(_scan_files(name, given), notes=notes)
    return replace(_scan_split(name, given["train"], split or default_split or DEFAULT_SPLIT), notes=notes)


def open_whole(source: str | Path) -> TextData:
    """A file or folder as one part named "whole", for scoring."""
    files = text_files(Path(source))
    for file in files:
        _check_running_text(file)
    data = _scan_files(str(source), {"train": files})
    part = data.parts["train"]
    return replace(data, parts={"whole": part}, characters={"whole": data.characters["train"]}, split="scored whole")


def _check_running_text(file: Path) -> None:
    if kind_of(file) in TABLE_SUFFIXES:
        raise DataError(
            f"{file}: a {kind_of(file)} file holds columns, and language models read running text. "
            "Give a .txt file with one text per line."
        )


def joined_text(files: Sequence[Path]) -> Iterator[str]:
    """Several files as one text; each begins on a line of its own."""
    last = "\n"
    for file in files:
        if last != "\n":
            yield "\n"
            last = "\n"
        for block in read_text(file):
            yield block
            last = block[-1]


def _named(name: str) -> tuple[str, dict[str, list[Path]], str | None]:
    if name.partition(":")[0] in BUILTIN:
        return name, {"train": [builtin_file(name)]}, None
    if is_pair_set(name):
        raise DataError(f'"{name}" holds pairs of sequences, and language models read running text. Add --task pairs.')
    if is_label_set(name) or is_label_toy(name):
        raise DataError(f'"{name}" holds texts with labels, and language models read running text. Add --task label.')
    if is_tag_set(name) or is_tag_toy(name):
        raise DataError(f'"{name}" holds words with tags, and language models read running text. Add --task tags.')
    if is_span_set(name) or is_span_toy(name):
        raise DataError(
            f'"{name}" holds questions on passages, and language models read running text. Add --task span.'
        )
    if is_choice_toy(name):
        raise DataError(f'"{name}" holds questions, and language models read running text. Add --task choice.')
    if name in PUBLIC:
        return name, {part: [file] for part, file in find_public(name).items()}, PUBLIC[name].split
    raise unknown_set(name)


def unknown_set(name: str) -> DataError:
    if "/" in name or "." in name:
        return DataError(f"{name}: no such file or folder.")
    known = [*BUILTIN, *PAIR_TOYS, *LABEL_TOYS, *TAG_TOYS, *SPAN_TOYS, *CHOICE_TOYS, *SEEN_TOYS, *PUBLIC]
    return DataError(f'"{name}" is neither a file nor a data set. {did_you_mean(name, known)}')


def _given_parts(sources: list[Path], notes: list[str]) -> dict[str, list[Path]]:
    """A folder with files or folders named train, valid and test is split already; anything else is one text."""
    if len(sources) != 1 or not sources[0].is_dir():
        return {"train": [file for source in sources for file in text_files(source)]}
    folder = sources[0]
    files = text_files(folder)
    unread = unread_files(folder, files)
    by_part, others = _parts_in(folder, files)
    if by_part and others:
        notes.append(f"left out, as their names tell no part: {shown_names(folder, others)}")
    elif not by_part and len(files) > 1:
        notes.append(f"{len(files)} files are read as one text: {shown_names(folder, files)}")
    if unread:
        notes.append(f"left out, as they are no text by their names: {shown_names(folder, unread)}")
    return by_part or {"train": files}


def _parts_in(folder: Path, files: list[Path]) -> tuple[dict[str, list[Path]], list[Path]]:
    """The files of each part, and those of none; no parts where the names do not tell a split.

    Where other files lie between them, names tell one if they differ by the part only: train.txt and test.txt do,
    train.py and test_model.py are two files of a program.
    """
    by_part: dict[str, list[Path]] = {}
    others: list[Path] = []
    patterns: dict[str, set[str]] = {}
    for file in files:
        part = part_of(file) or PART_NAMES.get(file.relative_to(folder).parts[0].lower())
        if part is None:
            others.append(file)
            continue
        by_part.setdefault(part, []).append(file)
        words = ("PART" if word in PART_NAMES else word for word in _words(file))
        patterns.setdefault(part, set()).add(".".join(words) if part_of(file) else "PART/")
    is_split = "train" in by_part and len(by_part) > 1
    if is_split and (not others or all(patterns["train"] & patterns[part] for part in by_part)):
        return by_part, others
    return {}, files


def part_of(file: Path) -> str | None:
    """The part that a file's name tells: 'ptb.dev.txt' -> 'valid'."""
    return next((PART_NAMES[word] for word in _words(file) if word in PART_NAMES), None)


def _words(file: Path) -> list[str]:
    return file.name.lower().replace("-", ".").replace("_", ".").split(".")


def _scan_files(name: str, given: dict[str, list[Path]]) -> TextData:
    present = [part for part in PARTS if part in given]

    def read() -> dict[str, Any]:
        digest, characters, lines = hashlib.sha256(), {}, 0
        for part in present:
            digest.update(f"<{part}>".encode())
            count = 0
            for block in joined_text(given[part]):
                digest.update(block.encode())
                count += len(block)
                lines += block.count("\n")
            digest.update(f"<{count}>".encode())
            characters[part] = count
        return {"characters": characters, "lines": lines, "fingerprint": digest.hexdigest()}

    question = "parts " + " ".join(f"{part}:{len(given[part])}" for part in present)
    found = cached_scan(question, [file for part in present for file in given[part]], read)
    parts = {part: TextPart(tuple(given[part])) for part in present}
    return _checked(TextData(name, parts, **found, split="split as given"))


def split_edges(total: int, split: str) -> list[int]:
    """Where the parts of a contiguous split such as "90/5/5" begin and end: [0, ..., total]."""
    shares = _shares(split)
    return [0, *(int(total * sum(shares[: i + 1]) / 100 + 1e-9) for i in range(len(shares) - 1)), total]


def _shares(split: str) -> list[float]:
    try:
        shares = [float(share) for share in split.split("/")]
    except ValueError:
        shares = []
    if len(shares) not in (2, 3) or not min(shares) > 0 or not abs(sum(shares) - 100) <= 1e-6:
        raise ConfigError(
            f'--split-at "{split}" should be two or three shares that add up to 100, such as 90/10 or 90/5/5.'
        )
    return shares


def _scan_split(name: str, files: list[Path], split: str) -> TextData:
    _shares(split)  # before a long text is read

    def read() -> dict[str, Any]:
        digest, total, lines = hashlib.sha256(split.encode()), 0, 0
        for block in joined_text(files):
            digest.update(block.encode())
            total += len(block)
            lines += block.count("\n")
        return {"characters": total, "lines": lines, "fingerprint": digest.hexdigest()}

    found = cached_scan(f"split {split}", files, read)
    edges = split_edges(found["characters"], split)
    parts = {
        part: TextPart(tuple(files), start, stop) for part, start, stop in zip(PARTS, edges, edges[1:], strict=False)
    }
    characters = {part: p.stop - p.start for part, p in parts.items() if p.stop is not None}
    words = f"split in order {split}"
    return _checked(TextData(name, parts, characters, found["lines"], found["fingerprint"], words))


def check_learnable(data: TextData) -> None:
    """A text of blanks, of NULs or of one character has nothing to learn; no more is read than it takes to see that."""
    found: set[str] = set()
    for block in data.parts["train"].blocks():
        found |= set(block)
        if len(found) > MAX_BLANK_SYMBOLS:
            return
    symbols = found - {"\n"}
    if all(symbol.isspace() or symbol == "\0" for symbol in symbols):
        what = "NULs" if "\0" in symbols else "blanks and line ends" if symbols else "line ends"
    elif len(symbols) == 1 and data.lines <= len(data.parts):  # else there are lengths of lines to learn
        what = f"the character {shown(symbols.pop())}"
    else:
        return
    raise DataError(f"{data.name}: the training part holds nothing but {what}: nothing can be learned. Give some text.")


def _checked(data: TextData) -> TextData:
    for part, count in data.characters.items():
        files = ", ".join(str(f) for f in data.parts[part].files[:3])
        if sum(data.characters.values()) == 0:
            raise DataError(f"{files}: the file is empty. Give some text to learn from.")
        if count < 2:
            raise DataError(
                f"{files}: too little text: {counted(sum(data.characters.values()), 'character')} in all "
                f"leave {count} to {part}. "
                "A model needs a few hundred at least."
            )
    return data
