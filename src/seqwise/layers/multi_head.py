"""Multi-head attention as published in 2017: within a sequence, and from one sequence to another.

    head_i = softmax(q_i k_i^T / sqrt(K)) v_i,   q, k, v = W_q x, W_k m, W_v m        (1)   Vaswani et al. 2017, 3.2
    y      = W_o [head_1, ..., head_H]                                                (2)

Within the source every place sees every other; within the target each sees those before it, whose keys and values are
kept; from target to source the keys and values are computed once per source and serve all hypotheses of it.

Shapes: B batch, N sources, W hypotheses of each, T steps, P steps before, S source steps, D width, H heads,
K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from .attention import attend, by_row
from .positions import rotate
from .products import Linear, linear


def closed_where(is_padding: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask to add to scores of this type, 0 or -inf: (N, S) bool -> (N, 1, 1, S).

    torch's kernel takes the bytes of a mask of another type for numbers of its own, and says nothing.
    """
    open_everywhere = torch.zeros(is_padding.shape, dtype=dtype, device=is_padding.device)
    return open_everywhere.masked_fill(is_padding, float("-inf"))[:, None, None]


class SelfAttention(nn.Module):
    def __init__(self, model_dim: int, num_heads: int, *, bias: bool = False):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = Linear(model_dim, 3 * model_dim, bias=bias)
        self.stacked = {"qkv.weight": 3}
        self.to_output = Linear(model_dim, model_dim, bias=bias)

    def forward(self, x: Tensor, mask: Tensor | None = None, turn: Tensor | None = None) -> Tensor:
        """Every place of x (B, S, D) sees every other that `mask` (B, 1, 1, S) leaves open. `turn` (S, K/2): rotary
        positions."""
        q, k, v = self._project(x)
        if turn is not None:
            q, k = rotate(q, turn), rotate(k, turn)
        return self._joined(attend(self, q, k, v, mask=mask))

    def forward_first(self, x: Tensor, mask: Tensor | None = None, turn: Tensor | None = None) -> Tensor:
        """What `forward` gives for the first place alone, (B, 1, D): it asks, and all places answer."""
        B, S, D = x.shape
        (to_query, to_rest), bias = self.qkv.weight.split([D, 2 * D]), self.qkv.bias
        q = linear(x[:, :1], to_query, None if bias is None else bias[:D]).view(B, 1, self.num_heads, -1)
        rest = linear(x, to_rest, None if bias is None else bias[D:]).view(B, S, 2, self.num_heads, -1)
        k, v = rest.permute(2, 0, 3, 1, 4)
        if turn is not None:  # the first place is turned by nothing
            k = rotate(k, turn)
        return self._joined(attend(self, q.transpose(1, 2), k, v, mask=mask))

    def forward_causal(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, T, D) after what `before` (B, 2, H, P, K) keeps of earlier steps; with what is kept from now on."""
        T, P = x.shape[1], before.shape[3]
        q, k, v = self._project(x)
        kept = torch.stack([k, v], dim=1)  # (B, 2, H, T, K)
        if P:
            kept = torch.cat([before, kept], dim=3)
            k, v = kept.unbind(dim=1)
        if P == 0:
            y = attend(self, q, k, v, is_causal=True)
        else:
            can_attend = torch.ones(T, P + T, dtype=torch.bool, device=x.device).tril(P)
            y = attend(self, q, k, v, mask=can_attend)
        return self._joined(y), kept

    def step(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """`forward_causal` with fewer calls, for one step of each row: x (B, D)."""
        projected = linear(x, self.qkv.weight, self.qkv.bias).view(len(x), 3, self.num_heads, 1, -1)  # (B, 3, H, 1, K)
        kept = torch.cat([before, projected[:, 1:]], dim=3)
        y = scaled_dot_product_attention(projected[:, 0], kept[:, 0], kept[:, 1])  # (B, H, 1, K)
        return linear(y.reshape(x.shape), self.to_output.weight, self.to_output.bias), kept

    def _project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (B, H, T, K) each."""
        B, T, D = x.shape
        return self.qkv(x).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(dim=0)

    def _joined(self, y: Tensor) -> Tensor:
        return self.to_output(y.transpose(1, 2).flatten(2))  # (2): (B, H, T, K) -> (B, T, D)


class CrossAttention(nn.Module):
    def __init__(self, model_dim: int, num_heads: int, *, bias: bool = False):
        super().__init__()
        self.num_heads = num_heads
        self.to_query = Linear(model_dim, model_dim, bias=bias)
        self.to_key_value = Linear(model_dim, 2 * model_dim, bias=bias)
        self.stacked = {"to_key_value.weight": 2}
        self.to_output = Linear(model_dim, model_dim, bias=bias)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Of the source, (N, S, D) -> (N, H, S, K) each."""
        N, S, _ = memory.shape
        keys, values = self.to_key_value(memory).view(N, S, 2, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        return keys, values

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """x (N * W, T, D), or (N * W, D) where T is one; keys and values (N, H, S, K); mask (N, 1, 1, S)."""
        y = attend(self, self._queries(x, len(keys)), keys, values, mask=mask, num_rows=len(x))
        return linear(y.transpose(1, 2).reshape(x.shape), self.to_output.weight, self.to_output.bias)

    def attention(self, x: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """Where each head looks, written out: (N * W, H, T, S)."""
        q = self._queries(x, len(keys))
        scores = q @ keys.mT / q.shape[-1] ** 0.5  # (N, H, W * T, S)
        attention = (scores if mask is None else scores + mask).softmax(dim=-1)
        return by_row(attention, len(x))

    def _queries(self, x: Tensor, num_sources: int) -> Tensor:
        """The hypotheses of a source side by side, so that its memory is not copied: (N, H, W * T, K)."""
        return (
            linear(x, self.to_query.weight, self.to_query.bias)
            .view(num_sources, -1, self.num_heads, x.shape[-1] // self.num_heads)
            .transpose(1, 2)
        )
