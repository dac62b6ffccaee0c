"""The same row again: the sequence autoencoder (Dai & Le 2015), a start for models that read rows of text.

    state = f(⟨b⟩ w_1 … w_n ⟨b⟩)                                 the network reads a row up to its end        (1)
    p(w_t | row, w_1 … w_{t-1})   from state and w_1 … w_{t-1}   and writes it again, by the same weights     (2)

Only (2) is scored. A state of fixed size stands between both, so that what it holds must be the row; `train --from`
then starts a classifier from the weights that learned to read so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..data.pair_store import PairBatches
from ..data.row_store import RowStore, RowText
from ..data.schema import Schema, TokenSpec
from ..decoding import DecodingConfig, generate
from ..errors import ConfigError
from ..evaluation.reconstruction import ReconstructionScore, evaluate_reconstruction
from ..models.contract import LanguageModel, evaluating
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

WRITTEN_AT_ONCE = 32  # rows


class ReconstructionGoal:
    unit = "tokens"
    metrics = ("reconstruction_nats_per_token",)
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: RowText, train: RowStore, schema: Schema, minutes: float | None) -> Facts:
        spec, longest = schema.input("tokens", TokenSpec), int(train.rows.lengths.max())
        found = {"row_tokens": data.row_tokens}
        return Facts(len(train), spec.size, spec.tokenizer.kind, minutes, length=longest, data=found)

    def batches(self, store: RowStore, model: LanguageModel, config: TrainingConfig) -> BatchSource:
        return PairBatches(store, batch_tokens=config.batch_tokens, seed=config.seed)

    def sequences(self, store: RowStore, model: LanguageModel) -> list[Any]:
        raise ConfigError("families that learn by counting or EM do not write rows again; choose another --model.")

    def take(self, store: RowStore, limit: int) -> RowStore:
        return store.take(limit)

    def validated(self, store: RowStore, limit: int | None) -> RowStore:
        return store if limit is None else store.take(limit)

    def validate(self, model: LanguageModel, store: RowStore, limit: int | None) -> float:
        return evaluate_reconstruction(model, self.validated(store, limit)).nats_per_token

    def loss_as_value(self, score: Any) -> Callable[[float], float]:
        return lambda nats: nats

    def score(
        self,
        model: LanguageModel,
        store: RowStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> ReconstructionScore:
        spec = schema.input("tokens", TokenSpec)
        scored = f"{scored}|rows<={config.row_tokens}|tokenizer={spec.tokenizer.kind}:{spec.size}"
        return evaluate_reconstruction(model, store, scored=scored)

    def beginning_of_text(self, data: RowText, part: str, num_chars: int) -> str:
        """The first row of a part."""
        return next(data.lines_of(part), "")[:num_chars]

    def sample(self, model: LanguageModel, store: RowStore, schema: Schema, config: TrainingConfig) -> str | None:
        """The first row of the part, as it would be written again now."""
        spec, first = schema.input("tokens", TokenSpec), RowStore(store.rows.take(1))
        with evaluating(model):
            (written,) = _written(model, first, spec)
        return f"{spec.decode(first.rows.ids[1:-1])} -> {written}"

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: LanguageModel, store: RowStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """Each row as it is written again, always by the most probable token."""
        return _written(model, store, schema.input("tokens", TokenSpec))

    def next_command(self, path: str) -> str:
        return f"seqwise train DATA --from {path}"


def _written(model: LanguageModel, store: RowStore, spec: TokenSpec) -> Iterator[str]:
    """Up to the end that the model sets, or as long as the row is."""
    rows, edges = store.rows, store.rows.edges.tolist()
    for first in range(0, len(rows), WRITTEN_AT_ONCE):
        some = range(first, min(first + WRITTEN_AT_ONCE, len(rows)))
        prompts = [rows.ids[edges[row] : edges[row + 1]].tolist() for row in some]
        limits = [len(prompt) - 1 for prompt in prompts]
        search = DecodingConfig(method="greedy", max_tokens=max(limits), stop=spec.boundary)
        for (hypothesis,) in generate(model, prompts, search, limits=limits):
            yield spec.decode([token for token in hypothesis.tokens if token != spec.boundary])
