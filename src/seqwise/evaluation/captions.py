"""Captions beside those that people wrote: BLEU with all references, CIDEr, and whether the picture was looked at.

    BLEU-n        n-grams in common with any of the references (Papineni et al. 2002), by sacrebleu
    CIDEr         n-grams in common, rare ones counting more (cider.py)
    nats          -log p of each token of people's captions, the tokens before it being known
    shuffled      the same with the pictures shuffled among the captions: what is lost is what pictures tell
    retrieval     of a sample, the rank of a caption's own picture among all by log p(caption | picture)

Words are compared in lower case and without punctuation, as in published figures.

Shapes: N rows (captions), M pictures, V vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU
from torch import nn

from .. import __version__
from ..data.batch import Batch
from ..data.schema import Schema, TokenSpec
from ..data.seen_store import Pixels, SeenStore, Views
from ..decoding import DecodingConfig, generate
from ..models.contract import Continues, Translator, device_of, evaluating, select_rows
from ..models.eyes import eyes_of
from .cider import cider
from .segments import RESAMPLES, Metric, Segments, interval_in_words
from .translations import BLEU_METRIC, statistics_of

ROWS = 64  # of a batch
RETRIEVED = 100  # pictures, each with one caption
ORDERS = (1, 2, 3, 4)
WORD = re.compile(r"\w+(?:['’-]\w+)*")
CIDER_METRIC = Metric("CIDEr", "CIDEr", digits=3, is_higher_better=True)
NATS_METRIC = Metric("nats per token", "nats/token", digits=4)


def words_of(text: str) -> str:
    """In lower case and without punctuation, a space between any two."""
    return " ".join(WORD.findall(text.lower()))


class RowNats(NamedTuple):
    """What a model makes of captions that it is shown token by token, by the row."""

    nats: np.ndarray
    """(N,) -log p"""
    tokens: np.ndarray
    """(N,)"""
    right: int
    """Tokens that were the most probable."""

    @property
    def per_token(self) -> float:
        return float(self.nats.sum() / self.tokens.sum())


@dataclass(frozen=True)
class Retrieval:
    ranks: np.ndarray
    """Of each caption's own picture, from 1 on."""
    pictures: int

    def recall(self, top: int) -> float:
        """The share of captions whose picture is among so many."""
        return float((self.ranks <= top).mean())

    @property
    def median_rank(self) -> float:
        return float(np.median(self.ranks))


@dataclass(frozen=True)
class CaptionScore:
    metric = CIDER_METRIC

    names: Sequence[str]
    """Of the pictures."""
    hypotheses: Sequence[str]
    references: Sequence[Sequence[str]]
    """Of each picture, any number."""
    likelihood: RowNats
    picture_of: np.ndarray
    """(N,) of each row, from 0 to M - 1."""
    shuffled: RowNats | None
    """None where there is one picture only."""
    retrieval: Retrieval | None
    scored: str
    """Of data and search, for the signature."""

    @cached_property
    def _words(self) -> tuple[list[str], list[list[str]]]:
        return [words_of(text) for text in self.hypotheses], [[words_of(t) for t in texts] for texts in self.references]

    @cached_property
    def segments(self) -> Segments:
        """CIDEr, picture by picture."""
        found = cider(*self._words)
        return Segments.of(found, np.ones(len(found)), "mean_score")

    def _bleu(self, order: int) -> BLEU:
        return BLEU(lowercase=True, tokenize="none", max_ngram_order=order, force=True)

    @cached_property
    def bleu_segments(self) -> Segments:
        hypotheses, references = self._words
        return Segments(statistics_of(self._bleu(4), hypotheses, _streams(references)), "bleu_of_several")

    @property
    def nats_segments(self) -> Segments:
        """By picture: captions of one are alike."""
        totals, counts = (
            np.bincount(self.picture_of, each, len(self.names))
            for each in (self.likelihood.nats, self.likelihood.tokens)
        )
        return Segments.of(totals, counts)

    @property
    def comparable(self) -> list[tuple[Metric, Segments]]:
        return [
            (CIDER_METRIC, self.segments),
            (BLEU_METRIC, self.bleu_segments),
            (NATS_METRIC, self.nats_segments),
        ]

    @cached_property
    def bleu_by_order(self) -> list[float]:
        """BLEU-1 to BLEU-4."""
        hypotheses, references = self._words
        streams = _streams(references)
        return [float(self._bleu(order).corpus_score(hypotheses, streams).score) for order in ORDERS]

    @property
    def bleu_1(self) -> float:
        return self.bleu_by_order[0]

    @property
    def bleu_2(self) -> float:
        return self.bleu_by_order[1]

    @property
    def bleu_3(self) -> float:
        return self.bleu_by_order[2]

    @property
    def bleu_4(self) -> float:
        return self.bleu_by_order[3]

    @property
    def cider(self) -> float:
        return CIDER_METRIC.shown(self.segments.value)

    @property
    def exact_match(self) -> float:
        """The share of pictures whose caption is one of theirs, word for word."""
        hypotheses, references = self._words
        return sum(text in texts for text, texts in zip(hypotheses, references, strict=True)) / len(hypotheses)

    @property
    def nats_per_token(self) -> float:
        return self.likelihood.per_token

    @property
    def token_accuracy(self) -> float:
        return self.likelihood.right / int(self.likelihood.tokens.sum())

    @property
    def shuffled_nats_per_token(self) -> float | None:
        return None if self.shuffled is None else self.shuffled.per_token

    @property
    def signature(self) -> str:
        bleu = self._bleu(4)
        bleu.corpus_score(self._words[0], _streams(self._words[1]))  # it knows its signature once it has counted
        parts = [
            self.scored,
            "words=lower case, no punctuation",
            f"BLEU[{bleu.get_signature()}]",
            "CIDEr[D|n:4|sigma:6|df:references]",
            f"bootstrap={RESAMPLES}x{len(self.names)}",
        ]
        return "|".join([*(part for part in parts if part), f"seqwise={__version__}"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        return (
            f"CIDEr {_with_interval(self.segments, 3)}, BLEU-4 {_with_interval(self.bleu_segments, 2)}, "
            f"{100 * self.exact_match:.2f} % exact, of {len(self.names):,} pictures; "
            f"{self.nats_per_token:.4f} nats per token"
            + (f", {self.shuffled.per_token:.4f} with pictures shuffled" if self.shuffled is not None else "")
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "CIDEr", _with_interval(self.segments, 3)
        yield "BLEU-4", _with_interval(self.bleu_segments, 2)
        yield "BLEU-1, -2, -3", ", ".join(f"{bleu:.2f}" for bleu in self.bleu_by_order[:3])
        yield "exact matches", f"{100 * self.exact_match:.2f} %"
        yield "nats per token", f"{self.nats_per_token:.4f}"
        if self.shuffled is not None:
            yield "with the pictures shuffled", f"{self.shuffled.per_token:.4f} nats per token"
        yield "tokens right", f"{100 * self.token_accuracy:.2f} %, the truth before them being known"
        if self.retrieval is not None:
            found = ", ".join(f"{100 * self.retrieval.recall(top):.1f} % in the first {top}" for top in (1, 5, 10))
            yield (
                f"pictures found by caption, of {self.retrieval.pictures}",
                (f"{found}; median rank {self.retrieval.median_rank:g}"),
            )
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        found = self.retrieval
        return {
            "cider": self.cider,
            "cider_interval": [CIDER_METRIC.shown(end) for end in reversed(self.segments.interval)],
            **{f"bleu_{order}": bleu for order, bleu in zip(ORDERS, self.bleu_by_order, strict=True)},
            "bleu_4_interval": [BLEU_METRIC.shown(end) for end in reversed(self.bleu_segments.interval)],
            "is_enough": self.segments.is_enough,
            "exact_match": self.exact_match,
            "token_accuracy": self.token_accuracy,
            "nats_per_token": self.nats_per_token,
            "shuffled_nats_per_token": self.shuffled_nats_per_token,
            "retrieval": None
            if found is None
            else {
                "pictures": found.pictures,
                **{f"recall_at_{top}": found.recall(top) for top in (1, 5, 10)},
                "median_rank": found.median_rank,
            },
            "pictures": len(self.names),
            "captions": len(self.likelihood.nats),
            "signature": self.signature,
        }


def _with_interval(segments: Segments, digits: int) -> str:
    """Of scores of which higher is better."""
    low, high = reversed([-end for end in segments.interval])
    return f"{-segments.value:.{digits}f} ({interval_in_words((low, high), digits)})"


def _streams(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """The first reference of each, the second of each, …: None where there are fewer, as sacrebleu has it."""
    return [list(stream) for stream in zip_longest(*references)]


@torch.inference_mode()
def seen_first(model: object, store: SeenStore) -> SeenStore:
    """The same rows with what the model's eyes make of their pictures: each is seen once, however often it is asked
    about."""
    found = eyes_of(model) if isinstance(model, nn.Module) else None
    if found is None or not isinstance(store.pictures, Pixels):
        return store
    eyes, device = found[1], device_of(model)
    used, places = np.unique(store.picture_of, return_inverse=True)
    seen = [
        eyes(store.pictures.field(used[begin : begin + ROWS]).map(lambda tensor: tensor.to(device)))
        for begin in range(0, len(used), ROWS)
    ]
    longest = max(one.shape[1] for one in seen)
    features = np.zeros((len(used), longest, seen[0].features.shape[2]), dtype=np.float32)
    begin = 0
    for one in seen:
        features[begin : begin + len(one.features), : one.shape[1]] = one.features.cpu().numpy()
        begin += len(one.features)
    widest = max(seen, key=lambda one: one.shape[1])
    boxes = None if widest.boxes is None else widest.boxes[0].cpu().numpy()
    regions = np.concatenate([one.lengths.cpu().numpy() for one in seen])
    views = Views(features, boxes, None if (regions == longest).all() else regions)
    return replace(store, pictures=views, picture_of=places)


@torch.inference_mode()
def row_nats(model: Translator, store: SeenStore) -> RowNats:
    """Every token of every caption of a store, the truth before it being known."""
    device, right = device_of(model), 0
    nats, tokens = np.zeros(len(store)), store.lengths - 1
    with evaluating(model):
        for chosen in store.in_order_of_length(ROWS):
            batch = store.batch(chosen).to(device)
            targets = batch.targets["tokens"]
            is_token = torch.ones_like(targets.ids, dtype=torch.bool) if targets.is_token is None else targets.is_token
            found = model.score(batch)[0].double().masked_fill(~is_token, 0.0)
            nats[chosen] = -found.sum(dim=1).cpu().numpy()
            right += int((model.predict(batch).answers == targets.ids)[is_token].sum())
    return RowNats(nats, tokens, right)


@torch.inference_mode()
def nats_per_token(model: Translator, store: SeenStore) -> float:
    """Of the captions, the truth before each token being known."""
    device, nats = device_of(model), 0.0
    with evaluating(model):
        for chosen in store.in_order_of_length(ROWS):
            nats += float(model.loss(store.batch(chosen).to(device)).terms["tokens"].total)
    return nats / int((store.lengths - 1).sum())


def shuffled(store: SeenStore, seed: int = 0) -> SeenStore | None:
    """The same captions, each with the picture of another; None where there is one picture only."""
    pictures, places = np.unique(store.picture_of, return_inverse=True)
    if len(pictures) < 2:
        return None
    random = np.random.default_rng(seed)
    order = random.permutation(len(pictures))
    other = np.empty_like(order)
    other[order] = np.roll(order, 1)  # in one circle: none keeps its own
    return replace(store, picture_of=pictures[other[places]])


@torch.inference_mode()
def retrieve(model: Continues, store: SeenStore, *, seed: int = 0, num: int = RETRIEVED) -> Retrieval | None:
    """How well captions find their picture: one of each of some pictures, against all of these."""
    random = np.random.default_rng(seed)
    rows = random.permutation(len(store))
    _, first = np.unique(store.picture_of[rows], return_index=True)
    chosen = np.sort(rows[np.sort(first)[:num]])
    if len(chosen) < 2 or store.tokens is None:
        return None
    M, device, captions = len(chosen), device_of(model), store.tokens.padded(chosen)
    ids, is_token = captions.ids, torch.ones_like(captions.ids, dtype=torch.bool)
    is_token = is_token if captions.is_token is None else captions.is_token
    found = np.zeros((M, M))  # log p of each caption, given each picture
    with evaluating(model):
        seen = Batch({"image": store.pictures.field(store.picture_of[chosen])}, {}).to(device)
        first_log_probs, state = model.start(seen)
        width = max(1, ROWS // 8)
        for begin in range(0, M, width):  # some captions at once, side by side for each picture
            some = slice(begin, min(M, begin + width))
            W = some.stop - some.start
            state_now = select_rows(state, torch.arange(M, device=device).repeat_interleave(W))
            log_probs = first_log_probs.repeat_interleave(W, dim=0)
            total = torch.zeros(M * W, dtype=torch.float64)
            for t in range(1, ids.shape[1]):
                tokens, there = ids[some, t].repeat(M), is_token[some, t].repeat(M)  # (M * W,)
                if not bool(there.any()):
                    break
                log_p = log_probs.gather(1, tokens.to(device).unsqueeze(1)).squeeze(1).double().cpu()
                total += torch.where(there, log_p, 0.0)
                log_probs, state_now = model.step(tokens, state_now)
            found[some] = total.view(M, W).T.numpy()
    own = found.diagonal()[:, None]
    return Retrieval(1 + (found > own).sum(axis=1), M)


@torch.inference_mode()
def captions_of(
    model: Continues,
    schema: Schema,
    store: SeenStore,
    pictures: np.ndarray,
    search: DecodingConfig,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Iterator[str]:
    """A caption for each of these pictures, in order."""
    target, device = schema.target("tokens", TokenSpec), device_of(model)
    width = search.beam_width if search.method == "beam" else search.num_results
    size = max(1, ROWS // max(1, width))
    with evaluating(model):
        for begin in range(0, len(pictures), size):
            seen = Batch({"image": store.pictures.field(pictures[begin : begin + size])}, {}).to(device)
            for hypotheses in generate(model, seen, search):
                yield target.decode([token for token in hypotheses[0].tokens if token != target.boundary])
            on_progress(len(seen))
