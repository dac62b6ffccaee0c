"""Rates that fall from layer to layer, layers that are unfrozen one by one, and the slanted triangle."""

from __future__ import annotations

from typing import Any

import pytest
import schemas
import torch

from seqwise.data.batch import Batch
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.settings import TrainingConfig
from seqwise.training.layer_rates import layers_of, lowest_layer
from seqwise.training.loop import Trainer
from seqwise.training.optimizers import build_optimizers, rate_at, set_rate

BODIES: dict[str, dict[str, Any]] = {
    "window": {"window": 2, "embed_dim": 4, "model_dim": 6, "num_layers": 2},
    "conv": {"model_dim": 6, "num_layers": 2},
    "lstm": {"model_dim": 6, "num_layers": 2, "layer_norm": "between"},
    "gpt": {"context": 8, "num_layers": 2, "model_dim": 8, "num_heads": 2, "positions": "learned"},
}


def build(name: str) -> Any:
    torch.manual_seed(0)
    return MODELS[name].build(MODELS[name].config(**BODIES[name]), schemas.of_answers(3, vocab_size=5))


@pytest.mark.parametrize("name", BODIES)
def test_embeddings_are_lowest_heads_highest_and_layers_between_in_order(name: str) -> None:
    layers = layers_of(weight for weight, _ in build(name).named_parameters())
    assert {layer for weight, layer in layers.items() if "embedding" in weight or "position" in weight} == {0}
    assert {layer for weight, layer in layers.items() if weight.startswith("head.")} == {3}
    inside = [layer for weight, layer in layers.items() if weight.startswith("body.") and layer > 0]
    assert set(inside) == {1, 2}
    marks = {"window": ("first", "more.0"), "gpt": ("blocks.0", "blocks.1")}
    first, second = marks.get(name, ("layers.0", "layers.1"))
    for weight, layer in layers.items():
        if weight.startswith("body.") and (first in weight or second in weight):
            assert layer == (1 if first in weight else 2), weight


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
def test_each_layer_has_its_share_of_the_rate_of_the_layer_above(optimizer: str) -> None:
    config = TrainingConfig(optimizer=optimizer, learning_rate=0.1, matrix_learning_rate=0.2, layer_rate_factor=0.5)  # type: ignore[arg-type]
    model = build("lstm")
    optimizers = build_optimizers(model, config)
    set_rate(optimizers, 1.0)
    layers = layers_of(name for name, _ in model.named_parameters())
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    seen = []
    for number, made in enumerate(optimizers):
        highest = 0.2 if optimizer == "muon" and number == 0 else 0.1
        for group in made.param_groups:
            for parameter in group["params"]:
                name = names[id(parameter)]
                seen.append(name)
                assert group["lr"] == pytest.approx(highest * 0.5 ** (3 - layers[name])), name
    assert sorted(seen) == sorted(names.values())


def test_without_a_factor_groups_are_what_they_were() -> None:
    groups = build_optimizers(build("lstm"), TrainingConfig(optimizer="adamw"))[0].param_groups
    assert len(groups) == 2


def test_layers_are_unfrozen_from_the_top() -> None:
    asked = [lowest_layer(step, 3, 0.5, 10) for step in (0, 4, 5, 9, 10, 15, 40)]
    assert asked == [3, 3, 2, 2, 1, 0, 0]


class OneBatch:
    steps_per_epoch = 2

    def __init__(self, batch: Batch):
        self.held = batch

    def batch(self, step: int, model: object = None) -> Batch:
        return self.held


def test_what_is_frozen_does_not_move_and_what_is_not_does() -> None:
    from seqwise.data.examples import ExampleStore

    model, random = build("lstm"), torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=random)
    inputs = torch.randint(5, (8, 6), generator=random).numpy()
    store = ExampleStore(inputs, inputs[:, 0] % 3)
    config = TrainingConfig(steps=8, unfreeze_epochs=1.0, warmup_steps=0, optimizer="adamw", weight_decay=0.1)
    trainer = Trainer(model, OneBatch(store.batch(slice(0, 8))), config)
    layers = layers_of(name for name, _ in model.named_parameters())
    for step in range(8):
        before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        trainer.set_rate()
        trainer.measure()
        trainer.move()
        lowest = max(0, 3 - step // 2)
        for name, weight in model.named_parameters():
            assert torch.equal(weight, before[name]) == (layers[name] < lowest), (step, name)


def test_the_slanted_triangle_rises_over_a_tenth_and_falls_to_a_thirty_second() -> None:
    config = TrainingConfig(steps=200, schedule="slanted_triangular")
    rates = [rate_at(step, config) for step in range(200)]
    assert rates.index(max(rates)) == 19
    assert max(rates) == 1.0
    assert rates[:20] == sorted(rates[:20])
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert rates[-1] == pytest.approx(1 / 32, abs=0.01)
    assert rates[0] == pytest.approx((1 + 31 / 20) / 32)


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.5])
def test_a_factor_that_is_none_is_refused(factor: float) -> None:
    with pytest.raises(ConfigError, match="layer_rate_factor"):
        TrainingConfig(layer_rate_factor=factor)
