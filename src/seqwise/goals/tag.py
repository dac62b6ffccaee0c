"""A tag for each word of a row; and the label of the row, where there is one besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from .. import __version__
from ..data.annotated import TaggedData, TaggedRow
from ..data.schema import LabelSpec, Schema, TagSpec, TokenSpec
from ..data.tag_layouts import TagLayout, write_tagged
from ..data.text_examples import RowBatches, TextStore
from ..evaluation.answers import LabelScore, answers_of, evaluate_answers
from ..evaluation.entities import TagScore
from ..evaluation.tags import is_seen, nats_per_word, tags_of
from ..models.contract import Answerer
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

MAX_VALID_ROWS = 2_000


class TagGoal:
    unit = "rows"
    metrics = ("f1", "macro_f1", "accuracy", "unseen_accuracy", "nats_per_word")
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: TaggedData, train: TextStore, schema: Schema, minutes: float | None) -> Facts:
        """Every word must be read: the longest row of all parts counts."""
        spec = schema.input("tokens", TokenSpec)
        longest = max(len(row.words) for rows in data.parts.values() for row in rows)
        length = max(int(train.lengths.max()), longest + 2)
        return Facts(
            len(train),
            spec.size,
            spec.tokenizer.kind,
            minutes,
            length=length,
            tokens=len(train.tokens.ids),
            is_structured=bool(schema.target("tags", TagSpec).scheme),
            data={"columns": list(data.columns)},
        )

    def batches(self, store: TextStore, model: Answerer, config: TrainingConfig) -> BatchSource:
        return RowBatches(store, batch_size=config.batch_size, seed=config.seed)

    def sequences(self, store: TextStore, model: Answerer) -> list[Any]:
        return [store]

    def take(self, store: TextStore, limit: int) -> TextStore:
        return store.take(limit)

    def validated(self, store: TextStore, limit: int | None) -> TextStore:
        return store.take(min(MAX_VALID_ROWS, limit or MAX_VALID_ROWS))

    def validate(self, model: Answerer, store: TextStore, limit: int | None) -> float:
        return nats_per_word(tags_of(model, self.validated(store, limit)))

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to entities

    def score(
        self,
        model: Answerer,
        store: TextStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> TagScore:
        def names_of(target: str) -> list[str]:
            return schema.target(target, LabelSpec).names

        found, spec = tags_of(model, store), schema.target("tags", TagSpec)
        answers = [[spec.decode(tag) for tag in row] for row in found.tags]
        wanted = [list(row.tags) for row in cast(Sequence[TaggedRow], store.rows)]
        what = f"F1 over entities, {spec.scheme}" if spec.scheme else "accuracy"
        signature = f"{what}|{scored}|bootstrap=1000x{len(store)}|seqwise={__version__}"
        others = {
            name: cast(LabelScore, evaluate_answers(model, store, names_of(name), target=name, scored=scored))
            for name in schema.targets
            if name != schema.main
        }
        return TagScore(wanted, answers, nats_per_word(found), spec.scheme, signature, others, is_seen(store))

    def beginning_of_text(self, data: TaggedData, part: str, num_chars: int) -> str:
        """The words of the first row of a part."""
        return " ".join(data.parts[part][0].words)[:num_chars]

    def sample(self, model: Answerer, store: TextStore, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: Answerer, store: TextStore, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """Tagged lines, in the layout of the file."""
        rows = (
            TaggedRow(tuple(found["words"]), tuple(found["tags"]), found.get("label"))
            for found in self.answers(model, store, schema)
        )
        return write_tagged(rows, store.layout or TagLayout("columns"))

    def answers(self, model: Answerer, store: TextStore, schema: Schema) -> Iterator[dict[str, Any]]:
        """Words, their tags, the probability of each tag, and the label of the row where there is one."""
        found, spec = tags_of(model, store), schema.target("tags", TagSpec)
        labels = {
            name: [schema.target(name, LabelSpec).decode(label) for label in answers_of(model, store, name).answers]
            for name in schema.targets
            if name != schema.main
        }
        for place, row in enumerate(cast(Sequence[TaggedRow], store.rows)):
            yield {
                "words": list(row.words),
                "tags": [spec.decode(tag) for tag in found.tags[place]],
                "probabilities": np.exp(found.log_probs[place].astype(np.float64)).round(6).tolist(),
                **{name: answers[place] for name, answers in labels.items()},
            }

    def next_command(self, path: str) -> str:
        return f"seqwise predict {path} FILE"
