"""Optimisers and schedules: by reference against torch, and at points that are known."""

from __future__ import annotations

import math
from typing import Any

import pytest
import schemas
import torch
from torch import nn

from seqwise.data.schema import masked_schema
from seqwise.models import MODELS
from seqwise.settings import TrainingConfig
from seqwise.text.symbols import SymbolTokenizer
from seqwise.training.optimizers import (
    build_optimizers,
    load_optimizer_tensors,
    nearest_orthogonal,
    optimizer_tensors,
    rate_at,
    set_rate,
)

TALL, WIDE, SQUARE = (5, 24, 8), (5, 8, 24), (5, 16, 16)
SMALL_GPT = {"context": 4, "num_layers": 2, "model_dim": 8, "num_heads": 2}


def small_gpt(**settings: Any) -> nn.Module:
    torch.manual_seed(0)
    row = MODELS["gpt"]
    model: nn.Module = row.build(row.config(**SMALL_GPT, **settings), schemas.of_text(7))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def give_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE])
def test_the_nearest_orthogonal_matrix_has_singular_values_near_one(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 100
    values = torch.linalg.svdvals(nearest_orthogonal(matrices, iterations=8))
    assert values.min() > 0.6
    assert values.max() < 1.3


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_the_nearest_orthogonal_matrix_keeps_the_singular_vectors(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    turned = u.transpose(1, 2) @ nearest_orthogonal(matrices, iterations=5) @ v.transpose(1, 2)
    off_diagonal = turned - torch.diag_embed(torch.diagonal(turned, dim1=1, dim2=2))
    assert off_diagonal.abs().max() < 1e-4


def test_matrices_turned_together_are_turned_as_each_alone_and_zero_stays_zero() -> None:
    matrices = torch.randn(SQUARE, generator=torch.Generator().manual_seed(1))
    matrices[2] = 0
    together = nearest_orthogonal(matrices, iterations=5)
    for one, expected in zip(matrices, together, strict=True):
        torch.testing.assert_close(nearest_orthogonal(one.unsqueeze(0), iterations=5)[0], expected, atol=1e-5, rtol=0)
    assert torch.equal(together[2], torch.zeros(16, 16))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adamw_moves_weights_as_torch_does(weight_decay: float) -> None:
    ours, theirs = small_gpt(), small_gpt()
    config = TrainingConfig(optimizer="adamw", learning_rate=0.01, beta1=0.8, beta2=0.9, weight_decay=weight_decay)
    (optimizer,) = build_optimizers(ours, config)
    matrices = [p for p in theirs.parameters() if p.dim() >= 2]
    vectors = [p for p in theirs.parameters() if p.dim() < 2]
    reference = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=0.01,
        betas=(0.8, 0.9),
    )
    for seed in range(3):
        give_gradients(ours, seed)
        give_gradients(theirs, seed)
        optimizer.step()
        reference.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_sgd_moves_weights_along_the_gradient_with_momentum() -> None:
    model = nn.Linear(2, 1, bias=False)
    before = model.weight.detach().clone()
    (optimizer,) = build_optimizers(model, TrainingConfig(optimizer="sgd", learning_rate=0.5, momentum=0.5))
    for _ in range(2):
        model.weight.grad = torch.ones(1, 2)
        optimizer.step()
    torch.testing.assert_close(model.weight.detach(), before - 0.5 * (1 + 1.5))


def test_muon_takes_the_hidden_matrices_and_adamw_the_rest() -> None:
    model = small_gpt(positions="learned")
    muon, adamw = build_optimizers(model, TrainingConfig(optimizer="muon"))
    names = {id(p): name for name, p in model.named_parameters()}
    turned = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    others = {names[id(p)] for group in adamw.param_groups for p in group["params"]}
    assert turned | others == set(names.values())
    assert not turned & others
    assert all(name.startswith("body.blocks.") and name.endswith("weight") for name in turned)
    assert {"body.embedding.weight", "body.position_table", "head.tokens.output.weight"} <= others


def test_muon_takes_no_table_whatever_it_is_called() -> None:
    """As the vectors of the first and the second text, which BERT adds to its words."""
    row = MODELS["bert"]
    sizes = {name: value for name, value in SMALL_GPT.items() if name != "context"}
    model = row.build(row.config(**sizes), masked_schema(SymbolTokenizer(9), next_sentence=True))
    muon, adamw = build_optimizers(model, TrainingConfig(optimizer="muon"))
    names = {id(p): name for name, p in model.named_parameters()}
    turned = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    tables = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    assert tables == {"body.embedding.weight", "body.positions.weight", "body.texts.weight"}
    assert not tables & turned
    assert tables <= {names[id(p)] for group in adamw.param_groups for p in group["params"]}
    assert "body.pooler.weight" in turned


def test_muon_turns_queries_keys_and_values_each_by_itself() -> None:
    model = small_gpt()
    name = "body.blocks.0.attention.qkv.weight"
    before = model.get_parameter(name).detach().clone()
    muon = build_optimizers(model, TrainingConfig(optimizer="muon", matrix_learning_rate=0.1))[0]
    give_gradients(model, 0)
    muon.step()
    for part in (before - model.get_parameter(name).detach()).chunk(3):
        values = torch.linalg.svdvals(part) / 0.1
        assert values.min() > 0.3
        assert values.max() < 1.3


def test_muon_turns_the_filters_of_a_convolution_as_the_matrix_that_they_are() -> None:
    torch.manual_seed(0)
    filters, matrix = nn.Conv2d(3, 8, 3, bias=False), nn.Linear(27, 8, bias=False)
    matrix.weight.data.copy_(filters.weight.data.flatten(1))
    gradient = torch.randn(8, 3, 3, 3)
    config = TrainingConfig(optimizer="muon", weight_decay=0.1)
    for layer in (filters, matrix):
        muon = build_optimizers(nn.Sequential(layer, nn.LayerNorm(8)), config)[0]  # the norm is left to AdamW
        for _ in range(2):
            layer.weight.grad = gradient.reshape(layer.weight.shape)
            muon.step()
    torch.testing.assert_close(filters.weight.flatten(1), matrix.weight)


def test_a_step_of_muon_has_the_length_that_the_rate_says() -> None:
    model = nn.Sequential(nn.Linear(8, 32))
    before = model[0].weight.detach().clone()
    muon = build_optimizers(model, TrainingConfig(optimizer="muon", matrix_learning_rate=0.1))[0]
    give_gradients(model, 0)
    muon.step()
    values = torch.linalg.svdvals(before - model[0].weight.detach())
    assert values.min() > 0.1 * 2 * 0.5  # sqrt(rows / columns) = 2
    assert values.max() < 0.1 * 2 * 1.3


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw", "muon"])
def test_saved_optimisers_go_on_as_if_never_stopped(optimizer: Any) -> None:
    config = TrainingConfig(optimizer=optimizer, weight_decay=0.01)
    model, copy = small_gpt(), small_gpt()
    optimizers = build_optimizers(model, config)
    for seed in range(2):
        give_gradients(model, seed)
        for one in optimizers:
            one.step()
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizers).items()}
    copy.load_state_dict(model.state_dict())
    restored = build_optimizers(copy, config)
    load_optimizer_tensors(restored, saved)
    for seed in range(2, 4):
        for some_model, some_optimizers in ((model, optimizers), (copy, restored)):
            give_gradients(some_model, seed)
            set_rate(some_optimizers, 0.5)
            for one in some_optimizers:
                one.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), copy.parameters(), strict=True))


def test_the_rate_of_every_group_is_a_share_of_its_own_highest() -> None:
    optimizers = build_optimizers(
        small_gpt(), TrainingConfig(optimizer="muon", learning_rate=0.004, matrix_learning_rate=0.02)
    )
    for share in (0.5, 0.25):  # shares do not pile up
        set_rate(optimizers, share)
        for optimizer, highest in zip(optimizers, (0.02, 0.004), strict=True):
            assert {g["lr"] for g in optimizer.param_groups} == {highest * share}


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "plateau"])
def test_every_schedule_rises_over_the_warm_up_and_never_from_nothing(schedule: Any) -> None:
    config = TrainingConfig(steps=100, warmup_steps=4, schedule=schedule)
    assert [rate_at(step, config) for step in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    rates = [rate_at(step, config) for step in range(100)]
    assert all(0 < rate <= 1 for rate in rates)
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_schedules_at_known_points() -> None:
    settings: dict[str, Any] = {"steps": 110, "warmup_steps": 10, "final_rate": 0.2}
    linear = TrainingConfig(schedule="linear", **settings)
    assert [rate_at(s, linear) for s in (10, 35, 60, 110)] == pytest.approx([1.0, 0.8, 0.6, 0.2])
    cosine = TrainingConfig(schedule="cosine", **settings)
    quarter = 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2
    assert [rate_at(s, cosine) for s in (10, 35, 60, 110)] == pytest.approx([1.0, quarter, 0.6, 0.2])
    for flat in ("constant", "plateau"):
        config = TrainingConfig(schedule=flat, **settings)  # type: ignore[arg-type]
        assert [rate_at(s, config) for s in (10, 60, 109)] == [1.0, 1.0, 1.0]


def test_a_run_without_or_of_nothing_but_warm_up_has_a_rate_too() -> None:
    assert rate_at(0, TrainingConfig(steps=10, warmup_steps=0)) == 1.0
    assert 0 < rate_at(4, TrainingConfig(steps=5, warmup_steps=50)) < 1
    assert rate_at(10, TrainingConfig(steps=10, warmup_steps=10, final_rate=0.1)) <= 1
