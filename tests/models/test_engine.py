"""Compiled steps against torch's, in every shape: the same numbers, and torch where no compiled step will do."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import schemas
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from steppers import (
    GPTS,
    ONE_OF_EACH,
    RECURRENT,
    SEQ2SEQ,
    SHAPES,
    TRANSFORMERS,
    VOCAB,
    Shape,
    build,
    copy_of,
    draw,
    prompt_of,
    same,
    step_along,
)
from torch import Tensor

from seqwise.data.batch import next_token_batch, prompt_batch
from seqwise.errors import ConfigError, DataError
from seqwise.inspection import record
from seqwise.layers.int8 import to_int8
from seqwise.models import MODELS
from seqwise.models.adapters import adapt
from seqwise.models.contract import State, select_rows
from seqwise.models.engine import ROWS_SETTING, SETTING, Compiles, Use, compiled_step, engine, max_rows

pytestmark = pytest.mark.usefixtures("compiled")
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
one_of_each = pytest.mark.parametrize("shape", ONE_OF_EACH, ids=lambda shape: shape.name)
MANY_ROWS = 64  # that any machine steps
STEPS = 40  # past the context of gpt, and past the places that a transformer begins with
LENGTHS = {1: [5], 3: [5, 1, 9], 5: [2, 7, 1, 7, 4]}  # of prompts


def agree(model: Any, shape: Shape, lengths: Sequence[int], steps: int = STEPS, **options: Any) -> None:
    """log p with the engine and without it."""
    prompt, said = prompt_of(shape, lengths), draw(steps, MANY_ROWS)
    found, expected = (step_along(model, prompt, said, use, **options) for use in ("on", "off"))
    assert max(float(log_probs.std()) for log_probs in expected) > 0.05  # there is something to get wrong
    same(torch.cat(found), torch.cat(expected))


def test_every_family_with_a_compiled_step_is_covered() -> None:
    covered = {shape.family for shape in SHAPES}
    for name, row in MODELS.items():
        schema = schemas.of_pairs(VOCAB) if "sequence" in row.learns else schemas.of_text(VOCAB)
        if not {"sequence", "next_token"} & set(row.learns):
            continue
        model = row.build(row.config(), schema)
        assert isinstance(getattr(model, "body", None), Compiles) == (name in covered)


@each_shape
@pytest.mark.parametrize("num_rows", LENGTHS)
def test_the_log_probabilities_are_those_of_torch(shape: Shape, num_rows: int) -> None:
    """Past the context of gpt; rows change places half-way, and what is left goes on."""
    stays = {1: ([0], [0]), 3: ([2, 0], [2, 0]), 5: ([4, 1, 0], [4, 1, 0])}[num_rows]
    agree(build(shape), shape, LENGTHS[num_rows], select=(STEPS // 2, *stays))


@one_of_each
def test_hypotheses_of_a_source_are_those_of_torch(shape: Shape) -> None:
    """Rows are doubled, and where there are sources, one of them is done."""
    sources = [0, 2] if shape.is_pair else [0, 1, 2]
    rows = [0, 0, 0, 2, 2, 2] if shape.is_pair else [2, 0, 0, 1, 2, 2]
    agree(build(shape), shape, LENGTHS[3], 20, select=(3, rows, sources))


@each_shape
def test_a_row_alone_is_the_same_row_in_company_to_the_bit(shape: Shape) -> None:
    model, said = build(shape), draw(9, 6)
    with torch.inference_mode(), engine("on"):
        _, state = model.start(prompt_of(shape, [5, 2, 4]))
        if shape.is_pair:
            state = select_rows(state, torch.tensor([0, 0, 1, 1, 2, 2]))
        else:
            state = select_rows(state, torch.tensor([2, 0, 1, 2, 0, 1]))
        alone = [
            select_rows(state, torch.tensor([row]), torch.tensor([row // 2] if shape.is_pair else []))
            for row in range(6)
        ]
        for tokens in said:
            log_probs, state = model.step(tokens, state)
            for row in range(6):
                own, alone[row] = model.step(tokens[row : row + 1], alone[row])
                assert torch.equal(own[0], log_probs[row])


@pytest.mark.parametrize("num_rows", [2, 4, 7, MANY_ROWS])
def test_as_many_rows_as_a_step_takes(num_rows: int) -> None:
    for shape in (ONE_OF_EACH[0], ONE_OF_EACH[3], ONE_OF_EACH[-1]):
        agree(build(shape), shape, [1 + row % 6 for row in range(num_rows)], 6)


def goes_to_torch(model: Any, said: Tensor, num_rows: int = 2) -> None:
    """No compiled step; and stepping gives the log-probabilities of the pass over the whole text."""
    with engine("on"):
        assert compiled_step(model, num_rows) is None
        rows = said[:num_rows]
        expected = model.score(next_token_batch(rows))[0].detach()
        log_probs, state = model.start(prompt_batch(rows[:, :1].tolist()))
        for t in range(1, rows.shape[1]):
            found = log_probs.detach().gather(1, rows[:, t : t + 1])
            torch.testing.assert_close(found[:, 0], expected[:, t - 1], atol=1e-5, rtol=0)
            assert compiled_step(model, num_rows) is None
            log_probs, state = model.step(rows[:, t], state)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("gru", {"reset": "before"}),
        *((family, {"layer_norm": "inside"}) for family in ("rnn", "gru", "lstm")),
        ("lstm", {"adaptive_softmax": True}),
        ("gpt", {"adaptive_softmax": True, "context": 12, "num_heads": 2, "num_layers": 1}),
        ("window", {"window": 3}),
    ],
)
@torch.no_grad()
def test_a_shape_that_no_compiled_step_knows_goes_to_torch(family: str, settings: dict[str, Any]) -> None:
    vocab_size = 1200 if "adaptive_softmax" in settings else VOCAB
    row = MODELS[family]
    model: Any = row.build(row.config(**{"model_dim": 16, **settings}), schemas.of_text(vocab_size))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    goes_to_torch(model.eval(), draw(2, 8, vocab_size=vocab_size))


@torch.no_grad()
def test_numbers_go_to_torch() -> None:
    model: Any = MODELS["lstm"].build(MODELS["lstm"].config(model_dim=8), schemas.of_numbers(2)).eval()
    with engine("on"):
        assert compiled_step(model, 1) is None


def adapted(shape: Shape = GPTS[0]) -> tuple[Any, Any]:
    model = build(Shape("gpt", {**shape.settings, "adapter": "lora", "adapter_rank": 2}))
    return model, MODELS["gpt"].config(**{**shape.settings, "adapter": "lora", "adapter_rank": 2})


def add_adapter(model: Any, config: Any) -> None:
    adapt(model, config, [])
    for name, parameter in model.named_parameters():
        if ".up." in name and parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)


@torch.no_grad()
def test_an_adapter_goes_to_torch() -> None:
    model, config = adapted()
    add_adapter(model, config)
    goes_to_torch(model, draw(2, 8))


@torch.no_grad()
def test_an_adapter_added_behind_a_compiled_step_is_seen() -> None:
    model, config = adapted()
    with engine("on"):
        before = step_along(model, prompt_of(GPTS[0], [3]), draw(2, 1), "on")
        add_adapter(model, config)
    goes_to_torch(model, draw(2, 8))
    after = step_along(model, prompt_of(GPTS[0], [3]), draw(2, 1), "off")
    assert (after[-1] - before[-1]).abs().max() > 1e-3


@pytest.mark.parametrize("shape", [GPTS[0], RECURRENT[3]], ids=lambda shape: shape.name)
def test_double_precision_training_gradients_recording_and_many_rows_go_to_torch(shape: Shape) -> None:
    model, said = build(shape), draw(max_rows() + 1, 6)
    with engine("on"):
        with torch.no_grad():
            assert compiled_step(model, max_rows()) is not None
            goes_to_torch(model, said, max_rows() + 1)
        assert compiled_step(model, 1) is None  # gradients are on
        goes_to_torch(model, said)
        with torch.no_grad(), record(model) as trace:
            goes_to_torch(model, said)
        assert len(trace)
        with torch.no_grad():
            goes_to_torch(model.train(), said)
            assert compiled_step(model.eval(), 1) is not None
            goes_to_torch(copy.deepcopy(model).double(), said)
    with torch.no_grad(), engine("off"):
        assert compiled_step(model, 1) is None


def test_gradients_flow_through_steps_with_the_engine_on() -> None:
    model = build(GPTS[0])
    with engine("on"):
        log_probs, state = model.start(prompt_batch([[1, 2]]))
        log_probs, _ = model.step(torch.tensor([3]), state)
        log_probs[0, 4].backward()
    assert all(weight.grad is not None for weight in model.body.blocks.parameters())


@one_of_each
def test_weights_changed_in_place_are_seen(shape: Shape) -> None:
    model = build(shape)
    agree(model, shape, [3], 2)
    before = step_along(model, prompt_of(shape, [3]), draw(2, 1), "on")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.2)
    after = step_along(model, prompt_of(shape, [3]), draw(2, 1), "on")
    assert (after[-1] - before[-1]).abs().max() > 1e-3
    agree(model, shape, [3], 2)


@one_of_each
def test_weights_that_are_replaced_are_seen(shape: Shape) -> None:
    """And what was copied before has its own."""
    model, other = build(shape), build(shape, seed=1)
    agree(model, shape, [3], 2)
    copied = copy.deepcopy(model)
    before = step_along(copied, prompt_of(shape, [3]), draw(2, 1), "on")
    model.load_state_dict(other.state_dict(), assign=True)
    after = step_along(model, prompt_of(shape, [3]), draw(2, 1), "on")
    assert torch.equal(after[-1], step_along(other, prompt_of(shape, [3]), draw(2, 1), "on")[-1])
    assert (after[-1] - before[-1]).abs().max() > 1e-3
    agree(model, shape, [3], 2)
    del other, model
    gc.collect()
    again = step_along(copied, prompt_of(shape, [3]), draw(2, 1), "on")
    assert torch.equal(again[-1], before[-1])


@torch.no_grad()
def test_weights_in_another_type_and_back_are_seen() -> None:
    shape = GPTS[0]
    model = build(shape)
    agree(model, shape, [3], 2)
    model.double()
    goes_to_torch(model, draw(2, 6))
    model.float()
    same(*(step_along(model, prompt_of(shape, [3]), draw(3, 1), use)[-1] for use in ("off", "off")))
    with engine("on"):  # compiled or not, it is right
        log_probs, state = model.start(prompt_of(shape, [3]))
        found = model.step(draw(3, 1)[0], state)[0]
    same(found, step_along(model, prompt_of(shape, [3]), draw(3, 1), "off")[1])


def test_one_new_matrix_is_seen() -> None:
    shape = GPTS[0]
    model = build(shape)
    agree(model, shape, [3], 2)
    model.main_head.output.weight = torch.nn.Parameter(model.main_head.output.weight * 0.5)
    agree(model, shape, [3], 2)


@one_of_each
def test_eight_bits_taken_behind_a_compiled_step_are_seen(shape: Shape) -> None:
    model = build(shape)
    agree(model, shape, [3], 2)
    to_int8(model)
    agree(model, shape, [3, 1], 4)


def test_a_model_is_let_go() -> None:
    model = build(GPTS[0])
    agree(model, GPTS[0], [3], 2)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@one_of_each
@pytest.mark.parametrize("token", [VOCAB, -1, 1 << 40])
def test_a_token_outside_the_vocabulary_is_refused(shape: Shape, token: int) -> None:
    model = build(shape)
    with torch.inference_mode(), engine("on"):
        _, state = model.start(prompt_of(shape, [3, 2]))
        with pytest.raises(DataError, match=f"token {token} is not in the vocabulary, which goes from 0 to 22"):
            model.step(torch.tensor([1, token]), state)


def test_learned_positions_end_as_they_do_in_torch() -> None:
    shape = Shape("transformer", {**TRANSFORMERS[2].settings, "positions": "learned", "context": 20})
    model, told = build(shape), []
    for use in ("on", "off"):
        step_along(model, prompt_of(shape, [4, 2]), draw(19, 2), use)  # the 20th token is the last
        with pytest.raises(ConfigError, match="a target of 21 tokens is longer than the 20 positions") as caught:
            step_along(model, prompt_of(shape, [4, 2]), draw(20, 2), use)
        told.append(str(caught.value))
    assert told[0] == told[1]


@torch.no_grad()
def test_sines_go_on_far_behind_the_context() -> None:
    shape = Shape("transformer", {**TRANSFORMERS[0].settings, "positions": "sinusoidal", "context": 4})
    agree(build(shape), shape, [4, 2], 70)


@one_of_each
def test_the_engine_can_be_left_and_taken_at_any_step(shape: Shape) -> None:
    """What one leaves in the state, the other goes on with."""
    model, said, prompt = build(shape), draw(STEPS, 3), prompt_of(shape, [5, 1, 9])
    expected = step_along(model, prompt, said, "off")[-1]
    with torch.inference_mode():
        log_probs, state = model.start(prompt)
        for t, tokens in enumerate(said):
            uses: tuple[Use, Use] = ("on", "off")
            with engine(uses[t // 3 % 2]):
                log_probs, state = model.step(tokens, state)
    same(log_probs, expected)


@one_of_each
def test_a_step_changes_no_branch_taken_before(shape: Shape) -> None:
    model = build(shape)
    with torch.inference_mode(), engine("on"):
        _, state = model.start(prompt_of(shape, [4]))
        for token in (1, 2):
            _, state = model.step(torch.tensor([token]), state)
        branch, again = select_rows(state, torch.tensor([0])), copy_of(state)
        model.step(torch.tensor([2]), state)
        assert torch.equal(model.step(torch.tensor([1]), branch)[0], model.step(torch.tensor([1]), again)[0])


@one_of_each
def test_a_state_that_is_not_laid_out_row_by_row(shape: Shape) -> None:
    """As views of larger tensors may be, and transposed ones."""
    model = build(shape)
    with torch.inference_mode(), engine("on"):
        _, state = model.start(prompt_of(shape, [4, 2]))
        _, state = model.step(torch.tensor([3, 4]), state)
        strided = State(_strided(state.per_row), _strided(state.memory))
        expected = model.step(torch.tensor([1, 2]), state)[0]
        found, after = model.step(torch.tensor([1, 2]), strided)
        assert torch.equal(found, expected)
        assert torch.equal(model.step(torch.tensor([1, 2]), after)[0], model.step(torch.tensor([1, 2]), state)[0])


def _strided(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    found = {}
    for name, tensor in tensors.items():
        wider = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
        wider[..., ::2] = tensor
        found[name] = wider[..., ::2]
    return found


@pytest.mark.parametrize("shape", [GPTS[0], GPTS[-1], SEQ2SEQ[7], TRANSFORMERS[0]], ids=lambda shape: shape.name)
def test_threads_that_step_one_model_at_once_do_not_disturb_each_other(shape: Shape) -> None:
    model, num = build(shape), 4
    said = [draw(30, 2, seed=number) for number in range(num)]
    prompts = [prompt_of(shape, [number + 1, 3]) for number in range(num)]

    def run(number: int) -> Tensor:
        with torch.inference_mode():
            log_probs, state = model.start(prompts[number])
            for tokens in said[number]:
                log_probs, state = model.step(tokens, state)
        return log_probs

    with engine("on"):
        expected = [run(number) for number in range(num)]
        with ThreadPoolExecutor(num) as pool:
            for _ in range(3):
                for found, alone in zip(pool.map(run, range(num)), expected, strict=True):
                    assert torch.equal(found, alone)


def test_a_setting_that_is_unknown_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(GPTS[0])
    monkeypatch.setenv(SETTING, "nonsense")
    with torch.inference_mode():
        _, state = model.start(prompt_batch([[1, 2]]))
        with pytest.raises(ConfigError, match=r"SEQWISE_ENGINE=nonsense should be one of auto, on, off\."):
            model.step(torch.tensor([1]), state)


@torch.no_grad()
def test_the_number_of_rows_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(GPTS[0])
    monkeypatch.setenv(ROWS_SETTING, "3")
    with engine("on"):
        assert compiled_step(model, 3) is not None
        goes_to_torch(model, draw(4, 6), 4)
    monkeypatch.setenv(ROWS_SETTING, "-1")
    with pytest.raises(ConfigError, match=r"SEQWISE_ENGINE_ROWS=-1 should be a number of rows, 0 or more\."):
        compiled_step(model, 1)


@pytest.mark.parametrize(("use", "is_taken"), [("on", True), ("off", False), ("auto", True)])
def test_the_environment_says_whether_it_is_taken(monkeypatch: pytest.MonkeyPatch, use: str, is_taken: bool) -> None:
    model = build(GPTS[0])
    monkeypatch.setenv(SETTING, use)
    with torch.inference_mode():
        assert (compiled_step(model, 1) is not None) == is_taken
        with engine("off"):
            assert compiled_step(model, 1) is None
        assert (compiled_step(model, 1) is not None) == is_taken


def test_a_network_of_other_hands_goes_to_torch() -> None:
    """Who has `start` and `step` continues a text, whatever else it has or has not."""

    class Mine(torch.nn.Module):
        vocab_size, context, continues = 3, None, True

        def start(self, prompt: Any) -> tuple[Tensor, State]:
            return self.step(torch.zeros(len(prompt), dtype=torch.long), State({"none": torch.zeros(len(prompt), 1)}))

        def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
            return torch.eye(3)[(tokens + 1) % 3].add(0.1).log(), state

    with torch.inference_mode(), engine("on"):
        assert compiled_step(Mine().eval(), 1) is None


def test_another_default_type_of_numbers_changes_nothing() -> None:
    """What is computed in is 32 bits, whatever torch is told to make new tensors of."""
    shape = GPTS[0]
    model, prompt, said = build(shape), prompt_of(shape, [3, 2]), draw(4, 2)
    expected = step_along(model, prompt, said, "on")
    torch.set_default_dtype(torch.float64)
    try:
        found = step_along(model, prompt, said, "on")
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(found[1:], expected[1:], strict=True))


@pytest.mark.parametrize("shape", RECURRENT[:4], ids=lambda shape: shape.name)
def test_under_autocast_a_state_in_16_bits_goes_to_torch(shape: Shape) -> None:
    model = build(shape)
    with torch.autocast("cpu", torch.bfloat16):
        expected = step_along(model, prompt_of(shape, [3, 2]), draw(4, 2), "off")
        with torch.inference_mode(), engine("on"):
            log_probs, state = model.start(prompt_of(shape, [3, 2]))
            for tokens in draw(4, 2):
                log_probs, state = model.step(tokens, state)
    same(log_probs.float(), expected[-1].float(), 0.05)


@settings(max_examples=40)
@given(
    heads=st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (6, 3), (3, 3)]),
    half_width=st.integers(1, 12),
    feed=st.integers(1, 70),
    context=st.integers(2, 24),
    vocab_size=st.integers(2, 40),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    positions=st.sampled_from(["rotary", "learned", "sinusoidal"]),
    activation=st.sampled_from(["gelu", "gelu_tanh", "squared_relu", "swiglu"]),
    is_llama=st.booleans(),
    seed=st.integers(0, 1 << 20),
)
def test_a_gpt_of_any_size_gives_the_numbers_of_torch(
    heads: tuple[int, int],
    half_width: int,
    feed: int,
    context: int,
    vocab_size: int,
    lengths: list[int],
    positions: str,
    activation: str,
    is_llama: bool,
    seed: int,
) -> None:
    shape = Shape(
        "gpt",
        {
            **{"num_layers": 1 + seed % 2, "num_heads": heads[0], "num_kv_heads": heads[1], "context": context},
            **{"model_dim": 2 * half_width * heads[0], "feed_forward_dim": feed, "positions": positions},
            **{"activation": activation, "norm": "rms" if is_llama else "layer", "biases": not is_llama},
            **{"norm_epsilon": 1e-2, "normalise_queries": half_width > 3 and seed % 3 == 0},
        },
    )
    model, prompt = build(shape, vocab_size=vocab_size, seed=seed), prompt_of(shape, lengths, vocab_size=vocab_size)
    said = draw(context + 3, len(lengths), vocab_size=vocab_size, seed=seed)
    found, expected = (torch.cat(step_along(model, prompt, said, use)) for use in ("on", "off"))
    same(found, expected, 2e-5)


@settings(max_examples=25)
@given(
    family=st.sampled_from(["rnn", "gru", "lstm", "conv", "seq2seq", "transformer"]),
    width=st.integers(1, 20),
    num_layers=st.integers(1, 3),
    vocab_size=st.integers(2, 40),
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    seed=st.integers(0, 1 << 20),
)
def test_any_family_of_any_size_gives_the_numbers_of_torch(
    family: str, width: int, num_layers: int, vocab_size: int, lengths: list[int], seed: int
) -> None:
    more: dict[str, Any] = {
        "seq2seq": {"model_dim": 2 * width, "attention": ("dot", "general", "additive", "none")[seed % 4]},
        "transformer": {"model_dim": 3 * width, "num_heads": 3, "norm": ("pre", "post")[seed % 2]},
    }.get(family, {})
    shape = Shape(family, {"model_dim": width, "num_layers": num_layers, **more})
    model, prompt = build(shape, vocab_size=vocab_size, seed=seed), prompt_of(shape, lengths, vocab_size=vocab_size)
    said = draw(20, len(lengths), vocab_size=vocab_size, seed=seed)
    found, expected = (torch.cat(step_along(model, prompt, said, use)) for use in ("on", "off"))
    # a norm of one or two numbers is steep
    same(found, expected, 1e-4 if width < 4 else 2e-5)


def test_more_steps_than_places_are_never_written() -> None:
    """Tokens that are read stay within what is allotted: there is a guard behind each part of a state."""
    for shape in ONE_OF_EACH:
        model = build(shape)
        with torch.inference_mode(), engine("on"):
            _, state = model.start(prompt_of(shape, [3, 1]))
            _, state = model.step(torch.tensor([1, 2]), state)
            guarded, guards = {}, []
            for name, tensor in state.per_row.items():
                room = torch.full((tensor.numel() + 64,), 77, dtype=tensor.dtype)
                guarded[name] = room[32:-32].view(tensor.shape).copy_(tensor)
                guards += [room[:32], room[-32:]]
            state = State(guarded, state.memory)
            for _ in range(5):
                _, state = model.step(torch.tensor([1, 2]), state)
        assert all((guard == 77).all() for guard in guards)
