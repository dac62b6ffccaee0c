"""The report of a comparison: one HTML file that needs nothing else.

Everything that comes from data passes through `shown` or `visible` on its way in. Style and script stand inline and are
the only ones the page's own security policy lets through, by their hashes.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from importlib.resources import files
from statistics import median

from ..pages.charts import (
    PLAIN,
    Axis,
    Dot,
    Look,
    Series,
    interval_strip,
    legend,
    line_chart,
    scatter_chart,
    share_bar,
    sign,
)
from ..pages.quantities import count, duration, milliseconds, number, size, two_figures
from ..pages.text import visible
from .results import Comparison, Entry
from .table import (
    STEP_OF,
    columns_of,
    commands_of,
    interval,
    missing_score,
    no_recommendation,
    notes_of,
    parts_of_time,
    share_in_words,
)

LEVELS = (0.25, 0.5, 1, 2, 3, 5, 8)
"""Bits a character at which the colour of the passage changes."""
UNIT_OF = {"text": "characters", "numbers": "steps", "label": "sequences"}
LIMIT_WORDS = {
    "parameters": "at most {:,.0f} parameters",
    "latency_ms": "at most {:g} ms at a time",
    "megabytes": "at most {:g} MB on disk",
}
INTERVAL = "95 % interval"
COLUMNS_OF_AN_INTERVAL, IS_OPEN = ' colspan="2"', ' class="is-open"'
MOST_PIECES = 4_000
MOST_OF_A_SAMPLE = 3_000  # characters


@dataclass(frozen=True)
class Section:
    anchor: str
    title: str
    lead: str
    """One sentence on what to look for."""
    body: str
    """Nothing, where there is nothing to show: the section is then left out."""


def write_page(comparison: Comparison) -> str:
    """The whole document, as text to be written in UTF-8."""
    metric = replace(comparison.metric, name=visible(comparison.metric.name), short=visible(comparison.metric.short))
    comparison = replace(comparison, metric=metric, scored=visible(comparison.scored))
    looks = looks_of(comparison)
    sections = [
        _results(comparison, looks),
        _neighbours(comparison),
        _curves(comparison, looks),
        _price(comparison, looks),
        _positions(comparison, looks),
        _samples(comparison, looks),
        _forecasts(comparison, looks) if comparison.passage_values else _passage(comparison),
        _settings(comparison, looks),
        _time(comparison),
        _repeat(comparison),
    ]
    present = [section for section in sections if section.body]
    links = "".join(f'<li><a href="#{section.anchor}">{section.title}</a></li>' for section in present)
    inside = "\n".join(
        [
            _header(comparison),
            "<main>",
            _recommendation(comparison),
            f'<nav aria-label="Contents"><ul>{links}</ul></nav>',
            *(_section(section) for section in present),
            "</main>",
            f"<footer><p>Written by {shown(f'seqwise {comparison.seqwise}'.rstrip())}; loads nothing.</p></footer>",
        ]
    )
    return _document(_title(comparison), inside)


def shown(text: str, *, newline: str = "↵", most: int = 2_000) -> str:
    """Text from data as HTML: visible, escaped, and unable to turn the text around it."""
    return f"<bdi>{escape(visible(text, newline=newline, most=most))}</bdi>"


def looks_of(comparison: Comparison) -> dict[str, Look]:
    """One look for each entry on all charts; entries of one family share colour and shape."""
    seen: dict[str, int] = {}
    looks = {}
    for entry in comparison.entries:
        variant = seen[entry.family] = seen.get(entry.family, -1) + 1
        looks[entry.name] = Look.of(list(seen).index(entry.family), variant)
    return looks


def _document(title: str, inside: str) -> str:
    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
{inside}
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _section(section: Section) -> str:
    return (
        f'<section id="{section.anchor}" aria-labelledby="{section.anchor}-head">\n'
        f'<h2 id="{section.anchor}-head">{section.title}</h2>\n<p class="lead">{section.lead}</p>\n'
        f"{section.body}\n</section>"
    )


def _title(comparison: Comparison) -> str:
    num = len(comparison.ladder)
    what = f"{num} models compared" if num != 1 else "One model"
    return f"{what} on {visible(str(comparison.data.get('name', 'the data')), most=100)}"


def _header(comparison: Comparison) -> str:
    data, unit = comparison.data, UNIT_OF.get(comparison.task, "steps")
    parts = ", ".join(f"{part} {amount:,}" for part, amount in data.get("parts", {}).items())
    limits = [
        LIMIT_WORDS[name].format(value) if name in LIMIT_WORDS else f"{name} {value:g}"
        for name, value in comparison.limits.items()
    ]
    facts = {
        "Data": str(data.get("description", "")),
        "Parts": parts and f"{parts} {unit}",
        "Measure": f"{comparison.metric.name} on the {comparison.scored} part; lower is better",
        "Budget": _budget(comparison),
        "Limits": ", ".join(limits),
    }
    unfinished = sum(entry.test is None and entry.status != "failed" for entry in comparison.entries)
    missing = f"{unfinished} of {len(comparison.entries)} entries have no result yet. " if unfinished else ""
    warning = f"<strong>Not finished.</strong> {missing}What follows is what is known so far."
    return f"""<header>
<div class="top"><p class="kind">seqwise compare</p>\
<button type="button" id="theme" class="needs-script" aria-pressed="false">Dark</button></div>
<h1><bdi>{escape(_title(comparison))}</bdi></h1>
{"" if comparison.is_complete else f'<p class="warning" role="status">{warning}</p>'}
{_facts(facts)}
</header>"""


def _facts(facts: dict[str, str]) -> str:
    """Terms and what they stand for, without those that nothing is known of."""
    rows = "".join(f"<div><dt>{shown(term)}</dt><dd>{shown(fact)}</dd></div>" for term, fact in facts.items() if fact)
    return f'<dl class="facts">{rows}</dl>'


def _budget(comparison: Comparison) -> str:
    seeds = f"{comparison.seeds} seeds each" if comparison.seeds > 1 else "one seed each"
    workers = f"{comparison.workers} at a time" if comparison.workers > 1 else "one at a time"
    return f"{two_figures(comparison.minutes)} minutes in all, {seeds}, trained {workers}"


def _recommendation(comparison: Comparison) -> str:
    sentences = comparison.recommendation or [no_recommendation(comparison)]
    first, *others = (shown(sentence) for sentence in sentences)
    rest = f"<p>{' '.join(others)}</p>" if others else ""
    return f"""<section id="recommendation" aria-labelledby="recommendation-head">
<h2 id="recommendation-head" class="kind">Recommendation</h2>
<p class="verdict">{first}</p>{rest}
</section>"""


def _results(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, notes = comparison.metric, _Notes()
    body = ""
    if comparison.ladder:
        share = share_in_words(comparison.ladder)
        seeds = ", all seeds together" if comparison.seeds > 1 else ""
        body += f"<h3>Equal shares</h3><p>Each model was trained for {share} at most{seeds}.</p>"
        body += _table(comparison, comparison.ladder, looks, notes, caption="Equal shares")
    if comparison.final:
        share = share_in_words(comparison.final)
        body += f"<h3>Finals</h3><p>The best once more, from the start, with a larger share: {share} each.</p>"
        body += _table(comparison, comparison.final, looks, notes, caption="Finals")
    lead = (
        f"Lower is better: {escape(metric.name)} on the {escape(comparison.scored)} part. Models on "
        "the <em>front</em> are worth a look: no other is at once better, smaller and faster."
    )
    if comparison.scored == "test":
        lead += " Validation made the ranking; the test part was scored once, at the end."
    else:
        lead += " The data has no test part, so that the part which made the ranking is the one that is scored."
    return Section("results", "The results", lead, body)


class _Notes:
    """Footnotes, numbered over all tables of the page."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> str:
        """The sign that points to it."""
        self.texts.append(text)
        place = len(self.texts)
        return f'<sup><a href="#note-{place}" aria-label="Note {place}">{place}</a></sup>'

    def listed(self, start: int) -> str:
        """Those behind the first `start`."""
        items = "".join(
            f'<li id="note-{place}">{text}</li>' for place, text in enumerate(self.texts[start:], start=start + 1)
        )
        return f'<ol class="notes" start="{start + 1}">{items}</ol>' if items else ""


def _table(
    comparison: Comparison, entries: Sequence[Entry], looks: dict[str, Look], notes: _Notes, *, caption: str
) -> str:
    start, digits = len(notes.texts), comparison.metric.digits
    columns = dict(list(columns_of(comparison).items())[1:])  # the first is the value, which gets more room here
    limits = _strip_limits([(entry.test.low, entry.test.high) for entry in entries if entry.test])
    lines = []
    for rank, entry in enumerate(entries, start=1):
        signs = "".join(notes.add(f"{shown(entry.name)}: {shown(note)}") for note in notes_of(entry))
        is_winner = entry.name == comparison.winner
        badges = '<span class="badge is-winner">winner</span>' if is_winner else ""
        badges += '<span class="badge">front</span>' if entry.is_on_front else ""
        badges += '<span class="badge is-over">over a limit</span>' if entry.over_limit else ""
        name = f'<th scope="row">{sign(looks[entry.name])}{shown(entry.name)}{signs}{badges}</th>'
        figure, why = entry.test, missing_score(entry)
        if why or figure is None:
            why = f'<td colspan="{len(columns) + 3}">{shown(why)}</td>'
            lines.append(f'<tr class="is-missing"><td></td>{name}{why}</tr>')
            continue
        strip = interval_strip(figure.value, figure.low, figure.high, limits=limits, look=looks[entry.name])
        value = f"<td><b>{number(figure.value, digits)}</b></td>"
        value += f'<td class="strips">{strip}</td><td class="interval">{interval(figure, digits)}</td>'
        others = "".join(f"<td>{escape(cell)}</td>" for cell in (show(entry) for show in columns.values()))
        row = '<tr class="is-winner">' if is_winner else "<tr>"
        lines.append(f"{row}<td>{rank}</td>{name}{value}{others}</tr>")
    heads = ["rank", "model", comparison.metric.short, INTERVAL, *columns]
    return _titled_table(caption, heads, "".join(lines), kind="results") + notes.listed(start)


def _titled_table(caption: str, heads: Sequence[str], rows: str, *, kind: str) -> str:
    """In a box of its own that scrolls; the title of intervals stands above their strips and their words."""
    head = "".join(
        f'<th scope="col"{COLUMNS_OF_AN_INTERVAL if title == INTERVAL else ""}>{escape(title)}</th>' for title in heads
    )
    table = (
        f'<table class="{kind}"><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">{table}</div>'


def _limits(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    return min(finite), max(finite)


def _strip_limits(ends: Sequence[tuple[float, float]], lowest: float = math.inf) -> tuple[float, float]:
    """For intervals below one another; one that is far off would leave the others no room."""
    finite = [(low, high) for low, high in ends if math.isfinite(low) and math.isfinite(high)] or [(0.0, 0.0)]
    lowest = min(lowest, *(low for low, _ in finite))
    return lowest, _reach([high for _, high in finite], lowest)


def _reach(values: Sequence[float], lowest: float) -> float:
    """The highest of the values that is not far off: four times as far from the lowest as the middle one."""
    far = 4 * (median(values) - lowest)
    return max((value for value in values if value - lowest <= far), default=lowest)


def _neighbours(comparison: Comparison) -> Section:
    metric, digits = comparison.metric, comparison.metric.digits
    limits = _strip_limits([(gap.low, gap.high) for gap in comparison.gaps], lowest=0.0)
    rows = ""
    for gap in comparison.gaps:
        strip = interval_strip(gap.gain, gap.low, gap.high, limits=limits)
        verdict = "sure" if gap.is_distinguishable else "cannot be told apart"
        rows += (
            f"<tr{'' if gap.is_distinguishable else IS_OPEN}>"
            f'<th scope="row">{shown(gap.better)} before {shown(gap.worse)}</th><td class="verdict-cell">{verdict}</td>'
            f'<td>{number(gap.gain, digits)}</td><td class="strips">{strip}</td>'
            f'<td class="interval">{number(gap.low, digits)} to {number(gap.high, digits)}</td></tr>'
        )
    heads = ["neighbours", "the order is", f"gain in {metric.short}", INTERVAL]
    lead = (
        "Each model against the next one in the ranking, on the same stretches of data. Where the interval holds zero, "
        "another sample of the data could turn the order around."
    )
    body = _titled_table("Neighbours in the ranking", heads, rows, kind="gaps") if rows else ""
    return Section("neighbours", "Which differences are sure", lead, body)


def _curves(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, step = comparison.metric, STEP_OF.get(comparison.task, "step")
    entries = [entry for entry in comparison.entries if entry.curve]
    values = [[point.value for point in entry.curve if math.isfinite(point.value)] for entry in entries]
    limits = _limits_of_curves(values)
    up = Axis(f"{metric.name}, validation", _to_digits(metric.digits), limits=limits)
    is_cut = limits is not None and any(value > limits[1] for curve in values for value in curve)
    names = legend((visible(entry.name), looks[entry.name]) for entry in entries)

    def chart(kind: str, across: Axis, place: Callable[[Entry], list[tuple[float, float]]]) -> str:
        series = [Series(visible(entry.name), place(entry), looks[entry.name]) for entry in entries]
        about = f"{metric.name} of each model against {across.label}."
        svg = line_chart(series, identity=f"curves-{kind}", title="Learning curves", about=about, x=across, y=up)
        return svg + names

    clock = Axis("seconds of training", lambda value: f"{value:,.4g}", is_log=True)
    work = Axis(f"{step}s read", count, count, is_log=True)
    panels = [
        ("seconds", "seconds", chart("seconds", clock, lambda entry: [(p.seconds, p.value) for p in entry.curve])),
        ("tokens", f"{step}s", chart("tokens", work, lambda entry: [(p.tokens, p.value) for p in entry.curve])),
    ]
    lead = "A line that still falls at its end would gain from more minutes; a flat one has learned what it can."
    lead += " The first, highest values are above the frame." if is_cut else ""
    body = _switched("curves", "Against", panels) if entries else ""
    return Section("curves", "How they learned", lead, body)


def _limits_of_curves(curves: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """A frame around where the curves end, since they begin so high that all ends would look alike."""
    curves = [curve for curve in curves if curve]
    if not curves:
        return None
    lowest, highest = min(map(min, curves)), max(map(max, curves))
    reach = _reach([curve[-1] for curve in curves], lowest)
    top = min(highest, lowest + 1.6 * (reach - lowest)) if reach > lowest else highest
    air = 0.05 * (top - lowest)
    return (lowest - air, top + air) if air > 0 else None


def _price(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, step = comparison.metric, STEP_OF.get(comparison.task, "step")
    entries = [entry for entry in comparison.entries if not missing_score(entry)]
    up = Axis(f"{metric.name}, {comparison.scored}", _to_digits(metric.digits))

    def chart(kind: str, across: Axis, cost: Callable[[Entry], float | None]) -> str:
        dots = []
        for entry in entries:
            if entry.test and (price := cost(entry)):
                dots.append(
                    Dot(
                        visible(entry.name),
                        price,
                        entry.test.value,
                        looks[entry.name],
                        entry.test.low,
                        entry.test.high,
                        size=entry.parameters,
                        is_marked=entry.is_on_front,
                    )
                )
        about = f"{metric.name} of each model against {across.label}."
        names = legend((dot.name, dot.look) for dot in dots)
        svg = scatter_chart(dots, identity=f"price-{kind}", title="What quality costs", about=about, x=across, y=up)
        return f"{svg}{names}" if dots else ""

    speed = Axis(f"milliseconds per {step}", milliseconds, lambda value: f"{value:g}", is_log=True)
    room = Axis("size on disk", size, size, is_log=True)
    panels = [
        ("speed", f"ms per {step}", chart("speed", speed, lambda entry: entry.ms_per_token)),
        ("size", "bytes on disk", chart("size", room, lambda entry: entry.bytes_on_disk)),
    ]
    lead = (
        "Further down is better, further left is cheaper. Rings mark the front; the larger the mark, the more "
        "parameters; upright lines are 95 % intervals."
    )
    present = [panel for panel in panels if panel[2]]
    return Section("price", "What quality costs", lead, _switched("price", "Against", present) if present else "")


def _positions(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, unit = comparison.metric, UNIT_OF.get(comparison.task, "steps")
    entries = [entry for entry in comparison.entries if entry.by_position]
    series = [
        Series(visible(entry.name), [(place + 1, value) for place, value in entry.by_position], looks[entry.name])
        for entry in entries
    ]
    limits = _limits_of_curves([[value for _, value in entry.by_position if math.isfinite(value)] for entry in entries])
    across = Axis(f"place in the window, in {unit}", lambda value: f"{value:,.0f}", count, is_log=True)
    up = Axis(f"{metric.name}, {comparison.scored}", _to_digits(metric.digits), limits=limits)
    about = f"{metric.name} of each model against the place in a window that is read from its start."
    svg = line_chart(series, identity="positions-chart", title="Score by position", about=about, x=across, y=up)
    lead = (
        "Each model reads windows of the text from nothing. A line that keeps falling uses what stood long before; "
        "where it turns flat, more to look back on no longer helps."
    )
    names = legend((line.name, line.look) for line in series)
    body = f'<figure class="chart-box">{svg}{names}</figure>' if entries else ""
    return Section("positions", "Do they use a long context?", lead, body)


def _samples(comparison: Comparison, looks: dict[str, Look]) -> Section:
    entries = [entry for entry in comparison.entries if entry.samples]
    cards = ""
    for entry in entries:
        texts = "".join(f'<p class="sample" dir="auto">{text}</p>' for text in _marked_samples(entry))
        copied = f"Copied at most {entry.memorised.length:,} characters in a row." if entry.memorised else ""
        cards += (
            f'<article class="card"><h3>{sign(looks[entry.name])}{shown(entry.name)}</h3>'
            f'<p class="aside">{copied}</p>{texts}</article>'
        )
    lead = "What each model writes on its own; the marked stretch stands word for word in the training part."
    held_out = comparison.held_out_match
    if held_out:
        lead += (
            f" Real text that no model has seen shares {held_out.length:,} characters in a row with the training part "
            f"(“{shown(held_out.text, most=200)}”): a model far above that has learned by heart."
        )
    return Section("samples", "What they write", lead, f'<div class="cards">{cards}</div>' if cards else "")


def _marked_samples(entry: Entry) -> list[str]:
    """The samples, with the memorised stretch marked where it is first found."""
    copied, samples = entry.memorised.text if entry.memorised else "", []
    for text in entry.samples:
        before, match, after = text.partition(copied) if copied else (text, "", "")
        samples.append(f"{_sample(before)}<mark>{_sample(match)}</mark>{_sample(after)}" if match else _sample(text))
        copied = "" if match else copied
    return samples


def _sample(text: str) -> str:
    return escape(visible(text, newline="\n", most=MOST_OF_A_SAMPLE))


def _passage(comparison: Comparison) -> Section:
    entries = [entry for entry in comparison.entries if entry.surprise]
    lead = (
        "The same stretch of unseen text as each model reads it: the stronger the colour, the less it expected the "
        "piece. Rest on a piece, or step through them with the arrow keys, to see what it cost."
    )
    if not entries:
        return Section("passage", "Where they are surprised", lead, "")
    entries.sort(key=lambda entry: entry.name != comparison.winner)  # the others stay in their order
    first = entries[0]
    spans = "".join(
        f'<span class="s{_level(piece, bits)}" title="{number(bits, 2)} bits">{escape(_piece(piece))}</span>'
        for piece, bits in _pieces(first)
    )
    options = [(str(place), entry.name) for place, entry in enumerate(entries)]
    scale = "".join(
        f'<li class="s{level}">{limit}</li>' for level, limit in enumerate(["0", *map("{:g}".format, LEVELS)])
    )
    body = f"""{_switch("passage", "Model", options)}
<div class="readout-line"><ol class="scale" aria-label="Bits a character, from">{scale}</ol>\
<p class="aside">bits a character</p>
<p id="readout" class="needs-script" aria-live="polite"></p></div>
<p class="aside" id="passage-about">{escape(_about_passage(first, comparison.passage))}</p>
<div id="passage-text" class="passage" dir="auto" role="group" aria-describedby="passage-about">{spans}</div>
<script type="application/json" id="surprise">{_json(_surprise(entries, comparison.passage))}</script>"""
    return Section("passage", "Where they are surprised", lead, body)


def _surprise(entries: Sequence[Entry], passage: str) -> dict[str, object]:
    """For the switch: each way to cut the passage once, each model's colours and costs beside it."""
    cuts: list[list[str]] = []
    models: list[dict[str, object]] = []
    for entry in entries:
        surprise = _pieces(entry)
        pieces = [_piece(piece) for piece, _ in surprise]
        if pieces not in cuts:
            cuts.append(pieces)
        models.append(
            {
                "cut": cuts.index(pieces),
                "about": _about_passage(entry, passage),
                "levels": "".join(str(_level(piece, bits)) for piece, bits in surprise),
                "bits": [number(bits, 2) for _, bits in surprise],
            }
        )
    return {"cuts": cuts, "models": models}


def _pieces(entry: Entry) -> list[tuple[str, float]]:
    """With the spaces that a tokenizer of words leaves out."""
    has_spaces = entry.tokenizer != "word"
    return [
        (piece if has_spaces or piece.endswith("\n") else f"{piece} ", bits)
        for piece, bits in entry.surprise[:MOST_PIECES]
    ]


def _piece(piece: str) -> str:
    return visible(piece, newline="↵\n", most=200)


def _level(piece: str, bits: float) -> int:
    """By bits a character, so that pieces of any length can be compared."""
    return sum(not bits / max(len(piece), 1) < limit for limit in LEVELS)


def _about_passage(entry: Entry, passage: str) -> str:
    bits = sum(bits for _, bits in entry.surprise) / max(len(passage), 1)
    return f"{visible(entry.name)}: {number(bits, 3)} bits a character over this passage."


def _json(found: object) -> str:
    """As JSON that cannot end the element it stands in: ASCII only, and no bracket of a tag."""
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def _forecasts(comparison: Comparison, looks: dict[str, Look]) -> Section:
    entries = [entry for entry in comparison.entries if entry.forecast]
    values = [math.nan if value is None else value for value in comparison.passage_values]
    came = Series("what came", list(enumerate(values, start=1)), PLAIN)
    low, high = _limits(values)
    span = high - low
    middles = [step[0] for entry in entries for step in entry.forecast if low - span <= step[0] <= high + span]
    lowest, highest = _limits([low, high, *middles])
    limits = (lowest - 0.3 * span, highest + 0.3 * span) if span else None
    panels = []
    for place, entry in enumerate(entries):
        forecast = Series(
            visible(entry.name),
            [(step, middle) for step, (middle, _, _) in enumerate(entry.forecast, start=1)],
            looks[entry.name],
            [(low, high) for _, low, high in entry.forecast],
        )
        svg = line_chart(
            [came, forecast],
            identity=f"forecast-{place}",
            title=f"Forecast of {visible(entry.name)}",
            about="What came, and what the model expected with its interval.",
            x=Axis("steps", lambda value: f"{value:,.0f}"),
            y=Axis("value", lambda value: f"{value:.4g}", limits=limits),
        )
        names = legend([(came.name, came.look), (forecast.name, forecast.look)])
        panels.append((f"model-{place}", entry.name, f"{svg}{names}"))
    lead = (
        "What came should stay inside the band that each model announced, and the narrower the band the better. All "
        "models have the same frame; what leaves it is cut."
    )
    body = _switched("forecast", "Model", panels) if panels else ""
    return Section("forecasts", "What they expected", lead, body)


def _settings(comparison: Comparison, looks: dict[str, Look]) -> Section:
    digits = comparison.metric.digits
    columns: dict[str, Callable[[Entry], str]] = {
        "tokenizer": lambda entry: shown(entry.tokenizer) if entry.tokenizer else "",
        "settings": lambda entry: shown(entry.settings) if entry.settings else "",
        "minutes": lambda entry: two_figures(entry.minutes),
        f"{comparison.metric.short} by seed": lambda entry: ", ".join(number(value, digits) for value in entry.by_seed),
        "run folders": lambda entry: "<br>".join(f"<code>{shown(run)}</code>" for run in entry.runs),
    }
    known = {title: show for title, show in columns.items() if any(map(show, comparison.entries))}
    rows = ""
    for entry in comparison.entries:
        rows += f'<tr><th scope="row">{sign(looks[entry.name])}{shown(entry.name)}</th>'
        rows += "".join(f"<td>{show(entry)}</td>" for show in known.values()) + "</tr>"
    lead = "Sizes and optimiser of each model, as the rules or you chose them."
    body = _titled_table("Settings", ["model", *known], rows, kind="settings") if rows else ""
    return Section("settings", "How each was set", lead, body)


def _time(comparison: Comparison) -> Section:
    parts = parts_of_time(comparison)
    total = sum(seconds for _, seconds in parts)
    named = [(f"{visible(name)}: {duration(seconds)}", seconds) for name, seconds in parts]
    items = "".join(f'<li class="p{i % 4}">{shown(name)}</li>' for i, (name, _) in enumerate(named))
    lead = (
        f"{duration(total)} on the clock, of {two_figures(comparison.minutes)} minutes asked for; what is not training "
        "is the price of the comparison itself."
    )
    about = "; ".join(name for name, _ in named)
    body = ""
    if parts:
        bar = share_bar(named, identity="time-bar", title="Where the minutes went", about=about)
        body = f'<figure>{bar}<ul class="legend is-shares">{items}</ul></figure>'
    return Section("time", "Where the minutes went", lead, body)


def _repeat(comparison: Comparison) -> Section:
    body = f'<pre tabindex="0"><code>{shown(comparison.command, most=10_000)}</code></pre>'
    if commands := commands_of(comparison):
        lines = "\n".join(shown(line, most=10_000) for line in commands)
        body += "<p>Each model is a run folder that stands alone. In the folder of this page:</p>"
        body += f'<pre tabindex="0"><code>{lines}</code></pre>'
    fingerprint = str(comparison.data.get("fingerprint", ""))
    facts = {**comparison.machine, "threads": str(comparison.threads), "data fingerprint": fingerprint}
    body += f"<h3>Measured on</h3>{_facts(facts)}"
    lead = "The first line does it all again; seconds and speeds depend on the machine, the values hardly."
    return Section("repeat", "How to repeat it", lead, body)


def _to_digits(digits: int) -> Callable[[float], str]:
    return lambda value: number(value, digits)


def _switched(identity: str, label: str, panels: Sequence[tuple[str, str, str]]) -> str:
    """(key, name, content): one of them at a time where there is a script, all of them where there is none."""
    boxes = "".join(
        f'<figure class="chart-box" id="{identity}-panel-{key}">'
        f"<figcaption>{shown(name)}</figcaption>{content}</figure>"
        for key, name, content in panels
    )
    options = [(f"{identity}-panel-{key}", name) for key, name, _ in panels]
    return f"{_switch(identity, label, options, controls='panels') if len(panels) > 1 else ''}{boxes}"


def _switch(identity: str, label: str, options: Sequence[tuple[str, str]], *, controls: str = "passage") -> str:
    """Radio buttons: the arrow keys come with them."""
    radios = "".join(
        f'<label><input type="radio" name="{identity}-switch" value="{value}"{" checked" if place == 0 else ""}>'
        f"<span>{shown(name)}</span></label>"
        for place, (value, name) in enumerate(options)
    )
    return f'<fieldset class="switch needs-script" data-{controls}><legend>{label}</legend>{radios}</fieldset>'
