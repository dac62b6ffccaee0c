"""What a comparison shows of labels, numbers and tags besides scores: how well each label is known, which are confused,
whether probabilities can be trusted, and what each model answers to the same examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..data.annotated import LabelledData, LabelledRow, TaggedData
from ..data.examples import ExampleData, ExampleStore
from ..data.schema import LABEL, NumberSpec, Schema, TagSpec
from ..data.seen import SeenData, SeenRow
from ..data.seen_store import SeenStore
from ..data.text_examples import TextStore
from ..evaluation.answers import AnswerScore, LabelScore, LabelSetScore, NumberScore
from ..evaluation.entities import TagScore
from ..evaluation.labels import Counts, by_count
from ..models.contract import Answerer, evaluating
from ..run import Run
from ..settings import DataConfig
from ..tasks import Task
from .baselines import Baseline, bag_of_words, most_frequent_answer, most_frequent_tag, question_alone
from .plan import MIN_SCORED
from .timer import Timer

TIMED_ANSWERS = 40
MAX_EXAMPLES = 500  # that all models are shown side by side on
MAX_EXAMPLE_CHARACTERS = 400
MAX_EXAMPLE_WORDS = 60
MAX_LABELS = 30  # of which a table can be read
MAX_CONFUSED = 20  # pairs of labels

Data = ExampleData | LabelledData | SeenData
Store = ExampleStore | TextStore | SeenStore


class AnswerSubject:
    timed = 200

    def sizes(self, data: Data, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(store) for part, store in stores.items()}

    def passage(self, data: Data, part: str) -> dict[str, Any]:
        """Some examples of the part that is scored: texts, or the names of pictures, and what should be answered."""
        if isinstance(data, ExampleData):
            return {}
        rows: Sequence[LabelledRow | SeenRow] = data.parts[part]
        examples = ((row, rows[row]) for row in rows_to_show(len(rows)).tolist())
        return {"examples": [(row, _short(" | ".join(_read(one))), told(one.answer)) for row, one in examples]}

    def take(self, task: Task, data: Data, part: str, schema: Schema, limit: int) -> tuple[Store, bool]:
        store: Store = task.store(data, part, schema)
        return store.take(limit), limit >= len(store)

    def amount(self, store: Store) -> int:
        return len(store)

    def baseline(self, task: Task, data: Data, store: Store, schema: Schema, config: DataConfig) -> Baseline:
        spec = schema.main_spec
        scale = spec.scale if isinstance(spec, NumberSpec) else 1.0
        train: Store = task.store(data, "train", schema)
        found = most_frequent_answer(train, store, scale=scale)
        if schema.kind == LABEL and isinstance(train, TextStore) and isinstance(store, TextStore):
            return replace(found, simple=bag_of_words(train, store, schema))
        if isinstance(train, SeenStore) and isinstance(store, SeenStore):
            return replace(found, simple=question_alone(train, store, schema))
        return found

    def score_options(self, model: Answerer) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        return config

    def measure(
        self, run: Run, model: Answerer, data: Data, store: Store, passage: str, score: AnswerScore, timer: Timer
    ) -> dict[str, Any]:
        found: dict[str, Any] = {"ms_per_token": _milliseconds(model, store, timer)}
        if isinstance(score, LabelScore | LabelSetScore):
            found["by_label"] = figures_by_label(score.by_label)
        if isinstance(score, LabelScore):
            found["confused"] = score.most_confused(MAX_CONFUSED)
            found["reliability"] = [(one.confidence, one.share_right, one.count) for one in score.reliability]
            if len(score.names) <= MAX_LABELS:
                found["confusion"] = {"labels": score.names, "counts": score.confusion.tolist()}
        if isinstance(store, TextStore | SeenStore):
            found["answers"] = answers_to_show(score)
        return found


class ChoiceSubject(AnswerSubject):
    """As labels, but that a number of a choice says nothing by itself."""

    def measure(
        self, run: Run, model: Answerer, data: Data, store: Store, passage: str, score: AnswerScore, timer: Timer
    ) -> dict[str, Any]:
        return {"ms_per_token": _milliseconds(model, store, timer), "answers": answers_to_show(score)}


class TagSubject:
    timed = 100

    def sizes(self, data: TaggedData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: sum(len(row.words) for row in rows) for part, rows in data.parts.items()}

    def passage(self, data: TaggedData, part: str) -> dict[str, Any]:
        """Some rows of the part that is scored: their words, and the tags that they should have."""
        rows, most = data.parts[part], MAX_EXAMPLE_WORDS
        examples = ((row, rows[row]) for row in rows_to_show(len(rows)).tolist())
        return {"tagged": [(row, list(one.words[:most]), list(one.tags[:most])) for row, one in examples]}

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
        return {
            "ms_per_token": _milliseconds(model, store, timer),
            "by_label": figures_by_label(score.by_type),
            "wrong_tags": wrong_tags(score),
        }


def _read(row: LabelledRow | SeenRow) -> tuple[str, ...]:
    """What is asked for an answer to, in words."""
    return row.texts if isinstance(row, LabelledRow) else (row.frames[0], *row.texts)


def _milliseconds(model: Answerer, store: Store, timer: Timer) -> float:
    """Of one row alone."""
    batch = store.batch(slice(0, 1))

    def answer() -> None:
        for _ in range(TIMED_ANSWERS):
            model.predict(batch)

    with torch.inference_mode(), evaluating(model):
        return float(1000 * timer.best_of_two(answer) / TIMED_ANSWERS)


def rows_to_show(num: int) -> np.ndarray:
    """Which rows of a part models are shown side by side on: spread over those that every model is scored on, since
    files are often sorted."""
    scored = min(num, MIN_SCORED)
    return np.linspace(0, scored - 1, min(scored, MAX_EXAMPLES)).astype(np.int64)


def answers_to_show(score: AnswerScore) -> list[tuple[int, str, float, float]]:
    """Of the rows that are shown: what was said, how probable the model thought it, and how probable it thought what
    was wanted. Of numbers: what was said, nothing, and minus the distance from what was wanted."""
    rows = rows_to_show(len(score.wanted))
    if isinstance(score, NumberScore):
        said = [f"{answer:.4g}" for answer in score.answers[rows]]
        sure, right = np.zeros(len(rows)), -np.abs(score.answers - score.wanted)[rows]
    elif isinstance(score, LabelSetScore):
        said = [told(tuple(np.array(score.names)[answer])) for answer in score.answers[rows]]
        sure, right = np.zeros(len(rows)), np.exp(-score.nats[rows])
    else:
        said = [score.names[answer] for answer in score.answers[rows]]
        sure, wanted = score.confidences[rows], score.wanted[rows]
        right = np.where(wanted >= 0, score.probabilities[rows, np.maximum(wanted, 0)], 0.0)
    return list(zip(rows.tolist(), said, sure.tolist(), right.tolist(), strict=True))


def wrong_tags(score: TagScore) -> list[tuple[int, list[tuple[int, str]]]]:
    """Of the rows that are shown: which words have a wrong tag, and which."""
    found = []
    for row in rows_to_show(len(score.wanted)).tolist():
        pairs = zip(score.wanted[row][:MAX_EXAMPLE_WORDS], score.answers[row], strict=False)
        found.append((row, [(word, said) for word, (wanted, said) in enumerate(pairs) if said != wanted]))
    return found


def figures_by_label(counts: Mapping[str, Counts]) -> list[tuple[str, float, float, float, int]]:
    """Precision, recall, F1 and count of each label, tag or type, the most frequent first."""
    return [(name, one.precision, one.recall, one.f1, one.wanted) for name, one in by_count(counts)[:MAX_LABELS]]


def told(answer: Any) -> str:
    """ "good", "3.142", "loud|slow"; in words where no label is right."""
    if isinstance(answer, tuple):
        return "|".join(answer) or "none"
    return f"{answer:.4g}" if isinstance(answer, float) else str(answer)


def _short(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE_CHARACTERS else text[:MAX_EXAMPLE_CHARACTERS] + "…"
