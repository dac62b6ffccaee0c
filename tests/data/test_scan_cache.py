"""A large file is read once; a file that changed in any way is read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seqwise.data import scan_cache, source
from seqwise.data.source import open_text


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files as they are read from end to end, however small."""
    found: list[Path] = []
    monkeypatch.setattr(scan_cache, "LARGE", 10)
    read = source.read_text
    monkeypatch.setattr(source, "read_text", lambda path: (found.append(path), read(path))[1])
    return found


def test_what_is_known_of_a_file_is_not_read_again(tmp_path: Path, reads: list[Path]) -> None:
    file = tmp_path / "poem.txt"
    file.write_text("some lines\n" * 50)
    first = open_text(file)
    assert reads == [file]
    assert open_text(file) == first
    assert reads == [file]
    open_text(file, split="80/20")  # another question
    assert len(reads) == 2


@pytest.mark.parametrize("keep_times", [False, True])
def test_a_changed_file_is_read_again_even_where_size_and_time_are_the_same(
    tmp_path: Path, reads: list[Path], keep_times: bool
) -> None:
    file = tmp_path / "poem.txt"
    file.write_text("some lines\n" * 50)
    first, times = open_text(file), file.stat()
    file.write_text("same lines\n" * 50)
    if keep_times:
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = open_text(file)
    assert len(reads) == 2
    assert second.fingerprint != first.fingerprint


def test_a_damaged_memory_is_made_anew(tmp_path: Path, reads: list[Path]) -> None:
    file = tmp_path / "poem.txt"
    file.write_text("some lines\n" * 50)
    first = open_text(file)
    for known in (scan_cache.cache_folder() / "scans").glob("*.json"):
        known.write_text("{")
    assert open_text(file) == first
    assert len(reads) == 2


def test_parts_in_files_of_their_own_are_remembered_too(tmp_path: Path, reads: list[Path]) -> None:
    for part in ("train", "valid"):
        (tmp_path / f"{part}.txt").write_text(f"{part} lines\n" * 50)
    first = open_text(tmp_path)
    assert open_text(tmp_path) == first
    assert len(reads) == 2
    assert first.characters == {"train": 600, "valid": 600}
