"""Heads: what is read off the hidden states of a body. Shapes: B batch, T steps, D model width, V vocabulary."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class NextTokenHead(nn.Module):
    """log p(token | hidden) = log softmax(W hidden). Tied: W is the embedding table (Press & Wolf 2017)."""

    def __init__(self, model_dim: int, vocab_size: int, *, tied_to: nn.Embedding | None = None):
        super().__init__()
        self.output = nn.Linear(model_dim, vocab_size, bias=False)
        if tied_to is None:
            nn.init.zeros_(self.output.weight)  # every token is as likely as the next at the start
        else:
            self.output.weight = tied_to.weight

    def log_probs(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V), nats."""
        return functional.log_softmax(self.output(hidden), dim=-1)

    def score(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """log p of each target: (B, T, D), (B, T) -> (B, T), nats."""
        logits = self.output(hidden)
        return -functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)
