"""What `seqwise similarity` shows: runs below each other, data sets side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..api import TrainedRun
from ..evaluation.segments import interval_in_words
from ..evaluation.sentence_similarity import rate, rate_by_words, rated_pairs
from ..evaluation.word_vectors import SimilarityScore, compare_similarities
from .progress import on_terminal
from .tables import columns as in_columns

WITHOUT = "words in common"


@dataclass(frozen=True)
class Rated:
    """All runs on the pairs of one data set, and what one gets without a model."""

    name: str
    scores: dict[str, SimilarityScore]

    @property
    def best(self) -> str:
        return max(self.scores, key=lambda name: self.scores[name].correlation)

    def behind(self, name: str) -> str:
        """How far from the best, on the pairs that both know."""
        if name == self.best:
            return ""
        found = compare_similarities(self.scores[self.best], self.scores[name])
        return f"{-found.gain:+.3f} ({interval_in_words((-found.interval[1], -found.interval[0]), 3)})"

    def facts(self) -> Iterator[dict[str, Any]]:
        for name, score in self.scores.items():
            yield {"run": None if name == WITHOUT else name, "by": name, **score.to_dict()}


def rate_runs(
    runs: Sequence[str], sources: Sequence[str], *, split: str | None, columns: Sequence[str], pooling: str | None
) -> list[Rated]:
    encoders = {name: TrainedRun(name).encoder(pooling=pooling) for name in runs}
    found = []
    with on_terminal() as on_progress:
        for source in sources:
            pairs = rated_pairs(source, split=split, columns=columns)
            scores = {name: rate(one, pairs, on_progress=on_progress) for name, one in encoders.items()}
            found.append(Rated(pairs.name, {**scores, WITHOUT: rate_by_words(pairs)}))
    return found


def table_of(rated: Sequence[Rated]) -> Iterator[str]:
    for one in rated:
        num = len(next(iter(one.scores.values())).ratings)
        yield f"{one.name}: Spearman's correlation with what people say of {num:,} pairs"
        rows = [["", "Spearman", "interval", "known", "to the best"]]
        for name, score in one.scores.items():
            known = f"{100 * score.share_known:.1f} %"
            shown = [f"{score.correlation:.3f}", interval_in_words(score.interval, 3), known, one.behind(name)]
            rows.append([name, *shown])
        yield from in_columns(rows)
