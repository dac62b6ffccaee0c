"""Discounts and ratios of smoothing, from counts of counts that are known."""

from __future__ import annotations

import numpy as np
import pytest

from seqwise.layers.gram_counts import estimate_discount, estimate_discounts, estimate_ratios


def test_discounts_follow_from_counts_of_counts_and_fall_back_without_them() -> None:
    counts = np.repeat([1, 2, 3, 4], [40, 20, 10, 5])
    y = 40 / 80
    assert estimate_discounts(counts) == pytest.approx((1 - y * 2 * 20 / 40, 2 - y * 3 * 10 / 20, 3 - y * 4 * 5 / 10))
    assert estimate_discounts(np.array([100, 200, 300])) == (0.5, 1.0, 1.5)


def test_discounts_and_ratios_follow_from_counts_of_counts_and_fall_back_without_them() -> None:
    counts = np.repeat([1, 2, 3, 4, 5, 6], [60, 25, 12, 8, 6, 4])
    assert estimate_discount(counts) == pytest.approx(60 / 110)
    a = 6 * 4 / 60
    assert estimate_ratios(counts)[0] == pytest.approx((2 * 25 / 60 - a) / (1 - a))
    assert estimate_ratios(counts)[4] == pytest.approx((6 * 4 / (5 * 6) - a) / (1 - a))
    assert estimate_discount(np.array([1, 1, 3])) == 0.5
    assert estimate_ratios(np.array([1, 2, 3])) == [0.5, 0.75, 2.5 / 3, 0.875, 0.9]
    rising = np.repeat([1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60])
    assert estimate_ratios(rising) == [0.5, 0.75, 2.5 / 3, 0.875, 0.9]
