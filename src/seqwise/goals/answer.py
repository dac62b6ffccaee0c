"""One answer for a whole sequence or a picture: a label, all labels that are right, or a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..data.annotated import LabelledData
from ..data.augmentation import Augmentation
from ..data.examples import ExampleData, Examples, ExampleStore
from ..data.schema import ImageSpec, LabelSpec, NumberSpec, RegionSpec, Schema, TokenSpec
from ..data.seen import SeenData
from ..data.seen_store import SeenBatches, SeenStore
from ..data.text_examples import RowBatches, TextStore
from ..evaluation.answers import AnswerScore, answers_of, evaluate_answers
from ..models.contract import Answerer, noise_for
from ..settings import DataConfig, TrainingConfig
from .goal import BatchSource, Facts, OnProgress

MAX_VALID_EXAMPLES = 5_000
MAX_SHOWN_LABELS = 10
LONG_SHARE = 0.98  # of texts are at most as long as a network is made to read

Data = ExampleData | LabelledData | SeenData
Store = ExampleStore | TextStore | SeenStore


class AnswerGoal:
    unit = "answers"
    metrics: tuple[str, ...] = (
        *("accuracy", "macro_f1", "matthews", "auc", "calibration_error", "f1", "exact_match"),
        *("mean_squared_error", "pearson", "spearman", "nats_per_answer"),
    )
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def facts(self, data: Data, train: Store, schema: Schema, minutes: float | None) -> Facts:
        if isinstance(train, SeenStore):
            return _seen_facts(train, schema, minutes)
        spec = schema.only_input()
        if not isinstance(train, TextStore) or not isinstance(spec, TokenSpec):
            return Facts(len(train), spec.size, "", minutes, length=int(train.lengths.max()))
        assert isinstance(data, LabelledData)
        length, tokens = int(np.quantile(train.lengths, LONG_SHARE)), len(train.tokens.ids)
        found = {"columns": list(data.columns)}
        return Facts(len(train), spec.size, spec.tokenizer.kind, minutes, length=length, tokens=tokens, data=found)

    def batches(self, store: Store, model: Answerer, config: TrainingConfig) -> BatchSource:
        if isinstance(store, TextStore):
            return RowBatches(store, batch_size=config.batch_size, seed=config.seed)
        if isinstance(store, SeenStore):
            return SeenBatches(
                store,
                batch_size=config.batch_size,
                seed=config.seed,
                num_noise=noise_for(model),
                augmentation=Augmentation(config.flip, config.shift, config.cutout),
            )
        return Examples(store, batch_size=config.batch_size, seed=config.seed)

    def sequences(self, store: Store, model: Answerer) -> list[Any]:
        """Each with its label: (ids, label), or (values, which of them are there, label)."""
        assert not isinstance(store, SeenStore)  # families that learn so read no pictures
        if isinstance(store, TextStore):
            edges = store.tokens.edges
            rows: list[Any] = [(store.tokens.ids[a:b].astype(np.int64),) for a, b in pairwise(edges.tolist())]
        elif store.inputs.ndim == 3:
            rows = [(row.astype(np.float64), np.ones(row.shape, dtype=bool)) for row in store.inputs]
        else:
            rows = [(row,) for row in store.inputs]
        return [(*row, label) for row, label in zip(rows, store.answers.tolist(), strict=True) if label >= 0]

    def take(self, store: Store, limit: int) -> Store:
        return store.take(limit)

    def validated(self, store: Store, limit: int | None) -> Store:
        return store.take(min(MAX_VALID_EXAMPLES, limit or MAX_VALID_EXAMPLES))

    def validate(self, model: Answerer, store: Store, limit: int | None) -> float:
        return evaluate_answers(model, as_read(model, self.validated(store, limit))).nats_per_answer

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to right and wrong

    def score(
        self,
        model: Answerer,
        store: Store,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> AnswerScore:
        spec = schema.main_spec
        names = spec.names if isinstance(spec, LabelSpec) else ()
        scale = spec.scale if isinstance(spec, NumberSpec) else 1.0
        return evaluate_answers(model, as_read(model, store), names, scored=scored, scale=scale)

    def beginning_of_text(self, data: Data, part: str, num_chars: int) -> str | None:
        """The first text of a part."""
        return data.parts[part][0].texts[0][:num_chars] if isinstance(data, LabelledData) else None

    def sample(self, model: Answerer, store: Store, schema: Schema, config: TrainingConfig) -> str | None:
        return None

    def predicted(self, parts: Sequence[str], part: str) -> str:
        return part

    def predict(
        self, model: Answerer, store: Store, schema: Schema, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """The answer to each example of a part, a line each; of labels with the probability of each."""
        for found in self.answers(model, store, schema):
            answer = found.get("label", found.get("labels", found.get("number")))
            said = "|".join(answer) if isinstance(answer, list) else str(answer)
            probable = found.get("probabilities", {}).items()
            yield "\t".join([said, *(f"{name}={probability:.4f}" for name, probability in probable)])

    def answers(self, model: Answerer, store: Store, schema: Schema) -> Iterator[dict[str, Any]]:
        """Labels with their probabilities, the most probable first."""
        found, spec = answers_of(model, as_read(model, store)), schema.main_spec
        for row, answer in enumerate(found.answers):
            if found.log_probs is None:
                yield {"number": float(spec.decode(answer))}
                continue
            assert isinstance(spec, LabelSpec)
            probable = {"probabilities": most_probable(spec.names, np.exp(found.log_probs[row].astype(np.float64)))}
            if answer.ndim:
                yield {"labels": [spec.names[place] for place in np.flatnonzero(answer)], **probable}
            else:
                yield {"label": spec.decode(answer), **probable}

    def next_command(self, path: str) -> str:
        return f"seqwise predict {path}"


def as_read(model: object, store: Store) -> Store:
    """The rows as this model is scored on them: with chance, where it draws."""
    return store.with_noise(noise_for(model)) if isinstance(store, SeenStore) else store


def _seen_facts(train: SeenStore, schema: Schema, minutes: float | None) -> Facts:
    picture, words = schema.specs[schema.inputs["image"]], schema.inputs.get("tokens")
    assert isinstance(picture, ImageSpec | RegionSpec)
    if words is None or train.tokens is None:
        return Facts(len(train), picture.size, "", minutes, picture=picture)
    spec, length = schema.input("tokens", TokenSpec), int(train.lengths.max())
    tokens = len(train.tokens.ids)
    return Facts(len(train), spec.size, spec.tokenizer.kind, minutes, length=length, tokens=tokens, picture=picture)


def most_probable(names: Sequence[str], probabilities: np.ndarray) -> dict[str, float]:
    """By falling probability, and not all of many."""
    order = np.argsort(-probabilities, kind="stable")[:MAX_SHOWN_LABELS]
    return {names[place]: float(probabilities[place]) for place in order}
