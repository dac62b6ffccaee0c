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
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..errors import TrainingError
from ..models.contract import Loss, State, device_of, restart_rows
from ..run import Checkpoint, load_weights
from ..settings import TrainingConfig
from .optimizers import (
    build_optimizers,
    load_optimizer_tensors,
    optimizer_tensors,
    rate_at,
    set_rate,
)
from .report import Report


class BatchSource(Protocol):
    """Gives the batch of any step by itself, so that a run resumes at the exact place."""

    def batch(self, step: int) -> Batch: ...


MOST_REWINDS = 4
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
    """Called when validation improved."""
    checkpoint: Callable[[Checkpoint], None] | None = None
    """Called every `checkpoint_seconds`, and when training ends or is asked to."""
    plan: Callable[[int, float], int | None] | None = None
    """Asked now and then, told the steps made and the seconds they took: how many should there be? None: as planned."""
    wants_stop: Callable[[], bool] = lambda: False
    """Asked after each step; then a checkpoint is the last thing that happens."""


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
    optimizers = build_optimizers(model, config)
    progress = Progress()
    carried: list[State | None] = [None] * config.micro_batches
    if resume is not None:
        progress, carried = _restore(model, optimizers, resume, config)
    objective = objective or cast(Objective, model.loss)
    trainer = _Trainer(model, batches, config, objective, optimizers, progress, carried)
    evaluate_at, sample_at, plan_at = evaluation_steps(config), sample_steps(config), planning_steps(config)
    report_every = config.report_every or max(1, config.steps // 200)
    last_checkpoint = time.monotonic()
    model.train()
    if hooks.checkpoint and resume is None:  # so that there is always one to go back to
        hooks.checkpoint(trainer.checkpoint())
    good = trainer.checkpoint().copy()
    copy_every = max(1, config.steps // 50)
    while progress.step < config.steps and not progress.is_stopped:
        share = rate_at(progress.step, config) * progress.plateau_share
        set_rate(optimizers, share)
        if found := trainer.update():
            went_back = trainer.rewind(good, found)
            progress = trainer.progress
            yield trainer.report(config.learning_rate * share, event=went_back)
            continue
        if progress.step % copy_every == 0:
            good = trainer.checkpoint().copy()
        step, is_last = progress.step, progress.step == config.steps
        valid = hooks.validate() if hooks.validate and step in evaluate_at else None
        is_best, event = _judge(valid, progress, config)
        if is_best and hooks.keep_best:
            hooks.keep_best()
        sample = hooks.sample() if hooks.sample and (step in sample_at) else None
        if valid is not None or sample is not None or is_last or step % report_every == 0 or event:
            yield trainer.report(config.learning_rate * share, valid=valid, is_best=is_best, sample=sample, event=event)
        is_due = time.monotonic() - last_checkpoint >= config.checkpoint_seconds
        if hooks.plan and step in plan_at and (steps := hooks.plan(step, progress.seconds)):
            config = trainer.config = replace(config, steps=steps)
            evaluate_at, sample_at, plan_at = evaluation_steps(config), sample_steps(config), planning_steps(config)
            is_due = True
        is_over = is_last or progress.is_stopped or hooks.wants_stop()
        if hooks.checkpoint and (is_due or is_over):
            hooks.checkpoint(trainer.checkpoint())
            last_checkpoint = time.monotonic()
        if is_over:
            return


class _Trainer:
    """The moving parts of one training run."""

    def __init__(
        self,
        model: nn.Module,
        batches: BatchSource,
        config: TrainingConfig,
        objective: Objective,
        optimizers: list[torch.optim.Optimizer],
        progress: Progress,
        carried: list[State | None],
    ):
        self.model, self.batches, self.config, self.objective = model, batches, config, objective
        self.optimizers, self.progress, self.carried = optimizers, progress, carried
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = device_of(model)

    def update(self) -> str | None:
        """One step: read a batch, sum gradients over its parts, clip, move the weights.

        Where the loss or the gradient is not a number nothing is moved, and what was found is told.
        """
        began = time.perf_counter()
        batch = self.batches.batch(self.progress.step).to(self.device)
        counts, nats = batch.counts(), 0.0
        for part, micro_batch in enumerate(batch.split(self.config.micro_batches)):
            loss = self.objective(micro_batch, self._state_before(part, micro_batch))
            objective = loss.over(counts)
            objective.backward()
            nats += float(objective.detach())
            self.carried[part] = loss.state.detach() if loss.state is not None else None
        if self.config.clip_value:
            nn.utils.clip_grad_value_(self.parameters, self.config.clip_value)
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm or math.inf))
        is_good = math.isfinite(nats) and math.isfinite(norm)
        for optimizer in self.optimizers:
            if is_good:
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if not is_good:
            self.progress.seconds += time.perf_counter() - began
            what = f"the loss became {nats}" if not math.isfinite(nats) else f"the gradient's length became {norm}"
            return f"{what} at step {self.progress.step + 1}"
        self._account(nats, norm, sum(counts.values()), time.perf_counter() - began)
        return None

    def rewind(self, good: Checkpoint, found: str) -> str:
        """Go back to the last good copy with a lower rate, and say so; give up where that has not helped before."""
        before = self.progress
        if before.rewinds >= MOST_REWINDS:
            raise TrainingError(self._gave_up(found))
        self.progress, self.carried = _restore(self.model, self.optimizers, good, self.config)
        self.progress.seconds, self.progress.rewinds = before.seconds, before.rewinds + 1
        self.progress.plateau_share = before.plateau_share * REWIND_FACTOR
        rate = self.config.learning_rate * self.progress.plateau_share
        return f"{found}: back to step {good.step}, with the highest rate lowered to {rate:.2g}"

    def _state_before(self, part: int, micro_batch: Batch) -> State | None:
        """What the chunk before left behind, for the rows that go on from it."""
        state = self.carried[part]
        if state is None or micro_batch.starts_anew is None:
            return state
        fresh: State = self.model.fresh_state(len(micro_batch))  # type: ignore[operator]
        return restart_rows(state, micro_batch.starts_anew, fresh)

    def _account(self, nats: float, norm: float, num_tokens: int, seconds: float) -> None:
        since = self.progress.since_report
        since["nats"] += nats * num_tokens
        since["count"] += num_tokens
        since["norm"] = max(since["norm"], norm)
        since["clipped"] += bool(self.config.clip_norm) and norm > self.config.clip_norm
        self.progress.step += 1
        self.progress.tokens += num_tokens
        self.progress.seconds += seconds

    def _gave_up(self, found: str) -> str:
        rate = self.config.learning_rate * self.progress.plateau_share
        return (
            f"{found}, after {MOST_REWINDS} returns to a good step with lower rates. "
            f"The last good checkpoint is kept. Try a lower rate "
            f"(--set training.learning_rate={rate / 3:.2g}), a longer warm-up "
            f"(--set training.warmup_steps={max(20, 4 * self.config.warmup_steps)}) or clipping "
            "(--set training.clip_norm=0.5)."
        )

    def report(self, learning_rate: float, **what: Any) -> Report:
        progress, since = self.progress, self.progress.since_report
        report = Report(
            step=progress.step,
            steps=self.config.steps,
            tokens=progress.tokens,
            loss=since["nats"] / max(1, since["count"]),
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
        tensors = optimizer_tensors(self.optimizers)
        tensors["random.cpu"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        for part, state in enumerate(self.carried):
            for name, tensor in (state.own if state is not None else {}).items():
                tensors[f"carried.{part}.{name}"] = tensor
        progress = {**vars(self.progress), "best": None if math.isinf(self.progress.best) else self.progress.best}
        return Checkpoint(dict(self.model.state_dict()), tensors, progress)


def _restore(
    model: nn.Module, optimizers: list[torch.optim.Optimizer], saved: Checkpoint, config: TrainingConfig
) -> tuple[Progress, list[State | None]]:
    load_weights(model, saved.weights, Path(f"checkpoint of step {saved.step}"))
    load_optimizer_tensors(optimizers, saved.optimizer)
    torch.set_rng_state(saved.optimizer["random.cpu"])
    if "random.cuda" in saved.optimizer and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved.optimizer["random.cuda"])
    carried: list[State | None] = []
    for part in range(config.micro_batches):
        prefix = f"carried.{part}."
        own: dict[str, Tensor] = {
            name.removeprefix(prefix): t.to(device_of(model))
            for name, t in saved.optimizer.items()
            if name.startswith(prefix)
        }
        carried.append(State(own) if own else None)
    known = {name: value for name, value in saved.progress.items() if name in Progress.__dataclass_fields__}
    known["best"] = math.inf if known["best"] is None else known["best"]
    return Progress(**known), carried


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
