"""What frozen eyes saw in each picture: computed once, and cached on the disk by the pixels and the eyes.

A file appears when it is whole, and may be deleted at any time.

Shapes: M pictures, T frames, N regions, F features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from ..data.batch import Images
from ..data.paths import cache_folder
from ..data.pixels import written_whole
from ..data.seen_store import Pixels, Views
from .eyes import Eyes

VERSION = 1  # of how eyes look
SEEN_AT_ONCE = 64  # rows

OnProgress = Callable[[str, int, int], None]


@torch.inference_mode()
def seen_once(eyes: Eyes, pictures: Pixels, key: str, on_progress: OnProgress = lambda *_: None) -> Views:
    """Views of all pictures, from the cache where these eyes have seen them before; `key` tells eyes apart."""
    first = eyes(pictures.field(np.arange(1)))
    per_frame = first.shape[1] // (1 if pictures.frames is None else int(pictures.frames[0]))
    longest = pictures.content.shape[1]
    shape = (len(pictures), longest * per_frame, first.features.shape[2])
    of = pictures.fingerprint or hashlib.sha256(np.ascontiguousarray(pictures.content).data).hexdigest()
    made_from = f"views {VERSION} {shape} {key} {of}"
    path = cache_folder() / "views" / f"{hashlib.sha256(made_from.encode()).hexdigest()}.npy"
    if not path.exists():
        with written_whole(path, shape, np.dtype(np.float32)) as content:
            for start in range(0, len(pictures), SEEN_AT_ONCE):
                chosen = np.arange(start, min(start + SEEN_AT_ONCE, len(pictures)))
                found = eyes(pictures.field(chosen)).features
                content[chosen, : found.shape[1]] = found.numpy()
                on_progress("looking at pictures", int(chosen[-1]) + 1, len(pictures))
    boxes = None
    if first.boxes is not None:  # those of a clip of the longest length, which shorter ones begin with
        whole = replace(pictures, content=pictures.content[:1], frames=None).field(np.arange(1))
        boxes = _boxes(eyes, whole)
    regions = None if pictures.frames is None else pictures.frames * per_frame
    return Views(np.load(path, mmap_mode="r"), boxes, regions)


def _boxes(eyes: Eyes, whole: Images) -> np.ndarray:
    boxes = eyes(whole).boxes
    assert boxes is not None
    return boxes[0].numpy().astype(np.float32)
