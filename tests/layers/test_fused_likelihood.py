"""The fused loss is the usual one: values and gradients, whatever the sizes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqwise.layers import fused_likelihood
from seqwise.layers.fused_likelihood import FusedLikelihood, fused_loss

Loss = tuple[Tensor, Tensor, Tensor]


def by_torch(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=smoothing)


def with_gradients(loss, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Loss:
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    value = loss(hidden, weight, targets, smoothing)
    (0.37 * value).backward()
    return value.detach(), hidden.grad, weight.grad


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize(("N", "V"), [(1, 7), (10, 7), (11, 7), (64, 33), (3, 200)])
def test_value_and_gradients_are_those_of_the_usual_loss(
    N: int, V: int, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_likelihood, "BLOCK", 70)  # blocks of 10, 2 rows or one, the last not always full
    torch.manual_seed(N * V)
    example = torch.randn(N, 5).double(), torch.randn(V, 5).double(), torch.randint(V, (N,)), smoothing
    for found, expected in zip(
        with_gradients(FusedLikelihood.apply, *example), with_gradients(by_torch, *example), strict=True
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("V", [50, 3000])
def test_any_vocabulary_goes_the_way_that_suits_it(V: int) -> None:
    torch.manual_seed(V)
    example = torch.randn(700, 16), 0.2 * torch.randn(V, 16), torch.randint(V, (700,)), 0.1
    for found, expected in zip(with_gradients(fused_loss, *example), with_gradients(by_torch, *example), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_extreme_logits_neither_overflow_nor_vanish() -> None:
    hidden, weight = torch.tensor([[1e4], [-1e4]]), torch.linspace(-1, 1, 1500).unsqueeze(1)
    loss = fused_loss(hidden, weight, torch.tensor([1499, 1499]), 0.0)
    torch.testing.assert_close(loss, by_torch(hidden, weight, torch.tensor([1499, 1499]), 0.0))


def test_nothing_is_kept_where_nothing_learns() -> None:
    hidden, weight = torch.randn(4, 8), torch.randn(1200, 8)
    assert fused_loss(hidden, weight, torch.tensor([0, 5, 9, 1199]), 0.1).grad_fn is None


def test_no_targets_cost_nothing() -> None:
    hidden, weight = torch.randn(0, 8, requires_grad=True), torch.randn(1200, 8, requires_grad=True)
    loss = fused_loss(hidden, weight, torch.zeros(0, dtype=torch.long), 0.1)
    loss.backward()
    assert loss == 0
    assert not weight.grad.any()
