"""The contract suite for families that read a source and write a target: every row of MODELS that does pairs.

What test_contract.py asks of language models, asked of these; besides, memory is shared by the hypotheses of a source.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch, Tokens, pad_rows
from seqwise.decoding import DecodingConfig, generate
from seqwise.decoding.beam import beam_search
from seqwise.errors import ConfigError
from seqwise.inspection import record
from seqwise.models import MODELS
from seqwise.models.contract import Learns, Scores, select_rows
from seqwise.settings import TrainingConfig
from seqwise.training.loop import train

VOCAB, SOURCE_VOCAB, BOUNDARY = 7, 5, 0
SMALL = {"model_dim": 8, "dropout": 0.0}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("seq2seq", {**SMALL, "attention": "none", "cell": "rnn"}),
    ("seq2seq", {**SMALL, "attention": "none", "cell": "gru", "num_layers": 2, "bidirectional": False}),
    ("seq2seq", {**SMALL, "attention": "dot", "cell": "gru"}),
    ("seq2seq", {**SMALL, "attention": "general", "num_layers": 2}),
    (
        "seq2seq",
        {**SMALL, "attention": "additive", "bidirectional": False, "shared_embeddings": "none", "embed_dim": 6},
    ),
    ("seq2seq", {**SMALL, "attention": "general", "input_feeding": True}),
    ("seq2seq", {**SMALL, "attention": "additive", "input_feeding": True, "cell": "gru", "num_layers": 2}),
    ("transformer", {**SMALL, "num_layers": 2, "num_heads": 2}),
    ("transformer", {**SMALL, "num_layers": 2, "encoder_layers": 1, "num_heads": 2, "norm": "post"}),
    ("transformer", {**SMALL, "num_layers": 1, "num_heads": 2, "positions": "learned", "context": 12}),
    ("transformer", {**SMALL, "num_layers": 2, "num_heads": 4, "shared_embeddings": "output", "activation": "gelu"}),
    (
        "transformer",
        {**SMALL, "num_layers": 2, "num_heads": 2, "norm": "post", "biases": True, "output_bias": True}
        | {"activation": "silu", "embedding_scale": 1.0},
    ),
]


def name_of(case: tuple[str, dict[str, Any]]) -> str:
    return "-".join([case[0], *(f"{k}={v}" for k, v in case[1].items() if isinstance(v, str | bool))])


each_case = pytest.mark.parametrize("case", CASES, ids=name_of)
SOURCES = [[1, 2, 3, 0], [4, 0], [2, 2, 1, 4, 3, 0]]
TARGETS = [[0, 1, 2, 3, 0], [0, 5, 0], [0, 6, 5, 4, 3, 2, 1, 0]]  # from boundary to boundary


def build(case: tuple[str, dict[str, Any]], *, is_joint: bool = False) -> Any:
    row = MODELS[case[0]]
    schema = schemas.of_pairs(VOCAB, BOUNDARY, source_size=0 if is_joint else SOURCE_VOCAB)
    model = row.build(row.config(**case[1]), schema)
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.eval()


def pair_batch(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    padded = pad_rows(targets)
    has_target = None if padded.is_token is None else padded.is_token[:, 1:]
    inputs = {"source": pad_rows(sources), "tokens": Tokens(padded.ids[:, :-1], has_target)}
    return Batch(inputs, {"tokens": Tokens(padded.ids[:, 1:], has_target)})


def prompt(sources: list[list[int]]) -> Batch:
    return Batch({"source": pad_rows(sources)}, {})


def same(a: torch.Tensor, b: torch.Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(a.double(), b.double(), atol=atol, rtol=0)


def test_every_family_of_pairs_is_covered() -> None:
    assert {case[0] for case in CASES} == {name for name, row in MODELS.items() if "sequence" in row.learns}
    for case in CASES:
        assert isinstance(build(case), Scores | Learns)


@each_case
@torch.no_grad()
def test_recording_changes_no_result(case: Any) -> None:
    model, batch = build(case), pair_batch(SOURCES, TARGETS)
    plain, (first, state) = model.score(batch)[0], model.start(prompt(SOURCES))
    tokens = torch.tensor([1, 2, 3])
    then = model.step(tokens, state)[0]
    is_target = batch.targets["tokens"].is_token
    with record(model) as trace:
        same(model.score(batch)[0][is_target], plain[is_target])
    with record(model):
        again, state = model.start(prompt(SOURCES))
        same(again, first)
        same(model.step(tokens, state)[0], then)
    for site, weights in trace.all("attention"):
        assert weights.shape[0] == len(SOURCES), site
    with record(model) as searched:
        beam_search(
            model, prompt(SOURCES), DecodingConfig(method="beam", beam_width=2, max_tokens=3), [3] * len(SOURCES)
        )
    for key in searched:
        assert len(searched.calls(key)[-1]) in (len(SOURCES), 2 * len(SOURCES)), key
    has_attention = case[1].get("attention") != "none"
    assert bool(trace.all("attention")) == has_attention


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_stepping_gives_the_log_probabilities_of_the_parallel_pass(case: Any) -> None:
    model, long = build(case), TARGETS[2]
    parallel, _ = model.score(pair_batch(SOURCES, [long] * 3))
    log_probs, state = model.start(prompt(SOURCES))
    for t in range(1, len(long)):
        same(log_probs[:, long[t]], parallel[:, t - 1])
        log_probs, state = model.step(torch.full((3,), long[t]), state)


@torch.no_grad()
@pytest.mark.parametrize("width", [32, 64, 128])
def test_padding_changes_no_score_in_double_precision(width: int) -> None:
    """In which `seqwise check` computes: kernels of torch take a mask of another type for what it is not."""
    torch.manual_seed(0)
    schema = schemas.of_kind("sequence", 40)
    row = MODELS["transformer"]
    model = row.build(row.config(model_dim=width, num_heads=4, num_layers=1), schema).double().eval()
    sources = [torch.randint(2, 40, (length,)).tolist() for length in (30, 17, 9)]
    together, _ = model.score(pair_batch(sources, TARGETS))
    for row_number, (source, target) in enumerate(zip(sources, TARGETS, strict=True)):
        alone, _ = model.score(pair_batch([source], [target]))
        same(together[row_number : row_number + 1, : len(target) - 1], alone, atol=1e-9)


@each_case
@torch.no_grad()
def test_padding_and_batch_composition_change_no_score(case: Any) -> None:
    model = build(case)
    together, _ = model.score(pair_batch(SOURCES, TARGETS))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone, _ = model.score(pair_batch([source], [target]))
        same(together[row : row + 1, : len(target) - 1], alone)


@each_case
@torch.no_grad()
def test_a_future_token_changes_no_past_output_and_the_source_changes_all(case: Any) -> None:
    model = build(case)
    before, _ = model.score(pair_batch(SOURCES[2:], TARGETS[2:]))
    after, _ = model.score(pair_batch(SOURCES[2:], [[*TARGETS[2][:4], 1, *TARGETS[2][5:]]]))
    same(after[:, :3], before[:, :3])
    assert not torch.allclose(after[:, 4:], before[:, 4:], atol=1e-4)
    other, _ = model.score(pair_batch([[1, *SOURCES[2][1:]]], TARGETS[2:]))
    assert (other - before).abs().min() > 1e-6


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_probabilities_sum_to_one(case: Any) -> None:
    model = build(case)
    log_probs, state = model.start(prompt(SOURCES))
    for t in range(4):
        assert log_probs.shape == (3, VOCAB)
        same(log_probs.exp().sum(dim=1), torch.ones(3))
        log_probs, state = model.step(torch.tensor([t, t + 1, t + 2]), state)


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_hypotheses_of_one_source_share_its_memory_and_go_on_as_alone(case: Any) -> None:
    model = build(case)
    _, state = model.start(prompt(SOURCES))
    memory = {name: tensor.data_ptr() for name, tensor in state.memory.items()}
    wide = select_rows(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    assert {name: tensor.data_ptr() for name, tensor in wide.memory.items()} == memory
    tokens = torch.tensor([1, 2, 3, 4, 5, 6])
    log_probs, wide = model.step(tokens, wide)
    crossed = select_rows(wide, torch.tensor([1, 1, 2, 3, 5, 4]))  # within each source
    more, _ = model.step(torch.tensor([6, 5, 4, 3, 2, 1]), crossed)
    for row, (source, first, second) in enumerate([(0, 2, 6), (0, 2, 5), (1, 3, 4), (1, 4, 3), (2, 6, 2), (2, 5, 1)]):
        _, alone = model.start(prompt([SOURCES[source]]))
        _, alone = model.step(torch.tensor([first]), alone)
        expected, _ = model.step(torch.tensor([second]), alone)
        same(more[row : row + 1], expected)


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_sources_that_are_done_leave_and_the_others_do_not_notice(case: Any) -> None:
    model = build(case)
    _, state = model.start(prompt(SOURCES))
    wide = select_rows(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    left = select_rows(wide, torch.tensor([5, 4, 0, 1]), torch.tensor([2, 0]))
    log_probs, _ = model.step(torch.tensor([1, 2, 3, 4]), left)
    for row, (source, token) in enumerate([(2, 1), (2, 2), (0, 3), (0, 4)]):
        _, alone = model.start(prompt([SOURCES[source]]))
        same(log_probs[row : row + 1], model.step(torch.tensor([token]), alone)[0])


@pytest.mark.usefixtures("each_way")
@each_case
@torch.no_grad()
def test_a_step_leaves_no_trace_in_a_branch_taken_before(case: Any) -> None:
    model = build(case)
    _, state = model.start(prompt(SOURCES[:1]))
    branch = select_rows(state, torch.tensor([0]))
    expected, _ = model.step(torch.tensor([1]), select_rows(state, torch.tensor([0])))
    model.step(torch.tensor([2]), state)
    same(model.step(torch.tensor([1]), branch)[0], expected)


@each_case
@torch.no_grad()
def test_a_saved_and_loaded_model_gives_the_same_numbers(case: Any) -> None:
    for is_joint in (False, True):
        model, copy = build(case, is_joint=is_joint), build(case, is_joint=is_joint)
        for parameter in copy.parameters():
            torch.nn.init.zeros_(parameter)
        copy.load_state_dict(load(save({k: v.contiguous().clone() for k, v in model.state_dict().items()})))
        batch = pair_batch(SOURCES, TARGETS)
        assert torch.equal(copy.score(batch)[0], model.score(batch)[0])


@each_case
def test_micro_batches_give_the_gradient_of_the_whole_batch(case: Any) -> None:
    model, batch = build(case), pair_batch([*SOURCES, *SOURCES], [*TARGETS, *TARGETS[::-1]])

    def gradient(parts: list[Batch]) -> list[torch.Tensor]:
        model.zero_grad()
        for part in parts:
            model.loss(part).over(batch.counts()).backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    whole = gradient([batch])
    assert any(g.abs().max() > 1e-3 for g in whole)
    for parts in (2, 3, 6):
        for a, b in zip(gradient(batch.split(parts)), whole, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


@each_case
@torch.no_grad()
def test_the_loss_is_the_negative_score_and_smoothing_asks_for_every_token_alike(case: Any) -> None:
    batch = pair_batch(SOURCES, TARGETS)
    settings = {**case[1], "label_smoothing": 0.3}
    model = build((case[0], settings))
    log_probs, _ = model.score(batch)
    is_token = batch.targets["tokens"].is_token
    counts = batch.counts()
    assert counts == {"tokens": 4 + 2 + 7}
    likelihood = log_probs[is_token].sum() / 13
    log_probs, state = model.start(prompt(SOURCES))
    uniform = 0.0
    for t in range(1, 8):
        rows = [row for row, target in enumerate(TARGETS) if t < len(target)]
        uniform += float(log_probs[rows].mean(dim=1).sum()) / 13
        tokens = torch.tensor([target[t] if t < len(target) else 0 for target in TARGETS])
        log_probs, state = model.step(tokens, state)
    expected = -0.7 * float(likelihood) - 0.3 * uniform
    assert float(model.train().loss(batch).over(counts)) == pytest.approx(expected, abs=1e-5)
    assert float(model.eval().loss(batch).over(counts)) == pytest.approx(-float(likelihood), abs=1e-5)


@each_case
@torch.no_grad()
def test_alignments_are_shares_of_the_source_alone(case: Any) -> None:
    model = build(case)
    found = model.align(pair_batch(SOURCES, TARGETS))
    if case[1].get("attention") == "none":
        assert found is None
        return
    assert found.shape == (3, 7, 6)
    same(found.sum(dim=-1), torch.ones(3, 7))
    assert not found[0, :, 4:].any()
    assert not found[1, :, 2:].any()
    alone = model.align(pair_batch(SOURCES[:1], TARGETS[:1]))
    same(found[:1, :4, :4], alone)


@pytest.mark.usefixtures("each_way")
@each_case
def test_a_sentence_is_translated_alike_alone_and_in_a_batch(case: Any) -> None:
    model = build(case)
    for method, width in (("greedy", 1), ("beam", 3)):
        config = DecodingConfig(
            method=method, beam_width=width, num_results=width, max_tokens=9, length_penalty=1.0, stop=BOUNDARY
        )
        limits = [9, 5, 7]
        together = generate(model, prompt(SOURCES), config, limits=limits)
        for source, found, limit in zip(SOURCES, together, limits, strict=True):
            (alone,) = generate(model, prompt([source]), config, limits=[limit])
            assert [h.tokens for h in found] == [h.tokens for h in alone]
            assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in alone], abs=1e-4)
            assert all(len(h.tokens) <= limit for h in found)


@pytest.mark.usefixtures("each_way")
@each_case
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"length_penalty": 1.0},
        {"length_penalty": 0.6, "length_form": "gnmt", "min_tokens": 2},
        {"length_penalty": 0.5, "repetition_penalty": 1.7},
    ],
)
def test_a_beam_as_wide_as_all_texts_finds_what_exhaustive_search_finds(case: Any, more: dict[str, Any]) -> None:
    model, limits = build(case), [3, 2, 3]
    exhaustive = DecodingConfig(method="exhaustive", max_tokens=3, num_results=4, stop=BOUNDARY, **more)
    wide = replace(exhaustive, method="beam", beam_width=VOCAB**2)
    best = generate(model, prompt(SOURCES), exhaustive, limits=limits)
    with torch.inference_mode():
        found = beam_search(model, prompt(SOURCES), wide, limits)
    for mine, expected in zip(found, best, strict=True):
        assert [h.tokens for h in mine] == [h.tokens for h in expected]
        assert [h.log_prob for h in mine] == pytest.approx([h.log_prob for h in expected], abs=1e-4)
        assert all(len(h.tokens) >= more.get("min_tokens", 0) for h in mine)
        assert (mine[0].ranked_by is not None) == ("repetition_penalty" in more)


def test_guesses_take_the_place_of_the_truth_ever_more_often() -> None:
    model = build(("seq2seq", {**SMALL, "scheduled_sampling": 5.0})).train()
    batch = pair_batch(SOURCES * 40, TARGETS * 40)
    inputs = batch.inputs["tokens"]

    def share() -> float:
        mixed = model._with_guesses(inputs, model.body.read({"source": batch.inputs["source"]}))
        assert torch.equal(mixed.ids[:, 0], inputs.ids[:, 0])
        hidden, _ = model.body.decode(inputs, model.body.read({"source": batch.inputs["source"]}))
        guesses = model.head.expect(hidden[:, :-1]).argmax(dim=-1)
        differ = guesses != inputs.ids[:, 1:]
        return float((mixed.ids[:, 1:] == guesses)[differ].float().mean())

    assert share() == pytest.approx(1 - 5 / 6, abs=0.08)
    model.updates += 20
    assert share() == pytest.approx(1 - 5 / (5 + 2.718281828**4), abs=0.05)
    assert "updates" in model.state_dict()


@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_scheduled_sampling_counts_updates_however_many_parts_a_batch_has(micro_batches: int) -> None:
    model, batch = build(("seq2seq", {**SMALL, "scheduled_sampling": 5.0})).train(), pair_batch(SOURCES, TARGETS)
    batches = SimpleNamespace(batch=lambda step, model: batch)
    list(train(model, batches, TrainingConfig(steps=4, micro_batches=micro_batches)))
    assert int(model.updates) == 4


def test_a_source_beyond_learned_positions_is_told_and_sines_go_on() -> None:
    learned = build(("transformer", {**SMALL, "num_layers": 1, "num_heads": 2, "positions": "learned", "context": 8}))
    with pytest.raises(ConfigError, match="a source of 9 tokens is longer than the 8 positions"):
        learned.start(prompt([[1] * 9]))
    sines = build(("transformer", {**SMALL, "num_layers": 1, "num_heads": 2, "context": 4}))
    with torch.no_grad():
        log_probs, _ = sines.start(prompt([[1] * 50]))
    same(log_probs.exp().sum(), torch.tensor(1.0))
