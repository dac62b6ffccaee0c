"""GPT-2 and Llama-shaped decoders as Hugging Face folders hold them.

GPT-2 keeps its matrices with the input first (Conv1D), ours have it last. Llama turns a head's first half against its
second by rotary positions, ours turns neighbours: the rows of its queries and keys change their places,

    ours[2i] = theirs[i],   ours[2i + 1] = theirs[K/2 + i]        within each head, K its width          (1)

after which both compute the same. `gpt2_weights` and `llama_weights` say which tensor is which, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from ..config import build
from ..data.schema import NEXT_TOKEN, Schema, Target, TokenSpec
from ..errors import ConfigError
from ..layers.feed_forward import gated_width
from ..models.gpt import GPT2, LLAMA, GPTConfig
from ..run import Run
from .hf_encoders import ACTIVATIONS, THEIR_ACTIVATIONS
from .hf_folder import CONFIG, HFFolder
from .hf_layout import (
    AS_IT_IS,
    TRANSPOSED,
    Layout,
    Part,
    Way,
    Weight,
    about_newlines,
    cut,
    names_below,
    read_spec,
    scaled,
)

GPT2_PREFIX, LLAMA_PREFIX, OUTPUT = "transformer.", "model.", "lm_head.weight"
GPT2_BLOCK = {
    "attention.qkv": "attn.c_attn",
    "attention.to_output": "attn.c_proj",
    "feed_forward.up": "mlp.c_fc",
    "feed_forward.down": "mlp.c_proj",
}
LLAMA_BLOCK = {
    "attention.to_output": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.down": "mlp.down_proj",
}
NOT_LEARNED = (r"\.attn\.(masked_)?bias$", r"rotary_emb\.inv_freq$")
ROTARY_BASE = 10_000.0


def gpt2_weights(config: GPTConfig, prefix: str, *, behind: int = 0) -> Iterator[Weight]:
    """`behind`: rows of their embeddings that stand for no token."""
    yield Weight("body.embedding.weight", (Part(f"{prefix}wte.weight", cut(behind=behind)),))
    yield Weight("body.position_table", (Part(f"{prefix}wpe.weight"),))
    for layer in range(config.num_layers):
        ours, theirs = f"body.blocks.{layer}", f"{prefix}h.{layer}"
        yield from names_below(
            *((f"{ours}.{module}", f"{theirs}.{name}") for module, name in GPT2_BLOCK.items()), way=TRANSPOSED
        )
        yield from names_below(
            (f"{ours}.attention_norm", f"{theirs}.ln_1"), (f"{ours}.feed_forward_norm", f"{theirs}.ln_2")
        )
    yield from names_below(("body.norm", f"{prefix}ln_f"))
    yield from _output(config, behind)


def llama_weights(config: GPTConfig, prefix: str, *, behind: int = 0) -> Iterator[Weight]:
    yield Weight("body.embedding.weight", (Part(f"{prefix}embed_tokens.weight", cut(behind=behind)),))
    head_dim = config.model_dim // config.num_heads
    sizes = {"q": config.num_heads, "k": config.kv_heads, "v": config.kv_heads}
    for layer in range(config.num_layers):
        ours, theirs = f"body.blocks.{layer}", f"{prefix}layers.{layer}"
        parts = [
            Part(
                f"{theirs}.self_attn.{name}_proj.weight",
                by_halves(heads) if name != "v" else AS_IT_IS,
                heads * head_dim,
            )
            for name, heads in sizes.items()
        ]
        yield Weight(f"{ours}.attention.qkv.weight", tuple(parts))
        for module, name in LLAMA_BLOCK.items():
            yield Weight(f"{ours}.{module}.weight", (Part(f"{theirs}.{name}.weight"),))
    yield Weight("body.norm.weight", (Part(f"{prefix}norm.weight"),))
    yield from _output(config, behind)


def _output(config: GPTConfig, behind: int) -> Iterator[Weight]:
    if not config.tied_embeddings:
        yield Weight("head.tokens.output.weight", (Part(OUTPUT, cut(behind=behind)),))


def by_halves(num_heads: int) -> Way:
    """(1), and its inverse."""

    def to_ours(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (num_heads, 2, -1)).transpose(1, 2).flatten(0, 2)

    def to_theirs(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (num_heads, -1, 2)).transpose(1, 2).flatten(0, 2)

    return Way(to_ours, to_theirs)


# -- reading -------------------------------------------------------------------------------------------------------


def read_gpt2(folder: HFFolder) -> Layout:
    _check_head(folder, "GPT2LMHeadModel", "GPT2Model")
    for name, value in {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}.items():
        folder.refuse(name, unless=(value, None), why="attention is scaled by the width of a head alone here")
    folder.refuse("add_cross_attention", unless=(False, None), why="a decoder without a source is expected")
    activation = folder.text("activation_function", "gelu_new")
    if activation not in ACTIVATIONS or ACTIVATIONS[activation] == "relu":
        raise ConfigError(f'{folder.path / CONFIG}: activation_function = "{activation}" is not one that gpt has.')
    config = _config(
        folder,
        {
            **GPT2,
            "context": folder.number("n_positions", 1024),
            "num_layers": folder.number("n_layer"),
            "model_dim": folder.number("n_embd"),
            "num_heads": folder.number("n_head"),
            "feed_forward_dim": folder.number("n_inner", 4 * folder.number("n_embd")),
            "activation": ACTIVATIONS[activation],
            "norm_epsilon": folder.fraction("layer_norm_epsilon", 1e-5),
            "dropout": folder.fraction("resid_pdrop", 0.1),
            "tied_embeddings": _is_tied(folder, default=True),
        },
    )
    prefix = GPT2_PREFIX if any(name.startswith(GPT2_PREFIX) for name in folder.names) else ""
    spec, spare, notes = read_spec(folder, folder.number("vocab_size"))
    return _layout(folder, config, spec, [*gpt2_weights(config, prefix, behind=spare)], f"{prefix}wte.weight", notes)


def read_llama(folder: HFFolder) -> Layout:
    _check_head(folder, "LlamaForCausalLM", "LlamaModel", "MistralForCausalLM", "MistralModel")
    num_heads, model_dim = folder.number("num_attention_heads"), folder.number("hidden_size")
    for name in ("attention_bias", "mlp_bias"):
        folder.refuse(name, unless=(False, None), why="biases are in all layers here, or in none")
    folder.refuse("hidden_act", unless=("silu", "swish"), why="the gate is opened by silu here (swiglu)")
    folder.refuse("sliding_window", unless=(None,), why="attention reaches back over the whole context here")
    folder.refuse("head_dim", unless=(None, model_dim // num_heads), why="heads share hidden_size evenly here")
    config = _config(
        folder,
        {
            **LLAMA,
            "context": folder.number("max_position_embeddings", 2048),
            "num_layers": folder.number("num_hidden_layers"),
            "model_dim": model_dim,
            "num_heads": num_heads,
            "num_kv_heads": _shared(folder.number("num_key_value_heads", num_heads), num_heads),
            "feed_forward_dim": folder.number("intermediate_size"),
            "norm_epsilon": folder.fraction("rms_norm_eps", 1e-6),
            "rotary_base": _rotary_base(folder),
            "tied_embeddings": _is_tied(folder, default=False),
        },
    )
    prefix = LLAMA_PREFIX if any(name.startswith(LLAMA_PREFIX) for name in folder.names) else ""
    spec, spare, notes = read_spec(folder, folder.number("vocab_size"))
    return _layout(
        folder, config, spec, [*llama_weights(config, prefix, behind=spare)], f"{prefix}embed_tokens.weight", notes
    )


def _config(folder: HFFolder, settings: dict[str, Any]) -> GPTConfig:
    return build(GPTConfig, settings, section="model", where=str(folder.path / CONFIG))


def _check_head(folder: HFFolder, *known: str) -> None:
    told = next(iter(folder.config.get("architectures") or ()), known[0])
    if told not in known:
        raise ConfigError(f"{folder.path / CONFIG}: {told} has a head that is not read here; {known[0]} is.")


def _is_tied(folder: HFFolder, *, default: bool) -> bool:
    """A body alone has no output of its own."""
    return bool(folder.config.get("tie_word_embeddings", default))


def _shared(num_kv_heads: int, num_heads: int) -> int | None:
    return None if num_kv_heads == num_heads else num_kv_heads


def _rotary_base(folder: HFFolder) -> float:
    """In config.json by itself, or, as transformers 5 writes it, within rope_parameters."""
    told = folder.config.get("rope_parameters") or folder.config.get("rope_scaling") or {}
    kind = told.get("rope_type", told.get("type", "default")) if isinstance(told, dict) else told
    if kind != "default":
        name = "rope_parameters" if folder.config.get("rope_parameters") else "rope_scaling"
        raise ConfigError(
            f"{folder.path / CONFIG}: {name} of the kind {kind!r}: positions are turned without scaling here."
        )
    base = told.get("rope_theta", folder.config.get("rope_theta", ROTARY_BASE))
    if type(base) not in (int, float) or base <= 0:
        raise ConfigError(f"{folder.path / CONFIG}: rope_theta = {base!r} should be a number above 0.")
    return float(base)


def _layout(
    folder: HFFolder, config: GPTConfig, spec: TokenSpec, weights: list[Weight], table: str, notes: list[str]
) -> Layout:
    """What begins and ends a document, config.json knows best: it was trained with that."""
    told = {role: folder.config.get(name) for role, name in (("begin", "bos_token_id"), ("separator", "eos_token_id"))}
    known = {role: token for role, token in told.items() if type(token) is int and 0 <= token < spec.size}
    spec = replace(spec, special={**spec.special, **known})
    schema = Schema({"tokens": spec}, {"tokens": "tokens"}, {"tokens": Target("tokens", NEXT_TOKEN)})
    alike = {OUTPUT: table} if config.tied_embeddings else {}
    return Layout("gpt", config, schema, "text", weights, alike=alike, spare=NOT_LEARNED, notes=notes)


# -- writing -------------------------------------------------------------------------------------------------------


def write_gpt(run: Run, model: nn.Module) -> Layout:
    """As GPT-2 where its positions are learned, else as Llama; refused where a setting is another one."""
    config, spec = run.config.model, run.schema.only_input()
    if run.schema.kind != NEXT_TOKEN or not isinstance(spec, TokenSpec):
        raise ConfigError(f"{run.path} answers {run.config.task}; of gpt, models of text are written as such a folder.")
    is_gpt2 = config.positions == "learned"
    _check_shape(run, GPT2 if is_gpt2 else LLAMA)
    scale = float(model.get_submodule("body.embedding").scale)  # type: ignore[arg-type]
    is_tied = config.tied_embeddings and scale == 1.0
    written = replace(config, tied_embeddings=is_tied)
    weights = gpt2_weights(written, GPT2_PREFIX) if is_gpt2 else llama_weights(written, LLAMA_PREFIX)
    settings = _gpt2_settings(config) if is_gpt2 else _llama_settings(config)
    settings |= {"vocab_size": spec.size, "tie_word_embeddings": is_tied, "pad_token_id": spec.special.get("padding")}
    settings |= {"bos_token_id": spec.begin, "eos_token_id": spec.separator}
    return Layout(
        "gpt",
        config,
        run.schema,
        run.config.task,
        list(_as_read(weights, scale)),
        notes=about_newlines(spec, begins_texts="begin" not in spec.special),
        settings=settings,
    )


def _as_read(weights: Iterable[Weight], scale: float) -> Iterator[Weight]:
    """With the table of embeddings as it is read: theirs has no factor."""
    for weight in weights:
        is_table = weight.ours == "body.embedding.weight" and scale != 1.0
        yield Weight(weight.ours, (replace(weight.parts[0], way=scaled(scale)),)) if is_table else weight


def _check_shape(run: Run, shape: dict[str, Any]) -> None:
    """Every setting as the architecture has it, but for those that it can be told, or that are folded into weights."""
    config, is_gpt2 = run.config.model, shape is GPT2
    told = {"tied_embeddings", "embedding_scale", *(("activation",) if is_gpt2 and config.activation == "gelu" else ())}
    wanted = {name: value for name, value in shape.items() if name not in told} | {"adaptive_softmax": False}
    wrong = {name: value for name, value in wanted.items() if getattr(config, name) != value}
    if is_gpt2 and config.kv_heads != config.num_heads:
        wrong["num_kv_heads"] = config.num_heads
    if wrong:
        found = ", ".join(f"model.{name} = {_written(getattr(config, name))}" for name in wrong)
        fit = " ".join(f"--set model.{name}={_written(value)}" for name, value in wrong.items())
        title, size = ("GPT-2", "gpt2") if is_gpt2 else ("Llama", "stories15m")
        raise ConfigError(
            f"{run.path}: {found}: {title} in a Hugging Face folder has it otherwise. Train one that fits: {fit} "
            f"(all of a shape by its name: --set model.size={size})."
        )


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gpt2_settings(config: GPTConfig) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_positions": config.context,
        "n_embd": config.model_dim,
        "n_layer": config.num_layers,
        "n_head": config.num_heads,
        "n_inner": config.feed_forward_dim or 4 * config.model_dim,
        "activation_function": THEIR_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norm_epsilon,
        **dict.fromkeys(("resid_pdrop", "embd_pdrop"), config.dropout),
        "attn_pdrop": 0.0,
    }


def _llama_settings(config: GPTConfig) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "max_position_embeddings": config.context,
        "hidden_size": config.model_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.kv_heads,
        "intermediate_size": config.feed_forward_dim or gated_width(config.model_dim),
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rotary_base,
        "attention_bias": False,
        "mlp_bias": False,
    }
