"""A body that reads a source and decodes a target, with a head: the verbs of every model of pairs.

    memory, first state = read(source)                            (1)
    p(token t+1 | source, tokens 1..t) = softmax(W hidden_t)      (2)   hidden = decode(tokens, state)

The source ends in the boundary token; the target begins and ends in it. Where the vocabulary has a token of its own to
begin with (TokenSpec.begin), that one is read in the first place instead, and searches never write it.

Two options of training serve all families:

    label smoothing    (1 - e) * -log p(token) + e * mean over the vocabulary of -log p       Szegedy et al. 2016
    scheduled sampling the decoder reads its own guess instead of the truth, more often the longer it has learned: the
                       truth with probability k / (k + exp(i / k)) at update i   Bengio et al. 2015. Guesses come from a
                       first pass over the truth, all steps at once (Mihaylova & Martins 2019)

Shapes: B batch, T steps, S source steps, D model width, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, Protocol, cast

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens
from ..data.schema import Schema, TokenSpec, ValueSpec
from ..errors import ConfigError
from ..layers.embeddings import TokenEmbedding, ValueEmbedding
from ..layers.heads import NextTokenHead
from ..layers.stream import Prediction, Stream
from .build import check_sizes
from .contract import Fields, Loss, State, Term
from .engine import read_compiled

TARGET = "tokens"
"""The field that is written; whatever else is given is its source."""


class PairBody(Protocol):
    context: int | None
    """The longest source or target it can place, in tokens; None where there is no limit."""
    can_align: bool
    """Whether it looks back at the source, step by step."""

    def read(self, sources: Fields) -> State:
        """All that is given beside the target: fields of any kind that has an embedding."""
        ...

    def decode(self, tokens: Tokens, state: State) -> tuple[Tensor, State]: ...
    def align(self, tokens: Tokens, state: State) -> Tensor | None:
        """Where in the source each step of the target looks, (B, T, S); None where it cannot look back."""
        ...


@dataclass(frozen=True)
class PairConfig:
    """What every family of pairs can be told; each adds its own."""

    dropout: float = 0.1
    """Share of values dropped in training, from embeddings, between layers and before the output."""
    label_smoothing: float = 0.1
    """Share of the objective that asks for every token alike."""
    scheduled_sampling: float = 0.0
    """How many updates, about, until the decoder reads its own guesses half of the time; 0 always reads the truth."""
    shared_embeddings: Literal["all", "output", "none"] = "all"
    """One table for source, target and output (where their vocabulary is one), for target and output, or three."""
    output_bias: bool = False
    """Whether each token of the output has a bias: how frequent it is, whatever was read."""
    embeddings: str = ""
    """Words: a run of word2vec, or a file of vectors, that the tables of embeddings start from. The rows are copied
    into this run, and learned on from there."""
    embeddings_fingerprint: str = ""
    """sha256 of that file; filled in."""

    def __post_init__(self) -> None:
        check_sizes(self)
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(f"model.label_smoothing = {self.label_smoothing} should lie in [0, 1).")
        if self.scheduled_sampling < 0:
            raise ConfigError(f"model.scheduled_sampling = {self.scheduled_sampling} should not be negative.")


def embeddings_for(
    config: PairConfig, schema: Schema, embed_dim: int, *, scale: float | None = None
) -> tuple[TokenEmbedding | ValueEmbedding, TokenEmbedding]:
    """Of source and target: the same table where the vocabulary is, a product where the source is made of numbers.

    `scale`: what a table is multiplied with where it is read, sqrt(embed_dim) where not set.
    """

    def table(vocab_size: int) -> TokenEmbedding:
        return TokenEmbedding(
            vocab_size, embed_dim, std=embed_dim**-0.5, scale=embed_dim**0.5 if scale is None else scale
        )

    (source_name,) = (name for field_name, name in schema.inputs.items() if field_name != TARGET)
    source_spec, target_spec = schema.specs[source_name], schema.input(TARGET, TokenSpec)
    target = table(target_spec.size)
    if isinstance(source_spec, ValueSpec):
        return ValueEmbedding(source_spec.size, embed_dim), target
    if config.shared_embeddings == "all" and _is_one_vocabulary(cast(TokenSpec, source_spec), target_spec):
        return target, target
    return table(source_spec.size), target


def _is_one_vocabulary(source: TokenSpec, target: TokenSpec) -> bool:
    """One spec serves both sides, or two that cut texts in two ways into pieces of one list (text/marian.py)."""
    of_source, of_target = (getattr(spec.tokenizer, "joint_pieces", None) for spec in (source, target))
    return source is target or (of_source is not None and of_source == of_target)


class PairModel(nn.Module):
    carries_state, continues = False, True
    can_compile = False  # shapes change from batch to batch
    updates: Tensor

    def __init__(self, body: nn.Module, config: PairConfig, schema: Schema, target_embedding: TokenEmbedding):
        super().__init__()
        spec = schema.target("tokens", TokenSpec)
        self.body, self.config, self.vocab_size = cast(PairBody, body), config, spec.size
        self.boundary, self.begin, self.context = spec.boundary, spec.begin, self.body.context
        output_dim = cast(int, body.output_dim)
        tied_to = target_embedding if config.shared_embeddings != "none" else None
        if tied_to is not None and tied_to.embedding_dim != output_dim:
            raise ConfigError(
                f"shared embeddings need to be as wide as the output; found {tied_to.embedding_dim} and {output_dim}. "
                "Set model.shared_embeddings=none, or equal widths."
            )
        self.head = NextTokenHead(output_dim, spec.size, tied_to=tied_to, bias=config.output_bias)
        self.register_buffer("updates", torch.zeros((), dtype=torch.long), persistent=config.scheduled_sampling > 0)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        """log p of each target token, (B, T)."""
        hidden, _ = self.body.decode(self._begun(batch), self.body.read(sources_of(batch)))
        return self.head.score(Stream(hidden), batch.targets["tokens"]), None

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        read = self.body.read(sources_of(batch))
        hidden, _ = self.body.decode(self._learned_from(batch, read), read)
        return Loss({"tokens": self._term_of(hidden, batch.targets["tokens"])})

    def _learned_from(self, batch: Batch, read: State) -> Tokens:
        """What the decoder reads in training: the target, or some guesses in its place."""
        inputs = self._begun(batch)
        return self._with_guesses(inputs, read) if self.training and self.config.scheduled_sampling else inputs

    def _term_of(self, hidden: Tensor, targets: Tokens) -> Term:
        """-log p of all tokens, (B, T, D) and (B, T)."""
        wanted = targets.ids
        if targets.is_token is not None:  # padding is left out before the product with the vocabulary
            hidden, wanted = hidden[targets.is_token], wanted[targets.is_token]
        smoothing = self.config.label_smoothing if self.training else 0.0
        return Term(self.head.loss(hidden.flatten(0, -2), wanted.flatten(), smoothing), targets.count())

    def _begun(self, batch: Batch) -> Tokens:
        """The target as it is read, (B, T): from what it begins with."""
        inputs: Tokens = batch.inputs["tokens"]
        if self.begin == self.boundary:
            return inputs
        ids = inputs.ids.clone()
        ids[:, 0] = self.begin
        return replace(inputs, ids=ids)

    def count_update(self) -> None:
        """i of scheduled sampling."""
        self.updates += 1

    @torch.no_grad()
    def _with_guesses(self, inputs: Tokens, read: State) -> Tokens:
        """Some of the tokens replaced by what the model would have said there; the first stays the boundary."""
        k = self.config.scheduled_sampling
        truth = k / (k + math.exp(min(700.0, float(self.updates) / k)))
        hidden, _ = self.body.decode(inputs, read)
        guesses = inputs.ids.clone()
        guesses[:, 1:] = self.head.expect(hidden[:, :-1]).argmax(dim=-1)
        is_guess = torch.rand(inputs.shape, device=guesses.device) >= truth
        return Tokens(torch.where(is_guess, guesses, inputs.ids), inputs.is_token)

    def predict(self, batch: Batch) -> Prediction:
        """The most probable token at each step, the truth before it being known: (B, T)."""
        hidden, _ = self.body.decode(self._begun(batch), self.body.read(sources_of(batch)))
        return Prediction(self.head.expect(hidden).argmax(dim=-1))

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        """What the first token of the target may be; the prompt is the source."""
        return self.step(torch.full((len(prompt),), self.begin), self.body.read(sources_of(prompt)))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        found = read_compiled(self, tokens, state)
        if found is not None:
            return found, state
        device = self.head.output.weight.device
        hidden, after = self.body.decode(Tokens(tokens.to(device).unsqueeze(1)), state)  # (R, 1, D)
        return self.head.expect(hidden[:, 0]), after

    @property
    def can_align(self) -> bool:
        return self.body.can_align

    def align(self, batch: Batch) -> Tensor | None:
        """Where in the source each target token was looked for, (B, T, S); None where the model cannot look back."""
        return self.body.align(self._begun(batch), self.body.read(sources_of(batch)))


def sources_of(batch: Batch) -> Fields:
    """All that is given beside the target."""
    return {name: field for name, field in batch.inputs.items() if name != TARGET}
