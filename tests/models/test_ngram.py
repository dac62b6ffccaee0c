"""The n-gram model against Kneser-Ney written out with dictionaries, straight from the equations of its card."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import schemas
import torch

from seqwise.data.batch import next_token_batch, prompt_batch
from seqwise.data.schema import text_schema
from seqwise.data.source import open_text
from seqwise.data.store import build_store
from seqwise.errors import ConfigError
from seqwise.evaluation.likelihood import evaluate
from seqwise.layers.gram_counts import estimate_discounts
from seqwise.models.ngram import Ngram, NgramConfig
from seqwise.text import train_tokenizer

Gram = tuple[int, ...]


class PlainKneserNey:
    """Equations (1) to (4), one gram at a time. The text is a list of lines, each beginning with the boundary."""

    def __init__(self, lines: list[list[int]], vocab_size: int, order: int):
        self.vocab_size, self.order = vocab_size, order
        raw: list[Counter[Gram]] = [Counter() for _ in range(order + 1)]
        begins: list[Counter[Gram]] = [Counter() for _ in range(order + 1)]
        for line in lines:
            for end in range(1, len(line)):
                for k in range(1, min(order, end + 1) + 1):
                    gram = tuple(line[end + 1 - k : end + 1])
                    raw[k][gram] += 1
                    if end + 1 - k == 0:
                        begins[k][gram] += 1
        self.highest = max(k for k in range(1, order + 1) if raw[k])
        self.counts: list[dict[Gram, int]] = [{} for _ in range(order + 1)]
        for k in range(1, self.highest + 1):
            if k == self.highest:
                self.counts[k] = dict(raw[k])
                continue
            before = defaultdict(set)
            for gram in raw[k + 1]:
                before[gram[1:]].add(gram[0])
            self.counts[k] = {gram: len(before[gram]) + begins[k][gram] for gram in raw[k]}
        self.discounts = [
            (0.0, *estimate_discounts(np.array(list(self.counts[k].values()) or [0]))) for k in range(order + 1)
        ]

    def prob(self, word: int, context: Gram) -> float:
        if len(context) >= self.highest:
            context = context[len(context) - self.highest + 1 :]
        return self._prob(word, context)

    def _prob(self, word: int, context: Gram) -> float:
        k = len(context) + 1
        lower = self._prob(word, context[1:]) if context else 1 / self.vocab_size
        children = {gram: count for gram, count in self.counts[k].items() if gram[:-1] == context}
        total = sum(children.values())
        if total == 0:
            return lower
        discount = self.discounts[k]
        backoff = sum(discount[min(3, count)] for count in children.values()) / total
        count = children.get((*context, word), 0)
        return (count - discount[min(3, count)]) / total + backoff * lower


def random_text(length: int, vocab_size: int, seed: int) -> np.ndarray:
    """A text with structure, so that counts of counts differ: each token is likely near the one before."""
    random = np.random.default_rng(seed)
    text = [0]
    for _ in range(length):
        text.append(
            int(
                (text[-1] + random.integers(0, 3)) % vocab_size
                if random.random() < 0.8
                else random.integers(vocab_size)
            )
        )
    return np.array(text)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("across_lines", [True, False])
def test_probabilities_are_those_of_the_equations(order: int, across_lines: bool) -> None:
    text = random_text(150, vocab_size=6, seed=order)
    model = Ngram(NgramConfig(order=order, across_lines=across_lines), schemas.of_text(6))
    model.fit(text)
    if across_lines:
        lines = [text.tolist()]
    else:  # each line begins with the boundary that ended the one before
        cuts = [0, *(np.flatnonzero(text[1:] == 0) + 1), len(text)]
        lines = [text[a : b + 1].tolist() for a, b in pairwise(cuts) if b > a]
    plain = PlainKneserNey(lines, vocab_size=6, order=order)
    probe = random_text(40, vocab_size=6, seed=99)
    log_probs, _ = model.score(next_token_batch(torch.tensor(probe[None])))
    for place in range(1, len(probe)):
        context = probe[max(0, place - order + 1) : place].tolist()
        if not across_lines and 0 in context:
            context = context[len(context) - 1 - context[::-1].index(0) :]
        expected = plain.prob(int(probe[place]), tuple(context))
        assert log_probs[0, place - 1].item() == pytest.approx(math.log(expected), abs=1e-9)


def test_a_token_never_seen_still_has_a_probability_and_all_sum_to_one() -> None:
    model = Ngram(NgramConfig(order=4), schemas.of_text(50))
    model.fit(random_text(100, vocab_size=5, seed=0))
    log_probs, _ = model.start(prompt_batch([[0, 1, 2], [49, 48, 47], [0, 1, 49]]))
    assert torch.isfinite(log_probs).all()
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("text", [[0, 1], [0, 1, 1, 1, 1], [0, *range(1, 9)], [0, 0, 0]])
def test_tiny_texts_without_counts_of_counts_give_finite_probabilities(text: list[int]) -> None:
    model = Ngram(NgramConfig(order=5), schemas.of_text(10))
    model.fit(np.array(text))
    log_probs, _ = model.start(prompt_batch([[0], [1, 1], [9, 8, 7, 6, 5]]))
    assert torch.isfinite(log_probs).all()
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(3, dtype=torch.float64))


def test_an_order_longer_than_the_text_is_what_the_text_can_give() -> None:
    model = Ngram(NgramConfig(order=20), schemas.of_text(3))
    model.fit(np.array([0, 1, 2, 1]))
    assert len(model.levels) == 4
    assert torch.isfinite(model.score(next_token_batch(torch.tensor([[0, 1, 2, 1, 2, 1, 2]])))[0]).all()


def test_bad_settings_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="order = -1 should be at least 1, or 0 to choose it"):
        NgramConfig(order=-1)
    with pytest.raises(ConfigError, match="order = 0 is chosen by training"):
        Ngram(NgramConfig(order=0), schemas.of_text(3)).fit(np.array([0, 1, 2]))


def test_penn_treebank_order_5_has_the_published_perplexity(shared_data: Path) -> None:
    """141.2: modified Kneser-Ney, closed vocabulary of 10,000, one <s> as context, </s> scored."""
    data = open_text("ptb")
    tokenizer = train_tokenizer("word", data.parts["train"].blocks())
    assert tokenizer.vocab_size == 10_000
    model = Ngram(NgramConfig(order=5, across_lines=False), text_schema(tokenizer))
    model.fit(build_store(data, "train", tokenizer).ids)
    assert evaluate(model, build_store(data, "test", tokenizer)).perplexity == pytest.approx(141.2, abs=0.2)
