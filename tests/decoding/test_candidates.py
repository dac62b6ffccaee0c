"""What may be chosen at a step, and the best of a large vocabulary, against sorting all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from seqwise.decoding import DecodingConfig, generate
from seqwise.decoding.candidates import BLOCK, LARGE_VOCAB, adjusted, top_tokens

MakeChain = Callable[[list[list[float]]], Any]


@pytest.mark.parametrize("V", [5, LARGE_VOCAB, LARGE_VOCAB + 1, 20 * BLOCK + 7])
@pytest.mark.parametrize("k", [1, 4])
def test_the_best_of_blocks_are_the_best_of_all(V: int, k: int) -> None:
    log_probs = torch.randn(6, V)
    log_probs[0, -1] = 9.0  # behind the last whole block
    values, tokens = top_tokens(log_probs, k)
    expected = log_probs.topk(k, dim=1)
    assert torch.equal(values, expected.values)
    assert torch.equal(tokens, expected.indices)


@pytest.mark.parametrize("V", [5, LARGE_VOCAB, 20 * BLOCK + 7])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("num_values", [1, 2, 3, 50])
def test_of_equals_the_lower_token_comes_first(V: int, k: int, num_values: int) -> None:
    generator = torch.Generator().manual_seed(num_values)
    log_probs = -torch.randint(num_values, (20, V), generator=generator).float()
    log_probs[3] = float("-inf")
    values, tokens = top_tokens(log_probs, k)
    for row, found, kept in zip(log_probs.tolist(), tokens.tolist(), values.tolist(), strict=True):
        expected = sorted(range(V), key=lambda token: (-row[token], token))[:k]
        assert found == expected
        assert kept == [row[token] for token in expected]


def test_no_stop_before_the_shortest_length_and_any_from_there_on() -> None:
    config = DecodingConfig(stop=2, min_tokens=3, max_tokens=9)
    for length, is_closed in ((0, True), (1, True), (2, False), (3, False)):
        allowed = adjusted(torch.zeros(2, 4), torch.zeros(2, length, dtype=torch.long), config)
        assert torch.isinf(allowed[:, 2]).all() == is_closed
        assert (allowed[:, [0, 1, 3]] == 0).all()


def test_what_was_added_before_is_less_probable_and_the_truth_is_kept() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -3.0]])
    config = DecodingConfig(repetition_penalty=1.5, max_tokens=9)
    allowed = adjusted(log_probs, torch.tensor([[1, 1]]), config)
    assert allowed.tolist() == [[-1.0, -3.0, -3.0]]
    assert log_probs.tolist() == [[-1.0, -2.0, -3.0]]
    assert adjusted(log_probs, torch.zeros(1, 0, dtype=torch.long), config) is log_probs


@pytest.mark.parametrize("method", ["greedy", "sample", "beam", "exhaustive"])
def test_every_search_keeps_to_the_shortest_length(method: str, make_chain: MakeChain) -> None:
    model = make_chain([[0.05, 0.9, 0.05], [0.05, 0.9, 0.05], [0.05, 0.9, 0.05]])  # would stop at once
    config = DecodingConfig(method=method, stop=1, min_tokens=3, max_tokens=4, beam_width=2)
    (found,) = generate(model, [[0]], config)
    assert len(found[0].tokens) >= 3
    assert 1 not in found[0].tokens[:2]
