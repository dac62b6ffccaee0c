"""Causal self-attention: each token gathers from those before it what it needs, weighted by how well they match.

    q, k, v     = W_q x, W_k x, W_v x, per head                        (1)
    attention   = softmax(q k^T / sqrt(K)), future places closed       (2)   Vaswani et al. 2017, 3.2
    y           = W_o [attention v, of all heads side by side]         (3)

Grouped queries (Ainslie et al. 2023): several heads share the keys and values of one, so that the cache is smaller by
as much. With one key and value for all of them it is multi-query attention (Shazeer 2019).

Shapes: B batch, T steps, S steps seen, C context, D model width, H heads, G heads of keys and values, K head width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .notes import is_recorded, note
from .positions import rotate
from .products import Linear


@dataclass(frozen=True)
class Place:
    """Where the new tokens of a batch go in a key/value cache, and what each of them may look at."""

    first: int | None
    """The place of the first new token where it is the same for all rows, else None."""
    positions: Tensor
    """The place of each new token, (B, T)."""
    used: int
    """How many places are filled in the longest row, the new ones included."""
    can_attend: Tensor | None
    """(B, 1, T, S) bool; None where every new token sees all `used` places."""

    @staticmethod
    def after(lengths: list[int], num_new: int, device: torch.device) -> Place:
        """The place of `num_new` tokens in each row behind the `lengths` that are there."""
        used = max(lengths) + num_new
        same = min(lengths) == max(lengths)
        start = torch.tensor(lengths[:1] if same else lengths, device=device).unsqueeze(1)  # (1 or B, 1)
        positions = (start + torch.arange(num_new, device=device)).expand(len(lengths), -1)  # (B, T)
        can_attend = None
        if num_new > 1 or not same:
            can_attend = torch.arange(used, device=device) <= positions.unsqueeze(-1)  # (B, T, S)
            can_attend = can_attend.unsqueeze(1)
        return Place(lengths[0] if same else None, positions, used, can_attend)


@dataclass(frozen=True)
class LayerCache:
    """The keys and values of one layer, (B, G, C, K) each, allocated once for the whole context."""

    keys: Tensor
    values: Tensor
    place: Place

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write (B, G, T, K) to their places; return all that is there so far, (B, G, S, K)."""
        place, num_new = self.place, keys.shape[2]
        if place.first is not None:
            self.keys[:, :, place.first : place.first + num_new] = keys
            self.values[:, :, place.first : place.first + num_new] = values
        else:
            rows = torch.arange(len(keys), device=keys.device).unsqueeze(1)  # (B, 1)
            self.keys[rows, :, place.positions] = keys.transpose(1, 2)  # indexed: (B, T, G, K)
            self.values[rows, :, place.positions] = values.transpose(1, 2)
        return self.keys[:, :, : place.used], self.values[:, :, : place.used]


class CausalSelfAttention(nn.Module):
    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        normalise: bool = False,
        bias: bool = False,
    ):
        """`num_kv_heads`: heads of keys and values, each for as many heads of queries; as many as those where None."""
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads or num_heads
        self.head_dim, self.normalise = model_dim // num_heads, normalise
        sharing = num_heads // self.num_kv_heads
        self.qkv = Linear(model_dim, (num_heads + 2 * self.num_kv_heads) * self.head_dim, bias=bias)
        self.stacked = {"qkv.weight": sharing + 2}  # of one shape: queries in as many parts as share keys and values
        self.to_output = Linear(model_dim, model_dim, bias=bias)

    def split_heads(self, projected: Tensor, turn: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """(1) from its products (..., D + 2GK): queries (..., H, K), keys and values (..., G, K)."""
        num_queries, num_keys = self.num_heads, self.num_kv_heads
        query_key, v = projected.unflatten(-1, (-1, self.head_dim)).split((num_queries + num_keys, num_keys), dim=-2)
        if self.normalise:  # equal length before the product: no head can saturate (Henry et al. 2020)
            query_key = functional.layer_norm(query_key, (self.head_dim,))
        if turn is not None:
            query_key = rotate(query_key, turn)
        q, k = query_key.split((num_queries, num_keys), dim=-2)
        return q, k, v

    def forward(self, x: Tensor, turn: Tensor | None = None, cache: LayerCache | None = None) -> Tensor:
        """x (B, T, D) -> (B, T, D). With a cache, x continues what the cache holds. `turn` (..., T, 1, K/2)."""
        q, k, v = (part.transpose(1, 2) for part in self.split_heads(self.qkv(x), turn))  # (B, H or G, T, K)
        if cache is None:
            y = self._attend(q, k, v, is_causal=True)
        elif cache.place.first == 0 and x.shape[1] > 1:  # nothing before: the new tokens see only each other
            cache.append(k, v)
            y = self._attend(q, k, v, is_causal=True)
        else:
            k, v = cache.append(k, v)
            y = self._attend(q, k, v, mask=cache.place.can_attend)
        return self.to_output(y.transpose(1, 2).reshape(x.shape))

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        if self.num_kv_heads < self.num_heads:
            sharing = self.num_heads // self.num_kv_heads
            k, v = k.repeat_interleave(sharing, dim=1), v.repeat_interleave(sharing, dim=1)  # (B, H, S, K)
        return attend(self, q, k, v, mask=mask, is_causal=is_causal)


def attention_of_one(q: Tensor, keys: Tensor, values: Tensor, used: int) -> Tensor:
    """Attention of one token per row, q (B, H, K), over the first `used` places of a cache (B, G, C, K): (B, H, K).

    Two batched products: for one query the fused kernel has nothing to fuse, and is slower.
    """
    B, G, C, K = keys.shape
    keys, values = keys.view(B * G, C, K)[:, :used], values.view(B * G, C, K)[:, :used]  # no copy
    scores = torch.bmm(q.reshape(B * G, -1, K) * K**-0.5, keys.mT)  # (B*G, H/G, S)
    return torch.bmm(scores.softmax(dim=-1), values).view(q.shape)


def attend(
    site: nn.Module,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    num_rows: int | None = None,
) -> Tensor:
    """(2) and (3) before W_o by torch's kernel: (B, H, T, K). Under `record` written out, and the attention shown.

    `num_rows`: how many there are, where several of them stand side by side in T.
    """
    if not is_recorded():
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal)
    if is_causal:
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    y, attention = plain_attention(q, k, v, mask)
    note(site, "attention", attention if num_rows is None else by_row(attention, num_rows))
    return y


def by_row(attention: Tensor, num_rows: int) -> Tensor:
    """Where W rows of each source stand side by side: (N, H, W * T, S) -> (N * W, H, T, S)."""
    return attention.unflatten(2, (num_rows // len(attention), -1)).transpose(1, 2).flatten(0, 1)


def plain_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """(2) and (3) before W_o, written out: (B, H, T, K) and the attention (B, H, T, S).

    `mask` is False where a place is closed, or holds what is added to scores.
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, T, S); near unit variance
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    attention = scores.softmax(dim=-1)
    return attention @ v, attention
