"""The answer to a question, as a span of the passage that it is asked on; or that the passage does not hold it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import __version__
from ..data.questions import SpanData
from ..data.schema import Schema, TokenSpec
from ..data.span_store import SpanStore, WindowBatches
from ..errors import ConfigError
from ..evaluation.span_answers import FoundSpan, SpanAnswers, head_of, nats_of, spans_of, window_steps
from ..evaluation.spans import NO_ANSWER, SpanScore, best_threshold, judge
from ..models.headed import HeadedModel
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

MAX_VALID_QUESTIONS = 500
LONG_SHARE = 0.98  # of questions with their passages fit into one window
ANSWER_SHARE = 0.99  # of answers are at most as long as those that are looked for


class SpanGoal:
    unit = "questions"
    metrics = ("f1", "exact_match", "nats_per_answer")
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: SpanData, train: SpanStore, schema: Schema, minutes: float | None) -> Facts:
        spec, answers = schema.input("tokens", TokenSpec), np.append(train.answer_lengths, 1)
        return Facts(
            len(train),
            spec.size,
            spec.tokenizer.kind,
            minutes,
            length=int(np.quantile(train.lengths, LONG_SHARE)),
            tokens=len(train.passages.ids) + len(train.questions.ids),
            answer_length=int(np.ceil(np.quantile(answers, ANSWER_SHARE))),
        )

    def batches(self, store: SpanStore, model: HeadedModel, config: TrainingConfig) -> BatchSource:
        return WindowBatches(store.windows(window_steps(model)), batch_size=config.batch_size, seed=config.seed)

    def sequences(self, store: SpanStore, model: HeadedModel) -> list[Any]:
        raise ConfigError("families that learn by counting or EM find no spans; choose another --model.")

    def take(self, store: SpanStore, limit: int) -> SpanStore:
        return store.take(limit)

    def validated(self, store: SpanStore, limit: int | None) -> SpanStore:
        """Questions from all of the part, since those on one article stand together."""
        num = min(len(store), MAX_VALID_QUESTIONS, limit or MAX_VALID_QUESTIONS)
        return store.choose(np.linspace(0, len(store) - 1, num).astype(np.int64))

    def validate(self, model: HeadedModel, store: SpanStore, limit: int | None) -> float:
        return nats_of(model, self.validated(store, limit))

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to words

    def score(
        self,
        model: HeadedModel,
        store: SpanStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> SpanScore:
        found, head = spans_of(model, store), head_of(model)
        references = [question.texts for question in store.rows]
        rules = "1.1" if all(references) else "2.0"
        none = f"|none={head.threshold:.3g}" if head.may_lack else ""
        windows = f"window={window_steps(model)}|answer<={head.max_answer}{none}"
        signature = f"F1, SQuAD {rules}|{scored}|{windows}|bootstrap=1000x{len(store)}|seqwise={__version__}"
        return SpanScore(found.chosen(head), references, found.nats_per_answer, signature)

    def chosen_settings(self, model: HeadedModel, store: SpanStore) -> dict[str, Any]:
        """From when on "none" is the answer: as suits the validation part best, where passages may lack one."""
        head = head_of(model)
        if not head.may_lack or all(question.references for question in store.rows):
            return {}
        found = spans_of(model, store)
        said = [some[0].text if some else NO_ANSWER for some in found.spans]
        rows = list(zip(said, (question.texts for question in store.rows), strict=True))
        answered = np.array([judge(text, texts, may_lack=True)[1] for text, texts in rows])
        none = np.array([judge(NO_ANSWER, texts, may_lack=True)[1] for _, texts in rows])
        return {"none_threshold": round(best_threshold(found.gaps, answered, none), 4)}

    def beginning_of_text(self, data: SpanData, part: str, num_chars: int) -> str:
        """The passage of the first question of a part."""
        return data.parts[part][0].passage[:num_chars]

    def sample(self, model: HeadedModel, store: SpanStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: HeadedModel, store: SpanStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """{id: answer}, as the official programs read predictions, a question a line; "" for none."""
        answers = spans_of(model, store).chosen(head_of(model))
        yield "{"
        for place, (question, answer) in enumerate(zip(store.rows, answers, strict=True), start=1):
            comma = "," if place < len(answers) else ""
            yield f"{json.dumps(question.id)}: {json.dumps(answer, ensure_ascii=False)}{comma}"
        yield "}"

    def answers(self, model: HeadedModel, store: SpanStore, schema: Schema) -> Iterator[dict[str, Any]]:
        """With their places and probabilities."""
        found, head = spans_of(model, store), head_of(model)
        for place, question in enumerate(store.rows):
            best = next(found.ranked(place, head))
            yield {"id": question.id, "question": question.text, **span_as_dict(best)}

    def answer(self, model: HeadedModel, store: SpanStore, num: int) -> list[list[FoundSpan]]:
        """The best answers to each question, with what they might have been instead."""
        found: SpanAnswers = spans_of(model, store, num=num)
        head = head_of(model)
        return [list(found.ranked(place, head))[:num] for place in range(len(store))]

    def next_command(self, path: str) -> str:
        return f'seqwise answer {path} --context FILE "…?"'


def span_as_dict(span: FoundSpan) -> dict[str, Any]:
    """For programs; places are null where there is no answer."""
    return {
        "answer": span.text,
        "probability": round(span.probability, 6),
        "start": None if span.is_none else span.start,
        "end": None if span.is_none else span.end,
    }
