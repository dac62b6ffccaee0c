"""What a comparison shows besides scores, by the kind of target: what a model costs, what it writes, how far it looks
back."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import asdict, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from ..data.batch import Batch, Values
from ..data.numbers import NumberData, NumberStore
from ..data.pair_store import PairStore
from ..data.pairs import PairData
from ..data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    SEQUENCE,
    SPAN,
    TAG,
    Schema,
    TokenSpec,
    ValueSpec,
)
from ..data.source import TextData
from ..data.store import TokenStore, store_of_text
from ..decoding import DecodingConfig, generate
from ..evaluation.forecasts import default_horizon, forecasts
from ..evaluation.likelihood import nats_by_position, token_nats
from ..evaluation.translations import TranslationScore
from ..goals import AnyGoal
from ..goals.sequence import SequenceGoal
from ..models.contract import Forecaster, LanguageModel, Translator, evaluating
from ..run import Run
from ..settings import DataConfig
from ..tasks import Task, goal_of
from ..text import Tokenizer
from .answers import AnswerSubject, ChoiceSubject, TagSubject
from .baselines import Baseline, most_frequent_target, naive_forecast, token_frequencies
from .caption_subject import CaptionSubject
from .memorization import longest_match
from .span_subject import SpanSubject
from .timer import Timer as Timer

SAMPLES, SAMPLE_CHARACTERS = 3, 400
SAMPLE_TEMPERATURE = 0.8
SHOWN_PAIRS = 5
TIMED_TEXTS = 16  # texts written at once, to see how fast it can go
TIMED_TOKENS = 64
MAX_CONTEXT_TOKENS = 512
MIN_WINDOWS, MAX_WINDOWS = 8, 256  # read to see what a long context is worth
MATCHING_SECONDS = 1e-7  # to look for the samples in the training part, per character of it, about
PASSAGE_CHARACTERS = 1500
PASSAGE_STEPS = 96
TIMED_STEPS = 40


D = TypeVar("D", contravariant=True)
M = TypeVar("M", contravariant=True)
S = TypeVar("S")


class Subject(Protocol[D, S, M]):
    """What a comparison needs to know of a kind of target."""

    timed: int
    """Characters, steps or examples that are scored to see how long that takes; more where it is quick."""

    def sizes(self, data: D, stores: dict[str, Any]) -> dict[str, int]:
        """Of the parts: characters, steps or sequences."""
        ...

    def passage(self, data: D, part: str) -> dict[str, Any]:
        """What all models are shown side by side on, and what belongs to it: fields of a Comparison."""
        ...

    def take(self, task: Task, data: D, part: str, schema: Schema, limit: int) -> tuple[S, bool]:
        """What every model is scored on, and whether that is the whole part."""
        ...

    def amount(self, store: S) -> int:
        """How much a store holds, in the unit of `limit`: characters, steps or examples."""
        ...

    def baseline(self, task: Task, data: D, store: S, schema: Schema, config: DataConfig) -> Baseline:
        """What one gets on a store without learning."""
        ...

    def score_options(self, model: M) -> dict[str, Any]: ...
    def as_if_trained(self, config: DataConfig) -> DataConfig:
        """With which a model that has learned nothing takes about as long to score as it will later."""
        ...

    def measure(self, run: Run, model: M, data: D, store: S, passage: str, score: Any, timer: Timer) -> dict[str, Any]:
        """Fields of an Entry, as many as there is time for."""
        ...


class TextSubject:
    timed = 2000

    def sizes(self, data: TextData, stores: dict[str, Any]) -> dict[str, int]:
        return dict(data.characters)

    def passage(self, data: TextData, part: str) -> dict[str, Any]:
        passage = choose_passage(data, part)
        match = longest_match([passage[: SAMPLES * SAMPLE_CHARACTERS]], data.parts["train"].blocks())
        return {"passage": passage, "held_out_match": asdict(match)}

    def take(self, task: Task, data: TextData, part: str, schema: Schema, limit: int) -> tuple[Any, bool]:
        """Of a long text the same characters for all, whatever their tokenizer."""
        if data.characters[part] <= limit:
            return task.store(data, part, schema), True
        tokenizer = schema.input("tokens", TokenSpec).tokenizer
        return store_of_text(beginning_of(data, part, limit), tokenizer), False

    def amount(self, store: TokenStore) -> int:
        return store.num_chars

    def baseline(self, task: Task, data: TextData, store: TokenStore, schema: Schema, config: DataConfig) -> Baseline:
        return token_frequencies(goal_of(task, schema), task.store(data, "train", schema), store, schema, config)

    def score_options(self, model: LanguageModel) -> dict[str, Any]:
        """Who cannot carry a state sees at least half of its window before each token, as when it writes."""
        return {} if model.context is None else {"view": "sliding"}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        return config

    def measure(
        self, run: Run, model: LanguageModel, data: TextData, store: TokenStore, passage: str, score: Any, timer: Timer
    ) -> dict[str, Any]:
        tokenizer = run.tokenizer
        per_token = store.num_chars / max(1, store.num_tokens)  # characters
        prompt, timed = [[tokenizer.boundary]], DecodingConfig(max_tokens=TIMED_TOKENS)
        one = timer.best_of_two(lambda: generate(model, prompt, timed)) / TIMED_TOKENS
        found: dict[str, Any] = {"ms_per_token": 1000 * one}
        wanted = max(1, round(SAMPLE_CHARACTERS / per_token))
        if timer.has_time_for("samples", wanted * one):
            found["samples"] = samples = sample_texts(model, tokenizer, wanted)
            if timer.has_time_for("memorization", MATCHING_SECONDS * data.characters["train"]):
                found["memorization"] = asdict(longest_match(samples, data.parts["train"].blocks()))
        if timer.has_time_for("surprise", len(passage) * timer.per_unit):
            found["surprise"] = surprise(model, tokenizer, passage)
        if timer.has_time_for("tokens/s", 2 * TIMED_TOKENS * one):
            many = timer.best_of_two(lambda: generate(model, prompt * TIMED_TEXTS, timed))
            found["generation_tokens_per_second"] = TIMED_TEXTS * TIMED_TOKENS / many
        per_window = MAX_CONTEXT_TOKENS * per_token * timer.per_unit
        if timer.has_time_for("score by position", MIN_WINDOWS * per_window):
            windows = int(min(MAX_WINDOWS, timer.left / max(1e-12, per_window)))
            found["by_position"] = by_position(model, store, per_token, windows)
        return found


class NumberSubject:
    timed = 2000

    def sizes(self, data: NumberData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: rows.stop - rows.start for part, rows in data.parts.items()}

    def passage(self, data: NumberData, part: str) -> dict[str, Any]:
        start = data.parts[part].start
        return {"passage_values": data.values[start : start + PASSAGE_STEPS, 0].tolist()}

    def take(self, task: Task, data: NumberData, part: str, schema: Schema, limit: int) -> tuple[Any, bool]:
        return _take(goal_of(task, schema), task.store(data, part, schema), limit)

    def amount(self, store: NumberStore) -> int:
        return len(store) + 1 - store.first

    def baseline(
        self, task: Task, data: NumberData, store: NumberStore, schema: Schema, config: DataConfig
    ) -> Baseline:
        train = task.store(data, "train", schema)
        season = goal_of(task, schema).facts(data, train, schema, None).season
        return naive_forecast(train, store, schema.target("values", ValueSpec), season)

    def score_options(self, model: Forecaster) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        return config

    def measure(
        self, run: Run, model: Forecaster, data: NumberData, store: NumberStore, passage: str, score: Any, timer: Timer
    ) -> dict[str, Any]:
        scaling = run.schema.target("values", ValueSpec)
        horizon = min(PASSAGE_STEPS, 2 * default_horizon(data.season), len(store) + 1 - store.first)
        found = forecasts(model, store, np.array([store.first - 1]), horizon)
        middle, low, high = (scaling.decode(values)[0][:, 0] for values in found)  # (h,) of the first column
        row = torch.zeros(1, len(scaling.columns))

        def take_steps() -> None:
            _, state = model.start(Batch({"values": Values(row.unsqueeze(0))}, {}))
            for _ in range(TIMED_STEPS):
                _, state = model.step(row, state)

        with torch.inference_mode(), evaluating(model):
            seconds = timer.best_of_two(take_steps)
        return {
            "forecast": list(zip(middle.tolist(), low.tolist(), high.tolist(), strict=True)),
            "ms_per_token": 1000 * seconds / TIMED_STEPS,
        }


class PairSubject:
    timed = 200

    def sizes(self, data: PairData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(pairs) for part, pairs in data.parts.items()}

    def passage(self, data: PairData, part: str) -> dict[str, Any]:
        return {}

    def take(self, task: Task, data: PairData, part: str, schema: Schema, limit: int) -> tuple[Any, bool]:
        """The same pairs for all, whatever their tokenizer."""
        store = task.store(data, part, schema)
        characters = np.cumsum([len(target) for _, target in data.parts[part]])
        num = max(1, int(np.searchsorted(characters, limit, side="right")))
        return (store, True) if num >= store.num_pairs else (store.pairs(num), False)

    def amount(self, store: PairStore) -> int:
        return store.num_chars

    def baseline(self, task: Task, data: PairData, store: PairStore, schema: Schema, config: DataConfig) -> Baseline:
        return most_frequent_target([target for _, target in data.parts["train"]], store)

    def score_options(self, model: Translator) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        """Who has learned nothing goes on to the limit of length, where who has learned ends long before."""
        return replace(config, length_ratio=1.0)

    def measure(
        self,
        run: Run,
        model: Translator,
        data: PairData,
        store: PairStore,
        passage: str,
        score: TranslationScore,
        timer: Timer,
    ) -> dict[str, Any]:
        answer_lines = SequenceGoal().answer_lines
        sources = [source for source, _ in store.texts]
        found: dict[str, Any] = {
            "by_position": [(low, score.metric.shown(part.value)) for low, _, part in score.parts_by_length()]
        }
        spread = np.linspace(0, len(sources) - 1, min(len(sources), SHOWN_PAIRS)).astype(int).tolist()
        shown = [(sources[place], score.hypotheses[place], score.references[place]) for place in spread]
        found["samples"] = [
            f"{source}\n= {answer}" + ("" if answer == wanted else f"\n({wanted})") for source, answer, wanted in shown
        ]

        def seconds_per_token(lines: list[str]) -> float:
            """With a beam of five, as lines are answered where nothing else is asked."""
            tokens = 0

            def answer() -> None:
                nonlocal tokens
                found = answer_lines(model, lines, run.schema, run.config.data)
                tokens = sum(len(answer.hypotheses[0].tokens) for answer in found)

            return timer.best_of_two(answer) / max(1, tokens)

        if timer.has_time_for("ms/token"):
            found["ms_per_token"] = 1000 * seconds_per_token(sources[:1])
        if timer.has_time_for("tokens/s"):
            found["generation_tokens_per_second"] = 1 / seconds_per_token(sources[:TIMED_TEXTS])
        return found


SUBJECTS: dict[str, Subject[Any, Any, Any]] = {
    NEXT_TOKEN: TextSubject(),
    NEXT_VALUES: NumberSubject(),
    LABEL: AnswerSubject(),
    LABELS: AnswerSubject(),
    NUMBER: AnswerSubject(),
    TAG: TagSubject(),
    SEQUENCE: PairSubject(),
    SPAN: SpanSubject(),
    CHOICE: ChoiceSubject(),
    CAPTION: CaptionSubject(),
}


def _take(goal: AnyGoal, store: Sized, limit: int) -> tuple[Any, bool]:
    cut = goal.take(store, limit)
    return cut, len(cut) == len(store)


def sample_texts(model: LanguageModel, tokenizer: Tokenizer, num_tokens: int) -> list[str]:
    config = DecodingConfig(max_tokens=num_tokens, temperature=SAMPLE_TEMPERATURE, num_results=SAMPLES)
    with evaluating(model):
        found = generate(model, [[tokenizer.boundary]], config)[0]
    return [tokenizer.decode(hypothesis.tokens) for hypothesis in found]


def surprise(model: LanguageModel, tokenizer: Tokenizer, passage: str) -> list[tuple[str, float]]:
    """Each piece of the passage with the bits it took, the passage before it being known; letters of unknown words are
    among them."""
    store = store_of_text(passage, tokenizer)
    if store.num_tokens < 1:
        return []
    nats = token_nats(model, store)
    nats[store.spelling.places] += store.spelling.values
    pieces = [tokenizer.piece(token) for token in store.ids[1:].tolist()]
    return list(zip(pieces, (nats / math.log(2)).tolist(), strict=True))


def by_position(model: LanguageModel, store: TokenStore, per_token: float, max_windows: int) -> list[tuple[int, float]]:
    """(characters read before, bits per character): the mean over positions up to twice as far."""
    letters = float(store.spelling.values.sum()) / store.num_tokens  # of unknown words, wherever they stand
    nats = nats_by_position(model, store, context=MAX_CONTEXT_TOKENS, max_windows=max_windows) + letters
    found, start = [], 0
    while start < len(nats):
        end = min(len(nats), max(start + 1, 2 * start))
        if 2 * end > len(nats) and end < len(nats):  # what is left would be few
            end = len(nats)
        found.append((round(start * per_token), float(nats[start:end].mean()) / math.log(2) / per_token))
        start = end
    return found


def choose_passage(data: TextData, part: str) -> str:
    """The beginning of a part, up to the end of a line."""
    cut = beginning_of(data, part, PASSAGE_CHARACTERS)
    return cut[: cut.rfind("\n") + 1] if "\n" in cut[PASSAGE_CHARACTERS // 2 :] else cut


def beginning_of(data: TextData, part: str, limit: int) -> str:
    """The first characters of a part."""
    text = ""
    for block in data.parts[part].blocks():
        text += block[: limit - len(text)]
        if len(text) == limit:
            break
    return text
