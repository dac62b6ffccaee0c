"""Attention, positions and feed-forward: against plain versions, and against what their equations promise."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from seqwise.layers.attention import CausalSelfAttention, attention_of_one, plain_attention
from seqwise.layers.feed_forward import FeedForward, GatedFeedForward, build_feed_forward, gated_width
from seqwise.layers.norms import build_norm
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
def test_heads_that_share_keys_and_values_are_heads_that_have_the_same() -> None:
    shared, apart = (
        CausalSelfAttention(24, num_heads=6, num_kv_heads=2, bias=True),
        CausalSelfAttention(24, num_heads=6, bias=True),
    )
    for before, now in ((shared.qkv.weight, apart.qkv.weight), (shared.qkv.bias, apart.qkv.bias)):
        q, k, v = before.split((24, 8, 8))
        copied = (part.unflatten(0, (2, 4)).repeat_interleave(3, dim=0).flatten(0, 1) for part in (k, v))
        now.copy_(torch.cat([q, *copied]))
    apart.to_output.load_state_dict(shared.to_output.state_dict())
    x, turns = torch.randn(2, 5, 24), rotary_table(5, 4).unsqueeze(1)
    torch.testing.assert_close(shared(x, turns), apart(x, turns), atol=1e-5, rtol=0)


@torch.no_grad()
def test_one_token_attends_with_the_keys_of_its_group() -> None:
    q, keys, values = torch.randn(2, 6, 4), torch.randn(2, 3, 9, 4), torch.randn(2, 3, 9, 4)
    for_all = (part.repeat_interleave(2, dim=1) for part in (keys, values))
    expected, _ = plain_attention(q.unsqueeze(2), *for_all, torch.arange(9) < 5)
    torch.testing.assert_close(attention_of_one(q, keys, values, 5), expected.squeeze(2), atol=1e-6, rtol=0)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 6])
def test_matrices_of_queries_keys_and_values_are_found_whoever_shares_them(num_kv_heads: int) -> None:
    """An optimiser that takes matrices apart must cut where one ends."""
    attention = CausalSelfAttention(24, num_heads=6, num_kv_heads=num_kv_heads)
    parts = attention.qkv.weight.chunk(attention.stacked["qkv.weight"])
    assert {len(part) for part in parts} == {4 * num_kv_heads}
    assert len(parts) == attention.stacked["qkv.weight"]


@torch.no_grad()
def test_rms_norm_divides_by_the_root_of_the_mean_square() -> None:
    norm, x = build_norm("rms", 5, epsilon=0.1), torch.randn(3, 5) + 2
    torch.nn.init.normal_(norm.weight)
    torch.testing.assert_close(norm(x), norm.weight * x / (x.square().mean(dim=1, keepdim=True) + 0.1).sqrt())
    assert [name for name, _ in norm.named_parameters()] == ["weight"]
    assert [name for name, _ in build_norm("layer", 5, bias=True).named_parameters()] == ["weight", "bias"]


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


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "squared_relu", "swiglu"])
def test_feed_forward_has_the_gradient_of_its_formula(activation: str) -> None:
    layer = build_feed_forward(4, 9, activation).double()
    x = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (x,))


@torch.no_grad()
@pytest.mark.parametrize("activation", ["relu", "gelu_tanh", "squared_relu", "swiglu"])
@pytest.mark.parametrize("bias", [False, True])
def test_what_the_last_product_of_feed_forward_is_given(activation: str, bias: bool) -> None:
    layer, x = build_feed_forward(4, 9, activation, bias=bias), torch.randn(3, 4)
    torch.testing.assert_close(layer.down(layer.hidden(x)), layer(x))
    assert (layer.down.bias is not None) == bias


def test_a_gated_layer_has_about_the_weights_of_one_without_a_gate() -> None:
    assert [gated_width(width) for width in (288, 512, 768, 4)] == [768, 1376, 2048, 32]
    gated, plain = build_feed_forward(768, None, "swiglu"), build_feed_forward(768, None, "gelu")
    assert isinstance(gated, GatedFeedForward)
    assert sum(p.numel() for p in gated.parameters()) == sum(p.numel() for p in plain.parameters())
