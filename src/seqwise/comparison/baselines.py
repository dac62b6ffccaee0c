"""What one gets without learning: who is not better than this on validation has learned nothing.

Text: how often each token comes. Numbers: the last number, that of a season ago, or the mean goes on, whichever fitted
the training part best. Labels: the most frequent one; and, since that says little of texts, what the words of a text
say one by one, in no order. Tags: the most frequent one of each word. Pairs: the most frequent target, whatever the
source. Questions on passages: the sentence that shares most words with the question, or "none", whichever did better on
the training part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ..data.annotated import LabelledRow, TaggedRow
from ..data.numbers import NumberStore
from ..data.pair_store import PairStore
from ..data.questions import Question
from ..data.schema import Schema, TagSpec, TokenSpec, ValueSpec
from ..data.seen_store import SeenStore
from ..data.store import TokenStore
from ..data.text_examples import TextStore
from ..evaluation.answers import AnswerStore, LabelSetScore, NumberScore, evaluate_answers
from ..evaluation.entities import TagScore
from ..evaluation.forecasts import ForecastScore
from ..evaluation.segments import Segments
from ..evaluation.spans import NO_ANSWER, SpanScore
from ..evaluation.translations import Likelihood, TranslationScore
from ..goals import AnyGoal
from ..models.bag_of_ngrams import BagConfig, BagOfNgrams
from ..models.ngram import Ngram, NgramConfig
from ..settings import DataConfig

MAX_TOKENS = 5_000_000  # of the training part: frequencies do not change much after that
MAX_BAG_ROWS = 50_000  # of the training part, of which a bag of words is made in seconds
MAX_BAG_WEIGHTS = 100_000_000  # tokens of all rows times labels: the sums of one pass over them
TOKENS_IN_WORDS = {"word": "words", "char": "characters"}

SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
WORD = re.compile(r"\w+")
MAX_QUESTIONS = 1000  # of the training part, that tell whether to answer at all


@dataclass(frozen=True)
class Baseline:
    name: str
    """In words: "the frequency of each token"."""
    segments: Segments
    """On the part that models are ranked by, cut as theirs."""
    simple: Baseline | None = None
    """What a simple model gets there, where there is one."""

    def to_dict(self) -> dict[str, Any]:
        simple = {} if self.simple is None else {"simple": self.simple.to_dict()}
        return {"name": self.name, "segments": self.segments.to_dict(), **simple}

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Baseline:
        simple = found.get("simple")
        segments = Segments.from_dict(found["segments"])
        return cls(found["name"], segments, None if simple is None else cls.from_dict(simple))


def token_frequencies(
    goal: AnyGoal, train: TokenStore, store: TokenStore, schema: Schema, config: DataConfig
) -> Baseline:
    model = Ngram(NgramConfig(order=1), schema)
    model.fit(np.asarray(train.take(MAX_TOKENS).ids, dtype=np.int64))
    score = goal.score(model, store, schema, config, scored="baseline")
    return Baseline("the frequency of each token", score.segments)


def naive_forecast(train: NumberStore, store: NumberStore, scaling: ValueSpec, season: int) -> Baseline:
    """log p(row) = sum over columns of log N(x; guess, spread), with the spread that the guess had in training."""
    guesses = {"the last number": 1, **({f"the number {season} steps before": season} if season > 1 else {})}
    fits = {name: _fit(train, lag) for name, lag in guesses.items()} | {"the mean": _fit(train, None)}
    best = max(fits, key=lambda name: fits[name][1])
    spread, lag = fits[best][0], guesses.get(best)
    observed = store.is_observed[store.first :]
    log_densities = _log_densities(store, lag, spread)[store.first - 1 :]
    log_densities = log_densities - (observed * np.log(scaling.scale)).sum(axis=1)
    is_step = np.asarray(observed.any(axis=1))
    nothing = np.empty(0)
    seasons = [season] * len(scaling.columns)
    score = ForecastScore(log_densities, is_step, {"model": nothing}, nothing, scaling.columns, seasons, "baseline")
    return Baseline(best, score.segments)


def _fit(train: NumberStore, lag: int | None) -> tuple[np.ndarray, float]:
    """The spread of each column around the guess, (C,), and the log-likelihood per step that it gives."""
    errors = _errors(train, lag)
    spread = np.sqrt(np.maximum(np.nanmean(errors**2, axis=0), 1e-12))
    return spread, float(_log_densities(train, lag, spread).mean())


def _errors(store: NumberStore, lag: int | None) -> np.ndarray:
    """Of the guess at each row but the first, scaled units, NaN where nothing came: (steps, C)."""
    values = np.where(store.is_observed, store.values, np.nan).astype(np.float64)
    values[0] = 0.0  # scaled: the mean, before anything is known
    filled = values.copy()
    for row in range(1, len(filled)):  # a missing number is what it was before
        gaps = np.isnan(filled[row])
        filled[row, gaps] = filled[row - 1, gaps]
    if lag is None:
        guess = np.zeros_like(filled[1:])
    else:
        guess = filled[np.maximum(np.arange(1, len(filled)) - lag, 0)]
    return values[1:] - guess


def _log_densities(store: NumberStore, lag: int | None, spread: np.ndarray) -> np.ndarray:
    """(steps,), over the columns that are there."""
    each = -0.5 * (_errors(store, lag) / spread) ** 2 - np.log(spread) - 0.5 * np.log(2 * np.pi)
    return np.asarray(np.where(np.isnan(each), 0.0, each).sum(axis=1))


def most_frequent_answer(train: AnswerStore, store: AnswerStore, *, scale: float = 1.0) -> Baseline:
    """`scale`: what one of a number stands for."""
    if np.issubdtype(store.answers.dtype, np.floating):
        answers, wanted = np.full(len(store), train.answers.mean() * scale), store.answers * scale
        return Baseline("the mean", NumberScore(wanted, answers, np.zeros(len(store)), "baseline").segments)
    if store.answers.ndim == 2:
        usual = np.tile(train.answers.mean(axis=0) >= 0.5, (len(store), 1))
        score = LabelSetScore(store.answers, usual, np.zeros(len(store)), [], "baseline")
        return Baseline("the labels that most rows have", score.segments)
    labels, counts = np.unique(train.answers[train.answers >= 0], return_counts=True)
    is_wrong = store.answers != labels[counts.argmax()]
    return Baseline("the most frequent label", Segments.of(is_wrong, np.ones(len(store))))


def bag_of_words(train: TextStore, store: TextStore, schema: Schema) -> Baseline | None:
    """Texts as sets of words, weighed by naive Bayes and a linear layer (models/bag_of_ngrams.py); nothing is chosen by
    validation. None where it would take long."""
    if len(train) > MAX_BAG_ROWS or len(train.tokens.ids) * schema.main_spec.size > MAX_BAG_WEIGHTS:
        return None
    model, known = BagOfNgrams(BagConfig(order=1), schema), train.choose(np.flatnonzero(train.answers >= 0))
    model.fit(known.tokens, known.answers, num_texts=schema.input("tokens", TokenSpec).num_texts)
    kind = schema.input("tokens", TokenSpec).tokenizer.kind
    score = evaluate_answers(model, store, scored="baseline")
    return Baseline(f"a bag of {TOKENS_IN_WORDS.get(kind, 'tokens')}", score.segments)


def question_alone(train: SeenStore, store: SeenStore, schema: Schema) -> Baseline | None:
    """The words of a question, by whoever has not seen the picture; None where nothing is asked, or it takes long."""
    if train.tokens is None or store.tokens is None:
        return None
    asked = [[LabelledRow(row.texts, row.answer or "") for row in part.rows] for part in (train, store)]
    learned, scored = (
        TextStore(tokens, part.targets, rows)
        for part, tokens, rows in zip((train, store), (train.tokens, store.tokens), asked, strict=True)
    )
    found = bag_of_words(learned, scored, replace(schema, inputs={"tokens": schema.inputs["tokens"]}))
    return None if found is None else replace(found, name=f"{found.name} of the question, without the picture")


def most_frequent_tag(train: Sequence[TaggedRow], store: TextStore, spec: TagSpec) -> Baseline:
    """Each word has the tag that it has most often in training; one that is not there, the most frequent of all."""
    counts: dict[str, Counter[str]] = {}
    for row in train:
        for word, tag in zip(row.words, row.tags, strict=True):
            counts.setdefault(word, Counter())[tag] += 1
    usual = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    of_all = Counter(tag for row in train for tag in row.tags).most_common(1)[0][0]
    rows = cast(Sequence[TaggedRow], store.rows)
    answers = [[usual.get(word, of_all) for word in row.words] for row in rows]
    score = TagScore([list(row.tags) for row in rows], answers, 0.0, spec.scheme, "baseline")
    return Baseline("the most frequent tag of each word", score.segments)


def most_frequent_target(train: Sequence[str], store: PairStore) -> Baseline:
    """`train`: the targets of the training part."""
    answer, _ = Counter(train).most_common(1)[0]
    sources, references = [source for source, _ in store.texts], [target for _, target in store.texts]
    score = TranslationScore(sources, references, [answer] * len(sources), Likelihood(0.0, 1, 0), "baseline")
    return Baseline("the most frequent target", score.segments)


def nearest_sentence(train: Sequence[Question], questions: Sequence[Question]) -> Baseline:
    """To a question its passage's sentence with most of its words, or always that there is no answer."""
    some = train[:: -(-len(train) // MAX_QUESTIONS)]
    sentences, none = ([answer(one) for one in some] for answer in (_nearest, lambda _: NO_ANSWER))
    is_none = _span_score(none, some).f1 > _span_score(sentences, some).f1
    found = [NO_ANSWER if is_none else _nearest(one) for one in questions]
    name = "never an answer" if is_none else "the sentence most like the question"
    return Baseline(name, _span_score(found, questions).segments)


def _nearest(question: Question) -> str:
    asked = set(WORD.findall(question.text.lower()))
    return max(SENTENCE.split(question.passage), key=lambda one: len(asked & set(WORD.findall(one.lower()))))


def _span_score(answers: Sequence[str], questions: Sequence[Question]) -> SpanScore:
    return SpanScore(answers, [question.texts for question in questions], 0.0, "baseline")
