"""Attention, positions and feed-forward: against plain versions, and against what their equations promise."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from seqwise.layers.attention import CausalSelfAttention, attention_of_one, plain_attention
from seqwise.layers.feed_forward import FeedForward
from seqwise.layers.positions import rotary_table, rotate, sinusoidal_table


@torch.no_grad()
def test_causal_attention_is_softmax_of_scaled_products_over_the_past() -> None:
    attention = CausalSelfAttention(12, num_heads=3)
    x = torch.randn(2, 6, 12)
    q, k, v = attention.qkv(x).view(2, 6, 3, 3, 4).permute(2, 0, 3, 1, 4)
    can_attend = torch.ones(6, 6, dtype=torch.bool).tril()
    values, weights = plain_attention(q, k, v, can_attend)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3, 6))
    assert (weights[..., ~can_attend] == 0).all()
    expected = attention.to_output(values.transpose(1, 2).reshape(2, 6, 12))
    torch.testing.assert_close(attention(x), expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_normalised_queries_and_keys_have_one_length_whatever_their_weights() -> None:
    attention, x = CausalSelfAttention(12, num_heads=3, normalise=True), torch.randn(2, 6, 12)
    to_query_key = attention.qkv.weight[:24]  # values stand behind them
    to_query_key *= 100  # far above the small number that keeps the division from zero
    before = attention(x)
    to_query_key *= 10
    torch.testing.assert_close(attention(x), before, atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("used", [1, 4, 9])
def test_attention_of_one_token_is_plain_attention_over_what_is_used(used: int) -> None:
    q, keys, values = torch.randn(2, 3, 4), torch.randn(2, 3, 9, 4), torch.randn(2, 3, 9, 4)
    can_attend = torch.arange(9) < used
    expected, _ = plain_attention(q.unsqueeze(2), keys, values, can_attend)
    torch.testing.assert_close(attention_of_one(q, keys, values, used), expected.squeeze(2), atol=1e-6, rtol=0)


@torch.no_grad()
def test_rotary_products_depend_on_the_distance_alone() -> None:
    turns = rotary_table(50, 8)
    q, k = torch.randn(8), torch.randn(8)

    def product(t: int, s: int) -> float:
        return float(rotate(q, turns[t]) @ rotate(k, turns[s]))

    assert product(7, 3) == pytest.approx(product(40, 36), abs=1e-4)
    assert product(7, 3) != pytest.approx(product(7, 4), abs=1e-3)
    assert rotate(q, turns[33]).norm().item() == pytest.approx(q.norm().item(), abs=1e-5)


def test_the_sinusoidal_table_is_the_formula_of_the_paper() -> None:
    table = sinusoidal_table(20, 6)
    for t in (0, 1, 19):
        for i in range(3):
            angle = t / 10_000 ** (2 * i / 6)
            assert table[t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[t, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_positions_far_from_the_start_have_all_their_digits() -> None:
    t, width = 9_999, 12
    sines, turns = sinusoidal_table(t + 1, width)[t], rotary_table(t + 1, width)[t]
    for i in range(width // 2):
        angle = t / 10_000 ** (2 * i / width)
        assert sines[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
        assert sines[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)
        assert turns[i].item() == pytest.approx(complex(math.cos(angle), math.sin(angle)), abs=1e-7)
    assert (sines.dtype, turns.dtype) == (torch.float32, torch.complex64)


@torch.no_grad()
@pytest.mark.parametrize("activation", ["gelu", "squared_relu"])
def test_feed_forward_is_two_products_around_the_activation(activation: str) -> None:
    layer, x = FeedForward(4, 9, activation), torch.randn(3, 4)
    inside = x @ layer.up.weight.T
    bent = functional.gelu(inside) if activation == "gelu" else inside.clamp(min=0) ** 2
    torch.testing.assert_close(layer(x), bent @ layer.down.weight.T)


@pytest.mark.parametrize("activation", ["gelu", "squared_relu"])
def test_feed_forward_has_the_gradient_of_its_formula(activation: str) -> None:
    layer, x = FeedForward(4, 9, activation).double(), torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (x,))
