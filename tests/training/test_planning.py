"""What fits a budget, against a clock of our own; the order of an n-gram by trying all; sizes that keep a limit."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from hypothesis import assume, given
from hypothesis import settings as how
from hypothesis import strategies as st
from runs_by_hand import prepare, stop_after

from seqwise.data.schema import BESIDE, CHOICE, MASKED_TOKEN, SEQUENCES, ImageSpec
from seqwise.errors import ConfigError
from seqwise.goals.goal import Facts
from seqwise.models import MODELS, num_parameters
from seqwise.models.ngram import Ngram, NgramConfig
from seqwise.run import Run, RunConfig
from seqwise.settings import TrainingConfig
from seqwise.training import planning
from seqwise.training.planning import (
    MAX_ORDER,
    MIN_ITERATIONS,
    TRAINING_SHARE,
    choose_order,
    choose_states,
    plan_iterations,
    plan_steps,
    planned_anew,
    tokens_and_iterations,
)
from seqwise.training.preparing import resume
from seqwise.training.sizing import narrowed, suggest
from seqwise.training.timing import StepTime
from seqwise.wording import plural

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat, and a frog.\n" * 30
SMALL = ["training.sample_tokens=5", "training.threads=1"]
GRADIENTS = [name for name, row in MODELS.items() if row.learns_by == "gradients" and "next_token" in row.learns]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "cats.txt"
    path.write_text(TEXT)
    return path


# -- hidden states ---------------------------------------------------------------------------------------------------


class Hidden:
    """Learns nothing, in no time: what it is worth depends on its states alone."""

    def __init__(self, num_states: int):
        self.num_states, self.steps = num_states, 0

    def initialise(self, sequences: Any, seed: int) -> None:
        pass

    def em_step(self, sequences: Any) -> float:
        self.steps += 1
        return min(0.0, self.steps - 6.0)  # the fifth iteration is the last that gains


def states_chosen(losses: dict[int, float], *, seconds: float = 1e9, stop: bool = False) -> tuple[int, list[int]]:
    tried: list[int] = []

    def validate(model: Hidden) -> float:
        tried.append(model.num_states)
        assert model.steps == (1 if stop or not seconds else 7)
        return losses[model.num_states]

    chosen, model, _ = choose_states(
        Hidden,
        [np.zeros(10, dtype=np.int64)],
        TrainingConfig(steps=50),
        validate,
        seconds=seconds,
        wants_stop=lambda: stop,
        tell=lambda _: None,
    )
    assert model.num_states == chosen
    return chosen, tried


def test_states_are_doubled_while_that_validates_better() -> None:
    assert states_chosen({4: 3.0, 8: 2.0, 16: 2.5, 32: 1.0}) == (8, [4, 8, 16])
    assert states_chosen({4: 3.0, 8: 3.0}) == (4, [4, 8])
    rising = {4 * 2**n: 3.0 - 0.1 * n for n in range(8)}
    assert states_chosen(rising) == (128, [4, 8, 16, 32, 64, 128])


def test_without_time_or_when_stopped_the_first_number_of_states_is_taken() -> None:
    assert states_chosen({4: 3.0, 8: 2.0}, seconds=0.0) == (4, [4])
    assert states_chosen({4: 3.0, 8: 2.0}, stop=True) == (4, [4])


def test_the_number_of_states_that_was_chosen_is_a_setting_of_the_run(text: Path, tmp_path: Path) -> None:
    told: list[str] = []
    session = prepare(text, model="hmm", out=tmp_path / "run", minutes=0.03, overrides=["model.num_states=0"])
    list(session.reports(tell=told.append))
    run = Run.open(tmp_path / "run")
    assert run.config.model.num_states in (4, 8, 16, 32, 64, 128)
    assert len(run.load_model().initial) == run.config.model.num_states
    assert any(f"{run.config.model.num_states} hidden states validate best" in sentence for sentence in told)
    assert run.config.training.restarts == 1


# -- steps that take longer than was thought -------------------------------------------------------------------------


def test_a_machine_that_got_slower_makes_fewer_steps_and_one_that_got_faster_more() -> None:
    config = TrainingConfig(minutes=1.0, steps=1000)  # 54 s to train in
    assert planned_anew(100, 5.4, config, steps_per_epoch=100) is None
    assert planned_anew(100, 6.2, config, steps_per_epoch=100) is None  # 870: near enough
    assert planned_anew(100, 10.8, config, steps_per_epoch=100) == 500
    assert planned_anew(100, 2.7, config, steps_per_epoch=100) == 2000
    assert planned_anew(100, 200.0, config, steps_per_epoch=100) == 101  # time is up: one more, to end with


def test_a_faster_machine_does_not_read_a_short_text_more_often() -> None:
    config = TrainingConfig(minutes=1.0, steps=600)
    assert planned_anew(60, 0.6, config, steps_per_epoch=10) is None  # 60 passes
    assert planned_anew(60, 0.6, config, steps_per_epoch=20) == 1200


def test_what_was_planned_anew_is_a_setting_of_the_run(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def anew(step: int, seconds: float, config: TrainingConfig, steps_per_epoch: int) -> int | None:
        calls.append(step)
        return step + 7 if len(calls) == 1 else None

    monkeypatch.setattr("seqwise.training.learners.planned_anew", anew)
    told: list[str] = []
    overrides = [*SMALL, "model.model_dim=8"]
    session = prepare(text, model="rnn", out=tmp_path / "run", minutes=0.05, overrides=overrides)
    reports = list(session.reports(tell=told.append))
    assert reports[-1].step == reports[-1].steps == calls[0] + 7
    assert Run.open(tmp_path / "run").config.training.steps == calls[0] + 7
    assert any("instead of" in sentence for sentence in told)
    assert not session.is_interrupted


# -- steps of a gradient family --------------------------------------------------------------------------------------


class Rows:
    """A source of batches of 1000 tokens."""

    def __init__(self, steps_per_epoch: int):
        self.steps_per_epoch = steps_per_epoch

    def batch(self, step: int, model: object = None) -> Any:
        return SimpleNamespace(num_steps=1000)


def steps_for(
    minutes: float | None,
    each: float,
    *,
    alone: float = math.inf,
    epoch: int = 10**6,
    num_valid: int = 10**6,
    **training: Any,
) -> tuple[dict[str, Any], list[str]]:
    """The plan where a step takes `each` seconds with two threads and `alone` with one, and what was said of it."""
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "seconds_per_step", lambda *_, **__: StepTime(each, each))
        patch.setattr(planning, "seconds_alone", lambda *_, **__: alone)
        patch.setattr(torch, "get_num_threads", lambda: 2)
        patch.setattr(torch, "set_num_threads", lambda num: said.append(f"set to {num}"))
        config = TrainingConfig(minutes=minutes, compile="never", **training)
        return plan_steps(torch.nn.Linear(1, 1), Rows(epoch), config, num_valid, said.append), said


@pytest.mark.parametrize(
    ("minutes", "each", "steps"),
    [(1.0, 0.1, 540), (10.0, 0.05, 10_800), (None, 0.1, 1080), (1.0, 50.0, 10)],
    ids=["a minute", "ten minutes", "two where not said", "ten steps at least"],
)
def test_nine_tenths_of_the_minutes_are_steps(minutes: float | None, each: float, steps: int) -> None:
    plan, said = steps_for(minutes, each)
    assert plan["steps"] == steps
    budget = 2.0 if minutes is None else minutes
    assert said[0].startswith(f"{steps:,} steps of 1,000 fit {budget:g} {plural(budget, 'minute')}")


@given(st.floats(0.01, 100), st.floats(1e-4, 10), st.integers(1, 10_000), st.integers(10, 10**7))
def test_steps_and_validations_fit_the_budget(minutes: float, each: float, epoch: int, num_valid: int) -> None:
    plan, _ = steps_for(minutes, each, epoch=epoch, num_valid=num_valid)
    seconds = 60 * minutes
    assert plan["steps"] == 10 or plan["steps"] * each <= TRAINING_SHARE * seconds * (1 + 1e-12)  # rounding
    scored = plan.get("valid_tokens", num_valid)
    assert scored <= max(num_valid, 4096)
    every = plan.get("evaluate_every") or math.ceil(plan["steps"] / 10)
    validating = plan["steps"] / every * scored / 1000 * each / 3  # scoring costs about a third of learning
    assert scored <= 4096 or validating <= (1 - TRAINING_SHARE) * seconds + scored / 1000 * each


def test_one_thread_is_taken_where_it_is_faster() -> None:
    plan, said = steps_for(1.0, 1.0, alone=0.1)
    assert (plan["threads"], plan["steps"]) == (1, 540)
    assert said[:2] == ["one thread is faster here than 2: 0.100 s a step against 1.000 s", "set to 1"]
    plan, said = steps_for(1.0, 0.1, alone=0.095)  # by a hair
    assert (plan["threads"], plan["steps"]) == (2, 540)
    assert "set to 1" not in said
    assert steps_for(1.0, 1.0, alone=0.1, threads=2)[0]["threads"] == 2  # as was asked for


@pytest.mark.parametrize(("epoch", "steps"), [(2, 500), (20, 1200), (10**6, 54_000)])
def test_a_short_text_is_not_read_so_often_that_it_is_learned_by_heart(epoch: int, steps: int) -> None:
    plan, said = steps_for(1.0, 0.001, epoch=epoch)
    assert plan["steps"] == steps
    assert ("are enough: the data is small for 1 minute" in said[0]) == (steps < 54_000)


def test_a_long_validation_part_is_cut_to_what_the_budget_allows() -> None:
    """0.6 % of 60 s, and a step of 1000 tokens that takes 0.1 s to learn takes 0.033 s to score."""
    assert steps_for(1.0, 0.1, num_valid=10**6)[0]["valid_tokens"] == pytest.approx(10_800, rel=0.01)
    assert steps_for(0.01, 0.1, num_valid=10**6)[0]["valid_tokens"] == 4096  # fewer would say nothing
    assert steps_for(1.0, 0.1, num_valid=10**6, valid_tokens=5000)[0].get("valid_tokens", 5000) == 5000
    assert "valid_tokens" not in steps_for(1.0, 0.1, num_valid=10_000)[0]


def test_where_validating_is_cheap_the_best_moment_is_looked_for_more_often() -> None:
    assert steps_for(1.0, 0.1, num_valid=2000)[0]["evaluate_every"] == 540 // 40
    assert "evaluate_every" not in steps_for(1.0, 0.1, num_valid=10_000)[0]
    assert "evaluate_every" not in steps_for(1.0, 0.1, num_valid=2000, evaluate_every=100)[0]


# -- iterations of EM ------------------------------------------------------------------------------------------------


class Clock:
    """Stands still but for the work of the model."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Scripted:
    """An iteration takes so many seconds a token; the first one waits for the compiler."""

    def __init__(self, clock: Clock, per_token: float, compiling: float):
        self.clock, self.per_token, self.compiling = clock, per_token, compiling

    def initialise(self, sequences: list[np.ndarray], seed: int) -> None:
        self.clock.now += 0.5

    def em_step(self, sequences: list[np.ndarray]) -> float:
        self.clock.now += self.per_token * sum(map(len, sequences)) + self.compiling
        self.compiling = 0.0
        return 0.0


def iterations_for(
    minutes: float, per_token: float, num_tokens: int, *, steps: int = 100, restarts: int = 2, compiling: float = 0.0
) -> dict[str, Any]:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "time", clock)
        return plan_iterations(
            Scripted(clock, per_token, compiling),
            lambda most: [np.zeros(min(most, num_tokens))],
            num_tokens,
            TrainingConfig(minutes=minutes, steps=steps, restarts=restarts),
            lambda _: None,
        )


def test_em_reads_all_of_a_text_or_as_much_as_leaves_enough_iterations() -> None:
    """Of 100 seconds 90 are for training, a thousand tokens each."""
    assert tokens_and_iterations(100, 1e-3, 2_000, min_tokens=500) == (2_000, 45)
    assert tokens_and_iterations(100, 1e-3, 50_000, min_tokens=500) == (4_500, MIN_ITERATIONS)
    assert tokens_and_iterations(100, 1e-3, 50_000, min_tokens=30_000) == (30_000, 3)
    assert tokens_and_iterations(0, 1e-3, 50_000, min_tokens=500) == (500, 1)


@given(
    st.floats(0.01, 60),
    st.floats(1e-8, 1e-3),
    st.integers(10, 10**8),
    st.integers(1, 200),
    st.integers(1, 5),
)
@how(max_examples=200)
def test_iterations_and_starts_fit_the_budget(
    minutes: float, per_token: float, num_tokens: int, steps: int, restarts: int
) -> None:
    plan = iterations_for(minutes, per_token, num_tokens, steps=steps, restarts=restarts)
    assert 1 <= plan["steps"] <= steps
    assert 1 <= plan["restarts"] <= restarts
    tokens = plan["train_tokens"] or num_tokens
    assert tokens <= num_tokens
    least = min(20_000, num_tokens) * per_token  # one iteration over what it was tried on
    taken = plan["restarts"] * plan["steps"] * tokens * per_token
    assert taken <= max(least, TRAINING_SHARE * 60 * minutes) * (1 + 1e-6)


@given(st.floats(0.1, 60), st.floats(1e-8, 1e-4), st.integers(20_001, 10**8))
def test_the_text_is_cut_only_where_too_few_iterations_over_all_of_it_fit(
    minutes: float, per_token: float, num_tokens: int
) -> None:
    plan = iterations_for(minutes, per_token, num_tokens)
    fitting = TRAINING_SHARE * 60 * minutes / per_token / num_tokens
    assume(abs(fitting - MIN_ITERATIONS) > 0.01)
    assert (plan["train_tokens"] == 0) == (fitting > MIN_ITERATIONS)
    if plan["train_tokens"] > 20_000:
        assert plan["steps"] * plan["restarts"] == MIN_ITERATIONS


def test_a_second_start_is_made_only_where_the_first_has_all_its_iterations() -> None:
    """54 seconds, and an iteration over 20,000 tokens takes 0.3: 180 of them."""
    assert iterations_for(1.0, 1.5e-5, 20_000) == {"steps": 100, "restarts": 1, "train_tokens": 0}
    assert iterations_for(2.0, 1.5e-5, 20_000) == {"steps": 100, "restarts": 2, "train_tokens": 0}


def test_the_time_of_the_compiler_is_not_taken_for_that_of_an_iteration() -> None:
    assert iterations_for(1.0, 1e-5, 50_000, compiling=40.0) == iterations_for(1.0, 1e-5, 50_000)


def test_minutes_of_em_become_iterations_once_and_are_saved(text: Path, tmp_path: Path) -> None:
    said: list[str] = []
    session = prepare(text, model="hmm", out=tmp_path / "run", minutes=0.02, overrides=[*SMALL, "model.num_states=3"])
    reports = list(session.reports(wants_stop=stop_after(2), tell=said.append))
    saved = RunConfig.read(tmp_path / "run" / "config.toml").training
    assert saved.minutes == 0.02
    assert saved.steps >= 1
    assert reports[-1].steps == saved.steps * saved.restarts
    assert any(f"{saved.restarts} x {saved.steps} iterations fit 0.02 minutes" in sentence for sentence in said)
    again: list[str] = []
    list(resume(tmp_path / "run").reports(tell=again.append))
    assert RunConfig.read(tmp_path / "run" / "config.toml").training == saved
    assert not [sentence for sentence in again if "iterations fit" in sentence]


# -- the order of an n-gram ------------------------------------------------------------------------------------------

IDS = np.random.default_rng(0).integers(0, 3, size=60)


def order_for(
    losses: list[float], first: int, *, seconds: float = 600.0, max_parameters: int = 0
) -> tuple[int, list[int]]:
    """The order chosen where order n validates at losses[n-1], and the orders that were tried."""
    tried: list[int] = []

    def validate(model: Ngram) -> float:
        tried.append(model.config.order)
        return losses[model.config.order - 1]

    schema, said = schemas.of_text(3), list[str]()
    order = choose_order(
        NgramConfig(order=0), schema, IDS, validate,
        first=first, max_parameters=max_parameters, seconds=seconds, tell=said.append,
    )  # fmt: skip
    assert said == [s for s in said if s.startswith(f"order {order} validates best")]
    return order, tried


@given(st.integers(1, MAX_ORDER), st.integers(1, 9))
@how(deadline=None, max_examples=30)
def test_the_order_that_validates_best_is_found_from_any_first_guess(best: int, first: int) -> None:
    losses = [1.0 + 0.1 * abs(order - best) for order in range(1, MAX_ORDER + 1)]
    order, tried = order_for(losses, first)
    assert order == best
    assert len(tried) == len(set(tried))  # none is counted twice
    assert set(tried) <= set(range(min(best, first) - 1, max(best, first) + 2))


def test_time_that_is_up_ends_the_search_where_it_is() -> None:
    losses = [1.0 / order for order in range(1, MAX_ORDER + 1)]
    assert order_for(losses, 3, seconds=0.0) == (3, [3])
    assert order_for(losses, 3)[0] == MAX_ORDER


def test_a_count_that_would_not_fit_is_cut_by_what_a_few_tokens_took(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        """Ten thousand tokens a second."""

        def fit(self, ids: np.ndarray) -> None:
            clock.append(clock[-1] + len(ids) / 10_000)

    clock = [0.0]
    monkeypatch.setattr(planning.time, "perf_counter", lambda: clock[-1])
    ids = np.zeros(1_000_000, dtype=np.int64)
    assert planning.countable_tokens(Slow(), ids, seconds=30.0) == pytest.approx(100_000)  # type: ignore[arg-type]
    assert planning.countable_tokens(Slow(), ids, seconds=1.0) == planning.TRIED_COUNTS  # type: ignore[arg-type]


def test_an_order_with_more_grams_than_allowed_is_not_chosen_however_well_it_validates() -> None:
    losses = [1.0 / order for order in range(1, MAX_ORDER + 1)]
    sizes = []
    for order in range(1, MAX_ORDER + 1):
        model = Ngram(NgramConfig(order=order), schemas.of_text(3))
        model.fit(IDS)
        sizes.append(model.num_parameters)
    assert sizes == sorted(sizes)
    for limit in (sizes[1], sizes[3], sizes[3] - 1):
        allowed = max(order for order, size in enumerate(sizes, start=1) if size <= limit)
        for first in (1, 5, 9):
            assert order_for(losses, first, max_parameters=limit)[0] == allowed


def test_training_with_order_0_saves_the_order_that_no_neighbour_beats(tmp_path: Path) -> None:
    """A letter depends on the two before it, so order 3 is what there is to learn."""
    random, letters = np.random.default_rng(0), [0, 1]
    for chance in random.random(4000):
        letters.append(int((letters[-1] + 2 * letters[-2] + 2 * (chance < 0.2)) % 5))
    (tmp_path / "chain.txt").write_text("".join("abcde"[letter] for letter in letters))
    session = prepare(tmp_path / "chain.txt", model="ngram", out=tmp_path / "run", overrides=[*SMALL, "model.order=0"])
    (report,) = session.reports()
    run = Run.open(tmp_path / "run")
    order = run.config.model.order
    assert 3 <= order <= 4

    def loss_of(order: int) -> float:
        model = Ngram(replace(run.config.model, order=order), schemas.of_text(run.tokenizer.vocab_size))
        model.fit(session.stores["train"].ids)
        return session.goal.validate(model, session.stores["valid"], None)

    assert loss_of(order) == pytest.approx(report.valid)
    assert all(loss_of(order) <= loss_of(other) for other in (order - 1, order + 1))
    assert run.load_model().config.order == order


def test_an_order_below_0_is_refused_and_0_cannot_be_counted_with() -> None:
    with pytest.raises(ConfigError, match=r"model\.order = -1 should be at least 1, or 0 to choose it by validation"):
        NgramConfig(order=-1)
    with pytest.raises(ConfigError, match=r"model\.order = 0 is chosen by training"):
        Ngram(NgramConfig(order=0), schemas.of_text(3)).fit(IDS)


# -- a part of the text ----------------------------------------------------------------------------------------------


def test_counting_from_the_first_tokens_only_is_counting_a_shorter_text(text: Path, tmp_path: Path) -> None:
    overrides = [*SMALL, "model.order=3", "training.train_tokens=200"]
    session = prepare(text, model="ngram", out=tmp_path / "run", overrides=overrides)
    (report,) = session.reports()
    assert report.tokens == 200
    found = Run.open(tmp_path / "run").load_model()
    expected = Ngram(found.config, schemas.of_text(session.run.tokenizer.vocab_size))
    expected.fit(session.stores["train"].ids[:201])
    assert found.num_parameters == expected.num_parameters
    valid = session.stores["valid"]
    assert session.goal.validate(found, valid, None) == pytest.approx(session.goal.validate(expected, valid, None))


def test_em_learns_from_the_first_tokens_only(text: Path, tmp_path: Path) -> None:
    overrides = [*SMALL, "model.num_states=3", "training.restarts=1", "training.train_tokens=200"]
    session = prepare(text, model="hmm", out=tmp_path / "run", steps=2, overrides=overrides)
    assert [report.tokens for report in session.reports()] == [201, 402]  # the boundary is seen too


@pytest.mark.parametrize("model", ["hmm", "kalman"])
def test_em_learns_from_the_first_rows_only(tmp_path: Path, model: str) -> None:
    path = tmp_path / "x.csv"
    np.savetxt(path, np.random.default_rng(0).normal(size=(400, 2)), delimiter=",", header="a,b", comments="")
    sizes = {"hmm": "model.num_states=2", "kalman": "model.state_dim=2"}
    overrides = ["training.threads=1", "training.tolerance=0", "training.restarts=1", "training.train_tokens=200"]
    session = prepare(path, model=model, out=tmp_path / "run", steps=2, overrides=[*overrides, sizes[model]])
    start = 1 if model == "hmm" else 0  # an HMM reads the empty row before the first too
    assert [report.tokens for report in session.reports()] == [200 + start, 2 * (200 + start)]
    assert [len(session.sequences(session.run.build_model(), most)[0][0]) - start for most in (50, 100)] == [50, 100]


def test_fewer_tokens_than_none_are_refused() -> None:
    for name in ("train_tokens", "max_parameters"):
        with pytest.raises(ConfigError, match=f"training.{name} = -1 should not be negative"):
            TrainingConfig(**{name: -1})


# -- sizes that keep a limit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, row in MODELS.items()
        if row.learns_by == "gradients"
        for kind in row.learns
        if kind not in (*BESIDE, CHOICE, MASKED_TOKEN) or row.can_read(*SEQUENCES)
    ],
)
def test_a_network_gets_narrower_step_by_step_and_each_can_be_built(name: str, kind: str) -> None:
    has_tokens = kind in ("next_token", "sequence")
    facts = Facts(10**5, 60, "char" if has_tokens else "", 1.0, num_columns=2, season=7, length=8)
    row = MODELS[name]
    looks = not row.can_read(*SEQUENCES)
    size = 60 if has_tokens or kind == "caption" else 2
    schema = schemas.of_family(name, size) if looks else schemas.of_kind(kind, size)
    if looks:
        tokens = 10**5 if "tokens" in schema.inputs else 0
        facts = replace(facts, picture=schema.input("image", ImageSpec), tokens=tokens)
    row, settings = MODELS[name], suggest(name, kind, facts)[0]
    sizes = []
    while settings is not None:
        sizes.append(num_parameters(row.build(row.config(**settings), schema)))
        settings = narrowed(settings)
    assert len(sizes) > 2
    assert sizes == sorted(sizes, reverse=True)
    assert all(after > 0.3 * before for before, after in pairwise(sizes))  # no size is jumped over


@pytest.mark.parametrize("most", [200_000, 40_000, 10_000])
@pytest.mark.parametrize("name", GRADIENTS)
def test_a_network_whose_size_is_chosen_by_rule_keeps_the_limit(
    text: Path, tmp_path: Path, name: str, most: int
) -> None:
    overrides = [*SMALL, f"training.max_parameters={most}"]
    session = prepare(text, model=name, out=tmp_path / "run", minutes=0.01, overrides=overrides)
    assert num_parameters(session.run.build_model()) <= most
    free = prepare(text, model=name, out=tmp_path / "free", minutes=0.01, overrides=SMALL)
    if num_parameters(free.run.build_model()) <= most:
        assert session.run.config.model == free.run.config.model


def test_a_limit_that_no_network_keeps_is_told_and_nothing_is_written(text: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(text, model="gpt", out=tmp_path / "run", overrides=[*SMALL, "training.max_parameters=10"])
    assert str(caught.value) == "even the narrowest network has more than 10 parameters here; allow more."
    assert not (tmp_path / "run").exists()
