"""Short clips that are made up here, with captions whose truth is known: shapes and digits that move.

moving-shapes    "a small red circle moves left"                 shape, colour, size, direction
moving-digits    "the digit 7 moves up"                          scikit-learn's 8x8 digits; direction
                 "the digit 7 moves up and the digit 2 moves left"

A clip's name says all of it, so that it is drawn when it is asked for; combinations that test the model are in no
clip of the training part, but each of their words is.

Shapes: H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from .seen import SeenRow

SIDE, FRAMES, DIGIT = 32, 8, 8
COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 180, 60),
    "blue": (50, 80, 230),
    "yellow": (240, 220, 50),
    "white": (245, 245, 245),
}
FORMS = ("circle", "square", "triangle", "cross")
SIZES = {"small": 3, "large": 6}
DIRECTIONS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
STEP = 2  # pixels a frame
CLIPS = {"train": 4_000, "valid": 500, "test": 500}
VERSION = "clips 1"
UNSEEN = 5  # one combination in so many is kept for the test


def shape_rows() -> dict[str, list[SeenRow]]:
    """Clips by part: "shape/red/circle/small/left/12" is the twelfth of its kind, and begins elsewhere."""
    kinds = [
        (a + b + c + 2 * d, (colour, form, size, direction))
        for a, colour in enumerate(COLOURS)
        for b, form in enumerate(FORMS)
        for c, size in enumerate(SIZES)
        for d, direction in enumerate(DIRECTIONS)
    ]
    return _dealt(
        [kind for place, kind in kinds if place % UNSEEN],
        [kind for place, kind in kinds if place % UNSEEN == 0],
        _shape_row,
    )


def _shape_row(kind: tuple[str, ...], number: int) -> SeenRow:
    colour, form, size, direction = kind
    clip = f"shape/{'/'.join(kind)}/{number}"
    return SeenRow(_frames(clip), (f"a {size} {colour} {form} moves {direction}",))


def digit_rows() -> dict[str, list[SeenRow]]:
    """One digit in a third of all clips, else two: "digits/7/up/2/left/12"."""
    movers = [(digit, direction) for digit in range(10) for direction in DIRECTIONS]
    kinds: list[tuple[int, tuple[str, ...]]] = []
    for one, (digit, direction) in enumerate(movers):
        kinds += [(1, (str(digit), direction))] * 20
        for two, (other, way) in enumerate(movers):
            if digit < other:  # so that there is one right order
                kinds.append((one + 2 * two, (str(digit), direction, str(other), way)))
    known = [kind for place, kind in kinds if place % UNSEEN]
    return _dealt(known, [kind for place, kind in kinds if place % UNSEEN == 0], _digit_row)


def _digit_row(kind: tuple[str, ...], number: int) -> SeenRow:
    said = [f"the digit {kind[place]} moves {kind[place + 1]}" for place in range(0, len(kind), 2)]
    return SeenRow(_frames(f"digits/{'/'.join(kind)}/{number}"), (" and ".join(said),))


def _frames(clip: str) -> tuple[str, ...]:
    return tuple(f"{clip}#{frame}" for frame in range(FRAMES))


def _dealt(
    known: Sequence[tuple[str, ...]], unseen: Sequence[tuple[str, ...]], row: Callable[[tuple[str, ...], int], SeenRow]
) -> dict[str, list[SeenRow]]:
    """Clips of known combinations to train and validate on, of others to test on; each clip has a number of its own."""
    random, parts = np.random.default_rng(0), {}
    number = 0
    for part, num in CLIPS.items():
        kinds = unseen if part == "test" else known
        rows = []
        for place in random.permutation(-(-num // len(kinds)) * len(kinds))[:num].tolist():
            rows.append(row(kinds[place % len(kinds)], number))
            number += 1
        parts[part] = rows
    return parts


# -- drawing -------------------------------------------------------------------------------------------------------


def draw_clip(name: str) -> np.ndarray:
    """One frame, (H, W, 3) of shapes or (H, W, 1) of digits."""
    clip, _, frame = name.rpartition("#")
    kind, *words, number = clip.split("/")
    return (_draw_shape if kind == "shape" else _draw_digits)(words, int(frame), int(number))


def _draw_shape(words: Sequence[str], frame: int, number: int) -> np.ndarray:
    random, (colour, form, size, direction) = np.random.default_rng(number), words
    radius = SIZES[size]
    y, x = _moved(_start(random, direction, radius + 1, SIDE - radius - 2), direction, frame)
    down, across = np.mgrid[:SIDE, :SIDE] - np.array([y, x])[:, None, None]
    inside = {
        "circle": down**2 + across**2 <= radius**2,
        "square": np.maximum(abs(down), abs(across)) <= radius,
        "triangle": (abs(down) <= radius) & (2 * abs(across) <= down + radius),
        "cross": (np.minimum(abs(down), abs(across)) <= radius / 3) & (np.maximum(abs(down), abs(across)) <= radius),
    }[form]
    pixels = random.integers(0, 30, size=(SIDE, SIDE, 1), dtype=np.uint8).repeat(3, axis=2)  # a dark ground
    pixels[inside] = COLOURS[colour]
    return pixels


def _draw_digits(words: Sequence[str], frame: int, number: int) -> np.ndarray:
    random = np.random.default_rng(number)
    pixels = np.zeros((SIDE, SIDE, 1), dtype=np.uint8)
    starts: list[tuple[int, int]] = []
    for place in range(0, len(words), 2):
        way = words[place + 1]
        start = _start(random, way, 0, SIDE - DIGIT)
        while any(abs(start[0] - y) < DIGIT and abs(start[1] - x) < DIGIT for y, x in starts):
            start = _start(random, way, 0, SIDE - DIGIT)  # beside each other, at first
        starts.append(start)
        written = _digits()[int(words[place])]
        known = 4 * len(written) // 5  # others are in clips of the test
        choices = written[known:] if number >= CLIPS["train"] + CLIPS["valid"] else written[:known]
        found = choices[random.integers(len(choices))]
        y, x = _moved(start, way, frame)
        part = pixels[y : y + DIGIT, x : x + DIGIT, 0]
        np.maximum(part, found, out=part)
    return pixels


def _start(random: np.random.Generator, direction: str, low: int, high: int) -> tuple[int, int]:
    """A place from where something stays in the picture."""
    ways = [STEP * (FRAMES - 1) * step for step in DIRECTIONS[direction]]
    y, x = (int(random.integers(low - min(0, way), high - max(0, way) + 1)) for way in ways)
    return y, x


def _moved(start: tuple[int, int], direction: str, frame: int) -> tuple[int, int]:
    down, across = DIRECTIONS[direction]
    return start[0] + STEP * down * frame, start[1] + STEP * across * frame


@cache
def _digits() -> dict[int, np.ndarray]:
    """scikit-learn's 8x8 digits by what they show, (n, 8, 8) each, from 0 to 255."""
    pixels, labels = digit_pictures()
    return {digit: pixels[labels == digit] for digit in range(10)}


@cache
def digit_pictures() -> tuple[np.ndarray, np.ndarray]:
    """All 1,797 of them, (N, 8, 8) uint8, and what they show."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return np.minimum(255, found.images * 16).astype(np.uint8), found.target
