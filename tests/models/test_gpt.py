"""The shapes of GPT: against plain versions written out from the papers, with the published numbers of parameters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import schemas
import torch
from runs_by_hand import prepare
from torch import Tensor
from torch.nn import functional

from seqwise.data.batch import Tokens, next_token_batch
from seqwise.errors import ConfigError
from seqwise.models import MODELS, num_parameters
from seqwise.models.gpt import SIZES, GPTConfig, build_gpt
from seqwise.run import Run

SMALL = {"context": 9, "num_layers": 2, "model_dim": 24, "num_heads": 4, "feed_forward_dim": 20}
VOCAB, STEPS = 11, 7


def small(name: str, **settings: Any) -> Any:
    """Of a named size, but small, with weights that are not all alike."""
    model = build_gpt(GPTConfig(**{**SIZES[name], **SMALL, **settings}), schemas.of_text(VOCAB)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def attention_by_loops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(T, H, K), (T, G, K) twice -> (T, H * K): head h reads the keys and values of head h // (H / G)."""
    T, H, K = q.shape
    found = torch.zeros(T, H, K)
    for t in range(T):
        for h in range(H):
            g = h // (H // k.shape[1])
            weights = torch.stack([q[t, h] @ k[s, g] / math.sqrt(K) for s in range(t + 1)]).softmax(dim=0)
            found[t, h] = sum(weight * v[s, g] for s, weight in enumerate(weights))
    return found.flatten(1)


def log_probs_of(model: Any, ids: Tensor) -> Tensor:
    return model.score(next_token_batch(ids.unsqueeze(0)))[0][0]


@torch.no_grad()
def test_the_shape_of_gpt2_is_what_its_paper_and_code_compute() -> None:
    model, ids = small("gpt2"), torch.randint(VOCAB, (STEPS + 1,))
    w = dict(model.named_parameters())

    def norm(x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        scaled = centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
        return scaled * w[f"body.{name}.weight"] + w[f"body.{name}.bias"]

    def layer(x: Tensor, name: str) -> Tensor:
        return x @ w[f"body.{name}.weight"].T + w[f"body.{name}.bias"]

    x = w["body.embedding.weight"][ids[:-1]] + w["body.position_table"][:STEPS]
    for n in range(2):
        block = f"blocks.{n}"
        q, k, v = layer(norm(x, f"{block}.attention_norm"), f"{block}.attention.qkv").view(STEPS, 3, 4, 6).unbind(1)
        x = x + layer(attention_by_loops(q, k, v), f"{block}.attention.to_output")
        inside = layer(norm(x, f"{block}.feed_forward_norm"), f"{block}.feed_forward.up")
        bent = 0.5 * inside * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inside + 0.044715 * inside**3)))
        x = x + layer(bent, f"{block}.feed_forward.down")
    logits = norm(x, "norm") @ w["body.embedding.weight"].T  # tied
    expected = logits.log_softmax(dim=-1)[torch.arange(STEPS), ids[1:]]
    torch.testing.assert_close(log_probs_of(model, ids), expected, atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize(
    ("num_kv_heads", "base", "tied"), [(4, 10_000.0, False), (2, 10_000.0, True), (1, 500.0, False)]
)
def test_the_shape_of_llama_is_what_its_paper_computes(num_kv_heads: int, base: float, tied: bool) -> None:
    settings = {"num_kv_heads": num_kv_heads, "rotary_base": base, "tied_embeddings": tied, "norm_epsilon": 1e-3}
    model, ids = small("llama-7b", **settings), torch.randint(VOCAB, (STEPS + 1,))
    w = dict(model.named_parameters())

    def norm(x: Tensor, name: str) -> Tensor:
        return x / (x.square().mean(dim=-1, keepdim=True) + 1e-3).sqrt() * w[f"body.{name}.weight"]

    def turned(x: Tensor) -> Tensor:
        """(T, heads, K): neighbours 2i and 2i + 1 by the angle t * base^(-2i/K)."""
        found = torch.zeros_like(x)
        for t in range(STEPS):
            for i in range(3):
                angle = t * base ** (-2 * i / 6)
                a, b = x[t, :, 2 * i], x[t, :, 2 * i + 1]
                found[t, :, 2 * i] = a * math.cos(angle) - b * math.sin(angle)
                found[t, :, 2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
        return found

    x = w["body.embedding.weight"][ids[:-1]]
    for n in range(2):
        block = f"body.blocks.{n}"
        projected = norm(x, f"blocks.{n}.attention_norm") @ w[f"{block}.attention.qkv.weight"].T
        q, k, v = projected.view(STEPS, -1, 6).split((4, num_kv_heads, num_kv_heads), dim=1)
        x = x + attention_by_loops(turned(q), turned(k), v) @ w[f"{block}.attention.to_output.weight"].T
        normed = norm(x, f"blocks.{n}.feed_forward_norm")
        gate, up, down = (w[f"{block}.feed_forward.{name}.weight"] for name in ("gate", "up", "down"))
        opened = normed @ gate.T
        x = x + (opened * opened.sigmoid() * (normed @ up.T)) @ down.T
    output = w["body.embedding.weight"] if tied else w["head.tokens.output.weight"]
    expected = functional.log_softmax(norm(x, "norm") @ output.T, dim=-1)[torch.arange(STEPS), ids[1:]]
    torch.testing.assert_close(log_probs_of(model, ids), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("name", "vocab_size", "published"),
    [
        ("gpt2", 50257, 124_439_808),
        ("gpt2-medium", 50257, 354_823_168),
        ("gpt2-large", 50257, 774_030_080),
        ("gpt2-xl", 50257, 1_557_611_200),
        ("stories15m", 32000, 15_191_712),
        ("stories42m", 32000, 41_689_600),
        ("stories110m", 32000, 109_529_856),
        ("llama-7b", 32000, 6_738_415_616),
    ],
)
def test_named_sizes_have_the_published_number_of_parameters(name: str, vocab_size: int, published: int) -> None:
    with torch.device("meta"):
        model = build_gpt(GPTConfig(**SIZES[name]), schemas.of_text(vocab_size))
    assert num_parameters(model) == published


def test_a_named_size_is_filled_in_where_nothing_was_set_by_hand_and_saved(tmp_path: Path) -> None:
    (tmp_path / "cats.txt").write_text("the cat sat on the mat\n" * 60)
    by_hand = {"num_layers": 1, "model_dim": 12, "num_heads": 2, "context": 16, "norm": "layer"}
    overrides = ["model.size=stories15m", *(f"model.{name}={value}" for name, value in by_hand.items())]
    session = prepare(tmp_path / "cats.txt", model="gpt", out=tmp_path / "run", steps=2, overrides=overrides)
    list(session.reports())
    saved = vars(Run.open(tmp_path / "run").config.model)
    assert saved | SIZES["stories15m"] | by_hand | {"size": "stories15m"} == saved
    assert (saved["feed_forward_dim"], saved["embedding_scale"], saved["activation"]) == (768, 1.0, "swiglu")
    assert Run.open(tmp_path / "run").load_model().body.config.norm == "layer"


def test_a_family_without_sizes_takes_settings_as_they_are() -> None:
    assert MODELS["lstm"].filled_in({"model_dim": 8}) == {"model_dim": 8}
    assert MODELS["gpt"].filled_in({"size": "gpt3"}) == {"size": "gpt3"}  # refused below


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": "gpt2-xxl"}, 'model.size = "gpt2-xxl" is not known. Did you mean "gpt2-xl"?'),
        ({"num_heads": 4, "num_kv_heads": 3}, "num_kv_heads=3 does not divide num_heads=4; try 1 or 2 or 4."),
        ({"num_heads": 4, "num_kv_heads": 8}, "num_kv_heads=8 does not divide num_heads=4; try 1 or 2 or 4."),
        ({"num_kv_heads": 0}, "model.num_kv_heads = 0 should be at least 1."),
        ({"norm_epsilon": 0.0}, "model.norm_epsilon = 0.0 should be above 0."),
        ({"embedding_scale": -1.0}, "model.embedding_scale = -1.0 should be above 0."),
        (
            {"positions": "learned", "rotary_base": 500_000.0},
            "model.rotary_base = 500000 goes with rotary positions, and these are learned; drop it.",
        ),
        (
            {"model_dim": 12, "num_heads": 4, "num_kv_heads": 2},
            "rotary positions need an even head width; model_dim=12 over num_heads=4 gives 3.",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        GPTConfig(**settings)
    assert str(caught.value) == sentence


def test_biases_begin_at_zero_and_each_block_as_the_identity() -> None:
    config = GPTConfig(**{**SMALL, "biases": True, "activation": "swiglu", "num_kv_heads": 2})
    model = build_gpt(config, schemas.of_text(VOCAB))
    biases = [parameter for name, parameter in model.named_parameters() if name.endswith("bias")]
    assert len(biases) == 2 * (2 + 2 + 3) + 1  # two norms, attention, feed-forward of each block; the last norm
    assert all((bias == 0).all() for bias in biases)
    x = torch.randn(1, 5, 24)
    torch.testing.assert_close(model.body.blocks[0](x, None, None), x)


def test_embeddings_are_read_as_they_are_where_that_is_set() -> None:
    """Those of a large vocabulary are scaled up otherwise, which weights of others are not made for."""
    by_rule, as_they_are = (
        build_gpt(GPTConfig(**SMALL, embedding_scale=scale), schemas.of_text(2000)).body.embedding
        for scale in (None, 1.0)
    )
    tokens = Tokens(torch.tensor([[1, 2]]))
    torch.testing.assert_close(as_they_are(tokens)[0], as_they_are.weight[1:3])
    torch.testing.assert_close(by_rule(tokens)[0], by_rule.weight[1:3] * math.sqrt(24))
    for embedding in (by_rule, as_they_are):
        assert embedding(Tokens(torch.arange(2000).unsqueeze(0))).std().item() == pytest.approx(0.02, rel=0.05)


def test_fewer_heads_of_keys_and_values_make_the_cache_smaller_by_as_much() -> None:
    def cached(**settings: Any) -> int:
        state = build_gpt(GPTConfig(**SMALL, **settings), schemas.of_text(VOCAB)).initial_state(1)
        return sum(tensor.numel() for name, tensor in state.per_row.items() if name.startswith(("keys", "values")))

    assert cached(num_kv_heads=1) * 4 == cached(num_kv_heads=2) * 2 == cached()
