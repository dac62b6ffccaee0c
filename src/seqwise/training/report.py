"""Report: what training tells. Progress bar, log file and tests read the same stream."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

CLOCK_FIELDS = ("seconds", "tokens_per_second")
"""What differs when a run is repeated or resumed; everything else is the same to the bit."""


@dataclass(frozen=True)
class Report:
    step: int
    steps: int
    """Steps in all."""
    tokens: int
    """Read so far in training: tokens of all inputs, or rows of numbers."""
    loss: float
    """Of the objective, over the steps since the last report: nats per target, mean over what was read."""
    learning_rate: float
    gradient_norm: float
    """The largest since the last report, before clipping."""
    clipped: int
    """Steps since the last report whose gradient was cut to clip_norm."""
    seconds: float
    """Spent in training steps so far; validation, samples and checkpoints not counted."""
    tokens_per_second: float
    terms: dict[str, float] | None = None
    """Where the objective has several terms: each by its name, nats per target."""
    valid: float | None = None
    """Validation loss, nats per token, where it was measured at this step."""
    is_best: bool = False
    sample: str | None = None
    event: str | None = None
    """A sentence on something that happened: the rate was lowered, training stopped early."""

    def to_dict(self) -> dict[str, Any]:
        """For the log: fields that say nothing are left out."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}
