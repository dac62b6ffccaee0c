"""Drawn scenes: a few things of some shape, colour and size on a plain ground, drawn from a seed when asked for.

All that can be said of a scene is known exactly: boxes, classes, and the answer to every question. A curtain may hide a
side of it: of what is behind, nobody knows.

Shapes: S height and width, N things, F features of a region.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from .seen import FoundRegions

VERSION = 1  # of what is drawn; a change of it is a new one
SIZE = 64  # S, pixels
COLORS = {
    "red": (220, 40, 40),
    "green": (40, 160, 60),
    "blue": (50, 80, 220),
    "yellow": (240, 210, 50),
    "purple": (150, 60, 180),
    "black": (20, 20, 20),
}
RADII = {"small": 5.5, "large": 10.0}  # pixels
CURTAIN = (150, 150, 150)
CURTAINS = ("left", "right", "top", "bottom")
MAX_THINGS = 4
PARTS = ("train", "valid", "test")
LOOK = 6
"""Pixels a side to which the look of a region is shrunk."""
Grid = tuple[np.ndarray, np.ndarray]
DRAWN: dict[str, Callable[[Grid, float], np.ndarray]] = {
    "circle": lambda at, r: at[0] ** 2 + at[1] ** 2 <= r**2,
    "square": lambda at, r: np.maximum(np.abs(at[0]), np.abs(at[1])) <= 0.88 * r,
    "triangle": lambda at, r: (np.abs(at[0]) <= (at[1] + r) / 2) & (np.abs(at[1]) <= r),
    "cross": lambda at, r: (
        (np.minimum(np.abs(at[0]), np.abs(at[1])) <= 0.33 * r) & (np.maximum(np.abs(at[0]), np.abs(at[1])) <= r)
    ),
}
"""By shape: which pixels, as (across, down) from the middle, a thing of radius r covers."""
SHAPES = tuple(DRAWN)
PAIRS = tuple((color, shape) for color in COLORS for shape in SHAPES)
UNSEEN = frozenset((color, SHAPES[place % len(SHAPES)]) for place, color in enumerate(COLORS))
"""A shape for each colour: such things are in no picture of the training part."""


@dataclass(frozen=True)
class Thing:
    shape: str
    color: str
    size: str
    x: float
    """Of its middle, pixels from the left."""
    y: float
    """From the top."""

    @property
    def name(self) -> str:
        return f"{self.color} {self.shape}"

    @property
    def pair(self) -> tuple[str, str]:
        return self.color, self.shape

    @cached_property
    def covers(self) -> np.ndarray:
        """(S, S) bool."""
        down, across = np.mgrid[:SIZE, :SIZE] + 0.5
        return DRAWN[self.shape]((across - self.x, down - self.y), RADII[self.size])

    @cached_property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom edge of what is drawn, in pixels."""
        rows, columns = np.flatnonzero(self.covers.any(axis=1)), np.flatnonzero(self.covers.any(axis=0))
        return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


@dataclass(frozen=True)
class Scene:
    things: tuple[Thing, ...]
    """Those that can be seen, in the order in which they are drawn; none covers another."""
    ground: tuple[int, int, int] = (250, 250, 250)
    curtain: str | None = None
    """The side that it hides, if there is one."""

    def draw(self) -> np.ndarray:
        """Pixels (S, S, 3) uint8."""
        pixels = np.empty((SIZE, SIZE, 3), dtype=np.uint8)
        pixels[:] = self.ground
        for thing in self.things:
            pixels[thing.covers] = COLORS[thing.color]
        if self.curtain is not None:
            pixels[_hidden(self.curtain)] = CURTAIN
        return pixels

    def regions(self) -> FoundRegions:
        """A region for each thing and for the curtain: its look, shrunk, with its box and what it is."""
        pixels, S = self.draw(), SIZE
        boxes = [thing.box for thing in self.things]
        names = [thing.name for thing in self.things]
        if self.curtain is not None:
            rows, columns = (np.flatnonzero(_hidden(self.curtain).any(axis=axis)) for axis in (1, 0))
            boxes.append((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))
            names.append("curtain")
        features = np.stack([_look(pixels, box) for box in boxes])
        return FoundRegions(features, np.array(boxes, dtype=np.float32) / S, names)

    def only(self, *, shape: str | None = None, color: str | None = None) -> Thing | None:
        """The one thing of this shape or colour; None where there is none, or are several."""
        found = [thing for thing in self.things if shape in (None, thing.shape) and color in (None, thing.color)]
        return found[0] if len(found) == 1 else None


def _hidden(side: str) -> np.ndarray:
    """(S, S) bool: what a curtain at this side covers."""
    covered, third = np.zeros((SIZE, SIZE), dtype=bool), SIZE // 3
    shown = covered.T if side in ("left", "right") else covered  # its first rows are where the side begins
    shown[slice(third) if side in ("left", "top") else slice(-third, None)] = True
    return covered


def _look(pixels: np.ndarray, box: tuple[int, int, int, int]) -> np.ndarray:
    """What is in a box, shrunk to LOOK x LOOK pixels from -1 to 1: (F,) float32."""
    left, top, right, bottom = box
    rows = top + (np.arange(LOOK) + 0.5) * (bottom - top) / LOOK
    columns = left + (np.arange(LOOK) + 0.5) * (right - left) / LOOK
    return (pixels[rows.astype(int)[:, None], columns.astype(int)].reshape(-1) / 127.5 - 1).astype(np.float32)


def make_scene(
    random: np.random.Generator,
    pairs: Collection[tuple[str, str]] = PAIRS,
    *,
    must_have: Collection[tuple[str, str]] = (),
    curtain: str | None = None,
) -> Scene:
    """One to four things of these colours and shapes, no two alike in both, one of them of `must_have` if any are."""
    chosen = [sorted(pairs)[place] for place in random.permutation(len(pairs))[: 1 + random.integers(MAX_THINGS)]]
    if must_have and not set(chosen) & set(must_have):
        chosen[0] = sorted(must_have)[random.integers(len(must_have))]
    covered = np.zeros((SIZE, SIZE), dtype=bool) if curtain is None else _hidden(curtain)
    things = []
    for color, shape in chosen:
        for _ in range(40):  # places; where none is free, the thing stays away
            size = ("small", "large")[random.integers(2)]
            x, y = random.uniform(RADII[size] + 1, SIZE - RADII[size] - 1, size=2).round(1).tolist()
            thing = Thing(shape, color, size, x, y)
            if not covered[_around(thing)].any():
                covered |= thing.covers
                things.append(thing)
                break
    ground = tuple((230 + random.integers(26, size=3)).tolist())
    return Scene(tuple(things), (ground[0], ground[1], ground[2]), curtain)


def _around(thing: Thing) -> tuple[slice, slice]:
    """The rows and columns of its box and of two pixels around."""
    left, top, right, bottom = thing.box
    return slice(max(0, top - 2), bottom + 2), slice(max(0, left - 2), right + 2)


@dataclass(frozen=True)
class Drawing:
    """Scenes by name, such as "train/17" or "test/4/left": the part, the number, and the curtain if there is one."""

    seed: int = 0

    def scene(self, name: str) -> Scene:
        return _scene(self.seed, name)


@lru_cache(maxsize=4096)
def _scene(seed: int, name: str) -> Scene:
    part, number, *curtain = name.split("/")
    random = np.random.default_rng((VERSION, seed, PARTS.index(part), int(number)))
    seen = [pair for pair in PAIRS if pair not in UNSEEN]
    is_test = part == "test"
    return make_scene(
        random, PAIRS if is_test else seen, must_have=UNSEEN if is_test else (), curtain=curtain[0] if curtain else None
    )


class ScenePictures(Drawing):
    """Where pictures of scenes are from."""

    def read(self, name: str) -> np.ndarray:
        return self.scene(name).draw()

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"scenes {VERSION} {self.seed} {SIZE}".encode()).hexdigest()


class SceneRegions(Drawing):
    """Where the regions of scenes are from."""

    def regions(self, name: str) -> FoundRegions:
        return self.scene(name).regions()

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"regions of scenes {VERSION} {self.seed} {SIZE} {LOOK}".encode()).hexdigest()
