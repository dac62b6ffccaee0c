"""Adaptive softmax: frequent tokens in a short list, rare ones in clusters that are looked into only when needed.

Grave et al. 2017. With tokens ordered by falling frequency and cut into a head and clusters 1, 2, ...:

    p(w) = p_head(w)                                   for w in the head                       (1)
    p(w) = p_head(cluster k) * p_k(w | cluster k)      for w in cluster k; p_k reads           (2)
                                                       hidden states narrowed to D / 4^k

It is a normalised distribution like the full softmax, but most targets cost only the head. Tokenizers of words number
them by falling frequency, so the cuts are places in the vocabulary.

Shapes: B batch, T steps, D model width, V vocabulary, N targets.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data.batch import Tokens
from .stream import Stream, only_scored


class AdaptiveSoftmaxHead(nn.Module):
    """Stands in the place of NextTokenHead."""

    continues = True
    can_compile = False  # how many words of a cluster are asked for changes with each batch

    def __init__(self, model_dim: int, vocab_size: int, *, cutoffs: list[int], narrowing: float = 4.0):
        """`cutoffs`: where the head and each cluster but the last end."""
        super().__init__()
        self.edges = [0, *cutoffs, vocab_size]
        num_clusters = len(cutoffs)
        self.head = nn.Linear(model_dim, cutoffs[0] + num_clusters, bias=False)
        nn.init.zeros_(self.head.weight)
        self.clusters = nn.ModuleList()
        for number in range(num_clusters):
            width = max(1, int(model_dim / narrowing ** (number + 1)))
            size = self.edges[number + 2] - self.edges[number + 1]
            narrow, output = nn.Linear(model_dim, width, bias=False), nn.Linear(width, size, bias=False)
            nn.init.zeros_(output.weight)
            self.clusters.append(nn.Sequential(narrow, output))

    def expect(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V), nats."""
        head = functional.log_softmax(self.head(hidden), dim=-1)
        short = self.edges[1]
        parts = [head[..., :short]]  # (1)
        for number, cluster in enumerate(self.clusters):
            parts.append(head[..., short + number, None] + functional.log_softmax(cluster(hidden), dim=-1))  # (2)
        return torch.cat(parts, dim=-1)

    def read(self, tokens: Tensor) -> Tokens:
        """(B,) -> one step."""
        return Tokens(tokens.unsqueeze(1))

    @only_scored
    def score(self, stream: Stream, targets: Tokens) -> Tensor:
        """log p of each target, each cluster asked only for its own: (B, T, D), (B, T) -> (B, T), nats."""
        hidden, wanted = stream.hidden.flatten(0, 1), targets.ids.flatten()  # (N, D), (N,)
        short, in_head = self.edges[1], wanted.clone()
        answers = []
        for number, cluster in enumerate(self.clusters):
            first, end = self.edges[number + 1], self.edges[number + 2]
            chosen = ((wanted >= first) & (wanted < end)).nonzero().squeeze(1)
            in_head[chosen] = short + number
            if len(chosen):
                logits = cluster(hidden[chosen])
                answers.append((chosen, -functional.cross_entropy(logits, wanted[chosen] - first, reduction="none")))
        found = -functional.cross_entropy(self.head(hidden), in_head, reduction="none")
        for chosen, within in answers:
            found = found.index_add(0, chosen, within)  # (2)
        return found.view_as(targets.ids)

    objective = score
