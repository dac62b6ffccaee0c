"""Several texts as one: parts of one name together, documents parted by blank lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqwise.data import several_texts
from seqwise.data.several_texts import join_texts
from seqwise.data.source import open_text
from seqwise.errors import ConfigError
from seqwise.settings import DataConfig
from seqwise.tasks.text import TextTask


def text_of(folder: Path, name: str, content: dict[str, str]) -> Path:
    (folder / name).mkdir()
    for part, text in content.items():
        (folder / name / f"{part}.txt").write_text(text)
    return folder / name


def test_parts_are_joined_and_every_document_has_a_blank_line_behind_it(tmp_path: Path) -> None:
    lines = text_of(tmp_path, "lines", {"train": "one\ntwo\n", "valid": "three\n", "test": "four\n"})
    pages = text_of(tmp_path, "pages", {"train": "a\nb\n \nc\n", "valid": "d\n"})
    joined = join_texts([open_text(lines), open_text(pages)])
    assert "".join(joined.parts["train"].blocks()) == "one\n\ntwo\n\na\nb\n \nc\n\n"
    assert "".join(joined.parts["valid"].blocks()) == "three\n\nd\n\n"
    assert "".join(joined.parts["test"].blocks()) == "four\n\n"
    assert joined.name == "lines and pages"


def test_they_are_written_once_and_another_text_is_another_file(tmp_path: Path) -> None:
    one = open_text(text_of(tmp_path, "one", {"train": "one\n", "valid": "two\n"}))
    other = open_text(text_of(tmp_path, "other", {"train": "three\n", "valid": "four\n"}))
    first, again, third = join_texts([one, other]), join_texts([one, other]), join_texts([other, one])
    assert first.fingerprint == again.fingerprint != third.fingerprint
    assert first.parts["train"].files == again.parts["train"].files
    assert first.parts["train"].files[0].parent.name == several_texts.FOLDER


def test_names_stand_beside_files(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("more text to read\n" * 40)
    found = TextTask().open(DataConfig(source=["python-reference", str(tmp_path / "more.txt")]))
    assert found.name == "python-reference and more.txt"
    assert "".join(found.parts["train"].blocks()).endswith("more text to read\n\n")
    with pytest.raises(ConfigError, match="bring their own parts; drop --valid, --test and --split-at"):
        TextTask().open(DataConfig(source=["python-reference", "markov:2"], split="90/10"))
