"""glimpse: what teaches it where to look, against enumeration. It reads digits in tests/goals/test_seen_answers.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from seqwise.data.batch import Batch, Images, Labels, Noise
from seqwise.data.schema import ImageSpec, LabelSpec, Schema, seen_schema
from seqwise.errors import ConfigError
from seqwise.inspection import record
from seqwise.layers.stream import Stream
from seqwise.models import MODELS
from seqwise.models.glimpse import GlimpseModel, spread_places

SMALL: dict[str, Any] = {"num_glimpses": 3, "glimpse_size": 3, "embed_dim": 8, "model_dim": 12}


def schema_of(side: int, num_labels: int = 3, channels: int = 1) -> Schema:
    spec = ImageSpec(side, side, (0.3,) * channels, (0.4,) * channels)
    return seen_schema(spec, LabelSpec([str(label) for label in range(num_labels)]))


def build(schema: Schema, spread: float = 0.5, **settings: Any) -> GlimpseModel:
    """With weights that differ from each other."""
    torch.manual_seed(0)
    row = MODELS["glimpse"]
    model = row.build(row.config(**{**SMALL, **settings}), schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=spread)
    found: GlimpseModel = model.eval()
    return found


def batch_of(model: GlimpseModel, side: int, num: int = 4, channels: int = 1) -> Batch:
    made = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (num, 1, channels, side, side), generator=made, dtype=torch.uint8)
    inputs: dict[str, Any] = {"image": Images(pixels)}
    if model.num_noise:
        inputs["noise"] = Noise(torch.rand(num, model.num_noise, generator=made))
    return Batch(inputs, {"label": Labels(torch.arange(num) % 3)})


def weights_of_places(model: GlimpseModel) -> list[Tensor]:
    return list(model.looking.to_place.parameters())


def test_the_gradient_of_reward_is_that_of_its_expectation() -> None:
    """Two glimpses: every pair of places on a grid, each as probable as it is, against the derivative of the sum."""
    model = build(schema_of(5), num_glimpses=2, spread=0.4).double()
    with torch.no_grad():  # means away from the middle, and one that depends on what was seen
        model.looking.to_place.weight.mul_(0.3)
        model.looking.to_baseline.weight.mul_(0.2)
    images = Images(torch.randint(256, (1, 1, 1, 5, 5), generator=torch.Generator().manual_seed(4), dtype=torch.uint8))
    spread, steps = model.looking.config.spread, 17
    chances = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps  # each as probable as another
    grid = torch.cartesian_prod(*[chances] * 4)  # (N, 4): x, y of the first glimpse, x, y of the second
    many = images.map(lambda tensor: tensor.expand(len(grid), *tensor.shape[1:]))
    labels = Labels(torch.ones(len(grid), dtype=torch.long))
    loss = model.loss(Batch({"image": many, "noise": Noise(grid)}, {"label": labels}))
    found = torch.autograd.grad(loss.terms["places"].total / len(grid), weights_of_places(model))

    # the same places, held fixed, and how probable they are as the weights move
    def places_and_answers() -> tuple[Tensor, Tensor]:
        with record(model) as trace:
            right = model.label_head.predict(model_stream(model, many, grid)).answers == 1
        return trace_of(trace, "place"), right.double()

    places, rewards = places_and_answers()
    assert 0.02 < rewards.mean() < 0.98  # something depends on where it looks
    look = model.looking.look(many, Noise(grid))
    before = torch.cat([torch.zeros_like(look.hidden[:, :1]), look.hidden[:, :1]], dim=1).detach()
    means = model.looking.to_place(before).tanh()  # (N, 2, 2)
    log_probs = Normal(means, spread).log_prob(places.double()).sum(dim=(1, 2))
    probable = (log_probs - log_probs.detach()).exp() / len(grid)  # of each cell, where the weights are; and near by
    wanted = torch.autograd.grad(-(probable * rewards).sum(), weights_of_places(model))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=0.05)
        assert b.abs().max() > 5e-3


def model_stream(model: GlimpseModel, images: Images, chances: Tensor) -> Stream:
    return Stream(model.looking.look(images, Noise(chances)).hidden)


def trace_of(trace: Any, what: str) -> Tensor:
    (key,) = [key for key in trace if key[1] == what]
    found: Tensor = trace[key]
    return found


def test_a_baseline_changes_the_spread_of_the_gradient_and_not_its_mean() -> None:
    model = build(schema_of(5), num_glimpses=1, spread=0.4).double()
    chances = (torch.arange(80, dtype=torch.float64) + 0.5) / 80
    grid = torch.cartesian_prod(chances, chances)
    images = Images(torch.randint(256, (1, 1, 1, 5, 5), dtype=torch.uint8).expand(len(grid), -1, -1, -1, -1))
    batch = Batch({"image": images, "noise": Noise(grid)}, {"label": Labels(torch.ones(len(grid), dtype=torch.long))})
    found = []
    for bias in (0.0, 5.0):
        torch.nn.init.constant_(model.looking.to_baseline.bias, bias)
        total = model.loss(batch).terms["places"].total / len(grid)
        found.append(torch.autograd.grad(total, weights_of_places(model))[1])
    torch.testing.assert_close(found[0], found[1], atol=1e-3, rtol=0.02)


def test_what_teaches_where_to_look_teaches_nothing_else() -> None:
    model = build(schema_of(6))
    batch = batch_of(model, 6)
    loss = model.loss(batch)
    assert set(loss.terms) == {"label", "places", "baseline"}
    parts = {"places": model.looking.to_place, "baseline": model.looking.to_baseline}
    for term, part in parts.items():
        model.zero_grad()
        loss.terms[term].total.backward(retain_graph=True)
        moved = {name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()}
        own = {id(weight) for weight in part.parameters()}
        assert moved == {name for name, weight in model.named_parameters() if id(weight) in own}


@torch.no_grad()
def test_answers_follow_the_mean_places_whatever_the_noise() -> None:
    model = build(schema_of(6))
    batch = batch_of(model, 6)
    without = replace(batch, inputs={"image": batch.inputs["image"]})
    assert torch.equal(model.score(batch)[0], model.score(without)[0])
    with record(model) as trace:
        model.predict(without)
    assert torch.equal(trace_of(trace, "place"), trace_of(trace, "expected place"))
    assert trace_of(trace, "place").shape == (4, 3, 2)
    (glimpses,) = [trace.calls((site, what)) for site, what in trace if what == "glimpse"]
    assert [tuple(glimpse.shape) for glimpse in glimpses] == [(4, 1, 1, 3, 3)] * 3
    assert trace_of(trace, "place")[:, 1:].std(dim=0).min() > 0  # each picture is looked at elsewhere


@torch.no_grad()
def test_draws_are_the_mean_probability_over_paths() -> None:
    model, other = build(schema_of(6), draws=5), build(schema_of(6))
    batch = batch_of(model, 6)
    assert model.num_noise == 5 * other.num_noise == 30
    each = []
    for draw in range(5):
        chance = Noise(batch.inputs["noise"].uniform[:, 6 * draw : 6 * (draw + 1)])
        stream = model_stream(other, batch.inputs["image"], chance.uniform)
        each.append(other.label_head.log_probs(stream).exp())
    found = model.predict(batch).log_probs
    assert found is not None
    torch.testing.assert_close(found.exp(), torch.stack(each).mean(dim=0))


@torch.no_grad()
def test_controls_look_where_they_are_told() -> None:
    fixed, chosen = build(schema_of(6), where="fixed"), build(schema_of(6), where="random")
    assert fixed.num_noise == 0
    places = []
    for model in (fixed, chosen):
        batch = batch_of(model, 6)
        with record(model) as trace:
            model.predict(batch)
        places.append(trace_of(trace, "place"))
        assert set(model.loss(batch).terms) == {"label"}
    torch.testing.assert_close(places[0], spread_places(3).expand(4, 3, 2))
    wanted = 2 * batch.inputs["noise"].uniform.view(4, 3, 2) - 1
    torch.testing.assert_close(places[1], wanted)


def test_fixed_places_fill_the_picture() -> None:
    assert spread_places(3).tolist() == [
        [0.0, pytest.approx(-1 / 3)],
        [-0.5, pytest.approx(1 / 3)],
        [0.5, pytest.approx(-7 / 9)],
    ]
    cells = ((spread_places(36) + 1) / 2 * torch.tensor([4, 9]) + 1e-4).floor().long()
    assert len({tuple(cell) for cell in cells.tolist()}) == 36  # one in each


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"spread": 0.0}, "model.spread = 0.0 should be above 0, and at most 1."),
        ({"num_scales": 7}, "model.num_scales = 7 should be from 1 to 6."),
        ({"num_glimpses": 0}, "model.num_glimpses = 0 should be at least 1."),
        ({"draws": -1}, "model.draws = -1 should be at least 0."),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        MODELS["glimpse"].config(**settings)


def test_clips_are_refused() -> None:
    spec = ImageSpec(6, 6, (0.3,), (0.4,), max_frames=4)
    with pytest.raises(ConfigError, match="glimpse looks at single pictures, and these are clips"):
        MODELS["glimpse"].build(MODELS["glimpse"].config(), seen_schema(spec, LabelSpec(["a", "b"])))
