"""Learning by expectation and maximisation: Baum-Welch for hidden Markov models, its kin for linear systems.

A model has `initialise(sequences, seed)` and `em_step(sequences)`, which returns the objective (log-likelihood, and the
log prior where there is one) before the step, and never lowers it. Restarts begin from other random starts; the best
is kept. With `patience`, the best is what validates best, and a start ends when validation no longer improves.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import TrainingError
from ..models.contract import Model
from ..run import Checkpoint, load_weights
from ..settings import TrainingConfig
from ..wording import counted
from .loop import Hooks
from .report import Report

SLACK = 1e-7  # relative: what rounding may take away


class LearnsByEM(Model, Protocol):
    def initialise(self, sequences: Sequence[Any], seed: int) -> None: ...
    def em_step(self, sequences: Sequence[Any]) -> float: ...


@dataclass
class Progress:
    step: int = 0
    """Iterations made, over all restarts."""
    restart: int = 0
    iteration: int = 0
    """Of this restart."""
    objective: float | None = None
    """Of this restart, before its last iteration."""
    best: float | None = None
    """Over all restarts: the highest objective at the end of one or, with patience, the lowest validation."""
    lowest: float | None = None
    """Validation of this restart, with patience."""
    misses: int = 0
    """Validations since then that were no lower."""
    seconds: float = 0.0
    is_stopped: bool = False

    def begin_another(self, restarts: int) -> None:
        """This start is over: the next one, where there is one."""
        self.restart, self.iteration, self.objective = self.restart + 1, 0, None
        self.lowest, self.misses = None, 0
        self.is_stopped = self.restart == restarts


def expect_and_maximise(
    model: LearnsByEM,
    sequences: Sequence[Any],
    config: TrainingConfig,
    *,
    hooks: Hooks | None = None,
    resume: Checkpoint | None = None,
    has_start: bool = False,
) -> Iterator[Report]:
    """Up to `config.steps` iterations from each of `config.restarts` starts; one report an iteration.

    With `has_start` the first start is what the model holds already.
    """
    hooks = hooks or Hooks()
    num_steps = length_of(sequences)
    progress = Progress()
    if resume is not None:
        load_weights(model, resume.weights, Path(f"checkpoint of step {resume.step}"))
        progress = Progress(**{k: v for k, v in resume.progress.items() if k in Progress.__dataclass_fields__})
    last_checkpoint = time.monotonic()

    def save() -> None:
        if hooks.checkpoint:
            hooks.checkpoint(Checkpoint(dict(model.state_dict()), {}, asdict(progress)))

    while progress.restart < config.restarts and not progress.is_stopped:
        if progress.iteration == 0 and not (has_start and progress.restart == 0):
            model.initialise(sequences, config.seed + progress.restart)
        objective, gain = _iterate(model, sequences, progress)
        is_over = progress.iteration >= config.steps or (gain is not None and gain < config.tolerance * num_steps)
        is_due = is_over or progress.iteration % (config.evaluate_every or max(1, config.steps // 8)) == 0
        valid = hooks.validate() if hooks.validate and is_due else None
        event, has_patience = None, True
        if config.patience is None or hooks.validate is None:
            is_best = is_over and (progress.best is None or objective > progress.best)
            progress.best = objective if is_best else progress.best
        else:
            is_best = valid is not None and (progress.best is None or valid < progress.best)
            progress.best = valid if is_best else progress.best
            has_patience = not _no_longer_improves(progress, valid, config.patience)
            is_over = is_over or not has_patience
        if is_best and hooks.keep_best:
            hooks.keep_best()
        if is_over:
            event = f"start {progress.restart + 1} of {config.restarts}: {counted(progress.iteration, 'iteration')}, "
            event += f"{-objective / num_steps:.4f} nats per step" + (", the best so far" if is_best else "")
            event += "" if has_patience else "; validation no longer improves"
            progress.begin_another(config.restarts)
        sample = hooks.sample() if is_over and hooks.sample else None
        told = {"valid": valid, "is_best": is_best, "sample": sample, "event": event}
        yield _report(progress, config, num_steps, objective, **told)
        asked = hooks.wants_stop()
        if asked or progress.is_stopped or time.monotonic() - last_checkpoint >= config.checkpoint_seconds:
            save()
            last_checkpoint = time.monotonic()
        if asked:
            return


def _iterate(model: LearnsByEM, sequences: Sequence[Any], progress: Progress) -> tuple[float, float | None]:
    """One iteration: the objective before it, and by how much that is above the one before."""
    began = time.perf_counter()
    objective = model.em_step(sequences)
    progress.seconds += time.perf_counter() - began
    if not math.isfinite(objective):
        raise TrainingError(
            f"the likelihood became {objective} in iteration {progress.iteration + 1}. Try another --seed, fewer "
            "states, or more smoothing (--set model.smoothing=0.1)."
        )
    gain = None if progress.objective is None else objective - progress.objective
    if gain is not None and gain < -SLACK * max(1.0, abs(objective)):
        raise AssertionError(f"EM lowered its objective from {progress.objective} to {objective}: this is our mistake")
    progress.objective, progress.step, progress.iteration = objective, progress.step + 1, progress.iteration + 1
    return objective, gain


def _report(progress: Progress, config: TrainingConfig, num_steps: int, objective: float, **told: Any) -> Report:
    left = config.steps * (config.restarts - progress.restart) - progress.iteration  # at most
    return Report(
        step=progress.step,
        steps=progress.step + left,
        tokens=progress.step * num_steps,
        loss=-objective / num_steps,
        learning_rate=0.0,
        gradient_norm=0.0,
        clipped=0,
        seconds=progress.seconds,
        tokens_per_second=progress.step * num_steps / max(1e-9, progress.seconds),
        **told,
    )


def _no_longer_improves(progress: Progress, valid: float | None, patience: int) -> bool:
    """Count a validation of this restart, where there was one; whether so many in a row were no lower."""
    if valid is not None:
        is_lower = progress.lowest is None or valid < progress.lowest
        progress.lowest = valid if is_lower else progress.lowest
        progress.misses = 0 if is_lower else progress.misses + 1
    return progress.misses >= max(1, patience)


def length_of(sequences: Sequence[Any]) -> int:
    """Steps in all: of tokens, or of (values, which of them are there)."""
    return sum(len(sequence if isinstance(sequence, np.ndarray) else sequence[0]) for sequence in sequences)
