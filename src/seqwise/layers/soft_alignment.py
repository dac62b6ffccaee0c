"""Soft alignment: a decoder looks at all of the source at each step, and chooses where (attention before Transformers).

    score(h_t, m_s) = h_t . m_s                      dot        Luong et al. 2015   (1)
                    = h_t . W m_s                    general    Luong et al. 2015   (2)
                    = v . tanh(W h_t + U m_s)        additive   Bahdanau et al. 2015 (3)
    a_t = softmax over s of score(h_t, m_s)                                         (4)
    c_t = sum over s of a_t[s] m_s                   the context                    (5)
    y_t = tanh(W_c [c_t; h_t])                       what the next token is read from (Luong et al. 2015, 3)  (6)

Shapes: N sources, W hypotheses of each, T steps, S source steps, D model width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .notes import note


class Alignment(nn.Module):
    """(1) to (4): where to look."""

    def __init__(self, model_dim: int, kind: str):
        super().__init__()
        self.kind = kind
        if kind == "general":
            self.to_key = nn.Linear(model_dim, model_dim, bias=False)
        if kind == "additive":
            self.to_key, self.to_query = nn.Linear(model_dim, model_dim), nn.Linear(model_dim, model_dim, bias=False)
            self.weigh = nn.Linear(model_dim, 1, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        """What queries are compared with, once per source: (N, S, D) -> (N, S, D)."""
        return memory if self.kind == "dot" else self.to_key(memory)

    def look(self, hidden: Tensor, keys: Tensor, is_source: Tensor) -> Tensor:
        """hidden (N * W, T, D), keys (N, S, D), is_source (N, S) -> a (N, W * T, S)."""
        (R, T, D), (N, S, _) = hidden.shape, keys.shape
        query = hidden.reshape(N, -1, D)  # the W hypotheses of a source side by side: its memory is not copied
        if self.kind == "additive":
            scores = self.weigh((self.to_query(query).unsqueeze(2) + keys.unsqueeze(1)).tanh()).squeeze(-1)  # (3)
        else:
            scores = query @ keys.mT  # (1) (2): (N, W * T, S)
        attention = scores.masked_fill(~is_source.unsqueeze(1), float("-inf")).softmax(dim=-1)  # (4)
        note(self, "attention", attention.view(R, 1, T, S))
        return attention


class SoftAlignment(Alignment):
    """All of it: what the next token is read from."""

    def __init__(self, model_dim: int, kind: str):
        super().__init__(model_dim, kind)
        self.combine = nn.Linear(2 * model_dim, model_dim, bias=False)

    def forward(self, hidden: Tensor, memory: Tensor, keys: Tensor, is_source: Tensor) -> tuple[Tensor, Tensor]:
        """hidden (N * W, T, D), memory and keys (N, S, D), is_source (N, S) -> y (N * W, T, D), a (N * W, T, S)."""
        attention = self.look(hidden, keys, is_source)
        context = (attention @ memory).view_as(hidden)  # (5)
        seen = self.combine(torch.cat([context, hidden], dim=-1)).tanh()  # (6)
        return seen, attention.view(*hidden.shape[:2], -1)
