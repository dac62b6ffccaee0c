"""Pictures -> pixels of one size in a memory-mapped file, decoded once and cached by what they are made from.

The file is written under another name, and gets its own when it is whole: what is there can be used. It may be deleted
at any time.

Shapes: M pictures or clips, T frames, C channels, H and W pixels.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..errors import DataError
from .paths import cache_folder
from .picture_sources import read_picture
from .pictures import fitted
from .seen import PictureSource
from .seen_store import Pixels
from .specs import ImageSpec

VERSION = 1  # of how pictures are decoded and fitted
CHUNK = 32  # pictures that a worker takes at once
NUM_WORKERS = min(8, os.cpu_count() or 1)
MAX_NAMED = 5  # damaged pictures in a sentence
SAMPLED = 2_000  # pictures that mean and scale are taken from
MIN_SCALE = 1e-3  # of a channel that is the same everywhere

OnProgress = Callable[[str, int, int], None]
T = TypeVar("T")


def moments(frames: Sequence[T], most: int) -> list[T]:
    """So many frames of a clip at most, evenly spaced, the first and the last among them."""
    if len(frames) <= most:
        return list(frames)
    return [frames[round(place)] for place in np.linspace(0, len(frames) - 1, most)]


def prepare_pixels(
    source: PictureSource,
    clips: Sequence[tuple[str, ...]],
    spec: ImageSpec,
    on_progress: OnProgress = lambda *_: None,
) -> Pixels:
    """The pixels of pictures or clips, from the cache where they have been decoded before."""
    chosen = [moments(frames, spec.max_frames) for frames in clips]
    lengths = np.array([len(frames) for frames in chosen], dtype=np.int64)
    longest = int(lengths.max(initial=1))
    shape = (len(clips), longest, spec.size, spec.height, spec.width)
    made_from = [f"pixels {VERSION} {shape} {spec.fit} {source.fingerprint}", *("\t".join(names) for names in chosen)]
    key = hashlib.sha256("\n".join(made_from).encode("utf-8", "surrogatepass")).hexdigest()
    path = cache_folder() / "pixels" / f"{key}.npy"
    if not path.exists():
        with written_whole(path, shape, np.dtype(np.uint8)) as content:
            _decode_all(source, chosen, spec, content, on_progress)
    frames = None if (lengths == longest).all() else lengths
    return Pixels(np.load(path, mmap_mode="r"), frames, fingerprint=key)


@contextmanager
def written_whole(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[np.ndarray]:
    """An array of zeros to be filled, in a file that appears when it is."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=shape)
        with unfinished.open("r+b") as file:  # a full disk is told now, and not by a signal later
            os.posix_fallocate(file.fileno(), 0, unfinished.stat().st_size)
        yield made
        made.flush()
        del made
        unfinished.replace(path)
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}. "
            "Free some space, or set SEQWISE_CACHE to a folder on another disk."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _decode_all(
    source: PictureSource,
    clips: Sequence[Sequence[str]],
    spec: ImageSpec,
    content: np.ndarray,
    on_progress: OnProgress,
) -> None:
    """Fill `content`; pictures that cannot be read are told together."""
    damaged: list[str] = []

    def work(start: int) -> int:
        stop = min(start + CHUNK, len(clips))
        for row in range(start, stop):
            for step, name in enumerate(clips[row]):
                try:
                    content[row, step] = spec.encode(read_fitted(source, name, spec))
                except DataError as error:
                    damaged.append(str(error))
        return stop - start

    done = 0
    with ThreadPoolExecutor(NUM_WORKERS) as pool:  # decoders run beside each other
        for num in pool.map(work, range(0, len(clips), CHUNK)):
            done += num
            on_progress("decoding pictures", done, len(clips))
    if damaged:
        raise DataError(told(sorted(damaged)))


def told(damaged: Sequence[str]) -> str:
    """One sentence as it is, or how many there are and the first of them."""
    if len(damaged) == 1:
        return damaged[0]
    more = "" if len(damaged) <= MAX_NAMED else f"\nand {len(damaged) - MAX_NAMED:,} more"
    some = "\n".join(damaged[:MAX_NAMED])
    return f"{len(damaged):,} pictures cannot be read:\n{some}{more}\nTo leave them out: --set data.skip_damaged=true"


def read_fitted(source: PictureSource, name: str, spec: ImageSpec) -> np.ndarray:
    """One picture in the size and colour of a run, (H, W, C)."""
    pixels = read_picture(source, name, (spec.height, spec.width))
    return fitted(pixels, spec.height, spec.width, spec.size, spec.fit)


def mean_and_scale(
    source: PictureSource, names: Sequence[str], spec: ImageSpec
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, pixels going from 0 to 1, over evenly spaced pictures."""
    step = max(1, len(names) // SAMPLED)
    counts = np.zeros((spec.size, 256), dtype=np.int64)  # of each value in each channel: exact, and small
    damaged: list[str] = []
    for name in names[::step]:
        try:
            pixels = read_fitted(source, name, spec)
        except DataError as error:
            damaged.append(str(error))
            continue
        for channel in range(spec.size):
            counts[channel] += np.bincount(pixels[..., channel].ravel(), minlength=256)
    if not counts.any():
        raise DataError(told(damaged))
    values, total = np.arange(256) / 255, counts.sum(axis=1)
    mean = counts @ values / total
    variance = counts @ values**2 / total - mean**2
    return tuple(mean.tolist()), tuple(np.maximum(MIN_SCALE, np.sqrt(np.maximum(variance, 0))).tolist())
