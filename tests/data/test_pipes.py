"""What comes out of a pipe is kept in a file of its own, and files stay where they are."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqwise.data.paths import cache_folder
from seqwise.data.pipes import owned
from seqwise.errors import DataError

TEXT = b"the cat sat on the mat.\n" * 20


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe, with a text waiting in it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(TEXT,), daemon=True).start()
    return path


def test_files_folders_and_names_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "poems.txt").write_bytes(TEXT)
    sources = [str(tmp_path), str(tmp_path / "poems.txt"), "tinyshakespeare", "nowhere.txt", "a.en,b.de", "x\0y"]
    assert owned(sources) == sources


def test_standard_input_becomes_a_file_that_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for _ in range(2):  # the same text is the same file
        piped(monkeypatch, TEXT)
        found += owned(["-"])
    assert found[0] == found[1]
    assert Path(found[0]).name == "standard-input.txt"
    assert Path(found[0]).read_bytes() == TEXT
    piped(monkeypatch, TEXT + b"more")
    assert owned(["-"]) != found[:1]
    assert not list((cache_folder() / "pipes").glob(".*"))


def test_a_named_pipe_is_read_to_its_end(pipe: Path) -> None:
    (kept,) = owned([pipe])
    assert Path(kept).name == "pipe.txt"
    assert Path(kept).read_bytes() == TEXT


def test_a_pipe_handed_over_by_a_shell_is_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, TEXT)
    os.close(writer)
    (kept,) = owned([f"/dev/fd/{reader}"])
    os.close(reader)
    assert Path(kept).read_bytes() == TEXT


@pytest.mark.parametrize(
    ("task", "data", "name"),
    [
        (None, TEXT, "standard-input.txt"),
        ("text", TEXT, "standard-input.txt"),
        ("pairs", b"a\tb\n", "standard-input.tsv"),
        ("pairs", b'{"source": "a"}\n', "standard-input.jsonl"),
        ("numbers", b"x\n1\n", "standard-input.csv"),
    ],
)
def test_what_it_holds_follows_from_the_task(
    monkeypatch: pytest.MonkeyPatch, task: str | None, data: bytes, name: str
) -> None:
    piped(monkeypatch, data)
    assert Path(owned(["-"], task)[0]).name == name


def test_an_empty_pipe_and_a_device_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, b"")
    with pytest.raises(DataError, match=r"standard input: nothing came out of it\."):
        owned(["-"])
    with pytest.raises(DataError, match=r"/dev/zero: is a device, expected a file, a folder or a pipe\."):
        owned(["/dev/zero"])
