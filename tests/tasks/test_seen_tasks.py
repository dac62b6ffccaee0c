"""Tasks of pictures: what a run of each is made of, and that other pictures are read alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures_by_hand import asked_folder, captioned_folder, labelled_folder, write_pictures, write_rows
from PIL import Image

from seqwise.data.paths import data_folders
from seqwise.data.schema import ImageSpec, RegionSpec, Schema, TokenSpec
from seqwise.data.seen_store import SeenStore
from seqwise.errors import ConfigError, DataError
from seqwise.settings import DataConfig, TokenizerConfig
from seqwise.tasks import TASKS
from seqwise.tasks.images import ImagesTask
from seqwise.tasks.questions import QuestionsTask


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))


def made(task: str, source: Path | str, **options: Any) -> tuple[Schema, dict[str, SeenStore], list[str]]:
    data = TASKS[task].open(DataConfig(source=[str(source)], **options))
    told: list[str] = []
    schema = TASKS[task].schema(data, TokenizerConfig(), told.append)
    return schema, TASKS[task].stores(data, schema), told


def image_of(schema: Schema) -> ImageSpec:
    return schema.input("image", ImageSpec)


# -- stores --------------------------------------------------------------------------------------------------------


def test_labels_stand_beside_their_pictures(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path / "pets", 20)
    schema, stores, _ = made("images", folder)
    store = stores["train"]
    batch = store.batch(np.array([3, 0]))
    for row, place in enumerate((3, 0)):
        name, label = store.rows[place].frames[0], store.rows[place].answer
        pixels = np.asarray(Image.open(folder / name)).transpose(2, 0, 1)
        assert np.array_equal(batch.inputs["image"].pixels[row, 0].numpy(), pixels)
        assert schema.main_spec.decode(int(batch.targets["label"].ids[row])) == label


def test_questions_stand_beside_their_pictures_which_are_kept_once(tmp_path: Path) -> None:
    schema, stores, _ = made("questions", asked_folder(tmp_path / "asked"))
    store = stores["train"]
    assert 2 * len(store.pictures) == len(store)
    batch = store.batch(slice(0, 5))
    tokenizer = schema.input("tokens", TokenSpec).tokenizer
    for row in range(5):
        ids = [int(one) for one in batch.inputs["tokens"].ids[row] if int(one) != tokenizer.boundary]
        assert tokenizer.decode(ids).replace(" ", "") == store.rows[row].texts[0].replace(" ", "")


def test_each_caption_is_a_row_with_the_others_behind_it(tmp_path: Path) -> None:
    _, stores, _ = made("captions", captioned_folder(tmp_path / "photos"))
    store = stores["train"]
    first, second = store.rows[:2]
    assert first.texts == second.texts[::-1]
    assert store.picture_of[:2].tolist() == [0, 0]
    assert len(store) == 2 * len(store.pictures)


def test_pictures_to_be_painted_stand_once(tmp_path: Path) -> None:
    _, stores, _ = made("paint", asked_and_flat(tmp_path))
    assert sum(map(len, stores.values())) == 9
    assert stores["train"].targets == {}


def asked_and_flat(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "flat", [f"{n}.png" for n in range(9)])


def test_clips_of_features_become_regions(tmp_path: Path) -> None:
    for n in range(8):
        np.save(tmp_path / f"{n}.npy", np.full((2 + n, 5), n, np.float32))
    write_rows(tmp_path / "captions.csv", [{"video": str(n), "caption": f"this is clip {n}"} for n in range(8)])
    schema, stores, told = made("captions", tmp_path)
    spec = schema.input("image", RegionSpec)
    assert spec.feature_dim == 5
    assert told[0].startswith("Pictures: up to ")
    row = int(stores["train"].rows[0].frames[0].partition(".")[0])
    assert (stores["train"].batch(slice(0, 1)).inputs["image"].features[0, : 2 + row] == row).all()


# -- sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([(20, 30)], (20, 30)),  # small and all alike: as they are
        ([(20, 30), (30, 20)], (30, 30)),  # small: a square that holds them
        ([(300, 200)], (128, 128)),
        ([(300, 200), (40, 400)], (128, 128)),
        ([(1, 1)], (8, 8)),
    ],
)
def test_pictures_are_read_in_a_size_that_suits_them(
    tmp_path: Path, sizes: list[tuple[int, int]], expected: tuple[int, int]
) -> None:
    for n, label in enumerate(("cat", "dog") * 6):
        height, width = sizes[n // 2 % len(sizes)]
        (tmp_path / "pets" / label).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (width, height), (20 * n, 0, 9)).save(tmp_path / "pets" / label / f"{n}.png")
    spec = image_of(made("images", tmp_path / "pets")[0])
    assert (spec.height, spec.width, spec.size, spec.max_frames) == (*expected, 3, 1)


def test_size_fit_and_colour_can_be_chosen(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path / "pets")
    spec = image_of(made("images", folder, image_size=[16, 12], image_fit="cover", grey=True)[0])
    assert (spec.height, spec.width, spec.size, spec.fit) == (16, 12, 1, "cover")
    assert image_of(made("images", folder, image_size=9)[0]).height == 9
    for size in ([1, 2, 3], 0, [4, -1]):
        with pytest.raises(ConfigError, match=r"data.image_size"):
            DataConfig(image_size=size)


def test_pictures_without_colour_are_read_grey_and_measured_on_training_alone(tmp_path: Path) -> None:
    for part, brightness in (("train", 100), ("val", 0), ("test", 255)):
        for n, label in enumerate(("cat", "dog") * 4):
            path = tmp_path / "pets" / part / label / f"{n}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 8), brightness + (n if brightness < 255 else 0)).save(path)
    spec = image_of(made("images", tmp_path / "pets")[0])
    assert spec.size == 1
    np.testing.assert_allclose(spec.mean, (103.5 / 255,))
    np.testing.assert_allclose(spec.scale, (np.std(np.arange(8)) / 255,), rtol=1e-6)


def test_animated_pictures_are_told(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path / "pets", 30)
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(folder / "cat" / "0moves.gif", save_all=True, append_images=frames[1:])
    data = ImagesTask().open(DataConfig(source=[str(folder)], split="98/1/1"))
    told: list[str] = []
    ImagesTask().schema(data, TokenizerConfig(), told.append)
    assert told[0] == '1 picture is animated, of which the first frame is read: "cat/0moves.gif"'


def test_long_clips_are_read_at_some_moments(tmp_path: Path) -> None:
    names = [f"{way}/c{c}/{n}.png" for way in ("left", "right") for c in range(4) for n in range(20)]
    schema, stores, told = made("images", write_pictures(tmp_path / "moves", names))
    assert image_of(schema).max_frames == 16
    assert told == ["Pictures: 8 x 8, colour (contain), up to 16 frames; of clips of up to 20, evenly spaced"]
    assert stores["train"].pictures.content.shape[1] == 16  # type: ignore[union-attr]


# -- runs that start from others, other data -----------------------------------------------------------------------


def test_a_run_that_starts_from_another_sees_and_reads_as_that_does(tmp_path: Path) -> None:
    base, _, _ = made("captions", captioned_folder(tmp_path / "photos"), image_size=16)
    data = TASKS["images"].open(DataConfig(source=[str(labelled_folder(tmp_path / "pets"))]))
    schema = TASKS["images"].schema(data, TokenizerConfig(), lambda _: None, base)
    assert schema.specs["image"] == base.specs["image"]
    asked = TASKS["questions"].open(DataConfig(source=[str(asked_folder(tmp_path / "asked"))]))
    both = TASKS["questions"].schema(asked, TokenizerConfig(), lambda _: None, base)
    assert both.input("tokens", TokenSpec).tokenizer == base.input("tokens", TokenSpec).tokenizer


def test_pictures_and_questions_at_hand_are_read_as_training_was(tmp_path: Path) -> None:
    folder = labelled_folder(tmp_path / "pets")
    schema, _, _ = made("images", folder)
    store = ImagesTask().questions([str(folder / "cat" / "3.png")], schema)
    assert len(store) == 1
    asked = asked_folder(tmp_path / "asked")
    schema, _, _ = made("questions", asked)
    picture = str(asked / "images" / "1.png")
    store = QuestionsTask().questions([(picture, "is it odd?"), (picture, "is it even?")], schema)
    assert store.tokens is not None
    assert len(store) == 2
    with pytest.raises(DataError, match=r"give both, as \(file, question\)"):
        QuestionsTask().questions(["is it odd?"], schema)


def test_features_and_pictures_are_not_mixed_up(tmp_path: Path) -> None:
    schema, _, _ = made("captions", captioned_folder(tmp_path / "photos"))
    (tmp_path / "clips").mkdir()
    for n in range(3):
        np.save(tmp_path / "clips" / f"{n}.npy", np.ones((2, 5)))
    rows = [{"video": str(n), "caption": f"this is clip {n}"} for n in range(3)]
    table = write_rows(tmp_path / "clips" / "captions.csv", rows)
    data, part = TASKS["captions"].open_other(str(table), None, schema, DataConfig())
    with pytest.raises(ConfigError, match=r"the data has features, and the model was trained on pictures"):
        TASKS["captions"].store(data, part, schema)


def test_tokenizers_go_with_words(tmp_path: Path) -> None:
    data = ImagesTask().open(DataConfig(source=[str(labelled_folder(tmp_path / "pets"))]))
    with pytest.raises(ConfigError, match=r"--tokenizer char: pictures with labels are not text; drop it"):
        ImagesTask().schema(data, TokenizerConfig(kind="char"), lambda _: None)


# -- sets that have a name -----------------------------------------------------------------------------------------


def test_digits_are_built_in() -> None:
    schema, stores, _ = made("images", "digits8x8")
    assert {part: len(store) for part, store in stores.items()} == {"train": 1617, "valid": 90, "test": 90}
    assert (image_of(schema).height, image_of(schema).size) == (8, 1)


def test_sets_are_asked_for_what_they_have() -> None:
    with pytest.raises(DataError, match=r'"digits8x8" has nothing that --task captions asks for'):
        TASKS["captions"].open(DataConfig(source=["digits8x8"]))
    with pytest.raises(ConfigError, match=r'"digits8x8" brings its own parts and columns'):
        TASKS["images"].open(DataConfig(source=["digits8x8"], valid="x.csv"))


PUBLISHED = {
    "mnist": ("images", {"train": 55_000, "valid": 5_000, "test": 10_000}),
    "flickr8k": ("captions", {"train": 6_000, "valid": 1_000, "test": 804}),
    "multi30k-images:fr": ("captions", {"train": 5_528, "valid": 934, "test": 804}),
    "easy_vqa": ("questions", {"train": 34_717, "valid": 3_858, "test": 6_775}),
    "vqa_rad": ("questions", {"train": 1_617, "valid": 180, "test": 451}),
    "vqa_rad:closed": ("questions", {"train": 924, "valid": 103, "test": 272}),
}


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.usefixtures("shared_data")
def test_published_sets_have_their_parts(name: str) -> None:
    task, sizes = PUBLISHED[name]
    folders = {"multi30k-images": "flickr8k"}
    kind = name.partition(":")[0]
    if not any((folder / folders.get(kind, kind)).is_dir() for folder in data_folders()):
        pytest.skip(f"needs the data set {name} below SEQWISE_DATA")
    data = TASKS[task].open(DataConfig(source=[name]))
    assert {part: len(rows) for part, rows in data.parts.items()} == sizes
    if name == "vqa_rad":
        assert "test: 202 of its 203 pictures occur in the training part too" in data.notes
    if name == "flickr8k":
        assert {len(row.texts) for rows in data.parts.values() for row in rows} == {5}
