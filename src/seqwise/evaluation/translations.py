"""How well a model turns sources into targets: BLEU, chrF, exact matches, with intervals and signatures.

sacrebleu counts the n-grams of each sentence; values, intervals and paired tests follow from the sums (segments.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from .. import __version__
from ..data.pair_store import PairStore
from ..models.contract import Translator, device_of, evaluating
from .segments import RESAMPLES, Metric, Segments, interval_in_words

SCORED_PLACES = 4096  # on either side of a batch
LENGTHS = (5, 10, 15, 20, 30)  # words of a source, at most, for the table by length
MIN_SENTENCE_WORDS = 4.0  # of a reference, in the mean
NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")  # kana, Chinese characters, Thai
BLEU_METRIC = Metric("BLEU", "BLEU", digits=2, is_higher_better=True)
WRONG_METRIC = Metric("share of wrong answers", "wrong", digits=4)
CHRF_METRIC = Metric("chrF", "chrF", digits=2, is_higher_better=True)


@dataclass(frozen=True)
class Likelihood:
    """What a model makes of targets that it is shown token by token."""

    nats: float
    """-log p of all of them."""
    tokens: int
    right: int
    """Tokens that were the most probable."""


@dataclass(frozen=True)
class TranslationScore:
    metric = CHRF_METRIC

    sources: Sequence[str]
    references: Sequence[str]
    hypotheses: Sequence[str]
    likelihood: Likelihood
    scored: str
    """Of data and search, for the signature."""

    @cached_property
    def _bleu(self) -> BLEU:
        """Languages without spaces are cut into characters."""
        without = sum(NO_SPACES.search(text) is not None for text in self.references)
        return BLEU(
            tokenize="char" if 2 * without > len(self.references) else "13a", force=True
        )  # no advice in between

    @cached_property
    def bleu_segments(self) -> Segments:
        return Segments(statistics_of(self._bleu, self.hypotheses, [self.references]), "bleu")

    @cached_property
    def segments(self) -> Segments:
        """chrF, sentence by sentence."""
        return Segments(statistics_of(CHRF(), self.hypotheses, [self.references]), "chrf")

    @property
    def comparable(self) -> list[tuple[Metric, Segments]]:
        """All by which two models are compared."""
        exact = np.array([a != b for a, b in zip(self.hypotheses, self.references, strict=True)])
        wrong = (WRONG_METRIC, Segments.of(exact, np.ones(len(exact))))
        other = (BLEU_METRIC, self.bleu_segments) if self.has_sentences else wrong
        return [(CHRF_METRIC, self.segments), other]

    @property
    def bleu(self) -> float:
        return BLEU_METRIC.shown(self.bleu_segments.value)

    @property
    def chrf(self) -> float:
        return CHRF_METRIC.shown(self.segments.value)

    @property
    def exact_match(self) -> float:
        return sum(a == b for a, b in zip(self.hypotheses, self.references, strict=True)) / len(self.references)

    @property
    def nats_per_token(self) -> float:
        return self.likelihood.nats / self.likelihood.tokens

    @property
    def token_accuracy(self) -> float:
        """Of tokens read with the truth before them."""
        return self.likelihood.right / self.likelihood.tokens

    @cached_property
    def by_length(self) -> list[tuple[str, int, float]]:
        """(words of the source, sentences, their BLEU)."""
        if not self.has_sentences:
            return []
        return [
            (
                f"{low + 1} to {high}" if high is not None else f"over {low}",
                part.statistics.shape[1],
                BLEU_METRIC.shown(part.value),
            )
            for low, high, part in self.parts_by_length(self.bleu_segments)
        ]

    def parts_by_length(self, segments: Segments | None = None) -> Iterator[tuple[int, int | None, Segments]]:
        """The sentences whose source has more than so many words, and at most so many; chrF where nothing is said."""
        segments = self.segments if segments is None else segments
        words = np.array([len(source.split()) for source in self.sources])
        for low, high in zip((0, *LENGTHS), (*LENGTHS, None), strict=True):
            chosen = (words > low) & (words <= high) if high is not None else words > low
            if chosen.any():
                yield low, high, Segments(segments.statistics[:, chosen], segments.kind)

    @property
    def signature(self) -> str:
        _ = self.bleu_segments  # sacrebleu knows its signature once it has counted
        parts = [
            self.scored,
            f"BLEU[{self._bleu.get_signature()}]",
            "chrF2[nc:6|nw:0]",
            f"bootstrap={RESAMPLES}x{len(self.references)}",
        ]
        return "|".join([*(part for part in parts if part), f"seqwise={__version__}"])

    @property
    def has_sentences(self) -> bool:
        """BLEU counts four words in a row: of targets that have hardly so many it says nothing."""
        return bool(self.bleu_segments.statistics[0, :, 1].mean() >= MIN_SENTENCE_WORDS)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        bleu = f"BLEU {_with_interval(self.bleu_segments)}, " if self.has_sentences else ""
        return (
            f"{bleu}chrF {_with_interval(self.segments)}, "
            f"{100 * self.exact_match:.2f} % exact, of {len(self.references):,}; "
            f"{self.nats_per_token:.4f} nats per token, {100 * self.token_accuracy:.2f} % of them right"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        if self.has_sentences:
            yield "BLEU", _with_interval(self.bleu_segments)
        yield "chrF", _with_interval(self.segments)
        yield "exact matches", f"{100 * self.exact_match:.2f} %"
        yield "nats per token", f"{self.nats_per_token:.4f}"
        yield "tokens right", f"{100 * self.token_accuracy:.2f} %, the truth before them being known"
        if self.has_sentences:
            by_length = "; ".join(f"{words}: {bleu:.1f} ({num:,})" for words, num, bleu in self.by_length)
            yield "BLEU by words of the source", by_length
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        bleu_interval, chrf_interval = (
            [metric.shown(end) for end in reversed(segments.interval)]
            for metric, segments in ((BLEU_METRIC, self.bleu_segments), (CHRF_METRIC, self.segments))
        )
        return {
            "bleu": self.bleu,
            "bleu_interval": bleu_interval,
            "chrf": self.chrf,
            "chrf_interval": chrf_interval,
            "is_enough": self.segments.is_enough,
            "exact_match": self.exact_match,
            "token_accuracy": self.token_accuracy,
            "nats_per_token": self.nats_per_token,
            "pairs": len(self.references),
            "by_length": [{"words": words, "pairs": num, "bleu": bleu} for words, num, bleu in self.by_length],
            "signature": self.signature,
        }


def _with_interval(segments: Segments) -> str:
    """Of chrF or BLEU, of which higher is better."""
    value, low, high = (CHRF_METRIC.shown(cost) for cost in (segments.value, *reversed(segments.interval)))
    return f"{value:.2f} ({interval_in_words((low, high), 2)})"


def statistics_of(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[Sequence[Any]]) -> np.ndarray:
    """Sums of each sentence, (1, N, K), as sacrebleu adds them up itself; `references` are the first of each, the
    second, …"""
    found = metric._extract_corpus_statistics(list(hypotheses), references)
    return np.array(found, dtype=np.float64)[None]


@torch.inference_mode()
def likelihood_of(model: Translator, store: PairStore) -> Likelihood:
    """Every target token of a store, the truth before it being known."""
    device, nats, right = device_of(model), 0.0, 0
    with evaluating(model):
        for chosen in store.in_order_of_length(SCORED_PLACES):
            batch = store.batch(chosen).to(device)
            targets = batch.targets["tokens"]
            is_token = torch.ones_like(targets.ids, dtype=torch.bool) if targets.is_token is None else targets.is_token
            nats -= float(model.score(batch)[0].double()[is_token].sum())
            right += int((model.predict(batch).answers == targets.ids)[is_token].sum())
    return Likelihood(nats, len(store), right)


@torch.inference_mode()
def nats_per_token(model: Translator, store: PairStore) -> float:
    """Of the targets, the truth before each token being known."""
    device, nats = device_of(model), 0.0
    with evaluating(model):
        for chosen in store.in_order_of_length(SCORED_PLACES):
            batch = store.batch(chosen).to(device)
            loss = model.loss(batch).terms["tokens"]
            nats += float(loss.total)
    return nats / len(store)
