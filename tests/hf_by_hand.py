"""Models in the layout of Hugging Face, written by hand: their tensors by name, and their equations in plain torch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from hf_tokens import TOKENS, write_tokens
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, silu, softmax

D, F, HEADS, LAYERS, CONTEXT = 8, 12, 2, 2, 60
BERT = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "vocab_size": TOKENS["bert"],
    "hidden_size": D,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": F,
    "max_position_embeddings": CONTEXT,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-3,
}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": TOKENS["gpt2"]}
GPT2 |= {"n_embd": D, "n_layer": LAYERS, "n_head": HEADS, "n_positions": CONTEXT}
LLAMA = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": TOKENS["gpt2"]},
    **{"hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 1},
    **{"intermediate_size": F, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-3, "rope_theta": 100.0},
}
Weights = dict[str, Tensor]


def random(**shapes: tuple[int, ...]) -> Weights:
    return {name: 0.5 * torch.randn(shape) for name, shape in shapes.items()}


def linear(name: str, outputs: int, inputs: int, *, bias: bool = True) -> Weights:
    return random(**{f"{name}.weight": (outputs, inputs), **({f"{name}.bias": (outputs,)} if bias else {})})


def norm(name: str) -> Weights:
    return random(**{f"{name}.weight": (D,), f"{name}.bias": (D,)})


def bert_weights(prefix: str = "bert.") -> Weights:
    found = random(
        **{
            f"{prefix}embeddings.word_embeddings.weight": (TOKENS["bert"], D),
            f"{prefix}embeddings.position_embeddings.weight": (CONTEXT, D),
            f"{prefix}embeddings.token_type_embeddings.weight": (2, D),
        }
    )
    found |= norm(f"{prefix}embeddings.LayerNorm") | linear(f"{prefix}pooler.dense", D, D)
    for layer in range(LAYERS):
        block = f"{prefix}encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            found |= linear(f"{block}attention.self.{name}", D, D)
        found |= linear(f"{block}attention.output.dense", D, D) | norm(f"{block}attention.output.LayerNorm")
        found |= linear(f"{block}intermediate.dense", F, D) | linear(f"{block}output.dense", D, F)
        found |= norm(f"{block}output.LayerNorm")
    if prefix:
        found |= linear("cls.predictions.transform.dense", D, D) | norm("cls.predictions.transform.LayerNorm")
        found |= random(**{"cls.predictions.bias": (TOKENS["bert"],)})
    return found


def bert_hidden(w: Weights, ids: Tensor, texts: Tensor, prefix: str = "bert.") -> Tensor:
    """The paper, by plain functions: (T,) -> (T, D)."""

    def apply(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def normed(name: str, x: Tensor) -> Tensor:
        return layer_norm(x, (D,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-3)

    table = f"{prefix}embeddings."
    x = w[f"{table}word_embeddings.weight"][ids] + w[f"{table}position_embeddings.weight"][: len(ids)]
    x = normed(f"{table}LayerNorm", x + w[f"{table}token_type_embeddings.weight"][texts])
    for layer in range(LAYERS):
        block = f"{prefix}encoder.layer.{layer}."
        q, k, v = (apply(f"{block}attention.self.{name}", x) for name in ("query", "key", "value"))
        x = normed(f"{block}attention.output.LayerNorm", x + apply(f"{block}attention.output.dense", heads(q, k, v)))
        inner = apply(f"{block}output.dense", gelu(apply(f"{block}intermediate.dense", x)))
        x = normed(f"{block}output.LayerNorm", x + inner)
    return x


def bert_logits(w: Weights, ids: Tensor, texts: Tensor) -> Tensor:
    x, name = bert_hidden(w, ids, texts), "cls.predictions.transform."
    x = gelu(x @ w[f"{name}dense.weight"].T + w[f"{name}dense.bias"])
    x = layer_norm(x, (D,), w[f"{name}LayerNorm.weight"], w[f"{name}LayerNorm.bias"], 1e-3)
    return x @ w["bert.embeddings.word_embeddings.weight"].T + w["cls.predictions.bias"]


def heads(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
    """Each head by itself: (T, D) -> (T, D)."""
    found, T, width = [], len(q), D // HEADS
    for head in range(HEADS):
        mine = slice(head * width, (head + 1) * width)
        scores = q[:, mine] @ k[:, mine].T / math.sqrt(width)
        scores = scores + torch.full((T, T), float("-inf")).triu(1) if causal else scores
        found.append(softmax(scores, dim=-1) @ v[:, mine])
    return torch.cat(found, dim=1)


def gpt2_weights(prefix: str = "transformer.") -> Weights:
    found = random(**{f"{prefix}wte.weight": (TOKENS["gpt2"], D), f"{prefix}wpe.weight": (CONTEXT, D)})
    for layer in range(LAYERS):
        block = f"{prefix}h.{layer}."
        found |= norm(f"{block}ln_1") | norm(f"{block}ln_2")
        for name, inputs, outputs in (
            *(("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D)),
            *(("mlp.c_fc", D, 4 * D), ("mlp.c_proj", 4 * D, D)),
        ):
            found |= random(**{f"{block}{name}.weight": (inputs, outputs), f"{block}{name}.bias": (outputs,)})
        found[f"{block}attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT)  # the mask, which old files have
    return found | norm(f"{prefix}ln_f")


def gpt2_logits(w: Weights, ids: Tensor, prefix: str = "transformer.") -> Tensor:
    def apply(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{prefix}{name}.weight"] + w[f"{prefix}{name}.bias"]

    def normed(name: str, x: Tensor) -> Tensor:
        return layer_norm(x, (D,), w[f"{prefix}{name}.weight"], w[f"{prefix}{name}.bias"], 1e-5)

    x = w[f"{prefix}wte.weight"][ids] + w[f"{prefix}wpe.weight"][: len(ids)]
    for layer in range(LAYERS):
        q, k, v = apply(f"h.{layer}.attn.c_attn", normed(f"h.{layer}.ln_1", x)).split(D, dim=1)
        x = x + apply(f"h.{layer}.attn.c_proj", heads(q, k, v, causal=True))
        inner = gelu(apply(f"h.{layer}.mlp.c_fc", normed(f"h.{layer}.ln_2", x)), approximate="tanh")
        x = x + apply(f"h.{layer}.mlp.c_proj", inner)
    return normed("ln_f", x) @ w[f"{prefix}wte.weight"].T


def llama_weights() -> Weights:
    found = random(**{"model.embed_tokens.weight": (TOKENS["gpt2"], D), "lm_head.weight": (TOKENS["gpt2"], D)})
    found |= random(**{"model.norm.weight": (D,)})
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        for name, outputs in {"q": D, "k": D // HEADS, "v": D // HEADS, "o": D}.items():
            found |= linear(f"{block}self_attn.{name}_proj", outputs, D, bias=False)
        for name, outputs, inputs in (("gate", F, D), ("up", F, D), ("down", D, F)):
            found |= linear(f"{block}mlp.{name}_proj", outputs, inputs, bias=False)
        found |= random(**{f"{block}{name}.weight": (D,) for name in ("input_layernorm", "post_attention_layernorm")})
    return found


def llama_logits(w: Weights, ids: Tensor) -> Tensor:
    def normed(name: str, x: Tensor) -> Tensor:
        return x * (x.square().mean(dim=-1, keepdim=True) + 1e-3).rsqrt() * w[f"{name}.weight"]

    def turned(x: Tensor) -> Tensor:
        """The first half of a head against its second: (T, heads * K)."""
        width = D // HEADS
        angles = torch.arange(len(ids)).unsqueeze(1) * 100.0 ** (-torch.arange(0, width, 2) / width)  # (T, K/2)
        found = []
        for first, second in (part.chunk(2, dim=1) for part in x.split(width, dim=1)):
            cos, sin = angles.cos(), angles.sin()
            found += [first * cos - second * sin, second * cos + first * sin]
        return torch.cat(found, dim=1)

    x = w["model.embed_tokens.weight"][ids]
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        inner = normed(f"{block}input_layernorm", x)
        q, k, v = (inner @ w[f"{block}self_attn.{name}_proj.weight"].T for name in "qkv")
        k, v = turned(k).repeat(1, HEADS), v.repeat(1, HEADS)  # one of each for all heads
        x = x + heads(turned(q), k, v, causal=True) @ w[f"{block}self_attn.o_proj.weight"].T
        inner = normed(f"{block}post_attention_layernorm", x)
        gate, up, down = (w[f"{block}mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        x = x + (silu(inner @ gate.T) * (inner @ up.T)) @ down.T
    return normed("model.norm", x) @ w["lm_head.weight"].T


def write(folder: Path, config: dict[str, Any], weights: Weights, *, tokens: str = "bert") -> Path:
    write_tokens(tokens, folder)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    return folder


def bert_folder(tmp_path: Path, **changes: Any) -> Path:
    return write(tmp_path / "theirs", {**BERT, **changes}, bert_weights())
