"""Generation, in float32 and int8, against transformers' GPT2LMHeadModel.generate and CTranslate2 of the same size.

    pip install 'ctranslate2>=4.8'
    python -m benchmarks.generation [--repeats 5]

Same layers, width, heads, context, vocabulary; the same number of new tokens, no stop token; CTranslate2 has our
weights, transformers its own, all random (speed does not depend on them). Rates in tokens per second over all rows,
both sides in turns. Batches of 1 and 32, greedy and sampled; CTranslate2 at batch 1, greedy, by its best number of
threads, with how much of the text is the same.

For batch 1, what the memory allows: the bytes of weights that a token needs, over the rate at which as many bytes are
read, again and again, by a loop that does nothing else. And the torch path of ours, without the compiled engine.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from benchmarks.measure import Side, now, say_load, take_turns
from seqwise.data.schema import text_schema
from seqwise.decoding import DecodingConfig, generate
from seqwise.kernels.arithmetic import address
from seqwise.kernels.tiles import highest_at
from seqwise.layers.int8 import to_int8
from seqwise.models.engine import engine
from seqwise.models.gpt import Block, GPTBody, GPTConfig, build_gpt
from seqwise.text.symbols import SymbolTokenizer

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
SIZES = {"4 x 128": (4, 128, 4), "6 x 384": (6, 384, 6)}
GPT2 = {"positions": "learned", "activation": "gelu", "normalise_queries": False}  # what theirs computes
VOCAB, CONTEXT, PROMPT, NEW_TOKENS = 65, 256, 16, 240
WANTED = {("4 x 128", "float32"): 15.0, ("4 x 128", "int8"): 20.0}  # times transformers, one text at a time

Rate = Callable[[], float]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.filterwarnings("ignore")
    say_load()
    print(f"{torch.get_num_threads()} threads; tokens/s, median and range")
    print(f"{'size':>8} {'batch':>5} {'method':>7} {'weights':>8} {'ours':>10} {'theirs':>10} {'ratio':>8}")
    for name, (layers, width, heads) in SIZES.items():
        torch.manual_seed(0)
        config = GPTConfig(context=CONTEXT, num_layers=layers, model_dim=width, num_heads=heads, **GPT2)
        ours = build_gpt(config, text_schema(SymbolTokenizer(VOCAB))).eval()
        for parameter in ours.parameters():  # of which some begin at zero
            nn.init.normal_(parameter, std=max(parameter.shape) ** -0.5)
        models = {"float32": ours, "int8": copy.deepcopy(ours)}
        to_int8(models["int8"])
        theirs = build_theirs(layers, width, heads)
        for batch in (1, 32):
            rows = torch.randint(VOCAB, (batch, PROMPT), generator=torch.Generator().manual_seed(1))
            for method in ("greedy", "sample"):
                for kind, model in models.items():
                    ratio = take_turns(our_rate(model, rows, method), their_rate(theirs, rows, method), repeats)
                    wanted = WANTED.get((name, kind)) if batch == 1 else 2.0 if kind == "float32" else None
                    kept = "kept" if statistics.median(ratio.ratios) >= (wanted or 0) else "MISSED"
                    goal = f"; {wanted:g}x: {kept}" if wanted else ""
                    print(f"{name:>8} {batch:>5} {method:>7} {kind:>8} {ratio}{goal}", flush=True)
        compare_with_torch(name, models, repeats)
        compare_with_ctranslate2(name, models, repeats)


def our_rate(model: nn.Module, rows: Tensor, method: str) -> Rate:
    decoding = DecodingConfig(method=method, max_tokens=NEW_TOKENS)

    def measure() -> float:
        began = now()
        with engine("on"):
            found = generate(model, rows.tolist(), decoding)
        seconds = now() - began
        assert all(len(hypotheses[0].tokens) == NEW_TOKENS for hypotheses in found)
        return len(rows) * NEW_TOKENS / seconds

    return measure


def build_theirs(layers: int, width: int, heads: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=width, n_layer=layers, n_head=heads)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    return GPT2LMHeadModel(config).eval()


def their_rate(model: Any, rows: Tensor, method: str) -> Rate:
    is_sampled = method == "sample"
    told = {"min_new_tokens": NEW_TOKENS, "max_new_tokens": NEW_TOKENS, "use_cache": True}

    @torch.inference_mode()
    def measure() -> float:
        began = now()
        top_k = 0 if is_sampled else None
        out = model.generate(rows, attention_mask=torch.ones_like(rows), do_sample=is_sampled, top_k=top_k, **told)
        seconds = now() - began
        assert out.shape == (len(rows), PROMPT + NEW_TOKENS)
        return len(rows) * NEW_TOKENS / seconds

    return measure


def compare_with_torch(name: str, models: dict[str, nn.Module], repeats: int) -> None:
    """The path without the engine, and the share of what the memory allows, at batch 1."""
    rows = torch.randint(VOCAB, (1, PROMPT), generator=torch.Generator().manual_seed(1))

    def torch_rate() -> float:
        with engine("off"):
            began = now()
            generate(models["float32"], rows.tolist(), DecodingConfig(method="greedy", max_tokens=NEW_TOKENS))
            return NEW_TOKENS / (now() - began)

    ratio = take_turns(our_rate(models["float32"], rows, "greedy"), torch_rate, repeats)
    print(f"{name:>8} {1:>5} {'greedy':>7} {'float32':>8} {ratio}   against our own torch path", flush=True)
    for kind, model in models.items():
        num_bytes = sum(w.nbytes for w in model.state_dict().values() if w.dim() == 2) - CONTEXT * 4 * width_of(model)
        ratio = take_turns(our_rate(model, rows, "greedy"), reading_rate(num_bytes), repeats)
        speed = statistics.median(ratio.ours) * num_bytes / 1e9
        told = f"of what memory allows: {num_bytes / 1e6:.1f} MB a token, {speed:.1f} GB/s reached"
        print(f"{name:>8} {1:>5} {'greedy':>7} {kind:>8} {ratio}   {told}", flush=True)


def width_of(model: nn.Module) -> int:
    return cast(GPTBody, model.body).config.model_dim


@njit
def _read(numbers):
    return highest_at(address(numbers), len(numbers))


def reading_rate(num_bytes: int) -> Rate:
    """How often a second so many bytes can be read: the highest of as many numbers is found, with nothing written."""
    numbers, times = np.random.default_rng(0).standard_normal(num_bytes // 4, dtype=np.float32), int(2e9 / num_bytes)

    def measure() -> float:
        began = now()
        for _ in range(times):
            _read(numbers)
        return times / (now() - began)

    return measure


def compare_with_ctranslate2(name: str, models: dict[str, nn.Module], repeats: int) -> None:
    if find_spec("ctranslate2") is None:
        print("CTranslate2: skipped, it is not here: pip install ctranslate2")
        return
    rows = torch.randint(VOCAB, (1, PROMPT), generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        save_for_ctranslate2(models["float32"], folder)
        for kind, model in models.items():
            with their_sides(folder, kind) as sides:
                rates = {threads: side_rate(side, rows) for threads, side in sides.items()}
                tried = {threads: rate() for threads, rate in rates.items()}
                threads = max(tried, key=lambda number: tried[number])
                ratio = take_turns(our_rate(model, rows, "greedy"), rates[threads], repeats)
                found = sides[threads].ask(prompts=rows.tolist())["found"][0]
            with engine("on"):
                own = generate(model, rows.tolist(), DecodingConfig(method="greedy", max_tokens=NEW_TOKENS))[0][0]
            same = next((t for t, (a, b) in enumerate(zip(own.tokens, found, strict=True)) if a != b), NEW_TOKENS)
            kept = "kept" if statistics.median(ratio.ratios) >= 1 else "MISSED"
            told = f"against CTranslate2, {threads} threads; 1x: {kept}; the same {same} tokens"
            print(f"{name:>8} {1:>5} {'greedy':>7} {kind:>8} {ratio}   {told}", flush=True)


@contextmanager
def their_sides(folder: Path, kind: str) -> Iterator[dict[int, Side]]:
    """By the number of threads, in processes of their own: their threads and torch's would slow each other down."""
    told = {"kind": kind, "new_tokens": NEW_TOKENS}
    numbers = sorted({1, torch.get_num_threads()})
    sides = {
        threads: Side(
            sys.executable,
            "benchmarks.peers.ctranslate2_generation",
            folder,
            json.dumps({**told, "threads": threads}),
            log=folder / f"{threads}.log",
        )
        for threads in numbers
    }
    try:
        yield sides
    finally:
        for side in sides.values():
            side.__exit__()


def side_rate(side: Side, rows: Tensor) -> Rate:
    def measure() -> float:
        told = side.ask(prompts=rows.tolist())
        assert [len(tokens) for tokens in told["found"]] == [NEW_TOKENS] * len(rows)
        return len(rows) * NEW_TOKENS / told["seconds"]

    return measure


def save_for_ctranslate2(model: nn.Module, folder: Path) -> None:
    """Our weights under their names; tokens are called by their numbers."""
    from ctranslate2.specs import TransformerDecoderModelSpec
    from ctranslate2.specs.common_spec import Activation

    body, head = cast(GPTBody, model.body), cast(Any, model).main_head
    spec = TransformerDecoderModelSpec.from_config(
        len(body.blocks), body.config.num_heads, pre_norm=True, activation=Activation.GELU
    )

    def set_norm(spec: Any, norm: Any) -> None:
        spec.gamma, spec.beta = numbers(norm.weight), np.zeros(len(norm.weight), dtype=np.float32)

    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = body.embedding.scale * numbers(body.embedding.weight)
    decoder.position_encodings.encodings = numbers(body.position_table)
    set_norm(decoder.layer_norm, body.norm)
    decoder.projection.weight = numbers(head.output.weight)
    for layer, block in zip(decoder.layer, cast(list[Block], body.blocks), strict=True):
        set_norm(layer.self_attention.layer_norm, block.attention_norm)
        layer.self_attention.linear[0].weight = numbers(block.attention.qkv.weight)
        layer.self_attention.linear[1].weight = numbers(block.attention.to_output.weight)
        set_norm(layer.ffn.layer_norm, block.feed_forward_norm)
        layer.ffn.linear_0.weight = numbers(block.feed_forward.up.weight)
        layer.ffn.linear_1.weight = numbers(block.feed_forward.down.weight)
    spec.register_vocabulary([str(token) for token in range(VOCAB)])
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = "0"
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))


def numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


if __name__ == "__main__":
    main()
