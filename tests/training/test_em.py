"""Learning by EM: when it stops, what it keeps, and that a stop and a resume change nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from runs_by_hand import log_without_clock, prepare, stop_after
from torch import Tensor

from seqwise.errors import TrainingError
from seqwise.models import MODELS
from seqwise.run import Checkpoint
from seqwise.settings import TrainingConfig
from seqwise.training.em import expect_and_maximise
from seqwise.training.loop import Hooks
from seqwise.training.preparing import resume
from seqwise.training.report import CLOCK_FIELDS, Report

DATA = [np.zeros(6, dtype=np.int64), np.zeros(4, dtype=np.int64)]  # ten steps in all


class Scripted:
    """Objectives are read from a script, one for each seed; its weights say where in the script it is."""

    def __init__(self, *scripts: Sequence[float]):
        self.scripts, self.seed, self.place = scripts, -1, -1

    def initialise(self, sequences: Sequence[Any], seed: int) -> None:
        self.seed, self.place = seed, 0

    def em_step(self, sequences: Sequence[Any]) -> float:
        self.place += 1
        return self.scripts[self.seed][self.place - 1]

    def state_dict(self) -> dict[str, Tensor]:
        return {"where": torch.tensor([self.seed, self.place])}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        self.seed, self.place = saved["where"].tolist()


@dataclass
class Keeper:
    """Hooks that remember: the weights that were the best when they were kept, the checkpoints, the validations."""

    model: Any
    stop_after: float = math.inf
    """Reports after which a stop is asked for."""
    kept: list[dict[str, Tensor]] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    validated: int = 0
    losses: Sequence[float] = (0.25,)
    """What validations find, in turn, again and again."""
    reports: list[Report] = field(default_factory=list)

    def hooks(self) -> Hooks:
        def validate() -> float:
            self.validated += 1
            return self.losses[(self.validated - 1) % len(self.losses)]

        return Hooks(
            validate=validate,
            sample=lambda: "written",
            keep_best=lambda: self.kept.append({n: t.clone() for n, t in self.model.state_dict().items()}),
            checkpoint=lambda saved: self.checkpoints.append(saved.copy()),
            wants_stop=lambda: len(self.reports) >= self.stop_after,
        )

    def run(self, data: Sequence[Any] = DATA, *, resume: Checkpoint | None = None, **settings: Any) -> Keeper:
        config = TrainingConfig(**{"steps": 10, **settings})
        for report in expect_and_maximise(self.model, data, config, hooks=self.hooks(), resume=resume):
            self.reports.append(report)
        return self

    @property
    def wheres(self) -> list[list[int]]:
        return [weights["where"].tolist() for weights in self.kept]


def without_clock(reports: Sequence[Report]) -> list[dict[str, Any]]:
    return [{n: v for n, v in report.to_dict().items() if n not in CLOCK_FIELDS} for report in reports]


# -- stopping --------------------------------------------------------------------------------------------------------


def test_it_stops_when_a_step_gains_less_than_the_tolerance() -> None:
    """Per step of the data: 0.1 of ten steps is a gain of one nat."""
    script = [-100, -50, -48.9, -47.91, -40, -30]
    keeper = Keeper(Scripted(script)).run(tolerance=0.1)
    assert [report.loss for report in keeper.reports] == pytest.approx([10, 5, 4.89, 4.791])
    assert keeper.wheres == [[0, 4]]


def test_it_stops_after_so_many_steps() -> None:
    keeper = Keeper(Scripted([-100, -90, -80, -70, -60])).run(steps=3)
    assert [report.step for report in keeper.reports] == [1, 2, 3]
    assert keeper.wheres == [[0, 3]]


def test_a_tolerance_of_zero_goes_on_while_anything_is_gained() -> None:
    keeper = Keeper(Scripted([-3.0, -2.0, -2.0, -2.0 - 1e-9, -1.0])).run(tolerance=0)
    assert len(keeper.reports) == 4  # the fourth is rounding, below what came before


def test_a_single_step_is_enough_for_a_start() -> None:
    keeper = Keeper(Scripted([-5.0], [-4.0])).run(steps=1, restarts=2)
    assert [report.step for report in keeper.reports] == [1, 2]
    assert keeper.wheres == [[0, 1], [1, 1]]


def test_reports_say_where_it_is() -> None:
    keeper = Keeper(Scripted([-100, -50, -50], [-80, -40, -20])).run(steps=3, restarts=2, evaluate_every=2)
    first, *_, end_of_first, _, _, last = keeper.reports
    assert (first.step, first.steps, first.tokens, first.loss) == (1, 6, 10, 10)
    assert (last.step, last.steps, last.tokens, last.loss) == (6, 6, 60, 2)
    assert [report.valid for report in keeper.reports] == [None, 0.25, 0.25, None, 0.25, 0.25]
    assert [report.sample for report in keeper.reports] == [None, None, "written", None, None, "written"]
    assert [report.is_best for report in keeper.reports] == [False, False, True, False, False, True]
    assert end_of_first.event == "start 1 of 2: 3 iterations, 5.0000 nats per step, the best so far"
    assert last.event == "start 2 of 2: 3 iterations, 2.0000 nats per step, the best so far"
    assert keeper.validated == 4


def test_with_patience_the_best_on_validation_is_kept_and_the_rest_of_a_start_is_spared() -> None:
    script = [-100.0, -90, -80, -70, -60, -50, -40, -30, -20, -10]
    keeper = Keeper(Scripted(script), losses=[0.9, 0.5, 0.7, 0.4, 0.6, 0.4, 0.3]).run(patience=2, evaluate_every=1)
    assert [report.is_best for report in keeper.reports] == [True, True, False, True, False, False]
    assert keeper.wheres == [[0, 1], [0, 2], [0, 4]]
    assert keeper.reports[-1].event == "start 1 of 1: 6 iterations, 5.0000 nats per step; validation no longer improves"


def test_with_patience_each_start_may_climb_from_below_the_best() -> None:
    scripts = [[-100.0, -90, -80, -70]] * 2
    keeper = Keeper(Scripted(*scripts), losses=[0.5, 0.4, 0.45, 0.46, 0.9, 0.6, 0.5, 0.3]).run(
        steps=4, restarts=2, patience=2, evaluate_every=1
    )
    assert [report.step for report in keeper.reports if report.event] == [4, 8]
    assert keeper.wheres == [[0, 1], [0, 2], [1, 4]]


def test_a_kalman_filter_of_several_columns_uses_its_time(tmp_path: Path) -> None:
    """It has more to gain than ten iterations bring, and gains it within its budget."""
    random, hidden, rows = np.random.default_rng(0), np.zeros(6), []
    A, H = 0.97 * np.linalg.qr(random.normal(size=(6, 6)))[0], random.normal(size=(3, 6))
    for _ in range(600):
        hidden = A @ hidden + 0.5 * random.normal(size=6)
        rows.append(H @ hidden + 0.5 * random.normal(size=3))
    np.savetxt(tmp_path / "x.csv", np.array(rows), delimiter=",", header="a,b,c", comments="")
    scores, made = {}, {}
    for name, budget in {"few": {"steps": 10}, "timed": {"minutes": 0.3}}.items():
        overrides = ["training.threads=1", "model.state_dim=6"]
        session = prepare(tmp_path / "x.csv", model="kalman", out=tmp_path / name, overrides=overrides, **budget)
        reports: list[Report] = []
        score = session.train(reports.append)
        assert score is not None
        made[name], scores[name] = len(reports), score.to_dict()["log_likelihood_per_step"]
    assert made["few"] == 10
    assert made["timed"] > 30
    assert scores["timed"] > scores["few"] + 0.01


def test_values_with_what_is_there_of_them_are_counted_by_rows() -> None:
    data = [(np.zeros((7, 3)), np.ones((7, 3), dtype=bool)), (np.zeros((1, 3)), None)]
    assert Keeper(Scripted([-16.0])).run(data, steps=1).reports[0].loss == 2


def test_hooks_may_be_left_out() -> None:
    reports = list(expect_and_maximise(Scripted([-2.0, -1.0]), DATA, TrainingConfig(steps=2)))
    assert [report.valid for report in reports] == [None, None]
    assert reports[-1].is_best


# -- restarts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        ([-5, -9, -7], [0]),
        ([-9, -7, -5], [0, 1, 2]),
        ([-9, -5, -7], [0, 1]),
        ([-5, -5, -5], [0]),
    ],
)
def test_the_best_of_all_starts_is_kept(ends: list[float], kept: list[int]) -> None:
    keeper = Keeper(Scripted(*([end - 10, end] for end in ends))).run(steps=2, restarts=3)
    assert keeper.wheres == [[seed, 2] for seed in kept]
    assert [report.is_best for report in keeper.reports if report.event] == [seed in kept for seed in range(3)]


def test_starts_are_of_the_seed_and_those_after_it() -> None:
    keeper = Keeper(Scripted([], [], [-9.0], [-8.0])).run(steps=1, restarts=2, seed=2)
    assert keeper.wheres == [[2, 1], [3, 1]]


def test_a_start_may_begin_lower_than_the_one_before_ended() -> None:
    keeper = Keeper(Scripted([-9.0, -3.0], [-50.0, -40.0])).run(steps=2, restarts=2)
    assert keeper.wheres == [[0, 2]]


# -- our mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [[-5.0, -5.1], [-5e6, -4e6, -4.1e6], [-9.0, -7.0, -7.01]])
def test_an_objective_that_falls_is_our_mistake(script: list[float]) -> None:
    with pytest.raises(AssertionError, match=r"EM lowered its objective from .* to .*: this is our mistake"):
        Keeper(Scripted(script)).run(tolerance=0)


@pytest.mark.parametrize("script", [[-1e6, -1e6 - 0.01], [-0.5, -0.5 - 1e-8]])
def test_what_rounding_takes_away_is_forgiven(script: list[float]) -> None:
    assert len(Keeper(Scripted(script)).run().reports) == 2


def test_a_start_that_ends_in_no_number_is_not_kept_for_the_best() -> None:
    keeper = Keeper(Scripted([-5.0, math.nan], [-4.0, -3.0]))
    with pytest.raises(TrainingError, match="the likelihood became nan in iteration 2"):
        keeper.run(steps=2, restarts=2)


def test_the_last_report_is_at_the_end_of_what_was_planned() -> None:
    """Starts that end early shorten the plan."""
    keeper = Keeper(Scripted([-100, -50, -50], [-80, -40, -20, -20])).run(steps=5, restarts=2)
    assert [(report.step, report.steps) for report in keeper.reports] == [
        (1, 10), (2, 10), (3, 8), (4, 8), (5, 8), (6, 8), (7, 7),
    ]  # fmt: skip


# -- checkpoints -----------------------------------------------------------------------------------------------------

SCRIPTS = ([-90, -50, -49, -48.5], [-80, -40, -30, -29], [-70, -60, -59.999], [-66, -45, -44, -43])


def test_the_end_is_saved() -> None:
    (checkpoint,) = Keeper(Scripted(*SCRIPTS)).run(steps=3, restarts=2).checkpoints
    assert checkpoint.step == 6
    assert checkpoint.progress["is_stopped"]
    json.dumps(checkpoint.progress, allow_nan=False)


def test_checkpoints_are_saved_as_often_as_asked() -> None:
    keeper = Keeper(Scripted(*SCRIPTS)).run(steps=3, restarts=2, checkpoint_seconds=0)
    assert [checkpoint.step for checkpoint in keeper.checkpoints] == [1, 2, 3, 4, 5, 6]
    assert [checkpoint.progress["is_stopped"] for checkpoint in keeper.checkpoints] == [False] * 5 + [True]
    assert [c.weights["where"].tolist() for c in keeper.checkpoints][2:4] == [[0, 3], [1, 1]]


@pytest.mark.parametrize("stop_after", range(1, 8))
def test_stopped_and_resumed_with_patience_it_ends_as_if_never_stopped(stop_after: int) -> None:
    script, losses = [-100.0, -90, -80, -70, -60, -50, -40, -30, -20, -10], [0.9, 0.5, 0.7, 0.6, 0.4, 0.6, 0.5, 0.7]
    settings: dict[str, Any] = {"patience": 3, "evaluate_every": 1}
    whole = Keeper(Scripted(script), losses=losses).run(**settings)
    assert len(whole.reports) == 8
    stopped = Keeper(Scripted(script), stop_after, losses=losses).run(**settings)
    rest = losses[stop_after:] + losses[:stop_after]
    resumed = Keeper(Scripted(script), losses=rest).run(resume=stopped.checkpoints[-1], **settings)
    assert without_clock([*stopped.reports, *resumed.reports]) == without_clock(whole.reports)
    assert stopped.wheres + resumed.wheres == whole.wheres


@pytest.mark.parametrize("stop_after", range(1, 15))
def test_stopped_and_resumed_it_ends_as_if_never_stopped(stop_after: int) -> None:
    settings: dict[str, Any] = {"steps": 4, "restarts": 4, "tolerance": 0.01}
    whole = Keeper(Scripted(*SCRIPTS)).run(**settings)
    assert len(whole.reports) == 15
    stopped = Keeper(Scripted(*SCRIPTS), stop_after).run(**settings)
    assert len(stopped.reports) == stop_after
    (checkpoint,) = stopped.checkpoints
    resumed = Keeper(Scripted(*SCRIPTS)).run(resume=checkpoint, **settings)
    assert without_clock([*stopped.reports, *resumed.reports]) == without_clock(whole.reports)
    assert stopped.wheres + resumed.wheres == whole.wheres
    ours, theirs = resumed.checkpoints[-1], whole.checkpoints[-1]
    assert {**ours.progress, "seconds": 0} == {**theirs.progress, "seconds": 0}
    assert ours.weights["where"].tolist() == theirs.weights["where"].tolist()


def test_it_may_be_stopped_after_every_step() -> None:
    whole = Keeper(Scripted(*SCRIPTS)).run(steps=4, restarts=2)
    reports: list[Report] = []
    kept: list[list[int]] = []
    checkpoint = None
    while len(reports) < len(whole.reports):
        keeper = Keeper(Scripted(*SCRIPTS), stop_after=1).run(resume=checkpoint, steps=4, restarts=2)
        reports, kept, checkpoint = [*reports, *keeper.reports], kept + keeper.wheres, keeper.checkpoints[-1]
    assert without_clock(reports) == without_clock(whole.reports)
    assert kept == whole.wheres


def test_what_has_ended_is_not_gone_on_with() -> None:
    (checkpoint,) = Keeper(Scripted(*SCRIPTS)).run(steps=3, restarts=2).checkpoints
    again = Keeper(Scripted(*SCRIPTS)).run(resume=checkpoint, steps=3, restarts=2)
    assert (again.reports, again.kept, again.checkpoints) == ([], [], [])


# -- real families ---------------------------------------------------------------------------------------------------


def hmm_of_tokens() -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    model = MODELS["hmm"].build(MODELS["hmm"].config(num_states=3), schemas.of_text(4))
    return model, [random.integers(4, size=length) for length in (60, 25)]


def number_family(name: str, **settings: Any) -> tuple[Any, list[Any]]:
    random = np.random.default_rng(0)
    values = random.normal(size=(80, 2)).cumsum(axis=0)
    is_there = random.random(values.shape) > 0.1
    model = MODELS[name].build(MODELS[name].config(**settings), schemas.of_numbers(2))
    return model, [(np.where(is_there, values, 0.0), is_there)]


FAMILIES: dict[str, Callable[[], tuple[Any, list[Any]]]] = {
    "hmm of tokens": hmm_of_tokens,
    "hmm of numbers": lambda: number_family("hmm", num_states=3),
    "kalman": lambda: number_family("kalman", state_dim=3),
    "kalman from chance": lambda: number_family("kalman", state_dim=3, init="random"),
}


@pytest.mark.parametrize("name", list(FAMILIES))
@pytest.mark.parametrize("stop_after", [1, 4, 5, 8])
def test_a_real_family_resumes_to_the_same_bits(name: str, stop_after: int) -> None:
    settings: dict[str, Any] = {"steps": 5, "restarts": 2, "tolerance": 0}
    model, data = FAMILIES[name]()
    whole = Keeper(model).run(data, **settings)
    assert len(whole.reports) == 10
    model, data = FAMILIES[name]()
    stopped = Keeper(model, stop_after).run(data, **settings)
    model, data = FAMILIES[name]()
    resumed = Keeper(model).run(data, resume=stopped.checkpoints[-1], **settings)
    assert without_clock([*stopped.reports, *resumed.reports]) == without_clock(whole.reports)
    kept = stopped.kept + resumed.kept
    assert len(kept) == len(whole.kept)
    for ours, theirs in zip(kept, whole.kept, strict=True):
        assert {n: t.tolist() for n, t in ours.items()} == {n: t.tolist() for n, t in theirs.items()}


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_real_family_gains_from_step_to_step(name: str) -> None:
    model, data = FAMILIES[name]()
    losses = [report.loss for report in Keeper(model).run(data, steps=15).reports]
    assert losses[-1] < losses[0]
    assert all(after <= before + 1e-6 * abs(before) for before, after in pairwise(losses))


# -- in a run folder -------------------------------------------------------------------------------------------------

SMALL: dict[str, list[str]] = {"hmm": ["model.num_states=3"], "kalman": ["model.state_dim=3"]}
EM = ["training.steps=5", "training.restarts=3", "training.tolerance=0", "training.threads=1"]


def write_data(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".csv"):
        values = np.random.default_rng(0).normal(size=(90, 2)).cumsum(axis=0)
        path.write_text("a,b\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in values))
    else:
        path.write_text("the cat sat on the mat.\na dog sat on the log.\n" * 20)
    return path


@pytest.mark.parametrize(("data", "family"), [("x.txt", "hmm"), ("x.csv", "hmm"), ("x.csv", "kalman")])
@pytest.mark.parametrize("number", [2, 8])
def test_a_run_that_is_stopped_and_resumed_has_the_files_of_one_never_stopped(
    tmp_path: Path, data: str, family: str, number: int
) -> None:
    source, settings = write_data(tmp_path, data), [*SMALL[family], *EM]
    list(prepare(source, model=family, out=tmp_path / "whole", overrides=settings).reports())
    session = prepare(source, model=family, out=tmp_path / "stopped", overrides=settings)
    assert len(list(session.reports(wants_stop=stop_after(number)))) == number
    session = resume(tmp_path / "stopped")
    list(session.reports())
    assert not session.is_interrupted
    assert log_without_clock(tmp_path / "stopped") == log_without_clock(tmp_path / "whole")
    for name in ("model.safetensors", "checkpoints/15/weights.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    "number",
    [
        2,
        5,
        8,
    ],
)
def test_a_run_stopped_between_its_starts_is_not_over(tmp_path: Path, number: int) -> None:
    session = prepare(write_data(tmp_path, "x.csv"), model="hmm", out=tmp_path / "run", overrides=[*SMALL["hmm"], *EM])
    list(session.reports(wants_stop=stop_after(number)))
    assert session.is_interrupted
    told: list[str] = []
    resume(tmp_path / "run", tell=told.append)
    assert not [sentence for sentence in told if "trained to the end already" in sentence]


@pytest.mark.parametrize(("data", "family"), [("x.txt", "hmm"), ("x.csv", "kalman")])
def test_a_run_that_starts_from_another_goes_on_from_its_weights(tmp_path: Path, data: str, family: str) -> None:
    source, settings = write_data(tmp_path, data), [*SMALL[family], "training.steps=5", "training.restarts=1"]
    first = [r.loss for r in prepare(source, model=family, out=tmp_path / "first", overrides=settings).reports()]
    session = prepare(source, model=family, out=tmp_path / "next", overrides=settings, start_from=tmp_path / "first")
    assert next(iter(session.reports())).loss <= first[-1]
