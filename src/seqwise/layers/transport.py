"""Optimal transport: how words are best shared out among the regions of their picture, and how far they have to go.

    C_tn     = 1 - cos(word t, region n)                                       (1)   Chen et al. 2020 (UNITER), 3.3
    distance = min over T of sum of T_tn C_tn,   rows of T sum to 1/T_words, columns to 1/N_regions

by a few proximal steps (Xie et al. 2019, IPOT), each of which is one of Sinkhorn's:

    Q     = exp(-C / beta) * T                                                 (2)
    d     = 1 / (rows * Q s),   s = 1 / (columns * Q^T d)                      (3)   rows and columns: how many
    T     = diag(d) Q diag(s)                                                  (4)

Unlike Sinkhorn's alone, these go on to the plan itself and not to a smoothed one. No gradient flows through the plan.

Shapes: B batch, T words, N regions, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

STEPS, BETA = 50, 0.5


def cosine_cost(words: Tensor, regions: Tensor) -> Tensor:
    """(1): (B, T, D), (B, N, D) -> (B, T, N)."""
    return 1 - normalize(words, dim=-1) @ normalize(regions, dim=-1).mT


@torch.no_grad()
def transport_plan(
    cost: Tensor, is_word: Tensor, is_region: Tensor, *, steps: int = STEPS, beta: float = BETA
) -> Tensor:
    """(B, T, N) whose rows and columns sum to equal shares of what is there; nothing at padding."""
    is_pair = is_word.unsqueeze(2) & is_region.unsqueeze(1)
    rows, columns = is_word.sum(dim=1).view(-1, 1, 1), is_region.sum(dim=1).view(-1, 1, 1)
    kernel = torch.exp(-cost / beta).masked_fill(~is_pair, 0.0)
    plan, s = is_pair.to(cost), is_region.unsqueeze(2).to(cost) / columns  # (B, T, N), (B, N, 1)
    for _ in range(steps):
        q = kernel * plan  # (2)
        d = (1 / (rows * (q @ s))).masked_fill(~is_word.unsqueeze(2), 0.0)  # (3)
        s = (1 / (columns * (q.mT @ d))).masked_fill(~is_region.unsqueeze(2), 0.0)
        plan = d * q * s.mT  # (4)
    return plan


def transport_distance(words: Tensor, regions: Tensor, is_word: Tensor, is_region: Tensor) -> Tensor:
    """(B,): how far words are from regions, from 0 to 2."""
    cost = cosine_cost(words, regions)
    return (transport_plan(cost.detach(), is_word, is_region) * cost).sum(dim=(1, 2))
