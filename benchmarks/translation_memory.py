"""Memory of translating a file of a million lines: it should not grow with the lines.

    python -m benchmarks.translation_memory [--lines 1000000]

A tiny model (dates from English to French) answers greedily, so that the lines are what takes time, not the model.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import seqwise
from seqwise.data.pairs import open_pairs

FEW = 20_000
ALLOWED = 50e6  # bytes above what a few lines take
SETTINGS = ["model.model_dim=32", "model.cell=gru"]


def translate(run: Path, sources: Path, out: Path) -> tuple[float, float, int]:
    """Peak resident bytes, seconds, and lines written."""
    measured = "import resource, sys; from seqwise.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    measured += "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
    command = [sys.executable, "-c", measured, "predict", str(run), str(sources), "--method", "greedy"]
    began = time.perf_counter()
    with out.open("w") as file:
        done = subprocess.run(command, check=True, stdout=file, stderr=subprocess.PIPE, text=True)
    with out.open("rb") as file:
        lines = sum(1 for _ in file)
    return 1024 * float(done.stderr.strip().splitlines()[-1]), time.perf_counter() - began, lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seqwise.train("dates:en-fr:4000", "seq2seq", out=folder / "run", steps=150, overrides=SETTINGS)
        dates = [source for source, _ in open_pairs(["dates:en-fr:4000"]).parts["train"]]
        for number in (FEW, lines):
            with (folder / "sources.txt").open("w", encoding="utf-8") as file:
                for place in range(number):
                    file.write(dates[place % len(dates)] + "\n")
            peak, seconds, written = translate(folder / "run", folder / "sources.txt", folder / "targets.txt")
            if number == FEW:
                base = peak
            print(
                f"{number:>9,} lines: peak {peak / 1e6:,.0f} MB, {seconds:.0f} s, {number / seconds:,.0f} lines/s, "
                f"{written:,} written",
                flush=True,
            )
        above = peak - base
        print(f"{above / 1e6:,.0f} MB above (allowed {ALLOWED / 1e6:,.0f}: {'kept' if above < ALLOWED else 'MISSED'})")


if __name__ == "__main__":
    main()
