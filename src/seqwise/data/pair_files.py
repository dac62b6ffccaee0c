"""Files of pairs -> (source, target), one line each: .tsv, .jsonl, two parallel files, folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError, did_you_mean
from ..wording import counted
from .files import TABLE_SUFFIXES, TEXT_SUFFIXES, kind_of, lines_of, read_text, shown, shown_names, unread_files
from .json_lines import check_whole, json_rows
from .source import PARTS, part_of

Pair = tuple[str, str]
"""Source, target."""

PAIR_SUFFIXES = (".tsv", ".jsonl")
NAMED_FIELDS = (("source", "target"), ("src", "tgt"))
HEADER_NAMES = {  # what columns of pairs are called, beside the codes of languages
    *("source", "target", "src", "tgt", "trg", "input", "output", "question", "answer", "sentence", "translation"),
    *("context", "response", "prompt", "completion", "document", "article", "dialogue", "summary", "word", "phonemes"),
    *(
        "text",
        "id",
        "index",
        "source_text",
        "target_text",
        "sentence1",
        "sentence2",
        "reference",
        "pronunciation",
        "spelling",
    ),
}
TWO_LETTERS = "en de fr es it pt nl cs pl ru zh ja ko ar tr sv da fi no el he hi hu ro uk vi bg ca et lt lv sk sl"
LANGUAGE_NAMES = {
    *("english", "german", "french", "spanish", "italian", "portuguese", "dutch", "czech", "polish", "russian"),
    *("chinese", "japanese", "korean", "arabic", "turkish", "swedish", "danish", "finnish", "norwegian", "greek"),
    *TWO_LETTERS.split(),
}
NAME = re.compile(r"[A-Za-z_][\w.-]*")  # a cell that could be the name of a column
LOOKED_AT, MIN_ROWS = 200, 10  # lines, to tell a header from a pair
NESTED = "translation"  # {"translation": {"en": …, "de": …}}
THREE_LETTERS = (
    "ara bul cat ces cmn dan deu ell eng est fin fra heb hin hun ind ita jpn kor lit nld nob pol por ron rus slk slv "
    "spa swe tur ukr vie zho"
)
LANGUAGE = re.compile(rf"\.([a-z]{{2}}|{THREE_LETTERS.replace(' ', '|')})([-_][a-z]{{2,4}})*")  # .en .deu .pt-br
ACCEPTED = "a .tsv file (source TAB target), a .jsonl file, or two parallel files such as train.en train.de"


def language_of(path: Path) -> str | None:
    """The language that a file's last suffix tells: 'train.en.gz' -> 'en'; None where it is another suffix."""
    kind = kind_of(path)
    if kind in TEXT_SUFFIXES or kind in TABLE_SUFFIXES or not LANGUAGE.fullmatch(kind):
        return None
    return kind[1:]


def read_pairs(paths: Sequence[Path], columns: Sequence[str], notes: list[str]) -> list[Pair]:
    """The pairs of one file, or of two that are parallel, in their order. A side may be empty.

    `columns` names the fields of a .jsonl file, or two columns of a .tsv file with a header. What was joined or left
    out is told in `notes`.
    """
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder.")
    kinds = [kind_of(path) for path in paths]
    if len(paths) == 1 and kinds[0] in PAIR_SUFFIXES:
        return (_read_tsv if kinds[0] == ".tsv" else _read_jsonl)(paths[0], columns, notes)
    if len(paths) != 2 or any(kind in TABLE_SUFFIXES for kind in kinds):
        found = " and ".join(path.name for path in paths[:3]) + (" and more" if len(paths) > 3 else "")
        raise DataError(f"{found}: pairs are read from {ACCEPTED}.")
    if columns:
        raise ConfigError("--columns goes with .jsonl, .tsv and folders; parallel files have none. Drop it.")
    return _read_parallel(*paths)


def _read_tsv(path: Path, columns: Sequence[str], notes: list[str]) -> list[Pair]:
    pairs: list[Pair] = []
    places, has_header = tsv_places(path, columns, notes)
    width = 0
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if not line.strip():
            pairs.append(("", ""))
            continue
        cells = line.split("\t")
        if width == 0:
            width = len(cells)
            if has_header:
                continue
        if len(cells) < 2:
            raise DataError(f"{path}: line {number} has no TAB, expected source TAB target: {shown(line)}.")
        if len(cells) != width:
            raise DataError(f"{path}: line {number} has {len(cells)} columns, but the first line has {width}.")
        pairs.append((cells[places[0]].strip(), cells[places[1]].strip()))
    if width > 2 and not has_header:
        notes.append(f"{path.name}: of {width} columns the first two are read, as source and target")
    return pairs


def tsv_places(path: Path, columns: Sequence[str], notes: list[str]) -> tuple[tuple[int, int], bool]:
    """In which columns of a .tsv file source and target stand, and whether its first line is a header."""
    lines = (line for line in lines_of(read_text(path)) if line.strip())
    header, *rest = [[cell.strip() for cell in line.split("\t")] for line in islice(lines, LOOKED_AT)] or [[]]
    if columns:
        return _places(path, header, columns), bool(header)
    names = [cell.lower() for cell in header]
    if len(set(names)) < max(2, len(names)) or not all(NAME.fullmatch(name) for name in names):
        return (0, 1), False
    words = _words_a_cell(rest)  # where pairs are of single words, "it" TAB "es" may be one
    is_known = all(name in HEADER_NAMES or (words >= 2 and name in LANGUAGE_NAMES) for name in names)
    told = " and ".join(shown(cell) for cell in header)
    if not is_known:
        if (words >= 3 and len(rest) >= MIN_ROWS) or all(name in LANGUAGE_NAMES for name in names):
            asked = f"--columns {header[0]},{header[1]}"
            notes.append(f"{path.name}: line 1 ({told}) is read as a pair; if it names columns, add {asked}")
        return (0, 1), False
    for source, target in NAMED_FIELDS:
        if source in names and target in names:
            places = names.index(source), names.index(target)
            break
    else:
        if len(names) > 2:
            raise DataError(
                f"{path}: has the columns {', '.join(header)}. "
                f"Name source and target with --columns, such as --columns {header[-2]},{header[-1]}."
            )
        places = 0, 1
    notes.append(f"{path.name}: line 1 ({told}) names the columns and is no pair")
    return places, True


def _words_a_cell(rows: list[list[str]]) -> float:
    cells = [cell for row in rows for cell in row]
    return sum(len(cell.split()) for cell in cells) / max(1, len(cells))


def source_texts(path: Path, columns: Sequence[str], notes: list[str]) -> Iterator[str]:
    """The sources of a file, to be answered one by one: lines, the source column of a .tsv, the source of a .jsonl.

    Targets may be missing. `columns` are those the model reads, where it was trained on such.
    """
    kind = kind_of(path)
    if kind == ".jsonl":
        yield from (_source_of(row, columns, f"{path}: line {number}") for number, row in _json_rows(path))
    elif kind == ".tsv" and path.is_file():
        yield from _source_cells(path, columns, notes)
    else:
        yield from lines_of(read_text(path))


def _source_of(row: dict[str, Any] | None, columns: Sequence[str], where: str) -> str:
    if row is None:
        return ""
    fields = fields_of(row, columns) or fields_of(row, ())
    known = [*columns[:1], *(source for source, _ in NAMED_FIELDS)]
    name = fields[1] if fields else next((name for name in known if name in row), known[0])
    inner = row if fields is None or fields[0] is None else row[fields[0]]
    return _one_line(_checked_text(inner.get(name), name, row, where))


def _source_cells(path: Path, columns: Sequence[str], notes: list[str]) -> Iterator[str]:
    header = [cell.strip() for cell in next(lines_of(read_text(path)), "").split("\t")]
    if columns and columns[0] in header:
        place, has_header = header.index(columns[0]), True
    else:
        (place, _), has_header = tsv_places(path, (), notes)
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        cells = line.split("\t")
        if has_header and line.strip():
            has_header = False
        elif place < len(cells) or not line.strip():
            yield cells[place] if place < len(cells) else ""
        else:
            raise DataError(f"{path}: line {number} has {len(cells)} columns, and the source is column {place + 1}.")


def _places(path: Path, header: list[str], columns: Sequence[str]) -> tuple[int, int]:
    for name in columns:
        if name not in header:
            raise ConfigError(f'{path}: the first line names no column "{name}". {did_you_mean(name, header)}')
    return header.index(columns[0]), header.index(columns[1])


def _read_jsonl(path: Path, columns: Sequence[str], notes: list[str]) -> list[Pair]:
    pairs, joined = [], 0
    fields: tuple[str | None, str, str] | None = None
    for number, row in _json_rows(path):
        if row is None:
            pairs.append(("", ""))
            continue
        fields = fields or fields_of(row, columns)
        if fields is None:
            wanted = " and ".join(columns) if columns else "source and target"
            raise DataError(
                f"{path}: line {number} has no fields {wanted}; it has {', '.join(row) or 'none'}. "
                "Name two with --columns, such as --columns en,de."
            )
        outer, *names = fields
        inner = row if outer is None else row.get(outer)
        sides = []
        for name in names:
            text = inner.get(name) if isinstance(inner, dict) else None
            sides.append(_one_line(_checked_text(text, name, row, f"{path}: line {number}")))
            joined += sides[-1] != text.strip() if isinstance(text, str) else 0
        pairs.append((sides[0], sides[1]))
    if joined:
        those = counted(joined, "text of several lines is", "texts of several lines are")
        notes.append(f"{path.name}: {those} joined into one line each")
    return pairs


def fields_of(row: dict[str, Any], columns: Sequence[str]) -> tuple[str | None, str, str] | None:
    """Where source and target stand in an object: (the object inside, field, field), or None."""
    for outer in (None, NESTED):
        inner = row if outer is None else row.get(outer)
        if not isinstance(inner, dict):
            continue
        texts = [name for name, value in inner.items() if isinstance(value, str)]
        for names in [columns] if columns else [*NAMED_FIELDS, texts]:
            if len(names) == 2 and all(name in inner for name in names):
                return outer, names[0], names[1]
    return None


def first_row(path: Path) -> dict[str, Any] | None:
    """The first object of a .jsonl file; None where there is none."""
    try:
        return next((row for _, row in _json_rows(path) if row is not None), None)
    except DataError:
        return None


def names_in(path: Path) -> set[str]:
    """What the columns of a .tsv file or the fields of a .jsonl file may be called, by its first line."""
    if kind_of(path) == ".jsonl":
        row = first_row(path) or {}
        inner = row.get(NESTED)
        return {*row, *(inner if isinstance(inner, dict) else ())}
    return {cell.strip() for cell in next(lines_of(read_text(path)), "").split("\t")}


def languages_of(sources: Sequence[str]) -> tuple[str, ...]:
    """Source and target language that names tell: of two parallel files, or of a set such as multi30k:de-en."""
    found = [language_of(Path(source)) for source in sources]
    if len(sources) == 1 and not Path(sources[0]).exists():
        found = list(sources[0].partition(":")[2].split("-"))
    return tuple(str(language) for language in found) if len(found) == 2 and all(found) else ()


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    return json_rows(path, '{"source": …, "target": …}')


def _checked_text(text: Any, name: str, row: dict[str, Any], where: str) -> str:
    if not isinstance(text, str):
        found = f"{name} is {shown(json.dumps(text))}" if name in row else f"it has {', '.join(row)}"
        raise DataError(f'{where} has no text in field "{name}": {found}.')
    return check_whole(text, f'{where}: field "{name}"')


def _one_line(text: str) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", text.strip())


def _read_parallel(source: Path, target: Path) -> list[Pair]:
    sources, targets = ([line.strip() for line in lines_of(read_text(path))] for path in (source, target))
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}; "
            "in parallel files each line belongs to the same line of the other."
        )
    return list(zip(sources, targets, strict=True))


def folder_parts(folder: Path, columns: Sequence[str], notes: list[str]) -> dict[str, list[Path]]:
    """The files of each part of a folder: one .tsv or .jsonl each, or two languages by their last suffix."""
    by_part = _candidates(folder)
    if "train" not in by_part:
        raise DataError(
            f"{folder}: no pairs to train on: expected train.tsv, train.jsonl, or files such as train.en and train.de."
        )
    chosen = {part: _choose(folder, part, by_part[part], columns) for part in PARTS if part in by_part}
    if unread := unread_files(folder, [file for files in chosen.values() for file in files]):
        notes.append(f"left out, as they are no part of the pairs: {shown_names(folder, unread)}")
    return chosen


def is_pair_folder(folder: Path) -> bool:
    train = _candidates(folder).get("train", [])
    languages = {language_of(file) for file in train}
    if None in languages:
        return len(train) == 1 and is_pair_file(train[0])
    return len(languages) > 1


def is_pair_file(path: Path) -> bool:
    """Whether a file holds pairs by its suffix or, for .jsonl, by the fields of its first line."""
    if kind_of(path) == ".jsonl":
        row = first_row(path) if path.is_file() else None
        return row is not None and fields_of(row, ()) is not None
    return kind_of(path) == ".tsv"


def _candidates(folder: Path) -> dict[str, list[Path]]:
    by_part: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        is_readable = kind_of(file) in PAIR_SUFFIXES or language_of(file) is not None
        part = part_of(file)
        if part is not None and is_readable and file.is_file():
            by_part.setdefault(part, []).append(file)
    return by_part


def _choose(folder: Path, part: str, files: list[Path], columns: Sequence[str]) -> list[Path]:
    if len(files) == 1 and kind_of(files[0]) in PAIR_SUFFIXES:
        return files
    by_language = {language_of(file): file for file in files}
    names = ", ".join(file.name for file in files)
    if None in by_language or len(by_language) < len(files) or len(by_language) < 2:
        raise DataError(f"{folder}: cannot tell which files are the {part} part: {names}. Give them one by one.")
    if not columns:  # which is the source is not told by the names
        languages = sorted(str(name) for name in by_language)
        raise DataError(
            f"{folder}: holds the languages {', '.join(languages)}. "
            f"Name source and target with --columns, such as --columns {languages[0]},{languages[1]}."
        )
    for name in columns:
        if name not in by_language:
            known = [str(language) for language in by_language]
            raise ConfigError(f'{folder}: no {part} file in "{name}". {did_you_mean(name, known)}')
    return [by_language[name] for name in columns]
