"""Progress ends where its work ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import seqwise
from seqwise.cli import progress
from seqwise.cli.progress import display


def test_what_was_begun_is_told_when_it_is_done(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with display() as shown:
        for clock[0], done in ((100.0, 10), (101.0, 50), (106.0, 90), (107.0, 100), (107.5, 100)):
            shown.prepare("translating", done, 100)
        shown.prepare("quick", 3, 3)  # as it was never told that it began
    assert capsys.readouterr().err.splitlines() == [
        f"translating: {done} of 100" for done in (10, 90, 100)
    ]  # fmt: skip


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is told."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)


def last(lines: list[str], what: str) -> tuple[int, int]:
    done, total = re.findall(r"[\d,]+", next(line for line in reversed(lines) if line.startswith(what)))[-2:]
    return int(done.replace(",", "")), int(total.replace(",", ""))


def test_encoding_ends_with_all_of_the_text(terminal: Any, tmp_path: Path, always: None) -> None:
    (tmp_path / "cats.txt").write_text("the cät sat\r\non the mat\n" * 3000)
    _, err = terminal.done("train", "cats.txt", "--model", "ngram", "--out", "cats")
    for part in ("train", "valid", "test"):
        done, total = last(err.splitlines(), f"encoding {part}:")
        assert done == total


def test_translating_ends_with_all_sources(tmp_path: Path) -> None:
    """Where some are empty, too."""
    pairs = [(f"{a}{b}", f"{b}{a}") for a in "abcd" for b in "efgh"]
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    overrides = ["model.model_dim=8"]
    run = seqwise.train(tmp_path / "pairs.tsv", "seq2seq", out=tmp_path / "run", steps=1, overrides=overrides)
    told: list[int] = []
    from seqwise.decoding.translate import translate
    from seqwise.goals.sequence import search_settings

    sources = ["ae", "", "bf", " "]
    search = search_settings(run.run.schema, method="greedy", max_tokens=3)
    list(translate(run.model, run.run.schema, sources, search, length_ratio=2.0, on_progress=told.append))
    assert sum(told) == len(sources)
