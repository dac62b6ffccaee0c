"""The contract for pictures: every family that looks at them, whatever it answers.

A check that does not apply to a case is named in it, with the reason; the last test prints that list.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch
from seqwise.data.binarised import scored_batch
from seqwise.data.pair_store import Rows
from seqwise.data.schema import LABEL, PICTURE
from seqwise.data.seen import SeenRow
from seqwise.data.seen_store import Pixels, SeenStore, noise_of
from seqwise.data.text_examples import AnswerColumn, Column
from seqwise.inspection import record
from seqwise.layers.notes import is_recorded
from seqwise.models import MODELS
from seqwise.models.contract import noise_for
from seqwise.models.crossmodal import SHAPES

SIDE, NUM_LABELS, VOCAB, NUM_ROWS = 6, 3, 9, 5
TOLERANCE = 1e-5
GLIMPSE = {"num_glimpses": 3, "glimpse_size": 3, "embed_dim": 8, "model_dim": 12}


@dataclass(frozen=True)
class Case:
    family: str
    kind: str
    settings: dict[str, Any] = field(default_factory=dict)
    reads_words: bool = False
    does_not_apply: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        shown = [f"{k}={v}" for k, v in self.settings.items() if isinstance(v, str | bool)]
        return "-".join([self.family, self.kind, *shown, *(["words"] if self.reads_words else [])])


LOOKED_AT = (frozenset({"images"}), frozenset({"images", "tokens"}))
LEARNS_BY_LOOKING = {"loss": "it learns from places drawn by chance, and answers by the mean ones"}
A_BOUND = {"sums": "it scores a bound, not a likelihood, whose exponential sums to less than one over all pictures"}
CROSSMODAL = {
    "context": 6,
    "model_dim": 8,
    "num_heads": 2,
    "num_layers": 2,
    "cross_layers": 1,
    "widths": [4, 8],
    "pooling": "first",
}
DRAW = {"num_steps": 3, "latent_dim": 4, "model_dim": 8, "read_size": 2, "write_size": 3}
CASES = [
    Case("conv", LABEL, {"widths": [4, 8], "pooling": "mean"}),
    Case("bert", LABEL, {"num_layers": 1, "model_dim": 8, "num_heads": 2, "pooling": "first"}),
    Case("glimpse", LABEL, {**GLIMPSE, "num_scales": 2}, does_not_apply=LEARNS_BY_LOOKING),
    Case("glimpse", LABEL, {**GLIMPSE, "draws": 3}, does_not_apply=LEARNS_BY_LOOKING),
    Case("glimpse", LABEL, {**GLIMPSE, "where": "random"}),
    Case("glimpse", LABEL, {**GLIMPSE, "where": "fixed", "pooling": "mean"}),
    *(Case("crossmodal", LABEL, {**CROSSMODAL, "shape": shape}, reads_words=True) for shape in SHAPES),
    Case("crossmodal", LABEL, {**CROSSMODAL, "reads": "words"}, reads_words=True),
    Case("crossmodal", LABEL, {**CROSSMODAL, "reads": "picture"}, reads_words=True),
    Case("draw", PICTURE, DRAW, does_not_apply=A_BOUND),
    Case("draw", PICTURE, {**DRAW, "attention": True}, does_not_apply=A_BOUND),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def schema_of(case: Case) -> Any:
    return schemas.of_pictures(case.kind, SIDE, NUM_LABELS, vocab_size=VOCAB if case.reads_words else 0)


def store_of(case: Case, model: object) -> SeenStore:
    random = np.random.default_rng(0)
    pixels = random.integers(256, size=(NUM_ROWS, 1, 1, SIDE, SIDE), dtype=np.uint8)
    targets: dict[str, Column] = {}
    if case.kind == LABEL:
        targets["label"] = AnswerColumn(random.integers(NUM_LABELS, size=NUM_ROWS))
    words = [random.integers(VOCAB, size=length) for length in (3, 5, 4, 5, 2)]
    rows = [SeenRow((f"{number}.png",), ()) for number in range(NUM_ROWS)]
    tokens = Rows.of(iter(words)) if case.reads_words else None
    store = SeenStore(Pixels(pixels), np.arange(NUM_ROWS)[::-1].copy(), targets, rows, tokens)
    return store.with_noise(noise_for(model))


def batch_of(case: Case, model: object, chosen: slice | np.ndarray = slice(0, NUM_ROWS)) -> Batch:
    store = store_of(case, model)
    return store.batch(chosen) if case.kind != PICTURE else scored_batch(store, np.arange(NUM_ROWS)[chosen], 0)


def build(case: Case) -> Any:
    torch.manual_seed(0)
    row = MODELS[case.family]
    model = row.build(row.config(**case.settings), schema_of(case))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a.double(), b.double(), atol=TOLERANCE, rtol=TOLERANCE)


def needs(case: Case, check: str) -> None:
    if check in case.does_not_apply:
        pytest.skip(f"{check} does not apply: {case.does_not_apply[check]}")


def test_every_family_that_looks_at_pictures_alone_is_covered() -> None:
    """Captions have their own suite (test_captioner.py)."""
    looking = {
        (name, kind)
        for name, row in MODELS.items()
        for kind in row.learns
        if row.can_read(*LOOKED_AT) and kind in (LABEL, PICTURE)
    }
    assert {(case.family, case.kind) for case in CASES} == looking


@each_case
@torch.no_grad()
def test_other_rows_change_nothing(case: Case) -> None:
    model = build(case)
    together, _ = model.score(batch_of(case, model))
    assert together.shape == (NUM_ROWS, 1)
    for row in range(NUM_ROWS):
        alone, _ = model.score(batch_of(case, model, np.array([row])))
        same(together[row], alone[0])


@each_case
@torch.no_grad()
def test_the_same_batch_gives_the_same_numbers(case: Case) -> None:
    """Chance is in the batch, and nowhere else."""
    model = build(case)
    batch = batch_of(case, model)
    before = torch.get_rng_state()
    first, again = (model.loss(batch) for _ in range(2))
    assert all(torch.equal(first.terms[name].total, term.total) for name, term in again.terms.items())
    assert torch.equal(model.score(batch)[0], model.score(batch)[0])
    assert torch.equal(torch.get_rng_state(), before)


@each_case
@torch.no_grad()
def test_other_noise_gives_other_losses_where_there_is_noise(case: Case) -> None:
    model = build(case)
    size, batch = noise_for(model), batch_of(case, model)
    assert ("noise" in batch.inputs) == bool(size)
    if size:
        other = replace(batch, inputs={**batch.inputs, "noise": noise_of((NUM_ROWS, size), (1,))})
        found = [model.loss(one).over(one.counts()) for one in (batch, other)]
        assert not torch.allclose(*found)


@each_case
@torch.no_grad()
def test_probabilities_sum_to_one(case: Case) -> None:
    needs(case, "sums")
    model = build(case)
    found = model.predict(batch_of(case, model))
    same(found.log_probs.double().logsumexp(dim=-1), torch.zeros(NUM_ROWS))
    assert torch.equal(found.answers, found.log_probs.argmax(dim=-1))


@each_case
def test_micro_batches_give_the_gradient_of_the_whole_batch(case: Case) -> None:
    model = build(case).double()
    batch = batch_of(case, model).in_64_bits()

    def gradient(parts: list[Batch]) -> torch.Tensor:
        model.zero_grad()
        for part in parts:
            model.loss(part).over({**batch.counts(), **batch.sizes()}).backward()
        return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])

    whole = gradient([batch])
    assert whole.abs().max() > 0
    torch.testing.assert_close(gradient(batch.split(3)), whole, atol=1e-10, rtol=1e-8)


@each_case
@torch.no_grad()
def test_the_loss_is_the_score_of_what_counts(case: Case) -> None:
    needs(case, "loss")
    model = build(case)
    batch = batch_of(case, model)
    loss = model.loss(batch)
    assert all(term.count == NUM_ROWS for term in loss.terms.values())
    same(loss.over(batch.counts()), -model.score(batch)[0].mean())


def unused_by(case: Case) -> tuple[str, ...]:
    """Beginnings of names: what chooses places that are chosen already, eyes that do not look, and what regions have
    learned from words at last, where words alone are answered from."""
    if case.settings.get("where") in ("random", "fixed"):
        return ("body.to_place", "body.to_baseline")
    if case.settings.get("reads") == "words":
        return ("body.eyes", "body.regions.features.weight")
    if case.settings.get("shape") == "three-encoders":
        return ("body.shape.looks.0.regions", "body.shape.regions.0")
    return ("nothing",)


@each_case
def test_every_weight_is_learned(case: Case) -> None:
    model = build(case)
    batch = batch_of(case, model)
    model.loss(batch).over(batch.counts()).backward()
    left = {name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()}
    assert {name for name in left if not name.startswith(unused_by(case))} == set()


@each_case
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_the_same_numbers(case: Case) -> None:
    model = build(case)
    batch, row = batch_of(case, model), MODELS[case.family]
    other = row.build(row.config(**case.settings), schema_of(case))
    other.load_state_dict(load(save(dict(model.state_dict()))))
    assert torch.equal(other.eval().score(batch)[0], model.score(batch)[0])


@each_case
@torch.no_grad()
def test_recording_changes_no_result(case: Case) -> None:
    model = build(case)
    batch = batch_of(case, model)
    plain = model.score(batch)[0]
    with record(model) as trace:
        same(model.score(batch)[0], plain)
    assert len(trace)
    assert not is_recorded()


def test_what_does_not_apply_is_listed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    left_out = {f"{case.family}: {check}: {why}" for case in CASES for check, why in case.does_not_apply.items()}
    assert all(len(line.split()) >= 4 for line in left_out)
    with capsys.disabled():
        sys.stdout.write("\n".join(["", "contract of pictures, what does not apply:", *sorted(left_out), ""]))
