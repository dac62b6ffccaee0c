"""Translating with a beam against MarianMTModel.generate (transformers) of the same sizes, and CTranslate2's distance.

    pip install 'ctranslate2>=4.8'
    python -m benchmarks.translation_speed [--repeats 3]

The 1,000 test sentences of Multi30k en-de (number words where that is not at hand), beam 5, float32, 15 tokens for
every sentence, no more and no fewer, so that it does not matter that weights are random. 3 + 3 layers of width 256,
feed-forward 1,024, 4 heads, one table of 8,000 tokens. Ours goes from text to text and batches by itself; the others
get token numbers, sorted by length, in batches of the best of several sizes, and end with token numbers.

Marian normalises after each layer and has biases in attention. CTranslate2 runs our weights: its translations should be
ours. One by one: every sixteenth sentence, each alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measure import Side, now, say_load, take_turns
from benchmarks.translation_data import FEED_FORWARD, HEADS, NUM_LAYERS, SIZES, WIDTH, open_translation
from seqwise.data.pair_store import source_ids
from seqwise.data.schema import Schema, pair_tokenizers
from seqwise.decoding import DecodingConfig
from seqwise.decoding.translate import translate
from seqwise.layers.multi_head import CrossAttention, SelfAttention
from seqwise.models.encoder_decoder import PairModel
from seqwise.models.transformer import Block, Sublayer, TransformerBody, TransformerConfig, build_transformer
from seqwise.text import Tokenizer

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
BEAM, NEW_TOKENS, EVERY = 5, 15, 16
BATCH_SIZES = (8, 16, 32, 64, 128)
TOGETHER, ALONE = "together", "one by one"
WANTED = {TOGETHER: 2.0, ALONE: 3.0}  # times transformers

Sentences = list[list[int]]
Rate = Callable[[], float]
"""Translate all, and say how many sentences a second that were."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    say_load()
    data, schema = open_translation()
    lines = [source for source, _ in data.parts["test"]][: options.sentences]
    tokenizer, _ = pair_tokenizers(schema)
    encoded = [source_ids(line, tokenizer).tolist() for line in lines]
    torch.manual_seed(0)
    model = build_transformer(TransformerConfig(**SIZES), schema).eval()

    def search(lines: list[str]) -> Sentences:
        return search_ours(model, schema, lines)

    ours = {TOGETHER: rate(search, lines), ALONE: rate(search, lines[::EVERY], alone=True)}

    def compare(name: str, theirs: dict[str, Rate], wanted: dict[str, float]) -> None:
        for how in (TOGETHER, ALONE):
            ratio = take_turns(ours[how], theirs[how], options.repeats)
            kept = "kept" if statistics.median(ratio.ratios) >= wanted.get(how, 0.0) else "MISSED"
            goal = f"; {wanted[how]:.0f}x: {kept}" if how in wanted else ""
            print(f"{name:20} {how:10} {ratio}{goal}", flush=True)

    print(f"{len(lines):,} sentences, {torch.get_num_threads()} threads")
    print(f"{'':31} {'ours':>10} {'theirs':>10} {'ratio':>8}   sentences/s, median and range")
    marian = build_marian(tokenizer)
    sizes = {f"batches of {n}": rate(partial(marian, batch_size=n), encoded) for n in BATCH_SIZES}
    alone = rate(partial(marian, batch_size=1), encoded[::EVERY], alone=True)
    compare("transformers", {TOGETHER: fastest(sizes), ALONE: alone}, WANTED)
    if find_spec("ctranslate2") is None:
        print("CTranslate2: skipped, it is not here: pip install ctranslate2")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_for_ctranslate2(model, folder / "model")
        (folder / "sources.json").write_text(json.dumps(encoded))
        for kind in ("float32", "int8"):
            with ctranslate2_side(folder, kind, of_one=True) as split, ctranslate2_side(folder, kind) as joined:
                together = {f"{n} a thread": their_rate(split, batch_size=n) for n in BATCH_SIZES}
                together |= {f"{n} by all threads": their_rate(joined, batch_size=n) for n in BATCH_SIZES}
                alone = {"by one thread": their_rate(split, every=EVERY), "by all": their_rate(joined, every=EVERY)}
                compare(f"CTranslate2 {kind}", {TOGETHER: fastest(together), ALONE: fastest(alone)}, {})
                theirs = joined.ask(batch_size=32)["found"]
            same = sum(a == b for a, b in zip(search(lines), theirs, strict=True))
            print(f"{'':31} the same translation of {same:,} sentences")


def rate(search: Callable[[list[Any]], Sentences], sources: list[Any], *, alone: bool = False) -> Rate:
    """Given all at once, or each by itself."""

    def measure() -> float:
        began = now()
        found = [tokens for source in sources for tokens in search([source])] if alone else search(sources)
        return checked_rate(found, now() - began)

    return measure


def checked_rate(found: Sentences, seconds: float) -> float:
    assert {len(tokens) for tokens in found} == {NEW_TOKENS}
    return len(found) / seconds


def fastest(rates: dict[str, Rate]) -> Rate:
    """Each tried once."""
    found = {name: measure() for name, measure in rates.items()}
    print("tried: " + ", ".join(f"{name} {rate:.1f}" for name, rate in found.items()), flush=True)
    return rates[max(found, key=lambda name: found[name])]


def search_ours(model: PairModel, schema: Schema, lines: Iterable[str]) -> Sentences:
    config = DecodingConfig(
        method="beam",
        beam_width=BEAM,
        min_tokens=NEW_TOKENS,
        max_tokens=NEW_TOKENS,
        stop=model.boundary,
        length_penalty=1.0,
    )
    answers = translate(model, schema, lines, config, length_ratio=float(NEW_TOKENS))  # no source is too short for 15
    return [answer.hypotheses[0].tokens for answer in answers]


def build_marian(tokenizer: Tokenizer) -> Callable[..., Sentences]:
    from transformers import MarianConfig, MarianMTModel

    end = tokenizer.boundary
    config = MarianConfig(
        vocab_size=tokenizer.vocab_size,
        encoder_layers=NUM_LAYERS,
        decoder_layers=NUM_LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=FEED_FORWARD,
        decoder_ffn_dim=FEED_FORWARD,
        d_model=WIDTH,
        activation_function="relu",
        scale_embedding=True,
        decoder_start_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()

    @torch.inference_mode()
    def search(sentences: Sentences, *, batch_size: int) -> Sentences:
        order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
        found: dict[int, list[int]] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            rows = [torch.tensor(sentences[place]) for place in chosen]
            is_token = nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
            out = model.generate(
                nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=end),
                attention_mask=is_token,
                num_beams=BEAM,
                do_sample=False,
                min_new_tokens=NEW_TOKENS,
                max_new_tokens=NEW_TOKENS,
                length_penalty=1.0,
                use_cache=True,
            )
            found |= dict(zip(chosen, out[:, 1:].tolist(), strict=True))  # without the token they start from
        return [found[place] for place in range(len(sentences))]

    return search


def ctranslate2_side(folder: Path, kind: str, *, of_one: bool = False) -> Side:
    """In a process of its own: in ours, its threads and torch's would slow each other down to less than half.

    Threads share the work on a batch, or with `of_one` have batches of their own.
    """
    threads = torch.get_num_threads()
    each = (threads, 1) if of_one else (1, threads)
    told = {"kind": kind, "workers": each[0], "threads": each[1], "beam": BEAM, "new_tokens": NEW_TOKENS}
    log = folder / f"{kind}-{each[0]}.log"
    return Side(sys.executable, "benchmarks.peers.ctranslate2_search", folder, json.dumps(told), log=log)


def their_rate(side: Side, **what: int) -> Rate:
    def measure() -> float:
        told = side.ask(**what)
        return checked_rate(told["found"], told["seconds"])

    return measure


def save_for_ctranslate2(model: PairModel, folder: Path) -> None:
    """Our weights under their names; tokens are called by their numbers."""
    from ctranslate2.specs import TransformerSpec

    body = cast(TransformerBody, model.body)
    spec = TransformerSpec.from_config((len(body.encoder), len(body.decoder)), body.config.num_heads, pre_norm=True)

    def set_linear(spec: Any, layer: nn.Linear) -> None:
        spec.weight = numbers(layer.weight)
        if layer.bias is not None:
            spec.bias = numbers(layer.bias)

    def set_norm(spec: Any, norm: nn.Module) -> None:
        spec.gamma, spec.beta = numbers(cast(Tensor, norm.weight)), numbers(cast(Tensor, norm.bias))

    def set_attention(spec: Any, attention: SelfAttention | CrossAttention, sublayer: Sublayer) -> None:
        set_norm(spec.layer_norm, sublayer.norm)
        products = (
            [attention.qkv, attention.to_output]
            if isinstance(attention, SelfAttention)
            else [attention.to_query, attention.to_key_value, attention.to_output]
        )
        for one, layer in zip(spec.linear, products, strict=True):
            set_linear(one, layer)

    for side, blocks, table, norm in (
        (spec.encoder, body.encoder, body.source_embedding, body.encoder_norm),
        (spec.decoder, body.decoder, body.embedding, body.decoder_norm),
    ):
        (side.embeddings[0] if side is spec.encoder else side.embeddings).weight = numbers(table.weight)
        side.position_encodings.encodings = numbers(body.position_table)
        set_norm(side.layer_norm, norm)
        for layer, block in zip(side.layer, cast("Iterable[Block]", blocks), strict=True):
            set_attention(layer.self_attention, block.attention, block.attention_sublayer)
            if side is spec.decoder:
                set_attention(layer.attention, block.cross, block.cross_sublayer)
            set_norm(layer.ffn.layer_norm, block.feed_forward_sublayer.norm)
            set_linear(layer.ffn.linear_0, block.feed_forward.up)
            set_linear(layer.ffn.linear_1, block.feed_forward.down)
    set_linear(spec.decoder.projection, model.head.output)
    names = [str(token) for token in range(model.vocab_size)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token = spec.config.eos_token = spec.config.decoder_start_token = str(model.boundary)
    spec.config.unk_token = names[0]
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))


def numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


if __name__ == "__main__":
    main()
