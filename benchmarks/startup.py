"""How long `--help` takes, and the first token of a text.

The help of every command; the first token in a process that begins, with compiled steps, whose code is on disk, and
without them.

    python -m benchmarks.startup [tokens]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from benchmarks.measure import say_load
from seqwise.cli import app
from seqwise.models.engine import SETTING

REPEATS = 7
LIMIT = 0.3


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The program itself, and every command and group of commands that it has."""
    yield before
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*before, name))


FIRST_TOKEN = """
import sys, time
import torch
from seqwise.data.schema import text_schema
from seqwise.decoding import DecodingConfig, stream
from seqwise.models.gpt import GPTConfig, build_gpt
from seqwise.text.symbols import SymbolTokenizer
from benchmarks.measure import now
config = GPTConfig(context=256, num_layers=4, model_dim=128, num_heads=4)
model = build_gpt(config, text_schema(SymbolTokenizer(65))).eval()
began, found = now(), []
for token in stream(model, [1] * 16, DecodingConfig(method="greedy", max_tokens=100)):
    found.append(now() - began)
    if len(found) in (1, 100):
        print(found[-1])
"""


def first_tokens(use: str) -> tuple[float, float]:
    """Seconds until the first token, and until the hundredth."""
    command = [sys.executable, "-c", FIRST_TOKEN]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, SETTING: use})
    first, last = map(float, done.stdout.split())
    return first, last


def compare_first_tokens() -> None:
    first_tokens("on")  # what is not compiled yet is compiled now
    turns = [{use: first_tokens(use) for use in ("auto", "off")} for _ in range(REPEATS)]
    for place, what in enumerate(("first", "hundredth")):
        medians = {use: statistics.median(turn[use][place] for turn in turns) for use in ("auto", "off")}
        ratios = [turn["auto"][place] / turn["off"][place] for turn in turns]
        print(
            f"{what} token: {1000 * medians['auto']:.1f} ms, by torch {1000 * medians['off']:.1f} ms, "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def main() -> None:
    say_load()
    compare_first_tokens()
    if sys.argv[1:] == ["tokens"]:
        return
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
