"""What a comparison shows of captions besides scores: what each model writes about the same pictures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.schema import Schema
from ..data.seen import SeenData
from ..data.seen_store import SeenStore
from ..evaluation.captions import CaptionScore, captions_of, words_of
from ..evaluation.cider import cider
from ..evaluation.segments import Segments
from ..goals.caption import MAX_TOKENS, references_of
from ..goals.sequence import search_settings
from ..models.contract import Translator
from ..run import Run
from ..settings import DataConfig
from ..tasks import Task
from .answers import rows_to_show
from .baselines import Baseline
from .timer import Timer

UNTRAINED_TOKENS = 15  # that who has learned nothing writes, about as many as who has
TIMED_PICTURES = 16


class CaptionSubject:
    timed = 20

    def sizes(self, data: SeenData, stores: dict[str, Any]) -> dict[str, int]:
        return {part: len(store) for part, store in stores.items()}

    def passage(self, data: SeenData, part: str) -> dict[str, Any]:
        return {}

    def take(self, task: Task, data: SeenData, part: str, schema: Schema, limit: int) -> tuple[SeenStore, bool]:
        store: SeenStore = task.store(data, part, schema)
        return store.take(limit), limit >= len(store)

    def amount(self, store: SeenStore) -> int:
        return len(store)

    def baseline(self, task: Task, data: SeenData, store: SeenStore, schema: Schema, config: DataConfig) -> Baseline:
        """The caption that most pictures of the training part have, for all of them."""
        usual, _ = Counter(words_of(text) for row in data.parts["train"] for text in row.texts).most_common(1)[0]
        references = [[words_of(text) for text in texts] for texts in references_of(store)]
        found = cider([usual] * len(references), references)
        return Baseline("the most frequent caption", Segments.of(found, np.ones(len(found)), "mean_score"))

    def score_options(self, model: Translator) -> dict[str, Any]:
        return {}

    def as_if_trained(self, config: DataConfig) -> DataConfig:
        """Who has learned nothing goes on to the limit of length, where who has learned ends long before."""
        return replace(config, caption_tokens=min(UNTRAINED_TOKENS, config.caption_tokens or UNTRAINED_TOKENS))

    def measure(
        self, run: Run, model: Translator, data: SeenData, store: SeenStore, passage: str, score: Any, timer: Timer
    ) -> dict[str, Any]:
        found: dict[str, Any] = {"samples": samples_of(score)}
        search = search_settings(run.schema, max_tokens=run.config.data.caption_tokens or MAX_TOKENS)
        pictures = np.unique(store.picture_of)[:TIMED_PICTURES]

        def seconds_per_word(some: np.ndarray) -> float:
            words = 0

            def write() -> None:
                nonlocal words
                words = sum(1 + len(text.split()) for text in captions_of(model, run.schema, store, some, search))

            return timer.best_of_two(write) / max(1, words)

        if timer.has_time_for("ms/token"):
            found["ms_per_token"] = 1000 * seconds_per_word(pictures[:1])
        if timer.has_time_for("tokens/s"):
            found["generation_tokens_per_second"] = 1 / seconds_per_word(pictures)
        return found


def samples_of(score: CaptionScore) -> list[str]:
    """A few pictures: what the model says of each, and in brackets what a person did."""
    rows = rows_to_show(len(score.names)).tolist()
    return [f"{score.names[row]}\n= {score.hypotheses[row]}\n({score.references[row][0]})" for row in rows]
