"""What the frame computes must not change while it is rebuilt: the same seed gives the same losses, to the bit.

Written down by fixtures/make_losses.py; `stopped` are runs of format 2 that were stopped half-way and go on here.
Since the last bits depend on the processor, they are compared where a training that is not ours gives the same ones.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

specification = importlib.util.spec_from_file_location("make_losses", Path(__file__).parent / "fixtures/make_losses.py")
assert specification is not None
assert specification.loader is not None
made = importlib.util.module_from_spec(specification)
specification.loader.exec_module(made)
WRITTEN: dict[str, Any] = json.loads(made.LOSSES.read_text())


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return made.write_data(tmp_path_factory.mktemp("data"))


SAME_ARITHMETIC = made.arithmetic() == WRITTEN["arithmetic"]
SAME_IN_64_BITS = made.arithmetic_in_64_bits() == WRITTEN["arithmetic_in_64_bits"]


def check_same(case: str, was: list[str], now: list[str]) -> None:
    """To the bit where the arithmetic is the same; on another processor, as near as rounding allows."""
    assert len(now) == len(was)
    in_64_bits = made.CASES[case][0] in made.IN_64_BITS
    if SAME_IN_64_BITS if in_64_bits else SAME_ARITHMETIC:
        assert now == was
    else:
        tolerance = 1e-8 if in_64_bits else 2e-3
        assert all(made.is_close(*pair, tolerance) for pair in zip(was, now, strict=True))


def check_case(case: str, written: dict[str, Any], found: dict[str, Any]) -> None:
    check_same(case, written["losses"], found["losses"])
    assert found["score"].keys() >= written["score"].keys()  # a score may tell more than it did
    check_same(case, list(written["score"].values()), [found["score"][name] for name in written["score"]])


def in_a_process_of_its_own(case: str, files: dict[str, str], out: Path) -> dict[str, Any]:
    """What is compiled depends in its last bit on what the process compiled before; a user's process begins anew."""
    code = "import json, sys, torch, make_losses; from pathlib import Path; torch.set_num_threads(1); "
    code += "print(json.dumps(make_losses.train_case(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]))))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(made.LOSSES.parent), *sys.path])}
    command = [sys.executable, "-c", code, case, json.dumps(files), str(out)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("case", made.CASES)
def test_the_same_seed_gives_the_same_losses(case: str, files: dict[str, str], tmp_path: Path) -> None:
    train = in_a_process_of_its_own if made.CASES[case][0] in made.IN_64_BITS else made.train_case
    check_case(case, WRITTEN["runs"][case], train(case, files, tmp_path / case))


@pytest.mark.parametrize("case", made.STOPPED_CASES)
def test_a_run_of_format_2_goes_on_to_the_same_end(case: str, files: dict[str, str], tmp_path: Path) -> None:
    check_case(case, WRITTEN["resumed"][case], made.resume_case(case, files, tmp_path / case))
