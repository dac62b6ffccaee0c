"""RNN: a state that each input changes through one layer of units.

Elman 1990; Mikolov et al. 2010 as a language model. Fixes in the fixed window: no limit on how far back an input can
be felt. Its weakness: in (1) the past passes through U and the derivative of f again and again, so its gradient shrinks
or grows by a factor at every step (Bengio et al. 1994). With f = ReLU and U = the identity at the start, the factor
begins at one (Le et al. 2015).

    h_t = f(W x_t + U h_{t-1} + b)        f: tanh or ReLU        (1)

Shapes: B batch, E input width, D state width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .notes import note
from .recurrent import CellWeights, State


class RNNCell(nn.Module):
    num_states = 1

    def __init__(
        self,
        input_dim: int,
        model_dim: int,
        *,
        activation: str = "tanh",
        identity: float | None = None,
        normalise: bool = False,
    ):
        """`identity`: U starts as this multiple of the identity matrix."""
        super().__init__()
        self.weights = CellWeights(input_dim, model_dim, model_dim, normalise=normalise)
        self.activation = torch.tanh if activation == "tanh" else torch.relu
        self.kernel = None if normalise else torch.rnn_tanh if activation == "tanh" else torch.rnn_relu
        if identity is not None:
            nn.init.eye_(self.weights.hidden)
            self.weights.hidden.data.mul_(identity)
            nn.init.normal_(self.weights.input, std=0.1 * input_dim**-0.5)

    def forward(self, from_input: Tensor, state: State, hidden_weight: Tensor) -> State:
        """One step: W x + b (B, D), h (B, D) -> h (B, D)."""
        (h,) = state
        h = self.activation(from_input + self.weights.of_hidden(h, hidden_weight))  # (1)
        note(self, "state", h)
        return (h,)

    def show(self, from_input: Tensor, before: Tensor, after: Tensor, state: State, hidden_weight: Tensor) -> State:
        note(self, "state", after)
        return (after,)
