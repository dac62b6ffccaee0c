"""The contract: a few verbs instead of a base class. A model has those that make sense for it.

    score(batch, state)   -> log_probs (B, T), state     how probable is each target? nats
    loss(batch, state)    -> Loss                        what should fall in training?
    initial_state(B)      -> State                       nothing read yet
    start(prompt, state)  -> log_probs (B, V), state     what comes after the prompt (and what was read before it)?
    step(tokens, state)   -> log_probs (B, V), state     and after one more token?

Shapes: B batch, T steps, V vocabulary.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from ..data.batch import Batch
from ..data.text_examples import TextStore
from ..errors import DataError
from ..layers.stream import Prediction as Prediction
from ..layers.stream import Stream


@dataclass
class State:
    """What a model remembers. `score` and `step` may overwrite it; to branch, `select_rows` first."""

    per_row: dict[str, Tensor]
    """One row per hypothesis, batch first: this is what search reorders."""
    memory: dict[str, Tensor] = field(default_factory=dict)
    """One row per source (an encoder's output): never copied per hypothesis. Hypotheses stand in groups of equal size,
    those of the first source first."""

    def detach(self) -> State:
        """The same numbers with no gradient into the past: where backpropagation through time is cut."""
        return State({k: v.detach() for k, v in self.per_row.items()}, {k: v.detach() for k, v in self.memory.items()})


def select_rows(state: State, index: Tensor, sources: Tensor | None = None) -> State:
    """A copy whose hypotheses are those at `index` (B',): the one operation that search needs.

    Where there is memory, hypotheses keep their source; `sources` are those of which any are left.
    """
    memory = state.memory
    if sources is not None:
        memory = {name: tensor.index_select(0, sources) for name, tensor in memory.items()}
    return State({name: tensor.index_select(0, index) for name, tensor in state.per_row.items()}, memory)


def restart_rows(state: State, resets: Tensor, fresh: State) -> State:
    """The state with the rows at `resets` (B,) as they are before anything is read."""
    own = {}
    for name, tensor in state.per_row.items():
        chosen = resets.view(-1, *[1] * (tensor.dim() - 1))
        own[name] = torch.where(chosen, fresh.per_row[name], tensor)
    return State(own, state.memory)


@dataclass(frozen=True)
class Term:
    """A sum over a micro-batch. The loop adds such sums up and divides once, so no average is ever averaged."""

    total: Tensor
    count: int
    """How many targets the sum runs over; follows from the batch alone."""
    weight: float = 1.0
    over: str = "tokens"
    """What `count` counts: the targets of a field by its name, "rows", or "groups"."""


@dataclass(frozen=True)
class Loss:
    """Named terms, and the state that the next chunk starts from (None where nothing is carried)."""

    terms: dict[str, Term]
    state: State | None = None

    def over(self, counts: dict[str, int]) -> Tensor:
        """The objective's share of this micro-batch: sum of weight * total / count, counts of the whole batch."""
        return torch.stack([t.weight * t.total / max(1, counts[t.over]) for t in self.terms.values()]).sum()


Fields = Mapping[str, Any]
"""Inputs by name, each of some kind of field."""


@dataclass(frozen=True)
class Encoded:
    """What a body made of its inputs."""

    streams: tuple[Stream, ...]
    """One for most; two where two inputs are read side by side, or one from both ends."""
    state: State | None
    terms: dict[str, Term] = field(default_factory=dict)
    """Of the objective, besides those of the heads."""

    @property
    def stream(self) -> Stream:
        """The first, which most heads read."""
        return self.streams[0]

    @staticmethod
    def of(
        hidden: Tensor, is_step: Tensor | None, state: State | None, layers: Sequence[Tensor] | None = None
    ) -> Encoded:
        """One stream, a hidden state for each step of the input."""
        return Encoded((Stream(hidden, is_step, tuple(layers or ())),), state)


def only(inputs: Fields) -> Any:
    """Of a body that reads one field."""
    (found,) = inputs.values()
    return found


class Body(Protocol):
    """What a neural family is: steps -> hidden states. Heads read the rest off them (layers/heads.py)."""

    context: int | None
    """The longest context it can see, in steps; None where there is no limit."""
    carries_state: bool
    """Whether training reads a text chunk by chunk, each starting from the state of the one before."""
    output_dim: int
    embedding: Any

    def initial_state(self, batch_size: int) -> State: ...
    def encode(self, inputs: Fields, state: State | None, *, with_layers: bool = False) -> Encoded:
        """`with_layers`: embeddings and what comes out of each layer too, for who reads more than the top."""
        ...


@runtime_checkable
class EncodesFirst(Protocol):
    """A body that computes the first place of the top alone where that is all that heads read."""

    def encode_first(self, inputs: Fields) -> Encoded: ...


class Head(Protocol):
    """What a target is read off hidden states by. Those that continue have `expect` and `read`, others `predict`."""

    continues: bool

    def score(self, stream: Stream, wanted: Any) -> Tensor: ...
    def objective(self, stream: Stream, wanted: Any) -> Tensor:
        """What training raises: the score, or the score with some answers weighing more."""
        ...


class HasWeights(Protocol):
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, saved: dict[str, Any], /) -> Any: ...


class Model(HasWeights, Protocol):
    """What every model is, however it learns. The verbs it has besides are protocols of their own, below."""

    @property
    def context(self) -> int | None:
        """The longest context it can see, in steps; None where there is no limit."""
        ...

    @property
    def carries_state(self) -> bool:
        """Whether it reads a text chunk by chunk, each from the state of the one before."""
        ...

    @property
    def continues(self) -> bool:
        """Whether it goes on from a prompt: `start` and `step`."""
        ...

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]: ...


M = TypeVar("M")


class LanguageModel(Model, Protocol):
    """A model that says what the next token is."""

    @property
    def vocab_size(self) -> int: ...
    def start(self, prompt: Batch, /) -> tuple[Tensor, State]: ...
    def step(self, tokens: Tensor, state: State, /) -> tuple[Tensor, State]: ...


class Translator(LanguageModel, Protocol):
    """A model that writes a target, given a source."""

    @property
    def can_align(self) -> bool: ...
    def align(self, batch: Batch, /) -> Tensor | None: ...
    def loss(self, batch: Batch, state: State | None = None) -> Loss: ...
    def predict(self, batch: Batch, /) -> Prediction: ...


class Forecaster(Model, Protocol):
    """A model that says how the next numbers are distributed: mean, variance, sample, log_prob."""

    def initial_state(self, batch_size: int, /) -> State: ...
    def start(self, prompt: Batch, /) -> tuple[Distribution, State]: ...
    def step(
        self, values: Tensor, state: State, is_observed: Tensor | None = None, /
    ) -> tuple[Distribution, State]: ...


@runtime_checkable
class Answerer(Model, Protocol):
    """A model that labels, tags or explains what it reads."""

    def predict(self, batch: Batch, /) -> Prediction: ...


class AnswersSeveral(Model, Protocol):
    """A model with several targets."""

    def predict(self, batch: Batch, target: str | None = None, /) -> Prediction:
        """Of the main target, or another one."""
        ...


@runtime_checkable
class Scores(Protocol):
    """Every model: how probable is each target?"""

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]: ...


@runtime_checkable
class Learns(Protocol):
    """Every model trained by gradients: what should fall?"""

    def loss(self, batch: Batch, state: State | None = None) -> Loss: ...


@runtime_checkable
class LearnsFromExamples(Protocol):
    """A model that learns answers by counting, in one go."""

    def learn(self, train: TextStore, valid: TextStore, *, seed: int) -> None:
        """From the training part; what has to be chosen is chosen on the validation part."""
        ...


@runtime_checkable
class HasNumParameters(Protocol):
    """A model that is no module of torch's and tells how many numbers it has learned."""

    @property
    def num_parameters(self) -> int: ...


@runtime_checkable
class CountsUpdates(Protocol):
    """A model whose objective changes as it learns: told of each update, however many parts its batch had."""

    def count_update(self) -> None: ...


@runtime_checkable
class DrawsNoise(Protocol):
    """A model that needs chance: drawn beforehand, as the input "noise" of a batch."""

    @property
    def num_noise(self) -> int:
        """Numbers for each row."""
        ...


def noise_for(model: object) -> int:
    """How many numbers of chance a model wants for each row."""
    return model.num_noise if isinstance(model, DrawsNoise) else 0


@runtime_checkable
class HasInitialState(Protocol):
    """Every model that can begin with nothing read."""

    def initial_state(self, batch_size: int) -> State: ...


@runtime_checkable
class Continues(Protocol):
    """Every model that can go on from a prompt: which token comes next?"""

    @property
    def vocab_size(self) -> int: ...
    def start(self, prompt: Batch, /) -> tuple[Tensor, State]: ...
    def step(self, tokens: Tensor, state: State, /) -> tuple[Tensor, State]: ...


@runtime_checkable
class Resumes(Continues, Protocol):
    """A model that goes on from a prompt, and from what it read before that."""

    @property
    def context(self) -> int | None: ...
    def start(self, prompt: Batch, state: State | None = None, /) -> tuple[Tensor, State]: ...


def check_tokens(ids: np.ndarray | Tensor, vocab_size: int, *, lowest: int = 0) -> None:
    """Refuse ids that no table has a row for: compiled loops trust what they are given."""
    if math.prod(ids.shape) == 0 or (ids.min() >= lowest and ids.max() < vocab_size):
        return
    unknown = int(ids.min() if ids.min() < lowest else ids.max())
    raise DataError(f"token {unknown} is not in the vocabulary, which goes from 0 to {vocab_size - 1}.")


def device_of(model: object) -> torch.device:
    """Where a model's weights are; count models live on the CPU."""
    return next(model.parameters()).device if isinstance(model, nn.Module) else torch.device("cpu")


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Without dropout and the like, and afterwards as it was."""
    network = model if isinstance(model, nn.Module) and model.training else None
    if network is not None:
        network.eval()
    try:
        yield
    finally:
        if network is not None:
            network.train()


def in_64_bits(model: M) -> M:
    """A copy that computes in 64 bits, for what is measured as a difference; count models and EM do so anyway."""
    if not isinstance(model, nn.Module):
        return model
    copied = copy.deepcopy(model)
    if device_of(model).type == "mps":  # which has no such numbers
        copied = copied.cpu()
    return copied.double()
