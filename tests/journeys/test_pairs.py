"""From a file of pairs to a model that translates files, as a user would, and what is said where that cannot be."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runs_by_hand import log_without_clock, prepare, stop_after

import seqwise
from seqwise.comparison import compare, plan, verdict
from seqwise.run import Run
from seqwise.training.preparing import resume

TINY = ["model.model_dim=64", "training.batch_tokens=800", "training.learning_rate=0.006"]


def toy_pairs(num: int, seed: int = 0) -> list[tuple[str, str]]:
    """Words, and the same words backwards in capitals."""
    random = np.random.default_rng(seed)
    words = ["".join(random.choice(list("abcd"), size=n)) for n in random.integers(2, 6, size=num)]
    return [(word, word[::-1].upper()) for word in words]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same pairs: one well trained, one hardly."""
    folder = tmp_path_factory.mktemp("pairs")
    file = write_pairs(folder / "pairs.tsv", toy_pairs(1500))
    seqwise.train(file, "seq2seq", out=folder / "good", steps=300, overrides=TINY)
    seqwise.train(file, "transformer", out=folder / "bad", steps=5, overrides=[*TINY, "model.num_heads=2"])
    return folder


def test_pairs_are_recognised_and_learned(world: Path) -> None:
    run = Run.open(world / "good")
    assert (run.config.task, run.config.model_name) == ("pairs", "seq2seq")
    assert run.config.data.length_ratio is not None
    score = seqwise.load(world / "good").evaluate()
    assert score.exact_match > 0.95
    assert (
        "% exact" in (world / "good" / "card.md").read_text()
        or "exact matches" in (world / "good" / "card.md").read_text()
    )


def test_a_file_is_translated_line_by_line_and_an_empty_line_stays_empty(world: Path, terminal: Any) -> None:
    (world / "sources.txt").write_text("abc\n\nddca\nab\n")
    out, _ = terminal.done("predict", world / "good", world / "sources.txt")
    assert out == "CBA\n\nACDD\nBA\n"
    out, _ = terminal.done("predict", world / "good", world / "pairs.tsv", "--method", "greedy")
    pairs = toy_pairs(1500)
    assert len(out.splitlines()) == 1500
    right = sum(line == target for line, (_, target) in zip(out.splitlines(), pairs, strict=True))
    assert right > 1400


def test_standard_input_is_translated(world: Path, terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for argument in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"abc\nda\n")))
        out, _ = terminal.done("predict", world / "good", *argument)
        assert out == "CBA\nAD\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"abc\n\xff\n")))
    code, _, err = terminal.run("predict", world / "good")
    assert code == 2
    assert "standard input: not UTF-8: line 2, byte 0." in err


def test_answers_come_with_scores_others_and_alignments(world: Path, terminal: Any) -> None:
    (world / "one.txt").write_text("abcd\n")
    out, _ = terminal.done("predict", world / "good", world / "one.txt", "--scores")
    score, text = out.rstrip("\n").split("\t")
    assert text == "DCBA"
    assert -0.5 < float(score) <= 0
    out, _ = terminal.done("predict", world / "good", world / "one.txt", "--n-best", "3")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3
    assert rows[0][2] == "DCBA"
    assert len({row[2] for row in rows}) == 3
    assert [float(row[1]) for row in rows] == sorted((float(row[1]) for row in rows), reverse=True)
    out, _ = terminal.done("predict", world / "good", world / "one.txt", "--alignments")
    assert out.rstrip("\n").split("\t")[0] == "DCBA"
    out, _ = terminal.done("predict", world / "good", world / "one.txt", "--json", "--n-best", "2")
    found = json.loads(out)["results"][0]
    assert found["source"] == "abcd"
    assert found["answers"][0]["text"] == "DCBA"
    assert found["alignment"]["target"] == list("DCBA")
    # backwards: the strongest link of each piece is the mirrored one
    strongest = [max(range(4), key=row.__getitem__) for row in found["alignment"]["weights"]]
    assert strongest == [3, 2, 1, 0]


def test_two_runs_are_compared_in_pairs(world: Path, terminal: Any) -> None:
    out, _ = terminal.done("evaluate", world / "bad", world / "good")
    assert f"{world / 'good'} is better than {world / 'bad'} by" in out
    assert out.count("(paired, 95 %:") == 2
    other = write_pairs(world / "other.tsv", toy_pairs(60, seed=5))
    out, _ = terminal.done("evaluate", world / "good", world / "bad", other, "--json")
    scores = json.loads(out)["results"]
    assert [score["pairs"] for score in scores] == [60, 60]
    assert scores[0]["exact_match"] > 0.9 > scores[1]["exact_match"]
    out, _ = terminal.done("evaluate", world / "good", "--search-report")
    assert out.splitlines()[1].split()[:3] == ["beam", "BLEU", "chrF"]
    assert len(out.splitlines()) == 2 + 5


def test_what_does_not_fit_is_told(world: Path, terminal: Any) -> None:
    (world / "poem.txt").write_text("the cat sat on the mat\n" * 50)
    assert "does not go on from a prompt" in terminal.refuses("generate", world / "good", "--prompt", "a")
    assert "no such file" in terminal.refuses("predict", world / "good", world / "nothing.txt")
    assert "beam_width=99 is wider than the vocabulary" in terminal.refuses(
        "predict", world / "good", world / "poem.txt", "--beam-width", "99"
    )
    assert "which lstm does not do" in terminal.refuses("train", world / "pairs.tsv", "--model", "lstm")
    assert "which transformer does not do" in terminal.refuses("train", world / "poem.txt", "--model", "transformer")
    (world / "ragged.tsv").write_text("a\tb\nc\n")
    assert "line 2" in terminal.refuses("train", world / "ragged.tsv", "--model", "seq2seq")
    seqwise.train(world / "poem.txt", "ngram", out=world / "text-run")
    assert "goes with pairs" in terminal.refuses("predict", world / "text-run", "--scores")


@pytest.mark.parametrize("family", ["seq2seq", "transformer"])
def test_long_pairs_are_learned_without_being_asked_for_a_size(family: str, tmp_path: Path) -> None:
    """Longer than any default: the size of the model follows."""
    pairs = [*toy_pairs(200), *(("ab" * length, "BA" * length) for length in range(180, 190))]
    run = seqwise.train(write_pairs(tmp_path / "long.tsv", pairs), family, out=tmp_path / "run", steps=2)
    assert len(run.translate("ab" * 200, max_tokens=5)) <= 5


def test_a_stopped_run_goes_on_to_the_bit(tmp_path: Path) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", toy_pairs(300))
    settings = [*TINY, "training.average_over=3", "training.evaluate_every=5", "model.scheduled_sampling=30.0"]
    whole = prepare(file, model="seq2seq", out=tmp_path / "whole", steps=30, overrides=settings)
    assert len(list(whole.reports())) > 0
    stopped = prepare(file, model="seq2seq", out=tmp_path / "stopped", steps=30, overrides=settings)
    list(stopped.reports(wants_stop=stop_after(12)))
    assert stopped.is_interrupted
    for _ in resume(tmp_path / "stopped").reports():
        pass
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert weights[0] == weights[1]
    assert log_without_clock(tmp_path / "whole") == log_without_clock(tmp_path / "stopped")


def test_a_comparison_of_pairs_ranks_each_attention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_pairs(tmp_path / "pairs.tsv", toy_pairs(400))
    monkeypatch.setattr(plan, "PLANNED_UPDATES", 0)  # nobody is left out, however slow this machine is
    monkeypatch.setattr(verdict, "MIN_UPDATES", 0)
    monkeypatch.setattr(compare, "MAX_TIMING", 10.0)
    monkeypatch.setattr(plan, "LADDER_SHARE", 0.2)
    monkeypatch.setattr(plan, "STILL_IMPROVING", 2.0)  # no finals
    found = seqwise.compare(file, minutes=1.0, out=tmp_path / "compared", models=["seq2seq-none", "seq2seq-general"])
    assert {entry.name for entry in found.ladder} == {"seq2seq-none", "seq2seq-general"}
    assert found.metric.name == "chrF"
    for entry in found.entries:
        assert entry.test is not None
        assert 0 <= entry.test.low <= entry.test.value <= entry.test.high <= 100
        assert 0 <= entry.more["exact_match"] <= 1
        assert len(entry.samples) == 5
    candidates = [entry.valid for entry in found.ladder if not entry.not_trained]
    assert candidates == sorted(candidates, reverse=True)  # type: ignore[type-var]
    page = (tmp_path / "compared" / "report.html").read_text()
    assert "Higher is better: chrF" in page
    assert "What each model makes of the same sources" in page


def test_a_run_is_scored_on_its_own_columns(terminal: Any) -> None:
    """A model from words to capitals, on a table whose capitals come first."""
    rows = [(target, source) for source, target in toy_pairs(400)]
    write_pairs(Path("pairs.tsv"), [("capitals", "words"), *rows])
    write_pairs(Path("test.tsv"), [("capitals", "words"), *rows[:40]])
    write_pairs(Path("plain.tsv"), rows[:40])
    settings = [part for setting in TINY for part in ("--set", setting)]
    asked = ["--columns", "words,capitals", "--model", "seq2seq", "--steps", "30", "--out", "run"]
    terminal.done("train", "pairs.tsv", *asked, *settings)
    run = seqwise.load("run")
    score = run.evaluate("test.tsv")
    assert (score.sources, score.references) == ([source for _, source in rows[:40]], [t for t, _ in rows[:40]])
    expected = "".join(f"{answer.text}\n" for answer in run.answers(source for _, source in rows[:40]))
    assert terminal.done("predict", "run", "test.tsv")[0] == expected
    told = terminal.refuses("evaluate", "run", "plain.tsv")
    assert 'plain.tsv: the first line names no column "words".' in told


def test_pairs_come_out_of_a_pipe(world: Path, terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_pairs(world / "other.tsv", toy_pairs(30, seed=7))
    expected, _ = terminal.done("evaluate", world / "good", file, "--json")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes())))
    assert terminal.done("evaluate", world / "good", "-", "--json")[0] == expected
