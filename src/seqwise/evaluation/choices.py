"""How often the most probable choice is the right one, beside what guessing would reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import __version__
from ..models.contract import Answerer
from .answers import AnswerStore, LabelScore, answers_of
from .segments import interval_in_words


@dataclass(frozen=True)
class ChoiceScore(LabelScore):
    """Labels are numbers of choices, which mean nothing by themselves: what is said of single labels is not told."""

    @property
    def chance(self) -> float:
        """The share of right answers by guessing."""
        return float((1.0 / np.isfinite(self.log_probs).sum(axis=1)).mean())

    def headline(self) -> str:
        low, high = self.interval
        share = f"{100 * self.accuracy:.2f} % right ({interval_in_words((100 * low, 100 * high), 2)})"
        return f"{share} of {len(self.wanted):,}, by guessing {100 * self.chance:.2f} %"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "choices", self.headline()
        told = f"{self.nats_per_answer:.4f} nats per answer"
        yield "probabilities", f"{told}, calibration error {100 * self.calibration_error:.2f} %"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        kept = ("answers", "interval", "is_enough", "accuracy", "nats_per_answer", "calibration_error", "reliability")
        whole = super().to_dict()
        return {**{name: whole[name] for name in kept}, "chance": self.chance, "signature": self.signature}


def evaluate_choices(model: Answerer, store: AnswerStore, names: Sequence[str], *, scored: str = "") -> ChoiceScore:
    found = answers_of(model, store)
    assert found.log_probs is not None
    signature = "|".join([*([scored] if scored else []), f"bootstrap=1000x{len(store)}", f"seqwise={__version__}"])
    return ChoiceScore(store.answers, found.answers, found.log_probs, list(names), f"accuracy of choices|{signature}")
