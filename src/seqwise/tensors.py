"""Files of tensors, and files that are there whole or not at all: written beside their place and moved into it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from .errors import CheckpointError


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    write_in_place(path, as_bytes(tensors))


def as_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file. Tied weights stand under both their names; no other is copied for it."""
    found, seen = dict[str, Tensor](), set[int]()
    for name, tensor in tensors.items():
        here = tensor.detach().cpu().contiguous()
        storage = here.untyped_storage().data_ptr()
        found[name] = here.clone() if storage in seen else here
        seen.add(storage)
    return save(found)


def write_in_place(path: Path, data: bytes) -> None:
    """Moved into place when it is on the disk."""
    unfinished = path.with_name(f".{path.name}")
    try:
        write_durably(unfinished, data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: damaged or cut short ({error}). Go on with --resume, or train again.") from None


def write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """A full disk or a folder we may not write to is the user's to mend: one sentence, and nothing half-written."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot write: {error.strerror or error}. What was saved before is whole; "
            "free some space and go on with --resume."
        ) from None
