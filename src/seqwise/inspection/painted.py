"""What a model painted: pictures side by side, step by step, and moving, as files and on a page that loads nothing.

Shapes: N pictures, T steps, H and W pixels, C channels.
"""

from __future__ import annotations

import io
import math
from base64 import b64encode
from pathlib import Path

import numpy as np
from PIL import Image

from .. import __version__
from ..errors import ConfigError
from ..pages.elements import Section, document, fact_list
from ..tensors import write_in_place
from ..wording import counted

GAP, GROUND = 2, 128  # pixels between pictures, and how grey they are
LONG_SIDE = 96  # pixels, at least: small pictures are shown larger, each pixel as a square
STRIPS = 8  # pictures that are shown step by step
MILLISECONDS, LAST = 160, 1_600  # of a step of the animation; of its end
STYLE = ".painted{image-rendering:pixelated;max-width:100%;height:auto;border:1px solid var(--rule)}"


def tiled(pictures: np.ndarray, columns: int) -> np.ndarray:
    """(N, H, W, C), row by row -> one picture (H', W', C)."""
    N, H, W, C = pictures.shape
    rows = math.ceil(N / columns)
    found = np.full((rows * (H + GAP) + GAP, columns * (W + GAP) + GAP, C), GROUND, dtype=np.uint8)
    for place, picture in enumerate(pictures):
        top, left = GAP + place // columns * (H + GAP), GAP + place % columns * (W + GAP)
        found[top : top + H, left : left + W] = picture
    return found


def side_by_side(steps: np.ndarray) -> np.ndarray:
    """(N, T, H, W, C) -> the last step of each, about as many in a row as rows."""
    return tiled(steps[:, -1], _columns(len(steps)))


def strip(steps: np.ndarray) -> np.ndarray:
    """A row for each picture, from its first step to its last."""
    return tiled(steps.reshape(-1, *steps.shape[2:]), steps.shape[1])


def moving(steps: np.ndarray) -> list[np.ndarray]:
    """All pictures after each step."""
    return [side_by_side(steps[:, : step + 1]) for step in range(steps.shape[1])]


def _columns(num: int) -> int:
    return math.ceil(math.sqrt(num))


def as_png(frames: list[np.ndarray], scale: int) -> bytes:
    """One picture, or an animation that repeats (APNG), which browsers show by themselves."""
    first, *others = [_enlarged(frame, scale) for frame in frames]
    written = io.BytesIO()
    if not others:
        first.save(written, "PNG", optimize=True)
        return written.getvalue()
    lengths = [MILLISECONDS] * len(others) + [LAST]
    first.save(written, "PNG", save_all=True, append_images=others, duration=lengths, loop=0)
    return written.getvalue()


def _enlarged(pixels: np.ndarray, scale: int) -> Image.Image:
    found = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    return found.resize((found.width * scale, found.height * scale), Image.Resampling.NEAREST)


def write_painted(folder: Path, steps: np.ndarray, *, title: str, command: str, facts: dict[str, str]) -> list[Path]:
    """The page and its pictures, (N, T, H, W, C), in a folder: what was written, the page first."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {folder}: is a file; name a folder.")
    scale = max(1, round(LONG_SIDE / max(steps.shape[2:4])))
    files = {
        "samples.png": as_png([side_by_side(steps)], scale),
        "steps.png": as_png([strip(steps[:STRIPS])], scale),
        "animation.png": as_png(moving(steps), scale),
    }
    folder.mkdir(parents=True, exist_ok=True)
    page = painted_page(files, steps, title=title, command=command, facts=facts)
    for name, content in {"index.html": page.encode(), **files}.items():
        write_in_place(folder / name, content)
    return [folder / name for name in ("index.html", *files)]


def painted_page(files: dict[str, bytes], steps: np.ndarray, *, title: str, command: str, facts: dict[str, str]) -> str:
    """With its pictures inside."""
    N, T = steps.shape[:2]
    shown = {name: f"data:image/png;base64,{b64encode(content).decode()}" for name, content in files.items()}

    def image(name: str, said: str) -> str:
        return f'<img class="painted" src="{shown[name]}" alt="{said}">'

    sections = [
        Section(
            "samples",
            "Samples",
            f"{counted(N, 'picture')} that the model painted; nobody chose among them.",
            image("samples.png", f"{counted(N, 'picture')} painted by the model"),
        ),
        Section(
            "steps",
            "Step by step",
            f"The canvas after each of {counted(T, 'step')}, from left to right, a row for each picture.",
            image("steps.png", f"the canvas of {counted(min(N, STRIPS), 'picture')} after each step"),
        ),
        Section(
            "animation",
            "Painting",
            "The same canvases, one after the other.",
            image("animation.png", "all pictures as they come about"),
        ),
    ]
    return document(
        title,
        sections,
        command=command,
        version=__version__,
        head=fact_list(facts),
        style=STYLE,
        has_pictures=True,
    )
