"""Families of pairs learn to turn words around, and dates from English into French; attention shows where they look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqwise
from seqwise.data.pair_toys import date_pairs
from seqwise.decoding.translate import Alignment
from seqwise.models import MODELS

SETTINGS: dict[str, list[str]] = {
    "seq2seq": ["model.model_dim=48"],
    "transformer": ["model.model_dim=48", "model.num_layers=2", "model.num_heads=4"],
}
COMMON = ["training.batch_tokens=500", "training.learning_rate=0.008", "training.warmup_steps=30"]


def reversed_words(num: int, longest: int, seed: int) -> list[tuple[str, str]]:
    random = np.random.default_rng(seed)
    words = {"".join(random.choice(list("abcdef"), size=n)) for n in random.integers(3, longest + 1, size=num)}
    return [(word, word[::-1]) for word in sorted(words)]


def trained(folder: Path, family: str, pairs: list[tuple[str, str]], steps: int, *settings: str) -> Any:
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    overrides = [*SETTINGS[family], *COMMON, *settings]
    return seqwise.train(folder / "pairs.tsv", family, out=folder / "run", steps=steps, overrides=overrides)


def test_every_family_of_pairs_is_here() -> None:
    assert set(SETTINGS) == {name for name, row in MODELS.items() if "sequence" in row.learns}


@pytest.mark.parametrize(
    ("family", "steps", "settings"),
    [
        ("seq2seq", 300, ["model.attention=general"]),
        ("seq2seq", 300, ["model.attention=additive", "model.cell=gru"]),
        ("transformer", 650, ["training.learning_rate=0.003"]),
    ],
)
def test_words_are_turned_around(family: str, steps: int, settings: list[str], tmp_path: Path) -> None:
    run = trained(tmp_path, family, reversed_words(2000, 5, seed=0), steps, *settings)
    assert run.evaluate().exact_match >= 0.9


def test_without_attention_long_words_suffer(tmp_path: Path) -> None:
    """The same steps; what passes through one state of fixed size is lost, what can be looked up is not."""
    found = {}
    for attention in ("none", "general"):
        (tmp_path / attention).mkdir()
        pairs = reversed_words(2000, 10, seed=1)
        run = trained(tmp_path / attention, "seq2seq", pairs, 220, f"model.attention={attention}")
        score = run.evaluate()
        is_long = np.array([len(source) > 7 for source in score.sources])
        right = np.array([a == b for a, b in zip(score.hypotheses, score.references, strict=True)])
        found[attention] = float(right[is_long].mean())
    assert found["general"] > found["none"] + 0.2


def mass(alignment: Alignment, target: slice, source: slice) -> float:
    """The share of attention that some target characters give to some source characters."""
    return float(alignment.weights[target, source].sum() / alignment.weights[target].sum())


def test_the_alignment_of_a_date_follows_the_known_order(tmp_path: Path) -> None:
    """English says month, day, year; French says day, month, year: the decoder looks where each part stands."""
    run = seqwise.train(
        "dates:en-fr:3000", "seq2seq", out=tmp_path / "run", steps=250, overrides=[*SETTINGS["seq2seq"], *COMMON]
    )
    dates = date_pairs("dates:en-fr:3000")["test"][:60]
    answers = list(run.answers([source.text for source, _ in dates], with_alignments=True))
    right = [
        (answer, source, target)
        for answer, (source, target) in zip(answers, dates, strict=True)
        if answer.text == target.text
    ]
    assert len(right) >= 15
    for part in ("day", "month", "year"):
        own = np.mean([mass(a.alignment, t.places[part], s.places[part]) for a, s, t in right])  # type: ignore[arg-type]
        for other in {"day", "month", "year"} - {part}:
            crossed = np.mean([mass(a.alignment, t.places[part], s.places[other]) for a, s, t in right])  # type: ignore[arg-type]
            assert own > crossed, (part, other)
