"""A body with a head that predicts the next token: the verbs of every neural language model.

A body is `encode(tokens, state) -> hidden (B, T, D), state`, with `fresh_state(B)`, `vocab_size` and, where it can only
see so far, `context`. Shapes: B batch, T steps, D model width, V vocabulary.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..layers.heads import NextTokenHead
from .contract import Loss, State, Term


class Body(Protocol):
    vocab_size: int
    context: int | None
    """The longest stretch it can see, in tokens; None where there is no limit."""
    carries_state: bool
    """Whether training reads a text chunk by chunk, each starting from the state of the one before."""

    def fresh_state(self, batch_size: int) -> State: ...
    def encode(self, tokens: Tokens, state: State | None) -> tuple[Tensor, State | None]: ...
    def crop(self, prompt: Tokens) -> Tokens: ...


class NextTokenModel(nn.Module):
    body: Body
    head: NextTokenHead

    def __init__(self, body: nn.Module, head: NextTokenHead):
        super().__init__()
        self.body, self.head = body, head  # type: ignore[assignment]
        self.vocab_size = self.body.vocab_size
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
        tokens = self.body.crop(prompt.inputs["tokens"])
        hidden, state = self.body.encode(tokens, self.fresh_state(len(prompt)))
        last = hidden[torch.arange(len(prompt), device=hidden.device), tokens.lengths - 1]  # (B, D)
        assert state is not None
        return self.head.log_probs(last), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, after = self.body.encode(Tokens(tokens.unsqueeze(1)), state)  # (B, 1, D)
        assert after is not None
        return self.head.log_probs(hidden[:, 0]), after
