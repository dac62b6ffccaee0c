"""A training step of a small Transformer of pairs with our dropout and loss, against torch's own in their place.

    python -m benchmarks.training_step [--repeats 5]

4 + 4 layers of width 128, dropout 0.3, label smoothing 0.1, 8,000 tokens, batches of 4,096 random tokens a side; both
sides in turns.
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, linear

from benchmarks.measure import say_load, take_turns
from seqwise.data.batch import Batch, Tokens
from seqwise.data.schema import pair_schema
from seqwise.models.transformer import TransformerConfig, build_transformer
from seqwise.text.symbols import SymbolTokenizer

VOCAB, ROWS, LENGTH, STEPS = 8_000, 256, 16, 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    say_load()
    torch.manual_seed(0)
    tokenizer = SymbolTokenizer(VOCAB)  # of both sides
    config = TransformerConfig(num_layers=4, model_dim=128, feed_forward_dim=256, dropout=0.3, label_smoothing=0.1)
    model = build_transformer(config, pair_schema(tokenizer, tokenizer)).train()
    ids = torch.randint(1, VOCAB, (ROWS, LENGTH + 1))
    batch = Batch({"source": Tokens(ids[:, 1:]), "tokens": Tokens(ids[:, :-1])}, {"tokens": Tokens(ids[:, 1:])})

    def rate() -> float:
        """Source and target tokens a second, of gradients: what moves the weights is the same on both sides."""
        began = time.perf_counter()
        for _ in range(STEPS):
            model.zero_grad(set_to_none=True)
            model.loss(batch).over(batch.counts()).backward()
        return 2 * STEPS * ROWS * LENGTH / (time.perf_counter() - began)

    def rate_by_torch() -> float:
        with (
            patch("seqwise.layers.dropout.dropped_out", lambda x, share: dropout(x, share)),
            patch("seqwise.layers.heads.fused_loss", plain_loss),
        ):
            return rate()

    print(f"{'':6} {'ours':>10} {'torch':>10} {'ratio':>8}   tokens/s, median and range")
    print(f"{'step':6} {take_turns(rate, rate_by_torch, repeats)}")


def plain_loss(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(linear(hidden, weight), targets, reduction="sum", label_smoothing=smoothing)


if __name__ == "__main__":
    main()
