"""DATA -> pictures and what is said of them, in three parts: tables, folders, archives, and sets that have a name.

data = open_seen(["photos"], "caption")
data.parts["train"][0]     # SeenRow(("images/12.jpg",), ("A dog runs .", "A brown dog ."))
data.notes[0]              # "captions.csv: images are in file, captions are in text"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError
from ..settings import DataConfig
from ..wording import counted
from .check_seen import without_damaged
from .films import FilmPictures, with_moments
from .label_checks import named
from .label_split import CUT_SPLIT, VALID_SHARE, deal
from .picture_sources import FolderPictures, JoinedPictures, pictures_in
from .region_files import RegionFiles
from .seen import PictureSettings, PictureSource, SeenData, SeenRow, frames_of
from .seen_checks import check_parts, notes_on, shared
from .seen_folders import SeenParts, read_folder
from .seen_looks import (
    FEATURE_SUFFIXES,
    FILM_SUFFIXES,
    files_below,
    is_archive,
    is_picture_name,
    is_seen_set,
    may_be_table,
    seen_tables,
)
from .seen_sets import read_seen_set
from .seen_tables import Places, in_number_order, read_rows
from .source import DEFAULT_SPLIT, PARTS, part_of, unknown_set

WANTED = {
    "label": "a folder for each label, IDX files, CIFAR batches, or a table (image, label)",
    "caption": "a table beside the pictures (image, caption)",
    "answer": "a table beside the pictures (image, question, answer)",
    "picture": "a folder or an archive of pictures",
}


def open_seen(config: DataConfig, asks_for: str) -> SeenData:
    """Find the pictures and what is said of them, check it from end to end, and put it into parts.

    A source is a folder, an archive, a table beside the pictures, or the name of a data set.
    """
    source = str(config.source[0])
    if not Path(source).exists():
        if config.valid or config.test or config.columns:
            raise ConfigError(f'"{source}" brings its own parts and columns; drop --valid, --test and --columns.')
        if not is_seen_set(source):
            raise unknown_set(source)
        name, found = source, read_seen_set(source, asks_for)
    else:
        paths = [Path(one) for one in config.source]
        name = " and ".join(path.name for path in paths)
        found = _find(paths, asks_for, config)
    parts, notes = {part: found.parts[part] for part in PARTS if part in found.parts}, list(found.notes)
    if "train" not in parts:
        only = f", but for {' and '.join(parts)}" if parts else ""
        raise DataError(". ".join([f"{name}: there is nothing to train on{only}", *notes]) + ".")
    if len(parts) > 1 and config.split is not None:
        raise ConfigError(f'{name} has parts already, and --split-at "{config.split}" would make others; drop one.')
    if config.skip_damaged:
        parts = without_damaged(parts, found.pictures, notes)
    check_parts(name, parts, asks_for)
    notes += shared(parts)  # before a validation part is cut off
    parts, words = _in_parts(name, parts, config.split, notes)
    check_parts(name, parts, asks_for)
    notes += notes_on(parts, asks_for)
    return _data(name, parts, found, asks_for, words, notes, config)


def open_whole_seen(source: str, asks_for: str, config: DataConfig, *, needs_answers: bool = True) -> SeenData:
    """A folder, an archive, a table or one picture as one part named "whole", to be scored, or to be looked at."""
    path = Path(source)
    if path.is_file() and is_picture_name(path.name):
        found = SeenParts({"train": [SeenRow((path.name,), ())]}, FolderPictures(path.parent, [path.name]))
    elif needs_answers or may_be_table(path):
        found = _find([path], asks_for, config, needs_answers=needs_answers)
    else:
        found = read_folder(path, labelled=False)
    rows = [row for rows in found.parts.values() for row in rows]
    return _data(path.name, {"whole": rows}, found, asks_for, "read whole", list(found.notes), config)


def open_other_seen(
    source: str, split: str | None, asks_for: str, config: DataConfig, *, needs_answers: bool = True
) -> tuple[SeenData, str]:
    """Other data than the run's own, and which part of it; `config` is the run's. But for sets, it is read whole."""
    other = replace(config, source=[source], valid=None, test=None, split=None)
    if Path(source).exists() and split is None:
        return open_whole_seen(source, asks_for, other, needs_answers=needs_answers), "whole"
    return open_seen(other if Path(source).exists() else replace(other, columns=[]), asks_for), split or "test"


def asked_on(paths: Sequence[str], texts: Sequence[tuple[str, ...]], asks_for: str) -> SeenData:
    """Pictures that are at hand, each with what is asked of it, as data of one part."""
    rows, sources = [], dict[str, PictureSource]()
    for number, (path, asked) in enumerate(zip(paths, texts, strict=True)):
        file = Path(path)
        sources[str(number)] = FolderPictures(file.parent, [file.name])
        rows.append(SeenRow((f"{number}/{file.name}",), asked))
    found = SeenParts({"whole": rows}, JoinedPictures(sources))
    return _data("pictures", {"whole": rows}, found, asks_for, "read whole", [], DataConfig())


def settings_of(config: DataConfig) -> PictureSettings:
    size = config.image_size
    height_width = None if size is None else (size, size) if isinstance(size, int) else (size[0], size[1])
    return PictureSettings(height_width, config.image_fit, config.grey, config.max_frames)


def _data(
    name: str,
    parts: dict[str, list[SeenRow]],
    found: SeenParts,
    asks_for: Any,
    words: str,
    notes: list[str],
    config: DataConfig,
) -> SeenData:
    if isinstance(found.pictures, FolderPictures | FilmPictures | RegionFiles):
        used = [name for rows in parts.values() for frames in frames_of(rows) for name in frames]
        found.pictures = found.pictures.only(sorted(set(used)))
    return SeenData(name, parts, found.pictures, asks_for, words, notes, found.columns, settings_of(config))


# -- what files hold -----------------------------------------------------------------------------------------------


def _find(paths: Sequence[Path], asks_for: str, config: DataConfig, *, needs_answers: bool = True) -> SeenParts:
    tables = _tables(paths, asks_for)
    if not tables:
        if len(paths) > 1 or config.valid or config.test:
            raise ConfigError(f"{paths[0]}: give one folder, with folders for the parts in it: train, valid, test.")
        if asks_for not in ("label", "picture"):
            raise DataError(f"{paths[0]}: expected {WANTED[asks_for]}.")
        return read_folder(paths[0], labelled=asks_for == "label")
    for part, file in (("valid", config.valid), ("test", config.test)):
        if file is not None:
            tables[Path(file)] = part
    notes: list[str] = []
    folder = paths[0] if paths[0].is_dir() else paths[0].parent
    names, source = kept_in(folder)
    if isinstance(source, FolderPictures):
        beside = [path.name for path in sorted(folder.iterdir()) if is_archive(path)]
        notes += [f"{name} is not read: there are pictures beside it" for name in beside]
    places, parts = Places(names, str(folder)), dict[str, list[SeenRow]]()
    columns: tuple[str, ...] = ()
    for path, part in tables.items():
        table = read_rows(path, asks_for, places, columns or config.columns, needs_answers=needs_answers)
        notes += table.notes
        columns = columns or table.columns
        for own, rows in table.rows.items():
            parts.setdefault(part if len(tables) > 1 else own, []).extend(rows)
    if isinstance(source, FilmPictures):
        parts = {part: with_moments(rows, config.max_frames) for part, rows in parts.items()}
    notes += _unsaid(parts, names)
    return SeenParts(parts, source, notes, columns)


def _tables(paths: Sequence[Path], asks_for: str) -> dict[Path, str]:
    """The tables that ask for this, each with its part."""
    if not paths[0].is_dir():
        return {path: "train" for path in paths if may_be_table(path)}
    kind = {"picture": ""}.get(asks_for, asks_for)
    found = [path for path, asked in seen_tables(paths[0]).items() if kind in asked]
    parts = {path: part_of(path) or "train" for path in found}
    if len(found) > 1 and len(set(parts.values())) < len(found):
        some = " and ".join(path.name for path in found[:3])
        raise DataError(f"{paths[0]}: several tables may be meant ({some}). Give the table that you want.")
    return parts


def kept_in(folder: Path) -> tuple[list[str], Any]:
    """Names of all pictures below a folder, else in the archives in it, else of films or features; and their source."""
    files = files_below(folder)
    pictures = [name for name in files if is_picture_name(name)]
    archives = [folder / name for name in files if "/" not in name and is_archive(Path(name))]
    if not pictures and not archives:
        if films := [name for name in files if name.lower().endswith(FILM_SUFFIXES)]:
            return films, FilmPictures(folder, films)
        if features := [name for name in files if name.lower().endswith(FEATURE_SUFFIXES)]:
            return features, RegionFiles(folder, features)
        raise DataError(f"{folder}: there is no picture, film or file of features (.npy, .npz) in it or below it.")
    if pictures:
        return pictures, FolderPictures(folder, pictures)
    found = {path.name.partition(".")[0]: pictures_in(path) for path in archives}
    if len(found) == 1:
        (only,) = found.values()
        return list(only.names), only
    return [f"{key}/{name}" for key, one in found.items() for name in one.names], JoinedPictures(found)


def _unsaid(parts: dict[str, list[SeenRow]], names: Sequence[str]) -> list[str]:
    """Pictures that no table says anything of."""
    used = {name.partition("#")[0] for rows in parts.values() for row in rows for name in row.frames}
    unsaid = [name for name in names if name not in used]
    if not unsaid:
        return []
    many = counted(len(unsaid), "picture is", "pictures are")
    return [f"{many} named in no row, and left out: {named(in_number_order(unsaid[:50]))}"]


# -- parts ---------------------------------------------------------------------------------------------------------


def _in_parts(
    name: str, parts: dict[str, list[SeenRow]], split: str | None, notes: list[str]
) -> tuple[dict[str, list[SeenRow]], str]:
    """Three parts, and how they were made; all that is said of a picture is in one part."""
    if len(parts) == 1:
        return _dealt(
            name, parts["train"], split or DEFAULT_SPLIT
        ), f"shuffled by picture, split {split or DEFAULT_SPLIT}"
    if "valid" in parts:
        return parts, "split as given"
    cut = _dealt(name, parts["train"], CUT_SPLIT)
    notes.append(f"there is no part to validate on: it is {VALID_SHARE} % of the training part, shuffled by picture")
    made = {"train": cut["train"], "valid": cut["valid"], "test": parts["test"]}
    return made, f"test as given, valid is {VALID_SHARE} % of what was there to train on"


def _dealt(name: str, rows: Sequence[SeenRow], split: str) -> dict[str, list[SeenRow]]:
    asks_once = len({row.frames for row in rows}) == len(rows)
    return deal(
        name,
        rows,
        key=lambda row: "\n".join(row.frames),
        label=lambda row: (row.answer or "") if asks_once else "",
        split=split,
    )
