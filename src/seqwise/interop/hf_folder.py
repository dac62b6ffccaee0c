"""A folder in the layout of Hugging Face: settings in config.json, and tensors by name in one file or in several.

    config.json                        model_type, architectures, sizes
    model.safetensors                  all tensors; or, where they are many, shards:
    model.safetensors.index.json       which tensor is in which shard
    pytorch_model.bin, …bin.index.json the same as pickles, which older folders have

Tensors are read one at a time, when they are asked for, so that a large model is never in memory twice. Pickles are
opened by torch's reader that knows tensors alone, never one that could run what a file says. In names of the first
releases of BERT a norm has gamma and beta: they are read as weight and bias.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..config import parse_json
from ..errors import ConfigError, DataError

CONFIG = "config.json"
WHOLE = ("model.safetensors", "pytorch_model.bin")
"""Files that hold all tensors, the ones that are preferred first; with .index.json behind it, the list of shards."""
FIRST_NAMES = ((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))


class HFFolder:
    """Settings and tensors of a folder. Whatever is wrong with a file is told by its name."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not self.path.is_dir():
            what = "is a file; name the folder that it is in" if self.path.exists() else "no such folder"
            raise DataError(f"{self.path}: {what}.")
        if not (self.path / CONFIG).is_file():
            raise DataError(f"{self.path}: no {CONFIG} in it, which a Hugging Face folder begins with.")
        self.config = read_object(self.path / CONFIG)
        self._files = {path: _open(path) for path in self._weight_files()}
        self._places = {
            _present_name(name): (file, name) for file, tensors in self._files.items() for name in tensors.names()
        }
        self._check_index()

    @property
    def files(self) -> list[Path]:
        """That hold the tensors."""
        return list(self._files)

    @property
    def names(self) -> set[str]:
        """Of all tensors."""
        return set(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        file, inside = self._places[name]
        return self._files[file].shape(inside)

    def read(self, name: str) -> Tensor:
        """A tensor, in 32 bits."""
        file, inside = self._places[name]
        found = self._files[file].read(inside)
        if not found.is_floating_point():
            raise DataError(f"{file}: {inside} holds {str(found.dtype).removeprefix('torch.')}, expected numbers.")
        found = found.float()
        if not found.isfinite().all():
            raise DataError(f"{file}: damaged: {inside} holds what is not a number. Fetch it again.")
        return found

    def where(self, name: str) -> Path:
        """The file that has it."""
        return self._places[name][0]

    def fingerprint(self) -> str:
        """sha256 of the files of tensors, one behind the other."""
        found = hashlib.sha256()
        for path in self._files:
            with path.open("rb") as file:
                while block := file.read(1 << 22):
                    found.update(block)
        return found.hexdigest()

    # -- settings --------------------------------------------------------------------------------------------------

    @property
    def model_type(self) -> str:
        return self.text("model_type")

    def number(self, name: str, default: int | None = None) -> int:
        """A setting of config.json that is a whole number above zero."""
        value = self._setting(name, default)
        if type(value) is not int or value < 1:
            raise DataError(f"{self.path / CONFIG}: {name} = {value!r} should be a whole number above 0.")
        return value

    def index(self, name: str) -> int:
        """A setting of config.json that counts from 0: the id of a token."""
        value = self._setting(name, None)
        if type(value) is not int or value < 0:
            raise DataError(f"{self.path / CONFIG}: {name} = {value!r} should be a whole number from 0.")
        return value

    def fraction(self, name: str, default: float | None = None) -> float:
        value = self._setting(name, default)
        if type(value) not in (int, float):
            raise DataError(f"{self.path / CONFIG}: {name} = {value!r} should be a number.")
        return float(value)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._setting(name, default)
        if not isinstance(value, str):
            raise DataError(f"{self.path / CONFIG}: {name} = {value!r} should be a word.")
        return value

    def refuse(self, name: str, *, unless: tuple[Any, ...], why: str) -> None:
        """Stop where a setting has a value that would change what is computed."""
        value = self.config.get(name, unless[0])
        if value not in unless:
            raise ConfigError(f"{self.path / CONFIG}: {name} = {value!r}: {why}.")

    def _setting(self, name: str, default: Any) -> Any:
        value = self.config.get(name)
        value = default if value is None else value
        if value is None:
            raise DataError(f"{self.path / CONFIG}: {name} is missing.")
        return value

    # -- files -----------------------------------------------------------------------------------------------------

    def _weight_files(self) -> list[Path]:
        for name in WHOLE:
            if (path := self.path / name).is_file():
                return [path]
            if (path := self.path / f"{name}.index.json").is_file():
                return self._shards(path)
        expected = ", or ".join(f"{name} (or {name}.index.json and its shards)" for name in WHOLE)
        raise DataError(f"{self.path}: no weights in it; expected {expected}.")

    def _shards(self, path: Path) -> list[Path]:
        shards = sorted({str(file) for file in _weight_map(path).values()})
        for shard in shards:
            if Path(shard).name != shard:
                raise DataError(f"{path}: {shard} is not the name of a file in this folder.")
            if not (self.path / shard).is_file():
                raise DataError(
                    f"{self.path / shard}: missing, one of the {len(shards)} shards in {path.name}. Fetch it again."
                )
        return [self.path / shard for shard in shards]

    def _check_index(self) -> None:
        """A shard has all that the index says."""
        for name in WHOLE:
            index = self.path / f"{name}.index.json"
            if index.is_file() and not (self.path / name).is_file():
                for tensor, shard in _weight_map(index).items():
                    if self._places.get(_present_name(tensor), ("",))[0] != self.path / shard:
                        raise DataError(f"{index}: {tensor} should be in {shard}, and is not. Fetch both again.")
                return


class _SafeTensors:
    def __init__(self, path: Path):
        self.path = path
        try:
            self.file = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path}: damaged or cut short ({error}). Fetch it again.") from None

    def names(self) -> Iterator[str]:
        yield from self.file.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.file.get_slice(name).get_shape())

    def read(self, name: str) -> Tensor:
        return self.file.get_tensor(name)


class _Pickled:
    def __init__(self, path: Path):
        self.path, self.tensors = path, _load_pickle(path)

    def names(self) -> Iterator[str]:
        yield from self.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def read(self, name: str) -> Tensor:
        return self.tensors[name]


def _open(path: Path) -> _SafeTensors | _Pickled:
    return _Pickled(path) if path.suffix == ".bin" else _SafeTensors(path)


def _load_pickle(path: Path) -> Mapping[str, Tensor]:
    """Tensors by name, left on the disk until they are read where the file's form allows it."""
    found: Any = None
    try:
        try:
            found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # a form from before 2020, which is read whole
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(
            f"{path}: a pickle that holds more than tensors, and could run what its author wrote; it was not opened. "
            "If you trust it, save the model with transformers, save_pretrained, which writes model.safetensors."
        ) from None
    except (RuntimeError, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError) as error:
        first = str(error).strip().splitlines()[:1]
        raise DataError(f"{path}: damaged or cut short ({''.join(first)[:200]}). Fetch it again.") from None
    if not isinstance(found, Mapping) or not all(isinstance(tensor, Tensor) for tensor in found.values()):
        raise DataError(f"{path}: expected tensors by name.")
    return {str(name): tensor for name, tensor in found.items()}


def _weight_map(index: Path) -> dict[str, str]:
    found = read_object(index).get("weight_map")
    if not isinstance(found, dict) or not found or not all(isinstance(file, str) for file in found.values()):
        raise DataError(f'{index}: no "weight_map" that names a file for each tensor.')
    return found


def _present_name(name: str) -> str:
    for before, now in FIRST_NAMES:
        name = re.sub(before, now, name)
    return name


def read_object(path: Path) -> dict[str, Any]:
    """An object of JSON from a file that is there."""
    try:
        found = parse_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected an object of JSON.")
    return found
