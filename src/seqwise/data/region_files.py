"""What was found in pictures beforehand, read from .npy and .npz files: one file for each picture or clip.

7.npy        an array (N, F): regions, or frames of a clip in order of time; or (F,), one vector of the whole
7.npz        features (N, F); and where they are known boxes (N, 4), as shares of width and height, and labels (N,)

Both may be packed with gzip. Nothing is unpickled.

Shapes: M pictures, N regions, F features.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import DataError
from .files import read_bytes
from .paths import cache_folder
from .picture_sources import file_inside, fingerprint_of
from .pixels import OnProgress, moments, told, written_whole
from .seen import FoundRegions, RegionSource
from .seen_store import Views
from .specs import RegionSpec

VERSION = 1
MAX_FRAMES = 80  # of a clip whose features are given


class RegionFiles:
    """Files below a folder."""

    def __init__(self, folder: Path, names: Sequence[str]):
        self.folder, self.names = folder, names

    def only(self, names: Sequence[str]) -> RegionFiles:
        return RegionFiles(self.folder, names)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(self.folder, self.names)

    def regions(self, name: str) -> FoundRegions:
        path = file_inside(self.folder, name)
        content = b"".join(read_bytes(path))
        try:
            found = np.load(io.BytesIO(content), allow_pickle=False)
            arrays = {"features": found} if isinstance(found, np.ndarray) else {key: found[key] for key in found.files}
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
            raise DataError(
                f"{path}: is no array of numbers that can be read ({error}). Write it with numpy.save."
            ) from None
        if "features" not in arrays and len(arrays) == 1:
            arrays = {"features": next(iter(arrays.values()))}
        if "features" not in arrays:
            raise DataError(f"{path}: holds {', '.join(arrays) or 'nothing'}; expected an array named features.")
        return _checked(arrays, str(path))


def _checked(arrays: dict[str, np.ndarray], where: str) -> FoundRegions:
    features = arrays["features"]
    if features.dtype.kind not in "fiu" or features.ndim not in (1, 2) or 0 in features.shape:
        raise DataError(
            f"{where}: its features are {features.dtype} of shape {features.shape}; expected numbers, a row for each "
            "region or frame. A clip without frames has nothing to be seen."
        )
    features = np.atleast_2d(features).astype(np.float32)
    if not np.isfinite(features).all():
        raise DataError(f"{where}: some of its features are no numbers (NaN or infinite). Compute them again.")
    boxes, labels = arrays.get("boxes"), arrays.get("labels")
    if boxes is not None:
        if boxes.shape != (len(features), 4) or boxes.dtype.kind not in "fiu" or not _are_shares(boxes):
            raise DataError(
                f"{where}: boxes should be {len(features)} rows of left, top, right and bottom edge, as shares of "
                "width and height between 0 and 1. Divide pixels by the size of the picture."
            )
        boxes = boxes.astype(np.float32)
    if labels is not None and labels.shape != (len(features),):
        raise DataError(f"{where}: {labels.shape} labels for {len(features)} regions; give one for each.")
    return FoundRegions(features, boxes, None if labels is None else [str(label) for label in labels.tolist()])


def _are_shares(boxes: np.ndarray) -> bool:
    return bool(np.isfinite(boxes).all() and boxes.min() >= 0 and boxes.max() <= 1 + 1e-6)


def region_spec(source: RegionSource, names: Sequence[str], max_frames: int | None) -> RegionSpec:
    """What the regions of the training part are made of."""
    found = [source.regions(name) for name in names]
    F = found[0].features.shape[1]
    for name, one in zip(names, found, strict=True):
        if one.features.shape[1] != F:
            raise DataError(f"{name}: {one.features.shape[1]:,} features a region, but {names[0]} has {F:,}.")
    has_boxes = all(one.boxes is not None for one in found)
    labels = sorted({label for one in found for label in one.labels or ()})
    most = max(len(one.features) for one in found)
    return RegionSpec(F, labels, has_boxes, min(most, max_frames or (most if has_boxes else MAX_FRAMES)))


def prepare_views(
    source: RegionSource, names: Sequence[str], spec: RegionSpec, on_progress: OnProgress = lambda *_: None
) -> Views:
    """The regions of pictures or clips in memory-mapped files, from the cache where they have been read before."""
    M, N, F = len(names), spec.max_regions, spec.feature_dim
    made_from = [f"views {VERSION} {M} {N} {F} {spec.has_boxes} {spec.names} {source.fingerprint}", *names]
    key = hashlib.sha256("\n".join(made_from).encode("utf-8", "surrogatepass")).hexdigest()
    folder = cache_folder() / "views"
    paths = {kind: folder / f"{key}-{kind}.npy" for kind in ("counts", "boxes", "labels", "features")}
    if not paths["features"].exists():  # which is written last
        counts, boxes, labels = np.zeros(M, np.int64), np.zeros((M, N, 4), np.float32), np.full((M, N), -1, np.int64)
        place_of = {label: place for place, label in enumerate(spec.names)}
        with written_whole(paths["features"], (M, N, F), np.dtype(np.float32)) as features:
            damaged = []
            for row, name in enumerate(names):
                try:
                    found = _fitting(source.regions(name), spec, name)
                except DataError as error:
                    damaged.append(str(error))
                    continue
                n = counts[row] = len(found.features)
                features[row, :n] = found.features
                if found.boxes is not None:
                    boxes[row, :n] = found.boxes
                if found.labels is not None:
                    labels[row, :n] = [place_of.get(label, -1) for label in found.labels]
                on_progress("reading features", row + 1, M)
            if damaged:
                raise DataError(told(damaged))
            for kind, array in (("counts", counts), ("boxes", boxes), ("labels", labels)):
                with written_whole(paths[kind], array.shape, array.dtype) as out:
                    out[...] = array
    read = {kind: np.load(path, mmap_mode="r") for kind, path in paths.items()}
    counts = np.asarray(read["counts"])
    return Views(
        read["features"],
        read["boxes"] if spec.has_boxes else None,
        None if (counts == N).all() else counts,
        read["labels"] if spec.names else None,
    )


def _fitting(found: FoundRegions, spec: RegionSpec, name: str) -> FoundRegions:
    """As many regions as a model reads: the first of them, of a clip evenly spaced frames."""
    if found.features.shape[1] != spec.feature_dim:
        raise DataError(f"{name}: {found.features.shape[1]:,} features a region, expected {spec.feature_dim:,}.")
    if spec.has_boxes and found.boxes is None:
        raise DataError(f"{name}: has no boxes, and other files have some.")
    rows = list(range(len(found.features)))
    rows = rows[: spec.max_regions] if spec.has_boxes else moments(rows, spec.max_regions)
    labels = None if found.labels is None else [found.labels[row] for row in rows]
    return FoundRegions(found.features[rows], None if found.boxes is None else found.boxes[rows], labels)
