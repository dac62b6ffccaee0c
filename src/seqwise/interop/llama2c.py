"""llama2.c (karpathy/llama2.c): a Llama in one file of numbers, and its tokenizer in another.

A checkpoint of version 0, all little-endian:

    7 x int32      dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
                   vocab_size below zero: the output has weights of its own
    float32        embeddings; of all layers together: norms before attention, W_q, W_k, W_v, W_o, norms before
                   feed-forward, W_gate, W_down, W_up; the last norm; cosines and sines of the positions, which follow
                   from their formula; the output where it is not the embeddings

Its rotary positions turn neighbours, as ours do: no weight changes its place.

tokenizer.bin:

    int32          bytes of the longest token
    per token      score float32, length int32, bytes

in the order of ids, as many as the checkpoint has. Tokens 3 to 258 are the bytes, written <0x0A> or, in files from
before August 2023, as the character of that number.

Shapes: L layers, V vocabulary, D model width, F feed-forward width, C context, K head width.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import torch

from ..data.schema import text_schema
from ..errors import ConfigError, DataError
from ..models import family, num_parameters
from ..models.gpt import LLAMA, GPTConfig
from ..models.headed import HeadedModel
from ..text.sentence_pieces import FIRST_BYTE, FIRST_PIECE, SentencePieceTokenizer

VERSION_MARK = 0x616B3432  # "ak42": how files of version 1 and 2 begin
EPSILON = 1e-5  # of its norms


@dataclass(frozen=True)
class Header:
    """The names are those of the project."""

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int

    FORMAT = struct.Struct("<7i")

    @property
    def num_tokens(self) -> int:
        return abs(self.vocab_size)

    def layout(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The tensors in the order of the file, with their shapes."""
        L, V, D, F = self.n_layers, self.num_tokens, self.dim, self.hidden_dim
        head_dim = D // self.n_heads
        shared = (L, self.n_kv_heads * head_dim, D)
        yield "embedding", (V, D)
        yield "attention_norm", (L, D)
        yield from (("query", (L, D, D)), ("key", shared), ("value", shared), ("to_output", (L, D, D)))
        yield "feed_forward_norm", (L, D)
        yield from (("gate", (L, F, D)), ("down", (L, D, F)), ("up", (L, F, D)))
        yield "norm", (D,)
        yield from (("cosines", (self.seq_len, head_dim // 2)), ("sines", (self.seq_len, head_dim // 2)))
        if self.vocab_size < 0:
            yield "output", (V, D)

    @property
    def num_bytes(self) -> int:
        """Of a whole file."""
        return self.FORMAT.size + 4 * sum(int(np.prod(shape, dtype=object)) for _, shape in self.layout())

    def config(self) -> GPTConfig:
        return GPTConfig(
            **{
                **LLAMA,
                "context": self.seq_len,
                "num_layers": self.n_layers,
                "model_dim": self.dim,
                "num_heads": self.n_heads,
                "num_kv_heads": None if self.n_kv_heads == self.n_heads else self.n_kv_heads,
                "feed_forward_dim": self.hidden_dim,
                "norm_epsilon": EPSILON,
                "tied_embeddings": self.vocab_size > 0,
            }
        )


def read_llama2c(path: Path, tokenizer_path: Path) -> tuple[HeadedModel, GPTConfig, SentencePieceTokenizer]:
    """The model of a checkpoint, of version 0, its settings and its tokenizer. A file that is damaged is named."""
    header, config = _read_header(path)
    tokenizer = read_tokenizer(tokenizer_path, header.num_tokens, of=path.name)
    model: HeadedModel = family("gpt").build(config, text_schema(tokenizer))
    weights = _by_our_names(_read_tensors(path, header), header)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            found = np.concatenate(weights[name]) if isinstance(weights[name], list) else weights[name]
            if not np.isfinite(found).all():
                raise DataError(f"{path}: damaged: {name} holds what is not a number. Fetch or export it again.")
            parameter.copy_(torch.from_numpy(np.array(found, dtype=np.float32)))  # a copy: the file is not writable
    return model.eval(), config, tokenizer


def describe(path: Path, model: HeadedModel) -> str:
    return f"imported from {path.name}, a checkpoint of llama2.c with {num_parameters(model):,} parameters"


def _read_header(path: Path) -> tuple[Header, GPTConfig]:
    try:
        with path.open("rb") as file:
            start = file.read(Header.FORMAT.size)
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    if len(start) < Header.FORMAT.size:
        raise DataError(f"{path}: cut short: {size} bytes, and a checkpoint of llama2.c begins with 28 of sizes.")
    header = Header(*Header.FORMAT.unpack(start))
    if header.dim == VERSION_MARK:
        raise DataError(
            f"{path}: a checkpoint of llama2.c of version {header.hidden_dim}, and version 0 is read. "
            "Export it again with that project's export.py: --version 0."
        )
    try:
        if min(*astuple(header)[:5], header.num_tokens, header.seq_len) < 1:
            raise ConfigError("sizes should be above 0")
        config = header.config()
    except ConfigError as error:
        sizes = ", ".join(f"{name} {value}" for name, value in vars(header).items())
        raise DataError(
            f"{path}: not a checkpoint of llama2.c: it begins with {sizes} ({str(error).rstrip('.')})."
        ) from None
    if size != header.num_bytes:
        what = "cut short" if size < header.num_bytes else "longer than it should be"
        raise DataError(
            f"{path}: {what}: {size:,} bytes, and the sizes that it begins with ask for {header.num_bytes:,}. "
            "Fetch or export it again."
        )
    return header, config


def _read_tensors(path: Path, header: Header) -> dict[str, np.ndarray]:
    """Views of the file, which are read when they are needed."""
    numbers, done, found = np.memmap(path, dtype="<f4", mode="r", offset=Header.FORMAT.size), 0, {}
    for name, shape in header.layout():
        size = int(np.prod(shape))
        found[name] = numbers[done : done + size].reshape(shape)
        done += size
    return found


def _by_our_names(tensors: dict[str, np.ndarray], header: Header) -> dict[str, np.ndarray | list[np.ndarray]]:
    """Weights by the names of our parameters; those that we have one below the other as a list."""
    ours: dict[str, np.ndarray | list[np.ndarray]] = {
        "body.embedding.weight": tensors["embedding"],
        "body.norm.weight": tensors["norm"],
    }
    if "output" in tensors:
        ours["head.tokens.output.weight"] = tensors["output"]
    for layer in range(header.n_layers):
        block = f"body.blocks.{layer}"
        ours[f"{block}.attention.qkv.weight"] = [tensors[name][layer] for name in ("query", "key", "value")]
        ours[f"{block}.attention.to_output.weight"] = tensors["to_output"][layer]
        for name in ("attention_norm", "feed_forward_norm"):
            ours[f"{block}.{name}.weight"] = tensors[name][layer]
        for name in ("gate", "up", "down"):
            ours[f"{block}.feed_forward.{name}.weight"] = tensors[name][layer]
    return ours


def read_tokenizer(path: Path, num_tokens: int, *, of: str) -> SentencePieceTokenizer:
    """A tokenizer.bin with as many tokens as a checkpoint has, whose name is `of`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    tokens = list(_tokens(content, path))
    if len(tokens) != num_tokens:
        raise DataError(
            f"{path}: {len(tokens):,} tokens, and {of} has embeddings of {num_tokens:,}. "
            "Name the tokenizer that it was trained with."
        )
    if num_tokens < FIRST_PIECE:
        raise DataError(f"{path}: {num_tokens} tokens are too few: there are 256 bytes and three marks in each.")
    for byte, (written, _) in enumerate(tokens[FIRST_BYTE:FIRST_PIECE]):
        if written not in (b"<0x%02X>" % byte, chr(byte).encode()):
            shown = written.decode(errors="replace")
            raise DataError(f"{path}: token {FIRST_BYTE + byte} is {shown!r}, and should be the byte {byte:02X}.")
    try:
        pieces = [written.decode() for written, _ in tokens[FIRST_PIECE:]]
        return SentencePieceTokenizer(pieces, [score for _, score in tokens[FIRST_PIECE:]])
    except ValueError as error:
        raise DataError(f"{path}: damaged: {error}. Fetch it again.") from None


def _tokens(content: bytes, path: Path) -> Iterator[tuple[bytes, float]]:
    """Each token and its score."""
    longest, done, number = int.from_bytes(content[:4], "little"), 4, 0
    while done < len(content):
        begin = done + 8
        score, length = struct.unpack_from("<fi", content, done) if begin <= len(content) else (0.0, 1)
        done = begin + length
        if done > len(content) or not 0 < length <= longest:
            raise DataError(
                f"{path}: not a tokenizer.bin of llama2.c, or cut short: token {number:,} has no end. Fetch it again."
            )
        yield content[begin:done], score
        number += 1
