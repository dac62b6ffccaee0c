"""One answer for a whole sequence: a label, or a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..data.examples import ExampleData, Examples, ExampleStore
from ..data.schema import Schema
from ..errors import ConfigError
from ..evaluation.answers import ROWS, AnswerScore, evaluate_answers, predict_answers
from ..models.contract import Answerer
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

MAX_VALID_EXAMPLES = 5_000


class AnswerGoal:
    unit = "answers"
    metrics = ("accuracy", "mean_squared_error", "nats_per_answer")
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: ExampleData, train: ExampleStore, schema: Schema, minutes: float | None) -> Facts:
        return Facts(len(train), schema.only_input().size, "", minutes, length=train.inputs.shape[1])

    def batches(self, store: ExampleStore, model: Answerer, config: TrainingConfig) -> BatchSource:
        return Examples(store, batch_size=config.batch_size, seed=config.seed)

    def sequences(self, store: ExampleStore, model: Answerer) -> list[Any]:
        raise ConfigError("families that learn by counting or EM do not label; choose another --model.")

    def take(self, store: ExampleStore, limit: int) -> ExampleStore:
        return store if limit >= len(store) else ExampleStore(store.inputs[:limit], store.answers[:limit])

    def validated(self, store: ExampleStore, limit: int | None) -> ExampleStore:
        return self.take(store, min(MAX_VALID_EXAMPLES, limit or MAX_VALID_EXAMPLES))

    def validate(self, model: Answerer, store: ExampleStore, limit: int | None) -> float:
        return evaluate_answers(model, self.validated(store, limit)).nats_per_answer

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to right and wrong

    def score(
        self,
        model: Answerer,
        store: ExampleStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> AnswerScore:
        return evaluate_answers(model, store, scored=scored)

    def beginning_of_text(self, data: ExampleData, part: str, num_chars: int) -> None:
        return None

    def sample(self, model: Answerer, store: ExampleStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: Answerer, store: ExampleStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """The answer to each example of a part."""
        for start in range(0, len(store), ROWS):
            for answer in predict_answers(model, store.batch(slice(start, start + ROWS))):
                yield schema.main_spec.decode(answer)

    def next_command(self, path: str) -> str:
        return f"seqwise evaluate {path}"
