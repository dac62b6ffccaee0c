"""What looking inside costs: a pass of 500 tokens with `record`, against the plain pass.

    python -m benchmarks.recording [--repeats 5]

The default GPT (with a context of 512) and the default LSTM. Goal: at most 3 times the plain pass. Not recording: how
many notes a pass comes by, times what one costs, against the pass.
"""

from __future__ import annotations

import argparse
import statistics
import time
import timeit
from typing import Any

import torch

from seqwise.data.batch import next_token_batch
from seqwise.data.schema import text_schema
from seqwise.inspection import record
from seqwise.layers.notes import note
from seqwise.models import MODELS
from seqwise.text.symbols import SymbolTokenizer

TOKENS, VOCAB, WANTED = 500, 100, 3.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    batch = next_token_batch(torch.randint(VOCAB, (1, TOKENS + 1), generator=torch.Generator().manual_seed(0)))
    each = timeit.timeit(lambda: note(batch, "nothing", batch.inputs["tokens"].ids), number=200_000) / 200_000
    print(f"{'':8} {'plain':>9} {'recorded':>9} {'ratio':>7}   milliseconds, median and range of {repeats}")
    for family, settings in (("gpt", {"context": 512}), ("lstm", {})):
        row = MODELS[family]
        model = row.build(row.config(**settings), text_schema(SymbolTokenizer(VOCAB))).eval()
        plain, recorded, num_notes = measure(model, batch, repeats)
        ratios = [b / a for a, b in zip(plain, recorded, strict=True)]
        kept = "kept" if statistics.median(ratios) <= WANTED else "MISSED"
        print(
            f"{family:8} {1000 * statistics.median(plain):9.1f} {1000 * statistics.median(recorded):9.1f} "
            f"{statistics.median(ratios):6.2f}x  ({min(ratios):.2f} to {max(ratios):.2f}); goal {WANTED:.0f}x: {kept}"
        )
        share = num_notes * each / statistics.median(plain)
        print(f"{'':8} not recording: {num_notes} notes, {100 * share:.4f} % of the pass")


@torch.inference_mode()
def measure(model: Any, batch: Any, repeats: int) -> tuple[list[float], list[float], int]:
    """Seconds of each repeat, in turns, after one warm-up; and the notes that a plain pass comes by."""
    plain, recorded, num_notes = [], [], 0
    for repeat in range(repeats + 1):
        began = time.perf_counter()
        model.score(batch)
        middle = time.perf_counter()
        with record(model) as trace:
            model.score(batch)
        end = time.perf_counter()
        # a plain pass has no steps and no attention to note: only what is noted once for the whole text
        num_notes = sum(len(trace.calls(key)) == 1 for key in trace)
        if repeat:
            plain.append(middle - began)
            recorded.append(end - middle)
    return plain, recorded, num_notes


if __name__ == "__main__":
    main()
