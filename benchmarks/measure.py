"""How we measure: both sides in one run, taking turns, and the ratio with its spread."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """Ours over theirs, per repeat."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True)]

    def __str__(self) -> str:
        return (
            f"{statistics.median(self.ours):10.1f} {statistics.median(self.theirs):10.1f} "
            f"{statistics.median(self.ratios):7.2f}x  ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        )


def take_turns(ours: Callable[[], float], theirs: Callable[[], float], repeats: int = 5) -> Ratio:
    """Run both sides `repeats` times in turn, after one warm-up each; each call returns its rate."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(repeats)]
    return Ratio([a for a, _ in pairs], [b for _, b in pairs])


CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
CLOCK = "BENCHMARK_CLOCK"
"""Beside other work, BENCHMARK_CLOCK=processor counts the seconds of the processor: fair where both sides have one
thread, and still off where others take the memory's bandwidth."""


def now() -> float:
    """Seconds, by the clock that was asked for."""
    return CLOCKS[os.environ.get(CLOCK, "wall")]()


def say_load() -> None:
    load, clock = os.getloadavg()[0], os.environ.get(CLOCK, "wall")
    print(f"load {load:.1f}, {clock} clock" + (": the machine is busy, figures will be off" if load > 1.0 else ""))


def peak_bytes() -> int:
    """The most memory this process had. getrusage would count what the process that started it had, too."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def peak_of_command(arguments: list[str], *, out: Path, environment: dict[str, str] | None = None) -> float:
    """The most memory that `seqwise` with these arguments had, in bytes; what it prints goes to `out`."""
    program = "import sys; from benchmarks.measure import peak_bytes; from seqwise.cli import main\n"
    program += "try: code = main()\nexcept SystemExit as end: code = end.code\nsys.stderr.write(f'\\n{peak_bytes()}')\n"
    program += "sys.exit(code)"
    with out.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, **(environment or {})},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stderr.splitlines()[-1])


class Side:
    """A side in a process of its own: where it needs other packages, its memory is measured, or threads would meet.

    The process takes its turns in `for asked in turns()`, each begun by `ask(...)`, and ends them with `answer(...)`.
    What it says besides goes to `log`.
    """

    def __init__(self, python: Path | str, module: str, *arguments: Path | str, log: Path):
        self.log = log
        self.process = subprocess.Popen(
            [python, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            cwd=Path(__file__).parents[1],
        )

    def ask(self, **what: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: its log says why
        if not (line := self.process.stdout.readline()):
            raise RuntimeError(f"{self.process.args} ended:\n{self.log.read_text()[-2000:]}")
        return json.loads(line)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def turns() -> Iterator[dict[str, Any]]:
    return map(json.loads, iter(sys.stdin.readline, ""))


def answer(**found: Any) -> None:
    print(json.dumps(found), flush=True)
