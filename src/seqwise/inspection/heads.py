"""What attention looks at: the maps of every layer and head, and in a few numbers what each head does.

    on itself, on the one before, on the one behind, on the first: the mean share of attention that goes there   (1)
    distance: the mean number of steps between a token and what it looks at                      (2)
    spread: exp of the mean entropy, as if it looked evenly at so many places                    (3)

Shapes: H heads, T steps, S steps seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .trace import Trace

SELF, CAUSAL, CROSS = "self", "causal", "cross"


@dataclass(frozen=True)
class Head:
    on_itself: float
    on_the_one_before: float
    on_the_one_behind: float
    """Where it sees what comes later; else zero."""
    on_the_first: float
    distance: float
    spread: float


@dataclass(frozen=True)
class AttentionMap:
    """One layer's attention in one pass."""

    site: str
    kind: str
    """self: a text looks at all of itself; causal: at what was read so far; cross: a target at its source."""
    weights: np.ndarray
    """(H, T, S); rows add up to one."""

    def heads(self) -> list[Head]:
        return [_head(weights, is_cross=self.kind == CROSS) for weights in self.weights]


def attention_maps(trace: Trace, num_steps: int = 0, apart: tuple[np.ndarray, int] | None = None) -> list[AttentionMap]:
    """Of a text of so many steps. `apart`: where a row of so many tokens was read as several (R, T), the token that
    each step is, -1 for none."""
    found = []
    for site, weights in trace.passes("attention", num_steps):
        noted = weights.detach().cpu().numpy()  # (R, H, T, S)
        whole = noted[0] if apart is None else _joined(noted, *apart)
        found.append(AttentionMap(site, _kind(site, noted), whole))
    return found


def _joined(noted: np.ndarray, steps: np.ndarray, num_tokens: int) -> np.ndarray:
    """Maps of rows that were read apart as one map, (H, T, S): from one row to another nothing looks."""
    found = np.zeros((noted.shape[1], num_tokens, num_tokens), dtype=noted.dtype)
    for weights, places in zip(noted, steps, strict=True):
        is_there = places >= 0
        found[:, places[is_there][:, None], places[is_there]] = weights[:, is_there][:, :, is_there]
    return found


def _kind(site: str, noted: np.ndarray) -> str:
    """By its place in the model, and by what it sees: to who reads on, what comes later is closed."""
    if ".cross" in site or site.endswith("alignment"):
        return CROSS
    sees_later = noted.shape[2] == noted.shape[3] and bool(np.triu(noted, k=1).any())
    return SELF if sees_later or ".encoder." in f".{site}." else CAUSAL


def _head(weights: np.ndarray, *, is_cross: bool) -> Head:
    T, S = weights.shape
    t, s = np.arange(T)[:, None], np.arange(S)[None, :]
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(axis=1).mean()
    if is_cross:  # steps of another sequence: there is no distance between them
        return Head(np.nan, np.nan, np.nan, float(weights[:, 0].mean()), np.nan, float(np.exp(entropy)))
    before, behind = np.diagonal(weights, offset=-1), np.diagonal(weights, offset=1)
    return Head(
        float(np.diagonal(weights).mean()),
        float(before.mean()) if len(before) else 0.0,
        float(behind.mean()) if len(behind) else 0.0,
        float(weights[:, 0].mean()),
        float((weights * np.abs(t - s)).sum(axis=1).mean()),
        float(np.exp(entropy)),
    )
