"""From digits to a page of digits that nobody wrote; and a network that reads them by moving its eye."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqwise.api import TrainedRun
from seqwise.errors import ConfigError

TRAIN = ("train", "digits8x8", "--out", "run", "--set", "training.threads=1")
SMALL = ("--set", "model.num_steps=2", "--set", "model.latent_dim=3", "--set", "model.model_dim=8")


def test_a_run_that_paints_is_trained_scored_and_paints(terminal: Any, tmp_path: Path) -> None:
    out, err = terminal.done(*TRAIN, "--model", "draw", "--steps", "4", *SMALL)
    assert "a bound, no likelihood" in out + err
    assert "seqwise generate run --num 16" in out + err
    out, _ = terminal.done("evaluate", "run")
    assert "a bound, no likelihood" in out
    out, _ = terminal.done("generate", "run", "--num", "3", "--out", "page")
    assert out.startswith("page/index.html: 3 pictures, step by step")
    files = {file.name for file in (tmp_path / "page").iterdir()}
    assert files == {"index.html", "samples.png", "steps.png", "animation.png"}
    out, _ = terminal.done("generate", "run", "--num", "2", "--out", "page", "--json")
    assert json.loads(out)["results"][0]["pictures"] == 2
    run = TrainedRun(tmp_path / "run")
    assert run.paint(2).shape == (2, 2, 8, 8, 1)
    with pytest.raises(ConfigError, match=r"num = 0 should be at least 1\."):
        run.paint(0)


def test_what_a_run_that_paints_does_not_do_is_told(terminal: Any) -> None:
    terminal.done(*TRAIN, "--model", "draw", "--steps", "1", *SMALL)
    told = {
        "generate run": "run paints pictures: name a folder to write them into, --out FOLDER.",
        "generate run --prompt x --out page": "run paints pictures from nothing; drop --prompt.",
        "predict run": "this model paints pictures and has no answers to give; use: seqwise generate RUN --out FOLDER.",
        "compare digits8x8 --task paint": "--task paint is scored by a bound, which is no likelihood and ranks nothing",
    }
    for command, sentence in told.items():
        assert sentence in terminal.refuses(*command.split())


def test_a_run_that_looks_is_trained_scored_and_answers(terminal: Any) -> None:
    terminal.done(*TRAIN, "--model", "glimpse", "--steps", "4", "--set", "model.num_glimpses=2")
    out, _ = terminal.done("evaluate", "run")
    assert "right" in out.splitlines()[0]
    assert "--out goes with runs that paint, and run does not; drop it." in terminal.refuses(
        "generate", "run", "--out", "page"
    )


@pytest.mark.parametrize(
    ("family", "settings", "left_out"),
    [
        ("draw", SMALL, "it scores a bound"),
        ("glimpse", ("--set", "model.num_glimpses=2"), "a whole sequence is answered"),
    ],
)
def test_what_must_not_change_the_numbers_of_a_run_on_pictures_does_not(
    terminal: Any, family: str, settings: tuple[str, ...], left_out: str
) -> None:
    terminal.done(*TRAIN, "--model", family, "--steps", "2", *settings)
    out, _ = terminal.done("check", "run")
    assert "FAILED" not in out
    assert left_out in out
    for kept in ("padding", "micro-batches", "a saved and loaded model"):
        assert any(line.startswith("kept") and kept in line for line in out.splitlines()), out
