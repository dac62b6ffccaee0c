"""Whole texts in one compiled loop: token by token those that torch writes, for every way to choose one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import int64, njit
from steppers import CONV, GPTS, RECURRENT, SEQ2SEQ, TRANSFORMERS, Shape, build, draw, prompt_of

from seqwise.data.batch import Batch, prompt_batch
from seqwise.decoding import DecodingConfig, Hypothesis, generate, sampling, stream
from seqwise.kernels.arithmetic import FAST
from seqwise.kernels.writing import draw as compiled_draw
from seqwise.models.contract import State
from seqwise.models.engine import ROWS_SETTING, TRY_AGAIN, Pace, Use, Writing, compiled_step, engine

pytestmark = pytest.mark.usefixtures("compiled")
MODELS = [GPTS[0], GPTS[-1], RECURRENT[3], RECURRENT[2], CONV[1], SEQ2SEQ[8], TRANSFORMERS[0]]
each_model = pytest.mark.parametrize("shape", MODELS, ids=lambda shape: shape.name)
STOP, NEVER = 3, 5
LENGTHS = (5, 1, 9, 2)  # of prompts
SHARP = 2.0  # logits, so that texts are not all alike


def written(
    model: Any, prompt: Batch | Sequence[Sequence[int]], use: Use, limits: list[int] | None = None, **settings: Any
) -> list[list[Hypothesis]]:
    with engine(use):
        return generate(model, prompt, DecodingConfig(**settings), limits=limits)


def same_texts(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert [[h.tokens for h in of_one] for of_one in found] == [[h.tokens for h in of_one] for of_one in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in theirs], abs=1e-4)
        assert [h.is_finished for h in mine] == [h.is_finished for h in theirs]


def count_loops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each call of the compiled loop wrote."""
    counts: list[int] = []
    go_on = Writing.go_on

    def counted(self: Writing, *arguments: Any) -> Any:
        found = go_on(self, *arguments)
        if found is not None:
            counts.append(found[0].shape[1])
        return found

    monkeypatch.setattr(Writing, "go_on", counted)
    return counts


CHOICES: list[dict[str, Any]] = [
    {"method": "greedy"},
    {"method": "greedy", "stop": STOP},
    {"method": "greedy", "repetition_penalty": 1.7},
    {"method": "greedy", "repetition_penalty": 0.6, "never": NEVER},
    {"method": "greedy", "stop": STOP, "min_tokens": 12, "never": NEVER},
    {},
    {"stop": STOP},
    {"num_results": 3},
    {"num_results": 3, "stop": STOP, "seed": 3},
    *({"temperature": temperature, "num_results": 3} for temperature in (0.3, 2.5, 1e-300)),
    *({"top_k": k, "num_results": 3} for k in (1, 2, 5, 22, 23, 24)),
    *({"top_p": p, "num_results": 3} for p in (1e-9, 0.3, 0.9, 1.0)),
    {"top_k": 6, "top_p": 0.8, "temperature": 1.4, "num_results": 3, "seed": 1},
    {"top_k": 6, "top_p": 0.999, "temperature": 0.7, "stop": STOP, "min_tokens": 9, "never": NEVER, "num_results": 3},
    {"repetition_penalty": 1.7, "top_p": 0.9, "stop": STOP, "num_results": 3, "seed": 5},
    {"repetition_penalty": 0.5, "top_k": 4, "seed": 2},
]


@pytest.mark.parametrize("settings", CHOICES, ids=lambda settings: "-".join(f"{k}={v}" for k, v in settings.items()))
@pytest.mark.parametrize("shape", [GPTS[0], RECURRENT[3]], ids=lambda shape: shape.name)
def test_every_way_to_choose_gives_the_texts_of_torch(
    shape: Shape, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the context of gpt; prompts end at different times, and some are told to."""
    model, prompt = build(shape, sharpness=SHARP), prompt_of(shape, LENGTHS)
    for limits in (None, [40, 3, 17, 1]):
        expected = written(model, prompt, "off", limits, max_tokens=40, **settings)
        with monkeypatch.context() as patch:
            counts = count_loops(patch)
            found = written(model, prompt, "on", limits, max_tokens=40, **settings)
        same_texts(found, expected)
        assert sum(counts) == max(len(h.tokens) for of_one in found for h in of_one)  # all of it in the loop


@pytest.mark.parametrize("min_tokens", [0, 1, 2, 9])
@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_a_text_that_would_stop_has_the_fewest_tokens_that_it_may(method: str, min_tokens: int) -> None:
    """To the token: the stop token is by far the most probable one at every step."""
    shape = SEQ2SEQ[-1]
    model = build(shape)
    with torch.no_grad():
        model.head.output.bias[STOP] = 60
    settings = {"method": method, "min_tokens": min_tokens, "max_tokens": 20, "stop": STOP}
    for of_one in written(model, prompt_of(shape, LENGTHS), "on", **settings):
        assert [len(h.tokens) for h in of_one] == [max(1, min_tokens)]
        assert of_one[0].tokens[-1] == STOP


@each_model
@pytest.mark.parametrize("settings", [CHOICES[1], CHOICES[8], CHOICES[-2]], ids=["greedy", "sample", "penalty"])
def test_every_family_gives_the_texts_of_torch(shape: Shape, settings: dict[str, Any]) -> None:
    model, prompt = build(shape, sharpness=SHARP), prompt_of(shape, LENGTHS)
    for limits in (None, [25, 3, 17, 1]):
        options = {"max_tokens": 60 if limits is None else 25, **settings}
        same_texts(*(written(model, prompt, use, limits, **options) for use in ("on", "off")))


@settings(max_examples=40)
@given(
    method=st.sampled_from(["greedy", "sample"]),
    num_results=st.integers(1, 4),
    temperature=st.floats(0.1, 5),
    top_k=st.none() | st.integers(1, 30),
    top_p=st.none() | st.floats(0.01, 1),
    penalty=st.sampled_from([1.0, 0.7, 1.3]),
    stop=st.none() | st.integers(0, 22),
    never=st.none() | st.integers(0, 22),
    min_tokens=st.integers(0, 20),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
)
def test_any_settings_give_the_texts_of_torch(
    method: str, num_results: int, penalty: float, lengths: list[int], never: int | None, stop: int | None, **more: Any
) -> None:
    never = None if never == stop else never
    choice = {"num_results": 1 if method == "greedy" else num_results, "method": method, "max_tokens": 24}
    choice |= {"repetition_penalty": penalty, "stop": stop, "never": never, **more}
    same_texts(*(written(GPT, prompt_of(GPTS[0], lengths), use, **choice) for use in ("on", "off")))


GPT = build(GPTS[0], sharpness=SHARP)


@pytest.mark.parametrize("shape", [shape for shape in MODELS if not shape.is_pair], ids=lambda shape: shape.name)
@pytest.mark.parametrize("settings", [{"method": "greedy"}, {"seed": 3, "top_k": 8}], ids=["greedy", "sample"])
@pytest.mark.parametrize("stop", [None, STOP])
def test_a_stream_gives_the_tokens_of_generate(shape: Shape, settings: dict[str, Any], stop: int | None) -> None:
    model, (prompt,) = build(shape, sharpness=SHARP), draw(1, 6).tolist()
    config = DecodingConfig(max_tokens=50, stop=stop, **settings)
    with engine("on"):
        assert list(stream(model, prompt, config)) == generate(model, [prompt], config)[0][0].tokens
        first = stream(model, prompt, config)
        assert next(first) == generate(model, [prompt], config)[0][0].tokens[0]
        first.close()


def test_a_sample_is_the_same_alone_and_in_any_batch() -> None:
    """Within the context: what is forgotten is read anew by torch, all rows together."""
    prompts = draw(5, 3).tolist()
    together = written(GPT, prompts, "on", max_tokens=12, num_results=3)
    for prompt, expected in zip(prompts, together, strict=True):
        (alone,) = written(GPT, [prompt], "on", max_tokens=12, num_results=3)
        assert [h.tokens for h in alone] == [h.tokens for h in expected]


def test_many_greedy_texts_differ_where_the_two_best_are_alike_alone() -> None:
    """As of a trained model: sure of most tokens, and now and then not."""
    model, num, steps = build(GPTS[0], sharpness=4.0), 200, 24
    prompts, num_differ, texts = draw(num, 4, seed=9).tolist(), 0, set()
    for begin in range(0, num, 10):
        some = prompts[begin : begin + 10]
        pair = [written(model, some, use, method="greedy", max_tokens=steps) for use in ("on", "off")]
        for prompt, (mine,), (theirs,) in zip(some, *pair, strict=True):
            texts.add(tuple(mine.tokens))
            if mine.tokens == theirs.tokens:
                continue
            num_differ += 1
            place = next(t for t in range(steps) if mine.tokens[t] != theirs.tokens[t])
            with torch.no_grad(), engine("off"):
                log_probs, state = model.start(prompt_batch([prompt]))
                for token in theirs.tokens[:place]:
                    log_probs, state = model.step(torch.tensor([token]), state)
            assert abs(float(log_probs[0, mine.tokens[place]] - log_probs[0, theirs.tokens[place]])) < 1e-4
    assert num_differ <= 2
    assert len(texts) > num // 2


@pytest.mark.parametrize("settings", [{"method": "greedy"}, {"num_results": 2, "top_p": 0.9}], ids=["greedy", "sample"])
@each_model
def test_two_ranks_write_the_text_of_one(
    shape: Shape, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, prompt = build(shape, sharpness=SHARP), prompt_of(shape, [5, 2])
    alone = written(model, prompt, "on", max_tokens=20, **settings)
    monkeypatch.setattr(Pace, "ranks", lambda self: 2)
    assert written(model, prompt, "on", max_tokens=20, **settings) == alone  # to the bit


@pytest.mark.parametrize("tries", [1, 3])
def test_the_number_of_ranks_that_was_faster_is_taken_and_both_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, tries: int
) -> None:
    """By the best of its tries: a single slow one says little."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    for seconds, expected in (([0.9, 0.1, 0.8], 2), ([0.9, 0.6, 0.7], 1)):
        pace = Pace(tries=tries)
        for took in [0.9, 0.5, 0.9][-tries - 1 :][:tries]:
            assert pace.ranks() == 1
            pace.took(1, took)
        for took in seconds[-tries - 1 :][:tries]:
            assert pace.ranks() == 2
            pace.took(2, took)
        assert [pace.ranks() for _ in range(5)] == [expected] * 5
        pace.uses = TRY_AGAIN * tries - 1
        assert pace.ranks() == 1
        assert pace.seconds == {}
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    pace.took(1, 0.5)
    assert [pace.ranks() for _ in range(5)] == [1] * 5


def test_threads_are_tried_and_the_text_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of them each part of it was written by."""
    expected = written(GPT, [[1, 2]], "on", max_tokens=60)
    numbers = iter([2, 1] * 100)
    monkeypatch.setattr(Pace, "ranks", lambda self: next(numbers))
    monkeypatch.setattr(Pace, "num_next", lambda self, ranks: 3)
    counts = count_loops(monkeypatch)
    assert written(GPT, [[1, 2]], "on", max_tokens=60) == expected
    assert max(counts) == 3


def test_a_chunk_is_as_long_as_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few tokens first; then as many as fit into its time, whatever one takes."""
    counts = count_loops(monkeypatch)
    lstm = build(RECURRENT[3])
    written(lstm, [[1, 2]], "on", max_tokens=400)
    assert counts[0] == 8
    assert sum(counts) == 400
    assert max(counts) > 50
    with torch.inference_mode(), engine("on"):
        step = compiled_step(lstm, 1)
        assert step is not None
        writing = Writing(step)
    writing.pace.took(1, 0.001)
    assert writing.pace.num_next(1) == 50


def test_prompts_that_are_too_many_for_a_step_end_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty begin with torch; when few are left, the loop takes over."""
    prompts, limits = draw(40, 4).tolist(), [3] * 20 + [30] * 20
    monkeypatch.setenv(ROWS_SETTING, "32")
    expected = written(GPT, prompts, "off", limits, method="greedy", max_tokens=30)
    counts = count_loops(monkeypatch)
    same_texts(written(GPT, prompts, "on", limits, method="greedy", max_tokens=30), expected)
    assert sum(counts) == 27


def test_learned_positions_end_where_torch_ends() -> None:
    shape = Shape("transformer", {**TRANSFORMERS[2].settings, "positions": "learned", "context": 20})
    model, prompt = build(shape, sharpness=SHARP), prompt_of(shape, [4, 2])
    same_texts(*(written(model, prompt, use, max_tokens=20) for use in ("on", "off")))
    told = []
    for use in ("on", "off"):
        with pytest.raises(Exception, match="a target of 21 tokens is longer than the 20 positions") as caught:
            written(model, prompt, use, max_tokens=21)  # type: ignore[arg-type]
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]


class LeansOn:
    """A model that is none of torch's: the loop is not for it."""

    vocab_size = 3

    def start(self, prompt: Batch) -> tuple[torch.Tensor, State]:
        return self.step(torch.zeros(len(prompt), dtype=torch.long), State({"none": torch.zeros(len(prompt), 1)}))

    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        return torch.eye(3)[(tokens + 1) % 3].add(0.01).log(), state


class LeansOnModule(LeansOn, torch.nn.Module):
    """Or one of torch's, but not of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))
        self.eval()


@pytest.mark.parametrize("make", [LeansOn, LeansOnModule])
def test_models_of_other_hands_write_as_before(make: Any) -> None:
    found = written(make(), [[0]], "on", method="greedy", max_tokens=5)
    assert found[0][0].tokens == [1, 2, 0, 1, 2]


@njit(fastmath=FAST, error_model="numpy")
def _draw(probs, top_k, factors, chance):
    return compiled_draw(probs, int64(top_k), factors, chance)


def drawn_by_torch(log_probs: torch.Tensor, chance: float, config: DecodingConfig) -> int:
    return int(sampling.draw(log_probs, torch.tensor([chance], dtype=torch.float64), config))


@settings(max_examples=150)
@given(
    logits=st.lists(st.integers(-400, 400), min_size=1, max_size=12, unique=True),
    num_closed=st.integers(0, 3),
    chance=st.floats(0, 1, exclude_max=True),
    top_k=st.none() | st.integers(1, 14),
    top_p=st.none() | st.floats(0.01, 1),
    temperature=st.sampled_from([1.0, 0.3, 4.0, 1e-6, 5e-324]),
)
def test_a_token_is_drawn_as_by_torch(
    logits: list[int], num_closed: int, chance: float, top_k: int | None, top_p: float | None, temperature: float
) -> None:
    """Where chance or top_p falls on an edge between two tokens, rounding may choose either."""
    values = torch.tensor([[*logits, *[-np.inf] * num_closed]], dtype=torch.float64) / 100
    log_probs = values.log_softmax(dim=1)
    found = _draw(log_probs[0].numpy().copy(), top_k or -1, np.array([temperature, top_p or 1.0, 1.0]), chance)
    chances = [min(max(chance + shift, 0.0), 1 - 1e-12) for shift in (0, 1e-12, -1e-12)]
    shares = [top_p] if top_p is None else [min(top_p + shift, 1.0) for shift in (0, 1e-12, -1e-12)]
    configs = [DecodingConfig(top_k=top_k, top_p=share, temperature=temperature) for share in shares]
    assert found in {drawn_by_torch(log_probs, c, config) for c in chances for config in configs}


@pytest.mark.parametrize(("top_k", "kept"), [(1, [1]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2, 3]), (5, range(5))])
def test_of_tokens_that_tie_the_lower_one_is_kept(top_k: int, kept: Sequence[int]) -> None:
    log_probs, number = np.log([0.2, 0.4, 0.2, 0.1, 0.1]), 200
    chances = (np.arange(number) + 0.5) / number
    assert {_draw(log_probs.copy(), top_k, np.ones(3), chance) for chance in chances} == set(kept)


LONG_TEXT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background may have lost
sys.path.insert(0, sys.argv[1])
from steppers import GPTS, RECURRENT, build, compiled_step, engine
from seqwise.decoding import DecodingConfig, generate
import torch
from seqwise.models import engine as file
if sys.argv[2] == "two":
    file.Pace.ranks = lambda self: 2
model = build(RECURRENT[3])
with engine("on"):
    with torch.inference_mode():
        assert compiled_step(model, 1) is not None
    generate(model, [[1, 2]], DecodingConfig(max_tokens=100))
    print("goes", flush=True)
    try:
        generate(model, [[1, 2]], DecodingConfig(max_tokens=1_000_000))
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("ranks", ["one", "two"])
def test_ctrl_c_ends_a_long_text_at_once(ranks: str) -> None:
    """Within 200 milliseconds; with a margin for a machine that is busy."""
    command = [sys.executable, "-c", LONG_TEXT, str(Path(__file__).parents[1]), ranks]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "goes\n"
        time.sleep(0.5)
        assert process.poll() is None
        struck = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, error) == (0, "")
    assert float(said) - struck < 0.2 + 1.0
