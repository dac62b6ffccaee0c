"""A body with heads: the verbs of every neural family that reads one sequence.

    hidden = body.encode(inputs)                                   (1)
    log p(target) = head.score(hidden, target)                     (2)   a head for each target of the schema
    objective = sum over targets of weight * -log p / count        (3)   each a named term

The first target is the main one: by it a model is scored, predicts and, where its head continues, goes on.

Shapes: B batch, T steps, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..errors import ConfigError
from ..layers.notes import is_recorded
from ..layers.stream import Prediction
from .contract import Body, Encoded, EncodesFirst, Head, Loss, State, Term
from .engine import read_compiled
from .siamese import Compared, Siamese


class HeadedModel(nn.Module):
    body: Body
    can_compile = True

    def __init__(
        self,
        body: nn.Module,
        heads: Mapping[str, nn.Module],
        weights: Mapping[str, float],
        vocab_size: int,
        *,
        max_steps: int = 0,
        pairs: Siamese | Compared | None = None,
        carries_state: bool = True,
    ):
        """`heads` and the `weights` of their terms by the name of the target; `vocab_size`: answers of the main one;
        `max_steps`: of longer rows that are answered whole, so many are read; `pairs`: what two texts are compared by;
        `carries_state`: a text goes on from one batch to the next, where the body can."""
        super().__init__()
        self.body, self.head = body, nn.Module()  # type: ignore[assignment]
        for name, head in heads.items():
            self.head.add_module(name, head)
        self.heads = cast(dict[str, Head], dict(heads))
        self.siamese = pairs if isinstance(pairs, Siamese) else None
        self.compared = pairs if isinstance(pairs, Compared) else None
        self.weights, self.vocab_size, self.main = dict(weights), vocab_size, next(iter(heads))
        self.context, self.max_steps = self.body.context, max_steps
        self.continues: bool = self.main_head.continues
        self.carries_state = self.body.carries_state and self.continues and carries_state
        poolings = [getattr(head, "pooling", None) for head in heads.values()]
        self.reads_first = pairs is None and all(getattr(pooling, "kind", "") == "first" for pooling in poolings)

    @property
    def main_head(self) -> Head:
        return self.heads[self.main]

    def initial_state(self, batch_size: int) -> State:
        return self.body.initial_state(batch_size)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        """log p of each target: of the main one, or of the only one that the batch has."""
        encoded = self._encode(batch, state)  # (1)
        name = self.main if self.main in batch.targets else next(iter(batch.targets), self.main)
        return self.heads[name].score(encoded.stream, batch.targets.get(name)), encoded.state  # (2)

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        encoded, terms = self._encode(batch, state), dict[str, Term]()
        for name, wanted in batch.targets.items():
            log_probs = self.heads[name].objective(encoded.stream, wanted)
            if wanted.is_target is not None and wanted.is_target.shape == log_probs.shape:
                log_probs = log_probs.masked_fill(~wanted.is_target, 0.0)
            terms[name] = Term(-log_probs.sum(), wanted.count(), self.weights[name], over=name)  # (3)
        return Loss({**terms, **encoded.terms}, encoded.state if self.carries_state else None)

    def layers(self, batch: Batch) -> tuple[Tensor, ...]:
        """Embeddings and what each layer hands on, the lowest first: (B, T, width) each."""
        return self._encode(batch, with_layers=True).stream.layers

    def predict(self, batch: Batch, target: str | None = None) -> Prediction:
        """The answer to each row, of the main target or another one.

        Where words are answered for, the batch's target says where they stand.
        """
        name = target or self.main
        head: Any = self.heads[name]
        if head.continues:
            raise ConfigError("this model says what comes next and has no answers to give; use: seqwise generate.")
        stream = self._encode(batch).stream
        return cast(Prediction, head.predict(stream, batch.targets.get(name)))

    def start(self, prompt: Batch, state: State | None = None) -> tuple[Any, State]:
        """What comes after the prompt: log-probabilities (B, V), or a distribution of numbers."""
        inputs = {name: field.crop(self.context) for name, field in prompt.inputs.items()}
        encoded = self.body.encode(inputs, state or self.initial_state(len(prompt)))
        hidden, (field,) = encoded.stream.hidden, inputs.values()
        last = hidden[torch.arange(len(prompt), device=hidden.device), field.lengths - 1]  # (B, D)
        assert encoded.state is not None
        return self._continuing.expect(last), encoded.state

    def step(self, said: Tensor, state: State, *more: Tensor | None) -> tuple[Any, State]:
        """And after one more step: tokens (B,), or values (B, C) and which of them are there."""
        found = read_compiled(self, said, state) if self.continues else None
        if found is not None:
            return found, state
        encoded = self.body.encode({self.main: self._continuing.read(said, *more)}, state)
        assert encoded.state is not None
        return self._continuing.expect(encoded.stream.hidden[:, 0]), encoded.state

    @property
    def _continuing(self) -> Any:
        if not self.continues:
            raise ConfigError("this model answers a whole sequence: it does not go on from a prompt.")
        return self.heads[self.main]

    def as_read(self, tokens: Tokens) -> Tokens:
        """The rows that the body reads of texts that are answered whole: long ones lack their middle, and two texts are
        read each by itself, all first ones before all second ones."""
        tokens = tokens.shortened(self.max_steps) if self.max_steps else tokens
        return tokens if self.siamese is None else self.siamese.apart(tokens)

    def _encode(self, batch: Batch, state: State | None = None, *, with_layers: bool = False) -> Encoded:
        """A whole sequence is answered at once: nothing goes on from one to the next, and of texts that are too long
        their beginning and their end are read."""
        if self.continues:
            return self.body.encode(batch.inputs, state, with_layers=with_layers)
        inputs = batch.inputs
        if self.max_steps:
            inputs = {name: field.shortened(self.max_steps) for name, field in inputs.items()}
        if self.siamese is not None:
            return self.siamese.encode(self.body, inputs, with_layers=with_layers)
        if self.compared is not None:
            return self.compared.encode(self.body, inputs, with_layers=with_layers)
        if self.reads_first and isinstance(self.body, EncodesFirst) and not (with_layers or is_recorded()):
            return self.body.encode_first(inputs)
        return self.body.encode(inputs, None, with_layers=with_layers)
