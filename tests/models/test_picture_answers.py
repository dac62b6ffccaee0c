"""The contract for labels of pictures, clips and regions: every family that gives them from pictures alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch
from seqwise.data.schema import LABEL, PICTURES, ImageSpec, LabelSpec, RegionSpec, Schema, seen_schema
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore, Views
from seqwise.data.text_examples import AnswerColumn
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.models.contract import noise_for
from seqwise.models.eyes import num_regions

TOLERANCE = 1e-5
RANDOM = np.random.default_rng(0)
PICTURE, CLIP = ImageSpec(10, 7, (0.5,) * 3, (0.2,) * 3), ImageSpec(6, 6, (0.5,), (0.2,), max_frames=3)
BOXES, FRAMES = RegionSpec(5, max_regions=4), RegionSpec(5, has_boxes=False, max_regions=4)
INPUTS: dict[str, tuple[Any, Pixels | Views]] = {
    "picture": (PICTURE, Pixels(RANDOM.integers(0, 256, (5, 1, 3, 10, 7), dtype=np.uint8))),
    "clip": (CLIP, Pixels(RANDOM.integers(0, 256, (5, 3, 1, 6, 6), dtype=np.uint8), np.array([2, 3, 1, 3, 2]))),
    "boxes": (
        BOXES,
        Views(
            RANDOM.standard_normal((5, 4, 5)).astype(np.float32),
            RANDOM.random((5, 4, 4)).astype(np.float32),
            np.array([4, 2, 3, 1, 4]),
        ),
    ),
    "frames": (
        FRAMES,
        Views(RANDOM.standard_normal((5, 4, 5)).astype(np.float32), regions=np.array([4, 2, 3, 1, 4])),
    ),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "conv": {"widths": [4, 6, 8], "pooling": "mean", "label_smoothing": 0.1},
    "bert": {"num_layers": 2, "model_dim": 16, "num_heads": 2, "patch_size": 4, "pooling": "first"},
}


@dataclass(frozen=True)
class Case:
    family: str
    seen: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return seen_schema(INPUTS[self.seen][0], LabelSpec(["a", "b", "c"]))

    @property
    def store(self) -> SeenStore:
        rows = [SeenRow((f"{number}.png",), (), "a") for number in range(5)]
        answers = {"label": AnswerColumn(np.array([0, 2, 1, 1, 0]))}
        return SeenStore(INPUTS[self.seen][1], np.arange(5), answers, rows)

    def build(self) -> Any:
        torch.manual_seed(0)
        row = MODELS[self.family]
        model = row.build(row.config(**{**SETTINGS[self.family], **self.settings}), self.schema)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        return model.eval()


CASES = [
    *(Case(family, seen) for family in SETTINGS for seen in INPUTS),
    *(Case("conv", "picture", {"pooling": pooling}) for pooling in ("max", "attention", "last")),
    Case("conv", "picture", {"eye_stride": 2, "blocks_per_stage": 0}),
    Case("bert", "clip", {"pooling": "mean", "patch_size": 5}),
]
each_case = pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "-".join([case.family, case.seen, *map(str, case.settings.values())])
)


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a.double(), b.double(), atol=TOLERANCE, rtol=0)


def test_every_family_that_labels_pictures_is_covered() -> None:
    found = {name for name, row in MODELS.items() if LABEL in row.learns and row.can_read(*PICTURES)}
    assert found - SETTINGS.keys() <= {"glimpse", "draw", "captioner"}  # which have suites of their own


@each_case
@torch.no_grad()
def test_padding_and_other_rows_change_nothing(case: Case) -> None:
    model, store = case.build(), case.store
    together, _ = model.score(store.batch(slice(0, 5)))
    for row in range(5):
        alone = store.batch(np.array([row]))
        same(model.score(alone)[0][0], together[row])
    assert together.std() > 1e-3


@each_case
@torch.no_grad()
def test_probabilities_sum_to_one(case: Case) -> None:
    found = case.build().predict(case.store.batch(slice(0, 5)))
    same(found.log_probs.double().logsumexp(dim=-1), torch.zeros(5))
    assert torch.equal(found.answers, found.log_probs.argmax(dim=1))


@each_case
def test_micro_batches_give_the_gradient_of_the_whole_batch(case: Case) -> None:
    model, batch = case.build().double(), case.store.batch(slice(0, 5)).in_64_bits()

    def gradient(parts: list[Batch]) -> torch.Tensor:
        model.zero_grad()
        for part in parts:
            model.loss(part).over({**batch.counts(), **batch.sizes()}).backward()
        return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])

    whole = gradient([batch])
    assert whole.abs().max() > 0
    torch.testing.assert_close(gradient(batch.split(3)), whole, atol=1e-10, rtol=1e-8)


@each_case
@torch.no_grad()
def test_the_loss_is_the_score_of_what_counts(case: Case) -> None:
    model, batch = case.build(), case.store.batch(slice(0, 5))
    score, share = model.score(batch)[0], {**SETTINGS[case.family], **case.settings}.get("label_smoothing", 0.0)
    wanted = (1 - share) * score.sum() + share * model.predict(batch).log_probs.mean(dim=1).sum()
    same(model.loss(batch).terms["label"].total, -wanted)


@each_case
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_the_same_numbers(case: Case) -> None:
    model, batch = case.build(), case.store.batch(slice(0, 5))
    row = MODELS[case.family]
    other = row.build(row.config(**{**SETTINGS[case.family], **case.settings}), case.schema)
    other.load_state_dict(load(save(dict(model.state_dict()))))
    same(other.eval().score(batch)[0], model.score(batch)[0])
    assert noise_for(model) == 0


@pytest.mark.parametrize("seen", INPUTS)
@torch.no_grad()
def test_a_picture_with_its_cells_in_another_order_is_another_one(seen: str) -> None:
    """But for regions in boxes, which may come in any order."""
    case = Case("bert", seen, {"pooling": "first"})
    model, batch = case.build(), case.store.batch(np.array([0, 4]))
    regions = model.body.eyes(batch.inputs["image"])
    order = torch.arange(regions.shape[1]).flip(0)
    turned = regions.map(lambda tensor: tensor[:, order])
    first, second = (model.score(Batch({"image": one}, batch.targets))[0] for one in (regions, turned))
    assert torch.allclose(first, second, atol=1e-5) == (seen == "boxes")


def test_the_first_place_reads_as_the_whole_row_would() -> None:
    """`encode_first` computes the last block for one place alone."""
    model, batch = Case("bert", "picture").build(), Case("bert", "picture").store.batch(slice(0, 5))
    same(model.body.encode_first(batch.inputs).stream.pooled, model.body.encode(batch.inputs).stream.pooled)


def test_patches_hold_the_pixels_of_their_place() -> None:
    model, images = Case("bert", "picture").build(), Case("bert", "picture").store.batch(slice(0, 2)).inputs["image"]
    regions = model.body.eyes(images)
    assert regions.shape == (2, 6)  # 3 rows of 2
    assert num_regions(model.body.eyes, PICTURE) == 6
    scaled = (images.pixels[:, 0].float() / 255 - 0.5) / 0.2
    second_row = scaled[:, :, 4:8, 0:4].flatten(1)  # the third patch: second row, first column
    same(regions.features[:, 2], second_row)
    same(regions.boxes[0, 2], torch.tensor([0.0, 1 / 3, 1 / 2, 2 / 3]))


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("conv", {"widths": []}, r"model\.widths = \[\] should be numbers of channels"),
        ("conv", {"eye_stride": 0}, "model.eye_stride = 0 should be at least 1"),
        ("bert", {"patch_size": 0}, "model.patch_size = 0 should be at least 1"),
        ("bert", {"positions": "rotary"}, "a picture has no order"),
        ("conv", {"label_smoothing": 1.0}, "should lie in"),
    ],
)
def test_settings_that_do_not_fit_are_refused(family: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Case(family, "picture", settings).build()
