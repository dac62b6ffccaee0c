"""Adapters: a body that stays as it is, with few weights learned beside it. What they are is in layers/low_rank.py.

    adapt(model, config, own)        to train: thin matrices beside some of the body's; all but these and `own` frozen
    merged(base, saved, config)      to use: the weights of a plain model, the thin matrices multiplied out

From `adapt` on, `state_dict` has only what is learned, and `load_state_dict` leaves the rest as it is: checkpoints and
run folders are as small as the adapter. Thin matrices are named after what they change:

    body.blocks.0.attention.qkv.lora.query.down      A, (r, D)
    body.blocks.0.attention.qkv.lora.query.up        B, (N, r)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn

from ..errors import ConfigError, did_you_mean
from ..layers.low_rank import add_low_rank, merge
from .build import NeuralConfig

MODULES = {
    "query": "attention.qkv",
    "key": "attention.qkv",
    "value": "attention.qkv",
    "output": "attention.to_output",
    "gate": "feed_forward.gate",
    "up": "feed_forward.up",
    "down": "feed_forward.down",
}
"""What can be adapted, and the layer of a block that it is in."""
STACKED = ("query", "key", "value")
"""In this order, one above the other in a matrix."""
HELD = ".parametrizations.weight."
"""In names that torch gives to a matrix and to what is added to it."""


@dataclass(frozen=True)
class AdaptedConfig(NeuralConfig):
    """What families with attention can be told besides."""

    adapter: Literal["none", "lora"] = "none"
    """With --from: keep the body as it is, and learn small matrices beside some of its own (LoRA). The run then holds
    these alone, and needs the one that it started from."""
    adapter_rank: int = 8
    """Adapter: rank of the matrices that are learned."""
    adapter_alpha: float = 16.0
    """Adapter: what is learned counts alpha / rank times."""
    adapter_targets: list[str] = field(default_factory=lambda: ["query", "value"])
    """Adapter: matrices beside which something is learned: query, key, value, output, up, down, gate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adapter_rank < 1 or not self.adapter_alpha > 0:
            raise ConfigError(
                f"model.adapter_rank = {self.adapter_rank} and model.adapter_alpha = {self.adapter_alpha} "
                "should be above 0."
            )
        for name in self.adapter_targets:
            if name not in MODULES:
                raise ConfigError(f'model.adapter_targets: "{name}" is not known. {did_you_mean(name, MODULES)}')
        if not self.adapter_targets or len(set(self.adapter_targets)) < len(self.adapter_targets):
            raise ConfigError(f"model.adapter_targets = {self.adapter_targets} should name some matrices, each once.")

    @property
    def adapter_scale(self) -> float:
        return self.adapter_alpha / self.adapter_rank


def is_adapted(config: Any) -> bool:
    """Whether a run with this config of its model holds an adapter, and not all weights."""
    return bool(getattr(config, "adapter", "none") != "none")


def adapt(model: nn.Module, config: AdaptedConfig, own: Collection[str]) -> None:
    """Learn thin matrices beside those of the body; besides them, only weights that `own` names learn."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in own)
    for name, block in _blocks(model):
        for module in dict.fromkeys(MODULES[target] for target in config.adapter_targets):
            linear = _layer(block, module)
            if linear is None:
                raise ConfigError(f"model.adapter_targets = {config.adapter_targets}: {name} has no {module}; drop it.")
            parts = _parts(linear, module, config)
            add_low_rank(linear, parts, rank=config.adapter_rank, alpha=config.adapter_alpha)
    _save_only_what_is_learned(model, own)


def _blocks(model: nn.Module) -> list[tuple[str, nn.Module]]:
    return [(name, module) for name, module in model.named_modules() if re.fullmatch(r"body\.blocks\.\d+", name)]


def _layer(block: nn.Module, name: str) -> nn.Linear | None:
    found: Any = block
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, nn.Linear) else None


def _parts(linear: nn.Linear, module: str, config: AdaptedConfig) -> dict[str, slice]:
    targets = [target for target in config.adapter_targets if MODULES[target] == module]
    return {target: rows_of(target, linear.out_features, config) for target in targets}


def rows_of(target: str, num_rows: int, config: Any) -> slice:
    """Which rows of its matrix a target is: keys and values may have fewer heads than queries."""
    if target not in STACKED:
        return slice(0, num_rows)
    width = config.model_dim
    others = (num_rows - width) // 2
    edges = [0, width, width + others, num_rows]
    place = STACKED.index(target)
    return slice(edges[place], edges[place + 1])


def _save_only_what_is_learned(model: nn.Module, own: Collection[str]) -> None:
    """By names that torch's way to hold what is added has no say in."""
    names = {name: f"{HELD}0." in name or name in own for name in model.state_dict()}  # whether it is learned

    def cut(model: nn.Module, found: dict[str, Tensor], prefix: str, metadata: object) -> None:
        learned = {_plain(name): tensor for name, tensor in found.items() if names[name]}
        found.clear()
        found.update(learned)

    def fill_in(model: nn.Module, given: dict[str, Tensor], *_: object) -> None:
        """What is not learned is as it was. What should be there and is not, torch tells."""
        held = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers())
        for name, is_learned in names.items():
            if _plain(name) in given:
                given[name] = given.pop(_plain(name))
            elif not is_learned:
                given[name] = held[name]

    model.register_state_dict_post_hook(cut)
    model.register_load_state_dict_pre_hook(fill_in)


def _plain(name: str) -> str:
    """body.x.parametrizations.weight.0.down.query -> body.x.lora.query.down"""
    return re.sub(r"\.parametrizations\.weight\.0\.(down|up)\.(\w+)$", r".lora.\2.\1", name)


def merged(base: Mapping[str, Tensor], saved: Mapping[str, Tensor], config: AdaptedConfig) -> dict[str, Tensor]:
    """The weights of a plain model: those of the base, over them what the run has of its own, its adapter added."""
    found = dict(base)
    for name, down in saved.items():
        adapted = re.fullmatch(r"(.*)\.lora\.(\w+)\.down", name)
        if adapted is None:
            continue
        weight, target = f"{adapted[1]}.weight", adapted[2]
        rows = rows_of(target, len(found[weight]), config)
        found[weight] = merge(found[weight], down, saved[f"{adapted[1]}.lora.{target}.up"], rows, config.adapter_scale)
    return found | {name: tensor for name, tensor in saved.items() if ".lora." not in name}
