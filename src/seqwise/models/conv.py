"""Time-delay network: convolutions that look back only, each layer at wider steps than the one below.

Waibel et al. 1989 (time delays); van den Oord et al. 2016, Bai et al. 2018 (dilation, residual connections). Fixes in
the fixed window: what is learned at one delay serves all, and with dilations 1, 2, 4, ... the reach doubles with each
layer; in the recurrent network: training is parallel over time.

    y_t = sum over j of K_j x_{t - j d} + b         j = 0 .. k-1, dilation d = 2^l; zeros before the start   (1)
    x_t = x_t + W f(norm(y_t))                      l-th layer, f: GELU                                      (2)

Its state holds, for each layer, its last (k-1) d inputs in a ring: a step writes one place and reads k, however far the
layer looks back.

A picture is looked at from all sides at once, with two-dimensional kernels and shortcuts (layers/residual_grid.py).

Shapes: B batch, T steps, k kernel, d dilation, R = (k-1) d ring, D model width, L layers, N cells, F features of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from ..data.schema import Schema
from ..errors import ConfigError
from ..layers.dropout import Dropout
from ..layers.notes import is_recorded, tap
from .build import build_model, embedding_for
from .contract import Encoded, Fields, State, only
from .engine import NO_LIMIT, Plan, Weights, plain_ends
from .eyes import IMAGE, SeeingConfig, eyes_for


@dataclass(frozen=True)
class ConvConfig(SeeingConfig):
    model_dim: int = 128
    """Width of the stream that the layers add to."""
    num_layers: int = 6
    """Layers; the dilation doubles from one to the next."""
    kernel_size: int = 3
    """k: how many places each layer looks at, dilation apart."""
    max_dilation: int = 512
    """Where doubling stops and begins again at 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel_size < 2:
            raise ConfigError(f"model.kernel_size = {self.kernel_size} should be at least 2, to look back at all.")
        if self.max_dilation < 1:
            raise ConfigError(f"model.max_dilation = {self.max_dilation} should be at least 1.")

    @property
    def dilations(self) -> list[int]:
        period = self.max_dilation.bit_length()
        return [2 ** (layer % period) for layer in range(self.num_layers)]


class DelayLayer(nn.Module):
    def __init__(self, model_dim: int, kernel_size: int, dilation: int, dropout: float):
        super().__init__()
        self.kernel_size, self.dilation, self.ring = kernel_size, dilation, (kernel_size - 1) * dilation
        self.delays = nn.Linear(kernel_size * model_dim, model_dim)  # K, oldest delay first
        self.norm = nn.LayerNorm(model_dim)
        self.mix = nn.Linear(model_dim, model_dim)
        self.dropout = Dropout(dropout)
        nn.init.zeros_(self.mix.weight)  # each layer begins as the identity
        nn.init.zeros_(self.mix.bias)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        """x (B, T, D) behind the R inputs `before` (B, R, D), oldest first -> (B, T, D)."""
        inputs = torch.cat([before, x], dim=1)  # (B, R+T, D)
        taps = [inputs[:, j * self.dilation : j * self.dilation + x.shape[1]] for j in range(self.kernel_size)]
        return self.finish(x, torch.cat(taps, dim=-1))

    def finish(self, x: Tensor, taps: Tensor) -> Tensor:
        """x and its k delays side by side, (..., k*D), oldest first -> (..., D)."""
        y = self.delays(taps)  # (1)
        return tap(self, "stream", x + self.dropout(self.mix(gelu(self.norm(y)))))  # (2)


class ConvBody(nn.Module):
    context = None
    carries_state = True

    def __init__(self, config: ConvConfig, schema: Schema):
        super().__init__()
        self.output_dim = self.model_dim = config.model_dim
        self.embedding = embedding_for(schema, config, config.model_dim, is_output=config.tied_embeddings)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(
            DelayLayer(config.model_dim, config.kernel_size, dilation, config.dropout) for dilation in config.dilations
        )
        self.norm = nn.LayerNorm(config.model_dim)

    def initial_state(self, batch_size: int) -> State:
        like = self.norm.weight
        rings = {
            f"ring.{number}": like.new_zeros(batch_size, cast(DelayLayer, layer).ring, self.model_dim)
            for number, layer in enumerate(self.layers)
        }
        return State({**rings, "place": torch.zeros(batch_size, dtype=torch.long, device=like.device)})

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        field = only(inputs)
        state = state or self.initial_state(field.shape[0])
        x = self.dropout(self.embedding(field))  # (B, T, D)
        can_hurry = field.shape[1] == 1 and field.is_step is None and not torch.is_grad_enabled()
        if can_hurry and not is_recorded() and not with_layers:
            return Encoded.of(*self._encode_one(x[:, 0], state))
        place, after, layers = state.per_row["place"], {}, [x]  # (B,) steps read so far
        for number, layer in enumerate(cast(list[DelayLayer], self.layers)):
            ring = state.per_row[f"ring.{number}"]  # (B, R, D); step t stands at place t mod R
            oldest_first = (place.unsqueeze(1) + torch.arange(layer.ring, device=x.device)) % layer.ring  # (B, R)
            before = _take(ring, oldest_first)
            after[f"ring.{number}"] = self._ring_after(before, x, place, field.lengths)
            x = layer(x, before)
            if with_layers:
                layers.append(x)
        state = State({**after, "place": place + field.lengths})
        return Encoded.of(self.norm(x), field.is_step, state, layers if with_layers else None)

    def _ring_after(self, before: Tensor, x: Tensor, place: Tensor, lengths: Tensor) -> Tensor:
        """The last R of `before` and the first `lengths` steps of x, each at its place of the ring."""
        R = before.shape[1]
        spot = torch.arange(R, device=x.device)  # (R,)
        end = (place + lengths).unsqueeze(1)  # (B, 1); the newest step is end - 1
        step = end - 1 - (end - 1 - spot) % R  # (B, R): the newest step that stands at each spot
        return _take(torch.cat([before, x], dim=1), step - place.unsqueeze(1) + R)

    def _encode_one(self, x: Tensor, state: State) -> tuple[Tensor, None, State]:
        """`encode` for one step: x (B, D) -> (B, 1, D). Each ring is read at k-1 places and written at one."""
        place, rows = state.per_row["place"], torch.arange(len(x), device=x.device)
        for number, layer in enumerate(cast(list[DelayLayer], self.layers)):
            ring = state.per_row[f"ring.{number}"]
            delays = torch.arange(layer.kernel_size - 1, 0, -1, device=x.device) * layer.dilation  # (k-1,)
            seen = _take(ring, (place.unsqueeze(1) - delays) % layer.ring)  # (B, k-1, D)
            taps = torch.cat([seen.flatten(1), x], dim=-1)
            ring[rows, place % layer.ring] = x
            x = layer.finish(x, taps)
        state.per_row["place"] = place + 1
        return self.norm(x).unsqueeze(1), None, state

    def plan(self, weights: Weights, head: nn.Module) -> Plan:
        """For kernels/conv_step.py."""
        embedding, output = plain_ends(self.embedding, head)
        layers, D = cast(list[DelayLayer], self.layers), self.model_dim
        size, vocab_size = layers[0].kernel_size, output.output.out_features
        numbers = [len(self.layers), D, size, vocab_size]
        numbers += chain(*(weights.matrix(layer) for layer in (embedding, self.norm, output.output)))
        for layer in layers:
            numbers += [layer.dilation, *chain(*map(weights.matrix, (layer.delays, layer.norm, layer.mix)))]
        return Plan("conv", numbers, [embedding.scale, self.norm.eps], (2 + size) * D, vocab_size)

    def make_room(self, state: State) -> int:
        return NO_LIMIT

    def in_order(self, state: State) -> list[str | int]:
        return ["place", *(f"ring.{number}" for number in range(len(self.layers)))]


def _take(rows: Tensor, index: Tensor) -> Tensor:
    """rows (B, N, D) at index (B, M) -> (B, M, D)."""
    return rows.gather(1, index.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))


class PictureBody(nn.Module):
    """Over height and width of a picture, in place of time: what eyes see (models/eyes.py), cell by cell."""

    context = None
    carries_state = False
    embedding = None

    def __init__(self, config: ConvConfig, schema: Schema):
        super().__init__()
        self.eyes = eyes_for(config, schema)
        self.output_dim = self.eyes.output_dim
        self.dropout = Dropout(config.dropout)

    def initial_state(self, batch_size: int) -> State:
        return State({})

    def encode(self, inputs: Fields, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        seen = self.eyes(inputs[IMAGE])
        features = self.dropout(seen.features)  # (B, N, F)
        return Encoded.of(features, seen.is_region, None, [seen.features] if with_layers else None)


def build_conv(config: ConvConfig, schema: Schema) -> nn.Module:
    body = PictureBody(config, schema) if IMAGE in schema.inputs else ConvBody(config, schema)
    return build_model(body, config, schema)
