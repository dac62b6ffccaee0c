"""How well vectors of sentences agree with people, with nothing learned: pairs that people rated, by their cosine.

    pairs = rated_pairs("stsb")
    rate(encoder, pairs).headline()          # Spearman 0.808 (0.78 to 0.83), 100.0 % of 863 pairs known

The order counts, and not the scale: Spearman's correlation between ratings and cosines (evaluation/word_vectors.py),
with an interval by resampling pairs. Beside it, what one gets without a model: the share of words that two sentences
have in common.

Shapes: N pairs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.label_files import open_labelled, open_whole_labelled
from ..data.public import is_label_set
from ..data.word_vectors import directions
from ..errors import DataError
from .sentence_vectors import OnProgress, TextEncoder
from .word_vectors import SimilarityScore

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class RatedPairs:
    name: str
    pairs: list[tuple[str, str]]
    ratings: np.ndarray
    """(N,): how similar people find them; higher is more similar."""


def rated_pairs(source: str, *, split: str | None = None, columns: Sequence[str] = ()) -> RatedPairs:
    """Of a data set or a table of two texts and a number: its test part, of one file all of it."""
    if Path(source).is_file() and split is None:
        data, part = open_whole_labelled([source], columns), "whole"
    else:
        data, part = open_labelled([source], columns=columns), split or "test"
        if data.asks_for != "number" and ":" not in source and is_label_set(source):  # it may have numbers besides
            return rated_pairs(f"{source}:number", split=split)
    if data.asks_for != "number" or data.num_texts != 2:
        raise DataError(f"{data.name}: holds no pairs of texts with a number each, such as stsb and sick have.")
    if part not in data.parts:
        raise DataError(f"{data.name} has no {part} part; it has {', '.join(data.parts)}.")
    rows = data.parts[part]
    pairs = [(row.texts[0], row.texts[1]) for row in rows]
    return RatedPairs(data.name, pairs, np.array([row.answer for row in rows], dtype=np.float64))


def rate(encoder: TextEncoder, pairs: RatedPairs, *, on_progress: OnProgress = lambda *_: None) -> SimilarityScore:
    """The cosine of each pair; none where nothing is known of one of both."""
    texts = list(dict.fromkeys(text for pair in pairs.pairs for text in pair))
    place_of = {text: place for place, text in enumerate(texts)}
    found = encoder.embed(texts, on_progress=on_progress)
    units = directions(found.vectors.astype(np.float64))
    first, second = (np.array([place_of[pair[side]] for pair in pairs.pairs]) for side in (0, 1))
    cosines = (units[first] * units[second]).sum(axis=1)
    cosines[found.is_empty[first] | found.is_empty[second]] = np.nan
    return SimilarityScore(pairs.name, pairs.ratings, cosines, f"cosine|{encoder.kind}")


def rate_by_words(pairs: RatedPairs) -> SimilarityScore:
    """What two texts have in common: words of both, as a share of words of either."""
    sets = [[set(WORD.findall(text.lower())) for text in pair] for pair in pairs.pairs]
    shares = np.array([len(a & b) / len(a | b) if a | b else np.nan for a, b in sets])
    return SimilarityScore(pairs.name, pairs.ratings, shares, "words in common")
