"""Where in a picture was looked, from what a model notes while it reads: maps of attention and of activity. Only names
and shapes of notes are asked for, no family is known here:

    "attention"  (B, H, A, S)       A look at S: words, regions, frames, or words and then regions
    "place"      (B, 1, A, S)       the same, of who chooses one place
    "grid"       (B*T, F, h, w)     what convolutions make of each frame

Who looks and what is looked at is told by how many there are: T words, N regions (N + 1 where the whole picture, or a
token for it, stands before them), words and regions one behind the other, or the frames of a clip.

Shapes: B batch, H heads, A who looks, S what is looked at, T words, N regions, F frames, h and w cells, g pixels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..data.batch import Images, Regions
from ..models.eyes import grid_boxes
from .trace import Trace

WORDS, REGIONS, FRAMES = "words", "regions", "frames"
ALL_HEADS = "all heads"
MAX_TILES = 2_500  # small pictures on a page; of more, only the mean over heads is drawn
HEAD = re.compile(r"head \d+$")
SIDES = ("encoder", "decoder", "words", "regions", "eyes")
"""Parts of a model that a layer is named after."""
LOOKS = {"attention": "attention", "place": "the chosen place,"}
"""What is noted of who looks where, as a title says it."""


@dataclass(frozen=True)
class Places:
    """Where regions are: in which frame, and where in it."""

    boxes: np.ndarray
    """(N, 4): left, top, right and bottom edge, as shares of width and height."""
    frames: np.ndarray
    """(N,)."""
    grid: tuple[int, int] | None = None
    """Rows and columns, where the regions of each frame are cells of a grid, row by row."""
    names: list[str] = field(default_factory=list)
    """What each region shows, where somebody said."""

    @property
    def num_frames(self) -> int:
        return int(self.frames.max()) + 1

    def by_frame(self, values: np.ndarray) -> np.ndarray:
        """(..., N) -> their sums (..., F)."""
        return np.stack([values[..., self.frames == frame].sum(axis=-1) for frame in range(self.num_frames)], axis=-1)


def places_of(regions: Regions) -> Places:
    """Of the regions of one row, as eyes found them."""
    N = regions.shape[1]
    if regions.boxes is None:  # each is a frame
        return Places(np.tile([0.0, 0.0, 1.0, 1.0], (N, 1)), np.arange(N), (1, 1))
    boxes = regions.boxes[0].double().cpu().numpy()
    repeats = (np.abs(boxes - boxes[0]) < 1e-6).all(axis=1)
    period = int(np.flatnonzero(repeats[1:])[0]) + 1 if repeats[1:].any() else N
    is_clip = N % period == 0 and np.allclose(boxes, np.tile(boxes[:period], (N // period, 1)), atol=1e-5)
    size = period if is_clip else N
    return Places(boxes, np.arange(N) // size, _grid(boxes[:size]))


def _grid(boxes: np.ndarray) -> tuple[int, int] | None:
    """Rows and columns of boxes that are the cells of one, row by row."""
    width = boxes[0, 2] - boxes[0, 0]
    columns = round(1 / width) if width > 0 else 0
    if columns < 1 or len(boxes) % columns:
        return None
    rows = len(boxes) // columns
    return (rows, columns) if np.allclose(boxes, grid_boxes(rows, columns).numpy(), atol=1e-4) else None


def places_of_patches(num: int, images: Images) -> Places | None:
    """Of so many squares of one size that cover the pictures, row by row; None where none do."""
    (height, width), frames = images.pixels.shape[-2:], images.shape[1]
    for each, count in ((num, 1), (num / frames, frames)):
        rows = math.sqrt(each * height / width)
        columns = rows * width / height
        if each == int(each) and round(rows) * round(columns) == each and abs(rows - round(rows)) < 0.02 * rows:
            boxes = np.tile(grid_boxes(round(rows), round(columns)).numpy(), (count, 1))
            return Places(boxes, np.repeat(np.arange(count), int(each)), (round(rows), round(columns)))
    return None


@dataclass(frozen=True)
class Heat:
    """Of one word, head or layer: how much goes to each place."""

    name: str
    values: np.ndarray
    """(N,) of regions, (F,) of frames, or (F, h, w) of cells."""

    @property
    def spread(self) -> float:
        """As if so many places had equal shares."""
        shares = self.values.clip(min=0) / max(float(self.values.clip(min=0).sum()), 1e-12)
        return float(np.exp(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum()))


@dataclass(frozen=True)
class Maps:
    """Small pictures that belong together, in panels to choose from."""

    title: str
    about: str
    panels: list[tuple[str, list[Heat]]]
    """By the name of the panel: a layer and a head."""
    places: Places | None = None
    """Of what has shares; None where the cells of a grid tell theirs."""
    even: float | None = None
    """The share that each place would have of attention that goes everywhere alike; None where values are no shares."""

    @property
    def first(self) -> int:
        """The panel that is shown before one is chosen: of the last layer the mean over its heads."""
        means = [number for number, (name, _) in enumerate(self.panels) if not HEAD.search(name)]
        return means[-1] if means else 0

    def stands_out(self, found: Sequence[Heat]) -> bool:
        """Whether some place has more than twice an even share."""
        return self.even is None or max(float(heat.values.max()) for heat in found) > 2 * self.even

    def brightness(self, values: np.ndarray) -> np.ndarray:
        """From 0 to 1: nothing up to an even share, all at four of them, or at the largest value where that is more."""
        if self.even is None:
            return (values - values.min()) / max(float(np.ptp(values)), 1e-12)
        top = max(float(values.max()), min(1.0, 4 * self.even))
        return np.clip((values - self.even) / max(top - self.even, 1e-12), 0, 1)


@dataclass(frozen=True)
class Looked:
    """What maps are read off: the names of words and the places of regions of the row that was read."""

    words: Sequence[str]
    """A name for each step: of the word that is read there, or that is written next."""
    num_steps: int
    """As many, and padding behind them."""
    places: Places | None


def picture_maps(trace: Trace, looked: Looked, images: Images | None) -> list[Maps]:
    """All that was noted of who looks where, by who looks at what; layers and heads are its panels."""
    found: dict[str, Maps] = {}
    for site, what in trace:
        if what not in LOOKS or trace.calls((site, what))[0].dim() != 4:
            continue
        for number, weights in enumerate(_passes(trace, site, what), start=1):
            layer = _named(site) or (f"layer {number}" if number > 1 else "")
            for maps in _maps_of(LOOKS[what], layer, weights, looked, images):
                found.setdefault(maps.title, replace(maps, panels=[])).panels.extend(maps.panels)
    return list(found.values())


def _passes(trace: Trace, site: str, what: str) -> Iterator[np.ndarray]:
    """(H, A, S) of each time that a layer read the whole row; of who goes step by step, of all steps."""
    calls = trace.calls((site, what))
    is_whole = len(calls) > 1 and calls[0].shape[2] > 1
    for call in calls if is_whole else [trace[site, what]]:
        yield call[0].detach().double().cpu().numpy()


FROM_WORDS = "Where each word looks: bright places have more than an even share of its attention."
FROM_PLACES = "How much each place looks at a word: bright places give it more than an even share of their attention."
FROM_WHOLE = "Where the token that stands for the whole picture looks, head by head."
FROM_ALL = "Where places look on average, head by head: bright ones are read by many."


def _maps_of(title: str, layer: str, weights: np.ndarray, looked: Looked, images: Images | None) -> Iterator[Maps]:
    """Of one layer, (H, A, S)."""
    places = looked.places
    if places is None and images is not None:  # patches, behind a token for the whole
        sizes = (weights.shape[2] - 1, weights.shape[2])
        places = next((p for p in (places_of_patches(size, images) for size in sizes) if p is not None), None)
    if places is None:
        return
    rows, columns = (_sides(size, looked, places) for size in weights.shape[1:])
    even = 1 / weights.shape[2]
    words, regions = (weights[:, rows.get(side, slice(0))] for side in (WORDS, REGIONS))
    if WORDS in rows and REGIONS in columns:
        panels = _by_word(layer, words[:, :, columns[REGIONS]], looked.words)
        yield Maps(f"{title} from words to places", FROM_WORDS, panels, places, even)
    if WORDS in rows and FRAMES in columns:
        panels = _by_word(layer, words[:, :, columns[FRAMES]], looked.words)
        yield Maps(f"{title} from words to frames", FROM_WORDS, panels, _whole_frames(places), even)
    if REGIONS in rows and WORDS in columns:
        panels = _by_word(layer, regions[:, :, columns[WORDS]].transpose(0, 2, 1), looked.words)
        yield Maps(f"{title} from places to words", FROM_PLACES, panels, places, even)
    if REGIONS in rows and REGIONS in columns:
        if rows[REGIONS].start == 1 and WORDS not in rows:
            panel = _by_head(layer, weights[:, 0, columns[REGIONS]])
            yield Maps(f"{title} from the whole picture to places", FROM_WHOLE, [panel], places, even)
        panel = _by_head(layer, regions[:, :, columns[REGIONS]].mean(axis=1))
        yield Maps(f"{title} among places", FROM_ALL, [panel], places, even)


def _sides(size: int, looked: Looked, places: Places) -> dict[str, slice]:
    """Which of so many steps are words and which regions."""
    N, T, found = len(places.boxes), looked.num_steps, dict[str, slice]()
    words = slice(0, len(looked.words))
    if T and size == T:
        found[WORDS] = words
    elif size in (N, N + 1):
        found[REGIONS] = slice(size - N, size)
    elif T and size in (T + N, T + N + 1):
        found |= {WORDS: words, REGIONS: slice(size - N, size)}
    elif size == places.num_frames:
        found[FRAMES] = slice(0, size)
    return found


def _whole_frames(places: Places) -> Places:
    F = places.num_frames
    return Places(np.tile([0.0, 0.0, 1.0, 1.0], (F, 1)), np.arange(F), (1, 1))


def _by_word(layer: str, weights: np.ndarray, names: Sequence[str]) -> list[tuple[str, list[Heat]]]:
    """(H, T, N): a small picture for each word, in a panel for each head."""
    several = {ALL_HEADS: weights.mean(axis=0)} | {f"head {head}": each for head, each in enumerate(weights, start=1)}
    panels = several if len(weights) > 1 else {"": weights[0]}
    return [
        (", ".join(filter(None, (layer, panel))), [Heat(name, row) for name, row in zip(names, each, strict=True)])
        for panel, each in panels.items()
    ]


def _by_head(layer: str, weights: np.ndarray) -> tuple[str, list[Heat]]:
    """(H, N): a small picture for each head, in one panel."""
    heads = [Heat(f"head {head}", values) for head, values in enumerate(weights, start=1)]
    return layer, [Heat(ALL_HEADS, weights.mean(axis=0)), *heads] if len(heads) > 1 else heads


def pooling_maps(trace: Trace, places: Places | None) -> Maps | None:
    """Where a head that pools by attention looks; None where there is none."""
    noted = trace.all("pooling")
    if not noted or places is None or noted[0][1].shape[-1] != len(places.boxes):
        return None
    weights = noted[0][1].flatten(0, -2)[0].detach().double().cpu().numpy()
    about = "How much of what the answer is read from comes from each place; a large share need not speak for it."
    return Maps("Attention pooling", about, [("", [Heat("the answer", weights)])], places, 1 / len(weights))


def energy_maps(trace: Trace) -> Maps | None:
    """How long the vector of each cell is, behind each block of convolutions; None where there are none."""
    found = []
    for site, grid in trace.all("grid"):
        lengths = grid.detach().double().norm(dim=1).cpu().numpy()  # (F, h, w)
        found.append(Heat(f"{_named(site)}, {lengths.shape[1]} x {lengths.shape[2]} cells", lengths))
    if not found:
        return None
    about = "How strongly each cell answers, block by block: the length of its vector. It need not speak for anything."
    return Maps("Activity of the eyes", about, [("", found)])


def fewer_panels(maps: Sequence[Maps]) -> tuple[list[Maps], bool]:
    """All of them, or where that would be too much for a page their means over heads; and whether that was so."""
    if sum(len(tiles) for each in maps for _, tiles in each.panels) <= MAX_TILES:
        return list(maps), False
    return [replace(each, panels=[panel for panel in each.panels if not HEAD.search(panel[0])]) for each in maps], True


def _named(site: str) -> str:
    """'body.eyes.network.blocks.2' -> 'eyes, layer 3'; the name of its side, and its number."""
    parts = site.split(".")
    sides = [part for part in parts if part in SIDES][-1:]
    numbers = [f"layer {int(part) + 1}" for part in parts if part.isdigit()][:1]
    return ", ".join([*sides, *numbers])
