"""Scores against the number of labels in the report: a line for each model, and the table behind it."""

from __future__ import annotations

from ..pages.charts import Axis, Look, Series, legend, line_chart, sign
from ..pages.elements import Section, shown, titled_table
from ..pages.quantities import number
from ..pages.text import visible
from .label_table import how_to_read, label_rows, notes_of_points
from .results import Comparison, Figure, LabelCurves


def curves_by_labels(comparison: Comparison, looks: dict[str, Look]) -> Section:
    curves, words = comparison.label_curves, comparison.words
    title = f"How many {words.labelled}s does it take?"
    if curves is None or not any(point.figure for point in curves.points):
        return Section("by-labels", title, "", "")
    lead = (
        f"Each point is a model that learned from so many {words.labelled}s: the same for all models of a seed, and "
        "others for another seed. Bands are 95 % intervals."
    )
    if curves.leads:
        lead += f" Where a line meets the one from scratch, so many {words.labelled}s make up for its start."
    by_model = {model: looks[name] for model, name in names_with_most(curves).items()}
    titles, *rows = label_rows(curves, words)
    body = "".join(
        f'<tr><th scope="row">{sign(by_model[name]) if name in by_model else ""}{shown(name)}</th>'
        f"{''.join(f'<td>{shown(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    table = titled_table(f"Scores by number of {words.labelled}s", titles, body, kind="by-labels")
    notes = "".join(f"<li>{shown(note)}</li>" for note in notes_of_points(curves))
    told = f'<p class="aside">{shown(how_to_read(curves))}</p>' + (f'<ul class="aside">{notes}</ul>' if notes else "")
    return Section("by-labels", title, lead, f"{_chart(curves, by_model, comparison)}{table}{told}")


def names_with_most(curves: LabelCurves) -> dict[str, str]:
    """Of each model the entry with the most labels, which stands in all other charts."""
    return {point.model: point.name for point in curves.points}  # fewest first: the last one stays


def _chart(curves: LabelCurves, looks: dict[str, Look], comparison: Comparison) -> str:
    series = [part for model, look in looks.items() for part in _parts(curves, model, look)]
    digits, name, labelled = curves.metric.digits, curves.metric.name, comparison.words.labelled
    svg = line_chart(
        series,
        identity="by-labels-chart",
        title=f"{name} by number of {labelled}s",
        about=f"{name} of each model against the number of {labelled}s that it learned from.",
        x=Axis(f"{labelled}s learned from", lambda value: f"{value:,.0f}", lambda value: f"{value:,.0f}", is_log=True),
        y=Axis(f"{name}, {comparison.scored}", lambda value: number(value, digits)),
    )
    names = legend((line.name, line.look) for line in series if line.is_named)
    return f'<figure class="chart-box">{svg}{names}</figure>'


def _parts(curves: LabelCurves, model: str, look: Look) -> list[Series]:
    """The line of a model; no line leads across a point that is missing."""
    parts: list[list[tuple[int, Figure]]] = [[]]
    for labels in curves.counts:
        point = curves.point(model, labels)
        if point is not None and point.figure is not None:
            parts[-1].append((labels, point.figure))
        elif parts[-1]:
            parts.append([])
    known = [part for part in parts if part]
    return [
        Series(
            visible(model),
            [(labels, figure.value) for labels, figure in part],
            look,
            [(figure.low, figure.high) if figure.is_enough else (figure.value,) * 2 for _, figure in part],
            is_named=part is known[-1],
        )
        for part in known
    ]
