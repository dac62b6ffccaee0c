"""Heads: against torch's distributions, and against loops over the rows."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional

from seqwise.data.batch import Labels, Tokens, Values
from seqwise.layers.heads import GaussianHead, LabelHead, NextTokenHead, NumberHead, Pooling
from seqwise.layers.stream import Stream


def with_random_weights(module: nn.Module) -> nn.Module:
    """Heads begin with zeros, which would prove little."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


def test_next_token_head_scores_targets_as_its_distribution_says() -> None:
    head = with_random_weights(NextTokenHead(5, 9))
    hidden, targets = torch.randn(2, 3, 5), torch.randint(9, (2, 3))
    log_probs = head.expect(hidden)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(2, 3))
    torch.testing.assert_close(log_probs, functional.log_softmax(hidden @ head.output.weight.T, dim=-1))
    of_targets = log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(head.score(Stream(hidden), Tokens(targets)), of_targets)


def test_next_token_head_begins_with_all_tokens_alike() -> None:
    log_probs = NextTokenHead(5, 9).expect(torch.randn(4, 5))
    torch.testing.assert_close(log_probs, torch.full((4, 9), -math.log(9)))


def test_tied_weights_are_one_tensor_with_the_gradients_of_both_uses() -> None:
    embedding = nn.Embedding(9, 5)
    head = NextTokenHead(5, 9, tied_to=embedding)
    assert head.output.weight is embedding.weight
    tokens, targets = torch.randint(9, (2, 3)), torch.randint(9, (2, 3))
    head.score(Stream(embedding(tokens)), Tokens(targets)).sum().backward()
    table, output = (embedding.weight.detach().clone().requires_grad_() for _ in range(2))
    log_probs = functional.log_softmax(table[tokens] @ output.T, dim=-1)
    log_probs.gather(-1, targets.unsqueeze(-1)).sum().backward()
    torch.testing.assert_close(embedding.weight.grad, table.grad + output.grad)


def test_the_gaussian_density_is_that_of_independent_normals() -> None:
    head = with_random_weights(GaussianHead(5, 3))
    hidden, values = torch.randn(2, 4, 5), torch.randn(2, 4, 3)
    mean, log_scale = (hidden @ head.output.weight.T + head.output.bias).chunk(2, dim=-1)
    expected = Normal(mean, log_scale.clamp(-7, 7).exp()).log_prob(values).sum(dim=-1)
    torch.testing.assert_close(head.score(Stream(hidden), Values(values)), expected)
    distribution = head.expect(hidden)
    assert (distribution.batch_shape, distribution.event_shape) == ((2, 4), (3,))
    torch.testing.assert_close(distribution.log_prob(values), expected)
    torch.testing.assert_close(distribution.mean, mean)


def test_the_gaussian_density_begins_as_the_standard_normal() -> None:
    head, values = GaussianHead(5, 2), torch.randn(2, 4, 2)
    expected = Normal(0.0, 1.0).log_prob(values).sum(dim=-1)
    torch.testing.assert_close(head.score(Stream(torch.randn(2, 4, 5)), Values(values)), expected)


def test_missing_columns_count_for_nothing_in_the_gaussian_density() -> None:
    head = with_random_weights(GaussianHead(5, 3))
    hidden, values = torch.randn(4, 6, 5), torch.randn(4, 6, 3)
    is_observed = torch.rand(4, 6, 3) < 0.6
    is_observed[0, 0] = False
    score = head.score(Stream(hidden), Values(values, is_observed))
    distribution = head.expect(hidden).base_dist
    by_column = distribution.log_prob(values)
    for row in range(4):
        for t in range(6):
            expected = sum(by_column[row, t, column].item() for column in range(3) if is_observed[row, t, column])
            assert score[row, t].item() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert score[0, 0] == 0
    elsewhere = torch.where(is_observed, values, torch.tensor(1000.0))
    assert torch.equal(head.score(Stream(hidden), Values(elsewhere, is_observed)), score)


def test_missing_columns_bring_no_gradient() -> None:
    head = with_random_weights(GaussianHead(5, 2))
    is_observed = torch.tensor([True, False]).expand(3, 4, 2)
    head.score(Stream(torch.randn(3, 4, 5)), Values(torch.randn(3, 4, 2), is_observed)).sum().backward()
    gradient = head.output.weight.grad.view(2, 2, 5)  # means, log scales
    assert (gradient[:, 0] != 0).all()
    assert (gradient[:, 1] == 0).all()


def test_the_scale_stays_within_bounds_so_that_densities_stay_finite() -> None:
    head = GaussianHead(1, 1)
    with torch.no_grad():
        head.output.bias[1] = -1000.0
    density = head.score(Stream(torch.zeros(1, 1, 1)), Values(torch.zeros(1, 1, 1)))
    assert density.item() == pytest.approx(7 - 0.5 * math.log(2 * math.pi))
    assert head.expect(torch.zeros(1, 1, 1)).stddev.item() == pytest.approx(math.exp(-7))


LENGTHS = torch.tensor([6, 1, 4])
IS_STEP = torch.arange(6) < LENGTHS.unsqueeze(1)


def test_pooling_last_is_the_hidden_state_of_the_last_real_step() -> None:
    hidden = torch.randn(3, 6, 5)
    pooled = Pooling("last", 5)(hidden, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.equal(pooled[row], hidden[row, length - 1])


def test_pooling_mean_is_the_mean_of_the_real_steps() -> None:
    hidden = torch.randn(3, 6, 5)
    pooled = Pooling("mean", 5)(hidden, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        torch.testing.assert_close(pooled[row], sum(hidden[row, t] for t in range(length)) / length)


def test_pooling_attention_weighs_the_real_steps_by_how_well_they_match_the_query() -> None:
    pooling, hidden = with_random_weights(Pooling("attention", 5)), torch.randn(3, 6, 5)
    pooled = pooling(hidden, LENGTHS)
    W, b, v = pooling.project.weight, pooling.project.bias, pooling.query.weight[0]
    for row, length in enumerate(LENGTHS.tolist()):
        scores = [torch.dot(v, torch.tanh(W @ hidden[row, t] + b)).item() for t in range(length)]
        weights = [math.exp(s) / sum(math.exp(other) for other in scores) for s in scores]
        expected = sum(w * hidden[row, t] for t, w in enumerate(weights))
        torch.testing.assert_close(pooled[row], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["last", "mean", "attention"])
def test_pooling_sees_nothing_of_the_padding(kind: str) -> None:
    pooling, hidden = with_random_weights(Pooling(kind, 5)), torch.randn(3, 6, 5, requires_grad=True)
    pooled = pooling(hidden, LENGTHS)
    is_padding = torch.arange(6) >= LENGTHS.unsqueeze(1)
    changed = hidden.detach().masked_fill(is_padding.unsqueeze(-1), 1000.0)
    torch.testing.assert_close(pooling(changed, LENGTHS), pooled)
    pooled.sum().backward()
    assert (hidden.grad[is_padding] == 0).all()


@pytest.mark.parametrize("pooling", ["last", "mean", "attention"])
def test_probabilities_of_labels_sum_to_one(pooling: str) -> None:
    head, stream = LabelHead(Pooling(pooling, 5), 4), Stream(torch.randn(3, 6, 5), IS_STEP)
    torch.testing.assert_close(head.log_probs(stream).exp(), torch.full((3, 4), 0.25))  # at the start
    log_probs = with_random_weights(head).log_probs(stream)
    assert log_probs.shape == (3, 4)
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(3))


def test_a_label_is_scored_and_predicted_by_its_probabilities() -> None:
    head, hidden = with_random_weights(LabelHead(Pooling("last", 5), 4)), torch.randn(3, 6, 5)
    logits = hidden[torch.arange(3), LENGTHS - 1] @ head.output.weight.T + head.output.bias
    log_probs, wanted = functional.log_softmax(logits, dim=-1), torch.tensor([2, 0, 3])
    score, prediction = head.score(Stream(hidden, IS_STEP), Labels(wanted)), head.predict(Stream(hidden, IS_STEP))
    torch.testing.assert_close(score, torch.stack([log_probs[row, wanted[row]] for row in range(3)]).view(3, 1))
    assert prediction.log_probs is not None
    torch.testing.assert_close(prediction.log_probs, log_probs)
    assert torch.equal(prediction.answers, logits.argmax(dim=1))


def test_a_head_without_labels_answers_with_a_number() -> None:
    head, hidden = with_random_weights(NumberHead(Pooling("last", 5))), torch.randn(3, 6, 5)
    expected = hidden[torch.arange(3), LENGTHS - 1] @ head.output.weight.T + head.output.bias
    stream, wanted = Stream(hidden, IS_STEP), torch.randn(3, 1, 1)
    torch.testing.assert_close(head.number(stream), expected)
    assert head.predict(stream).log_probs is None
    torch.testing.assert_close(head.predict(stream).answers, expected[:, 0])
    torch.testing.assert_close(head.score(stream, Values(wanted)), Normal(expected, 1.0).log_prob(wanted[:, 0]))


def test_a_stream_without_padding_has_all_its_steps() -> None:
    assert Stream(torch.randn(3, 6, 5)).lengths.tolist() == [6, 6, 6]
    assert Stream(torch.randn(3, 6, 5), IS_STEP).lengths.tolist() == LENGTHS.tolist()
