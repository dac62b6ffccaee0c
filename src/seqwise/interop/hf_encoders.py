"""BERT and those that came of it (RoBERTa, DistilBERT, ALBERT) as Hugging Face folders hold them.

What differs between them are names, and little else: RoBERTa's positions begin behind its padding, DistilBERT has no
vectors for the first and second text and no pooler, ALBERT has one block for all layers and embeddings that are
narrower than the stream. `encoder_weights` says which tensor is which, for folders that are read and that are written;
what they answer is in hf_heads.py.

Runs are written as ALBERT where layers are shared or embeddings narrow, as RoBERTa where two separators stand between
texts, else as BERT: a DistilBERT comes out as the BERT that computes the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..config import build
from ..data.schema import Schema, TokenSpec
from ..errors import ConfigError
from ..models.bert import NUM_TEXTS, BERTConfig
from ..run import Run
from .hf_folder import CONFIG, HFFolder
from .hf_heads import HeadNames, answers_of, asked_of, head_weights
from .hf_layout import AS_IT_IS, Layout, Part, Way, Weight, about_newlines, cut, names_below, read_spec, repeated

ACTIVATIONS = {
    **{"gelu": "gelu", "relu": "relu"},
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast"), "gelu_tanh"),
}
"""Ours by their names."""
THEIR_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_tanh": "gelu_new"}
NOT_LEARNED = (r"position_ids$", r"embeddings\.token_type_ids$")


@dataclass(frozen=True)
class Names:
    """How an architecture writes the modules of an encoder; {} stands for the number of a layer."""

    title: str
    prefix: str
    """Before all names of the body, where there is a head beside it."""
    block: Mapping[str, str | tuple[str, ...]]
    heads: HeadNames
    pooler: str | None = None
    has_texts: bool = True
    """Whether it has vectors that tell a first text from a second."""
    widen: str = ""
    """The matrix behind narrow embeddings."""


@dataclass(frozen=True)
class Rows:
    """Of their tables: what stands where ours has nothing."""

    behind_tokens: int = 0
    before_positions: int = 0
    texts: Way = AS_IT_IS


def _parts(pattern: str, *names: str) -> tuple[str, ...]:
    return tuple(pattern.format("{}", name) for name in names)


_BERT_BLOCK: dict[str, str | tuple[str, ...]] = {
    "attention.qkv": _parts("encoder.layer.{}.attention.self.{}", "query", "key", "value"),
    "attention.to_output": "encoder.layer.{}.attention.output.dense",
    "attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "feed_forward.up": "encoder.layer.{}.intermediate.dense",
    "feed_forward.down": "encoder.layer.{}.output.dense",
    "feed_forward_norm": "encoder.layer.{}.output.LayerNorm",
}
BERT = Names(
    "Bert",
    "bert.",
    _BERT_BLOCK,
    HeadNames(
        transform="cls.predictions.transform.dense",
        norm="cls.predictions.transform.LayerNorm",
        bias="cls.predictions.bias",
        table="cls.predictions.decoder",
        follows="cls.seq_relationship",
    ),
    pooler="pooler.dense",
)
ROBERTA = Names(
    "Roberta",
    "roberta.",
    _BERT_BLOCK,
    HeadNames(
        transform="lm_head.dense",
        norm="lm_head.layer_norm",
        bias="lm_head.bias",
        table="lm_head.decoder",
        label="classifier.out_proj",
        label_pooler="classifier.dense",
    ),
    pooler="pooler.dense",
)
DISTILBERT = Names(
    "DistilBert",
    "distilbert.",
    {
        "attention.qkv": _parts("transformer.layer.{}.attention.{}_lin", "q", "k", "v"),
        "attention.to_output": "transformer.layer.{}.attention.out_lin",
        "attention_norm": "transformer.layer.{}.sa_layer_norm",
        "feed_forward.up": "transformer.layer.{}.ffn.lin1",
        "feed_forward.down": "transformer.layer.{}.ffn.lin2",
        "feed_forward_norm": "transformer.layer.{}.output_layer_norm",
    },
    HeadNames(
        transform="vocab_transform",
        norm="vocab_layer_norm",
        bias="vocab_projector.bias",
        table="vocab_projector",
        label_pooler="pre_classifier",
        label_activation="relu",
    ),
    has_texts=False,
)
_ALBERT = "encoder.albert_layer_groups.{}.albert_layers.0."
ALBERT = Names(
    "Albert",
    "albert.",
    {
        "attention.qkv": _parts(_ALBERT + "attention.{}", "query", "key", "value"),
        "attention.to_output": _ALBERT + "attention.dense",
        "attention_norm": _ALBERT + "attention.LayerNorm",
        "feed_forward.up": _ALBERT + "ffn",
        "feed_forward.down": _ALBERT + "ffn_output",
        "feed_forward_norm": _ALBERT + "full_layer_layer_norm",
    },
    HeadNames(
        transform="predictions.dense",
        norm="predictions.LayerNorm",
        bias="predictions.bias",
        table="predictions.decoder",
        order="sop_classifier.",
    ),
    pooler="pooler",
    widen="encoder.embedding_hidden_mapping_in",
)


def encoder_weights(
    names: Names, config: BERTConfig, schema: Schema, prefix: str, rows: Rows, pooler: str | None
) -> Iterator[Weight]:
    """Every weight of a model, with the tensors of a folder that it is. `pooler`: what it is called in all, where there
    is one."""
    tables = {
        "embedding": ("word_embeddings", cut(behind=rows.behind_tokens)),
        "positions": ("position_embeddings", cut(before=rows.before_positions)),
        **({"texts": ("token_type_embeddings", rows.texts)} if names.has_texts else {}),
    }
    for ours, (theirs, way) in tables.items():
        yield Weight(f"body.{ours}.weight", (Part(f"{prefix}embeddings.{theirs}.weight", way),))
    yield from names_below(("body.norm", f"{prefix}embeddings.LayerNorm"))
    if is_narrow(config):
        yield from names_below(("body.widen", prefix + names.widen))
    for layer in range(1 if config.shared_layers else config.num_layers):
        for module, written in names.block.items():
            parts = (written,) if isinstance(written, str) else written
            yield from names_below(
                (f"body.blocks.{layer}.{module}", tuple(prefix + part.format(layer) for part in parts))
            )
    if pooler is not None:
        yield from names_below(("body.pooler", pooler))
    for name in schema.targets:
        yield from head_weights(names.heads, schema, name, spare_tokens=rows.behind_tokens)


def is_narrow(config: BERTConfig) -> bool:
    return config.embed_dim is not None and config.embed_dim != config.model_dim


# -- reading -------------------------------------------------------------------------------------------------------


def read_bert(folder: HFFolder) -> Layout:
    return _read(folder, BERT, _shape(folder), Rows(texts=_texts(folder)))


def read_roberta(folder: HFFolder) -> Layout:
    """Positions are counted from the one behind the padding token's id."""
    before = int(folder.fraction("pad_token_id", 1)) + 1
    shape = _shape(folder) | {"context": folder.number("max_position_embeddings") - before}
    if shape["activation"] != "gelu":
        raise ConfigError(
            f"{folder.path / CONFIG}: hidden_act = {folder.config['hidden_act']!r}: RoBERTa's head has gelu whatever "
            "its layers have, and ours has what they have."
        )
    return _read(folder, ROBERTA, shape, Rows(before_positions=before, texts=_texts(folder)))


def read_distilbert(folder: HFFolder) -> Layout:
    shape = {
        "context": folder.number("max_position_embeddings", 512),
        "num_layers": folder.number("n_layers"),
        "model_dim": folder.number("dim"),
        "num_heads": folder.number("n_heads"),
        "feed_forward_dim": folder.number("hidden_dim"),
        "activation": activation_of(folder, "activation"),
        "norm_epsilon": 1e-12,
        "dropout": folder.fraction("dropout", 0.1),
    }
    return _read(folder, DISTILBERT, shape, Rows())


def read_albert(folder: HFFolder) -> Layout:
    folder.refuse("inner_group_num", unless=(1, None), why="one block to a group is known here")
    num_layers, groups = folder.number("num_hidden_layers"), folder.number("num_hidden_groups", 1)
    if groups not in (1, num_layers):
        raise ConfigError(
            f"{folder.path / CONFIG}: num_hidden_groups = {groups}: layers share one block here, or have one each."
        )
    shape = _shape(folder) | {"shared_layers": groups == 1 and num_layers > 1}
    width = folder.number("embedding_size", 128)
    shape["embed_dim"] = width if width != shape["model_dim"] else None
    return _read(folder, ALBERT, shape, Rows(texts=_texts(folder)))


def _shape(folder: HFFolder) -> dict[str, Any]:
    """Settings of ours from the names that most of them share."""
    folder.refuse("position_embedding_type", unless=("absolute", None), why="bert has a vector for each place")
    folder.refuse("is_decoder", unless=(False, None), why="an encoder is expected")
    return {
        "context": folder.number("max_position_embeddings"),
        "num_layers": folder.number("num_hidden_layers"),
        "model_dim": folder.number("hidden_size"),
        "num_heads": folder.number("num_attention_heads"),
        "feed_forward_dim": folder.number("intermediate_size"),
        "activation": activation_of(folder, "hidden_act"),
        "norm_epsilon": folder.fraction("layer_norm_eps", 1e-12),
        "dropout": folder.fraction("hidden_dropout_prob", 0.1),
    }


def _texts(folder: HFFolder) -> Way:
    """Vectors of texts: two, or one that serves both."""
    found = folder.number("type_vocab_size", NUM_TEXTS)
    if found > NUM_TEXTS:
        raise ConfigError(f"{folder.path / CONFIG}: type_vocab_size = {found}: at most two texts stand in a row here.")
    return repeated(NUM_TEXTS) if found == 1 else AS_IT_IS


def activation_of(folder: HFFolder, setting: str) -> str:
    name = folder.text(setting, "gelu")
    if name not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ConfigError(f'{folder.path / CONFIG}: {setting} = "{name}" is not known here; these are: {known}.')
    return ACTIVATIONS[name]


def _read(folder: HFFolder, names: Names, shape: dict[str, Any], rows: Rows) -> Layout:
    prefix = names.prefix if any(name.startswith(names.prefix) for name in folder.names) else ""
    spec, spare, notes = read_spec(folder, folder.number("vocab_size"))
    asked = asked_of(folder, names.heads, spec, context=shape["context"])
    config = build(BERTConfig, shape | asked.settings, section="model", where=str(folder.path / CONFIG))
    rows = replace(rows, behind_tokens=spare)
    poolers = [names.heads.label_pooler, prefix + names.pooler if names.pooler else ""]
    pooler = next((name for name in poolers if name and f"{name}.weight" in folder.names), None)
    if pooler is None:
        notes.append("no pooler in it: what labels read off the first place starts from scratch")
    alike = {f"{names.heads.table}.weight": f"{prefix}embeddings.word_embeddings.weight"}
    if names.heads.bias != f"{names.heads.table}.bias":
        alike[f"{names.heads.table}.bias"] = names.heads.bias
    return Layout(
        "bert",
        config,
        asked.schema,
        asked.task,
        list(encoder_weights(names, config, asked.schema, prefix, rows, pooler)),
        fresh=() if pooler else ("body.pooler.",),
        zeros=() if names.has_texts else ("body.texts.",),
        alike=alike if names.heads.bias in folder.names else {},
        spare=(*NOT_LEARNED, *asked.spare, *_needless(folder, names, config, prefix, pooler)),
        notes=[*notes, *asked.notes],
    )


def _needless(folder: HFFolder, names: Names, config: BERTConfig, prefix: str, pooler: str | None) -> Iterator[str]:
    """Patterns of tensors that change nothing: a second pooler, and a matrix that widens nothing."""
    if pooler is not None and pooler == names.heads.label_pooler:
        yield rf"^{re.escape(prefix)}pooler\."
    matrix, bias = (f"{prefix}{names.widen}.{kind}" for kind in ("weight", "bias"))
    if names.widen and not is_narrow(config) and matrix in folder.names:
        found = folder.read(matrix)
        if not torch.equal(found, torch.eye(len(found))) or folder.read(bias).any():
            raise ConfigError(
                f"{folder.path / CONFIG}: embedding_size is hidden_size, and {matrix} turns embeddings all the same: "
                "bert has no such matrix."
            )
        yield rf"^{re.escape(prefix + names.widen)}\."


# -- writing -------------------------------------------------------------------------------------------------------


def write_bert(run: Run, model: nn.Module) -> Layout:
    """A run of ours as a folder holds it."""
    config, spec = run.config.model, run.schema.only_input()
    if not isinstance(spec, TokenSpec):
        raise ConfigError(f"{run.path} reads numbers; a Hugging Face folder holds models of text.")
    if config.positions != "learned":
        raise ConfigError(
            f'{run.path}: model.positions = "{config.positions}": BERT, RoBERTa and ALBERT have a vector for each '
            "place. Train with --set model.positions=learned."
        )
    names = _names_for(config, spec)
    answers = answers_of(run, names.heads)
    first, second = model.get_parameter("body.texts.weight")
    one_for_both = names is ROBERTA and torch.equal(first, second)
    rows = Rows(
        before_positions=spec.special["padding"] + 1 if names is ROBERTA else 0,
        texts=repeated(NUM_TEXTS) if one_for_both else AS_IT_IS,
    )
    prefix = "" if answers.ending == "Model" else names.prefix
    pooler = prefix + (names.pooler or "")
    if answers.ending == "ForSequenceClassification":
        pooler = names.heads.label_pooler or pooler
    return Layout(
        "bert",
        config,
        answers.schema,
        run.config.task,
        list(encoder_weights(names, config, answers.schema, prefix, rows, pooler)),
        notes=[*answers.notes, *about_newlines(spec, begins_texts=False)],
        settings={
            **_settings(config, spec, names, rows),
            "architectures": [names.title + answers.ending],
            "type_vocab_size": 1 if one_for_both else NUM_TEXTS,
            **answers.settings,
        },
        extra=_identity(config, prefix + names.widen) if names is ALBERT and not is_narrow(config) else {},
        files=answers.files,
    )


def _names_for(config: BERTConfig, spec: TokenSpec) -> Names:
    if config.shared_layers or is_narrow(config):
        return ALBERT
    return ROBERTA if {"between", "padding"} <= spec.special.keys() and config.activation == "gelu" else BERT


def _settings(config: BERTConfig, spec: TokenSpec, names: Names, rows: Rows) -> dict[str, Any]:
    found = {
        "model_type": names.title.lower(),
        "vocab_size": spec.size,
        "hidden_size": config.model_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.feed_forward_dim or 4 * config.model_dim,
        "hidden_act": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_eps": config.norm_epsilon,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": config.context + rows.before_positions,
        "position_embedding_type": "absolute",
        "pad_token_id": spec.special.get("padding"),
    }
    if names is ALBERT:
        found |= {"embedding_size": config.embed_dim or config.model_dim, "inner_group_num": 1}
        found |= {"num_hidden_groups": 1 if config.shared_layers else config.num_layers}
    return found


def _identity(config: BERTConfig, name: str) -> dict[str, Tensor]:
    """ALBERT widens embeddings even where they are as wide as the stream: by a matrix that changes nothing."""
    return {f"{name}.weight": torch.eye(config.model_dim), f"{name}.bias": torch.zeros(config.model_dim)}
