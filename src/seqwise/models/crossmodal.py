"""Cross-modal Transformers: a picture and a text, read together.

Fixes in BERT: it has read of red things, and seen none. Here words and regions of a picture (cells of a grid, or things
in boxes) become vectors of one width, and attention runs between them. In what order, the shapes differ:

    regions = norm(norm(W f) + norm(U box) + v)     f features; box: left, top, right, bottom, area    (1)
    words   = norm(embedding of each token + of its place + of its text)                               (2)   bert.py

    two-streams      Lu et al. 2019 (ViLBERT)
        words: blocks of their own, then K times [look at regions, block]                              (3)
        regions, the whole picture first: K times [look at words, block]; both look at once            (4)
        pooled = tanh(W words_1) * tanh(V regions_1)                                                   (5)
    three-encoders   Tan & Bansal 2019 (LXMERT)
        words: blocks;  regions: blocks;  then K times [each looks at the other, block of its own]     (6)
        pooled = tanh(W words_1)                                                                       (7)
    one-stream       Chen et al. 2020 (UNITER)
        blocks over [words; regions]: every place sees every other                                     (8)
        pooled = (7)

A look is co-attention (layers/co_attention.py), with a feed-forward layer in (3), without in (6). A block is BERT's:
self-attention and feed-forward. One stream needs no new layer and lets words and regions meet in each; two streams
may differ in depth; three encoders let either side be understood by itself first. The words' side is bert's body, so
that it can start from a BERT (--from).

Shapes: B batch, T tokens, N regions, F features, D model width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..data.batch import Images, Regions, Tokens
from ..data.schema import CHOICE, LABEL, Schema, TokenSpec, vector_schema
from ..errors import ConfigError
from ..layers.co_attention import CoAttention, Looking
from ..layers.dropout import Dropout
from ..layers.stream import Stream
from .bert import BERTBody, BERTConfig, Block
from .build import build_model
from .contract import Encoded, Fields, State
from .eyes import IMAGE, eyes_for

BOX_NUMBERS = 5
Streams = tuple[Tensor, Tensor]
"""Words (B, T, D) and regions (B, N, D)."""


@dataclass(frozen=True)
class CrossmodalConfig(BERTConfig):
    shape: Literal["two-streams", "three-encoders", "one-stream"] = "one-stream"
    """How words and regions meet: by co-attention between two streams (ViLBERT), in an encoder behind one for each
    (LXMERT), or in one stream (UNITER)."""
    cross_layers: int = 2
    """Two streams and three encoders: how often each side looks at the other."""
    region_layers: int = 1
    """Three encoders: blocks of the regions before that; num_layers are those of the words."""
    reads: Literal["both", "words", "picture"] = "both"
    """What is read: both, or as a control the words without the picture, or the picture without the words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positions == "rotary":
            raise ConfigError("model.positions = rotary has no place for regions; crossmodal takes learned ones.")
        for name in ("cross_layers", "region_layers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} = {getattr(self, name)} should be at least 1.")
        if self.shape == "two-streams" and self.cross_layers > self.num_layers:
            raise ConfigError(
                f"model.cross_layers = {self.cross_layers} is more than model.num_layers = {self.num_layers}: "
                "in two streams a block of the words stands behind each look at the picture."
            )


class RegionEmbedding(nn.Module):
    """(1)."""

    def __init__(self, feature_dim: int, config: CrossmodalConfig):
        super().__init__()
        D, epsilon = config.model_dim, config.norm_epsilon
        self.features, self.boxes = nn.Linear(feature_dim, D), nn.Linear(BOX_NUMBERS, D)
        self.features_norm, self.boxes_norm = nn.LayerNorm(D, eps=epsilon), nn.LayerNorm(D, eps=epsilon)
        self.kind, self.norm = nn.Parameter(torch.zeros(D)), nn.LayerNorm(D, eps=epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, regions: Regions) -> Tensor:
        """(B, N, F) -> (B, N, D)."""
        x = self.features_norm(self.features(regions.features)) + self.kind
        if regions.boxes is not None:
            x = x + self.boxes_norm(self.boxes(with_area(regions.boxes).to(x)))
        return self.dropout(self.norm(x))  # (1)


def with_area(boxes: Tensor) -> Tensor:
    """Left, top, right, bottom (..., 4) -> the same and their area (..., 5)."""
    left, top, right, bottom = boxes.unbind(dim=-1)
    return torch.stack([left, top, right, bottom, (right - left) * (bottom - top)], dim=-1)


def with_whole(regions: Regions) -> Regions:
    """The whole picture before its regions: the mean of them, in a box around all."""
    B, N = regions.shape
    there = torch.ones(B, N, dtype=torch.bool, device=regions.features.device)
    there = there if regions.is_region is None else regions.is_region
    share = there.unsqueeze(-1) / there.sum(dim=1).clamp(min=1).view(-1, 1, 1)  # (B, N, 1)
    mean = (regions.features * share).sum(dim=1, keepdim=True)
    boxes = regions.boxes
    if boxes is not None:
        boxes = torch.cat([boxes.new_tensor([0.0, 0.0, 1.0, 1.0]).expand(B, 1, -1), boxes], dim=1)
    is_region = None if regions.is_region is None else torch.cat([there.new_ones(B, 1), there], dim=1)
    return Regions(torch.cat([mean, regions.features], dim=1), boxes, is_region)


class TwoStreams(nn.Module):
    has_whole = True

    def __init__(self, config: CrossmodalConfig):
        super().__init__()
        K, width = config.cross_layers, config.feed_forward_dim or 4 * config.model_dim
        self.looks = nn.ModuleList(_look(config, feed_forward_dim=width) for _ in range(K))
        self.blocks = nn.ModuleList(Block(config) for _ in range(K))
        self.pooler = nn.Linear(config.model_dim, config.model_dim)

    def forward(self, words: BERTBody, x: Streams, masks: tuple[Tensor | None, Tensor | None], see: See) -> Streams:
        (first, second), before = x, len(words.stack) - len(self.blocks)
        for block in words.stack[:before]:
            first = see(block(first, masks[0]))
        for look, of_words, of_regions in zip(self.looks, words.stack[before:], self.blocks, strict=True):
            first, second = look(first, second, *masks)
            first, second = see(of_words(first, masks[0])), of_regions(second, masks[1])  # (3) (4)
        return first, second

    def pooled(self, words: BERTBody, x: Streams) -> Tensor:
        return words.pooled(x[0]) * torch.tanh(self.pooler(x[1][:, 0]))  # (5)


class ThreeEncoders(nn.Module):
    has_whole = False

    def __init__(self, config: CrossmodalConfig):
        super().__init__()
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.region_layers))
        K = config.cross_layers
        self.looks = nn.ModuleList(_look(config, feed_forward_dim=None) for _ in range(K))
        self.words, self.regions = (nn.ModuleList(Block(config) for _ in range(K)) for _ in range(2))

    def forward(self, words: BERTBody, x: Streams, masks: tuple[Tensor | None, Tensor | None], see: See) -> Streams:
        first, second = x
        for block in words.stack:
            first = see(block(first, masks[0]))
        for block in self.blocks:
            second = block(second, masks[1])
        for look, of_words, of_regions in zip(self.looks, self.words, self.regions, strict=True):
            first, second = look(first, second, *masks)
            first, second = see(of_words(first, masks[0])), of_regions(second, masks[1])  # (6)
        return first, second

    def pooled(self, words: BERTBody, x: Streams) -> Tensor:
        return words.pooled(x[0])  # (7)


class OneStream(nn.Module):
    has_whole = False

    def __init__(self, config: CrossmodalConfig):
        super().__init__()

    def forward(self, words: BERTBody, x: Streams, masks: tuple[Tensor | None, Tensor | None], see: See) -> Streams:
        T, both, mask = x[0].shape[1], torch.cat(x, dim=1), _joined(masks, x)
        for block in words.stack:
            both = block(both, mask)  # (8)
            see(both[:, :T])
        return both[:, :T], both[:, T:]

    def pooled(self, words: BERTBody, x: Streams) -> Tensor:
        return words.pooled(x[0])  # (7)


See = Callable[[Tensor], Tensor]
"""Keeps what the words are behind a layer, for who reads more than the top."""
SHAPES: dict[str, type[TwoStreams | ThreeEncoders | OneStream]] = {
    "two-streams": TwoStreams,
    "three-encoders": ThreeEncoders,
    "one-stream": OneStream,
}


def _look(config: CrossmodalConfig, *, feed_forward_dim: int | None) -> CoAttention:
    return CoAttention(
        lambda: Looking(
            config.model_dim,
            config.num_heads,
            feed_forward_dim=feed_forward_dim,
            activation=config.activation,
            epsilon=config.norm_epsilon,
            dropout=config.dropout,
        )
    )


def _joined(masks: tuple[Tensor | None, Tensor | None], x: Streams) -> Tensor | None:
    """Which places are open, words before regions: (B, 1, 1, T + N)."""
    if masks[0] is None and masks[1] is None:
        return None
    B = len(x[0])
    there = (
        torch.ones(B, 1, 1, part.shape[1], dtype=torch.bool, device=part.device) if mask is None else mask
        for mask, part in zip(masks, x, strict=True)
    )
    return torch.cat(list(there), dim=-1)


class CrossmodalBody(nn.Module):
    carries_state = False

    def __init__(self, config: CrossmodalConfig, schema: Schema):
        super().__init__()
        self.config, self.context, self.output_dim = config, config.context, config.model_dim
        self.words = BERTBody(config, vector_schema(schema.input("tokens", TokenSpec)))
        self.eyes = eyes_for(config, schema)
        self.regions = RegionEmbedding(self.eyes.output_dim, config)
        self.shape = SHAPES[config.shape](config)
        for part in (self.words.blocks, self.words.pooler, self.regions, self.shape):
            _initialise(part)

    @property
    def embedding(self) -> nn.Module:
        """Of words: the table that hidden ones are told by."""
        return self.words.embedding

    def initial_state(self, batch_size: int) -> State:
        return State({})

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        """Words first, regions second, each beside the other."""
        tokens, regions = self._words(inputs["tokens"]), self._seen(inputs[IMAGE])
        first, word_mask, is_word = self.words.embed({"tokens": tokens})
        seen = with_whole(regions) if self.shape.has_whole else regions
        second = self.regions(seen)
        region_mask = None if seen.is_region is None else seen.is_region[:, None, None]  # (B, 1, 1, N)
        layers = [first]

        def see(x: Tensor) -> Tensor:
            layers.append(x)
            return x

        x = self.shape(self.words, (first, second), (word_mask, region_mask), see)
        pooled, (first, second) = self.shape.pooled(self.words, x), x
        beside = Stream(second[:, 1:] if self.shape.has_whole else second, regions.is_region)
        words = Stream(first, is_word, tuple(layers) if with_layers else (), pooled, beside)
        return Encoded((words, beside), None)

    def _words(self, tokens: Tokens) -> Tokens:
        """Of words that are not to be read, the mark that stands before them."""
        return tokens if self.config.reads != "picture" else Tokens(tokens.ids[:, :1])

    def _seen(self, image: Images | Regions) -> Regions:
        """Of a picture that is not to be looked at, one empty region: not even how many things it shows."""
        if self.config.reads != "words":
            return self.eyes(image)
        B, weight = image.shape[0], self.regions.features.weight
        whole = weight.new_tensor([0.0, 0.0, 1.0, 1.0]).expand(B, 1, -1)
        return Regions(weight.new_zeros(B, 1, weight.shape[1]), whole)


def _initialise(part: nn.Module) -> None:
    """Products that keep the size of what they are given: BERT's spread of 0.02 is near that for a width of 768, and
    holds up narrow bodies for a thousand steps (docs/lab-notebook.md)."""
    for name, parameter in part.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


READ_ALONE = {"words": (LABEL, CHOICE), "picture": (LABEL,)}
"""What can be asked of who reads one side only."""


def build_crossmodal(config: CrossmodalConfig, schema: Schema) -> nn.Module:
    asked = READ_ALONE.get(config.reads)
    if asked is not None and not set(schema.kinds) <= set(asked):
        raise ConfigError(
            f"model.reads = {config.reads} is a control for {' and '.join(f'{kind}s' for kind in asked)}, and this "
            "data asks for more; drop it."
        )
    model = build_model(CrossmodalBody(config, schema), config, schema)
    model.can_compile = False  # texts differ in length from batch to batch
    return model
