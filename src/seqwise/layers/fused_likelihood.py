"""The likelihood of targets under a large vocabulary, a few rows at a time.

    loss = -sum over n of (1 - e) log p_n(target n) + e mean over v of log p_n(v),   p_n = softmax(W h_n)      (1)
    d loss / d logits_n = p_n - (1 - e) onehot(target n) - e / V                                               (2)

e is label smoothing (Szegedy et al. 2016). Written the usual way, logits, log-probabilities and two gradients of N x V
pass through memory one after the other. Here a block of rows that fits the cache goes through (1) and (2) at once, and
only gradients of the size of h and W are kept: half the time on a CPU, and little memory.

Shapes: N targets, R rows of a block, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, linear, pad

BLOCK = 1 << 20  # logits in a block: 4 MB
SMALL_VOCAB = 1000  # below, the usual way is as fast


class FusedLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        (N, _), V = hidden.shape, len(weight)
        is_learning = any(ctx.needs_input_grad)
        if is_learning:
            hidden_grad, weight_grad = torch.empty_like(hidden), torch.zeros_like(weight)
        R = max(1, BLOCK // V)
        block, loss = hidden.new_empty(min(R, N), V), hidden.new_zeros((), dtype=torch.float64)
        share = hidden.new_full((1, 1), smoothing - 1)
        for first in range(0, N, R):
            h, wanted = hidden[first : first + R], targets[first : first + R].unsqueeze(1)
            logits = torch.mm(h, weight.T, out=block[: len(h)])  # (R, V)
            aim = (1 - smoothing) * logits.gather(1, wanted)  # (R, 1)
            if smoothing:
                aim += smoothing * logits.mean(dim=1, keepdim=True)
            largest = logits.amax(dim=1, keepdim=True)
            odds = logits.sub_(largest).exp_()
            total = odds.sum(dim=1, keepdim=True)
            loss += (total.log() + largest - aim).sum(dtype=torch.float64)  # (1)
            if is_learning:
                slope = odds.div_(total)  # (2)
                if smoothing:
                    slope -= smoothing / V
                slope.scatter_add_(1, wanted, share.expand(len(h), 1))
                torch.mm(slope, weight, out=hidden_grad[first : first + R])
                weight_grad.addmm_(slope.T, h)
        if is_learning:
            ctx.save_for_backward(hidden_grad, weight_grad)
        return loss.to(hidden.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        hidden_grad, weight_grad = ctx.saved_tensors
        return slope * hidden_grad, slope * weight_grad, None, None


def fused_loss(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, bias: Tensor | None = None) -> Tensor:
    """(1), in nats: (N, D), (V, D), (N,) -> (). With a bias (V,) the logits are W h_n + bias."""
    if hidden.device.type != "cpu" or len(weight) < SMALL_VOCAB:
        return cross_entropy(linear(hidden, weight, bias), targets, reduction="sum", label_smoothing=smoothing)
    if bias is not None:  # one more column of W, of a number that is always one
        hidden, weight = pad(hidden, (0, 1), value=1.0), torch.cat([weight, bias.unsqueeze(1)], dim=1)
    return FusedLikelihood.apply(hidden, weight, targets, smoothing)
