"""Hidden words of a text, and whether the second of two texts follows the first: what BERT learns from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..data.masking import MaskedBatches, MaskedStore, Masking
from ..data.schema import Schema, TokenSpec
from ..data.source import TextData
from ..errors import ConfigError
from ..evaluation.masked import MaskedScore, evaluate_masked
from ..models.headed import HeadedModel
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress


class MaskedTokenGoal:
    unit = "tokens"
    metrics = ("masked_nats_per_token", "masked_accuracy", "next_accuracy", "pseudo_perplexity")
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: TextData, train: MaskedStore, schema: Schema, minutes: float | None) -> Facts:
        spec = schema.input("tokens", TokenSpec)
        return Facts(len(train), spec.size, spec.tokenizer.kind, minutes)

    def batches(self, store: MaskedStore, model: HeadedModel, config: TrainingConfig) -> BatchSource:
        masking = Masking(config.masked_share, config.mask_whole_words, config.masking == "static")
        return MaskedBatches(
            store, context=config.context, batch_size=config.batch_size, masking=masking, seed=config.seed
        )

    def sequences(self, store: MaskedStore, model: HeadedModel) -> list[Any]:
        raise ConfigError("families that learn by counting or EM fill in no hidden words; choose another --model.")

    def take(self, store: MaskedStore, limit: int) -> MaskedStore:
        return store.take(limit)

    def validated(self, store: MaskedStore, limit: int | None) -> MaskedStore:
        return store.take(limit)

    def validate(self, model: HeadedModel, store: MaskedStore, limit: int | None) -> float:
        scored = evaluate_masked(model, self.validated(store, limit), context=_context(model), with_pseudo=False)
        return scored.nats_per_token

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        return lambda nats: nats

    def score(
        self,
        model: HeadedModel,
        store: MaskedStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> MaskedScore:
        spec, context = schema.input("tokens", TokenSpec), _context(model)
        scored = f"{scored}|context={context}|tokenizer={spec.tokenizer.kind}:{spec.size}"
        return evaluate_masked(model, store, context=context, scored=scored)

    def beginning_of_text(self, data: TextData, part: str, num_chars: int) -> str:
        return "".join(islice(data.parts[part].blocks(), 8))[:num_chars]

    def sample(self, model: HeadedModel, store: MaskedStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: HeadedModel, store: MaskedStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        raise ConfigError('a model of hidden words fills in what you leave out; use: seqwise fill RUN "a [MASK] day".')

    def next_command(self, path: str) -> str:
        return f'seqwise fill {path} "… [MASK] …"'


def _context(model: HeadedModel) -> int:
    assert model.context is not None
    return model.context
