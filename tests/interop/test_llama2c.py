"""Files of llama2.c come in with every number in its place; damaged ones are named, and nothing is written."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.api import TrainedRun
from seqwise.data.batch import next_token_batch
from seqwise.data.schema import text_schema
from seqwise.errors import ConfigError, DataError
from seqwise.interop.llama2c import read_llama2c, read_tokenizer
from seqwise.interop.runs import export_run, import_run
from seqwise.models.gpt import LLAMA, GPTConfig, build_gpt
from seqwise.run import Run
from seqwise.text.sentence_pieces import FIRST_PIECE, SentencePieceTokenizer

PIECES = {" ": -1.0, "c": -2.0, "a": -3.0, "t": -4.0, " c": -5.0, "at": -6.5, " cat": -7.25, "é": -8.0}
VOCAB, CONTEXT, LAYERS = FIRST_PIECE + len(PIECES), 12, 3
WITH_BYTES = [f"<0x{byte:02X}>".encode() for byte in range(256)]
AS_CHARACTERS = [chr(byte).encode() for byte in range(256)]


def tokenizer_bytes(written: list[bytes] = WITH_BYTES, longest: int | None = None) -> bytes:
    marks = [b"<unk>", b"\n<s>\n", b"\n</s>\n"]
    tokens = [(token, 0.0) for token in [*marks, *written]] + [(text.encode(), score) for text, score in PIECES.items()]
    content = struct.pack("<i", max(len(token) for token, _ in tokens) if longest is None else longest)
    return content + b"".join(struct.pack("<fi", score, len(token)) + token for token, score in tokens)


def random_model(num_kv_heads: int, *, tied: bool) -> Any:
    sizes = {"context": CONTEXT, "num_layers": LAYERS, "model_dim": 16, "num_heads": 4, "feed_forward_dim": 24}
    config = GPTConfig(**{**LLAMA, **sizes, "num_kv_heads": num_kv_heads, "tied_embeddings": tied})
    model = build_gpt(config, text_schema(SentencePieceTokenizer(list(PIECES), list(PIECES.values())))).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def checkpoint_bytes(model: Any) -> bytes:
    """As that project writes it: each kind of weight of all layers together."""
    config, w = model.body.config, {name: p.detach().numpy() for name, p in model.named_parameters()}
    tied, kv_dim = config.tied_embeddings, config.kv_heads * 4
    header = (16, 24, LAYERS, 4, config.kv_heads, VOCAB if tied else -VOCAB, CONTEXT)

    def of_all(name: str) -> np.ndarray:
        return np.concatenate([w[f"body.blocks.{layer}.{name}.weight"].ravel() for layer in range(LAYERS)])

    def part(begin: int, end: int) -> np.ndarray:
        rows = [w[f"body.blocks.{layer}.attention.qkv.weight"][begin:end].ravel() for layer in range(LAYERS)]
        return np.concatenate(rows)

    parts = [
        w["body.embedding.weight"],
        of_all("attention_norm"),
        *(part(0, 16), part(16, 16 + kv_dim), part(16 + kv_dim, 16 + 2 * kv_dim)),
        of_all("attention.to_output"),
        of_all("feed_forward_norm"),
        *(of_all("feed_forward.gate"), of_all("feed_forward.down"), of_all("feed_forward.up")),
        w["body.norm.weight"],
        np.full(2 * CONTEXT * 2, 99.0),  # the positions, which are not looked at
        *([] if tied else [w["head.tokens.output.weight"]]),
    ]
    return struct.pack("<7i", *header) + b"".join(part.astype("<f4").tobytes() for part in parts)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "small.bin").write_bytes(checkpoint_bytes(random_model(2, tied=True)))
    (tmp_path / "tokenizer.bin").write_bytes(tokenizer_bytes())
    return tmp_path / "small.bin", tmp_path / "tokenizer.bin"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@torch.no_grad()
def test_a_model_comes_in_as_it_was(tmp_path: Path, num_kv_heads: int, tied: bool) -> None:
    model, batch = random_model(num_kv_heads, tied=tied), next_token_batch(torch.randint(VOCAB, (2, CONTEXT)))
    (tmp_path / "small.bin").write_bytes(checkpoint_bytes(model))
    (tmp_path / "tokenizer.bin").write_bytes(tokenizer_bytes())
    found, _, _ = read_llama2c(tmp_path / "small.bin", tmp_path / "tokenizer.bin")
    torch.testing.assert_close(found.score(batch)[0], model.score(batch)[0], atol=0, rtol=0)


@pytest.mark.parametrize("written", [WITH_BYTES, AS_CHARACTERS], ids=["now", "before"])
def test_a_tokenizer_comes_in_however_its_bytes_are_written(tmp_path: Path, written: list[bytes]) -> None:
    (tmp_path / "tokenizer.bin").write_bytes(tokenizer_bytes(written))
    tokenizer = read_tokenizer(tmp_path / "tokenizer.bin", VOCAB, of="small.bin")
    assert dict(zip(tokenizer.pieces, tokenizer.scores, strict=True)) == PIECES
    assert [tokenizer.piece(token) for token in tokenizer.encode("cat\ncé")] == [" cat", "\n", "c", "é"]


def test_from_the_command_line_to_text(files: tuple[Path, Path], tmp_path: Path, terminal: Any) -> None:
    out, _ = terminal.done("import", "llama2c", files[0], "--tokenizer", files[1], "--out", "stories")
    assert "imported from small.bin, a checkpoint of llama2.c with" in out
    assert 'next: seqwise generate stories --prompt "…"' in out
    out, _ = terminal.done("generate", "stories", "--prompt", "cat", "--method", "greedy", "--max-tokens", "5")
    assert out.startswith("cat")
    run = Run.open(Path("stories"))
    assert (run.config.tokenizer.kind, run.config.model.num_kv_heads, run.config.training.context) == (
        *("sentencepiece", 2),
        CONTEXT,
    )
    Path("cats.txt").write_text("cat at a cat\n" * 30)
    score = TrainedRun(Path("stories")).evaluate("cats.txt")
    assert score.tokens > 0


def test_training_goes_on_from_it(files: tuple[Path, Path], tmp_path: Path, terminal: Any) -> None:
    terminal.done("import", "llama2c", files[0], "--tokenizer", files[1], "--out", "stories")
    Path("cats.txt").write_text("cat at a cat\n" * 100)
    terminal.done("train", "cats.txt", "--from", "stories", "--steps", "2", "--out", "cats")
    again = Run.open(Path("cats"))
    assert (again.config.model, again.config.tokenizer.kind) == (
        Run.open(Path("stories")).config.model,
        "sentencepiece",
    )


def first_sizes(*sizes: int) -> Callable[[bytes], bytes]:
    return lambda content: struct.pack(f"<{len(sizes)}i", *sizes) + content[4 * len(sizes) :]


def with_nan(content: bytes) -> bytes:
    return content[:2000] + struct.pack("<f", float("nan")) + content[2004:]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda content: content[:20],
            r"small\.bin: cut short: 20 bytes, and a checkpoint of llama2\.c begins with 28",
        ),
        (
            lambda content: content[:-4],
            r"small\.bin: cut short: [\d,]+ bytes, and the sizes that it begins with ask for",
        ),
        (lambda content: content + b"more", r"small\.bin: longer than it should be: [\d,]+ bytes"),
        (first_sizes(0x616B3432, 1), r"of version 1, and version 0 is read\. Export it again with .*--version 0"),
        (first_sizes(16, 24, -3), r"not a checkpoint of llama2\.c: it begins with dim 16, hidden_dim 24, n_layers -3"),
        (first_sizes(16, 24, 3, 5), r"not a checkpoint .*num_heads=5 does not divide model_dim=16"),
        (first_sizes(16, 24, 3, 4, 3), r"not a checkpoint .*num_kv_heads=3 does not divide num_heads=4"),
        (with_nan, r"small\.bin: damaged: body\.embedding\.weight holds what is not a number"),
        (first_sizes(16, 24, 3, 4, 2, 2**31 - 1), r"small\.bin: cut short: [\d,]+ bytes, and .* ask for 137,"),
    ],
)
def test_a_damaged_checkpoint_is_named(
    files: tuple[Path, Path], tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    files[0].write_bytes(damage(files[0].read_bytes()))
    with pytest.raises(DataError, match=sentence):
        import_run("llama2c", files[0], tmp_path / "run", tokenizer=files[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.bin", "tokenizer.bin"]


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (
            tokenizer_bytes()[:-3],
            r"tokenizer\.bin: not a tokenizer\.bin of llama2\.c, or cut short: token 266 has no end",
        ),
        (tokenizer_bytes()[:-5], r"token 266 has no end"),
        (tokenizer_bytes()[:-10], r"tokenizer\.bin: 266 tokens, and small\.bin has embeddings of 267"),
        (b"", r"tokenizer\.bin: 0 tokens, and small\.bin has embeddings of 267"),
        (tokenizer_bytes(longest=3), r"token 0 has no end"),
        (tokenizer_bytes([*WITH_BYTES[:7], b"x", *WITH_BYTES[8:]]), r"token 10 is 'x', and should be the byte 07"),
        (tokenizer_bytes()[:-1] + b"\xff", r"tokenizer\.bin: damaged: .*utf-8"),
    ],
)
def test_a_damaged_tokenizer_is_named(files: tuple[Path, Path], tmp_path: Path, damaged: bytes, sentence: str) -> None:
    files[1].write_bytes(damaged)
    with pytest.raises(DataError, match=sentence):
        import_run("llama2c", files[0], tmp_path / "run", tokenizer=files[1])
    assert not (tmp_path / "run").exists()


def test_what_is_missing_or_too_much_is_told(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"in a file of its own: add --tokenizer FILE"):
        import_run("llama2c", files[0], tmp_path / "run")
    with pytest.raises(ConfigError, match=r"a file of arpa holds its own words; drop --tokenizer"):
        import_run("arpa", files[0], tmp_path / "run", tokenizer=files[1])
    for pair in ((tmp_path / "no.bin", files[1]), (files[0], tmp_path / "no.bin")):
        with pytest.raises(DataError, match=r"no\.bin cannot be read: No such file"):
            import_run("llama2c", pair[0], tmp_path / "run", tokenizer=pair[1])
    run = import_run("llama2c", files[0], tmp_path / "run", tokenizer=files[1])
    with pytest.raises(ConfigError, match=r"files of llama2c are read, not written\. Formats that are written: arpa, "):
        export_run(run, "llama2c", tmp_path / "out.bin")
