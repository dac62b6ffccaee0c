"""What a model says of the words of every row: its tags, and how probable those that were wanted are.

Shapes: N rows, W words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Tags
from ..data.text_examples import TextStore
from ..models.contract import Answerer, device_of, evaluating

ROWS = 128  # at once


@dataclass(frozen=True)
class TagAnswers:
    """In the order of the rows."""

    tags: list[np.ndarray]
    """(W,) of each row."""
    log_probs: list[np.ndarray]
    """Of the tag that was said of each word, (W,), whatever the others are."""
    nats: np.ndarray
    """-log p of the tags of each row that were wanted, (N,); of those that training had."""
    num_scored: np.ndarray
    """Words that this was summed over, (N,): none of a row that is scored whole and has a tag training never had."""


@torch.inference_mode()
def tags_of(model: Answerer, store: TextStore) -> TagAnswers:
    device, order = device_of(model), store.in_order_of_length(ROWS)
    tags: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(store)
    log_probs: list[np.ndarray] = [np.zeros(0)] * len(store)
    nats, num_scored = np.zeros(len(store)), np.zeros(len(store), dtype=np.int64)
    name = next(iter(store.targets))
    with evaluating(model):
        for chosen in order:
            batch = store.batch(chosen).to(device)
            words: Tags = batch.targets[name]
            prediction = model.predict(batch)
            nats[chosen], num_scored[chosen] = _summed(model.score(batch)[0].double().cpu(), words)
            assert prediction.log_probs is not None
            said = prediction.log_probs.gather(2, prediction.answers.unsqueeze(2)).squeeze(2).cpu().numpy()
            answers, lengths = prediction.answers.cpu().numpy(), words.lengths.tolist()
            for place, (row, length) in enumerate(zip(chosen.tolist(), lengths, strict=True)):
                tags[row], log_probs[row] = answers[place, :length], said[place, :length]
    return TagAnswers(tags, log_probs, nats, num_scored)


def _summed(score: Tensor, words: Tags) -> tuple[np.ndarray, np.ndarray]:
    """-log p of what training had, and over how many words: scores of words (B, W), or of whole rows (B, 1)."""
    is_word = torch.ones(words.shape, dtype=torch.bool) if words.is_word is None else words.is_word.cpu()
    is_known = is_word & (words.ids.cpu() >= 0)
    if score.shape == is_word.shape:
        return -score.masked_fill(~is_known, 0.0).sum(dim=1).numpy(), is_known.sum(dim=1).numpy()
    is_whole = (is_known == is_word).all(dim=1)
    return -score[:, 0].masked_fill(~is_whole, 0.0).numpy(), is_word.sum(dim=1).masked_fill(~is_whole, 0).numpy()


def nats_per_word(found: TagAnswers) -> float:
    return float(found.nats.sum() / max(1, int(found.num_scored.sum())))


def is_seen(store: TextStore) -> list[np.ndarray] | None:
    """Of each row, (W,) bool: words that the vocabulary of the training part has; None where words are cut into pieces,
    so that none is unknown."""
    if store.unknown is None:
        return None
    steps = store.main.steps
    places = steps.ids + np.repeat(store.tokens.edges[:-1], steps.lengths)  # of each word, among all tokens
    return np.split(store.tokens.ids[places] != store.unknown, steps.edges[1:-1])
