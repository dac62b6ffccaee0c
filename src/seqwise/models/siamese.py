"""Two texts compared by a vector of each.

    u, v   = pooled hidden states of the first text, and of the second          (1)
    hidden = [u; v; |u - v|; u * v]                                             (2)   one step, for any head
    hidden = cos(u, v)                                                          (3)   one number, for how alike they are
    hidden = [pooled; u; v; |u - v|; u * v]                                     (4)   where both were read as one row

Bromley et al. 1993; the features of (2): Conneau et al. 2017; (3): Reimers & Gurevych 2019. Read each by itself (2, 3),
what was made of a text serves whatever it is compared with; read one behind the other (model.pairing=joined) each can
be read in the light of the other, but a network must find out by itself that they are to be compared: (4) does both.

Shapes: B batch, T steps, D width of what is pooled.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data.batch import Tokens
from ..layers.heads import Pooling
from .contract import Body, Encoded, Fields, only


def features(u: Tensor, v: Tensor) -> Tensor:
    """(2): twice (B, D) -> (B, 4D)."""
    return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)


def cosine(u: Tensor, v: Tensor) -> Tensor:
    """(3): twice (B, D) -> (B, 1)."""
    return functional.cosine_similarity(u, v, dim=-1).unsqueeze(-1)


READ_APART: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[int], int]]] = {
    "siamese": (features, lambda width: 4 * width),
    "cosine": (cosine, lambda width: 1),
}
"""By model.pairing: how two texts that were read apart are compared, and how wide what is found is."""


class Siamese(nn.Module):
    def __init__(self, pooling: Pooling, pairing: str, *, begins: bool = False):
        """`begins`: rows begin with a token of their own ([CLS]), which then stands before the second text too."""
        super().__init__()
        self.compare, width_of = READ_APART[pairing]
        self.pooling, self.begins, self.output_dim = pooling, begins, width_of(pooling.output_dim)

    def encode(self, body: Body, inputs: Fields, *, with_layers: bool = False) -> Encoded:
        stream = body.encode({"tokens": self.apart(only(inputs))}, None, with_layers=with_layers).stream
        u, v = self.pooling.of(stream).unflatten(0, (2, -1))  # (1)  (B, D) each
        return Encoded.of(self.compare(u, v).unsqueeze(1), None, None, stream.layers)

    def apart(self, tokens: Tokens) -> Tokens:
        """Rows of two texts -> all first texts, then all second ones, each up to its boundary: (B, T) -> (2B, T')."""
        segments = tokens.segments if tokens.segments is not None else torch.zeros_like(tokens.ids)
        is_token = torch.ones_like(segments, dtype=torch.bool) if tokens.is_token is None else tokens.is_token
        belongs = torch.cat([is_token & (segments == number) for number in range(2)])  # (2B, T)
        belongs[:, 0] = self.begins  # else the boundary before the first text: the second has none
        length = max(1, int(belongs.sum(dim=1).max()))
        order = (~belongs).to(torch.int8).argsort(dim=1, stable=True)[:, :length]  # its own tokens first
        rows = torch.arange(len(belongs), device=order.device).unsqueeze(1)

        def take(tensor: Tensor) -> Tensor:
            return torch.cat([tensor, tensor])[rows, order]

        is_there = belongs[rows, order]
        is_there[:, 0] = True  # where a row was cut so short that nothing is left of a text, one token stands for it
        return Tokens(take(tokens.ids), None if bool(is_there.all()) else is_there)


class Compared(nn.Module):
    """(4): one row of both texts, and beside what stands for all of it the means of each text's own steps, compared."""

    def __init__(self, pooling: Pooling, model_dim: int):
        super().__init__()
        self.pooling, self.output_dim = pooling, pooling.output_dim + 4 * model_dim

    def encode(self, body: Body, inputs: Fields, *, with_layers: bool = False) -> Encoded:
        stream = body.encode(inputs, None, with_layers=with_layers).stream
        compared = features(*self.means(stream.hidden, only(inputs)))  # (B, 4D)
        found = torch.cat([self.pooling.of(stream), compared], dim=-1)
        return Encoded.of(found.unsqueeze(1), None, None, stream.layers)

    def means(self, hidden: Tensor, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Over the steps of each text, (B, T, D) -> twice (B, D); zero for a text of which nothing is left."""
        segments = torch.zeros_like(tokens.ids) if tokens.segments is None else tokens.segments
        own = functional.one_hot(segments.clamp(max=1), 2).to(hidden.dtype)  # (B, T, 2)
        if tokens.is_token is not None:
            own = own * tokens.is_token.unsqueeze(-1)
        u, v = (own.mT @ hidden / own.sum(dim=1).clamp(min=1).unsqueeze(-1)).unbind(dim=1)
        return u, v
