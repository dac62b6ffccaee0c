"""Co-attention: two sequences look at each other, each with the other's keys and values.

    words'   = norm(words   + attention(words asks, regions answer))       (1)   Lu et al. 2019, 3.1
    regions' = norm(regions + attention(regions asks, words answer))       (2)   both from what stood before the layer
    each     = norm(each + feed_forward(each))                             (3)   where it has one

Lu et al. (ViLBERT) have (3) here and self-attention behind it; Tan & Bansal 2019 (LXMERT) go from (2) straight to
self-attention, whose block brings the feed-forward. Within (1) no word sees another word, and no region a region.

Shapes: B batch, T words, N regions, S of either, D model width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from .dropout import Dropout
from .feed_forward import FeedForward
from .multi_head import CrossAttention
from .notes import tap


class Looking(nn.Module):
    """One sequence looks at another."""

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        feed_forward_dim: int | None,
        activation: str,
        epsilon: float,
        dropout: float,
    ):
        """`feed_forward_dim`: width of (3); None leaves it out."""
        super().__init__()
        self.attention = CrossAttention(model_dim, num_heads, bias=True)
        self.attention_norm = nn.LayerNorm(model_dim, eps=epsilon)
        self.feed_forward, self.feed_forward_norm = None, None
        if feed_forward_dim is not None:
            self.feed_forward = FeedForward(model_dim, feed_forward_dim, activation, bias=True)
            self.feed_forward_norm = nn.LayerNorm(model_dim, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, other: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, D) with (B, S, D), of which `mask` (B, 1, 1, S) leaves some open -> (B, T, D)."""
        keys, values = self.attention.keys_values(other)
        x = self.attention_norm(x + self.dropout(self.attention(x, keys, values, mask)))  # (1) (2)
        if self.feed_forward is not None and self.feed_forward_norm is not None:
            x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))  # (3)
        return tap(self, "stream", x)


class CoAttention(nn.Module):
    def __init__(self, look: Callable[[], Looking]):
        """`look` makes one for each side."""
        super().__init__()
        self.words, self.regions = look(), look()

    def forward(
        self, words: Tensor, regions: Tensor, word_mask: Tensor | None, region_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """(B, T, D), (B, N, D) -> the same; masks (B, 1, 1, T) and (B, 1, 1, N) are False at padding."""
        return self.words(words, regions, region_mask), self.regions(regions, words, word_mask)
