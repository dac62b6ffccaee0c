"""One text at a time by recurrent networks: compiled steps against our own torch path.

    python -m benchmarks.recurrent_generation [--repeats 5]

rnn, gru and lstm, two layers of 256, 119 characters, and lstm with a vocabulary of 8,000 words; 240 new tokens, greedy,
float32 and int8. Rates in tokens per second, both sides in turns. Weights are random: speed does not depend on them.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.measure import now, say_load, take_turns
from seqwise.data.schema import text_schema
from seqwise.decoding import DecodingConfig, generate
from seqwise.layers.int8 import to_int8
from seqwise.models import MODELS
from seqwise.models.engine import Use, engine
from seqwise.text.symbols import SymbolTokenizer

CASES = {"rnn": 119, "gru": 119, "lstm": 119, "lstm, words": 8000}
PROMPT, NEW_TOKENS, WANTED = 16, 240, 10.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    say_load()
    print(f"{'':20} {'ours':>10} {'torch':>10} {'ratio':>8}   tokens/s, median and range")
    for name, vocab_size in CASES.items():
        row = MODELS[name.partition(",")[0]]
        torch.manual_seed(0)
        model = row.build(row.config(num_layers=2, model_dim=256), text_schema(SymbolTokenizer(vocab_size))).eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=max(parameter.shape) ** -0.5)
        small = copy.deepcopy(model)
        to_int8(small)
        for kind, ours in (("float32", model), ("int8", small)):
            ratio = take_turns(rate(ours, "on"), rate(model, "off"), repeats)
            kept = "kept" if statistics.median(ratio.ratios) >= WANTED else "MISSED"
            goal = f"; {WANTED:g}x: {kept}" if (name, kind) == ("lstm", "float32") else ""
            print(f"{name:12} {kind:7} {ratio}{goal}", flush=True)


def rate(model: nn.Module, use: Use) -> Callable[[], float]:
    prompt = torch.randint(100, (1, PROMPT), generator=torch.Generator().manual_seed(1)).tolist()

    def measure() -> float:
        with engine(use):
            began = now()
            found = generate(model, prompt, DecodingConfig(method="greedy", max_tokens=NEW_TOKENS))  # type: ignore[arg-type]
            seconds = now() - began
        assert len(found[0][0].tokens) == NEW_TOKENS
        return NEW_TOKENS / seconds

    return measure


if __name__ == "__main__":
    main()
