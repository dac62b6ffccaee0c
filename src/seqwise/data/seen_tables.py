"""Tables that name pictures -> rows: captions, questions, labels. Rows without a picture are left out, and told.

A picture is named by its path below the folder, by its file name where no other file has it, by that without its
suffix, or, of a clip, by the folder of its frames.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import DataError, did_you_mean
from ..wording import counted
from .files import shown
from .label_checks import named
from .label_folders import one_line
from .picture_sources import check_inside
from .seen import SeenRow
from .seen_looks import ASKED, FEATURE_SUFFIXES, read_seen_table, seen_roles
from .source import PART_NAMES
from .text_tables import Cell, Table

NUMBERS = re.compile(r"(\d+)")


def in_number_order(names: Sequence[str]) -> list[str]:
    """frame2 stands before frame10."""
    return sorted(names, key=lambda name: [(int(p), "") if p.isdecimal() else (-1, p) for p in NUMBERS.split(name)])


def bare(name: str) -> str:
    """Without its suffix: "a.avi.npy.gz" -> "a.avi", "7.jpg" -> "7"."""
    lower = name.lower()
    for suffix in sorted(FEATURE_SUFFIXES, key=len, reverse=True):
        if lower.endswith(suffix):
            return name[: -len(suffix)]
    return name.rpartition(".")[0] or name


@dataclass
class Places:
    """Finds pictures by what a table calls them."""

    names: Sequence[str]
    where: str
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _frames: dict[str, list[str]] = field(default_factory=dict)
    """Of each folder, all that is below it."""

    def __post_init__(self) -> None:
        for name in self.names:
            file = name.rpartition("/")[2]
            for key in {name, file, bare(name), bare(file)}:
                self._by_name.setdefault(key, []).append(name)
            folder = name
            while folder := folder.rpartition("/")[0]:
                self._frames.setdefault(folder, []).append(name)
        for folder in list(self._frames):
            for key in {folder.rpartition("/")[2]} - {folder}:
                self._by_name.setdefault(key, []).append(folder)

    def find(self, cell: str, where: str) -> tuple[str, ...]:
        """The name of a picture, or of each frame of a clip; empty where nothing is called so."""
        check_inside(cell, where)
        name = cell.replace("\\", "/").removeprefix("./").rstrip("/")
        if name in self._frames:
            return tuple(in_number_order(self._frames[name]))
        keys = dict.fromkeys((name, name.rpartition("/")[2], bare(name), bare(name.rpartition("/")[2])))
        found = next((self._by_name[key] for key in keys if key in self._by_name), [])
        found = [name] if name in found else found
        if len(found) > 1:
            some = named(sorted(found)[:3])
            raise DataError(f"{where}: {shown(cell)} may be any of {len(found)} pictures ({some}). Write its path.")
        return tuple(in_number_order(self._frames[found[0]])) if found and found[0] in self._frames else tuple(found)


@dataclass(frozen=True)
class SeenTable:
    """Rows of one table."""

    rows: dict[str, list[SeenRow]]
    """By the part that a column tells; all in "train" where none does."""
    notes: list[str]
    columns: tuple[str, ...]


def read_rows(
    path: Path, asks_for: str, places: Places, given: Sequence[str], *, needs_answers: bool = True
) -> SeenTable:
    """The rows of a table that ask for a caption, an answer or a label; several captions of a picture in one row."""
    table = read_seen_table(path)
    roles = seen_roles(table, given)
    needed = [role for role in ASKED[asks_for] if needs_answers or role in ("image", "question")]
    for role in needed:
        if role not in roles:
            raise DataError(
                f"{path}: which column holds the {role}? It has {', '.join(table.names)}. "
                f"Name it with --columns {role}=NAME."
            )
    place = {role: _place(table, roles[role]) for role in (*needed, *({"split"} & roles.keys()))}
    found: dict[str, list[SeenRow]] = {}
    missing: dict[str, None] = {}
    empty = 0
    for row in table.rows:
        where = f"{path}: line {row.line}"
        frames = _frames(row.cells[place["image"]], places, where)
        if frames is None:
            missing[str(row.cells[place["image"]])] = None
            continue
        made = _row(frames, asks_for, {role: row.cells[at] for role, at in place.items()})
        if made is None:
            empty += 1
            continue
        part = PART_NAMES.get(_text(row.cells[place["split"]]).lower(), "train") if "split" in place else "train"
        found.setdefault(part, []).append(made)
    if not found:
        near = did_you_mean(next(iter(missing), ""), places.names) if missing else ""
        raise DataError(f"{path}: none of its rows names a picture of {places.where} and says something of it. {near}")
    notes = [f"{path.name}: " + ", ".join(f"{role}s are in {roles[role]}" for role in needed)]
    if missing:
        many = counted(len(missing), "picture", "pictures")
        notes.append(
            f"{path.name}: {many} not in {places.where}, left out with what is said of them: {named([*missing])}"
        )
    if empty:
        notes.append(f"{path.name}: {counted(empty, 'row')} without a {needed[-1]} left out")
    if asks_for == "caption":
        found = {part: _gathered(rows) for part, rows in found.items()}
    return SeenTable(found, notes, tuple(f"{role}={roles[role]}" for role in place))


def _place(table: Table, name: str) -> int:
    return table.checked_place(name.removeprefix("column ") if not table.has_header else name)


def _frames(cell: Cell, places: Places, where: str) -> tuple[str, ...] | None:
    """None where the picture, or a frame of the clip, is not there."""
    cells = (cell,) if isinstance(cell, str) else cell
    if not cells or not all(cells):
        return None
    found = [places.find(one, where) for one in cells]
    return tuple(name for frames in found for name in frames) if all(found) else None


def _text(cell: Cell) -> str:
    return one_line(cell if isinstance(cell, str) else " ".join(cell))


def _row(frames: tuple[str, ...], asks_for: str, cells: dict[str, Cell]) -> SeenRow | None:
    """None where what is asked for is empty."""
    if asks_for == "caption":
        cell = cells.get("caption", ())
        texts = tuple(text for one in ((cell,) if isinstance(cell, str) else cell) if (text := one_line(one)))
        return SeenRow(frames, texts) if texts or "caption" not in cells else None
    answer = _text(cells[role]) if (role := asks_for) in cells else None
    texts = (_text(cells["question"]),) if asks_for == "answer" else ()
    return SeenRow(frames, texts, answer) if all(texts) and answer != "" else None


def _gathered(rows: Sequence[SeenRow]) -> list[SeenRow]:
    """All captions of a picture in one row, in the order in which pictures are first named."""
    texts: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        texts.setdefault(row.frames, []).extend(row.texts)
    return [SeenRow(frames, tuple(found)) for frames, found in texts.items()]
