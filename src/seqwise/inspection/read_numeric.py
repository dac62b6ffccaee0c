"""What is no text, as a model reads it: a segment of a series, or one example with its answer.

Shapes: T steps, C columns, A answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..data.batch import Batch, Values
from ..data.examples import ExampleStore
from ..data.numbers import NumberStore
from ..data.schema import ValueSpec
from ..errors import DataError
from ..models.contract import Answerer, Forecaster, State, device_of, evaluating
from ..wording import counted
from .reading import BIT, START, Column, Expected, Reading
from .trace import record

Z95 = 1.96
MAX_COLUMNS = 3  # of a row, that stand in the text


def read_series(model: Forecaster, store: NumberStore, scaling: ValueSpec, *, row: int, max_steps: int) -> Reading:
    """From `row` of the part on; what has a state has read all rows before, as it has where it is scored."""
    first = store.first - 1 + row  # what is read first; what is predicted first stands behind it
    room = max_steps if model.context is None else min(max_steps, model.context)
    steps = min(room, len(store) - first)
    if not 0 <= row <= len(store) - store.first:
        raise DataError(
            f"the part has {counted(len(store) - store.first + 1, 'row')}; there is none with the number {row:,}."
        )
    batch = store.batch(np.arange(first, first + steps + 1)[None]).to(device_of(model))
    with torch.inference_mode(), evaluating(model):
        state = _state_before(model, store, first)
        with record(model) as trace:
            log_probs, _ = model.score(batch, state)
        means, scales = _expected_rows(model, batch.inputs["values"], state)  # (T, C) each
    there = store.is_observed[first + 1 : first + steps + 1]
    read = np.where(there, scaling.decode(store.values[first + 1 : first + steps + 1]), np.nan)
    bounds = [scaling.decode(means + side * Z95 * scales) for side in (0, -1, 1)]
    columns = [
        Column(name, read[:, c].tolist(), *(bound[:, c].tolist() for bound in bounds))
        for c, name in enumerate(scaling.columns)
    ]
    expected = [[Expected(_range(columns, t), 0.95)] for t in range(steps)]
    log_scales = (there * np.log(scaling.scale)).sum(axis=1)  # from scaled units to the data's own, as in evaluation
    bits = ((log_scales - log_probs[0].double().cpu().numpy()) / BIT).tolist()
    pieces = [START, *(f"{_row(values)} " for values in read)]
    return Reading(
        pieces, [], [math.nan, *bits], expected, batch, trace, columns=columns, unit="bits a step", is_text=False
    )


def _state_before(model: Forecaster, store: NumberStore, row: int) -> State | None:
    """After all rows before `row`; None where a model has no state, and begins anew."""
    if model.context is not None:
        return None
    state: State | None = model.initial_state(1)
    if row:
        _, state = model.score(store.batch(np.arange(row + 1)[None]).to(device_of(model)), state)
    return state


def _expected_rows(model: Forecaster, inputs: Values, state: State | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the row behind each input."""
    there = inputs.is_observed if inputs.is_observed is not None else torch.ones_like(inputs.values, dtype=torch.bool)
    if state is None:
        expected, state = model.start(Batch({"values": Values(inputs.values[:, :1], there[:, :1])}, {}))
    else:
        expected, state = model.step(inputs.values[:, 0], state, there[:, 0])
    means, scales = [], []
    for t in range(inputs.shape[1]):
        means.append(expected.mean[0].double().cpu().numpy())
        scales.append(expected.variance[0].double().sqrt().cpu().numpy())
        if t + 1 < inputs.shape[1]:
            expected, state = model.step(inputs.values[:, t + 1], state, there[:, t + 1])
    return np.stack(means), np.stack(scales)


def _row(values: np.ndarray) -> str:
    shown = ["?" if math.isnan(value) else f"{value:.4g}" for value in values[:MAX_COLUMNS]]
    return "/".join(shown) + ("/…" if len(values) > MAX_COLUMNS else "")


def _range(columns: Sequence[Column], t: int) -> str:
    return ", ".join(f"{c.middle[t]:.4g} ({c.low[t]:.4g} to {c.high[t]:.4g})" for c in columns[:MAX_COLUMNS])


def read_example(model: Answerer, store: ExampleStore, labels: Sequence[str], *, row: int) -> Reading:
    """One example, step by step; its answer is known behind the last."""
    if not 0 <= row < len(store):
        raise DataError(f"the part has {counted(len(store), 'example')}; there is none with the number {row:,}.")
    batch = store.batch(slice(row, row + 1)).to(device_of(model))
    with torch.inference_mode(), evaluating(model):
        with record(model) as trace:
            log_probs, _ = model.score(batch)
        prediction = model.predict(batch)
    inputs, steps = store.inputs[row], len(store.inputs[row])
    if inputs.ndim == 1 or inputs.shape[1] == 1:
        pieces = [f"{value:.3g} " for value in inputs.reshape(-1).tolist()]
    else:
        pieces = [f"row {step + 1} " for step in range(steps)]
    bits = [math.nan] * (steps - 1) + [-float(log_probs[0, 0]) / BIT]
    expected = [*([] for _ in range(steps - 1)), _answers(prediction, labels)]
    return Reading(pieces, [], bits, expected, batch, trace, unit="bits for the answer", is_text=False, is_answer=True)


def _answers(prediction: Any, labels: Sequence[str]) -> list[Expected]:
    if not labels:
        return [Expected(f"{float(prediction.answers[0]):.4g}", 1.0)]
    probabilities = prediction.log_probs[0].double().exp().tolist()
    ranked = sorted(zip(labels, probabilities, strict=True), key=lambda option: -option[1])
    return [Expected(label, probability) for label, probability in ranked]
