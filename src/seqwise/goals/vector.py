"""A vector of a text: nothing that is right or wrong, and so nothing to learn from and nothing to be judged by.

Such runs are imported (sentence encoders). They are embedded and searched with, looked into, checked and started from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ..data.row_store import RowText
from ..data.schema import Schema
from ..data.text_examples import TextStore
from ..errors import ConfigError
from ..models.headed import HeadedModel
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress, Score


def no_answers(path: object) -> ConfigError:
    """Why a run of vectors cannot be judged, or predict, or go on."""
    return ConfigError(
        f"{path} gives a vector of a text, and has no answers of its own to be judged by: fine-tune it "
        f"(seqwise train DATA --model bert --from {path}) or embed with it (seqwise embed {path})."
    )


def _refuse() -> NoReturn:
    raise no_answers("this model")


class VectorGoal:
    unit = "texts"
    metrics: tuple[str, ...] = ()
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: RowText, train: TextStore, schema: Schema, minutes: float | None) -> Facts:
        _refuse()

    def batches(self, store: TextStore, model: HeadedModel, config: TrainingConfig) -> BatchSource:
        _refuse()

    def sequences(self, store: TextStore, model: HeadedModel) -> list[Any]:
        _refuse()

    def take(self, store: TextStore, limit: int) -> TextStore:
        return store.take(limit)

    def validated(self, store: TextStore, limit: int | None) -> TextStore:
        return store if limit is None else store.take(limit)

    def validate(self, model: HeadedModel, store: TextStore, limit: int | None) -> float:
        _refuse()

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None

    def score(
        self,
        model: HeadedModel,
        store: TextStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> Score:
        _refuse()

    def beginning_of_text(self, data: RowText, part: str, num_chars: int) -> str:
        """The first line of a part."""
        return next(data.lines_of(part), "")[:num_chars]

    def sample(self, model: HeadedModel, store: TextStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: HeadedModel, store: TextStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        _refuse()

    def next_command(self, path: str) -> str:
        return f"seqwise embed {path}"
