"""Networks of every shape whose steps are compiled, with random weights, and ways to step through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import schemas
import torch
from torch import Tensor

from seqwise.data.batch import Batch, pad_rows, prompt_batch
from seqwise.layers.embeddings import TokenEmbedding
from seqwise.models import MODELS
from seqwise.models.contract import State, select_rows
from seqwise.models.encoder_decoder import PairModel
from seqwise.models.engine import Use, compiled_step, engine
from seqwise.models.gpt import GPT2, LLAMA

VOCAB, SOURCE_VOCAB, CONTEXT = 23, 19, 16
PAIRS = ("seq2seq", "transformer")


@dataclass(frozen=True)
class Shape:
    """One configuration of a family."""

    family: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        usual = {"context", "model_dim", "num_heads", "num_layers", "feed_forward_dim"}
        shown = [f"{k}={v}" for k, v in self.settings.items() if k not in usual or isinstance(v, str | bool)]
        return "-".join([self.family, *shown])

    @property
    def is_pair(self) -> bool:
        return self.family in PAIRS


_GPT: dict[str, Any] = {"context": CONTEXT, "num_layers": 2, "model_dim": 36, "num_heads": 3, "feed_forward_dim": 50}
_LAYERS = {"model_dim": 36, "num_layers": 2}
_PAIR = {"model_dim": 36, "num_layers": 2}
_TRANSFORMER = {**_PAIR, "num_heads": 3, "feed_forward_dim": 50}


def _gpt(**settings: Any) -> Shape:
    return Shape("gpt", {**_GPT, **settings})


def _joined(connections: str, family: str = "lstm") -> list[Shape]:
    """As wide as the embeddings, and wider."""
    settings = {**_LAYERS, "num_layers": 3, "connections": connections}
    return [Shape(family, settings), Shape(family, {**settings, "embed_dim": 21})]


GPTS = [
    _gpt(),
    *(_gpt(norm=norm, biases=biases) for norm in ("layer", "rms") for biases in (True, False)),
    *(_gpt(positions=positions) for positions in ("learned", "sinusoidal")),
    *(_gpt(activation=activation) for activation in ("gelu", "gelu_tanh", "swiglu")),
    *(_gpt(num_heads=6, num_kv_heads=heads, normalise_queries=heads == 2) for heads in (1, 2, 3)),
    _gpt(num_heads=2, num_kv_heads=1, positions="learned", biases=True, activation="swiglu"),
    _gpt(normalise_queries=False, rotary_base=100.0, embedding_scale=2.0, norm_epsilon=1e-3),
    _gpt(tied_embeddings=True, num_layers=1, model_dim=33, num_heads=3, positions="learned"),
    Shape("gpt", {**GPT2, **_GPT}),
    Shape("gpt", {**LLAMA, **_GPT, "num_kv_heads": 1}),
]
RECURRENT = [
    *(Shape("rnn", {**_LAYERS, "activation": activation}) for activation in ("tanh", "relu")),
    Shape("gru", _LAYERS),
    Shape("lstm", _LAYERS),
    Shape("lstm", {"model_dim": 33, "num_layers": 1, "embed_dim": 17}),
    Shape("lstm", {**_LAYERS, "tied_embeddings": True}),
    Shape("lstm", {**_LAYERS, "projection_dim": 13}),
    Shape("lstm", {**_LAYERS, "projection_dim": 13, "layer_norm": "between", "connections": "highway"}),
    *(Shape(family, {**_LAYERS, "layer_norm": "between"}) for family in ("rnn", "gru", "lstm")),
    *(shape for connections in ("residual", "highway", "dense") for shape in _joined(connections)),
    *(_joined(connections, family)[1] for connections in ("highway", "dense") for family in ("rnn", "gru")),
    Shape("gru", {**_LAYERS, "connections": "dense", "layer_norm": "between", "embed_dim": 21}),
]
CONV = [
    Shape("conv", {"model_dim": 36, "num_layers": 4, "kernel_size": size, "max_dilation": 4}) for size in (2, 3, 5)
] + [Shape("conv", {"model_dim": 33, "num_layers": 1, "tied_embeddings": True})]
SEQ2SEQ = [
    *(
        Shape("seq2seq", {**_PAIR, "attention": attention, "cell": cell})
        for attention in ("none", "dot", "general", "additive")
        for cell in ("rnn", "gru", "lstm")
    ),
    *(
        Shape("seq2seq", {**_PAIR, "attention": attention, "cell": cell, "input_feeding": True})
        for attention, cell in (("dot", "rnn"), ("general", "lstm"), ("additive", "gru"))
    ),
    Shape(
        "seq2seq",
        {**_PAIR, "attention": "additive", "input_feeding": True, "shared_embeddings": "none", "embed_dim": 21},
    ),
    Shape("seq2seq", {**_PAIR, "num_layers": 1, "bidirectional": False, "output_bias": True}),
]
TRANSFORMERS = [
    *(
        Shape("transformer", {**_TRANSFORMER, "norm": norm, "positions": positions, "biases": biases, "context": 48})
        for norm in ("pre", "post")
        for positions in ("sinusoidal", "learned")
        for biases in (True, False)
    ),
    *(
        Shape("transformer", {**_TRANSFORMER, "num_heads": heads, "activation": activation})
        for heads, activation in ((1, "gelu"), (4, "gelu_tanh"), (2, "silu"), (6, "squared_relu"))
    ),
    Shape("transformer", {**_TRANSFORMER, "output_bias": True, "embedding_scale": 1.0, "shared_embeddings": "none"}),
]
SHAPES = [*GPTS, *RECURRENT, *CONV, *SEQ2SEQ, *TRANSFORMERS]
ONE_OF_EACH = [GPTS[0], GPTS[-1], RECURRENT[0], RECURRENT[2], RECURRENT[6], CONV[1]]
ONE_OF_EACH += [SEQ2SEQ[7], SEQ2SEQ[12], TRANSFORMERS[0], TRANSFORMERS[6]]


def build(shape: Shape, *, vocab_size: int = VOCAB, seed: int = 0, sharpness: float = 1.0) -> Any:
    """A network in which nothing is zero or one by accident. `sharpness`: how sure it is of what comes next."""
    row = MODELS[shape.family]
    config = row.config(**shape.settings)
    source_size = 0 if shape.settings.get("shared_embeddings") != "none" else SOURCE_VOCAB
    schema = schemas.of_pairs(vocab_size, source_size=source_size) if shape.is_pair else schemas.of_text(vocab_size)
    model: Any = row.build(config, schema)
    random = torch.Generator().manual_seed(seed)
    scales = {f"{name}.weight": of.scale for name, of in model.named_modules() if isinstance(of, TokenEmbedding)}
    head = getattr(model, "main_head", model.head)
    is_tied = {name for name, of in model.named_modules() if getattr(of, "weight", None) is head.output.weight}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            value = torch.randn(weight.shape, generator=random)
            if name in scales:
                value *= min(1.0, scales[name] * 0.3 if name.removesuffix(".weight") in is_tied else 1.0) / scales[name]
            elif weight.dim() == 2 and "position" not in name:
                value *= 0.8 * weight.shape[1] ** -0.5
            else:
                value = 0.3 * value + float(weight.dim() == 1 and name.endswith("weight"))  # of a norm: about one
            weight.copy_(value)
        head.output.weight.mul_(sharpness)
    return model.eval()


def draw(num_rows: int, length: int, *, seed: int = 1, vocab_size: int = VOCAB) -> Tensor:
    return torch.randint(vocab_size, (num_rows, length), generator=torch.Generator().manual_seed(seed))


def prompt_of(shape: Shape, lengths: Sequence[int], *, vocab_size: int = VOCAB) -> Batch:
    """Uneven prompts, or sources."""
    size = min(vocab_size, SOURCE_VOCAB)
    rows = [draw(1, length, seed=length, vocab_size=size)[0].tolist() for length in lengths]
    return Batch({"source": pad_rows(rows)}, {}) if shape.is_pair else prompt_batch(rows)


def step_along(
    model: Any,
    prompt: Batch,
    said: Tensor,
    use: Use,
    *,
    select: tuple[int, Sequence[int], Sequence[int]] | None = None,
) -> list[Tensor]:
    """log p after the prompt, and after each of the tokens said, (T, R). `select`: at this step these rows of these
    sources stay."""
    with torch.inference_mode(), engine(use):
        log_probs, state = model.start(prompt)
        found = [log_probs.clone()]
        for t, tokens in enumerate(said):
            if select is not None and t == select[0]:
                state = select_rows(state, torch.tensor(select[1]), torch.tensor(select[2]))
            rows = len(next(iter(state.per_row.values())))
            step = compiled_step(model, rows)
            assert (step is not None) == (use == "on")
            is_finite = isinstance(model, PairModel) and model.context is not None  # learned positions come to an end
            assert step is None or is_finite or step.body.make_room(state) > 0  # or torch would take the step after all
            log_probs, state = model.step(tokens[:rows], state)
            found.append(log_probs.clone())
    return found


def copy_of(state: State) -> State:
    return State({name: tensor.clone() for name, tensor in state.per_row.items()}, dict(state.memory))


def same(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)
