"""A server on loopback with a few small runs, for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving_by_hand import serving

import seqwise
from seqwise.serving.hosting import Limits

POEM = "the quick brown fox jumps over the lazy dog\nshall I compare thee to a summer's day\n" * 30
RUNS = {
    "poems": ("lstm", "poems.txt", ["model.model_dim=32"]),
    "gpt": (
        "gpt",
        "poems.txt",
        ["model.model_dim=32", "model.num_layers=1", "model.num_heads=2", "training.context=32"],
    ),
    "ngram": ("ngram", "poems.txt", []),
    "moods": ("gru", "moods.tsv", ["model.model_dim=16"]),
    "waves": ("kalman", "waves.csv", []),
}


@pytest.fixture(scope="session")
def served_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Trained for a few steps: what they answer is not the point."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "poems.txt").write_text(POEM)
    moods = [("a fine day", "good"), ("a sad day", "bad"), ("what a fine fox", "good"), ("a lazy dog", "bad")] * 20
    (folder / "moods.tsv").write_text(
        "text\tlabel\n" + "".join(f"{text} {n}\t{label}\n" for n, (text, label) in enumerate(moods))
    )
    (folder / "waves.csv").write_text("value\n" + "".join(f"{(n % 7) * 1.5 + n * 0.01}\n" for n in range(200)))
    runs = {}
    for name, (family, data, overrides) in RUNS.items():
        budget: dict[str, Any] = {"steps": 5} if family not in ("ngram", "kalman") else {}
        run = seqwise.train(folder / data, model=family, out=folder / name, overrides=overrides, **budget)
        runs[name] = run.path
    return runs


@pytest.fixture(scope="session")
def address(served_runs: dict[str, Path]) -> Iterator[str]:
    with serving(served_runs, limits=Limits(max_tokens=400, seconds=20.0, receive_seconds=1.0, max_body=200_000)) as (
        found,
        _,
    ):
        yield found
