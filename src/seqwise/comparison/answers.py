"""What a comparison shows of labels, numbers and tags besides scores: which labels are confused, and what each model
answers to the same examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..data.annotated import LabelledData, TaggedData
from ..data.examples import ExampleData, ExampleStore
from ..data.schema import NumberSpec, Schema, TagSpec
from ..data.text_examples import TextStore
from ..evaluation.answers import LabelScore, LabelSetScore, NumberScore
from ..evaluation.entities import TagScore
from ..models.contract import Answerer, evaluating
from ..run import Run
from ..settings import DataConfig
from ..tasks import Task
from .baselines import Baseline, most_frequent_answer, most_frequent_tag
from .timer import Timer

TIMED_ANSWERS = 40
MAX_EXAMPLES = 500  # that all models are shown side by side on
MAX_EXAMPLE_CHARACTERS = 400
MAX_CONFUSED_LABELS = 30  # of which a table can be read

Data = ExampleData | LabelledData
Store = ExampleStore | TextStore


class AnswerSubject:
    timed = 200

    def sizes(self, data: Data, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(store) for part, store in stores.items()}

    def passage(self, data: Data, part: str) -> dict[str, Any]:
        """The first examples of the part that is scored: their texts, and what should be answered."""
        if not isinstance(data, LabelledData):
            return {}
        return {
            "examples": [(_short(" | ".join(row.texts)), told(row.answer)) for row in data.parts[part][:MAX_EXAMPLES]]
        }

    def take(self, task: Task, data: Data, part: str, schema: Schema, limit: int) -> tuple[Store, bool]:
        store: Store = task.store(data, part, schema)
        return store.take(limit), limit >= len(store)

    def amount(self, store: Store) -> int:
        return len(store)

    def baseline(self, task: Task, data: Data, store: Store, schema: Schema, config: DataConfig) -> Baseline:
        spec = schema.main_spec
        scale = spec.scale if isinstance(spec, NumberSpec) else 1.0
        return most_frequent_answer(task.store(data, "train", schema), store, scale=scale)

    def score_options(self, model: Answerer) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        return config

    def measure(
        self, run: Run, model: Answerer, data: Data, store: Store, passage: str, score: Any, timer: Timer
    ) -> dict[str, Any]:
        found: dict[str, Any] = {"ms_per_token": _milliseconds(model, store, timer)}
        if isinstance(score, LabelScore) and len(score.names) <= MAX_CONFUSED_LABELS:
            found["confusion"] = {"labels": score.names, "counts": score.confusion.tolist()}
        if isinstance(store, TextStore):
            found["answers"] = answers_shown(score)
        return found


class TagSubject:
    timed = 100

    def sizes(self, data: TaggedData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: sum(len(row.words) for row in rows) for part, rows in data.parts.items()}

    def passage(self, data: TaggedData, part: str) -> dict[str, Any]:
        rows = data.parts[part][:MAX_EXAMPLES]
        return {"examples": [(_short(" ".join(row.words)), " ".join(row.tags)) for row in rows]}

    def take(self, task: Task, data: TaggedData, part: str, schema: Schema, limit: int) -> tuple[TextStore, bool]:
        store: TextStore = task.store(data, part, schema)
        return store.take(limit), limit >= len(store)

    def amount(self, store: TextStore) -> int:
        return len(store)

    def baseline(self, task: Task, data: TaggedData, store: TextStore, schema: Schema, config: DataConfig) -> Baseline:
        return most_frequent_tag(data.parts["train"], store, schema.target("tags", TagSpec))

    def score_options(self, model: Answerer) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        return config

    def measure(
        self, run: Run, model: Answerer, data: TaggedData, store: TextStore, passage: str, score: TagScore, timer: Timer
    ) -> dict[str, Any]:
        answers = [
            (" ".join(tags), float(tags == wanted)) for tags, wanted in zip(score.answers, score.wanted, strict=True)
        ]
        return {"ms_per_token": _milliseconds(model, store, timer), "answers": answers[:MAX_EXAMPLES]}


def _milliseconds(model: Answerer, store: Store, timer: Timer) -> float:
    """Of one row alone."""
    batch = store.batch(slice(0, 1))

    def answer() -> None:
        for _ in range(TIMED_ANSWERS):
            model.predict(batch)

    with torch.inference_mode(), evaluating(model):
        return float(1000 * timer.best_of_two(answer) / TIMED_ANSWERS)


def answers_shown(score: LabelScore | LabelSetScore | NumberScore) -> list[tuple[str, float]]:
    """What was said of the first examples, and how probable what was wanted is; of numbers, how far off it was."""
    some = slice(0, MAX_EXAMPLES)
    if isinstance(score, NumberScore):
        errors = np.abs(score.answers - score.wanted)[some].tolist()
        return [(f"{answer:.4g}", -error) for answer, error in zip(score.answers[some].tolist(), errors, strict=True)]
    if isinstance(score, LabelSetScore):
        said = ["|".join(np.array(score.names)[answer]) for answer in score.answers[some]]
        return list(zip(said, np.exp(-score.nats[some]).tolist(), strict=True))
    wanted = np.maximum(score.wanted[some], 0)
    right = np.where(score.wanted[some] >= 0, score.probabilities[some][np.arange(len(wanted)), wanted], 0.0)
    return [(score.names[answer], float(p)) for answer, p in zip(score.answers[some], right, strict=True)]


def told(answer: Any) -> str:
    return (
        "|".join(answer) if isinstance(answer, tuple) else f"{answer:.4g}" if isinstance(answer, float) else str(answer)
    )


def _short(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE_CHARACTERS else text[:MAX_EXAMPLE_CHARACTERS] + "…"
