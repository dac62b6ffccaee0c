"""Scores against the number of labels that were learned from.

Points are told by accuracy in per cent where the score is a share of wrong answers: 100 (1 - share).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..evaluation.segments import Metric, Segments, compare_segments
from .results import Entry, Figure, LabelCurves, LabelPoint, Lead
from .table import missing_score

PER_CENT = 100.0
Curves = Mapping[tuple[str, int], Entry]
"""By the name of the curve and the number of labels."""


def label_curves(
    entries: Curves, segments: Mapping[str, Segments], metric: Metric, counts: Sequence[int], num_rows: int
) -> LabelCurves:
    """`counts`: numbers of labels, fewest first; `num_rows`: of the whole training part."""
    points = [_point(model, labels, entry, metric) for (model, labels), entry in entries.items()]
    points.sort(key=lambda point: point.labels)  # models stay in their order
    leads = [
        _lead(model, scratch, labels, segments[entry.name], segments[entries[scratch, labels].name], metric)
        for (model, labels), entry in entries.items()
        if entry.start_from and entry.name in segments
        for scratch in _from_scratch(entries, entry.family, labels)[:1]
        if entries[scratch, labels].name in segments
    ]
    return LabelCurves(told_as(metric), list(counts), num_rows, points, sorted(leads, key=lambda lead: lead.labels))


def told_as(metric: Metric) -> Metric:
    """What points are told in."""
    if not metric.complement:
        return metric
    return Metric(f"{metric.complement} in per cent", metric.complement, digits=1, is_higher_better=True)


def _shown(value: float, metric: Metric) -> float:
    return PER_CENT * (1 - value) if metric.complement else value


def _point(model: str, labels: int, entry: Entry, metric: Metric) -> LabelPoint:
    missing = missing_score(entry)
    if missing or entry.test is None:
        return LabelPoint(model, labels, entry.name, note=missing)
    low, high = sorted(_shown(end, metric) for end in (entry.test.low, entry.test.high))
    figure = Figure(_shown(entry.test.value, metric), low, high)
    by_seed = [_shown(value, metric) for value in entry.by_seed]
    return LabelPoint(model, labels, entry.name, figure, by_seed, entry.not_trained)


def _from_scratch(entries: Curves, family: str, labels: int) -> list[str]:
    """Curves of the same family that began with nothing."""
    return [
        model
        for (model, num), entry in entries.items()
        if (entry.family, num) == (family, labels) and not entry.start_from
    ]


def _lead(model: str, scratch: str, labels: int, first: Segments, second: Segments, metric: Metric) -> Lead:
    """By a paired bootstrap over rows, and over seeds where there are several."""
    found, scale = compare_segments(first, second), PER_CENT if metric.complement else 1.0
    low, high = (scale * end for end in found.interval)
    return Lead(labels, model, scratch, scale * found.gain, low, high, found.is_enough)
