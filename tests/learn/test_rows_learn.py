"""Families with a state learn to write short rows again, which a model that had not read them could not."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import seqwise
from seqwise.data.schema import RECONSTRUCTION
from seqwise.models import MODELS

STEPS = {"rnn": 250, "gru": 250, "lstm": 200}
SETTINGS = ["model.model_dim=64", "training.batch_tokens=256", "training.learning_rate=0.02", "training.num_samples=2"]


def test_every_family_that_does_it_is_here() -> None:
    assert set(STEPS) == {name for name, row in MODELS.items() if RECONSTRUCTION in row.learns}


@pytest.mark.parametrize("family", STEPS)
def test_short_rows_are_written_again(family: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(list("abcdef"), size=random.integers(1, 4))) for _ in range(2000)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    asked = {"task": "reconstruct", "tokenizer": "word", "steps": STEPS[family], "overrides": SETTINGS}
    run = seqwise.train(tmp_path / "rows.txt", family, out=tmp_path / "run", **asked)
    score = run.evaluate()
    unread = (
        2 * math.log(6) / 3
    )  # of rows of two letters in the mean, and their end: what letters cost who has not read
    assert score.nats_per_token < 0.15 < unread / 5
    (tmp_path / "new.txt").write_text("a b c\nf\ne d\nc c a\n")
    assert list(run.predict(tmp_path / "new.txt")) == ["a b c", "f", "e d", "c c a"]
