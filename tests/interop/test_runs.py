"""Runs go out to ARPA files and come back in, from the command line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from runs_by_hand import prepare

from seqwise.api import TrainedRun
from seqwise.errors import ConfigError, DataError
from seqwise.interop.runs import export_run, import_run
from seqwise.run import Run

TEXT = "the cat sat on the mat\nthe dog sat on the log\na cat and a dog sat\n" * 20


@pytest.fixture
def counts(tmp_path: Path) -> Run:
    (tmp_path / "cats.txt").write_text(TEXT)
    overrides = ["model.order=3", "model.across_lines=false"]
    session = prepare(
        tmp_path / "cats.txt", model="ngram", out=tmp_path / "counts", tokenizer="word", overrides=overrides
    )
    list(session.reports())
    return session.run


def test_a_model_goes_out_and_comes_back_with_the_same_score(counts: Run, tmp_path: Path) -> None:
    export_run(counts, "arpa", tmp_path / "counts.arpa")
    import_run("arpa", tmp_path / "counts.arpa", tmp_path / "back")
    before, after = (TrainedRun(p).evaluate(tmp_path / "cats.txt") for p in (counts.path, tmp_path / "back"))
    assert after.nats_per_token == pytest.approx(before.nats_per_token, abs=1e-6)
    assert TrainedRun(tmp_path / "back").generate("the ", max_tokens=5, seed=1).startswith("the ")


def test_an_imported_run_has_no_text_of_its_own(counts: Run, tmp_path: Path) -> None:
    export_run(counts, "arpa", tmp_path / "counts.arpa")
    import_run("arpa", tmp_path / "counts.arpa", tmp_path / "back")
    with pytest.raises(DataError, match=r"imported from counts\.arpa.*Name a file: seqwise"):
        TrainedRun(tmp_path / "back").evaluate()


def test_mistakes_are_told_and_nothing_is_written(counts: Run, tmp_path: Path) -> None:
    (tmp_path / "there.arpa").write_text("here already")
    with pytest.raises(ConfigError, match=r"there\.arpa exists already"):
        export_run(counts, "arpa", tmp_path / "there.arpa")
    assert (tmp_path / "there.arpa").read_text() == "here already"
    with pytest.raises(ConfigError, match=r'unknown format "arpas"\. Did you mean "arpa"\?'):
        export_run(counts, "arpas", tmp_path / "x")
    with pytest.raises(DataError):
        import_run("arpa", tmp_path / "there.arpa", tmp_path / "new")
    with pytest.raises(ConfigError, match="exists already"):
        import_run("arpa", tmp_path / "there.arpa", counts.path)
    assert not (tmp_path / "new").exists()


def test_a_family_that_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cats.txt").write_text(TEXT)
    session = prepare(
        tmp_path / "cats.txt", model="lstm", out=tmp_path / "lstm", steps=1, overrides=["model.model_dim=4"]
    )
    list(session.reports())
    with pytest.raises(ConfigError, match="is a lstm model; a file of arpa holds ngram"):
        export_run(session.run, "arpa", tmp_path / "lstm.arpa")
    assert not (tmp_path / "lstm.arpa").exists()


def test_the_default_model_of_a_text_goes_out_with_a_note(tmp_path: Path, terminal: Any) -> None:
    (tmp_path / "cats.txt").write_text(TEXT)
    terminal.done("train", "cats.txt", "--model", "ngram", "--out", "chars")
    out, err = terminal.done("export", "chars", "chars.arpa")
    assert "chars.arpa: written" in out
    assert "note: chars reads across lines, and chars.arpa holds sentences: it is the same model, line by line" in err
    terminal.done("import", "arpa", "chars.arpa", "--out", "back")


def test_byte_pairs_are_told_what_to_train_instead(tmp_path: Path, terminal: Any) -> None:
    (tmp_path / "my cats.txt").write_text(TEXT)
    terminal.done("train", "my cats.txt", "--model", "ngram", "--tokenizer", "bpe", "--out", "pairs")
    told = terminal.refuses("export", "pairs", "pairs.arpa")
    command = shlex.split(told[told.index("seqwise train") :])
    assert command[2:] == [
        str(tmp_path / "my cats.txt"),
        "--model",
        "ngram",
        "--tokenizer",
        "word",
        "--out",
        "pairs-words",
    ]
    terminal.done(*command[1:])
    terminal.done("export", "pairs-words", "words.arpa")
