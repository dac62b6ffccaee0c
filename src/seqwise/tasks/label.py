"""Sequences with one answer each: say which label, or which number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..data.examples import ExampleData, Examples, ExampleStore
from ..data.toys import open_examples
from ..data.vocab import Vocab
from ..errors import ConfigError
from ..evaluation.answers import ROWS, AnswerScore, evaluate_answers, predict_answers
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from .task import Advance, BatchSource, Facts, Tell

MOST_VALID = 5_000


class LabelTask:
    name = "label"
    title = "sequences with one answer each"
    unit = "answers"
    metrics = ("accuracy", "mean_squared_error", "nats_per_answer")
    score_options: tuple[str, ...] = ()
    reads_lines = False
    writes_table = False

    def open(self, config: DataConfig) -> ExampleData:
        if len(config.source) > 1 or config.valid or config.test or config.split:
            raise ConfigError("a set of examples brings its own parts; drop the other files and --split-at.")
        return open_examples(config.source[0])

    def open_other(self, source: str, split: str | None, vocab: Vocab, config: DataConfig) -> tuple[ExampleData, str]:
        return open_examples(source), split or "test"

    def learn_vocab(self, data: ExampleData, config: TokenizerConfig, tell: Tell) -> Vocab:
        if config.kind != "auto":
            raise ConfigError(f"--tokenizer {config.kind}: these sequences are not text; drop it.")
        is_tokens = data.vocab_size > 0
        size = data.vocab_size if is_tokens else data.num_columns
        return Vocab(labels=data.labels, input_size=size, inputs_are_tokens=is_tokens)

    def stores(self, data: ExampleData, vocab: Vocab, advance: Advance = lambda *_: None) -> dict[str, ExampleStore]:
        return dict(data.parts)

    def store(self, data: ExampleData, part: str, vocab: Vocab) -> ExampleStore:
        if (data.vocab_size or data.num_columns) != vocab.input_size or data.labels != vocab.labels:
            raise ConfigError(f"{data.name} has other inputs or labels than the model was trained for.")
        return data.parts[part]

    def facts(self, data: ExampleData, train: ExampleStore, vocab: Vocab, minutes: float | None) -> Facts:
        return Facts(len(train), vocab.input_size, "", minutes, self.name, length=train.inputs.shape[1])

    def batches(self, store: ExampleStore, model: Any, config: TrainingConfig) -> BatchSource:
        return Examples(store, batch_size=config.batch_size, seed=config.seed)

    def sequences(self, store: ExampleStore, model: Any) -> list[Any]:
        raise ConfigError("families that learn by counting or EM do not label; choose another --model.")

    def beginning(self, store: ExampleStore, most: int) -> ExampleStore:
        return store if most >= len(store) else ExampleStore(store.inputs[:most], store.answers[:most])

    def validated(self, store: ExampleStore, most: int | None) -> ExampleStore:
        return self.beginning(store, min(MOST_VALID, most or MOST_VALID))

    def validate(self, model: Any, store: ExampleStore, most: int | None) -> float:
        return evaluate_answers(model, self.validated(store, most)).nats_per_answer

    def loss_as_value(self, score: Any) -> Callable[[float], float] | None:
        return None  # from nats to right and wrong

    def score(
        self,
        model: Any,
        store: ExampleStore,
        vocab: Vocab,
        config: DataConfig,
        *,
        scored: str,
        advance: Advance = lambda *_: None,
        **options: Any,
    ) -> AnswerScore:
        return evaluate_answers(model, store, about=scored)

    def sample(self, model: Any, store: Any, vocab: Vocab, config: TrainingConfig) -> str | None:
        return None

    def predict(
        self, model: Any, data: ExampleData, part: str, vocab: Vocab, config: DataConfig, **options: Any
    ) -> Iterator[str]:
        """The answer to each example of a part."""
        store = self.store(data, part, vocab)
        for start in range(0, len(store), ROWS):
            for answer in predict_answers(model, store.batch(slice(start, start + ROWS))):
                yield vocab.labels[int(answer)] if vocab.labels else f"{answer:.6g}"

    def next_command(self, path: str) -> str:
        return f"seqwise evaluate {path}"
