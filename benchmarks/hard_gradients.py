"""What vanishing gradients do, and what gates and the identity start do about it.

    python -m benchmarks.hard_gradients --minutes 3

Adding problem, 200 steps (mean squared error; always answering 1 gives 0.167): lstm and gru should solve it, a tanh RNN
not. MNIST shrunk to 14x14, a pixel a step (accuracy): the RNN with ReLU and an identity start should learn it where the
tanh RNN does not; skipped where MNIST is not at hand. The same minutes for each side.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.measure import say_load
from seqwise.api import TrainedRun
from seqwise.errors import DataError
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

IDENTITY = ["model.activation=relu", "model.identity_init=true"]
CASES: list[tuple[str, str, str, list[str]]] = [
    ("adding:200", "lstm", "lstm", []),
    ("adding:200", "gru", "gru", []),
    ("adding:200", "rnn", "rnn, tanh", ["training.learning_rate=0.001"]),
    ("adding:200", "rnn", "rnn, identity", ["training.learning_rate=0.001", *IDENTITY]),
    ("mnist-pixels-14", "rnn", "rnn, identity", ["training.learning_rate=0.0005", *IDENTITY]),
    ("mnist-pixels-14", "rnn", "rnn, tanh", ["training.learning_rate=0.0005"]),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=3.0)
    minutes = parser.parse_args().minutes
    say_load()
    for data, family, title, overrides in CASES:
        with tempfile.TemporaryDirectory() as folder:
            request = Request.of(data, model=family, out=Path(folder) / "run", minutes=minutes, overrides=overrides)
            try:
                session = prepare(request)
            except DataError as error:
                print(f"{data}, {title}: skipped: {error}")
                continue
            seconds = list(session.reports())[-1].seconds
            score = TrainedRun(Path(folder) / "run").evaluate(split="test")
            print(f"{data}, {title}: {score.headline()}; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
