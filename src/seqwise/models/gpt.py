"""GPT: a stack of causal self-attention layers that predicts the next token at every place at once.

Radford et al. 2018, 2019 (pre-norm). Fixes in the recurrent network: no state of fixed size to squeeze the past
through, a path of length one between any two tokens, and training in parallel over time.

    x      = embedding of each token (+ its position)                  (1)
    x      = x + attention(norm(x))        layers/attention.py         (2)   L times
    x      = x + feed_forward(norm(x))     layers/feed_forward.py      (3)
    p(token t+1 | tokens 1..t) = softmax(W norm(x_t))                  (4)   layers/heads.py

Its state is the keys and values of all tokens so far, in a cache allocated once for the whole context. When the cache
is full, a row forgets its oldest quarter and goes on.

What others changed since is a setting each: RMSNorm, rotary positions, SwiGLU, keys and values shared by several heads,
no biases. SIZES has the shapes that are known by name, GPT-2 (2019) and Llama (Touvron et al. 2023) among them.

Shapes: B batch, T steps, C context, D model width, H heads, G heads of keys and values, K head width, L layers,
V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ..data.batch import kept_of
from ..data.schema import Schema
from ..errors import ConfigError, did_you_mean
from ..kernels.arithmetic import ACTIVATIONS
from ..layers.attention import CausalSelfAttention, LayerCache, Place, attention_of_one
from ..layers.dropout import Dropout
from ..layers.feed_forward import SWIGLU, build_feed_forward, gated_width
from ..layers.norms import build_norm
from ..layers.notes import is_recorded, pause_recording, tap
from ..layers.positions import rotary_table, sinusoidal_table
from .adapters import AdaptedConfig
from .build import build_model, check_heads, check_turns, embedding_for
from .contract import Encoded, Fields, State, only
from .engine import Plan, Weights, plain_ends

ROTARY_BASE = 10_000.0
GPT2: dict[str, Any] = {
    **{"norm": "layer", "positions": "learned", "activation": "gelu_tanh", "biases": True, "tied_embeddings": True},
    **{"normalise_queries": False, "embedding_scale": 1.0},
}
LLAMA: dict[str, Any] = {
    **{"norm": "rms", "positions": "rotary", "activation": SWIGLU, "biases": False, "tied_embeddings": False},
    **{"normalise_queries": False, "embedding_scale": 1.0},
}


def _gpt2(num_layers: int, model_dim: int, num_heads: int) -> dict[str, Any]:
    sizes = {"num_layers": num_layers, "model_dim": model_dim, "num_heads": num_heads}
    return {**GPT2, **sizes, "feed_forward_dim": 4 * model_dim, "context": 1024}


def _stories(num_layers: int, model_dim: int, num_heads: int, context: int) -> dict[str, Any]:
    sizes = {"num_layers": num_layers, "model_dim": model_dim, "num_heads": num_heads, "context": context}
    return {**LLAMA, **sizes, "feed_forward_dim": gated_width(model_dim), "tied_embeddings": True}


SIZES: dict[str, dict[str, Any]] = {
    "gpt2": _gpt2(12, 768, 12),
    "gpt2-medium": _gpt2(24, 1024, 16),
    "gpt2-large": _gpt2(36, 1280, 20),
    "gpt2-xl": _gpt2(48, 1600, 25),
    "stories15m": _stories(6, 288, 6, 256),
    "stories42m": _stories(8, 512, 8, 1024),
    "stories110m": _stories(12, 768, 12, 1024),
    "llama-7b": LLAMA
    | {"num_layers": 32, "model_dim": 4096, "num_heads": 32, "feed_forward_dim": 11008, "context": 2048},
}
"""Settings by the name of a size; the vocabulary is that of the tokenizer. stories: karpathy/llama2.c."""


@dataclass(frozen=True)
class GPTConfig(AdaptedConfig):
    size: str = ""
    """Named size (gpt2, gpt2-medium, gpt2-large, gpt2-xl, stories15m, stories42m, stories110m, llama-7b), from which
    training takes every setting of the shape that is not set by hand."""
    context: int = 256
    """Longest sequence the model can attend to, in tokens."""
    num_layers: int = 4
    """Blocks of attention and feed-forward."""
    model_dim: int = 256
    """Width of the stream that the blocks add to."""
    num_heads: int = 4
    """Attention heads; model_dim is split evenly between them."""
    num_kv_heads: int | None = None
    """Heads of keys and values, each shared by as many attention heads (grouped-query attention); num_heads where not
    set."""
    feed_forward_dim: int | None = None
    """Width inside the feed-forward layer; four times model_dim where not set, with swiglu two thirds of that."""
    norm: Literal["layer", "rms"] = "layer"
    """Norm before each layer and before the output: LayerNorm, or RMSNorm, which leaves out the mean."""
    norm_epsilon: float = 1e-5
    """What a norm adds to the variance, which keeps the division from zero."""
    biases: bool = False
    """Whether linear layers and LayerNorm have biases."""
    positions: Literal["rotary", "learned", "sinusoidal"] = "rotary"
    """How the model knows where a token stands."""
    rotary_base: float = ROTARY_BASE
    """Rotary positions: the longest wavelength, in steps over two pi; higher for longer contexts."""
    activation: Literal["gelu", "gelu_tanh", "squared_relu", "swiglu"] = "squared_relu"
    """Nonlinearity of the feed-forward layer; gelu_tanh is the approximation that GPT-2 uses."""
    normalise_queries: bool = True
    """Bring queries and keys to unit length before their product, which bears higher learning rates."""
    embedding_scale: float | None = None
    """Factor of the table of embeddings where it is read; by the size of the vocabulary where not set."""

    @property
    def kv_heads(self) -> int:
        return self.num_kv_heads or self.num_heads

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size and self.size not in SIZES:
            raise ConfigError(f'model.size = "{self.size}" is not known. {did_you_mean(self.size, SIZES)}')
        if self.context < 2:
            raise ConfigError(f"model.context = {self.context} should be at least 2.")
        for name in ("norm_epsilon", "rotary_base", "embedding_scale"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"model.{name} = {value} should be above 0.")
        self._check_heads()
        if self.positions != "rotary" and self.rotary_base != ROTARY_BASE:
            raise ConfigError(
                f"model.rotary_base = {self.rotary_base:g} goes with rotary positions, and these are {self.positions}; "
                "drop it."
            )

    def _check_heads(self) -> None:
        check_heads(self.model_dim, self.num_heads)
        if self.num_heads % self.kv_heads:
            dividing = [str(n) for n in range(1, self.num_heads + 1) if self.num_heads % n == 0]
            raise ConfigError(
                f"num_kv_heads={self.num_kv_heads} does not divide num_heads={self.num_heads}; "
                f"try {' or '.join(dividing)}."
            )
        if self.positions == "rotary":
            check_turns(self.model_dim, self.num_heads)


class Block(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        D, has_bias = config.model_dim, config.biases
        self.attention_norm = _norm(config)
        # no dropout inside: the fused kernel for CPUs has none, and the plain path costs a third of the speed
        self.attention = CausalSelfAttention(
            D, config.num_heads, num_kv_heads=config.kv_heads, normalise=config.normalise_queries, bias=has_bias
        )
        self.feed_forward_norm = _norm(config)
        self.feed_forward = build_feed_forward(D, config.feed_forward_dim, config.activation, bias=has_bias)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, turn: Tensor | None, cache: LayerCache | None) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), turn, cache))  # (2)
        return tap(self, "stream", x + self.dropout(self.feed_forward(self.feed_forward_norm(x))))  # (3)

    def products(self) -> list[nn.Module | None]:
        """Norms and products in the order in which they are computed."""
        first, second = self.attention, self.feed_forward
        gate = getattr(second, "gate", None)
        return [self.attention_norm, first.qkv, first.to_output, self.feed_forward_norm, gate, second.up, second.down]

    def step(self, x: Tensor, keys: Tensor, values: Tensor, place: int, turn: Tensor | None) -> Tensor:
        """`forward` with fewer calls, for one token per row, x (B, D), at one place of all caches (B, G, C, K)."""
        attention, feed_forward = self.attention, self.feed_forward
        normed = self.attention_norm.forward(x)
        q, k, v = attention.split_heads(linear(normed, attention.qkv.weight, attention.qkv.bias), turn)
        keys[:, :, place] = k
        values[:, :, place] = v
        y = attention_of_one(q, keys, values, place + 1)
        x = _plus(x, y.view(x.shape), attention.to_output)  # (2)
        return _plus(x, feed_forward.hidden(self.feed_forward_norm.forward(x)), feed_forward.down)  # (3)


def _norm(config: GPTConfig) -> nn.LayerNorm | nn.RMSNorm:
    return build_norm(config.norm, config.model_dim, bias=config.biases, epsilon=config.norm_epsilon)


def _plus(x: Tensor, hidden: Tensor, layer: nn.Linear) -> Tensor:
    """x + layer(hidden), in one product."""
    found = torch.addmm(x, hidden, layer.weight.T)
    return found if layer.bias is None else found + layer.bias


class GPTBody(nn.Module):
    carries_state = False
    turns: Tensor
    position_table: Tensor

    def __init__(self, config: GPTConfig, schema: Schema):
        super().__init__()
        self.config, self.context, self.output_dim = config, config.context, config.model_dim
        self.head_dim = config.model_dim // config.num_heads
        # the first norm sizes it
        self.embedding = embedding_for(schema, config, config.model_dim, std=0.02, scale=config.embedding_scale)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = _norm(config)
        if config.positions == "learned":
            self.position_table = nn.Parameter(torch.empty(config.context, config.model_dim))
            nn.init.normal_(self.position_table, std=0.02)
        elif config.positions == "sinusoidal":
            self.register_buffer("position_table", sinusoidal_table(config.context, config.model_dim), persistent=False)
        else:
            turns = rotary_table(config.context, self.head_dim, base=config.rotary_base)  # (C, K/2)
            self.register_buffer("turns", turns, persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        for name, parameter in self.blocks.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
            if name.endswith(("to_output.weight", "down.weight")):  # each block begins as the identity
                nn.init.zeros_(parameter)
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def initial_state(self, batch_size: int) -> State:
        config, like = self.config, self.norm.weight
        shape = (batch_size, config.kv_heads, config.context, self.head_dim)  # (B, G, C, K)
        own = {
            "inputs": like.new_zeros(batch_size, config.context, config.model_dim),
            "length": torch.zeros(batch_size, dtype=torch.long, device=like.device),
        }
        for layer in range(config.num_layers):
            own[f"keys.{layer}"], own[f"values.{layer}"] = like.new_zeros(shape), like.new_zeros(shape)
        return State(own)

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        """Hidden states (B, T, D) of the steps. A state is filled only where one is given: training needs no cache."""
        field = only(inputs)
        T = field.shape[1]
        if self.context < T:
            raise ConfigError(
                f"{T} steps are more than the model's context of {self.context}. "
                "Use shorter windows, or train with a larger model.context."
            )
        lengths = field.lengths if field.is_step is not None else None
        layers: list[Tensor] | None = [] if with_layers else None
        hidden, state = self._encode(self.embedding(field), lengths, state, layers)
        return Encoded.of(hidden, field.is_step, state, layers)

    def _encode(
        self, inputs: Tensor, lengths: Tensor | None, state: State | None, layers: list[Tensor] | None = None
    ) -> tuple[Tensor, State | None]:
        """The same from embeddings, (B, T, D). `lengths` (B,) where rows are padded."""
        T = inputs.shape[1]
        place = None if state is None else self._make_room(state, T)
        can_hurry = T == 1 and not self.training and not is_recorded() and layers is None
        if state is not None and place is not None and place.first is not None and can_hurry:
            return self._encode_one(inputs[:, 0], state, place.first), state
        x, turn = inputs, None
        if self.config.positions == "rotary":
            turn = self._turn(place, T)
        elif place is None or place.first is not None:
            first = 0 if place is None or place.first is None else place.first
            x = x + self.position_table[first : first + T]
        else:
            x = x + self.position_table[place.positions]
        x = self.dropout(x)
        if layers is not None:
            layers.append(x)
        for layer, block in enumerate(self.blocks):
            cache = None
            if state is not None and place is not None:
                cache = LayerCache(state.per_row[f"keys.{layer}"], state.per_row[f"values.{layer}"], place)
            x = block(x, turn, cache)
            if layers is not None:
                layers.append(x)
        if state is not None and place is not None:
            self._remember(state, inputs, lengths, place)
        return self.norm(x), state

    def _encode_one(self, inputs: Tensor, state: State, place: int) -> Tensor:
        """`_encode` where each row has one new step, all at the same place: (B, D) -> (B, 1, D)."""
        x, turn = inputs, None  # (B, D)
        if self.config.positions == "rotary":
            turn = self.turns[place]  # (K/2,)
        else:
            x = x + self.position_table[place]
        for layer, block in enumerate(self.blocks):
            x = cast(Block, block).step(
                x, state.per_row[f"keys.{layer}"], state.per_row[f"values.{layer}"], place, turn
            )
        state.per_row["inputs"][:, place] = inputs
        state.per_row["length"] = state.per_row["length"] + 1
        return self.norm(x).unsqueeze(1)

    def plan(self, weights: Weights, head: nn.Module) -> Plan:
        """For kernels/gpt_step.py."""
        embedding, head = plain_ends(self.embedding, head)
        config, first = self.config, cast(Block, self.blocks[0])
        is_gated = config.activation == SWIGLU
        D, F, G = config.model_dim, first.feed_forward.up.out_features, config.kv_heads
        activation = ACTIVATIONS["silu" if is_gated else config.activation]
        positions = weights.address(self, "turns" if config.positions == "rotary" else "position_table")
        sizes = [config.num_layers, D, config.num_heads, G, F, config.context, head.output.out_features, activation]
        sizes += [config.norm == "rms", config.positions == "rotary", is_gated, config.normalise_queries]
        ends = [weights.matrix(embedding), [positions, 0, 0], weights.matrix(self.norm), weights.matrix(head.output)]
        layers = [layer for block in self.blocks for layer in cast(Block, block).products()]
        numbers = [*sizes, *chain(*ends), *chain(*(weights.matrix(layer) for layer in layers))]
        factors = [config.norm_epsilon, embedding.scale]
        scratch = 3 * D + 2 * G * self.head_dim + 2 * F
        return Plan("gpt", [int(number) for number in numbers], factors, scratch, head.output.out_features)

    def make_room(self, state: State) -> int:
        longest = int(state.per_row["length"].max())
        if longest >= self.context:
            self._forget_oldest(state)
            longest = int(state.per_row["length"].max())
        return self.context - longest

    def in_order(self, state: State) -> list[str | int]:
        kept = [f"{what}.{layer}" for layer in range(self.config.num_layers) for what in ("keys", "values")]
        return ["length", "inputs", *kept]

    def _turn(self, place: Place | None, num_new: int) -> Tensor:
        """The rotation of the new tokens, shaped to broadcast against (B, T, H + G, K/2)."""
        if place is None or place.first is not None:
            first = 0 if place is None or place.first is None else place.first
            turn = self.turns[first : first + num_new]  # (T, K/2)
        else:
            turn = self.turns[place.positions]  # (B, T, K/2)
        return turn.unsqueeze(-2)

    def _make_room(self, state: State, num_new: int) -> Place:
        lengths: list[int] = state.per_row["length"].tolist()
        if num_new == 1 and max(lengths) >= self.context:
            self._forget_oldest(state)
            lengths = state.per_row["length"].tolist()
        if max(lengths) + num_new > self.context:
            raise ConfigError(
                f"{max(lengths)} tokens read and {num_new} new ones "
                f"are more than the model's context of {self.context}."
            )
        return Place.after(lengths, num_new, state.per_row["length"].device)

    def _remember(self, state: State, inputs: Tensor, lengths: Tensor | None, place: Place) -> None:
        T = inputs.shape[1]
        if place.first is not None:
            state.per_row["inputs"][:, place.first : place.first + T] = inputs
        else:
            rows = torch.arange(len(inputs), device=inputs.device).unsqueeze(1)
            state.per_row["inputs"][rows, place.positions] = inputs
        # padding is written too, behind the end, and overwritten by what comes next
        state.per_row["length"] = state.per_row["length"] + (T if lengths is None else lengths)

    def _forget_oldest(self, state: State) -> None:
        """Rows whose cache is full read their last three quarters anew, from position zero."""
        full = (state.per_row["length"] >= self.context).nonzero().squeeze(1)
        recent = state.per_row["inputs"][full, self.context - kept_of(self.context) :]
        with pause_recording():
            _, fresh = self._encode(recent, None, self.initial_state(len(full)))
        assert fresh is not None
        for name, tensor in fresh.per_row.items():
            state.per_row[name][full] = tensor


def build_gpt(config: GPTConfig, schema: Schema) -> nn.Module:
    return build_model(GPTBody(config, schema), config, schema)
