"""Optimisers and learning-rate schedules.

Muon (Jordan et al. 2024) replaces the update of a hidden matrix by the nearest matrix whose singular values are all
one, so that rare directions learn as fast as common ones:

    M <- momentum M + G                               (1)
    U  = nearest orthogonal matrix to G + momentum M  (2)   by Newton-Schulz: X <- a X + X (b A + c A A), A = X^T X
    W <- W - rate * sqrt(max(1, rows / columns)) * U  (3)

torch's own runs (2) in bfloat16, which crawls on most CPUs; ours stays in float32, and turns all matrices of one shape
at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.products import SMALL, has_faster, product
from ..settings import TrainingConfig
from .layer_rates import layers_of

SLANT_PEAK, SLANT_RATIO = 0.1, 32  # of all steps, until the rate is highest; the highest rate over the lowest
MATRICES = (2, 4)  # dimensions of weights that are matrices, and of filters over height and width
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # a, b, c: the steepest slope at zero that still ends near one


class Muon(torch.optim.Optimizer):
    """For the matrices of hidden layers; embeddings, outputs, norms and biases belong to Adam. Filters of convolutions
    are matrices too: a row for each channel that comes out.

    A group has `parts`: how many matrices stand one above the other in each of its parameters (queries, keys, values).
    """

    def __init__(
        self, groups: list[dict[str, Any]], *, lr: float, momentum: float, weight_decay: float, iterations: int = 3
    ):
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "iterations": iterations, "parts": 1}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        by_shape: dict[tuple[int, int], list[tuple[Tensor, Tensor, dict[str, Any]]]] = {}  # (weight, update, group)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                update = self._momentum(parameter, group["momentum"]).flatten(1)
                matrix = parameter.flatten(1)  # the same numbers in the same place
                for weight, part in zip(matrix.chunk(group["parts"]), update.chunk(group["parts"]), strict=True):
                    shape = (max(weight.shape), min(weight.shape))  # a wide matrix is turned as a tall one
                    by_shape.setdefault(shape, []).append((weight, part, group))
        for matrices in by_shape.values():
            tall = torch.stack([update if _is_tall(update) else update.T for _, update, _ in matrices])
            turned = nearest_orthogonal(tall, matrices[0][2]["iterations"])  # (2), all of one shape at once
            for (weight, _, group), update in zip(matrices, turned, strict=True):
                if group["weight_decay"]:
                    weight.mul_(1 - group["lr"] * group["weight_decay"])
                rate = group["lr"] * math.sqrt(max(1.0, weight.shape[0] / weight.shape[1]))
                weight.add_(update if _is_tall(weight) else update.T, alpha=-rate)  # (3)

    def _momentum(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        assert parameter.grad is not None
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        state["momentum"].mul_(momentum).add_(parameter.grad)  # (1)
        return parameter.grad.add(state["momentum"], alpha=momentum)


def _is_tall(matrix: Tensor) -> bool:
    return matrix.shape[0] >= matrix.shape[1]


def nearest_orthogonal(matrices: Tensor, iterations: int = 3) -> Tensor:
    """(2) for a stack of tall matrices (n, rows, columns): same singular vectors, singular values near one."""
    a, b, c = NEWTON_SCHULZ
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    if has_faster() and x.device.type == "cpu" and x.shape[1] * x.shape[2] ** 2 >= SMALL:
        return torch.stack([_nearest_orthogonal(matrix, iterations) for matrix in x])
    for _ in range(iterations):
        gram = x.mT @ x  # (n, columns, columns), the smaller side
        x = torch.baddbmm(x, x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), beta=a)
    return x


def _nearest_orthogonal(x: Tensor, iterations: int) -> Tensor:
    """The same for one matrix of length one, by the products of oneDNN."""
    a, b, c = NEWTON_SCHULZ
    for _ in range(iterations):
        gram = product(x.mT, x.mT)  # symmetric: it is its own transpose
        x = product(x, product(gram, gram).mul_(c).add_(gram, alpha=b)).add_(x, alpha=a)
    return x


def build_optimizers(model: nn.Module, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """One optimiser, or Muon for the hidden matrices and AdamW for the rest. Each group keeps its highest rate.

    Weights are grouped by layer where layers learn at different rates or are unfrozen one by one.
    """
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    is_layered = config.layer_rate_factor != 1 or config.unfreeze_epochs > 0
    layers = layers_of(name for name, _ in model.named_parameters()) if is_layered else {}
    top = max(layers.values(), default=0)
    optimizers: list[torch.optim.Optimizer] = []
    if config.optimizer == "muon":
        parts, hidden = _parts(model), _hidden_matrices(model)
        matrices: dict[tuple[int, int], list[nn.Parameter]] = {}
        for name, parameter in trained:
            if name in hidden:
                matrices.setdefault((layers.get(name, top), parts.get(name, 1)), []).append(parameter)
        matrix_groups = [
            {"params": matrices[layer, number], "parts": number, "layer": layer} for layer, number in sorted(matrices)
        ]
        if matrix_groups:
            rate = config.matrix_learning_rate
            optimizers.append(Muon(matrix_groups, lr=rate, momentum=config.momentum, weight_decay=config.weight_decay))
        trained = [(name, p) for name, p in trained if name not in hidden]
    groups: list[dict[str, Any]] = []
    for layer in sorted({layers.get(name, top) for name, _ in trained}):
        inside = [p for name, p in trained if layers.get(name, top) == layer]
        decayed, others = [p for p in inside if p.dim() >= 2], [p for p in inside if p.dim() < 2]
        groups.append({"params": decayed, "weight_decay": config.weight_decay, "layer": layer})
        groups.append({"params": others, "weight_decay": 0.0, "layer": layer})
    groups = [group for group in groups if group["params"]]
    rate, betas = config.learning_rate, (config.beta1, config.beta2)
    if config.optimizer == "sgd":
        optimizers.append(torch.optim.SGD(groups, lr=rate, momentum=config.momentum))
    elif config.optimizer == "adam":
        optimizers.append(torch.optim.Adam(groups, lr=rate, betas=betas, fused=True))
    else:
        optimizers.append(torch.optim.AdamW(groups, lr=rate, betas=betas, fused=True))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["highest_lr"] = group["lr"] * config.layer_rate_factor ** (top - group["layer"])
    return optimizers


def _parts(model: nn.Module) -> dict[str, int]:
    """Parameters that hold several matrices, one above the other (gates; queries, keys and values), and how many."""
    return {
        f"{prefix}.{name}": number
        for prefix, module in model.named_modules()
        for name, number in getattr(module, "stacked", {}).items()
    }


def _hidden_matrices(model: nn.Module) -> set[str]:
    """Names of the matrices between tables and heads. A table is no such matrix, whatever it is called: its rows are
    added to the stream and map nothing, and an orthogonal update would move all of them equally far."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return {
        name
        for name, parameter in model.named_parameters()
        if parameter.dim() in MATRICES
        and id(parameter) not in tables
        and not name.startswith("head.")
        and "embedding" not in name
        and "position" not in name
    }


def set_rate(optimizers: list[torch.optim.Optimizer], share: float, lowest_layer: int = 0) -> None:
    """Set every group to `share` of its highest rate; those of layers that are frozen still, to zero."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["highest_lr"] * share if group["layer"] >= lowest_layer else 0.0


def top_layer(optimizers: list[torch.optim.Optimizer]) -> int:
    """That of the heads."""
    return max(group["layer"] for optimizer in optimizers for group in optimizer.param_groups)


def rate_at(step: int, config: TrainingConfig) -> float:
    """The share of the highest rate at a step: up over the warm-up, then down as the schedule says."""
    if config.schedule == "slanted_triangular":
        peak = max(1, int(SLANT_PEAK * config.steps))
        done = (step + 1) / peak if step < peak else 1 - (step - peak) / max(1, config.steps - peak)
        return (1 + min(1.0, done) * (SLANT_RATIO - 1)) / SLANT_RATIO
    if step < config.warmup:
        return (step + 1) / (config.warmup + 1)
    if config.schedule in ("constant", "plateau"):
        return 1.0
    if config.schedule == "inverse_sqrt":  # Vaswani et al. 2017, 5.3
        return math.sqrt((config.warmup + 1) / (step + 1))
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    if config.schedule == "cosine":
        return config.final_rate + (1 - config.final_rate) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    return 1 - (1 - config.final_rate) * min(1.0, done)


def optimizer_tensors(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """All that the optimisers remember, by name, for a checkpoint."""
    tensors = {}
    for number, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"optimizer.{number}.{index}.{name}"] = torch.as_tensor(value)
    return tensors


def load_optimizer_tensors(optimizers: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    for number, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "optimizer" and rest.startswith(f"{number}."):
                _, index, field = rest.split(".", 2)
                state.setdefault(int(index), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
