"""From what was found to an answer: ranking, sure differences, the front, the recommendation."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..evaluation.segments import Metric, Segments, compare_segments
from ..wording import counted
from .baselines import Baseline
from .plan import MIN_UPDATES, PLANNED_UPDATES, Limits
from .results import Entry, Gap, Point

NEAR = 0.15  # of the value: a smaller or faster model that costs more is no alternative
MIN_RATIO = 2.0  # times smaller or faster
AS_GOOD = 0.03  # of the value, where validation cannot tell two models apart
SMALLER = 0.9  # times the size of the best: who is as good and that much smaller is preferred
FIT_FROM = 0.1  # share of a curve that is left out of the fit: what comes first says little of what comes last
FIT_TO = 0.75  # share of a curve that a fit must foretell the rest from
FIT_HOLDS = 0.015  # relative error of what it foretold
WORTH_SAYING = 0.005  # of the value


def mark_candidate(
    entry: Entry, validated: Segments | None, baseline: Baseline | None, metric: Metric, minutes: float
) -> Entry:
    """Says of an entry that learned nothing that it is no candidate, and why. `minutes`: the budget that it was in."""
    if validated is None:
        return entry
    if entry.updates is not None and entry.updates < MIN_UPDATES:
        enough = math.ceil(minutes * PLANNED_UPDATES / max(1, entry.updates))
        made = counted(entry.updates, "update")
        why = f"{made}; give it about {counted(enough, 'minute')}"
        return replace(entry, not_trained=why, minutes_needed=enough)
    if baseline is None:
        return entry
    found = compare_segments(validated, baseline.segments)
    if found.is_distinguishable and found.gain > 0:
        return entry
    if not found.is_enough:
        return replace(entry, not_trained=f"there is too little validation data to tell it from {baseline.name}")
    values = [f"{metric.shown(one.value):.{metric.digits}f}" for one in (validated, baseline.segments)]
    why = f"on validation it is not surely better than {baseline.name} ({values[0]} against {values[1]} {metric.short})"
    return replace(entry, not_trained=why)


def rank(entries: Sequence[Entry], metric: Metric) -> list[Entry]:
    """By validation, which makes the choices; those who learned nothing come later, those without a score last."""

    def place(entry: Entry) -> tuple[bool, bool, bool, float]:
        is_known = entry.valid is not None
        is_number = entry.valid is not None and math.isfinite(entry.valid)
        value = metric.cost(entry.valid) if entry.valid is not None and is_number else 0.0
        return not is_known, bool(entry.not_trained), not is_number, value

    return sorted(entries, key=place)


def find_gaps(ranked: Sequence[Entry], segments: dict[str, Segments]) -> list[Gap]:
    """Candidates that are neighbours by their value on the scored part, tested in pairs."""
    candidates = [entry for entry in ranked if entry.name in segments and not entry.not_trained]
    scored = sorted(candidates, key=lambda entry: segments[entry.name].value)
    gaps = []
    for better, worse in pairwise(scored):
        found = compare_segments(segments[better.name], segments[worse.name])
        sure = found.is_distinguishable
        gaps.append(Gap(better.name, worse.name, found.gain, *found.interval, sure, found.is_enough))
    return gaps


def mark_front(entries: Sequence[Entry], metric: Metric) -> list[Entry]:
    """No other candidate is at least as good in value, size and time per token, and better in one."""

    def costs(entry: Entry) -> tuple[float, float, float]:
        assert entry.test is not None
        return metric.cost(entry.test.value), float(entry.bytes_on_disk), entry.ms_per_token or 0.0

    scored = [entry for entry in entries if is_candidate(entry)]

    def is_beaten(entry: Entry) -> bool:
        mine = costs(entry)
        return any(costs(o) != mine and all(a <= b for a, b in zip(costs(o), mine, strict=True)) for o in scored)

    return [replace(entry, is_on_front=is_candidate(entry) and not is_beaten(entry)) for entry in entries]


def is_candidate(entry: Entry) -> bool:
    """Whether it has learned something, and was scored."""
    return entry.test is not None and not entry.not_trained


def mark_limits(entry: Entry, limits: Limits) -> Entry:
    broken = []
    if limits.parameters is not None and entry.parameters > limits.parameters:
        broken.append(f"{entry.parameters:,} parameters are more than the {limits.parameters:,} allowed")
    if limits.megabytes is not None and entry.bytes_on_disk > limits.megabytes * 1e6:
        broken.append(f"{entry.bytes_on_disk / 1e6:.1f} MB are more than the {limits.megabytes:g} allowed")
    if limits.latency_ms is not None and entry.ms_per_token is not None and entry.ms_per_token > limits.latency_ms:
        broken.append(f"{entry.ms_per_token:.2f} ms per token are more than the {limits.latency_ms:g} allowed")
    return replace(entry, over_limit=bool(broken), notes=[*entry.notes, *broken]) if broken else entry


def choose_winner(entries: Sequence[Entry], validated: dict[str, Segments], metric: Metric) -> Entry | None:
    """The best by validation that keeps the limits; the smallest of those that validation cannot tell from it.

    `validated` are the segments of the validation part, where they are known.
    """
    able = [entry for entry in entries if is_candidate(entry) and not entry.over_limit]
    if not able:
        return None
    best = rank(able, metric)[0]
    if best.valid is None or best.name not in validated:
        return best

    def is_as_good(entry: Entry) -> bool:
        if entry.name not in validated or entry.valid is None or best.valid is None:
            return False
        if entry.bytes_on_disk > SMALLER * best.bytes_on_disk:
            return False
        if not metric.cost(entry.valid) - metric.cost(best.valid) <= AS_GOOD * abs(best.valid):
            return False
        return not compare_segments(validated[best.name], validated[entry.name]).is_distinguishable

    return min([best, *filter(is_as_good, able)], key=lambda entry: entry.bytes_on_disk)


def recommend(
    entries: Sequence[Entry],
    segments: dict[str, Segments],
    metric: Metric,
    source: Sequence[str] = ("DATA",),
    validated: dict[str, Segments] | None = None,
    minutes: float | None = None,
) -> tuple[str | None, list[str]]:
    """The winner, and a few sentences on it, that on what was not trained first.

    `source` is what a user would train it on for longer, `minutes` the budget that would train all.
    """
    winner = choose_winner(entries, validated or {}, metric)
    missing = _not_trained(entries, minutes)
    if winner is None:
        if any(is_candidate(entry) for entry in entries):
            return None, ["No model keeps all the limits that were asked for; loosen one, or give more time.", *missing]
        if missing:
            return None, ["No model learned enough to be recommended.", *missing]
        return None, ["No model could be trained; the reasons are in the table."]
    return winner.name, [
        *missing,
        _why(winner, entries, segments, metric),
        *_trade_off(winner, entries, metric),
        *_next_step(winner, entries, metric, source),
    ]


def _not_trained(entries: Sequence[Entry], minutes: float | None) -> list[str]:
    """Who learned nothing, or had no time to; not who did so in the ladder and learned in the finals."""
    learned = {entry.name.removesuffix("-final") for entry in entries if is_candidate(entry)}
    by_reason: dict[str, list[str]] = {}
    for entry in entries:
        if (entry.not_trained or entry.status == "left out") and entry.name.removesuffix("-final") not in learned:
            by_reason.setdefault(entry.not_trained or "no time was left", []).append(entry.name)
    if not by_reason:
        return []
    named = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
    is_short = any(entry.status == "left out" or entry.minutes_needed for entry in entries)
    needed = max([math.ceil(minutes or 0.0), *(entry.minutes_needed for entry in entries)])
    enough = f" About {counted(needed, 'minute')} would train all." if needed and is_short else ""
    return [f"Not trained: {named}.{enough}"]


def _why(winner: Entry, entries: Sequence[Entry], segments: dict[str, Segments], metric: Metric) -> str:
    assert winner.test is not None
    use = f"Use {winner.name}: {winner.test.value:.{metric.digits}f} {metric.name}"
    others = [e for e in entries if _is_another(e, winner) and is_candidate(e) and not e.over_limit]
    if not others:
        is_alone_in_learning = any(e.not_trained or e.status == "left out" for e in entries)
        return f"{use}, the only family that {'learned something' if is_alone_in_learning else 'could be scored'}."
    other = rank(others, metric)[0]
    more = "more" if metric.is_higher_better else "less"
    found = compare_segments(segments[winner.name], segments[other.name])
    if not found.is_enough:
        return (
            f"{use}, but the {metric.name} are of too little data to tell it from {other.name}: give more to score on."
        )
    low, high = (f"{edge:.{metric.digits}f}" for edge in found.interval)
    if found.is_distinguishable and found.gain > 0:
        how_much = f"{found.gain:.{metric.digits}f} {more} than {other.name}"
        return f"{use}, {how_much}, {_which(other, winner)} (95 %: {low} to {high} on the same segments)."
    if found.is_distinguishable:
        gain = f"{-found.gain:.{metric.digits}f}"
        return f"{use}. Validation chose it; on the scored part {other.name} has {gain} {more}, so look at both."
    smaller = " and it is the smaller one" if winner.bytes_on_disk < other.bytes_on_disk else ""
    apart = f"not distinguishable from {other.name} (difference 95 %: {low} to {high})"
    return f"{use}. It is {apart}{smaller or ': either will do'}."


def _is_another(entry: Entry, winner: Entry) -> bool:
    """Whether it is of another family, or of the same with another start."""
    return (entry.family, entry.start_from) != (winner.family, winner.start_from)


def _which(other: Entry, winner: Entry) -> str:
    if other.family != winner.family:
        return "the next family"
    return f"the same family from {Path(other.start_from).name if other.start_from else 'scratch'}"


def _trade_off(winner: Entry, entries: Sequence[Entry], metric: Metric) -> list[str]:
    """The most useful other point of the front: much smaller or faster, at a price that is named."""
    assert winner.test is not None
    limit = metric.cost(winner.test.value) + NEAR * abs(winner.test.value)
    front = [e for e in entries if e.is_on_front and e.name != winner.name and not e.over_limit]
    front = [e for e in front if e.test is not None and metric.cost(e.test.value) <= limit]

    def faster(entry: Entry) -> float:
        return (winner.ms_per_token or 0.0) / entry.ms_per_token if entry.ms_per_token else 1.0

    def smaller(entry: Entry) -> float:
        return winner.bytes_on_disk / max(1, entry.bytes_on_disk)

    worthwhile = [e for e in front if max(faster(e), smaller(e)) >= MIN_RATIO]
    if not worthwhile:
        return ["No model that comes near it is much smaller or faster."] if len(entries) > 1 else []
    pick = min(worthwhile, key=lambda entry: metric.cost(entry.test.value) if entry.test else math.inf)
    assert pick.test is not None
    gains = [f"{faster(pick):.1f} times faster"] if faster(pick) >= MIN_RATIO else []
    gains += [f"{smaller(pick):.1f} times smaller"] if smaller(pick) >= MIN_RATIO else []
    price = metric.cost(pick.test.value) - metric.cost(winner.test.value)
    unit = f"{metric.name} {'less' if metric.is_higher_better else 'more'}"
    at = f" at {price:.{metric.digits}f} {unit}" if price > 0 else ", and does no worse on the scored part"
    return [f"Where size or speed counts, {pick.name} is {' and '.join(gains)}{at}."]


def _next_step(winner: Entry, entries: Sequence[Entry], metric: Metric, source: Sequence[str]) -> list[str]:
    if len(winner.curve) < 3:
        return []
    best = min(range(len(winner.curve)), key=lambda place: winner.curve[place].value)
    if best < 0.7 * (len(winner.curve) - 1):
        return [f"{winner.name} was best before its time was up: more data would help it, more time would not."]
    gain = expected_gain(winner.curve, times=2.0)
    measured = gain_of_doubling(winner, entries, metric)
    if gain is not None and measured is not None:  # a curve falls most while the rate does: what was seen is surer
        gain = min(gain, measured)
    value = winner.curve[-1].value
    if gain is None or gain < WORTH_SAYING * abs(value):
        return []
    more = winner.curve[-1].seconds / 60
    shown = f"{more:.0f} more minutes" if more >= 1.5 else f"{60 * more:.0f} more seconds"
    started = f"--from {shlex.quote(winner.start_from)} " if winner.start_from else ""
    return [
        f"It was still improving when it stopped: {shown} of training are worth about {gain:.2f} {metric.name} "
        f"(from a curve fitted to its validation): seqwise train {shlex.join(source)} --model {winner.family} "
        f"{started}--minutes {max(1, round(2 * more))}"
    ]


def gain_of_doubling(winner: Entry, entries: Sequence[Entry], metric: Metric) -> float | None:
    """What twice the time brought from the ladder to the finals, in the mean; None where the winner was in one only."""
    before = next((e for e in entries if winner.name == f"{e.name}-final"), None)
    if before is None or before.valid is None or winner.valid is None:
        return None
    if not winner.training_seconds > before.training_seconds > 0:
        return None
    doublings = math.log2(winner.training_seconds / before.training_seconds)
    return (metric.cost(before.valid) - metric.cost(winner.valid)) / doublings


@dataclass(frozen=True)
class PowerLaw:
    """value = floor + scale * seconds ** -power."""

    floor: float
    scale: float
    power: float

    def at(self, seconds: float) -> float:
        return self.floor + self.scale * seconds**-self.power


def fit_power_law(points: Sequence[Point]) -> PowerLaw | None:
    """Least squares; for each of many powers floor and scale are a straight line."""
    if len(points) < 3:
        return None
    seconds, values = np.array([p.seconds for p in points]), np.array([p.value for p in points])
    if (seconds <= 0).any() or not np.isfinite(values).all():
        return None
    best, least = None, math.inf
    for power in np.linspace(0.05, 2.0, 40):
        known = np.stack([np.ones_like(seconds), seconds**-power], axis=1)
        weights = np.linalg.lstsq(known, values, rcond=None)[0]
        error = float(((known @ weights - values) ** 2).sum())
        if weights[1] > 0 and error < least:
            best, least = PowerLaw(float(weights[0]), float(weights[1]), float(power)), error
    return best


def expected_gain(curve: Sequence[Point], *, times: float) -> float | None:
    """How much lower the value would be after `times` the seconds; None where a fit to the beginning of the curve does
    not foretell its end, or would have it worse than it is."""
    usable = [p for p in curve if math.isfinite(p.value) and p.seconds > FIT_FROM * curve[-1].seconds]
    beginning = [p for p in usable if p.seconds <= FIT_TO * curve[-1].seconds]
    fit = fit_power_law(beginning)
    if fit is None or len(beginning) == len(usable):
        return None
    last = usable[-1]
    if abs(fit.at(last.seconds) - last.value) > FIT_HOLDS * abs(last.value):
        return None
    whole = fit_power_law(usable)
    if whole is None:
        return None
    gain = whole.at(last.seconds) - whole.at(times * last.seconds)
    return gain if gain > 0 else None
