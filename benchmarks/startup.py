"""How long `--help` takes, for every command.

python -m benchmarks.startup
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from seqwise.cli import app

REPEATS = 7
LIMIT = 0.3


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The program itself, and every command and group of commands that it has."""
    yield before
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*before, name))


def main() -> None:
    program = Path(sys.executable).with_name("seqwise")
    worst = 0.0
    for command in commands(typer.main.get_command(app)):
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            subprocess.run([program, *command, "--help"], check=True, capture_output=True)
            times.append(time.perf_counter() - began)
        worst = max(worst, statistics.median(times))
        print(
            f"seqwise {' '.join([*command, '--help']):<22} {statistics.median(times):.3f} s "
            f"({min(times):.3f} to {max(times):.3f})"
        )
    print(f"slowest median {worst:.3f} s, limit {LIMIT} s: {'kept' if worst < LIMIT else 'MISSED'}")


if __name__ == "__main__":
    main()
