"""Charts that stand side by side: one scale for all of one title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from ..pages.charts import Axis, Series, legend, line_chart


class Scales:
    """What charts of one title show is collected as they are drawn; drawn once more, they have one scale."""

    def __init__(self) -> None:
        self.places: dict[str, list[float]] = {}
        self.values: dict[str, list[float]] = {}

    def figure(
        self, lines: Sequence[Series], identity: str, title: str, about: str, x: Axis, y: Axis, *, least: float = 0.0
    ) -> str:
        """`least`: what the heights span at least, so that what hardly moves is seen to."""
        places, values = self.places.setdefault(title, []), self.values.setdefault(title, [])
        places += [place for line in lines for place, _ in line.points]
        values += [value for line in lines for _, value in line.points]
        values += [end for line in lines for ends in line.band for end in ends]
        middle = (min(values, default=0.0) + max(values, default=0.0)) / 2
        heights = [*values, middle - least / 2, middle + least / 2] if least else values
        if x.limits is not None:
            x = replace(x, limits=(x.limits[0], max(x.limits[1], *places)))
        x, y = replace(x, beside=places), replace(y, beside=heights)
        svg = line_chart(lines, identity=identity, title=title, about=about, x=x, y=y)
        names = legend([(line.name, line.look) for line in lines]) if len(lines) > 1 else ""
        return f'<figure class="chart-box">{svg}{names}<figcaption>{escape(about)}</figcaption></figure>'
