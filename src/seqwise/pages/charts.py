"""Charts as SVG text, for a page that brings its own style sheet.

Colours are classes (c0 to c7) that the style sheet fills, so that light, dark and print each have their own; shapes and
dashes are drawn here, so that colour is never the only sign. Numbers that cannot be drawn are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from statistics import median

WIDTH, HEIGHT = 640.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 112.0, 36.0, 46.0  # RIGHT holds the names; a narrow page cuts it off (page.css)
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
BLEED = 8.0  # what is drawn may stand out of the frame by so much
LETTER, LINE = 6.0, 13.5  # width and height of small text
RING = 4.0  # around a marked dot
NUM_COLOURS = 8
MAX_POINTS = 200
MAX_TICKS = 6
MAX_VALUE, MIN_VALUE = 1e100, 1e-100  # beyond, spans and ratios would overflow
DASHES = ("", "7 4", "2 3", "10 3 2 3")
ARM = 0.38  # half the width of a plus' arms, in radii
PLUS = [(-ARM, -1), (ARM, -1), (ARM, -ARM), (1, -ARM), (1, ARM), (ARM, ARM)]
PLUS += [(-x, -y) for x, y in PLUS]
TURN = math.sqrt(0.5)
SHAPES: tuple[list[tuple[float, float]], ...] = (
    [],  # a circle
    [(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
    [(0, -1.15), (1.05, 0.8), (-1.05, 0.8)],
    [(0, -1.25), (1.1, 0), (0, 1.25), (-1.1, 0)],
    [(0, 1.15), (1.05, -0.8), (-1.05, -0.8)],
    [(1.2 * x, 1.2 * y) for x, y in PLUS],
    [(1.2 * TURN * (x - y), 1.2 * TURN * (x + y)) for x, y in PLUS],
    [(-1.25, -0.6), (1.25, -0.6), (1.25, 0.6), (-1.25, 0.6)],
)


@dataclass(frozen=True)
class Look:
    """How one entry is drawn on all charts: a colour and a shape for its family, a dash for its variant."""

    colour: int | None
    """None is the colour of the text."""
    shape: int = 0
    dash: int = 0
    """0 is a whole line with filled marks; the others are broken lines with open marks."""

    @classmethod
    def of(cls, family: int, variant: int = 0) -> Look:
        """By number, in the order of the page; pairs of colour and shape repeat after 64 families."""
        return cls(family % NUM_COLOURS, (family + family // NUM_COLOURS) % len(SHAPES), variant % len(DASHES))


PLAIN = Look(None)
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Axis:
    label: str
    show: Callable[[float], str] = "{:g}".format
    """A value, where the pointer rests."""
    show_tick: Callable[[float], str] | None = None
    """A value along the axis; as many digits as the ticks need where there is none."""
    is_log: bool = False
    limits: tuple[float, float] | None = None
    """What the frame shows; all there is where there are none."""
    beside: Sequence[float] = ()
    """Values of a chart that stands beside this one, for both to have one scale."""

    def can_draw(self, value: float) -> bool:
        return math.isfinite(value) and abs(value) < MAX_VALUE and (not self.is_log or value > MIN_VALUE)


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    look: Look
    band: Sequence[tuple[float, float]] = ()
    """Low and high for each point."""
    is_named: bool = True
    """Whether its name stands at the right edge; not of a part before a gap."""


@dataclass(frozen=True)
class Dot:
    name: str
    x: float
    y: float
    look: Look
    low: float = math.nan
    high: float = math.nan
    size: float = 0.0
    """Its area grows with it, relative to the largest."""
    is_marked: bool = False
    """With a ring and in bold."""


@dataclass(frozen=True)
class Scale:
    """Values to places within the frame."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(x) if self.is_log else x for x in (self.low, self.high, value))
        place = self.start + (value - low) / (high - low) * (self.end - self.start)
        return min(max(place, -10 * WIDTH), 10 * WIDTH)  # far outside is as good as anywhere outside


def line_chart(series: Sequence[Series], *, identity: str, title: str, about: str, x: Axis, y: Axis) -> str:
    """Lines with their names at the right edge. `identity` is the id of the chart, `about` says it in a sentence."""
    drawn = [line for line in (_drawable(line, x, y) for line in series) if line.points]
    places = [place for line in drawn for place, _ in line.points]
    values = [value for line in drawn for _, value in line.points]
    values += [end for line in drawn for ends in line.band for end in ends]
    across, up = _scale(x, places, 0, PLOT_WIDTH), _scale(y, values, PLOT_HEIGHT, 0)
    inside = "".join(_band(line, across, up) for line in drawn)
    inside += "".join(_line(line, across, up, x, y) for line in drawn)
    named = [line for line in drawn if line.is_named]
    heights = spread([up(line.points[-1][1]) for line in named], LINE, PLOT_HEIGHT)
    names = "".join(_line_name(line, across, up, height, y) for line, height in zip(named, heights, strict=True))
    return _frame(identity, title, about, _axes(x, y, across, up) + _clipped(inside) + names, is_empty=not drawn)


def scatter_chart(dots: Sequence[Dot], *, identity: str, title: str, about: str, x: Axis, y: Axis) -> str:
    """Named dots, with their intervals upright; marked ones have a ring."""
    drawn = [dot for dot in dots if x.can_draw(dot.x) and y.can_draw(dot.y)]
    values = [value for dot in drawn for value in (dot.y, dot.low, dot.high) if y.can_draw(value)]
    across, up = _scale(x, [dot.x for dot in drawn], 0, PLOT_WIDTH), _scale(y, values, PLOT_HEIGHT, 0)
    largest = max((dot.size for dot in drawn if 0 < dot.size < MAX_VALUE), default=1.0)
    radii = [4 + 6 * math.sqrt(min(max(dot.size / largest, 0), 1)) if dot.size < MAX_VALUE else 4 for dot in drawn]
    centres = [(across(dot.x), up(dot.y)) for dot in drawn]
    boxes: list[Box] = []
    inside = ""
    for dot, (cx, cy), radius in zip(drawn, centres, radii, strict=True):
        reach = radius + (RING if dot.is_marked else 0)
        boxes.append((cx - reach, cy - reach, cx + reach, cy + reach))
        inside += _dot(dot, cx, cy, radius, up, x, y)
    taken = list(boxes)
    names = "".join(_dot_name(dot, box, taken) for dot, box in zip(drawn, boxes, strict=True))
    return _frame(identity, title, about, _axes(x, y, across, up) + _clipped(inside) + names, is_empty=not drawn)


def legend(looks: Iterable[tuple[str, Look]]) -> str:
    """Names and signs as a list, for where the chart has no room for names."""
    items = "".join(f"<li>{sign(look)}<bdi>{escape(name)}</bdi></li>" for name, look in looks)
    return f'<ul class="legend">{items}</ul>'


def sign(look: Look) -> str:
    """The line and mark of an entry, small enough to stand in a line of text."""
    return (
        f'<svg class="sign" viewBox="0 0 26 12" width="26" height="12" aria-hidden="true">'
        f'<g class="{_classes(look)}"><path class="line" d="M1 6H25"{_dash(look)}/>{_mark(look, 13, 6, 4)}</g></svg>'
    )


def interval_strip(value: float, low: float, high: float, *, limits: tuple[float, float], look: Look = PLAIN) -> str:
    """A dot on its interval, for a cell of a table; `limits` are shared by the cells and mark zero if it is among them.

    Where the value is beyond the limits, an arrow points to it.
    """
    axis = Axis("", limits=limits)
    if not all(map(axis.can_draw, (value, low, high))):
        return ""
    scale = _scale(axis, limits, 6, 114)
    zero = f'<path class="zero" d="M{_px(scale(0))} 0V16"/>' if limits[0] <= 0 <= limits[1] else ""
    inside = f'<path class="line" d="M{_px(scale(low))} 8H{_px(scale(high))}"/>{_mark(look, scale(value), 8, 3.2)}'
    if not scale.low <= value <= scale.high:
        inside = f'<path class="arrow" d="{"M110 4l5 4l-5 4" if value > scale.high else "M10 4l-5 4l5 4"}"/>'
    return (
        f'<svg class="strip" viewBox="0 0 120 16" width="120" height="16" aria-hidden="true">{zero}'
        f'<g class="{_classes(look)}">{inside}</g></svg>'
    )


def share_bar(shares: Sequence[tuple[str, float]], *, identity: str, title: str, about: str) -> str:
    """Parts of a whole, side by side; shares are above zero."""
    total, left, parts = sum(share for _, share in shares), 0.0, ""
    for number, (name, share) in enumerate(shares):
        width = share / total * WIDTH
        tip = f"<title>{escape(name)}</title>"
        parts += (
            f'<rect class="share p{number % 4}" x="{_px(left)}" y="0" width="{_px(width)}" height="24">{tip}</rect>'
        )
        left += width
    return _svg(identity, title, about, parts, f'class="bar" viewBox="0 0 {WIDTH:g} 24" preserveAspectRatio="none"')


def thin_out(values: Sequence[float], limit: int = MAX_POINTS) -> list[int]:
    """Which of them to draw: first, last, and the lowest and highest of each segment, so that no peak is lost."""
    if len(values) <= limit:
        return list(range(len(values)))
    num_segments = limit // 2 - 1
    kept = {0, len(values) - 1}
    for number in range(num_segments):
        segment = range(number * len(values) // num_segments, (number + 1) * len(values) // num_segments)
        kept |= {min(segment, key=values.__getitem__), max(segment, key=values.__getitem__)}
    return sorted(kept)


def ticks(low: float, high: float, *, is_log: bool = False) -> list[float]:
    """Round numbers from low to high, at most six."""
    if is_log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        for times in ((1, 2, 5), (1, 3), (1,)):
            found = [m * 10.0**power for power in range(first, last + 1) for m in times]
            found = [value for value in found if low <= value <= high]
            if 3 <= len(found) <= MAX_TICKS:
                return found
        if len(found) > MAX_TICKS:
            return found[:: math.ceil(len(found) / MAX_TICKS)]
    rough = (high - low) / (MAX_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [number * step for number in numbers if not is_log or number > 0]


def spread(wanted: Sequence[float], gap: float, room: float) -> list[float]:
    """Heights as near as can be to the wanted ones, in their order, `gap` apart, between 0 and `room`."""
    gap = min(gap, room / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    heights = [min(max(height, 0), room) for height in wanted]
    for above, below in pairwise(order):
        heights[below] = max(heights[below], heights[above] + gap)
    limit = room
    for number in reversed(order):
        heights[number] = min(heights[number], limit)
        limit = heights[number] - gap
    return heights


def limits_of(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    return min(finite), max(finite)


def limits_of_strips(ends: Sequence[tuple[float, float]], lowest: float = math.inf) -> tuple[float, float]:
    """For intervals below one another; one that is far off would leave the others no room."""
    finite = [(low, high) for low, high in ends if math.isfinite(low) and math.isfinite(high)] or [(0.0, 0.0)]
    lowest = min(lowest, *(low for low, _ in finite))
    return lowest, _reach([high for _, high in finite], lowest)


def limits_of_curves(curves: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """A frame around where the curves end, since they begin so high that all ends would look alike."""
    curves = [curve for curve in curves if curve]
    if not curves:
        return None
    lowest, highest = min(map(min, curves)), max(map(max, curves))
    reach = _reach([curve[-1] for curve in curves], lowest)
    top = min(highest, lowest + 1.6 * (reach - lowest)) if reach > lowest else highest
    air = 0.05 * (top - lowest)
    return (lowest - air, top + air) if air > 0 else None


def _reach(values: Sequence[float], lowest: float) -> float:
    """The highest of the values that is not far off: four times as far from the lowest as the middle one."""
    far = 4 * (median(values) - lowest)
    return max((value for value in values if value - lowest <= far), default=lowest)


def _drawable(line: Series, x: Axis, y: Axis) -> Series:
    """Without what cannot be drawn, and not too long."""
    band = line.band or [(value, value) for _, value in line.points]
    found = [
        (point, ends)
        for point, ends in zip(line.points, band, strict=False)
        if x.can_draw(point[0]) and all(map(y.can_draw, (point[1], *ends)))
    ]
    kept = [found[number] for number in thin_out([value for (_, value), _ in found])]
    return replace(line, points=[point for point, _ in kept], band=[ends for _, ends in kept] if line.band else ())


def _scale(axis: Axis, values: Sequence[float], start: float, end: float) -> Scale:
    """With a little air around the values, or with the limits as they are."""
    limits = axis.limits if axis.limits and all(map(axis.can_draw, axis.limits)) else None
    values = [*values, *filter(axis.can_draw, axis.beside)]
    low, high = limits or (min(values, default=1.0), max(values, default=1.0))
    if high - low <= 1e-9 * max(abs(low), abs(high)) + MIN_VALUE:
        low, high = (low / 2, high * 2) if axis.is_log else (low - (abs(low) / 10 or 1), high + (abs(high) / 10 or 1))
    elif limits is None and axis.is_log:
        air = (high / low) ** 0.04
        low, high = low / air, high * air
    elif limits is None:
        air = 0.05 * (high - low)
        low, high = low - air, high + air
    return Scale(low, high, start, end, axis.is_log)


def _axes(x: Axis, y: Axis, across: Scale, up: Scale) -> str:
    """Lines to read heights by, ticks below, and the two labels, both to be read without turning the head."""
    parts = [f'<text class="label" x="0" y="14">{escape(y.label)}</text>']
    heights = ticks(up.low, up.high, is_log=up.is_log)
    for value, text in zip(heights, _tick_texts(y, heights), strict=True):
        place = _px(TOP + up(value))
        parts.append(f'<path class="grid" d="M{LEFT:g} {place}H{_px(LEFT + PLOT_WIDTH)}"/>')
        parts.append(f'<text class="tick" x="{_px(LEFT - 8)}" y="{place}" dy="4" text-anchor="end">{text}</text>')
    base = TOP + PLOT_HEIGHT
    parts.append(f'<path class="base" d="M{LEFT:g} {base:g}H{_px(LEFT + PLOT_WIDTH)}"/>')
    places = ticks(across.low, across.high, is_log=across.is_log)
    for value, text in zip(places, _tick_texts(x, places), strict=True):
        place = _px(LEFT + across(value))
        parts.append(f'<path class="base" d="M{place} {base:g}v5"/>')
        parts.append(f'<text class="tick" x="{place}" y="{base + 19:g}" text-anchor="middle">{text}</text>')
    end = f'x="{_px(LEFT + PLOT_WIDTH)}" y="{HEIGHT - 6:g}" text-anchor="end"'
    return "".join([*parts, f'<text class="label" {end}>{escape(x.label)}</text>'])


def _tick_texts(axis: Axis, values: Sequence[float]) -> list[str]:
    if axis.show_tick:
        return [escape(axis.show_tick(value)) for value in values]
    if axis.is_log:
        return [f"{value:,.0f}" if value >= 1 else f"{value:.3g}" for value in values]
    if max(map(abs, values), default=0) >= 1e6:
        return [f"{value:.3g}".replace("-", "−") for value in values]
    step = min((after - before for before, after in pairwise(values)), default=1.0)
    digits = next((digits for digits in range(9) if abs(round(step, digits) - step) < 1e-3 * step), 9)
    return [f"{value:,.{digits}f}".replace("-", "−") for value in values]


def _line(line: Series, across: Scale, up: Scale, x: Axis, y: Axis) -> str:
    places = [(across(place), up(value)) for place, value in line.points]
    path = f'<path class="line" d="{_path(places)}"{_dash(line.look)}/>' if len(places) > 1 else ""
    marks = ""
    for number in _marked([place for place, _ in places]):
        place, value = line.points[number]
        tip = f"{line.name}\n{y.label}: {y.show(value)}\n{x.label}: {x.show(place)}"
        marks += f"<g><title>{escape(tip)}</title>{_mark(line.look, *places[number], 3.6)}</g>"
    return f'<g class="series {_classes(line.look)}">{path}{marks}</g>'


def _marked(places: Sequence[float]) -> list[int]:
    """Which points get a mark: the last, and before it those that leave room between them."""
    kept: list[int] = []
    for number in range(len(places) - 1, -1, -1):
        if not kept or abs(places[kept[-1]] - places[number]) >= 32:
            kept.append(number)
    return kept[::-1]


def _band(line: Series, across: Scale, up: Scale) -> str:
    if not line.band:
        return ""
    places = [across(place) for place, _ in line.points]
    there = [(place, up(high)) for place, (_, high) in zip(places, line.band, strict=True)]
    back = [(place, up(low)) for place, (low, _) in zip(places, line.band, strict=True)]
    return f'<path class="band {_classes(line.look)}" d="{_path([*there, *reversed(back)])}Z"/>'


def _line_name(line: Series, across: Scale, up: Scale, height: float, y: Axis) -> str:
    """The name at the right edge, and a thin line that leads to it from where the series ends."""
    place, value = line.points[-1]
    edge, text, leader = LEFT + PLOT_WIDTH, line.name, ""
    if value > up.high:
        text = f"{line.name} ↑ {y.show(value)}"
    elif value < up.low:
        text = f"{line.name} ↓ {y.show(value)}"
    else:
        path = (
            f"M{_px(LEFT + across(place) + 6)} {_px(TOP + up(value))}H{_px(edge)}L{_px(edge + 9)} {_px(TOP + height)}"
        )
        leader = f'<path class="leader" d="{path}"/>'
    return (
        f'<g class="name {_classes(line.look)}">{leader}{_mark(line.look, edge + 15, TOP + height, 3.4)}'
        f'<text x="{_px(edge + 23)}" y="{_px(TOP + height)}" dy="4">{escape(text)}</text></g>'
    )


def _dot(dot: Dot, cx: float, cy: float, radius: float, up: Scale, x: Axis, y: Axis) -> str:
    tip = f"{dot.name}\n{y.label}: {y.show(dot.y)}\n{x.label}: {x.show(dot.x)}"
    has_interval = y.can_draw(dot.low) and y.can_draw(dot.high)
    upright = f'<path class="whisker" d="M{_px(cx)} {_px(up(dot.low))}V{_px(up(dot.high))}"/>' if has_interval else ""
    ring = f'<circle class="ring" cx="{_px(cx)}" cy="{_px(cy)}" r="{_px(radius + RING)}"/>' if dot.is_marked else ""
    return (
        f'<g class="series {_classes(dot.look)}"><title>{escape(tip)}</title>{upright}{ring}'
        f"{_mark(dot.look, cx, cy, radius)}</g>"
    )


def _dot_name(dot: Dot, around: Box, taken: list[Box]) -> str:
    """Beside the box around its dot, where least else stands; the place is then taken too."""
    left, top, right, bottom = around
    x, y = (left + right) / 2, (top + bottom) / 2
    above, below = min(top, y - LINE / 2) - LINE / 2 - 1, max(bottom, y + LINE / 2) + LINE / 2 + 1
    places = [("start", right + 4, y), ("end", left - 4, y), ("middle", x, above), ("middle", x, below)]
    places += [(anchor, place, height) for height in (above, below) for anchor, place in (("start", x), ("end", x))]
    width = LETTER * len(dot.name)
    starts = {"start": 0.0, "middle": -width / 2, "end": -width}
    boxes = [
        (place + starts[anchor], height - LINE / 2, place + starts[anchor] + width, height + LINE / 2)
        for anchor, place, height in places
    ]
    best = min(range(len(places)), key=lambda number: _crowd(boxes[number], taken))
    taken.append(boxes[best])
    anchor, x, y = places[best]
    kind = "name is-marked" if dot.is_marked else "name"
    where = f'x="{_px(LEFT + x)}" y="{_px(TOP + y)}" dy="4" text-anchor="{anchor}"'
    return f'<g class="{kind}"><text {where}>{escape(dot.name)}</text></g>'


def _crowd(box: Box, taken: Sequence[Box]) -> int:
    """How much stands in the way: other boxes, and above all the axes."""
    left, top, right, bottom = box
    others = sum(left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in taken)
    return others + 10 * (left < 0) + 10 * (bottom > PLOT_HEIGHT)


def _frame(identity: str, title: str, about: str, inside: str, *, is_empty: bool) -> str:
    if is_empty:
        inside = f'<text class="label" x="{WIDTH / 2:g}" y="{HEIGHT / 2:g}" text-anchor="middle">nothing to draw</text>'
    return _svg(identity, title, about, inside, f'class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}"')


def _svg(identity: str, title: str, about: str, inside: str, attributes: str) -> str:
    return (
        f'<svg {attributes} role="img" aria-labelledby="{identity}-title {identity}-about">'
        f'<title id="{identity}-title">{escape(title)}</title><desc id="{identity}-about">{escape(about)}</desc>'
        f"{inside}</svg>"
    )


def _clipped(inside: str) -> str:
    """A nested svg cuts off what leaves it."""
    box = f"{-BLEED:g} {-BLEED:g} {PLOT_WIDTH + 2 * BLEED:g} {PLOT_HEIGHT + 2 * BLEED:g}"
    at = f'x="{LEFT - BLEED:g}" y="{TOP - BLEED:g}" width="{PLOT_WIDTH + 2 * BLEED:g}" '
    return f'<svg {at}height="{PLOT_HEIGHT + 2 * BLEED:g}" viewBox="{box}">{inside}</svg>'


def _mark(look: Look, x: float, y: float, radius: float) -> str:
    kind = "mark is-open" if look.dash else "mark"
    corners = SHAPES[look.shape]
    if not corners:
        return f'<circle class="{kind}" cx="{_px(x)}" cy="{_px(y)}" r="{_px(radius)}"/>'
    return f'<path class="{kind}" d="{_path([(x + radius * right, y + radius * down) for right, down in corners])}Z"/>'


def _classes(look: Look) -> str:
    return "plain" if look.colour is None else f"c{look.colour}"


def _dash(look: Look) -> str:
    return f' stroke-dasharray="{DASHES[look.dash]}"' if look.dash else ""


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_px(x)} {_px(y)}" for x, y in places)


def _px(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
