"""Small translators as runs, and what Marian and Pegasus compute, written out from the names of their tensors."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, relu, silu

from seqwise.data.pair_store import build_pair_store
from seqwise.data.schema import Schema, pair_schema, pair_tokenizers
from seqwise.models import MODELS
from seqwise.run import Run, RunConfig
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig
from seqwise.text.bpe import BPETokenizer

PAIRS = [("the small cat sleeps", "die kleine Katze"), ("a dog", "ein Hund und noch ein Hund"), ("x", "y z")]
SMALL = {"num_layers": 2, "encoder_layers": 3, "model_dim": 12, "num_heads": 3, "feed_forward_dim": 20, "dropout": 0.0}
STD = 0.3
THEIRS = {"relu": relu, "gelu": gelu, "swish": silu}


def fill(model: torch.nn.Module, *, seed: int = 3) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "embed_positions" in name:
            continue
        torch.nn.init.normal_(parameter, std=STD if parameter.dim() > 1 else 0.1, generator=generator)
        if name.endswith("norm.weight"):
            parameter.data += 1.0  # else all that was read is lost behind it


def byte_pairs(side: int) -> BPETokenizer:
    return BPETokenizer.train((f"{pair[side]}\n" for pair in PAIRS), vocab_size=270)


def make_run(folder: Path, *, is_joint: bool = True, schema: Schema | None = None, **settings: Any) -> Run:
    row = MODELS["transformer"]
    if schema is None:
        source, target = byte_pairs(0), byte_pairs(1)
        schema = pair_schema(source, source if is_joint else target)
    config = row.config(**{**SMALL, **settings})
    model = row.build(config, schema)
    fill(model)
    run_config = RunConfig("transformer", DataConfig(), TokenizerConfig(kind="bpe"), config, TrainingConfig(), "pairs")
    run = Run.create(folder, run_config, schema)
    run.save_model(model.eval())
    return run


def our_scores(run: Run) -> list[Tensor]:
    """log p of the tokens of each target, (T,), from one padded batch."""
    store = build_pair_store(PAIRS, *pair_tokenizers(run.schema))
    with torch.inference_mode():
        found = run.load_model().eval().score(store.batch(np.arange(len(PAIRS))))[0]
    return [row[: length - 1] for row, length in zip(found, store.target.lengths.tolist(), strict=True)]


def their_scores(folder: Path, schema: Schema) -> list[Tensor]:
    """The same by the tensors of a folder, each pair by itself."""
    config, tensors = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    source, target = pair_tokenizers(schema)
    found = []
    for written, wanted in PAIRS:
        given = torch.tensor([*source.encode(written).tolist(), source.boundary])
        ids = torch.tensor([*target.encode(wanted).tolist(), config["eos_token_id"]])
        read = torch.cat([torch.tensor([config["decoder_start_token_id"]]), ids[:-1]])
        log_probs = Reference(config, tensors).log_probs(given, read)
        found.append(log_probs.gather(1, ids.unsqueeze(1)).squeeze(1))
    return found


class Reference:
    def __init__(self, config: dict[str, Any], tensors: dict[str, Tensor]):
        self.config, self.tensors, self.is_pre = config, tensors, config["model_type"] == "pegasus"

    def log_probs(self, source: Tensor, target: Tensor) -> Tensor:
        """(S,), (T,) -> (T, V)."""
        memory = self.side("encoder", source, None)
        hidden = self.side("decoder", target, memory)
        shared = self.tensors.get("model.shared.weight")
        table = self.tensors.get("lm_head.weight", self.tensors.get("model.decoder.embed_tokens.weight", shared))
        return (hidden @ table.T + self.tensors["final_logits_bias"][0]).log_softmax(dim=-1)

    def side(self, side: str, ids: Tensor, memory: Tensor | None) -> Tensor:
        table = self.tensors.get(f"model.{side}.embed_tokens.weight", self.tensors.get("model.shared.weight"))
        D = table.shape[1]
        x = table[ids] * (math.sqrt(D) if self.config["scale_embedding"] else 1.0)
        half = D // 2
        for t in range(len(ids)):
            for i in range(half):
                angle = t / 10000 ** (2 * i / D)
                x[t, i] += math.sin(angle)
                x[t, half + i] += math.cos(angle)
        for layer in range(self.config[f"{side}_layers"]):
            name = f"model.{side}.layers.{layer}"
            x = self.around(
                x,
                f"{name}.self_attn_layer_norm",
                lambda y, n=name: self.attend(f"{n}.self_attn", y, None, memory is not None),
            )
            if memory is not None:
                x = self.around(
                    x,
                    f"{name}.encoder_attn_layer_norm",
                    lambda y, n=name: self.attend(f"{n}.encoder_attn", y, memory, False),
                )
            x = self.around(x, f"{name}.final_layer_norm", lambda y, n=name: self.feed_forward(n, y))
        return self.norm(f"model.{side}.layer_norm", x) if self.is_pre else x

    def around(self, x: Tensor, norm: str, layer: Any) -> Tensor:
        return x + layer(self.norm(norm, x)) if self.is_pre else self.norm(norm, x + layer(x))

    def norm(self, name: str, x: Tensor) -> Tensor:
        return layer_norm(x, x.shape[-1:], self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def product(self, name: str, x: Tensor) -> Tensor:
        return linear(x, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def feed_forward(self, name: str, x: Tensor) -> Tensor:
        return self.product(f"{name}.fc2", THEIRS[self.config["activation_function"]](self.product(f"{name}.fc1", x)))

    def attend(self, name: str, x: Tensor, memory: Tensor | None, is_causal: bool) -> Tensor:
        seen = x if memory is None else memory
        H = self.config["decoder_attention_heads"]
        q, k, v = (
            self.product(f"{name}.{kind}_proj", y).unflatten(1, (H, -1)).transpose(0, 1)
            for kind, y in (("q", x), ("k", seen), ("v", seen))
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (H, T, S)
        if is_causal:
            scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), float("-inf"))
        return self.product(f"{name}.out_proj", (scores.softmax(dim=-1) @ v).transpose(0, 1).flatten(1))


def write_pieces(folder: Path, *, separate: bool = False) -> None:
    """source.spm, target.spm and vocab.json, learned from the pairs by sentencepiece."""
    import sentencepiece

    pieces: dict[str, list[str]] = {}
    for number, side in enumerate(("source", "target")):
        written = io.BytesIO()
        texts = [f"{pair[number]} {word}" for pair in PAIRS for word in ("and", "or", "not", "if", "then")]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts * 3),
            model_writer=written,
            vocab_size=40,
            hard_vocab_limit=False,
            minloglevel=2,
            num_threads=1,
        )
        (folder / f"{side}.spm").write_bytes(written.getvalue())
        cutter = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
        pieces[side] = [cutter.id_to_piece(token) for token in range(3, cutter.get_piece_size())]
    ends = [">>de<<", "<pad>"]
    joint = ["</s>", "<unk>", *dict.fromkeys([*pieces["source"], *pieces["target"]]), *ends]
    lists = {"vocab.json": joint}
    if separate:
        lists = {"vocab.json": ["</s>", "<unk>", *pieces["source"], *ends]}
        lists["target_vocab.json"] = ["</s>", "<unk>", *pieces["target"], *ends]
    for name, each in lists.items():
        (folder / name).write_text(json.dumps({piece: token for token, piece in enumerate(each)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": separate}))
