"""The contract suite: one module, every row of MODELS. A new family is covered by adding its row to CASES.

A check that does not apply to a family is named in its case, with the reason; the last test prints that list.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch, next_token_batch, pad_rows, prompt_batch
from seqwise.inspection import record
from seqwise.layers.notes import is_recorded
from seqwise.models import MODELS
from seqwise.models.contract import Learns, State, select_rows
from seqwise.models.gpt import GPT2, LLAMA

VOCAB, CONTEXT = 7, 12
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Case:
    """One configuration of a family, small and with weights that are not all alike."""

    family: str
    settings: dict[str, Any]
    does_not_apply: dict[str, str] = field(default_factory=dict)
    spread: float = 0.5
    """Of the random weights; smaller where nothing bounds the state."""

    @property
    def name(self) -> str:
        shown = [f"{k}={v}" for k, v in self.settings.items() if isinstance(v, str | bool)]
        return "-".join([self.family, *shown])


NO_GRADIENT = {"micro-batches": "learns by counting: there is no gradient", "training": "learns by counting"}
NO_GRADIENT_EM = {"micro-batches": "learns by EM: there is no gradient", "training": "learns by EM"}
NO_GRADIENT_HOGWILD = {"micro-batches": "learns from one word at a time", "training": "has no state of training"}
TWO_TERMS = {"loss": "its objective has a term for each direction (tests/models/test_elmo.py)"}
GPT = {"context": CONTEXT, "num_layers": 2, "model_dim": 16, "num_heads": 2}
CASES = [
    Case("ngram", {"order": 3}, NO_GRADIENT),
    Case("ngram", {"order": 4, "across_lines": False}, NO_GRADIENT),
    Case("ngram", {"order": 1}, NO_GRADIENT),
    Case("ngram", {"order": 3, "smoothing": "kneser_ney"}, NO_GRADIENT),
    Case("ngram", {"order": 3, "smoothing": "katz"}, NO_GRADIENT),
    Case("ngram", {"order": 3, "smoothing": "stupid"}, NO_GRADIENT),
    Case("ngram", {"order": 3, "smoothing": "add_delta"}, NO_GRADIENT),
    Case("ngram", {"order": 3, "smoothing": "maximum_likelihood"}, NO_GRADIENT),
    Case("ngram", {"order": 4, "min_count": 2, "prune": 1e-3}, NO_GRADIENT),
    Case("hmm", {"num_states": 4}, NO_GRADIENT_EM),
    Case("hmm", {"num_states": 4, "smoothing": 0.0}, NO_GRADIENT_EM),
    Case("hmm", {"num_states": 9, "smoothing": 0.5}, NO_GRADIENT_EM),
    Case("window", {"window": 4, "embed_dim": 5, "model_dim": 8}),
    Case("window", {"window": 3, "embed_dim": 5, "model_dim": 8, "num_layers": 2, "direct_connections": True}),
    Case("window", {"window": 1, "embed_dim": 8, "model_dim": 8, "tied_embeddings": True}),
    Case("conv", {"model_dim": 8, "num_layers": 3}),
    Case("conv", {"model_dim": 8, "num_layers": 3, "kernel_size": 2, "max_dilation": 2, "tied_embeddings": True}),
    Case("rnn", {"model_dim": 8, "num_layers": 2}),
    Case("rnn", {"model_dim": 8, "activation": "relu", "identity_init": True}, spread=0.3),
    Case("rnn", {"model_dim": 8, "layer_norm": "inside"}),
    Case("gru", {"model_dim": 8, "num_layers": 2}),
    Case("gru", {"model_dim": 8, "reset": "before"}),
    Case("gru", {"model_dim": 8, "layer_norm": "inside", "num_layers": 2}),
    Case("lstm", {"model_dim": 8, "num_layers": 2}),
    Case("lstm", {"model_dim": 8, "tied_embeddings": True}),
    Case("lstm", {"model_dim": 8, "layer_norm": "inside"}),
    Case("lstm", {"model_dim": 8, "num_layers": 2, "layer_norm": "between", "projection_dim": 5}),
    Case("lstm", {"model_dim": 8, "num_layers": 3, "connections": "residual"}),
    Case("lstm", {"model_dim": 8, "num_layers": 3, "connections": "highway"}),
    Case("lstm", {"model_dim": 8, "num_layers": 3, "connections": "dense", "embed_dim": 5}),
    Case("word2vec", {"embed_dim": 4, "window": 2}, NO_GRADIENT_HOGWILD),
    Case("word2vec", {"embed_dim": 4, "window": 2, "hierarchical": True}, NO_GRADIENT_HOGWILD),
    Case("elmo", {"model_dim": 6, "memory_dim": 10, "num_filters": 2}, TWO_TERMS),
    Case("gpt", {**GPT, "positions": "rotary"}),
    Case("gpt", {**GPT, "positions": "rotary", "normalise_queries": False}),
    Case("gpt", {**GPT, "positions": "learned", "activation": "gelu", "normalise_queries": False}),
    Case("gpt", {**GPT, "positions": "sinusoidal", "tied_embeddings": True}),
    Case("gpt", {**GPT2, **GPT}),
    Case("gpt", {**LLAMA, **GPT, "num_kv_heads": 1}),
    Case("gpt", {**GPT, "num_heads": 4, "num_kv_heads": 2, "biases": True, "activation": "swiglu"}),
    Case("gpt", {**GPT, "norm": "rms", "biases": True, "rotary_base": 100.0, "embedding_scale": 2.0}),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def build(case: Case) -> Any:
    """A model whose weights differ from each other: random ones, or counts of a random text."""
    row = MODELS[case.family]
    model = row.build(row.config(**case.settings), schemas.of_text(VOCAB))
    if row.learns["next_token"] == "counting":
        text = np.random.default_rng(0).integers(VOCAB, size=200)
        model.fit(np.concatenate([[0], text]))
        return model
    if row.learns["next_token"] == "em":
        texts = [np.random.default_rng(0).integers(VOCAB, size=200)]
        model.initialise(texts, seed=0)
        for _ in range(3):
            model.em_step(texts)
        return model
    if row.learns["next_token"] == "hogwild":
        for _ in model.fit(np.random.default_rng(0).integers(VOCAB, size=200), steps=20, learning_rate=0.5):
            pass
        return model
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=case.spread)
    return model.eval()


def random_rows(num_rows: int, length: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(VOCAB, (num_rows, length), generator=torch.Generator().manual_seed(seed))


def needs(case: Case, check: str) -> None:
    if check in case.does_not_apply:
        pytest.skip(f"{check} does not apply: {case.does_not_apply[check]}")


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a.double(), b.double(), atol=TOLERANCE, rtol=0)


def copy_of(state: State) -> State:
    return State({k: v.clone() for k, v in state.per_row.items()}, state.memory)


def test_every_family_is_covered() -> None:
    """Families that read no text have their own suite (test_kalman.py)."""
    assert {case.family for case in CASES} == {name for name, row in MODELS.items() if "next_token" in row.learns}


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_stepping_gives_the_log_probabilities_of_the_parallel_pass(case: Case) -> None:
    model, rows = build(case), random_rows(3, CONTEXT)
    parallel, _ = model.score(next_token_batch(rows))
    log_probs, state = model.start(prompt_batch(rows[:, :1].tolist()))
    for t in range(1, CONTEXT):
        same(log_probs.gather(1, rows[:, t : t + 1]).squeeze(1), parallel[:, t - 1])
        log_probs, state = model.step(rows[:, t], state)


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_a_long_prompt_is_the_same_as_many_steps(case: Case) -> None:
    model, rows = build(case), random_rows(2, 6)
    at_once, state_at_once = model.start(prompt_batch(rows.tolist()))
    log_probs, state = model.start(prompt_batch(rows[:, :2].tolist()))
    for t in range(2, 6):
        log_probs, state = model.step(rows[:, t], state)
    same(log_probs, at_once)
    more = torch.tensor([1, 2])
    same(model.step(more, state)[0], model.step(more, state_at_once)[0])


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_prompts_of_different_lengths_do_not_disturb_each_other(case: Case) -> None:
    model = build(case)
    prompts = [random_rows(1, length, seed=length)[0].tolist() for length in (1, 5, 3)]
    together, state = model.start(prompt_batch(prompts))
    tokens = torch.tensor([1, 2, 3])
    alone = [model.start(prompt_batch([prompt])) for prompt in prompts]
    same(together, torch.cat([log_probs for log_probs, _ in alone]))
    for _ in range(3):
        together, state = model.step(tokens, state)
        alone = [model.step(tokens[i : i + 1], s) for i, (_, s) in enumerate(alone)]
        same(together, torch.cat([log_probs for log_probs, _ in alone]))


@each_case
@torch.no_grad()
def test_padding_and_batch_composition_change_no_score(case: Case) -> None:
    model = build(case)
    long, short = random_rows(1, 9)[0].tolist(), random_rows(1, 4, seed=2)[0].tolist()
    padded = pad_rows([long, short])
    together, _ = model.score(next_token_batch(padded.ids, padded.is_token))
    for row, tokens in enumerate([long, short]):
        alone, _ = model.score(next_token_batch(torch.tensor([tokens])))
        same(together[row : row + 1, : len(tokens) - 1], alone)


@each_case
@torch.no_grad()
def test_a_future_token_changes_no_past_output(case: Case) -> None:
    model, rows = build(case), random_rows(2, CONTEXT)
    before, _ = model.score(next_token_batch(rows))
    changed = rows.clone()
    changed[:, 7] = (changed[:, 7] + 1) % VOCAB
    after, _ = model.score(next_token_batch(changed))
    same(after[:, :6], before[:, :6])  # target 6 is token 7 itself
    if case.settings.get("order") != 1:
        assert not torch.allclose(after[:, 7:].double(), before[:, 7:].double(), atol=1e-4)


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_probabilities_sum_to_one(case: Case) -> None:
    model = build(case)
    log_probs, state = model.start(prompt_batch([[0], [3]]))
    for t in range(4):
        assert log_probs.shape == (2, VOCAB)
        same(log_probs.exp().sum(dim=1), torch.ones(2))
        log_probs, state = model.step(torch.tensor([t, t + 1]), state)


@each_case
@torch.no_grad()
def test_chunks_with_carried_state_give_the_score_of_the_whole(case: Case) -> None:
    model, rows = build(case), random_rows(2, CONTEXT + 1)
    whole, _ = model.score(next_token_batch(rows))
    state, scores = model.initial_state(2), []
    for a, b in ((0, 5), (5, 6), (6, CONTEXT)):
        log_probs, state = model.score(next_token_batch(rows[:, a : b + 1]), state)
        scores.append(log_probs)
    same(torch.cat(scores, dim=1), whole)


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_selected_rows_go_on_as_they_would_alone(case: Case) -> None:
    model = build(case)
    _, state = model.start(prompt_batch(random_rows(3, 4).tolist()))
    branched = select_rows(state, torch.tensor([2, 0, 2]))
    tokens = torch.tensor([1, 2, 3])
    alone = [select_rows(state, torch.tensor([i])) for i in (2, 0, 2)]
    expected = [model.step(t.view(1), row)[0] for t, row in zip(tokens, alone, strict=True)]
    same(model.step(tokens, branched)[0], torch.cat(expected))


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_a_step_leaves_no_trace_in_a_branch_taken_before(case: Case) -> None:
    model = build(case)
    _, state = model.start(prompt_batch(random_rows(1, 4).tolist()))
    branch = select_rows(state, torch.tensor([0]))
    expected, _ = model.step(torch.tensor([1]), copy_of(state))
    model.step(torch.tensor([2]), state)
    same(model.step(torch.tensor([1]), branch)[0], expected)


@each_case
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_the_same_numbers(case: Case) -> None:
    model, batch = build(case), next_token_batch(random_rows(2, 8))
    row = MODELS[case.family]
    copy = row.build(row.config(**case.settings), schemas.of_text(VOCAB))
    copy.load_state_dict(load(save({k: v.contiguous().clone() for k, v in model.state_dict().items()})))
    if hasattr(copy, "eval"):
        copy.eval()
    assert torch.equal(copy.score(batch)[0], model.score(batch)[0])


@each_case
@torch.no_grad()
def test_recording_changes_no_result_and_sees_every_step(case: Case) -> None:
    model, rows = build(case), random_rows(3, CONTEXT)
    batch, prompts = next_token_batch(rows), prompt_batch(rows[:, :4].tolist())
    plain, (first, state) = model.score(batch)[0], model.start(prompts)
    then = model.step(rows[:, 4], state)[0]
    with record(model) as trace:
        same(model.score(batch)[0], plain)
    with record(model) as written:
        again, state = model.start(prompts)
        same(again, first)
        same(model.step(rows[:, 4], state)[0], then)
    assert set(written) == set(trace)
    for key in written:
        assert written[key].shape[2 if key[1] == "attention" else 1] == 5
    assert len(trace)
    for site, what in trace:
        value = trace[site, what]
        assert value.shape[0] == 3
        assert value.shape[2 if what == "attention" else 1] == CONTEXT - 1
        if what in ("attention", "belief"):
            same(value.sum(dim=-1), torch.ones(value.shape[:-1]))
        if what.endswith("gate"):
            assert (value >= 0).all()
            assert (value <= 1).all()
    assert not is_recorded()


@each_case
def test_recording_a_training_pass_changes_no_gradient(case: Case) -> None:
    needs(case, "training")
    model, batch = build(case), next_token_batch(random_rows(3, CONTEXT))
    counts, found = batch.counts(), []
    for recorded in (False, True):
        model.zero_grad()
        with record(model) if recorded else nullcontext():
            model.loss(batch).over(counts).backward()
        found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert found[0]
    for plain, seen in zip(*found, strict=True):
        same(plain, seen)


@each_case
def test_micro_batches_give_the_gradient_of_the_whole_batch(case: Case) -> None:
    needs(case, "micro-batches")
    model = build(case)
    padded = pad_rows([random_rows(1, n, seed=n)[0].tolist() for n in (9, 2, 7, 4, 3)])
    batch = next_token_batch(padded.ids, padded.is_token)

    def gradient(parts: list[Batch]) -> list[torch.Tensor]:
        model.zero_grad()
        for part in parts:
            model.loss(part).over(batch.counts()).backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    whole = gradient([batch])
    assert any(g.abs().max() > 1e-3 for g in whole)
    for parts in (2, 4, 5):
        for a, b in zip(gradient(batch.split(parts)), whole, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


@each_case
def test_the_loss_is_the_negative_score_and_its_counts_come_from_the_batch(case: Case) -> None:
    needs(case, "training")
    needs(case, "loss")
    model = build(case)
    assert isinstance(model, Learns)
    padded = pad_rows([[1, 2, 3, 4], [5, 6]])
    batch = next_token_batch(padded.ids, padded.is_token)
    loss, (log_probs, _) = model.loss(batch), model.score(batch)
    assert batch.counts() == {"tokens": 4} == {"tokens": loss.terms["tokens"].count}
    same(loss.over(batch.counts()), -(log_probs[0].sum() + log_probs[1, 0]) / 4)


def test_what_does_not_apply_is_listed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    left_out = {f"{case.family}: {check}: {why}" for case in CASES for check, why in case.does_not_apply.items()}
    assert all(len(line.split()) >= 4 for line in left_out)
    with capsys.disabled():
        sys.stdout.write("\n".join(["", "contract suite, what does not apply:", *sorted(left_out), ""]))
