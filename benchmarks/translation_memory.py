"""Memory of translating a file of a million lines: it should not grow with the lines.

    python -m benchmarks.translation_memory [--lines 1000000]

A tiny model (dates from English to French) answers greedily, so that the lines are what takes time, not the model.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import seqwise
from benchmarks.measure import peak_of_command
from seqwise.data.pairs import open_pairs

MIN_LINES = 20_000
ALLOWED = 50e6  # bytes above what a few lines take
SETTINGS = ["model.model_dim=32", "model.cell=gru"]


def translate(run: Path, sources: Path, out: Path) -> tuple[float, float, int]:
    """Peak resident bytes, seconds, and lines written."""
    began = time.perf_counter()
    peak = peak_of_command(["predict", str(run), str(sources), "--method", "greedy"], out=out)
    with out.open("rb") as file:
        lines = sum(1 for _ in file)
    return peak, time.perf_counter() - began, lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seqwise.train("dates:en-fr:4000", "seq2seq", out=folder / "run", steps=150, overrides=SETTINGS)
        dates = [source for source, _ in open_pairs(["dates:en-fr:4000"]).parts["train"]]
        for number in (MIN_LINES, lines):
            with (folder / "sources.txt").open("w", encoding="utf-8") as file:
                for place in range(number):
                    file.write(dates[place % len(dates)] + "\n")
            peak, seconds, written = translate(folder / "run", folder / "sources.txt", folder / "targets.txt")
            if number == MIN_LINES:
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
