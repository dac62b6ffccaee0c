"""Scores against the number of labels, in rows and words."""

from __future__ import annotations

from statistics import stdev

from ..pages.quantities import number
from ..pages.text import visible
from ..wording import plural
from .results import LabelCurves, LabelPoint, Lead, Metric
from .words import Words

MISSING = "missing"


def label_rows(curves: LabelCurves, words: Words) -> list[list[str]]:
    """The titles, then a row for each model: its value with each number of labels, the 95 % interval, and behind ± the
    spread over seeds. Below, how far who started from a run is ahead."""
    digits = curves.metric.digits
    rows = [["model", *(count_in_words(labels, curves, words) for labels in curves.counts)]]
    for model in curves.models:
        cells = (value_in_words(curves.point(model, labels), digits) for labels in curves.counts)
        rows.append([visible(model), *cells])
    pairs = dict.fromkeys((lead.started, lead.from_scratch) for lead in curves.leads)
    for started, scratch in pairs:
        found = {lead.labels: lead for lead in curves.leads if lead.started == started}
        cells = (lead_in_numbers(found.get(labels), digits) for labels in curves.counts)
        rows.append([visible(f"{started} − {scratch}"), *cells])
    return rows


def count_in_words(labels: int, curves: LabelCurves, words: Words) -> str:
    """ "500 labels", "all 6,920 labels"."""
    what = f"{labels:,} {plural(labels, words.labelled)}"
    return f"all {what}" if labels == curves.num_rows else what


def value_in_words(point: LabelPoint | None, digits: int) -> str:
    if point is None or point.figure is None:
        return MISSING
    figure = point.figure
    shown = number(figure.value, digits)
    if figure.is_enough:
        shown += f" ({number(figure.low, digits)} to {number(figure.high, digits)})"
    return f"{shown} ±{number(stdev(point.by_seed), digits)}" if len(point.by_seed) > 1 else shown


def lead_in_numbers(lead: Lead | None, digits: int) -> str:
    if lead is None:
        return MISSING
    shown = signed(lead.gain, digits)
    return f"{shown} ({number(lead.low, digits)} to {number(lead.high, digits)})" if lead.is_enough else shown


def signed(value: float, digits: int) -> str:
    return f"{'+' if value > 0 else ''}{number(value, digits)}"


def how_to_read(curves: LabelCurves) -> str:
    """What stands in the cells of the table."""
    metric = curves.metric
    seeds = ", ± the spread over seeds" if any(len(point.by_seed) > 1 for point in curves.points) else ""
    return f"{metric.name[:1].upper()}{metric.name[1:]} (95 %){seeds}; {metric.better} is better."


def notes_of_points(curves: LabelCurves) -> list[str]:
    """What is missing or says little, and why; points with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for point in curves.points:
        if point.note:
            by_reason.setdefault(point.note, []).append(point.name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def label_sentences(curves: LabelCurves, words: Words) -> list[str]:
    """What the fewest labels tell: whether a start from a run pays, or else who is best with them."""
    if curves.leads:
        return [_lead_in_words(curves.leads[0], curves, words)]
    scored = [point for point in curves.points if point.figure is not None and point.labels < max(curves.counts)]
    if not scored:
        return []
    few = [point for point in scored if point.labels == scored[0].labels]
    best = min(few, key=lambda point: curves.metric.cost(point.figure.value) if point.figure else 0.0)
    assert best.figure is not None
    value = number(best.figure.value, curves.metric.digits)
    return [f"With {count_in_words(best.labels, curves, words)} {best.model} is best: {value} {curves.metric.name}."]


def _lead_in_words(lead: Lead, curves: LabelCurves, words: Words) -> str:
    digits, unit = curves.metric.digits, unit_of(curves.metric)
    low, high = (number(end, digits) for end in (lead.low, lead.high))
    start = f"With {count_in_words(lead.labels, curves, words)}"
    if not lead.is_enough:
        return f"{start} there is too little data to tell {lead.started} from {lead.from_scratch}."
    if not lead.is_distinguishable:
        gain = signed(lead.gain, digits)
        apart = f"{gain} {unit}, but anything from {low} to {high} fits the data"
        return f"{start} {lead.started} and {lead.from_scratch} cannot be told apart: {apart}."
    if lead.gain < 0:
        low, high = (number(-end, digits) for end in (lead.high, lead.low))
        behind = f"{number(-lead.gain, digits)} {unit} ({low} to {high})"
        return f"{start} {lead.started} is behind {lead.from_scratch} by {behind}: that start does not help."
    return f"{start} {lead.started} leads {lead.from_scratch} by {number(lead.gain, digits)} {unit} ({low} to {high})."


def unit_of(metric: Metric) -> str:
    """What a difference is counted in: points, of per cents."""
    return "points" if metric.name.endswith("in per cent") else metric.short


def counts_in_words(curves: LabelCurves, words: Words) -> str:
    """ "100, 500 and all 6,920 labels"."""
    shown = [f"{'all ' if labels == curves.num_rows else ''}{labels:,}" for labels in curves.counts]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"{listed} {plural(max(curves.counts), words.labelled)}"
