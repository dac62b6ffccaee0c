"""Whether a run is compiled: by what was measured, never at the price of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from runs_by_hand import prepare

from seqwise.data.batches import Streams
from seqwise.data.store import TokenStore
from seqwise.models import MODELS
from seqwise.run import Run
from seqwise.settings import TrainingConfig
from seqwise.training import learners, planning, timing
from seqwise.training.loop import train
from seqwise.training.timing import StepTime, can_compile, choose_compile, seconds_per_step

TINY = ["model.model_dim=8", "model.num_heads=2", "model.num_layers=1", "model.context=16", "training.threads=1"]


def choose(monkeypatch: pytest.MonkeyPatch, compiled: StepTime | Exception, seconds: float) -> tuple[str, float, str]:
    def measure(*_: Any, **__: Any) -> StepTime:
        if isinstance(compiled, Exception):
            raise compiled
        return compiled

    monkeypatch.setattr(timing, "seconds_per_step", measure)
    said: list[str] = []
    chosen = choose_compile(torch.nn.Linear(1, 1), None, None, 0.1, seconds, said.append)  # type: ignore[arg-type]
    return *chosen, said[0]


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_a_timed_step_is_a_training_step(micro_batches: int) -> None:
    """The same batches, parts and clipped gradients; nothing of it stays in the model, or in the state of chance."""
    row = MODELS["lstm"]
    settings = {"micro_batches": micro_batches, "clip_norm": 0.0, "clip_value": 1e-3, "batch_size": 4, "context": 8}
    config = TrainingConfig(steps=4, report_every=1, **settings)  # type: ignore[arg-type]
    batches = Streams(TokenStore(np.arange(400) % 5, 399), context=8, batch_size=4, seed=1)
    model = row.build(row.config(model_dim=8, dropout=0.3), schemas.of_text(5))
    seen: list[list[tuple[int, float]]] = []

    def watched(model: Any) -> Any:
        losses: list[tuple[int, float]] = []
        seen.append(losses)

        def objective(batch: Any, state: Any) -> Any:
            loss = model.loss(batch, state)
            losses.append((len(batch), float(loss.terms["tokens"].total.detach())))
            return loss

        return objective

    torch.manual_seed(3)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seconds_per_step(model, batches, config, max_seconds=0.0, make_objective=watched)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    list(train(model, batches, config, objective=watched(model)))
    assert len(seen[0]) == 4 * micro_batches
    assert seen[0] == seen[1]


def test_a_step_that_gets_faster_is_compiled_where_the_run_is_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    faster = StepTime(each=0.05, first=60.0)
    assert choose(monkeypatch, faster, 600)[:2] == ("always", 0.05)  # 300 s gained, 60 s paid
    assert choose(monkeypatch, faster, 119)[:2] == ("never", 0.1)  # 59.5 s gained


def test_a_step_that_gets_slower_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, each, said = choose(monkeypatch, StepTime(each=0.11, first=0.0), 6000)
    assert (chosen, each) == ("never", 0.1)
    assert "0.110" in said


def test_a_compiler_that_fails_is_told_and_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, each, said = choose(monkeypatch, RuntimeError("no C++ compiler\nand a long trace"), 6000)
    assert (chosen, each) == ("never", 0.1)
    assert "no C++ compiler" in said
    assert "long trace" not in said


def test_recurrent_kernels_and_clusters_of_words_are_not_compiled() -> None:
    def built(name: str, **settings: Any) -> torch.nn.Module:
        row = MODELS[name]
        model: torch.nn.Module = row.build(row.config(**settings), schemas.of_text(9000))
        return model

    assert can_compile(built("gpt", model_dim=8, num_heads=2, num_layers=1))
    assert can_compile(built("window", model_dim=8))
    assert not can_compile(built("window", model_dim=8, adaptive_softmax=True))
    assert not can_compile(built("lstm", model_dim=8))


@pytest.mark.parametrize("chosen", ["always", "never"])
def test_what_was_chosen_is_a_setting_of_the_run_and_decides_what_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    path = tmp_path / "cats.txt"
    path.write_text("the cat sat on the mat.\n" * 60)
    compiled: list[Any] = []

    def note_compiling(model: Any) -> Any:
        compiled.append(model)
        return model.loss

    monkeypatch.setattr(planning, "LONG_ENOUGH_TO_COMPILE", 0)
    monkeypatch.setattr(planning, "choose_compile", lambda *_: (chosen, 0.02))
    monkeypatch.setattr(learners, "compiled_loss", note_compiling)
    session = prepare(path, model="gpt", out=tmp_path / "run", minutes=0.01, overrides=TINY)
    list(session.reports())
    assert Run.open(tmp_path / "run").config.training.compile == chosen
    assert len(compiled) == (chosen == "always")


def test_short_runs_are_not_compiled_to_find_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cats.txt"
    path.write_text("the cat sat on the mat.\n" * 60)
    monkeypatch.setattr(planning, "choose_compile", lambda *_: pytest.fail("tried to compile"))
    list(prepare(path, model="gpt", out=tmp_path / "run", minutes=0.01, overrides=TINY).reports())
