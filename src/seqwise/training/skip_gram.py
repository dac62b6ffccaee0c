"""Learning word vectors: a few passes over the text in compiled loops, one report for each part of it."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from ..errors import TrainingError
from ..models.word2vec import EPOCHS, Part, Word2Vec, steps_per_epoch
from ..run import Checkpoint, load_weights
from ..settings import TrainingConfig
from ..wording import counted, plural
from .loop import Hooks
from .report import Report

TRIED_TOKENS = 200_000  # by which a budget in minutes is turned into steps
NUM_VALIDATIONS = 5
ENOUGH_TOKENS = 5_000_000  # a shorter text is read more often
MAX_EPOCHS = 50.0  # that minutes come to: the vectors hardly change any more


def learn_vectors(
    model: Word2Vec,
    ids: np.ndarray,
    config: TrainingConfig,
    *,
    hooks: Hooks | None = None,
    resume: Checkpoint | None = None,
) -> Iterator[Report]:
    """`config.steps` parts of a text (`planned_steps` says how many), read by `num_workers(config)` threads.

    Vectors have no validation that would tell when to stop: the last ones are kept. What is validated is the next token
    (models/word2vec.py, 7).
    """
    hooks = hooks or Hooks()
    begin, seconds = 0, 0.0
    if resume is not None:
        load_weights(model, resume.weights, Path(f"checkpoint of step {resume.step}"))
        begin, seconds = resume.step, float(resume.progress["seconds"])
    last_checkpoint = time.monotonic()
    for part in model.fit(
        ids,
        steps=config.steps,
        learning_rate=config.learning_rate,
        final_rate=config.final_rate,
        workers=num_workers(config),
        seed=config.seed,
        begin=begin,
    ):
        seconds += part.seconds
        yield _report(part, seconds, hooks, config)
        asked, is_over = hooks.wants_stop(), part.step == part.steps
        is_due = asked or is_over or time.monotonic() - last_checkpoint >= config.checkpoint_seconds
        if is_due and hooks.checkpoint:
            progress = {"step": part.step, "seconds": seconds, "is_stopped": is_over}
            hooks.checkpoint(Checkpoint(dict(model.state_dict()), {}, progress))
            last_checkpoint = time.monotonic()
        if asked:
            return


def _report(part: Part, seconds: float, hooks: Hooks, config: TrainingConfig) -> Report:
    if not math.isfinite(part.loss):
        raise TrainingError(
            f"the loss became {part.loss} in part {part.step} of {part.steps}. "
            f"Lower the learning rate, for example: --set training.learning_rate={config.learning_rate / 2:g}"
        )
    is_over = part.step == part.steps
    is_due = is_over or part.step % (config.evaluate_every or max(1, part.steps // NUM_VALIDATIONS)) == 0
    valid = hooks.validate() if is_due and hooks.validate else None
    if is_over and hooks.keep_best:
        hooks.keep_best()
    return Report(
        step=part.step,
        steps=part.steps,
        tokens=part.tokens,
        loss=part.loss,
        learning_rate=part.rate,
        gradient_norm=0.0,
        clipped=0,
        seconds=seconds,
        tokens_per_second=part.tokens / max(1e-9, seconds),
        valid=valid,
        is_best=is_over,
    )


def planned_steps(model: Word2Vec, ids: np.ndarray, config: TrainingConfig) -> tuple[int, str]:
    """What a budget comes to, and a sentence about it: epochs and minutes in parts of the text, else a few epochs.

    For minutes, the beginning of the text is read once, by a copy of the model.
    """
    per_epoch = steps_per_epoch(len(ids))
    if config.minutes is None:
        usual = min(MAX_EPOCHS, max(EPOCHS, ENOUGH_TOKENS / len(ids)))
        steps = max(1, round((config.epochs or usual) * per_epoch))
        return steps, f"{counted(steps, 'part')} of the text, {steps / per_epoch:.2g} times all of it"
    tried, some = copy.copy(model), ids[:TRIED_TOKENS]
    parts = list(tried.fit(some, steps=2, workers=num_workers(config), seed=config.seed))  # the first may compile
    seconds_per_epoch = parts[-1].seconds * len(ids) / len(some)
    epochs = min(MAX_EPOCHS, 60 * config.minutes / max(1e-9, seconds_per_epoch))
    steps = max(1, int(epochs * per_epoch))
    budget = f"{config.minutes:g} {plural(config.minutes, 'minute')}"
    is_all = "are enough, where there would be" if epochs == MAX_EPOCHS else "fit"
    return steps, f"{counted(steps, 'part')} of the text, {steps / per_epoch:.2g} times all of it, {is_all} {budget}"


def num_workers(config: TrainingConfig) -> int:
    """Threads that learn side by side: with one, a run repeats to the bit."""
    return config.threads or torch.get_num_threads()
