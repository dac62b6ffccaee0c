"""Rows that look at pictures, as batches."""

import numpy as np
import pytest
import torch

from seqwise.data.pair_store import Rows
from seqwise.data.schema import ImageSpec, LabelSpec, RegionSpec, Schema, seen_schema
from seqwise.data.seen import SeenData, SeenRow, frames_of
from seqwise.data.seen_store import Pixels, SeenBatches, SeenStore, Views, noise_of
from seqwise.data.text_examples import AnswerColumn

FRAMES = np.array([2, 1, 2, 2, 1])


def store(num_rows: int = 6) -> SeenStore:
    content = np.random.default_rng(0).integers(0, 256, (5, 2, 3, 4, 6), dtype=np.uint8)
    picture_of = np.array([0, 1, 1, 4, 3, 2])[:num_rows]
    rows = [SeenRow((f"{number}.png",), ("what is it",), "a") for number in picture_of]
    answers = {"label": AnswerColumn(np.array([0, 1, 1, 0, 1, 0])[:num_rows])}
    tokens = Rows.of(np.arange(1, 2 + number) for number in range(num_rows))
    return SeenStore(Pixels(content, FRAMES), picture_of, answers, rows, tokens)


def test_each_row_gets_its_picture_with_as_many_frames_as_it_has():
    found, content = store().batch(np.array([0, 3])), store().pictures.content
    images = found.inputs["image"]
    assert images.shape == (2, 2)
    assert torch.equal(images.lengths, torch.tensor([2, 1]))
    assert np.array_equal(images.pixels[0].numpy(), content[0])
    assert np.array_equal(images.pixels[1, 0].numpy(), content[4, 0])
    assert found.targets["label"].ids.tolist() == [0, 0]


def test_single_frames_stand_without_padding():
    images = store().batch(np.array([1, 3])).inputs["image"]
    assert images.shape == (2, 1)
    assert images.is_step is None


def test_chosen_rows_keep_their_pictures_words_and_answers():
    whole, kept = store(), store().choose(np.array([5, 2]))
    for place, row in enumerate((5, 2)):
        one, other = kept.batch(np.array([place])), whole.batch(np.array([row]))
        assert torch.equal(one.inputs["image"].pixels, other.inputs["image"].pixels)
        assert torch.equal(one.inputs["tokens"].ids, other.inputs["tokens"].ids)
        assert torch.equal(one.targets["label"].ids, other.targets["label"].ids)
    assert kept.rows == [whole.rows[5], whole.rows[2]]


def test_views_stand_in_the_place_of_the_pictures():
    features = np.arange(5 * 3 * 2, dtype=np.float32).reshape(5, 3, 2)
    views = Views(features, np.full((3, 4), 0.5, dtype=np.float32), np.array([3, 2, 1, 1, 1]))
    regions = store().seen_as(views).batch(np.array([0, 1])).inputs["image"]
    assert regions.features.tolist() == features[[0, 1]].tolist()
    assert regions.boxes.shape == (2, 3, 4)
    assert regions.is_region.tolist() == [[True, True, True], [True, True, False]]


def test_every_row_is_drawn_once_an_epoch_and_any_step_by_itself():
    source = SeenBatches(store(), batch_size=2, seed=3, num_noise=4)
    drawn = [source.batch(step) for step in range(source.steps_per_epoch)]
    lengths = sorted(length for batch in drawn for length in batch.inputs["tokens"].lengths.tolist())
    assert lengths == [1, 2, 3, 4, 5, 6]
    again = SeenBatches(store(), batch_size=2, seed=3, num_noise=4).batch(1)
    assert torch.equal(again.inputs["image"].pixels, drawn[1].inputs["image"].pixels)
    assert torch.equal(again.inputs["noise"].uniform, drawn[1].inputs["noise"].uniform)
    assert not torch.equal(drawn[0].inputs["noise"].uniform, drawn[1].inputs["noise"].uniform)


def test_noise_is_finite_and_normal():
    noise = noise_of((500, 40), (1,))
    normal = noise.normal()
    assert torch.isfinite(normal).all()
    assert abs(float(normal.mean())) < 0.03
    assert abs(float(normal.std()) - 1) < 0.03


def test_batches_of_pictures_are_split_with_their_noise():
    batch = SeenBatches(store(), batch_size=6, num_noise=2).batch(0)
    parts = batch.split(2)
    assert [len(part) for part in parts] == [3, 3]
    assert torch.equal(torch.cat([part.inputs["noise"].uniform for part in parts]), batch.inputs["noise"].uniform)


@pytest.mark.parametrize("image", [ImageSpec(8, 9, (0.5,), (0.2,), "cover", 3), RegionSpec(7, ["dog"], False, 5)])
def test_a_schema_of_pictures_is_saved_and_loaded(tmp_path, image):
    schema = seen_schema(image, LabelSpec(["no", "yes"]))
    schema.save(tmp_path)
    assert Schema.load(tmp_path) == schema


@pytest.mark.parametrize("wrong", [{"mean": (0.1, 0.2)}, {"scale": (0.0,)}, {"fit": "bend"}, {"height": 0}])
def test_pictures_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="pictures"):
        ImageSpec(**{"height": 4, "width": 4, "mean": (0.5,), "scale": (1.0,), **wrong})


class Nowhere:
    fingerprint = "x"

    def read(self, name):
        raise NotImplementedError


def test_data_is_told_by_its_rows_and_its_pictures():
    rows = [SeenRow(("a.png",), ("A dog .", "One dog ."), None), SeenRow(("b.png",), ("A cat .",), None)]
    data = SeenData("pets", {"train": rows}, Nowhere(), "caption", "split as given")
    assert data.description == "pets: 2 pictures, 3 captions; split as given (train 2)"
    assert frames_of([*rows, rows[0]]) == [("a.png",), ("b.png",)]
    other = SeenData("pets", {"train": rows[:1]}, Nowhere(), "caption", "split as given")
    assert data.fingerprint != other.fingerprint
