"""A recurrent decoder that looks at places of a picture: Show, Attend and Tell (Xu et al. 2015).

    h_0, c_0 = tanh(W m + b), of the mean m of the places, for each layer                        (1)
    a_t      = softmax over i of score(h_{t-1}, m_i)              layers/soft_alignment.py       (2)
    z_t      = sum over i of a_ti m_i                             soft                           (3)
             = m_s,   s ~ a_t                                     hard, in training              (4)
             = m_s,   s = the most probable place                 hard, later                    (5)
             = m                                                  none (Vinyals et al. 2015)     (6)
    z_t      = sigmoid(v . h_{t-1} + b) z_t                       the gate                       (7)
    h_t      = cell([y_t; z_t], h_{t-1})                                                         (8)
    o_t      = W_y y_t + W_h h_t + W_z z_t                        what the next word is read from (9)

What is learned with (4) is a bound: sum over s of p(s) log p(y | s) <= log p(y). Its gradient is that of log p(y | s)
at the places that were drawn, and for the choice itself (Williams 1992)

    (R_t - b_t) d log a_t[s_t],   R_t = log p(y_t .. y_T | s)     what came after the choice     (10)

with b_t, which changes no expectation, near what R_t mostly is: the tokens left times what one of them costs. That is
the mean of the last updates (moving), or read off h_{t-1}, and learned from the squared difference (learned).

Without attention all steps of (8) are one call of torch's kernel.

Shapes: N pictures, R rows (hypotheses of the pictures), T steps, S places, L layers, E embedding width, D model width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ..errors import DataError
from ..layers.dropout import Dropout
from ..layers.gru import GRUCell
from ..layers.lstm import LSTMCell
from ..layers.notes import note
from ..layers.recurrent import RecurrentStack
from ..layers.soft_alignment import Alignment
from .contract import State

CELLS = {"gru": GRUCell, "lstm": LSTMCell}
MOMENTUM = 0.9  # of the moving baseline (Xu et al. 2015, 4.1)


class Looks(NamedTuple):
    """Where was looked before each word."""

    attention: Tensor
    """(R, T, S)"""
    log_prob: Tensor | None
    """(R, T) of the place that was drawn; None where none was."""
    before: Tensor
    """(R, T, D) h_{t-1}, with no gradient."""


class CaptionDecoder(nn.Module):
    def __init__(
        self,
        cell: str,
        attention: str,
        alignment: str,
        model_dim: int,
        embed_dim: int,
        *,
        num_layers: int = 1,
        has_gate: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        D, E, make = model_dim, embed_dim, CELLS[cell]
        self.attention, self.parts = attention, "hc" if cell == "lstm" else "h"
        self.dropout = Dropout(dropout)
        self.stack = RecurrentStack(lambda width: make(width, D), E + D, num_layers, dropout=dropout)
        self.first = nn.ModuleList(nn.Linear(D, num_layers * D) for _ in self.parts)
        self.from_word, self.from_hidden, self.from_seen = (nn.Linear(width, E, bias=False) for width in (E, D, D))
        self.alignment = Alignment(D, alignment) if attention != "none" else None
        self.gate = nn.Linear(D, 1) if attention != "none" and has_gate else None

    def begin(self, memory: Tensor, is_place: Tensor, whole: Tensor, noise: Tensor | None) -> State:
        """memory (N, S, D), is_place (N, S), whole (N, D), noise (N, K) where places are drawn."""
        own = {
            part: first(whole).tanh().unflatten(-1, (-1, memory.shape[-1]))  # (1): (N, L, D)
            for part, first in zip(self.parts, self.first, strict=True)
        }
        if self.alignment is None:
            return State(own, {"whole": whole})
        kept = {"memory": memory, "keys": self.alignment.keys(memory), "is_place": is_place}
        if self.attention == "hard" and noise is not None:
            kept["noise"] = noise
            own["step"] = torch.zeros(len(memory), dtype=torch.long, device=memory.device)
        return State(own, kept)

    def forward(self, y: Tensor, state: State) -> tuple[Tensor, Looks | None, State]:
        """y (R, T, E) -> o (R, T, E), where was looked, and the state after the last step."""
        before = tuple(state.per_row[part] for part in self.parts)
        if self.alignment is None:
            z = _shared(state.memory["whole"].unsqueeze(1), len(y)).expand(-1, y.shape[1], -1)  # (6)
            h, after = self.stack(torch.cat([y, z], dim=-1), before)  # (8)
            return self._output(y, h, z), None, self._state(after, state, y.shape[1])
        hs, zs, shares, chosen, queries = [], [], [], [], []
        for t in range(y.shape[1]):
            query = before[0][:, -1:]  # (R, 1, D), of the top layer
            z, a, log_prob = self._look(query, state, t)
            h, before = self.stack(torch.cat([y[:, t : t + 1], z], dim=-1), before)  # (8)
            hs.append(h)
            zs.append(z)
            shares.append(a)
            chosen.append(log_prob)
            queries.append(query.detach())
        drawn = torch.cat([one for one in chosen if one is not None], dim=1) if chosen[0] is not None else None
        looks = Looks(torch.cat(shares, dim=1), drawn, torch.cat(queries, dim=1))
        output = self._output(y, torch.cat(hs, dim=1), torch.cat(zs, dim=1))
        return output, looks, self._state(before, state, y.shape[1])

    def _look(self, query: Tensor, state: State, t: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """z (R, 1, D), a (R, 1, S), and log a of the place that was drawn (R, 1), from h_{t-1} (R, 1, D)."""
        assert self.alignment is not None
        kept, log_prob = state.memory, None
        a = self.alignment.look(query, kept["keys"], kept["is_place"])  # (2): (N, R / N, S)
        weights = a
        if self.attention == "hard":
            place = a.argmax(dim=-1)  # (5)
            if "noise" in kept:
                at = int(state.per_row["step"][0]) + t
                place = draw(a, noise_at(kept["noise"], at), kept["is_place"])  # (4)
                log_prob = a.gather(-1, place.unsqueeze(-1)).clamp(min=1e-30).log().reshape(-1, 1)
            weights = one_hot(place, a.shape[-1]).to(a)
            note(self, "place", weights.view(len(query), 1, 1, -1))
        z = (weights @ kept["memory"]).view_as(query)  # (3)
        z = z if self.gate is None else self.gate(query).sigmoid() * z  # (7)
        return z, a.view(len(query), 1, -1), log_prob

    def _output(self, y: Tensor, h: Tensor, z: Tensor) -> Tensor:
        return self.dropout(self.from_word(y) + self.from_hidden(self.dropout(h)) + self.from_seen(z))  # (9)

    def _state(self, after: tuple[Tensor, ...], state: State, steps: int) -> State:
        own = dict(zip(self.parts, after, strict=True))
        if "step" in state.per_row:
            own["step"] = state.per_row["step"] + steps
        return State(own, state.memory)


def noise_at(noise: Tensor, step: int) -> Tensor:
    """Of one step, (N,)."""
    if step >= noise.shape[1]:
        raise DataError(
            f"a caption of {step + 1} tokens or more is longer than the {noise.shape[1]} that places are drawn for; "
            "set model.num_looks to the tokens of the longest."
        )
    return noise[:, step]


def draw(a: Tensor, uniform: Tensor, is_place: Tensor) -> Tensor:
    """The place whose share of a (N, W, S) holds the number `uniform` (N,) from 0 to 1: (N, W)."""
    place = (a.cumsum(dim=-1) < uniform.view(-1, 1, 1)).sum(dim=-1)
    return torch.minimum(place, is_place.sum(dim=1, keepdim=True) - 1)  # shares may add up to a little less than one


class Baseline(nn.Module):
    """(10): what choices are measured by."""

    mean: Tensor
    new: Tensor

    def __init__(self, model_dim: int, vocab_size: int, *, is_learned: bool):
        super().__init__()
        self.guess = nn.Linear(model_dim, 1) if is_learned else None
        self.register_buffer("mean", torch.tensor(-math.log(vocab_size)))  # who knows nothing
        self.register_buffer("new", torch.zeros(2), persistent=False)  # nats and tokens since the last update

    def forward(self, found: Tensor, looks: Looks, is_token: Tensor) -> tuple[Tensor, Tensor]:
        """The terms of choices and of guesses, from the log-probabilities of the tokens, (R, T)."""
        assert looks.log_prob is not None
        there = is_token.to(found)
        found = (found * there).detach()
        reward, left = (one.flip(1).cumsum(dim=1).flip(1) for one in (found, there))  # R_t, tokens from t on: (R, T)
        if self.guess is None:
            guess = self.mean
            self.new += torch.stack([found.sum(), there.sum()])
        else:
            guess = self.guess(looks.before).squeeze(-1)
        choices = -((reward - guess.detach() * left) * looks.log_prob * there).sum()  # (10)
        return choices, ((reward / left.clamp(min=1) - guess) ** 2 * there).sum()

    def count_update(self) -> None:
        nats, tokens = self.new.tolist()
        if tokens:
            self.mean.mul_(MOMENTUM).add_((1 - MOMENTUM) * nats / tokens)
        self.new.zero_()


def _shared(whole: Tensor, rows: int) -> Tensor:
    """Of each picture for all its hypotheses, which stand side by side: (N, ...) -> (R, ...)."""
    return whole.repeat_interleave(rows // len(whole), dim=0)
