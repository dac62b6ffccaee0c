"""Compiled entry points: C functions of five whole numbers, kept on disk, compiled by a process of their own.

    entry = ENTRIES["gpt"]
    entry.load()                  -> True if its machine code is there; if not, it is read or compiled meanwhile
    entry(rank, ranks, meetings, met, frame)

Compiling takes seconds and would hold Python's lock all the while, so that nothing else goes on: another process does
it (`python -m seqwise.kernels.compiled gpt`). Until the code is there, torch computes. A call lets other threads of
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
import threading
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
GIVE_UP = 120.0  # seconds that a process may take to compile
PATIENCE = 0.3  # seconds, about what reading takes: a text that torch has written by then needs no compiled code


READING = threading.Lock()
if hasattr(os, "register_at_fork"):  # a process that is forked while numba reads would wait for its locks for ever
    os.register_at_fork(before=READING.acquire, after_in_parent=READING.release, after_in_child=READING.release)


class Entry:
    """A function of SIGNATURE by its machine code."""

    began: float | None = None
    """When this process first asked for any of them."""

    def __init__(self, module: str, function: str):
        self.module, self.function = module, function
        self._code: Any = None
        self._search: threading.Thread | None = None
        self._is_awaited = threading.Event()
        self._failure, self._has_told = "", False

    def __call__(self, rank: int, ranks: int, meetings: int, met: int, frame: int) -> int:
        return int(self._code.ctypes(rank, ranks, meetings, met, frame))

    @property
    def address(self) -> int:
        return int(self._code.address)

    def load(self, *, wait: bool = False) -> bool:
        """Whether the code is there. If not, it is looked for in the background; `wait` for that."""
        if self._code is not None:
            return True
        if self._search is None or not (self._search.is_alive() or self._failure):  # or its process was forked since
            Entry.began = time.monotonic() if Entry.began is None else Entry.began
            self._search = threading.Thread(target=self._find, args=(Entry.began + PATIENCE,), daemon=True)
            self._search.start()
        if wait:
            self._is_awaited.set()
            self._search.join()
        if self._failure and not self._has_told:
            self._has_told = True
            message = f"a step could not be compiled, so torch takes it, more slowly: {self._failure}"
            warnings.warn(message, stacklevel=2)
        return self._code is not None

    def compile(self) -> None:
        """Here and now, and keep it on disk."""
        code = self._uncompiled()
        code.compile()
        self._code = code

    def _find(self, earliest: float) -> None:
        """On disk, or else by another process; not before the first tokens are written, which it would slow down."""
        self._is_awaited.wait(max(0.0, earliest - time.monotonic()))
        try:
            if self._read():
                return
            command = [sys.executable or "python", "-m", __name__, f"{self.module}:{self.function}"]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=GIVE_UP)
            if done.returncode or not self._read():
                self._failure = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            self._failure = str(error)

    def _read(self) -> bool:
        """From disk, if it is there. This takes some tenths of a second in which others can compute."""
        with READING:
            code = self._uncompiled()
            if code._cache.load_overload(code._sig, code._targetdescr.target_context) is None:
                return False
            code.compile()  # which finds it there
            self._code = code
        return True

    def _uncompiled(self) -> Any:
        function = getattr(importlib.import_module(f".{self.module}", __package__), self.function)
        options = {"nopython": True, "fastmath": FAST, "error_model": "numpy"}
        made: Any = CFunc(function, (SIGNATURE.args, SIGNATURE.return_type), {}, options)
        made._cache = FunctionCache(function)
        made._cache._cache_file._source_stamp = fingerprint()
        return made


ENTRIES = {
    "write": Entry("writing", "write"),
    "search": Entry("searching", "search"),
    "best": Entry("best_tokens", "best_tokens"),
    "conv": Entry("conv_step", "conv_step"),
    "recurrent": Entry("recurrent_step", "recurrent_step"),
    "transformer": Entry("transformer_step", "transformer_step"),
    "gpt": Entry("gpt_step", "gpt_step"),
}
"""The loops that write a text and go on with a beam, what a beam looks at, and a step of each family."""


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
