"""From values to an answer: ranking, sure differences, the front by brute force, the sentences, the fitted curve."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from seqwise.comparison.baselines import Baseline
from seqwise.comparison.plan import MIN_UPDATES, Limits
from seqwise.comparison.results import Entry, Figure, Metric, Point
from seqwise.comparison.verdict import (
    PowerLaw,
    choose_winner,
    expected_gain,
    find_gaps,
    fit_power_law,
    mark_candidate,
    mark_front,
    mark_limits,
    rank,
    recommend,
)
from seqwise.evaluation.segments import Segments, joined

BITS = Metric("bits per character", "bits/char")
NUM, CHARACTERS = 100, 50.0  # segments, characters in each
HARD = np.random.default_rng(0).gamma(4.0, 25.0, size=NUM)  # bits of each segment: some are hard for every model


def scored_as(value: float, *, noise: float = 0.0, seed: int = 1) -> Segments:
    """A model of this value; `noise` is by how many bits it differs from others, segment by segment."""
    totals = HARD + noise * np.random.default_rng(seed).normal(size=NUM)
    return Segments.of(totals * (value * CHARACTERS * NUM / totals.sum()), np.full(NUM, CHARACTERS))


def entry(name: str, value: float | None, *, test: float | None = None, **changes: Any) -> Entry:
    """With this value on validation, and on the test part where that is not another one."""
    made = Entry(name, name.split("-")[0], "char", "ladder", 1.0, status="done", valid=value)
    if value is not None:
        measured = value if test is None else test
        made = replace(made, test=Figure(measured, measured, measured), bytes_on_disk=1000, ms_per_token=1.0)
    return replace(made, **changes)


def scores_of(entries: Sequence[Entry], noise: float = 0.0) -> dict[str, Segments]:
    tested = [(number, e.name, e.test) for number, e in enumerate(entries) if e.test is not None]
    return {name: scored_as(test.value, noise=noise, seed=number) for number, name, test in tested}


def verdict(*entries: Entry, noise: float = 0.0) -> tuple[str | None, list[str]]:
    return recommend(mark_front(entries, BITS), scores_of(entries, noise), BITS, ["my poems.txt"])


def curve_of(law: PowerLaw, *, num: int = 12, until: float = 120.0) -> list[Point]:
    return [Point(seconds, 0, law.at(seconds)) for seconds in np.linspace(until / num, until, num)]


# -- ranking ---------------------------------------------------------------------------------------------------------


def test_validation_ranks_whatever_the_test_part_says() -> None:
    entries = [entry("rnn", 2.0, test=1.0), entry("gpt", 1.5, test=3.0), entry("hmm", None), entry("lstm", 1.7)]
    assert [e.name for e in rank(entries, BITS)] == ["gpt", "lstm", "rnn", "hmm"]
    winner = choose_winner(entries, {}, BITS)
    assert winner is not None
    assert winner.name == "gpt"


def test_densities_below_zero_are_ranked_before_those_above_and_none_is_not_zero() -> None:
    entries = [entry("rnn", 0.5), entry("hmm", None), entry("kalman", -1.5), entry("gru", 0.0)]
    assert [e.name for e in rank(entries, BITS)] == ["kalman", "gru", "rnn", "hmm"]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_wins_nothing(bad: float) -> None:
    entries = [entry("rnn", bad), entry("gpt", 1.5), entry("lstm", 1.7)]
    assert [e.name for e in rank(entries, BITS)] == ["gpt", "lstm", "rnn"]
    winner = choose_winner(entries, {}, BITS)
    assert winner is not None
    assert winner.name == "gpt"


def test_of_models_that_validation_cannot_tell_apart_the_smallest_wins() -> None:
    entries = [entry("gru", 2.0, bytes_on_disk=400), entry("ngram", 2.02, bytes_on_disk=60)]
    entries += [entry("hmm", 2.2, bytes_on_disk=10), entry("rnn", 2.01, bytes_on_disk=50, over_limit=True)]
    noisy, sure = scores_of(entries, noise=50.0), scores_of(entries)
    assert [choose_winner(entries, known, BITS).name for known in (noisy, sure, {})] == ["ngram", "gru", "gru"]  # type: ignore[union-attr]


# -- gaps ------------------------------------------------------------------------------------------------------------


def test_neighbours_are_tested_on_the_same_segments() -> None:
    """Two percent apart, with passages that differ tenfold: only in pairs can it be told."""
    entries = [entry("gpt", 2.0), entry("lstm", 2.04), entry("rnn", 2.041), entry("hmm", None)]
    segments = {
        "gpt": scored_as(2.0),
        "lstm": scored_as(2.04, noise=1.0, seed=1),
        "rnn": scored_as(2.041, noise=1.0, seed=2),
    }
    gpt, lstm = (segments[name].interval for name in ("gpt", "lstm"))
    assert gpt[1] > lstm[0]  # each alone says nothing
    sure, unsure = find_gaps(entries, segments)
    assert (sure.better, sure.worse, sure.is_distinguishable) == ("gpt", "lstm", True)
    assert sure.gain == pytest.approx(0.04)
    assert 0 < sure.low < 0.04 < sure.high
    assert (unsure.better, unsure.worse, unsure.is_distinguishable) == ("lstm", "rnn", False)
    assert unsure.gain == pytest.approx(0.001)
    assert unsure.low < 0 < unsure.high


def test_every_scored_entry_has_a_gap_to_the_next_and_the_others_none() -> None:
    entries = [entry(name, value) for name, value in (("a", 2.0), ("b", 2.5), ("c", 3.0), ("d", 4.0))]
    waiting = entry("e", 1.0, test=None)
    gaps = find_gaps([waiting, *entries], scores_of(entries))
    assert [(gap.better, gap.worse) for gap in gaps] == list(pairwise("abcd"))
    assert find_gaps([entries[0]], scores_of(entries)) == []
    assert find_gaps([], {}) == []


def test_seeds_that_differ_more_than_the_models_make_no_sure_gap() -> None:
    entries = [entry("gpt", 2.0), entry("lstm", 2.04)]
    one_seed = scores_of(entries)
    assert find_gaps(entries, one_seed)[0].is_distinguishable
    several = {
        name: joined([scored_as(value - 0.2), scored_as(value), scored_as(value + 0.2)])
        for name, value in (("gpt", 2.0), ("lstm", 2.04))
    }
    assert not find_gaps(entries, several)[0].is_distinguishable


# -- the front -------------------------------------------------------------------------------------------------------

few = st.integers(1, 4)


@given(st.lists(st.tuples(few, few, few), max_size=8))
def test_the_front_is_what_no_other_entry_beats(costs: list[tuple[int, int, int]]) -> None:
    entries = [
        entry(str(n), float(value), bytes_on_disk=size, ms_per_token=float(time))
        for n, (value, size, time) in enumerate(costs)
    ]
    for found, mine in zip(mark_front(entries, BITS), costs, strict=True):
        beaten = [o for o in costs if all(a <= b for a, b in zip(o, mine, strict=True)) and o != mine]
        assert found.is_on_front == (not beaten)


def test_an_entry_without_a_score_is_not_on_the_front_and_beats_nobody() -> None:
    failed = entry("hmm", None, bytes_on_disk=0, ms_per_token=0.0, status="failed")
    assert [e.is_on_front for e in mark_front([failed, entry("gpt", 2.0)], BITS)] == [False, True]
    assert mark_front([], BITS) == []


# -- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "notes"),
    [
        (Limits(), []),
        (Limits(1_000_000, 2.0, 4.0), []),
        (Limits(parameters=999_999), ["1,000,000 parameters are more than the 999,999 allowed"]),
        (Limits(megabytes=3.9), ["4.0 MB are more than the 3.9 allowed"]),
        (Limits(latency_ms=1.5), ["2.00 ms per token are more than the 1.5 allowed"]),
        (
            Limits(10, 0.1, 0.5),
            [
                "1,000,000 parameters are more than the 10 allowed",
                "4.0 MB are more than the 0.5 allowed",
                "2.00 ms per token are more than the 0.1 allowed",
            ],
        ),
    ],
)
def test_a_limit_that_is_broken_is_named_with_both_numbers(limits: Limits, notes: list[str]) -> None:
    made = entry("gpt", 2.0, parameters=1_000_000, bytes_on_disk=4_000_000, ms_per_token=2.0, notes=["late"])
    found = mark_limits(made, limits)
    assert found.over_limit == bool(notes)
    assert found.notes == ["late", *notes]


def test_what_is_over_a_limit_is_not_recommended_but_ranked_and_tested() -> None:
    big, small = entry("gpt", 1.5, over_limit=True), entry("lstm", 2.0)
    name, sentences = verdict(big, small)
    assert name == "lstm"
    assert "gpt" not in " ".join(sentences)
    assert [e.name for e in rank([small, big], BITS)] == ["gpt", "lstm"]
    assert len(find_gaps([big, small], scores_of([big, small]))) == 1


# -- the recommendation ----------------------------------------------------------------------------------------------


def test_a_clear_winner_is_named_with_how_sure_that_is() -> None:
    name, sentences = verdict(entry("gpt", 1.5), entry("lstm", 2.0), entry("rnn", 2.5), noise=3.0)
    assert name == "gpt"
    first = re.fullmatch(
        r"Use gpt: 1\.500 bits per character, 0\.500 less than lstm, the next family "
        r"\(95 %: (0\.\d+) to (0\.\d+) on the same segments\)\.",
        sentences[0],
    )
    assert first
    assert float(first[1]) < 0.5 < float(first[2])
    assert sentences[1:] == ["No model that comes near it is much smaller or faster."]


def test_models_that_cannot_be_told_apart_are_both_named() -> None:
    name, sentences = verdict(entry("gpt", 2.0), entry("lstm", 2.001), noise=5.0)
    assert name == "gpt"
    assert sentences[0].startswith("Use gpt: 2.000 bits per character. It is not distinguishable from lstm ")
    assert sentences[0].endswith(": either will do.")


def test_where_there_is_too_little_data_no_order_and_no_equality_is_claimed() -> None:
    few = {name: Segments.of(np.full(4, value), np.ones(4)) for name, value in (("gpt", 1.0), ("lstm", 9.0))}
    entries = [entry("gpt", 1.0), entry("lstm", 9.0)]
    (gap,) = find_gaps(entries, few)
    assert not gap.is_enough
    assert not gap.is_distinguishable
    winner, (first, *_) = recommend(entries, few, BITS)
    assert winner == "gpt"
    assert "too little data to tell it from lstm" in first
    assert "not distinguishable" not in first


def test_a_winner_by_validation_that_loses_the_test_says_so() -> None:
    name, sentences = verdict(entry("gpt", 1.9, test=2.2), entry("lstm", 2.0))
    assert name == "gpt"
    assert sentences[0] == (
        "Use gpt: 2.200 bits per character. Validation chose it; on the scored part lstm has 0.200 less, "
        "so look at both."
    )


def test_a_longer_trained_form_of_the_winner_is_not_its_rival() -> None:
    long = entry("gpt-final", 1.4, stage="final")
    name, sentences = verdict(entry("gpt", 1.5), long, entry("lstm", 2.0))
    assert name == "gpt-final"
    assert "0.600 less than lstm, the next family" in sentences[0]


def test_one_entry_alone_is_used() -> None:
    name, sentences = verdict(entry("gpt", 1.5))
    assert (name, sentences) == ("gpt", ["Use gpt: 1.500 bits per character, the only family that could be scored."])
    name, sentences = verdict(entry("gpt", 1.5), entry("hmm", None, status="failed"))
    assert name == "gpt"
    assert sentences[0] == "Use gpt: 1.500 bits per character, the only family that could be scored."


# -- who learned nothing ---------------------------------------------------------------------------------------------

GUESSING = Baseline("the frequency of each token", scored_as(4.0))


def marked(one: Entry, value: float, *, noise: float = 5.0, baseline: Baseline | None = GUESSING) -> Entry:
    return mark_candidate(one, scored_as(value, noise=noise), baseline, BITS, minutes=2.0)


def test_a_network_of_few_updates_is_no_candidate_and_told_how_long_it_would_need() -> None:
    few = marked(entry("lstm", 2.0, updates=6), 2.0)
    assert few.not_trained == "6 updates; give it about 50 minutes"
    assert marked(entry("lstm", 2.0, updates=1), 2.0).not_trained.startswith("1 update; ")
    assert marked(entry("lstm", 2.0, updates=MIN_UPDATES - 1), 2.0).not_trained
    assert marked(entry("lstm", 2.0, updates=MIN_UPDATES), 2.0).not_trained == ""
    assert marked(entry("ngram", 2.0, updates=None), 2.0).not_trained == ""  # does not learn by updates


@pytest.mark.parametrize(("value", "is_better"), [(3.5, True), (4.0, False), (4.5, False)])
def test_who_is_not_surely_better_than_guessing_is_no_candidate(value: float, is_better: bool) -> None:
    found = marked(entry("lstm", value, updates=1000), value)
    assert (found.not_trained == "") is is_better
    if not is_better:
        assert f"than the frequency of each token ({value:.3f} against 4.000 bits/char)" in found.not_trained


def test_a_little_better_by_chance_is_not_better() -> None:
    found = [marked(entry("lstm", 3.99, updates=1000), 3.99, noise=noise) for noise in (0.01, 60.0)]
    assert [bool(one.not_trained) for one in found] == [False, True]


def test_of_an_older_comparison_without_a_baseline_nothing_is_said() -> None:
    assert marked(entry("lstm", 9.0), 9.0, baseline=None).not_trained == ""
    assert mark_candidate(entry("lstm", None), None, GUESSING, BITS, 2.0).not_trained == ""


def test_who_learned_nothing_has_no_place_and_the_first_sentence_says_so() -> None:
    """It would be first by its value."""
    idle = entry("lstm", 1.0, not_trained="6 updates; give it about 50 minutes", bytes_on_disk=1)
    others = [entry("ngram", 2.0), entry("hmm", 3.0)]
    entries = [idle, *others]
    name, sentences = verdict(*entries)
    assert name == "ngram"
    assert sentences[0] == "Not trained: lstm (6 updates; give it about 50 minutes)."
    assert sentences[1].startswith("Use ngram: 2.000 bits per character, 1.000 less than hmm")
    assert [e.name for e in rank(entries, BITS)] == ["ngram", "hmm", "lstm"]
    assert [(gap.better, gap.worse) for gap in find_gaps(entries, scores_of(entries))] == [("ngram", "hmm")]
    assert [e.is_on_front for e in mark_front(entries, BITS)] == [False, True, False]


def test_who_was_left_out_is_named_with_the_budget_that_would_do() -> None:
    entries = [entry("ngram", 2.0), entry("gpt", None, status="left out"), entry("lstm", None, status="left out")]
    name, sentences = recommend(entries, scores_of(entries), BITS, minutes=13.2)
    assert name == "ngram"
    assert sentences[0] == "Not trained: gpt, lstm (no time was left). About 14 minutes would train all."


def test_if_nobody_learned_nothing_is_recommended() -> None:
    entries = [
        entry("lstm", 6.56, not_trained="7 updates; give it about 30 minutes", updates=7, minutes_needed=30),
        entry("ngram", 4.0, not_trained="on validation it is not surely better than guessing"),
    ]
    name, sentences = recommend(entries, scores_of(entries), BITS, minutes=30.0)
    assert name is None
    assert sentences[0] == "No model learned enough to be recommended."
    assert sentences[1].startswith("Not trained: lstm (7 updates; give it about 30 minutes); ngram (on validation")
    assert not any("Use " in sentence for sentence in sentences)


def test_who_learned_in_the_finals_is_not_called_untrained() -> None:
    ladder = entry("lstm", 6.0, not_trained="60 updates; give it about 4 minutes", updates=60)
    final = replace(entry("lstm-final", 2.0, updates=400), stage="final")
    name, sentences = verdict(ladder, final, entry("ngram", 3.0))
    assert name == "lstm-final"
    assert sentences[0].startswith("Use lstm-final")


# -- the sentences ---------------------------------------------------------------------------------------------------


def test_where_all_are_over_a_limit_none_is_recommended() -> None:
    name, sentences = verdict(entry("gpt", 1.5, over_limit=True), entry("lstm", 2.0, over_limit=True))
    assert name is None
    assert sentences == ["No model keeps all the limits that were asked for; loosen one, or give more time."]


@pytest.mark.parametrize("entries", [[], [entry("gpt", None, status="failed"), entry("lstm", None, status="failed")]])
def test_where_nothing_was_trained_none_is_recommended(entries: list[Entry]) -> None:
    assert verdict(*entries) == (None, ["No model could be trained; the reasons are in the table."])


def test_the_trade_off_is_the_best_that_is_much_smaller_or_faster_with_its_price() -> None:
    winner = entry("gpt", 2.0, bytes_on_disk=4_000_000, ms_per_token=3.0)
    fast = entry("lstm", 2.2, bytes_on_disk=3_000_000, ms_per_token=0.5)
    small_too = entry("rnn", 2.25, bytes_on_disk=400_000, ms_per_token=0.3)
    far = entry("hmm", 3.0, bytes_on_disk=4_000, ms_per_token=0.1)
    says = "Where size or speed counts, {}."
    assert verdict(winner, fast, small_too, far)[1][1] == says.format(
        "lstm is 6.0 times faster at 0.200 bits per character more"
    )
    assert verdict(winner, small_too, far)[1][1] == says.format(
        "rnn is 10.0 times faster and 10.0 times smaller at 0.250 bits per character more"
    )
    nothing = "No model that comes near it is much smaller or faster."
    assert verdict(winner, far)[1][1] == nothing  # half as good again: no alternative
    assert verdict(winner, replace(fast, over_limit=True))[1][1] == nothing
    beaten = replace(fast, name="gru", family="gru", test=Figure(2.21, 2.2, 2.22))  # worse, and no smaller or faster
    assert "lstm" in verdict(winner, beaten, fast)[1][1]


def test_more_time_is_recommended_only_as_far_as_the_curve_tells() -> None:
    law = PowerLaw(floor=1.5, scale=4.0, power=0.5)
    improving = entry("gpt", 1.9, curve=curve_of(law, until=300.0))
    told = verdict(improving, entry("lstm", 2.0))[1][-1]
    gain = law.at(300.0) - law.at(600.0)
    assert told.startswith(
        f"It was still improving when it stopped: 5 more minutes of training are worth about {gain:.2f} bits per "
    )
    assert "--minutes 10" in told
    seconds = verdict(replace(improving, curve=curve_of(law, until=60.0)), entry("lstm", 2.0))[1][-1]
    assert "60 more seconds" in seconds


def test_more_time_is_worth_no_more_than_twice_the_time_has_brought_before() -> None:
    curve = curve_of(PowerLaw(1.0, 4.0, 0.4))
    long = entry("gpt-final", 1.5, stage="final", curve=curve, training_seconds=400.0)
    short = entry("gpt", 1.6, training_seconds=100.0)
    _, alone = verdict(long, entry("lstm", 2.5))
    _, both = verdict(short, long, entry("lstm", 2.5))
    gains = [float(re.search(r"worth about (\d\.\d+)", told[-1])[1]) for told in (alone, both)]  # type: ignore[index]
    assert gains[0] > 0.1
    assert gains[1] == 0.05  # two doublings brought 0.1


def test_no_more_time_is_recommended_to_what_was_best_before_the_end() -> None:
    values = [3.0, 2.5, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0]
    overfitted = entry("gpt", 2.0, curve=[Point(10.0 * n, 0, value) for n, value in enumerate(values, start=1)])
    assert verdict(overfitted, entry("lstm", 2.2))[1][-1] == (
        "gpt was best before its time was up: more data would help it, more time would not."
    )


@pytest.mark.parametrize("curve", [[], [Point(1.0, 0, 2.0)], [Point(10.0 * n, 0, 4.0 - 0.2 * n) for n in range(1, 12)]])
def test_a_curve_that_tells_nothing_adds_no_sentence(curve: list[Point]) -> None:
    assert len(verdict(entry("gpt", 1.5, curve=curve), entry("lstm", 2.0))[1]) == 2


@given(
    st.lists(
        st.tuples(st.floats(0.5, 4), st.floats(0.5, 4), st.integers(1, 10**7), st.floats(0.01, 50), st.booleans()),
        max_size=5,
    )
)
@how(max_examples=30, deadline=None)
def test_there_are_never_more_than_three_sentences_and_none_with_a_number_that_is_none(
    found: list[tuple[float, float, int, float, bool]],
) -> None:
    law = PowerLaw(floor=0.5, scale=4.0, power=0.5)
    entries = [
        entry(name, valid, test=test, bytes_on_disk=size, ms_per_token=ms, over_limit=over, curve=curve_of(law))
        for name, (valid, test, size, ms, over) in zip(["gpt", "lstm", "gru", "rnn", "hmm"], found, strict=False)
    ]
    name, sentences = verdict(*entries)
    assert 1 <= len(sentences) <= 3
    assert not re.search(r"\b(nan|inf|None)\b", " ".join(sentences))
    assert (name is None) == all(e.over_limit for e in entries)


# -- the fitted curve ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.05, 0.35, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("floor", [1.2, 0.0, -2.0])
def test_a_planted_power_law_is_found(floor: float, power: float) -> None:
    planted = PowerLaw(floor, 3.0, power)
    found = fit_power_law(curve_of(planted))
    assert found is not None
    assert found.power == pytest.approx(power)
    assert (found.floor, found.scale) == pytest.approx((floor, 3.0), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("power", [0.33, 0.777])
def test_a_planted_power_law_foretells_what_twice_the_time_is_worth(power: float) -> None:
    """The power lies between those that are tried, and validation is a little noisy."""
    planted, random = PowerLaw(1.0, 3.0, power), np.random.default_rng(0)
    curve = [replace(p, value=p.value + 0.002 * random.normal()) for p in curve_of(planted, num=40)]
    gain = expected_gain(curve, times=2.0)
    assert gain == pytest.approx(planted.at(120.0) - planted.at(240.0), rel=0.25)


def straight_down(seconds: float) -> float:
    return 4.0 - 0.02 * seconds


def sudden_fall(seconds: float) -> float:
    return 3.0 if seconds < 100 else 2.0


def sudden_rise(seconds: float) -> float:
    return 2.0 + 4.0 / seconds + (0.5 if seconds > 95 else 0.0)


def rising(seconds: float) -> float:
    return 2.0 + 0.01 * seconds


def flat(seconds: float) -> float:
    return 2.0


def flat_at_a_third(seconds: float) -> float:
    return 1 / 3


@pytest.mark.parametrize("shape", [straight_down, sudden_fall, sudden_rise, rising, flat, flat_at_a_third])
def test_nothing_is_foretold_of_a_curve_that_is_no_power_law(shape: Any) -> None:
    curve = [Point(seconds, 0, shape(seconds)) for seconds in np.linspace(10, 120, 12)]
    assert expected_gain(curve, times=2.0) is None


@pytest.mark.parametrize("num", [0, 1, 2, 3])
def test_nothing_is_foretold_of_too_few_points(num: int) -> None:
    assert expected_gain(curve_of(PowerLaw(1.0, 3.0, 0.5))[:num], times=2.0) is None
    assert fit_power_law(curve_of(PowerLaw(1.0, 3.0, 0.5))[: min(num, 2)]) is None


def test_a_fit_needs_points_behind_it_to_be_checked_by() -> None:
    """All but one in the first moments: nothing is left to see whether the fit holds."""
    law = PowerLaw(1.0, 3.0, 0.5)
    curve = [Point(s, 0, law.at(s)) for s in (1.0, 2.0, 3.0, 4.0, 100.0)]
    assert expected_gain(curve, times=2.0) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_point_that_is_no_number_is_left_out(bad: float) -> None:
    curve = curve_of(PowerLaw(1.0, 3.0, 0.5), num=20)
    whole = expected_gain(curve, times=2.0)
    assert whole is not None
    for place in (0, 7, -1):
        holed = list(curve)
        holed[place] = replace(holed[place], value=bad)
        assert expected_gain(holed, times=2.0) == pytest.approx(whole, rel=0.1)
    assert expected_gain([replace(p, value=bad) for p in curve], times=2.0) is None


def test_points_without_time_are_no_reason_to_fail() -> None:
    assert fit_power_law([Point(0.0, 0, 3.0), Point(1.0, 0, 2.0), Point(2.0, 0, 1.0)]) is None
    assert expected_gain([Point(0.0, 0, 3.0)] * 10, times=2.0) is None


# -- where higher is better ------------------------------------------------------------------------------------------

CHRF = Metric("chrF", "chrF", digits=1, is_higher_better=True)


def test_where_higher_is_better_everything_turns_around() -> None:
    entries = [entry("seq2seq", 50.0), entry("transformer", 60.0, bytes_on_disk=9000), entry("rnn", 20.0)]
    assert [e.name for e in rank(entries, CHRF)] == ["transformer", "seq2seq", "rnn"]
    fronted = mark_front(entries, CHRF)
    assert [e.is_on_front for e in fronted] == [True, True, False]
    costs = {e.name: scored_as(-e.test.value, noise=1.0, seed=n) for n, e in enumerate(entries) if e.test}
    name, sentences = recommend(fronted, costs, CHRF)
    assert name == "transformer"
    assert sentences[0].startswith("Use transformer: 60.0 chrF, 10.0 more than seq2seq, the next family")
    closer = [entry("seq2seq", 57.0), entry("transformer", 60.0, bytes_on_disk=9000)]
    costs = {e.name: scored_as(-e.test.value, noise=1.0, seed=n) for n, e in enumerate(closer) if e.test}
    _, sentences = recommend(mark_front(closer, CHRF), costs, CHRF)
    assert sentences[1] == "Where size or speed counts, seq2seq is 9.0 times smaller at 3.0 chrF less."
