"""A training step of our recurrent layers against torch.nn.RNN, GRU and LSTM of the same size.

    python -m benchmarks.recurrent

Forward and backward pass of one batch (32 rows of 64 steps, width 256, two layers), both sides taking turns; steps per
second, and their ratio. Ours call the same kernels, so the ratio should be one, within the noise of the machine.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

from benchmarks.measure import say_load, take_turns
from seqwise.layers.gru import GRUCell
from seqwise.layers.lstm import LSTMCell
from seqwise.layers.recurrent import RecurrentStack
from seqwise.layers.rnn import RNNCell

ROWS, STEPS, WIDTH, LAYERS = 32, 64, 256, 2
CELLS = {"rnn": (RNNCell, nn.RNN), "gru": (GRUCell, nn.GRU), "lstm": (LSTMCell, nn.LSTM)}
PASSES = 8  # per measurement


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    say_load()
    print(f"{'cell':6} {'ours':>10} {'theirs':>10} {'ratio':>8}   steps/s, median and range")
    for name, (cell, kernel) in CELLS.items():
        torch.manual_seed(0)
        x = torch.randn(ROWS, STEPS, WIDTH)
        ours = RecurrentStack(lambda width, cell=cell: cell(width, WIDTH), WIDTH, LAYERS)
        theirs = kernel(WIDTH, WIDTH, LAYERS, batch_first=True)
        state = ours.initial_state(ROWS)

        def our_rate(model=ours, x=x, state=state) -> float:
            return rate(lambda: model(x, state)[0])

        def their_rate(model=theirs, x=x) -> float:
            return rate(lambda: model(x)[0])

        print(f"{name:6} {take_turns(our_rate, their_rate, repeats)}", flush=True)


def rate(forward) -> float:
    began = time.perf_counter()
    for _ in range(PASSES):
        forward().sum().backward()
    return PASSES / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
