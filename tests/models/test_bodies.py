"""What is particular to each neural body, and what all of them answer for numbers and for labels.

The contract suite (test_contract.py) covers text.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemas
import torch
from torch import Tensor

from seqwise.data.batch import Batch, Labels, Tokens, Values, kept_of, next_token_batch, next_value_batch, prompt_batch
from seqwise.data.schema import NEXT_TOKEN, Schema
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.models.build import NeuralConfig
from seqwise.models.contract import Encoded, Learns, Scores, State, restart_rows, select_rows
from seqwise.models.conv import ConvConfig

VOCAB, COLUMNS, LABELS, CONTEXT = 7, 2, 3, 12
SETTINGS: dict[str, dict[str, Any]] = {
    "window": {"window": 4, "embed_dim": 5, "model_dim": 8},
    "window direct": {"window": 3, "embed_dim": 5, "model_dim": 8, "num_layers": 2, "direct_connections": True},
    "conv": {"model_dim": 8, "num_layers": 3, "kernel_size": 2},
    "rnn": {"model_dim": 8, "num_layers": 2},
    "gru": {"model_dim": 8, "reset": "before"},
    "lstm": {"model_dim": 8, "num_layers": 2, "embed_dim": 5},
    "lstm projected": {"model_dim": 8, "projection_dim": 5, "layer_norm": "between"},
    "gpt": {"context": CONTEXT, "num_layers": 2, "model_dim": 16, "num_heads": 2},
    "gpt learned": {"context": CONTEXT, "num_layers": 1, "model_dim": 16, "num_heads": 2, "positions": "learned"},
}
CARRYING = [name for name in SETTINGS if not name.startswith("gpt")]
each_body = pytest.mark.parametrize("name", SETTINGS)
each_carrying_body = pytest.mark.parametrize("name", CARRYING)
each_input = pytest.mark.parametrize("reads", ["tokens", "values"])
each_pooling = pytest.mark.parametrize("pooling", ["last", "mean", "attention"])
NUMBERS = schemas.of_numbers(COLUMNS)


def build(name: str, schema: Schema, **settings: Any) -> Any:
    """A small model whose weights differ from each other, in rest."""
    row = MODELS[name.split()[0]]
    model = row.build(row.config(**SETTINGS.get(name, {}) | settings), schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


def encode(body: Any, tokens: Tensor, state: State | None = None) -> Encoded:
    return body.encode({"tokens": Tokens(tokens)}, state)


def same(found: Tensor, expected: Tensor, *, atol: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=atol, rtol=1e-5)


def gradients(model: Any, parts: list[Batch], counts: dict[str, int]) -> list[Tensor]:
    model.zero_grad()
    for part in parts:
        model.loss(part).over(counts).backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def assert_micro_batches_add_up(model: Any, batch: Batch) -> None:
    whole = gradients(model, [batch], batch.counts())
    assert len(whole) == len(list(model.parameters()))
    assert all(g.abs().max() > 0 for g in whole)
    for parts in (2, len(batch)):
        for a, b in zip(gradients(model, batch.split(parts), batch.counts()), whole, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


# --- window -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "direct_connections": True}], ids=["plain", "direct"])
@torch.no_grad()
def test_the_window_sees_exactly_the_last_k_tokens(window: int, options: dict[str, Any]) -> None:
    model = build("window", schemas.of_text(VOCAB), window=window, **options)
    tokens = torch.randint(VOCAB, (3, 12))
    expected, _ = model.start(prompt_batch(tokens.tolist()))
    for back in range(1, 12):  # 1: the last token
        changed = tokens.clone()
        changed[:, -back] = (changed[:, -back] + 1) % VOCAB
        log_probs, _ = model.start(prompt_batch(changed.tolist()))
        is_same = [torch.equal(found, before) for found, before in zip(log_probs, expected, strict=True)]
        assert is_same == [back > window] * 3


@torch.no_grad()
def test_the_window_is_its_equation() -> None:
    model = build("window", schemas.of_text(VOCAB), window=3, embed_dim=5, direct_connections=True)
    body, tokens = model.body, torch.tensor([2, 5, 1, 4])
    e = torch.cat([torch.zeros(2, 5), body.embedding.weight[tokens]])  # zeros before the start
    hidden = encode(body, tokens.view(1, -1)).stream.hidden
    for t in range(4):
        x = torch.cat([e[t], e[t + 1], e[t + 2]])  # (1)
        h = torch.tanh(body.first.weight @ x + body.first.bias)  # (2)
        same(hidden[0, t], torch.cat([h, x]))
        U, W = model.head.tokens.output.weight.split([body.first.out_features, 15], dim=1)
        same(model.head.tokens.expect(hidden[0, t]), torch.log_softmax(U @ h + W @ x, dim=0))  # (3)


@torch.no_grad()
def test_the_state_of_a_window_is_its_last_inputs() -> None:
    body = build("window", schemas.of_text(VOCAB)).body
    tokens = torch.randint(VOCAB, (2, 9))
    for length in (1, 2, 9):
        state = encode(body, tokens[:, :length]).state
        expected = torch.cat([torch.zeros(2, 3, 5), body.embedding.weight[tokens[:, :length]]], dim=1)[:, -3:]
        same(state.per_row["inputs"], expected)


# --- conv -------------------------------------------------------------------------------------------------------------

CONVOLUTIONS = [
    {"num_layers": 1, "kernel_size": 2},
    {"num_layers": 3, "kernel_size": 2},
    {"num_layers": 3, "kernel_size": 3},
    {"num_layers": 4, "kernel_size": 3, "max_dilation": 2},
    {"num_layers": 2, "kernel_size": 4, "max_dilation": 1},
]
each_convolution = pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)


def test_dilations_double_up_to_the_most_and_begin_again() -> None:
    assert ConvConfig(num_layers=5).dilations == [1, 2, 4, 8, 16]
    assert ConvConfig(num_layers=5, max_dilation=4).dilations == [1, 2, 4, 1, 2]
    assert ConvConfig(num_layers=3, max_dilation=1).dilations == [1, 1, 1]
    assert ConvConfig(num_layers=4, max_dilation=3).dilations == [1, 2, 1, 2]
    assert max(ConvConfig(num_layers=12).dilations) == 512


def reach_of(options: dict[str, Any]) -> int:
    """How far back the oldest input stands that can be felt."""
    return sum((options["kernel_size"] - 1) * dilation for dilation in ConvConfig(**options).dilations)


@each_convolution
@torch.no_grad()
def test_the_reach_of_convolutions_is_what_their_dilations_say(options: dict[str, Any]) -> None:
    model, reach = build("conv", schemas.of_text(VOCAB), model_dim=8, **options), reach_of(options)
    tokens = torch.randint(VOCAB, (4, reach + 4))
    expected = encode(model.body, tokens).stream.hidden
    for back in range(reach + 4):  # 0: the last token
        changed = tokens.clone()
        changed[:, -1 - back] = (changed[:, -1 - back] + 1) % VOCAB
        hidden = encode(model.body, changed).stream.hidden
        is_felt = not torch.equal(hidden[:, -1], expected[:, -1])
        assert is_felt == (back <= reach), f"{back} back"
        assert torch.equal(hidden[:, : -1 - back], expected[:, : -1 - back])  # nothing before the change


@torch.no_grad()
def test_a_convolution_is_its_equation() -> None:
    body = build("conv", schemas.of_text(VOCAB), model_dim=8, num_layers=2, kernel_size=3).body
    tokens = torch.randint(VOCAB, (1, 9))
    x = body.embedding.weight[tokens[0]]
    for layer, d in zip(body.layers, (1, 2), strict=True):
        K = layer.delays.weight.split(8, dim=1)  # oldest delay first
        rows = []
        for t in range(9):
            taps = [K[2 - j] @ x[t - j * d] for j in range(3) if t - j * d >= 0]
            y = torch.stack(taps).sum(dim=0) + layer.delays.bias  # (1)
            bent = torch.nn.functional.gelu(layer.norm(y))
            rows.append(x[t] + layer.mix.weight @ bent + layer.mix.bias)  # (2)
        x = torch.stack(rows)
    same(encode(body, tokens).stream.hidden[0], body.norm(x))


@each_convolution
@pytest.mark.parametrize("prompt_length", [1, 3, 20])
@torch.no_grad()
def test_steps_around_the_rings_are_the_parallel_pass(options: dict[str, Any], prompt_length: int) -> None:
    model = build("conv", schemas.of_text(VOCAB), model_dim=8, **options)
    steps = 2 * max(layer.ring for layer in model.body.layers) + reach_of(options) + 3
    rows = torch.randint(VOCAB, (2, prompt_length + steps))
    parallel, _ = model.score(next_token_batch(rows))
    log_probs, state = model.start(prompt_batch(rows[:, :prompt_length].tolist()))
    for t in range(prompt_length, rows.shape[1]):
        same(log_probs.gather(1, rows[:, t : t + 1]).squeeze(1), parallel[:, t - 1])
        log_probs, state = model.step(rows[:, t], state)


@each_convolution
def test_one_step_is_the_same_with_and_without_gradients(options: dict[str, Any]) -> None:
    body = build("conv", schemas.of_text(VOCAB), model_dim=8, **options).body
    tokens, plain, ring = torch.randint(VOCAB, (2, 30)), body.initial_state(2), body.initial_state(2)
    for t in range(30):
        expected = encode(body, tokens[:, t : t + 1], plain)
        with torch.no_grad():
            found = encode(body, tokens[:, t : t + 1], ring)
        same(found.stream.hidden, expected.stream.hidden)
        plain, ring = expected.state, found.state
        for key, tensor in ring.per_row.items():
            same(tensor, plain.per_row[key].detach())


@torch.no_grad()
def test_rows_at_different_places_of_their_rings_go_on_as_they_would_alone() -> None:
    model = build("conv", schemas.of_text(VOCAB), model_dim=8, num_layers=3, kernel_size=3)
    prompts = [torch.randint(VOCAB, (length,)).tolist() for length in (1, 11, 6, 20)]
    together, state = model.start(prompt_batch(prompts))
    alone = [model.start(prompt_batch([prompt])) for prompt in prompts]
    for _ in range(20):
        same(together, torch.cat([log_probs for log_probs, _ in alone]))
        tokens = torch.randint(VOCAB, (4,))
        together, state = model.step(tokens, state)
        alone = [model.step(tokens[row : row + 1], s) for row, (_, s) in enumerate(alone)]
    mixed = Batch({"tokens": Tokens(torch.randint(VOCAB, (4, 5)))}, {"tokens": Tokens(torch.randint(VOCAB, (4, 5)))})
    expected = [model.score(mixed.rows(slice(row, row + 1)), s)[0] for row, (_, s) in enumerate(alone)]
    same(model.score(mixed, state)[0], torch.cat(expected))


@each_body
@pytest.mark.parametrize("schema", [schemas.of_text(VOCAB), NUMBERS], ids=["text", "numbers"])
@torch.no_grad()
def test_the_state_does_not_grow_with_the_steps(name: str, schema: Schema) -> None:
    model = build(name, schema)
    state = model.initial_state(2)
    shapes = {key: tensor.shape for key, tensor in state.per_row.items()}
    assert all(shape[0] == 2 for shape in shapes.values())
    for _ in range(2 * CONTEXT):
        read = torch.tensor([1, 2]) if schema.kind == NEXT_TOKEN else torch.randn(2, COLUMNS)
        _, state = model.step(read, state)
        assert {key: tensor.shape for key, tensor in state.per_row.items()} == shapes


# --- numbers ----------------------------------------------------------------------------------------------------------


def random_series(num_rows: int, length: int, *, missing: float = 0.0) -> tuple[Tensor, Tensor | None]:
    """Numbers, and which of them are there; the first step is empty, as a series begins."""
    values = torch.randn(num_rows, length, COLUMNS)
    if not missing:
        return values, None
    is_observed = torch.rand(num_rows, length, COLUMNS) > missing
    is_observed[:, 0] = False
    return values * is_observed, is_observed


def density(distribution: Any, values: Tensor, is_observed: Tensor | None) -> Tensor:
    """Of the numbers that are there, (B,)."""
    by_column = distribution.base_dist.log_prob(values)
    return (by_column if is_observed is None else by_column * is_observed).sum(dim=-1)


@each_body
@pytest.mark.parametrize("missing", [0.0, 0.4])
@torch.no_grad()
def test_stepping_through_numbers_gives_the_density_of_the_parallel_pass(name: str, missing: float) -> None:
    model = build(name, NUMBERS)
    values, seen = random_series(3, CONTEXT, missing=missing)
    parallel, _ = model.score(next_value_batch(values, seen))
    assert parallel.shape == (3, CONTEXT - 1)
    there = [None] * CONTEXT if seen is None else list(seen.unbind(dim=1))
    prompt = Batch({"values": Values(values[:, :1], None if seen is None else seen[:, :1])}, {})
    distribution, state = model.start(prompt)
    for t in range(1, CONTEXT):
        assert distribution.mean.shape == distribution.stddev.shape == (3, COLUMNS)
        same(density(distribution, values[:, t], there[t]), parallel[:, t - 1])
        if seen is None:
            same(distribution.log_prob(values[:, t]), parallel[:, t - 1])
        distribution, state = model.step(values[:, t], state, there[t])


@each_body
@torch.no_grad()
def test_series_of_different_lengths_do_not_disturb_each_other(name: str) -> None:
    model = build(name, NUMBERS)
    values, is_observed = random_series(3, 6, missing=0.3)
    lengths = torch.tensor([1, 6, 4])
    prompt = Values(values, is_observed, torch.arange(6) < lengths.unsqueeze(1))
    together, state = model.start(Batch({"values": prompt}, {}))
    alone = []
    for row, length in enumerate(lengths.tolist()):
        field = Values(values[row : row + 1, :length], is_observed[row : row + 1, :length])
        alone.append(model.start(Batch({"values": field}, {})))
    for _ in range(4):
        same(together.mean, torch.cat([distribution.mean for distribution, _ in alone]))
        same(together.stddev, torch.cat([distribution.stddev for distribution, _ in alone]))
        new = torch.randn(3, COLUMNS)
        together, state = model.step(new, state)
        alone = [model.step(new[row : row + 1], s) for row, (_, s) in enumerate(alone)]


@each_carrying_body
@pytest.mark.parametrize("missing", [0.0, 0.4])
@torch.no_grad()
def test_chunks_of_numbers_with_carried_state_give_the_density_of_the_whole(name: str, missing: float) -> None:
    model = build(name, NUMBERS)
    assert model.carries_state
    values, seen = random_series(2, 20, missing=missing)
    whole, _ = model.score(next_value_batch(values, seen))
    state, found = model.initial_state(2), []
    for a, b in ((0, 5), (5, 6), (6, 7), (7, 19)):
        there = None if seen is None else seen[:, a : b + 1]
        log_density, state = model.score(next_value_batch(values[:, a : b + 1], there), state)
        found.append(log_density)
    same(torch.cat(found, dim=1), whole)


@each_body
@torch.no_grad()
def test_what_stands_where_a_number_is_missing_changes_nothing(name: str) -> None:
    model = build(name, NUMBERS)
    values, is_observed = random_series(3, 10, missing=0.4)
    is_observed[1, 5] = False  # nothing at all
    changed = torch.where(is_observed, values, torch.tensor(100.0))
    expected, _ = model.score(next_value_batch(values, is_observed))
    assert torch.equal(model.score(next_value_batch(changed, is_observed))[0], expected)
    assert expected[1, 4] == 0
    assert (expected[is_observed[:, 1:].any(dim=-1)] != 0).all()


@each_body
@torch.no_grad()
def test_a_future_number_changes_no_past_density(name: str) -> None:
    model = build(name, NUMBERS)
    values, _ = random_series(2, CONTEXT)
    before, _ = model.score(next_value_batch(values))
    changed = values.clone()
    changed[:, 7] += 1
    after, _ = model.score(next_value_batch(changed))
    same(after[:, :6], before[:, :6])  # target 6 is step 7 itself
    assert not torch.allclose(after[:, 7], before[:, 7], atol=1e-4)


def padded_series() -> Batch:
    """Rows of 9, 2, 7, 4 and 1 steps with holes, and targets one step ahead."""
    values, is_observed = random_series(5, 10, missing=0.3)
    is_observed[2, 3] = False
    is_step = torch.arange(9) < torch.tensor([9, 2, 7, 4, 1]).unsqueeze(1)
    inputs = Values(values[:, :-1], is_observed[:, :-1], is_step)
    return Batch({"values": inputs}, {"values": Values(values[:, 1:], is_observed[:, 1:], is_step)})


@each_body
def test_micro_batches_of_numbers_give_the_gradient_of_the_whole_batch(name: str) -> None:
    assert_micro_batches_add_up(build(name, NUMBERS), padded_series())


@each_body
def test_the_loss_of_numbers_is_the_negative_score_of_the_steps_that_hold_something(name: str) -> None:
    model, batch = build(name, NUMBERS), padded_series()
    assert isinstance(model, Scores)
    assert isinstance(model, Learns)
    targets = batch.targets["values"]
    (term,) = model.loss(batch).terms.values()
    log_density, _ = model.score(batch)
    expected = [
        log_density[row, t]
        for row, length in enumerate(targets.lengths.tolist())
        for t in range(length)
        if targets.is_observed[row, t].any()
    ]
    assert batch.counts() == {"values": len(expected)} == {term.over: term.count}
    same(model.loss(batch).over(batch.counts()), -torch.stack(expected).mean())


@each_body
@torch.no_grad()
def test_padding_changes_no_density(name: str) -> None:
    model, batch = build(name, NUMBERS), padded_series()
    together, _ = model.score(batch)
    for row, length in enumerate((9, 2, 7, 4, 1)):
        fields = []
        for field in (batch.inputs["values"], batch.targets["values"]):
            fields.append(Values(field.values[row : row + 1, :length], field.is_observed[row : row + 1, :length]))
        alone, _ = model.score(Batch({"values": fields[0]}, {"values": fields[1]}))
        same(together[row : row + 1, :length], alone)


@each_body
@torch.no_grad()
def test_selected_and_restarted_rows_of_numbers_go_on_as_they_would_alone(name: str) -> None:
    model = build(name, NUMBERS)
    values, _ = random_series(3, 5)
    _, state = model.start(Batch({"values": Values(values)}, {}))
    new = torch.randn(3, COLUMNS)

    def mean_after(values: Tensor, row: int) -> Tensor:
        return model.step(values.unsqueeze(0), select_rows(state, torch.tensor([row])))[0].mean

    expected = [mean_after(values, row) for values, row in zip(new, (2, 0, 2), strict=True)]
    selected = select_rows(state, torch.tensor([2, 0, 2]))
    same(model.step(new, selected)[0].mean, torch.cat(expected))
    from_nothing = model.step(new[1:2], model.initial_state(1))[0].mean
    kept = [mean_after(new[0], 0), from_nothing, mean_after(new[2], 2)]
    restarted = restart_rows(state, torch.tensor([False, True, False]), model.initial_state(3))
    same(model.step(new, restarted)[0].mean, torch.cat(kept))


@pytest.mark.parametrize("name", ["gpt", "gpt learned"])
@torch.no_grad()
def test_a_full_context_of_numbers_forgets_its_oldest_quarter(name: str) -> None:
    """Only steps can fill the context: a prompt that would is cut before it is read."""
    model = build(name, NUMBERS)
    values, _ = random_series(2, CONTEXT)
    _, state = model.start(Batch({"values": Values(values[:, :-1])}, {}))
    _, state = model.step(values[:, -1], state)
    assert state.per_row["length"].tolist() == [CONTEXT, CONTEXT]
    kept = values[:, -kept_of(CONTEXT) :]
    _, expected_state = model.start(Batch({"values": Values(kept)}, {}))
    new = torch.randn(2, COLUMNS)
    distribution, state = model.step(new, state)
    same(distribution.mean, model.step(new, expected_state)[0].mean)
    assert state.per_row["length"].tolist() == [kept_of(CONTEXT) + 1] * 2


@torch.no_grad()
def test_a_long_prompt_of_numbers_keeps_its_end() -> None:
    model = build("gpt", NUMBERS)
    values, _ = random_series(2, CONTEXT + 5)
    distribution, _ = model.start(Batch({"values": Values(values)}, {}))
    expected, _ = model.start(Batch({"values": Values(values[:, -kept_of(CONTEXT) :])}, {}))
    same(distribution.mean, expected.mean)


# --- labels -----------------------------------------------------------------------------------------------------------

LENGTHS = [9, 2, 7, 4, 1]


def label_schema(reads: str, num_labels: int = LABELS) -> Schema:
    if reads == "tokens":
        return schemas.of_answers(num_labels, vocab_size=VOCAB)
    return schemas.of_answers(num_labels, num_columns=COLUMNS)


def label_batch(reads: str, *, num_labels: int = LABELS, missing: float = 0.0) -> Batch:
    """Rows of LENGTHS, padded with what should not matter."""
    B, T = len(LENGTHS), max(LENGTHS)
    is_step = torch.arange(T) < torch.tensor(LENGTHS).unsqueeze(1)
    if reads == "tokens":
        inputs: Any = {"tokens": Tokens(torch.randint(VOCAB, (B, T)), is_step)}
    else:
        values, is_observed = random_series(B, T, missing=missing)
        inputs = {"values": Values(values, is_observed, is_step)}
    if num_labels:
        return Batch(inputs, {"label": Labels(torch.randint(num_labels, (B,)))})
    return Batch(inputs, {"number": Values(torch.randn(B, 1, 1))})


def row_alone(batch: Batch, row: int) -> Batch:
    """One row, without its padding."""
    (name, field) = next(iter(batch.inputs.items()))
    length = int(field.lengths[row])
    cut = field.map(lambda tensor: tensor[row : row + 1, :length])
    without = Tokens(cut.ids) if name == "tokens" else Values(cut.values, cut.is_observed)
    return Batch({name: without}, batch.rows(slice(row, row + 1)).targets)


def label_cases() -> list[Any]:
    both = {"bidirectional": True}
    cases = [pytest.param(name, {}, id=name) for name in SETTINGS]
    cases += [pytest.param(name, both, id=f"{name} both ways") for name in ("rnn", "gru", "lstm", "lstm projected")]
    for connections in ("residual", "highway", "dense"):
        settings = {**both, "num_layers": 3, "connections": connections}
        cases.append(pytest.param("lstm", settings, id=f"lstm both ways {connections}"))
    return cases


each_label_case = pytest.mark.parametrize(("name", "settings"), label_cases())


@each_label_case
@each_input
@each_pooling
@torch.no_grad()
def test_padding_and_batch_composition_change_no_label(
    name: str, settings: dict[str, Any], reads: str, pooling: str
) -> None:
    model = build(name, label_schema(reads), pooling=pooling, **settings)
    batch = label_batch(reads)
    (score, _), prediction = model.score(batch), model.predict(batch)
    log_probs = prediction.log_probs
    assert (log_probs.shape, score.shape, prediction.answers.shape) == ((5, LABELS), (5, 1), (5,))
    same(log_probs.exp().sum(dim=1), torch.ones(5))
    same(score, log_probs.gather(1, batch.targets["label"].ids.unsqueeze(1)))
    assert torch.equal(prediction.answers, log_probs.argmax(dim=1))
    for row in range(5):
        alone = row_alone(batch, row)
        same(model.predict(alone).log_probs, log_probs[row : row + 1])
        same(model.score(alone)[0], score[row : row + 1])


@each_label_case
@each_input
@torch.no_grad()
def test_the_padding_itself_changes_no_label(name: str, settings: dict[str, Any], reads: str) -> None:
    model, batch = build(name, label_schema(reads), pooling="attention", **settings), label_batch(reads)
    (field,) = batch.inputs.values()
    if reads == "tokens":
        changed: Any = Tokens(field.ids.masked_fill(~field.is_token, 3), field.is_token)
    else:
        values = field.values.masked_fill(~field.is_step.unsqueeze(-1), 9.0)
        changed = Values(values, field.is_observed, field.is_step)
    same(model.predict(Batch({reads: changed}, {})).log_probs, model.predict(batch).log_probs)


@each_label_case
@each_input
def test_micro_batches_of_labels_give_the_gradient_of_the_whole_batch(
    name: str, settings: dict[str, Any], reads: str
) -> None:
    model, batch = build(name, label_schema(reads), pooling="mean", **settings), label_batch(reads)
    assert batch.counts() == {"label": 5}
    assert_micro_batches_add_up(model, batch)
    same(model.loss(batch).over(batch.counts()), -model.score(batch)[0].mean())


@each_body
@torch.no_grad()
def test_missing_numbers_change_no_label_by_their_value(name: str) -> None:
    model, batch = build(name, label_schema("values"), pooling="mean"), label_batch("values", missing=0.4)
    field = batch.inputs["values"]
    changed = Values(torch.where(field.is_observed, field.values, torch.tensor(50.0)), field.is_observed, field.is_step)
    found = model.predict(Batch({"values": changed}, {})).log_probs
    assert torch.equal(found, model.predict(batch).log_probs)


@each_label_case
@each_input
@torch.no_grad()
def test_a_number_as_the_answer_has_an_error_of_unit_variance(name: str, settings: dict[str, Any], reads: str) -> None:
    model = build(name, label_schema(reads, num_labels=0), pooling="mean", **settings)
    batch = label_batch(reads, num_labels=0)
    prediction, wanted = model.predict(batch), batch.targets["number"].values[:, 0]
    assert prediction.log_probs is None
    assert (prediction.answers.shape, wanted.shape) == ((5,), (5, 1))
    expected = torch.distributions.Normal(prediction.answers.unsqueeze(1), 1.0).log_prob(wanted)
    same(model.score(batch)[0], expected)
    for row in range(5):
        same(model.predict(row_alone(batch, row)).answers, prediction.answers[row : row + 1])
    assert batch.counts() == {"number": 5}
    same(model.loss(batch).over(batch.counts()), -expected.mean())


@each_body
def test_micro_batches_of_numbers_as_answers_give_the_gradient_of_the_whole_batch(name: str) -> None:
    model = build(name, label_schema("tokens", num_labels=0), pooling="mean")
    assert_micro_batches_add_up(model, label_batch("tokens", num_labels=0))


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@torch.no_grad()
def test_both_ways_means_that_the_first_hidden_state_feels_the_last_token(name: str) -> None:
    tokens = torch.randint(VOCAB, (3, 9))
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % VOCAB
    for bidirectional in (False, True):
        body = build(name, label_schema("tokens"), bidirectional=bidirectional).body
        first, second = (encode(body, read).stream.hidden[:, 0] for read in (tokens, changed))
        is_felt = not torch.equal(first, second)
        assert is_felt == bidirectional


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@each_input
def test_pooling_last_reads_both_ways_to_their_ends(name: str, reads: str) -> None:
    model = build(name, label_schema(reads), bidirectional=True, num_layers=1, pooling="last")
    batch = label_batch(reads)
    model.loss(batch).over(batch.counts()).backward()
    (layer,) = model.body.stack.layers
    forwards, backwards = (cell.weights.hidden.grad for cell in layer.cells)
    assert forwards.abs().max() > 0
    assert backwards.abs().max() > 0


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("schema", [schemas.of_text(VOCAB), NUMBERS], ids=["text", "numbers"])
def test_both_ways_is_refused_where_the_future_is_to_be_predicted(name: str, schema: Schema) -> None:
    with pytest.raises(ConfigError) as error:
        build(name, schema, bidirectional=True)
    sentence = (
        "model.bidirectional reads what is to be predicted; it goes with labels and other answers to a whole sequence."
    )
    assert str(error.value) == sentence


@pytest.mark.parametrize("name", ["window", "conv", "rnn", "gru", "lstm", "gpt"])
def test_tied_embeddings_and_an_adaptive_softmax_exclude_each_other(name: str) -> None:
    with pytest.raises(ConfigError, match=r"model\.tied_embeddings and model\.adaptive_softmax exclude each other"):
        MODELS[name].config(tied_embeddings=True, adaptive_softmax=True)


@pytest.mark.parametrize(
    ("name", "settings", "embedding", "output"),
    [
        ("window", {"embed_dim": 5, "model_dim": 8}, 5, 8),
        ("window", {"embed_dim": 8, "model_dim": 8, "window": 2, "direct_connections": True}, 8, 24),
        ("rnn", {"embed_dim": 5, "model_dim": 8}, 5, 8),
        ("gru", {"embed_dim": 5, "model_dim": 8}, 5, 8),
        ("lstm", {"embed_dim": 5, "model_dim": 8}, 5, 8),
        ("lstm", {"model_dim": 8, "projection_dim": 4}, 8, 4),
        ("lstm", {"model_dim": 8, "num_layers": 2, "connections": "dense"}, 8, 16),
    ],
)
def test_tied_embeddings_of_another_width_than_the_output_are_refused(
    name: str, settings: dict[str, Any], embedding: int, output: int
) -> None:
    row = MODELS[name]
    with pytest.raises(ConfigError) as error:
        row.build(row.config(**settings, tied_embeddings=True), schemas.of_text(VOCAB))
    assert str(error.value) == (
        f"model.tied_embeddings needs embeddings as wide as the output; found {embedding} and {output}."
    )


def test_tied_embeddings_fit_a_projection_of_their_width() -> None:
    row = MODELS["lstm"]
    config = row.config(model_dim=8, embed_dim=4, projection_dim=4, tied_embeddings=True)
    model = row.build(config, schemas.of_text(VOCAB))
    assert model.head.tokens.output.weight is model.body.embedding.weight


@pytest.mark.parametrize(
    ("name", "setting", "value", "sentence"),
    [
        ("window", "window", 0, "model.window = 0 should be at least 1."),
        ("conv", "num_layers", 0, "model.num_layers = 0 should be at least 1."),
        ("lstm", "embed_dim", 0, "model.embed_dim = 0 should be at least 1."),
        ("gru", "model_dim", -1, "model.model_dim = -1 should be at least 1."),
        ("rnn", "weight_dropout", 1.0, "model.weight_dropout = 1.0 should lie in [0, 1)."),
        ("gpt", "dropout", -0.1, "model.dropout = -0.1 should lie in [0, 1)."),
        ("conv", "kernel_size", 1, "model.kernel_size = 1 should be at least 2, to look back at all."),
        ("conv", "max_dilation", 0, "model.max_dilation = 0 should be at least 1."),
        ("lstm", "projection_dim", 256, "model.projection_dim = 256 should lie below model_dim = 256."),
        ("lstm", "projection_dim", 0, "model.projection_dim = 0 should lie below model_dim = 256."),
    ],
)
def test_settings_out_of_range_are_named(name: str, setting: str, value: float, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        MODELS[name].config(**{setting: value})
    assert str(error.value) == sentence


def test_every_neural_family_is_covered() -> None:
    """That goes on with a text; bert, which fills in words, has tests of its own."""
    neural = {name for name, row in MODELS.items() if issubclass(row.config, NeuralConfig) and NEXT_TOKEN in row.learns}
    assert neural == {name.split()[0] for name in SETTINGS}


# --- in training ------------------------------------------------------------------------------------------------------

TRAINING = [
    ("window", {"dropout": 0.2}),
    ("conv", {"dropout": 0.2}),
    ("rnn", {"dropout": 0.2, "weight_dropout": 0.2}),
    ("gru", {"dropout": 0.2, "dropout_kind": "variational"}),
    ("lstm", {"dropout": 0.2, "dropout_kind": "variational", "weight_dropout": 0.2, "layer_norm": "inside"}),
    ("gpt", {"dropout": 0.2}),
]


@pytest.mark.parametrize(("name", "settings"), TRAINING)
@pytest.mark.parametrize("schema", [schemas.of_text(VOCAB), NUMBERS], ids=["text", "numbers"])
def test_dropout_acts_in_training_and_gradients_reach_every_parameter(
    name: str, settings: dict[str, Any], schema: Schema
) -> None:
    model = build(name, schema, **settings)
    rows = torch.randint(VOCAB, (3, 9))
    batch = next_token_batch(rows) if schema.kind == NEXT_TOKEN else next_value_batch(random_series(3, 9)[0])
    assert torch.equal(model.score(batch)[0], model.score(batch)[0])
    model.train()
    assert not torch.allclose(model.score(batch)[0], model.score(batch)[0])
    model.loss(batch).over(batch.counts()).backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())


@each_carrying_body
def test_a_detached_state_carries_numbers_without_gradients_into_the_past(name: str) -> None:
    model = build(name, NUMBERS)
    values, _ = random_series(2, 9)
    first = model.loss(next_value_batch(values[:, :5]), model.initial_state(2))
    assert isinstance(first.state, State)
    second = model.loss(next_value_batch(values[:, 4:]), first.state.detach())
    before = {key: tensor.clone() for key, tensor in first.state.per_row.items()}
    first.over({"values": 4}).backward()
    second.over({"values": 4}).backward()  # would fail where it reached into the first chunk
    assert all(torch.equal(tensor, before[key]) for key, tensor in first.state.per_row.items())


def test_a_gru_that_resets_before_the_product_refuses_norms_inside() -> None:
    with pytest.raises(ConfigError, match=r"model.layer_norm = inside goes with model.reset = after"):
        MODELS["gru"].config(reset="before", layer_norm="inside")
