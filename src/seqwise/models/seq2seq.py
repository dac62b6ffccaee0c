"""seq2seq: one recurrent network reads the source, another writes the target.

Cho et al. 2014, Sutskever et al. 2014; attention from Bahdanau et al. 2015 and Luong et al. 2015. Fixes in the
recurrent language model: input and output may differ in length and order. Without attention all of the source must pass
through one state of fixed size; with it (4) the decoder looks back at every source token.

    m_1 .. m_S = encoder(x_1 .. x_S)                from both ends, half of the width each       (1)
    h_0        = tanh(W [last forward; last backward])   for each layer                          (2)
    h_t        = decoder(y_t, h_{t-1})              or decoder([y_t; o_{t-1}], h_{t-1}): input feeding  (3)
    o_t        = attention(h_t, m)                  layers/soft_alignment.py; h_t itself without  (4)
    p(y_{t+1}) = softmax(W o_t)                     models/encoder_decoder.py                    (5)

Without input feeding all steps of (3) are one call of torch's kernel, and (4) one product.

Shapes: B batch, N sources, R hypotheses, T steps, S source steps, E embedding width, D model width, L layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from ..data.batch import Tokens
from ..data.schema import Schema
from ..errors import ConfigError
from ..layers.dropout import Dropout
from ..layers.gru import GRUCell
from ..layers.lstm import LSTMCell
from ..layers.recurrent import RecurrentStack
from ..layers.rnn import RNNCell
from ..layers.soft_alignment import SoftAlignment
from .contract import Fields, State, only
from .encoder_decoder import PairConfig, PairModel, embeddings_for
from .engine import NO_LIMIT, Plan, Weights, plain_ends
from .recurrent import plan_recurrent

CELLS: dict[str, Callable[[int, int], nn.Module]] = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}


@dataclass(frozen=True)
class Seq2SeqConfig(PairConfig):
    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    """What both networks are made of."""
    attention: Literal["none", "dot", "general", "additive"] = "general"
    """How the decoder looks back at the source."""
    model_dim: int = 256
    """Width of the decoder's state, and of what the encoder hands over."""
    embed_dim: int | None = None
    """Width of the embeddings; as wide as the state where not set."""
    num_layers: int = 1
    """Layers of each network."""
    bidirectional: bool = True
    """The encoder reads from both ends."""
    input_feeding: bool = False
    """Feed what was read from the source back into the next step: slower, as steps follow one another."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bidirectional and self.model_dim % 2:
            raise ConfigError(f"model.model_dim = {self.model_dim} should be even: each direction has half of it.")
        if self.input_feeding and self.attention == "none":
            raise ConfigError("model.input_feeding feeds back what attention found; model.attention is none.")


class Seq2SeqBody(nn.Module):
    context = None

    def __init__(self, config: Seq2SeqConfig, schema: Schema):
        super().__init__()
        D, E = config.model_dim, config.embed_dim or config.model_dim
        self.config, self.output_dim = config, D
        self.source_embedding, self.embedding = embeddings_for(config, schema, E)
        self.dropout = Dropout(config.dropout)
        cell, directions = CELLS[config.cell], 2 if config.bidirectional else 1
        self.encoder = RecurrentStack(
            lambda width: cell(width, D // directions),
            E,
            config.num_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )
        fed_dim = D if config.input_feeding else 0
        self.decoder = RecurrentStack(
            lambda width: cell(width, D), E + fed_dim, config.num_layers, dropout=config.dropout
        )
        parts = 2 if config.cell == "lstm" else 1
        self.bridges = nn.ModuleList(nn.Linear(D, D) for _ in range(parts * config.num_layers))
        self.can_align = config.attention != "none"
        self.alignment = SoftAlignment(D, config.attention) if config.attention != "none" else None

    def read(self, sources: Fields) -> State:
        source = only(sources)
        lengths = source.lengths if source.is_step is not None else None
        x = self.dropout(self.source_embedding(source))  # (N, S, E)
        memory, last = self.encoder(
            x, self.encoder.initial_state(len(x)), lengths
        )  # (1); (N, S, D), parts (N, L * 2, D/2)
        own, L = {}, self.config.num_layers
        for number, (name, part) in enumerate(zip("hc", last, strict=False)):
            layers = part.reshape(len(x), L, -1).unbind(dim=1)  # both directions of a layer side by side, (N, D) each
            bridges = self.bridges[number * L : (number + 1) * L]
            own[name] = torch.stack([bridge(h).tanh() for bridge, h in zip(bridges, layers, strict=True)], dim=1)  # (2)
        if self.config.input_feeding:
            own["fed"] = x.new_zeros(len(x), self.output_dim)
        if self.alignment is None:
            return State(own)
        is_source = source.is_step
        if is_source is None:
            is_source = torch.ones(source.shape, dtype=torch.bool, device=x.device)
        return State(own, {"memory": memory, "keys": self.alignment.keys(memory), "is_source": is_source})

    def decode(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        hidden, _, after = self._decode(tokens, state)
        return hidden, after

    def align(self, tokens: Tokens, state: State) -> Tensor | None:
        return self._decode(tokens, state)[1]

    def _decode(self, tokens: Tokens, state: State) -> tuple[Tensor, Tensor | None, State]:
        """o (R, T, D), the attention (R, T, S), and the state after the last step."""
        x = self.dropout(self.embedding(tokens))  # (R, T, E)
        before = tuple(state.per_row[name] for name in "hc" if name in state.per_row)
        if not self.config.input_feeding:
            hidden, after = self.decoder(x, before)  # (3); rows are padded at their end: what comes there is not read
            hidden, attention = self._attend(hidden, state)
            return hidden, attention, State(dict(zip("hc", after, strict=False)), state.memory)
        fed, outputs, looked = state.per_row["fed"], [], []
        for t in range(x.shape[1]):
            hidden, before = self.decoder(torch.cat([x[:, t], fed], dim=-1).unsqueeze(1), before)  # (3)
            hidden, attention = self._attend(hidden, state)
            fed = hidden[:, 0]
            outputs.append(fed)
            looked.append(cast(Tensor, attention))
        own = {**dict(zip("hc", before, strict=False)), "fed": fed}
        return torch.stack(outputs, dim=1), torch.cat(looked, dim=1), State(own, state.memory)

    def _attend(self, hidden: Tensor, state: State) -> tuple[Tensor, Tensor | None]:
        if self.alignment is None:
            return self.dropout(hidden), None
        found = state.memory
        hidden, attention = self.alignment(hidden, found["memory"], found["keys"], found["is_source"])  # (4)
        return self.dropout(hidden), attention

    def plan(self, weights: Weights, head: nn.Module) -> Plan:
        """For kernels/recurrent_step.py."""
        embedding, output = plain_ends(self.embedding, head)
        return plan_recurrent(
            weights, self.decoder, embedding, output, self.alignment, is_fed=self.config.input_feeding
        )

    def make_room(self, state: State) -> int:
        return NO_LIMIT

    def in_order(self, state: State) -> list[str | int]:
        names = ("h", "c", "fed", "memory", "keys", "is_source")
        steps = state.memory["memory"].shape[1] if self.alignment is not None else 0
        return [*(name if name in state.per_row or name in state.memory else 0 for name in names), steps]


def build_seq2seq(config: Seq2SeqConfig, schema: Schema) -> PairModel:
    body = Seq2SeqBody(config, schema)
    return PairModel(body, config, schema, body.embedding)
