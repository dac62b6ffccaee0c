"""Labels, numbers and tags in the report: which are confused, whether probabilities can be trusted, what is hard for
all models, and where the two best disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from statistics import mean

from ..data.schema import NUMBER, TAG
from ..pages.charts import PLAIN, Axis, Look, Series, legend, line_chart
from ..pages.elements import Section, shown, switched, titled_table
from ..pages.quantities import number, per_cent
from ..pages.text import visible
from ..wording import counted
from .results import Comparison, Entry
from .table import missing_score

SHARES = (0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.5)
"""Of a label's rows, at which the colour of a wrong answer changes."""
MIN_ANSWERS = 10  # of about the same probability, for the share of right ones to say something
SHOWN_EXAMPLES = 12
MAX_LABEL_CHARACTERS = 60
STRAIGHT = replace(PLAIN, dash=2)


def by_label(comparison: Comparison) -> Section:
    """F1 of each label, tag or type of entity, model by model."""
    entries = [entry for entry in comparison.entries if entry.by_label]
    counts = {label: num for entry in entries for label, _, _, _, num in entry.by_label}
    figures = [{label: f1 for label, _, _, f1, _ in entry.by_label} for entry in entries]
    rows = ""
    for label in sorted(counts, key=lambda label: -counts[label]):
        best = max(found.get(label, 0.0) for found in figures)
        cells = "".join(_f1_cell(found.get(label), best) for found in figures)
        rows += f'<tr><th scope="row">{_label(label)}</th><td>{counts[label]:,}</td>{cells}</tr>'
    what = "tag or type of entity" if comparison.kind == TAG else "label"
    lead = (
        f"F1 of each {what} in per cent, the most frequent first, the best in bold. What is rare is judged by few: "
        "there, a few points apart mean little."
    )
    heads = ["", "count", *(visible(entry.name) for entry in entries)]
    body = titled_table("F1 by label", heads, rows, kind="by-label") if rows else ""
    return Section("by-label", "Label by label" if comparison.kind != TAG else "Tag by tag", lead, body)


def _f1_cell(f1: float | None, best: float) -> str:
    if f1 is None:
        return "<td></td>"
    text = number(100 * f1, 1)
    return f"<td><b>{text}</b></td>" if f1 == best > 0 else f"<td>{text}</td>"


def confusion(comparison: Comparison) -> Section:
    """Of a few labels all of them against all, else those that are confused most often."""
    panels = []
    for place, entry in enumerate(entry for entry in comparison.entries if entry.confusion or entry.confused):
        content = _matrix(entry) if entry.confusion else _confused(entry)
        panels.append((f"model-{place}", entry.name, content))
    lead = (
        "Each row is what was wanted, each column what the model said. Right answers stand in bold; the stronger the "
        "colour of the others, the larger their share of the row."
    )
    if not any(entry.confusion for entry in comparison.entries):
        lead = "Which label was answered by which other one, the most frequent mistakes first."
    body = switched("confusion", "Model", panels) if panels else ""
    return Section("confusion", "What they confuse", lead, body)


def _matrix(entry: Entry) -> str:
    labels, rows = entry.confusion["labels"], ""
    for place, counts in enumerate(entry.confusion["counts"]):
        total = max(1, sum(counts))
        cells = "".join(
            f"<td><b>{num:,}</b></td>" if column == place else f'<td class="s{_level(num / total)}">{num:,}</td>'
            for column, num in enumerate(counts)
        )
        name = f'<th scope="row">{_label(labels[place])}</th>'
        rows += f"<tr>{name}{cells}<td>{per_cent(counts[place] / total) if sum(counts) else ''}</td></tr>"
    heads = ["wanted", *(visible(label, limit=MAX_LABEL_CHARACTERS) for label in labels), "right"]
    return titled_table("Confusion matrix", heads, rows, kind="confusion")


def _confused(entry: Entry) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_label(wanted)}</th><td class="is-text">{_label(said)}</td><td>{num:,}</td></tr>'
        for wanted, said, num in entry.confused
    )
    heads = ["wanted", "answered", "times"]
    return titled_table("Most frequent mistakes", heads, rows, kind="confusion")


def _level(share: float) -> int:
    return sum(share >= limit for limit in SHARES)


def _label(label: str) -> str:
    return shown(label or "entity", limit=MAX_LABEL_CHARACTERS)


def reliability(comparison: Comparison, looks: dict[str, Look]) -> Section:
    """Confidence against the share of right answers."""
    series = []
    for entry in comparison.entries:
        points = [(confidence, share) for confidence, share, num in entry.reliability if num >= MIN_ANSWERS]
        if points:
            series.append(Series(visible(entry.name), points, looks[entry.name]))
    lowest = min((end for line in series for point in line.points for end in point), default=0.0)
    start = math.floor(10 * lowest) / 10
    honest = Series("as it says", [(start, start), (1.0, 1.0)], STRAIGHT)
    svg = line_chart(
        [honest, *series],
        identity="reliability-chart",
        title="Reliability",
        about="The share of right answers of each model against the probability that it gave them.",
        x=Axis("probability of the answer, %", _tenths, _whole, limits=(start, 1.0)),
        y=Axis("share of right answers, %", _tenths, _whole, limits=(start, 1.0)),
    )
    errors = [
        f"{shown(entry.name)} {per_cent(entry.more['calibration_error'])}"
        for entry in comparison.entries
        if entry.reliability and "calibration_error" in entry.more
    ]
    lead = (
        "A model whose probabilities can be trusted lies on the straight line: of the answers it finds 80 % probable, "
        "80 % are right. Below the line it is too sure of itself, above it too modest."
    )
    told = f'<p class="aside">Distance from the line in the mean, over all answers: {", ".join(errors)}.</p>'
    names = legend((line.name, line.look) for line in [honest, *series])
    body = f'<figure class="chart-box">{svg}{names}</figure>{told if errors else ""}' if series else ""
    return Section("reliability", "Can their probabilities be trusted?", lead, body)


def _tenths(share: float) -> str:
    return number(100 * share, 1)


def _whole(share: float) -> str:
    return number(100 * share, 0)


def hardest(comparison: Comparison) -> Section:
    """Examples whose answer is least probable in the mean over all models."""
    entries = candidates(comparison)
    answers = [_by_row(entry) for entry in entries]
    found = []
    for row, text, wanted in comparison.examples:
        said = [one[row] for one in answers if row in one]
        if said:
            found.append((mean(right for _, _, right in said), row, text, wanted))
    found.sort(key=lambda one: one[0])
    is_number, rows = comparison.kind == NUMBER, ""
    for value, row, text, wanted in found[:SHOWN_EXAMPLES]:
        by_answer: dict[str, list[str]] = {}
        for entry, one in zip(entries, answers, strict=True):
            if row in one:
                answer, sure, _ = one[row]
                by_answer.setdefault(answer, []).append(visible(entry.name) + (f" {per_cent(sure)}" if sure else ""))
        lines = "".join(
            f"<li>{_answer(answer, wanted)} <small>{escape(', '.join(names))}</small></li>"
            for answer, names in by_answer.items()
        )
        mean_value = number(-value, 3) if is_number else per_cent(value)
        rows += (
            f'<tr><td class="is-text">{shown(text)}</td><td class="is-answer">{_label(wanted)}</td>'
            f'<td class="is-answer"><ul>{lines}</ul></td><td>{mean_value}</td></tr>'
        )
    hard = "from which the models are furthest" if is_number else "that the models find least probable"
    lead = (
        f"Of {counted(len(found), 'row')} of the {escape(comparison.scored)} part, those whose right answer is one "
        f"{hard}, in the mean. Look whether what was wanted is right at all: rows with a wrong answer come first here."
    )
    heads = ["text", "wanted", "answers", "mean error" if is_number else "mean probability of what was wanted"]
    body = titled_table("Hardest examples", heads, rows, kind="examples") if rows else ""
    return Section("hardest", "What is hard for all", lead, body)


def disagreements(comparison: Comparison) -> Section:
    """Examples to which the two best models give different answers, those first of which both are sure."""
    title = "Where the two best disagree"
    pair = two_best(comparison)
    if pair is None or not comparison.examples:
        return Section("disagreements", title, "", "")
    first, second = (_by_row(entry) for entry in pair)
    is_number, found, right = comparison.kind == NUMBER, [], [0, 0]
    for row, text, wanted in comparison.examples:
        if row in first and row in second and first[row][0] != second[row][0]:
            one, other = first[row], second[row]
            right[0] += one[0] == wanted
            right[1] += other[0] == wanted
            apart = abs(one[2] - other[2]) if is_number else min(one[1], other[1])
            found.append((apart, text, wanted, one, other))
    found.sort(key=lambda one: -one[0])
    rows = "".join(
        f'<tr><td class="is-text">{shown(text)}</td><td class="is-answer">{_label(wanted)}</td>'
        f"{_said(one, wanted)}{_said(other, wanted)}</tr>"
        for _, text, wanted, one, other in found[:SHOWN_EXAMPLES]
    )
    names = [shown(entry.name) for entry in pair]
    rows_read = sum(row in first and row in second for row, _, _ in comparison.examples)
    told = f"Of {counted(rows_read, 'row')}, {names[0]} and {names[1]} answer {len(found):,} differently"
    if is_number:
        lead = f"{told}. Those first where one of them is much nearer to what was wanted."
    else:
        lead = f"{told}: {names[0]} is right on {right[0]:,} of them, {names[1]} on {right[1]:,}. Those of which both "
        lead += "are sure stand first. Where each is right on many, both together would do better."
    heads = ["text", "wanted", *(visible(entry.name) for entry in pair)]
    body = titled_table("Disagreements", heads, rows, kind="examples") if rows else ""
    return Section("disagreements", title, lead, body)


def _said(answer: tuple[str, float, float], wanted: str) -> str:
    said, sure, _ = answer
    return f'<td class="is-answer">{_answer(said, wanted)}{f" <small>{per_cent(sure)}</small>" if sure else ""}</td>'


def _answer(said: str, wanted: str) -> str:
    """With a sign where it is right, as colour alone says nothing to some."""
    return f'<span class="is-right">{_label(said)} ✓</span>' if said == wanted else _label(said)


def tagged_rows(comparison: Comparison) -> Section:
    """The rows with most wrong tags, over all models, as each of them tags them."""
    entries = candidates(comparison, "wrong_tags")
    wrong = [dict(entry.wrong_tags) for entry in entries]
    found = [
        (mean(len(one[row]) for one in wrong if row in one), row, words, tags)
        for row, words, tags in comparison.tagged
        if any(row in one for one in wrong)
    ]
    found.sort(key=lambda one: -one[0])
    hard = [one for one in found if one[0] > 0][:SHOWN_EXAMPLES]
    panels = []
    for place, (entry, one) in enumerate(zip(entries, wrong, strict=True)):
        rows = "".join(
            f'<li dir="auto">{_tagged(words, tags, dict(one.get(row, ())))}</li>' for _, row, words, tags in hard
        )
        panels.append((f"model-{place}", entry.name, f'<ol class="tagged">{rows}</ol>'))
    right = counted(sum(value == 0 for value, *_ in found), "row has", "rows have")
    lead = (
        f"Of {counted(len(found), 'row')} of the {escape(comparison.scored)} part, those with most wrong tags in the "
        f"mean over all models; {right} none from any. A marked word has a wrong tag: what the model said, and behind "
        "the arrow what was wanted."
    )
    return Section("tagged", "What is hard for all", lead, switched("tagged", "Model", panels) if hard else "")


def _tagged(words: Sequence[str], tags: Sequence[str], wrong: Mapping[int, str]) -> str:
    parts = []
    for place, (word, wanted) in enumerate(zip(words, tags, strict=False)):
        if place in wrong:
            said = f"<small>{_label(wrong[place])} → {_label(wanted)}</small>"
            parts.append(f"<mark>{shown(word, limit=200)}</mark>{said}")
        else:
            parts.append(shown(word, limit=200))
    return " ".join(parts)


def candidates(comparison: Comparison, field: str = "answers") -> list[Entry]:
    """Models whose answers are worth a look: all that learned something, or all that were scored where none did. Who
    was trained once more, for longer, takes part once."""
    final = {entry.name.removesuffix("-final") for entry in comparison.final if getattr(entry, field)}
    scored = [
        entry
        for entry in (*comparison.final, *comparison.ladder)
        if getattr(entry, field) and not missing_score(entry) and (entry.stage == "final" or entry.name not in final)
    ]
    return [entry for entry in scored if not entry.not_trained] or scored


def two_best(comparison: Comparison) -> tuple[Entry, Entry] | None:
    """By validation, of different families where there are several."""
    ranked = candidates(comparison)
    ranked.sort(key=lambda entry: entry.name != comparison.winner)  # the others stay in their order
    if len(ranked) < 2:
        return None
    first, *others = ranked
    return first, next((entry for entry in others if entry.family != first.family), others[0])


def _by_row(entry: Entry) -> dict[int, tuple[str, float, float]]:
    """What was said, how probable that is, and how probable what was wanted is."""
    return {row: (said, sure, right) for row, said, sure, right in entry.answers}
