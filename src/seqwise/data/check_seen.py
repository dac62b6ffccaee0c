"""The preflight for pictures: sizes, damaged files, copies between parts, and what is said of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import DataError
from ..wording import counted
from .check_labels import counts_by_part, warnings_on_labels, warnings_on_leaks
from .check_pairs import Quantiles
from .picture_sources import read_picture
from .pictures import fitted
from .pixels import CHUNK, NUM_WORKERS, moments
from .seen import PictureSource, RegionSource, SeenData, SeenRow, frames_of

SMALL = 32  # pixels a side: pictures are the same where they look the same in this size
LOOKED_AT = 3  # frames of a clip
MIN_PICTURES = 500
MAX_NAMED = 5
TINY = 8  # pixels


@dataclass(frozen=True)
class SeenFacts:
    """One part."""

    pictures: int
    rows: int
    texts: int
    sizes: dict[str, int]
    """How many first frames have each size, the most frequent first."""
    words: Quantiles | None
    """Of a caption or a question; None where there are none."""
    labels: dict[str, int]
    copies: int
    """Pictures that look like another one of this part."""
    known: int = 0
    """Pictures that look like one of the training part."""
    damaged: list[str] = field(default_factory=list)
    tiny: int = 0
    """Pictures with a side of less than 8 pixels."""


@dataclass(frozen=True)
class SeenCheck:
    description: str
    parts: dict[str, SeenFacts]
    notes: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        yield self.description
        yield from self.notes
        for part, facts in self.parts.items():
            said = f", {counted(facts.rows, 'row')}" if facts.rows != facts.pictures else ""
            yield f"{part}: {counted(facts.pictures, 'picture')}{said}{_sizes_told(facts.sizes)}"
            if facts.words is not None:
                yield f"{part}: {counted(facts.texts, 'text')}, words of each {facts.words}"

    def tables(self) -> Iterator[list[list[str]]]:
        """Labels or answers by part."""
        labels = {part: facts.labels for part, facts in self.parts.items()}
        if any(labels.values()):
            yield counts_by_part("label", labels, {part: facts.rows for part, facts in self.parts.items()})


def _sizes_told(sizes: Mapping[str, int]) -> str:
    if not sizes:
        return ""
    first = next(iter(sizes))
    return f"; {first} pixels" if len(sizes) == 1 else f"; {len(sizes)} sizes, most often {first} pixels"


@dataclass(frozen=True)
class _Look:
    digest: bytes
    size: tuple[int, int] | None
    """Width and height of the first frame; None of features."""


def check_seen(data: SeenData) -> SeenCheck:
    parts: dict[str, SeenFacts] = {}
    known: set[bytes] = set()
    for part, rows in data.parts.items():
        found = _looked_at(data.pictures, frames_of(rows))
        looks = [one for one in found if isinstance(one, _Look)]
        damaged = [one for one in found if isinstance(one, str)]
        digests = [look.digest for look in looks]
        num_known = 0 if part == "train" else sum(digest in known for digest in digests)
        parts[part] = _facts(rows, looks, damaged, num_known)
        if part == "train":
            known = set(digests)
    return SeenCheck(data.description, parts, data.notes, list(_warnings(data.asks_for, parts)))


def without_damaged(
    parts: Mapping[str, list[SeenRow]], source: PictureSource | RegionSource, notes: list[str]
) -> dict[str, list[SeenRow]]:
    """Rows whose pictures can be read; `notes` gets a sentence on the others."""
    clips = frames_of([row for rows in parts.values() for row in rows])
    found = _looked_at(source, clips, every_frame=True)
    damaged = {frames: one for frames, one in zip(clips, found, strict=True) if isinstance(one, str)}
    if damaged:
        more = f"; and {len(damaged) - MAX_NAMED:,} more" if len(damaged) > MAX_NAMED else ""
        many = counted(len(damaged), "picture that cannot be read is", "pictures that cannot be read are")
        notes.append(f"{many} left out: {'; '.join([*damaged.values()][:MAX_NAMED])}{more}")
    return {part: [row for row in rows if row.frames not in damaged] for part, rows in parts.items()}


def _looked_at(
    source: PictureSource | RegionSource, clips: Sequence[tuple[str, ...]], *, every_frame: bool = False
) -> list[_Look | str]:
    """Each picture or clip, or a sentence where it cannot be read."""

    def look(frames: tuple[str, ...]) -> _Look | str:
        try:
            return _look(source, frames if every_frame else moments(frames, LOOKED_AT))
        except DataError as error:
            return str(error)

    with ThreadPoolExecutor(NUM_WORKERS) as pool:
        return list(pool.map(look, clips, chunksize=CHUNK))


def _look(source: PictureSource | RegionSource, frames: Sequence[str]) -> _Look:
    if isinstance(source, RegionSource):
        return _Look(hashlib.sha256(source.regions(frames[0]).features.tobytes()).digest(), None)
    digest, size = hashlib.sha256(), None
    for name in frames:
        pixels = read_picture(source, name)
        size = size or (pixels.shape[1], pixels.shape[0])
        digest.update(fitted(pixels, SMALL, SMALL, pixels.shape[2], "stretch").tobytes())
    return _Look(digest.digest(), size)


def _facts(rows: Sequence[SeenRow], looks: Sequence[_Look], damaged: list[str], known: int) -> SeenFacts:
    texts = [text for row in rows for text in row.texts]
    sizes = Counter(look.size for look in looks if look.size is not None)
    labels = Counter(row.answer for row in rows if row.answer is not None)
    return SeenFacts(
        len(looks) + len(damaged),
        len(rows),
        len(texts),
        {f"{width} x {height}": num for (width, height), num in sizes.most_common()},
        Quantiles.of([len(text.split()) for text in texts]) if texts else None,
        dict(sorted(labels.items())),
        len(looks) - len({look.digest for look in looks}),
        known,
        damaged,
        sum(num for size, num in sizes.items() if min(size) < TINY) if len(sizes) > 1 else 0,
    )


def _warnings(asks_for: str, parts: Mapping[str, SeenFacts]) -> Iterator[str]:
    train = parts["train"]
    if train.pictures < MIN_PICTURES:
        yield (
            f"the training part has only {counted(train.pictures, 'picture')}: begin with eyes that have seen others "
            "before (--set model.encoder=RUN)"
        )
    if asks_for == "label":
        yield from warnings_on_labels(
            {part: facts.labels for part, facts in parts.items()}, {part: facts.rows for part, facts in parts.items()}
        )
    for part, facts in parts.items():
        if facts.damaged:
            more = f"; and {len(facts.damaged) - MAX_NAMED:,} more" if len(facts.damaged) > MAX_NAMED else ""
            cannot = counted(len(facts.damaged), "picture cannot be read", "pictures cannot be read")
            yield f"{part}: {cannot}: {'; '.join(facts.damaged[:MAX_NAMED])}{more}"
        if facts.copies > 0.01 * facts.pictures:
            yield f"{part}: {facts.copies:,} of {facts.pictures:,} pictures look like others of this part"
        if facts.tiny:
            yield f"{part}: {counted(facts.tiny, 'picture has', 'pictures have')} a side of less than {TINY} pixels"
        if part != "train":
            yield from warnings_on_leaks(part, facts.known, facts.pictures, "pictures")
