"""The preflight of numbers names what is missing, far off, shifted or seasonal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.data.check_numbers import check_numbers
from seqwise.data.numbers import open_numbers


def write(path: Path, values: np.ndarray) -> Path:
    lines = ["a,b", *(",".join("" if np.isnan(v) else f"{v:.4f}" for v in row) for row in values)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def values() -> np.ndarray:
    time, random = np.arange(400), np.random.default_rng(0)
    return np.column_stack([np.sin(2 * np.pi * time / 20), 5 + random.normal(size=400)])


def test_a_sound_table_has_nothing_odd(tmp_path: Path, values: np.ndarray) -> None:
    found = check_numbers(open_numbers(write(tmp_path / "x.csv", values)))
    assert (found.rows, found.season, found.warnings) == (400, 20, [])
    assert [column.missing for column in found.columns] == [0, 0]
    assert list(found.sentences())[-1] == "nothing suspicious found"


def test_gaps_far_numbers_and_shifts_are_told(tmp_path: Path, values: np.ndarray) -> None:
    values[10:110, 0] = np.nan
    values[200:203, 0] = np.nan
    values[50, 1] = 1000
    values[360:, 1] += 2000
    found = check_numbers(open_numbers(write(tmp_path / "x.csv", values)))
    first, second = found.columns
    assert (first.missing, first.longest_gap) == (103, 100)
    assert second.far == 41
    assert second.shift > 3
    told = " ".join(found.warnings)
    assert "a: 26 % of its numbers are missing" in told
    assert "b: 41 numbers lie far outside" in told
    assert "b: the last part lies +" in told


def test_from_the_command_line(terminal: Any, tmp_path: Path, values: np.ndarray) -> None:
    path = write(tmp_path / "x.csv", values)
    out, _ = terminal.done("data", "check", path)
    assert "the series resembles itself after 20 steps" in out
    out, _ = terminal.done("data", "check", path, "--json")
    assert json.loads(out)["results"][0]["season"] == 20
