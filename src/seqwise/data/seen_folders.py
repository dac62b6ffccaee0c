"""Folders and archives of pictures without a table: a folder tells what its pictures show, or an IDX file or a CIFAR
batch does.

cats/7.jpg                               a folder for each label
train/cats/7.jpg                         and folders for the parts
cats/clip3/000.jpg                       a folder for each clip
train-images-idx3-ubyte.gz               pictures in one file, and beside it train-labels-idx1-ubyte.gz
data_batch_1, test_batch, batches.meta   CIFAR as Python pickled it: only arrays, lists and words are read of it
data_batch_1.bin, test_batch.bin         CIFAR, byte by byte
"""

from __future__ import annotations

import io
import pickle
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..errors import DataError
from ..wording import counted
from .files import read_bytes
from .label_checks import named
from .picture_sources import ArrayPictures, JoinedPictures, pictures_in
from .seen import PictureSource, RegionSource, SeenRow
from .seen_looks import CIFAR_BATCH, IDX_PICTURES, is_archive, shared_root
from .seen_tables import in_number_order
from .source import PART_NAMES, part_of
from .toys import parse_idx

SIDE, CHANNELS = 32, 3  # of CIFAR


@dataclass
class SeenParts:
    """What a reader found, before it is split and checked."""

    parts: dict[str, list[SeenRow]]
    pictures: PictureSource | RegionSource
    notes: list[str] = field(default_factory=list)
    columns: tuple[str, ...] = ()


def read_folder(path: Path, *, labelled: bool) -> SeenParts:
    """All pictures below a folder or in an archive, with the labels that their folders tell, or without any."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
        if any(IDX_PICTURES.fullmatch(file.name) for file in files):
            return read_idx(path)
        if any(CIFAR_BATCH.fullmatch(file.name) for file in files):
            return read_cifar(path)
        archives = {part: file for file in files if is_archive(file) and (part := part_of(file)) is not None}
        if archives:
            return _joined({part: _read_tree(file, labelled=labelled) for part, file in archives.items()})
    return _read_tree(path, labelled=labelled)


def _joined(found: dict[str, SeenParts]) -> SeenParts:
    """An archive for each part."""
    parts = {}
    for part, one in found.items():
        rows = [row for rows in one.parts.values() for row in rows]
        parts[part] = [row._replace(frames=tuple(f"{part}/{name}" for name in row.frames)) for row in rows]
    notes = [note for one in found.values() for note in one.notes]
    sources: dict[str, Any] = {part: one.pictures for part, one in found.items()}
    return SeenParts(parts, JoinedPictures(sources), notes)


def _read_tree(path: Path, *, labelled: bool) -> SeenParts:
    """Folders for parts, for labels, for clips, in this order; each may be missing."""
    source = pictures_in(path)
    names = list(source.names)
    root = shared_root(names)
    parts: dict[str, list[SeenRow]] = {}
    clips: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        clips.setdefault(tuple(name[len(root) :].split("/")[:-1]), []).append(name)
    beside: list[str] = []
    for folders, frames in clips.items():
        part = PART_NAMES.get(folders[0].lower()) if folders else None
        folders = folders[1:] if part is not None else folders
        is_clip = len(folders) > 1
        rows = [tuple(in_number_order(frames))] if is_clip else [(name,) for name in frames]
        if labelled and not folders:
            beside += frames
            continue
        label = folders[0] if labelled else None
        parts.setdefault(part or "train", []).extend(SeenRow(one, (), label) for one in rows)
    notes = []
    if labelled:
        labels = sorted({row.answer or "" for rows in parts.values() for row in rows})
        if len(labels) < 2:
            raise DataError(
                f"{path}: expected a folder for each label, such as {path.name}/cats/1.jpg and {path.name}/dogs/1.jpg, "
                "or a table beside the pictures (image, label). To learn to paint such pictures: --task paint"
            )
        notes.append(f"{path.name}: each folder is a label ({len(labels)}: {named(labels)})")
    if beside:
        notes.append(
            f"{counted(len(beside), 'picture is', 'pictures are')} in no folder of a label, left out: {named(beside)}"
        )
    return SeenParts(parts, source, notes)


# -- files of many pictures ----------------------------------------------------------------------------------------


def read_idx(folder: Path) -> SeenParts:
    """Every file of pictures with its file of labels; t10k is the test."""
    parts: dict[str, list[SeenRow]] = {}
    sources: dict[str, PictureSource] = {}
    for path in sorted(folder.iterdir()):
        if not IDX_PICTURES.fullmatch(path.name):
            continue
        part = "test" if path.name.startswith("t10k") else part_of(path) or "train"
        labels_path = _labels_of(path)
        pixels, labels = parse_idx(path), parse_idx(labels_path)
        if pixels.ndim not in (3, 4) or labels.ndim != 1 or len(pixels) != len(labels):
            raise DataError(
                f"{path}: {pixels.shape} pixels and {labels.shape} labels of {labels_path.name} do not fit."
            )
        if part in sources:
            raise DataError(f"{folder}: has two files of pictures for {part}. Give a folder with one for each part.")
        sources[part] = ArrayPictures(pixels)
        parts[part] = [SeenRow((f"{part}/{row}",), (), str(label)) for row, label in enumerate(labels.tolist())]
    return SeenParts(parts, JoinedPictures(sources), [f"{folder.name}: pictures and labels are read from IDX files"])


def _labels_of(path: Path) -> Path:
    name = re.sub(r"images([.-])idx[34]", r"labels\1idx1", path.name).removesuffix(".gz")
    for found in (path.with_name(name), path.with_name(name + ".gz")):
        if found.exists():
            return found
    raise DataError(f"{path}: its labels are missing; expected {name} beside it.")


def read_cifar(folder: Path) -> SeenParts:
    parts: dict[str, list[SeenRow]] = {}
    pixels: dict[str, list[np.ndarray]] = {}
    names = _cifar_names(folder)
    for path in sorted(folder.iterdir()):
        if not CIFAR_BATCH.fullmatch(path.name):
            continue
        part = "test" if path.name.startswith("test") else "train"
        batch, labels = _binary_batch(path) if path.suffix == ".bin" else _python_batch(path)
        start = sum(map(len, pixels.get(part, ())))
        pixels.setdefault(part, []).append(batch.reshape(-1, CHANNELS, SIDE, SIDE).transpose(0, 2, 3, 1))
        words = [names[label] if label < len(names) else str(label) for label in labels]
        rows = [SeenRow((f"{part}/{start + row}",), (), word) for row, word in enumerate(words)]
        parts.setdefault(part, []).extend(rows)
    sources: dict[str, PictureSource] = {part: ArrayPictures(np.concatenate(some)) for part, some in pixels.items()}
    return SeenParts(
        parts, JoinedPictures(sources), [f"{folder.name}: pictures and labels are read from CIFAR batches"]
    )


def _cifar_names(folder: Path) -> list[str]:
    if (path := folder / "batches.meta.txt").exists():
        return b"".join(read_bytes(path)).decode("utf-8", "replace").split()
    if (path := folder / "batches.meta").exists():
        found = _unpickled(path)
        names = found.get("label_names", found.get(b"label_names"))
        if isinstance(names, list):
            return [name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in names]
    return []


def _binary_batch(path: Path) -> tuple[np.ndarray, list[int]]:
    """Records of a label and the pixels of a picture, channel by channel."""
    data = np.frombuffer(b"".join(read_bytes(path)), dtype=np.uint8)
    record = 1 + CHANNELS * SIDE * SIDE
    if len(data) == 0 or len(data) % record:
        raise DataError(f"{path}: {len(data):,} bytes are no whole number of records of {record:,}. Get it again.")
    records = data.reshape(-1, record)
    return records[:, 1:], records[:, 0].tolist()


def _python_batch(path: Path) -> tuple[np.ndarray, list[int]]:
    found = _unpickled(path)
    pixels = found.get("data", found.get(b"data"))
    labels = found.get("labels", found.get(b"labels"))
    if (
        not (isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and isinstance(labels, list))
        or pixels.size != len(labels) * CHANNELS * SIDE * SIDE
    ):
        raise DataError(f"{path}: expected data, bytes of {SIDE} x {SIDE} pictures, and labels. Get it again.")
    return pixels.reshape(len(labels), -1), [int(label) for label in labels]


_RECONSTRUCT = np.empty(0).__reduce__()[0]
"""What numpy makes an array with before it is filled."""


class _OnlyArrays(pickle.Unpickler):
    """Builds arrays, lists and words, and calls nothing else."""

    ALLOWED: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
        ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):  # how bytes are written for Python 2
            return _latin
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return self.ALLOWED[module, name]


def _latin(text: str, encoding: str) -> bytes:
    return text.encode("latin1")


def _unpickled(path: Path) -> dict[Any, Any]:
    content = b"".join(read_bytes(path))
    try:
        found = _OnlyArrays(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # damaged pickles raise whatever the place leads to; nothing of theirs was called
        raise DataError(f"{path}: is no CIFAR batch, or not only one ({error}), and is not read.") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: is no CIFAR batch.")
    return found
