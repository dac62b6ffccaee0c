"""Matrices in eight bits: as near as a scale for each row allows, in a quarter of the memory, read the same by all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from steppers import CONTEXT, ONE_OF_EACH, SHAPES, Shape, build, draw, prompt_of, same, step_along
from torch import Tensor, nn

from seqwise.data.batch import Batch, Tokens, next_token_batch, pad_rows, prompt_batch
from seqwise.layers.embeddings import TokenEmbedding
from seqwise.layers.int8 import INT8_PARTS, Int8, int8_weight, to_int8
from seqwise.layers.recurrent import CellWeights
from seqwise.models.engine import compiled_step, engine

each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
one_of_each = pytest.mark.parametrize("shape", ONE_OF_EACH, ids=lambda shape: shape.name)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_a_weight_is_off_by_half_a_scale_at_most(spread: float) -> None:
    weight = torch.randn(50, 37) * spread * torch.logspace(-3, 3, 50).unsqueeze(1)
    numbers, scale = Int8().right_inverse(weight)
    assert (numbers.dtype, scale.shape) == (torch.int8, (50,))
    error = (Int8()(numbers, scale) - weight).abs()
    assert (error <= 0.5 * scale.unsqueeze(1) * (1 + 1e-4)).all()
    assert torch.equal(
        numbers.int().abs().amax(dim=1), torch.full((50,), 127, dtype=torch.int32)
    )  # all are made use of
    torch.testing.assert_close(scale, weight.abs().amax(dim=1) / 127)


def test_a_row_of_zeros_stays_zero() -> None:
    weight = torch.randn(4, 5)
    weight[1] = 0
    weight[2] = torch.tensor([0.0, 1e-38, 0, -1e-38, 0])  # and one whose scale is all but zero is finite
    found = Int8()(*Int8().right_inverse(weight))
    assert torch.equal(found[1], torch.zeros(5))
    assert torch.isfinite(found).all()
    assert (found[2] - weight[2]).abs().max() <= 2e-38


def floats(model: nn.Module) -> dict[str, Tensor]:
    return {name: p for name, p in model.named_parameters() if p.is_floating_point()}


@each_shape
def test_no_matrix_stays_in_32_bits(shape: Shape) -> None:
    """But small tables of positions."""
    model = build(shape)
    matrices = [name for name, weight in model.named_parameters() if weight.dim() == 2 and "position" not in name]
    assert matrices
    vectors = {name: weight.clone() for name, weight in model.named_parameters() if weight.dim() != 2}
    to_int8(model)
    left = [name for name, weight in floats(model).items() if weight.dim() == 2]
    assert all("position" in name for name in left), left
    assert all(name.endswith("position_table") or "positions." in name for name in left)
    assert sum(weight.dtype == torch.int8 for weight in model.parameters()) == len(matrices)  # tied ones are one
    after = dict(model.named_parameters())
    assert all(torch.equal(after[name], weight) for name, weight in vectors.items())  # norms and biases as they were


@each_shape
@torch.no_grad()
def test_what_is_read_is_near_what_was_there(shape: Shape) -> None:
    model, exact = build(shape), build(shape)
    to_int8(model)
    owners = dict(exact.named_modules())
    num = 0
    for name, owner in model.named_modules():
        if isinstance(owner, nn.Linear | TokenEmbedding | CellWeights):
            for part in ("weight", "input", "hidden", "projection"):
                before = getattr(owners[name], part, None)
                if not isinstance(before, Tensor) or before.dim() != 2:
                    continue
                assert int8_weight(owner, part) is not None
                bound = before.abs().amax(dim=1, keepdim=True) / 254 * (1 + 1e-4)
                assert ((getattr(owner, part) - before).abs() <= bound).all()
                num += 1
    assert num >= 3


@pytest.mark.parametrize("shape", [s for s in SHAPES if "tied_embeddings" in s.settings or s.is_pair][::3])
def test_tied_matrices_stay_one(shape: Shape) -> None:
    model = build(shape)
    head = getattr(model, "main_head", model.head)
    is_tied = head.output.weight is model.body.embedding.weight
    to_int8(model)
    of_head, of_table = int8_weight(head.output, "weight"), int8_weight(model.body.embedding, "weight")
    assert of_head is not None
    assert of_table is not None
    for part in INT8_PARTS:
        assert (getattr(of_head, part) is getattr(of_table, part)) == is_tied
    if getattr(model.body, "source_embedding", None) is not model.body.embedding and shape.is_pair:
        assert int8_weight(model.body.source_embedding, "weight") is not None


def size_of(tensors: dict[str, Tensor]) -> int:
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors.values()}.values())


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("gpt", {"context": CONTEXT, "model_dim": 128, "num_heads": 4, "num_layers": 2}),
        ("lstm", {"model_dim": 128}),
        ("conv", {"model_dim": 128, "num_layers": 2}),
        ("seq2seq", {"model_dim": 128}),
        ("transformer", {"model_dim": 128, "num_layers": 1}),
    ],
)
def test_memory_falls_to_about_a_quarter(family: str, settings: dict[str, Any]) -> None:
    model = build(Shape(family, settings))
    before = size_of(model.state_dict())
    to_int8(model)
    assert 0.25 < size_of(model.state_dict()) / before < 0.3


def score_along(model: Any, shape: Shape, text: list[int], source: list[int]) -> Tensor:
    """log p of each token behind the first, all at once."""
    rows = torch.tensor([text])
    if not shape.is_pair:
        found: Tensor = model.score(next_token_batch(rows))[0]
        return found
    inputs = {"source": pad_rows([source]), "tokens": Tokens(rows[:, :-1], None)}
    found = model.score(Batch(inputs, {"tokens": Tokens(rows[:, 1:], None)}))[0]
    return found


@each_shape
@pytest.mark.usefixtures("compiled")
def test_compiled_steps_read_what_torch_reads(shape: Shape) -> None:
    """Against the pass of torch over the whole text; and the engine on against off, of several rows."""
    model = build(shape)
    to_int8(model)
    text, source = [0, *draw(1, CONTEXT - 1)[0].tolist()], [3, 1, 4, 1, 5]
    with torch.inference_mode(), engine("on"):
        expected = score_along(model, shape, text, source)[0]
        if shape.is_pair:
            log_probs, state = model.start(Batch({"source": pad_rows([source])}, {}))
        else:
            log_probs, state = model.start(prompt_batch([text[:1]]))
        assert compiled_step(model, 1) is not None
        for t, token in enumerate(text[1:]):
            same(log_probs[0, token], expected[t])
            log_probs, state = model.step(torch.tensor([token]), state)
    prompt, said = prompt_of(shape, [5, 1, 9]), draw(20, 3)
    same(*(torch.cat(step_along(model, prompt, said, use)) for use in ("on", "off")))


@one_of_each
@torch.no_grad()
def test_answers_stay_near_those_of_32_bits(shape: Shape) -> None:
    model, exact = build(shape), build(shape)
    to_int8(model)
    prompt, said = prompt_of(shape, [5]), draw(6, 1)
    found, expected = (torch.cat(step_along(m, prompt, said, "off")) for m in (model, exact))
    assert 1e-5 < (found - expected).abs().max() < 0.5
    assert (expected.exp() * (expected - found)).sum(dim=1).max() < 0.02  # nats


@one_of_each
@torch.no_grad()
def test_a_model_in_eight_bits_is_saved_and_loaded(shape: Shape) -> None:
    model, other = build(shape), build(shape, seed=1)
    to_int8(model)
    to_int8(other)
    other.load_state_dict(load(save({name: t.contiguous().clone() for name, t in model.state_dict().items()})))
    prompt, said = prompt_of(shape, [5]), draw(3, 1)
    assert torch.equal(*(step_along(m, prompt, said, "off")[-1] for m in (model, other)))


@one_of_each
def test_nothing_in_eight_bits_learns(shape: Shape) -> None:
    """Numbers of eight bits have no gradient; what stays in 32 bits may have one."""
    model = build(shape)
    to_int8(model)
    for name, weight in model.named_parameters():
        if weight.dtype == torch.int8 or name.endswith(INT8_PARTS):
            assert not weight.requires_grad, name
