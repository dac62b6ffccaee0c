"""A small run of every format that was ever released stays here and keeps loading."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from seqwise.models import MODELS

FIXTURES = Path(__file__).parent / "fixtures"
RUNS = sorted(path.parent for path in FIXTURES.glob("format-*/*/config.toml"))
specification = importlib.util.spec_from_file_location("make_runs", FIXTURES / "make_runs.py")
assert specification is not None
assert specification.loader is not None
make_runs = importlib.util.module_from_spec(specification)
specification.loader.exec_module(make_runs)


@pytest.mark.parametrize("folder", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_old_run_loads_and_says_what_it_said(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    assert make_runs.log_probs(folder) == pytest.approx(expected, abs=1e-5)


def test_every_family_has_a_run_of_the_format_that_brought_it() -> None:
    assert {path.name for path in RUNS if path.parent.name == "format-1"} == {"ngram", "lstm", "gpt"}
    assert {path.name for path in RUNS if path.parent.name == "format-2"} == set(MODELS)
