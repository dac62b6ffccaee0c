"""Each model at work, to be looked at: what it writes, where a text surprises it, what it expected of a series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..pages.charts import PLAIN, Axis, Look, Series, legend, limits_of, line_chart, sign
from ..pages.elements import Section, embedded_json, shown, switch, switched
from ..pages.quantities import number
from ..pages.text import visible
from ..text.wordpiece import GOES_ON
from ..wording import counted
from .results import Comparison, Entry

LEVELS = (0.25, 0.5, 1, 2, 3, 5, 8)
"""Bits a character at which the colour of the passage changes."""
MAX_PIECES = 4_000
MAX_SAMPLE_CHARACTERS = 3_000


def samples(comparison: Comparison, looks: dict[str, Look]) -> Section:
    entries = [entry for entry in comparison.entries if entry.samples]
    cards = ""
    for entry in entries:
        texts = "".join(f'<p class="sample" dir="auto">{text}</p>' for text in _marked_samples(entry))
        match = entry.memorization
        copied = f"Copied at most {counted(match.length, 'character')} in a row." if match else ""
        cards += (
            f'<article class="card"><h3>{sign(looks[entry.name])}{shown(entry.name)}</h3>'
            f'<p class="aside">{copied}</p>{texts}</article>'
        )
    lead = comparison.words.samples_lead
    held_out = comparison.held_out_match
    if held_out:
        lead += (
            f" Real text that no model has seen shares {counted(held_out.length, 'character')} in a row with the "
            f"training part (“{shown(held_out.text, limit=200)}”): a model far above that memorized it."
        )
    return Section("samples", "What they write", lead, f'<div class="cards">{cards}</div>' if cards else "")


def _marked_samples(entry: Entry) -> list[str]:
    """The samples, with the memorized segment marked where it is first found."""
    copied, samples = entry.memorization.text if entry.memorization else "", []
    for text in entry.samples:
        before, match, after = text.partition(copied) if copied else (text, "", "")
        samples.append(f"{_sample(before)}<mark>{_sample(match)}</mark>{_sample(after)}" if match else _sample(text))
        copied = "" if match else copied
    return samples


def _sample(text: str) -> str:
    return escape(visible(text, newline="\n", limit=MAX_SAMPLE_CHARACTERS))


def passage(comparison: Comparison) -> Section:
    entries = [entry for entry in comparison.entries if entry.surprise]
    lead = (
        "The same segment of held-out text as each model reads it: the stronger the colour, the less it expected the "
        "piece. Hover over a piece, or step through them with the arrow keys, to see what it cost."
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
    body = f"""{switch("passage", "Model", options, controls="passage")}
<div class="readout-line"><ol class="scale" aria-label="Bits a character, from">{scale}</ol>\
<p class="aside">bits a character</p>
<p id="readout" class="needs-script" aria-live="polite"></p></div>
<p class="aside" id="passage-about">{escape(_about_passage(first, comparison.passage))}</p>
<div id="passage-text" class="passage" dir="auto" role="group" aria-describedby="passage-about">{spans}</div>
{embedded_json("surprise", _surprise(entries, comparison.passage))}"""
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
    """With the spaces that a tokenizer of words, or of pieces of words, leaves out."""
    if entry.tokenizer == "wordpiece":
        shown = entry.surprise[:MAX_PIECES]
        goes_on = [*(piece.startswith(GOES_ON) for piece, _ in shown[1:]), False]
        return [
            (piece.removeprefix(GOES_ON) + ("" if within or piece == "\n" else " "), bits)
            for (piece, bits), within in zip(shown, goes_on, strict=True)
        ]
    has_spaces = entry.tokenizer != "word"
    return [
        (piece if has_spaces or piece.endswith("\n") else f"{piece} ", bits)
        for piece, bits in entry.surprise[:MAX_PIECES]
    ]


def _piece(piece: str) -> str:
    return visible(piece, newline="↵\n", limit=200)


def _level(piece: str, bits: float) -> int:
    """By bits a character, so that pieces of any length can be compared."""
    return sum(not bits / max(len(piece), 1) < limit for limit in LEVELS)


def _about_passage(entry: Entry, passage: str) -> str:
    bits = sum(bits for _, bits in entry.surprise) / max(len(passage), 1)
    return f"{visible(entry.name)}: {number(bits, 3)} bits a character over this passage."


def forecasts(comparison: Comparison, looks: dict[str, Look]) -> Section:
    entries = [entry for entry in comparison.entries if entry.forecast]
    values = [math.nan if value is None else value for value in comparison.passage_values]
    came = Series("what came", list(enumerate(values, start=1)), PLAIN)
    low, high = limits_of(values)
    span = high - low
    middles = [step[0] for entry in entries for step in entry.forecast if low - span <= step[0] <= high + span]
    lowest, highest = limits_of([low, high, *middles])
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
    body = switched("forecast", "Model", panels) if panels else ""
    return Section("forecasts", "What they expected", lead, body)
