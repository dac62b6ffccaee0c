"""Rows that come and go: what a text becomes does not depend on the others, and nobody is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from steppers import CONV, GPTS, RECURRENT, build, draw

from seqwise.decoding import DecodingConfig, generate
from seqwise.decoding.sampling import chances_of, choice_of
from seqwise.models.contract import State
from seqwise.serving import batching
from seqwise.serving.batching import Batcher, FullError, Job, LateError, Written
from seqwise.serving.prompts import BLOCK, Prompts
from seqwise.serving.rows import Rows

SHARP = 2.0  # logits, so that texts are not all alike
pytestmark = pytest.mark.usefixtures("each_way")
MODELS = [GPTS[0], RECURRENT[3], CONV[1]]
each_model = pytest.mark.parametrize("shape", MODELS, ids=lambda shape: shape.name)


@pytest.fixture
def batchers() -> Iterator[list[Batcher]]:
    made: list[Batcher] = []
    yield made
    for batcher in made:
        batcher.stop(seconds=0)
        assert not batcher._thread.is_alive()


class Asked:
    """A text that was asked for, to be waited for."""

    def __init__(self, prompt: Sequence[int], *, num_alternatives: int = 0, wait: float = 1e9, **config: Any):
        self.tokens: list[Written] = []
        self.done: Future[None] = Future()
        self.enough: int | None = None
        settings = DecodingConfig(**{"max_tokens": 20, **config})
        self.job = Job(
            prompt,
            choice_of(settings),
            settings.max_tokens,
            chances_of(settings)[0],
            self.take,
            self.end,
            num_alternatives,
            deadline=wait,
        )

    def take(self, tokens: list[Written]) -> bool:
        self.tokens += tokens
        return self.enough is None or len(self.tokens) < self.enough

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)

    def wait(self) -> list[int]:
        self.done.result(60)
        return [each.token for each in self.tokens]


CONFIGS: list[dict[str, Any]] = [
    {"method": "greedy"},
    {"seed": 3},
    {"seed": 4, "temperature": 0.6, "top_k": 5, "max_tokens": 33},
    {"seed": 5, "top_p": 0.8, "stop": 3, "max_tokens": 60},
    {"method": "greedy", "repetition_penalty": 1.7, "max_tokens": 7},
    {"seed": 9, "max_tokens": 1},
]


@each_model
def test_a_text_is_the_same_in_any_company_and_as_generate_writes_it(shape: Any, batchers: list[Batcher]) -> None:
    """Eighteen texts of their own kind each, six at once: rows enter while others are half-way, past gpt's context."""
    model = build(shape, sharpness=SHARP)
    batchers.append(batcher := Batcher(model, max_rows=6))
    prompts = [row.tolist()[: 1 + number % 7] for number, row in enumerate(draw(18, 8))]
    asked = [Asked(prompt, **CONFIGS[number % 6]) for number, prompt in enumerate(prompts)]
    batcher.submit(*(each.job for each in asked))
    found = [each.wait() for each in asked]
    for number, prompt in enumerate(prompts):
        (alone,) = generate(model, [prompt], DecodingConfig(**{"max_tokens": 20, **CONFIGS[number % 6]}))[0]
        assert found[number] == alone.tokens
        total = sum(each.log_prob for each in asked[number].tokens)
        assert total == pytest.approx(alone.log_prob, abs=1e-4)
    assert batcher.num_running == batcher.num_waiting == 0
    assert batcher.counts.rows / batcher.counts.steps > 2  # they did go side by side


def test_alternatives_are_the_most_probable_tokens_of_each_place(batchers: list[Batcher]) -> None:
    model = build(RECURRENT[3], sharpness=SHARP)
    batchers.append(batcher := Batcher(model))
    asked, other = Asked([1, 2], method="greedy", num_alternatives=3), Asked([4], seed=1)
    batcher.submit(asked.job, other.job)
    tokens = asked.wait()
    assert len(tokens) == 20
    for each in asked.tokens:
        assert [log_p for _, log_p in each.alternatives] == sorted((p for _, p in each.alternatives), reverse=True)
        assert each.alternatives[0] == (each.token, pytest.approx(each.log_prob))
        assert len(each.alternatives) == 3
    other.wait()
    assert not any(each.alternatives for each in other.tokens)


def test_who_has_enough_leaves_and_who_is_gone_too(batchers: list[Batcher]) -> None:
    model = build(GPTS[0], sharpness=SHARP)
    batchers.append(batcher := Batcher(model))
    enough, gone, stays = (Asked([1], max_tokens=most, seed=1) for most in (100, 100_000, 50))
    enough.enough = 5
    batcher.submit(gone.job, enough.job, stays.job)
    assert len(enough.wait()) >= 5
    assert len(stays.wait()) == 50
    gone.job.is_gone = True
    with pytest.raises(LateError):
        gone.wait()
    assert len(gone.tokens) < 100_000


def test_what_takes_too_long_is_given_up_and_said(batchers: list[Batcher]) -> None:
    batchers.append(batcher := Batcher(build(GPTS[0]), max_rows=1))
    late = Asked([1], max_tokens=1_000_000, wait=0.0)  # of a clock that began long ago
    batcher.submit(late.job)
    with pytest.raises(LateError, match="longer than a request may"):
        late.wait()


def test_a_queue_that_is_full_says_so_and_takes_all_or_none(batchers: list[Batcher]) -> None:
    batchers.append(batcher := Batcher(build(GPTS[0]), max_rows=1, max_waiting=2))
    first = Asked([1], max_tokens=100_000)
    batcher.submit(first.job)
    while not batcher.num_running:
        threading.Event().wait(0.01)
    waiting = [Asked([2], max_tokens=1) for _ in range(3)]
    with pytest.raises(FullError, match="0 requests wait already"):
        batcher.submit(*(each.job for each in waiting))
    assert batcher.num_waiting == 0
    batcher.submit(waiting[0].job)
    first.job.is_gone = True
    assert len(waiting[0].wait()) == 1


def test_one_that_fails_does_not_stop_the_others(batchers: list[Batcher]) -> None:
    """A token that no table has a row for."""
    batchers.append(batcher := Batcher(build(RECURRENT[3])))
    wrong, right = Asked([10_000]), Asked([1])
    batcher.submit(wrong.job, right.job)
    assert len(right.wait()) == 20
    with pytest.raises(Exception, match=r"."):
        wrong.wait()


def test_a_step_that_fails_is_told_to_all_that_ran_and_others_go_on(
    batchers: list[Batcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    batchers.append(batcher := Batcher(build(RECURRENT[3])))
    with monkeypatch.context() as patch:
        patch.setattr(batching, "choose", lambda *_: 1 / 0)
        patch.setattr(batching, "loop_for", lambda *_: None)
        asked = Asked([1])
        batcher.submit(asked.job)
        with pytest.raises(ZeroDivisionError):
            asked.wait()
    again = Asked([1])
    batcher.submit(again.job)
    assert len(again.wait()) == 20


def test_stopping_finishes_what_was_taken_and_takes_no_more() -> None:
    batcher = Batcher(build(RECURRENT[3]), max_rows=2)
    asked = [Asked([1 + number], max_tokens=40) for number in range(6)]
    batcher.submit(*(each.job for each in asked))
    batcher.stop(seconds=60)
    assert [len(each.wait()) for each in asked] == [40] * 6
    with pytest.raises(FullError, match="stopping"):
        batcher.submit(Asked([1]).job)


# -- prompts -----------------------------------------------------------------------------------------------------------


@each_model
def test_prompts_that_begin_alike_are_read_once_and_give_the_same_to_the_bit(shape: Any) -> None:
    model = build(shape, sharpness=SHARP)
    text = draw(1, 3 * BLOCK)[0].tolist()
    with torch.inference_mode():
        fresh = [Prompts(model, 1 << 30).read(text[:length]) for length in (5, BLOCK, BLOCK + 9, 3 * BLOCK - 1)]
        shared = Prompts(model, 1 << 30)
        shared.read([*text[: 2 * BLOCK], 7, 7])
        again = [shared.read(text[:length]) for length in (5, BLOCK, BLOCK + 9, 3 * BLOCK - 1)]
    for (log_probs, state), (others, other_state) in zip(fresh, again, strict=True):
        assert torch.equal(log_probs, others)
        assert all(torch.equal(tensor, other_state.per_row[name]) for name, tensor in state.per_row.items())
    if model.context is None:
        assert shared.num_known > 0


def test_a_prompt_in_blocks_is_the_prompt() -> None:
    """Against what `start` makes of all of it at once."""
    model, text = build(RECURRENT[3], sharpness=SHARP), draw(1, 2 * BLOCK + 5)[0].tolist()
    with torch.inference_mode():
        found, _ = Prompts(model, 0).read(text)
        expected = Prompts(model, 0).model.start(_batch(text))[0]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_what_is_kept_stays_below_its_bound_and_the_oldest_goes_first() -> None:
    model = build(RECURRENT[3])
    with torch.inference_mode():
        one = Prompts(model, 1 << 30)
        one.read([1])
        prompts = Prompts(model, 3 * one.num_bytes)
        for token in (1, 2, 3, 1, 4):
            prompts.read([token])
        assert prompts.num_bytes <= prompts.max_bytes
        known = prompts.num_known
        prompts.read([1])  # was asked for again, and stayed
        assert prompts.num_known == known + 1
        prompts.read([2])
        assert prompts.num_known == known + 1


def test_a_state_that_was_given_away_may_be_overwritten() -> None:
    model, text = build(GPTS[0]), [1, 2, 3]
    prompts = Prompts(model, 1 << 30)
    with torch.inference_mode():
        first, state = prompts.read(text)
        for tensor in state.per_row.values():
            tensor.zero_()
        first.zero_()
        again, _ = prompts.read(text)
    assert again.abs().sum() > 0


def _batch(text: list[int]) -> Any:
    from seqwise.data.batch import prompt_batch

    return prompt_batch([text])


# -- rows --------------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.one_of(st.integers(1, 3), st.lists(st.integers(0, 20), max_size=4)), max_size=12))
def test_rows_are_those_of_a_list_that_does_the_same(steps: list[int | list[int]]) -> None:
    """Enter so many, or leave at these places."""
    rows, expected, number = Rows(), list[float](), 0.0
    for step in steps:
        if isinstance(step, int):
            values = [number + i for i in range(step)]
            number += step
            rows.enter(State({"a": torch.tensor(values).view(-1, 1), "b": torch.tensor(values).view(-1, 1, 1) * 2}))
            expected += values
        else:
            gone = sorted({place for place in step if place < len(expected)})
            order = rows.leave(gone)
            expected = [expected[place] for place in order]
        assert len(rows) == len(expected)
        if expected:
            assert rows.state.per_row["a"].flatten().tolist() == expected
            assert rows.state.per_row["b"].flatten().tolist() == [2 * value for value in expected]


def test_rows_keep_what_a_step_made_anew_and_what_it_wrote_in_place() -> None:
    rows = Rows()
    rows.enter(State({"new": torch.zeros(2, 3), "in place": torch.zeros(2, 3)}))
    state = rows.state
    state.per_row["in place"][1] = 5.0
    rows.keep(State({"new": torch.ones(2, 3), "in place": state.per_row["in place"]}))
    assert rows.state.per_row["new"].sum() == 6
    assert rows.state.per_row["in place"].tolist() == [[0] * 3, [5] * 3]
    assert np.isclose(rows.num_bytes, 48)
