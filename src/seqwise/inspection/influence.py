"""Memory, measured: how far back a change of one token moves the prediction, and what a longer past is worth.

    influence(d) = mean over s of KL( p(. | tokens up to s+d-1)  ||  the same with token s replaced )       nats  (1)

d = 1 is the last token read. An n-gram of order n is moved up to d = n - 1 and not beyond, as are a window and a
convolution by what they can see; a state fades. Any model that can `start` and `step` can be asked.

As probabilities sum to one, KL(p || q) is also a sum in which nothing cancels, however near p and q are:

    KL(p || q) = sum of p * (e^g - 1 - g),  g = log q - log p,  and of q where p is zero                             (2)

Networks are asked in 64 bits, and what even those cannot tell from nothing is nothing.

Shapes: R rows (the text and its changed copies), T tokens, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tokens
from ..models.contract import LanguageModel, device_of, evaluating, in_64_bits

FAINT = 0.01  # of the influence of the last token: what is below counts as forgotten
MIN_INFLUENCE = 1e-28  # nats: in 64 bits the order of a sum alone moves them by some 1e-14; (2) squares that


@dataclass(frozen=True)
class Influence:
    by_distance: list[float]
    """(1) for d = 1, 2, 3, ..., nats."""
    low: list[float]
    high: list[float]
    """The middle half of the places that were changed."""

    def reach(self) -> int:
        """The furthest distance that still moves the prediction by a hundredth of what the last token does."""
        least = FAINT * next((value for value in self.by_distance if math.isfinite(value)), 0.0)
        return max((d for d, value in enumerate(self.by_distance, start=1) if value > least), default=0)


@torch.inference_mode()
def influence_by_distance(
    model: LanguageModel, ids: Tensor, *, max_distance: int, max_changes: int = 48, seed: int = 0
) -> Influence:
    """`ids` (T,): what is read. Each changed copy has one token replaced by another one of the text."""
    T = len(ids)
    random = np.random.default_rng(seed)
    places = np.sort(random.permutation(max(1, T - 1))[:max_changes])
    rows = ids.repeat(1 + len(places), 1)  # the first stays as it is
    for row, place in enumerate(places.tolist(), start=1):
        others = ids[ids != ids[place]]
        if len(others):
            rows[row, place] = others[int(random.integers(len(others)))]
    moved = _moved(model, rows)  # (R - 1, T)
    by_distance: list[np.ndarray] = []
    for d in range(1, min(max_distance, T) + 1):
        at = [moved[row, place + d - 1] for row, place in enumerate(places.tolist()) if place + d <= T]
        if not at:
            break
        by_distance.append(np.array(at))
    return Influence(
        [float(at.mean()) for at in by_distance],
        *([float(np.quantile(at, share, method="inverted_cdf")) for at in by_distance] for share in (0.25, 0.75)),
    )


def _moved(model: LanguageModel, rows: Tensor) -> np.ndarray:
    """KL from the first row's prediction to each other's after every token: (R - 1, T)."""
    model, found = in_64_bits(model), []
    device = device_of(model)
    with evaluating(model):
        log_probs, state = model.start(Batch({"tokens": Tokens(rows[:, :1].to(device))}, {}))
        for t in range(rows.shape[1]):
            found.append(_divergence(log_probs))
            if t + 1 < rows.shape[1]:
                log_probs, state = model.step(rows[:, t + 1].to(device), state)
    return torch.stack(found, dim=1).cpu().numpy()


def _divergence(log_probs: Tensor) -> Tensor:
    """KL(first row || each other row) by (2), (R, V) -> (R - 1,), nats."""
    log_probs = log_probs.double()
    p, gap = log_probs[:1].exp(), log_probs[1:] - log_probs[:1]
    moved = torch.where(p > 0, p * (gap.expm1() - gap), log_probs[1:].exp()).sum(dim=1)
    return moved.masked_fill(moved < MIN_INFLUENCE, 0.0)


@torch.inference_mode()
def loss_by_position(
    model: LanguageModel, ids: np.ndarray, boundary: int, *, window: int, max_rows: int = 64
) -> list[float]:
    """Bits a token by how many stand before it, over segments of a text that are each read from an empty state."""
    window = min(window, len(ids))
    num_rows = min(max_rows, len(ids) // window)
    rows = torch.from_numpy(ids[: num_rows * window].reshape(num_rows, window))
    inputs = torch.cat([torch.full((num_rows, 1), boundary), rows[:, :-1]], dim=1)
    batch = Batch({"tokens": Tokens(inputs)}, {"tokens": Tokens(rows)}).to(device_of(model))
    with evaluating(model):
        log_probs, _ = model.score(batch)
    return (-log_probs.double().mean(dim=0) / math.log(2)).tolist()
