"""PEFT's names of what an adapted model learned, where its body has a shape that others have too: BERT's or GPT-2's.

    body.blocks.0.attention.qkv.lora.query.down    base_model.model.encoder.layer.0.attention.self.query.lora_A.weight
    head.label.output.weight                       base_model.model.classifier.weight

GPT-2 has queries, keys and values in one module. Thin matrices of its parts are, side by side, thin ones of the whole:

    A = [A_query; A_value]        B = [[B_query, 0], [0, 0], [0, B_value]]     (1)   of rank 2 r, with twice the alpha

A head that theirs do not have (one that reads the mean, say) stands beside these by our name, which PEFT passes over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..data.schema import LABEL, MASKED_TOKEN, NEXT_TOKEN, NUMBER, TAG, Schema
from .adapters import MODULES, STACKED, AdaptedConfig, rows_of

ROOT = "base_model.model."
BERT_MODULES = {
    "query": "encoder.layer.{}.attention.self.query",
    "key": "encoder.layer.{}.attention.self.key",
    "value": "encoder.layer.{}.attention.self.value",
    "output": "encoder.layer.{}.attention.output.dense",
    "up": "encoder.layer.{}.intermediate.dense",
    "down": "encoder.layer.{}.output.dense",
}
GPT2_MODULES = {
    **dict.fromkeys(STACKED, "h.{}.attn.c_attn"),
    "output": "h.{}.attn.c_proj",
    "up": "h.{}.mlp.c_fc",
    "down": "h.{}.mlp.c_proj",
}
TASK_TYPES = {LABEL: "SEQ_CLS", NUMBER: "SEQ_CLS", TAG: "TOKEN_CLS", NEXT_TOKEN: "CAUSAL_LM"}


@dataclass(frozen=True)
class PEFTLayout:
    """How PEFT knows a model."""

    config: AdaptedConfig
    modules: Mapping[str, str]
    """By target; {} stands for the number of a layer."""
    prefix: str
    """Before all names of the body."""
    task: str
    classifier: str | None = None
    """The target whose head they call so."""
    is_stacked: bool = False
    """Queries, keys and values in one module (1)."""

    @staticmethod
    def of(config: Any, schema: Schema) -> PEFTLayout | None:
        """None where the body has a shape of its own."""
        has_head = schema.kind in (MASKED_TOKEN, NEXT_TOKEN)
        if _is_bert(config):
            head = schema.main if _has_their_head(config, schema) else None
            prefix = "bert." if head or has_head else ""
            task = TASK_TYPES[schema.kind] if head else "FEATURE_EXTRACTION"
            return PEFTLayout(config, BERT_MODULES, ROOT + prefix, task, head)
        if _is_gpt2(config):
            prefix, task = ("transformer.", "CAUSAL_LM") if has_head else ("", "FEATURE_EXTRACTION")
            return PEFTLayout(config, GPT2_MODULES, ROOT + prefix, task, is_stacked=True)
        return None

    def names_out(self, saved: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What an adapted model learned, by their names."""
        found: dict[str, Tensor] = {}
        for name, tensor in saved.items():
            adapted = re.fullmatch(r"body\.blocks\.(\d+)\.[\w.]+\.lora\.(\w+)\.(down|up)", name)
            if adapted is None:
                found[self._head_out(name)] = tensor
                continue
            layer, target, side = adapted.groups()
            theirs = self.prefix + self.modules[target].format(layer)
            if self.is_stacked and target in STACKED:
                found |= self._stacked(saved, name.partition(".lora.")[0], theirs)
            else:
                found[f"{theirs}.lora_{'A' if side == 'down' else 'B'}.weight"] = tensor
        return found

    def names_in(self, found: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The other way. What is missing is told where the weights are loaded."""
        saved, used = dict[str, Tensor](), set[str]()
        for layer in range(vars(self.config)["num_layers"]):
            for target in self.config.adapter_targets:
                theirs = self.prefix + self.modules[target].format(layer)
                sides = {side: f"{theirs}.lora_{letter}.weight" for side, letter in (("down", "A"), ("up", "B"))}
                if not found.keys() >= {*sides.values()}:
                    continue
                down, up = found[sides["down"]], found[sides["up"]]
                if self.is_stacked and target in STACKED:
                    columns = self._columns(target)
                    down, up = down[columns], up[rows_of(target, len(up), self.config), columns]
                ours = f"body.blocks.{layer}.{MODULES[target]}.lora.{target}"
                saved |= {f"{ours}.down": down, f"{ours}.up": up}
                used.update(sides.values())
        return saved | {self._head_in(name): tensor for name, tensor in found.items() if name not in used}

    def _head_out(self, name: str) -> str:
        return re.sub(rf"^head\.{self.classifier}\.output\.", f"{ROOT}classifier.", name)

    def _head_in(self, name: str) -> str:
        return re.sub(rf"^{re.escape(ROOT)}classifier\.", f"head.{self.classifier}.output.", name)

    def _stacked(self, saved: Mapping[str, Tensor], module: str, theirs: str) -> dict[str, Tensor]:
        """(1)"""
        parts = {
            target: [saved[f"{module}.lora.{target}.{s}"] for s in ("down", "up")] for target in self._side_by_side
        }
        num_rows = len(STACKED) * vars(self.config)["model_dim"]
        down = torch.cat([down for down, _ in parts.values()])
        up = down.new_zeros(num_rows, len(down))
        for target, (_, own) in parts.items():
            up[rows_of(target, num_rows, self.config), self._columns(target)] = own
        return {f"{theirs}.lora_A.weight": down, f"{theirs}.lora_B.weight": up}

    @property
    def _side_by_side(self) -> list[str]:
        """Targets that are in one module."""
        return [target for target in STACKED if target in self.config.adapter_targets]

    def _columns(self, target: str) -> slice:
        rank = self.config.adapter_rank
        first = rank * self._side_by_side.index(target)
        return slice(first, first + rank)

    def settings(self, base: str) -> dict[str, Any]:
        """What adapter_config.json holds."""
        config, times = self.config, len(self._side_by_side) if self.is_stacked else 1
        stacked = self.modules["query"].rpartition(".")[2]
        more = {stacked: times} if times > 1 else {}
        return {
            "peft_type": "LORA",
            "task_type": self.task,
            "base_model_name_or_path": base,
            "r": config.adapter_rank,
            "lora_alpha": config.adapter_alpha,
            "rank_pattern": {name: num * config.adapter_rank for name, num in more.items()},
            "alpha_pattern": {name: num * config.adapter_alpha for name, num in more.items()},
            "lora_dropout": 0.0,
            "target_modules": list(
                dict.fromkeys(self.modules[target].partition("{}.")[2] for target in config.adapter_targets)
            ),
            "modules_to_save": ["classifier"] if self.classifier else None,
            "fan_in_fan_out": self.is_stacked,
            "bias": "none",
            "inference_mode": True,
        }


def _is_bert(config: Any) -> bool:
    is_whole = not getattr(config, "shared_layers", True) and config.embed_dim in (None, config.model_dim)
    return is_whole and config.positions == "learned" and "gate" not in config.adapter_targets


def _is_gpt2(config: Any) -> bool:
    shape = tuple(getattr(config, name, None) for name in ("positions", "norm", "activation", "biases"))
    has_shape = shape == ("learned", "layer", "gelu_tanh", True)
    return has_shape and not config.normalise_queries and config.kv_heads == config.num_heads


def _has_their_head(config: Any, schema: Schema) -> bool:
    """One linear layer, on what stands for the row (labels, numbers) or on each word (tags)."""
    if len(schema.targets) > 1:
        return False
    if schema.kind == TAG:
        return not config.crf
    return schema.kind in (LABEL, NUMBER) and config.pooling == "first" and config.pairing == "joined"
