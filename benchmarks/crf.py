"""A training step of a bidirectional LSTM tagger with a CRF, against the same one with a softmax for each word.

    python -m benchmarks.crf [--repeats 5] [--tags 50]

32 rows of 15 to 35 words (25 in the mean), words of 128 numbers, one layer of 256 or of 128 a direction; forward and
backward pass without the update of the weights, which is the same on both sides. Both sides take turns; the ratio is
that of their times, so at 1.5 a step with the CRF takes half as long again. Below: what the CRF takes by itself, by
compiled loops and by the plain recursion in torch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.measure import say_load, take_turns
from seqwise.data.tag_schemes import legal_transitions
from seqwise.layers.crf import LinearChainCRF, expectations, plain_expectations
from seqwise.layers.lstm import LSTMCell
from seqwise.layers.recurrent import RecurrentStack

ROWS, SHORTEST, LONGEST, VOCAB, WIDTH = 32, 15, 35, 5_000, 128
STEPS = 8  # per measurement
TARGET = 1.5


class Tagger(nn.Module):
    def __init__(self, hidden_dim: int, names: list[str]):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH, sparse=True)  # so that only the words of a batch cost something
        self.stack = RecurrentStack(lambda width: LSTMCell(width, hidden_dim), WIDTH, 1, bidirectional=True)
        self.output = nn.Linear(self.stack.output_dim, len(names))
        can_follow, can_begin, can_end = legal_transitions(names, "IOB2")
        self.crf = LinearChainCRF(len(names), can_follow=can_follow, can_begin=can_begin, can_end=can_end)

    def logits(self, words: Tensor, is_word: Tensor) -> Tensor:
        hidden, _ = self.stack(self.embedding(words), self.stack.initial_state(len(words)), is_word.sum(dim=1))
        return self.output(hidden)


def names_of(num_tags: int) -> list[str]:
    """O, and as many types as there is room for."""
    kinds = range((num_tags - 1) // 2)
    names = ["O", *(f"{letter}-{kind}" for kind in kinds for letter in "BI")]
    return [*names, *["B-more"] * (num_tags - len(names))]


def milliseconds(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        do()
    return 1000 * (time.perf_counter() - began) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tags", type=int, default=50)
    options = parser.parse_args()
    say_load()
    torch.manual_seed(0)
    lengths = torch.linspace(SHORTEST, LONGEST, ROWS).round().long()
    is_word, words = torch.arange(LONGEST) < lengths.unsqueeze(1), torch.randint(VOCAB, (ROWS, LONGEST))
    print(f"{'':22} {'CRF':>10} {'softmax':>10} {'ratio':>8}   ms a step, median and range")
    for hidden_dim in (256, 128):
        tagger = Tagger(hidden_dim, names_of(options.tags))
        tags, _ = tagger.crf.best_path(tagger.logits(words, is_word), is_word)  # any that may be

        def with_crf(tagger: Tagger = tagger, tags: Tensor = tags) -> None:
            tagger.zero_grad(set_to_none=True)
            (-tagger.crf.log_prob(tagger.logits(words, is_word), tags, is_word).sum() / ROWS).backward()

        def with_softmax(tagger: Tagger = tagger, tags: Tensor = tags) -> None:
            tagger.zero_grad(set_to_none=True)
            nats = cross_entropy(tagger.logits(words, is_word).flatten(0, 1), tags.flatten(), reduction="none")
            (nats.masked_fill(~is_word.flatten(), 0.0).sum() / ROWS).backward()

        found = take_turns(
            lambda step=with_crf: milliseconds(step), lambda step=with_softmax: milliseconds(step), options.repeats
        )
        print(f"{f'{hidden_dim} a direction':22} {found}  at most {TARGET} is meant")
    scores, _, follow = (tensor.detach() for tensor in tagger.crf._chain(tagger.logits(words, is_word), is_word))
    found = take_turns(
        lambda: milliseconds(lambda: expectations(scores, lengths, follow)),
        lambda: milliseconds(lambda: plain_expectations(scores, lengths, follow)),
        options.repeats,
    )
    print(f"{'':22} {'compiled':>10} {'plain':>10}\n{'forward-backward':22} {found}")


if __name__ == "__main__":
    main()
