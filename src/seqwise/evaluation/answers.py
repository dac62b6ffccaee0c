"""How well a model answers for whole sequences: accuracy for labels, squared error for numbers, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import __version__
from ..data.batch import Batch
from ..data.examples import ExampleStore
from ..models.contract import Answerer, device_of, evaluating
from .segments import Metric, Segments, interval_in_words

ROWS = 256  # scored at once


@dataclass(frozen=True)
class AnswerScore:
    nats: np.ndarray
    """-log p of each answer, (N,)."""
    is_right: np.ndarray | None
    """(N,) for labels."""
    squared_errors: np.ndarray | None
    """(N,) for numbers."""
    signature: str

    @property
    def nats_per_answer(self) -> float:
        return float(self.nats.mean())

    @property
    def accuracy(self) -> float:
        assert self.is_right is not None
        return float(self.is_right.mean())

    @property
    def mean_squared_error(self) -> float:
        assert self.squared_errors is not None
        return float(self.squared_errors.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Of accuracy, or of the mean squared error, 95 %, by resampling examples."""
        low, high = self.segments.interval
        return (low, high) if self.is_right is None else (1 - high, 1 - low)

    @property
    def metric(self) -> Metric:
        if self.is_right is None:
            return Metric("mean squared error", "squared error", digits=5)
        return Metric("share of wrong answers", "wrong", digits=4)

    @property
    def segments(self) -> Segments:
        """Wrong answers, or squared errors, example by example."""
        totals = self.squared_errors if self.is_right is None else ~self.is_right
        assert totals is not None
        return Segments.of(totals, np.ones(len(totals)))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        low, high = self.interval
        if self.is_right is not None:
            share = f"{100 * self.accuracy:.2f} % right ({interval_in_words((100 * low, 100 * high), 2)})"
            return f"{share} of {len(self.nats):,}, {self.nats_per_answer:.4f} nats per answer"
        error = f"{self.mean_squared_error:.5f} ({interval_in_words((low, high), 5)})"
        return f"mean squared error {error} over {len(self.nats):,}"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "answers", self.headline()
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "answers": len(self.nats),
            "interval": list(self.interval),
            "is_enough": self.segments.is_enough,
        }
        if self.is_right is not None:
            found |= {"accuracy": self.accuracy, "nats_per_answer": self.nats_per_answer}
        else:
            found |= {"mean_squared_error": self.mean_squared_error}
        return {**found, "signature": self.signature}


@torch.inference_mode()
def predict_answers(model: Answerer, batch: Batch) -> list[float]:
    return model.predict(batch.to(device_of(model))).answers.double().tolist()


@torch.inference_mode()
def evaluate_answers(model: Answerer, store: ExampleStore, *, scored: str = "") -> AnswerScore:
    """Answer every example of a part."""
    device, nats, errors, is_label = device_of(model), [], [], not np.issubdtype(store.answers.dtype, np.floating)
    with evaluating(model):
        for start in range(0, len(store), ROWS):
            batch = store.batch(slice(start, start + ROWS)).to(device)
            answers = model.predict(batch).answers.double().cpu().numpy()
            log_probs, _ = model.score(batch)
            nats.append(-log_probs[:, 0].double().cpu().numpy())
            errors.append(answers - store.answers[start : start + ROWS])
    error = np.concatenate(errors)
    signature = "|".join([*([scored] if scored else []), f"bootstrap=1000x{len(store)}", f"seqwise={__version__}"])
    if is_label:
        return AnswerScore(np.concatenate(nats), error == 0, None, f"accuracy|{signature}")
    return AnswerScore(np.concatenate(nats), None, error**2, f"squared error|{signature}")
