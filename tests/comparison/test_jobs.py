"""What one trial's process does, in this process: on what its model is validated and scored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.api import TrainedRun
from seqwise.comparison import jobs
from seqwise.comparison.jobs import prepare_data, score_trial, train_trial
from seqwise.comparison.plan import ladder
from seqwise.comparison.request import ComparisonRequest
from seqwise.comparison.workspace import Workspace
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat, and a frog.\n" * 120


def never() -> bool:
    return False


@pytest.fixture
def run_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trains all trials of a ladder, so many steps whatever the load of this machine, and scores them; returns the
    folder."""

    def in_steps(request: Request, **options: Any) -> Any:
        return prepare(replace(request, minutes=None, steps=60), **options)

    monkeypatch.setattr(jobs, "prepare", in_steps)
    monkeypatch.setattr(jobs, "MAX_OVERRUN", 1e9)

    def run(most: int = 100_000, **options: Any) -> Workspace:
        (tmp_path / "cats.txt").write_text(TEXT)
        threads = torch.get_num_threads()
        folder = Workspace(tmp_path / "comparison")
        settings = ComparisonRequest(tmp_path / "cats.txt", minutes=0.2, **options).settings()
        folder.create(settings)
        prepare_data(folder.path, "data", never)
        amounts = {"valid_amount": most, "scored_amount": most, "measuring_seconds": 60.0}
        folder.save_plan(ladder(settings, 0.0).trials, threads=1, **amounts)
        for trial in folder.trials:
            assert not train_trial(folder.path, trial.name, never)
            assert not score_trial(folder.path, trial.name, never)
        torch.set_num_threads(threads)
        return folder

    return run


def test_who_sees_a_window_is_validated_and_scored_in_windows_that_overlap(run_trials: Any) -> None:
    folder = run_trials(models=["gpt"])
    run = TrainedRun(folder.run("gpt"))
    for part, found in (
        ("valid", folder.found("gpt", "trained")["valid"]),
        ("test", folder.found("gpt", "scored")["more"]["bits_per_char"]),
    ):
        sliding, disjoint = (run.evaluate(split=part, view=view).bits_per_char for view in ("sliding", "disjoint"))
        assert found == pytest.approx(sliding, abs=1e-6)
        assert abs(sliding - disjoint) > 1e-4  # else this test could not tell


def test_of_a_long_text_the_same_characters_are_scored_for_every_tokenizer(run_trials: Any) -> None:
    folder = run_trials(most=300, models=["ngram"], tokenizers=["char", "bpe"])
    scored = [folder.found(name, "scored") for name in ("ngram-char", "ngram-bpe")]
    segments = [np.array(found["segments"]["statistics"])[0] for found in scored]
    assert [float(counts.sum()) for _, counts in (one.T for one in segments)] == pytest.approx([300, 300])
    assert [len(one) for one in segments] == [10, 10]
    assert all("test[:300]:" in found["signature"] for found in scored)
    whole = TrainedRun(folder.run("ngram-char")).evaluate(split="test")
    assert whole.characters > 300
