"""Numbers for people: a few digits, a unit, and an answer for every number there is."""

from __future__ import annotations

import math

import pytest

from seqwise.pages.quantities import count, duration, milliseconds, number, per_cent, size


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "—"),
        (7, "7"),
        (999, "999"),
        (999.6, "1.0 k"),
        (1_000, "1.0 k"),
        (9_940, "9.9 k"),
        (9_960, "10 k"),
        (325_547, "326 k"),
        (999_600, "1.0 M"),
        (1_204_000, "1.2 M"),
        (7_300_000_000, "7.3 B"),
        (5e18, "5,000,000 T"),
        (math.nan, "—"),
        (math.inf, "—"),
        (-3, "—"),
    ],
)
def test_counts(value: float, shown: str) -> None:
    assert count(value) == shown


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (size(512), "512 B"),
        (size(4_800_000), "4.8 MB"),
        (size(1_100_000_000), "1.1 GB"),
        (duration(0.04), "0.04 s"),
        (duration(3.14), "3.1 s"),
        (duration(312), "312 s"),
        (duration(599.9), "600 s"),
        (duration(840), "14 min"),
        (duration(9_000), "2.5 h"),
        (duration(0), "—"),
        (duration(math.nan), "—"),
        (milliseconds(0.42), "0.42 ms"),
        (milliseconds(0.0004), "<0.001 ms"),
        (milliseconds(1_234), "1,234 ms"),
        (per_cent(0.9404), "94.0 %"),
        (number(1.7134, 3), "1.713"),
        (number(-0.25, 2), "−0.25"),
        (number(-0.0001, 3), "0.000"),
        (number(math.inf, 3), "∞"),
        (number(-math.inf, 3), "−∞"),
        (number(math.nan, 3), "not a number"),
        (number(3.2e30, 3), "3.20e+30"),
    ],
)
def test_figures_for_people(shown: str, expected: str) -> None:
    assert shown == expected
