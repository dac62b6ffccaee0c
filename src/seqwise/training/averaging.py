"""A running mean of the weights over validations: it wanders less than the weights do (Polyak & Juditsky 1992).

    mean <- mean + (weights - mean) / min(n, over)        at validation n                        (1)

This is the averaging of the last checkpoints (Vaswani et al. 2017) with one copy of the weights instead of several:
older ones fade instead of dropping out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..run import renamed_weights

PREFIX = "average."


class WeightAverage:
    def __init__(self, model: nn.Module, over: int):
        self.model, self.over = model, over
        self.number = 0
        self.mean: dict[str, Tensor] = {}

    def load(self, saved: dict[str, Tensor]) -> None:
        """Take the mean from the tensors of a checkpoint that training goes on from, or goes back to."""
        found = {name.removeprefix(PREFIX): t for name, t in saved.items() if name.startswith(PREFIX)}
        self.number = int(found.pop("number", torch.zeros(())))
        self.mean = {name: tensor.clone() for name, tensor in renamed_weights(found, self.model).items()}

    @torch.no_grad()
    def add(self) -> None:
        """Take in the weights as they are now."""
        self.number += 1
        for name, weight in self.model.named_parameters():
            if name not in self.mean:
                self.mean[name] = weight.detach().clone()
            else:
                self.mean[name] += (weight - self.mean[name].to(weight)) / min(self.number, self.over)  # (1)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with the mean as its weights, and afterwards with its own."""
        with torch.no_grad():
            own = {name: weight.detach().clone() for name, weight in self.model.named_parameters()}
            for name, weight in self.model.named_parameters():
                weight.copy_(self.mean[name])
        try:
            yield
        finally:
            with torch.no_grad():
                for name, weight in self.model.named_parameters():
                    weight.copy_(own[name])

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        if not self.mean:
            return {}
        return {f"{PREFIX}{name}": tensor for name, tensor in self.mean.items()} | {
            f"{PREFIX}number": torch.tensor(self.number)
        }
