"""What numba compiled is found again by the next process, also where the package cannot be written to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import seqwise.kernels

COMPILE = """
import sys
import numpy as np
from kernels.word_slots import _num_tokens
assert _num_tokens(np.frombuffer(b"two words", dtype=np.uint8)) == 2
stats = _num_tokens.stats
sys.stdout.write(f"{sum(stats.cache_hits.values())} {sum(stats.cache_misses.values())} {stats.cache_path}")
"""


def compile_once(folder: Path) -> tuple[str, str, Path]:
    """In a process of its own: functions that were found, functions that were compiled, and where they are kept."""
    hidden = {name for name in os.environ if name.startswith("NUMBA_")}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "of-the-user")}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    found, compiled, path = done.stdout.split(maxsplit=2)
    return found, compiled, Path(path)


@pytest.mark.parametrize("can_be_written", [True, False])
def test_what_was_compiled_once_is_found_again(tmp_path: Path, can_be_written: bool) -> None:
    package, beside = tmp_path / "kernels", tmp_path / "kernels/__pycache__"
    shutil.copytree(Path(seqwise.kernels.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    if not can_be_written:
        beside.touch()  # no folder can be made in its place; permissions would not stop an administrator
    for expected in [("0", "1"), ("1", "0")]:
        found, compiled, path = compile_once(tmp_path)
        assert (found, compiled) == expected
        assert path == beside if can_be_written else path.is_relative_to(tmp_path / "of-the-user")
