"""What fits a budget in minutes: steps of a gradient family, iterations of EM, the order of an n-gram. Found by trying,
once; from then on it is a setting of the run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ..data.schema import Schema
from ..goals.goal import BatchSource, Tell
from ..models.ngram import Ngram, NgramConfig
from ..settings import TrainingConfig
from ..wording import counted, plural
from .em import LearnsByEM, length_of
from .sizing import DEFAULT_MINUTES
from .timing import FASTER_ALONE, can_compile, choose_compile, seconds_alone, seconds_per_step

TRAINING_SHARE = 0.9  # of a budget in minutes; the rest is validation, samples and checkpoints
VALIDATION_SHARE = 0.006  # of a budget, for each of about ten validations
LONG_ENOUGH_TO_COMPILE = 600  # seconds of budget
AS_PLANNED = 0.15  # of the steps: a machine is never quite even
MIN_STEPS = 500  # over a short text
MIN_ITERATIONS = 20  # of EM; where they do not fit, it learns from a part of the text
MAX_ORDER = 12
TRIED_COUNTS = 20_000  # tokens, to see how long counting takes
MIN_STATES, MAX_STATES = 4, 128
TRIED_ITERATIONS = 30  # with each number of states
CHOOSING_SHARE = 0.6  # of the time, to choose it


def plan_steps(
    model: nn.Module, batches: BatchSource, config: TrainingConfig, num_valid: int, tell: Tell
) -> dict[str, Any]:
    """Settings of the training that turn minutes into steps."""
    seconds = (config.minutes or DEFAULT_MINUTES) * 60
    per_step = seconds_per_step(model, batches, config, max_seconds=min(10.0, 0.04 * seconds)).each
    threads = config.threads or torch.get_num_threads()
    if not config.threads and threads > 1:
        alone = seconds_alone(model, batches, config, max_seconds=min(5.0, 0.02 * seconds))
        if per_step > FASTER_ALONE * alone:
            tell(f"one thread is faster here than {threads}: {alone:.3f} s a step against {per_step:.3f} s")
            threads, per_step = 1, alone
            torch.set_num_threads(1)
    compile_: str = config.compile
    if compile_ == "auto":
        compile_ = "never"
        if seconds >= LONG_ENOUGH_TO_COMPILE and can_compile(model):
            compile_, per_step = choose_compile(model, batches, config, per_step, TRAINING_SHARE * seconds, tell)
    fitting = max(10, int(TRAINING_SHARE * seconds / per_step))
    steps = min(fitting, max(MIN_STEPS, round(config.max_epochs * batches.steps_per_epoch)))
    per_batch = batches.batch(0).num_steps
    # scoring costs about a third of training on as many tokens
    affordable = int(VALIDATION_SHARE * seconds * 3 * per_batch / per_step)
    changes: dict[str, Any] = {"steps": steps, "compile": compile_, "threads": threads}
    if affordable < (config.valid_tokens or num_valid):
        changes["valid_tokens"] = max(4096, affordable)
    elif not config.evaluate_every and 4 * (config.valid_tokens or num_valid) < affordable:
        changes["evaluate_every"] = max(1, steps // 40)  # validating is cheap: find the best moment
    passes = f"{steps / batches.steps_per_epoch:.2g} times the training part"
    planned, budget = f"{counted(steps, 'step')} of {per_batch:,}", f"{seconds / 60:g} {plural(seconds / 60, 'minute')}"
    if steps < fitting:
        tell(f"{planned}, {passes}, are enough: the data is small for {budget}")
    else:
        tell(f"{planned} fit {budget} ({passes})")
    return changes


def planned_anew(step: int, seconds: float, config: TrainingConfig, steps_per_epoch: int) -> int | None:
    """Steps in all, where those made so far took much more or less time than was thought; None where they did not."""
    assert config.minutes is not None
    fitting = round(TRAINING_SHARE * config.minutes * 60 * step / max(1e-9, seconds))
    steps = min(max(fitting, step + 1), max(MIN_STEPS, round(config.max_epochs * steps_per_epoch)))
    return steps if abs(steps - config.steps) > AS_PLANNED * config.steps and steps > step else None


def plan_iterations(
    model: LearnsByEM, sequences_of: Callable[[int], list[Any]], num_tokens: int, config: TrainingConfig, tell: Tell
) -> dict[str, Any]:
    """Settings of the training that turn minutes into iterations and starts of EM.

    `sequences_of(n)` gives the first n tokens of the training part. `config.steps` are the most that are useful.
    """
    assert config.minutes is not None
    sequences = sequences_of(20_000)
    tried = length_of(sequences)
    model.initialise(sequences, config.seed)
    model.em_step(sequences)  # compiles, where it was not yet
    began = time.perf_counter()
    model.em_step(sequences)
    per_token = (time.perf_counter() - began) / tried
    tokens, iterations = tokens_and_iterations(60 * config.minutes, per_token, num_tokens, min_tokens=tried)
    restarts = max(1, min(config.restarts, iterations // config.steps))
    steps = min(config.steps, max(1, iterations // restarts))
    if tokens < num_tokens:
        tell(f"learns from the first {tokens:,} of {num_tokens:,}, so that {counted(steps, 'iteration')} fit")
    tell(f"{restarts} x {counted(steps, 'iteration')} fit {config.minutes:g} {plural(config.minutes, 'minute')}")
    return {"steps": steps, "restarts": restarts, "train_tokens": 0 if tokens == num_tokens else tokens}


def tokens_and_iterations(seconds: float, per_token: float, num_tokens: int, *, min_tokens: int) -> tuple[int, int]:
    """How much of the text EM learns from, and how often it can go over that: all, or as much as leaves enough rounds.

    `per_token` are seconds; `min_tokens` tokens are learned from in any case.
    """
    fitting = int(TRAINING_SHARE * seconds / per_token)  # tokens in all iterations
    tokens = min(num_tokens, max(min_tokens, fitting // MIN_ITERATIONS))
    return tokens, max(1, fitting // tokens)


def choose_states(
    build: Callable[[int], Any],
    sequences: list[Any],
    config: TrainingConfig,
    validate: Callable[[Any], float],
    *,
    seconds: float,
    wants_stop: Callable[[], bool],
    tell: Tell,
) -> tuple[int, Any, float]:
    """The number of hidden states that validates best: twice as many while that helps and there is time.

    Returns it, the model it was tried with, which is a good start for all of the text, and the seconds of an iteration.
    """
    began, num_steps, losses = time.perf_counter(), length_of(sequences), dict[int, float]()
    best: tuple[int, Any, float] | None = None
    num_states = MIN_STATES
    while best is None or (num_states <= MAX_STATES and not wants_stop()):
        model, before, iterations = build(num_states), -math.inf, 0
        begun = time.perf_counter()
        model.initialise(sequences, config.seed)
        while iterations < min(config.steps, TRIED_ITERATIONS):
            objective, iterations = model.em_step(sequences), iterations + 1
            spent = time.perf_counter() - began
            if objective - before < config.tolerance * num_steps or spent > CHOOSING_SHARE * seconds or wants_stop():
                break
            before = objective
        took = time.perf_counter() - begun
        losses[num_states] = validate(model)
        if best is not None and losses[num_states] >= losses[best[0]]:
            break
        best = num_states, model, took / max(1, iterations)
        num_states *= 2
        if time.perf_counter() - began + 4 * took > CHOOSING_SHARE * seconds:  # an iteration takes Z * Z
            break
    shown = ", ".join(f"{states}: {loss:.4f}" for states, loss in losses.items())
    tell(f"{best[0]} hidden states validate best (nats per step by their number: {shown})")
    return best


def countable_tokens(model: Ngram, ids: np.ndarray, *, seconds: float) -> int:
    """Tokens that one count has a third of the time for, by counting a few: on a busy machine fewer than by rule."""
    few = ids[:TRIED_COUNTS]
    model.fit(few)  # compiles, where it was not yet
    began = time.perf_counter()
    model.fit(few)
    per_token = (time.perf_counter() - began) / len(few)
    return max(len(few), int(seconds / 3 / max(1e-12, per_token)))


def choose_order(
    config: NgramConfig,
    schema: Schema,
    ids: np.ndarray,
    validate: Callable[[Ngram], float],
    *,
    first: int,
    max_parameters: int = 0,
    seconds: float,
    tell: Tell,
) -> int:
    """The order that validates best: from `first` on upwards while that helps, else downwards, until time is up."""
    began, found = time.perf_counter(), dict[int, float]()

    def loss_of(order: int) -> float:
        if order not in found:
            model = Ngram(replace(config, order=order), schema)
            model.fit(ids)
            is_small = not max_parameters or model.num_parameters <= max_parameters
            found[order] = validate(model) if is_small else math.inf
        return found[order]

    def has_time() -> bool:
        spent = time.perf_counter() - began
        return spent + 2 * spent / len(found) < seconds  # the last fit is still to come

    best = first
    while math.isinf(loss_of(best)) and best > 1:  # too many grams
        best -= 1
    for direction in (1, -1):
        while 1 <= best + direction <= MAX_ORDER and has_time() and loss_of(best + direction) < loss_of(best):
            best += direction
        if best > first:
            break
    shown = ", ".join(f"{order}: {found[order]:.4f}" for order in sorted(found))
    tell(f"order {best} validates best (nats per token by order: {shown})")
    return best
