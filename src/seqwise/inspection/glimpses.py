"""The path of an eye over a picture, and a picture as it is painted, from what a model notes at each step. Only
names and shapes of notes are asked for, no family is known here:

    "place"      (B, 2)             at each glimpse: its middle, x and y from -1 to 1
    "glimpse"    (B, S, C, g, g)    at each glimpse: what was seen, in S patches, each twice as wide as the one before
    "canvas"     (B, C*H*W)         at each step: the picture as it is so far, as log odds of each pixel
    "read box", "write box"  (B, 4) at each step: left, top, right and bottom edge, as shares of width and height

Shapes: T steps, S scales, g pixels of a patch, C channels, K answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.batch import Images
from .trace import Trace

PAINTED = ("canvas", "read box", "write box")


@dataclass(frozen=True)
class Glimpses:
    """Where the eye went, and what it saw there."""

    places: np.ndarray
    """(T, 2): x and y, as shares of width and height."""
    boxes: np.ndarray
    """(T, S, 4): what each patch covers, the one in most detail first."""
    patches: np.ndarray
    """(T, S, g, g, C) uint8."""
    answers: list[str]
    """Those that are followed from glimpse to glimpse; none where the model answers only at the end."""
    probabilities: np.ndarray
    """(T, K) of each after each glimpse."""


def glimpses_of(
    trace: Trace, images: Images, answers: Sequence[str], probabilities: Callable[[], np.ndarray] | None
) -> Glimpses | None:
    """None where nobody moves an eye."""
    sites = [site for site, what in trace if what == "place" and trace.calls((site, what))[0].dim() == 2]
    if not sites:
        return None
    places = trace[sites[0], "place"][0].detach().double().cpu().numpy()  # (T, 2)
    height, width = images.pixels.shape[-2:]
    middles = (places.clip(-1, 1) + 1) / 2 * [width - 1, height - 1] + 0.5  # in pixels, from the edge
    patches, boxes = np.zeros((len(places), 0, 1, 1, 1), dtype=np.uint8), np.zeros((len(places), 0, 4))
    if (sites[0], "glimpse") in trace and trace.calls((sites[0], "glimpse"))[0].dim() == 5:
        seen = np.stack([call[0].detach().double().cpu().numpy() for call in trace.calls((sites[0], "glimpse"))])
        patches = as_bytes(seen.transpose(0, 1, 3, 4, 2))  # (T, S, g, g, C)
        sides = seen.shape[-1] * 2.0 ** np.arange(seen.shape[1])  # pixels that each scale covers
        low, high = (middles[:, None] + sign * sides[:, None] / 2 for sign in (-1, 1))  # (T, S, 2)
        boxes = np.concatenate([low, high], axis=-1) / [width, height, width, height]
    told = np.zeros((len(places), 0)) if probabilities is None else probabilities()
    kept = list(answers) if len(told) == len(places) and told.shape[1] == len(answers) else []
    shares = middles / [width, height]
    return Glimpses(shares, boxes, patches, kept, told if kept else np.zeros((len(places), 0)))


@dataclass(frozen=True)
class Painting:
    """A picture as it comes about, step by step."""

    canvases: np.ndarray
    """(T, H, W, C) uint8."""
    reads: np.ndarray | None
    """(T, 4): where the picture was read before each step; None where all of it was."""
    writes: np.ndarray | None
    """(T, 4): where was written."""


def painting_of(trace: Trace, images: Images) -> Painting | None:
    """None where nothing is painted."""
    noted = {what: trace[site, what][0].detach().double().cpu() for site, what in trace if what in PAINTED}
    if "canvas" not in noted:
        return None
    steps = noted["canvas"].sigmoid().view(-1, *images.pixels.shape[2:])  # (T, C, H, W)
    boxes = [noted[what].numpy() if what in noted else None for what in ("read box", "write box")]
    return Painting(as_bytes(steps.permute(0, 2, 3, 1).numpy()), *boxes)


def as_bytes(values: np.ndarray) -> np.ndarray:
    """From 0 to 1 -> 0 to 255."""
    return (255 * np.clip(values, 0, 1)).round().astype(np.uint8)
