"""Peak memory of tokenizing a large text and starting to train on it, above what the same model needs on a small one.

    python -m benchmarks.memory [--gigabytes 1]

The text is varied: lines of the standard library and the language reference in random order, with random numbers.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

from benchmarks.measure import peak_of_command
from seqwise.data.builtin import BUILTIN

LIMIT = 1e9


def write_text(path: Path, num_bytes: int) -> None:
    lines = [line for corpus in BUILTIN.values() for line in corpus.text(None).splitlines() if line.strip()]
    source = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        written = 0
        while written < num_bytes:
            block = "".join(f"{line} {source.randrange(10**6)}\n" for line in source.choices(lines, k=10_000))
            written += file.write(block)


def peak_of_training(text: Path, out: Path, cache: Path, tokenizer: str) -> tuple[float, float]:
    """Peak resident bytes and seconds of a training of three steps."""
    command = ["train", str(text), "--out", str(out), "--steps", "3", "--tokenizer", tokenizer]
    command += ["--set", "tokenizer.vocab_size=4096"] if tokenizer == "bpe" else []
    began = time.perf_counter()
    peak = peak_of_command(command, out=Path(os.devnull), environment={"SEQWISE_CACHE": str(cache)})
    return peak, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.txt", folder / "large.txt"
        write_text(small, 1_000_000)
        write_text(large, int(options.gigabytes * 1e9))
        print(f"text: {large.stat().st_size / 1e9:.2f} GB")
        for tokenizer in ("char", "bpe"):
            base, _ = peak_of_training(small, folder / f"small-{tokenizer}", folder / "cache", tokenizer)
            peak, seconds = peak_of_training(large, folder / f"large-{tokenizer}", folder / "cache", tokenizer)
            above = peak - base
            print(
                f"{tokenizer}: peak {peak / 1e6:,.0f} MB, {base / 1e6:,.0f} MB on 1 MB of text: {above / 1e6:,.0f} MB "
                f"above (limit {LIMIT / 1e6:,.0f} MB: {'kept' if above < LIMIT else 'MISSED'}); "
                f"{seconds:.0f} s to the third step",
                flush=True,
            )


if __name__ == "__main__":
    main()
