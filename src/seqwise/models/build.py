"""Body and heads -> model: what a neural family becomes for the schema at hand. HEADS is the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from torch import nn

from ..data.schema import LABEL, NEXT_TOKEN, NEXT_VALUES, NUMBER, Schema, ValueSpec
from ..errors import ConfigError
from ..layers.adaptive_softmax import AdaptiveSoftmaxHead
from ..layers.embeddings import TokenEmbedding, ValueEmbedding
from ..layers.heads import GaussianHead, LabelHead, NextTokenHead, NumberHead
from .contract import Body
from .headed import HeadedModel

LARGE_VOCAB = 1000  # from here on tokens are words or pieces of them: most are rare


@dataclass(frozen=True)
class NeuralConfig:
    """What every neural family can be told; each adds its own."""

    dropout: float = 0.0
    """Share of values dropped in training, from embeddings, between layers and before the output."""
    tied_embeddings: bool = False
    """Use the embedding table as output weights as well; needs embeddings as wide as the output."""
    adaptive_softmax: bool = False
    """Look into rare tokens only when they are needed: faster where the vocabulary is large."""
    pooling: Literal["last", "mean", "attention"] = "last"
    """Labels: which hidden states of the sequence the answer is read from."""

    @property
    def reads_both_ways(self) -> bool:
        """Whether hidden states know of what comes after their step."""
        return False

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.tied_embeddings and self.adaptive_softmax:
            raise ConfigError("model.tied_embeddings and model.adaptive_softmax exclude each other; drop one.")


MAX_LAYERS = 1000
SIZES = ("model_dim", "embed_dim", "feed_forward_dim", "encoder_layers", "window")


def check_sizes(config: Any) -> None:
    """Counts and widths are at least one, shares lie below it, whatever the family."""
    for name, value in vars(config).items():
        is_size = name.startswith("num_") or name in SIZES
        if is_size and value is not None and value < 1:
            raise ConfigError(f"model.{name} = {value} should be at least 1.")
        if name.endswith("_layers") and value is not None and value > MAX_LAYERS:
            raise ConfigError(f"model.{name} = {value} should be at most {MAX_LAYERS:,}.")
        if name.endswith("dropout") and not 0 <= value < 1:
            raise ConfigError(f"model.{name} = {value} should lie in [0, 1).")


def embedding_for(
    schema: Schema, embed_dim: int, *, std: float = 1.0, is_output: bool = False
) -> ValueEmbedding | TokenEmbedding:
    """Tokens or numbers -> vectors of this spread, whichever the data has.

    The table of a large vocabulary is kept small and scaled up where it is read: a step of the optimiser then moves a
    rare word as far as its few occurrences need (docs/lab-notebook.md). So is one that is the output as well, whose
    logits should begin near zero.
    """
    spec = schema.only_input()
    if isinstance(spec, ValueSpec):
        return ValueEmbedding(spec.size, embed_dim, std=std)
    scale = embed_dim**0.5 if is_output or spec.size >= LARGE_VOCAB else 1.0
    return TokenEmbedding(spec.size, embed_dim, std=std / scale, scale=scale)


def _next_token(body: Body, config: NeuralConfig, size: int) -> nn.Module:
    if config.adaptive_softmax and size >= LARGE_VOCAB:
        return AdaptiveSoftmaxHead(body.output_dim, size, cutoffs=cutoffs_for(size))
    tied_to = body.embedding if config.tied_embeddings else None
    if tied_to is not None and tied_to.embedding_dim != body.output_dim:
        raise ConfigError(
            f"model.tied_embeddings needs embeddings as wide as the output; found {tied_to.embedding_dim} "
            f"and {body.output_dim}."
        )
    return NextTokenHead(body.output_dim, size, tied_to=tied_to)


def _next_values(body: Body, config: NeuralConfig, size: int) -> nn.Module:
    return GaussianHead(body.output_dim, size)


def _label(body: Body, config: NeuralConfig, size: int) -> nn.Module:
    return LabelHead(body.output_dim, size, pooling=config.pooling, both_ends=config.reads_both_ways)


def _number(body: Body, config: NeuralConfig, size: int) -> nn.Module:
    return NumberHead(body.output_dim, pooling=config.pooling, both_ends=config.reads_both_ways)


@dataclass(frozen=True)
class HeadKind:
    """A row of HEADS."""

    build: Callable[[Body, NeuralConfig, int], nn.Module]
    """Given the size of the target's spec."""
    sees_all: bool
    """Whether the body may see the whole sequence: nothing that is asked for stands in it."""


HEADS = {
    NEXT_TOKEN: HeadKind(_next_token, sees_all=False),
    NEXT_VALUES: HeadKind(_next_values, sees_all=False),
    LABEL: HeadKind(_label, sees_all=True),
    NUMBER: HeadKind(_number, sees_all=True),
}
"""By the kind of target."""


def sees_all(schema: Schema) -> bool:
    """Whether a model of this schema answers whole sequences, and may see all of them."""
    return all(kind in HEADS and HEADS[kind].sees_all for kind in schema.kinds)


def check_sees_all(schema: Schema, setting: str) -> None:
    """Refuse a body that would see what it should predict."""
    if not sees_all(schema):
        raise ConfigError(
            f"{setting} reads what is to be predicted; it goes with labels and other answers to a whole sequence."
        )


def build_model(body: nn.Module, config: NeuralConfig, schema: Schema) -> HeadedModel:
    """The body with a head for each target of the schema."""
    heads = {
        name: HEADS[target.head].build(cast(Body, body), config, schema.specs[target.spec].size)
        for name, target in schema.targets.items()
    }
    weights = {name: target.weight for name, target in schema.targets.items()}
    return HeadedModel(body, heads, weights, schema.main_spec.size)


def cutoffs_for(vocab_size: int) -> list[int]:
    """A fifth of the words is about four fifths of a text."""
    return [vocab_size // 5] if vocab_size < 20_000 else [vocab_size // 20, vocab_size // 4]
