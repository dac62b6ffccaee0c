"""The feed-forward layer: each token by itself, widened, bent, narrowed.

    y = W_2 f(W_1 x)       f: GELU (Hendrycks & Gimpel 2016) or the square of ReLU (So et al. 2021)

Shapes: D model width, F feed-forward width.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional


def squared_relu(x: Tensor) -> Tensor:
    return functional.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": functional.gelu, "squared_relu": squared_relu}


class FeedForward(nn.Module):
    def __init__(self, model_dim: int, hidden_dim: int, activation: str):
        super().__init__()
        self.widen = nn.Linear(model_dim, hidden_dim, bias=False)
        self.narrow = nn.Linear(hidden_dim, model_dim, bias=False)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.activation(self.widen(x)))  # (..., D) -> (..., F) -> (..., D)
