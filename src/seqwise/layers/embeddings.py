"""What a step holds, as a vector: a row of a table for a token, a product for numbers.

Shapes: B batch, T steps, C columns, E embedding width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..data.batch import Regions, Tokens, Values
from .character_features import CharacterFeatures
from .contextual import ContextualFeatures
from .notes import tap

BOX_EDGES = 4  # left, top, right, bottom


class TokenEmbedding(nn.Embedding):
    """x_t = scale * table[token]. A table that is the output as well is small, and scaled up where it is read.

    Where words are spelled, what their characters say stands beside it: x_t = [scale * table[token]; features(word)].
    Where several texts stand in a row, a vector for each is added. Where words are read in their context by another
    model, what it makes of them stands beside all this, and is joined with it: x_t = W [x_t; features(row)_t] + b.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_dim: int,
        *,
        std: float = 1.0,
        scale: float = 1.0,
        characters: CharacterFeatures | None = None,
        num_segments: int = 1,
        features: ContextualFeatures | None = None,
    ):
        super().__init__(vocab_size, embed_dim - (0 if characters is None else characters.output_dim))
        self.scale, self.characters = scale, characters
        self.features = features
        self.join = None if features is None else nn.Linear(embed_dim + features.output_dim, embed_dim)
        self.segments = nn.Embedding(num_segments, embed_dim) if num_segments > 1 else None
        nn.init.normal_(self.weight, std=std)
        if self.segments is not None:
            nn.init.normal_(self.segments.weight, std=std * scale / 2)

    @property
    def is_plain(self) -> bool:
        """Whether a token is its row of the table, scaled, and nothing else."""
        return self.characters is None and self.features is None and self.segments is None

    def forward(self, tokens: Tokens) -> Tensor:  # type: ignore[override]
        """(B, T) -> (B, T, E)."""
        x = super().forward(tokens.ids)
        x = x * self.scale if self.scale != 1.0 else x
        if self.characters is not None:
            x = torch.cat([x, self.characters(tokens.characters)], dim=-1)
        if self.features is not None and self.join is not None:
            x = self.join(torch.cat([x, self.features(tokens.characters, tokens.lengths)], dim=-1))
        if self.segments is not None and tokens.segments is not None:
            x = x + self.segments(tokens.segments)
        return tap(self, "embedding", x)


class RegionEmbedding(nn.Module):
    """x_n = W features_n + b, and of regions that lie anywhere + U box_n. Features arrive with a variance of about one,
    and leave with `std`, which should be that of the places that they are added to."""

    def __init__(self, feature_dim: int, embed_dim: int, *, std: float, has_boxes: bool = False):
        super().__init__()
        self.project = nn.Linear(feature_dim, embed_dim)
        nn.init.normal_(self.project.weight, std=std * feature_dim**-0.5)
        nn.init.zeros_(self.project.bias)
        self.boxes = nn.Linear(BOX_EDGES, embed_dim, bias=False) if has_boxes else None
        if self.boxes is not None:
            nn.init.normal_(self.boxes.weight, std=std)

    def forward(self, regions: Regions) -> Tensor:
        """(B, N, F) -> (B, N, E)."""
        x = self.project(regions.features)
        if self.boxes is not None:
            assert regions.boxes is not None
            x = x + self.boxes(regions.boxes.to(x))
        return tap(self, "embedding", x)


class ValueEmbedding(nn.Module):
    """x_t = W [values, which of them are there] + b. Values arrive with mean zero and variance one."""

    def __init__(self, num_columns: int, embed_dim: int, *, std: float = 1.0):
        super().__init__()
        self.project = nn.Linear(2 * num_columns, embed_dim)
        nn.init.normal_(self.project.weight, std=std * (2 * num_columns) ** -0.5)
        nn.init.zeros_(self.project.bias)

    def forward(self, field: Values) -> Tensor:
        """(B, T, C) -> (B, T, E)."""
        there = torch.ones_like(field.values) if field.is_observed is None else field.is_observed.to(field.values)
        return tap(self, "embedding", self.project(torch.cat([field.values * there, there], dim=-1)))
