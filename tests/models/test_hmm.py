"""The HMM against enumeration of all paths of tiny cases, against hmmlearn, and against models that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from seqwise.data.batch import (
    Batch,
    Tokens,
    Values,
    next_token_batch,
    next_value_batch,
    pad_rows,
    prompt_batch,
)
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.kernels.hidden_chain import plain_expectations
from seqwise.models import hmm
from seqwise.models.contract import State
from seqwise.models.hmm import HMM, HMMConfig, Observed
from seqwise.settings import TrainingConfig
from seqwise.training.em import expect_and_maximise
from seqwise.training.loop import Hooks

COLUMNS = 2


def empty_text_hmm(num_states: int, vocab_size: int, **settings: float) -> HMM:
    return HMM(HMMConfig(num_states=num_states, **settings), schemas.of_text(vocab_size))


def empty_numbers_hmm(num_states: int, num_columns: int = COLUMNS, **settings: float) -> HMM:
    return HMM(HMMConfig(num_states=num_states, **settings), schemas.of_numbers(num_columns))


def text_hmm(num_states: int, vocab_size: int, seed: int = 0, *, peaked: float = 1.0, **settings: float) -> HMM:
    """Random probabilities; the nearer `peaked` is to 0, the less alike they are."""
    model, random = empty_text_hmm(num_states, vocab_size, **settings), np.random.default_rng(seed)
    model.initial = random.dirichlet(np.ones(num_states))
    model.transition = random.dirichlet(np.full(num_states, peaked), size=num_states)
    model.emission = random.dirichlet(np.full(vocab_size, peaked), size=num_states)
    return model


def numbers_hmm(num_states: int, seed: int = 0, **settings: float) -> HMM:
    model, random = empty_numbers_hmm(num_states, **settings), np.random.default_rng(seed)
    model.initial = random.dirichlet(np.ones(num_states))
    model.transition = random.dirichlet(np.ones(num_states), size=num_states)
    model.mean = random.normal(scale=2.0, size=(num_states, COLUMNS))
    model.scale = random.uniform(0.5, 1.5, size=(num_states, COLUMNS))
    return model


def random_ids(length: int, vocab_size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(vocab_size, size=length)


def random_numbers(length: int, seed: int = 0, share_missing: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    is_observed = random.random((length, COLUMNS)) >= share_missing
    return np.where(is_observed, random.normal(scale=2.0, size=(length, COLUMNS)), 0.0), is_observed


def likelihood_of(model: HMM, sequence: Observed) -> np.ndarray:
    """p(x_t | j), (T, Z), written out."""
    if not isinstance(sequence, tuple):
        return model.emission[:, sequence].T
    values, is_observed = sequence
    normal = torch.distributions.Normal(torch.tensor(model.mean), torch.tensor(model.scale))
    density = normal.log_prob(torch.tensor(values).unsqueeze(1)).exp().numpy()  # (T, Z, C)
    return density.prod(axis=2) if is_observed is None else np.where(is_observed[:, None], density, 1.0).prod(axis=2)


def all_paths(model: HMM, sequence: Observed) -> dict[tuple[int, ...], float]:
    """p(path, sequence) of every path."""
    likelihood = likelihood_of(model, sequence)
    found = {}
    for path in product(range(model.config.num_states), repeat=len(likelihood)):
        moves = math.prod(model.transition[i, j] for i, j in pairwise(path))
        shows = math.prod(likelihood[t, j] for t, j in enumerate(path))
        found[path] = model.initial[path[0]] * moves * shows
    return found


CASES: list[Any] = [
    pytest.param(text_hmm(3, 4), random_ids(6, 4), id="text"),
    pytest.param(text_hmm(1, 4), random_ids(5, 4), id="one state"),
    pytest.param(text_hmm(4, 2), random_ids(5, 2), id="more states than symbols"),
    pytest.param(text_hmm(3, 4), random_ids(1, 4), id="one step"),
    pytest.param(text_hmm(3, 1), random_ids(4, 1), id="one symbol"),
    pytest.param(numbers_hmm(3), (random_numbers(6)[0], None), id="numbers"),
    pytest.param(numbers_hmm(3), random_numbers(6), id="numbers, some missing"),
    pytest.param(numbers_hmm(2), random_numbers(5, share_missing=1.0), id="numbers, all missing"),
]
each_case = pytest.mark.parametrize(("model", "sequence"), CASES)


# -- by enumeration of all paths --------------------------------------------------------------------------------------


@each_case
def test_the_likelihood_is_the_sum_over_all_paths(model: HMM, sequence: Observed) -> None:
    expected = math.log(sum(all_paths(model, sequence).values()))
    assert model.log_likelihood([sequence]) == pytest.approx(expected, abs=1e-10)
    assert plain_expectations(model.initial, model.transition, likelihood_of(model, sequence))[0] == pytest.approx(
        expected, abs=1e-10
    )


@each_case
def test_posteriors_are_shares_of_all_paths(model: HMM, sequence: Observed) -> None:
    paths = all_paths(model, sequence)
    expected = np.zeros_like(likelihood_of(model, sequence))
    for path, joint in paths.items():
        expected[np.arange(len(path)), path] += joint / sum(paths.values())
    np.testing.assert_allclose(model.posteriors(sequence), expected, atol=1e-12)


@each_case
def test_viterbi_finds_the_best_of_all_paths(model: HMM, sequence: Observed) -> None:
    paths = all_paths(model, sequence)
    path, log_joint = model.viterbi(sequence)
    assert log_joint == pytest.approx(math.log(max(paths.values())), abs=1e-10)
    assert paths[tuple(path)] == pytest.approx(max(paths.values()), rel=1e-10)


@each_case
@pytest.mark.parametrize("steps_kept", [1, 2, 4, 1000])
def test_expected_counts_are_those_of_the_plain_equations_however_few_steps_are_kept(
    model: HMM, sequence: Observed, steps_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hmm, "KEPT", steps_kept * model.config.num_states)
    sequences = [sequence, sequence]
    data = model._join(sequences)
    rows, table = model._likelihoods(data)
    log_likelihood, first, pairs, visits = model._expect(rows, data.offsets, table)
    expected = plain_expectations(model.initial, model.transition, likelihood_of(model, sequence))
    assert log_likelihood == pytest.approx(2 * expected[0], abs=1e-10)
    np.testing.assert_allclose(first, 2 * expected[1][0], atol=1e-12)
    np.testing.assert_allclose(pairs, 2 * expected[2], atol=1e-12)
    np.testing.assert_allclose(visits.sum(axis=0), 2 * expected[1].sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(model.posteriors(sequence), expected[1], atol=1e-12)


# -- the verbs --------------------------------------------------------------------------------------------------------


def test_scores_of_tokens_are_quotients_of_sums_over_all_paths() -> None:
    model, ids = text_hmm(3, 4), random_ids(6, 4)
    log_probs, _ = model.score(next_token_batch(torch.tensor(ids[None])))
    for t in range(1, 6):
        upto, before = (sum(all_paths(model, ids[:n]).values()) for n in (t + 1, t))
        assert log_probs[0, t - 1].item() == pytest.approx(math.log(upto / before), abs=1e-10)
    total = model.log_likelihood([ids]) - model.log_likelihood([ids[:1]])  # the first token is read, not predicted
    assert log_probs.sum().item() == pytest.approx(total, abs=1e-10)


def test_scores_of_numbers_are_quotients_of_sums_over_all_paths() -> None:
    model = numbers_hmm(3)
    values, is_observed = random_numbers(6)
    is_observed[0] = False  # how a series begins
    batch = next_value_batch(torch.tensor(values[None]), torch.tensor(is_observed[None]))
    log_probs, _ = model.score(batch)
    for t in range(1, 6):
        upto, before = (sum(all_paths(model, (values[:n], is_observed[:n])).values()) for n in (t + 1, t))
        assert log_probs[0, t - 1].item() == pytest.approx(math.log(upto / before), abs=1e-10)
    assert log_probs.sum().item() == pytest.approx(model.log_likelihood([(values, is_observed)]), abs=1e-10)


def test_stepping_through_tokens_gives_the_scores() -> None:
    model, rows = text_hmm(3, 5), torch.tensor(random_ids(24, 5).reshape(3, 8))
    expected, after = model.score(next_token_batch(rows))
    log_probs, state = model.start(prompt_batch(rows[:, :1].tolist()))
    for t in range(1, 8):
        torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(3, dtype=torch.float64))
        torch.testing.assert_close(log_probs.gather(1, rows[:, t : t + 1])[:, 0], expected[:, t - 1])
        if t == 7:
            torch.testing.assert_close(state.per_row["belief"], after.per_row["belief"])
        log_probs, state = model.step(rows[:, t], state)


def test_stepping_through_numbers_gives_distributions_with_the_scores() -> None:
    model = numbers_hmm(3)
    values = torch.randn(2, 7, COLUMNS, dtype=torch.float64)
    is_observed = torch.ones_like(values, dtype=torch.bool)
    is_observed[:, 0] = False
    is_observed[1, 3] = False
    expected, _ = model.score(next_value_batch(values, is_observed))
    following, state = model.start(Batch({"values": Values(values[:, :1], is_observed[:, :1])}, {}))
    for t in range(1, 7):
        log_probs = following.log_prob(values[:, t])
        for row in range(2):
            wanted = log_probs[row] if is_observed[row, t].all() else torch.zeros((), dtype=torch.float64)
            torch.testing.assert_close(wanted, expected[row, t - 1])
        following, state = model.step(values[:, t], state, is_observed[:, t])
    assert following.mean.shape == following.sample().shape == (2, COLUMNS)
    torch.testing.assert_close(following.mean, state.per_row["belief"] @ torch.tensor(model.mean))


def test_a_number_missing_in_one_column_leaves_the_others_to_say_what_they_say() -> None:
    model, alone = numbers_hmm(3), empty_numbers_hmm(3, 1)
    for name in ("initial", "transition"):
        setattr(alone, name, getattr(model, name))
    alone.mean, alone.scale = model.mean[:, 1:], model.scale[:, 1:]
    values = np.random.default_rng(0).normal(size=(9, COLUMNS))
    there = np.tile([False, True], (9, 1))
    assert model.log_likelihood([(values, there)]) == pytest.approx(alone.log_likelihood([(values[:, 1:], None)]))
    np.testing.assert_allclose(model.posteriors((values, there)), alone.posteriors((values[:, 1:], None)))


def test_chunks_with_carried_state_give_the_score_of_the_whole() -> None:
    text, rows = text_hmm(3, 5), torch.tensor(random_ids(26, 5).reshape(2, 13))
    numbers = numbers_hmm(3)
    values, is_observed = (torch.tensor(a).reshape(2, 13, COLUMNS) for a in random_numbers(26))

    def chunk(model: HMM, a: int, b: int) -> Batch:
        if model is text:
            return next_token_batch(rows[:, a : b + 1])
        return next_value_batch(values[:, a : b + 1], is_observed[:, a : b + 1])

    for model in (text, numbers):
        whole, after = model.score(chunk(model, 0, 12))
        state, scores = model.initial_state(2), []
        for a, b in ((0, 5), (5, 6), (6, 12)):
            log_probs, state = model.score(chunk(model, a, b), state)
            scores.append(log_probs)
        torch.testing.assert_close(torch.cat(scores, dim=1), whole)
        torch.testing.assert_close(state.per_row["belief"], after.per_row["belief"])


def test_padding_changes_nothing_and_is_not_looked_at() -> None:
    model = text_hmm(3, 5)
    padded = pad_rows([random_ids(9, 5, seed=1).tolist(), random_ids(4, 5, seed=2).tolist()])
    assert padded.is_token is not None
    padded.ids[~padded.is_token] = 999
    together, state = model.score(next_token_batch(padded.ids, padded.is_token))
    alone, alone_state = model.score(next_token_batch(padded.ids[1:, :4]))
    torch.testing.assert_close(together[1:, :3], alone)
    assert (together[1, 3:] == 0).all()
    torch.testing.assert_close(state.per_row["belief"][1:], alone_state.per_row["belief"])


def test_padding_of_numbers_changes_nothing_and_is_not_looked_at() -> None:
    model, values = numbers_hmm(3), torch.randn(2, 6, COLUMNS)
    values[1, 4:] = float("nan")
    is_step = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    batch = Batch(
        {"values": Values(values[:, :-1], None, is_step[:, 1:])},
        {"values": Values(values[:, 1:], None, is_step[:, 1:])},
    )
    together, state = model.score(batch)
    alone, alone_state = model.score(next_value_batch(values[1:, :4]))
    torch.testing.assert_close(together[1:, :3], alone)
    assert (together[1, 3:] == 0).all()
    torch.testing.assert_close(state.per_row["belief"][1:], alone_state.per_row["belief"])


def test_tags_are_the_best_paths_of_the_rows() -> None:
    text, padded = text_hmm(3, 5), pad_rows([random_ids(7, 5, seed=1).tolist(), random_ids(4, 5, seed=2).tolist()])
    numbers, values, is_observed = numbers_hmm(3), torch.randn(2, 7, COLUMNS), torch.rand(2, 7, COLUMNS) > 0.3
    is_step = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    for model, batch in (
        (text, Batch({"tokens": padded}, {})),
        (numbers, Batch({"values": Values(values, is_observed, is_step)}, {})),
    ):
        found = model.predict(batch)
        assert found.log_probs is not None
        assert (found.answers.shape, found.log_probs.shape) == ((2, 7), (2, 7, 3))
        for row, length in ((0, 7), (1, 4)):
            sequence: Observed = padded.ids[row, :length].numpy()
            if model is numbers:
                sequence = (values[row, :length].double().numpy(), is_observed[row, :length].numpy())
            assert (found.answers[row, :length].numpy() == model.viterbi(sequence)[0]).all()
            np.testing.assert_allclose(found.log_probs[row, :length].exp().numpy(), model.posteriors(sequence))


def test_nothing_to_read_is_nothing_read() -> None:
    model = text_hmm(3, 5)
    log_probs, state = model.score(
        Batch({"tokens": Tokens(torch.zeros(2, 0).long())}, {"tokens": Tokens(torch.zeros(2, 0).long())})
    )
    assert log_probs.shape == (2, 0)
    torch.testing.assert_close(state.per_row["belief"], model.initial_state(2).per_row["belief"])


@pytest.mark.parametrize("make", [lambda: text_hmm(3, 5), lambda: numbers_hmm(3)], ids=["text", "numbers"])
def test_a_saved_and_loaded_model_is_the_same(make: Callable[[], HMM]) -> None:
    model = make()
    copy = empty_numbers_hmm(3) if model.reads_numbers else empty_text_hmm(3, 5)
    copy.load_state_dict(load(save(model.state_dict())))
    sequence = random_numbers(8) if model.reads_numbers else random_ids(8, 5)
    assert copy.log_likelihood([sequence]) == model.log_likelihood([sequence])
    for _ in range(3):  # and learns on as the other would, bit for bit
        assert model.em_step([sequence]) == copy.em_step([sequence])
        copy.load_state_dict(load(save(copy.state_dict())))
    assert copy.num_parameters == sum(tensor.numel() for tensor in model.state_dict().values())


# -- learning ---------------------------------------------------------------------------------------------------------


def objectives(model: HMM, sequences: list[Any], iterations: int, seed: int) -> list[float]:
    model.initialise(sequences, seed)
    found = [model.em_step(sequences) for _ in range(iterations)]
    return [*found, model.objective(sequences)]


def check_probabilities(model: HMM) -> None:
    tables = [model.initial, model.transition] + ([] if model.reads_numbers else [model.emission])
    for table in tables:
        np.testing.assert_allclose(table.sum(axis=-1), 1.0)
        assert (table >= 0).all()
    if model.reads_numbers:
        assert np.isfinite(model.mean).all()
        assert (model.scale > 0).all()
        assert np.isfinite(model.scale).all()


def learn(model: HMM, sequences: Any, *, restarts: int = 1, iterations: int = 100, tolerance: float = 1e-5) -> None:
    """Baum-Welch as training runs it: it asserts that no iteration lowers the objective, and the best start is kept."""
    best: dict[str, Any] = {}
    hooks = Hooks(keep_best=lambda: best.update(model.state_dict()))
    config = TrainingConfig(steps=iterations, restarts=restarts, tolerance=tolerance)
    list(expect_and_maximise(model, sequences, config, hooks=hooks))
    model.load_state_dict(best)


@settings(max_examples=60, deadline=None)
@given(
    num_states=st.integers(1, 5),
    vocab_size=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    smoothing=st.sampled_from([0.0, 0.01, 1.0]),
    seed=st.integers(0, 1000),
)
def test_no_iteration_lowers_the_objective_of_texts(
    num_states: int, vocab_size: int, lengths: list[int], smoothing: float, seed: int
) -> None:
    model = empty_text_hmm(num_states, vocab_size, smoothing=smoothing)
    texts = [random_ids(length, vocab_size, seed=seed + i) for i, length in enumerate(lengths)]
    for before, after in pairwise(objectives(model, texts, 25, seed)):
        assert after >= before - 1e-10 * max(1.0, abs(before))
    check_probabilities(model)


@settings(max_examples=60, deadline=None)
@given(
    num_states=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 15), min_size=1, max_size=4),
    smoothing=st.sampled_from([0.0, 0.01]),
    share_missing=st.sampled_from([0.0, 0.4, 0.9]),
    seed=st.integers(0, 1000),
)
def test_no_iteration_lowers_the_objective_of_numbers(
    num_states: int, lengths: list[int], smoothing: float, share_missing: float, seed: int
) -> None:
    model = empty_numbers_hmm(num_states, smoothing=smoothing)
    series = [random_numbers(length, seed + i, share_missing) for i, length in enumerate(lengths)]
    for before, after in pairwise(objectives(model, series, 25, seed)):
        assert after >= before - 1e-10 * max(1.0, abs(before))
    check_probabilities(model)


def test_a_known_text_hmm_is_learned_to_a_hundredth_of_a_bit() -> None:
    """Held-out bits per token above those of the truth itself, which are its entropy rate but for chance."""
    truth = text_hmm(4, 8, seed=1, peaked=0.2)
    training, held_out = (truth.sample(20_000, seed)[1] for seed in (0, 1))
    model = empty_text_hmm(4, 8)
    learn(model, [training], restarts=2, iterations=100)
    gap = (truth.log_likelihood([held_out]) - model.log_likelihood([held_out])) / len(held_out) / math.log(2)
    assert gap < 0.01


def test_known_numbers_are_learned_to_a_hundredth_of_a_bit_with_a_tenth_of_them_missing() -> None:
    truth = numbers_hmm(3, seed=2)
    truth.mean = np.array([[-2.0, 0.0], [0.0, 2.0], [2.0, -1.0]])
    training, held_out = (truth.sample(5000, seed)[1] for seed in (0, 1))
    model = empty_numbers_hmm(3)
    is_observed = np.random.default_rng(0).random(training.shape) > 0.1
    learn(model, [(training, is_observed)], restarts=3, iterations=100)
    held = [(held_out, None)]
    gap = (truth.log_likelihood(held) - model.log_likelihood(held)) / len(held_out) / math.log(2)
    assert gap < 0.01
    order, true_order = np.argsort(model.mean[:, 0]), np.argsort(truth.mean[:, 0])
    np.testing.assert_allclose(model.mean[order], truth.mean[true_order], atol=0.15)
    np.testing.assert_allclose(model.scale[order], truth.scale[true_order], atol=0.15)


def test_hidden_states_of_a_known_hmm_are_found() -> None:
    truth = numbers_hmm(3, seed=2)
    truth.mean = np.array([[-2.0, 0.0], [0.0, 2.0], [2.0, -1.0]])
    truth.scale = np.full_like(truth.scale, 0.2)
    states, values = truth.sample(500, seed=0)
    assert (truth.viterbi((values, None))[0] == states).mean() > 0.98
    assert (truth.posteriors((values, None)).argmax(axis=1) == states).mean() > 0.98


def test_samples_have_the_frequencies_of_the_model() -> None:
    model = text_hmm(3, 4, peaked=0.5)
    states, ids = model.sample(60_000, seed=0)
    moves, shows = np.zeros((3, 3)), np.zeros((3, 4))
    np.add.at(moves, (states[:-1], states[1:]), 1)
    np.add.at(shows, (states, ids), 1)
    np.testing.assert_allclose(moves / moves.sum(axis=1, keepdims=True), model.transition, atol=0.02)
    np.testing.assert_allclose(shows / shows.sum(axis=1, keepdims=True), model.emission, atol=0.02)
    first = [int(model.sample(1, seed)[0][0]) for seed in range(2000)]
    np.testing.assert_allclose(np.bincount(first, minlength=3) / 2000, model.initial, atol=0.04)
    numbers = numbers_hmm(3)
    states, values = numbers.sample(60_000, seed=0)
    for state in range(3):
        np.testing.assert_allclose(values[states == state].mean(axis=0), numbers.mean[state], atol=0.1)
        np.testing.assert_allclose(values[states == state].std(axis=0), numbers.scale[state], atol=0.1)


# -- against hmmlearn -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_tokens_are_learned_as_hmmlearn_learns_them() -> None:
    theirs_module = pytest.importorskip("hmmlearn.hmm")
    texts = [random_ids(length, 7, seed=length) for length in (200, 1, 90)]
    model = empty_text_hmm(4, 7, smoothing=0.0)
    model.initialise(texts, seed=0)
    theirs = theirs_module.CategoricalHMM(4, n_iter=10, tol=-math.inf, init_params="", implementation="scaling")
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = model.initial, model.transition, model.emission
    theirs.fit(np.concatenate(texts)[:, None], lengths=[len(text) for text in texts])
    ours = [model.em_step(texts) for _ in range(10)]
    np.testing.assert_allclose(ours, list(theirs.monitor_.history), rtol=1e-10)
    np.testing.assert_allclose(model.initial, theirs.startprob_, atol=1e-8)
    np.testing.assert_allclose(model.transition, theirs.transmat_, atol=1e-8)
    np.testing.assert_allclose(model.emission, theirs.emissionprob_, atol=1e-8)
    log_joint, path = theirs.decode(texts[0][:, None])
    assert model.viterbi(texts[0])[1] == pytest.approx(log_joint, abs=1e-6)
    assert (model.viterbi(texts[0])[0] == path).all()


@pytest.mark.filterwarnings("ignore")
def test_numbers_are_learned_as_hmmlearn_learns_them() -> None:
    theirs_module = pytest.importorskip("hmmlearn.hmm")
    truth = numbers_hmm(3, seed=4)
    series = [truth.sample(length, seed=length)[1] for length in (150, 2, 80)]
    sequences = [(values, None) for values in series]
    model = empty_numbers_hmm(3, smoothing=0.0)
    model.initialise(sequences, seed=0)
    theirs = theirs_module.GaussianHMM(
        3, "diag", n_iter=10, tol=-math.inf, init_params="", min_covar=0.0, covars_prior=0.0
    )
    theirs.startprob_, theirs.transmat_ = model.initial, model.transition
    theirs.means_, theirs.covars_ = model.mean, model.scale**2
    theirs.fit(np.concatenate(series), lengths=[len(values) for values in series])
    ours = [model.em_step(sequences) for _ in range(10)]
    np.testing.assert_allclose(ours, list(theirs.monitor_.history), rtol=1e-10)
    np.testing.assert_allclose(model.transition, theirs.transmat_, atol=1e-8)
    np.testing.assert_allclose(model.mean, theirs.means_, atol=1e-8)
    np.testing.assert_allclose(model.scale, np.sqrt([np.diag(c) for c in theirs.covars_]), atol=1e-8)


# -- never NaN --------------------------------------------------------------------------------------------------------


def check_finite(model: HMM, sequence: Observed) -> None:
    assert np.isfinite(model.log_likelihood([sequence]))
    assert np.isfinite(model.viterbi(sequence)[1])
    posteriors = model.posteriors(sequence)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0)
    check_probabilities(model)


@pytest.mark.parametrize(
    "texts",
    [[[0]], [[0], [1], [2]], [[1] * 30], [[0, 1] * 20, [2]], [[], [3, 1]], [list(range(9))]],
    ids=["one token", "length one", "constant", "alternating", "an empty one", "all different"],
)
@pytest.mark.parametrize("smoothing", [0.0, 1e-6, 0.01])
def test_odd_texts_are_learned_with_more_states_than_symbols(texts: list[list[int]], smoothing: float) -> None:
    model = empty_text_hmm(12, 9, smoothing=smoothing)
    data = [np.array(text, dtype=np.int64) for text in texts]
    learn(model, data, restarts=2, iterations=60, tolerance=0.0)
    check_finite(model, data[-1])
    log_probs, _ = model.start(prompt_batch([[0], [8]]))
    assert not log_probs.isnan().any()
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(2, dtype=torch.float64))


def test_a_token_never_seen_has_a_probability_where_there_is_smoothing() -> None:
    model = empty_text_hmm(3, 6)
    learn(model, [random_ids(200, 4)], iterations=20)
    check_finite(model, np.array([0, 5, 5, 1, 4]))
    assert torch.isfinite(model.score(next_token_batch(torch.tensor([[0, 5, 5, 1, 4]])))[0]).all()


def test_a_token_never_seen_is_impossible_without_smoothing_and_what_follows_is_still_scored() -> None:
    model = empty_text_hmm(3, 6, smoothing=0.0)
    learn(model, [random_ids(200, 4)], iterations=20)
    log_probs, state = model.score(next_token_batch(torch.tensor([[0, 5, 1, 2]])))
    assert log_probs[0, 0] == -math.inf
    assert torch.isfinite(log_probs[0, 1:]).all()
    torch.testing.assert_close(state.per_row["belief"].sum(), torch.ones((), dtype=torch.float64))
    _, stepped = model.start(prompt_batch([[0]]))
    for token in (5, 1):
        _, stepped = model.step(torch.tensor([token]), stepped)
    torch.testing.assert_close(stepped.per_row["belief"], state.per_row["belief"])
    unseen = np.array([0, 5, 1])
    assert model.log_likelihood([unseen]) == -math.inf
    with pytest.raises(DataError, match=r"sequence 2 has probability zero .*smoothing above 0"):
        model.em_step([np.array([0, 1]), unseen])
    for verb in (model.posteriors, model.viterbi):
        with pytest.raises(DataError, match="the sequence has probability zero"):
            verb(unseen)


@pytest.mark.parametrize("length", [10, 5000])
def test_a_state_that_cannot_be_reached_but_fits_perfectly_disturbs_nothing(length: int) -> None:
    """Its beta grows without bound, and must not become infinite."""
    model = empty_text_hmm(2, 4, smoothing=0.0)
    model.initial, model.transition = np.array([1.0, 0.0]), np.eye(2)
    model.emission = np.array([[0.25] * 4, [1.0, 0.0, 0.0, 0.0]])
    text = np.zeros(length, dtype=np.int64)
    assert model.log_likelihood([text]) == pytest.approx(length * math.log(0.25))
    np.testing.assert_array_equal(model.posteriors(text), np.tile([1.0, 0.0], (length, 1)))
    model.em_step([text])
    np.testing.assert_array_equal(model.emission[0], [1.0, 0.0, 0.0, 0.0])
    check_probabilities(model)
    numbers = empty_numbers_hmm(2, 1, smoothing=0.0)
    numbers.initial, numbers.transition = model.initial, np.eye(2)
    numbers.mean, numbers.scale = np.array([[1000.0], [0.0]]), np.ones((2, 1))
    series = (np.zeros((length, 1)), None)
    expected = length * (-0.5 * 1000.0**2 - 0.5 * math.log(2 * math.pi))
    assert numbers.log_likelihood([series]) == pytest.approx(expected)
    np.testing.assert_array_equal(numbers.posteriors(series), np.tile([1.0, 0.0], (length, 1)))


ODD_NUMBERS: dict[str, Any] = {
    "one step": (np.array([[1.0, 2.0]]), None),
    "constant": (np.full((20, 2), 0.1), None),
    "one constant column": (np.stack([np.full(20, 7.0), np.arange(20.0)], axis=1), None),
    "all missing": (np.zeros((10, 2)), np.zeros((10, 2), dtype=bool)),
    "one column missing": (np.random.default_rng(0).normal(size=(15, 2)), np.tile([True, False], (15, 1))),
    "a far outlier": (np.array([[0.0, 0.0], [1e9, 0.0], [1.0, 1.0], [0.5, 0.2]] * 4), None),
    "huge": (np.random.default_rng(0).normal(size=(15, 2)) * 1e149, None),
    "tiny": (np.random.default_rng(0).normal(size=(15, 2)) * 1e-200, None),
    "far from zero": (np.random.default_rng(0).normal(size=(15, 2)) + 1e12, None),
    "what is missing is nan": (
        np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 1.0]]),
        np.array([[1, 0], [1, 1], [0, 1]]) > 0,
    ),
}


@pytest.mark.parametrize("sequence", ODD_NUMBERS.values(), ids=ODD_NUMBERS)
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_odd_numbers_are_learned_and_far_ones_scored(sequence: Any, smoothing: float) -> None:
    model = empty_numbers_hmm(4, smoothing=smoothing)
    learn(model, [sequence, sequence], restarts=2, iterations=40, tolerance=0.0)
    check_finite(model, sequence)
    check_finite(model, (np.array([[1e150, -1e150], [0.0, 0.0]]), None))
    log_probs, state = model.score(next_value_batch(torch.tensor([[[0.0, 0.0], [1e30, 0.0], [1.0, 1e-30]]])))
    assert torch.isfinite(log_probs).all()
    assert torch.isfinite(state.per_row["belief"]).all()
    following, _ = model.step(torch.tensor([[1e30, 0.0]]), state)
    assert torch.isfinite(following.mean).all()


def test_bad_settings_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="num_states = -1 should be at least 1, or 0 to choose it"):
        HMMConfig(num_states=-1)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match=f"smoothing = {wrong} should be 0 or more"):
            HMMConfig(smoothing=wrong)
    with pytest.raises(ConfigError, match="min_scale = 0 should lie between 1e-9 and 1"):
        HMMConfig(min_scale=0)
    with pytest.raises(ConfigError, match="in a text or in numbers; asked for was: label"):
        HMM(HMMConfig(), schemas.of_answers(2, vocab_size=3))


def test_bad_data_gets_a_sentence() -> None:
    text, numbers = text_hmm(2, 3), numbers_hmm(2)
    for nothing in ([], [np.array([], dtype=np.int64)]):
        with pytest.raises(DataError, match="needs at least one step"):
            learn(text, nothing)
    with pytest.raises(DataError, match="token 3 is not in the vocabulary, which goes from 0 to 2"):
        text.em_step([np.array([0, 1]), np.array([3])])
    with pytest.raises(DataError, match="token -1 is not in the vocabulary"):
        text.score(next_token_batch(torch.tensor([[0, -1, 2]])))
    good, bad = np.zeros((3, 2)), np.array([[0.0, 0.0], [0.0, math.nan]])
    with pytest.raises(DataError, match=r"sequence 2, step 2, column 2 holds nan; .* False in is_observed"):
        numbers.em_step([(good, None), (bad, None)])
    with pytest.raises(DataError, match="holds inf"):
        numbers.viterbi((np.full((1, 2), math.inf), None))
    with pytest.raises(DataError, match=r"shape \(3, 1\); expected \(steps, 2\)"):
        numbers.log_likelihood([(good[:, :1], None)])


def test_files_that_do_not_fit_get_a_sentence() -> None:
    saved = text_hmm(3, 5).state_dict()
    with pytest.raises(
        CheckpointError, match=r'"initial" of the hmm has the shape \(3,\); its settings ask for \(4,\)'
    ):
        empty_text_hmm(4, 5).load_state_dict(saved)
    with pytest.raises(CheckpointError, match='the hmm lacks "mean"'):
        empty_numbers_hmm(3).load_state_dict(saved)


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("initial", lambda t: t * 2, r"probabilities that sum to 1 \(found sums from 2 to 2\)"),
        ("transition", lambda t: t - 0.4, "probabilities that sum to 1"),
        ("transition", lambda t: t * torch.tensor([-1.0, 1.0, 1.0]), "probabilities that sum to 1"),
        ("emission", lambda t: t * torch.nan, "probabilities that sum to 1"),
        ("mean", lambda t: t * torch.nan, "numbers"),
        ("scale", lambda t: t * 0, "numbers above 0"),
        ("scale", lambda t: t * torch.inf, "numbers above 0"),
    ],
)
def test_tables_that_hold_no_probabilities_are_named(name: str, damage: Any, sentence: str) -> None:
    model, empty = text_hmm(3, 5), empty_text_hmm(3, 5)
    if name in ("mean", "scale"):
        model, empty = empty_numbers_hmm(3), empty_numbers_hmm(3)
    before = {name: table.clone() for name, table in empty.state_dict().items()}
    with pytest.raises(CheckpointError, match=f'"{name}" of the hmm is damaged: it should hold {sentence}'):
        empty.load_state_dict(model.state_dict() | {name: damage(model.state_dict()[name])})
    assert all(torch.equal(table, before[name]) for name, table in empty.state_dict().items())


def test_a_fresh_state_is_the_initial_belief_and_a_state_is_not_written_into() -> None:
    model = text_hmm(3, 5)
    state = model.initial_state(2)
    torch.testing.assert_close(state.per_row["belief"], torch.tensor(model.initial).expand(2, 3))
    kept = State({"belief": state.per_row["belief"].clone()})
    model.score(next_token_batch(torch.tensor([[0, 1, 2], [3, 4, 0]])), state)
    model.step(torch.tensor([1, 2]), state)
    torch.testing.assert_close(state.per_row["belief"], kept.per_row["belief"])
