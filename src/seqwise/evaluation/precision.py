"""What rounding weights to 8 bits costs, and whether that is more than it should."""

from __future__ import annotations

from typing import Any

from .answers import LabelScore
from .likelihood import Score
from .translations import TranslationScore

MAX_BITS, MAX_BLEU, MAX_RIGHT = 0.01, 0.3, 0.005
"""Share of the bits per character, points of BLEU, share of answers that are right."""


def cost_of_precision(before: Any, after: Any) -> str:
    """A sentence about two scores of one run on the same data."""
    if isinstance(before, Score):
        cost, limit = after.bits_per_char / before.bits_per_char - 1, MAX_BITS
        told, allowed = f"{100 * cost:+.2f} % bits per character", f"{100 * limit:g} %"
    elif isinstance(before, TranslationScore):
        cost, limit = before.bleu - after.bleu, MAX_BLEU
        told, allowed = f"{-cost:+.2f} BLEU", f"{limit:g}"
    elif isinstance(before, LabelScore):
        cost, limit = before.accuracy - after.accuracy, MAX_RIGHT
        told, allowed = f"{-100 * cost:+.2f} points of accuracy", f"{100 * limit:g}"
    else:
        return "what 8 bits cost is the difference of the two scores above."
    if cost <= limit:
        return f"8 bits cost {told}; up to {allowed} is the bound."
    return f"8 bits cost {told}, more than the bound of {allowed}: use this run as it was learned (float32)."
