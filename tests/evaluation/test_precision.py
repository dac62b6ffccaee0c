"""What 8 bits cost is told with its bound; a model that they cost more is told to be used as it was learned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from seqwise.evaluation import precision
from seqwise.evaluation.precision import cost_of_precision

KINDS = {
    "Score": ("bits_per_char", 2.0, 1 + precision.MAX_BITS, "% bits per character", "1 %"),
    "TranslationScore": ("bleu", 30.0, 1 - precision.MAX_BLEU / 30, "BLEU", "0.3"),
    "LabelScore": ("accuracy", 0.9, 1 - precision.MAX_RIGHT / 0.9, "points of accuracy", "0.5"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cost_within_its_bound_is_told_and_one_beyond_it_is_a_warning(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, before, at_bound, unit, bound = KINDS[kind]
    monkeypatch.setattr(precision, kind, SimpleNamespace)  # what it looks at are three numbers

    def told(factor: float) -> str:
        after: Any = SimpleNamespace(**{name: before * factor})
        return cost_of_precision(SimpleNamespace(**{name: before}), after)

    half, twice = (1 + (at_bound - 1) * share for share in (0.5, 2.0))
    assert told(half).endswith(f"{unit}; up to {bound} is the bound.")
    assert told(twice).endswith(f"{unit}, more than the bound of {bound}: use this run as it was learned (float32).")
    assert told(half).startswith("8 bits cost +" if kind == "Score" else "8 bits cost -")


def test_the_loss_is_the_one_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "Score", SimpleNamespace)
    found = cost_of_precision(SimpleNamespace(bits_per_char=2.0), SimpleNamespace(bits_per_char=2.05))
    assert found == (
        "8 bits cost +2.50 % bits per character, more than the bound of 1 %: use this run as it was learned (float32)."
    )


def test_of_other_scores_the_two_are_shown() -> None:
    assert cost_of_precision(1.0, 2.0) == "what 8 bits cost is the difference of the two scores above."
