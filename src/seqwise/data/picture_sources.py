"""Where pictures are kept: in a folder, in an archive, in a file with many, or drawn when they are asked for.

FolderPictures   files below a folder                          "cats/7.jpg"
ZipPictures      a .zip, read in place                         "cats/7.jpg"
TarPictures      a .tar, .tar.gz or .tar.xz, read into memory  "cats/7.jpg"
ArrayPictures    rows of an array: IDX files, CIFAR batches    "7"
DrawnPictures    a function of the name                        "circle 3 5"
JoinedPictures   several of them, by the beginning of a name   "train/7"

Nothing is unpacked to the disk, and no name leads out of its folder.
"""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol, runtime_checkable

import numpy as np

from ..errors import DataError
from .files import read_bytes
from .pictures import UNCOMPRESSED, decode
from .scan_cache import cached_scan
from .seen import PictureSource
from .seen_looks import ARCHIVES, files_below, is_archive, is_picture_name

MAX_BYTES = 500_000_000  # of one file
TAR_END = 1024  # zeros, at least
PEEKED = 1024  # bytes at the beginning, in the middle and at the end of a file, by which it is known


@runtime_checkable
class PictureFiles(Protocol):
    """Pictures that are files: they may be decoded to less than their size."""

    @property
    def names(self) -> Sequence[str]:
        """Of all of them, in order."""
        ...

    def content(self, name: str) -> bytes: ...
    def shown(self, name: str) -> str:
        """In a message."""
        ...


def read_picture(source: PictureSource, name: str, at_least: tuple[int, int] | None = None) -> np.ndarray:
    """Pixels (H, W, C) of one picture, at about the size that is needed where that is faster."""
    if isinstance(source, JoinedPictures):
        source, name = source.place(name)
    if isinstance(source, PictureFiles):
        return decode(source.content(name), source.shown(name), at_least)
    return source.read(name)


def check_inside(name: str, where: str) -> None:
    """A name as files and archives give it leads nowhere but below its own folder."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[:1][0][1:2] or "\0" in name:
        raise DataError(f'{where}: the name "{name}" leads out of its folder, and is not followed. Mend the name.')


class FolderPictures:
    """Files below a folder, all of them or some."""

    def __init__(self, folder: Path, names: Sequence[str]):
        self.folder, self.names = folder, names

    def only(self, names: Sequence[str]) -> FolderPictures:
        """Some of them."""
        return FolderPictures(self.folder, names)

    def shown(self, name: str) -> str:
        return str(self.folder / name)

    def content(self, name: str) -> bytes:
        return file_inside(self.folder, name).read_bytes()

    def read(self, name: str) -> np.ndarray:
        return decode(self.content(name), self.shown(name))

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.folder, self.names)


def file_inside(folder: Path, name: str) -> Path:
    """A file below a folder, that is there and is not too large."""
    check_inside(name, str(folder))
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError(f"{path}: is a link that leads out of {folder}, and is not followed. Copy the file.")
        if not path.is_file():
            raise DataError(f"{path}: no such file.")
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path}: more than {MAX_BYTES:,} bytes. Give a smaller one.")
        path.open("rb").close()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from None
    return path


def fingerprint_of(folder: Path, names: Sequence[str]) -> str:
    """Of names, sizes and a few bytes of each file: those of a compressed one differ all over where it does."""
    digest = hashlib.sha256()
    for name in names:
        path = file_inside(folder, name)
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= 4 * PEEKED or path.suffix.lower() in UNCOMPRESSED:
                found = hashlib.file_digest(file, "sha256").digest()
            else:
                found = b""
                for place in (0, size // 2, size - PEEKED):
                    file.seek(place)
                    found += file.read(PEEKED)
        digest.update(f"{name} {size}\n".encode("utf-8", "surrogatepass"))
        digest.update(found)
    return digest.hexdigest()


class ZipPictures:
    """An archive that is read in place."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise DataError(f"{path}: a damaged or cut-off .zip archive ({error}). Get it again.") from None
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in self._archive.infolist():
            if member.is_dir() or not is_picture_name(member.filename):
                continue
            check_inside(member.filename, str(path))
            if stat.S_ISLNK(member.external_attr >> 16):
                raise DataError(
                    f"{self.shown(member.filename)}: is a link, which is not followed. Pack the file itself."
                )
            if member.filename in self._members:
                raise DataError(f"{path}: has two files named {member.filename}. Drop one.")
            self._members[member.filename] = member
        self.names: Sequence[str] = sorted(self._members)

    def shown(self, name: str) -> str:
        return f"{self.path}: {name}"

    def content(self, name: str) -> bytes:
        member = self._members.get(name)
        if member is None:
            raise DataError(f"{self.shown(name)}: no such file in the archive.")
        if member.flag_bits & 1:
            raise DataError(f"{self.shown(name)}: is locked by a password. Unpack the archive, and give the folder.")
        if member.file_size > MAX_BYTES:
            raise DataError(f"{self.shown(name)}: unpacks to more than {MAX_BYTES:,} bytes, too many for a picture.")
        try:
            with self._archive.open(member) as file:
                return file.read(member.file_size + 1)
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, zlib.error) as error:
            raise DataError(f"{self.shown(name)}: damaged inside of the archive ({error}). Get it again.") from None

    def read(self, name: str) -> np.ndarray:
        return decode(self.content(name), self.shown(name))

    @cached_property
    def fingerprint(self) -> str:
        """The archive knows a checksum of each file."""
        digest = hashlib.sha256()
        for name in self.names:
            digest.update(f"{name} {self._members[name].CRC} {self._members[name].file_size}\n".encode())
        return digest.hexdigest()


class TarPictures:
    """An archive that can only be read from its beginning: its list is kept, and its content read when it is needed."""

    def __init__(self, path: Path):
        self.path = path
        found = cached_scan("pictures of a tar", [path], self._scan)
        self.fingerprint: str = found["fingerprint"]
        self._places: dict[str, tuple[int, int]] = {name: (a, b) for name, a, b in found["members"]}
        self.names: Sequence[str] = sorted(self._places)
        self._reading = threading.Lock()

    def _scan(self) -> dict[str, object]:
        members: list[tuple[str, int, int]] = []
        names: set[str] = set()
        try:
            with tarfile.open(fileobj=io.BytesIO(self._unpacked), mode="r:") as archive:
                for member in archive:
                    if not is_picture_name(member.name) or member.isdir():
                        continue
                    check_inside(member.name, str(self.path))
                    if not member.isreg():
                        raise DataError(f"{self.shown(member.name)}: is a link, which is not followed.")
                    if member.name in names:
                        raise DataError(f"{self.path}: has two files named {member.name}. Drop one.")
                    names.add(member.name)
                    members.append((member.name, member.offset_data, member.offset_data + member.size))
        except (tarfile.TarError, EOFError) as error:
            raise DataError(f"{self.path}: a damaged or cut-off .tar archive ({error}). Get it again.") from None
        if len(self._unpacked) < TAR_END or any(self._unpacked[-TAR_END:]):
            raise DataError(f"{self.path}: a cut-off .tar archive. Get it again.")
        return {"fingerprint": hashlib.sha256(self._unpacked).hexdigest(), "members": members}

    @cached_property
    def _unpacked(self) -> bytes:
        return b"".join(read_bytes(self.path))

    def shown(self, name: str) -> str:
        return f"{self.path}: {name}"

    def content(self, name: str) -> bytes:
        if name not in self._places:
            raise DataError(f"{self.shown(name)}: no such file in the archive.")
        start, stop = self._places[name]
        with self._reading:  # it is unpacked once
            return self._unpacked[start:stop]

    def read(self, name: str) -> np.ndarray:
        return decode(self.content(name), self.shown(name))


class ArrayPictures:
    """Rows of an array (N, H, W) or (N, H, W, C); the name is the number of a row."""

    def __init__(self, pixels: np.ndarray):
        self.pixels = pixels[..., None] if pixels.ndim == 3 else pixels

    def read(self, name: str) -> np.ndarray:
        found: np.ndarray = self.pixels[int(name)]
        return found

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(str(self.pixels.shape).encode() + self.pixels.tobytes()).hexdigest()


class DrawnPictures:
    """Pictures that follow from their names; `version` tells how they are drawn."""

    def __init__(self, draw: Callable[[str], np.ndarray], version: str):
        self.read = draw
        self.fingerprint = hashlib.sha256(version.encode()).hexdigest()


class JoinedPictures:
    """Several sources: a name begins with that of its source, and a slash."""

    def __init__(self, sources: Mapping[str, PictureSource]):
        self.sources = sources

    def place(self, name: str) -> tuple[PictureSource, str]:
        """The source, and what the picture is called there."""
        source, _, rest = name.partition("/")
        return self.sources[source], rest

    def read(self, name: str) -> np.ndarray:
        source, rest = self.place(name)
        return source.read(rest)

    @cached_property
    def fingerprint(self) -> str:
        found = "\n".join(f"{name} {source.fingerprint}" for name, source in self.sources.items())
        return hashlib.sha256(found.encode()).hexdigest()


def pictures_in(path: Path) -> FolderPictures | ZipPictures | TarPictures:
    """All pictures below a folder or in an archive; a DataError where there are none."""
    found: FolderPictures | ZipPictures | TarPictures
    if path.is_dir():
        found = FolderPictures(path, [name for name in files_below(path) if is_picture_name(name)])
    elif path.name.lower().endswith(".zip"):
        found = ZipPictures(path)
    elif is_archive(path):
        found = TarPictures(path)
    else:
        raise DataError(f"{path}: pictures are read from a folder or an archive ({', '.join(ARCHIVES)}).")
    if not found.names:
        raise DataError(f"{path}: there is no picture in it (.jpg, .png, .gif, .bmp, .webp, .tif, .ppm).")
    return found
