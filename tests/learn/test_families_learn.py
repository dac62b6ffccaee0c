"""Each family learns a text whose entropy is known, in seconds, and comes near it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs_by_hand import prepare

import seqwise
from seqwise.models import MODELS
from seqwise.training.report import Report

SETTINGS = {
    "ngram": ["model.order=3"],
    "hmm": ["model.num_states=8", "training.restarts=3"],
    "window": ["model.window=4", "model.embed_dim=8", "model.model_dim=64"],
    "conv": ["model.model_dim=32", "model.num_layers=3"],
    "rnn": ["model.model_dim=96", "training.learning_rate=0.003", "training.context=32"],
    "gru": ["model.model_dim=96", "training.learning_rate=0.01", "training.context=32"],
    "lstm": ["model.model_dim=96", "training.learning_rate=0.01", "training.context=32"],
    "elmo": [
        "tokenizer.kind=char",
        "model.model_dim=24",
        "model.memory_dim=48",
        "training.learning_rate=0.01",
        "training.context=32",
    ],
    "gpt": ["model.model_dim=32", "model.num_layers=2", "model.num_heads=2", "model.context=32", "training.context=32"],
}


def markov_text(length: int, seed: int) -> tuple[str, float]:
    """An order-1 chain over six letters, and its entropy rate in nats."""
    random = np.random.default_rng(seed)
    chain = random.dirichlet(np.full(6, 0.3), size=6)
    state, letters = 0, []
    for _ in range(length):
        state = random.choice(6, p=chain[state])
        letters.append("abcdef"[state])
    stationary = np.linalg.matrix_power(chain, 1000)[0]
    entropy = -(stationary[:, None] * chain * np.log(np.maximum(chain, 1e-300))).sum()
    return "".join(letters), float(entropy)


ELSEWHERE = {"word2vec": "looks at both sides of a word, not at what follows: tests/models/test_word2vec.py"}


def test_every_family_that_reads_text_is_here() -> None:
    assert set(SETTINGS) | set(ELSEWHERE) == {name for name, row in MODELS.items() if "next_token" in row.learns}


@pytest.mark.parametrize("family", list(SETTINGS))
def test_a_markov_chain_is_learned_to_its_entropy(family: str, tmp_path: Path) -> None:
    text, entropy = markov_text(40_000, seed=3)
    (tmp_path / "chain.txt").write_text(text)
    budget = {"steps": 200} if MODELS[family].learns_by == "gradients" else {}
    session = prepare(tmp_path / "chain.txt", model=family, out=tmp_path / "run", overrides=SETTINGS[family], **budget)
    reports: list[Report] = []
    score: Any = session.train(reports.append)
    assert len(reports) >= 1
    assert score is session.score
    assert entropy > 0.5
    assert score.nats_per_token < entropy + 0.05
    assert score.nats_per_token > entropy - 0.05  # below the entropy would be a leak


@pytest.mark.parametrize(("family", "steps"), [("lstm", 800), ("gpt", 600)])
def test_copying_needs_memory_and_is_learned(family: str, steps: int, tmp_path: Path) -> None:
    """Lines 'abc|abc': three letters cost log 8 each, the other five characters nothing."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("abcdefgh"), size=3)) for _ in range(6000)]
    (tmp_path / "copy.txt").write_text("".join(f"{word}|{word}\n" for word in words))
    overrides = [*SETTINGS[family], "training.batch_size=32"]
    run = seqwise.train(tmp_path / "copy.txt", family, out=tmp_path / "run", overrides=overrides, steps=steps)
    # windows overlap, so that nearly every token sees the whole line it stands in
    score = run.evaluate(split="valid", context=32, stride=8)
    floor = 3 * math.log(8) / 8
    assert floor - 0.05 < score.nats_per_token < floor + 0.1
    text = run.generate("abc|", max_tokens=3, method="greedy")
    assert text == "abc|abc"
