"""The view of what was looked at in a picture, as HTML: the picture, what the answer rests on, attention word by word,
the path of an eye, and a picture that is painted step by step. Behind each drawing stands a table with the same.

Shapes: F frames, h and w cells, N regions, T steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ..pages.charts import Axis, Look, Series
from ..pages.elements import shown, titled_table
from ..pages.pictures import Box, Drawn, Tile, as_box, heat, image, shared, signed_heat, tiles
from ..pages.quantities import number, per_cent
from ..pages.text import visible
from ..wording import counted
from .evidence import LEFT_OUT, Evidence
from .glimpses import Glimpses, Painting
from .inspect import Inspection
from .occlusion import MIN_LOST, Occlusion, place_named
from .picture_maps import Heat, Maps, Places
from .scales import Scales
from .seen_picture import SeenPicture

MAX_BOXES = 12  # that are drawn above a picture: those with the largest shares
BLANK = np.full((64, 64, 1), 128, dtype=np.uint8)  # where only regions are known and no picture
MAX_NAME = 40  # characters
LOOKS_EVERYWHERE = "It looks everywhere alike here: no place has more than twice an even share."


def picture(one: Inspection, place: int, scales: Scales) -> str:
    if one.seen is None:
        return ""
    seen, view = one.seen, _View(one.seen, place)
    maps = "".join(_maps(each, view, f"maps-{place}-{number}") for number, each in enumerate(seen.maps))
    return (
        view.defs
        + _whole(one, view)
        + ("" if seen.rests_on is None else _rests_on(seen.rests_on, view))
        + ("" if one.evidence is None else _word_that_counts(one.evidence))
        + maps
        + ("" if seen.glimpses is None else _glimpses(seen.glimpses, view, place, scales))
        + ("" if seen.painting is None else _painting(seen.painting, place))
    )


class _View:
    """The frames of a picture as this page has them; a grey square where only regions are known."""

    def __init__(self, seen: SeenPicture, place: int):
        self.seen, self.has_pixels = seen, seen.picture.frames is not None
        frames = BLANK[None] if seen.picture.frames is None else seen.picture.frames
        found = [shared(f"seen-{place}-{number}", frame) for number, frame in enumerate(frames)]
        self.frames, self.defs = [drawn for drawn, _ in found], "".join(html for _, html in found)
        self.about = f"{visible(seen.picture.name, limit=80)}, {frames.shape[2]} x {frames.shape[1]} pixels"

    def frame(self, number: int) -> Drawn:
        return self.frames[min(number, len(self.frames) - 1)]


def _whole(one: Inspection, view: _View) -> str:
    """The picture, and what was said of it, where the tab Answer does not tell that."""
    body = f"<p>{shown(view.seen.picture.name)}: what was found in it is known, and not the picture itself.</p>"
    if not view.has_pixels and view.seen.places is not None and view.seen.places.names:
        body = f"<div>{body}{_figure([Tile(_found(view.seen.places, view.frame(0)), '')])}</div>"
    if view.has_pixels:
        several = len(view.frames) > 1
        drawings = [
            Tile(
                frame.svg(frame.shown(), f"{view.about}{f', frame {n}' if several else ''}", kind="seen is-large"),
                f"frame {n}" if several else "",
            )
            for n, frame in enumerate(view.frames, start=1)
        ]
        body = _figure(drawings, view.about)
    if one.evidence is not None:
        return body
    said, wanted = ("Answered", "Wanted") if one.reading.is_answer else ("Written", "People wrote")
    told = "".join(f"<p>{said}: <b>{shown(each)}</b></p>" for each in one.reading.answer)
    told += "".join(f"<p>{wanted}: {shown(each)}</p>" for each in one.reading.wanted or [])
    if one.reading.is_answer:
        options = "".join(_row(option.piece, per_cent(option.probability)) for option in one.reading.expected[-1])
        told += titled_table("Answers", ["answer", "probability"], options, kind="spans")
    return f'<div class="side-by-side">{body}<div>{told}</div></div>'


def _found(places: Places, drawn: Drawn) -> str:
    """Regions with what they show."""
    inside, names = drawn.shown(is_grey=True), [visible(name, limit=MAX_NAME) for name in places.names]
    for box, name in zip(places.boxes, names, strict=True):
        x, y = box[0] * drawn.width + 1, box[1] * drawn.height + 4
        inside += drawn.rectangle(as_box(box), "window")
        inside += f'<text class="region" x="{x:.1f}" y="{y:.1f}" font-size="3.4">{escape(name)}</text>'
    return drawn.svg(inside, f"What was found in the picture: {', '.join(names)}", kind="seen is-large")


# -- parts -------------------------------------------------------------------------------------------------------------


def _figure(drawings: Sequence[Tile], caption: str = "") -> str:
    told = f"<figcaption>{shown(caption)}</figcaption>" if caption else ""
    return f'<figure class="is-whole pictures">{tiles(drawings)}{told}</figure>'


def _behind(caption: str, heads: Sequence[str], rows: str) -> str:
    """What a figure shows, as a table that can be opened."""
    table = titled_table(escape(caption), heads, rows, kind="looks")
    return f"<details><summary>The same as a table</summary>{table}</details>"


def _row(name: str, *cells: str) -> str:
    return f"<tr><th>{shown(name, limit=MAX_NAME)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _head(title: str, about: str) -> str:
    return f'<h3>{escape(title[:1].upper() + title[1:])}</h3><p class="aside">{escape(about)}</p>'


# -- heat above the picture --------------------------------------------------------------------------------------------


def _drawn(shares: np.ndarray, view: _View, places: Places | None, *, is_signed: bool) -> tuple[str, int]:
    """SVG of a picture with shares from -1 to 1 above it, and which frame it is: of a clip the one with the most."""
    paint = signed_heat if is_signed else heat
    if shares.ndim > 1 or places is None:
        cells = shares.reshape(-1, *shares.shape[-2:])  # (F, h, w)
        frame = int(np.abs(cells).sum(axis=(1, 2)).argmax())
        return view.frame(frame).shown(is_grey=True) + view.frame(frame).overlay(paint(cells[frame])), frame
    frame = int(np.abs(places.by_frame(shares)).argmax())
    drawn, here = view.frame(frame), np.flatnonzero(places.frames == frame)
    if places.grid is not None:
        return drawn.shown(is_grey=True) + drawn.overlay(paint(shares[here].reshape(places.grid))), frame
    outlines = "".join(drawn.rectangle(as_box(places.boxes[at]), "region") for at in here)
    strongest = here[np.argsort(-np.abs(shares[here]))][:MAX_BOXES]
    kinds = ("box is-for", "box is-against") if is_signed else ("box", "box")
    boxes = "".join(
        drawn.rectangle(as_box(places.boxes[at]), kinds[int(shares[at] < 0)], abs(float(shares[at])))
        for at in strongest
    )
    return drawn.shown(is_grey=True) + outlines + boxes, frame


def _largest(values: np.ndarray, places: Places | None) -> tuple[str, float]:
    """Where the largest value is, in words, and the value."""
    most = int(values.argmax())
    if values.ndim > 1 or places is None:
        F, h, w = values.shape
        frame, row, column = (int(at) for at in np.unravel_index(most, values.shape))
        box, is_clip = (column / w, row / h, (column + 1) / w, (row + 1) / h), F > 1
    else:
        frame, box, is_clip = int(places.frames[most]), as_box(places.boxes[most]), places.num_frames > 1
    where = place_named(box) if box != (0.0, 0.0, 1.0, 1.0) else ""
    if places is not None and places.names and values.ndim == 1 and places.names[most]:
        where = f"{places.names[most]}, {where}".rstrip(", ")
    told = f"frame {frame + 1}, {where}".rstrip(", ") if is_clip else where or "the whole picture"
    return told, float(values.flat[most])


def _maps(maps: Maps, view: _View, identity: str) -> str:
    options = "".join(
        f'<option value="{n}"{" selected" if n == maps.first else ""}>{escape(name)}</option>'
        for n, (name, _) in enumerate(maps.panels)
    )
    chooser = (
        '<div class="controls needs-script"><label>Show '
        f'<select data-chooses="{identity}">{options}</select></label></div>'
    )
    panels = "".join(
        f'<div data-panel="{identity}"{" hidden" if n != maps.first else ""}>{_panel(maps, name, found, view)}</div>'
        for n, (name, found) in enumerate(maps.panels)
    )
    return _head(maps.title, maps.about) + (chooser if len(maps.panels) > 1 else "") + panels


def _panel(maps: Maps, name: str, found: Sequence[Heat], view: _View) -> str:
    """A small picture for each, with a table behind them."""
    drawings, rows = [], ""
    for one in found:
        inside, frame = _drawn(maps.brightness(one.values), view, maps.places, is_signed=False)
        where, most = _largest(one.values, maps.places)
        told = per_cent(most) if maps.even is not None else number(most, 2)
        below = ""
        if maps.places is not None and maps.places.num_frames > 1:
            below = f"frame {frame + 1}, {per_cent(float(maps.places.by_frame(one.values)[frame]))}"
        word = visible(one.name, limit=MAX_NAME)
        drawings.append(Tile(view.frame(frame).svg(inside, f"{word}: most on {where}, {told}"), word, below))
        rows += _row(one.name, escape(where), told, *([number(one.spread, 1)] if maps.even is not None else []))
    heads = ["", "most on", *(["share", "as if over so many places"] if maps.even is not None else ["length"])]
    alike = f"<p>{LOOKS_EVERYWHERE}</p>" if not maps.stands_out(found) else ""
    return alike + _figure(drawings) + _behind(f"{maps.title}, {name}".removesuffix(", "), heads, rows)


# -- what it rests on --------------------------------------------------------------------------------------------------


def _rests_on(found: Occlusion, view: _View) -> str:
    places = view.seen.places if found.heat.ndim == 2 else None
    top = max(float(np.abs(found.heat).max()), MIN_LOST)  # what hardly counts is drawn faint
    drawings, rows = [], ""
    for asked, name in enumerate(found.asked):
        inside, frame = _drawn(found.heat[asked] / top, view, places, is_signed=True)
        (box, lost), drawn, word = found.most(asked), view.frame(frame), visible(name, limit=MAX_NAME)
        inside += drawn.rectangle(box, "most") if lost >= MIN_LOST else ""
        below = f"−{number(lost, 2)} nats" if lost >= MIN_LOST else ""
        drawings.append(Tile(drawn.svg(inside, f"{word}: {found.told(asked)}"), word, below))
        rows += _row(name, number(found.log_probs[asked], 2), escape(place_named(box)), number(lost, 2))
    about = (
        "What each answer or word loses where a part of the picture is hidden: blue parts speak for it, red ones "
        "against it; the frame is the place whose loss costs most."
    )
    heads = ["", "log-probability", "costs most where hidden", "nats lost"]
    return (
        _head("What it rests on", about)
        + f"<p>{shown(found.asked[0], limit=MAX_NAME)}: {escape(found.told(0))}</p>"
        + _figure(drawings)
        + _behind("What it rests on", heads, rows)
        + ("" if found.by_frame is None else _frames(found, found.by_frame))
    )


def _word_that_counts(found: Evidence) -> str:
    """Of a question: the word without which the answer loses most."""
    lost = next((each.values[0] for each in found.attributions if each.method == LEFT_OUT), np.zeros(0))
    if not len(lost):
        return ""
    word, nats = found.words[int(lost.argmax())], float(lost.max())
    if nats < MIN_LOST:
        return "<p>It hardly rests on any one word of the question; see under answer.</p>"
    return (
        f"<p>Of the question it rests most on “{shown(word, limit=MAX_NAME)}”: without it the answer loses "
        f"{number(nats, 2)} nats against all others; see under answer.</p>"
    )


def _frames(found: Occlusion, by_frame: np.ndarray) -> str:
    """(K, F): what is lost without each frame."""
    heads = ["", *(f"frame {frame + 1}" for frame in range(by_frame.shape[1]))]
    rows = "".join(
        _row(name, *(number(value, 2) for value in lost))
        for name, lost in zip(found.asked, by_frame.tolist(), strict=True)
    )
    return titled_table("Nats lost without each frame", heads, rows, kind="frames")


# -- glimpses ----------------------------------------------------------------------------------------------------------


def _glimpses(found: Glimpses, view: _View, place: int, scales: Scales) -> str:
    about = (
        "Numbers are glimpses in their order, squares what is seen in most detail; below is each glimpse as it is seen."
    )
    told = f"The path of the eye over the picture, {counted(len(found.places), 'glimpse')}"
    path = view.frame(0).svg(_path(found, view.frame(0)), told, kind="seen is-large")
    names = [
        [f"glimpse {step}" + (f", {2**scale} times as wide" if scale else "") for scale in range(len(patches))]
        for step, patches in enumerate(found.patches, start=1)
    ]
    patches = [
        Tile(image(patch, name, kind="patch"), name)
        for each, named in zip(found.patches, names, strict=True)
        for patch, name in zip(each, named, strict=True)
    ]
    rows = "".join(
        _row(str(step), per_cent(x), per_cent(y), *map(per_cent, shares))
        for step, ((x, y), shares) in enumerate(
            zip(found.places.tolist(), found.probabilities.tolist(), strict=True), start=1
        )
    )
    heads = ["glimpse", "from the left", "from the top", *(visible(name, limit=MAX_NAME) for name in found.answers)]
    body = _head("Where the eye went", about) + _figure([Tile(path, "")]) + (_figure(patches) if patches else "")
    body += titled_table("Glimpses", heads, rows, kind="glimpses")
    return body + (_after_each(found, place, scales) if found.answers else "")


def _path(found: Glimpses, drawn: Drawn) -> str:
    """SVG: a numbered spot for each glimpse, a line through them, and what each sees in most detail."""
    middles = (found.places * [drawn.width, drawn.height]).tolist()
    radius = max(drawn.width, drawn.height) / 28
    line = " ".join(f"{x:.2f},{y:.2f}" for x, y in middles)
    spots = "".join(
        f'<circle class="spot" cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}"/>'
        f'<text class="spot" x="{x:.2f}" y="{y + radius * 0.45:.2f}" font-size="{1.3 * radius:.2f}">{step}</text>'
        for step, (x, y) in enumerate(middles, start=1)
    )
    squares = "".join(drawn.rectangle(as_box(boxes[0]), "window") for boxes in found.boxes if len(boxes))
    return f'{drawn.shown()}{squares}<polyline class="path" points="{line}"/>{spots}'


def _after_each(found: Glimpses, place: int, scales: Scales) -> str:
    lines = [
        Series(name, list(enumerate(found.probabilities[:, each].tolist(), start=1)), Look.of(each))
        for each, name in enumerate(found.answers)
    ]
    return scales.figure(
        lines,
        f"glimpses-{place}",
        "Answers, glimpse by glimpse",
        "How probable each answer is after each glimpse, had the eye stopped there.",
        Axis("glimpses", "{:.0f}".format),
        Axis("probability", "{:.2f}".format, limits=(0.0, 1.0)),
    )


# -- painting ----------------------------------------------------------------------------------------------------------


def _painting(found: Painting, place: int) -> str:
    """The canvas after each step, with the places where was read and written before."""
    windows = {name: boxes for name, boxes in (("reads", found.reads), ("writes", found.writes)) if boxes is not None}
    drawings, rows = [], ""
    for step, canvas in enumerate(found.canvases):
        drawn, defs = shared(f"canvas-{place}-{step}", canvas, with_grey=False)
        boxes = {name: within_picture(each[step]) for name, each in windows.items()}
        inside = drawn.shown() + "".join(
            drawn.rectangle(box, f"window is-{name}") for name, box in boxes.items() if box is not None
        )
        told = "".join(f"; {name}: {_box_told(box)}" for name, box in boxes.items())
        drawings.append(Tile(defs + drawn.svg(inside, f"The canvas after step {step + 1}{told}"), f"step {step + 1}"))
        rows += _row(str(step + 1), *(escape(_box_told(box)) for box in boxes.values()))
    frames = " The whole frame is where the picture was read, the broken one where was written." if windows else ""
    table = _behind("Where it reads and writes", ["step", *windows], rows) if windows else ""
    return _head("Painted step by step", f"The canvas after each step.{frames}") + _figure(drawings) + table


def within_picture(edges: np.ndarray) -> Box | None:
    """What of a box lies in the picture; None where nothing does."""
    left, top, right, bottom = as_box(np.clip(edges, 0, 1))
    return (left, top, right, bottom) if left < right and top < bottom else None


def _box_told(box: Box | None) -> str:
    return "outside of the picture" if box is None else place_named(box)
