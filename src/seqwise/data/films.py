"""Films as clips of evenly spaced frames. PyAV decodes them, which the extra brings: pip install "seqwise[video]".

A frame is called "clips/ball.mp4#3/16": the fourth of sixteen moments. Only local files are opened, and no more frames
are decoded than MAX_DECODED.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError, DataError
from .picture_sources import file_inside, fingerprint_of
from .pictures import MAX_PIXELS
from .seen import SeenRow
from .seen_looks import FILM_SUFFIXES

MAX_FRAMES = 16  # of a film, where nothing else was asked for
MAX_DECODED = 20_000  # frames of one film: at 25 a second a quarter of an hour
MAX_SIDE = 512  # pixels of a frame that is kept
KEPT = 4  # films whose moments are kept, for workers beside each other
FORMATS = ("mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "avi", "mpeg", "mpegts", "asf", "flv", "ogg")


def with_moments(rows: Sequence[SeenRow], max_frames: int | None) -> list[SeenRow]:
    """Rows that name a film -> rows that name its moments."""
    most = max_frames or MAX_FRAMES
    made = []
    for row in rows:
        frames = [
            moment
            for name in row.frames
            for moment in (
                [f"{name}#{n}/{most}" for n in range(most)] if name.lower().endswith(FILM_SUFFIXES) else [name]
            )
        ]
        made.append(row._replace(frames=tuple(frames)))
    return made


class FilmPictures:
    """Films below a folder."""

    def __init__(self, folder: Path, names: Sequence[str]):
        self.folder, self.names = folder, names
        self._read: OrderedDict[tuple[str, int], list[np.ndarray]] = OrderedDict()
        self._reading = threading.Lock()

    def only(self, names: Sequence[str]) -> FilmPictures:
        return FilmPictures(self.folder, sorted({name.rpartition("#")[0] or name for name in names}))

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.folder, self.names)

    def read(self, name: str) -> np.ndarray:
        """One moment; a film shorter than its moments shows some frames again."""
        film, _, moment = name.rpartition("#")
        number, _, most = moment.partition("/")
        key = (film, int(most))
        with self._reading:
            if key not in self._read:
                self._read[key] = decode_moments(file_inside(self.folder, film), int(most))
                while len(self._read) > KEPT:
                    self._read.popitem(last=False)
            return self._read[key][int(number)]


def decode_moments(path: Path, most: int) -> list[np.ndarray]:
    """So many evenly spaced frames of a film, (H, W, 3) each."""
    try:
        import av
    except ImportError:
        raise ConfigError(f'{path}: films are read by PyAV. Install it with: pip install "seqwise[video]"') from None
    try:
        with av.open(str(path.resolve()), options={"protocol_whitelist": "file"}) as film:
            return _spaced(film, path, most)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise DataError(f"{path}: a film that cannot be read ({error}). Get it again, or leave it out.") from None


def _spaced(film: Any, path: Path, most: int) -> list[np.ndarray]:
    if film.format.name not in FORMATS:  # lists of other files, pictures by a pattern, and what else there is
        raise DataError(f"{path}: is no film that is read here ({film.format.long_name}).")
    if not film.streams.video:
        raise DataError(f"{path}: has no frames: there is nothing to be seen in it.")
    stream = film.streams.video[0]
    if stream.width * stream.height > MAX_PIXELS:
        raise DataError(f"{path}: frames of {stream.width:,} x {stream.height:,} pixels are too large.")
    kept: list[tuple[int, np.ndarray]] = []  # every `step`-th frame; doubled when there are too many
    step = 1
    for number, frame in enumerate(film.decode(stream)):
        if number >= MAX_DECODED:
            raise DataError(f"{path}: more than {MAX_DECODED:,} frames. Cut it into clips.")
        if number % step == 0:
            share = min(1.0, MAX_SIDE / max(frame.width, frame.height))
            width, height = (max(1, round(side * share)) for side in (frame.width, frame.height))
            kept.append((number, frame.to_ndarray(format="rgb24", width=width, height=height)))
            if len(kept) > 4 * most:
                step *= 2
                kept = [one for one in kept if one[0] % step == 0]
    if not kept:
        raise DataError(f"{path}: has no frames: there is nothing to be seen in it.")
    return [kept[round(place)][1] for place in np.linspace(0, len(kept) - 1, most)]
