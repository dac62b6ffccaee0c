"""Token store: a part of the data as ids on disk, memory-mapped, built in constant memory, cached by content.

store = build_store(data, "train", tokenizer)
store.ids           # uint16 or uint32 (N+1,): the boundary token first, then the N tokens of the text
store.num_tokens    # N
store.begins(i)     # characters before token i of these N

How many characters a token stands for mostly follows from its id; tokens with another length, and unknown words with
what their spelling costs, are kept beside the ids.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..config import parse_json
from ..errors import DataError
from ..text import Tokenizer, whole_blocks
from .batch import Batch, next_token_batch
from .paths import cache_folder
from .source import TextData

STORE_FORMAT = 3
COUNTED_AT = 256  # tokens; so often it is kept how many characters come before one
READ_AT_ONCE = 1 << 20  # tokens whose lengths are looked up together


class Sparse(NamedTuple):
    """Values of a few tokens."""

    places: np.ndarray
    """int64, rising: 0 is the first token of the text. Where one comes twice, its last value counts."""
    values: np.ndarray

    def put(self, into: np.ndarray, places: np.ndarray) -> None:
        """The values of those `places` that have one, into what belongs to the places."""
        if len(self.places):
            near = np.maximum(np.searchsorted(self.places, places, side="right") - 1, 0)
            is_there = self.places[near] == places
            into[is_there] = self.values[near[is_there]]

    def before(self, place: int) -> Sparse:
        end = np.searchsorted(self.places, place)
        return Sparse(self.places[:end], self.values[:end])


NONE = Sparse(np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True)
class TokenStore:
    ids: np.ndarray
    num_chars: int
    usual_lengths: np.ndarray | None = None
    """Characters that each token of the vocabulary stands for, (V,). None: all are as long as their mean."""
    odd_lengths: Sparse = NONE
    """Characters of the tokens for which that is wrong."""
    spelling: Sparse = NONE
    """Nats that the letters of unknown words take."""

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

    def take(self, num_tokens: int | None) -> TokenStore:
        """The beginning of the text."""
        if num_tokens is None or num_tokens >= self.num_tokens:
            return self
        num_chars = round(float(self.begins(np.array([num_tokens]))[0]))
        odd, spelling = self.odd_lengths.before(num_tokens), self.spelling.before(num_tokens)
        return TokenStore(self.ids[: num_tokens + 1], num_chars, self.usual_lengths, odd, spelling)

    def lengths(self, places: np.ndarray) -> np.ndarray:
        """Characters of the tokens at these places of the text, of any shape."""
        if self.usual_lengths is None:
            return np.full(places.shape, self.num_chars / self.num_tokens)
        found = self.usual_lengths[self.ids[places + 1]]
        self.odd_lengths.put(found, places)
        return found

    def begins(self, places: np.ndarray) -> np.ndarray:
        """Characters of the text before these places, (B,)."""
        if self.usual_lengths is None:
            return places * (self.num_chars / self.num_tokens)
        near = places // COUNTED_AT
        between = near[:, None] * COUNTED_AT + np.arange(COUNTED_AT)  # (B, COUNTED_AT)
        lengths = self.lengths(np.minimum(between, self.num_tokens - 1))
        return self._counted[near] + np.where(between < places[:, None], lengths, 0).sum(axis=1)

    @functools.cached_property
    def _counted(self) -> np.ndarray:
        """Characters before each COUNTED_AT-th token."""
        sums = [np.zeros(1, dtype=np.int64)]
        for start in range(0, self.num_tokens, READ_AT_ONCE):
            lengths = self.lengths(np.arange(start, min(self.num_tokens, start + READ_AT_ONCE)))
            sums.append(np.add.reduceat(lengths, np.arange(0, len(lengths), COUNTED_AT)))
        return np.cumsum(np.concatenate(sums))


def build_store(
    data: TextData, part: str, tokenizer: Tokenizer, *, on_progress: Callable[[int], None] = lambda _: None
) -> TokenStore:
    """Encode one part of the data, or find it in the cache. `on_progress` is told the characters of each block."""
    vocabulary = json.dumps({"kind": tokenizer.kind, **tokenizer.to_dict()}, sort_keys=True)
    key = hashlib.sha256(f"{STORE_FORMAT}|{data.fingerprint}|{part}|{vocabulary}".encode()).hexdigest()[:32]
    folder = cache_folder() / "stores" / key
    if not (folder / "store.json").exists():
        _write(data, part, tokenizer, folder, on_progress)
    return _open(folder, tokenizer.usual_lengths)


def store_of_text(text: str, tokenizer: Tokenizer) -> TokenStore:
    """A store in memory, for a text that is at hand."""
    encoded = tokenizer.measure(text)
    ids, usual = np.concatenate([[tokenizer.boundary], encoded.ids]), tokenizer.usual_lengths
    odd = np.flatnonzero(encoded.lengths != usual[encoded.ids])
    odd_lengths = Sparse(odd, encoded.lengths[odd])
    return TokenStore(ids, len(text), usual, odd_lengths, Sparse(encoded.unknown, encoded.spelling))


SIDES = {"odd_places": np.int64, "odd_lengths": np.int32, "unknown_places": np.int64, "spelling": np.float64}


def _write(data: TextData, part: str, tokenizer: Tokenizer, folder: Path, on_progress: Callable[[int], None]) -> None:
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        about = _write_files(data, part, tokenizer, unfinished, on_progress)
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


def _write_files(
    data: TextData, part: str, tokenizer: Tokenizer, folder: Path, on_progress: Callable[[int], None]
) -> dict[str, Any]:
    """ids.bin, and those beside it that are not empty; what `_open` wants to know of them."""
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32
    usual, written = tokenizer.usual_lengths, dict.fromkeys(("ids", *SIDES), 0)
    num_chars = spare = last_length = 0  # spare: white space that is a block by itself, and that no word stands for

    with ExitStack() as open_files:
        files = {name: open_files.enter_context((folder / f"{name}.bin").open("wb")) for name in written}

        def write(**arrays: np.ndarray) -> None:
            for name, array in arrays.items():
                array.tofile(files[name])
                written[name] += len(array)

        def write_block(block: str) -> None:
            nonlocal spare, last_length
            encoded, before = tokenizer.measure(block), written["ids"]
            if not len(encoded.ids):
                spare += len(block)
                return
            encoded.lengths[0] += spare  # as within a block it goes to the word after it
            last_length, spare = int(encoded.lengths[-1]), 0
            odd = np.flatnonzero(encoded.lengths != usual[encoded.ids])
            write(odd_places=before + odd, odd_lengths=encoded.lengths[odd])
            write(unknown_places=before + encoded.unknown, spelling=encoded.spelling)
            write(ids=encoded.ids.astype(dtype))

        np.array([tokenizer.boundary], dtype=dtype).tofile(files["ids"])
        for block in whole_blocks(data.parts[part].blocks()):
            write_block(block)
            num_chars += len(block)
            on_progress(len(block))
        if spare and written["ids"]:
            last = np.array([written["ids"] - 1]), np.array([last_length + spare], dtype=np.int32)
            write(odd_places=last[0], odd_lengths=last[1])
    for name in SIDES:
        if not written[name]:
            (folder / f"{name}.bin").unlink()
    sides = {name: written[name] for name in SIDES}
    return {
        "format": STORE_FORMAT,
        "dtype": np.dtype(dtype).name,
        "num_tokens": written["ids"],
        "num_chars": num_chars,
        "sides": sides,
    }


def _open(folder: Path, usual_lengths: np.ndarray) -> TokenStore:
    try:
        about = parse_json((folder / "store.json").read_text())
        num_chars = about["num_chars"]
        files = {"ids": (np.dtype(about["dtype"]), about["num_tokens"] + 1)}
        files |= {name: (np.dtype(dtype), about["sides"][name]) for name, dtype in SIDES.items()}
        is_whole = all(
            length == 0 or (folder / f"{name}.bin").stat().st_size == dtype.itemsize * length
            for name, (dtype, length) in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise DataError(f"{folder}: the token store is cut short. Delete that folder; it is built again by itself.")
    found = {
        name: np.memmap(folder / f"{name}.bin", dtype=dtype, mode="r", shape=(length,))
        if length
        else np.zeros(0, dtype)
        for name, (dtype, length) in files.items()
    }
    odd_lengths = Sparse(found["odd_places"], found["odd_lengths"])
    spelling = Sparse(found["unknown_places"], found["spelling"])
    return TokenStore(found["ids"], num_chars, usual_lengths, odd_lengths, spelling)
