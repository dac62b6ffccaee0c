"""A row that is read and written again: what is scored, by a plain loop; that rows stand alone; and who cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.batch import prompt_batch
from seqwise.data.row_store import RowStore, build_row_store
from seqwise.data.schema import RECONSTRUCTION, row_schema, text_schema
from seqwise.errors import ConfigError
from seqwise.evaluation.reconstruction import evaluate_reconstruction
from seqwise.models import MODELS
from seqwise.text.symbols import SymbolTokenizer
from seqwise.text.words import WordTokenizer

WORDS = WordTokenizer(list("abcdefgh"))
LINES = ["a b c", "d", "e f", "g h a b", "c d", "a a a a a"]
FAMILIES = [name for name, row in MODELS.items() if RECONSTRUCTION in row.learns]
each_family = pytest.mark.parametrize("family", FAMILIES)


def build(family: str, tokenizer: Any = WORDS, **settings: Any) -> Any:
    row = MODELS[family]
    model = row.build(row.config(model_dim=8, **settings), row_schema(tokenizer))
    torch.manual_seed(3)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return model.eval().double()


def store() -> RowStore:
    return build_row_store(LINES, WORDS, 10)


def nats_by_hand(model: Any, words: list[int], boundary: int) -> float:
    """The row is read up to its end, and then written again token by token."""
    log_probs, state = model.start(prompt_batch([[boundary, *words, boundary]]))
    nats = 0.0
    for token in [*words, boundary]:
        nats -= float(log_probs[0, token])
        log_probs, state = model.step(torch.tensor([token]), state)
    return nats


def test_who_has_a_state_of_fixed_size_does_it() -> None:
    assert FAMILIES == ["rnn", "gru", "lstm"]


@each_family
@torch.no_grad()
def test_the_loss_is_that_of_the_second_copy_alone(family: str) -> None:
    model, rows = build(family), store()
    expected = [nats_by_hand(model, WORDS.encode(line).tolist(), WORDS.boundary) for line in LINES]
    loss = model.loss(rows.batch(np.arange(len(LINES)))).terms["tokens"]
    assert float(loss.total) == pytest.approx(sum(expected), rel=1e-9)
    assert loss.count == len(rows) == sum(len(line.split()) + 1 for line in LINES)
    found = evaluate_reconstruction(model, rows)
    assert found.nats.tolist() == pytest.approx(expected, rel=1e-9)
    assert found.nats_per_token == pytest.approx(sum(expected) / len(rows))


@torch.no_grad()
def test_an_adaptive_softmax_scores_the_same_places() -> None:
    tokenizer = SymbolTokenizer(1200)
    model = build("lstm", tokenizer, adaptive_softmax=True)
    assert type(model.main_head).__name__ == "AdaptiveSoftmaxHead"
    rows = build_row_store([], tokenizer, 5)
    ids = [[3, 700, 1100], [5], [900, 2]]
    rows = RowStore(type(rows.rows).of(np.array([0, *row, 0]) for row in ids))
    expected = [nats_by_hand(model, row, tokenizer.boundary) for row in ids]
    assert evaluate_reconstruction(model, rows).nats.tolist() == pytest.approx(expected, rel=1e-9)


@torch.no_grad()
def test_what_the_first_copy_predicts_does_not_count() -> None:
    model, batch = build("lstm"), store().batch(np.arange(4))
    targets = batch.targets["tokens"]
    other = torch.where(targets.is_scored, targets.ids, (targets.ids + 1) % WORDS.vocab_size)
    changed = replace(batch, targets={"tokens": replace(targets, ids=other)})
    assert torch.equal(model.loss(changed).terms["tokens"].total, model.loss(batch).terms["tokens"].total)
    assert (model.score(batch)[0] == 0).equal(~targets.is_scored)


def test_only_the_second_copy_sends_gradients_and_they_reach_what_was_read() -> None:
    """The weights of the head learn from the steps that are written; the embedding of what is only read too."""
    model, rows = build("lstm"), build_row_store(["a b c"], WORDS, 10)
    batch = rows.batch(np.arange(1))
    tokens = batch.inputs["tokens"]
    second = torch.arange(tokens.shape[1]) >= tokens.shape[1] // 2
    others = replace(tokens, ids=torch.where(second, WORDS.encode("h").item(), tokens.ids))  # a, b, c are read once
    model.loss(replace(batch, inputs={"tokens": others})).terms["tokens"].total.backward()
    read = WORDS.encode("a b c").tolist()
    assert (model.body.embedding.weight.grad[read].abs().sum(dim=1) > 0).all()


@each_family
@torch.no_grad()
def test_rows_stand_alone(family: str) -> None:
    """Padding and the other rows change nothing, and nothing is carried from one batch to the next."""
    model, rows = build(family), store()
    assert not model.carries_state
    assert model.loss(rows.batch(np.arange(2))).state is None
    together, _ = model.score(rows.batch(np.arange(len(LINES))))
    for place in range(len(LINES)):
        alone, _ = model.score(rows.batch(np.array([place])))
        torch.testing.assert_close(together[place, : alone.shape[1]], alone[0], atol=1e-9, rtol=0)


def test_a_language_model_carries_its_state_as_before() -> None:
    row = MODELS["lstm"]
    assert row.build(row.config(model_dim=8), text_schema(WORDS)).carries_state


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bidirectional": True}, "model.bidirectional reads what is to be predicted"),
        ({"max_steps": 5}, "model.max_steps = 5 goes with texts that have a label"),
        ({"pairing": "siamese"}, "goes with pairs of texts"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build("lstm", **settings)
