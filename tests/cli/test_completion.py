"""Shells complete commands and options, without importing what computes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = """
import sys
from seqwise.cli import main
sys.argv[0] = "seqwise"
try:
    main()
finally:
    sys.stderr.write(str("torch" in sys.modules))
"""


@pytest.mark.parametrize(("words", "expected"), [("seqwise tra", "train"), ("seqwise train --min", "--minutes")])
def test_what_was_begun_is_completed(words: str, expected: str) -> None:
    environment = {**os.environ, "_SEQWISE_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split()) - 1)
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == [expected]
    assert done.stderr.endswith("False")
