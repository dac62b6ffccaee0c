"""Translators as Hugging Face folders hold them: MarianMTModel and PegasusForConditionalGeneration, in and out.

Both are the Transformer of 2017 (models/transformer.py) with sinusoidal positions and biases everywhere: Marian
(Junczys-Dowmunt et al. 2018; more than a thousand pairs of languages by Tiedemann & Thottingal 2020) normalises behind
each layer, Pegasus (Zhang et al. 2020) before it. So a run with norm=post is written as the first, one with norm=pre as
the second.

    ours    p[2i] = sin, p[2i+1] = cos       (1)   the numbers of a step side by side, as published
    theirs  p[i]  = sin, p[D/2+i] = cos      (2)   all sines first

Nothing but the positions tells one number of the stream from another, so whatever reads or writes the stream is brought
into our order, once, and the same is computed. Weights that ours does not have (biases of attention) are written as
zeros.

Their tokens are in hf_marian_tokens.py.

Shapes: V vocabulary, D model width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from ..data.schema import SEQUENCE, TokenSpec
from ..errors import ConfigError
from ..layers.positions import sinusoidal_table
from ..models.encoder_decoder import PairModel
from ..models.transformer import TransformerConfig
from ..run import Run
from .hf_folder import CONFIG, HFFolder
from .hf_layout import AS_IT_IS, Layout, Part, Way, Weight
from .hf_marian_tokens import is_apart, notes_on, pair_schema_of, read_tokens, write_tokens

ACTIVATIONS = {
    **{"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"},
    **{"silu": "silu", "swish": "silu", "relu2": "squared_relu"},
}
"""Ours by their names; of several the last is written."""
ARCHITECTURES = {"post": ("marian", "MarianMTModel"), "pre": ("pegasus", "PegasusForConditionalGeneration")}
"""By our setting norm: model_type and class."""
SHARED, SOURCE_TABLE, TARGET_TABLE, OUTPUT = (
    f"{name}.weight" for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
)
BIAS = "final_logits_bias"
MAX_POSITIONS = 1024  # that a folder is written for; they follow from their formula
MODULES = {  # of a block: theirs, and which side of a product the stream is on
    "attention.qkv": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "read"),
    "attention.to_output": (("self_attn.out_proj",), "written"),
    "attention_sublayer.norm": (("self_attn_layer_norm",), "written"),
    "cross.to_query": (("encoder_attn.q_proj",), "read"),
    "cross.to_key_value": (("encoder_attn.k_proj", "encoder_attn.v_proj"), "read"),
    "cross.to_output": (("encoder_attn.out_proj",), "written"),
    "cross_sublayer.norm": (("encoder_attn_layer_norm",), "written"),
    "feed_forward.up": (("fc1",), "read"),
    "feed_forward.down": (("fc2",), "written"),
    "feed_forward_sublayer.norm": (("final_layer_norm",), "written"),
}
OF_ATTENTION = ("attention.", "cross.")


# -- reading -------------------------------------------------------------------------------------------------------


def read_marian(folder: HFFolder) -> Layout:
    """A MarianMTModel, or a PegasusForConditionalGeneration, which are told apart by model_type."""
    norm: Any = "post" if folder.model_type == ARCHITECTURES["post"][0] else "pre"
    num_rows = _num_rows(folder, of_target=False), _num_rows(folder, of_target=True)
    source, target = read_tokens(folder, num_rows)
    has_bias = BIAS in folder.names and bool(folder.read(BIAS).any())
    config = TransformerConfig(
        num_layers=folder.number("decoder_layers"),
        encoder_layers=folder.number("encoder_layers"),
        model_dim=folder.number("d_model"),
        num_heads=_both_sides(folder, "attention_heads"),
        feed_forward_dim=_both_sides(folder, "ffn_dim"),
        norm=norm,
        context=folder.number("max_position_embeddings"),
        activation=_activation(folder),
        biases=True,
        embedding_scale=None if folder.config.get("scale_embedding", False) else 1.0,
        output_bias=has_bias,
        shared_embeddings=_sharing(folder),
        dropout=folder.fraction("dropout", 0.1),
    )
    tables, alike = _tables(folder, config, source, target, num_rows)
    spare = [r"embed_positions\.weight$", f"^{SHARED}$", *([] if has_bias else [f"^{BIAS}$"])]
    return Layout(
        "transformer",
        config,
        pair_schema_of(source, target),
        "pairs",
        [*tables, *_weights(config, target.size, behind=num_rows[1] - target.size)],
        alike=alike,
        spare=tuple(spare),
    )


def _both_sides(folder: HFFolder, name: str) -> int:
    """A setting that encoder and decoder have each."""
    found = [folder.number(f"{side}_{name}") for side in ("encoder", "decoder")]
    if found[0] != found[1]:
        raise ConfigError(
            f"{folder.path / CONFIG}: encoder_{name} = {found[0]} and decoder_{name} = {found[1]}: transformer has one "
            "number for both."
        )
    return found[0]


def _activation(folder: HFFolder) -> Any:
    name = folder.text("activation_function", "gelu")
    if name not in ACTIVATIONS:
        raise ConfigError(
            f'{folder.path / CONFIG}: activation_function = "{name}" is not known here; these are: '
            f"{', '.join(ACTIVATIONS)}."
        )
    return ACTIVATIONS[name]


def _is_shared(folder: HFFolder) -> bool:
    """Whether encoder and decoder have one table."""
    return bool(folder.config.get("share_encoder_decoder_embeddings", True))


def _sharing(folder: HFFolder) -> Any:
    if not folder.config.get("tie_word_embeddings", True):
        return "none"
    return "all" if _is_shared(folder) else "output"


def _num_rows(folder: HFFolder, *, of_target: bool) -> int:
    vocab_size = folder.number("vocab_size")
    return folder.number("decoder_vocab_size", vocab_size) if of_target and not _is_shared(folder) else vocab_size


def _tables(
    folder: HFFolder, config: TransformerConfig, source: TokenSpec, target: TokenSpec, num_rows: tuple[int, int]
) -> tuple[list[Weight], dict[str, str]]:
    """The tables of embeddings, and tensors that say them again."""
    of_source, of_target = (
        in_our_order(config.model_dim, behind=rows - spec.size)
        for rows, spec in zip(num_rows, (source, target), strict=True)
    )
    if config.shared_embeddings == "none" and {SOURCE_TABLE, TARGET_TABLE} <= folder.names:
        first, second = SOURCE_TABLE, TARGET_TABLE  # the shared one is not used then
    elif not _is_shared(folder):
        first, second = SOURCE_TABLE, TARGET_TABLE
    else:  # which of several names for one table a file keeps is up to who wrote it
        known = (name for name in (SHARED, SOURCE_TABLE, TARGET_TABLE, OUTPUT) if name in folder.names)
        first = second = next(known, SHARED)
    found = [Weight("body.source_embedding.weight", (Part(first, of_source),))]
    if config.shared_embeddings != "all" or is_apart(source, target):
        found.append(Weight("body.embedding.weight", (Part(second, of_target),)))
    said_again = {SOURCE_TABLE: first, TARGET_TABLE: second}
    if config.shared_embeddings == "none":
        found.append(Weight("head.output.weight", (Part(OUTPUT, of_target),)))
    else:
        said_again[OUTPUT] = second
    return found, {name: other for name, other in said_again.items() if name != other}


# -- weights -------------------------------------------------------------------------------------------------------


def our_order(model_dim: int) -> Tensor:
    """The place in (2) of each number of (1), (D,)."""
    order = torch.empty(model_dim, dtype=torch.long)
    num_sines = (model_dim + 1) // 2
    order[0::2], order[1::2] = torch.arange(num_sines), torch.arange(num_sines, model_dim)
    return order


def in_our_order(model_dim: int, *, dim: int = -1, behind: int = 0) -> Way:
    """Numbers of the stream along `dim` from (2) to (1). `behind`: rows of a table that stand for no token."""
    order = our_order(model_dim)
    back = order.argsort()

    def to_ours(tensor: Tensor) -> Tensor:
        return tensor[: len(tensor) - behind].index_select(dim, order.to(tensor.device))

    def to_theirs(tensor: Tensor) -> Tensor:
        found = tensor.index_select(dim, back.to(tensor.device))
        return torch.cat([found, found.new_zeros(behind, *found.shape[1:])]) if behind else found

    return Way(to_ours, to_theirs)


def _weights(config: TransformerConfig, num_tokens: int, *, behind: int = 0) -> Iterator[Weight]:
    """All but the tables. `behind`: rows of their output that stand for no token."""
    D = config.model_dim
    sides = (("encoder", config.encoder_layers or config.num_layers), ("decoder", config.num_layers))
    for side, num_layers in sides:
        for layer in range(num_layers):
            for ours, (theirs, stream) in MODULES.items():
                if side == "encoder" and ours.startswith("cross"):
                    continue
                has_bias = config.biases or not ours.startswith(OF_ATTENTION)
                for kind in ("weight", "bias")[: 1 + has_bias]:
                    of_stream = in_our_order(D, dim=0 if stream == "written" else -1)
                    way = AS_IT_IS if (stream, kind) == ("read", "bias") else of_stream
                    names = (f"model.{side}.layers.{layer}.{name}.{kind}" for name in theirs)
                    yield Weight(f"body.{side}.{layer}.{ours}.{kind}", tuple(Part(name, way) for name in names))
        if config.norm == "pre":
            for kind in ("weight", "bias"):
                part = Part(f"model.{side}.layer_norm.{kind}", in_our_order(D))
                yield Weight(f"body.{side}_norm.{kind}", (part,))
    if config.output_bias:
        row = Way(lambda row: row[0, :num_tokens], lambda bias: torch.nn.functional.pad(bias, (0, behind)).unsqueeze(0))
        yield Weight("head.output.bias", (Part(BIAS, row),))


# -- writing -------------------------------------------------------------------------------------------------------


def write_transformer(run: Run, model: PairModel) -> Layout:
    """How a run is written: as Marian's with norm=post, as Pegasus with norm=pre; what neither has is refused."""
    config = cast(TransformerConfig, model.config)
    source, target = _writable_tokens(run, config)
    is_shared = config.shared_embeddings == "all" and not is_apart(source, target)
    _check_sharing(run, config, is_shared=is_shared)
    tables = _written_tables(config, is_shared=is_shared)
    return Layout(
        "transformer",
        config,
        run.schema,
        "pairs",
        [*tables, *_weights(config, target.size)],
        notes=notes_on(source, target),
        settings=_settings(config, source, target, is_shared=is_shared),
        extra=_formal(config, target.size),
        files={"generation_config.json": _generation(target)},
        write_tokens=lambda folder: write_tokens(source, target, folder),
    )


def _writable_tokens(run: Run, config: TransformerConfig) -> tuple[TokenSpec, TokenSpec]:
    schema = run.schema
    if schema.kind != SEQUENCE or not isinstance(schema.specs[schema.inputs.get("source", "tokens")], TokenSpec):
        raise ConfigError(
            f"{run.path}: a Hugging Face folder holds a transformer that reads a text and writes another."
        )
    if config.positions != "sinusoidal":
        raise ConfigError(
            f'{run.path}: model.positions = "{config.positions}": neither Marian nor Pegasus has them. Train with '
            "--set model.positions=sinusoidal."
        )
    scale = config.embedding_scale
    if scale not in (None, 1.0) and abs(scale - config.model_dim**0.5) > 1e-6:
        raise ConfigError(
            f"{run.path}: model.embedding_scale = {scale}: Marian and Pegasus have 1 or the square root of model_dim."
        )
    return schema.input("source", TokenSpec), schema.target("tokens", TokenSpec)


def _check_sharing(run: Run, config: TransformerConfig, *, is_shared: bool) -> None:
    """Marian has tables of every kind, Pegasus one for all."""
    if config.norm == "pre" and not is_shared:
        why = (
            f'model.shared_embeddings = "{config.shared_embeddings}"'
            if config.shared_embeddings != "all"
            else "source and target have tokens of their own (tokenizer.joint)"
        )
        raise ConfigError(
            f'{run.path}: {why} and model.norm = "pre": Pegasus, which normalises so, has one table for source, target '
            "and output. Train with --set model.norm=post, or with one table: --set tokenizer.joint=true."
        )


def _written_tables(config: TransformerConfig, *, is_shared: bool) -> list[Weight]:
    way = in_our_order(config.model_dim)
    found = [Weight("body.source_embedding.weight", (Part(SHARED if is_shared else SOURCE_TABLE, way),))]
    if not is_shared:
        found.append(Weight("body.embedding.weight", (Part(TARGET_TABLE, way),)))
    if config.shared_embeddings == "none":
        found.append(Weight("head.output.weight", (Part(OUTPUT, way),)))
    return found


def _settings(config: TransformerConfig, source: TokenSpec, target: TokenSpec, *, is_shared: bool) -> dict[str, Any]:
    """config.json."""
    model_type, name = ARCHITECTURES[config.norm]
    width = config.feed_forward_dim or 4 * config.model_dim
    num_layers = {"encoder": config.encoder_layers or config.num_layers, "decoder": config.num_layers}
    theirs = {ours: name for name, ours in ACTIVATIONS.items()}
    marks = _marks(target)
    return {
        "architectures": [name],
        "model_type": model_type,
        "is_encoder_decoder": True,
        "vocab_size": source.size,
        **({} if config.norm == "pre" else {"decoder_vocab_size": target.size}),
        "d_model": config.model_dim,
        **{f"{side}_layers": number for side, number in num_layers.items()},
        **{f"{side}_attention_heads": config.num_heads for side in num_layers},
        **{f"{side}_ffn_dim": width for side in num_layers},
        "activation_function": theirs[config.activation],
        "scale_embedding": config.embedding_scale != 1.0,
        "static_position_embeddings": True,
        "max_position_embeddings": _num_positions(config),
        **({} if config.norm == "pre" else {"share_encoder_decoder_embeddings": is_shared}),
        "tie_word_embeddings": config.shared_embeddings != "none",
        **{"dropout": config.dropout, "attention_dropout": 0.0, "activation_dropout": 0.0},
        **marks,
        "forced_eos_token_id": None,
    }


def _num_positions(config: TransformerConfig) -> int:
    return max(MAX_POSITIONS, config.context)


def _marks(target: TokenSpec) -> dict[str, Any]:
    padding = target.special.get("padding", target.boundary)
    return {
        "bos_token_id": None,
        "eos_token_id": target.boundary,
        "pad_token_id": padding,
        "decoder_start_token_id": target.begin,
    }


def _generation(target: TokenSpec) -> dict[str, Any]:
    """How `generate` searches where nothing else is asked: what begins a target is never written."""
    never = {} if target.unwritten is None else {"bad_words_ids": [[target.unwritten]]}
    return {**_marks(target), "max_length": 512, "num_beams": 5, **never}


def _formal(config: TransformerConfig, num_tokens: int) -> dict[str, Tensor]:
    """Biases that theirs have and ours does not; and Pegasus' positions, which its class asks a file for."""
    found = {} if config.output_bias else {BIAS: torch.zeros(1, num_tokens)}
    if config.norm == "pre":
        table = sinusoidal_table(_num_positions(config), config.model_dim)
        in_their_order = in_our_order(config.model_dim).to_theirs(table)
        found |= {f"model.{side}.embed_positions.weight": in_their_order.clone() for side in ("encoder", "decoder")}
    if not config.biases:
        for weight in _weights(replace(config, biases=True, output_bias=False), num_tokens):
            if weight.ours.endswith("bias") and weight.ours.split(".", 3)[-1].startswith(OF_ATTENTION):
                found |= {part.name: torch.zeros(config.model_dim) for part in weight.parts}
    return found
