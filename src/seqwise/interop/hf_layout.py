"""Which tensor of a Hugging Face folder is which weight of ours: one description, read in both directions.

    Weight("body.blocks.0.attention.qkv.weight", (Part("…query.weight"), Part("…key.weight"), Part("…value.weight")))

A weight of ours is one tensor of theirs, or several that stand one below the other in ours; a `Way` is what happens to
each of them on its way here, and its inverse. The shapes that a file should have follow from ours by that inverse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data.schema import Schema, TokenSpec
from ..errors import ConfigError, DataError
from .hf_folder import CONFIG, HFFolder
from .hf_tokenizers import read_hf_tokenizer

NAMED = 5  # tensors that a message names


@dataclass(frozen=True)
class Way:
    """From their tensor to our rows, and back."""

    to_ours: Callable[[Tensor], Tensor]
    to_theirs: Callable[[Tensor], Tensor]


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _turned(tensor: Tensor) -> Tensor:
    return tensor.mT if tensor.dim() > 1 else tensor


def _flipped(tensor: Tensor) -> Tensor:
    return tensor.flip(0)


AS_IT_IS = Way(_same, _same)
TRANSPOSED = Way(_turned, _turned)
"""GPT-2 keeps its matrices with the input first."""
FLIPPED = Way(_flipped, _flipped)
"""Two answers in the other order."""


def cut(before: int = 0, behind: int = 0) -> Way:
    """Rows before and behind ours, that nothing of ours stands for; written as zeros."""

    def to_ours(tensor: Tensor) -> Tensor:
        return tensor[before : len(tensor) - behind]

    def to_theirs(tensor: Tensor) -> Tensor:
        above, below = (tensor.new_zeros(rows, *tensor.shape[1:]) for rows in (before, behind))
        return torch.cat([above, tensor, below]) if before or behind else tensor

    return Way(to_ours, to_theirs)


def repeated(times: int) -> Way:
    """One row of theirs for so many of ours, which are alike."""
    return Way(lambda tensor: tensor.expand(times, -1), lambda tensor: tensor[:1])


def scaled(scale: float, mean: float = 0.0) -> Way:
    """Theirs is scale * ours + mean."""
    return Way(lambda tensor: (tensor - mean) / scale, lambda tensor: tensor * scale + mean)


@dataclass(frozen=True)
class Part:
    name: str
    way: Way = AS_IT_IS
    rows: int | None = None
    """Of ours that it fills; an equal share where not told."""


@dataclass(frozen=True)
class Weight:
    ours: str
    parts: tuple[Part, ...]

    def split(self, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Our tensor as theirs, by name."""
        rows = [part.rows or len(tensor) // len(self.parts) for part in self.parts] if len(self.parts) > 1 else []
        pieces = tensor.split(rows) if rows else (tensor,)
        for part, piece in zip(self.parts, pieces, strict=True):
            yield part.name, part.way.to_theirs(piece)

    def fill(self, ours: Tensor, read: Callable[[str], Tensor]) -> None:
        """Write their tensors into ours, one after the other."""
        done = 0
        for part in self.parts:
            found = part.way.to_ours(read(part.name))
            ours[done : done + len(found)] = found
            done += len(found)


@dataclass(frozen=True)
class Layout:
    """What a folder holds, in our words and in theirs: enough to read it, and to write it."""

    family: str
    config: Any
    """The config dataclass of the family."""
    schema: Schema
    task: str
    weights: list[Weight]
    fresh: tuple[str, ...] = ()
    """Beginnings of names of ours that the folder has nothing for: they start from scratch."""
    zeros: tuple[str, ...] = ()
    """And those that are zero instead."""
    alike: Mapping[str, str] = field(default_factory=dict)
    """Tensors of theirs that say again what another one says."""
    spare: tuple[str, ...] = ()
    """Patterns of tensors that hold nothing that was learned, or that are not needed here."""
    notes: list[str] = field(default_factory=list)
    """What a user should know."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of config.json, where a folder is written."""
    extra: dict[str, Tensor] = field(default_factory=dict)
    """Tensors of theirs that ours has no need of, where a folder is written."""
    files: dict[str, Any] = field(default_factory=dict)
    """And more files of JSON, by their paths."""
    write_tokens: Callable[[Path], None] | None = None
    """Writes the tokenizers into a folder, where it has more than one."""


def names_below(*modules: tuple[str, str | tuple[str, ...]], way: Way = AS_IT_IS) -> Iterator[Weight]:
    """Weight and bias of each of our modules, with those of theirs; several of theirs in ours one below the other."""
    for ours, theirs in modules:
        parts = (theirs,) if isinstance(theirs, str) else theirs
        for kind in ("weight", "bias"):
            yield Weight(f"{ours}.{kind}", tuple(Part(f"{part}.{kind}", way) for part in parts))


@torch.no_grad()
def take_weights(folder: HFFolder, layout: Layout, model: nn.Module) -> None:
    """Fill a model of ours from a folder; what is missing, unexpected or of another shape is named."""
    parameters = dict(model.named_parameters())
    _check_names(folder, layout)
    for weight in layout.weights:
        ours = parameters.pop(weight.ours)
        for name, expected in weight.split(ours.to("meta")):
            if folder.shape(name) != tuple(expected.shape):
                raise DataError(
                    f"{folder.where(name)}: {name} is {_by(folder.shape(name))}, and {CONFIG} asks for "
                    f"{_by(tuple(expected.shape))}."
                )
        weight.fill(ours, folder.read)
    for name, parameter in parameters.items():
        if name.startswith(layout.zeros) and layout.zeros:
            parameter.zero_()
        elif not (layout.fresh and name.startswith(layout.fresh)):
            raise AssertionError(f"{name} has nothing that fills it")
    _check_alike(folder, layout)


def _check_names(folder: HFFolder, layout: Layout) -> None:
    wanted = [part.name for weight in layout.weights for part in weight.parts]
    where = folder.files[0] if len(folder.files) == 1 else folder.path
    if missing := [name for name in wanted if name not in folder.names]:
        raise DataError(f"{where}: {_some(missing)} missing; {CONFIG} asks for {_it(missing)}. Fetch the folder again.")
    known = {*wanted, *layout.alike}
    unexpected = sorted(
        name for name in folder.names - known if not any(re.search(pattern, name) for pattern in layout.spare)
    )
    if unexpected:
        raise DataError(
            f"{where}: {_some(unexpected)} unexpected: such a model would compute otherwise, and is not known here."
        )


def _check_alike(folder: HFFolder, layout: Layout) -> None:
    for name, other in layout.alike.items():
        if name in folder.names and not torch.equal(folder.read(name), folder.read(other)):
            raise ConfigError(
                f"{folder.where(name)}: {name} differs from {other}: {layout.family} has one table for both."
            )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more are" if len(names) > NAMED else " are" if len(names) > 1 else " is"
    return ", ".join(names[:NAMED]) + more


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"


@torch.no_grad()
def give_weights(layout: Layout, model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model of ours by their names."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    found = {
        name: part.contiguous() for weight in layout.weights for name, part in weight.split(parameters[weight.ours])
    }
    return found | layout.extra


# -- tokens --------------------------------------------------------------------------------------------------------


def read_spec(folder: HFFolder, num_rows: int) -> tuple[TokenSpec, int, list[str]]:
    """The tokens of a folder whose embeddings have so many rows; how many rows stand behind the last token; and what to
    know about them."""
    tokenizer, special = read_hf_tokenizer(folder.path)
    spec = TokenSpec(tokenizer, special)
    if spec.size > num_rows:
        raise DataError(
            f"{folder.path}: its tokenizer has {spec.size:,} tokens, and its embeddings have {num_rows:,} rows "
            f"(vocab_size in {CONFIG}). Put the tokenizer beside it that the model was trained with."
        )
    spare = num_rows - spec.size
    notes = [f"the last {spare:,} rows of its embeddings stand for no token, and were left out"] if spare else []
    return spec, spare, notes


def newline_in(spec: TokenSpec) -> str | None:
    """What a reader of a written folder puts where our texts have a newline; None where that is a newline."""
    tokenizer: Any = spec.tokenizer
    lines = "a\na"
    if tokenizer.backend.encode(lines, add_special_tokens=False).ids == tokenizer.encode(lines).tolist():
        return None
    return str(tokenizer.backend.id_to_token(spec.boundary))


def about_newlines(spec: TokenSpec, *, begins_texts: bool) -> list[str]:
    """How to give a written model the tokens that ours sees. `begins_texts`: a newline stood before each of them."""
    if not hasattr(spec.tokenizer, "backend"):  # refused where it is written
        return []
    instead = newline_in(spec)
    told = [f"newlines are read as {instead}, and transformers drops them: write {instead} in their place"]
    begin = [f"{instead or 'a newline'} stood before every text in training: begin prompts with it"]
    return (told if instead else []) + (begin if begins_texts else [])
