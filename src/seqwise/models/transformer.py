"""Transformer: an encoder and a decoder made of attention alone.

Vaswani et al. 2017. Fixes in seq2seq: no recurrence on either side, so all steps of source and target are learned from
at once, and any two tokens are one step apart.

    x = embedding of each token * sqrt(D) + its position                                     (1)
    encoder, L times:   x = x + self_attention(x);  x = x + feed_forward(x)                  (2)
    decoder, L times:   y = y + causal_self_attention(y);  y = y + attention(y, x);  y = y + feed_forward(y)   (3)

Each step of (2) and (3) is normalised: f(norm(x)) is added (pre), or norm(x + f(x)) taken (post, as published). The
first bears higher rates and more layers without a long warm-up (Xiong et al. 2020).

Marian's translators (Junczys-Dowmunt et al. 2018) are of this kind, with norm=post, biases and an output bias;
interop/hf_marian.py reads and writes them.

The state is what self-attention keeps of the target so far; the memory, keys and values of the source for each layer.

Shapes: B batch, N sources, R hypotheses, T steps, P steps before, S source steps, D width, H heads, K head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, pad

from ..data.batch import Regions, Tokens, Values
from ..data.schema import Schema
from ..errors import ConfigError
from ..kernels.arithmetic import ACTIVATIONS
from ..layers.dropout import Dropout
from ..layers.embeddings import TokenEmbedding
from ..layers.feed_forward import FeedForward
from ..layers.multi_head import CrossAttention, SelfAttention, closed_where
from ..layers.notes import is_recorded, tap
from ..layers.positions import sinusoidal_table
from .build import check_heads
from .contract import Fields, State, only
from .encoder_decoder import PairConfig, PairModel, embeddings_for
from .engine import Plan, Weights, plain_ends

MIN_PLACES = 16  # for what is kept of a target


@dataclass(frozen=True)
class TransformerConfig(PairConfig):
    num_layers: int = 6
    """Layers of the decoder."""
    encoder_layers: int | None = None
    """Layers of the encoder; as many as the decoder has where not set."""
    model_dim: int = 256
    """Width of the stream that layers add to."""
    num_heads: int = 4
    """Attention heads; model_dim is split evenly between them."""
    feed_forward_dim: int | None = None
    """Width inside the feed-forward layer; four times model_dim where not set."""
    norm: Literal["pre", "post"] = "pre"
    """Normalise what goes into each layer, or what comes out (2017)."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """How the model knows where a token stands; sines go on as far as a text does."""
    context: int = 256
    """Learned positions: the longest source or target, in tokens."""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "squared_relu"] = "relu"
    """Nonlinearity of the feed-forward layer; silu is known as swish too."""
    biases: bool = False
    """Whether the products of attention have biases, as those of the feed-forward layer do."""
    embedding_scale: float | None = None
    """Factor of the table of embeddings where it is read; the square root of model_dim where not set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.model_dim, self.num_heads)
        if self.context < 2:
            raise ConfigError(f"model.context = {self.context} should be at least 2.")
        if self.embedding_scale is not None and not self.embedding_scale > 0:
            raise ConfigError(f"model.embedding_scale = {self.embedding_scale} should be above 0.")


class Sublayer(nn.Module):
    """x + f(norm(x)), or norm(x + f(x))."""

    def __init__(self, model_dim: int, *, norm: str, dropout: float):
        super().__init__()
        self.norm, self.is_pre, self.dropout = nn.LayerNorm(model_dim), norm == "pre", Dropout(dropout)

    def forward(self, x: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.leave(x, layer(self.enter(x)))

    def enter(self, x: Tensor) -> Tensor:
        return self._normed(x) if self.is_pre else x

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        x = x + (self.dropout(y) if self.training else y)
        return x if self.is_pre else self._normed(x)

    def _normed(self, x: Tensor) -> Tensor:
        """The function, not the module: a step of search is so short that calls of modules count."""
        return layer_norm(x, self.norm.normalized_shape, self.norm.weight, self.norm.bias)


class Block(nn.Module):
    """One layer of the encoder, or with `cross` of the decoder."""

    def __init__(self, config: TransformerConfig, *, cross: bool):
        super().__init__()
        D = config.model_dim

        def sublayer() -> Sublayer:
            return Sublayer(D, norm=config.norm, dropout=config.dropout)

        H, has_bias = config.num_heads, config.biases
        self.attention, self.attention_sublayer = SelfAttention(D, H, bias=has_bias), sublayer()
        if cross:
            self.cross, self.cross_sublayer = CrossAttention(D, H, bias=has_bias), sublayer()
        self.feed_forward = FeedForward(D, config.feed_forward_dim or 4 * D, config.activation, bias=True)
        self.feed_forward_sublayer = sublayer()

    def encode(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention_sublayer(x, lambda x: self.attention(x, mask))  # (2)
        return tap(self, "stream", self.feed_forward_sublayer(x, self.feed_forward))

    def products(self) -> list[nn.Module]:
        """Of the decoder, norms and products in the order in which they are computed."""
        look, cross, feed = self.attention, self.cross, self.feed_forward
        first, second, third = (
            s.norm for s in (self.attention_sublayer, self.cross_sublayer, self.feed_forward_sublayer)
        )
        return [first, look.qkv, look.to_output, second, cross.to_query, cross.to_output, third, feed.up, feed.down]

    def decode(
        self, x: Tensor, before: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """x (R, T, D), or (R, D) where each row takes one step."""
        attend = self.attention.forward_causal if x.dim() == 3 else self.attention.step
        y, kept = attend(self.attention_sublayer.enter(x), before)  # (3)
        x = self.attention_sublayer.leave(x, y)
        x = self.cross_sublayer.leave(x, self.cross(self.cross_sublayer.enter(x), keys, values, mask))
        return tap(self, "stream", self.feed_forward_sublayer(x, self.feed_forward)), kept


class TransformerBody(nn.Module):
    can_align = True
    position_table: Tensor
    target_position_table: Tensor

    def __init__(self, config: TransformerConfig, source_embedding: nn.Module, embedding: TokenEmbedding):
        super().__init__()
        D = config.model_dim
        self.config, self.output_dim = config, D
        self.source_embedding, self.embedding = source_embedding, embedding
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            Block(config, cross=False) for _ in range(config.encoder_layers or config.num_layers)
        )
        self.decoder = nn.ModuleList(Block(config, cross=True) for _ in range(config.num_layers))
        is_pre = config.norm == "pre"  # then nothing has been normalised at the end
        self.encoder_norm, self.decoder_norm = (nn.LayerNorm(D) if is_pre else nn.Identity() for _ in range(2))
        self.context = config.context if config.positions == "learned" else None
        if config.positions == "learned":
            self.source_positions, self.target_positions = (nn.Embedding(config.context, D) for _ in range(2))
            for table in (self.source_positions, self.target_positions):
                nn.init.normal_(table.weight, std=D**-0.5)
        for block in (*self.encoder, *self.decoder):
            for name, parameter in block.named_parameters():
                if parameter.dim() == 2:
                    nn.init.xavier_uniform_(parameter)
                elif name.startswith(("attention.", "cross.")):
                    nn.init.zeros_(parameter)
        self.register_buffer("position_table", sinusoidal_table(config.context, D), persistent=False)

    def read(self, sources: Fields) -> State:
        source = only(sources)
        x = self._embed(self.source_embedding, source, 0, "source")  # (N, S, D)
        mask = None if source.is_step is None else closed_where(~source.is_step, x.dtype)  # (N, 1, 1, S)
        for block in self.encoder:
            x = cast(Block, block).encode(x, mask)
        x = self.encoder_norm(x)
        own, memory, H = {}, {}, self.config.num_heads
        for layer, block in enumerate(self.decoder):
            memory[f"keys.{layer}"], memory[f"values.{layer}"] = cast(Block, block).cross.keys_values(x)
            own[f"kept.{layer}"] = x.new_zeros(len(x), 2, H, 0, x.shape[-1] // H)  # (R, 2, H, P or more, K)
        own["length"] = torch.zeros(len(x), dtype=torch.long, device=x.device)  # P, of each hypothesis the same
        if mask is not None:
            memory["mask"] = mask
        return State(own, memory)

    def decode(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        lengths = state.per_row["length"]
        P = int(lengths[0])
        x = self._embed(self.embedding, tokens, P, "target")  # (R, T, D)
        is_step, own = x.shape[1] == 1 and not is_recorded(), {"length": lengths + x.shape[1]}
        x = x[:, 0] if is_step else x
        for layer, block in enumerate(self.decoder):
            keys, values = state.memory[f"keys.{layer}"], state.memory[f"values.{layer}"]
            before = state.per_row[f"kept.{layer}"][:, :, :, :P]
            x, own[f"kept.{layer}"] = cast(Block, block).decode(x, before, keys, values, state.memory.get("mask"))
        x = self.decoder_norm(x)
        return x.unsqueeze(1) if is_step else x, State(own, state.memory)

    def plan(self, weights: Weights, head: nn.Module) -> Plan:
        """For kernels/transformer_step.py."""
        embedding, output = plain_ends(self.embedding, head)
        config, D, V = self.config, self.output_dim, output.output.out_features
        blocks = [cast(Block, block) for block in self.decoder]
        F, activation = blocks[0].feed_forward.up.out_features, ACTIVATIONS[config.activation]
        numbers = [len(blocks), D, config.num_heads, F, V, activation, int(config.norm == "pre")]
        layers = [
            embedding,
            self.decoder_norm,
            output.output,
            *(layer for block in blocks for layer in block.products()),
        ]
        numbers += chain(*map(weights.matrix, layers))
        epsilon = blocks[0].attention_sublayer.norm.eps
        return Plan("transformer", numbers, [embedding.scale, epsilon], 7 * D + F, V)

    def make_room(self, state: State) -> int:
        """Places for what is kept are doubled when they are full."""
        kept, P = state.per_row["kept.0"], int(state.per_row["length"][0])
        if self.config.positions == "learned" and self.config.context <= P:
            return 0
        if kept.shape[3] <= P:
            for layer in range(len(self.decoder)):
                name = f"kept.{layer}"
                state.per_row[name] = pad(state.per_row[name], (0, 0, 0, max(MIN_PLACES, P)))
        if self.config.positions == "sinusoidal":
            self._reach(state.per_row["kept.0"].shape[3])
            return state.per_row["kept.0"].shape[3] - P
        return min(state.per_row["kept.0"].shape[3], self.config.context) - P

    def in_order(self, state: State) -> list[str | int]:
        kept, keys = state.per_row["kept.0"], state.memory["keys.0"]
        table = self.position_table if self.config.positions == "sinusoidal" else self.target_positions.weight
        mask = "mask" if "mask" in state.memory else 0
        parts = (f"{what}.{layer}" for layer in range(len(self.decoder)) for what in ("kept", "keys", "values"))
        return ["length", kept.shape[3], keys.shape[2], mask, table.data_ptr(), *parts]

    def align(self, tokens: Tokens, state: State) -> Tensor:
        """The mean over the heads of the layer before the last: where Transformers align best (Garg et al. 2019)."""
        layer = max(0, len(self.decoder) - 2)
        found: list[Tensor] = []
        block = cast(Block, self.decoder[layer])

        def look(_: nn.Module, inputs: tuple[Tensor, ...], __: Tensor) -> None:
            x = inputs[0] if inputs[0].dim() == 3 else inputs[0].unsqueeze(1)
            found.append(block.cross.attention(x, inputs[1], state.memory.get("mask")))

        handle = block.cross.register_forward_hook(look)
        try:
            self.decode(tokens, state)
        finally:
            handle.remove()
        return found[0].mean(dim=1)

    def _embed(self, embedding: nn.Module, tokens: Tokens | Values | Regions, first: int, side: str) -> Tensor:
        """(1) for tokens from place `first` on."""
        end = first + tokens.shape[1]
        if self.config.positions == "sinusoidal":
            self._reach(end)
            return self.dropout(embedding(tokens) + self.position_table[first:end])
        if end > self.config.context:
            raise ConfigError(
                f"a {side} of {end} tokens is longer than the {self.config.context} positions of the model. "
                "Shorten it, or train with a larger model.context, or with model.positions=sinusoidal."
            )
        table = self.source_positions if side == "source" else self.target_positions
        return self.dropout(embedding(tokens) + table.weight[first:end])

    def _reach(self, end: int) -> None:
        """Sines for so many places."""
        if end > len(self.position_table):
            self.position_table = sinusoidal_table(2 * end, self.config.model_dim).to(self.position_table)


def build_transformer(config: TransformerConfig, schema: Schema) -> PairModel:
    embeddings = embeddings_for(config, schema, config.model_dim, scale=config.embedding_scale)
    body = TransformerBody(config, *embeddings)
    return PairModel(body, config, schema, body.embedding)
