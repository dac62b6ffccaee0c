"""Who is trained for how long: equal shares, never beyond the budget, and the finals for those who gain from time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemas
from hypothesis import assume, given
from hypothesis import strategies as st

from seqwise.comparison.compare import _Runner, _Silent
from seqwise.comparison.entrants import FORMS, choose_models, entrants
from seqwise.comparison.jobs import _best_at
from seqwise.comparison.plan import (
    MAX_SCORED,
    MIN_SCORED,
    MIN_SECONDS,
    MIN_UPDATES,
    RESERVE,
    STILL_IN_REACH,
    Limits,
    Settings,
    Standing,
    Timing,
    Trial,
    amount_to_score,
    amount_to_validate,
    choose_seeds,
    entry_name,
    finals,
    ladder,
    minutes_for_all,
    second_round,
)
from seqwise.comparison.workspace import Workspace
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.models.ngram_family import METHODS
from seqwise.pages.quantities import duration
from seqwise.tasks import TASKS, can_do

TEXT_FAMILIES = [name for name, row in MODELS.items() if "next_token" in row.learns]
budgets = st.builds(
    lambda minutes, models, tokenizers, seeds, workers: asked(
        minutes=minutes, models=models, tokenizers=tokenizers, seeds=seeds, workers=workers
    ),
    minutes=st.floats(0.05, 600),
    models=st.lists(st.sampled_from(TEXT_FAMILIES), min_size=1, unique=True),
    tokenizers=st.sampled_from([["auto"], ["char", "bpe"]]),
    seeds=st.integers(1, 3),
    workers=st.integers(1, 8),
)


def asked(**changes: Any) -> Settings:
    made = Settings(source=["poems.txt"], minutes=10.0, models=["ngram", "lstm", "gpt"])
    return replace(made, **changes)


def wall_clock(trials: list[Trial], workers: int) -> float:
    """Seconds, were each trial to take its whole share, and the next begun when a worker is free."""
    free_at = [0.0] * workers
    for trial in trials:
        first = free_at.index(min(free_at))
        free_at[first] += 60 * trial.minutes
    return max(free_at)


def standing(name: str, value: float, best_at: float = 1.0, family: str | None = None) -> Standing:
    return Standing(name, family or name, "auto", value, best_at)


def go_on(*standings: Standing, seconds: float = 600.0, **changes: Any) -> list[str]:
    """The entries that are trained longer; the ladder had a minute each."""
    trials, _ = finals(asked(**changes), standings, share=1.0, seconds=seconds)
    return list(dict.fromkeys(trial.entry for trial in trials))


# -- shares ----------------------------------------------------------------------------------------------------------


@given(budgets, st.floats(0, 30))
def test_every_trial_of_the_ladder_has_the_same_share(settings: Settings, spent: float) -> None:
    trials = ladder(settings, spent).trials
    assert len({trial.minutes for trial in trials}) == 1
    counting, others = ("ngram" in settings.models), len(set(settings.models) - {"ngram"})
    assert len(trials) == len(settings.tokenizers) * (counting + others * settings.seeds)  # counts know no chance
    assert {trial.stage for trial in trials} == {"ladder"}


@given(budgets, st.floats(0, 30))
def test_the_ladder_takes_half_of_the_time_to_train(settings: Settings, spent: float) -> None:
    half = 0.5 * ((1 - RESERVE) * 60 * settings.minutes - spent)
    assume(half > 0)
    assert wall_clock(ladder(settings, spent).trials, settings.workers) == pytest.approx(half)


def test_ten_minutes_for_three_families() -> None:
    """88 % of them to train, half of that in three shares."""

    def shares(spent: float, **changes: Any) -> list[float]:
        return [60 * trial.minutes for trial in ladder(asked(**changes), spent).trials]

    assert shares(0.0) == pytest.approx([88.0] * 3)
    assert shares(12.0) == pytest.approx([86.0] * 3)
    assert shares(12.0, workers=2) == pytest.approx([129.0] * 3)
    assert shares(12.0, seeds=2) == pytest.approx([51.6] * 5)


# -- what fits this machine ------------------------------------------------------------------------------------------

timed = st.builds(Timing, start=st.floats(0, 2), update=st.floats(0, 5), score=st.floats(1e-7, 1e-3))


@given(budgets, st.floats(0, 30), st.data())
def test_who_is_trained_can_learn_something_and_who_is_left_out_could_not(
    settings: Settings, spent: float, data: st.DataObject
) -> None:
    names = [entry_name(settings, m, t, "ladder") for m in settings.models for t in settings.tokenizers]
    timings = {name: data.draw(timed) for name in names}
    seconds = (1 - RESERVE) * 60 * settings.minutes - spent
    seeds = {name: 1 if name.startswith("ngram") else settings.seeds for name in names}

    def share_of(entries: list[str]) -> float:
        return seconds / -(-sum(seeds[name] for name in entries) // settings.workers)

    try:
        made = ladder(settings, spent, timings)
    except ConfigError:
        assert settings.workers > 1 or all(timings[name].min_seconds() > share_of([name]) for name in names)
        return
    share = 60 * made.trials[0].minutes
    trained = list(dict.fromkeys(trial.entry for trial in made.trials))
    assert set(trained) | set(made.left_out) == set(names)
    assert not set(trained) & set(made.left_out)
    assert all(timings[name].min_seconds() <= share for name in trained)
    assert wall_clock(made.trials, settings.workers) <= seconds * (1 + 1e-9)
    if made.left_out:  # one more would leave too little for somebody
        cheapest = min(made.left_out, key=lambda name: timings[name].min_seconds() * seeds[name])
        larger = [*trained, cheapest]
        assert share_of(larger) < max(timings[name].min_seconds() for name in larger)


def test_where_time_is_short_fewer_are_trained_for_longer() -> None:
    """A minute: 52.8 s to train. Two slow networks would have 13 s each; without them there are 17.6 for each."""
    slow, fast = Timing(0.0, 0.3, 0.0), Timing(0.0, 0.05, 0.0)  # 150 updates: 56 and 9.4 s
    settings = asked(minutes=1.0, models=["ngram", "rnn", "window", "lstm", "gpt"])
    timings = {"ngram": Timing(0.0, 0.0, 0.0), "rnn": fast, "window": fast, "lstm": slow, "gpt": slow}
    made = ladder(settings, 0.0, timings)
    assert [trial.name for trial in made.trials] == ["ngram", "rnn", "window"]
    assert [60 * trial.minutes for trial in made.trials] == pytest.approx([52.8 / 3] * 3)  # no time for finals
    assert list(made.left_out) == ["lstm", "gpt"]
    assert "needs 56 s" in made.left_out["lstm"]
    assert "its share would be 13 s" in made.left_out["lstm"]


def test_where_time_is_enough_the_finals_keep_their_half() -> None:
    fast = Timing(0.5, 0.02, 1e-6)
    settings = asked(minutes=2.0)
    made = ladder(settings, 6.0, {name: fast for name in settings.models})
    assert not made.left_out
    assert wall_clock(made.trials, 1) == pytest.approx(0.5 * (0.88 * 120 - 6))


def test_a_budget_in_which_nobody_could_learn_is_refused_with_the_least_that_would_do() -> None:
    settings = asked(minutes=0.1, models=["ngram", "gpt"])
    timings = {"ngram": Timing(1.0, 0.0, 1e-5), "gpt": Timing(1.0, 1.0, 1e-5)}
    with pytest.raises(ConfigError, match=r"--minutes 0\.1 is too short .* about 0\.18 minutes"):
        ladder(settings, 5.0, timings)
    assert ladder(replace(settings, minutes=0.172), 5.0, timings).trials[0].name == "ngram"


@given(budgets, st.floats(0, 30), timed)
def test_the_budget_that_is_said_to_be_enough_for_all_is(settings: Settings, spent: float, one: Timing) -> None:
    names = [entry_name(settings, m, t, "ladder") for m in settings.models for t in settings.tokenizers]
    timings = {name: one for name in names}
    enough = minutes_for_all(settings, timings, spent)
    assert not ladder(replace(settings, minutes=enough * 1.001), spent, timings).left_out


def test_who_was_left_out_is_trained_where_others_needed_less_than_their_share() -> None:
    settings = asked(minutes=1.0, models=["ngram", "rnn", "gpt"])
    timings = {"ngram": Timing(0.0, 0.0, 0.0), "rnn": Timing(0.0, 0.06, 0.0), "gpt": Timing(0.0, 0.15, 0.0)}
    first = ladder(settings, 0.0, timings)
    assert list(first.left_out) == ["gpt"]
    again = second_round(settings, 15.0, timings, first.left_out, MIN_SCORED)
    assert [(trial.name, trial.stage) for trial in again.trials] == [("gpt", "ladder")]
    assert 60 * again.trials[0].minutes >= timings["gpt"].min_seconds()
    late = second_round(settings, 40.0, timings, first.left_out, MIN_SCORED)
    assert (late.trials, list(late.left_out)) == ([], ["gpt"])


def test_the_share_that_is_named_is_the_one_it_would_have_had() -> None:
    """Twenty seconds for two are enough, less for three: the share of the two is not what kept the third out."""
    settings = asked(minutes=1.0, models=["rnn", "lstm", "gpt"])
    timings = {"rnn": Timing(0.0, 0.08, 0.0), "lstm": Timing(0.0, 0.1, 0.0), "gpt": Timing(0.0, 0.105, 0.0)}
    made = ladder(settings, 0.0, timings)
    assert list(made.left_out) == ["gpt"]
    share, needed = 0.88 * 60 / 3, timings["gpt"].min_seconds()
    assert share < needed < 60 * made.trials[0].minutes
    assert made.left_out["gpt"].endswith(
        f"needs {duration(needed)} on this machine now, and its share would be {duration(share)}"
    )


def test_a_share_that_is_short_by_less_than_can_be_shown_is_told_without_a_number() -> None:
    settings = asked(minutes=1.0, models=["rnn", "lstm", "gpt"])
    each = 0.88 * 60 / 3 * 0.8 / 150
    timings = {"rnn": Timing(0.0, 0.08, 0.0), "lstm": Timing(0.0, 0.09, 0.0), "gpt": Timing(0.0, each * 1.001, 0.0)}
    assert ladder(settings, 0.0, timings).left_out["gpt"].endswith("and with it no share would be long enough")


def test_who_joins_late_must_have_time_for_as_much_validation_as_the_others_had() -> None:
    settings = asked(minutes=1.0, models=["ngram", "gpt"])
    timings = {"ngram": Timing(0.0, 0.0, 0.0), "gpt": Timing(0.0, 0.1, 1e-3)}
    left_out = {"gpt": "too slow"}
    assert second_round(settings, 10.0, timings, left_out, MIN_SCORED).trials
    assert not second_round(settings, 10.0, timings, left_out, 100_000).trials
    short = {**timings, "gpt": Timing(0.0, 0.1, 1e-3, units=15)}
    assert second_round(settings, 10.0, short, left_out, 100_000).trials


def test_a_share_has_time_for_more_updates_than_a_candidate_needs() -> None:
    timing = Timing(1.0, 0.1, 1e-4)
    assert timing.min_seconds() > 1.0 + MIN_UPDATES * 0.1 + MIN_SCORED * 1e-4
    assert Timing(0.0, 0.0, 0.0).min_seconds() == MIN_SECONDS


def test_all_are_ranked_by_as_much_as_the_slowest_has_time_for() -> None:
    settings = asked(minutes=10.0, models=["ngram", "gpt"])
    timings = {"ngram": Timing(0.0, 0.0, 1e-6), "gpt": Timing(0.0, 0.01, 1e-3)}
    trials = ladder(settings, 0.0, timings).trials
    assert amount_to_validate(trials, timings) == pytest.approx(0.12 * 132 / 1e-3, rel=0.001)
    assert amount_to_validate(trials[:1], timings) == MAX_SCORED
    assert amount_to_validate(trials, {**timings, "gpt": Timing(0.0, 0.01, 1.0)}) == MIN_SCORED
    assert amount_to_validate(trials, {**timings, "gpt": Timing(0.0, 0.01, 1.0, units=15)}) == 15  # all there is


def test_a_short_validation_part_costs_no_more_than_it_is_long() -> None:
    assert Timing(0.0, 0.0, 0.1, units=15).min_seconds() == pytest.approx(MIN_SECONDS + 1.5)
    assert Timing(0.0, 0.0, 0.1).min_seconds() == pytest.approx(MIN_SECONDS + 0.1 * MIN_SCORED)


def test_as_much_is_scored_at_the_end_as_there_is_time_for() -> None:
    assert amount_to_score(10.0, [1e-4, 3e-4], 1) == pytest.approx(0.6 * 10 / 4e-4)
    assert amount_to_score(10.0, [1e-4, 3e-4], 2) == pytest.approx(2 * 0.6 * 10 / 4e-4)
    assert amount_to_score(0.0, [1e-4], 1) == MIN_SCORED
    assert amount_to_score(1e6, [1e-4], 1) == MAX_SCORED


class InMemory(Workspace):
    """A folder without a disk."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"))
        self.files: dict[str, dict[str, Any]] = {}

    def read(self, name: str) -> dict[str, Any]:
        return self.files[name]

    def read_if_there(self, name: str) -> dict[str, Any] | None:
        return self.files.get(name)

    def write(self, name: str, content: dict[str, Any]) -> None:
        self.files[name] = content


def after_the_ladder(settings: Settings, spent: float = 0.0, *, used: float = 1.0, failed: int = 0) -> list[Trial]:
    """The finals that follow where each trial took `used` of its share, and the first few `failed` at the end of it."""
    folder, trials = InMemory(), ladder(settings, spent).trials
    folder.save_plan(trials)
    taken = wall_clock([replace(trial, minutes=used * trial.minutes) for trial in trials], settings.workers)
    folder.write("clock.json", {"seconds": spent + taken})
    for number, trial in enumerate(trials):
        seconds = used * 60 * trial.minutes
        found: dict[str, Any] = {"seconds": seconds, "valid": 2.0 + 0.01 * number, "best_at": 1.0}
        if number < failed:
            folder.save_found(trial.name, "clock", {"seconds": seconds})
            folder.save_found(trial.name, "failed", {"reason": "its process was killed", "seconds": seconds})
        else:
            folder.save_found(trial.name, "trained", found)
    runner = _Runner(folder, settings, None, _Silent(), lambda: False)  # type: ignore[arg-type]
    runner._plan_finals()
    return [trial for trial in folder.trials if trial.stage == "final"]


@given(budgets, st.floats(0, 30), st.sampled_from([0.1, 0.9, 1.0]))
def test_all_shares_together_never_exceed_the_budget(settings: Settings, spent: float, used: float) -> None:
    trials = ladder(settings, spent).trials
    assume(trials[0].minutes > 0)
    final = after_the_ladder(settings, spent, used=used)
    taken = [replace(trial, minutes=used * trial.minutes) for trial in trials]
    trained = wall_clock(taken, settings.workers) + wall_clock(final, settings.workers)
    assert spent + trained <= (1 - RESERVE) * 60 * settings.minutes * (1 + 1e-9)


def test_a_last_round_of_the_ladder_that_is_not_full_takes_its_whole_time() -> None:
    """Three trials on two workers take two shares of the clock, not one and a half."""
    settings = asked(minutes=10.0, workers=2, models=["rnn", "gru", "lstm"])
    final = after_the_ladder(settings)
    assert wall_clock(final, 2) <= 0.5 * 0.88 * 600 + 1e-6


def test_finalists_that_run_side_by_side_have_all_the_time_that_is_left() -> None:
    settings = asked(minutes=10.0, workers=2, models=["conv", "rnn", "gru", "lstm"])
    final = after_the_ladder(settings)
    assert len(final) == 2
    assert wall_clock(final, 2) == pytest.approx(0.5 * 0.88 * 600)


def test_the_time_of_a_trial_that_failed_is_spent_too() -> None:
    settings = asked(minutes=10.0, models=["rnn", "gru", "lstm"])
    final = after_the_ladder(settings, failed=1)
    assert final
    assert wall_clock(final, 1) <= 0.5 * 0.88 * 600 + 1e-6


def test_what_others_did_not_need_goes_to_the_finalists() -> None:
    settings = asked(minutes=10.0, models=["lstm"])
    final = after_the_ladder(settings, used=0.25)
    assert [60 * trial.minutes for trial in final] == pytest.approx([0.88 * 600 - 0.25 * 0.44 * 600])


# -- finalists -------------------------------------------------------------------------------------------------------


def test_the_best_two_that_still_improve_go_on_in_equal_shares() -> None:
    standings = [standing("rnn", 2.1), standing("gpt", 2.0), standing("lstm", 2.05), standing("conv", 1.9, 0.3)]
    trials, why = finals(asked(), standings, share=1.0, seconds=600.0)
    assert [trial.entry for trial in trials] == ["gpt-final", "lstm-final"]
    assert [60 * trial.minutes for trial in trials] == [300.0, 300.0]
    assert why == "gpt and lstm went on: the best on validation of those still improving"


@pytest.mark.parametrize(
    ("value", "is_second"),
    [(2.0, True), (2.0 * (1 + STILL_IN_REACH) - 0.001, True), (2.0 * (1 + STILL_IN_REACH) + 0.001, False)],
)
def test_a_second_finalist_is_in_reach_of_the_first(value: float, is_second: bool) -> None:
    assert go_on(standing("gpt", 2.0), standing("lstm", value)) == ["gpt-final", *["lstm-final"] * is_second]


def test_reach_is_measured_by_size_where_values_are_negative() -> None:
    """Log-densities: -2.0 is better than -1.9 by a twentieth."""
    assert go_on(standing("gpt", -2.0), standing("lstm", -1.9)) == ["gpt-final", "lstm-final"]
    assert go_on(standing("gpt", -2.0), standing("lstm", -1.5)) == ["gpt-final"]
    assert go_on(standing("gpt", 0.0), standing("lstm", 0.5)) == ["gpt-final"]


@pytest.mark.parametrize(("best_at", "goes_on"), [(0.0, False), (0.69, False), (0.7, True), (1.0, True)])
def test_who_was_best_long_before_the_end_does_not_go_on(best_at: float, goes_on: bool) -> None:
    assert go_on(standing("gpt", 2.0, best_at)) == ["gpt-final"] * goes_on


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row.learns_by != "gradients"])
def test_who_counts_or_iterates_does_not_go_on_even_as_the_best(name: str) -> None:
    task = next(task for task in TASKS if name in schemas.families(task))
    assert go_on(standing(name, 1.0), standing("gpt", 2.0), task=task) == ["gpt-final"]
    assert go_on(standing(name, 1.0), task=task) == []


def test_one_finalist_gets_all_where_half_would_hardly_be_longer_than_before() -> None:
    """The ladder had 60 seconds: 180 are 1.5 times that for two of them."""
    two = [standing("gpt", 2.0), standing("lstm", 2.0)]
    assert go_on(*two, seconds=181.0) == ["gpt-final", "lstm-final"]
    assert go_on(*two, seconds=179.0) == ["gpt-final"]
    assert go_on(*two, seconds=359.0, seeds=2) == ["gpt-final"]  # one after the other
    assert go_on(*two, seconds=181.0, seeds=2, workers=2) == ["gpt-final", "lstm-final"]


def test_nobody_is_trained_for_a_shorter_time_than_before() -> None:
    trials, why = finals(asked(), [standing("gpt", 2.0)], share=1.0, seconds=59.0)
    assert trials == []
    assert why == "there was no time left to train a finalist for longer than in the ladder"
    assert go_on(standing("gpt", 2.0), seconds=61.0) == ["gpt-final"]
    assert go_on(standing("gpt", 2.0), seconds=-5.0) == []


@pytest.mark.parametrize("seconds", [-10.0, 0.0, MIN_SECONDS - 0.1])
def test_the_least_time_for_a_trial_makes_no_finalist_when_there_is_no_time_left(seconds: float) -> None:
    """Of a small budget, the shares of the ladder were the least too."""
    share = MIN_SECONDS / 60
    assert finals(asked(), [standing("gpt", 2.0)], share=share, seconds=seconds)[0] == []


def test_where_nobody_goes_on_a_sentence_says_why() -> None:
    assert finals(asked(), [], share=1.0, seconds=600.0) == ([], "no family could be trained")
    trials, why = finals(asked(), [standing("ngram", 1.0)], share=1.0, seconds=600.0)
    assert trials == []
    assert why == "no family was still improving when its share was over, so the rest of the time was not used"


def test_a_value_that_is_not_a_number_makes_no_finalist_first() -> None:
    assert go_on(standing("gpt", math.nan), standing("lstm", 2.0))[:1] == ["lstm-final"]


def test_one_that_was_ended_while_it_improved_counts_as_improving() -> None:
    """By the clock, after 60 of 100 steps, the last validation being the best."""
    log = [{"step": step, "steps": 100, "is_best": True} for step in (20, 40, 60)]
    assert _best_at(log) == pytest.approx(1.0)
    assert _best_at([*log, {"step": 100, "steps": 100}]) == pytest.approx(0.6)


def test_seeds_of_a_finalist_share_its_time() -> None:
    trials, _ = finals(asked(seeds=2, seed=5), [standing("gpt", 2.0)], share=1.0, seconds=600.0)
    assert [trial.name for trial in trials] == ["gpt-final", "gpt-final-seed-1"]
    assert [trial.seed for trial in trials] == [5, 6]
    assert sum(60 * trial.minutes for trial in trials) == pytest.approx(600.0)


# -- names -----------------------------------------------------------------------------------------------------------


@given(budgets)
def test_no_two_trials_have_one_name(settings: Settings) -> None:
    trials = ladder(settings, 0.0).trials
    standings = [Standing(t.entry, t.family, t.tokenizer, 2.0, 1.0) for t in trials if t.name == t.entry]
    final, _ = finals(settings, standings, share=1.0, seconds=6000.0)
    names = [trial.name for trial in [*trials, *final]]
    assert len(names) == len(set(names))
    assert all(trial.name.startswith(trial.entry) for trial in trials)


def test_a_tokenizer_is_named_where_there_are_several() -> None:
    one, two = asked(), asked(tokenizers=["char", "bpe"])
    assert entry_name(one, "gpt", "auto", "ladder") == "gpt"
    assert entry_name(one, "gpt", "auto", "final") == "gpt-final"
    assert entry_name(two, "gpt", "bpe", "ladder") == "gpt-bpe"
    assert entry_name(two, "gpt", "bpe", "final") == "gpt-bpe-final"


def test_the_seeds_of_an_entry_are_numbered_from_the_first() -> None:
    trials = ladder(asked(models=["gpt"], seeds=3, seed=7), 0.0).trials
    assert [(t.name, t.entry, t.seed) for t in trials] == [
        ("gpt", "gpt", 7), ("gpt-seed-1", "gpt", 8), ("gpt-seed-2", "gpt", 9),
    ]  # fmt: skip


# -- what was asked for ----------------------------------------------------------------------------------------------


def test_without_a_wish_all_families_of_the_task_are_compared_in_the_order_of_the_lineage() -> None:
    for task in ("text", "numbers", "tags"):
        assert choose_models(None, task) == [name for name in schemas.families(task) if MODELS[name].takes_part]
    assert choose_models(["elmo"], "text") == [
        "elmo"
    ]  # who is trained to be read from takes part where it is asked for
    assert choose_models(["gpt", "ngram", "gpt"], "text") == ["ngram", "gpt"]


def test_a_family_that_is_not_known_or_does_not_do_the_task_is_named() -> None:
    with pytest.raises(ConfigError) as unknown:
        choose_models(["ngram", "gtp"], "text")
    assert str(unknown.value) == 'unknown family "gtp". Did you mean "gpt"?'
    with pytest.raises(ConfigError) as unfit:
        choose_models(["kalman", "lstm"], "text")
    fitting = ", ".join(TEXT_FAMILIES)
    assert str(unfit.value) == f"kalman does not do the task text. Families that do: {fitting}."


def test_long_budgets_train_several_seeds() -> None:
    assert [choose_seeds(minutes) for minutes in (0.1, 59, 60, 179, 180, 6000)] == [1, 1, 2, 2, 3, 3]


def test_settings_are_the_same_when_read_back() -> None:
    settings = asked(limits=Limits(parameters=1000, megabytes=0.5), columns=["a"], valid="v.txt", seeds=2)
    assert Settings.from_dict(settings.to_dict()) == settings
    assert settings.limits.to_dict() == {"parameters": 1000, "megabytes": 0.5}


def test_of_seq2seq_each_kind_of_attention_takes_part() -> None:
    everyone = ["seq2seq-none", "seq2seq-dot", "seq2seq-general", "seq2seq-additive", "transformer"]
    assert choose_models(None, "pairs") == everyone
    assert choose_models(["seq2seq"], "pairs") == everyone[:4]
    assert choose_models(["transformer", "seq2seq-dot"], "pairs") == ["seq2seq-dot", "transformer"]
    with pytest.raises(ConfigError, match="lstm does not do the task pairs"):
        choose_models(["lstm"], "pairs")
    with pytest.raises(ConfigError, match='unknown family "seq2seq-dott"'):
        choose_models(["seq2seq-dott"], "pairs")
    asked_for = asked(task="pairs", models=everyone)
    trials = ladder(asked_for, 0.0).trials
    assert [(trial.entry, trial.family) for trial in trials[:2]] == [
        ("seq2seq-none", "seq2seq"),
        ("seq2seq-dot", "seq2seq"),
    ]
    assert entrants("pairs")["seq2seq-dot"].overrides == ["model.attention=dot"]


def test_of_n_grams_each_way_to_label_takes_part() -> None:
    forms = [f"ngram-{method}" for method in METHODS]
    others = [name for name, row in MODELS.items() if row.takes_part and can_do(row, TASKS["label"])]
    assert choose_models(None, "label") == [*forms, *(name for name in others if name != "ngram")]
    assert choose_models(["ngram", "lstm"], "label") == [*forms, "lstm"]
    assert choose_models(["ngram-bag"], "label") == ["ngram-bag"]
    bag = entrants("label")["ngram-bag"]
    assert (bag.family, bag.overrides, bag.learns_by) == ("ngram", ["model.method=bag"], "counting")
    assert bag.does(["label"])
    assert not bag.does(["labels"])
    assert entrants("label")["lstm"].kinds == ("label", "labels", "number")
    assert entrants("label")["lstm"].does(["number"])
    assert entrants("tags")["lstm"].does(["tag", "label"])
    assert not replace(bag, kinds=("label",)).does(["label", "tag"])  # it would leave half of it unanswered
    assert not replace(bag, kinds=("next_token",)).does(["label"])  # another form of the family labels


def test_what_a_family_chooses_by_validation_depends_on_what_is_asked_for() -> None:
    """An order or a number of states of 0 says nothing to who labels."""
    assert entrants("text")["ngram"].overrides == ["model.order=0"]
    assert entrants("text")["hmm"].overrides == entrants("numbers")["hmm"].overrides == ["model.num_states=0"]
    for task in ("label", "tags", "pairs"):
        assert not any("=0" in override for one in entrants(task).values() for override in one.overrides)


def test_every_form_is_of_a_family_that_answers_that() -> None:
    for family, kind in FORMS:
        assert kind in MODELS[family].learns
        config = MODELS[family].config
        for settings in FORMS[family, kind].values():
            config(**settings)  # refuses what it does not know
