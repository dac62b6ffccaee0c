"""Pictures inside a page that loads nothing: PNG as data, once each, and drawings that show them again with heat above.

    defs      each picture once, in colour and in grey, by an id                shared(...)
    tiles     small drawings of the same picture, each with its own heat        Tile, tiles(...)

Heat is a tiny PNG that the browser stretches smoothly over the picture: a cell of a grid is one of its pixels.

Shapes: H and W pixels, C channels, h and w cells.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from PIL import Image

MAX_SIDE = 256  # of a picture on a page
MIN_SIDE = 64  # below, its pixels are drawn as squares
GREY_LOW, GREY_SPAN = 40.0, 150.0  # grey pictures keep to the middle, so that heat above them can be seen
STRONGEST = 0.8  # opacity of the strongest heat
COLD, HOT = np.array([190.0, 30.0, 20.0]), np.array([255.0, 226.0, 60.0])
FOR, AGAINST = np.array([40.0, 110.0, 255.0]), np.array([240.0, 70.0, 20.0])
Box = tuple[float, float, float, float]
"""Left, top, right and bottom edge, as shares of width and height."""


def as_box(edges: Iterable[float]) -> Box:
    left, top, right, bottom = (float(edge) for edge in edges)
    return left, top, right, bottom


def png(pixels: np.ndarray) -> str:
    """(H, W), or (H, W, C) with C = 1, 3 or 4 (red, green, blue and opacity), uint8, as an address of data."""
    image = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
    if max(image.size) > MAX_SIDE:
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + b64encode(file.getvalue()).decode()


def as_grey(pixels: np.ndarray) -> np.ndarray:
    """(H, W, C) -> (H, W, 1), neither black nor white."""
    brightness = pixels.astype(np.float64).mean(axis=2, keepdims=True) / 255
    return (GREY_LOW + GREY_SPAN * brightness).astype(np.uint8)


def heat(shares: np.ndarray) -> np.ndarray:
    """(h, w) from 0 to 1 -> red, green, blue and opacity (h, w, 4): the more, the brighter and the denser."""
    share = np.clip(shares, 0, 1)[..., None]
    colour = COLD + (HOT - COLD) * share
    return np.concatenate([colour, 255 * STRONGEST * share**0.8], axis=2).astype(np.uint8)


def signed_heat(shares: np.ndarray) -> np.ndarray:
    """(h, w) from -1 to 1 -> (h, w, 4): blue what speaks for something, red what speaks against it."""
    share = np.clip(shares, -1, 1)[..., None]
    colour = np.where(share < 0, AGAINST, FOR)
    return np.concatenate([colour, 255 * STRONGEST * np.abs(share) ** 0.8], axis=2).astype(np.uint8)


@dataclass(frozen=True)
class Drawn:
    """A picture that a page has once, by its id."""

    identity: str
    width: int
    height: int

    def shown(self, *, is_grey: bool = False) -> str:
        """SVG: the picture itself."""
        return f'<use href="#{self.identity}{"-grey" if is_grey else ""}"/>'

    def svg(self, inside: str, about: str, *, kind: str = "seen") -> str:
        """A drawing of the size of the picture, told in a sentence."""
        return (
            f'<svg class="{kind}" viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(about)}">'
            f"{inside}</svg>"
        )

    def overlay(self, rgba: np.ndarray) -> str:
        """SVG: what lies above all of it."""
        return f'<image href="{png(rgba)}" width="{self.width}" height="{self.height}" preserveAspectRatio="none"/>'

    def rectangle(self, box: Box, kind: str, opacity: float = 1.0) -> str:
        """SVG: a place of it."""
        left, top, right, bottom = box
        x, y, w, h = left * self.width, top * self.height, (right - left) * self.width, (bottom - top) * self.height
        see = "" if opacity >= 1 else f' opacity="{opacity:.3f}"'
        return f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}"{see}/>'


def shared(identity: str, pixels: np.ndarray, *, with_grey: bool = True) -> tuple[Drawn, str]:
    """A picture (H, W, C) by its id, and the HTML that brings it into the page."""
    height, width = pixels.shape[:2]
    versions = {"": pixels, **({"-grey": as_grey(pixels)} if with_grey else {})}
    rendering = ' image-rendering="pixelated"' if max(height, width) < MIN_SIDE else ""
    images = "".join(
        f'<image id="{identity}{suffix}" width="{width}" height="{height}" preserveAspectRatio="none"{rendering} '
        f'href="{png(version)}"/>'
        for suffix, version in versions.items()
    )
    defs = f'<svg class="shared" width="0" height="0" aria-hidden="true"><defs>{images}</defs></svg>'
    return Drawn(identity, width, height), defs


def image(pixels: np.ndarray, about: str, *, kind: str = "") -> str:
    """A picture that stands by itself."""
    height, width = pixels.shape[:2]
    small = " is-pixels" if max(height, width) < MIN_SIDE else ""
    return f'<img class="{kind}{small}" src="{png(pixels)}" width="{width}" height="{height}" alt="{escape(about)}">'


@dataclass(frozen=True)
class Tile:
    """A small drawing with what it is called, and a line below that."""

    drawing: str
    name: str
    below: str = ""


def tiles(found: Sequence[Tile]) -> str:
    """Side by side, as many as have room."""
    items = "".join(
        f'<li>{tile.drawing}<span class="name" dir="auto">{escape(tile.name)}</span>'
        f"{f'<small>{escape(tile.below)}</small>' if tile.below else ''}</li>"
        for tile in found
    )
    return f'<ul class="tiles">{items}</ul>'
