"""Recurrent networks: a state of fixed size, updated by each step.

    x_t = embedding of step t                                                (1)
    h_t = cell(x_t, h_{t-1})        rnn: layers/rnn.py, gru: layers/gru.py, lstm: layers/lstm.py;
                                    stacked as layers/recurrent.py says      (2)
    p(token t+1 | tokens 1..t) = softmax(W h_t)     layers/heads.py          (3)

Elman 1990 (rnn), Hochreiter & Schmidhuber 1997 (lstm), Cho et al. 2014 (gru); Mikolov et al. 2010 as language models,
Zaremba et al. 2014 (dropout between layers only). Fixes in the fixed window: what came long ago can still matter.

Shapes: B batch, T steps, E embedding width, D model width, L layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, cast

import torch
from torch import nn

from ..data.schema import Schema
from ..errors import ConfigError
from ..kernels.arithmetic import ACTIVATIONS
from ..layers.dropout import Dropout
from ..layers.embeddings import TokenEmbedding
from ..layers.gru import GRUCell
from ..layers.heads import NextTokenHead
from ..layers.lstm import LSTMCell
from ..layers.recurrent import Cell, RecurrentLayer, RecurrentStack
from ..layers.rnn import RNNCell
from ..layers.soft_alignment import SoftAlignment
from .build import NeuralConfig, build_model, check_sees_all, embedding_for
from .contract import Encoded, Fields, State, only
from .engine import NO_LIMIT, NotCompiledError, Plan, Weights, plain_ends

NORM_EPSILON = 1e-5  # of torch's norms


@dataclass(frozen=True)
class RecurrentConfig(NeuralConfig):
    model_dim: int = 256
    """Width of the state h."""
    embed_dim: int | None = None
    """Width of the embeddings; as wide as the state where not set."""
    num_layers: int = 1
    """Layers, one on top of the other."""
    connections: Literal["plain", "residual", "highway", "dense"] = "plain"
    """How layers are joined: each reads the one below, adds to it, mixes with it by a gate, or reads all below."""
    bidirectional: bool = False
    """Read from both ends; for labels, where the whole sequence is at hand."""
    dropout_kind: Literal["plain", "variational"] = "plain"
    """Drop other values at each step, or the same ones at all steps of a row."""
    weight_dropout: float = 0.0
    """Share of recurrent weights dropped, the same ones at all steps."""
    layer_norm: Literal["none", "between", "inside"] = "none"
    """Normalise what goes into each layer, or the gates inside the recurrence (slower: torch has no kernel for it)."""

    @property
    def reads_both_ways(self) -> bool:
        return self.bidirectional


@dataclass(frozen=True)
class RNNConfig(RecurrentConfig):
    activation: Literal["tanh", "relu"] = "tanh"
    """What bends the new state."""
    identity_init: bool = False
    """Start with recurrent weights that keep the state as it is; goes with activation = relu."""
    identity_scale: float = 1.0
    """What the identity is multiplied with at the start."""


@dataclass(frozen=True)
class GRUConfig(RecurrentConfig):
    reset: Literal["after", "before"] = "after"
    """Where the reset gate acts: on the product with the state (fast), or on the state before it (as published)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reset == "before" and self.layer_norm == "inside":
            raise ConfigError("model.layer_norm = inside goes with model.reset = after; or use layer_norm = between.")


@dataclass(frozen=True)
class LSTMConfig(RecurrentConfig):
    forget_bias: float = 1.0
    """Bias of the forget gate at the start: above zero, the cell begins by remembering."""
    projection_dim: int | None = None
    """Width that h is projected to, beside a memory of model_dim; not projected where not set."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection_dim is not None and not 0 < self.projection_dim < self.model_dim:
            raise ConfigError(
                f"model.projection_dim = {self.projection_dim} should lie below model_dim = {self.model_dim}."
            )


class RecurrentBody(nn.Module):
    context = None
    carries_state = True
    can_compile = False  # its kernels are compiled already

    def __init__(self, config: RecurrentConfig, schema: Schema, make_cell: Callable[[int], nn.Module]):
        super().__init__()
        if config.bidirectional:
            check_sees_all(schema, "model.bidirectional")
        embed_dim = config.embed_dim or config.model_dim
        self.embedding = embedding_for(schema, config, embed_dim, is_output=config.tied_embeddings)
        is_variational = config.dropout_kind == "variational"
        self.dropout = Dropout(config.dropout, is_variational=is_variational)
        self.stack = RecurrentStack(
            make_cell,
            embed_dim,
            config.num_layers,
            connections=config.connections,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
            is_variational=is_variational,
            weight_dropout=config.weight_dropout,
            normalise=config.layer_norm == "between",
        )
        self.output_dim = self.stack.output_dim

    def initial_state(self, batch_size: int) -> State:
        return State(dict(zip("hc", self.stack.initial_state(batch_size), strict=False)))

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        field = only(inputs)
        state = state or self.initial_state(field.shape[0])
        x = self.dropout(self.embedding(field))  # (B, T, E)  (1)
        layers = [x] if with_layers else None
        lengths = None if field.is_step is None else field.lengths
        names = "hc"[: len(state.per_row)]
        before = tuple(state.per_row[name] for name in names)
        hidden, after = self.stack(x, before, lengths, layers=layers)  # (B, T, D)  (2)
        return Encoded.of(self.dropout(hidden), field.is_step, State(dict(zip(names, after, strict=True))), layers)

    def plan(self, weights: Weights, head: nn.Module) -> Plan:
        embedding, output = plain_ends(self.embedding, head)
        return plan_recurrent(weights, self.stack, embedding, output)

    def make_room(self, state: State) -> int:
        return NO_LIMIT

    def in_order(self, state: State) -> list[str | int]:
        return ["h", "c" if "c" in state.per_row else 0, *[0] * 5]


def plan_recurrent(
    weights: Weights,
    stack: RecurrentStack,
    embedding: TokenEmbedding,
    head: NextTokenHead,
    alignment: SoftAlignment | None = None,
    *,
    is_fed: bool = False,
) -> Plan:
    """For kernels/recurrent_step.py, of a stack read from one end."""
    layers = [cast(RecurrentLayer, layer) for layer in stack.layers]
    cells = [cast(Cell, layer.cells[0]) for layer in layers]
    if any(cell.kernel is None or len(layer.cells) > 1 for cell, layer in zip(cells, layers, strict=True)):
        raise NotCompiledError("a cell that torch has no kernel for")
    first, output = cells[0].weights, head.output
    D, M, E, cell = first.hidden_dim, first.state_dim, embedding.embedding_dim, type(cells[0]).__name__
    kind = ("RNNCell", "GRUCell", "LSTMCell").index(cell)
    widest = max(E + D, 2 * D, E + len(cells) * D if stack.connections == "dense" else 0)
    activation = ACTIVATIONS["relu" if cells[0].kernel is torch.rnn_relu else "tanh"]
    connections = ("plain", "residual", "highway", "dense").index(stack.connections)
    aligned = 0 if alignment is None else ("dot", "general", "additive").index(alignment.kind) + 1
    numbers = [len(cells), kind, connections, E, D, M, widest, activation, output.out_features, aligned, is_fed]
    looking = [getattr(alignment, name, None) for name in ("to_query", "weigh", "combine")]
    numbers += chain(*(weights.matrix(layer) for layer in (embedding, output, *looking)))
    for norm, gate, of in zip(stack.norms, stack.gates, (cell.weights for cell in cells), strict=True):
        numbers += weights.matrix(norm)
        numbers += weights.matrix(of, "input", "bias_input") + weights.matrix(of, "hidden", "bias_hidden")
        numbers += [0, 0, 0] if of.projection is None else weights.matrix(of, "projection", "")
        numbers += weights.matrix(gate)
    gate_dim = (1, 3, 4)[kind] * M
    return Plan(
        "recurrent", numbers, [embedding.scale, NORM_EPSILON], 2 * widest + D + M + 2 * gate_dim, output.out_features
    )


def build_rnn(config: RNNConfig, schema: Schema) -> nn.Module:
    identity = config.identity_scale if config.identity_init else None
    normalise = config.layer_norm == "inside"

    def make_cell(input_dim: int) -> nn.Module:
        return RNNCell(
            input_dim, config.model_dim, activation=config.activation, identity=identity, normalise=normalise
        )

    return build_model(RecurrentBody(config, schema, make_cell), config, schema)


def build_gru(config: GRUConfig, schema: Schema) -> nn.Module:
    def make_cell(input_dim: int) -> nn.Module:
        return GRUCell(input_dim, config.model_dim, reset=config.reset, normalise=config.layer_norm == "inside")

    return build_model(RecurrentBody(config, schema, make_cell), config, schema)


def build_lstm(config: LSTMConfig, schema: Schema) -> nn.Module:
    def make_cell(input_dim: int) -> nn.Module:
        return LSTMCell(
            input_dim,
            config.model_dim,
            forget_bias=config.forget_bias,
            projection_dim=config.projection_dim,
            normalise=config.layer_norm == "inside",
        )

    return build_model(RecurrentBody(config, schema, make_cell), config, schema)
