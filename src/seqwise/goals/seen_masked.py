"""Hidden words and regions of pictures with sentences, and which picture is the right one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..data.masking import Masking
from ..data.schema import ImageSpec, RegionSpec, Schema, TokenSpec
from ..data.seen import SeenData
from ..data.seen_masking import SeenMaskedBatches, SeenMaskedStore
from ..errors import ConfigError
from ..evaluation.seen_masked import SeenMaskedScore, evaluate_seen_masked
from ..models.headed import HeadedModel
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

MAX_VALID = 500  # rows, while training


class SeenMaskedGoal:
    unit = "sentences"
    metrics = ("masked_nats_per_token", "masked_accuracy", "match_accuracy", "picture_recall_1", "sentence_recall_1")
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: SeenData, train: SeenMaskedStore, schema: Schema, minutes: float | None) -> Facts:
        spec, picture = schema.input("tokens", TokenSpec), schema.specs[schema.inputs["image"]]
        assert isinstance(picture, ImageSpec | RegionSpec)
        length = int(train.seen.lengths.max())
        return Facts(len(train), spec.size, spec.tokenizer.kind, minutes, length=length, picture=picture)

    def batches(self, store: SeenMaskedStore, model: HeadedModel, config: TrainingConfig) -> BatchSource:
        masking = Masking(config.masked_share, config.mask_whole_words, config.masking == "static")
        return SeenMaskedBatches(store, batch_size=config.batch_size, masking=masking, seed=config.seed)

    def sequences(self, store: SeenMaskedStore, model: HeadedModel) -> list[Any]:
        raise ConfigError("families that learn by counting or EM look at no pictures; choose another --model.")

    def take(self, store: SeenMaskedStore, limit: int) -> SeenMaskedStore:
        return store.take(limit)

    def validated(self, store: SeenMaskedStore, limit: int | None) -> SeenMaskedStore:
        return store.take(min(MAX_VALID, limit or MAX_VALID))

    def validate(self, model: HeadedModel, store: SeenMaskedStore, limit: int | None) -> float:
        return evaluate_seen_masked(model, self.validated(store, limit), with_retrieval=False).nats_per_token

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        return lambda nats: nats

    def score(
        self,
        model: HeadedModel,
        store: SeenMaskedStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> SeenMaskedScore:
        return evaluate_seen_masked(model, store, scored=scored)

    def beginning_of_text(self, data: SeenData, part: str, num_chars: int) -> str | None:
        return None

    def sample(self, model: HeadedModel, store: SeenMaskedStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: HeadedModel, store: SeenMaskedStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        raise ConfigError("this model was trained to start others from: seqwise train DATA --from RUN.")

    def next_command(self, path: str) -> str:
        return f"seqwise train DATA --model crossmodal --from {path}"
