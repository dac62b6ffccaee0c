"""BERT: a Transformer encoder that reads a whole text from both sides, and learns by filling in words left out.

Devlin et al. 2019; Liu et al. 2019 (RoBERTa: no next sentence, full windows); Lan et al. 2020 (ALBERT: all layers share
their weights, embeddings are narrower than the stream). Fixes in GPT: a word's vector knows what comes after it too.
The price is that it predicts no next word: some are hidden instead (data/masking.py), and it says which they were.

    x      = norm(embedding of each token + of its place + of its text, 0 or 1)         (1)   ALBERT: widened
    x      = norm(x + attention(x))           every place sees every other              (2)   L times
    x      = norm(x + feed_forward(x))                                                  (3)
    pooled = tanh(W x_1 + b)                  of the first place, which stands for all  (4)
    p(token at a hidden place) = softmax(table norm(gelu(W x)) + b)                     (5)   layers/heads.py
    p(the second text follows the first) = softmax(W pooled + b)                        (6)

Norms stand behind what is added (post-norm), as published: weights of others mean the same here. Where positions are
rotary (layers/positions.py), (1) has no place: on little text the body then learns to look at neighbours many times
sooner (docs/lab-notebook.md), and no BERT of others is like that.

A picture is read as a row of its patches, as a text is of its words (Dosovitskiy et al. 2021); or of what an encoder
saw (models/eyes.py). Its first place shows nothing, and stands for all.

Shapes: B batch, T steps, C context, E embedding width, D model width, H heads, L layers, V vocabulary, N patches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..data.batch import Regions, Tokens
from ..data.schema import ImageSpec, LabelSpec, RegionSpec, Schema, TokenSpec, seen_schema
from ..errors import ConfigError, did_you_mean
from ..layers.dropout import Dropout
from ..layers.embeddings import RegionEmbedding, TokenEmbedding, ValueEmbedding
from ..layers.feed_forward import FeedForward
from ..layers.multi_head import SelfAttention
from ..layers.notes import tap
from ..layers.positions import rotary_table
from ..layers.products import Linear
from ..layers.stream import Stream
from .adapters import AdaptedConfig
from .build import build_model, check_heads, check_turns
from .contract import Encoded, Fields, State, only
from .eyes import IMAGE, SeeingConfig, eyes_for, has_boxes, num_regions, patches_of, with_first_place

STD = 0.02  # of fresh weights
NUM_TEXTS = 2
POOLED = {"tanh": torch.tanh, "relu": torch.relu}

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"num_layers": 2, "model_dim": 128, "num_heads": 2, "context": 512},
    "mini": {"num_layers": 4, "model_dim": 256, "num_heads": 4, "context": 512},
    "small": {"num_layers": 4, "model_dim": 512, "num_heads": 8, "context": 512},
    "base": {"num_layers": 12, "model_dim": 768, "num_heads": 12, "context": 512},
    "large": {"num_layers": 24, "model_dim": 1024, "num_heads": 16, "context": 512},
}
"""Settings by the name of a size, as published (Turc et al. 2019 for the small ones)."""


@dataclass(frozen=True)
class BERTConfig(AdaptedConfig, SeeingConfig):
    size: str = ""
    """Named size (tiny, mini, small, base, large), from which training takes every setting of the shape that is not set
    by hand."""
    context: int = 128
    """Longest row the model can read, in tokens: it has a vector for each place."""
    positions: Literal["learned", "rotary"] = "learned"
    """How the model knows where a token stands; rotary learns sooner from little text, learned is as published."""
    num_layers: int = 4
    """Blocks of attention and feed-forward."""
    model_dim: int = 256
    """Width of the stream that the blocks add to."""
    num_heads: int = 4
    """Attention heads; model_dim is split evenly between them."""
    feed_forward_dim: int | None = None
    """Width inside the feed-forward layer; four times model_dim where not set."""
    embed_dim: int | None = None
    """Width of the embeddings, which a matrix widens to model_dim (ALBERT); as wide as that where not set."""
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"
    """Nonlinearity of the feed-forward layer, and of the head that fills in words."""
    norm_epsilon: float = 1e-12
    """What a norm adds to the variance, which keeps the division from zero."""
    pooler_activation: Literal["tanh", "relu"] = "tanh"
    """Nonlinearity behind the first place, where labels are read off it; ReLU in DistilBERT."""
    patch_size: int = 4
    """Pictures: height and width of the patches that are read in the place of words, in pixels."""
    shared_layers: bool = False
    """One block, read through `num_layers` times (ALBERT), instead of one for each layer."""

    @property
    def reads_both_ways(self) -> bool:
        return False  # every place has seen all of the row: no end of it is more than the other

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size and self.size not in SIZES:
            raise ConfigError(f'model.size = "{self.size}" is not known. {did_you_mean(self.size, SIZES)}')
        if not self.norm_epsilon > 0:
            raise ConfigError(f"model.norm_epsilon = {self.norm_epsilon} should be above 0.")
        if self.characters != "none" or self.feature_sizes:
            raise ConfigError(
                "bert reads its tokens alone: model.characters and model.features go with other families."
            )
        if self.patch_size < 1:
            raise ConfigError(f"model.patch_size = {self.patch_size} should be at least 1.")
        if self.context < 3:
            raise ConfigError(f"model.context = {self.context} should be at least 3.")
        check_heads(self.model_dim, self.num_heads)
        if self.positions == "rotary":
            check_turns(self.model_dim, self.num_heads)


class Block(nn.Module):
    def __init__(self, config: BERTConfig):
        super().__init__()
        D = config.model_dim
        # no dropout inside of attention: the fused kernel for CPUs has none (models/gpt.py)
        self.attention = SelfAttention(D, config.num_heads, bias=True)
        self.attention_norm = nn.LayerNorm(D, eps=config.norm_epsilon)
        self.feed_forward = FeedForward(D, config.feed_forward_dim or 4 * D, config.activation, bias=True)
        self.feed_forward_norm = nn.LayerNorm(D, eps=config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None, turn: Tensor | None = None, *, only_first: bool = False
    ) -> Tensor:
        """(B, T, D) -> the same, or (B, 1, D) of the first place."""
        looked = self.attention.forward_first(x, mask, turn) if only_first else self.attention(x, mask, turn)
        x = self.attention_norm((x[:, :1] if only_first else x) + self.dropout(looked))  # (2)
        return tap(self, "stream", self.feed_forward_norm(x + self.dropout(self.feed_forward(x))))  # (3)


class BERTBody(nn.Module):
    carries_state = False
    turns: Tensor | None

    def __init__(self, config: BERTConfig, schema: Schema):
        super().__init__()
        D, E = config.model_dim, config.embed_dim or config.model_dim
        self.config, self.context, self.output_dim = config, config.context, D
        spec, self.eyes, has_places = schema.only_input(), None, config.positions == "learned"
        self.embedding: TokenEmbedding | ValueEmbedding | RegionEmbedding
        if isinstance(spec, ImageSpec | RegionSpec):
            self.eyes = eyes_for(config, schema, patch_size=config.patch_size)
            self.embedding = RegionEmbedding(self.eyes.output_dim, E, std=STD, has_boxes=has_boxes(spec))
            self.context, has_places = 1 + num_regions(self.eyes, spec), not has_boxes(spec)
        elif isinstance(spec, TokenSpec):
            self.embedding = TokenEmbedding(spec.size, E, std=STD)
        else:
            self.embedding = ValueEmbedding(spec.size, E)
        is_rotary = config.positions == "rotary"
        if is_rotary and self.eyes is not None:
            raise ConfigError("model.positions = rotary goes with texts; a picture has no order, take learned ones.")
        self.positions, self.texts = nn.Embedding(self.context, E) if has_places else None, nn.Embedding(NUM_TEXTS, E)
        turns = rotary_table(config.context, D // config.num_heads) if is_rotary else None  # (C, K/2)
        self.register_buffer("turns", turns, persistent=False)
        self.norm = nn.LayerNorm(E, eps=config.norm_epsilon)
        self.widen = Linear(E, D) if E != D else None
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(1 if config.shared_layers else config.num_layers))
        self.pooler = nn.Linear(D, D)
        self._initialise()

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and not name.startswith("embedding."):
                nn.init.normal_(parameter, std=STD)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def initial_state(self, batch_size: int) -> State:
        return State({})

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        x, mask, is_step = self.embed(inputs)
        layers, turn = [x], self._turn(x)
        for block in self.stack:
            x = block(x, mask, turn)
            layers.append(x)
        return Encoded((Stream(x, is_step, tuple(layers) if with_layers else (), self.pooled(x)),), None)

    def encode_first(self, inputs: Fields) -> Encoded:
        """`encode` for heads that read the first place alone: the last block, which nobody else asks, computes it
        alone. In six layers that is a seventh of the work."""
        x, mask, _ = self.embed(inputs)
        turn, (*below, last) = self._turn(x), self.stack
        for block in below:
            x = block(x, mask, turn)
        x = last(x, mask, turn, only_first=True)  # (B, 1, D)
        return Encoded((Stream(x, None, (), self.pooled(x)),), None)

    @property
    def stack(self) -> list[nn.Module]:
        return [self.blocks[layer % len(self.blocks)] for layer in range(self.config.num_layers)]

    def _turn(self, x: Tensor) -> Tensor | None:
        return None if self.turns is None else self.turns[: x.shape[1]]  # (T, K/2)

    def pooled(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, D)."""
        return POOLED[self.config.pooler_activation](self.pooler(x[:, 0]))  # (4)

    def embed(self, inputs: Fields) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """What the first block reads (B, T, D), which places are open to all (B, 1, 1, T), which are steps (B, T)."""
        field = only(inputs)
        if self.eyes is not None:
            field = with_first_place(self.eyes(field))
        T = field.shape[1]
        if self.context < T:
            raise ConfigError(
                f"{T} tokens are more than the model's context of {self.context}. "
                "Use shorter texts (model.max_steps), or train with a larger model.context."
            )
        x = self.embedding(field)  # (B, T, E)
        if self.positions is not None:
            x = x + self.positions.weight[:T]
        texts = field.segments if isinstance(field, Tokens) else None
        x = x + (self.texts.weight[0] if texts is None else self.texts(texts.clamp(max=NUM_TEXTS - 1)))
        x = self.dropout(self.norm(x))  # (1)
        if self.widen is not None:
            x = self.widen(x)  # (B, T, D)
        mask = None if field.is_step is None else field.is_step[:, None, None]  # (B, 1, 1, T): padding is not looked at
        return x, mask, field.is_step


class PatchEncoder(nn.Module):
    """A body that was trained on pictures, as the eyes of others: what it makes of each patch."""

    SIZES = ("height", "width", "patch_size", "num_layers", "model_dim", "num_heads", "feed_forward_dim", "embed_dim")
    """Of `sizes`, in this order."""

    def __init__(self, channels: int, sizes: Sequence[int]):
        super().__init__()
        named: dict[str, Any] = dict(zip(self.SIZES, sizes, strict=True))
        height, width = named.pop("height"), named.pop("width")
        scaled = ImageSpec(height, width, (0.0,) * channels, (1.0,) * channels)
        self.body = BERTBody(BERTConfig(**named), seen_schema(scaled, LabelSpec([])))
        self.patch_size, self.output_dim = named["patch_size"], self.body.output_dim

    @classmethod
    def sizes_of(cls, config: BERTConfig, spec: ImageSpec) -> list[int]:
        """Of a run's own; a body with what these cannot tell is refused."""
        wide, embed = config.feed_forward_dim or 4 * config.model_dim, config.embed_dim or config.model_dim
        plain = BERTConfig(model_dim=config.model_dim, num_heads=config.num_heads)
        for name in ("activation", "norm_epsilon", "shared_layers", "adapter"):
            if getattr(config, name) != getattr(plain, name):
                raise ConfigError(f"model.{name} = {getattr(config, name)}: eyes of such a run cannot be taken over.")
        own = [config.patch_size, config.num_layers, config.model_dim, config.num_heads, wide, embed]
        return [spec.height, spec.width, *own]

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, D, h, w)."""
        patches, h, w = patches_of(pixels, self.patch_size)
        hidden = self.body.encode({IMAGE: Regions(patches.transpose(1, 2))}).stream.hidden  # (B, 1 + h*w, D)
        return hidden[:, 1:].transpose(1, 2).unflatten(2, (h, w))


def build_bert(config: BERTConfig, schema: Schema) -> nn.Module:
    return build_model(BERTBody(config, schema), config, schema)
