"""Two texts that differ in a little, read by one model: which heads look elsewhere, and how far a word's vector moved.

    A, B      attention of a head in the first text and in the second, over the tokens that both have            (1)
    moved     = 1/2 sum over what is looked at of |A - B|, from 0 (the same) to 1 (nothing in common)            (2)
    cosine_l  = cosine of the vectors that layer l has of the word in both texts                                 (3)

"The animal didn't cross the street because it was too tired / wide": (2) of "it" ranks the heads by how much the last
word changes what "it" looks at (Vaswani et al. 2017, fig. 4; Uszkoreit 2017). (3) of "bank" beside a river and beside
money: below all layers it is 1, or less as the places differ, and falls where a layer reads the context into the word
(Ethayarajh 2019).

Of tokens that stand in one text only, what is looked at counts together, as elsewhere.

Shapes: H heads, T steps of the first text, U of the second, N pairs of tokens, L layers, D width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

import numpy as np
import torch

from ..errors import DataError
from ..evaluation.probes import HasLayers
from ..models.contract import evaluating
from .heads import CROSS, AttentionMap
from .reading import END, START, Reading

MAX_SHIFTS = 3


@dataclass(frozen=True)
class Shift:
    """Something that is looked at, as it is named in both texts."""

    first: str
    second: str
    before: float
    """Share of attention in the first text."""
    after: float
    """In the second."""


@dataclass(frozen=True)
class HeadMove:
    site: str
    kind: str
    head: int
    """From 0."""
    moved: float
    """(2)"""
    shifts: list[Shift]
    """What gained or lost most."""


@dataclass(frozen=True)
class Contrast:
    word: str | None
    """Whose attention and vectors these are; None for the mean over all tokens that both texts have."""
    changed: list[tuple[str, str]]
    """What stands in the one text and in the other, where they differ."""
    moves: list[HeadMove] = field(default_factory=list)
    """Of every head, that which moved most first."""
    by_layer: list[float] = field(default_factory=list)
    """(3), from the embeddings up, of the word; of all shared tokens, their mean, where no word was named."""
    others_by_layer: list[float] = field(default_factory=list)
    """(3) of all other tokens that both texts have, in the mean."""


@dataclass(frozen=True)
class Seen:
    """What one text was to the model."""

    reading: Reading
    attention: Sequence[AttentionMap]


def places_of(pieces: Sequence[str], word: str) -> list[int]:
    """Where the pieces of a word stand, the first time that it does; capitals do not matter."""
    plain = ["" if piece in (START, END) else piece for piece in pieces]
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", "".join(plain), re.IGNORECASE)
    if found is None:
        raise DataError(f'--word "{word}" does not stand in "{"".join(plain).strip()}"; name one that both texts have.')
    ends = np.cumsum([len(piece) for piece in plain])
    return [
        place
        for place, (piece, end) in enumerate(zip(plain, ends.tolist(), strict=True))
        if end - len(piece) < found.end() and end > found.start()
    ]


def aligned(first: Sequence[str], second: Sequence[str]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Places of the tokens that both have, and of those that stand for each other, one for one."""
    same, changed = list[tuple[int, int]](), list[tuple[int, int]]()
    for what, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if what == "equal" or (what == "replace" and b - a == d - c):
            pairs = same if what == "equal" else changed
            pairs += zip(range(a, b), range(c, d), strict=True)
    return same, changed


def contrast(model: object, first: Seen, second: Seen, *, word: str | None = None) -> Contrast:
    pieces = first.reading.pieces, second.reading.pieces
    same, changed = aligned(*pieces)
    shared = [(a, b) for a, b in same if pieces[0][a] not in (START, END)]
    if word is None:
        rows = [a for a, _ in shared], [b for _, b in shared]
    else:
        rows = places_of(pieces[0], word), places_of(pieces[1], word)
    if not rows[0]:
        raise DataError("both texts have no token in common, so that nothing can be compared.")
    moves = _moves(first, second, rows, sorted([*same, *changed]))
    others = [(a, b) for a, b in shared if word is not None and a not in rows[0]]
    vectors = [_layers(model, seen.reading) for seen in (first, second)]
    return Contrast(
        word,
        [(pieces[0][a].strip(), pieces[1][b].strip()) for a, b in changed],
        sorted(moves, key=lambda move: -move.moved),
        _cosines(vectors, [rows] if word is not None else [([a], [b]) for a, b in shared]),
        _cosines(vectors, [([a], [b]) for a, b in others]),
    )


def _moves(
    first: Seen, second: Seen, rows: tuple[list[int], list[int]], columns: list[tuple[int, int]]
) -> list[HeadMove]:
    """(2) of each head; attention within a text alone can be compared."""
    found, names = [], (first.reading.pieces, second.reading.pieces)
    for before, after in zip(first.attention, second.attention, strict=False):
        sizes = before.weights.shape[1:], after.weights.shape[1:]
        if before.kind == CROSS or sizes != ((len(names[0]),) * 2, (len(names[1]),) * 2):
            continue
        a = before.weights[:, rows[0]].mean(axis=1)[:, [place for place, _ in columns]]  # (H, N)
        b = after.weights[:, rows[1]].mean(axis=1)[:, [place for _, place in columns]]
        elsewhere = np.abs(a.sum(axis=1) - b.sum(axis=1))  # what both leave for tokens that the other has not
        moved = (np.abs(a - b).sum(axis=1) + elsewhere) / 2
        for head in range(len(a)):
            most = np.argsort(-np.abs(a[head] - b[head]), kind="stable")[:MAX_SHIFTS]
            shifts = [
                Shift(
                    names[0][columns[n][0]].strip(),
                    names[1][columns[n][1]].strip(),
                    float(a[head, n]),
                    float(b[head, n]),
                )
                for n in most.tolist()
            ]
            found.append(HeadMove(before.site, before.kind, head, float(moved[head]), shifts))
    return found


@torch.inference_mode()
def _layers(model: object, reading: Reading) -> list[np.ndarray]:
    """(T, D) of embeddings and of each layer; none where a model has no layers, or reads other steps than are shown."""
    if not isinstance(model, HasLayers) or reading.steps is not None or reading.source:
        return []
    with evaluating(model):
        layers = [layer[0].double().cpu().numpy() for layer in model.layers(reading.batch)]
    return layers if all(len(layer) == len(reading.pieces) for layer in layers) else []


def _cosines(vectors: Sequence[list[np.ndarray]], pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    """(3) in each layer, the mean over some pairs of words, each of one piece or several."""
    if not pairs or not all(vectors):
        return []
    return [
        float(np.mean([_cosine(first[a].mean(axis=0), second[b].mean(axis=0)) for a, b in pairs]))
        for first, second in zip(*vectors, strict=True)
    ]


def _cosine(u: np.ndarray, v: np.ndarray) -> float:
    lengths = float(np.linalg.norm(u) * np.linalg.norm(v))
    return float(u @ v) / lengths if lengths else 0.0
