"""What was looked at in a picture, from what a model notes while it reads: maps of attention and of activity, the path
of its eye, and a picture as it is painted. Only names and shapes of notes are asked for, no family is known here:

    "attention"  (B, H, A, S)       A look at S: words, regions, frames, or words and then regions
    "place"      (B, 1, A, S)       the same, of who chooses one place
    "grid"       (B*T, F, h, w)     what convolutions make of each frame
    "place"      (B, 2)             at each glimpse: its middle, x and y from -1 to 1
    "glimpse"    (B, S, C, g, g)    at each glimpse: what was seen, in S patches, each twice as wide as the one before
    "canvas"     (B, C, H, W)       at each step: the picture as it is so far, from 0 to 1
    "reading window", "writing window"   (B, 4)   at each step: left, top, right and bottom edge, as shares

Who looks and what is looked at is told by how many there are: T words, N regions (N + 1 where the whole picture, or a
token for it, stands before them), words and regions one behind the other, or the frames of a clip.

Shapes: B batch, H heads, A who looks, S what is looked at, T words, N regions, F frames, h and w cells, g pixels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.batch import Images, Regions
from ..models.eyes import grid_boxes
from .trace import Trace

WORDS, REGIONS, FRAMES = "words", "regions", "frames"
ALL_HEADS = "all heads"
MAX_TILES = 2_500  # small pictures on a page; of more, only the mean over heads is drawn
LOOKS = {"attention": "attention", "place": "the place that is chosen"}
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
    """By the name of the panel, such as that of a head."""
    places: Places | None = None
    """Of what has shares; None where the cells of a grid tell theirs."""
    is_shares: bool = True
    """Whether numbers are shares of attention; else lengths of vectors."""


@dataclass(frozen=True)
class Looked:
    """What maps are read off: the names of words and the places of regions of the row that was read."""

    words: Sequence[str]
    """A name for each step: of the word that is read there, or that is written next."""
    num_steps: int
    """As many, and padding behind them."""
    places: Places | None


def picture_maps(trace: Trace, looked: Looked, images: Images | None) -> list[Maps]:
    """All that was noted of who looks where, from the first layer to the last."""
    found = []
    for site, what in trace:
        if what not in LOOKS or trace.calls((site, what))[0].dim() != 4:
            continue
        for weights in _passes(trace, site, what):
            where = f"{_named(site)}: {LOOKS[what]}".removeprefix(": ")
            found += _maps_of(where, weights, looked, images)
    return found


def _passes(trace: Trace, site: str, what: str) -> Iterator[np.ndarray]:
    """(H, A, S) of each time that a layer read the whole row; of who goes step by step, of all steps."""
    calls = trace.calls((site, what))
    is_whole = len(calls) > 1 and calls[0].shape[2] > 1
    for call in calls if is_whole else [trace[site, what]]:
        yield call[0].detach().double().cpu().numpy()


def _maps_of(where: str, weights: np.ndarray, looked: Looked, images: Images | None) -> list[Maps]:
    places = looked.places
    if places is None and images is not None:  # patches, behind a token for the whole
        sizes = (weights.shape[2] - 1, weights.shape[2])
        places = next((p for p in (places_of_patches(size, images) for size in sizes) if p is not None), None)
    if places is None:
        return []
    rows, columns = (_sides(size, looked, places) for size in weights.shape[1:])
    found, words = [], weights[:, rows.get(WORDS, slice(0))]
    if WORDS in rows and REGIONS in columns:
        each = words[:, :, columns[REGIONS]]
        found.append(Maps(f"{where}, from words to places", FROM_WORDS, _panels(each, looked.words), places))
    if WORDS in rows and FRAMES in columns:
        frames = _whole_frames(places)
        found.append(Maps(f"{where}, from words to frames", FROM_WORDS, _panels(words, looked.words), frames))
    if REGIONS in rows and WORDS in columns:
        back = weights[:, rows[REGIONS]][:, :, columns[WORDS]].transpose(0, 2, 1)
        found.append(Maps(f"{where}, from places to words", FROM_PLACES, _panels(back, looked.words), places))
    if REGIONS in rows and REGIONS in columns:
        found += _among_places(where, weights, rows, columns, places)
    return found


FROM_WORDS = "Where each word looks: the brighter, the larger the share of its attention."
FROM_PLACES = "How much each place looks at a word: the brighter, the larger the share of its attention."
FROM_WHOLE = "Where the token that stands for the whole picture looks, head by head."
FROM_ALL = "Where places look on average, head by head: bright ones are read by many."


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
    if not found and size == places.num_frames:
        found[FRAMES] = slice(0, size)
    return found


def _whole_frames(places: Places) -> Places:
    F = places.num_frames
    return Places(np.tile([0.0, 0.0, 1.0, 1.0], (F, 1)), np.arange(F), (1, 1))


def _panels(weights: np.ndarray, names: Sequence[str]) -> list[tuple[str, list[Heat]]]:
    """(H, T, N): a small picture for each word, in a panel for each head."""
    mean = [Heat(name, values) for name, values in zip(names, weights.mean(axis=0), strict=True)]
    if len(weights) == 1:
        return [("", mean)]
    heads = [
        (f"head {head}", [Heat(name, values) for name, values in zip(names, each, strict=True)])
        for head, each in enumerate(weights, start=1)
    ]
    return [(ALL_HEADS, mean), *heads]


def _among_places(
    where: str, weights: np.ndarray, rows: dict[str, slice], columns: dict[str, slice], places: Places
) -> list[Maps]:
    """A small picture for each head: of the whole picture's token, and of all places."""
    sides = {}
    if rows[REGIONS].start == 1 and WORDS not in rows:
        sides["from the whole"] = (FROM_WHOLE, weights[:, 0, columns[REGIONS]])
    sides["from all places"] = (FROM_ALL, weights[:, rows[REGIONS]][:, :, columns[REGIONS]].mean(axis=1))
    found = []
    for side, (about, by_head) in sides.items():
        heads = [Heat(f"head {head}", values) for head, values in enumerate(by_head, start=1)]
        mean = [Heat(ALL_HEADS, by_head.mean(axis=0))] if len(heads) > 1 else []
        found.append(Maps(f"{where}, {side}", about, [("", [*mean, *heads])], places))
    return found


def pooling_maps(trace: Trace, places: Places | None) -> Maps | None:
    """Where a head that pools by attention looks; None where there is none."""
    noted = trace.all("pooling")
    if not noted or places is None or noted[0][1].shape[-1] != len(places.boxes):
        return None
    weights = noted[0][1].flatten(0, -2)[0].detach().double().cpu().numpy()
    about = "How much of what the answer is read from comes from each place; a large share need not speak for it."
    return Maps("Attention pooling", about, [("", [Heat("the answer", weights)])], places)


def energy_maps(trace: Trace) -> Maps | None:
    """How long the vector of each cell is, behind each block of convolutions; None where there are none."""
    found = []
    for site, grid in trace.all("grid"):
        lengths = grid.detach().double().norm(dim=1).cpu().numpy()  # (F, h, w)
        found.append(Heat(f"{_named(site)}, {lengths.shape[1]} x {lengths.shape[2]} cells", lengths))
    if not found:
        return None
    about = "How strongly each cell answers, block by block: the length of its vector. It need not speak for anything."
    return Maps("Activity of the eyes", about, [("", found)], is_shares=False)


def fewer_panels(maps: Sequence[Maps]) -> tuple[list[Maps], bool]:
    """All of them, or where that would be too much for a page their first panels; and whether that was so."""
    if sum(len(tiles) for each in maps for _, tiles in each.panels) <= MAX_TILES:
        return list(maps), False
    return [Maps(m.title, m.about, m.panels[:1], m.places, m.is_shares) for m in maps], True


SIDES = {"encoder": "encoder", "decoder": "decoder", "words": "words", "regions": "regions", "eyes": "eyes"}


def _named(site: str) -> str:
    """'body.eyes.network.blocks.2' -> 'eyes, layer 3'; the name of its side, and its number."""
    parts = site.split(".")
    sides = [part for part in parts if part in SIDES]
    number = re.findall(r"(?<=\.)\d+(?=\.|$)", site)
    told = [*sides[-1:], *([f"layer {int(number[0]) + 1}"] if number else [])]
    return ", ".join(told)


# -- glimpses, and pictures that are painted ---------------------------------------------------------------------------


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


def painting_of(trace: Trace) -> Painting | None:
    """None where nothing is painted."""
    sites = [site for site, what in trace if what == "canvas"]
    if not sites:
        return None
    steps = np.stack([call[0].detach().double().cpu().numpy() for call in trace.calls((sites[0], "canvas"))])
    windows = {}
    for what in ("reading window", "writing window"):
        noted = trace.all(what)
        windows[what] = noted[0][1][0].detach().double().cpu().numpy() if noted else None
    canvases = as_bytes(steps.transpose(0, 2, 3, 1))
    return Painting(canvases, windows["reading window"], windows["writing window"])


def as_bytes(values: np.ndarray) -> np.ndarray:
    """From 0 to 1 -> 0 to 255."""
    return (255 * np.clip(values, 0, 1)).round().astype(np.uint8)
