"""Pieces of words in every task that reads text: trained, scored, saved, and asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqwise
from seqwise.api import TrainedRun
from seqwise.data.schema import TokenSpec
from seqwise.inspection.reading import pieces_of
from seqwise.text import special_of
from seqwise.text.wordpiece import WordPieceTokenizer

WORDS = ["the", "cat", "sat", "on", "mat", "unhappily", "running", "rat"]
SMALL = {"ngram": [], "hmm": [], "lstm": ["model.model_dim=16", "training.threads=1"]}


def rows_of(num: int, length: int) -> list[list[str]]:
    random = np.random.default_rng(0)
    return [[WORDS[place] for place in random.integers(len(WORDS), size=length)] for _ in range(num)]


def write_text(folder: Path) -> Path:
    path = folder / "poems.txt"
    path.write_text("".join(" ".join(row).capitalize() + ".\n" for row in rows_of(200, 6)))
    return path


def write_labels(folder: Path) -> Path:
    path = folder / "rows.csv"
    lines = [f"{' '.join(row)},{'yes' if 'cat' in row else 'no'}\n" for row in rows_of(200, 5)]
    path.write_text("text,label\n" + "".join(lines))
    return path


def write_pairs(folder: Path) -> Path:
    path = folder / "twice.csv"
    lines = [
        f"{' '.join(row[:4])},{' '.join(row[4:])},{'yes' if row[0] == 'cat' else 'no'}\n" for row in rows_of(200, 7)
    ]
    path.write_text("text,text2,label\n" + "".join(lines))
    return path


def write_tags(folder: Path) -> Path:
    path = folder / "tagged.conll"
    rows = ["".join(f"{word}\t{'N' if word in ('cat', 'rat') else 'O'}\n" for word in row) for row in rows_of(120, 5)]
    path.write_text("\n".join(rows))
    return path


def trained(source: Path, model: str, **options: Any) -> TrainedRun:
    """With so small a vocabulary that words are cut."""
    overrides = ["tokenizer.vocab_size=50", *SMALL[model]]
    limits = {} if model == "ngram" else {"steps": 40}
    out = source.with_name(f"run-{model}")
    seqwise.train(source, model, tokenizer="wordpiece", out=out, overrides=overrides, **limits, **options)
    return seqwise.load(out)


@pytest.mark.parametrize("model", ["ngram", "lstm"])
def test_text(model: str, tmp_path: Path) -> None:
    run = trained(write_text(tmp_path), model)
    assert isinstance(run.tokenizer, WordPieceTokenizer)
    assert run.tokenizer.vocab_size == 50
    assert 1 < run.evaluate().perplexity < 40  # of 50 pieces
    assert run.generate("The cat", max_tokens=5).startswith("The cat")
    ids = run.tokenizer.encode("the unhappily\nrat").tolist()
    assert "".join(pieces_of(run.tokenizer, ids)) == "the unhappily \nrat "


@pytest.mark.parametrize("model", ["ngram", "lstm"])
@pytest.mark.parametrize("write", [write_labels, write_pairs])
def test_labels(model: str, write: Any, tmp_path: Path) -> None:
    run = trained(write(tmp_path), model)
    spec = run.run.schema.input("tokens", TokenSpec)
    assert spec.special == special_of(spec.tokenizer)
    assert spec.begin != spec.boundary
    texts = ("the cat sat", "rat on mat")[: spec.num_texts]
    (found,) = run.answer_texts([texts])
    assert found["label"] in ("yes", "no")


@pytest.mark.parametrize("model", ["hmm", "lstm"])
def test_tags_are_read_at_the_first_piece_of_each_word(model: str, tmp_path: Path) -> None:
    run = trained(write_tags(tmp_path), model)
    spec = run.run.schema.input("tokens", TokenSpec)
    ids, steps = spec.encode_words(["the", "unhappily", "rat"])
    assert len(ids) > 5
    assert [spec.tokenizer.starts_word(token) for token in ids[steps]] == [True] * 3
    (found,) = run.answer_texts(["the unhappily rat"])
    assert len(found["tags"]) == 3, found
    if model == "hmm":  # it counts, so that words it has seen are known
        assert found["tags"] == ["O", "O", "N"]


def test_labels_go_on_from_a_text_run_with_its_own_boundary(tmp_path: Path) -> None:
    """What was learned knows no [CLS]: rows begin as lines do."""
    run = trained(write_text(tmp_path), "lstm")
    labels = write_labels(tmp_path)
    start = {"start_from": run.path, "steps": 3, "overrides": ["training.threads=1"]}
    seqwise.train(labels, "lstm", out=tmp_path / "tuned", **start)
    spec = seqwise.load(tmp_path / "tuned").run.schema.input("tokens", TokenSpec)
    assert spec.special == {}
    assert spec.begin == spec.boundary
