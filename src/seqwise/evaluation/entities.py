"""How well words are tagged: F1 over entities where tags mark them, else the share of right tags. Provisional."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.tag_schemes import entities_of
from .segments import Metric, Segments, interval_in_words


@dataclass(frozen=True)
class TagScore:
    wanted: list[list[str]]
    answers: list[list[str]]
    nats_per_word: float
    scheme: str
    signature: str
    others: dict[str, Any] = field(default_factory=dict)
    """Scores of what else is answered for a row, by name."""

    @property
    def segments(self) -> Segments:
        if not self.scheme:
            wrong = [
                sum(a != b for a, b in zip(x, y, strict=True)) for x, y in zip(self.wanted, self.answers, strict=True)
            ]
            return Segments.of(np.array(wrong), np.array([len(x) for x in self.wanted]))
        rows = []
        for wanted, answers in zip(self.wanted, self.answers, strict=True):
            a, b = set(entities_of(wanted)), set(entities_of(answers))
            rows.append((len(a ^ b), len(a) + len(b)))
        found = np.array(rows)
        return Segments.of(found[:, 0], found[:, 1])

    @property
    def metric(self) -> Metric:
        return (
            Metric("one minus F1", "1 - F1", digits=4)
            if self.scheme
            else Metric("share of wrong tags", "wrong", digits=4)
        )

    @property
    def value(self) -> float:
        return 1 - self.segments.value

    @property
    def accuracy(self) -> float:
        right = sum(a == b for x, y in zip(self.wanted, self.answers, strict=True) for a, b in zip(x, y, strict=True))
        return right / max(1, sum(map(len, self.wanted)))

    @property
    def interval(self) -> tuple[float, float]:
        low, high = self.segments.interval
        return 1 - high, 1 - low

    def headline(self) -> str:
        low, high = self.interval
        name = "F1" if self.scheme else "right tags"
        return f"{name} {100 * self.value:.2f} % ({interval_in_words((100 * low, 100 * high), 2)}) over {len(self.wanted):,} rows"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "tags", self.headline()
        for name, score in self.others.items():
            yield name, score.headline()
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "f1" if self.scheme else "accuracy": self.value,
            "interval": list(self.interval),
            "signature": self.signature,
        }
