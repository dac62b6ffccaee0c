"""How far a search can be trusted: how often its answer scores below the best that any search found.

A beam may miss what its own model thinks best (a search error); and what the model thinks best may be worse than what
the beam finds (a model error: Koehn & Knowles 2017, Stahlberg & Byrne 2019). So widths are compared by both: the score
that search maximises, and BLEU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.pair_store import source_ids
from ..data.schema import Schema, pair_tokenizers
from ..decoding import DecodingConfig
from ..decoding.exhaustive import is_tiny
from ..decoding.translate import Answer, token_limit, translate
from ..models.contract import Translator
from .translations import Likelihood, TranslationScore

WIDTHS = (1, 2, 4, 8, 16)
TIES = 1e-4  # scores nearer than this are equal


@dataclass(frozen=True)
class Width:
    """What a beam of one width found."""

    width: int
    bleu: float
    chrf: float
    score: float
    """Mean of what search maximises."""
    search_errors: float
    """Share of the sources whose answer scores below the best known."""
    missed: float
    """By how much, in the mean over these."""
    length: float
    """Mean tokens of an answer over those of its reference."""
    unfinished: float
    """Share of the answers that ran into the longest that is allowed."""
    seconds: float


@dataclass(frozen=True)
class SearchReport:
    widths: list[Width]
    pairs: int
    has_exhaustive: bool
    """Whether the best known is the best there is."""

    def rows(self) -> Iterator[list[str]]:
        yield ["beam", "BLEU", "chrF", "score", "below the best known", "by", "length", "unfinished", "seconds"]
        for one in self.widths:
            yield [
                str(one.width),
                f"{one.bleu:.2f}",
                f"{one.chrf:.2f}",
                f"{one.score:.4f}",
                f"{100 * one.search_errors:.1f} %",
                f"{one.missed:.4f}",
                f"{one.length:.3f}",
                f"{100 * one.unfinished:.1f} %",
                f"{one.seconds:.1f}",
            ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "has_exhaustive": self.has_exhaustive,
            "widths": [vars(one) for one in self.widths],
        }


def report_on_search(
    model: Translator,
    schema: Schema,
    pairs: Sequence[tuple[str, str]],
    config: DecodingConfig,
    *,
    length_ratio: float,
    widths: Sequence[int] = WIDTHS,
    on_progress: Callable[[int], None] = lambda _: None,
) -> SearchReport:
    """Answer the same sources with beams of several widths, and with all texts where the case is tiny enough."""
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    reader, writer = pair_tokenizers(schema)
    encoded = [source_ids(source, reader) for source in sources]
    wanted = np.array([len(writer.encode(text)) + 1 for text in references])
    by_width: dict[int, list[Answer]] = {}
    seconds: dict[int, float] = {}

    def answers(search: DecodingConfig) -> list[Answer]:
        return list(translate(model, schema, sources, search, length_ratio=length_ratio))

    for width in (width for width in widths if width <= writer.vocab_size):
        began = time.perf_counter()
        by_width[width] = answers(replace(config, method="beam", beam_width=width, num_results=1))
        seconds[width] = time.perf_counter() - began
        on_progress(width)
    scores = {width: np.array([answer.scores[0] for answer in found]) for width, found in by_width.items()}
    best = np.max(list(scores.values()), axis=0)
    longest = max(token_limit(len(ids), length_ratio, model) for ids in encoded)
    has_exhaustive = is_tiny(writer.vocab_size, min(longest, config.max_tokens))
    if has_exhaustive:
        every = answers(replace(config, method="exhaustive", num_results=1))
        best = np.maximum(best, [answer.scores[0] for answer in every])
    rows = []
    for width, found in by_width.items():
        below = best - scores[width]
        is_below = below > TIES
        score = TranslationScore(sources, references, [a.text for a in found], Likelihood(0.0, 1, 0), "")
        hypotheses = [answer.hypotheses[0] for answer in found]
        rows.append(
            Width(
                width,
                score.bleu,
                score.chrf,
                float(scores[width].mean()),
                float(is_below.mean()),
                float(below[is_below].mean()) if is_below.any() else 0.0,
                sum(len(h.tokens) for h in hypotheses) / int(wanted.sum()),
                float(np.mean([not h.is_finished for h in hypotheses])),
                seconds[width],
            )
        )
    return SearchReport(rows, len(pairs), has_exhaustive)
