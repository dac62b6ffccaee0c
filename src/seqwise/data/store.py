"""Token store: a part of the data as ids on disk, memory-mapped, built in constant memory, cached by content.

store = build_store(data, "train", tokenizer)
store.ids           # uint16 or uint32 (N+1,): the boundary token first, then the N tokens of the text
store.num_tokens    # N
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..config import parse_json
from ..errors import DataError
from ..text import Tokenizer, whole_blocks
from .batch import Batch, next_token_batch
from .folders import cache_folder
from .source import TextData

STORE_FORMAT = 2


@dataclass(frozen=True)
class TokenStore:
    ids: np.ndarray
    num_chars: int

    def __len__(self) -> int:
        return self.num_tokens

    def batch(self, places: np.ndarray, is_token: np.ndarray | None = None) -> Batch:
        """Tokens at `places` (B, T+1) as inputs and, one step ahead, targets."""
        rows = torch.from_numpy(self.ids[places].astype(np.int64))
        return next_token_batch(rows, None if is_token is None else torch.from_numpy(is_token))

    @property
    def num_tokens(self) -> int:
        """Tokens to predict: all but the boundary that stands first."""
        return len(self.ids) - 1

    def first(self, num_tokens: int | None) -> TokenStore:
        """The beginning of the text; its characters are counted in proportion."""
        if num_tokens is None or num_tokens >= self.num_tokens:
            return self
        return TokenStore(self.ids[: num_tokens + 1], round(self.num_chars * num_tokens / self.num_tokens))


def build_store(
    data: TextData, part: str, tokenizer: Tokenizer, *, progress: Callable[[int], None] = lambda _: None
) -> TokenStore:
    """Encode one part of the data, or find it in the cache. `progress` is told the characters of each block."""
    vocabulary = json.dumps({"kind": tokenizer.kind, **tokenizer.to_dict()}, sort_keys=True)
    key = hashlib.sha256(f"{STORE_FORMAT}|{data.fingerprint}|{part}|{vocabulary}".encode()).hexdigest()[:32]
    folder = cache_folder() / "stores" / key
    if not (folder / "store.json").exists():
        _write(data, part, tokenizer, folder, progress)
    return _open(folder)


def store_of_text(text: str, tokenizer: Tokenizer) -> TokenStore:
    """A store in memory, for a text that is at hand."""
    return TokenStore(np.concatenate([[tokenizer.boundary], tokenizer.encode(text)]), len(text))


def _write(data: TextData, part: str, tokenizer: Tokenizer, folder: Path, progress: Callable[[int], None]) -> None:
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    num_tokens = num_chars = 0
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        with (unfinished / "ids.bin").open("wb") as file:
            np.array([tokenizer.boundary], dtype=dtype).tofile(file)
            for block in whole_blocks(data.parts[part].blocks()):
                ids = tokenizer.encode(block)
                ids.astype(dtype).tofile(file)
                num_tokens += len(ids)
                num_chars += len(block)
                progress(len(block))
        about = {
            "format": STORE_FORMAT,
            "dtype": np.dtype(dtype).name,
            "num_tokens": num_tokens,
            "num_chars": num_chars,
        }
        (unfinished / "store.json").write_text(json.dumps(about))
        if folder.exists():  # left behind without its store.json
            shutil.rmtree(folder)
        try:
            unfinished.rename(folder)
        except OSError:
            if not (folder / "store.json").exists():  # else another process was first, with the same content
                raise
    except OSError as error:
        raise DataError(
            f"cannot write the token store below {folder.parent}: {error.strerror or error}. "
            "Free some space, or set SEQWISE_CACHE to a folder on another disk."
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _open(folder: Path) -> TokenStore:
    try:
        about = parse_json((folder / "store.json").read_text())
        dtype, expected, num_chars = np.dtype(about["dtype"]), about["num_tokens"] + 1, about["num_chars"]
        is_whole = (folder / "ids.bin").stat().st_size == expected * dtype.itemsize
    except (OSError, ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise DataError(f"{folder}: the token store is cut short. Delete that folder; it is built again by itself.")
    return TokenStore(np.memmap(folder / "ids.bin", dtype=dtype, mode="r", shape=(expected,)), num_chars)
