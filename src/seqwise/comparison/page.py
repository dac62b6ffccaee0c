"""The report of a comparison: one HTML file that needs nothing else, section by section."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files

from ..pages.charts import (
    Axis,
    Dot,
    Look,
    Series,
    interval_strip,
    legend,
    limits_of_curves,
    limits_of_strips,
    line_chart,
    scatter_chart,
    share_bar,
    sign,
)
from ..pages.elements import Notes, Section, document, fact_list, shown, switched, titled_table
from ..pages.quantities import count, duration, milliseconds, number, size, two_figures
from ..pages.text import visible
from ..wording import plural
from .answer_views import by_label, confusion, disagreements, hardest, reliability, tagged_rows
from .label_views import curves_by_labels
from .results import Comparison, Entry
from .table import (
    baseline_in_words,
    columns_of,
    commands_of,
    interval,
    ladder_title,
    missing_score,
    no_recommendation,
    notes_of,
    parts_of_time,
    share_in_words,
)
from .views import forecasts, passage, samples

LIMIT_WORDS = {
    "parameters": "at most {:,.0f} parameters",
    "latency_ms": "at most {:g} ms at a time",
    "megabytes": "at most {:g} MB on disk",
}
INTERVAL = "95 % interval"
"""A title over two columns: strips that can be compared, and the numbers."""
IS_OPEN = ' class="is-open"'
TOLD_OVERRUN = 1.15  # times its share: worth telling


def write_page(comparison: Comparison) -> str:
    """The whole document, as text to be written in UTF-8."""
    metric = replace(comparison.metric, name=visible(comparison.metric.name), short=visible(comparison.metric.short))
    comparison = replace(comparison, metric=metric, scored=visible(comparison.scored))
    looks = looks_of(comparison)
    sections = [
        _results(comparison, looks),
        *([curves_by_labels(comparison, looks)] if comparison.label_curves else []),
        _neighbours(comparison),
        _curves(comparison, looks),
        _price(comparison, looks),
        _positions(comparison, looks),
        samples(comparison, looks),
        forecasts(comparison, looks) if comparison.passage_values else passage(comparison),
        by_label(comparison),
        confusion(comparison),
        reliability(comparison, looks),
        hardest(comparison),
        tagged_rows(comparison),
        disagreements(comparison),
        _settings(comparison, looks),
        _time(comparison),
        _repeat(comparison),
    ]
    return document(
        _title(comparison),
        sections,
        command="seqwise compare",
        version=comparison.seqwise,
        head=_head(comparison),
        opening=_recommendation(comparison),
        style=files(__package__).joinpath("report.css").read_text(encoding="utf-8"),
        script=files(__package__).joinpath("passage.js").read_text(encoding="utf-8"),
    )


def looks_of(comparison: Comparison) -> dict[str, Look]:
    """One look for each entry on all charts; entries of one family share colour and shape."""
    seen: dict[str, int] = {}
    looks = {}
    for entry in comparison.entries:
        variant = seen[entry.family] = seen.get(entry.family, -1) + 1
        looks[entry.name] = Look.of(list(seen).index(entry.family), variant)
    return looks


def _title(comparison: Comparison) -> str:
    num = sum(entry.status != "left out" for entry in comparison.ladder)
    what = f"{num} models compared" if num != 1 else "One model"
    return f"{what} on {visible(str(comparison.data.get('name', 'the data')), limit=100)}"


def _head(comparison: Comparison) -> str:
    """What stands below the title."""
    data, unit = comparison.data, comparison.words.unit
    parts = ", ".join(f"{part} {amount:,}" for part, amount in data.get("parts", {}).items())
    limits = [
        LIMIT_WORDS[name].format(value) if name in LIMIT_WORDS else f"{name} {value:g}"
        for name, value in comparison.limits.items()
    ]
    facts = {
        "Data": str(data.get("description", "")),
        "Parts": parts and f"{parts} {unit}",
        "Measure": f"{comparison.metric.name} on the {comparison.scored} part; {comparison.metric.better} is better",
        "Budget": _budget(comparison),
        "Limits": ", ".join(limits),
    }
    unfinished = sum(entry.test is None and entry.status != "failed" for entry in comparison.entries)
    missing = f"{unfinished} of {len(comparison.entries)} entries have no result yet. " if unfinished else ""
    warning = f"<strong>Not finished.</strong> {missing}What follows is what is known so far."
    status = "" if comparison.is_complete else f'<p class="warning" role="status">{warning}</p>'
    return f"{status}\n{fact_list(facts)}"


def _budget(comparison: Comparison) -> str:
    seeds = f"{comparison.seeds} seeds each" if comparison.seeds > 1 else "one seed each"
    workers = f"{comparison.workers} at a time" if comparison.workers > 1 else "one at a time"
    return (
        f"{two_figures(comparison.minutes)} {plural(comparison.minutes, 'minute')} in all, {seeds}, trained {workers}"
    )


def _recommendation(comparison: Comparison) -> str:
    sentences = comparison.recommendation or [no_recommendation(comparison)]
    first, *others = (shown(sentence) for sentence in sentences)
    rest = f"<p>{' '.join(others)}</p>" if others else ""
    return f"""<section id="recommendation" aria-labelledby="recommendation-head">
<h2 id="recommendation-head" class="kind">Recommendation</h2>
<p class="verdict">{first}</p>{rest}
</section>"""


def _results(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, notes = comparison.metric, Notes()
    body = ""
    if comparison.ladder:
        title = ladder_title(comparison)
        body += f"<h3>{title}</h3><p>{_shares(comparison)}</p>"
        body += _table(comparison, comparison.ladder, looks, notes, caption=title)
    if comparison.final:
        share = share_in_words(comparison.final)
        body += f"<h3>Finals</h3><p>The best once more, from the start, with a larger share: {share} each.</p>"
        body += _table(comparison, comparison.final, looks, notes, caption="Finals")
    lead = (
        f"{metric.better.capitalize()} is better: {escape(metric.name)} on the {escape(comparison.scored)} part. "
        "Models on the <em>front</em> are worth a look: no other is at once better, smaller and faster."
    )
    if sentence := baseline_in_words(comparison):
        lead += f" {shown(sentence)}"
    if comparison.scored == "test":
        lead += " Validation made the ranking; the test part was scored once, at the end."
    else:
        lead += " The data has no test part, so that the part which made the ranking is the one that is scored."
    return Section("results", "The results", lead, body)


def _shares(comparison: Comparison) -> str:
    """What each model of the ladder had, and what they really took."""
    had = [entry for entry in comparison.ladder if entry.status != "left out"]
    if not had:
        return "No model was trained."
    seeds = ", all seeds together" if comparison.seeds > 1 else ""
    sentence = f"Each model had {share_in_words(had)} to be loaded, trained and validated{seeds}"
    longest = max(had, key=lambda entry: entry.training_seconds)
    if longest.training_seconds > TOLD_OVERRUN * 60 * longest.minutes:
        sentence += f"; {shown(longest.name)} took {duration(longest.training_seconds)}, the longest"
    return f"{sentence}."


def _table(
    comparison: Comparison, entries: Sequence[Entry], looks: dict[str, Look], notes: Notes, *, caption: str
) -> str:
    start, digits = len(notes.texts), comparison.metric.digits
    columns = dict(list(columns_of(comparison).items())[1:])  # the first is the value, which gets more room here
    limits = limits_of_strips([(entry.test.low, entry.test.high) for entry in entries if entry.test])
    lines = []
    for rank, entry in enumerate(entries, start=1):
        signs = "".join(notes.add(f"{shown(entry.name)}: {shown(note)}") for note in notes_of(entry))
        is_winner = entry.name == comparison.winner
        badges = '<span class="badge is-winner">winner</span>' if is_winner else ""
        badges += '<span class="badge">front</span>' if entry.is_on_front else ""
        badges += '<span class="badge is-over">over a limit</span>' if entry.over_limit else ""
        badges += '<span class="badge is-over">not trained</span>' if entry.not_trained else ""
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
        place = "" if entry.not_trained else rank
        lines.append(f"{row}<td>{place}</td>{name}{value}{others}</tr>")
    heads = ["rank", "model", comparison.metric.short, INTERVAL, *columns]
    table = titled_table(caption, heads, "".join(lines), kind="results", over_two_columns=[INTERVAL])
    return table + notes.listed(start)


def _neighbours(comparison: Comparison) -> Section:
    metric, digits = comparison.metric, comparison.metric.digits
    limits = limits_of_strips([(gap.low, gap.high) for gap in comparison.gaps], lowest=0.0)
    rows = ""
    for gap in comparison.gaps:
        strip = interval_strip(gap.gain, gap.low, gap.high, limits=limits)
        verdict = "sure" if gap.is_distinguishable else "cannot be told apart"
        ends = f"{number(gap.low, digits)} to {number(gap.high, digits)}"
        if not gap.is_enough:
            verdict = ends = "too little data to tell"
        rows += (
            f"<tr{'' if gap.is_distinguishable else IS_OPEN}>"
            f'<th scope="row">{shown(gap.better)} before {shown(gap.worse)}</th><td class="verdict-cell">{verdict}</td>'
            f'<td>{number(gap.gain, digits)}</td><td class="strips">{strip}</td>'
            f'<td class="interval">{ends}</td></tr>'
        )
    heads = ["neighbours", "the order is", f"gain in {metric.short}", INTERVAL]
    lead = (
        "Each model against the next one in the ranking, on the same segments of data. Where the interval holds zero, "
        "another sample of the data could turn the order around."
    )
    body = ""
    if rows:
        body = titled_table("Neighbours in the ranking", heads, rows, kind="gaps", over_two_columns=[INTERVAL])
    return Section("neighbours", "Which differences are sure", lead, body)


def _curves(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, step = comparison.metric, comparison.words.step
    entries = [entry for entry in comparison.entries if entry.curve]
    values = [[point.value for point in entry.curve if math.isfinite(point.value)] for entry in entries]
    limits = limits_of_curves(values)
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
    body = switched("curves", "Against", panels) if entries else ""
    return Section("curves", "How they learned", lead, body)


def _price(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, step = comparison.metric, comparison.words.step
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
    better = "Further up" if comparison.metric.is_higher_better else "Further down"
    lead = (
        f"{better} is better, further left is cheaper. Rings mark the front; the larger the mark, the more "
        "parameters; upright lines are 95 % intervals."
    )
    present = [panel for panel in panels if panel[2]]
    return Section("price", "What quality costs", lead, switched("price", "Against", present) if present else "")


def _positions(comparison: Comparison, looks: dict[str, Look]) -> Section:
    metric, unit = comparison.metric, comparison.words.unit
    entries = [entry for entry in comparison.entries if entry.by_position]
    series = [
        Series(visible(entry.name), [(place + 1, value) for place, value in entry.by_position], looks[entry.name])
        for entry in entries
    ]
    limits = limits_of_curves([[value for _, value in entry.by_position if math.isfinite(value)] for entry in entries])
    words = comparison.words
    across = Axis(f"{words.position}, in {unit}", lambda value: f"{value:,.0f}", count, is_log=True)
    up = Axis(f"{metric.name}, {comparison.scored}", _to_digits(metric.digits), limits=limits)
    about = f"{metric.name} of each model against the {words.position}."
    title, lead = words.position_title, words.position_lead
    svg = line_chart(series, identity="positions-chart", title="Score by position", about=about, x=across, y=up)
    names = legend((line.name, line.look) for line in series)
    body = f'<figure class="chart-box">{svg}{names}</figure>' if entries else ""
    return Section("positions", title, lead, body)


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
    body = titled_table("Settings", ["model", *known], rows, kind="settings") if rows else ""
    return Section("settings", "How each was set", lead, body)


def _time(comparison: Comparison) -> Section:
    parts = parts_of_time(comparison)
    total = sum(seconds for _, seconds in parts)
    named = [(f"{visible(name)}: {duration(seconds)}", seconds) for name, seconds in parts]
    items = "".join(f'<li class="p{i % 4}">{shown(name)}</li>' for i, (name, _) in enumerate(named))
    lead = (
        f"{duration(total)} on the clock, of {two_figures(comparison.minutes)} {plural(comparison.minutes, 'minute')} "
        "asked for; what is not training is the price of the comparison itself."
    )
    about = "; ".join(name for name, _ in named)
    body = ""
    if parts:
        bar = share_bar(named, identity="time-bar", title="Where the minutes went", about=about)
        body = f'<figure>{bar}<ul class="legend is-shares">{items}</ul></figure>'
    return Section("time", "Where the minutes went", lead, body)


def _repeat(comparison: Comparison) -> Section:
    body = f'<pre tabindex="0"><code>{shown(comparison.command, limit=10_000)}</code></pre>'
    if commands := commands_of(comparison):
        lines = "\n".join(shown(line, limit=10_000) for line in commands)
        body += "<p>Each model is a run folder that stands alone. In the folder of this page:</p>"
        body += f'<pre tabindex="0"><code>{lines}</code></pre>'
    fingerprint = str(comparison.data.get("fingerprint", ""))
    facts = {**comparison.machine, "threads": str(comparison.threads), "data fingerprint": fingerprint}
    body += f"<h3>Measured on</h3>{fact_list(facts)}"
    lead = "The first line does it all again; seconds and speeds depend on the machine, the scores almost not."
    return Section("repeat", "How to repeat it", lead, body)


def _to_digits(digits: int) -> Callable[[float], str]:
    return lambda value: number(value, digits)
