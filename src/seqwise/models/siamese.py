"""Two texts read each by itself, by one network, and then compared.

    u, v   = pooled hidden states of the first text, and of the second          (1)
    hidden = [u; v; |u - v|; u * v]                                             (2)   one step, for any head

Bromley et al. 1993; the features of (2): Conneau et al. 2017. What was made of a text serves whatever it is compared
with; read one behind the other (model.pairing=joined) the second can be read in the light of the first.

Shapes: B batch, T steps, D width of what is pooled.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from ..data.batch import Tokens
from ..layers.heads import Pooling
from .contract import Body, Encoded, Fields, State, only


class SiameseBody(nn.Module):
    carries_state = False

    def __init__(self, body: nn.Module, pooling: Pooling):
        super().__init__()
        self.body, self.pooling = cast(Body, body), pooling
        self.context, self.embedding = self.body.context, self.body.embedding
        self.output_dim = 4 * pooling.output_dim

    def initial_state(self, batch_size: int) -> State:
        return self.body.initial_state(batch_size)

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        stream = self.body.encode({"tokens": _apart(only(inputs))}, None, with_layers=with_layers).stream
        u, v = self.pooling(stream.hidden, stream.lengths).unflatten(0, (2, -1))  # (1)  (B, D) each
        hidden = torch.cat([u, v, (u - v).abs(), u * v], dim=-1)  # (2)
        return Encoded.of(hidden.unsqueeze(1), None, None, stream.layers)


def _apart(tokens: Tokens) -> Tokens:
    """Rows of two texts -> the first texts of all rows, then the second: (B, T) -> (2B, T')."""
    segments = tokens.segments if tokens.segments is not None else torch.zeros_like(tokens.ids)
    is_token = torch.ones_like(segments, dtype=torch.bool) if tokens.is_token is None else tokens.is_token
    belongs = torch.cat([is_token & (segments == number) for number in range(2)])  # (2B, T)
    length = max(1, int(belongs.sum(dim=1).max()))
    order = (~belongs).to(torch.int8).argsort(dim=1, stable=True)[:, :length]  # its own tokens first
    rows = torch.arange(len(belongs), device=order.device).unsqueeze(1)

    def take(tensor: Tensor) -> Tensor:
        return torch.cat([tensor, tensor])[rows, order]

    is_there = belongs[rows, order]
    is_there[:, 0] = True  # a text of nothing is one token that nobody reads anything into
    characters = None if tokens.characters is None else take(tokens.characters)
    return Tokens(take(tokens.ids), None if bool(is_there.all()) else is_there, characters=characters)
