"""Planted truth: on a text made by a known chain, the family that matches it comes within 0.01 bits of the truth's own
score, and not below it by more than chance allows."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from runs_by_hand import prepare

from seqwise.api import TrainedRun
from seqwise.data.source import open_text
from seqwise.data.toys import CHAINS, LETTERS, Chain


def truth_bits(chain: Chain, before: str, text: str) -> float:
    """What the chain itself needs for a text that follows another, bits per letter."""
    both = np.array([LETTERS.index(letter) for letter in before + text])
    whole, first = (chain.nats_per_letter(ids) * len(ids) for ids in (both, both[: len(before)]))
    return (whole - first) / len(text) / math.log(2)


@pytest.mark.parametrize(
    ("data", "family", "overrides"),
    [
        ("markov", "ngram", ["model.order=3"]),
        ("hidden-markov", "hmm", ["model.num_states=6", "training.restarts=1"]),
    ],
)
def test_the_family_that_matches_the_truth_finds_it(
    data: str, family: str, overrides: list[str], tmp_path: Path
) -> None:
    list(prepare(data, model=family, out=tmp_path / "run", overrides=overrides).reports())
    parts = open_text(data).parts
    valid, test = ("".join(parts[part].blocks()) for part in ("valid", "test"))
    truth = truth_bits(CHAINS[data](), valid[-500:], test)
    found = TrainedRun(tmp_path / "run").evaluate(split="test").bits_per_char
    assert truth - 0.003 < found < truth + 0.01
