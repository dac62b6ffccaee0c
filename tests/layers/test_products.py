"""Products of matrices by oneDNN, where they are taken, against those of torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from seqwise.layers import products
from seqwise.layers.products import SMALL, Linear, linear
from seqwise.machine import cpu_vendor
from seqwise.training import optimizers

needs_onednn = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch comes without oneDNN"
)
LARGE = (40, 320, 384)  # rows, what is read, what is given


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The processor taken for one on which oneDNN is faster, and how often it was asked."""
    found, real = list[tuple[int, ...]](), products.product

    def counted(x: torch.Tensor, *more: Any) -> torch.Tensor:
        found.append(tuple(x.shape))
        return real(x, *more)

    for module in (products, optimizers):
        monkeypatch.setattr(module, "has_faster", lambda: True)
        monkeypatch.setattr(module, "product", counted)
    return found


def made(rows: tuple[int, ...], width: int, outputs: int, *, has_bias: bool) -> list[Any]:
    torch.manual_seed(0)
    found = [torch.randn(*rows, width), torch.randn(outputs, width), torch.randn(outputs) if has_bias else None]
    return [None if one is None else one.requires_grad_() for one in found]


def gradients(layer: Callable[..., torch.Tensor], given: list[Any]) -> list[torch.Tensor]:
    found = layer(*given)
    weights = torch.linspace(-1, 1, found.numel()).view_as(found)
    wanted = [one for one in given if one is not None and one.requires_grad]
    return [found.detach(), *torch.autograd.grad((found * weights).sum(), wanted)]


@needs_onednn
@pytest.mark.parametrize("rows", [(40,), (4, 10), (2, 4, 5)], ids=str)
@pytest.mark.parametrize("has_bias", [False, True])
def test_values_and_gradients_are_those_of_torch(calls: list[Any], rows: tuple[int, ...], has_bias: bool) -> None:
    given = made(rows, *LARGE[1:], has_bias=has_bias)
    for ours, theirs in zip(gradients(linear, given), gradients(functional.linear, given), strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-4)
    assert calls == [(40, 320), (40, 384), (384, 40)]  # y, dx, dW


@needs_onednn
def test_only_what_is_asked_for_is_computed(calls: list[Any]) -> None:
    x, weight, bias = made((40,), *LARGE[1:], has_bias=True)
    given = [x.detach(), weight, bias.detach()]
    ours, theirs = (gradients(layer, given) for layer in (linear, functional.linear))
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-4, atol=2e-4)
    assert len(calls) == 2
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight, bias), functional.linear(x, weight, bias), rtol=1e-4, atol=2e-4)
    assert len(calls) == 3


@needs_onednn
def test_rows_and_weights_may_be_views(calls: list[Any]) -> None:
    x, weight, _ = made((8, 20), *LARGE[1:], has_bias=False)
    with torch.no_grad():
        for seen in (x.transpose(0, 1), x[:, ::2], x[:, 1:2]):
            torch.testing.assert_close(linear(seen, weight), functional.linear(seen, weight), rtol=1e-4, atol=2e-4)
        part = weight.split([128, 256])[1]
        torch.testing.assert_close(linear(x, part), functional.linear(x, part), rtol=1e-4, atol=2e-4)
    assert len(calls) >= 3


def test_what_is_small_or_of_other_numbers_is_left_to_torch(calls: list[Any]) -> None:
    layer = Linear(*LARGE[1:])
    assert isinstance(layer, torch.nn.Linear)
    few = torch.randn(SMALL // (320 * 384), 320)
    assert torch.equal(layer(few), functional.linear(few, layer.weight, layer.bias))
    x = torch.randn(40, 320)
    layer.double()(x.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer.float()(x)
    torch.compile(layer, backend="eager")(x)
    assert calls == []
    layer(x)
    assert len(calls) == int(hasattr(torch.ops.mkldnn, "_linear_pointwise"))


def test_another_processor_keeps_the_products_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_faster", lambda: False)
    x, weight, bias = made((40,), *LARGE[1:], has_bias=True)
    assert torch.equal(linear(x, weight, bias), functional.linear(x, weight, bias))


@pytest.mark.parametrize(
    ("vendor", "capability", "is_faster"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
        ("", "", False),
    ],
)
@needs_onednn
def test_it_is_faster_on_processors_that_mkl_does_not_know(
    monkeypatch: pytest.MonkeyPatch, vendor: str, capability: str, is_faster: bool
) -> None:
    monkeypatch.setattr(products, "cpu_vendor", lambda: vendor)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert products.has_faster.__wrapped__() is is_faster


def test_who_made_the_processor_is_read_off_linux(tmp_path: Path) -> None:
    assert cpu_vendor(tmp_path) == ""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t: fpu\n")
    assert cpu_vendor(tmp_path) == "AuthenticAMD"


@needs_onednn
@pytest.mark.parametrize("shape", [(2, 256, 128), (3, 200, 160)], ids=str)
def test_muon_turns_matrices_alike_by_both(calls: list[Any], shape: tuple[int, ...], monkeypatch: Any) -> None:
    torch.manual_seed(1)
    matrices = torch.randn(shape)
    assert shape[1] * shape[2] ** 2 >= SMALL
    ours = optimizers.nearest_orthogonal(matrices)
    assert len(calls) == 9 * shape[0]  # three products in three iterations
    monkeypatch.setattr(optimizers, "has_faster", lambda: False)
    torch.testing.assert_close(ours, optimizers.nearest_orthogonal(matrices), rtol=1e-4, atol=1e-5)
