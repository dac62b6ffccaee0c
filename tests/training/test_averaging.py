"""A running mean of the weights over validations."""

from __future__ import annotations

import torch
from torch import nn

from seqwise.training.averaging import WeightAverage


def filled(model: nn.Linear, value: float) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)


def test_the_first_few_count_alike_and_older_ones_fade() -> None:
    model = nn.Linear(2, 2)
    average = WeightAverage(model, over=2)
    expected = []
    for value in (1.0, 3.0, 6.0):
        filled(model, value)
        average.add()
        expected.append(float(average.mean["weight"][0, 0]))
    assert expected == [1.0, 2.0, 4.0]  # (1 + 3) / 2, then half way from 2 to 6


def test_the_mean_is_lent_to_the_model_and_taken_back() -> None:
    model = nn.Linear(2, 2)
    average = WeightAverage(model, over=5)
    filled(model, 1.0)
    average.add()
    filled(model, 2.0)
    with average.applied():
        assert float(model.weight.detach()[0, 0]) == 1.0
    assert float(model.weight.detach()[0, 0]) == 2.0


def test_it_goes_on_from_a_checkpoint() -> None:
    model = nn.Linear(2, 2)
    average = WeightAverage(model, over=3)
    assert average.tensors() == {}
    for value in (1.0, 2.0):
        filled(model, value)
        average.add()
    saved = {name: tensor.clone() for name, tensor in average.tensors().items()}
    again = WeightAverage(model, over=3)
    again.load({**saved, "optimizer.0.0.step": torch.zeros(())})
    filled(model, 6.0)
    for one in (average, again):
        one.add()
    assert again.number == average.number == 3
    assert torch.equal(again.mean["bias"], average.mean["bias"])
    assert float(again.mean["bias"][0]) == 3.0
    average.load({"optimizer.0.0.step": torch.zeros(())})  # of a checkpoint before the first validation
    assert average.tensors() == {}
