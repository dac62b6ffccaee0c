"""What a model of pictures and words learns from besides hidden words: hidden regions, and words beside regions.

    features   score = - mean of (f - W norm(gelu(V region)))^2          (1)   Tan & Bansal 2019, Chen et al. 2020
    classes    log p = log softmax(W norm(gelu(V region)))               (2)   of what a region shows
    alignment  score = - transport distance of words and regions         (3)   layers/transport.py; where they match

All read the regions, which stand beside the words (layers/stream.py). (1) and (3) are no probabilities.

Shapes: B batch, T words, N regions, D model width, F features, L classes, R regions that count.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data.batch import Labels, Regions
from .stream import Prediction, Stream
from .transport import transport_distance

STD = 0.02


class HiddenRegionHead(nn.Module):
    """What (1) and (2) share."""

    continues = False

    def __init__(self, model_dim: int, output_dim: int):
        super().__init__()
        self.transform, self.norm = nn.Linear(model_dim, model_dim), nn.LayerNorm(model_dim)
        self.output = nn.Linear(model_dim, output_dim)
        for layer in (self.transform, self.output):
            nn.init.normal_(layer.weight, std=STD)
            nn.init.zeros_(layer.bias)

    def expect(self, regions: Tensor) -> Tensor:
        """(..., D) -> (..., F or L)."""
        return self.output(self.norm(functional.gelu(self.transform(regions))))

    def of_hidden(self, stream: Stream, wanted: Regions) -> tuple[Tensor, Tensor]:
        """(R, F or L) of those that count, and which these are, (B, N)."""
        counts = wanted.is_target
        if counts is None:
            counts = torch.ones(wanted.shape, dtype=torch.bool, device=wanted.features.device)
        return self.expect(beside(stream).hidden[counts]), counts


class RegionFeatureHead(HiddenRegionHead):
    def score(self, stream: Stream, wanted: Regions) -> Tensor:
        """(1): (B, N), zero where nothing is asked."""
        told, counts = self.of_hidden(stream, wanted)
        error = (told - wanted.features[counts]).square().mean(dim=-1)
        return told.new_zeros(counts.shape).masked_scatter(counts, -error)

    objective = score


class RegionClassHead(HiddenRegionHead):
    def score(self, stream: Stream, wanted: Regions) -> Tensor:
        """(2): nats, (B, N), zero where nothing is asked."""
        told, counts = self.of_hidden(stream, wanted)
        assert wanted.labels is not None
        log_probs = -functional.cross_entropy(told, wanted.labels[counts], reduction="none")
        return told.new_zeros(counts.shape).masked_scatter(counts, log_probs)

    objective = score

    def predict(self, stream: Stream, wanted: object = None) -> Prediction:
        """What each region shows, hidden or not."""
        log_probs = self.expect(beside(stream).hidden).log_softmax(dim=-1)
        return Prediction(log_probs.argmax(dim=-1), log_probs)


class AlignmentHead(nn.Module):
    continues = False

    def score(self, stream: Stream, wanted: Labels) -> Tensor:
        """(3): (B, 1), zero of words and a picture that do not belong together."""
        regions = beside(stream)
        is_word, is_region = _there(stream), _there(regions)
        distance = transport_distance(stream.hidden, regions.hidden, is_word, is_region)
        return -(distance * wanted.ids).unsqueeze(1)

    objective = score


def beside(stream: Stream) -> Stream:
    assert stream.beside is not None  # a body that reads both
    return stream.beside


def _there(stream: Stream) -> Tensor:
    if stream.is_step is not None:
        return stream.is_step
    return torch.ones(stream.hidden.shape[:2], dtype=torch.bool, device=stream.hidden.device)
