"""Pictures to be painted: batched in black and white, scored by a bound, painted from nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..data.binarised import PictureBatches
from ..data.schema import ImageSpec, Schema
from ..data.seen import SeenData
from ..data.seen_store import SeenStore
from ..errors import ConfigError
from ..evaluation.pictures import BoundsPictures, PictureScore, evaluate_pictures
from ..models.contract import noise_for
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

MAX_VALID_PICTURES = 2_000


class PictureGoal:
    unit = "pictures"
    metrics = ("bound",)
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: SeenData, train: SeenStore, schema: Schema, minutes: float | None) -> Facts:
        spec = schema.input("image", ImageSpec)
        return Facts(len(train), spec.size, "", minutes, picture=spec)

    def batches(self, store: SeenStore, model: BoundsPictures, config: TrainingConfig) -> BatchSource:
        return PictureBatches(store, batch_size=config.batch_size, seed=config.seed, num_noise=noise_for(model))

    def sequences(self, store: SeenStore, model: BoundsPictures) -> list[Any]:
        raise ConfigError("families that learn by counting or EM do not paint; choose another --model.")

    def take(self, store: SeenStore, limit: int) -> SeenStore:
        return store.take(limit)

    def validated(self, store: SeenStore, limit: int | None) -> SeenStore:
        return store.take(min(MAX_VALID_PICTURES, limit or MAX_VALID_PICTURES))

    def validate(self, model: BoundsPictures, store: SeenStore, limit: int | None) -> float:
        return evaluate_pictures(model, self.validated(store, limit)).bound

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        return lambda nats: nats

    def score(
        self,
        model: BoundsPictures,
        store: SeenStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> PictureScore:
        return evaluate_pictures(model, store, scored=scored)

    def beginning_of_text(self, data: SeenData, part: str, num_chars: int) -> str | None:
        return None

    def sample(self, model: BoundsPictures, store: SeenStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: BoundsPictures, store: SeenStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        raise ConfigError(
            "this model paints pictures and has no answers to give; use: seqwise generate RUN --out FOLDER."
        )

    def next_command(self, path: str) -> str:
        return f"seqwise generate {path} --num 16 --out {path}/painted"
