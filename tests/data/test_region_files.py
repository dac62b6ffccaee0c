"""Features that were computed beforehand are read from .npy and .npz files, and what is wrong with them is told."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures_by_hand import write_rows

from seqwise.data.region_files import RegionFiles, prepare_views, region_spec
from seqwise.data.seen_files import open_seen
from seqwise.errors import DataError
from seqwise.settings import DataConfig


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "views"


def clip(length: int, F: int = 3) -> np.ndarray:
    return np.arange(length * F, dtype=np.float64).reshape(length, F) + 100 * length


def clips(folder: Path) -> RegionFiles:
    folder.mkdir(exist_ok=True)
    np.save(folder / "a.npy", clip(4))
    out = io.BytesIO()
    np.save(out, clip(2))
    (folder / "b.avi.npy.gz").write_bytes(gzip.compress(out.getvalue()))
    np.savez(folder / "c.npz", features=clip(9))
    return RegionFiles(folder, ["a.npy", "b.avi.npy.gz", "c.npz"])


def test_clips_of_features_are_read_at_evenly_spaced_frames(tmp_path: Path, cache: Path) -> None:
    source = clips(tmp_path / "clips")
    spec = region_spec(source, source.names, 5)
    assert (spec.feature_dim, spec.max_regions, spec.has_boxes, spec.names) == (3, 5, False, [])
    views = prepare_views(source, source.names, spec)
    field = views.field(np.array([1, 2]))
    assert field.is_region is not None
    assert field.is_region.tolist() == [[True, True, False, False, False], [True] * 5]
    np.testing.assert_array_equal(field.features[0, :2].numpy(), clip(2))
    np.testing.assert_array_equal(field.features[1].numpy(), clip(9)[[0, 2, 4, 6, 8]])
    assert field.boxes is None
    assert len(list(cache.iterdir())) == 4
    again = prepare_views(source, source.names, spec)
    np.testing.assert_array_equal(again.features, views.features)


def test_regions_have_boxes_and_labels(tmp_path: Path) -> None:
    boxes = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [0, 0, 1, 1]])
    for name, labels in (("a", ["dog", "cat", "dog"]), ("b", ["cat", "man", "dog"])):
        np.savez(tmp_path / f"{name}.npz", features=clip(3), boxes=boxes, labels=np.array(labels))
    source = RegionFiles(tmp_path, ["a.npz", "b.npz"])
    spec = region_spec(source, source.names, 2)
    assert (spec.names, spec.has_boxes, spec.max_regions) == (["cat", "dog", "man"], True, 2)
    field = prepare_views(source, source.names, spec).field(np.array([1]))
    assert field.labels is not None
    assert field.labels.tolist() == [[0, 2]]
    assert field.boxes is not None
    np.testing.assert_allclose(field.boxes[0].numpy(), boxes[:2])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no frames": ({"features": np.zeros((0, 3))}, "A clip without frames has nothing to be seen"),
    "words": ({"features": np.array(["a", "b"])}, "expected numbers, a row for each region or frame"),
    "cube": ({"features": np.zeros((2, 3, 4))}, "of shape (2, 3, 4); expected numbers"),
    "nan": ({"features": np.array([[1.0, np.nan]])}, "some of its features are no numbers (NaN or infinite)"),
    "pixels": ({"features": clip(1), "boxes": np.array([[0, 0, 64, 64]])}, "as shares of width and height"),
    "few boxes": ({"features": clip(2), "boxes": np.zeros((1, 4))}, "boxes should be 2 rows"),
    "few labels": ({"features": clip(2), "labels": np.array(["a"])}, "(1,) labels for 2 regions"),
    "other names": ({"x": clip(2), "y": clip(2)}, "holds x, y; expected an array named features"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_with_the_file(tmp_path: Path, what: str) -> None:
    arrays, sentence = WRONG[what]
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError) as caught:
        RegionFiles(tmp_path, ["a.npz"]).regions("a.npz")
    assert str(caught.value).startswith(f"{tmp_path / 'a.npz'}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("damage", ["object", "cut", "text"])
def test_nothing_is_unpickled(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object) if damage == "object" else clip(50), allow_pickle=True)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:300])
    if damage == "text":
        path.write_text("1 2 3")
    with pytest.raises(DataError, match=r"a.npy: is no array of numbers that can be read"):
        RegionFiles(tmp_path, ["a.npy"]).regions("a.npy")


def test_files_of_other_widths_are_told(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", clip(2, 3))
    np.save(tmp_path / "b.npy", clip(2, 4))
    source = RegionFiles(tmp_path, ["a.npy", "b.npy"])
    with pytest.raises(DataError, match=r"b.npy: 4 features a region, but a.npy has 3"):
        region_spec(source, source.names, None)


def test_clips_of_features_have_captions(tmp_path: Path) -> None:
    for name in range(6):
        (tmp_path / "clips").mkdir(exist_ok=True)
        np.save(tmp_path / "clips" / f"v{name}.avi.npy", clip(2 + name))
    rows = [{"video": f"v{name}.avi", "caption": f"it is clip {name}"} for name in range(6)]
    write_rows(tmp_path / "captions.csv", rows)
    data = open_seen(DataConfig(source=[str(tmp_path)]), "caption")
    assert isinstance(data.pictures, RegionFiles)
    found = {row.frames[0]: row.texts for rows in data.parts.values() for row in rows}
    assert found["clips/v3.avi.npy"] == ("it is clip 3",)
    assert len(found) == 6
