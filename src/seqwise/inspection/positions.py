"""How a model of attention knows where a token stands: its position vectors, and how alike they are by distance.

    similarity(d) = mean over t of cosine(p_t, p_{t+d})                                          (1)

Rotary positions are no vectors: queries and keys are turned by an angle for each place, and a product depends on the
distance alone. What is shown of them is the product of a vector of ones with itself, d places apart   (2)

Shapes: C places, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from ..layers.positions import sinusoidal_table

MAX_POSITIONS = 256


@dataclass(frozen=True)
class Positions:
    kind: str
    """learned, sinusoidal or rotary."""
    vectors: np.ndarray
    """(C, D); for rotary the cosines of the angles, (C, K/2)."""
    by_distance: list[float]
    """(1) or (2) for d = 0, 1, 2, ..."""


def positions_of(model: object) -> Positions | None:
    """None where order is known by other means: a state, a window, counts."""
    body: Any = getattr(model, "body", None)
    body = getattr(body, "words", body)  # who reads pictures beside them
    kind = getattr(getattr(body, "config", None), "positions", None)
    if kind in (None, "learned") and isinstance(getattr(body, "positions", None), nn.Embedding):
        vectors = body.positions.weight.detach()[:MAX_POSITIONS].cpu().double().numpy()
        return Positions("learned", vectors, similarity_by_distance(vectors))
    if kind is None:
        return None
    if kind == "rotary":
        cosines = body.turns[:MAX_POSITIONS].real.double().cpu().numpy()  # (C, K/2)
        return Positions("rotary", cosines, cosines.mean(axis=1).tolist())  # (2)
    if kind == "sinusoidal":
        places = min(MAX_POSITIONS, getattr(model, "context", None) or MAX_POSITIONS)
        vectors = sinusoidal_table(places, body.output_dim).double().numpy()
    else:
        table = body.target_positions.weight if hasattr(body, "target_positions") else body.position_table
        vectors = table.detach()[:MAX_POSITIONS].cpu().double().numpy()
    return Positions(kind, vectors, similarity_by_distance(vectors))


def similarity_by_distance(vectors: np.ndarray) -> list[float]:
    """(1)"""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1.0)
    cosines = directions @ directions.T
    return [float(np.diagonal(cosines, offset=d).mean()) for d in range(len(vectors))]
