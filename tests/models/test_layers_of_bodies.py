"""What bodies hand out besides their top: every layer, where it is asked for; and sources that are no text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import schemas
import torch

from seqwise.data.batch import Batch, Tokens, Values, next_token_batch
from seqwise.data.schema import SEQUENCE, Schema, Target, TokenSpec
from seqwise.models import MODELS
from seqwise.text.symbols import SymbolTokenizer

VOCAB = 7
BODIES: dict[str, tuple[dict[str, Any], int]] = {
    "window": ({"window": 3, "embed_dim": 5, "model_dim": 8, "num_layers": 3}, 3),
    "conv": ({"model_dim": 8, "num_layers": 3}, 3),
    "rnn": ({"model_dim": 8, "num_layers": 2}, 2),
    "gru": ({"model_dim": 8, "num_layers": 2, "embed_dim": 5}, 2),
    "lstm": ({"model_dim": 8, "num_layers": 3, "connections": "residual"}, 3),
    "gpt": ({"context": 12, "num_layers": 2, "model_dim": 16, "num_heads": 2}, 2),
}


def build(name: str, schema: Schema, settings: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    model = MODELS[name].build(MODELS[name].config(**settings), schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def rows(length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(VOCAB, (3, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", BODIES)
def test_layers_are_embeddings_and_one_for_each_layer(name: str) -> None:
    settings, num_layers = BODIES[name]
    model = build(name, schemas.of_text(VOCAB), settings)
    batch = next_token_batch(rows(9))
    layers = model.layers(batch)
    assert len(layers) == num_layers + 1
    assert all(layer.shape[:2] == (3, 8) for layer in layers)
    torch.testing.assert_close(layers[0], model.body.embedding(batch.inputs["tokens"]))
    for one, other in pairwise(layers[1:]):
        assert not torch.allclose(one, other)


@pytest.mark.parametrize("name", BODIES)
def test_who_does_not_ask_gets_the_same_hidden_states_and_no_layers(name: str) -> None:
    model = build(name, schemas.of_text(VOCAB), BODIES[name][0])
    inputs = next_token_batch(rows(9)).inputs
    plain, asked = model.body.encode(inputs, None), model.body.encode(inputs, None, with_layers=True)
    assert plain.stream.layers == ()
    torch.testing.assert_close(plain.stream.hidden, asked.stream.hidden, atol=0, rtol=0)


@pytest.mark.parametrize("name", BODIES)
@torch.no_grad()
def test_one_step_has_its_layers_too(name: str) -> None:
    """Where a body has a shortcut for single steps, it is not taken."""
    settings, num_layers = BODIES[name]
    model = build(name, schemas.of_text(VOCAB), settings)
    whole = model.layers(next_token_batch(rows(2)))
    assert len(whole) == num_layers + 1
    state = model.initial_state(3)
    one = model.body.encode({"tokens": Tokens(rows(2)[:, :1])}, state, with_layers=True)
    for found, wanted in zip(one.stream.layers, whole, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", BODIES)
def test_the_top_layer_is_what_heads_read(name: str) -> None:
    """But for the norm and the dropout behind it: a change of the top layer changes the hidden states, none below."""
    model = build(name, schemas.of_text(VOCAB), BODIES[name][0])
    batch = next_token_batch(rows(9))
    encoded = model.body.encode(batch.inputs, None, with_layers=True)
    top, below = encoded.stream.layers[-1], encoded.stream.layers[-2]
    gradients = torch.autograd.grad(encoded.stream.hidden.square().sum(), [top, below])
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


def of_values(num_columns: int) -> Schema:
    """Numbers in, tokens out: the frame of speech."""
    specs = {"signal": schemas.values(num_columns), "tokens": TokenSpec(SymbolTokenizer(VOCAB))}
    return Schema(specs, {"signal": "signal", "tokens": "tokens"}, {"tokens": Target("tokens", SEQUENCE)})


PAIRS: dict[str, dict[str, Any]] = {
    "seq2seq": {"model_dim": 32, "dropout": 0.0},
    "transformer": {"num_layers": 1, "model_dim": 32, "num_heads": 2, "dropout": 0.0},
}


def copied(num_rows: int, seed: int) -> Batch:
    """Each step of the signal marks one column; the target names the columns in their order."""
    marks = torch.randint(1, 4, (num_rows, 4), generator=torch.Generator().manual_seed(seed))
    signal = torch.nn.functional.one_hot(marks, 4).float()
    tokens = torch.cat([torch.zeros(num_rows, 1, dtype=torch.long), marks], dim=1)
    return Batch({"signal": Values(signal), "tokens": Tokens(tokens[:, :-1])}, {"tokens": Tokens(tokens[:, 1:])})


@pytest.mark.parametrize("name", PAIRS)
def test_encoder_decoders_read_numbers(name: str) -> None:
    torch.manual_seed(0)
    model: Any = MODELS[name].build(MODELS[name].config(**PAIRS[name], label_smoothing=0.0), of_values(4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(150):
        batch = copied(32, seed=step)
        optimizer.zero_grad()
        model.loss(batch).over(batch.counts()).backward()
        optimizer.step()
    unseen = copied(64, seed=1000)
    right = model.eval().predict(unseen).answers == unseen.targets["tokens"].ids
    assert right.float().mean() > 0.95


@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_padded_numbers_change_nothing(name: str) -> None:
    torch.manual_seed(0)
    model: Any = MODELS[name].build(MODELS[name].config(**PAIRS[name]), of_values(4)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    batch = copied(3, seed=1)
    signal = batch.inputs["signal"].values
    longer = torch.cat([signal, torch.full((3, 2, 4), 9.0)], dim=1)
    is_step = torch.arange(6).expand(3, 6) < 4
    padded = Batch({**batch.inputs, "signal": Values(longer, is_step=is_step)}, batch.targets)
    torch.testing.assert_close(model.score(padded)[0], model.score(batch)[0], atol=1e-5, rtol=0)
