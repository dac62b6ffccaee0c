"""Rows that look at pictures -> what they are made of, and stores of them.

image_spec(data, tell)             size and colour by the training part, mean and scale of each channel
build_seen_store(data, part, …)    pixels or regions from the cache; a row for each label, question or caption

Shapes: N rows, M pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import ConfigError, DataError
from ..wording import counted
from .files import shown
from .pair_store import Rows
from .picture_sources import JoinedPictures, PictureFiles
from .pictures import glance
from .pixels import OnProgress, mean_and_scale, prepare_pixels, told
from .region_files import prepare_views, region_spec
from .schema import ImageSpec, LabelSpec, RegionSpec, Schema, TokenSpec
from .seen import PictureSource, RegionSource, SeenData, SeenRow, frames_of
from .seen_store import Pixels, SeenStore, Views
from .text_examples import AnswerColumn, Column

GLANCED = 1_000  # pictures that size and colour follow from
SIDE, SMALLEST = 128, 8  # of pictures of many sizes; of those that are smaller still
MAX_FRAMES = 16


class Survey(NamedTuple):
    """Of evenly spaced pictures of the training part."""

    sizes: set[tuple[int, int]]
    """Heights and widths."""
    is_grey: bool
    animated: list[str]


def survey(source: PictureSource, names: Sequence[str]) -> Survey:
    sizes, animated, damaged, is_grey = set(), [], [], True
    for name in names[:: max(1, len(names) // GLANCED)]:
        try:
            height, width, grey, moves = _glance(source, name)
        except DataError as error:
            damaged.append(str(error))
            continue
        sizes.add((height, width))
        is_grey &= grey
        if moves:
            animated.append(name)
    if damaged:
        raise DataError(told(damaged))
    return Survey(sizes, is_grey, animated)


def _glance(source: PictureSource, name: str) -> tuple[int, int, bool, bool]:
    if isinstance(source, JoinedPictures):
        source, name = source.place(name)
    if isinstance(source, PictureFiles):
        found = glance(source.content(name), source.shown(name))
        return found.height, found.width, found.is_grey, found.is_animated
    height, width, channels = source.read(name).shape
    return height, width, channels == 1, False


def image_spec(data: SeenData, tell: Callable[[str], None]) -> ImageSpec | RegionSpec:
    """What pictures of the training part are made of."""
    clips = frames_of(data.parts["train"])
    if isinstance(data.pictures, RegionSource):
        regions = region_spec(data.pictures, [name for name, *_ in clips], data.settings.max_frames)
        tell(regions.describe())
        return regions
    names = [name for frames in clips for name in frames]
    found = survey(data.pictures, names)
    if found.animated:
        some = counted(len(found.animated), "picture is", "pictures are")
        tell(f"{some} animated, of which the first frame is read: {', '.join(map(shown, found.animated[:3]))}")
    height, width = data.settings.size or _size(found.sizes)
    longest = max(map(len, clips))
    max_frames = min(longest, data.settings.max_frames or MAX_FRAMES)
    grey = found.is_grey if data.settings.grey is None else data.settings.grey
    blank = (0.0,) * (1 if grey else 3)
    spec = ImageSpec(height, width, blank, (1.0,) * len(blank), data.settings.fit, max_frames)
    mean, scale = mean_and_scale(data.pictures, names, spec)
    spec = ImageSpec(height, width, mean, scale, data.settings.fit, max_frames)
    tell(spec.describe() + (f"; of clips of up to {longest}, evenly spaced" if longest > max_frames else ""))
    return spec


def _size(sizes: set[tuple[int, int]]) -> tuple[int, int]:
    """The size that all have, where that is small; else a square, of which small pictures fill as much as they can."""
    longest = max(max(size) for size in sizes)
    if len(sizes) == 1 and longest <= SIDE:
        (height, width) = next(iter(sizes))
        return max(SMALLEST, height), max(SMALLEST, width)
    side = max(SMALLEST, min(SIDE, longest))
    return side, side


def prepare_pictures(
    source: PictureSource | RegionSource,
    clips: Sequence[tuple[str, ...]],
    spec: ImageSpec | RegionSpec,
    on_progress: OnProgress = lambda *_: None,
) -> Pixels | Views:
    """Pictures or clips as a model of this spec sees them."""
    if isinstance(spec, RegionSpec) != isinstance(source, RegionSource):
        have, want = ("features", "pictures") if isinstance(source, RegionSource) else ("pictures", "features of them")
        raise ConfigError(f"the data has {have}, and the model was trained on {want}.")
    if isinstance(spec, RegionSpec):
        assert isinstance(source, RegionSource)
        return prepare_views(source, [name for name, *_ in clips], spec, on_progress)
    assert not isinstance(source, RegionSource)
    return prepare_pixels(source, clips, spec, on_progress)


def build_seen_store(
    data: SeenData,
    part: str,
    schema: Schema,
    encode: Callable[[Sequence[SeenRow], Schema], Encoded],
    on_progress: OnProgress = lambda *_: None,
) -> SeenStore:
    """The rows of a part; `encode` makes of them what a model reads and answers besides pictures."""
    found = encode(data.parts[part], schema)
    clips = frames_of(found.rows)
    place = {frames: number for number, frames in enumerate(clips)}
    picture_of = np.array([place[row.frames] for row in found.rows], dtype=np.int64)
    spec = schema.specs[schema.inputs["image"]]
    assert isinstance(spec, ImageSpec | RegionSpec)
    pictures = prepare_pictures(data.pictures, clips, spec, on_progress)
    return SeenStore(pictures, picture_of, found.targets, found.rows, found.tokens)


class Encoded(NamedTuple):
    """Rows as they stand in a store, and what is read and answered of them besides pictures."""

    rows: Sequence[SeenRow]
    targets: Mapping[str, Column]
    tokens: Rows | None = None


def with_labels(rows: Sequence[SeenRow], schema: Schema) -> Encoded:
    """A label, or the answer to a question, for each row."""
    spec = schema.main_spec
    assert isinstance(spec, LabelSpec)
    targets = {schema.main: AnswerColumn(spec.encode([row.answer or "" for row in rows]))}
    if "tokens" not in schema.inputs:
        return Encoded(rows, targets)
    words = schema.input("tokens", TokenSpec)
    return Encoded(rows, targets, Rows.of(words.encode_texts(row.texts)[0] for row in rows))


def with_captions(rows: Sequence[SeenRow], schema: Schema) -> Encoded:
    """A row for each caption, with the others of its picture behind it; one without words where there is none."""
    spec = schema.input("tokens", TokenSpec)
    said = [
        row._replace(texts=(text, *row.texts[:place], *row.texts[place + 1 :]))
        for row in rows
        for place, text in enumerate(row.texts or ("",))
    ]
    return Encoded(said, {}, Rows.of(spec.encode_texts(row.texts[:1])[0] for row in said))


def alone(rows: Sequence[SeenRow], schema: Schema) -> Encoded:
    """Pictures, once each."""
    return Encoded([SeenRow(frames, ()) for frames in frames_of(rows)], {})
