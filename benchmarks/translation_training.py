"""Training a Transformer for translation against joeynmt: source and target tokens per second, and peak memory.

    python -m venv peers
    peers/bin/pip install --constraint constraints.txt --editable '.[bench-translation]'
    python -m benchmarks.translation_training --peer-python peers/bin/python [--repeats 5] [--steps 10] [--dropout 0.1]

joeynmt 2.3.0 wants older packages than others do, hence an environment of its own. Each side runs its own training loop
in a process of its own; they take turns of --steps updates, and the first turn of each warms up. Both read the same
files of token numbers; tokens are counted without padding, with one end token for each source and each target.

The same: 3 + 3 layers of width 256, 4 heads, feed-forward 1,024, ReLU, normalised before each layer, sines for
positions, one table for source, target and output; label smoothing 0.1, Adam, gradients clipped at length 1, float32,
threads.
Not the same: joeynmt has biases in attention and four more tokens in the vocabulary, and drops attention weights and
values inside the feed-forward layer as well, which cannot be set apart (--dropout 0 leaves all of it out).
A batch of 4,096 tokens is rows x longest side on both: joeynmt takes rows in random order and stops at the first that
reaches 4,096; ours are of about one length, count the begin token of targets too, and stay below.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import Side, say_load, take_turns
from benchmarks.translation_data import SIZES, open_translation
from seqwise.data.schema import pair_tokenizers

BATCH_TOKENS = 4096
WANTED = 3.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter that has joeynmt")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="updates in a turn")
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    if subprocess.run([options.peer_python, "-c", "import joeynmt"], capture_output=True).returncode:
        print(f"skipped: {options.peer_python} has no joeynmt; how to get one with it stands at the top of this file")
        return
    say_load()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tokens(folder, {"steps": options.steps, "dropout": options.dropout})
        with (
            Side(sys.executable, "benchmarks.peers.seqwise_training", folder, log=folder / "ours.log") as ours,
            Side(options.peer_python, "benchmarks.peers.joeynmt_training", folder, log=folder / "theirs.log") as theirs,
        ):
            told: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}

            def rate(name: str, side: Side) -> float:
                told[name].append(side.ask())
                return told[name][-1]["tokens"] / told[name][-1]["seconds"]

            ratio = take_turns(lambda: rate("ours", ours), lambda: rate("theirs", theirs), options.repeats)
    kept = "kept" if statistics.median(ratio.ratios) >= WANTED else "MISSED"
    print(f"{'ours':>10} {'joeynmt':>10} {'ratio':>8}   source and target tokens per second, median and range")
    print(f"{ratio}; {WANTED:.0f}x: {kept}")
    for name in ("ours", "theirs"):
        print(f"{name:6}: {in_words(told[name])}")
    peaks = [told[name][-1]["peak"] for name in ("ours", "theirs")]
    print(f"peak memory: {peaks[0] / peaks[1]:.2f} of theirs: {'kept' if peaks[0] <= peaks[1] else 'MISSED'}")


def write_tokens(folder: Path, more: dict[str, Any]) -> None:
    """Tokens by number, a pair a line in two files: what both sides read."""
    data, schema = open_translation()
    tokenizer, _ = pair_tokenizers(schema)  # one for both sides
    for part in ("train", "valid"):
        for side, language in enumerate(("source", "target")):
            lines = (" ".join(map(str, tokenizer.encode(pair[side]))) for pair in data.parts[part])
            (folder / f"{part}.{language}").write_text("".join(line + "\n" for line in lines))
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in range(tokenizer.vocab_size)))
    settings = {
        "vocab_size": tokenizer.vocab_size,
        "boundary": tokenizer.boundary,
        "sizes": SIZES,
        "batch_tokens": BATCH_TOKENS,
        "label_smoothing": 0.1,
        "learning_rate": 5e-4,
        "warmup_steps": 100,
        "clip_norm": 1.0,
        "threads": torch.get_num_threads(),
        **more,
    }
    (folder / "settings.json").write_text(json.dumps(settings))


def in_words(told: list[dict[str, Any]]) -> str:
    """Of all turns but the first."""
    summed = ("tokens", "places", "steps", "seconds")
    tokens, places, steps, seconds = (sum(turn[name] for turn in told[1:]) for name in summed)
    last = told[-1]
    return (
        f"{tokens / steps:,.0f} tokens a step in {places / steps:,.0f} places ({tokens / places:.0%} filled), "
        f"{seconds / steps:.2f} s a step; peak {last['peak'] / 1e6:,.0f} MB, {last['before'] / 1e6:,.0f} MB before the "
        f"first step; {last['parameters']:,} parameters, {last['versions']}, {last['threads']} threads; loss, as "
        f"it counts it, {last['loss']:.2f} nats after {sum(turn['steps'] for turn in told)} steps"
    )


if __name__ == "__main__":
    main()
