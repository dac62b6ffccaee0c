"""Embeddings: a row of a table for a token, a product for numbers that may be missing."""

from __future__ import annotations

import pytest
import torch

from seqwise.data.batch import Tokens, Values
from seqwise.layers.embeddings import TokenEmbedding, ValueEmbedding


@torch.no_grad()
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_a_token_is_its_row_of_the_table_times_the_scale(scale: float) -> None:
    embedding, ids = TokenEmbedding(9, 5, scale=scale), torch.randint(9, (2, 4))
    torch.testing.assert_close(embedding(Tokens(ids)), scale * embedding.weight[ids])


def test_a_table_begins_with_the_spread_it_is_given_and_is_scaled_up_where_it_is_read() -> None:
    embedding = TokenEmbedding(1000, 64, std=1 / 8, scale=8)
    assert embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert embedding(Tokens(torch.arange(1000).view(10, 100))).std().item() == pytest.approx(1, rel=0.02)


def test_gradients_reach_the_table_times_the_scale() -> None:
    embedding = TokenEmbedding(4, 2, scale=3.0)
    embedding(Tokens(torch.tensor([[1, 1, 2]]))).sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.tolist() == [[0, 0], [6, 6], [3, 3], [0, 0]]


@torch.no_grad()
def test_numbers_become_a_product_of_values_and_of_which_are_there() -> None:
    embedding = ValueEmbedding(2, 5)
    torch.nn.init.normal_(embedding.project.bias)
    values, is_observed = torch.randn(3, 4, 2), torch.rand(3, 4, 2) < 0.5
    W, b = embedding.project.weight, embedding.project.bias
    for row in range(3):
        for t in range(4):
            expected = b.clone()
            for column in range(2):
                if is_observed[row, t, column]:
                    expected += W[:, column] * values[row, t, column] + W[:, 2 + column]
            found = embedding(Values(values, is_observed))[row, t]
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@torch.no_grad()
def test_the_value_of_a_missing_number_is_ignored_and_that_it_is_missing_is_not() -> None:
    embedding, values = ValueEmbedding(2, 5), torch.randn(3, 4, 2)
    is_observed = torch.ones(3, 4, 2, dtype=torch.bool)
    is_observed[1, 2, 0] = False
    changed = values.clone()
    changed[1, 2, 0] = 1000.0
    assert torch.equal(embedding(Values(values, is_observed)), embedding(Values(changed, is_observed)))
    zero = values.clone()
    zero[1, 2, 0] = 0.0  # a zero that was seen is another thing than nothing seen
    assert not torch.allclose(embedding(Values(zero, is_observed))[1, 2], embedding(Values(zero))[1, 2])


@torch.no_grad()
def test_no_mask_means_that_every_number_is_there() -> None:
    embedding, values = ValueEmbedding(3, 5), torch.randn(2, 4, 3)
    with_mask = Values(values, torch.ones_like(values, dtype=torch.bool))
    assert torch.equal(embedding(Values(values)), embedding(with_mask))


@torch.no_grad()
@pytest.mark.parametrize("std", [1.0, 0.02])
@pytest.mark.parametrize("num_columns", [1, 8])
def test_numbers_of_unit_variance_begin_as_vectors_of_the_given_spread(std: float, num_columns: int) -> None:
    embedding = ValueEmbedding(num_columns, 512, std=std)
    vectors = embedding(Values(torch.randn(100, 50, num_columns)))
    assert vectors.square().mean().sqrt().item() == pytest.approx(std, rel=0.2)
