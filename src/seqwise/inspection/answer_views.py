"""The view of what was answered to a text, as HTML: the answer and what moved it, and the tags of words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ..layers.contextual import LayerWeights
from ..pages.charts import Axis, Look, Series
from ..pages.elements import shown, titled_table
from ..pages.quantities import number, per_cent
from ..pages.text import visible
from .evidence import GRAMS, Attribution, Evidence, MovedPhrase
from .inspect import Inspection
from .page_data import piece_shown, told_score
from .page_parts import map_box, strip_text
from .scales import Scales
from .span_views import answering
from .tagging import Tagging, Transitions

MAX_MOVES = 6  # transitions in a table, of those with the highest and the lowest score
MIN_SPAN = 1.0  # nats from the lowest to the highest log-odds of a chart: what is less is hardly moved
CERTAIN = 1e-9  # beyond, probabilities are not told apart
MIN_SHOWN = 0.005  # nats: what is smaller is shown as nothing

BEGINS = ' class="begins-text"'


def answer(one: Inspection, place: int, scales: Scales) -> str:
    body = "" if one.tagging is None else _tagging(one.tagging)
    body += "" if one.answering is None else answering(one.answering)
    if one.evidence is not None:
        body += "" if one.tagging is None else f"<h3>The {escape(one.evidence.target)} of the row</h3>"
        body += _evidence(one, one.evidence, place, scales)
    return body if one.layer_weights is None else body + _layer_weights(one.layer_weights)


# -- what moved it -----------------------------------------------------------------------------------------------------


def _evidence(one: Inspection, found: Evidence, place: int, scales: Scales) -> str:
    methods = "".join(_method(found, each, at) for at, each in enumerate(found.attributions))
    return (
        _answers(one, found, is_main=one.tagging is None)
        + '<div class="controls needs-script" data-part="controls"></div>'
        + f'<p class="aside" data-part="score">{escape(told_score(found, 0))}</p>'
        + f'<div class="methods">{methods}</div>'
        + (_pooling(one, found.pooling) if found.pooling is not None else "")
        + (_grams(found) if found.grams else "")
        + (_moved(found, found.moved, place, scales) if found.moved is not None else "")
    )


def _answers(one: Inspection, found: Evidence, *, is_main: bool) -> str:
    """With a bar each; and what was wanted, where that is known."""
    said, told = one.reading.answer if is_main else [], ""
    if is_main:
        told = f"Answered: {shown(' | '.join(said) or 'none of the labels')}."
        if one.reading.wanted is not None:
            wanted = shown(" | ".join(one.reading.wanted) or "none of the labels")
            told += f" Wanted: {wanted}, which cost {number(one.reading.bits[-1], 2)} bits."
    told = f"<p>{told}</p>" if told else ""
    if not found.probabilities:
        return told
    ranked = sorted(zip(found.answers, found.probabilities, strict=True), key=lambda pair: -pair[1])
    return told + _bars(dict(ranked), bold=said)


def _bars(shares: Mapping[str, float], *, bold: Sequence[str] = ()) -> str:
    """Names with a bar each, in this order."""
    bars = "".join(
        f"<dt{' class=is-answer' if name in bold else ''}>{shown(name, limit=60)}</dt>"
        f'<dd><meter max="1" value="{share:.4f}"></meter></dd><dd>{per_cent(share)}</dd>'
        for name, share in shares.items()
    )
    return f'<dl class="answers">{bars}</dl>'


def _layer_weights(found: LayerWeights) -> str:
    return (
        '<figure class="is-whole"><figcaption><b>Layers of the features</b>: the learned weight of each layer of '
        "the language model in what is read beside each word, the lowest first; the same for every text. The mix is "
        f"multiplied by {number(found.scale, 2)}.</figcaption>{_bars(found.shares)}</figure>"
    )


def _method(found: Evidence, each: Attribution, at: int) -> str:
    values = each.values[0]
    spans = "".join(
        f'<span data-below="{_signed(value)}"{BEGINS if begins else ""}>{escape(piece_shown(word))}</span>'
        for word, value, begins in zip(found.words, values, found.begins_text, strict=True)
    )
    title, unit = each.method.capitalize(), "" if at else f" In {found.unit}."
    return (
        f"<figure><figcaption><b>{title}</b>: {escape(each.about)}.{unit}</figcaption>"
        f"{strip_text(f'method-{at}', spans, needs_script=False, has_below=True, label=title)}"
        f'<p class="aside" data-part="sum-{at}">all words together {_signed(values.sum())}</p></figure>'
    )


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + number(abs(value), 2)


def _pooling(one: Inspection, weights: np.ndarray) -> str:
    spans = "".join(
        f'<span data-below="{per_cent(share)}">{escape(piece_shown(piece.strip() or piece))}</span>'
        for piece, share in zip(one.reading.pieces, weights, strict=True)
    )
    return (
        '<figure class="is-whole"><figcaption><b>Attention pooling</b>: how much of what the answer is read from comes '
        "from each token; a large share need not speak for the answer.</figcaption>"
        f"{strip_text('pooling', spans, needs_script=False, has_below=True, label='Attention pooling')}</figure>"
    )


def _grams(found: Evidence) -> str:
    """A table for each answer; the script shows that of the chosen one."""
    body = ""
    for place, name in enumerate(found.answers):
        ranked = [gram for gram in found.grams if abs(gram.parts[place]) >= MIN_SHOWN]
        ranked.sort(key=lambda gram: -gram.parts[place])
        rows = "".join(
            f"<tr><th>{shown(gram.text, limit=120)}</th><td>{_signed(gram.parts[place])}</td></tr>" for gram in ranked
        )
        caption = f"{GRAMS.capitalize()} for and against {escape(visible(name, limit=60))}"
        table = titled_table(caption, ["n-gram", "nats"], rows, kind="grams") if rows else ""
        body += f'<div data-answer="{place}"{" hidden" if place else ""}>{table}</div>'
    return body


def _moved(found: Evidence, moved: MovedPhrase, place: int, scales: Scales) -> str:
    """A phrase at other places: heights are log-odds, told as probabilities, or numbers."""
    is_number, counts = not found.probabilities, "; the end of the first text counts as one"
    height = float if is_number else _log_odds
    ends = [moved.places[0], moved.places[-1]]
    points = [(at, height(value)) for at, value in zip(moved.places, moved.values, strict=True)]
    lines = [
        Series("at this place", points, Look.of(place)),
        Series("without it", [(end, height(moved.without)) for end in ends], Look.of(place, 1)),
    ]
    if moved.stood_at is not None:
        lines.append(Series("as given", [(moved.stood_at, height(moved.as_given))], Look.of(place + 2)))
    phrase = visible(moved.phrase, limit=60)
    what = "the number" if is_number else f"the probability of {visible(moved.answer, limit=40)}"
    return f"<h3>{shown(phrase)}, moved through the text</h3>" + scales.figure(
        lines,
        f"moved-{place}",
        f"{phrase}, moved",
        f"How {what} changes with the place of “{phrase}”, by how many words stand before it"
        f"{counts if any(found.begins_text) else ''}.",
        Axis("words before it", "{:.0f}".format),
        Axis("number") if is_number else Axis("probability", _as_probability, _as_probability),
        least=0.0 if is_number else MIN_SPAN,
    )


def _log_odds(probability: float) -> float:
    kept = min(max(probability, CERTAIN), 1 - CERTAIN)
    return math.log(kept / (1 - kept))


def _as_probability(log_odds: float) -> str:
    """ "98.2 %", with more digits near the ends."""
    share = 1 / (1 + math.exp(-log_odds))
    digits = 1 if 0.01 < share < 0.99 else 2 if 0.001 < share < 0.999 else 4
    return f"{number(100 * share, digits)} %"


# -- tags --------------------------------------------------------------------------------------------------------------


def _tagging(found: Tagging) -> str:
    spans = "".join(
        f'<span data-below="{escape(visible(word.tag))}&#10;{per_cent(word.probability)}">'
        f"{escape(piece_shown(word.word))}</span>"
        for word in found.words
    )
    known = [word for word in found.words if word.wanted is not None]
    right = sum(word.wanted == word.tag for word in known)
    told = (
        f'<p class="aside">{right:,} of {len(known):,} tags are right; wrong ones are underlined.</p>' if known else ""
    )
    rests = ""
    if found.rests_on is not None:
        rests = (
            '<figure class="needs-script is-whole"><figcaption><b>What it rests on</b>: what the log-odds of the '
            'chosen tag (<output data-part="rests-on"></output>) lose, in nats, where a word is hidden.</figcaption>'
            f"{strip_text('rests', has_below=True, label='What the chosen tag rests on')}</figure>"
        )
    tagged = strip_text("tagged", spans, needs_script=False, has_below=True, label="Words and tags")
    return (
        '<div class="controls needs-script" data-part="tag-controls"></div>'
        f'{told}<figure class="is-whole">{tagged}</figure>'
        f'<div class="card needs-script" data-part="tag-card" aria-live="polite"></div>{rests}'
        + (_transitions(found.transitions) if found.transitions is not None else "")
    )


def _transitions(moves: Transitions) -> str:
    drawn = map_box(
        "What the CRF adds where one tag follows another; the strongest are in the table",
        "Rows are followed by columns: blue where the CRF has learned to expect it, red where not, grey where the "
        "scheme rules it out.",
        kind="map is-square has-long-names",
    )
    rows = "".join(
        f"<tr><th>{shown(moves.tags[row])}</th><td>{shown(moves.tags[column])}</td>"
        f"<td>{_signed(moves.scores[row, column])}</td></tr>"
        for row, column in _strongest(moves.scores)
    )
    table = titled_table("Strongest transitions", ["tag", "followed by", "nats"], rows, kind="moves")
    pointed = '<p class="aside needs-script"><output data-part="transition"></output></p>'
    return f"<h3>Which tag follows which</h3>{drawn}{pointed}{table}"


def _strongest(scores: np.ndarray) -> list[tuple[int, int]]:
    """Places of the highest and of the lowest scores."""
    order = np.argsort(-scores, axis=None, kind="stable")
    order = order[np.isfinite(scores.flat[order])]
    ends = dict.fromkeys([*order[:MAX_MOVES].tolist(), *order[-MAX_MOVES:].tolist()])
    return [divmod(place, scores.shape[1]) for place in ends]
