"""Adaptive softmax: a normalised distribution, the same by its short way as by its long one."""

from __future__ import annotations

from itertools import pairwise

import pytest
import schemas
import torch
from torch import Tensor, nn

from seqwise.data.batch import Tokens, next_token_batch, prompt_batch
from seqwise.layers.adaptive_softmax import AdaptiveSoftmaxHead
from seqwise.layers.heads import NextTokenHead
from seqwise.layers.stream import Stream
from seqwise.models import MODELS
from seqwise.models.build import LARGE_VOCAB, cutoffs_for

VOCAB, WIDTH = 40, 16
CUTOFFS = [[10], [5, 20], [1, 2, 39]]
each_cut = pytest.mark.parametrize("cutoffs", CUTOFFS, ids=str)


def random_head(cutoffs: list[int]) -> AdaptiveSoftmaxHead:
    head = AdaptiveSoftmaxHead(WIDTH, VOCAB, cutoffs=cutoffs)
    for parameter in head.parameters():
        nn.init.normal_(parameter, std=0.5)
    return head


def picked(log_probs: Tensor, targets: Tensor) -> Tensor:
    return log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def some_targets(cutoffs: list[int]) -> dict[str, Tensor]:
    """Everywhere, in each part alone, and everywhere but in one part."""
    edges = [0, *cutoffs, VOCAB]
    found = {"everywhere": torch.randint(VOCAB, (4, 25)), "all of them": torch.arange(VOCAB).view(4, -1)}
    for part, (first, end) in enumerate(pairwise(edges)):
        found[f"only part {part}"] = torch.randint(first, end, (3, 5))
        rest = torch.tensor([token for token in range(VOCAB) if not first <= token < end])
        found[f"all but part {part}"] = rest[torch.randint(len(rest), (3, 5))]
    return found


@each_cut
def test_probabilities_sum_to_one(cutoffs: list[int]) -> None:
    log_probs = random_head(cutoffs).expect(torch.randn(3, 7, WIDTH))
    assert log_probs.shape == (3, 7, VOCAB)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(3, 7))


@each_cut
def test_probabilities_are_those_of_the_equations(cutoffs: list[int]) -> None:
    head, hidden = random_head(cutoffs), torch.randn(WIDTH)
    log_probs = head.expect(hidden)
    above = torch.exp(head.head.weight @ hidden)
    above = above / above.sum()  # of each frequent token, then of each cluster
    for token in range(cutoffs[0]):
        assert log_probs[token].exp().item() == pytest.approx(above[token].item(), rel=1e-4)  # (1)
    for k, (first, end) in enumerate(pairwise([*cutoffs, VOCAB])):
        narrow, output = (layer.weight for layer in head.clusters[k])
        assert narrow.shape == (max(1, WIDTH // 4 ** (k + 1)), WIDTH)
        within = torch.exp(output @ (narrow @ hidden))
        within = within / within.sum()
        for token in range(first, end):
            expected = above[cutoffs[0] + k] * within[token - first]  # (2)
            assert log_probs[token].exp().item() == pytest.approx(expected.item(), rel=1e-4)


@each_cut
def test_scores_are_the_log_probabilities_of_the_targets(cutoffs: list[int]) -> None:
    head = random_head(cutoffs)
    for name, targets in some_targets(cutoffs).items():
        hidden = torch.randn(*targets.shape, WIDTH)
        expected = picked(head.expect(hidden), targets)
        torch.testing.assert_close(
            head.score(Stream(hidden), Tokens(targets)), expected, atol=1e-5, rtol=0, msg=lambda m, n=name: n + m
        )


@each_cut
def test_targets_are_left_as_they_were(cutoffs: list[int]) -> None:
    head, targets = random_head(cutoffs), torch.randint(VOCAB, (4, 25))
    before = targets.clone()
    head.score(Stream(torch.randn(4, 25, WIDTH)), Tokens(targets))
    assert torch.equal(targets, before)


@each_cut
def test_gradients_of_scores_are_those_of_the_whole_distribution(cutoffs: list[int]) -> None:
    head = random_head(cutoffs)
    for name, targets in some_targets(cutoffs).items():
        hidden, weights = torch.randn(*targets.shape, WIDTH), torch.rand(targets.shape)
        gradients = []
        for is_short in (True, False):
            head.zero_grad()
            read = hidden.clone().requires_grad_()
            log_probs = head.score(Stream(read), Tokens(targets)) if is_short else picked(head.expect(read), targets)
            (-log_probs * weights).sum().backward()
            # a cluster that was not asked for has no gradient at all
            of_weights = [torch.zeros_like(p) if p.grad is None else p.grad for p in head.parameters()]
            gradients.append([read.grad, *of_weights])
        for short, long in zip(*gradients, strict=True):
            torch.testing.assert_close(short, long, atol=1e-5, rtol=1e-4, msg=f"targets: {name}")


def test_every_token_is_as_likely_as_its_neighbours_at_the_start() -> None:
    log_probs = AdaptiveSoftmaxHead(WIDTH, VOCAB, cutoffs=[10]).expect(torch.randn(WIDTH))
    torch.testing.assert_close(log_probs[:10].exp(), torch.full((10,), 1 / 11))
    torch.testing.assert_close(log_probs[10:].exp(), torch.full((30,), 1 / 11 / 30))


@pytest.mark.parametrize("vocab_size", [1000, 1001, 19_999, 20_000, 250_000])
def test_cuts_rise_and_leave_every_part_something(vocab_size: int) -> None:
    edges = [0, *cutoffs_for(vocab_size), vocab_size]
    assert all(a < b for a, b in pairwise(edges))


@pytest.mark.parametrize("vocab_size", [1000, 1234])
def test_an_lstm_with_an_adaptive_softmax_scores_steps_and_learns(vocab_size: int) -> None:
    row = MODELS["lstm"]
    model = row.build(row.config(model_dim=16, adaptive_softmax=True), schemas.of_text(vocab_size))
    assert isinstance(model.head.tokens, AdaptiveSoftmaxHead)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    rows = torch.randint(vocab_size, (3, 8))
    rows[:, 4] = vocab_size - 1  # the rarest is reached
    with torch.no_grad():
        parallel, _ = model.score(next_token_batch(rows))
        log_probs, state = model.start(prompt_batch(rows[:, :1].tolist()))
        for t in range(1, 8):
            assert log_probs.shape == (3, vocab_size)
            torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(3), atol=1e-4, rtol=0)
            torch.testing.assert_close(picked(log_probs, rows[:, t]), parallel[:, t - 1], atol=1e-4, rtol=0)
            log_probs, state = model.step(rows[:, t], state)
    batch = next_token_batch(rows)
    model.loss(batch).over(batch.counts()).backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


def test_a_small_vocabulary_keeps_the_full_softmax() -> None:
    row = MODELS["lstm"]
    model = row.build(row.config(model_dim=8, adaptive_softmax=True), schemas.of_text(LARGE_VOCAB - 1))
    assert isinstance(model.head.tokens, NextTokenHead)
