"""The families, in the order of the lineage. MODELS is the table: adding a family is a file, a row, a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..checks import check_family
from ..data.schema import (
    ALIGNMENT,
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_REGION,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    PICTURES,
    PICTURES_AND_WORDS,
    RECONSTRUCTION,
    REGION_CLASS,
    SEQUENCE,
    SEQUENCES,
    SPAN,
    TAG,
    VECTOR,
    Schema,
    ValueSpec,
)
from ..machine import check_memory
from .bert import SIZES as BERT_SIZES
from .bert import BERTConfig, build_bert
from .captioner import CaptionerConfig, build_captioner
from .contract import HasNumParameters
from .conv import ConvConfig, build_conv
from .crossmodal import CrossmodalConfig, build_crossmodal
from .draw import DRAWConfig, build_draw
from .elmo import ELMoConfig, build_elmo
from .glimpse import GlimpseConfig, build_glimpse
from .gpt import SIZES as GPT_SIZES
from .gpt import GPTConfig, build_gpt
from .hmm import HMMConfig
from .hmm_family import build_hmm
from .kalman import Kalman, KalmanConfig
from .ngram import NgramConfig
from .ngram_family import build_ngram
from .recurrent import GRUConfig, LSTMConfig, RNNConfig, build_gru, build_lstm, build_rnn
from .seq2seq import Seq2SeqConfig, build_seq2seq
from .transformer import TransformerConfig, build_transformer
from .window import WindowConfig, build_window
from .word2vec import Word2Vec, Word2VecConfig

SURELY_FITS = 1 << 32  # bytes, of a count that is some ten times too high; to know better costs a second


@dataclass(frozen=True)
class Family:
    """A row of MODELS: how to configure and build it, and the words that `seqwise models` prints."""

    config: type
    make: Callable[[Any, Schema], Any]
    learns: Mapping[str, str]
    """The kinds of target that it answers, each with how it learns to: the name of a row in LEARNERS."""
    year: int
    state: str
    fixed: str
    reads: tuple[frozenset[str], ...] = SEQUENCES
    """Kinds of spec that its inputs may be made of."""
    takes_part: bool = True
    """In comparisons, where nobody asks for it by name; else it is trained to be read from, not to be ranked."""
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the tokenizer that suit it, where nothing else was asked for."""
    use: str = ""
    """The command that one goes on with; where there is none, what suits the target."""
    starts_from: Mapping[str, str] = field(default_factory=dict)
    """Other families whose body is a part of this one's, each with the name of that part: --from takes runs of them."""
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings by the name of a size, which is a setting itself: model.size."""

    def named_here(self, other: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of another family by the names that they have in this one."""
        part = self.starts_from.get(other)
        if part is None:
            return dict(weights)
        return {name.replace("body.", f"body.{part}.", 1): tensor for name, tensor in weights.items()}

    @property
    def learns_by(self) -> str:
        """In words, of all that it answers."""
        return " or ".join(dict.fromkeys(self.learns.values()))

    def does(self, kinds: Iterable[str]) -> bool:
        """Whether it answers all these kinds of target; several at once, networks do, with a head for each."""
        asked = set(kinds)
        is_one = len(asked) == 1 or all(self.learns.get(kind) == "gradients" for kind in asked)
        return asked <= self.learns.keys() and is_one

    def can_read(self, *reads: frozenset[str]) -> bool:
        """Whether it reads inputs that are made of one of these."""
        return not set(self.reads).isdisjoint(reads)

    def fits(self, schema: Schema) -> bool:
        """Whether it reads and answers what such data is made of."""
        return self.does(schema.kinds) and self.can_read(schema.reads)

    def does_some(self, kinds: Iterable[str]) -> bool:
        """Whether it answers any of them: which are asked for, the data tells."""
        return bool(set(kinds) & self.learns.keys())

    def filled_in(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of the section model, with those of the size that they name where nothing else is given."""
        return {**self.sizes.get(str(given.get("size", "")), {}), **given}

    def build(self, config: Any, schema: Schema) -> Any:
        """A model with fresh weights; refused before they are made where they cannot fit into memory."""
        check_memory(
            self.bytes_of(config, schema),
            "a model of this size",
            "Choose smaller sizes in the section model (model_dim, num_layers, num_states), or fewer tokens.",
        )
        return self.make(config, schema)

    def bytes_of(self, config: Any, schema: Schema) -> int:
        """Of all weights and tables: exactly where they are many, else roughly and at most."""
        sizes = {name: value for name, value in vars(config).items() if type(value) is int}
        if self.learns[schema.kind] == "em":
            width, spec = max(1, sizes.get("num_states", 0), sizes.get("state_dim", 0)), schema.only_input()
            return 8 * width * (3 * width + (2 if isinstance(spec, ValueSpec) else 1) * spec.size)
        if self.learns[schema.kind] == "counting":
            return 0  # before it has counted
        if self.learns[schema.kind] == "hogwild":
            return 8 * sizes["embed_dim"] * schema.only_input().size  # a vector and an output for each word
        layers = max(1, sizes.pop("num_layers", 1)) + sizes.pop("encoder_layers", 0)
        sizes["window"] = sizes.get("window", 1) * sizes.get("embed_dim", 1)  # what it hands on side by side
        width = max(size for name, size in sizes.items() if name.endswith("_dim"))
        largest = max(*sizes.values(), *(spec.size for spec in schema.specs.values()))
        roughly = 4 * 16 * layers * width * largest
        if roughly < SURELY_FITS:
            return roughly
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # shapes without content
            model = self.make(config, schema)
        return sum(tensor.numel() * tensor.element_size() for tensor in (*model.parameters(), *model.buffers()))


BY_GRADIENTS = dict.fromkeys((NEXT_TOKEN, NEXT_VALUES, LABEL, LABELS, NUMBER, TAG, VECTOR, CHOICE), "gradients")
FROM_A_QUESTION = {**BY_GRADIENTS, SPAN: "gradients"}
"""Of who reads a passage and still knows the question that stood before it; a window of a few words has forgotten."""
BY_A_STATE = {**FROM_A_QUESTION, RECONSTRUCTION: "gradients"}
"""All that was read must pass through a state of fixed size: so a row can be written again only by who understood it.
Who still sees the row copies it, and who sees the last tokens alone never can."""
SINGLE_PICTURES = (frozenset({"images"}),)
"""Pixels, which what was found in pictures beforehand does not have any more."""
MODELS = {
    "ngram": Family(
        NgramConfig,
        build_ngram,
        {NEXT_TOKEN: "counting", LABEL: "counting"},
        1948,
        "the last n-1 tokens",
        "counting what follows what gives a probability",
    ),
    "hmm": Family(
        HMMConfig,
        build_hmm,
        {NEXT_TOKEN: "em", NEXT_VALUES: "em", LABEL: "em", TAG: "counting"},
        1966,
        "the belief over hidden states",
        "what is seen is explained by something unseen that moves",
    ),
    "kalman": Family(
        KalmanConfig,
        Kalman,
        {NEXT_VALUES: "em"},
        1960,
        "the belief over a hidden point: mean and covariance",
        "hidden states that are numbers, with exact forecasts",
    ),
    "window": Family(
        WindowConfig,
        build_window,
        BY_GRADIENTS,
        2003,
        "the last k-1 embeddings",
        "words are vectors: what is learned of one serves its neighbours",
    ),
    "conv": Family(
        ConvConfig,
        build_conv,
        FROM_A_QUESTION,
        1989,
        "the last inputs of each layer, in rings",
        "one kernel for all delays, a reach that doubles with each layer",
        reads=(*SEQUENCES, *PICTURES),
    ),
    "rnn": Family(
        RNNConfig, build_rnn, BY_A_STATE, 1990, "h, of fixed size", "no limit on how far back an input can be felt"
    ),
    "gru": Family(
        GRUConfig, build_gru, BY_A_STATE, 2014, "h, of fixed size", "memory behind two gates instead of three"
    ),
    "lstm": Family(LSTMConfig, build_lstm, BY_A_STATE, 1997, "h and c, of fixed size", "gradients survive many steps"),
    "word2vec": Family(
        Word2VecConfig,
        Word2Vec,
        {NEXT_TOKEN: "hogwild"},
        2013,
        "the last word",
        "vectors from millions of words in seconds, that carry over to other tasks",
        takes_part=False,
        tokenizer={"kind": "word", "lower_case": True, "min_count": 5},
        use="words",
    ),
    "elmo": Family(
        ELMoConfig,
        build_elmo,
        {NEXT_TOKEN: "gradients"},
        2018,
        "h and c of the forward direction",
        "a vector for each word in its context, whatever it is spelled like",
        takes_part=False,
        tokenizer={"kind": "word"},
    ),
    "seq2seq": Family(
        Seq2SeqConfig,
        build_seq2seq,
        {SEQUENCE: "gradients"},
        2014,
        "the decoder's h, and the memory it attends to",
        "input and output differ in length and order; attention looks back at all of the input",
    ),
    "transformer": Family(
        TransformerConfig,
        build_transformer,
        {SEQUENCE: "gradients"},
        2017,
        "keys and values of the target so far, and of the source",
        "attention alone: all steps are learned from at once",
    ),
    "gpt": Family(
        GPTConfig,
        build_gpt,
        FROM_A_QUESTION,
        2018,
        "keys and values of all tokens",
        "any two tokens are one step apart",
        sizes=GPT_SIZES,
    ),
    "bert": Family(
        BERTConfig,
        build_bert,
        dict.fromkeys((MASKED_TOKEN, LABEL, LABELS, NUMBER, TAG, SPAN, VECTOR, CHOICE), "gradients"),
        2019,
        "none: it reads all of a text at once",
        "a word's vector knows what comes after it; learned once from raw text, tuned for every task",
        reads=(*SEQUENCES, *PICTURES),
        sizes=BERT_SIZES,
    ),
    "captioner": Family(
        CaptionerConfig,
        build_captioner,
        {CAPTION: "gradients"},
        2015,
        "the decoder's h, and the places of the picture that it attends to",
        "the source need not be words: a picture is read place by place, and each word shows where it looked",
        reads=PICTURES_AND_WORDS,
        tokenizer={"kind": "word", "lower_case": True},
        use="caption",
    ),
    "glimpse": Family(
        GlimpseConfig,
        build_glimpse,
        {LABEL: "gradients"},
        2014,
        "h, of fixed size, and where it looks",
        "the cost grows with the number of glimpses, not with the picture",
        reads=SINGLE_PICTURES,
    ),
    "draw": Family(
        DRAWConfig,
        build_draw,
        {PICTURE: "gradients"},
        2015,
        "the canvas, and h and c of both networks",
        "a picture is painted step by step, by what is still missing",
        reads=SINGLE_PICTURES,
        takes_part=False,
    ),
    "crossmodal": Family(
        CrossmodalConfig,
        build_crossmodal,
        dict.fromkeys((LABEL, CHOICE, MASKED_TOKEN, MASKED_REGION, REGION_CLASS, ALIGNMENT), "gradients"),
        2019,
        "none: it reads all of a text and a picture at once",
        "words and what they stand for: text and picture are read together",
        reads=PICTURES_AND_WORDS,
        starts_from={"bert": "words"},
        sizes=BERT_SIZES,
    ),
}


def family(name: str) -> Family:
    check_family(name)
    return MODELS[name]


def num_parameters(model: object) -> int:
    """Parameters: weights, each counted once where tied; for count models the number of grams."""
    if isinstance(model, nn.Module):
        return sum(p.numel() for p in model.parameters())
    assert isinstance(model, HasNumParameters)
    return model.num_parameters
