"""A body with a head that predicts the next token: the verbs of every neural language model.

Shapes: B batch, T steps, D model width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..layers.adaptive_softmax import AdaptiveSoftmaxHead
from ..layers.heads import NextTokenHead
from .contract import Body, Loss, State, Term, crop_tokens


class NextTokenModel(nn.Module):
    body: Body
    head: NextTokenHead | AdaptiveSoftmaxHead

    def __init__(self, body: nn.Module, head: NextTokenHead | AdaptiveSoftmaxHead, vocab_size: int):
        super().__init__()
        self.body, self.head, self.vocab_size = body, head, vocab_size  # type: ignore[assignment]
        self.context = self.body.context
        self.carries_state = self.body.carries_state

    def fresh_state(self, batch_size: int) -> State:
        return self.body.fresh_state(batch_size)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        hidden, state = self.body.encode(batch.inputs["tokens"], state)  # (B, T, D)
        return self.head.score(hidden, batch.targets["tokens"].ids), state

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        log_probs, state = self.score(batch, state)
        targets = batch.targets["tokens"]
        if targets.is_token is not None:
            log_probs = log_probs.masked_fill(~targets.is_token, 0.0)
        return Loss({"next_token": Term(-log_probs.sum(), targets.count())}, state)

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        tokens = crop_tokens(prompt.inputs["tokens"], self.context)
        hidden, state = self.body.encode(tokens, self.fresh_state(len(prompt)))
        last = hidden[torch.arange(len(prompt), device=hidden.device), tokens.lengths - 1]  # (B, D)
        assert state is not None
        return self.head.log_probs(last), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, after = self.body.encode(Tokens(tokens.unsqueeze(1)), state)  # (B, 1, D)
        assert after is not None
        return self.head.log_probs(hidden[:, 0]), after
