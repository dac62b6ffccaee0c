"""The gradient loop: exact over micro-batches, exact after a resume, and honest about what happened."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from torch import Tensor

from seqwise.data.batch import Batch
from seqwise.data.batches import Streams, Windows
from seqwise.data.store import TokenStore
from seqwise.errors import TrainingError
from seqwise.evaluation.likelihood import evaluate
from seqwise.models import MODELS
from seqwise.models.contract import Loss, State, Term
from seqwise.run import Checkpoint
from seqwise.settings import TrainingConfig
from seqwise.training import loop
from seqwise.training.loop import Hooks, Trainer, evaluation_steps, sample_steps, train
from seqwise.training.optimizers import set_rate
from seqwise.training.report import CLOCK_FIELDS, Report

VOCAB, CONTEXT = 6, 8
SETTINGS: dict[str, dict[str, Any]] = {
    "lstm": {"model_dim": 12, "num_layers": 2},
    "gpt": {"context": CONTEXT, "num_layers": 2, "model_dim": 8, "num_heads": 2},
}
each_family = pytest.mark.parametrize("name", ["lstm", "gpt"])


def tiny_model(name: str, *, seed: int = 0, **settings: Any) -> Any:
    torch.manual_seed(seed)
    row = MODELS[name]
    return row.build(row.config(**{**SETTINGS[name], **settings}), schemas.of_text(VOCAB))


def repetitive_store(num_tokens: int = 700) -> TokenStore:
    """A text one can learn: the same ten tokens over and over, now and then disturbed."""
    ids = np.tile([1, 2, 3, 1, 4, 5, 5, 2, 4, 0], num_tokens // 10 + 1)[: num_tokens + 1]
    ids[np.random.default_rng(0).integers(num_tokens, size=num_tokens // 20)] = 3
    return TokenStore(ids, num_tokens)


def batches_for(name: str, batch_size: int = 4) -> Streams | Windows:
    source = Streams if name == "lstm" else Windows
    return source(repetitive_store(), context=CONTEXT, batch_size=batch_size, seed=1)


def quiet(**settings: Any) -> TrainingConfig:
    """Settings of a short run."""
    defaults: dict[str, Any] = {"steps": 8, "warmup_steps": 2, "report_every": 1, "learning_rate": 0.01}
    return TrainingConfig(**{**defaults, **settings})


def without_clock(report: Report) -> dict[str, Any]:
    return {name: value for name, value in report.to_dict().items() if name not in CLOCK_FIELDS}


def weights_of(model: Any) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def scripted(values: list[float]) -> Callable[[], float]:
    """Validations whose results are known."""
    left = iter(values)
    return lambda: next(left)


@each_family
@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "muon"])
def test_micro_batches_give_the_same_weights(name: str, optimizer: Any) -> None:
    expected: dict[str, Tensor] = {}
    losses: list[float] = []
    tolerance = 1e-4 if optimizer == "muon" else 1e-5  # muon makes small singular values, and their rounding, large
    for parts in (1, 2, 4):
        model = tiny_model(name)
        reports = list(train(model, batches_for(name), quiet(micro_batches=parts, optimizer=optimizer)))
        expected, losses = expected or weights_of(model), losses or [r.loss for r in reports]
        assert [r.loss for r in reports] == pytest.approx(losses, abs=tolerance)
        for weight, tensor in model.state_dict().items():
            torch.testing.assert_close(tensor, expected[weight], atol=tolerance, rtol=0, msg=f"{weight}, {parts}")


@pytest.mark.parametrize(("batch_size", "parts"), [(5, 4), (3, 8), (1, 2)])
def test_rows_that_do_not_divide_evenly_into_micro_batches_give_the_same_weights(batch_size: int, parts: int) -> None:
    found = []
    for micro_batches in (1, parts):
        model = tiny_model("lstm")
        list(train(model, batches_for("lstm", batch_size), quiet(micro_batches=micro_batches)))
        found.append(weights_of(model))
    for name, tensor in found[0].items():
        torch.testing.assert_close(found[1][name], tensor, atol=1e-5, rtol=0)


def test_state_is_carried_from_chunk_to_chunk_and_starts_anew_where_the_batch_says() -> None:
    model, batches = tiny_model("lstm"), batches_for("lstm")
    given: list[tuple[Batch, State | None, State]] = []

    def objective(batch: Batch, state: State | None) -> Loss:
        loss = model.loss(batch, state)
        given.append((batch, state, loss.state))
        return loss

    list(train(model, batches, quiet(steps=30), objective=objective))
    assert given[0][1] is None
    for (_, _, left), (batch, taken, _) in pairwise(given):
        assert batch.resets is not None
        assert taken is not None
        for row, anew in enumerate(batch.resets.tolist()):
            before = torch.zeros_like(left.per_row["h"][row]) if anew else left.per_row["h"][row]
            assert torch.equal(taken.per_row["h"][row], before)
            assert not taken.per_row["h"].requires_grad
    assert sum(batch.resets.sum() > 0 for batch, _, _ in given) > 3  # type: ignore[union-attr, misc]


@each_family
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "muon"])
def test_every_optimiser_learns_a_repetitive_text(name: str, optimizer: Any) -> None:
    rate = {"lstm": (2.0, 0.02), "gpt": (0.3, 0.01)}[name][optimizer != "sgd"]
    config = quiet(steps=100, optimizer=optimizer, learning_rate=rate)
    reports = list(train(tiny_model(name), batches_for(name, 8), config))
    assert reports[0].loss == pytest.approx(math.log(VOCAB), abs=0.3)
    assert reports[-1].loss < 0.75 * reports[0].loss


def test_reports_say_where_training_stands() -> None:
    config = quiet(steps=10, report_every=4, warmup_steps=0, schedule="linear", final_rate=0.5)
    reports = list(train(tiny_model("gpt"), batches_for("gpt"), config))
    assert [r.step for r in reports] == [4, 8, 10]  # and at the end
    assert [r.tokens for r in reports] == [4 * CONTEXT * step for step in (4, 8, 10)]
    assert [r.learning_rate for r in reports] == pytest.approx([0.01 * (1 - 0.5 * s / 10) for s in (3, 7, 9)])
    assert all(r.steps == 10 and r.seconds > 0 for r in reports)
    assert [r.tokens_per_second for r in reports] == pytest.approx([r.tokens / r.seconds for r in reports])


def test_the_first_report_is_of_the_first_batch_and_no_more() -> None:
    model, batch = tiny_model("gpt"), batches_for("gpt").batch(0)
    objective = model.loss(batch).over(batch.counts())
    objective.backward()
    norm = torch.stack([parameter.grad.norm() for parameter in model.parameters()]).norm()
    first = next(train(tiny_model("gpt"), batches_for("gpt"), quiet(clip_norm=1e3)))
    assert first.loss == pytest.approx(float(objective.detach()), rel=1e-5)
    assert first.gradient_norm == pytest.approx(float(norm), rel=1e-5)
    assert first.gradient_norm < 1  # else a norm that begins at one would not be seen
    assert first.clipped == 0


def test_a_report_averages_over_the_tokens_since_the_last_one() -> None:
    single = list(train(tiny_model("gpt"), batches_for("gpt"), quiet(steps=6)))
    joint = list(train(tiny_model("gpt"), batches_for("gpt"), quiet(steps=6, report_every=3)))
    assert joint[0].loss == pytest.approx(np.mean([r.loss for r in single[:3]]))
    assert joint[1].loss == pytest.approx(np.mean([r.loss for r in single[3:]]))
    assert joint[1].gradient_norm == pytest.approx(max(r.gradient_norm for r in single[3:]))


def test_clipped_steps_are_counted_in_the_report() -> None:
    norms = [r.gradient_norm for r in train(tiny_model("gpt"), batches_for("gpt"), quiet(clip_norm=0.0))]
    assert sum(r.clipped for r in train(tiny_model("gpt"), batches_for("gpt"), quiet(clip_norm=0.0))) == 0
    always = list(train(tiny_model("gpt"), batches_for("gpt"), quiet(clip_norm=1e-3, report_every=4)))
    assert [r.clipped for r in always] == [4, 4]
    assert always[0].gradient_norm >= norms[0] * 0.99  # told as it was before it was cut
    assert sum(r.clipped for r in train(tiny_model("gpt"), batches_for("gpt"), quiet(clip_norm=1e3))) == 0


def test_a_clipped_gradient_moves_weights_no_further_than_its_limit() -> None:
    model = tiny_model("gpt")
    before = weights_of(model)
    config = quiet(steps=1, optimizer="sgd", momentum=0.0, learning_rate=1.0, warmup_steps=0, clip_norm=0.01)
    list(train(model, batches_for("gpt"), config))
    moved = torch.stack([(model.state_dict()[n] - before[n]).norm() for n, _ in model.named_parameters()]).norm()
    assert float(moved) == pytest.approx(0.01, rel=1e-3)


def test_the_best_model_is_kept_exactly_when_validation_improves() -> None:
    kept: list[int] = []
    reports: list[Report] = []
    hooks = Hooks(validate=scripted([3.0, 2.0, 2.0, 2.5, 1.0]), keep_best=lambda: kept.append(len(reports) + 1))
    for report in train(tiny_model("gpt"), batches_for("gpt"), quiet(steps=5, evaluate_every=1), hooks=hooks):
        reports.append(report)
    assert kept == [1, 2, 5]
    assert [r.step for r in reports if r.is_best] == [1, 2, 5]
    assert [r.valid for r in reports] == [3.0, 2.0, 2.0, 2.5, 1.0]


def test_where_the_last_weights_are_wanted_they_are_kept_after_every_validation() -> None:
    kept: list[int] = []
    reports: list[Report] = []
    hooks = Hooks(validate=scripted([3.0, 2.0, 2.5]), keep_best=lambda: kept.append(len(reports)))
    config = quiet(steps=6, evaluate_every=2, keep="last", report_every=1)
    for report in train(tiny_model("gpt"), batches_for("gpt"), config, hooks=hooks):
        reports.append(report)
    assert kept == [1, 3, 5]  # reports before each
    assert [r.step for r in reports if r.is_best] == [2, 4]


def test_training_stops_when_patience_is_over() -> None:
    saved: list[Checkpoint] = []
    hooks = Hooks(validate=scripted([3.0, 2.0, 2.1, 1.9, 2.0, 2.2, 0.0]), checkpoint=saved.append)
    config = quiet(steps=50, evaluate_every=2, patience=2)
    reports = list(train(tiny_model("gpt"), batches_for("gpt"), config, hooks=hooks))
    assert reports[-1].step == 12
    assert reports[-1].event == "stopped early: 2 validations brought no improvement"
    assert saved[-1].progress["is_stopped"]
    assert list(train(tiny_model("gpt"), batches_for("gpt"), config, resume=saved[-1])) == []


def test_steps_that_are_planned_anew_end_the_training_and_the_fall_of_the_rate() -> None:
    asked: list[int] = []
    saved: list[Checkpoint] = []

    def plan(step: int, seconds: float) -> int | None:
        asked.append(step)
        assert seconds > 0
        return 20 if step == 4 else None

    hooks = Hooks(plan=plan, checkpoint=lambda checkpoint: saved.append(checkpoint.copy()))
    config = quiet(steps=40, report_every=1, warmup_steps=0, checkpoint_seconds=1e9)
    reports = list(train(tiny_model("gpt"), batches_for("gpt"), config, hooks=hooks))
    assert asked == [4, 6, 12]  # of 40, then of 20
    assert [report.step for report in reports] == list(range(1, 21))
    assert [report.steps for report in reports] == [40] * 4 + [20] * 16
    assert reports[-1].learning_rate == pytest.approx(0.01 / 20)
    assert [checkpoint.step for checkpoint in saved] == [0, 4, 20]  # one where the plan changed, to resume from
    again = list(train(tiny_model("gpt"), batches_for("gpt"), replace(config, steps=20), resume=saved[1]))
    assert [report.loss for report in again] == [report.loss for report in reports[4:]]


def test_a_plateau_lowers_the_rate() -> None:
    hooks = Hooks(validate=scripted([3.0, 3.0, 2.0, 2.5, 2.5]))
    config = quiet(steps=5, evaluate_every=1, schedule="plateau", warmup_steps=0, plateau_factor=0.5)
    reports = list(train(tiny_model("gpt"), batches_for("gpt"), config, hooks=hooks))
    assert [r.learning_rate for r in reports] == pytest.approx([0.01, 0.01, 0.005, 0.005, 0.0025])
    assert [bool(r.event) for r in reports] == [False, True, False, True, True]
    assert reports[1].event == "validation did not improve: the learning rate is now 0.005"


@each_family
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_training_and_harms_no_weight(name: str, value: float) -> None:
    model, calls = tiny_model(name), 0

    def objective(batch: Batch, state: State | None) -> Loss:
        nonlocal calls
        calls += 1
        loss = model.loss(batch, state)
        if calls <= 3:
            return loss
        return Loss({"tokens": Term(loss.terms["tokens"].total * value, batch.counts()["tokens"])}, loss.state)

    reports: list[Report] = []
    saved: list[Checkpoint] = []
    hooks = Hooks(checkpoint=lambda c: saved.append(copy.deepcopy(c)))
    training = train(model, batches_for(name), quiet(checkpoint_seconds=0.0), objective=objective, hooks=hooks)
    with pytest.raises(TrainingError) as caught:
        reports.extend(training)
    assert f"the loss became {value} at step 3, after 4 returns to a good step with lower rates." in str(caught.value)
    assert "--set training.learning_rate=0.00021" in str(caught.value)
    assert [r.step for r in reports] == [1, 2, 3, 2, 2, 2, 2]  # the weights after step 3 never gave a loss
    events = [r.event for r in reports[3:]]
    assert events[0] == f"the loss became {value} at step 4: back to step 2, with the highest rate lowered to 0.005"
    assert events[-1] == f"the loss became {value} at step 3: back to step 2, with the highest rate lowered to 0.00063"
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())
    assert saved[-1].step == 2
    assert all(torch.equal(saved[-1].weights[n], t) for n, t in model.state_dict().items())


@each_family
def test_a_single_bad_step_is_gone_back_from_with_a_lower_rate(name: str) -> None:
    """Ten steps, a copy at each; the fifth goes wrong once. Training goes on from the third, the last that was good."""
    model, calls = tiny_model(name), 0

    def objective(batch: Batch, state: State | None) -> Loss:
        nonlocal calls
        calls += 1
        loss = model.loss(batch, state)
        if calls != 5:
            return loss
        return Loss({"tokens": Term(loss.terms["tokens"].total * math.nan, 1)}, loss.state)

    config = quiet(steps=10, schedule="constant", warmup_steps=0, report_every=1)
    reports = list(train(model, batches_for(name), config, objective=objective))
    assert [r.step for r in reports] == [1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10]
    assert [r.event is not None for r in reports] == [i == 4 for i in range(12)]
    assert [r.learning_rate for r in reports] == pytest.approx([0.01] * 5 + [0.005] * 7)
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


class Climber(torch.nn.Module):
    """One weight that every update raises by the rate; above one its loss is not a number."""

    def __init__(self) -> None:
        super().__init__()
        self.height = torch.nn.Parameter(torch.zeros(()))

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        count = batch.counts()["tokens"]
        total = -self.height * count * (1.0 if float(self.height.detach()) <= 1 else math.nan)
        return Loss({"tokens": Term(total, count)})


def climbing(**settings: Any) -> TrainingConfig:
    plain: dict[str, Any] = {"optimizer": "sgd", "momentum": 0.0, "schedule": "constant", "warmup_steps": 0}
    return quiet(**{**plain, **settings})


def heights(saved: list[Checkpoint]) -> list[float]:
    return [round(float(checkpoint.weights["height"]), 3) for checkpoint in saved]


@pytest.mark.parametrize(("steps", "every"), [(3, 1), (400, 2), (1000, 5)])
def test_about_two_hundred_reports_come_by_default(steps: int, every: int) -> None:
    reports = train(Climber(), batches_for("gpt"), climbing(steps=steps, learning_rate=1e-4, report_every=0))
    assert [r.step for r in reports] == list(range(every, steps + 1, every))


def test_no_more_seconds_are_told_than_have_passed() -> None:
    """With a step that fails and a validation that is no number, whose time counts too."""
    validations = scripted([1.0, math.nan, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    config = climbing(steps=5, learning_rate=0.45, evaluate_every=1)
    began = time.perf_counter()
    reports = list(train(Climber(), batches_for("gpt"), config, hooks=Hooks(validations)))
    assert sum(r.event is not None for r in reports) >= 2
    assert reports[0].seconds > 0
    assert reports[-1].seconds <= time.perf_counter() - began


def test_a_checkpoint_is_made_every_so_many_seconds_and_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes ten seconds. What is due after a step is written as soon as the next one shows that it was good."""
    model, clock, saved = Climber(), 1000.0, list[int]()

    def objective(batch: Batch, state: State | None) -> Loss:
        nonlocal clock
        clock += 10
        return model.loss(batch, state)

    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: clock, perf_counter=time.perf_counter))
    hooks = Hooks(checkpoint=lambda checkpoint: saved.append(checkpoint.step))
    config = climbing(steps=9, learning_rate=0.01, checkpoint_seconds=30.0)
    list(train(model, batches_for("gpt"), config, objective=objective, hooks=hooks))
    assert saved == [0, 3, 7, 9]


def test_validations_without_gain_are_counted_on_after_going_back() -> None:
    """The second brought nothing; the fourth step fails once, and the good copy is of the second."""
    model, calls = tiny_model("gpt"), 0

    def objective(batch: Batch, state: State | None) -> Loss:
        nonlocal calls
        calls += 1
        loss = model.loss(batch, state)
        return Loss({"tokens": Term(loss.terms["tokens"].total * (math.nan if calls == 4 else 1.0), 1)})

    hooks = Hooks(validate=scripted([1.0, 2.0, 2.0, 2.0, 2.0, 2.0]))
    config = quiet(steps=20, evaluate_every=1, patience=3)
    reports = list(train(model, batches_for("gpt"), config, objective=objective, hooks=hooks))
    assert [r.step for r in reports] == [1, 2, 3, 2, 3, 4]
    assert reports[-1].event == "stopped early: 3 validations brought no improvement"


def test_the_state_of_chance_of_a_gpu_is_saved_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    restored: list[Tensor] = []
    state = torch.arange(16, dtype=torch.uint8)
    without = Trainer(Climber(), batches_for("gpt"), climbing()).checkpoint()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: state)
    monkeypatch.setattr(torch.cuda, "set_rng_state", restored.append)
    saved = Trainer(Climber(), batches_for("gpt"), climbing()).checkpoint()
    Trainer(Climber(), batches_for("gpt"), climbing(), resume=without)  # begun where there was none
    assert restored == []
    Trainer(Climber(), batches_for("gpt"), climbing(), resume=saved)
    assert len(restored) == 1
    assert torch.equal(restored[0], state)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    Trainer(Climber(), batches_for("gpt"), climbing(), resume=saved)  # goes on where there is none
    assert len(restored) == 1


def test_training_goes_back_behind_the_weights_that_fail() -> None:
    """0.3, 0.6, 0.9, 1.2: the fifth step fails, and so would every other from there; from 0.9 on it works."""
    model, saved = Climber(), []
    hooks = Hooks(checkpoint=lambda checkpoint: saved.append(checkpoint.copy()))
    config = climbing(steps=5, learning_rate=0.3, checkpoint_seconds=0.0)
    reports = list(train(model, batches_for("gpt"), config, hooks=hooks))
    assert [r.step for r in reports] == [1, 2, 3, 4, 3, 4, 3, 4, 5]
    assert [r.seconds for r in reports] == sorted(r.seconds for r in reports)  # what failed took its time, too
    assert float(model.height.detach()) == pytest.approx(0.9 + 2 * 0.075)
    assert all(height <= 1 for height in heights(saved[:-1]))  # the last one is of the end, where no step follows


def test_asked_to_stop_on_weights_that_fail_it_stops_on_good_ones() -> None:
    saved: list[Checkpoint] = []
    reports: list[Report] = []
    hooks = Hooks(checkpoint=lambda c: saved.append(c.copy()), wants_stop=lambda: len(reports) >= 4)
    for report in train(Climber(), batches_for("gpt"), climbing(steps=50, learning_rate=0.3), hooks=hooks):
        reports.append(report)
    assert [r.step for r in reports] == [1, 2, 3, 4, 3]
    assert saved[-1].step == 3
    assert heights(saved)[-1] == 0.9


def test_after_giving_up_the_newest_checkpoint_is_good_and_can_be_resumed_with_the_lower_rate() -> None:
    saved: list[Checkpoint] = []
    hooks = Hooks(checkpoint=lambda checkpoint: saved.append(checkpoint.copy()))
    config = climbing(steps=2, learning_rate=20.0, checkpoint_seconds=0.0)
    with pytest.raises(TrainingError) as caught:
        list(train(Climber(), batches_for("gpt"), config, hooks=hooks))
    assert (
        "Left are the checkpoint of step 0, from which --resume goes on with the highest rate at 0.62, and no model "
        "yet: none was validated. Or train again, with another --out and a lower rate "
        "(--set training.learning_rate=0.42)"
    ) in str(caught.value)
    assert set(heights(saved)) == {0.0}
    assert saved[-1].progress["rewinds"] == 0  # so that it has as many returns again
    resumed = list(train(Climber(), batches_for("gpt"), config, resume=saved[-1]))
    assert [r.step for r in resumed] == [1, 2]
    assert [r.learning_rate for r in resumed] == [0.625, 0.625]


def test_the_best_model_stays_the_best_after_going_back() -> None:
    """The fifth step fails once, after the best validation: what is validated again is measured against that."""
    model, calls, reports, kept = tiny_model("gpt"), 0, [], []

    def objective(batch: Batch, state: State | None) -> Loss:
        nonlocal calls
        calls += 1
        loss = model.loss(batch, state)
        return Loss({"tokens": Term(loss.terms["tokens"].total * (math.nan if calls == 5 else 1.0), 1)})

    validate = scripted([3.0, 2.0, 2.5, 1.0, 1.5, 1.2, 1.1, 0.9])
    hooks = Hooks(validate=validate, keep_best=lambda: kept.append(len(reports)))
    config = quiet(steps=7, evaluate_every=1, patience=4)
    for report in train(model, batches_for("gpt"), config, objective=objective, hooks=hooks):
        reports.append(report)
    assert [r.step for r in reports] == [1, 2, 3, 4, 3, 4, 5, 6, 7]
    assert [r.step for r in reports if r.is_best] == [1, 2, 4, 7]
    assert len(kept) == 4


def test_a_good_copy_stays_as_it_was_however_often_training_goes_back_to_it() -> None:
    trainer = Trainer(tiny_model("lstm", dropout=0.3), batches_for("lstm"), quiet())
    for _ in range(3):
        trainer.set_rate()
        assert trainer.measure() is None
        trainer.move()
    good = trainer.checkpoint().copy()
    before = copy.deepcopy(good)
    ways: list[list[float]] = []
    for _ in range(3):
        losses = []
        for _ in range(2):
            set_rate(trainer.optimizers, 0.1)
            assert trainer.measure() is None
            trainer.move()
            losses.append(trainer.report(0.0).loss)
        ways.append(losses)
        trainer.rewind(good, "the loss became nan")
    assert ways[0] == ways[1] == ways[2]
    assert good.progress == before.progress
    for found, expected in ((good.weights, before.weights), (good.optimizer, before.optimizer)):
        assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())


def test_a_checkpoint_between_measuring_and_moving_is_one_of_the_step_before() -> None:
    trainer = Trainer(tiny_model("lstm", dropout=0.3), batches_for("lstm"), quiet())
    trainer.measure()
    trainer.move()
    before = trainer.checkpoint().copy()
    trainer.measure()
    after = trainer.checkpoint()
    assert after.progress == before.progress
    assert set(after.optimizer) == set(before.optimizer)
    assert all(torch.equal(tensor, before.optimizer[name]) for name, tensor in after.optimizer.items())


def test_a_validation_that_is_no_number_is_gone_back_from_too() -> None:
    """With it what the surroundings remember (a mean of weights) goes back to what it was."""
    remembered, kept = torch.zeros(1), []

    def validate() -> float:
        remembered.add_(1)
        return math.nan if float(remembered) == 3 and len(kept) == 2 else 1 / (1 + float(remembered))

    def restore(saved: dict[str, Tensor]) -> None:
        remembered.copy_(saved["average.number"])
        kept.append("restored")

    hooks = Hooks(
        validate,
        keep_best=lambda: kept.append(float(remembered)),
        tensors=lambda: {"average.number": remembered},
        restore=restore,
    )
    reports = list(train(tiny_model("gpt"), batches_for("gpt"), quiet(steps=4, evaluate_every=1), hooks=hooks))
    assert [r.step for r in reports] == [1, 2, 2, 3, 4]
    assert reports[2].event == (
        "the validation loss became nan at step 3: back to step 2, with the highest rate lowered to 0.005"
    )
    assert kept == [1.0, 2.0, "restored", 3.0, 4.0]


def test_gradients_are_cut_entry_by_entry() -> None:
    """With plain steps of rate one and no momentum, no weight moves further than the largest entry allowed."""
    model = tiny_model("gpt")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config = quiet(steps=1, optimizer="sgd", momentum=0.0, learning_rate=1.0, warmup_steps=0, clip_value=1e-4)
    list(train(model, batches_for("gpt"), replace(config, schedule="constant", clip_norm=0.0)))
    moved = torch.cat([(tensor - before[name]).abs().flatten() for name, tensor in model.state_dict().items()])
    assert float(moved.max()) == pytest.approx(1e-4, rel=0.01)


def test_a_gradient_that_is_no_number_stops_training_too() -> None:
    model = tiny_model("gpt")

    def objective(batch: Batch, state: State | None) -> Loss:
        loss = model.loss(batch, state)
        bad = (model.head.tokens.output.weight.sum() * 0).sqrt()  # zero, and its slope there is not a number
        return Loss({"tokens": Term(loss.terms["tokens"].total + bad, batch.counts()["tokens"])})

    with pytest.raises(TrainingError, match="the gradient's length became nan at step 1"):
        list(train(model, batches_for("gpt"), quiet(), objective=objective))
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


@each_family
@pytest.mark.parametrize(("optimizer", "micro_batches"), [("adamw", 1), ("adamw", 2), ("muon", 1), ("sgd", 1)])
def test_a_resumed_run_is_the_run_never_stopped(name: str, optimizer: Any, micro_batches: int) -> None:
    """Weights to the bit, and every report but its clock; dropout, carried state and schedule go on."""
    store = repetitive_store(200)
    config = quiet(
        steps=14,
        report_every=3,
        evaluate_every=4,
        optimizer=optimizer,
        micro_batches=micro_batches,
        checkpoint_seconds=0.0,
        schedule="plateau",
    )
    saved: dict[int, Checkpoint] = {}

    def run(model: Any, resume: Checkpoint | None, *, keep: bool) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
        def checkpoint(c: Checkpoint) -> None:
            if keep:
                saved[c.step] = copy.deepcopy(c)

        hooks = Hooks(validate=lambda: evaluate(model, store).nats_per_token, checkpoint=checkpoint)
        reports = list(train(model, batches_for(name), config, hooks=hooks, resume=resume))
        return weights_of(model), [without_clock(r) for r in reports]

    whole, reports = run(tiny_model(name, dropout=0.3), None, keep=True)
    assert sorted(saved) == list(range(15))  # one before the first step, so that there is always one
    for step in (0, 1, 5, 10, 13):  # 5 and 10: in the middle of a report
        torch.manual_seed(99 + step)
        weights, after = run(tiny_model(name, seed=7, dropout=0.3), saved[step], keep=False)
        assert after == [r for r in reports if r["step"] > step]
        for weight, tensor in whole.items():
            assert torch.equal(weights[weight], tensor), f"{weight} differs after a resume at step {step}"


def test_a_finished_run_has_nothing_to_resume() -> None:
    saved: list[Checkpoint] = []
    config = quiet()
    list(train(tiny_model("gpt"), batches_for("gpt"), config, hooks=Hooks(checkpoint=saved.append)))
    assert saved[-1].step == 8  # the end makes a checkpoint, whatever the clock says
    again = Hooks(checkpoint=lambda _: pytest.fail("nothing was trained, and a checkpoint made"))
    assert list(train(tiny_model("gpt"), batches_for("gpt"), config, hooks=again, resume=saved[-1])) == []


def test_training_that_is_asked_to_stop_saves_a_checkpoint_and_ends() -> None:
    saved: list[Checkpoint] = []
    reports: list[Report] = []
    hooks = Hooks(checkpoint=lambda c: saved.append(copy.deepcopy(c)), wants_stop=lambda: len(reports) >= 3)
    for report in train(tiny_model("gpt"), batches_for("gpt"), quiet(), hooks=hooks):
        reports.append(report)
    assert saved[-1].step == 3
    assert reports[-1].step == 3


def test_samples_come_at_the_steps_that_are_due_and_do_not_change_training() -> None:
    plain = tiny_model("gpt")
    list(train(plain, batches_for("gpt"), quiet(steps=16)))
    model = tiny_model("gpt")
    hooks = Hooks(sample=lambda: "text", validate=lambda: evaluate(model, repetitive_store(50)).nats_per_token)
    reports = list(train(model, batches_for("gpt"), quiet(steps=16), hooks=hooks))
    assert {r.step for r in reports if r.sample} == sample_steps(quiet(steps=16))
    assert all(torch.equal(t, plain.state_dict()[n]) for n, t in model.state_dict().items())
    assert model.training


@pytest.mark.parametrize("steps", [640, 1000, 12_345])
@pytest.mark.parametrize("number", [1, 2, 4, 7])
def test_samples_are_log_spaced_and_the_last_is_at_the_end(steps: int, number: int) -> None:
    found = sorted(sample_steps(quiet(steps=steps, num_samples=number)))
    assert len(found) == number
    assert found[-1] == steps
    ratios = [b / a for a, b in pairwise(found)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios) if ratios else [], rel=0.1)


def test_four_samples_by_default_and_none_where_none_are_wanted() -> None:
    assert sample_steps(TrainingConfig(steps=64)) == {1, 4, 16, 64}
    assert sample_steps(TrainingConfig(steps=6400)) == {100, 400, 1600, 6400}
    assert sample_steps(TrainingConfig(steps=1)) == {1}
    assert sample_steps(TrainingConfig(steps=0)) == set()
    assert sample_steps(TrainingConfig(steps=64, num_samples=0)) == set()


@pytest.mark.parametrize("steps", [1, 2, 9, 10, 11, 99, 1000])
@pytest.mark.parametrize("every", [0, 1, 7, 5000])
def test_validations_include_the_last_step_and_are_about_ten_by_default(steps: int, every: int) -> None:
    found = evaluation_steps(quiet(steps=steps, evaluate_every=every))
    assert max(found) == steps
    assert min(found) >= 1
    if every == 0:
        assert min(steps, 5) <= len(found) <= 11
        assert steps < 1000 or found == set(range(100, 1001, 100))
    else:
        assert found == {s for s in range(1, steps + 1) if s % every == 0} | {steps}


def test_reports_for_the_log_keep_numbers_that_happen_to_be_zero() -> None:
    (report,) = list(train(tiny_model("gpt"), batches_for("gpt"), quiet(steps=1)))
    logged = replace(report, loss=0.0, learning_rate=0.0).to_dict()
    assert logged["loss"] == logged["learning_rate"] == 0.0
    assert "valid" not in logged
    assert "event" not in logged
