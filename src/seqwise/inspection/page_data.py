"""What the page's script reads: names of tokens and places, and the numbers that a view draws.

Numbers travel inside the page as bytes: (value - low) / (high - low) * 255, deflated, in base64. Where attention has
many numbers they take fewer of the 256 levels, to keep the page small; `--json` has all digits.
"""

from __future__ import annotations

import math
import zlib
from base64 import b64encode
from typing import Any

import numpy as np

from ..pages.quantities import number, per_cent
from ..pages.text import visible
from .evidence import Evidence
from .heads import AttentionMap
from .inspect import Inspection
from .tagging import Tagging

MAX_PIECE_CHARACTERS = 40  # of a token
IMPOSSIBLE = "impossible"
GRADIENT = "gradient of the error"
LEVELS = ((4e6, 256), (10e6, 52), (20e6, 16), (math.inf, 6))  # numbers of attention, and the levels they take


def script_data(one: Inspection) -> dict[str, Any]:
    """Of one model, for JSON."""
    reading, maps = one.reading, all_maps(one)
    shown_option = piece_named if reading.is_text and not reading.is_answer else visible
    levels = _levels(sum(each.weights.size for each in maps))
    return {
        "task": one.task,
        "answers": reading.is_answer,
        "pieces": [piece_shown(piece) for piece in reading.pieces],
        "source": [piece_shown(piece) for piece in reading.source],
        "bits": [_cost(bits) for bits in reading.bits],
        "expected": [
            [[shown_option(option.piece), round(np.nan_to_num(option.probability), 4)] for option in options]
            for options in reading.expected
        ],
        "evidence": None if one.evidence is None else _evidence_data(one.evidence),
        "tagging": None if one.tagging is None else _tagging_data(one.tagging),
        "inside": [
            {
                "name": site_name(layer.site, layer.what),
                "what": layer.what,
                "side": layer.side,
                **_packed_by_unit(layer.values),
            }
            for layer in one.over_text
        ],
        "attention": [
            {
                "name": GRADIENT if each.site == GRADIENT else site_name(each.site, each.kind),
                "verb": "sends its error to" if each.site == GRADIENT else "looks at",
                "kind": each.kind,
                **pack(np.sqrt(each.weights), 0.0, 1.0, levels),
            }
            for each in maps
        ],
    }


def _evidence_data(found: Evidence) -> dict[str, Any]:
    return {
        "answers": [visible(answer, limit=MAX_PIECE_CHARACTERS) for answer in found.answers],
        "told": [told_score(found, place) for place in range(len(found.answers))],
        "words": [piece_shown(word) for word in found.words],
        "beginsText": found.begins_text,
        "methods": [
            {
                "name": each.method,
                "values": each.values.round(4).tolist(),
                "elsewhere": [round(value, 4) for value in each.elsewhere],
            }
            for each in found.attributions
        ],
        "pooling": None if found.pooling is None else found.pooling.round(4).tolist(),
    }


def told_score(found: Evidence, place: int) -> str:
    """One of the answers, in a line."""
    if not found.probabilities:
        return ""
    name = visible(found.answers[place], limit=MAX_PIECE_CHARACTERS)
    return f"{name}: {per_cent(found.probabilities[place])}, log-odds {number(found.scores[place], 2)} nats"


def _tagging_data(found: Tagging) -> dict[str, Any]:
    moves = found.transitions
    return {
        "words": [
            {
                "word": piece_shown(word.word),
                "tag": visible(word.tag),
                "kind": visible(word.kind),
                "probability": round(word.probability, 4),
                "options": [[visible(option.piece), round(option.probability, 4)] for option in word.options],
                "wanted": None if word.wanted is None else visible(word.wanted),
                "bits": _cost(word.bits),
            }
            for word in found.words
        ],
        "restsOn": None if found.rests_on is None else found.rests_on.round(3).tolist(),
        "transitions": moves
        and {
            "tags": [visible(tag) for tag in moves.tags],
            "scores": [
                [round(score, 3) if math.isfinite(score) else None for score in row] for row in moves.scores.tolist()
            ],
        },
    }


def _cost(bits: float) -> float | str | None:
    """For JSON, which has no such numbers: none where it is not known, a word where it was impossible."""
    return None if math.isnan(bits) else IMPOSSIBLE if math.isinf(bits) else round(bits, 2)


def _levels(num_values: int) -> int:
    """How finely attention is told."""
    return next(levels for most, levels in LEVELS if num_values <= most)


def all_maps(one: Inspection) -> list[AttentionMap]:
    """Attention, and for pairs the gradient that reaches the source, as shares of each row."""
    maps = list(one.attention)
    if one.source_gradients is not None:
        totals = one.source_gradients.sum(axis=1, keepdims=True)
        shares = one.source_gradients / np.where(totals > 0, totals, 1.0)
        maps.append(AttentionMap(GRADIENT, "cross", shares[None]))
    return maps


def _packed_by_unit(values: np.ndarray) -> dict[str, Any]:
    """Each unit (a column of values) between a low and a high of its own."""
    finite = np.where(np.isfinite(values), values, 0.0)
    low, high = finite.min(axis=0), finite.max(axis=0)
    spread = np.where(high > low, high - low, 1.0)
    packed = pack((finite - low) / spread, 0.0, 1.0)
    rounded = {"low": low, "high": low + spread}
    return {**packed, **{name: [float(f"{end:.4g}") for end in ends] for name, ends in rounded.items()}}


def pack(values: np.ndarray, low: float | None = None, high: float | None = None, levels: int = 256) -> dict[str, Any]:
    finite = np.where(np.isfinite(values), values, 0.0)
    low = float(finite.min(initial=0.0)) if low is None else low
    high = float(finite.max(initial=0.0)) if high is None else high
    span = high - low or 1.0
    data = (np.round((finite - low) / span * (levels - 1)) * (255 / (levels - 1))).clip(0, 255).astype(np.uint8)
    packed = b64encode(zlib.compress(data.tobytes(), 9)).decode()
    return {"shape": list(values.shape), "low": low, "high": low + span, "data": packed}


def piece_shown(piece: str) -> str:
    return visible(piece, newline="↵", limit=MAX_PIECE_CHARACTERS)


def piece_named(piece: str) -> str:
    """A piece that stands by itself, where a space would not be seen."""
    return piece_shown(piece).replace(" ", "␣")


def site_name(site: str, what: str) -> str:
    """'body.stack.layers.0.cells.0', 'forget gate' -> 'layer 1: forget gate'."""
    parts = site.split(".")
    numbers = [int(part) for part in parts if part.isdigit()]
    side = next((f"{side} " for side in ("encoder", "decoder") if side in parts), "")
    direction = " backwards" if parts[-2:] == ["cells", "1"] else ""
    if not numbers:
        return what if parts[-1] in ("", "body", what) else f"{parts[-1]}: {what}"
    return f"{side}layer {numbers[0] + 1}{direction}: {what}"
