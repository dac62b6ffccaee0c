"""From the files of a folder to a result: what chooses, and what is only shown."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.comparison.aggregate import aggregate
from seqwise.comparison.plan import Settings, Timing, ladder
from seqwise.comparison.results import Match
from seqwise.comparison.workspace import Workspace
from seqwise.evaluation.segments import Metric, Segments

NUM, CHARACTERS = 60, 50.0
METRIC = Metric("bits per character", "bits/char")


def segments(value: float, noise: float, seed: int) -> Segments:
    """Of this value; `noise` is how much it differs from other models, segment by segment."""
    random = np.random.default_rng(seed)
    totals = np.full(NUM, value * CHARACTERS) + noise * random.normal(size=NUM)
    return Segments.of(totals * value * CHARACTERS * NUM / totals.sum(), np.full(NUM, CHARACTERS))


@pytest.fixture
def folder(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path)
    settings = Settings(source=["poems.txt"], minutes=10.0, models=["lstm", "gpt", "hmm"])
    made.create(settings)
    trials = [trial for trial in ladder(settings, 0.0).trials if trial.name != "hmm"]
    decided: dict[str, Any] = {"threads": 1, "valid_amount": 5000, "minutes_for_all": 21.3}
    made.save_plan(trials, "nobody went on", left_out={"hmm": "to learn anything it needs an hour"}, **decided)
    made.write("prepared.json", {"data": {"name": "poems.txt"}, "scored": "test", "seconds": 1.0})
    baseline = {"name": "the frequency of each token", "segments": segments(4.5, 0.0, 9).to_dict()}
    made.write("baseline.json", {"auto": baseline})
    made.save_clock(100.0, is_complete=True)
    return made


def save(
    folder: Workspace, name: str, valid: Segments, test: Segments, *, size: int, updates: int | None = 500, **more: Any
) -> None:
    common = {"metric": asdict(METRIC)}
    trained = {"valid": valid.value, "validated": valid.to_dict(), "seconds": 9.0, "updates": updates, "is_late": False}
    trained |= {"settings": "", "tokens_per_second": 1.0, "train_tokens": 0, "curve": [], "best_at": 1.0}
    folder.save_found(name, "trained", common | trained)
    scored = {"segments": test.to_dict(), "parameters": 10, "bytes_on_disk": size, "more": {}, "signature": ""}
    folder.save_found(name, "scored", common | scored | {"scoring_seconds": 1.0, "measuring_seconds": 1.0} | more)
    folder.save_found(name, "timed", asdict(Timing(0.5, 0.1, 1e-5, took=2.0)))


def test_validation_chooses_between_near_equals_and_not_the_test_part(folder: Workspace) -> None:
    """Validation tells the larger one from the smaller one, the test part does not."""
    save(folder, "gpt", segments(2.00, 0.1, 1), segments(2.0, 20.0, 2), size=4000)
    save(folder, "lstm", segments(2.04, 0.1, 3), segments(2.0, 20.0, 4), size=1000)
    assert aggregate(folder).winner == "gpt"


def test_of_those_that_validation_cannot_tell_apart_the_smaller_wins(folder: Workspace) -> None:
    """Though the test part could tell them apart."""
    save(folder, "gpt", segments(2.00, 20.0, 1), segments(2.0, 0.1, 2), size=4000)
    save(folder, "lstm", segments(2.01, 20.0, 3), segments(2.1, 0.1, 4), size=1000)
    assert aggregate(folder).winner == "lstm"


def test_who_was_left_out_has_a_row_and_the_first_sentence(folder: Workspace) -> None:
    save(folder, "gpt", segments(2.0, 1.0, 1), segments(2.0, 1.0, 2), size=4000)
    save(folder, "lstm", segments(2.5, 1.0, 3), segments(2.5, 1.0, 4), size=1000, updates=7)
    found = aggregate(folder)
    hmm, lstm = found.entry("hmm"), found.entry("lstm")
    assert (hmm.status, hmm.reason) == ("left out", "to learn anything it needs an hour")
    assert lstm.not_trained == "7 updates; give it about 215 minutes"
    assert found.winner == "gpt"
    assert found.recommendation[0] == (
        "Not trained: lstm (7 updates; give it about 215 minutes); hmm (no time was left). "
        "About 215 minutes would train all."
    )
    assert [entry.name for entry in found.ladder] == ["gpt", "lstm", "hmm"]
    assert found.gaps == []
    assert found.baseline == {"name": "the frequency of each token", "value": pytest.approx(4.5)}


@pytest.mark.parametrize("name", ["memorization", "memorised"])
def test_what_a_trial_scored_before_the_field_had_its_name_is_read(folder: Workspace, name: str) -> None:
    save(folder, "gpt", segments(2.0, 1.0, 1), segments(2.0, 1.0, 2), size=1, **{name: {"length": 3, "text": "the"}})
    assert aggregate(folder).entry("gpt").memorization == Match(3, "the")


def test_the_clock_is_told_in_parts_and_what_was_not_measured_in_a_note(folder: Workspace) -> None:
    save(folder, "gpt", segments(2.0, 1.0, 1), segments(2.0, 1.0, 2), size=1, not_measured=["samples", "tokens/s"])
    found = aggregate(folder)
    assert found.seconds == {
        "preparing": 1.0, "timing": 2.0, "training": 9.0, "scoring": 1.0, "measuring": 1.0, "rest": pytest.approx(86.0),
    }  # fmt: skip
    assert found.entry("gpt").notes == ["no time was left to measure: samples, tokens/s"]
    assert found.threads == 1
