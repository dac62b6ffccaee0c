"""Fixed window: the next token from the embeddings of the last k tokens, side by side.

Bengio et al. 2003. Fixes in the n-gram: words are compared by vectors instead of by name, so what was learned of one
serves its neighbours; and no counts are needed for each longer context.

    x_t = [e_{t-k+1}, ..., e_t]                       embeddings; zeros before the start           (1)
    h_t = tanh(H x_t + d)                                                                          (2)
    p(token t+1 | last k tokens) = softmax(U h_t + W x_t)      W: optional direct connections      (3)

Its state is the last k-1 embeddings. Shapes: B batch, T steps, k window, E embedding width, D model width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..data.schema import Schema
from ..layers.dropout import Dropout
from ..layers.notes import tap
from .build import NeuralConfig, build_model, embedding_for
from .contract import Encoded, Fields, State, only


@dataclass(frozen=True)
class WindowConfig(NeuralConfig):
    window: int = 8
    """k: how many tokens the next one is predicted from."""
    embed_dim: int = 64
    """Width of the embeddings."""
    model_dim: int = 256
    """Width of the hidden layer."""
    num_layers: int = 1
    """Hidden layers; those above the first add to the one below."""
    direct_connections: bool = False
    """Let the embeddings speak to the output directly, beside the hidden layer."""


class WindowBody(nn.Module):
    context = None
    carries_state = True

    def __init__(self, config: WindowConfig, schema: Schema):
        super().__init__()
        self.window, self.embed_dim, self.is_direct = config.window, config.embed_dim, config.direct_connections
        self.embedding = embedding_for(schema, config, config.embed_dim, is_output=config.tied_embeddings)
        self.first = nn.Linear(config.window * config.embed_dim, config.model_dim)  # H, d
        self.more = nn.ModuleList(nn.Linear(config.model_dim, config.model_dim) for _ in range(config.num_layers - 1))
        self.dropout = Dropout(config.dropout)
        self.output_dim = config.model_dim + (config.window * config.embed_dim if config.direct_connections else 0)

    def initial_state(self, batch_size: int) -> State:
        return State({"inputs": self.first.weight.new_zeros(batch_size, self.window - 1, self.embed_dim)})

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        field = only(inputs)
        before = (state or self.initial_state(field.shape[0])).per_row["inputs"]  # (B, k-1, E)
        new = self.dropout(self.embedding(field))  # (B, T, E)
        steps = torch.cat([before, new], dim=1)  # (B, k-1+T, E)
        x = steps.unfold(1, self.window, 1).transpose(2, 3).flatten(2)  # (B, T, k*E)  (1)
        hidden = self.first(x).tanh()  # (2)
        layers = [new, hidden]
        for layer in self.more:
            hidden = hidden + layer(self.dropout(hidden)).tanh()
            layers.append(hidden)
        hidden = self.dropout(tap(self, "hidden", hidden))
        if self.is_direct:
            hidden = torch.cat([hidden, x], dim=-1)  # the head's product is U h + W x  (3)
        last = field.lengths.unsqueeze(1) + torch.arange(self.window - 1, device=x.device)  # (B, k-1)
        after = steps.gather(1, last.unsqueeze(-1).expand(-1, -1, self.embed_dim))
        return Encoded.of(hidden, field.is_step, State({"inputs": after}), layers if with_layers else None)


def build_window(config: WindowConfig, schema: Schema) -> nn.Module:
    return build_model(WindowBody(config, schema), config, schema)
