"""Which of a few choices is right: how probable each is, and how often the most probable one is the right one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..data.annotated import LabelledRow
from ..data.choices import ChoiceStore
from ..data.schema import LabelSpec, Schema
from ..evaluation.answers import answers_of
from ..evaluation.choices import ChoiceScore, evaluate_choices
from ..models.contract import Answerer
from ..settings import DataConfig
from .answer import AnswerGoal
from .goal import OnProgress


class ChoiceGoal(AnswerGoal):
    metrics = ("accuracy", "nats_per_answer", "calibration_error")

    def score(  # type: ignore[override]
        self,
        model: Answerer,
        store: ChoiceStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> ChoiceScore:
        return evaluate_choices(model, store, schema.target(schema.main, LabelSpec).names, scored=scored)

    def predict(  # type: ignore[override]
        self, model: Answerer, store: ChoiceStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """The choice for each question, a line each, and how probable each of them is, in their order."""
        for found in self.answers(model, store, schema):
            yield "\t".join([found["choice"], *(f"{probability:.4f}" for probability in found["probabilities"])])

    def answers(self, model: Answerer, store: ChoiceStore, schema: Schema) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        """What is chosen, its number from 1, and the probability of each choice, in their order."""
        found = answers_of(model, store)
        assert found.log_probs is not None
        rows = cast(Sequence[LabelledRow], store.rows)
        for row, answer, log_probs in zip(rows, found.answers.tolist(), found.log_probs, strict=True):
            choices = row.texts[1:]
            probable = np.exp(log_probs[: len(choices)].astype(np.float64)).round(6).tolist()
            yield {"choice": choices[answer], "number": answer + 1, "probabilities": probable}
