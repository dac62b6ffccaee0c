"""How long a training step takes, and whether compiling it pays: found by trying."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn

from ..goals.goal import BatchSource, Tell
from ..models.contract import Learns
from ..settings import TrainingConfig
from .loop import Objective, Trainer

FASTER_ALONE = 1.1  # times as long with several threads as with one


@dataclass(frozen=True)
class StepTime:
    each: float
    """Seconds of a step once it runs."""
    first: float
    """Seconds of the first one, with all that it prepares."""


def seconds_per_step(
    model: torch.nn.Module,
    batches: BatchSource,
    config: TrainingConfig,
    *,
    max_seconds: float,
    min_steps: int = 4,
    make_objective: Callable[[torch.nn.Module], Objective] = lambda model: model.loss,  # type: ignore[assignment,return-value]
) -> StepTime:
    """The time of a training step, measured on a copy of the model that is thrown away.

    At least `min_steps` steps are made, and more while they take no more than `max_seconds` seconds.
    """
    trial = copy.deepcopy(model).train()
    random_state = torch.get_rng_state()
    trainer = Trainer(trial, batches, config, objective=make_objective(trial))
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < min_steps or (len(times) < 24 and time.perf_counter() - began - times[0] < max_seconds):
        start = time.perf_counter()
        trainer.set_rate()
        trainer.measure()
        trainer.move()
        times.append(time.perf_counter() - start)
    torch.set_rng_state(random_state)
    steady = sorted(times[2:] or times[-1:])  # the first ones allocate
    return StepTime(steady[len(steady) // 3], times[0])  # a burst of other work should not cost half the budget


def seconds_alone(model: torch.nn.Module, batches: BatchSource, config: TrainingConfig, *, max_seconds: float) -> float:
    """Of a step with one thread: where other work is on the machine, several threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return seconds_per_step(model, batches, config, max_seconds=max_seconds).each
    finally:
        torch.set_num_threads(before)


def can_compile(model: torch.nn.Module) -> bool:
    """Whether torch's compiler has something to fuse, and shapes that stay; a module that is not fit for it says so."""
    return all(getattr(module, "can_compile", True) for module in model.modules())


def compiled_loss(model: nn.Module) -> Objective:
    return torch.compile(cast(Learns, model).loss)


def choose_compile(
    model: torch.nn.Module, batches: BatchSource, config: TrainingConfig, plain: float, seconds: float, tell: Tell
) -> tuple[str, float]:
    """Whether compiling pays within so many seconds of training, and the seconds of a step that follow."""
    try:
        tried = seconds_per_step(model, batches, config, max_seconds=10.0, make_objective=compiled_loss)
    except Exception as error:
        tell(f"torch cannot compile here ({str(error).splitlines()[0][:80]}); going on without")
        return "never", plain
    gain = seconds * (1 - tried.each / plain) - tried.first
    if gain <= 0:
        tell(f"compiling does not pay: {tried.each:.3f} s a step against {plain:.3f} s without")
        return "never", plain
    tell(f"compiled: {tried.each:.3f} s a step instead of {plain:.3f} s")
    return "always", tried.each
