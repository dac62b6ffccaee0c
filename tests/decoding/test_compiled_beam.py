"""Steps of a beam in one compiled loop: what the search finds step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from steppers import CONV, GPTS, RECURRENT, SEQ2SEQ, TRANSFORMERS, Shape, build, prompt_of

from seqwise.decoding import DecodingConfig, Hypothesis, beam, generate
from seqwise.kernels.searching import plan_moves
from seqwise.models.engine import Pace, Searching, engine

pytestmark = pytest.mark.usefixtures("compiled")
MODELS = [GPTS[0], GPTS[-1], RECURRENT[3], CONV[1], SEQ2SEQ[8], TRANSFORMERS[0], TRANSFORMERS[-1]]
STOP, NEVER = 3, 5
LENGTHS = (5, 1, 9)  # of prompts


def found_by(model: Any, prompt: Any, limits: list[int] | None = None, **options: Any) -> list[list[Hypothesis]]:
    with engine("on"):
        return generate(model, prompt, DecodingConfig(method="beam", **options), limits=limits)


def same_in_the_loop(model: Any, prompt: Any, limits: list[int] | None = None, **options: Any) -> int:
    """The hypotheses with the loop and without it, and how many steps it took."""
    num_steps = 0
    go_on = Searching.go_on

    def counted(self: Searching, log_probs: Any, state: Any, tokens: Any, *more: Any) -> Any:
        nonlocal num_steps
        found = go_on(self, log_probs, state, tokens, *more)
        num_steps += 0 if found is None else found[1].shape[1] - tokens.shape[1]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Searching, "go_on", counted)
        found = found_by(model, prompt, limits, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam, "_searching", lambda *_: None)
        expected = found_by(model, prompt, limits, **options)
    assert [[h.tokens for h in of_one] for of_one in found] == [[h.tokens for h in of_one] for of_one in expected]
    for mine, other in zip(found, expected, strict=True):
        # what torch computes again where a context is full depends a little on the rows beside it
        assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in other], abs=1e-4)
        assert [h.is_finished for h in mine] == [h.is_finished for h in other]
    return num_steps


@pytest.mark.parametrize("shape", MODELS, ids=lambda shape: shape.name)
@pytest.mark.parametrize(
    "options",
    [
        {"beam_width": 5},
        {"beam_width": 1, "stop": STOP},
        {"beam_width": 3, "stop": STOP, "num_results": 3, "length_penalty": 1.0},
        {"beam_width": 4, "stop": STOP, "min_tokens": 12, "never": NEVER},
    ],
    ids=["plain", "one", "ends", "fewest"],
)
def test_the_hypotheses_are_those_of_step_by_step(shape: Shape, options: dict[str, Any]) -> None:
    """Past the context of gpt; of prompts that end at different times."""
    model, prompt = build(shape, sharpness=2.0), prompt_of(shape, LENGTHS)
    taken = same_in_the_loop(model, prompt, max_tokens=40, **options)
    assert same_in_the_loop(model, prompt, [40, 3, 17], max_tokens=40, **options) or "stop" in options
    if "stop" not in options:
        assert taken == 38  # all but the first and the last
    elif "min_tokens" in options:
        assert taken >= 10


GPT, PAIRS = build(GPTS[0], sharpness=2.0), build(TRANSFORMERS[0], sharpness=2.0)


@settings(max_examples=40)
@given(
    is_pair=st.booleans(),
    width=st.integers(1, 6),
    stop=st.none() | st.integers(0, 22),
    never=st.none() | st.integers(0, 22),
    min_tokens=st.integers(0, 12),
    length_penalty=st.sampled_from([0.0, 1.0]),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=5),
)
def test_any_search_is_that_of_step_by_step(
    is_pair: bool, width: int, stop: int | None, never: int | None, lengths: list[int], **more: Any
) -> None:
    model, shape = (PAIRS, TRANSFORMERS[0]) if is_pair else (GPT, GPTS[0])
    never = None if never == stop else never
    same_in_the_loop(model, prompt_of(shape, lengths), beam_width=width, stop=stop, never=never, max_tokens=20, **more)


@torch.no_grad()
def test_of_tokens_that_tie_those_come_first_that_do_without_the_loop() -> None:
    """Every token has twins of just its probability."""
    model = build(SEQ2SEQ[8])
    for tensor in (model.head.output.weight, model.head.output.bias):
        if tensor is not None:
            tensor.copy_(tensor[torch.arange(len(tensor)) % 4])
    taken = same_in_the_loop(model, prompt_of(SEQ2SEQ[8], LENGTHS), beam_width=5, max_tokens=12, num_results=5)
    assert taken == 10


def test_two_ranks_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt = prompt_of(TRANSFORMERS[0], LENGTHS)
    expected = found_by(PAIRS, prompt, beam_width=5, max_tokens=30)
    numbers = iter([2, 1] * 100)
    monkeypatch.setattr(Pace, "ranks", lambda self: next(numbers))
    assert found_by(PAIRS, prompt, beam_width=5, max_tokens=30) == expected


@njit
def _plan(parents, moves):
    return plan_moves(parents, moves)


@settings(max_examples=200)
@given(st.data())
def test_rows_are_copied_in_an_order_that_loses_none_and_no_more_than_it_takes(data: st.DataObject) -> None:
    num = data.draw(st.integers(1, 12))
    parents = np.array(data.draw(st.lists(st.integers(0, num - 1), min_size=num, max_size=num)))
    moves = np.zeros((2 * num, 2), dtype=np.int64)
    rows = [*range(num), -1]
    planned = moves[: _plan(parents, moves)].tolist()
    for before, to in planned:
        rows[to] = rows[before]
    assert rows[:num] == parents.tolist()
    written = [to for _, to in planned if to < num]
    assert sorted(written) == [row for row in range(num) if parents[row] != row]


def test_penalties_and_whoever_watches_are_served_step_by_step() -> None:
    config = DecodingConfig(method="beam", beam_width=2)
    assert beam._searching(GPT, config, None) is not None
    assert beam._searching(GPT, config, lambda _: None) is None
    assert beam._searching(GPT, DecodingConfig(method="beam", beam_width=2, repetition_penalty=1.2), None) is None
