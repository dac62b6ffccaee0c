"""Rows of text that are written again, from the command to a classifier that starts from it; and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Terminal
from runs_by_hand import log_without_clock, prepare, stop_after

from seqwise.api import TrainedRun
from seqwise.data.row_store import build_row_store
from seqwise.data.schema import TokenSpec
from seqwise.errors import ConfigError, DataError
from seqwise.evaluation.reconstruction import evaluate_reconstruction
from seqwise.inspection.inspect import inspect_run
from seqwise.inspection.page import write_inspection
from seqwise.run import Run
from seqwise.text import Tokenizer
from seqwise.training.preparing import resume

SMALL = ["model.model_dim=12", "training.batch_tokens=200", "training.num_samples=1"]
ADJECTIVES = {"good": ["fine", "lovely", "funny"], "bad": ["dull", "weak", "awful"]}


def write_reviews(path: Path, num: int = 120) -> Path:
    rows = []
    for n in range(num):
        label = ("good", "bad")[n % 2]
        words = [
            "the",
            ("film", "plot", "cast")[n % 3],
            "was",
            ADJECTIVES[label][n % 5 % 3],
            *["indeed"] * (n % 4),
            f"x{n}",
        ]
        rows.append(f"{' '.join(words)},{label}")
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


def sessions(source: Path, out: Path, *settings: str, **asked: Any) -> Any:
    given = {"model": "lstm", "task": "reconstruct", "steps": 8, **asked}
    return prepare(source, out=out, overrides=[*SMALL, *settings], **given)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    folder = tmp_path_factory.mktemp("base")
    sessions(write_reviews(folder / "reviews.csv"), folder / "sa").train()
    return TrainedRun(folder / "sa")


def source_of(run: TrainedRun) -> Path:
    return run.path.parent / "reviews.csv"


def tokenizer_of(run: Run) -> Tokenizer:
    return run.schema.input("tokens", TokenSpec).tokenizer


# --- a start ----------------------------------------------------------------------------------------------------------


def test_the_body_and_the_tokenizer_arrive_in_the_classifier(base: TrainedRun, tmp_path: Path) -> None:
    told: list[str] = []
    asked = {"model": "lstm", "task": "label", "steps": 3, "start_from": base.path, "tell": told.append}
    session = prepare(source_of(base), out=tmp_path / "label", **asked)
    model = session.run.build_model()
    assert session.run.load_initial_weights(model)
    before, now = base.model.state_dict(), model.state_dict()
    body = [name for name in now if name.startswith("body.")]
    assert body == [name for name in before if name.startswith("body.")]
    assert all(torch.equal(before[name], now[name]) for name in body)
    assert any(sentence.startswith("started from scratch: head.label") for sentence in told)
    assert tokenizer_of(session.run).to_dict() == tokenizer_of(base.run).to_dict()
    session.train()
    assert TrainedRun(tmp_path / "label").answer_texts(["the film was fine"])[0]["label"] in ("good", "bad")


def test_it_goes_on_from_a_language_model_and_to_one(base: TrainedRun, tmp_path: Path) -> None:
    asked = {"model": "lstm", "steps": 2, "start_from": base.path}
    to_text = prepare(source_of(base), out=tmp_path / "text", task="text", **asked)
    assert to_text.run.build_model().carries_state
    to_text.train()
    asked["start_from"] = tmp_path / "text"
    back = prepare(source_of(base), out=tmp_path / "rows", task="reconstruct", **asked)
    assert not back.run.build_model().carries_state
    back.train()


def test_rows_are_the_texts_of_the_parts_that_labels_are_learned_from(base: TrainedRun, tmp_path: Path) -> None:
    """So that what is tested on later was not read before."""
    labelled = prepare(source_of(base), out=tmp_path / "label", model="lstm", task="label", steps=1)
    rows = sessions(source_of(base), tmp_path / "rows")
    assert tokenizer_of(rows.run).to_dict() == tokenizer_of(labelled.run).to_dict()
    for part, store in rows.stores.items():
        assert store.rows.edges.tolist() == labelled.stores[part].tokens.edges.tolist()
        assert store.rows.ids.tolist() == labelled.stores[part].tokens.ids.tolist()


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["lstm", "gru"])
def test_a_run_that_was_stopped_ends_as_the_one_never_stopped(model: str, tmp_path: Path) -> None:
    source = write_reviews(tmp_path / "reviews.csv")
    settings = ["training.report_every=1", "training.evaluate_every=2", "model.dropout=0.2", "training.threads=1"]
    sessions(source, tmp_path / "whole", *settings, model=model).train()
    session = sessions(source, tmp_path / "stopped", *settings, model=model)
    for number in (2, 3):
        session.train(wants_stop=stop_after(number))
        assert session.is_interrupted
        torch.manual_seed(123)
        session = resume(tmp_path / "stopped")
    session.train()
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert log_without_clock(stopped) == log_without_clock(whole)
    assert (stopped / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_micro_batches_learn_the_same(tmp_path: Path) -> None:
    source = write_reviews(tmp_path / "reviews.csv")
    losses = []
    for parts in (1, 3):
        out, found = tmp_path / str(parts), []
        sessions(source, out, f"training.micro_batches={parts}", "training.report_every=1").train(found.append)
        losses.append([report.loss for report in found])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize("row_tokens", [3, None])
def test_long_lines_are_cut_into_rows(row_tokens: int | None, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three four five six seven\n\n \neight\n" * 40)
    told: list[str] = []
    settings = [] if row_tokens is None else [f"data.row_tokens={row_tokens}"]
    session = sessions(text, tmp_path / "run", *settings, tell=told.append)
    longest = row_tokens or 7
    assert session.stores["train"].rows.lengths.max() == longest + 2
    assert session.run.config.data.row_tokens == (row_tokens or 100)
    assert any(f"a line of more than {row_tokens or 100} tokens is cut" in sentence for sentence in told)
    assert session.run.config.training.context == 2 * longest + 2


def test_a_text_without_lines_becomes_windows(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(" ".join(f"w{n % 17}" for n in range(4000)))
    session = sessions(text, tmp_path / "run", "data.row_tokens=20")
    lengths = session.stores["train"].rows.lengths - 2
    assert len(lengths) == math.ceil(lengths.sum() / 20)
    assert (lengths[:-1] == 20).all()


# --- what it is told by -----------------------------------------------------------------------------------------------


def test_the_score_is_of_rows_written_again_and_named_so(base: TrainedRun, terminal: Terminal) -> None:
    out, _ = terminal.done("evaluate", base.path)
    score = base.evaluate()
    assert f"rows written again at {score.nats_per_token:.4f}" in out
    assert "no likelihood of the text" in out
    assert "perplexity" not in out
    assert "bits" not in out
    (found,) = json.loads(terminal.done("evaluate", base.path, "--json")[0])["results"]
    assert found["reconstruction_nats_per_token"] == pytest.approx(score.nats_per_token)
    assert not {"nats_per_token", "perplexity", "bits_per_char"} & found.keys()
    card = (base.path / "card.md").read_text()
    assert "| nats per token, written again |" in card
    assert f"seqwise train DATA --from {base.path.name}" in card


def test_it_is_not_set_beside_a_likelihood(base: TrainedRun, terminal: Terminal, tmp_path: Path) -> None:
    prepare(source_of(base), out=tmp_path / "text", task="text", model="lstm", steps=2, overrides=SMALL[:1]).train()
    assert "cannot be compared" in terminal.refuses("evaluate", base.path, tmp_path / "text")


def test_two_of_them_are_compared_in_pairs(base: TrainedRun, terminal: Terminal, tmp_path: Path) -> None:
    sessions(source_of(base), tmp_path / "other", model="gru").train()
    out, _ = terminal.done("evaluate", base.path, tmp_path / "other")
    assert out.count("rows written again at") == 2
    assert "nats per token of rows that are written again" in out


def test_rows_are_written_line_by_line(base: TrainedRun, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("the film was fine\nthe plot\n" * 20)
    written = list(base.predict(tmp_path / "new.txt"))
    assert len(written) == 40
    assert written[:2] * 20 == written  # whatever stands beside them
    assert all(len(line.split()) <= 5 for line in written)


def test_the_log_shows_a_row_and_what_becomes_of_it(base: TrainedRun) -> None:
    samples = [report["sample"] for report in base.run.read_log() if report.get("sample")]
    assert samples
    assert all(" -> " in sample for sample in samples)


def test_both_copies_are_looked_at_and_the_second_has_a_cost(base: TrainedRun) -> None:
    found = inspect_run(base, "the film was fine")
    words = ["the", "film", "was", "fine"]
    pieces = [piece.strip() for piece in found.reading.pieces]
    assert pieces == ["⟨start⟩", *words, "⟨end⟩", *words, "⟨end⟩"]
    assert [math.isnan(bits) for bits in found.reading.bits] == [True] * 6 + [False] * 5
    assert [bool(options) for options in found.reading.expected] == [False] * 5 + [True] * 5
    store = build_row_store(["the film was fine"], tokenizer_of(base.run), 10)
    nats = float(evaluate_reconstruction(base.model, store).nats[0])
    assert sum(found.reading.bits[6:]) * math.log(2) == pytest.approx(nats, rel=1e-5)
    assert found.flow
    assert found.search is not None
    assert "memory" in found.absent
    assert "written again" in write_inspection([found])


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["ngram", "hmm", "conv", "gpt", "elmo", "seq2seq"])
def test_families_that_cannot_are_refused_with_those_that_can(model: str, tmp_path: Path) -> None:
    source = write_reviews(tmp_path / "reviews.csv")
    with pytest.raises(ConfigError, match=rf"which {model} does not do. Families that do: rnn, gru, lstm\."):
        prepare(source, model=model, out=tmp_path / "run", task="reconstruct")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.bidirectional=true", "model.bidirectional reads what is to be predicted"),
        ("data.row_tokens=0", "data.row_tokens = 0 should be at least 1"),
        (
            "training.train_examples=5",
            "training.train_examples goes with pictures, and texts that have labels, tags or questions",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(setting: str, message: str, tmp_path: Path) -> None:
    source = write_reviews(tmp_path / "reviews.csv")
    with pytest.raises(ConfigError, match=message):
        sessions(source, tmp_path / "run", setting)
    assert not (tmp_path / "run").exists()


def test_a_part_without_rows_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 20)
    (tmp_path / "valid.txt").write_text("\n  \n\n")
    with pytest.raises(DataError, match="the valid part has no row with something to write"):
        sessions(tmp_path / "text.txt", tmp_path / "run", valid=tmp_path / "valid.txt")


def test_nothing_is_continued_and_nothing_ranked(base: TrainedRun, terminal: Terminal) -> None:
    assert "does not go on from a prompt" in terminal.refuses("generate", base.path, "--prompt", "the")
    told = terminal.refuses("compare", source_of(base), "--task", "reconstruct", "--minutes", "1")
    assert "learns a start for other models" in told
    assert "Tasks that are compared: text, numbers, label, tags, pairs, span, choice, " in told
