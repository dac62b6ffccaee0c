"""On a text made by a known chain, the comparison names the family that made it, near the chain's own score."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from seqwise.comparison import plan
from seqwise.comparison.compare import run_comparison
from seqwise.comparison.request import ComparisonRequest
from seqwise.data.source import open_text
from seqwise.data.toys import CHAINS, LETTERS


@pytest.mark.parametrize(("data", "family"), [("markov", "ngram"), ("hidden-markov", "hmm")])
def test_the_family_that_made_the_text_wins(
    data: str, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "LADDER_SHARE", 0.3)  # about 8 s each, and much time in reserve on a slow machine
    monkeypatch.setattr(plan, "STILL_IMPROVING", 2.0)  # no finals
    settings = ComparisonRequest(data, minutes=1.5, models=["ngram", "hmm", "rnn"]).settings()
    found = run_comparison(tmp_path / "compare", settings)
    assert found.winner is not None
    winner = found.entry(found.winner)
    assert winner.family == family
    assert winner.test is not None
    parts = open_text(data).parts
    valid, test = ("".join(parts[part].blocks()) for part in ("valid", "test"))
    both = np.array([LETTERS.index(letter) for letter in valid[-500:] + test])
    chain = CHAINS[data]()
    whole, first = (chain.nats_per_letter(ids) * len(ids) for ids in (both, both[:500]))
    truth = (whole - first) / len(test) / math.log(2)
    assert truth - 0.003 < winner.test.value < truth + 0.01
