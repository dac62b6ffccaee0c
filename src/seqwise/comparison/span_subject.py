"""What a comparison shows of questions on passages besides scores: what each model answers to the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..data.questions import Question, SpanData
from ..data.schema import Schema
from ..data.span_store import SpanStore
from ..evaluation.span_answers import spans_of, window_steps
from ..evaluation.spans import SpanScore, judge
from ..models.contract import evaluating
from ..models.headed import HeadedModel
from ..run import Run
from ..settings import DataConfig
from ..tasks import Task
from .answers import rows_to_show
from .baselines import Baseline, nearest_sentence
from .timer import Timer

TIMED_ANSWERS = 20
MAX_EXAMPLE_CHARACTERS = 400
NONE = "(no answer)"


class SpanSubject:
    timed = 50

    def sizes(self, data: SpanData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(questions) for part, questions in data.parts.items()}

    def passage(self, data: SpanData, part: str) -> dict[str, Any]:
        """Some questions of the part that is scored, and what should be answered."""
        rows = data.parts[part]
        examples = ((row, rows[row]) for row in rows_to_show(len(rows)).tolist())
        return {"examples": [(row, _shown(one), _wanted(one)) for row, one in examples]}

    def take(self, task: Task, data: SpanData, part: str, schema: Schema, limit: int) -> tuple[SpanStore, bool]:
        store: SpanStore = task.store(data, part, schema)
        return store.take(limit), limit >= len(store)

    def amount(self, store: SpanStore) -> int:
        return len(store)

    def baseline(self, task: Task, data: SpanData, store: SpanStore, schema: Schema, config: DataConfig) -> Baseline:
        return nearest_sentence(data.parts["train"], store.rows)

    def score_options(self, model: HeadedModel) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        return config

    def measure(
        self,
        run: Run,
        model: HeadedModel,
        data: SpanData,
        store: SpanStore,
        passage: str,
        score: SpanScore,
        timer: Timer,
    ) -> dict[str, Any]:
        batch = store.windows(window_steps(model)).batch(np.arange(1))

        def answer() -> None:
            for _ in range(TIMED_ANSWERS):
                model.predict(batch)

        with torch.inference_mode(), evaluating(model):
            seconds = timer.best_of_two(answer) / TIMED_ANSWERS
        return {"ms_per_token": float(1000 * seconds), "answers": answers_to_show(model, store, score)}


def answers_to_show(model: HeadedModel, store: SpanStore, score: SpanScore) -> list[tuple[int, str, float, float]]:
    """Of the questions that are shown: what was said, how probable the model thought it, and its F1."""
    rows = rows_to_show(len(score.answers))
    found = spans_of(model, store.choose(rows))
    shown = []
    for place, row in enumerate(rows.tolist()):
        said, best = score.answers[row], found.spans[place]
        sure = float(np.exp(best[0].log_prob if said and best else found.none[place]))
        f1 = judge(said, score.references[row], may_lack=score.may_lack)[1]
        shown.append((row, said or NONE, sure, f1))
    return shown


def _shown(question: Question) -> str:
    text = f"{question.text} | {' '.join(question.passage.split())}"
    return text if len(text) <= MAX_EXAMPLE_CHARACTERS else text[:MAX_EXAMPLE_CHARACTERS] + "…"


def _wanted(question: Question) -> str:
    return question.texts[0] if question.references else NONE
