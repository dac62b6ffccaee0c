"""A sequence of tokens for each source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..config import build
from ..data.pair_store import PairBatches, PairStore
from ..data.pairs import PairData
from ..data.schema import Schema, TokenSpec, pair_tokenizers
from ..decoding import DecodingConfig
from ..decoding.translate import Answer, translate
from ..errors import ConfigError
from ..evaluation.search_report import WIDTHS, SearchReport, report_on_search
from ..evaluation.translations import TranslationScore, likelihood_of, nats_per_token
from ..models.contract import Translator, evaluating
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

DEFAULT_SEARCH = {"method": "beam", "beam_width": 5, "length_penalty": 1.0, "length_form": "gnmt", "max_tokens": 1000}
DEFAULT_RATIO = 3.0


class SequenceGoal:
    unit = "tokens"
    metrics = ("bleu", "chrf", "exact_match", "token_accuracy", "nats_per_token")
    score_options: tuple[str, ...] = ("method", "beam_width", "length_penalty", "length_form")
    reads_lines = True
    writes_table = False

    def facts(self, data: PairData, train: PairStore, schema: Schema, minutes: float | None) -> Facts:
        source, target = pair_tokenizers(schema)
        ratio = np.quantile((train.target.lengths - 1) / train.source.lengths, 0.999)
        longest = int(max(train.source.lengths.max(), train.target.lengths.max()))
        found = {"length_ratio": round(float(ratio), 3)}
        return Facts(len(train), target.vocab_size, target.kind, minutes, length=longest, data=found)

    def batches(self, store: PairStore, model: Translator, config: TrainingConfig) -> BatchSource:
        return PairBatches(store, batch_tokens=config.batch_tokens, seed=config.seed)

    def sequences(self, store: PairStore, model: Translator) -> list[Any]:
        raise ConfigError("families that learn by counting or EM read no pairs; choose another --model.")

    def take(self, store: PairStore, limit: int) -> PairStore:
        return store.take(limit)

    def validated(self, store: PairStore, limit: int | None) -> PairStore:
        return store if limit is None else store.take(limit)

    def validate(self, model: Translator, store: PairStore, limit: int | None) -> float:
        return nats_per_token(model, self.validated(store, limit))

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to n-grams in common

    def score(
        self,
        model: Translator,
        store: PairStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> TranslationScore:
        search = search_settings(schema, **options)
        sources, references = [source for source, _ in store.texts], [target for _, target in store.texts]
        done = 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            on_progress("translating", done, len(sources))

        ratio = config.length_ratio or DEFAULT_RATIO
        answers = translate(model, schema, sources, search, length_ratio=ratio, on_progress=count)
        how = f"{search.method}={search.beam_width}" if search.method == "beam" else search.method
        scored = f"{scored}|{how}|{search.length_form}={search.length_penalty:g}"
        return TranslationScore(
            sources, references, [answer.text for answer in answers], likelihood_of(model, store), scored
        )

    def report_on_search(
        self,
        model: Translator,
        store: PairStore,
        schema: Schema,
        config: DataConfig,
        widths: Sequence[int] = WIDTHS,
        **options: Any,
    ) -> SearchReport:
        """How often beams of several widths miss the best known, and what that does to BLEU."""
        ratio = config.length_ratio or DEFAULT_RATIO
        search = search_settings(schema, **options)
        return report_on_search(model, schema, store.texts, search, length_ratio=ratio, widths=widths)

    def beginning_of_text(self, data: PairData, part: str, num_chars: int) -> str:
        return str(data.parts[part][0][0])

    def sample(self, model: Translator, store: PairStore, schema: Schema, config: TrainingConfig) -> str | None:
        """The first source of the part, as it would be answered now."""
        source, _ = store.texts[0]
        target = schema.target("tokens", TokenSpec)
        search = DecodingConfig(
            method="greedy", max_tokens=config.sample_tokens, stop=target.boundary, never=target.unwritten
        )
        with evaluating(model):
            (answer,) = translate(model, schema, [source], search, length_ratio=DEFAULT_RATIO)
        return f"{source} -> {answer.text}"

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: Translator, store: PairStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """The answers to the sources of a part."""
        for answer in self.answer_lines(model, (source for source, _ in store.texts), schema, config, **options):
            yield answer.text

    def answer_lines(
        self,
        model: Translator,
        lines: Iterable[str],
        schema: Schema,
        config: DataConfig,
        *,
        with_alignments: bool = False,
        **options: Any,
    ) -> Iterator[Answer]:
        """An answer for each line, in order, in memory that does not grow with their number."""
        ratio = config.length_ratio or DEFAULT_RATIO
        search = search_settings(schema, **options)
        return translate(model, schema, lines, search, length_ratio=ratio, with_alignments=with_alignments)

    def next_command(self, path: str) -> str:
        return f"seqwise predict {path} FILE"


def search_settings(schema: Schema, **options: Any) -> DecodingConfig:
    """How targets are searched for: a beam of five, where nothing else is asked."""
    target = schema.target("tokens", TokenSpec)
    given = {name: value for name, value in options.items() if value is not None}
    settings: dict[str, Any] = {**DEFAULT_SEARCH, "stop": target.boundary, "never": target.unwritten, **given}
    if "beam_width" not in given:
        settings["beam_width"] = max(settings.get("num_results", 1), min(5, target.size))
    return build(DecodingConfig, settings, section="decoding", where="search")
