"""Scores against the number of labels in the report: a line for each model, and the table behind it."""

from __future__ import annotations

from ..pages.charts import Axis, Look, Series, legend, line_chart
from ..pages.elements import Section, shown, titled_table
from ..pages.quantities import number
from ..pages.text import visible
from .label_table import how_to_read, label_rows, notes_of_points
from .results import Comparison, LabelCurves


def curves_by_labels(comparison: Comparison, looks: dict[str, Look]) -> Section:
    curves, words = comparison.label_curves, comparison.words
    title = f"How many {words.labelled}s does it take?"
    if curves is None or not any(point.figure for point in curves.points):
        return Section("by-labels", title, "", "")
    lead = (
        f"Each point is a model that learned from so many {words.labelled}s, the same for all models of a seed; each "
        "seed draws others. Bands are 95 % intervals. Where two lines meet, more of them make up for what "
        "one model knew before."
    )
    chart = _chart(curves, looks, words.labelled, comparison.scored)
    titles, *rows = label_rows(curves, words)
    body = "".join(
        f'<tr><th scope="row">{shown(name)}</th>{"".join(f"<td>{shown(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    table = titled_table("Scores by number of labels", titles, body, kind="by-labels")
    notes = "".join(f"<li>{shown(note)}</li>" for note in notes_of_points(curves))
    told = f'<p class="aside">{shown(how_to_read(curves))}</p>' + (f'<ul class="aside">{notes}</ul>' if notes else "")
    return Section("by-labels", title, lead, f"{chart}{table}{told}")


def _chart(curves: LabelCurves, looks: dict[str, Look], labelled: str, scored: str) -> str:
    series = []
    for model in curves.models:
        points = [point for point in curves.points if point.model == model]
        known = [(point.labels, figure) for point in points if (figure := point.figure) is not None]
        look = looks[points[-1].name]  # that of the most labels stands in all other charts too
        band = [(one.low, one.high) if one.is_enough else (one.value, one.value) for _, one in known]
        series.append(Series(visible(model), [(labels, one.value) for labels, one in known], look, band))
    digits, name = curves.metric.digits, curves.metric.name
    svg = line_chart(
        series,
        identity="by-labels-chart",
        title=f"{name} by number of {labelled}s",
        about=f"{name} of each model against the number of {labelled}s that it learned from.",
        x=Axis(f"{labelled}s learned from", lambda value: f"{value:,.0f}", lambda value: f"{value:,.0f}", is_log=True),
        y=Axis(f"{name}, {scored}", lambda value: number(value, digits)),
    )
    names = legend((line.name, line.look) for line in series)
    return f'<figure class="chart-box">{svg}{names}</figure>'
