"""Influence by distance, against changing a token and scoring anew; an n-gram has its wall where it should."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from models.test_contract import CASES, Case, build

from seqwise.data.batch import Batch, Tokens, prompt_batch
from seqwise.inspection.influence import Influence, influence_by_distance, loss_by_position

VOCAB = 7
one_of_each = pytest.mark.parametrize(
    "case", list({case.family: case for case in CASES}.values()), ids=lambda case: case.family
)


def ids(T: int, seed: int = 2) -> torch.Tensor:
    return torch.randint(1, VOCAB, (T,), generator=torch.Generator().manual_seed(seed))


def distribution(model: Any, tokens: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model.start(prompt_batch([tokens]))[0][0].double().exp().numpy()


@one_of_each
def test_influence_is_the_divergence_of_predictions(case: Case) -> None:
    """One change at a known place: the first token, as there are two to choose from and the last is not changed."""
    model = build(case)
    text = torch.tensor([3, 5])
    found = influence_by_distance(model, text, max_distance=5, max_changes=1)
    assert len(found.by_distance) == 2
    for d, prefix in ((1, [3]), (2, [3, 5])):
        p, q = distribution(model, prefix), distribution(model, [5, *prefix[1:]])
        expected = float((p * np.log(np.where(p > 0, p, 1) / np.where(p > 0, q, 1))).sum())
        assert found.by_distance[d - 1] == pytest.approx(max(0.0, expected), abs=1e-5)


@pytest.mark.parametrize("family", ["rnn", "lstm", "gpt"])
def test_what_hardly_moves_is_measured_and_no_rounding(family: str) -> None:
    """Against 64 bits, where predictions differ in digits that 32 bits do not have."""
    model = build(next(case for case in CASES if case.family == family))
    for parameter in model.parameters():
        parameter.data *= 0.05  # little is left of a token after a few steps
    found = influence_by_distance(model, ids(8), max_distance=8, max_changes=1, seed=3)
    changed = np.random.default_rng(3)  # the change that was drawn
    place = int(changed.permutation(7)[0])
    others = ids(8)[ids(8) != ids(8)[place]]
    other = others[int(changed.integers(len(others)))]
    as_it_is, copied = ids(8), ids(8)
    copied[place] = other
    exact = copy.deepcopy(model).double()
    for d, value in enumerate(found.by_distance, start=1):
        p, q = (distribution(exact, text[: place + d].tolist()) for text in (as_it_is, copied))
        assert value == pytest.approx(float((p * (q / p - 1 - np.log(q / p))).sum()), rel=1e-2, abs=1e-27)
    assert 0 < min(found.by_distance) < 1e-10  # 32 bits say 1e-8, or nothing


@pytest.mark.parametrize("order", [1, 2, 3])
def test_an_ngram_ends_at_a_wall(order: int) -> None:
    model = build(Case("ngram", {"order": order}))
    found = influence_by_distance(model, ids(30), max_distance=10)
    assert found.reach() <= order - 1
    assert all(value == 0 for value in found.by_distance[order - 1 :])
    assert all(value > 0 for value in found.by_distance[: order - 1])


def test_reach_counts_a_hundredth_of_the_last_token() -> None:
    assert Influence([1.0, 0.5, 0.02, 0.001], [], []).reach() == 3
    assert Influence([0.0, 0.0], [], []).reach() == 0


@one_of_each
def test_loss_by_position_is_the_mean_of_scores(case: Case) -> None:
    model, text = build(case), ids(25).numpy()
    found = loss_by_position(model, text, 0, window=6)
    assert len(found) == 6
    rows = torch.from_numpy(text[:24].reshape(4, 6))
    expected = torch.zeros(6, dtype=torch.float64)
    for row in rows:
        inputs = torch.cat([torch.zeros(1, dtype=torch.long), row[:-1]]).unsqueeze(0)
        with torch.no_grad():
            scored = model.score(Batch({"tokens": Tokens(inputs)}, {"tokens": Tokens(row.unsqueeze(0))}))[0]
        expected -= scored[0].double() / np.log(2) / 4
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)
