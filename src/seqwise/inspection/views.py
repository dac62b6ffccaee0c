"""The views of the page: what one model has to show in each, as HTML. VIEWS is the table, in the order of the tabs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from ..pages.charts import Axis, Dot, Look, Series, scatter_chart
from ..pages.elements import embedded_json, shown, titled_table
from ..pages.quantities import number, per_cent
from ..pages.text import visible
from ..wording import counted
from .answer_views import answer
from .gradient_flow import THROUGH, Flow
from .heads import SELF
from .inspect import Inspection
from .minimal_pairs import about_halves, by_distance
from .page_data import all_maps, pack, piece_named, piece_shown, site_name
from .page_parts import map_box, strip_text
from .picture_view import picture
from .scales import Scales
from .tree import tree_chart

Body = Callable[[Inspection, int, Scales], str]
"""What one model has to show, at its place in the row."""
MAX_COLUMNS = 4  # of a series, that are drawn
WITHIN = 0.995  # of the entries of position vectors are drawn as they are, larger ones as the largest of these


def _reading(one: Inspection, place: int, scales: Scales) -> str:
    spans = "".join(f"<span>{escape(piece_shown(piece))}</span>" for piece in one.reading.pieces)
    source = ""
    if one.reading.source:
        pieces = "".join(f"<span>{escape(piece_shown(piece))}</span>" for piece in one.reading.source)
        source = f'<p class="aside">Source</p>{strip_text("source", pieces, needs_script=False)}'
    return (
        f'<p class="aside">{_total_cost(one)}</p>'
        f"{_columns_read(one, place, scales)}{source}"
        f"<figure>{strip_text('tokens', spans, needs_script=False)}</figure>"
        '<div class="card needs-script" data-part="card" aria-live="polite"></div>'
    )


def _total_cost(one: Inspection) -> str:
    if one.reading.words and not one.reading.num_scored:
        return "What should have been answered is not known; --target tells it."
    if not one.reading.num_scored:
        return "Nothing is guessed here, and so nothing has a cost: a vector is made of the text."
    total = sum(bits for bits in one.reading.bits if not math.isnan(bits))
    mean = total / max(1, one.reading.num_scored)
    return f"{number(mean, 2)} {one.reading.unit}{_by_character(one, total)}, {number(total, 1)} in all"


def _by_character(one: Inspection, total: float) -> str:
    """A unit that models with other tokens share."""
    scored = zip(one.reading.pieces, one.reading.bits, strict=True)
    characters = sum(len(piece) for piece, bits in scored if not math.isnan(bits))
    return (
        f" ({number(total / characters, 2)} a character)"
        if one.reading.is_text and not one.reading.is_answer and not one.reading.source and characters
        else ""
    )


def _columns_read(one: Inspection, place: int, scales: Scales) -> str:
    """A series beside what was expected of each step before it was read."""
    body = ""
    for c, column in enumerate(one.reading.columns[:MAX_COLUMNS]):
        read = Series("read", list(enumerate(column.values, start=1)), Look.of(0))
        band = list(zip(column.low, column.high, strict=True))
        expected = Series("expected", list(enumerate(column.middle, start=1)), Look.of(1, 1), band)
        body += scales.figure(
            [read, expected],
            f"read-{place}-{c}",
            column.name,
            f"{visible(column.name)}: what was read, and what was expected a step before; 95 of 100 within the band.",
            Axis("step", "{:.0f}".format),
            Axis(visible(column.name), "{:.4g}".format),
        )
    return body


def _inside(one: Inspection, place: int, scales: Scales) -> str:
    if not one.over_text:
        return ""
    rows = "".join(
        f"<tr><th>{escape(track.feature)}</th><td>{_button(one, track.site, track.what, track.unit)}</td>"
        f"<td>{number(track.correlation, 2)}</td><td>{number(track.chance, 2)}</td>"
        f"<td>{'yes' if track.is_found else 'no'}</td></tr>"
        for track in one.tracked
    )
    heads = ["feature", "unit", "correlation", "chance", "found"]
    table = titled_table("Units that follow something", heads, rows, kind="units") if rows else ""
    return (
        '<div class="controls needs-script" data-part="controls"></div>'
        f'<figure class="needs-script">{strip_text("tokens")}</figure>'
        + map_box(
            "All units over the text; the same numbers are in the text above and in --json",
            "Units from top to bottom, tokens from left to right. Choose a unit by its row.",
        )
        + table
    )


def _button(one: Inspection, site: str, what: str, unit: int) -> str:
    layer = next((n for n, each in enumerate(one.over_text) if (each.site, each.what) == (site, what)), None)
    name = f"{escape(site_name(site, what))} {unit}"
    if layer is None:
        return name
    return f'<button type="button" class="link" data-layer="{layer}" data-unit="{unit}">{name}</button>'


def _attention(one: Inspection, place: int, scales: Scales) -> str:
    if not all_maps(one):
        return ""
    rows, sees_later = "", any(each.kind == SELF for each in one.attention)
    for each in one.attention:
        for head, does in enumerate(each.heads()):
            behind = [does.on_the_one_behind] if sees_later else []
            cells = (does.on_itself, does.on_the_one_before, *behind, does.on_the_first)
            shares = "".join(f"<td>{'—' if math.isnan(value) else per_cent(value)}</td>" for value in cells)
            distance = "—" if math.isnan(does.distance) else number(does.distance, 1)
            rows += (
                f"<tr><th>{escape(site_name(each.site, each.kind))}</th><td>{head + 1}</td>{shares}"
                f"<td>{distance}</td><td>{number(does.spread, 1)}</td></tr>"
            )
    neighbours = ["on the one before", *(["on the one behind"] if sees_later else [])]
    heads = [
        "layer",
        "head",
        "on itself",
        *neighbours,
        "on the first",
        "steps" if sees_later else "steps back",
        "places",
    ]
    table = titled_table("What each head does", heads, rows, kind="heads") if rows else ""
    return (
        '<div class="controls needs-script" data-part="controls"></div>'
        f'<figure class="needs-script">{strip_text("tokens")}{strip_text("source")}</figure>'
        + map_box(
            "Attention of each token to each other; a chosen token tells its own in words",
            "Rows look at columns. Hover over a token above, or click a row, to see where it looks.",
            kind="map is-square",
        )
        + table
    )


def _gradients(one: Inspection, place: int, scales: Scales) -> str:
    lines: list[Series] = []
    for n, flow in enumerate(flow for flow in one.flow if any(flow.by_lag)):
        look = Look.of(n, 1) if flow.what == THROUGH else Look.of(n)
        lines.append(Series(_flow_name(flow), list(enumerate(flow.by_lag)), look))
        lowest = min(value for value in flow.by_lag if value > 0)
        for factor in (each for each in one.factors if each.is_of(flow)):
            name = site_name(factor.site, factor.name)
            points = [(lag, value) for lag, value in enumerate(factor.line(flow), start=1) if value >= lowest]
            lines.append(Series(name, points, Look.of(n, 2)))
    body = (
        ""
        if not lines
        else scales.figure(
            lines,
            f"flow-{place}",
            "Gradient by lag",
            "The mean length of the gradient of the loss at a token, by how many tokens before it.",
            Axis("tokens before", "{:.0f}".format),
            Axis("length of the gradient", "{:.3g}".format, is_log=True),
        )
    )
    rows = "".join(
        f"<tr><th>{escape(_flow_name(flow))}</th>"
        + "".join(f"<td>{_share(flow, lag)}</td>" for lag in (1, 2, 5, 10, 20, 50, 100))
        + f"<td>{flow.half_life() or '—'}</td></tr>"
        for flow in one.flow
    )
    heads = ["what", *(f"{lag} before" for lag in (1, 2, 5, 10, 20, 50, 100)), "half after"]
    body += titled_table("What is left of the gradient", heads, rows, kind="flow") if rows else ""
    if any(flow.what == THROUGH for flow in one.flow):
        body += (
            '<p class="aside">A stream is what stands behind a layer. What arrives there goes on around the layer '
            "before it by the skip connection, as it is; a block is what arrives through that layer besides.</p>"
        )
    body += "".join(
        f'<p class="aside">{shown(site_name(f.site, ""))} {number(f.factor, 3)}, {f.about}.</p>' for f in one.factors
    )
    cut = "".join(
        f"<tr><th>{each.chunk}</th><td>{number(each.cosine, 3)}</td><td>{per_cent(each.length)}</td></tr>"
        for each in one.truncation
    )
    heads = ["cut every", "agrees (cosine)", "length left"]
    body += titled_table("Where backpropagation is cut", heads, cut, kind="cuts") if cut else ""
    return body + _clipping(one, place, scales)


def _clipping(one: Inspection, place: int, scales: Scales) -> str:
    if not one.clipped:
        return ""
    cut = sum(share > 0 for _, _, share in one.clipped)
    norms = Series("longest", [(step, norm) for step, norm, _ in one.clipped], Look.of(0))
    figure = scales.figure(
        [norms],
        f"clipped-{place}",
        "Gradients in training",
        "The largest norm of the gradient since the report before, over the steps of training.",
        Axis("step", "{:.0f}".format),
        Axis("length", "{:.3g}".format, is_log=True),
    )
    if cut:
        figure += scales.figure(
            [Series("cut", [(step, share) for step, _, share in one.clipped], Look.of(1))],
            f"cut-{place}",
            "Where clipping acted",
            "The share of steps since the report before whose gradient was cut to the longest allowed.",
            Axis("step", "{:.0f}".format),
            Axis("share of steps", "{:.2f}".format, limits=(0.0, 1.0)),
        )
    reports = counted(len(one.clipped), "report")
    return f'<p class="aside">In training, gradients were cut in {cut} of {reports}.</p>{figure}'


def _flow_name(flow: Flow) -> str:
    return site_name(flow.site, flow.what)


def _share(flow: Flow, lag: int) -> str:
    shares = flow.shares()
    return f"{shares[lag]:.2g}" if lag < len(shares) else "—"


def _memory(one: Inspection, place: int, scales: Scales) -> str:
    body = ""
    if one.influence is not None:
        points = list(enumerate(one.influence.by_distance, start=1))
        band = list(zip(one.influence.low, one.influence.high, strict=True))
        reach, most = one.influence.reach(), len(points)
        end = " (and maybe beyond: that is as far as was looked)" if reach == most else f" of {most:,} looked at"
        body += (
            f"<p>A change is felt {counted(reach, 'token')} back{end}, by a hundredth of what the last token does.</p>"
        )
        body += scales.figure(
            [Series(one.name, points, Look.of(place), band)],
            f"influence-{place}",
            "Influence by distance",
            "How much replacing one token moves the prediction, by how many tokens before; nothing is drawn where it "
            "does not move.",
            Axis("tokens before", "{:.0f}".format, limits=(1, max(2, len(points)))),
            Axis("nats", "{:.3g}".format, is_log=True),
        )
    if one.by_position:
        smooth = _smoothed(one.by_position)
        body += scales.figure(
            [Series(one.name, list(enumerate(smooth)), Look.of(place))],
            f"position-{place}",
            "Loss by position",
            "Bits a token of held-out text, by how many tokens the model has read before it; the mean of five places.",
            Axis("tokens read before", "{:.0f}".format),
            Axis("bits a token", "{:.2f}".format),
        )
    if one.minimal_pairs:
        rows = "".join(
            f"<tr><th>{at.distance}</th><td>{at.right:g} of {at.of}</td><td>{per_cent(at.accuracy)}</td></tr>"
            for at in by_distance(one.minimal_pairs)
        )
        heads = ["words between", "right", "share"]
        first = one.minimal_pairs[0].pair
        asked = f"“{first.beginning}”:{first.good} or{first.bad}?"
        body += f"<h3>Which of two?</h3><p>{shown(asked)} The first is right.</p>"
        body += titled_table("Minimal pairs by distance", heads, rows, kind="pairs")
        body += f'<p class="aside">{" ".join(["Half would be right by chance.", *about_halves(one.minimal_pairs)])}</p>'
    return body


def _smoothed(values: Sequence[float], over: int = 5) -> list[float]:
    padded = np.asarray(values)
    return [float(padded[max(0, t - over // 2) : t + over // 2 + 1].mean()) for t in range(len(values))]


def _search(one: Inspection, place: int, scales: Scales) -> str:
    tree = one.search
    if tree is None:
        return ""
    best = set(tree.path(tree.answers[0].tokens)) if tree.answers else set()
    chart = tree_chart(tree.nodes, one.search_pieces, best, identity=f"search-{place}")
    rows = "".join(
        f"<tr><th>{node.step + 1}</th><td>{shown(piece_named(one.search_pieces[node.token]))}</td>"
        f"<td>{number(node.log_prob, 2)}</td><td>{number(node.score, 2)}</td><td>{node.fate}</td></tr>"
        for node in tree.nodes
    )
    heads = ["step", "token", "log-probability", "score", "what became of it"]
    table = titled_table("Hypotheses by step", heads, rows, kind="search")
    return (
        f'<figure class="wide scroll" tabindex="0" role="region" aria-label="The search">{chart}</figure>'
        f"<details><summary>The same as a table</summary>{table}</details>"
    )


def _embeddings(one: Inspection, place: int, scales: Scales) -> str:
    if one.word_map is None:
        return ""
    dots = [
        Dot(piece_named(word), float(x), float(y), Look.of(0))
        for word, (x, y) in zip(one.word_map.words, one.word_map.places, strict=True)
    ]
    first, second = one.word_map.shares
    chart = scatter_chart(
        dots,
        identity=f"words-{place}",
        title="Map of tokens",
        about="Tokens by the two directions in which their vectors differ most.",
        x=Axis(f"first direction, {per_cent(first)}", "{:.2f}".format),
        y=Axis(f"second direction, {per_cent(second)}", "{:.2f}".format),
    )
    body = f'<figure class="chart-box">{chart}</figure>'
    for caption, rows in (("Analogies", one.analogies), ("Nearest tokens", one.neighbours)):
        lines = "".join(
            f"<tr><th>{shown(each.word if each in one.analogies else piece_named(each.word))}</th><td>"
            + ", ".join(f"{shown(piece_named(word))} {number(cosine, 2)}" for word, cosine in each.near)
            + "</td></tr>"
            for each in rows
        )
        body += titled_table(caption, ["token", "nearest, with cosine"], lines, kind="near") if lines else ""
    return body


def _positions(one: Inspection, place: int, scales: Scales) -> str:
    if one.positions is None:
        return ""
    about = "How alike two places are (cosine), by their distance."
    chart = scales.figure(
        [Series(one.positions.kind, list(enumerate(one.positions.by_distance)), Look.of(place))],
        f"alike-{place}",
        "Similarity by distance",
        about,
        Axis("distance", "{:.0f}".format),
        Axis("similarity", "{:.2f}".format),
    )
    end = float(np.quantile(np.abs(one.positions.vectors), WITHIN))  # a few entries are far from all others
    data = embedded_json(f"positions-{place}", pack(one.positions.vectors, -end, end))
    return (
        f"<p>{shown(one.positions.kind.capitalize())} positions.</p>{data}"
        + map_box("The position vectors", "Places from top to bottom, entries of the vector from left to right.")
        + chart
    )


VIEWS: dict[str, Body] = {
    "reading": _reading,
    "picture": picture,
    "answer": answer,
    "inside": _inside,
    "attention": _attention,
    "gradients": _gradients,
    "memory": _memory,
    "search": _search,
    "embeddings": _embeddings,
    "positions": _positions,
}
