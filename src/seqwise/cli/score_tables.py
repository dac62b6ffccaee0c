"""Scores as lines of text: runs side by side, one run in more detail, and neighbours compared in pairs.

SCORE_TABLES is the table of how each kind of score is shown; a score of another kind is told by its headline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..evaluation.answers import LabelScore, LabelSetScore, NumberScore
from ..evaluation.entities import TagScore
from ..evaluation.labels import Counts, by_count
from ..evaluation.likelihood import Score, unknown_in_words
from ..evaluation.segments import Metric, Segments, compare_segments, same_data
from ..evaluation.spans import SpanScore
from ..wording import counted
from .tables import columns

MAX_CONFUSED = 12  # labels whose confusion matrix fits a line
MAX_ROWS = 30  # of a table by label; --json has all
MAX_PAIRS = 10  # of labels that are often confused
MAX_NAME = 40  # characters of a label in a table
UNKNOWN = "-"

Columns = Mapping[str, Callable[[Any], str | None]]
"""Titles, and what stands below them for a score; None where it is not known."""


def scores_shown(scores: dict[str, Any]) -> Iterator[str]:
    """Scores of one kind, by the name of the run: side by side where there is a table for it, else run by run."""
    table = SCORE_TABLES.get(type(next(iter(scores.values()))))
    yield from plain_scores(scores) if table is None else (*table(scores), *signatures(scores))
    yield from comparisons(scores)


def signatures(scores: dict[str, Any]) -> Iterator[str]:
    return (f"{name}: {score.signature}" for name, score in scores.items())


def side_by_side(scores: dict[str, Any], titles: Columns) -> Iterator[str]:
    """A row for each run; columns that none of them can fill are left out."""
    cells = {title: [show(score) for score in scores.values()] for title, show in titles.items()}
    known = {title: column for title, column in cells.items() if any(cell is not None for cell in column)}
    rows = [["run", *known]]
    rows += [[name, *(column[place] or UNKNOWN for column in known.values())] for place, name in enumerate(scores)]
    yield from columns(rows)


def _number(name: str, digits: int) -> Callable[[Any], str | None]:
    """Of a score, by the name of its property."""

    def show(score: Any) -> str | None:
        found = getattr(score, name)
        return None if found is None else f"{found:.{digits}f}"

    return show


def _per_cent(name: str) -> Callable[[Any], str | None]:
    def show(score: Any) -> str | None:
        found = getattr(score, name)
        return None if found is None else f"{100 * found:.2f} %"

    return show


def _interval(name: str, *, digits: int, times: float = 1.0) -> Callable[[Any], str]:
    def show(score: Any) -> str:
        low, high = getattr(score, name)
        if not score.segments.is_enough:
            return "too little data"
        return f"{times * low:.{digits}f} to {times * high:.{digits}f}"

    return show


OF_TEXT: Columns = {
    "bits/char": _number("bits_per_char", 4),
    "95 % interval": _interval("bits_interval", digits=4),
    "nats/token": _number("nats_per_token", 4),
    "perplexity": _number("perplexity", 3),
    "tokens": lambda score: f"{score.tokens:,}",
}
OF_LABELS: Columns = {
    "right": _per_cent("accuracy"),
    "95 % interval": _interval("interval", digits=2, times=100),
    "F1 of yes": _per_cent("f1"),
    "macro F1": _per_cent("macro_f1"),
    "Matthews": _number("matthews", 3),
    "AUC": _number("auc", 4),
    "calibration error": _per_cent("calibration_error"),
    "nats/answer": _number("nats_per_answer", 4),
    "answers": lambda score: f"{len(score.wanted):,}",
}
OF_LABEL_SETS: Columns = {
    "F1": _per_cent("f1"),
    "95 % interval": _interval("interval", digits=2, times=100),
    "macro F1": _per_cent("macro_f1"),
    "rows right": _per_cent("exact_match"),
    "nats/row": _number("nats_per_answer", 4),
    "rows": lambda score: f"{len(score.wanted):,}",
}
OF_NUMBERS: Columns = {
    "squared error": _number("mean_squared_error", 5),
    "95 % interval": _interval("interval", digits=5),
    "Pearson": _number("pearson", 4),
    "Spearman": _number("spearman", 4),
    "nats/answer": _number("nats_per_answer", 4),
    "answers": lambda score: f"{len(score.wanted):,}",
}
OF_ENTITIES: Columns = {
    "F1": _per_cent("f1"),
    "95 % interval": _interval("interval", digits=2, times=100),
    "precision": lambda score: f"{100 * score.all_types.precision:.2f} %",
    "recall": lambda score: f"{100 * score.all_types.recall:.2f} %",
    "right tags": _per_cent("accuracy"),
    "of unseen words": _per_cent("unseen_accuracy"),
    "nats/word": _number("nats_per_word", 4),
    "entities": lambda score: f"{score.all_types.wanted:,}",
}
OF_TAGS: Columns = {
    "right tags": _per_cent("accuracy"),
    "95 % interval": _interval("interval", digits=2, times=100),
    "of unseen words": _per_cent("unseen_accuracy"),
    "macro F1": _per_cent("macro_f1"),
    "nats/word": _number("nats_per_word", 4),
    "words": lambda score: f"{sum(map(len, score.wanted)):,}",
}
OF_SPANS: Columns = {
    "F1": _per_cent("f1"),
    "95 % interval": _interval("interval", digits=2, times=100),
    "exact match": _per_cent("exact_match"),
    "with an answer": lambda score: _f1_of_those(score, answerable=True),
    "without": lambda score: _f1_of_those(score, answerable=False),
    "nats/answer": _number("nats_per_answer", 4),
    "questions": lambda score: f"{len(score.answers):,}",
}


def _f1_of_those(score: SpanScore, *, answerable: bool) -> str | None:
    found = score.of_those(answerable=answerable) if score.may_lack else None
    return None if found is None else f"{100 * found[1]:.2f} %"


def text_scores(scores: dict[str, Score]) -> Iterator[str]:
    has_unknown = any(score.unknown for score in scores.values())
    yield from side_by_side(scores, {**OF_TEXT, "unknown": _per_cent("unknown_share")} if has_unknown else OF_TEXT)
    for name, score in scores.items():
        if score.unknown:
            yield f"{name}: {unknown_in_words(score)}"


def labels_side_by_side(scores: dict[str, LabelScore]) -> Iterator[str]:
    yield from side_by_side(scores, OF_LABELS)
    for name, score in scores.items():
        if unknown := int((~score.is_known).sum()):
            yield f"{name}: {counted(unknown, 'row')} with a label that training never had, counted as wrong"


def label_scores(scores: dict[str, LabelScore]) -> Iterator[str]:
    yield from labels_side_by_side(scores)
    if len(scores) == 1:
        (score,) = scores.values()
        yield ""
        yield from by_label(score.by_label, "label")
        yield ""
        yield from confusions(score)
        yield ""


def label_set_scores(scores: dict[str, LabelSetScore]) -> Iterator[str]:
    yield from side_by_side(scores, OF_LABEL_SETS)
    if len(scores) == 1:
        (score,) = scores.values()
        yield ""
        yield from by_label(score.by_label, "label")
        yield ""


def number_scores(scores: dict[str, NumberScore]) -> Iterator[str]:
    yield from side_by_side(scores, OF_NUMBERS)


def tag_scores(scores: dict[str, TagScore]) -> Iterator[str]:
    """Runs of one kind of tags; what else they answer for a row is told below."""
    has_entities = any(score.scheme for score in scores.values())
    yield from side_by_side(scores, OF_ENTITIES if has_entities else OF_TAGS)
    for target in dict.fromkeys(target for score in scores.values() for target in score.others):
        yield ""
        others = {f"{name}, {target}": score.others[target] for name, score in scores.items() if target in score.others}
        yield from labels_side_by_side(others)
    if len(scores) == 1:
        (score,) = scores.values()
        yield ""
        yield from by_label(score.by_type, "type" if has_entities else "tag")
        yield ""


def span_scores(scores: dict[str, SpanScore]) -> Iterator[str]:
    yield from side_by_side(scores, OF_SPANS)


def by_label(counts: Mapping[str, Counts], title: str) -> Iterator[str]:
    """Precision, recall and F1 of each, the most frequent first."""
    ordered = by_count(counts)
    rows = [[title, "precision", "recall", "F1", "count"]]
    for name, one in ordered[:MAX_ROWS]:
        shares = [f"{100 * share:.2f} %" for share in (one.precision, one.recall, one.f1)]
        rows.append([_named(name), *shares, f"{one.wanted:,}"])
    yield from columns(rows)
    if len(ordered) > MAX_ROWS:
        yield f"and {counted(len(ordered) - MAX_ROWS, f'rarer {title}')}; --json tells all"


def confusions(score: LabelScore) -> Iterator[str]:
    """Which labels are taken for which: all of a few, else the most frequent confusions."""
    if len(score.names) <= MAX_CONFUSED:
        names = [_named(name) for name in score.names]
        rows = [["label \\ answer", *names]]
        rows += [[name, *map("{:,}".format, row)] for name, row in zip(names, score.confusion.tolist(), strict=True)]
        yield from columns(rows)
        return
    pairs = score.most_confused(MAX_PAIRS)
    if not pairs:
        yield "no label was taken for another"
    for label, answer, num in pairs:
        yield f"{_named(label)} was answered by {_named(answer)} {counted(num, 'time')}"


def _named(label: str) -> str:
    """In one line, and not too long."""
    name = " ".join(label.split()) or "entity"
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def plain_scores(scores: dict[str, Any]) -> Iterator[str]:
    """Run by run."""
    for name, score in scores.items():
        yield f"{name}: {score.headline()}"
        for words, num, bleu in getattr(score, "by_length", ()):
            yield f"{name}: sources of {words} words: BLEU {bleu:.2f} ({counted(num, 'pair')})"
        yield f"{name}: {score.signature}"


SCORE_TABLES: dict[type, Callable[[dict[str, Any]], Iterator[str]]] = {
    Score: text_scores,
    LabelScore: label_scores,
    LabelSetScore: label_set_scores,
    NumberScore: number_scores,
    TagScore: tag_scores,
    SpanScore: span_scores,
}
"""By the kind of score."""


def comparisons(scores: dict[str, Any]) -> Iterator[str]:
    """Neighbours in the ranking, tested in pairs."""
    ranked = sorted(scores, key=lambda name: scores[name].segments.value)
    for better, worse in pairwise(ranked):
        for (metric, first), (_, second) in zip(_comparable(scores[better]), _comparable(scores[worse]), strict=True):
            yield _comparison(better, worse, metric, first, second)


def _comparable(score: Any) -> Sequence[tuple[Metric, Segments]]:
    """By what two models are compared; some tasks have more than one number."""
    return getattr(score, "comparable", [(score.metric, score.segments)])


def _comparison(better: str, worse: str, metric: Metric, first: Segments, second: Segments) -> str:
    if not same_data(first, second):
        return f"{better} and {worse} were scored on different data and cannot be compared"
    difference = compare_segments(first, second)
    if not difference.is_enough:
        return (
            f"{better} or {worse}: too little data to tell which is better "
            f"({difference.gain:.4f} {metric.name} apart on what there is)"
        )
    low, high = difference.interval
    shown = f"{difference.gain:.4f} {metric.name} (paired, 95 %: {low:.4f} to {high:.4f})"
    if difference.is_distinguishable:
        return f"{better} is better than {worse} by {shown}"
    return f"{better} and {worse} are not distinguishable: {shown}"
