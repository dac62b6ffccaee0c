"""Body and heads -> model: what a neural family becomes for the schema at hand. HEADS is the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from torch import nn

from ..data.schema import (
    ALIGNMENT,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_REGION,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    RECONSTRUCTION,
    REGION_CLASS,
    SPAN,
    TAG,
    VECTOR,
    LabelSpec,
    RegionSpec,
    Schema,
    SpanSpec,
    Spec,
    TagSpec,
    TokenSpec,
    ValueSpec,
)
from ..data.tag_schemes import legal_transitions
from ..errors import ConfigError
from ..layers.adaptive_softmax import AdaptiveSoftmaxHead
from ..layers.bidirectional_lm import BidirectionalLM
from ..layers.character_features import CharacterFeatures
from ..layers.choice_head import ChoiceHead
from ..layers.contextual import ContextualFeatures
from ..layers.crf import LinearChainCRF
from ..layers.embeddings import TokenEmbedding, ValueEmbedding
from ..layers.grounding_heads import AlignmentHead, RegionClassHead, RegionFeatureHead
from ..layers.heads import (
    CRFTagHead,
    GaussianHead,
    LabelHead,
    LabelSetHead,
    MaskedTokenHead,
    NextTokenHead,
    NumberHead,
    Pooling,
    TagHead,
    VectorHead,
)
from ..layers.span_head import SpanHead
from .contract import Body
from .headed import HeadedModel
from .siamese import READ_APART, Compared, Siamese

FEATURE_SIZES = ("model_dim", "memory_dim", "num_layers", "character_dim", "num_filters", "num_highways")
"""Of BidirectionalLM, in the order of `feature_sizes`."""
CHARACTER_DIM = 32
COSINE_REACH = 2.0  # standard deviations to each side
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
    pooling: Literal["first", "last", "mean", "max", "attention", "concat"] = "last"
    """Labels and vectors: which hidden states of the sequence the answer is read from."""
    normalise: bool = False
    """Vectors: bring each to length one, so that products of two are cosines."""
    max_steps: int = 0
    """Labels: of longer texts the first and the last half of so many tokens are read; 0 reads all. Spans: tokens of a
    window, the question among them; longer passages are read in several windows."""
    pairing: Literal["joined", "compared", "siamese", "cosine"] = "joined"
    """Pairs of texts with a label or a number: read one behind the other (compared: beside that, the means of both are
    held against each other), or each by itself, by the same network (siamese); or the number is how near to each other
    the two vectors point (cosine)."""
    label_weights: Literal["none", "balanced"] = "none"
    """Labels: let rare ones weigh more in the objective, so that each label weighs as much as another."""
    label_smoothing: float = 0.0
    """Labels: share of the objective that asks for every label alike, so that none is thought to be certain."""
    threshold: float = 0.5
    """Two labels: how probable the rarer one must be to be the answer. Several labels: how probable each must be."""
    max_answer: int = 30
    """Spans: longest answer, in tokens."""
    none_threshold: float | None = None
    """Spans: by how many nats "no answer" must be ahead of the best span to be the answer, where passages may lack it;
    chosen on the validation part at the end of training where not set."""
    crf: bool = False
    """Tags: score whole rows of tags by a linear-chain CRF, which knows which tag may follow which."""
    characters: Literal["none", "conv", "lstm"] = "none"
    """Tags: what the characters of a word say of it, beside its token."""
    character_dim: int = CHARACTER_DIM
    """Of the embedding of a word, so much comes from its characters."""
    features: str = ""
    """Labels and tags: a run of elmo, whose layers, mixed by learned weights, stand beside the embedding of each word.
    Its weights are copied into this run, and stay as they are."""
    feature_sizes: list[int] = field(default_factory=list)
    """Of the model that features are read off; filled in."""
    features_fingerprint: str = ""
    """sha256 of its weights; filled in."""
    embeddings: str = ""
    """Words: a run of word2vec, or a file of vectors, that the table of embeddings starts from. The rows are copied
    into this run, and learned on from there; training.freeze=["body.embedding.weight"] keeps them."""
    embeddings_fingerprint: str = ""
    """sha256 of that file; filled in."""

    @property
    def reads_both_ways(self) -> bool:
        """Whether hidden states know of what comes after their step."""
        return False

    def __post_init__(self) -> None:
        check_sizes(self)
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(f"model.label_smoothing = {self.label_smoothing} should lie in [0, 1).")
        if not 0 < self.threshold < 1:
            raise ConfigError(f"model.threshold = {self.threshold} should lie between 0 and 1.")
        if self.max_answer < 1:
            raise ConfigError(f"model.max_answer = {self.max_answer} should be at least 1.")
        if self.max_steps < 0:
            raise ConfigError(f"model.max_steps = {self.max_steps} should not be negative.")
        if self.characters == "lstm" and self.character_dim % 2:
            raise ConfigError(f"model.character_dim = {self.character_dim} should be even: half for each direction.")
        if self.tied_embeddings and self.adaptive_softmax:
            raise ConfigError("model.tied_embeddings and model.adaptive_softmax exclude each other; drop one.")


MAX_LAYERS = 1000
SIZES = ("model_dim", "embed_dim", "feed_forward_dim", "encoder_layers", "window", "character_dim")


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


def check_heads(model_dim: int, num_heads: int) -> None:
    """Heads share the width of the stream evenly."""
    if model_dim % num_heads:
        fitting = [n for n in (1, 2, 4, 6, 8, 12, 16) if model_dim % n == 0][-2:]
        raise ConfigError(
            f"num_heads={num_heads} does not divide model_dim={model_dim}; try {' or '.join(map(str, fitting))}."
        )


def check_turns(model_dim: int, num_heads: int) -> None:
    """Rotary positions turn pairs of numbers."""
    if model_dim // num_heads % 2:
        raise ConfigError(
            f"rotary positions need an even head width; model_dim={model_dim} over num_heads={num_heads} "
            f"gives {model_dim // num_heads}."
        )


def embedding_for(
    schema: Schema,
    config: NeuralConfig,
    embed_dim: int,
    *,
    std: float = 1.0,
    is_output: bool = False,
    scale: float | None = None,
) -> ValueEmbedding | TokenEmbedding:
    """Tokens or numbers -> vectors of this spread, whichever the data has.

    The table of a large vocabulary is kept small and scaled up where it is read: a step of the optimiser then moves a
    rare word as far as its few occurrences need (docs/lab-notebook.md). So is one that is the output as well, whose
    logits should begin near zero. `scale` is that factor where it is not to be chosen so.
    """
    spec = schema.only_input()
    if isinstance(spec, ValueSpec):
        return ValueEmbedding(spec.size, embed_dim, std=std)
    if scale is None:
        scale = embed_dim**0.5 if is_output or spec.size >= LARGE_VOCAB else 1.0
    assert isinstance(spec, TokenSpec)
    segments = 1 if config.pairing in READ_APART else spec.num_texts
    features = _character_features(spec, config, embed_dim)
    return TokenEmbedding(
        spec.size,
        embed_dim,
        std=std / scale,
        scale=scale,
        characters=features,
        num_segments=segments,
        features=_contextual_features(spec, config),
    )


def _contextual_features(spec: TokenSpec, config: NeuralConfig) -> ContextualFeatures | None:
    if not config.feature_sizes:
        return None
    sizes = dict(zip(FEATURE_SIZES, config.feature_sizes, strict=True))
    reader = BidirectionalLM(spec.num_characters, **sizes)
    return ContextualFeatures(reader, reader.layer_dim, reader.num_layers)


def _character_features(spec: TokenSpec, config: NeuralConfig, embed_dim: int) -> CharacterFeatures | None:
    if config.characters == "none":
        return None
    if not spec.alphabet:
        raise ConfigError(f"model.characters = {config.characters} goes with tags, whose words are spelled; drop it.")
    if config.character_dim >= embed_dim:
        raise ConfigError(
            f"model.character_dim = {config.character_dim} should lie below the width of embeddings, {embed_dim}."
        )
    return CharacterFeatures(config.characters, spec.num_characters, config.character_dim)


def _next_token(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    size = spec.size
    if config.adaptive_softmax and size >= LARGE_VOCAB:
        return AdaptiveSoftmaxHead(width, size, cutoffs=cutoffs_for(size))
    tied_to = body.embedding if config.tied_embeddings else None
    if tied_to is not None and tied_to.embedding_dim != width:
        raise ConfigError(
            f"model.tied_embeddings needs embeddings as wide as the output; found {tied_to.embedding_dim} and {width}."
        )
    return NextTokenHead(width, size, tied_to=tied_to)


def _next_values(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    return GaussianHead(width, spec.size)


def _pooling(width: int, config: NeuralConfig) -> Pooling:
    if config.pairing != "joined":  # there is one step, which was pooled
        return Pooling("last", width)
    return Pooling(config.pooling, width, both_ends=config.reads_both_ways)


def _masked_token(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    activation, epsilon = getattr(config, "activation", "gelu"), getattr(config, "norm_epsilon", 1e-12)
    return MaskedTokenHead(width, cast(nn.Embedding, body.embedding), activation=activation, epsilon=epsilon)


def _label(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    assert isinstance(spec, LabelSpec)
    weights = balanced(spec.counts) if config.label_weights == "balanced" else None
    rarer = int(np.argmin(spec.counts)) if len(spec.counts) == 2 and spec.counts[0] != spec.counts[1] else 1
    return LabelHead(
        _pooling(width, config),
        spec.size,
        weights=weights,
        smoothing=config.label_smoothing,
        threshold=config.threshold,
        rarer=rarer,
    )


def _labels(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    return LabelSetHead(_pooling(width, config), spec.size, threshold=config.threshold)


def _number(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    head = NumberHead(_pooling(width, config))
    if config.pairing == "cosine":  # numbers have mean zero and variance one: cosines of 0 to 1 span most of them
        nn.init.constant_(head.output.weight, 2 * COSINE_REACH)
        nn.init.constant_(head.output.bias, -COSINE_REACH)
    return head


def _vector(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    if config.pooling == "attention":
        raise ConfigError("model.pooling = attention has weights, and vectors are not learned; choose mean or first.")
    return VectorHead(_pooling(width, config), is_normalised=config.normalise)


def _choice(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    return ChoiceHead(_pooling(width, config), spec.size)


def _tag(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    if not config.crf:
        return TagHead(width, spec.size)
    assert isinstance(spec, TagSpec)
    follow, begin, end = legal_transitions(spec.names, spec.scheme)
    crf = LinearChainCRF(spec.size, can_follow=follow, can_begin=begin, can_end=end)
    return CRFTagHead(width, crf, spec.size)


def _span(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    assert isinstance(spec, SpanSpec)
    threshold = config.none_threshold or 0.0
    return SpanHead(width, max_answer=config.max_answer, may_lack=spec.may_lack, threshold=threshold)


def _masked_region(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    assert isinstance(spec, RegionSpec)
    return RegionFeatureHead(width, spec.feature_dim)


def _region_class(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    assert isinstance(spec, RegionSpec)
    return RegionClassHead(width, len(spec.names))


def _alignment(body: Body, width: int, config: NeuralConfig, spec: Spec) -> nn.Module:
    return AlignmentHead()


def balanced(counts: Sequence[int]) -> list[float]:
    """A weight for each label by which all weigh alike, one in the mean over the training part."""
    seen = sum(count > 0 for count in counts)
    return [sum(counts) / (seen * count) if count else 0.0 for count in counts]


@dataclass(frozen=True)
class HeadKind:
    """A row of HEADS."""

    build: Callable[[Body, int, NeuralConfig, Spec], nn.Module]
    """Given the width of what it reads, and the target's spec."""
    sees_all: bool
    """Whether the body may see the whole sequence: nothing that is asked for stands in it."""
    carries_state: bool = False
    """Whether a text goes on from one batch to the next; else each row stands alone."""


HEADS = {
    NEXT_TOKEN: HeadKind(_next_token, sees_all=False, carries_state=True),
    NEXT_VALUES: HeadKind(_next_values, sees_all=False, carries_state=True),
    MASKED_TOKEN: HeadKind(_masked_token, sees_all=True),
    LABEL: HeadKind(_label, sees_all=True),
    LABELS: HeadKind(_labels, sees_all=True),
    NUMBER: HeadKind(_number, sees_all=True),
    TAG: HeadKind(_tag, sees_all=True),
    SPAN: HeadKind(_span, sees_all=True),
    RECONSTRUCTION: HeadKind(_next_token, sees_all=False),
    VECTOR: HeadKind(_vector, sees_all=True),
    CHOICE: HeadKind(_choice, sees_all=True),
    MASKED_REGION: HeadKind(_masked_region, sees_all=True),
    REGION_CLASS: HeadKind(_region_class, sees_all=True),
    ALIGNMENT: HeadKind(_alignment, sees_all=True),
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
    pairs = _pairs(cast(Body, body), config, schema) if config.pairing != "joined" else None
    width = cast(Body, body).output_dim if pairs is None else pairs.output_dim
    heads = {
        name: HEADS[target.head].build(cast(Body, body), width, config, schema.specs[target.spec])
        for name, target in schema.targets.items()
    }
    weights = {name: target.weight for name, target in schema.targets.items()}
    carries = HEADS[schema.kind].carries_state
    model = HeadedModel(
        body,
        heads,
        weights,
        schema.main_spec.size,
        max_steps=config.max_steps,
        pairs=pairs,
        carries_state=carries,
    )
    is_text = isinstance(next(iter(schema.specs.values())), TokenSpec)
    if config.max_steps and (not is_text or TAG in schema.kinds or model.continues):
        raise ConfigError(
            f"model.max_steps = {config.max_steps} goes with texts that have a label or a number; drop it."
        )
    model.can_compile = carries or not is_text  # texts differ in length from batch to batch
    return model


def _pairs(body: Body, config: NeuralConfig, schema: Schema) -> Siamese | Compared:
    spec = schema.only_input()
    if not isinstance(spec, TokenSpec) or spec.num_texts != 2 or SPAN in schema.kinds:
        raise ConfigError(
            f"model.pairing = {config.pairing} goes with pairs of texts that have a label or a number; drop it."
        )
    if config.pairing == "cosine" and schema.kinds != (NUMBER,):
        raise ConfigError("model.pairing = cosine says how alike two texts are, as a number; for labels take siamese.")
    pooling = Pooling(config.pooling, body.output_dim, both_ends=config.reads_both_ways)
    if config.pairing == "compared":
        return Compared(pooling, body.output_dim)
    return Siamese(pooling, config.pairing, begins=spec.begin != spec.boundary)


def cutoffs_for(vocab_size: int) -> list[int]:
    """A fifth of the words is about four fifths of a text."""
    return [vocab_size // 5] if vocab_size < 20_000 else [vocab_size // 20, vocab_size // 4]
