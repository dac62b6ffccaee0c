"""Gradients by lag, against finite differences; and the claim: tanh decays, identity, gates and attention hold."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import schemas
import torch
from torch import Tensor, nn

from seqwise.data.batch import Batch, Tokens, next_token_batch
from seqwise.inspection.gradient_flow import Flow, factors, gradient_flow, source_gradients, truncation
from seqwise.inspection.trace import record
from seqwise.models import MODELS

VOCAB = 7
RECURRENT = [("rnn", {}), ("rnn", {"activation": "relu", "identity_init": True}), ("gru", {}), ("lstm", {})]


def build(family: str, **settings: Any) -> nn.Module:
    torch.manual_seed(4)
    row = MODELS[family]
    model = row.build(row.config(**settings), schemas.of_text(VOCAB, 0))
    for parameter in model.parameters():  # heads begin at zero: nothing would flow
        if not parameter.any():
            nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


def rows(B: int, T: int) -> Tensor:
    return torch.randint(VOCAB, (B, T + 1), generator=torch.Generator().manual_seed(1))


def losses_when_moved(model: nn.Module, batch: Batch, at: int, direction: Tensor, by: float) -> Tensor:
    """Losses of all steps where the embedding of token `at` is moved."""
    handle = model.body.embedding.register_forward_hook(
        lambda _, __, x: x + by * direction * (torch.arange(x.shape[1]) == at).view(1, -1, 1)
    )
    try:
        with torch.no_grad():
            return -model.score(batch)[0]
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        *((family, {**settings, "model_dim": 6}) for family, settings in RECURRENT),
        ("lstm", {"model_dim": 6, "num_layers": 2}),
        ("gpt", {"context": 16, "num_layers": 2, "model_dim": 8, "num_heads": 2}),
        ("conv", {"model_dim": 6, "num_layers": 3}),
        ("window", {"window": 3, "embed_dim": 5, "model_dim": 6}),
    ],
)
def test_gradients_of_embeddings_are_finite_differences(family: str, settings: dict[str, Any]) -> None:
    model, T, step = build(family, **settings), 10, 9
    batch = next_token_batch(rows(1, T))
    flows = gradient_flow(model, batch, steps=[step], max_lags=T)
    embedding = next(flow for flow in flows if flow.what == "embedding")
    width = model.body.embedding.embedding_dim
    for lag in (0, 1, 4, 9):
        slope = torch.zeros(width, dtype=torch.float64)
        for unit in range(width):
            direction = torch.zeros(width, dtype=torch.float64)
            direction[unit] = 1.0
            up, down = (losses_when_moved(model, batch, step - lag, direction, by)[0, step] for by in (1e-5, -1e-5))
            slope[unit] = (up - down) / 2e-5
        assert embedding.by_lag[lag] == pytest.approx(float(slope.norm()), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(("family", "settings"), RECURRENT)
def test_gradients_of_states_are_finite_differences(family: str, settings: dict[str, Any]) -> None:
    """The state after step s is moved by hand, and the rest of the text read from there."""
    model, T, step = build(family, **settings, model_dim=5), 8, 7
    ids = rows(1, T)
    flows = gradient_flow(model, next_token_batch(ids), steps=[step], max_lags=T)
    state_flow = next(flow for flow in flows if flow.what == "state")

    def loss_after(lag: int, part: str, unit: int, by: float) -> float:
        split = step - lag + 1  # so many tokens are read before the state is moved
        with torch.no_grad():
            _, state = model.score(next_token_batch(ids[:, : split + 1]), model.initial_state(1))
            state.per_row[part].view(-1)[unit] += by
            log_probs, _ = model.score(next_token_batch(ids[:, split:]), state)
        return -float(log_probs[0, lag - 1])

    for lag in (1, 3, 6):
        square = 0.0
        for part, values in model.initial_state(1).per_row.items():
            for unit in range(values.numel()):
                slope = (loss_after(lag, part, unit, 1e-5) - loss_after(lag, part, unit, -1e-5)) / 2e-5
                square += slope**2
        assert state_flow.by_lag[lag] == pytest.approx(square**0.5, rel=1e-4)


@pytest.mark.parametrize(
    ("family", "settings", "blocks"),
    [
        ("gpt", {"context": 16, "num_layers": 3, "model_dim": 8, "num_heads": 2}, "blocks"),
        ("conv", {"model_dim": 6, "num_layers": 3}, "layers"),
    ],
)
def test_what_arrives_through_a_block_is_what_is_left_without_its_skip(
    family: str, settings: dict[str, Any], blocks: str
) -> None:
    model, T, step = build(family, **settings), 10, 9
    batch = next_token_batch(rows(2, T))
    found = gradient_flow(model, batch, steps=[step], max_lags=T)
    for number, block in enumerate(getattr(model.body, blocks)):
        entered: list[Tensor] = []

        def cut_skip(_: Any, arguments: tuple[Any, ...], out: Tensor, entered: list[Tensor] = entered) -> Tensor:
            x = arguments[0]
            x.retain_grad()
            entered.append(x)
            return out - x + x.detach()  # the same value, by one path alone

        handle = block.register_forward_hook(cut_skip)
        (-model.score(batch)[0][:, step].sum()).backward()
        handle.remove()
        lengths = entered[0].grad.norm(dim=-1)  # (B, T)
        flow = next(flow for flow in found if flow.what == "block" and f".{number}" in flow.site)
        for lag in (0, 1, 5):
            assert flow.by_lag[lag] == pytest.approx(float(lengths[:, step - lag].mean()), rel=1e-6)


def test_what_arrives_through_a_block_is_no_rounding() -> None:
    """A block that adds next to nothing: around it and through it differ in digits that 32 bits do not have."""
    exact = build("gpt", context=16, num_layers=2, model_dim=8, num_heads=2)
    for name, parameter in exact.body.blocks.named_parameters():
        if name.endswith(("to_output.weight", "down.weight")):
            parameter.data *= 1e-7
    batch = next_token_batch(rows(1, 12))
    expected, found = (
        gradient_flow(model, batch, steps=[11], max_lags=8) for model in (exact, copy.deepcopy(exact).float())
    )
    through = [(one, other) for one, other in zip(expected, found, strict=True) if one.what == "block"]
    assert len(through) == 2
    for one, other in through:
        assert other.by_lag == pytest.approx(one.by_lag, rel=1e-3)


def test_a_window_is_not_reached_from_behind_its_end() -> None:
    model = build("window", window=3, embed_dim=5, model_dim=6)
    flows = gradient_flow(model, next_token_batch(rows(2, 12)), steps=[8, 11], max_lags=8)
    embedding = next(flow for flow in flows if flow.what == "embedding")
    assert all(value > 0 for value in embedding.by_lag[:3])
    assert not any(embedding.by_lag[3:])


def test_the_bound_of_a_plain_network_holds() -> None:
    model, T = build("rnn", model_dim=12), 20
    batch = next_token_batch(rows(4, T))
    flows = gradient_flow(model, batch, steps=[T - 1], max_lags=T)
    state = next(flow for flow in flows if flow.what == "state")
    with record(model) as trace:
        model.score(batch)
    (bound,) = factors(model, trace)
    U = next(p for name, p in model.named_parameters() if name.endswith("weights.hidden"))
    assert bound.factor == pytest.approx(float(torch.linalg.svdvals(U.detach())[0]))
    for lag in range(1, T):
        assert state.by_lag[lag] <= state.by_lag[1] * bound.factor ** (lag - 1) * (1 + 1e-9)


def test_a_layer_below_others_and_one_that_is_normalised_have_no_bound() -> None:
    batch = next_token_batch(rows(2, 9))
    for settings, expected in ({"num_layers": 2}, [False, True]), ({"layer_norm": "inside"}, []):
        model = build("rnn", model_dim=6, **settings)
        with torch.no_grad(), record(model) as trace:
            model.score(batch)
        assert [factor.is_bound for factor in factors(model, trace)] == expected


def test_forget_gates_say_what_memory_passes_on() -> None:
    model = build("lstm", model_dim=6)
    with torch.no_grad(), record(model) as trace:
        model.score(next_token_batch(rows(2, 9)))
    (gates,) = factors(model, trace)
    units = trace.all("forget gate")[0][1].flatten(0, 1)  # (B * T, D)
    slowest = max(float(units[:, unit].prod()) ** (1 / len(units)) for unit in range(units.shape[1]))
    assert gates.factor == pytest.approx(slowest)


def test_tanh_decays_and_the_others_hold() -> None:
    """The claim, at the start of training, where it decides what can be learned."""
    T, left = 60, {}
    for name, (family, settings) in {
        "tanh": ("rnn", {}),
        "identity": ("rnn", {"activation": "relu", "identity_init": True}),
        "lstm": ("lstm", {"forget_bias": 4.0}),
        "gpt": ("gpt", {"context": 64, "num_layers": 2, "num_heads": 4}),
    }.items():
        model = build(family, **settings, model_dim=32)
        flows = gradient_flow(model, next_token_batch(rows(8, T)), steps=[T - 1], max_lags=T - 1)
        embedding = next(flow for flow in flows if flow.what == "embedding")
        left[name] = embedding.shares()[50]
    assert left["tanh"] < 1e-4
    assert left["identity"] > 0.2
    assert left["lstm"] > 0.05
    assert left["gpt"] > 0.05


def test_what_has_nearly_vanished_is_not_zero() -> None:
    model, T = build("rnn", model_dim=8), 60
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("weights.hidden"):
                parameter.mul_(0.5)
    flows = gradient_flow(model.float(), next_token_batch(rows(2, T)), steps=[T - 1], max_lags=T - 1)
    state = next(flow for flow in flows if flow.what == "state")
    assert 0 < state.by_lag[-1] < 1e-20  # its square is below what 32 bits can hold


def test_half_life_is_the_last_time_above_a_half() -> None:
    assert Flow("", "", [9, 1, 0.6, 0.4, 0.7, 0.3], [], []).half_life() == 5
    assert Flow("", "", [9, 1, 0.9], [], []).half_life() is None
    assert Flow("", "", [9, 0.0], [], []).half_life() is None


# --- truncation -------------------------------------------------------------------------------------------------------


def test_truncation_leaves_the_whole_gradient_where_nothing_is_cut() -> None:
    model = build("gru", model_dim=6)
    batch = next_token_batch(rows(2, 16))
    found = {each.chunk: each for each in truncation(model, batch, [1, 4, 8, 15, 16, 32])}
    assert list(found) == [1, 4, 8, 15]  # a chunk as long as the text cuts nothing
    assert found[1].cosine < found[8].cosine
    assert found[15].cosine == pytest.approx(1, abs=0.02)


def test_truncation_is_the_gradient_of_states_that_are_detached() -> None:
    model = build("rnn", model_dim=6)
    batch = next_token_batch(rows(2, 6))
    (found,) = truncation(model, batch, [3])
    inputs, targets = batch.inputs["tokens"].ids, batch.targets["tokens"].ids

    def gradient(*, is_cut: bool) -> Tensor:
        model.zero_grad()
        first = Batch({"tokens": Tokens(inputs[:, :3])}, {"tokens": Tokens(targets[:, :3])})
        last = Batch({"tokens": Tokens(inputs[:, 3:])}, {"tokens": Tokens(targets[:, 3:])})
        log_probs, state = model.score(first, model.initial_state(2))
        more, _ = model.score(last, state.detach() if is_cut else state)
        (-log_probs.sum() - more.sum()).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    cut, whole = gradient(is_cut=True), gradient(is_cut=False)
    assert found.length == pytest.approx(float(cut.norm() / whole.norm()))
    assert found.cosine == pytest.approx(float(cut @ whole / cut.norm() / whole.norm()))


def test_a_window_that_is_cut_behind_its_reach_loses_only_its_embeddings() -> None:
    """Cut every step, the weights of a window still see all inputs: only what flows into earlier embeddings is lost."""
    model = build("window", window=1, embed_dim=5, model_dim=6)
    (found,) = truncation(model, next_token_batch(rows(2, 8)), [1])
    assert found.cosine == pytest.approx(1)
    assert found.length == pytest.approx(1)


# --- pairs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", ["none", "general"])
def test_gradients_of_sources_are_finite_differences(attention: str) -> None:
    torch.manual_seed(4)
    row = MODELS["seq2seq"]
    settings = {"model_dim": 6, "attention": attention, "dropout": 0.0, "shared_embeddings": "none"}
    model = row.build(row.config(**settings), schemas.of_pairs(7, 0, source_size=5)).double().eval()
    for parameter in model.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.3)
    inputs = {"source": Tokens(torch.tensor([[1, 2, 3, 0]])), "tokens": Tokens(torch.tensor([[0, 5, 6]]))}
    batch = Batch(inputs, {"tokens": Tokens(torch.tensor([[5, 6, 0]]))})
    found = source_gradients(model, batch)
    assert found.shape == (3, 4)
    table = model.body.source_embedding
    for s in range(4):
        squares = torch.zeros(3, dtype=torch.float64)
        for unit in range(table.embedding_dim):
            moved = []
            for by in (1e-5, -1e-5):
                direction = torch.zeros(4, table.embedding_dim, dtype=torch.float64)
                direction[s, unit] = by
                handle = table.register_forward_hook(lambda _, __, x, direction=direction: x + direction)
                with torch.no_grad():
                    moved.append(-model.score(batch)[0][0])
                handle.remove()
            squares += ((moved[0] - moved[1]) / 2e-5) ** 2
        torch.testing.assert_close(found[:, s], squares.sqrt(), rtol=1e-4, atol=1e-9)
