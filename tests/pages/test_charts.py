"""Charts: round ticks, values where they belong, and nothing that breaks on values nobody wants."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from seqwise.pages.charts import (
    MAX_POINTS,
    NUM_COLOURS,
    Axis,
    Dot,
    Look,
    Series,
    interval_strip,
    legend,
    limits_of,
    limits_of_curves,
    limits_of_strips,
    line_chart,
    scatter_chart,
    share_bar,
    spread,
    thin_out,
    ticks,
)

ABOUT = {"identity": "chart", "title": "A chart", "about": "About it."}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PLACES = {"d", "x", "y", "cx", "cy", "r", "width", "height", "viewBox", "dy"}
ALLOWED = re.compile(r"[MLHVZlvh\d\s.\-]*")


def lines(*series: Series, x: Axis | None = None, y: Axis | None = None) -> ElementTree.Element:
    return parsed(line_chart(series, x=x or Axis("steps"), y=y or Axis("bits"), **ABOUT))


def dots(*some: Dot, x: Axis | None = None, y: Axis | None = None) -> ElementTree.Element:
    return parsed(scatter_chart(some, x=x or Axis("ms", is_log=True), y=y or Axis("bits"), **ABOUT))


def parsed(svg: str) -> ElementTree.Element:
    """Well formed, and every place in it a number."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for name in PLACES & set(element.attrib):
            assert ALLOWED.fullmatch(element.attrib[name]), (element.tag, name, element.attrib[name])
    return root


def found(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if kind in element.get("class", "").split()]


def corners(path: ElementTree.Element) -> list[tuple[float, float]]:
    numbers = [float(number) for number in NUMBER.findall(path.attrib["d"])]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def texts(root: ElementTree.Element, kind: str) -> list[str]:
    return [element.text or "" for element in found(root, kind)]


def series(points: list[tuple[float, float]], name: str = "gpt", number: int = 0, **more: Any) -> Series:
    return Series(name, points, Look.of(number), **more)


# -- ticks, thinning, spreading, limits --


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (1.52, 2.61, [1.75, 2, 2.25, 2.5]),
        (-3, 12, [0, 5, 10]),
        (0, 98, [0, 20, 40, 60, 80]),
        (1e-5, 9e-5, [2e-5, 4e-5, 6e-5, 8e-5]),
    ],
)
def test_ticks_stand_at_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (2, 700, [3, 10, 30, 100, 300]),
        (0.8, 12, [1, 2, 5, 10]),
        (0.01, 1000, [0.01, 0.1, 1, 10, 100, 1000]),
        (1, 1e12, [1, 1e3, 1e6, 1e9, 1e12]),
        (11, 19, [12, 14, 16, 18]),
    ],
)
def test_ticks_of_a_log_axis_stand_at_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, is_log=True) == pytest.approx(expected)


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("ratio", [1.0001, 1.3, 2.0, 7.7, 99.0, 1e4, 1e9, 1e30])
@pytest.mark.parametrize("low", [1e-9, 0.37, 1.0, 8_760.0, 1e15])
def test_there_are_never_more_than_six_ticks_and_all_are_inside(low: float, ratio: float, is_log: bool) -> None:
    marks = ticks(low, low * ratio, is_log=is_log)
    assert 1 <= len(marks) <= 6
    slack = 1e-6 * low * (ratio - 1)
    assert all(low - slack <= mark <= low * ratio + slack for mark in marks)
    assert all(before < after for before, after in pairwise(marks))


def test_a_long_line_is_thinned_out_but_keeps_its_ends_and_its_peaks() -> None:
    values = [math.sin(step / 300) for step in range(10_000)]
    values[4_321], values[8_765] = 9.0, -9.0
    kept = thin_out(values)
    assert len(kept) <= MAX_POINTS
    assert kept == sorted(set(kept))
    assert {0, 4_321, 8_765, 9_999} <= set(kept)
    assert max(after - before for before, after in pairwise(kept)) < 300
    path = found(lines(series(list(enumerate(values)))), "line")[0]
    assert 100 < len(corners(path)) <= MAX_POINTS


def test_a_short_line_is_kept_whole() -> None:
    assert thin_out([1.0] * MAX_POINTS) == list(range(MAX_POINTS))


@pytest.mark.parametrize("wanted", [[], [5], [5, 5, 5], [100, 0, 50], [99, 98, 97, 96], [0] * 30, [1e9, -1e9]])
def test_names_are_set_apart_in_their_order(wanted: list[float]) -> None:
    heights = spread(wanted, 12, 100)
    gap = min(12, 100 / max(len(wanted) - 1, 1))
    assert all(-1e-6 <= height <= 100 + 1e-6 for height in heights)
    assert all(after - before >= gap - 1e-6 for before, after in pairwise(sorted(heights)))
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    assert all(heights[before] < heights[after] for before, after in pairwise(order))


def test_names_that_do_not_touch_stay_where_they_are() -> None:
    assert spread([80, 10, 40], 12, 100) == [80, 10, 40]


def test_limits_leave_out_what_is_no_number() -> None:
    assert limits_of([2.0, math.nan, -1.0, math.inf]) == (-1.0, 2.0)
    assert limits_of([math.nan]) == limits_of([]) == (0.0, 0.0)


def test_a_strip_far_off_does_not_take_the_room_of_the_others() -> None:
    ends = [(1.0, 1.2), (1.1, 1.4), (1.2, 1.3), (90.0, 95.0), (math.nan, math.inf)]
    assert limits_of_strips(ends) == (1.0, 1.4)
    assert limits_of_strips(ends, lowest=0.0) == (0.0, 1.4)
    assert limits_of_strips([]) == (0.0, 0.0)


def test_curves_are_framed_where_they_end() -> None:
    low, high = limits_of_curves([[50.0, 3.0, 2.0], [60.0, 2.5, 1.8], [70.0, 2.4]]) or (0.0, 0.0)
    assert 1.5 < low < 1.8
    assert 2.4 < high < 4.0
    assert limits_of_curves([[], [2.0, 2.0]]) is None
    assert limits_of_curves([]) is None


# -- lines --


def test_values_stand_where_the_ticks_say() -> None:
    root = lines(series([(1, 1.0), (10, 2.0), (100, 3.0)]), x=Axis("tokens", is_log=True))
    (left, low), (middle, mean), (right, high) = corners(found(root, "line")[0])
    assert (middle - left, mean - high) == pytest.approx((right - middle, low - mean), abs=0.2)
    assert (left < middle < right, high < mean < low) == (True, True)
    assert [text for text in texts(root, "tick") if text in ("1", "10", "100")] == ["1", "10", "100"]
    marks = {text.text: text.attrib for text in found(root, "tick")}
    frame = next(element for element in root if element.tag == "svg")
    off = float(frame.attrib["x"]) - float(frame.attrib["viewBox"].split()[0])
    assert float(marks["10"]["x"]) == pytest.approx(middle + off, abs=0.2)
    down = float(frame.attrib["y"]) - float(frame.attrib["viewBox"].split()[1])
    assert float(marks["2.0"]["y"]) == pytest.approx(mean + down, abs=0.2)


def test_what_cannot_be_drawn_is_left_out() -> None:
    good = [(1.0, 2.0), (2.0, 3.0), (3.0, 2.5)]
    bad = [(0.0, 1.0), (-1.0, 1.0), (math.nan, 1.0), (1.5, math.nan), (1.7, math.inf), (1.8, -math.inf), (1.9, 1e300)]
    x = Axis("tokens", is_log=True)
    assert ElementTree.tostring(lines(series(good + bad), x=x)) == ElementTree.tostring(lines(series(good), x=x))


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize(
    "points",
    [
        [(1, 2)],
        [(5, 3)] * 4,
        [(1, 7), (2, 7), (3, 7)],
        [(1, 0), (2, 0)],
        [(1, -1e90), (1e90, 1e90)],
        [(1, 1e-120), (2, 3e-120)],
        [(1e-99, 1), (1e99, 2)],
        [(1, 1e16), (2, 1e16 + 2)],
        [(3, -2), (3, 2)],
    ],
    ids=str,
)
def test_odd_points_are_drawn(points: list[tuple[float, float]], is_log: bool) -> None:
    root = lines(series(points, band=[(y, y) for _, y in points]), x=Axis("x", is_log=is_log))
    assert texts(root, "label") == ["bits", "x"]
    assert len(found(root, "mark")) >= 2  # on the line and beside its name


@pytest.mark.parametrize("some", [[], [series([])], [series([(1, math.nan)])]], ids=["none", "empty", "nan"])
def test_a_chart_of_nothing_says_so(some: list[Series]) -> None:
    assert "nothing to draw" in texts(lines(*some), "label")
    assert "nothing to draw" in texts(dots(), "label")


def test_each_series_has_its_colour_its_dash_and_its_name() -> None:
    root = lines(
        Series("gpt", [(1, 3), (2, 2)], Look.of(0)),
        Series("gpt-final", [(1, 3), (2, 1)], Look.of(0, 1)),
        Series("lstm", [(1, 3), (2, 1.5)], Look.of(1)),
    )
    groups = found(root, "series")
    assert [group.attrib["class"] for group in groups] == ["series c0", "series c0", "series c1"]
    dashes = [path.get("stroke-dasharray") for path in found(root, "line")]
    assert dashes[0] is dashes[2] is None
    assert dashes[1]
    names = [next(iter(group.iter("text"))) for group in found(root, "name")]
    heights = {name.text: float(name.attrib["y"]) for name in names}
    assert heights["gpt"] < heights["lstm"] < heights["gpt-final"]


def test_looks_do_not_repeat() -> None:
    looks = [Look.of(family, variant) for family in range(NUM_COLOURS**2) for variant in range(4)]
    assert len(set(looks)) == len(looks)
    first = [Look.of(family) for family in range(NUM_COLOURS)]
    assert len({look.colour for look in first}) == len({look.shape for look in first}) == NUM_COLOURS


def test_what_ends_above_the_frame_is_named_with_its_value() -> None:
    y = Axis("bits", "{:.1f}".format, limits=(1.0, 2.0))
    root = lines(series([(1, 1.5), (2, 1.2)]), series([(1, 9.0), (2, 8.0)], "hmm", 1), y=y)
    assert [text.text for group in found(root, "name") for text in group.iter("text")] == ["gpt", "hmm ↑ 8.0"]
    assert len(found(root, "leader")) == 1


def test_a_band_goes_there_and_back() -> None:
    points = [(step, 5.0) for step in range(4)]
    root = lines(series(points, band=[(4.0, 7.0)] * 4))
    path = corners(found(root, "band")[0])
    assert [x for x, _ in path] == [*sorted(x for x, _ in path[:4]), *sorted((x for x, _ in path[4:]), reverse=True)]
    height = corners(found(root, "line")[0])[0][1]
    assert all(y < height for _, y in path[:4])
    assert all(y > height for _, y in path[4:])


def test_the_pointer_finds_values_in_words() -> None:
    y = Axis("bits per character", "{:.3f}".format)
    root = lines(series([(1, 1.5), (9, 1.25)]), x=Axis("seconds", "{:g} s".format), y=y)
    tips = [tip.text for group in found(root, "series") for tip in group.iter("title")]
    assert tips[-1] == "gpt\nbits per character: 1.250\nseconds: 9 s"


def test_text_cannot_become_markup() -> None:
    bad = '<g class="series">&"</text>'
    axis = Axis(bad, lambda value: bad, lambda value: bad)
    svg = line_chart(
        [series([(1, 2), (2, 3)], bad)], identity="chart", title=bad, about=bad, x=axis, y=replace(axis, limits=(0, 1))
    )
    assert len(found(parsed(svg), "series")) == 1
    svg = scatter_chart([Dot(bad, 1, 2, Look.of(0))], identity="chart", title=bad, about=bad, x=axis, y=axis)
    assert len(found(parsed(svg), "series")) == 1
    assert len(list(ElementTree.fromstring(legend([(bad, Look.of(0))])).iter("g"))) == 1
    assert not found(parsed(share_bar([(bad, 1.0)], identity="bar", title=bad, about=bad)), "series")


# -- dots, strips, bars --


def test_marked_dots_have_a_ring_and_intervals_stand_upright() -> None:
    root = dots(
        Dot("gpt", 2.0, 1.6, Look.of(0), 1.5, 1.7, size=100, is_marked=True),
        Dot("hmm", 0.05, 2.9, Look.of(1), size=1),
    )
    assert len(found(root, "ring")) == len(found(root, "whisker")) == 1
    assert [group.attrib["class"] for group in found(root, "name")] == ["name is-marked", "name"]


def test_dots_grow_with_their_size() -> None:
    root = dots(*(Dot(str(size), size, 1.0, Look(0), size=size) for size in (1, 10, 100)))
    radii = [float(mark.attrib["r"]) for mark in found(root, "mark")]
    assert radii == sorted(radii)
    assert radii[0] < radii[1] < radii[2]


@pytest.mark.parametrize("size", [0, -1, math.nan, math.inf, 1e300])
def test_odd_sizes_are_drawn(size: float) -> None:
    assert len(found(dots(Dot("a", 1, 1, Look(0), size=size), Dot("b", 2, 2, Look(0), size=3)), "mark")) == 2


def test_dots_that_cannot_be_drawn_are_left_out() -> None:
    bad = [Dot("bad", x, y, Look(0)) for x, y in [(0, 1), (-1, 1), (math.nan, 1), (1, math.inf), (1, math.nan)]]
    root = dots(Dot("good", 1, 1, Look(0), math.nan, math.inf), *bad)
    assert [text.text for group in found(root, "name") for text in group.iter("text")] == ["good"]
    assert not found(root, "whisker")


def test_names_of_dots_in_one_place_do_not_cover_one_another() -> None:
    names = ["one", "two", "three", "four"]
    root = dots(*(Dot(name, 1.0, 1.0, Look(0)) for name in names), Dot("a", 9, 9, Look(0)), Dot("b", 0.1, 0.1, Look(0)))
    places = [
        (text.attrib["x"], text.attrib["y"], text.attrib["text-anchor"])
        for group in found(root, "name")
        for text in group.iter("text")
    ]
    assert len(set(places)) == 6


def test_a_strip_shows_the_interval_between_the_limits() -> None:
    root = parsed(interval_strip(2.0, 1.0, 3.0, limits=(0.0, 4.0), look=Look.of(2)))
    line, mark = found(root, "line")[0], NUMBER.findall(found(root, "mark")[0].attrib["d"])
    start, height, end = (float(number) for number in NUMBER.findall(line.attrib["d"]))
    assert (start, end) == (33, 87)
    assert found(root, "zero")
    assert 55 < float(mark[0]) < 65


def test_what_is_far_off_is_an_arrow() -> None:
    root = parsed(interval_strip(9.0, 8.0, 10.0, limits=(1.0, 2.0)))
    assert found(root, "arrow")
    assert not found(root, "mark")
    assert not found(root, "zero")


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
def test_what_is_no_number_has_no_strip(value: float) -> None:
    assert interval_strip(value, 1.0, 2.0, limits=(1.0, 2.0)) == ""
    assert interval_strip(1.0, value, 2.0, limits=(1.0, 2.0)) == ""


@pytest.mark.parametrize("value", [0.0, 1.7, -3.0])
def test_a_strip_without_width_is_drawn(value: float) -> None:
    assert found(parsed(interval_strip(value, value, value, limits=(value, value))), "mark")


def test_shares_fill_the_bar() -> None:
    root = parsed(share_bar([("a", 1.0), ("b", 2.0), ("c", 1.0)], identity="bar", title="t", about="a"))
    rects = found(root, "share")
    assert [float(rect.attrib["width"]) for rect in rects] == [160, 320, 160]
    assert [float(rect.attrib["x"]) for rect in rects] == [0, 160, 480]
