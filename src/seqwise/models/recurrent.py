"""Recurrent language models: a state of fixed size, updated by each token.

    x_t      = embedding of token t                                          (1)
    h_t, c_t = LSTM(x_t, h_{t-1}, c_{t-1})      layers/lstm.py               (2)
    p(token t+1 | tokens 1..t) = softmax(W h_t)  layers/heads.py             (3)

Mikolov et al. 2010 (recurrent language models), Sundermeyer et al. 2012 (with LSTM), Zaremba et al. 2014 (dropout
between layers only). Fixes in the n-gram: words are compared by vectors instead of by name, and what came more than
n-1 tokens ago can still matter.

Shapes: B batch, T steps, E embedding width, D model width, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from ..data.batch import Tokens
from ..errors import ConfigError
from ..layers.heads import NextTokenHead
from ..layers.lstm import LSTM
from .contract import Interface, State
from .next_token import NextTokenModel


@dataclass(frozen=True)
class LSTMConfig:
    model_dim: int = 256
    """Width of the state h (and of the memory c)."""
    embed_dim: int | None = None
    """Width of the token embeddings; model_dim where not set."""
    num_layers: int = 1
    """LSTM layers, one on top of the other."""
    dropout: float = 0.0
    """Share of values dropped from embeddings, between layers and before the output."""
    tied_embeddings: bool = False
    """Use the embedding table as output weights as well; needs embed_dim equal to model_dim."""
    forget_bias: float = 1.0
    """Bias of the forget gate at the start: above zero, the cell begins by remembering."""

    def __post_init__(self) -> None:
        for name in ("model_dim", "num_layers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} = {getattr(self, name)} should be at least 1.")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout = {self.dropout} should lie in [0, 1).")
        if self.tied_embeddings and self.embed_dim not in (None, self.model_dim):
            raise ConfigError(
                f"model.tied_embeddings needs embed_dim = model_dim; found {self.embed_dim} and {self.model_dim}."
            )


class LSTMBody(nn.Module):
    context = None
    carries_state = True

    def __init__(self, config: LSTMConfig, vocab_size: int):
        super().__init__()
        self.vocab_size = vocab_size
        embed_dim = config.embed_dim or config.model_dim
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        # inputs of unit variance; a table that is the output as well is small there, so that logits begin near zero
        self.input_scale = embed_dim**0.5 if config.tied_embeddings else 1.0
        nn.init.normal_(self.embedding.weight, std=1 / self.input_scale)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = LSTM(
            embed_dim, config.model_dim, config.num_layers, dropout=config.dropout, forget_bias=config.forget_bias
        )

    def fresh_state(self, batch_size: int) -> State:
        h, c = self.layers.fresh_state(batch_size)
        return State({"h": h, "c": c})

    def encode(self, tokens: Tokens, state: State | None = None) -> tuple[Tensor, State]:
        state = state or self.fresh_state(tokens.shape[0])
        x = self.dropout(self.embedding(tokens.ids) * self.input_scale)  # (B, T, E)  (1)
        lengths = None if tokens.is_token is None else tokens.lengths
        hidden, (h, c) = self.layers(x, (state.own["h"], state.own["c"]), lengths)  # (B, T, D)  (2)
        return self.dropout(hidden), State({"h": h, "c": c})

    def crop(self, prompt: Tokens) -> Tokens:
        return prompt


def build_lstm(config: LSTMConfig, interface: Interface) -> NextTokenModel:
    body = LSTMBody(config, interface.vocab_size)
    head = NextTokenHead(
        config.model_dim, interface.vocab_size, tied_to=body.embedding if config.tied_embeddings else None
    )
    return NextTokenModel(body, head)
