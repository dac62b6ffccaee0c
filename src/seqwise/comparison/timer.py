"""Time that may be spent on measuring, and what had to be left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Timer:
    """Seconds that may be spent, and what was left out when they were gone."""

    def __init__(self, seconds: float, per_unit: float = 0.0):
        self.ends = time.perf_counter() + seconds
        self.per_unit = per_unit
        """Seconds of scoring one unit of a part, as it was just measured."""
        self.left_out: list[str] = []

    @property
    def left(self) -> float:
        return max(0.0, self.ends - time.perf_counter())

    def has_time_for(self, what: str, seconds: float = 0.0) -> bool:
        """Whether it would fit; what does not is remembered."""
        fits = self.left > seconds
        if not fits:
            self.left_out.append(what)
        return fits

    def best_of_two(self, work: Callable[[], Any]) -> float:
        """Seconds; the first time prepares what later ones find, and is all there is where time is short."""
        times: list[float] = []
        while not times or (len(times) < 2 and 2 * times[0] < self.left):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        return max(1e-9, min(times))
