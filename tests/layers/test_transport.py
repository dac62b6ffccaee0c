"""Optimal transport against a linear program, and the heads that learn from pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqwise.data.batch import Labels
from seqwise.layers.grounding_heads import AlignmentHead
from seqwise.layers.stream import Stream
from seqwise.layers.transport import cosine_cost, transport_distance, transport_plan


def best_distance(cost: np.ndarray) -> float:
    """By the simplex: the cheapest plan with equal shares for rows and columns."""
    linprog = pytest.importorskip("scipy.optimize", reason="scipy solves the linear program").linprog
    T, N = cost.shape
    sums = np.concatenate([np.kron(np.eye(T), np.ones(N)), np.kron(np.ones(T), np.eye(N))])
    shares = np.concatenate([np.full(T, 1 / T), np.full(N, 1 / N)])
    return float(linprog(cost.ravel(), A_eq=sums, b_eq=shares).fun)


@pytest.mark.parametrize(("T", "N"), [(3, 3), (4, 2), (2, 5), (1, 4)])
def test_steps_go_to_the_best_plan(T: int, N: int) -> None:
    torch.manual_seed(T * N)
    words, regions = torch.randn(1, T, 6).double(), torch.randn(1, N, 6).double()
    there = torch.ones(1, T, dtype=torch.bool), torch.ones(1, N, dtype=torch.bool)
    cost = cosine_cost(words, regions)
    plan = transport_plan(cost, *there, steps=500)
    torch.testing.assert_close(plan.sum(dim=2), torch.full((1, T), 1 / T).double(), atol=1e-4, rtol=0)
    torch.testing.assert_close(plan.sum(dim=1), torch.full((1, N), 1 / N).double(), atol=1e-4, rtol=0)
    best = best_distance(cost[0].numpy())
    assert float((plan * cost).sum()) == pytest.approx(best, abs=5e-3)
    few = float(transport_distance(words, regions, *there))
    assert few == pytest.approx(best, abs=5e-2)  # the few that training takes


def test_padding_has_no_share() -> None:
    torch.manual_seed(0)
    words, regions = torch.randn(2, 4, 6), torch.randn(2, 3, 6)
    is_word = torch.tensor([[True, True, True, False], [True] * 4])
    is_region = torch.tensor([[True, True, False], [True] * 3])
    plan = transport_plan(cosine_cost(words, regions), is_word, is_region)
    assert (plan[0, 3] == 0).all()
    assert (plan[0, :, 2] == 0).all()
    alone = transport_plan(cosine_cost(words[:1, :3], regions[:1, :2]), is_word[:1, :3], is_region[:1, :2])
    torch.testing.assert_close(plan[:1, :3, :2], alone)


def test_words_that_are_their_regions_have_nowhere_to_go() -> None:
    vectors = torch.eye(4).unsqueeze(0)
    there = torch.ones(1, 4, dtype=torch.bool)
    assert float(transport_distance(vectors, vectors[:, [2, 0, 3, 1]], there, there)) == pytest.approx(0, abs=1e-3)


def test_what_does_not_belong_together_is_not_brought_together() -> None:
    torch.manual_seed(0)
    regions = Stream(torch.randn(2, 3, 6))
    words = Stream(torch.randn(2, 4, 6).requires_grad_(), beside=regions)
    score = AlignmentHead().score(words, Labels(torch.tensor([1, 0])))
    assert score[0] < 0
    assert score[1] == 0
    score.sum().backward()
    assert words.hidden.grad[0].any()
    assert not words.hidden.grad[1].any()
