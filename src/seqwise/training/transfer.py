"""From one run to another: the body is kept, what differs starts anew.

A head is kept where the new run asks for the same thing; a table that has grown at its end (special tokens) keeps its
rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data.schema import Schema, Spec
from ..errors import ConfigError


@dataclass(frozen=True)
class Transfer:
    weights: dict[str, Tensor]
    """All of the new model: what was kept, and the rest as it starts."""
    kept: list[str]
    grown: list[str]
    """Kept, with rows that start anew behind the old ones."""
    started: list[str]
    left: list[str]
    """Of the old model, that the new one has no use for."""

    def sentences(self) -> Iterator[str]:
        """What a user should know."""
        named = {"kept": self.kept, "kept, with new rows": self.grown, "started from scratch": self.started}
        for what, names in {**named, "left out": self.left}.items():
            if names:
                yield f"{what}: {_summary(names)}"


def transfer(
    weights: dict[str, Tensor], schema: Schema, model: nn.Module, new_schema: Schema, *, where: str, changed: str
) -> Transfer:
    """The weights of a run with this schema, taken over by a fresh model of another."""
    fresh = model.state_dict()
    new_heads = [f"head.{name}." for name in new_schema.targets if not _is_same(schema, new_schema, name)]
    kept: list[str] = []
    grown: list[str] = []
    started: list[str] = []
    found: dict[str, Tensor] = {}
    for name, start in fresh.items():
        before = weights.get(name)
        if before is None or name.startswith(tuple(new_heads)):
            started.append(name)
            found[name] = start
        elif before.shape == start.shape:
            kept.append(name)
            found[name] = before
        elif before.shape[1:] == start.shape[1:] and len(before) < len(start):
            grown.append(name)
            found[name] = torch.cat([before, start[len(before) :].to(before)])
        else:
            raise ConfigError(
                f"{where} has weights of other shapes than {changed or 'this data asks for'}: {name} is "
                f"{_shape(before)} there and {_shape(start)} here; drop that setting."
            )
    used = {*kept, *grown}
    left = [name for name in weights if name not in used]
    if changed and any(map(_is_inside, (*started, *left))):
        raise ConfigError(f"{where} has other weights than {changed} asks for; drop that setting.")
    return Transfer(found, kept, grown, started, left)


def _is_inside(name: str) -> bool:
    """Whether this is a weight that what is read and what is asked for have no say in."""
    part, inner, *_ = name.split(".")
    return part == "body" and not inner.endswith("embedding")


def _is_same(schema: Schema, new_schema: Schema, name: str) -> bool:
    """Whether both ask for the same thing by this name: of the same kind, from the same answers."""
    before, now = schema.targets.get(name), new_schema.targets[name]
    if before is None or before.head != now.head:
        return False
    old, new = schema.specs[before.spec], new_schema.specs[now.spec]
    return old is new or _answers(old) == _answers(new)


def _answers(spec: Spec) -> dict[str, Any]:
    """What a spec is made of, but for how often each answer was right, and whether there was one at all."""
    return {name: value for name, value in spec.to_dict().items() if name not in ("counts", "may_lack")}


def _summary(names: list[str]) -> str:
    """By the two first words of each name, with how many stand behind it."""
    groups: dict[str, int] = {}
    for name in names:
        group = ".".join(name.split(".")[:2])
        groups[group] = groups.get(group, 0) + 1
    return ", ".join(group if number == 1 else f"{group} ({number} tensors)" for group, number in groups.items())


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "one number"
