"""The one gradient loop: it knows verbs, not tasks, and yields reports.

    for report in train(model, batches, config, hooks):
        log.write(report)

Sums travel, the loop divides: a batch computed in micro-batches has the gradient of the whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..errors import TrainingError
from ..goals.goal import BatchSource
from ..models.contract import CountsUpdates, Loss, State, device_of, restart_rows
from ..run import Checkpoint, load_weights
from ..settings import TrainingConfig
from .layer_rates import lowest_layer
from .optimizers import (
    build_optimizers,
    load_optimizer_tensors,
    optimizer_tensors,
    rate_at,
    set_rate,
    top_layer,
)
from .report import Report

MAX_REWINDS = 4
REWIND_FACTOR = 0.5  # of the rate, at each return to a good step

Objective = Callable[[Batch, State | None], Loss]


@dataclass(frozen=True)
class Hooks:
    """What the loop asks of its surroundings. Each may be left out."""

    validate: Callable[[], float] | None = None
    """Validation loss in nats per token."""
    sample: Callable[[], str | None] | None = None
    """A text as the model writes now; None where it does not write."""
    keep_best: Callable[[], None] | None = None
    """Called when validation improved; where the last weights are wanted, after every validation."""
    checkpoint: Callable[[Checkpoint], None] | None = None
    """Called every `checkpoint_seconds`, and when training ends or is asked to."""
    plan: Callable[[int, float], int | None] | None = None
    """Asked now and then, told the steps made and the seconds they took: how many should there be? None: as planned."""
    wants_stop: Callable[[], bool] = lambda: False
    """Asked after each step; then a checkpoint is the last thing that happens."""
    tensors: Callable[[], dict[str, Tensor]] = dict
    """What else belongs into a checkpoint."""
    restore: Callable[[dict[str, Tensor]], None] = lambda _: None
    """Given the tensors of a checkpoint that training goes on from, or goes back to."""


@dataclass
class Progress:
    """Where training stands: everything a checkpoint must hold besides tensors."""

    step: int = 0
    """Updates made."""
    tokens: int = 0
    seconds: float = 0.0
    best: float = math.inf
    validations_without_gain: int = 0
    plateau_share: float = 1.0
    rewinds: int = 0
    """How often the loss was not a number, and training went back."""
    is_stopped: bool = False
    """Stopped early: there is nothing to resume."""
    since_report: dict[str, float] = field(default_factory=lambda: {"nats": 0.0, "count": 0, "norm": 0.0, "clipped": 0})


@dataclass(frozen=True)
class _Measured:
    """The loss and the gradient of a batch, before the weights follow it."""

    nats: float
    norm: float
    num_steps: int
    """Of the inputs: tokens, or rows of numbers."""
    terms: dict[str, tuple[float, int]]
    """Where the objective has several: the sum of each, and over how many targets."""
    seconds: float
    carried: list[State | None]
    """What the next chunk would start from."""
    random: dict[str, Tensor]
    """The state of chance before."""


def train(
    model: nn.Module,
    batches: BatchSource,
    config: TrainingConfig,
    *,
    objective: Objective | None = None,
    hooks: Hooks | None = None,
    resume: Checkpoint | None = None,
) -> Iterator[Report]:
    """Run `config.steps` updates and yield a report every `report_every` steps, and at each validation and sample."""
    hooks = hooks or Hooks()
    trainer = Trainer(model, batches, config, objective=objective, hooks=hooks, resume=resume)
    evaluate_at, sample_at, plan_at = evaluation_steps(config), sample_steps(config), planning_steps(config)
    report_every = config.report_every or max(1, config.steps // 200)
    last_checkpoint, is_due, is_asked_to_stop = time.monotonic(), False, False
    model.train()
    good = trainer.checkpoint().copy()
    if hooks.checkpoint and resume is None:  # so that there is always one to go back to
        hooks.checkpoint(good)
    copy_every = max(1, config.steps // 50)
    while trainer.progress.step < config.steps and not trainer.progress.is_stopped:
        rate, valid = trainer.set_rate(), None
        found = trainer.measure()
        if found is None:  # these weights, and not before, are known to be good
            if trainer.progress.step % copy_every == 0:
                good = trainer.checkpoint().copy()
            if hooks.checkpoint and (is_due or is_asked_to_stop):
                hooks.checkpoint(trainer.checkpoint())
                last_checkpoint, is_due = time.monotonic(), False
            if is_asked_to_stop:
                return
            trainer.move()
            if hooks.validate and trainer.progress.step in evaluate_at:
                valid = hooks.validate()
                found = _is_no_number("the validation loss", valid, trainer.progress.step)
        if found is not None:
            yield trainer.report(rate, event=trainer.rewind(good, found))
            continue
        step, is_last = trainer.progress.step, trainer.progress.step == config.steps
        is_best, event = _judge(valid, trainer.progress, config)
        if hooks.keep_best and (is_best or (valid is not None and config.keep == "last")):
            hooks.keep_best()
        sample = hooks.sample() if hooks.sample and (step in sample_at) else None
        if valid is not None or sample is not None or is_last or step % report_every == 0 or event:
            yield trainer.report(rate, valid=valid, is_best=is_best, sample=sample, event=event)
        is_due = time.monotonic() - last_checkpoint >= config.checkpoint_seconds
        if hooks.plan and step in plan_at and (steps := hooks.plan(step, trainer.progress.seconds)):
            config = trainer.config = replace(config, steps=steps)
            evaluate_at, sample_at, plan_at = evaluation_steps(config), sample_steps(config), planning_steps(config)
            is_due = True
        is_asked_to_stop = hooks.wants_stop()
    if hooks.checkpoint and trainer.has_moved:
        hooks.checkpoint(trainer.checkpoint())


class Trainer:
    """The moving parts of one training run. An update is `measure`, then `move`; timing makes the same ones."""

    def __init__(
        self,
        model: nn.Module,
        batches: BatchSource,
        config: TrainingConfig,
        *,
        objective: Objective | None = None,
        hooks: Hooks | None = None,
        resume: Checkpoint | None = None,
    ):
        self.model, self.batches, self.config, self.hooks = model, batches, config, hooks or Hooks()
        self.objective = objective or cast(Objective, model.loss)
        self.optimizers = build_optimizers(model, config)
        self.progress, self.has_moved = Progress(), False
        self.carried: list[State | None] = [None] * config.micro_batches
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = device_of(model)
        self._measured: _Measured | None = None
        if resume is not None:
            self._restore(resume)

    def set_rate(self) -> float:
        """The rate of the next update, as the schedule and what went wrong before have it."""
        share = rate_at(self.progress.step, self.config) * self.progress.plateau_share
        lowest, epochs = 0, self.config.unfreeze_epochs
        if epochs:
            top, length = top_layer(self.optimizers), self.batches.steps_per_epoch
            lowest = lowest_layer(self.progress.step, top, epochs, length)
        set_rate(self.optimizers, share, lowest)
        return self.config.learning_rate * share

    def measure(self) -> str | None:
        """The loss of the next batch and its gradient, summed over the parts and clipped; nothing is moved yet.

        What was found, where one of them is not a number.
        """
        began, random = time.perf_counter(), _random_state()
        batch = self.batches.batch(self.progress.step, self.model).to(self.device)
        counts, nats, carried = {**batch.counts(), **batch.sizes()}, 0.0, list(self.carried)
        terms: dict[str, tuple[float, int]] = {}
        for part, micro_batch in enumerate(batch.split(self.config.micro_batches)):
            loss = self.objective(micro_batch, self._state_before(part, micro_batch))
            objective = loss.over(counts)
            objective.backward()
            nats += float(objective.detach())
            if len(loss.terms) > 1:
                for name, term in loss.terms.items():
                    terms[name] = (terms.get(name, (0.0, 0))[0] + float(term.total.detach()), counts[term.over])
            carried[part] = loss.state.detach() if loss.state is not None else None
        if self.config.clip_value:
            nn.utils.clip_grad_value_(self.parameters, self.config.clip_value)
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm or math.inf))
        seconds = time.perf_counter() - began
        self._measured = _Measured(nats, norm, batch.num_steps, terms, seconds, carried, random)
        step = self.progress.step + 1
        return _is_no_number("the loss", nats, step) or _is_no_number("the gradient's length", norm, step)

    def move(self) -> None:
        """Follow the gradient that was measured."""
        began, measured = time.perf_counter(), self._measured
        assert measured is not None
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if isinstance(self.model, CountsUpdates):
            self.model.count_update()
        self.carried, self._measured, self.has_moved = measured.carried, None, True
        self._account(measured, measured.seconds + time.perf_counter() - began)

    def rewind(self, good: Checkpoint, found: str) -> str:
        """Go back to the last good copy with a lower rate, and say so; give up where that has not helped before.

        The best model stays the best. After giving up the good copy is the newest checkpoint, with the lower rate.
        """
        before, measured = self.progress, self._measured
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        self._measured = None
        self._restore(good.copy())
        now = self.progress
        now.seconds = before.seconds + (measured.seconds if measured is not None else 0.0)
        if before.best < now.best:
            now.best, now.validations_without_gain = before.best, 0
        now.plateau_share = before.plateau_share * REWIND_FACTOR
        rate = self.config.learning_rate * now.plateau_share
        if before.rewinds >= MAX_REWINDS:
            now.rewinds = 0
            if self.hooks.checkpoint:
                self.hooks.checkpoint(self.checkpoint())
            raise TrainingError(f"{found}, {self._gave_up(rate)}")
        now.rewinds = before.rewinds + 1
        return f"{found}: back to step {good.step}, with the highest rate lowered to {rate:.2g}"

    def _state_before(self, part: int, micro_batch: Batch) -> State | None:
        """What the chunk before left behind, for the rows that go on from it."""
        state = self.carried[part]
        if state is None or micro_batch.resets is None:
            return state
        fresh: State = self.model.initial_state(len(micro_batch))  # type: ignore[operator]
        return restart_rows(state, micro_batch.resets, fresh)

    def _account(self, measured: _Measured, seconds: float) -> None:
        since = self.progress.since_report
        since["nats"] += measured.nats * measured.num_steps
        since["count"] += measured.num_steps
        for name, (total, count) in measured.terms.items():
            since[f"total.{name}"] = since.get(f"total.{name}", 0.0) + total
            since[f"count.{name}"] = since.get(f"count.{name}", 0) + count
        since["norm"] = max(since["norm"], measured.norm)
        since["clipped"] += bool(self.config.clip_norm) and measured.norm > self.config.clip_norm
        self.progress.step += 1
        self.progress.tokens += measured.num_steps
        self.progress.seconds += seconds

    def _gave_up(self, rate: float) -> str:
        """What is left, and what to do. `rate` is the highest one with which the run would go on."""
        progress, training = self.progress, self.config
        best = f"the best model so far (validation loss {progress.best:.3f})"
        no_best = "no model yet: none was validated"
        return (
            f"after {MAX_REWINDS} returns to a good step with lower rates. Left are the checkpoint of step "
            f"{progress.step}, from which --resume goes on with the highest rate at {rate:.2g}, and "
            f"{no_best if math.isinf(progress.best) else best}. Or train again, with another --out and a lower rate "
            f"(--set training.learning_rate={rate / REWIND_FACTOR / 3:.2g}), a longer warm-up "
            f"(--set training.warmup_steps={max(20, 4 * training.warmup)}) or clipping "
            "(--set training.clip_norm=0.5)."
        )

    def report(self, learning_rate: float, **what: Any) -> Report:
        progress, since = self.progress, self.progress.since_report
        report = Report(
            step=progress.step,
            steps=self.config.steps,
            tokens=progress.tokens,
            loss=since["nats"] / max(1, since["count"]),
            terms=_means(since) or None,
            learning_rate=learning_rate,
            gradient_norm=since["norm"],
            clipped=int(since["clipped"]),
            seconds=progress.seconds,
            tokens_per_second=progress.tokens / max(1e-9, progress.seconds),
            **what,
        )
        progress.since_report = Progress().since_report
        return report

    def checkpoint(self) -> Checkpoint:
        """All that training needs to go on from here: what was measured and did not move anything has not happened."""
        tensors = optimizer_tensors(self.optimizers) | self.hooks.tensors()
        tensors |= self._measured.random if self._measured is not None else _random_state()
        for part, state in enumerate(self.carried):
            for name, tensor in (state.per_row if state is not None else {}).items():
                tensors[f"carried.{part}.{name}"] = tensor
        progress = {**vars(self.progress), "best": None if math.isinf(self.progress.best) else self.progress.best}
        return Checkpoint(dict(self.model.state_dict()), tensors, progress)

    def _restore(self, saved: Checkpoint) -> None:
        load_weights(self.model, saved.weights, Path(f"checkpoint of step {saved.step}"))
        load_optimizer_tensors(self.optimizers, saved.optimizer)
        self.hooks.restore(saved.optimizer)
        torch.set_rng_state(saved.optimizer["random.cpu"])
        if "random.cuda" in saved.optimizer and torch.cuda.is_available():
            torch.cuda.set_rng_state(saved.optimizer["random.cuda"])
        for part in range(self.config.micro_batches):
            prefix = f"carried.{part}."
            own: dict[str, Tensor] = {
                name.removeprefix(prefix): t.to(self.device)
                for name, t in saved.optimizer.items()
                if name.startswith(prefix)
            }
            self.carried[part] = State(own) if own else None
        known = {name: value for name, value in saved.progress.items() if name in Progress.__dataclass_fields__}
        known["best"] = math.inf if known["best"] is None else known["best"]
        self.progress = Progress(**known)


def _means(since: dict[str, float]) -> dict[str, float]:
    """Of each term, where there are several, over the targets since the last report."""
    names = [name.removeprefix("total.") for name in since if name.startswith("total.")]
    return {name: since[f"total.{name}"] / max(1, since[f"count.{name}"]) for name in names}


def _random_state() -> dict[str, Tensor]:
    state = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["random.cuda"] = torch.cuda.get_rng_state()
    return state


def _is_no_number(what: str, value: float, step: int) -> str | None:
    return None if math.isfinite(value) else f"{what} became {value} at step {step}"


def _judge(valid: float | None, progress: Progress, config: TrainingConfig) -> tuple[bool, str | None]:
    """Whether this validation is the best so far, and what follows if it is not."""
    if valid is None:
        return False, None
    if valid < progress.best:
        progress.best, progress.validations_without_gain = valid, 0
        return True, None
    progress.validations_without_gain += 1
    if config.patience is not None and progress.validations_without_gain >= config.patience:
        progress.is_stopped = True
        return False, f"stopped early: {progress.validations_without_gain} validations brought no improvement"
    if config.schedule == "plateau":
        progress.plateau_share *= config.plateau_factor
        return (
            False,
            f"validation did not improve: the learning rate is now {config.learning_rate * progress.plateau_share:.2g}",
        )
    return False, None


def planning_steps(config: TrainingConfig) -> set[int]:
    """When to look whether the steps still fit the time."""
    return {round(share * config.steps) for share in (0.1, 0.3, 0.6)}


def evaluation_steps(config: TrainingConfig) -> set[int]:
    every = config.evaluate_every or max(1, math.ceil(config.steps / 10))
    return {*range(every, config.steps + 1, every), config.steps}


def sample_steps(config: TrainingConfig) -> set[int]:
    """Log-spaced, the last at the end: models learn most of what one can see early on."""
    if config.num_samples == 0 or config.steps == 0:
        return set()
    spaced = np.geomspace(config.steps, max(1, config.steps / 64), config.num_samples)
    return {round(step) for step in spaced}
