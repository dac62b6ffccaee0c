"""How we measure: both sides in one run, taking turns, and the ratio with its spread."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Ours over theirs, per repeat."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    def __str__(self) -> str:
        return (
            f"{statistics.median(self.ours):10.1f} {statistics.median(self.theirs):10.1f} "
            f"{statistics.median(self.ratios):7.2f}x  ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        )


def take_turns(ours: Callable[[], float], theirs: Callable[[], float], repeats: int = 5) -> Ratio:
    """Run both sides `repeats` times in turn, after one warm-up each; each call returns its rate."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(repeats)]
    return Ratio([a for a, _ in pairs], [b for _, b in pairs])


def say_load() -> None:
    load = os.getloadavg()[0]
    print(f"load {load:.1f}" + (": the machine is busy, figures will be off" if load > 1.0 else ""))
