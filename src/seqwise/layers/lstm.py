"""LSTM: a recurrent cell whose memory is added to instead of overwritten.

Hochreiter & Schmidhuber 1997; forget gate from Gers et al. 2000.
Fixes in the plain RNN: gradients through many multiplications vanish; through (3) they pass by addition.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)     (1) how much to write, keep, show   (each with its own
    g       = tanh(W x_t + U h_{t-1} + b)        (2) what to write                    W, U and b)
    c_t     = f * c_{t-1} + i * g                (3)
    h_t     = o * tanh(c_t)                      (4)

Shapes: B batch, T steps, E input width, D state width, L layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class LSTM(nn.Module):
    """A stack of LSTM layers. `forward` runs torch's kernel; `forward_by_steps` is the same in plain sight."""

    def __init__(
        self, input_dim: int, model_dim: int, num_layers: int, *, dropout: float = 0.0, forget_bias: float = 1.0
    ):
        super().__init__()
        self.model_dim, self.num_layers, self.dropout = model_dim, num_layers, dropout
        self.kernel = nn.LSTM(
            input_dim, model_dim, num_layers, batch_first=True, dropout=dropout if num_layers > 1 else 0.0
        )
        for name, parameter in self.kernel.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
            if name.startswith("bias_ih"):  # an open forget gate: memory first, forgetting is learned
                parameter.data[model_dim : 2 * model_dim] = forget_bias

    def fresh_state(self, batch_size: int) -> tuple[Tensor, Tensor]:
        """Nothing remembered: h and c, (B, L, D) each."""
        like = next(self.kernel.parameters())
        zeros = like.new_zeros(batch_size, self.num_layers, self.model_dim)
        return zeros, zeros.clone()

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor], lengths: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x (B, T, E) -> hidden (B, T, D) and the state after each row's last token (`lengths` (B,) where padded)."""
        h, c = (s.transpose(0, 1).contiguous() for s in state)  # (B, L, D) -> (L, B, D)
        if lengths is None:
            hidden, (h, c) = self.kernel(x, (h, c))
        else:
            packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
            packed, (h, c) = self.kernel(packed, (h, c))
            hidden, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
        return hidden, (h.transpose(0, 1), c.transpose(0, 1))

    def forward_by_steps(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """What `forward` computes, cell by cell: the explanation, and the reference in the tests."""
        h, c = (list(s.unbind(dim=1)) for s in state)  # L times (B, D)
        outputs = []
        for x_t in x.unbind(dim=1):  # (B, E)
            for layer in range(self.num_layers):
                h[layer], c[layer] = self.cell(layer, x_t, h[layer], c[layer])
                x_t = nn.functional.dropout(h[layer], self.dropout, self.training)
            outputs.append(h[-1])
        return torch.stack(outputs, dim=1), (torch.stack(h, dim=1), torch.stack(c, dim=1))

    def cell(self, layer: int, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """One step of one layer: x (B, E), h and c (B, D) -> h and c (B, D)."""
        w, u, b_w, b_u = (
            getattr(self.kernel, f"{n}_l{layer}") for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        gates = x @ w.T + b_w + h @ u.T + b_u  # (B, 4D)
        i, f, g, o = gates.chunk(4, dim=-1)  # four times (B, D), in the order of torch's kernel
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()  # (1) (2) (3)
        return o.sigmoid() * c.tanh(), c  # (4)
