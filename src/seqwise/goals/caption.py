"""A sentence about each picture or clip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..data.schema import ImageSpec, RegionSpec, Schema, TokenSpec
from ..data.seen import SeenData
from ..data.seen_store import SeenBatches, SeenStore
from ..errors import ConfigError
from ..evaluation.captions import CaptionScore, captions_of, nats_per_token, retrieve, row_nats, seen_first, shuffled
from ..models.contract import Translator, evaluating, noise_for
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress
from .sequence import search_settings

MAX_VALID_ROWS = 2_000
MAX_TOKENS = 60  # of a caption, where training did not say


class CaptionGoal:
    unit = "tokens"
    metrics = (
        *("bleu_4", "bleu_3", "bleu_2", "bleu_1", "cider", "exact_match"),
        *("nats_per_token", "shuffled_nats_per_token", "token_accuracy"),
    )
    score_options: tuple[str, ...] = ("method", "beam_width", "length_penalty", "length_form")
    reads_lines = False
    writes_table = False

    def facts(self, data: SeenData, train: SeenStore, schema: Schema, minutes: float | None) -> Facts:
        spec, picture = schema.target("tokens", TokenSpec), schema.specs[schema.inputs["image"]]
        assert isinstance(picture, ImageSpec | RegionSpec)
        longest, tokens = int(train.lengths.max()), int((train.lengths - 1).sum())
        return Facts(
            len(train),
            spec.size,
            spec.tokenizer.kind,
            minutes,
            length=longest,
            tokens=tokens,
            picture=picture,
            data={"caption_tokens": longest},
        )

    def batches(self, store: SeenStore, model: Translator, config: TrainingConfig) -> BatchSource:
        return SeenBatches(store, batch_size=config.batch_size, seed=config.seed, num_noise=noise_for(model))

    def sequences(self, store: SeenStore, model: Translator) -> list[Any]:
        raise ConfigError("families that learn by counting or EM read no pictures; choose another --model.")

    def take(self, store: SeenStore, limit: int) -> SeenStore:
        return store.take(limit)

    def validated(self, store: SeenStore, limit: int | None) -> SeenStore:
        """Rows that are spread over the part: captions of one picture stand side by side."""
        num = min(MAX_VALID_ROWS, len(store), limit or MAX_VALID_ROWS)
        return store if num == len(store) else store.choose(np.linspace(0, len(store) - 1, num).astype(int))

    def validate(self, model: Translator, store: SeenStore, limit: int | None) -> float:
        return nats_per_token(model, self.validated(store, limit))

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to n-grams in common

    def score(
        self,
        model: Translator,
        store: SeenStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> CaptionScore:
        search = search_settings(schema, **{"max_tokens": config.caption_tokens or MAX_TOKENS, **options})
        with evaluating(model):
            store = seen_first(model, store)
        pictures, first, picture_of = np.unique(store.picture_of, return_index=True, return_inverse=True)
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            on_progress("writing captions", done, len(pictures))

        written = list(captions_of(model, schema, store, pictures, search, count))
        on_progress("reading captions", 0, len(store))
        likelihood, other = row_nats(model, store), shuffled(store)
        on_progress("reading captions, pictures shuffled", 0, len(store))
        how = f"{search.method}={search.beam_width}" if search.method == "beam" else search.method
        return CaptionScore(
            [", ".join(store.rows[row].frames[:1]) for row in first.tolist()],
            written,
            references_of(store),
            likelihood,
            picture_of,
            None if other is None else row_nats(model, other),
            retrieve(model, store),
            f"{scored}|{how}|{search.length_form}={search.length_penalty:g}",
        )

    def beginning_of_text(self, data: SeenData, part: str, num_chars: int) -> str | None:
        texts = (text for row in data.parts[part] for text in row.texts)
        return next(texts, "")[:num_chars]

    def sample(self, model: Translator, store: SeenStore, schema: Schema, config: TrainingConfig) -> str | None:
        """The first picture of the part, as it would be described now."""
        search = search_settings(schema, method="greedy", max_tokens=config.sample_tokens)
        (written,) = captions_of(model, schema, store, store.picture_of[:1], search)
        return f"{store.rows[0].frames[0]} -> {written}"

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: Translator, store: SeenStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """Name and caption of each picture of a part."""
        for found in self.answers(model, store, schema, config):
            yield f"{found['picture']}\t{found['caption']}"

    def answers(
        self, model: Translator, store: SeenStore, schema: Schema, config: DataConfig | None = None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        limit = MAX_TOKENS if config is None else config.caption_tokens or MAX_TOKENS
        search = search_settings(schema, **{"max_tokens": limit, **options})
        pictures, first = np.unique(store.picture_of, return_index=True)
        order = np.argsort(first)
        written = captions_of(model, schema, store, pictures[order], search)
        for row, text in zip(first[order].tolist(), written, strict=True):
            yield {"picture": store.rows[row].frames[0], "caption": text}

    def next_command(self, path: str) -> str:
        return f"seqwise caption {path} IMAGE"


def references_of(store: SeenStore) -> list[list[str]]:
    """All captions of each picture, in the order of their numbers."""
    found: dict[int, dict[str, None]] = {}
    for picture, row in zip(store.picture_of.tolist(), store.rows, strict=True):
        found.setdefault(picture, {}).update(dict.fromkeys(row.texts))
    return [list(found[picture]) for picture in sorted(found)]
