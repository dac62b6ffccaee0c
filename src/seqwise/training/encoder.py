"""Eyes of others: a run takes over what looks at pictures from another run, or from a file of EfficientNet-Lite0.

    model.encoder=runs/cifar            the eyes of a run, whatever it was trained for
    model.encoder=efficientnet.pth      those of a network that knows ImageNet

Pictures are brought to the numbers that these eyes were trained with. Eyes that stay as they are see each picture once,
and what they saw is kept on the disk (models/views.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data.schema import ImageSpec, Schema
from ..data.seen_store import Pixels, SeenStore
from ..errors import ConfigError
from ..goals.goal import OnProgress
from ..models.bert import BERTBody, PatchEncoder
from ..models.efficient_net_weights import PIXEL_MEAN, PIXEL_SCALE, read_efficient_net
from ..models.eyes import IMAGE, EyesConfig, PatchEyes, eyes_of, grid_sizes
from ..models.views import seen_once
from ..run import Run

CHANNELS = 3


@dataclass(frozen=True)
class Encoder:
    """Eyes that were trained elsewhere."""

    path: Path
    kind: str
    sizes: list[int]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: dict[str, Tensor]
    """Of their network, by its own names."""
    size: tuple[int, int] | None = None
    """Height and width of the only pictures that they can see; None where they see any."""

    @staticmethod
    def of(path: str, stride: int) -> Encoder:
        """`stride`: of the cells of an EfficientNet."""
        place = Path(path)
        if place.is_file():
            weights, _ = read_efficient_net(place)
            mean, scale = (PIXEL_MEAN,) * CHANNELS, (PIXEL_SCALE,) * CHANNELS
            return Encoder(place.resolve(), "efficientnet", [stride, 0], mean, scale, _without_head(weights))
        run = Run.open(place)
        model = run.load_model() if IMAGE in run.schema.inputs else None
        spec = run.schema.specs.get(run.schema.inputs.get(IMAGE, ""))
        body = getattr(model, "body", None)
        if isinstance(body, BERTBody) and isinstance(body.eyes, PatchEyes) and isinstance(spec, ImageSpec):
            return _of_patches(run, body, spec)
        found = None if model is None else eyes_of(model)
        if found is None or not isinstance(spec, ImageSpec):
            raise ConfigError(
                f"model.encoder = {path} is a run of {run.config.model_name} on {run.config.task}, which has no eyes "
                "to take over. Name a run that looks at pictures, such as one of conv, or a file of EfficientNet-Lite0."
            )
        config: EyesConfig = run.config.model
        weights = dict(found[1].network.state_dict())
        if config.encoder_kind == "efficientnet":
            return Encoder(
                run.path.resolve(), "efficientnet", [stride, 0], spec.mean, spec.scale, _without_head(weights)
            )
        sizes = config.encoder_sizes if config.encoder_kind else grid_sizes(config)
        return Encoder(run.path.resolve(), "grid", list(sizes), spec.mean, spec.scale, weights)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.weights)

    def settings(self) -> dict[str, Any]:
        """Of the section model."""
        return {
            "encoder": str(self.path),
            "encoder_kind": self.kind,
            "encoder_sizes": self.sizes,
            "encoder_fingerprint": self.fingerprint,
        }

    def seen(self, schema: Schema) -> Schema:
        """The schema with pictures as these eyes see them."""
        name = schema.inputs.get(IMAGE)
        spec = None if name is None else schema.specs[name]
        if name is None or not isinstance(spec, ImageSpec):
            raise ConfigError(f"model.encoder = {self.path} looks at pictures, and there are none here; drop it.")
        height, width = self.size or (spec.height, spec.width)
        seen = replace(spec, height=height, width=width, mean=self.mean, scale=self.scale)
        return replace(schema, specs={**schema.specs, name: seen})

    def filled_in(self, model: nn.Module, weights: dict[str, Tensor] | None) -> dict[str, Tensor]:
        """The weights that training starts from: those given or fresh ones, with those of these eyes."""
        found = eyes_of(model)
        assert found is not None
        start = dict(model.state_dict()) if weights is None else weights
        return {**start, **{f"{found[0]}network.{name}": weight for name, weight in self.weights.items()}}

    def in_words(self, config: EyesConfig) -> str:
        """A sentence."""
        if config.encoder_tuned:
            return f"eyes: those of {self.path}, which learn on"
        return f"eyes: those of {self.path}, which stay as they are; each picture is seen once"


def _of_patches(run: Run, body: BERTBody, spec: ImageSpec) -> Encoder:
    sizes, weights = PatchEncoder.sizes_of(run.config.model, spec), dict(body.state_dict())
    network = PatchEncoder(spec.size, sizes)
    places = network.body.context  # of one frame
    weights["positions.weight"] = weights["positions.weight"][:places]
    named = {f"body.{name}": weight for name, weight in weights.items()}
    shape = spec.height, spec.width
    return Encoder(run.path.resolve(), "transformer", sizes, spec.mean, spec.scale, named, shape)


def _without_head(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight for name, weight in weights.items() if not name.startswith("head.")}


def fingerprint_of(weights: Mapping[str, Tensor]) -> str:
    """sha256 of names and numbers."""
    digest = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        digest.update(f"{name} {tuple(weight.shape)}\n".encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def seen_by_frozen_eyes(run: Run, stores: dict[str, Any], on_progress: OnProgress = lambda *_: None) -> dict[str, Any]:
    """The parts with what frozen eyes see in the place of pictures, where the run has such eyes."""
    config = run.config.model
    pictures = [store.pictures for store in stores.values() if isinstance(store, SeenStore)]
    is_seen_once = isinstance(config, EyesConfig) and config.encoder_kind and not config.encoder_tuned
    if not is_seen_once or not any(isinstance(one, Pixels) for one in pictures):
        return stores
    with torch.random.fork_rng(devices=[]):
        model = run.build_model()
    if not run.load_initial_weights(model):
        return stores
    found, spec = eyes_of(model), run.schema.specs[run.schema.inputs[IMAGE]]
    assert found is not None
    assert isinstance(spec, ImageSpec)
    eyes = found[1]
    key = f"{config.encoder_kind} {config.encoder_sizes} {spec.mean} {spec.scale} {fingerprint_of(eyes.state_dict())}"
    return {
        part: store.seen_as(seen_once(eyes, store.pictures, key, on_progress))
        if isinstance(store, SeenStore) and isinstance(store.pictures, Pixels)
        else store
        for part, store in stores.items()
    }
