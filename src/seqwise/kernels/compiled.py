"""Compiled entry points: C functions of five whole numbers, kept on disk, compiled by a process of their own.

    entry = ENTRIES["gpt"]
    entry.load()                  -> True if its machine code is there; if not, a process begins to compile it
    entry(rank, ranks, meetings, met, frame)

Compiling takes seconds and would hold Python's lock all the while, so that nothing else goes on: another process does
it (`python -m seqwise.kernels.compiled gpt`), and until the code is there, torch computes. A call lets other threads of
Python run. What was compiled stands for one state of all kernels together: numba looks at the file of a function alone,
not at those that it calls.

A step (gpt_step.py, ...) is given the address of its frame: a few numbers, most of them addresses too, which
models/engine.py fills in. The plan (sizes, and addresses of weights), its factors, and the order of the addresses of
the state are each family's own. Rank, meetings and met: team.py.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from numba import types
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.errors import NumbaError

from .arithmetic import FAST

NUM_ROWS, NUM_SOURCES = 0, 1
"""Of a frame: rows that take a step, and the sources that they stand in groups for; as many as rows where there are
none."""
TOKENS = 2
"""int64 (R,): what is read."""
PLAN, FACTORS = 3, 4
"""int64 and float32."""
STATE = 5
"""int64: addresses."""
SCRATCH = 6
"""float32: room for what is computed on the way."""
LOG_PROBS = 7
"""float32 (R, V): what is found."""
FRAME = 8

SIGNATURE = types.int64(*[types.int64] * 5)
ASK_AGAIN = 0.25  # seconds until the disk is looked at once more
GIVE_UP = 120.0  # seconds that a process may take to compile


class Entry:
    """A function of SIGNATURE by its machine code."""

    def __init__(self, module: str, function: str):
        self.module, self.function = module, function
        self._code: Any = None
        self._compiler: subprocess.Popen[bytes] | None = None
        self._asked, self._began, self._has_failed = -ASK_AGAIN, 0.0, False

    def __call__(self, rank: int, ranks: int, meetings: int, met: int, frame: int) -> int:
        assert self._code is not None, "load() first"
        return int(self._code.ctypes(rank, ranks, meetings, met, frame))

    @property
    def address(self) -> int:
        assert self._code is not None, "load() first"
        return int(self._code.address)

    def load(self, *, wait: bool = False) -> bool:
        """Whether the code is there. If not, another process begins to compile it; `wait` for that."""
        if self._code is not None:
            return True
        while not self._has_failed:
            self._read()
            if self._code is not None or not self._go_on_compiling():
                break
            if not wait:
                return False
            time.sleep(ASK_AGAIN)
        return self._code is not None

    def compile(self) -> None:
        """Here and now, and keep it on disk."""
        code = self._uncompiled()
        code.compile()
        self._code = code

    def _uncompiled(self) -> Any:
        function = getattr(importlib.import_module(f".{self.module}", __package__), self.function)
        made: Any = CFunc(
            function,
            (SIGNATURE.args, SIGNATURE.return_type),
            {},
            {"nopython": True, "fastmath": FAST, "error_model": "numpy"},
        )
        made._cache = FunctionCache(function)
        made._cache._cache_file._source_stamp = fingerprint()
        return made

    def _read(self) -> None:
        """From disk, if it is there."""
        now = time.monotonic()
        if now < self._asked + ASK_AGAIN:
            return
        self._asked = now
        code = self._uncompiled()
        if code._cache.load_overload(code._sig, code._targetdescr.target_context) is not None:
            code.compile()  # which finds it there
            self._code = code

    def _go_on_compiling(self) -> bool:
        """Whether a process compiles it, or has just done so; says once if that cannot be done."""
        if self._compiler is None:
            command = [sys.executable or "python", "-m", __name__, f"{self.module}:{self.function}"]
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
            try:
                self._compiler, self._began = subprocess.Popen(command, **quiet), time.monotonic()  # type: ignore[call-overload]
            except OSError as error:  # no Python to be found, no process to be had
                return self._give_up(str(error))
            return True
        if self._compiler.poll() is None:
            return True
        if self._compiler.returncode == 0 and time.monotonic() - self._began < GIVE_UP:
            self._asked = -ASK_AGAIN
            self._read()
            if self._code is not None:
                return True
        said = (self._compiler.stderr.read() if self._compiler.stderr else b"").decode(errors="replace").strip()
        return self._give_up(said.splitlines()[-1] if said else f"exit code {self._compiler.returncode}")

    def _give_up(self, reason: str) -> bool:
        self._has_failed = True
        warnings.warn(f"a step could not be compiled, so torch takes it, more slowly: {reason}", stacklevel=2)
        return False


ENTRIES = {
    "write": Entry("writing", "write"),
    "conv": Entry("conv_step", "conv_step"),
    "recurrent": Entry("recurrent_step", "recurrent_step"),
    "transformer": Entry("transformer_step", "transformer_step"),
    "gpt": Entry("gpt_step", "gpt_step"),
}
"""The loop that writes a text, and a step of each family."""


@cache
def fingerprint() -> str:
    """Of all files that a step may be compiled from."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def main() -> None:
    """Compile entries by their names, or by module:function; all of them where none is named."""
    os.nice(5)
    wanted = sys.argv[1:] or list(ENTRIES)
    for name in wanted:
        entry = ENTRIES[name] if name in ENTRIES else Entry(*name.split(":"))
        try:
            entry.compile()
        except NumbaError as error:
            sys.exit(f"{name}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
