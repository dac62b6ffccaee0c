"""Built-in corpora: always there, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqwise.data.builtin import BUILTIN, builtin_file
from seqwise.data.source import open_text
from seqwise.errors import DataError


@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_corpus_is_a_text_of_some_size(name: str) -> None:
    data = open_text(name)
    assert data.name == name
    assert sum(data.characters.values()) > 100_000
    assert data.lines > 1000 or "markov" in name  # a chain is one line
    assert list(data.parts) == ["train", "valid", "test"]


def test_there_is_prose_and_there_is_code() -> None:
    assert "assignment" in builtin_file("python-reference").read_text(encoding="utf-8")
    assert "import os" in builtin_file("python-source").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BUILTIN)
def test_a_built_in_corpus_is_written_once_and_stays_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = builtin_file(name)
    content, written = first.read_bytes(), first.stat().st_mtime_ns
    assert builtin_file(name) == first
    assert first.stat().st_mtime_ns == written
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path))
    again = builtin_file(name)
    assert again != first
    assert again.read_bytes() == content
    assert [path.name for path in (tmp_path / "builtin").iterdir()] == [first.name]


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "file"))  # a file, where a folder should be
    with pytest.raises(DataError, match="SEQWISE_CACHE"):
        open_text("python-reference")
