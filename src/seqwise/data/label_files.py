"""DATA -> texts with an answer each, in three parts: tables, folders, and sets that have a name.

data = open_labelled(["reviews.csv"])
data.parts["train"][0]     # LabelledRow(("a fine film",), "5")
data.notes[0]              # "reviews.csv: texts are in review, labels in stars (5: 1, 2, 3, 4, 5)"
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError, DataError, did_you_mean
from ..wording import counted
from .annotated import Answer, LabelledData, LabelledRow, in_order
from .builtin import is_label_toy
from .files import kind_of, lines_of, read_text, shown
from .label_checks import check_rows, lines_told, named, notes_on
from .label_folders import is_label_folder, one_line, read_label_folder
from .label_split import CUT_SPLIT, VALID_SHARE, split_labelled
from .labelled import (
    KNOWN_NAMES,
    MAX_WHOLE_NUMBERS,
    Roles,
    find_roles,
    find_texts,
    given_roles,
    label_files,
    reading_of,
)
from .public import is_label_set
from .source import DEFAULT_SPLIT, PARTS, unknown_set
from .text_tables import TABLE_KINDS, Cell, Table, is_number, read_table

ACCEPTED = "a .csv, .tsv or .jsonl file, or a folder with a folder or a file for each label"
MISSING_NUMBERS = ("", "na", "n/a", "nan", "null", "none")
LABEL_MARKS = ("|", ";", ",")  # between the labels of a cell that has several
MAX_NAMED = 10  # labels in the sentence on what was found


@dataclass(frozen=True)
class LabelledParts:
    """What a reader found, before it is checked and split."""

    parts: dict[str, list[LabelledRow]]
    asks_for: str
    notes: list[str] = field(default_factory=list)
    columns: tuple[str, ...] = ()


def open_labelled(
    sources: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
) -> LabelledData:
    """Find the texts and their answers, check them from end to end, and put them into parts.

    `sources` is one or more tables, a folder, or the name of a data set; `valid` and `test` are tables. `columns` says
    which column is which: text=, text2=, and one of label=, labels= (several in a cell) and number=; or two bare names,
    text and label.
    """
    name, found = _find(sources, valid, test, columns)
    notes, parts = found.notes, {part: found.parts[part] for part in PARTS if part in found.parts}
    is_split = len(parts) > 1
    if is_split and split is not None:
        raise ConfigError(f'{name} has parts already, and --split-at "{split}" would make others; drop one.')
    check_rows(name, parts)
    words = "split as given"
    stratified = ", each label in the same shares" if found.asks_for == "label" else ""
    if not is_split:
        parts = split_labelled(name, parts["train"], split)
        words = f"shuffled{stratified}, split {split or DEFAULT_SPLIT}"
        check_rows(name, parts)
    elif "valid" not in parts:
        cut = split_labelled(name, parts["train"], CUT_SPLIT)
        parts = {"train": cut["train"], "valid": cut["valid"], "test": parts["test"]}
        words = f"test as given, valid is {VALID_SHARE} % of what was there to train on, shuffled{stratified}"
        notes.append(f"there is no part to validate on: it is {VALID_SHARE} % of the training part, shuffled")
        check_rows(name, parts)
    notes += notes_on(parts)
    is_set = not Path(sources[0]).exists()  # which knows its columns itself
    return LabelledData(name, parts, found.asks_for, words, notes, () if is_set else found.columns)  # type: ignore[arg-type]


def open_whole_labelled(
    sources: Sequence[str | Path], columns: Sequence[str] = (), labels: Sequence[str] = ()
) -> LabelledData:
    """Tables as one part named "whole", for scoring, with `columns` and `labels` as the run has them.

    A label that the run does not know is a DataError; no labels are known where numbers are asked for.
    """
    rows: list[LabelledRow] = []
    notes: list[str] = []
    given = given_roles(columns)
    roles = None
    _check_kinds(map(Path, sources))
    for path in map(Path, sources):
        table = read_table(path, KNOWN_NAMES)
        roles = roles or find_roles(table, given)
        if not labels:
            roles = Roles(roles.texts, roles.answer, "number")
        elif roles.asks_for == "number":
            roles = Roles(roles.texts, roles.answer, "label")
        notes += [*table.notes, _taken_for(table, roles, given)]
        rows += _rows_of(table, roles, notes, known=labels or None)
    name = " and ".join(Path(source).name for source in sources)
    if not rows or roles is None:
        raise DataError(f"{name}: no rows with a text and an answer. Give some to score.")
    return LabelledData(name, {"whole": rows}, roles.asks_for, "scored whole", notes, roles.as_columns)


def texts_of(path: str | Path, columns: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """The texts of a table, or the lines of another file, in their order, to be answered: no answer is needed there.

    `columns` are those of the run. On a line of another file two texts have a TAB between.
    """
    path, given = Path(path), given_roles(columns)
    if kind_of(path) not in TABLE_KINDS:
        for line in lines_of(read_text(path)):
            yield tuple(text.strip() for text in line.split("\t", 1)) if "text2" in given else (line.strip(),)
        return
    table = read_table(path, KNOWN_NAMES)
    wanted = {role: name for role, name in given.items() if role in ("text", "text2")}
    if any(table.place(name) is None for name in wanted.values()) and len(table.names) == len(wanted):
        wanted = dict(zip(("text", "text2"), table.names, strict=False))  # there is nothing else to read
    places = [table.checked_place(name) for name in find_texts(table, wanted)]
    for row in table.rows:
        yield tuple(_one_line(row.cells[place]) for place in places)


def looks_labelled(sources: Sequence[str | Path]) -> bool:
    """Whether data is taken for labelled texts where nobody said so."""
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        return is_label_set(str(sources[0])) or is_label_toy(str(sources[0]))
    if len(paths) == 1 and paths[0].is_dir():
        tables = label_files(paths[0])
        return is_label_folder(paths[0]) or (bool(tables) and looks_labelled([tables["train"]]))
    readings = [reading_of(path) for path in paths]
    return bool(readings) and all(reading is not None and not reading.other_task for reading in readings)


# -- finding the rows ----------------------------------------------------------------------------------------------


def _find(
    sources: Sequence[str | Path], valid: str | Path | None, test: str | Path | None, columns: Sequence[str]
) -> tuple[str, LabelledParts]:
    paths = [Path(source) for source in sources]
    given = given_roles(columns)
    if len(paths) == 1 and not paths[0].exists():
        if valid or test or columns:
            raise ConfigError(f'"{sources[0]}" brings its own parts and columns; drop --valid, --test and --columns.')
        return str(sources[0]), _named_set(str(sources[0]))
    name = " and ".join(path.name for path in paths)
    files: dict[str, list[Path]] = {"train": paths}
    if len(paths) == 1 and paths[0].is_dir():
        tables = label_files(paths[0])
        if not tables:
            if valid or test or columns:
                raise ConfigError(f"{paths[0]}: a folder of texts has no columns or parts to name; drop these options.")
            parts, notes = read_label_folder(paths[0])
            return name, LabelledParts(parts, "label", notes)
        files = {part: [file] for part, file in tables.items()}
    files |= {part: [Path(file)] for part, file in (("valid", valid), ("test", test)) if file is not None}
    _check_kinds(file for some in files.values() for file in some)
    return name, read_label_files(files, given)


def _named_set(name: str) -> LabelledParts:
    if is_label_toy(name):
        from .annotated_toys import language_rows

        return LabelledParts({"train": language_rows()}, "label", ["names that two languages share are left out"])
    if is_label_set(name):
        from .annotated_sets import read_label_set

        return read_label_set(name)
    raise unknown_set(name)


def read_label_files(files: dict[str, list[Path]], given: dict[str, str]) -> LabelledParts:
    """Which column is which follows from the first file; the others are read alike."""
    notes: list[str] = []
    parts: dict[str, list[LabelledRow]] = {}
    roles = None
    for part in PARTS:
        for path in files.get(part, ()):
            table = read_table(path, KNOWN_NAMES)
            notes += table.notes
            if roles is None:
                roles = find_roles(table, given)
                notes.append(_taken_for(table, roles, given))
            parts.setdefault(part, []).extend(_rows_of(table, roles, notes))
    if roles is None:
        raise DataError("there is no data to train on.")
    return LabelledParts(parts, roles.asks_for, notes, roles.as_columns)


def _check_kinds(paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder.")
        if kind_of(path) not in TABLE_KINDS:
            raise DataError(f"{path}: labelled texts are read from {ACCEPTED}.")


def _taken_for(table: Table, roles: Roles, given: dict[str, str]) -> str:
    """ "reviews.csv: texts are in review, labels in stars (5: 1, 2, 3, 4, 5)"."""
    place = table.checked_place(roles.answer)
    texts = " and ".join(roles.texts)
    header = "" if table.has_header else ", and there is no header"
    if roles.asks_for == "number":
        cells = [cell for row in table.rows if is_number(cell := row.cells[place])]
        numbers = [number for number in map(float, cells) if math.isfinite(number)]
        told = f"numbers in {roles.answer} ({min(numbers, default=0):g} to {max(numbers, default=0):g})"
        if "number" not in given:
            told += f" (if they are labels, add --columns label={roles.answer.removeprefix('column ')})"
    else:
        found: set[str] = set()
        mark = _label_mark(table, place)
        for row in table.rows:
            found |= set(_labels(row.cells[place], mark) if roles.asks_for == "labels" else {_label(row.cells[place])})
        labels = in_order(found - {""})
        told = f"labels in {roles.answer} ({len(labels)}: {', '.join(labels[:MAX_NAMED])}"
        told += ", …)" if len(labels) > MAX_NAMED else ")"
        if not given and len(labels) > 2 and all(is_number(label) for label in labels):
            told += f" (if they are numbers to predict, add --columns number={roles.answer.removeprefix('column ')})"
    others = [name for name in table.names if name and name not in (*roles.texts, roles.answer)]
    left = f"; not read: {', '.join(others[:MAX_NAMED])}" if others else ""
    return f"{table.path.name}: texts are in {texts}, {told}{left}{header}"


# -- rows of one table ---------------------------------------------------------------------------------------------


def _rows_of(table: Table, roles: Roles, notes: list[str], *, known: Sequence[str] | None = None) -> list[LabelledRow]:
    """Rows with a text and an answer; what lacks one is left out, and told with its lines."""
    answer_place = _place(table, roles.answer)
    mark = _label_mark(table, answer_place)
    places = [_place(table, name) for name in roles.texts]
    rows: list[LabelledRow] = []
    empty: list[int] = []
    missing: list[int] = []
    joined = 0
    for row in table.rows:
        texts = tuple(_one_line(row.cells[place]) for place in places)
        answer = _answer(row.cells[answer_place], roles, mark, f"{table.path}: line {row.line}", known)
        if not all(texts):
            empty.append(row.line)
        elif answer is None:
            missing.append(row.line)
        else:
            joined += any("\n" in row.cells[place] for place in places)
            rows.append(LabelledRow(texts, answer))
    name = table.path.name
    for lines, what in ((empty, "text"), (missing, roles.asks_for.removesuffix("s"))):
        if lines:
            rest = f"no {what} ({lines_told(lines)}) and {'is' if len(lines) == 1 else 'are'} left out"
            notes.append(f"{name}: {counted(len(lines), 'row has', 'rows have')} {rest}")
    if joined:
        notes.append(
            f"{name}: {counted(joined, 'text of several lines is', 'texts of several lines are')} joined into one"
        )
    if known is None:
        _check_number_of_labels(table, roles, rows)
    return rows


def _place(table: Table, name: str) -> int:
    """Of a column that was found in another file, whose other parts may lack a header or have one."""
    place = table.place(name.removeprefix("column ") if not table.has_header else name)
    if place is None:
        names = ", ".join(table.names)
        raise DataError(
            f'{table.path}: there is no column "{name}", which is read of the training part; it has {names}.'
        )
    return place


def _answer(cell: Cell, roles: Roles, mark: str, where: str, known: Sequence[str] | None) -> Answer | None:
    """None where there is none."""
    if roles.asks_for == "number":
        return _number(cell, where)
    labels = _labels(cell, mark) if roles.asks_for == "labels" else (_label(cell),)
    if known is not None and (unknown := [label for label in labels if label and label not in known]):
        raise DataError(
            f"{where}: the model does not know the label {shown(unknown[0])}. {did_you_mean(unknown[0], known)} "
            "If the labels stand in another column, name it with --columns label=NAME."
        )
    return labels if roles.asks_for == "labels" else labels[0] or None


def _number(cell: Cell, where: str) -> float | None:
    if isinstance(cell, str) and cell.casefold() in MISSING_NUMBERS:
        return None
    number = float(cell) if isinstance(cell, str) and is_number(cell) else math.inf
    if not math.isfinite(number):
        raise DataError(f"{where}: expected a number, found {shown(str(cell))}. Mend it, or leave the cell empty.")
    return number


def _label(cell: Cell) -> str:
    """ "1.0" is the label 1: tables of numbers come out of programs so."""
    if isinstance(cell, tuple):
        cell = cell[0] if len(cell) == 1 else " ".join(cell)
    return cell.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", cell) else cell


def _label_mark(table: Table, place: int) -> str:
    """What stands between the labels of a cell, in the whole column."""
    cells = [cell for row in table.rows if isinstance(cell := row.cells[place], str)]
    return next((mark for mark in LABEL_MARKS if any(mark in cell for cell in cells)), LABEL_MARKS[0])


def _labels(cell: Cell, mark: str) -> tuple[str, ...]:
    """Of a list, or of a cell such as "sound|speed", each once; none is an answer, too."""
    found = cell.split(mark) if isinstance(cell, str) else cell
    return tuple(sorted({_label(label.strip()) for label in found} - {""}))


def _one_line(cell: Cell) -> str:
    return one_line(cell if isinstance(cell, str) else " ".join(cell))


def _check_number_of_labels(table: Table, roles: Roles, rows: list[LabelledRow]) -> None:
    if roles.asks_for != "label":
        return
    found = {row.answer for row in rows}
    if len(found) > MAX_WHOLE_NUMBERS and 2 * len(found) > len(rows):
        some = named(sorted(map(str, found))[:3])
        raise DataError(
            f"{table.path}: {roles.answer} has {len(found):,} different cells in {len(rows):,} rows ({some}, …), too "
            "many for labels. Name the column of labels with --columns label=NAME."
        )
