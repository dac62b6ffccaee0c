"""LSTM: a recurrent cell whose memory is added to instead of overwritten.

Hochreiter & Schmidhuber 1997; forget gate from Gers et al. 2000; projection from Sak et al. 2014.
Fixes in the plain RNN: gradients through many multiplications vanish; through (3) they pass by addition.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)     (1) how much to write, keep, show   (each with its own
    g       = tanh(W x_t + U h_{t-1} + b)        (2) what to write                    W, U and b)
    c_t     = f * c_{t-1} + i * g                (3)
    h_t     = o * tanh(c_t)                      (4)
    h_t     = P (o * tanh(c_t))                  (4') with a projection: a narrow h beside a wide c

Shapes: B batch, E input width, D state width.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from .notes import note
from .recurrent import CellWeights, State

SHUT = 500.0  # what shuts a gate, or opens it, whatever else it is told
SHOWN = ("input gate", "forget gate", "output gate", "candidate", "memory", "state")


def _projected_lstm(*arguments: Any) -> Any:
    """oneDNN has no such kernel: torch says so, and takes its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "LSTM with projections", UserWarning)
        return torch.lstm(*arguments)


class LSTMCell(nn.Module):
    num_states = 2

    def __init__(
        self,
        input_dim: int,
        model_dim: int,
        *,
        forget_bias: float = 1.0,
        projection_dim: int | None = None,
        normalise: bool = False,
    ):
        super().__init__()
        hidden_dim = projection_dim or model_dim
        self.weights = CellWeights(
            input_dim, hidden_dim, 4 * model_dim, normalise=normalise, projected_from=model_dim if projection_dim else 0
        )
        self.memory_norm = nn.LayerNorm(model_dim) if normalise else nn.Identity()
        self.kernel = None if normalise else _projected_lstm if projection_dim else torch.lstm
        if self.kernel is torch.lstm:  # input and output gate shut, forget gate open: (4D, 1)
            column = torch.tensor([-SHUT, SHUT, 0.0, -SHUT]).repeat_interleave(model_dim).unsqueeze(1)
            self.register_buffer("padding_column", column, persistent=False)
        with torch.no_grad():  # an open forget gate: memory first, forgetting is learned
            self.weights.bias_input[model_dim : 2 * model_dim] = forget_bias

    def forward(self, from_input: Tensor, state: State, hidden_weight: Tensor) -> State:
        """One step: W x + b (B, 4D), h and c (B, D) -> h and c (B, D)."""
        h, c = state
        i, f, g, o = self._gates(from_input, h, hidden_weight)
        c = f * c + i * g  # (3)
        h = o * self.memory_norm(c).tanh()  # (4)
        if self.weights.projection is not None:
            h = h @ self.weights.projection.T  # (4')
        for what, value in zip(SHOWN, (i, f, o, g, c, h), strict=True):
            note(self, what, value)
        return h, c

    def show(self, from_input: Tensor, before: Tensor, after: Tensor, state: State, hidden_weight: Tensor) -> State:
        i, f, g, o = self._gates(from_input, before, hidden_weight)
        c, memory = state[1], []
        for written, kept in zip((i * g).unbind(dim=1), f.unbind(dim=1), strict=True):
            c = torch.addcmul(written, kept, c)  # (3)
            memory.append(c)
        cs = torch.stack(memory, dim=1)
        for what, value in zip(SHOWN, (i, f, o, g, cs, after), strict=True):
            note(self, what, value)
        return after, cs

    def _gates(self, from_input: Tensor, h: Tensor, hidden_weight: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(1) and (2), i, f, g, o in the order of torch's kernel: (..., 4D), (..., D) -> four times (..., D)."""
        i, f, g, o = (from_input + self.weights.of_hidden(h, hidden_weight)).chunk(4, dim=-1)
        return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
