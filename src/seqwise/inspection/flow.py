"""Gradient flow: how much of the error at step t reaches what the model held, or read, k steps before.

    flow(k) = mean over rows and t of | d loss_t / d h_{t-k} |                                                     (1)

h is the state that a recurrent layer hands on (h, or h and c together), the stream behind a block of attention or
convolution, or the embedding of the token read: that last one every neural family has, so families are compared by it.

For a plain RNN, d h_t / d h_{t-k} is a product of k factors diag(f') U. As |f'| <= 1, its norm is at most
(largest singular value of U)^k                                                                                    (2)
(Pascanu et al. 2013). Through the memory of an LSTM alone, the factor of a step is its forget gate                (3)

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
from ..models.contract import State
from .trace import Trace, record

SHOWN = {"embedding": "embedding", "stream": "stream", "h handed on": "state", "c handed on": "state"}
"""What is noted -> what it is a part of."""


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


def gradient_flow(model: nn.Module, batch: Batch, *, steps: Sequence[int], most_lags: int) -> list[Flow]:
    """(1) at every place that holds something, from the losses at `steps` (numbers of targets, from 0)."""
    with torch.enable_grad(), record(model) as trace:
        log_probs, _ = model.score(batch)  # type: ignore[operator]
        shown = [(site, noted) for site, noted in trace if noted in SHOWN]
        squares: dict[tuple[str, str], list[Tensor]] = {(site, SHOWN[noted]): [] for site, noted in shown}
        for t in steps:
            of_step: dict[tuple[str, str], Tensor] = {}
            for (site, noted), square in zip(shown, _squares(log_probs[:, t], trace, shown), strict=True):
                key = (site, SHOWN[noted])
                of_step[key] = of_step[key] + square if key in of_step else square
            for key, square in of_step.items():
                squares[key].append(square)
    return [
        _flow(site, what, torch.stack(found).sqrt(), steps, most_lags)  # (steps, B, T)
        for (site, what), found in squares.items()
    ]


def _squares(log_probs: Tensor, trace: Trace, keys: Sequence[tuple[str, str]]) -> list[Tensor]:
    """| d loss / d what stands at each step |^2 for losses (B,): (B, T) for each key, by one pass back."""
    noted = [value for key in keys for value in trace.calls(key)]
    grads = iter(torch.autograd.grad(-log_probs.sum(), noted, retain_graph=True, allow_unused=True))
    found = []
    for key in keys:
        parts = []
        for value in trace.calls(key):
            grad = next(grads)
            parts.append(torch.zeros_like(value) if grad is None else grad)
        whole = torch.stack(parts, dim=1) if parts[0].dim() == 2 else torch.cat(parts, dim=1)  # (B, T, D)
        found.append(whole.square().sum(dim=-1))
    return found


def _flow(site: str, what: str, norms: Tensor, steps: Sequence[int], most_lags: int) -> Flow:
    means, lows, highs = [], [], []
    for lag in range(most_lags + 1):
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
    factor: float
    about: str


def factors(model: nn.Module, trace: Trace) -> list[Factor]:
    """(2) for each plain recurrent layer, (3) for each layer of an LSTM that `trace` saw."""
    found = []
    for site, module in model.named_modules():
        if isinstance(module, RecurrentLayer) and isinstance(module.cells[0], RNNCell):
            largest = float(torch.linalg.matrix_norm(module.cells[0].weights.hidden.detach(), ord=2))
            found.append(Factor(site, largest, "the largest singular value of U: no more than this passes a step"))
    for site, gate in trace.all("forget gate"):
        kept = float(gate.detach().double().log().mean().exp())
        found.append(Factor(site, kept, "the geometric mean of the forget gates: what the memory alone passes on"))
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
    state: State = model.fresh_state(len(inputs))  # type: ignore[operator]
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
