"""Pictures are found wherever they are kept; names and links that lead outside are refused, and nothing is unpacked."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seqwise.data.picture_sources import (
    ArrayPictures,
    DrawnPictures,
    FolderPictures,
    JoinedPictures,
    PictureFiles,
    TarPictures,
    ZipPictures,
    pictures_in,
    read_picture,
)
from seqwise.errors import DataError

COLOURS = {"a.png": (250, 0, 0), "cats/7.png": (0, 250, 0), "dogs/7.png": (0, 0, 250)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))


def png(colour: tuple[int, int, int] = (9, 9, 9), side: int = 4) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(out, "PNG")
    return out.getvalue()


def a_folder(tmp_path: Path) -> Path:
    for name, colour in COLOURS.items():
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(colour))
    (tmp_path / "photos" / "notes.txt").write_text("not a picture")
    (tmp_path / "photos" / ".hidden.png").write_bytes(png())
    return tmp_path / "photos"


def a_zip(tmp_path: Path, members: dict[str, bytes] | None = None) -> Path:
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in (members or {name: png(colour) for name, colour in COLOURS.items()}).items():
            archive.writestr(name, content)
    return path


def a_tar(tmp_path: Path, suffix: str = ".tar.xz") -> Path:
    path = tmp_path / f"photos{suffix}"
    with tarfile.open(path, f"w:{suffix.rpartition('.')[2].replace('tar', '')}") as archive:
        for name, colour in COLOURS.items():
            content = png(colour)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


# -- what is found -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["folder", "zip", ".tar", ".tar.gz", ".tar.xz"])
def test_pictures_are_read_wherever_they_are_kept(tmp_path: Path, kept: str) -> None:
    path = a_folder(tmp_path) if kept == "folder" else a_zip(tmp_path) if kept == "zip" else a_tar(tmp_path, kept)
    source = pictures_in(path)
    assert list(source.names) == sorted(COLOURS)
    assert isinstance(source, PictureFiles)
    for name, colour in COLOURS.items():
        assert (source.read(name) == colour).all()
        assert source.read(name).shape == (4, 4, 3)
    assert not (tmp_path / "cache").exists()


def test_all_ways_of_keeping_them_tell_what_changes(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    before = pictures_in(folder).fingerprint
    assert pictures_in(folder).fingerprint == before
    os.utime(folder / "a.png", (1, 1))  # copied, say
    assert pictures_in(folder).fingerprint == before
    (folder / "a.png").write_bytes(png((8, 8, 8)))
    assert pictures_in(folder).fingerprint != before
    first, second = a_zip(tmp_path), None
    one = ZipPictures(first).fingerprint
    second = a_zip(tmp_path, {**{name: png(colour) for name, colour in COLOURS.items()}, "a.png": png((1, 1, 1))})
    assert ZipPictures(second).fingerprint != one
    zeros, ones = (ArrayPictures(np.full((2, 3, 3), value, np.uint8)) for value in (0, 1))
    assert zeros.fingerprint != ones.fingerprint


def test_a_change_anywhere_in_an_uncompressed_picture_is_seen(tmp_path: Path) -> None:
    pixels = np.zeros((64, 64, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.bmp")
    before = pictures_in(tmp_path).fingerprint
    pixels[20, 20] = 1
    Image.fromarray(pixels).save(tmp_path / "a.bmp")
    assert pictures_in(tmp_path).fingerprint != before


def test_arrays_drawings_and_several_sources_answer_alike(tmp_path: Path) -> None:
    rows = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    drawn = DrawnPictures(lambda name: np.full((2, 2, 1), len(name), np.uint8), "1")
    joined = JoinedPictures({"rows": ArrayPictures(rows), "drawn": drawn, "zip": ZipPictures(a_zip(tmp_path))})
    assert np.array_equal(joined.read("rows/1")[..., 0], rows[1])
    assert (joined.read("drawn/abc") == 3).all()
    assert (read_picture(joined, "zip/cats/7.png") == COLOURS["cats/7.png"]).all()
    assert joined.fingerprint != JoinedPictures({"rows": ArrayPictures(rows)}).fingerprint


# -- what is refused -----------------------------------------------------------------------------------------------

OUTSIDE = ["../a.png", "/etc/a.png", "cats/../../a.png", "C:/a.png", "..\\a.png"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_outside_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"leads out of its folder, and is not followed\. Mend the name\.$"):
        ZipPictures(a_zip(tmp_path, {name: png()}))
    with pytest.raises(DataError, match=r"leads out of its folder"):
        FolderPictures(tmp_path, [name]).read(name)
    path = tmp_path / "photos.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(png())
        archive.addfile(member, io.BytesIO(png()))
    with pytest.raises(DataError, match=r"leads out of its folder"):
        TarPictures(path)


def test_links_that_lead_outside_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    folder = a_folder(tmp_path)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "inside.png").symlink_to(folder / "a.png")
    (folder / "round").symlink_to(tmp_path)
    source = pictures_in(folder)
    assert "round/secret.png" not in source.names
    with pytest.raises(DataError, match=r"link.png: is a link that leads out of .*photos, and is not followed"):
        source.read("link.png")
    assert source.read("inside.png").shape == (4, 4, 3)


def test_links_in_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive:
        member = zipfile.ZipInfo("link.png")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(DataError, match=r"photos.zip: link.png: is a link, which is not followed"):
        ZipPictures(path)
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
        path = tmp_path / "photos.tar"
        with tarfile.open(path, "w") as archive:
            link = tarfile.TarInfo("link.png")
            link.type, link.linkname = kind, "/etc/passwd"
            archive.addfile(link)
        with pytest.raises(DataError, match=r"link.png: is a link"):
            TarPictures(path)


def test_two_pictures_of_one_name_are_told(tmp_path: Path) -> None:
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a.png", png((1, 1, 1)))
        archive.writestr("a.png", png((2, 2, 2)))
    with pytest.raises(DataError, match=r"photos.zip: has two files named a.png\. Drop one\.$"):
        ZipPictures(path)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.xz"])
def test_an_archive_that_is_cut_off_is_named(tmp_path: Path, suffix: str) -> None:
    path = a_zip(tmp_path) if suffix == ".zip" else a_tar(tmp_path, suffix)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // (8 if suffix == ".tar" else 2)])  # the end of a .tar is empty
    with pytest.raises(DataError, match=rf"photos{suffix}: .*cut-off"):
        pictures_in(path)


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    path = a_zip(tmp_path)
    content = bytearray(path.read_bytes())
    place = content.index(b"IDAT") + 6
    content[place] ^= 255
    path.write_bytes(content)
    source = ZipPictures(path)
    with pytest.raises(DataError, match=r"photos.zip: a.png: damaged inside of the archive"):
        source.read("a.png")


def test_a_place_without_pictures_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(DataError, match=r"there is no picture in it \(\.jpg, \.png"):
        pictures_in(tmp_path)
    with pytest.raises(DataError, match=r"notes.txt: pictures are read from a folder or an archive"):
        pictures_in(tmp_path / "notes.txt")
    with pytest.raises(DataError, match=r"nowhere.png: no such file"):
        FolderPictures(tmp_path, ["nowhere.png"]).read("nowhere.png")
