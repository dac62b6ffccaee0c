"""A comparison in rows and words: for the terminal, compare.md and the page."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from html import escape

from ..data.schema import LABEL, LABELS
from ..pages.quantities import UNKNOWN, count, duration, milliseconds, number, per_cent, size, two_figures
from ..pages.text import visible
from ..wording import counted, plural
from .label_table import count_in_words, how_to_read, label_rows, notes_of_points
from .results import Comparison, Entry, Figure, Gap, Metric

UNEVEN = 0.01  # between the share of right answers and macro F1
STATUS_WORDS = {
    "waiting": "not started yet",
    "running": "still running",
    "stopped": "stopped",
    "done": "trained, not scored",
    "failed": "failed",
    "left out": "left out",
}


def interval(figure: Figure, digits: int) -> str:
    if not figure.is_enough:
        return "too little data"
    return f"{number(figure.low, digits)} to {number(figure.high, digits)}"


def table_rows(comparison: Comparison, entries: Sequence[Entry] | None = None) -> list[list[str]]:
    """The titles, then a row for each entry (all, unless some are given), in words that are safe to print.

    An entry without a score shows how it stands instead of figures, and why in a last column that is only there if one
    of the rows needs it; there it also stands why an entry is no candidate.
    """
    columns, entries = columns_of(comparison), comparison.entries if entries is None else entries
    rows = [["model", *columns]]
    for entry in entries:
        cells = [show(entry) for show in columns.values()]
        if missing_score(entry):
            cells = [STATUS_WORDS[entry.status], *[""] * (len(columns) - 1)]
        rows.append([visible(entry.name), *cells])
    reasons = [visible(why_of(entry)) for entry in entries]
    return [[*row, why] for row, why in zip(rows, ["why", *reasons], strict=True)] if any(reasons) else rows


def why_of(entry: Entry) -> str:
    """Why there is no score to show, or why it says little."""
    if missing_score(entry):
        return entry.reason
    return f"not trained: {entry.not_trained}" if entry.not_trained else ""


def missing_score(entry: Entry) -> str:
    """Why there is no score to show, or nothing."""
    if entry.test is not None and entry.status != "failed":
        return ""
    words = STATUS_WORDS[entry.status]
    return f"{words}: {entry.reason}" if entry.reason else words


def columns_of(comparison: Comparison) -> dict[str, Callable[[Entry], str]]:
    """Titles, and what stands below them for an entry with a score; columns that none of them can fill are left out."""
    step, digits = comparison.words.step, comparison.metric.digits

    def value(entry: Entry) -> str:
        figure = entry.test
        return f"{number(figure.value, digits)} ({interval(figure, digits)})" if figure else UNKNOWN

    def other(name: str, show: Callable[[float], str]) -> Callable[[Entry], str]:
        return lambda entry: show(entry.more[name]) if name in entry.more else UNKNOWN

    columns: dict[str, Callable[[Entry], str]] = {
        "BLEU": other("bleu", lambda found: number(found, 2)),
        "exact": other("exact_match", per_cent),
        "perplexity": other("perplexity", lambda found: number(found, 2)),
        "accuracy": other("accuracy", per_cent),
        **({"macro F1": other("macro_f1", per_cent)} if _has_uneven_labels(comparison) else {}),
        "unseen words": other("unseen_accuracy", per_cent),
        "label": other("label_accuracy", per_cent),
        "Pearson": other("pearson", lambda found: number(found, 3)),
        "Spearman": other("spearman", lambda found: number(found, 3)),
        "mean error": other("mae", lambda found: number(found, 3)),
        "coverage": other("coverage", per_cent),
        "parameters": lambda entry: count(entry.parameters),
        "size": lambda entry: size(entry.bytes_on_disk),
        "training": lambda entry: duration(entry.training_seconds),
        f"{step}s/s": lambda entry: count(entry.generation_tokens_per_second or 0),
        f"ms/{step}": lambda entry: milliseconds(entry.ms_per_token or 0),
        "memory": lambda entry: size(entry.peak_bytes),
    }
    scored = [entry for entry in comparison.entries if not missing_score(entry)]
    known = {title: show for title, show in columns.items() if any(show(entry) != UNKNOWN for entry in scored)}
    return {f"{visible(comparison.metric.short)} (95 %)": value, **known}


def _has_uneven_labels(comparison: Comparison) -> bool:
    """Whether macro F1 says something else than the share of right answers."""
    scores = [entry.more for entry in comparison.entries] if comparison.kind in (LABEL, LABELS) else []
    return any(abs(one["macro_f1"] - one.get("accuracy", math.inf)) > UNEVEN for one in scores if "macro_f1" in one)


def no_recommendation(comparison: Comparison) -> str:
    return "No model can be recommended." if comparison.is_complete else "No recommendation yet."


def baseline_in_words(comparison: Comparison) -> str:
    """What one gets without learning, and by a simple model; nothing where that was not measured."""
    found, digits = comparison.baseline, comparison.metric.digits
    if not found:
        return ""
    sentence = f"Without learning, by {found['name']}, one gets {number(found['value'], digits)} on validation"
    if simple := found.get("simple"):
        sentence += f"; {simple['name']} gets {number(simple['value'], digits)}"
    return f"{sentence}."


def ladder_title(comparison: Comparison) -> str:
    curves = comparison.label_curves
    if curves is None:
        return "Equal shares"
    return f"With {count_in_words(curves.counts[-1], curves, comparison.words)}"


def gap_in_words(gap: Gap, metric: Metric) -> str:
    """Whether two neighbours can be told apart."""
    gain, low, high = (number(value, metric.digits) for value in (gap.gain, gap.low, gap.high))
    if not gap.is_enough:
        return f"{gap.better} or {gap.worse}: too little data to tell which is better ({gain} {metric.short} apart)."
    if gap.is_distinguishable:
        return f"{gap.better} is better than {gap.worse} by {gain} {metric.short} ({low} to {high})."
    return (
        f"{gap.better} and {gap.worse} cannot be told apart: {gain} {metric.short}, but anything from {low} to {high} "
        "fits the data."
    )


def share_in_words(entries: Sequence[Entry]) -> str:
    """The time that each of them got: "2.5 minutes", "2.5 to 8 minutes", "12 seconds"."""
    shares = [entry.minutes for entry in entries]
    unit, length = ("minute", 1.0) if max(shares) >= 1 else ("second", 60.0)
    ends = list(dict.fromkeys(two_figures(length * share) for share in (min(shares), max(shares))))
    return " to ".join(ends) + f" {unit}" + ("" if ends == ["1"] else "s")


def parts_of_time(comparison: Comparison) -> list[tuple[str, float]]:
    """Where the time went, in the order of the work, without what took none."""
    return [(name, seconds) for name, seconds in comparison.seconds.items() if 0 < seconds < math.inf]


def commands_of(comparison: Comparison) -> list[str]:
    """What to do next with the best run of each entry; in the folder of the comparison."""
    runs = [shlex.quote(entry.runs[0]) for entry in comparison.entries if entry.runs and not missing_score(entry)]
    return [*map(comparison.words.use.format, runs), f"seqwise evaluate {' '.join(runs)}"] if runs else []


def write_markdown(comparison: Comparison) -> str:
    """compare.md: the page's words and tables, for places that show no page."""
    found, metric = comparison, comparison.metric
    name, scored = str(found.data.get("name", "the data")), found.scored
    num = sum(entry.status != "left out" for entry in found.ladder)
    lines = [f"# {_md(name)}: {counted(num, 'model')} compared", ""]
    if not found.is_complete:
        lines += ["**Not finished:** what follows is what is known so far.", ""]
    lines += [_md(" ".join(found.recommendation) or no_recommendation(found)), ""]
    lines += [_md(sentence), ""] if (sentence := baseline_in_words(found)) else []
    lines += _by_labels(found)
    tables = [(ladder_title(found), found.ladder), ("Finals", found.final)]
    for title, entries in tables:
        if entries:
            had = [entry for entry in entries if entry.status != "left out"]
            share = f"{share_in_words(had)} each; " if had else ""
            share += f"{metric.name} on the {scored} part, {metric.better} is better."
            lines += [f"## {title}", "", _md(share), "", *_md_table(table_rows(found, entries)), ""]
            lines += [f"- {_md(f'{entry.name}: {note}')}" for entry in entries for note in notes_of(entry)]
            lines += [""] if lines[-1] else []
    if found.gaps:
        lines += ["## Which differences are sure", ""]
        lines += [*(f"- {_md(gap_in_words(gap, metric))}" for gap in found.gaps), ""]
    if parts := parts_of_time(found):
        total = duration(sum(seconds for _, seconds in parts))
        spent = ", ".join(f"{part} {duration(seconds)}" for part, seconds in parts)
        lines += [
            "## Where the minutes went",
            "",
            _md(f"{spent}; {total} in all, of {two_figures(found.minutes)} {plural(found.minutes, 'minute')}."),
            "",
        ]
    lines += ["## How to repeat it", "", f"    {visible(found.command, limit=10_000)}", ""]
    if commands := commands_of(found):
        lines += ["Each model is a run folder; in the folder of this file:", ""]
        lines += [*(f"    {visible(command, limit=10_000)}" for command in commands), ""]
    return "\n".join(lines)


def _by_labels(comparison: Comparison) -> list[str]:
    """Scores against the number of labels, where that was asked for."""
    curves, words = comparison.label_curves, comparison.words
    if curves is None:
        return []
    notes = [f"- {_md(note)}" for note in notes_of_points(curves)]
    head = [f"## By number of {words.labelled}s", "", _md(how_to_read(curves)), ""]
    return [*head, *_md_table(label_rows(curves, words)), "", *notes, *([""] if notes else [])]


def write_html(comparison: Comparison) -> str:
    """The recommendation and the table, for a notebook."""
    titles, *rows = [[f"<bdi>{escape(cell)}</bdi>" for cell in row] for row in table_rows(comparison)]
    head = "".join(f'<th scope="col">{cell}</th>' for cell in titles)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for name, *cells in rows
    )
    sentences = visible(" ".join(comparison.recommendation) or no_recommendation(comparison))
    return f"<p><bdi>{escape(sentences)}</bdi></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def notes_of(entry: Entry) -> list[str]:
    """What a reader of its row should know."""
    stopped = [f"stopped: {entry.reason}"] if entry.status == "stopped" and entry.test and entry.reason else []
    not_trained = [f"not trained: {entry.not_trained}"] if entry.not_trained else []
    return [*not_trained, *stopped, *entry.notes]


def _md(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~&])", r"\\\1", visible(text, limit=10_000))


def _md_table(rows: list[list[str]]) -> list[str]:
    titles, *others = [[_md(cell) for cell in row] for row in rows]
    rules = ["---", *["---:"] * (len(titles) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (titles, rules, *others)]
