"""GRU: one gate decides how much of the state to keep, another how much of it to use for what is new.

Cho et al. 2014. Fixes in the LSTM: as good memory with two gates instead of three, and no second state.

    r   = sigmoid(W x_t + U h_{t-1} + b)                       (1) reset: how much of the past the candidate sees
    z   = sigmoid(W x_t + U h_{t-1} + b)                       (2) update: how much of the past is kept   (each with
    n   = tanh(W x_t + b + r * (U h_{t-1} + b'))               (3) candidate, reset after the product      its own W,
    n   = tanh(W x_t + b + U (r * h_{t-1}) + b')               (3') candidate, reset before the product    U and b)
    h_t = z * h_{t-1} + (1 - z) * n                            (4)

(3') is the form of 2014, (3) that of Chung et al. and of fast kernels: one product with U for all three. Convention of
(4): the update gate KEEPS; Cho's text writes it as here, Chung's with z and 1 - z exchanged.

Shapes: B batch, E input width, D state width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .notes import note
from .recurrent import CellWeights, State

SHOWN = ("reset gate", "update gate", "candidate", "state")


class GRUCell(nn.Module):
    num_states = 1

    def __init__(self, input_dim: int, model_dim: int, *, reset: str = "after", normalise: bool = False):
        super().__init__()
        self.model_dim, self.reset = model_dim, reset
        self.weights = CellWeights(input_dim, model_dim, 3 * model_dim, normalise=normalise)
        self.kernel = torch.gru if reset == "after" and not normalise else None

    def forward(self, from_input: Tensor, state: State, hidden_weight: Tensor) -> State:
        """One step: W x + b (B, 3D), h (B, D) -> h (B, D)."""
        (h,) = state
        r, z, n = self._gates(from_input, h, hidden_weight)
        h = z * h + (1 - z) * n  # (4)
        for what, value in zip(SHOWN, (r, z, n, h), strict=True):
            note(self, what, value)
        return (h,)

    def show(self, from_input: Tensor, before: Tensor, after: Tensor, state: State, hidden_weight: Tensor) -> State:
        for what, value in zip(SHOWN, (*self._gates(from_input, before, hidden_weight), after), strict=True):
            note(self, what, value)
        return (after,)

    def _gates(self, from_input: Tensor, h: Tensor, hidden_weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(1) to (3): (..., 3D), (..., D) -> three times (..., D)."""
        from_hidden = self.weights.of_hidden(h, hidden_weight)  # (..., 3D)
        (r, z, n), (r_h, z_h, n_h) = from_input.chunk(3, dim=-1), from_hidden.chunk(3, dim=-1)
        r, z = (r + r_h).sigmoid(), (z + z_h).sigmoid()  # (1) (2)
        if self.reset == "after":
            return r, z, (n + r * n_h).tanh()  # (3)
        u_n, b_n = hidden_weight[2 * self.model_dim :], self.weights.bias_hidden[2 * self.model_dim :]
        return r, z, (n + (r * h) @ u_n.T + b_n).tanh()  # (3')
