"""Words in their context, read off a language model that others have trained: its layers, mixed by learned weights.

    x_t = scale * sum over layers l of softmax(s)_l h_l,t              Peters et al. 2018, equation 1

The language model stays as it is: only s and the scale are learned, for what is asked for here. Layers with a large
weight hold what this task needs; the run's card and the page of an inspection show them.

Shapes: B batch, T steps, K characters of a word, D width of a layer, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from .notes import pause_recording


class Layered(Protocol):
    """What is read: words, as characters, to layers."""

    layer_dim: int
    num_layers: int

    def layers(self, characters: Tensor, lengths: Tensor) -> list[Tensor]:
        """(B, T, K) -> L times (B, T, D)."""
        ...


@dataclass(frozen=True)
class LayerWeights:
    """What training made of the mix."""

    shares: dict[str, float]
    """Of each layer by its name, the lowest first: softmax(s), which sums to one."""
    scale: float

    def __str__(self) -> str:
        """ "embeddings 0.21, layer 1 0.55, layer 2 0.24, scale 1.08"."""
        return ", ".join(f"{name} {value:.2f}" for name, value in {**self.shares, "scale": self.scale}.items())


def layer_weights(model: object) -> LayerWeights | None:
    """Of a model that reads features beside its words; None of any other."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    found = next((module for module in modules if isinstance(module, ContextualFeatures)), None)
    if found is None:
        return None
    names = ["embeddings", *(f"layer {number}" for number in range(1, len(found.mix)))]
    return LayerWeights(dict(zip(names, found.weights.tolist(), strict=True)), found.scale.item())


class ContextualFeatures(nn.Module):
    def __init__(self, reader: nn.Module, layer_dim: int, num_layers: int):
        super().__init__()
        self.reader, self.output_dim = reader, layer_dim
        self.mix, self.scale = nn.Parameter(torch.zeros(num_layers)), nn.Parameter(torch.ones(()))
        for weight in reader.parameters():
            weight.requires_grad_(False)

    @property
    def weights(self) -> Tensor:
        """Of the layers, (L,): they sum to one."""
        return self.mix.softmax(dim=0)

    def train(self, mode: bool = True) -> ContextualFeatures:
        """What is read stays as it is: nothing of it is dropped."""
        super().train(mode)
        self.reader.eval()
        return self

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, K), (B,) -> (B, T, D)."""
        with torch.no_grad(), pause_recording():  # no gradient reaches it, and to look inside it there is its own run
            layers = torch.stack(self.reader.layers(characters, lengths))  # type: ignore[operator]  # (L, B, T, D)
        return self.scale * torch.einsum("l,lbtd->btd", self.weights, layers)
