"""Gradient flow: how much of the error at step t reaches what the model held, or read, k steps before.

    flow(k) = mean over rows and t of | d loss_t / d h_{t-k} |                                                     (1)

h is the state that a recurrent layer hands on (h, or h and c together), the stream behind a block of attention or
convolution, or the embedding of the token read: that last one every neural family has, so families are compared by it.

A block with a skip connection is x + block(x), so that what arrives at x has two paths, and their sum is exact:

    d loss / d x  =  d loss / d (x + block(x))   around the block, by the skip connection
                   + the rest                    through the block: attention, or the delays of a convolution       (5)

For a plain RNN, d h_t / d h_{t-k} is a product of k factors diag(f') U. As |f'| <= 1, its norm is at most
(largest singular value of U)^k                                                                                    (2)
(Pascanu et al. 2013). Through the memory of an LSTM alone, the factor of a step is, unit by unit, its forget gate (3)

Truncated backpropagation cuts the gradient where a chunk of text begins; how much that leaves of it is measured by
the gradient of all weights, cut every K steps, against the whole one                                              (4)

Shapes: B rows, T steps, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..layers.recurrent import RecurrentLayer
from ..layers.rnn import RNNCell
from ..models.contract import State, device_of, in_64_bits
from .trace import Trace, record

SHOWN = {
    "embedding": "embedding", "hidden": "hidden", "stream": "stream", "h handed on": "state", "c handed on": "state",
}  # fmt: skip
"""What is noted -> what it is a part of."""
THROUGH = "block"
"""What arrives through a block rather than around it."""
Place = tuple[str, str]
"""Where in the model, and what."""


@dataclass(frozen=True)
class Flow:
    """One place of the model: what reaches it from k steps ahead."""

    site: str
    what: str
    by_lag: list[float]
    """(1) for k = 0, 1, 2, ...: the mean norm."""
    low: list[float]
    high: list[float]
    """The middle half of rows and steps."""

    def shares(self) -> list[float]:
        """Of what arrives from one step ahead, the nearest that every place has."""
        if len(self.by_lag) < 2 or self.by_lag[1] == 0:
            return []
        return [value / self.by_lag[1] for value in self.by_lag]

    def half_life(self) -> int | None:
        """The first lag from which on less than half of lag 1 arrives; None where the last lag still has as much."""
        shares = self.shares()
        above = [lag for lag, share in enumerate(shares) if share >= 0.5]
        return above[-1] + 1 if above and above[-1] + 1 < len(shares) else None


def gradient_flow(model: nn.Module, batch: Batch, *, steps: Sequence[int], max_lags: int) -> list[Flow]:
    """(1) at every place that holds something, from the losses at `steps` (numbers of targets, from 0).

    Where one answer is given for a whole row, its loss stands at the last step. In 64 bits: (5) is a difference.
    """
    model = in_64_bits(model)
    batch = batch.to(device_of(model)).in_64_bits()
    with torch.enable_grad(), record(model) as trace:
        log_probs, _ = model.score(batch)  # type: ignore[operator]
        shown = [(site, noted) for site, noted in trace if noted in SHOWN]
        squares: dict[Place, list[Tensor]] = {}
        for t in steps:
            for place, square in _squares(shown, _gradients(log_probs[:, t], trace, shown)).items():
                squares.setdefault(place, []).append(square)
    behind = next(iter(batch.inputs.values())).shape[1] - log_probs.shape[1]
    steps = [t + behind for t in steps]
    return [
        _flow(site, what, torch.stack(found).sqrt(), steps, max_lags)  # (steps, B, T)
        for (site, what), found in squares.items()
    ]


def _squares(keys: Sequence[Place], grads: Sequence[Tensor]) -> dict[Place, Tensor]:
    """Squared lengths at each step, (B, T), of gradients (B, T, D): by place, and by (5) through each block."""
    found: dict[Place, Tensor] = {}
    entering = grads[0]  # of the embedding, which is noted first
    for (site, noted), grad in zip(keys, grads, strict=True):
        square, place = grad.square().sum(dim=-1), (site, SHOWN[noted])
        found[place] = found[place] + square if place in found else square
        if noted == "stream":
            found[site, THROUGH] = (entering - grad).square().sum(dim=-1)
            entering = grad
    return found


def _gradients(log_probs: Tensor, trace: Trace, keys: Sequence[Place]) -> list[Tensor]:
    """Of losses (B,) with respect to what stands at each step, (B, T, D) for each key, by one pass back."""
    noted = [value for key in keys for value in trace.calls(key)]
    grads = iter(torch.autograd.grad(-log_probs.sum(), noted, retain_graph=True, allow_unused=True))
    found = []
    for key in keys:
        parts = []
        for value in trace.calls(key):
            grad = next(grads)
            parts.append(torch.zeros_like(value) if grad is None else grad)
        found.append(torch.stack(parts, dim=1) if parts[0].dim() == 2 else torch.cat(parts, dim=1))
    return found


def _flow(site: str, what: str, norms: Tensor, steps: Sequence[int], max_lags: int) -> Flow:
    means, lows, highs = [], [], []
    for lag in range(max_lags + 1):
        at = [norms[number, :, t - lag] for number, t in enumerate(steps) if t >= lag]
        if not at:
            break
        values = torch.cat(at).double()
        means.append(float(values.mean()))
        low, high = values.quantile(torch.tensor([0.25, 0.75], dtype=torch.float64, device=values.device)).tolist()
        lows.append(low)
        highs.append(high)
    return Flow(site, what, means, lows, highs)


@dataclass(frozen=True)
class Factor:
    """What a step multiplies the gradient by, as the weights or the gates say it, with nothing measured."""

    site: str
    name: str
    """Short, for a chart."""
    factor: float
    about: str
    is_bound: bool
    """Whether the gradient cannot fall more slowly, whatever else the model has."""

    def is_of(self, flow: Flow) -> bool:
        return flow.what == "state" and f"{self.site}.".startswith(f"{flow.site}.")

    def line(self, flow: Flow) -> list[float]:
        """From lag 1 on, what of the gradient there would be left by this factor alone, for k = 1, 2, ..."""
        return [flow.by_lag[1] * self.factor**k for k in range(len(flow.by_lag) - 1)]


def factors(model: nn.Module, trace: Trace) -> list[Factor]:
    """(2) for each plain recurrent layer, (3) for each layer of an LSTM that `trace` saw."""
    found = []
    layers = [(site, layer) for site, layer in model.named_modules() if isinstance(layer, RecurrentLayer)]
    for site, layer in layers:
        cell = layer.cells[0]
        if isinstance(cell, RNNCell) and isinstance(cell.weights.hidden_norm, nn.Identity):
            largest = float(torch.linalg.matrix_norm(cell.weights.hidden.detach(), ord=2))
            is_bound = layer is layers[-1][1]  # what is held below reaches the error by way of the layers above, too
            name, where = ("bound", "") if is_bound else ("largest factor", " within this layer")
            about = f"the largest singular value of U: no more than this passes a step{where}"
            found.append(Factor(site, name, largest, about, is_bound))
    for site, gate in trace.all("forget gate"):
        kept = float(gate.detach().double().log().mean(dim=(0, 1)).exp().max())
        about = "the forget gate, on average, of the unit that forgets least: what memory alone can pass on"
        found.append(Factor(site, "forget gate", kept, about, is_bound=False))
    return found


@dataclass(frozen=True)
class Truncation:
    """(4): the gradient of all weights where it is cut every `chunk` steps, against the whole one."""

    chunk: int
    cosine: float
    """How well its direction agrees."""
    length: float
    """How long it is, as a share of the whole one."""


def truncation(model: nn.Module, batch: Batch, chunks: Sequence[int]) -> list[Truncation]:
    """For models that carry their state from chunk to chunk; `batch` of tokens (B, T)."""
    T = batch.inputs["tokens"].shape[1]
    whole = _gradient(model, batch, T)
    found = []
    for chunk in (chunk for chunk in chunks if chunk < T):
        cut = _gradient(model, batch, chunk)
        lengths = float(whole.norm()), float(cut.norm())
        cosine = float(whole @ cut) / (lengths[0] * lengths[1]) if min(lengths) > 0 else 0.0
        found.append(Truncation(chunk, cosine, lengths[1] / lengths[0] if lengths[0] > 0 else 0.0))
    return found


def _gradient(model: nn.Module, batch: Batch, chunk: int) -> Tensor:
    """Of the loss over the whole batch, with the state detached every `chunk` steps: all weights in one row."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    total = [torch.zeros_like(p) for p in parameters]
    inputs, targets = batch.inputs["tokens"].ids, batch.targets["tokens"].ids
    state: State = model.initial_state(len(inputs))  # type: ignore[operator]
    with torch.enable_grad():
        for first in range(0, inputs.shape[1], chunk):
            part = slice(first, first + chunk)
            piece = Batch({"tokens": Tokens(inputs[:, part])}, {"tokens": Tokens(targets[:, part])})
            log_probs, after = model.score(piece, state)  # type: ignore[operator]
            grads = torch.autograd.grad(-log_probs.sum(), parameters, allow_unused=True)
            for sum_, grad in zip(total, grads, strict=True):
                if grad is not None:
                    sum_ += grad
            state = after.detach()
    return torch.cat([grad.flatten() for grad in total]).double()


def source_gradients(model: nn.Module, batch: Batch) -> Tensor:
    """Pairs: how much of the error at each target token reaches the embedding of each source token, (T, S)."""
    S, T = batch.inputs["source"].shape[1], batch.targets["tokens"].shape[1]
    with torch.enable_grad(), record(model) as trace:
        log_probs, _ = model.score(batch)  # type: ignore[operator]
        source = next(call for site, what in trace for call in trace.calls((site, what)) if what == "embedding")
        assert source.shape[1] == S  # the source is embedded first
        rows = [torch.autograd.grad(-log_probs[0, t], source, retain_graph=True)[0][0].norm(dim=-1) for t in range(T)]
    return torch.stack(rows).detach()
