"""Body and head -> model: what a neural family becomes for the task at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from ..errors import ConfigError
from ..layers.adaptive_softmax import AdaptiveSoftmaxHead
from ..layers.embeddings import TokenEmbedding, ValueEmbedding
from ..layers.heads import GaussianHead, LabelHead, NextTokenHead
from .contract import Interface
from .label import LabelModel
from .next_token import NextTokenModel
from .next_value import NextValueModel

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

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.tied_embeddings and self.adaptive_softmax:
            raise ConfigError("model.tied_embeddings and model.adaptive_softmax exclude each other; drop one.")


MOST_LAYERS = 1000
SIZES = ("model_dim", "embed_dim", "feed_forward_dim", "encoder_layers", "window")


def check_sizes(config: Any) -> None:
    """Counts and widths are at least one, shares lie below it, whatever the family."""
    for name, value in vars(config).items():
        is_size = name.startswith("num_") or name in SIZES
        if is_size and value is not None and value < 1:
            raise ConfigError(f"model.{name} = {value} should be at least 1.")
        if name.endswith("_layers") and value is not None and value > MOST_LAYERS:
            raise ConfigError(f"model.{name} = {value} should be at most {MOST_LAYERS:,}.")
        if name.endswith("dropout") and not 0 <= value < 1:
            raise ConfigError(f"model.{name} = {value} should lie in [0, 1).")


def embedding_for(
    interface: Interface, embed_dim: int, *, std: float = 1.0, is_output: bool = False
) -> ValueEmbedding | TokenEmbedding:
    """Tokens or numbers -> vectors of this spread, whichever the data has.

    The table of a large vocabulary is kept small and scaled up where it is read: a step of the optimiser then moves a
    rare word as far as its few occurrences need (docs/lab-notebook.md). So is one that is the output as well, whose
    logits should begin near zero.
    """
    if interface.num_columns:
        return ValueEmbedding(interface.num_columns, embed_dim, std=std)
    scale = embed_dim**0.5 if is_output or interface.vocab_size >= LARGE_VOCAB else 1.0
    return TokenEmbedding(interface.vocab_size, embed_dim, std=std / scale, scale=scale)


def assemble(body: Any, config: NeuralConfig, interface: Interface) -> nn.Module:
    """The body with the head that its task asks for. A body has `embedding` and `output_dim`."""
    if interface.task == "numbers":
        return NextValueModel(body, GaussianHead(body.output_dim, interface.num_columns))
    if interface.task == "label":
        both_ends = getattr(config, "bidirectional", False)
        head = LabelHead(body.output_dim, interface.num_labels, pooling=config.pooling, both_ends=both_ends)
        return LabelModel(body, head)
    V = interface.vocab_size
    if config.adaptive_softmax and V >= LARGE_VOCAB:
        return NextTokenModel(body, AdaptiveSoftmaxHead(body.output_dim, V, cutoffs=cutoffs_for(V)), V)
    tied_to = body.embedding if config.tied_embeddings else None
    if tied_to is not None and tied_to.embedding_dim != body.output_dim:
        raise ConfigError(
            f"model.tied_embeddings needs embeddings as wide as the output; found {tied_to.embedding_dim} "
            f"and {body.output_dim}."
        )
    return NextTokenModel(body, NextTokenHead(body.output_dim, V, tied_to=tied_to), V)


def cutoffs_for(vocab_size: int) -> list[int]:
    """A fifth of the words is about four fifths of a text."""
    return [vocab_size // 5] if vocab_size < 20_000 else [vocab_size // 20, vocab_size // 4]
