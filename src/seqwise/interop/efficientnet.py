"""EfficientNet-Lite0 with the weights of ImageNet -> a run that labels pictures, and whose eyes others take over.

seqwise import efficientnet efficientnet-lite0.pth --out runs/eyes
seqwise train flickr8k --model captioner --set model.encoder=runs/eyes

As it was published: pictures of 224 pixels, cells of 32, and the 1,000 labels of ImageNet by their numbers.
"""

from __future__ import annotations

from pathlib import Path

import torch

from ..data.schema import ImageSpec, LabelSpec, seen_schema
from ..models import family
from ..models.conv import ConvConfig
from ..models.efficient_net_weights import NUM_LABELS, PIXEL_MEAN, PIXEL_SCALE, PIXELS, read_efficient_net
from ..models.eyes import eyes_of
from ..run import Run, RunConfig
from ..settings import DataConfig, TokenizerConfig, TrainingConfig

STRIDE, HAS_HEAD = 32, 1


def import_efficient_net(path: Path, out: Path) -> Run:
    weights, labels = read_efficient_net(path)
    spec = ImageSpec(PIXELS, PIXELS, (PIXEL_MEAN,) * 3, (PIXEL_SCALE,) * 3)
    schema = seen_schema(spec, LabelSpec([str(number) for number in range(NUM_LABELS)]))
    config = ConvConfig(encoder_kind="efficientnet", encoder_sizes=[STRIDE, HAS_HEAD], pooling="mean")
    model = family("conv").build(config, schema)
    found = eyes_of(model)
    assert found is not None
    found[1].network.load_state_dict(weights)
    with torch.no_grad():
        output = model.heads["label"].output
        output.weight.copy_(labels["weight"])
        output.bias.copy_(labels["bias"])
    data = DataConfig(description=f"imported from {path.name}: EfficientNet-Lite0, trained on ImageNet")
    run = Run.create(out, RunConfig("conv", data, TokenizerConfig(), config, TrainingConfig(), task="images"), schema)
    run.save_model(model)
    return run
