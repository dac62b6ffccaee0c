"""The tokens of translators in Hugging Face folders, in and out.

    source.spm, target.spm, vocab.json    Marian's: text/marian.py; target_vocab.json too where each side has a list
    tokenizer.json                        others, for both sides
    target/tokenizer.json                 the target's, where the sides differ: this is a way of ours

Tokens of ours are no SentencePiece, so Marian's own form cannot hold them: they are written as tokenizer.json, by which
a text ends in our boundary, and loaded by PreTrainedTokenizerFast.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import processors

from ..data.schema import SEQUENCE, Schema, Spec, Target, TokenSpec
from ..errors import DataError
from ..text import Tokenizer
from ..text.marian import MarianTokenizer
from .hf_folder import CONFIG, HFFolder, read_object
from .hf_tokenizers import read_hf_tokenizer, write_hf_tokenizer

TARGET_FOLDER = "target"


def read_tokens(folder: HFFolder, num_rows: tuple[int, int]) -> tuple[TokenSpec, TokenSpec]:
    """Of source and target, the same where one tokenizer serves both; `num_rows` of their embeddings."""
    end, begin = folder.index("eos_token_id"), folder.index("decoder_start_token_id")
    if (folder.path / "source.spm").is_file():
        source: Tokenizer = _read_pieces(folder, "source")
        target: Tokenizer = _read_pieces(folder, "target")
    else:
        source = read_hf_tokenizer(folder.path)[0]
        has_two = (folder.path / TARGET_FOLDER / "tokenizer.json").is_file()
        target = read_hf_tokenizer(folder.path / TARGET_FOLDER)[0] if has_two else source
    if target.boundary != end:
        raise DataError(
            f"{folder.path / CONFIG}: eos_token_id = {end}, and by its tokenizer a text ends in {target.boundary}."
        )
    special = {} if begin == end else {"begin": begin, "padding": begin}
    specs = TokenSpec(source, special if source is target else {}), TokenSpec(target, special)
    for spec, rows in zip(specs, num_rows, strict=True):
        if spec.size > rows:
            raise DataError(
                f"{folder.path}: its tokenizer has {spec.size:,} tokens, and its embeddings have {rows:,} rows. "
                "Put the tokenizer beside it that the model was trained with."
            )
    return (specs[1], specs[1]) if source is target else specs


def _read_pieces(folder: HFFolder, side: str) -> MarianTokenizer:
    told = read_object(path) if (path := folder.path / "tokenizer_config.json").is_file() else {}
    is_separate = bool(told.get("separate_vocabs", False)) and side == "target"
    path = folder.path / ("target_vocab.json" if is_separate else "vocab.json")
    ids = read_object(path)
    if sorted(ids.values(), key=str) != sorted(range(len(ids)), key=str):
        raise DataError(f"{path}: the ids of its {len(ids):,} pieces are not 0 to {len(ids) - 1:,}, each once.")
    names = {name: _content(told.get(name), usual) for name, usual in (("eos_token", "</s>"), ("unk_token", "<unk>"))}
    if lacking := next((name for name in names.values() if name not in ids), ""):
        raise DataError(f"{path}: no piece {lacking}.")
    model = folder.path / f"{side}.spm"
    try:
        return MarianTokenizer(
            model.read_bytes(),
            sorted(ids, key=ids.__getitem__),
            boundary=ids[names["eos_token"]],
            unknown=ids[names["unk_token"]],
        )
    except OSError as error:
        raise DataError(f"{model}: cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise DataError(f"{model}: {error}.") from None


def _content(told: Any, usual: str) -> str:
    """A name, or an object that has it."""
    return str(told.get("content", usual)) if isinstance(told, dict) else str(told or usual)


def pair_schema_of(source: TokenSpec, target: TokenSpec) -> Schema:
    targets = {"tokens": Target("tokens", SEQUENCE)}
    if source is target:
        return Schema({"tokens": target}, {"source": "tokens", "tokens": "tokens"}, targets)
    specs: dict[str, Spec] = {"source": source, "tokens": target}
    return Schema(specs, {"source": "source", "tokens": "tokens"}, targets)


def is_apart(source: TokenSpec, target: TokenSpec) -> bool:
    """Whether our two sides have tables of their own, whatever is to be shared."""
    pieces = [getattr(spec.tokenizer, "joint_pieces", None) for spec in (source, target)]
    return source is not target and (pieces[0] is None or pieces[0] != pieces[1])


# -- writing -------------------------------------------------------------------------------------------------------


def notes_on(source: TokenSpec, target: TokenSpec) -> list[str]:
    if isinstance(target.tokenizer, MarianTokenizer):
        return []
    found = ["its tokens are loaded by PreTrainedTokenizerFast.from_pretrained(folder), or by AutoTokenizer"]
    if source is not target:
        found.append(
            f'those of the target are in its folder "{TARGET_FOLDER}": texts that were generated are decoded by it'
        )
    return found


def write_tokens(source: TokenSpec, target: TokenSpec, folder: Path) -> None:
    if isinstance(source.tokenizer, MarianTokenizer) and isinstance(target.tokenizer, MarianTokenizer):
        _write_pieces(source.tokenizer, target.tokenizer, target, folder)
        return
    _write_ending(source, folder)
    if source is not target:
        (folder / TARGET_FOLDER).mkdir()
        _write_ending(target, folder / TARGET_FOLDER)


def _write_ending(spec: TokenSpec, folder: Path) -> None:
    """tokenizer.json, that ends each text in the boundary."""
    write_hf_tokenizer(replace(spec, special={}), folder)
    path, config = folder / "tokenizer.json", folder / "tokenizer_config.json"
    backend = Backend.from_file(str(path))
    end = backend.id_to_token(spec.boundary)
    backend.post_processor = processors.TemplateProcessing(
        single=["$A:0", f"{end}:0"],
        pair=["$A:0", f"{end}:0", "$B:0", f"{end}:0"],
        special_tokens=[(end, spec.boundary)],
    )
    backend.save(str(path))
    padding = backend.id_to_token(spec.special.get("padding", spec.boundary))
    _write_json(config, read_object(config) | {"eos_token": end, "pad_token": padding})


def _write_pieces(source: MarianTokenizer, target: MarianTokenizer, spec: TokenSpec, folder: Path) -> None:
    is_separate = source.joint_pieces != target.joint_pieces
    for side, tokenizer in (("source", source), ("target", target)):
        (folder / f"{side}.spm").write_bytes(tokenizer.model)
    for name, tokenizer in (("vocab.json", source), *((("target_vocab.json", target),) if is_separate else ())):
        _write_json(folder / name, {piece: token for token, piece in enumerate(tokenizer.joint_pieces)})
    names = {"eos_token": target.boundary, "unk_token": target.unknown}
    names["pad_token"] = spec.special.get("padding", target.boundary)
    told = {name: target.joint_pieces[token] for name, token in names.items()}
    _write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "MarianTokenizer", "separate_vocabs": is_separate, **told},
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
