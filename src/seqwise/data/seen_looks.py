"""What a path may hold that is to be looked at: pictures, clips, and what is said of them. Nothing is decoded here.

label     a folder for each label, in folders for the parts or not; IDX files; CIFAR batches; a table: image, label
caption   a table beside the pictures or clips: image, caption
answer    a table beside them: image, question, answer
picture   pictures of which nothing is said

A table is a .csv, .tsv, .jsonl or .json file, or lines such as "7.jpg#0<TAB>A dog runs ."
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ..config import parse_json
from ..errors import ConfigError, DataError, did_you_mean
from .files import kind_of, lines_of, read_text
from .source import PART_NAMES, part_of
from .text_tables import TABLE_KINDS, Table, TableRow, cell_of, read_beginning, read_table

PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm")
FILM_SUFFIXES = (".mp4", ".avi", ".mkv", ".mov", ".webm", ".mpg", ".mpeg", ".m4v", ".wmv")
FEATURE_SUFFIXES = (".npy", ".npz", ".npy.gz")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2", ".tgz")
COLUMNS = {
    "image": (
        *("image", "image_id", "image_name", "image_file", "image_path", "img", "img_id", "picture", "photo"),
        *("file", "filename", "file_name", "filepath", "path", "frames", "clip", "clip_id", "video", "video_id"),
        "id",
    ),
    "caption": ("caption", "captions", "sentence", "sentences", "text", "description", "comment", "raw", "title"),
    "question": ("question", "query"),
    "answer": ("answer", "multiple_choice_answer"),
    "label": ("label", "class", "category", "target"),
    "split": ("split", "part", "partition", "set"),
}
"""By role, names of columns; the first that a table has is it."""
ANY_FILE = ("file", "filename", "file_name", "filepath", "path", "id")
"""Names of columns that need not be of pictures: their cells tell."""
KNOWN_NAMES = frozenset(name for names in COLUMNS.values() for name in names)
ASKED = {"caption": ("image", "caption"), "answer": ("image", "question", "answer"), "label": ("image", "label")}
"""By what is asked for: the columns that it takes."""
TASK_OF = {"label": "images", "caption": "captions", "answer": "questions", "picture": "paint", "choice": "seen-choice"}
SETS = {
    "digits8x8": ("label", "picture"),
    "moving-shapes": ("caption",),
    "moving-digits": ("caption",),
    "mnist": ("label", "picture"),
    "fashion_mnist": ("label", "picture"),
    "cifar10": ("label", "picture"),
    "flickr8k": ("caption", "picture"),
    "multi30k-images": ("caption", "picture"),
    "msvd": ("caption",),
    "easy_vqa": ("answer", "picture"),
    "vqa_rad": ("answer", "picture"),
    "scenes": ("answer", "picture"),
    "scenes-regions": ("answer",),
    "scenes-choices": ("choice",),
    "scenes-entailment": ("answer",),
    "scenes-captions": ("caption",),
}
"""By the name of a set, before a colon: what may be asked of it, the first where nobody said."""
TOKEN_LINE = re.compile(r"(\S+\.\w+)#(\w+)\t(.*)")
IDX_PICTURES, CIFAR_BATCH = (
    re.compile(r".*images[.-]idx[34]-ubyte(\.gz)?"),
    re.compile(r"(data_batch_\d|test_batch)(\.bin)?"),
)
MAX_JSON = 500_000_000  # bytes
LOOKED_AT = 200  # rows of a table


def is_hidden(name: str) -> bool:
    folders = PurePosixPath(name.replace("\\", "/")).parts
    return any(part.startswith((".", "__MACOSX")) and part != ".." for part in folders)


def is_picture_name(name: str) -> bool:
    return name.lower().endswith(PICTURE_SUFFIXES) and not is_hidden(name)


def is_seen_name(name: str) -> bool:
    """A picture, a film, or features of one."""
    return name.lower().endswith((*PICTURE_SUFFIXES, *FILM_SUFFIXES, *FEATURE_SUFFIXES)) and not is_hidden(name)


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(ARCHIVES)


def files_below(folder: Path) -> list[str]:
    """Names of all files below a folder that are not hidden, in order; folders that are links are not entered."""
    return sorted(_files_below(folder))


def _files_below(folder: Path, below: str = "") -> Iterator[str]:
    try:
        entries = list(os.scandir(folder / below))
    except OSError as error:
        raise DataError(f"{folder / below}: cannot be read: {error.strerror or error}.") from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(folder, f"{below}{entry.name}/")
        elif entry.is_file():
            yield below + entry.name


# -- tables --------------------------------------------------------------------------------------------------------


def may_be_table(path: Path) -> bool:
    """By its name alone."""
    return kind_of(path) in (*TABLE_KINDS, ".json") or (kind_of(path) == ".txt" and ".token" in path.name)


def read_seen_table(path: Path) -> Table:
    """The whole of a table, whichever of its forms it has."""
    if kind_of(path) == ".json":
        return _json_table(path)
    if kind_of(path) == ".txt":
        return _token_table(path)
    return read_table(path, KNOWN_NAMES)


def _token_table(path: Path) -> Table:
    rows = []
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if line.strip():
            found = TOKEN_LINE.fullmatch(line.strip())
            if found is None:
                raise DataError(f"{path}: line {number} is not of the form 7.jpg#0<TAB>A dog runs .")
            rows.append(TableRow(number, [found[1], found[3].strip()]))
    if not rows:
        raise DataError(f"{path}: the file is empty.")
    return Table(path, ["image", "caption"], rows, True)


def _json_table(path: Path) -> Table:
    """A list of objects, alone or by some name; captions and pictures of COCO, which are two lists."""
    content = "".join(read_text(path))
    try:
        found = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}). Get it again, or mend it.") from None
    if isinstance(found, dict):
        lists = {name: rows for name, rows in found.items() if _are_objects(rows)}
        if {"images", "annotations"} <= lists.keys():
            files = {row.get("id"): row.get("file_name") for row in lists["images"]}
            found = [{**row, "image": files.get(row.get("image_id"))} for row in lists["annotations"]]
            for row in found:
                row.pop("image_id", None)
                row.pop("id", None)
        else:
            found = max(lists.values(), key=len, default=None)
    if not _are_objects(found):
        raise DataError(f'{path}: expected a list of objects, such as [{{"image": "7.jpg", "caption": "…"}}].')
    names = list(dict.fromkeys(name for row in found for name in row))
    rows = [
        TableRow(number, [_cell(row.get(name), f'{path}: object {number}: field "{name}"') for name in names])
        for number, row in enumerate(found, start=1)
    ]
    return Table(path, names, rows, True)


def _are_objects(found: object) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(row, dict) for row in found)


def _cell(value: object, where: str) -> str | tuple[str, ...]:
    """Lists of objects with a sentence each are those sentences."""
    if isinstance(value, list) and value and all(isinstance(one, dict) and "raw" in one for one in value):
        value = [one["raw"] for one in value]
    return cell_of(value, where)


def seen_roles(table: Table, given: Sequence[str] = ()) -> dict[str, str]:
    """Which column is which: as given (image=file), else by their names, else an image by what the cells hold."""
    roles = checked_roles(given)
    for role, names in COLUMNS.items():
        if role not in roles:
            found = (name for known in names for name in table.names if name.casefold() == known)
            if (name := next(found, None)) is not None and name not in roles.values():
                roles[role] = name
    if "image" not in roles or not table.has_header:
        rows = table.rows[:LOOKED_AT]
        for place, name in enumerate(table.names):
            if rows and all(is_seen_name(str(row.cells[place])) for row in rows):
                roles["image"] = name
                break
    if "image" in roles and not table.has_header and len(table.names) == 2:
        (other,) = (name for name in table.names if name != roles["image"])
        place = table.checked_place(other.removeprefix("column "))
        words = [len(str(row.cells[place]).split()) for row in table.rows[:LOOKED_AT]]
        roles.setdefault("caption" if sum(words) >= 3 * len(words) else "label", other)
    return roles


def given_seen_roles(columns: Sequence[str]) -> dict[str, str]:
    """["image=file", "caption=text"] -> {"image": "file", "caption": "text"}."""
    pairs = (column.partition("=") for column in columns)
    return {role: name for role, equals, name in pairs if equals and role in COLUMNS}


def checked_roles(columns: Sequence[str]) -> dict[str, str]:
    """The same; a role that pictures do not have is a ConfigError."""
    for column in columns:
        role, equals, name = column.partition("=")
        if not equals or not name:
            raise ConfigError(f'--columns "{column}": expected a role and a name, such as image=file or caption=text.')
        if role not in COLUMNS:
            raise ConfigError(f'--columns "{column}": unknown role "{role}". {did_you_mean(role, COLUMNS)}')
    return given_seen_roles(columns)


def asked_by(table: Table, given: Sequence[str] = ()) -> list[str]:
    """What the columns of a table may ask for."""
    roles = seen_roles(table, given)
    found = [asked for asked, needed in ASKED.items() if roles.keys() >= set(needed)]
    if "answer" in found and "caption" in found and not {"caption", "captions"} & {n.casefold() for n in table.names}:
        found.remove("caption")  # the text of a question is no caption
    return found


# -- what a path holds ---------------------------------------------------------------------------------------------


def seen_tables(folder: Path) -> dict[Path, list[str]]:
    """Tables directly in a folder that name pictures, each with what it may ask for."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and may_be_table(path) and not path.name.startswith("."):
            asked = _asked_by_file(path)
            if asked:
                found[path] = asked
    return found


def _asked_by_file(path: Path) -> list[str]:
    try:
        if kind_of(path) == ".txt":
            first = next((line for line in lines_of(read_text(path)) if line.strip()), "")
            return ["caption"] if TOKEN_LINE.fullmatch(first.strip()) else []
        if kind_of(path) == ".json":
            if path.stat().st_size > MAX_JSON:
                return []
            beginning = next(read_text(path), "")[: 1 << 16]
            is_about = any(f'"{name}"' in beginning for name in COLUMNS["image"][:-1])  # anything may have an id
            table = _json_table(path) if is_about else None
        else:
            table = read_beginning(path, KNOWN_NAMES)
    except DataError:
        return []
    return [] if table is None else asked_by(table) if _names_pictures(table) else []


def _names_pictures(table: Table) -> bool:
    """Whether the column of images names files, or is called so beyond doubt."""
    roles = seen_roles(table)
    if "image" not in roles:
        return False
    place = table.place(roles["image"].removeprefix("column ") if not table.has_header else roles["image"])
    cells = [row.cells[place] for row in table.rows[:LOOKED_AT]] if place is not None else []
    named = [str(cell[0] if isinstance(cell, tuple) and cell else cell) for cell in cells]
    is_called = roles["image"].casefold() not in ANY_FILE
    return bool(named) and (all(map(is_seen_name, named)) or (is_called and all(named)))


def kinds_held(path: Path) -> list[str]:
    """What may be asked of the pictures that a path holds; none where it holds no pictures."""
    if path.is_dir():
        return _held_by_folder(path)
    if not path.is_file():
        return []
    if is_archive(path):
        return _held_by_names(_names_in_zip(path)) if path.suffix.lower() == ".zip" else ["label"]
    asked = _asked_by_file(path) if may_be_table(path) else []
    is_beside = asked and any(is_seen_name(name) or is_archive(Path(name)) for name in _files_below(path.parent))
    return asked if is_beside else []


def _held_by_folder(folder: Path) -> list[str]:
    names = files_below(folder)
    if any(IDX_PICTURES.fullmatch(name) or CIFAR_BATCH.fullmatch(name) for name in names if "/" not in name):
        return ["label"]
    if not any(map(is_seen_name, names)) and not any(is_archive(Path(name)) for name in names):
        return []
    asked = [one for found in seen_tables(folder).values() for one in found]
    if asked:
        return list(dict.fromkeys(asked))
    archives = [name for name in names if is_archive(Path(name)) and "/" not in name]
    if archives and not any(map(is_picture_name, names)):
        return ["label"] if all(part_of(Path(name)) for name in archives) else []
    pictures = [name for name in names if is_picture_name(name)]
    return _held_by_names(pictures) if 2 * len(pictures) > len(names) else []  # else there are some beside texts


def _held_by_names(names: Sequence[str]) -> list[str]:
    """Pictures in folders that may be labels, or all in one place."""
    if not names:
        return []
    root = len(shared_root(names))
    folders = [name[root:].split("/")[:-1] for name in names]
    below = [some[1:] if some and some[0].lower() in PART_NAMES else some for some in folders]
    return ["label"] if len({some[0] for some in below if some}) > 1 else ["picture"]


def shared_root(names: Sequence[str]) -> str:
    """The folder that all pictures are in, as archives have it, where it tells nothing: "data/"; or ""."""
    kept = ""
    for folders in zip(*(name.split("/")[:-1] for name in names), strict=False):
        if len(set(folders)) > 1 or folders[0].lower() in PART_NAMES:
            break
        kept += f"{folders[0]}/"
    return kept


def _names_in_zip(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if is_picture_name(name)]
    except (zipfile.BadZipFile, OSError, ValueError):
        return []


def is_seen_set(name: str) -> bool:
    """Whether a name is that of pictures: 'mnist', 'vqa_rad:closed'."""
    return name.partition(":")[0] in SETS


def looks_seen(sources: Sequence[str | Path]) -> list[str]:
    """What data may ask for where nobody said so; none where it holds no pictures."""
    if len(sources) == 1 and not Path(sources[0]).exists():
        return list(SETS.get(str(sources[0]).partition(":")[0], ())[:1])
    held = [kinds_held(Path(source)) for source in sources]
    return held[0] if held and all(one == held[0] for one in held) else []
