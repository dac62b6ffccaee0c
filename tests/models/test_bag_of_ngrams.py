"""The bag of n-grams against sets of tuples, equations written out, and scikit-learn's logistic regression."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save
from sklearn.linear_model import LogisticRegression

from seqwise.data.batch import Batch, Labels, pad_rows
from seqwise.data.pair_store import Rows
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.kernels.gram_bag import distinct_grams
from seqwise.models import bag_of_ngrams
from seqwise.models.bag_of_ngrams import BagConfig, BagOfNgrams, fit_temperature

SEPARATOR, VOCAB = 0, 9
Gram = tuple[int, ...]


def grams_of(row: list[int], order: int) -> list[tuple[int, Gram]]:
    """Every occurrence of a gram: where it begins, its tokens. The separator stands at its ends alone."""
    found = []
    for start, length in product(range(len(row)), range(1, order + 1)):
        gram = tuple(row[start : start + length])
        if len(gram) == length and SEPARATOR not in gram[1:-1] and gram != (SEPARATOR,):
            found.append((start, gram))
    return found


def features_of(row: list[int], order: int, num_texts: int) -> set[Any]:
    """(1) written out: grams, of two texts with the texts they stand in, and the tenths that are shared."""
    if num_texts == 1:
        return {gram for _, gram in grams_of(row, order)}
    middle = row.index(SEPARATOR, 1)
    first = {gram for _, gram in grams_of(row[: middle + 1], order)}
    second = {gram for _, gram in grams_of(row[middle:], order)}
    found: set[Any] = {(gram, gram in first, gram in second) for gram in first | second}
    for length, (own, other) in product(range(1, order + 1), [(first, second), (second, first)]):
        mine = {gram for gram in own if len(gram) == length}
        tenths = 10 * len(mine & other) // len(mine) if mine else 0
        found |= {("shared", length, own is first, tenth) for tenth in range(1, tenths + 1)}
    return found


def random_rows(
    num: int, *, num_texts: int = 1, seed: int = 0, num_labels: int = 2
) -> tuple[list[list[int]], np.ndarray]:
    """Texts whose tokens depend on the label, in which nothing is certain."""
    random, rows = np.random.default_rng(seed), []
    labels = np.arange(num) % num_labels
    for label in labels:
        row = [SEPARATOR]
        for _ in range(num_texts):
            common = random.integers(1, VOCAB, size=random.integers(0, 7))
            row += [*np.where(random.random(len(common)) < 0.2, 1 + label, common).tolist(), SEPARATOR]
        rows.append(row)
    return rows, labels


def fitted(
    rows: list[list[int]], labels: np.ndarray, *, num_labels: int = 2, num_texts: int = 1, **settings: Any
) -> BagOfNgrams:
    named = {name: settings.pop(name) for name in ("valid", "label_weights") if name in settings}
    model = BagOfNgrams(BagConfig(**settings), schemas.of_answers(num_labels, vocab_size=VOCAB))
    model.fit(Rows.of(map(np.array, rows)), labels, separator=SEPARATOR, num_texts=num_texts, **named)
    return model


def log_probs(model: BagOfNgrams, rows: list[list[int]]) -> np.ndarray:
    return model.log_probs(pad_rows(rows)).numpy()


@pytest.fixture
def to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning goes on until nothing is left to gain."""
    monkeypatch.setattr(bag_of_ngrams, "TOLERANCE", 1e-13)
    monkeypatch.setattr(bag_of_ngrams, "MAX_PASSES", 3000)


def design(
    rows: list[list[int]], labels: np.ndarray, num_labels: int, order: int, alpha: float, num_texts: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Features (M, F) and ratios (N, F) as (1) and (2) say."""
    found = [features_of(row, order, num_texts) for row in rows]
    names = sorted(set().union(*found), key=str)
    features = np.array([[name in own for name in names] for own in found], dtype=float)
    ratios = []
    for label in range(num_labels):
        own, others = (features[chosen].sum(axis=0) + alpha for chosen in (labels == label, labels != label))
        ratios.append(np.log((own / own.sum()) / (others / others.sum())))
    return features, np.array(ratios)


# -- features ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("num_texts", [1, 2])
def test_each_row_has_the_grams_that_sets_of_tuples_have(order: int, num_texts: int) -> None:
    rows, _ = random_rows(200, num_texts=num_texts, seed=order)
    flat = Rows.of(map(np.array, rows))
    keys, edges = distinct_grams(flat.ids, flat.edges, order, SEPARATOR, num_texts)
    rows_with_key, rows_with_feature = defaultdict(list), defaultdict(list)
    for number, row in enumerate(rows):
        for key in keys[edges[number] : edges[number + 1]].tolist():
            rows_with_key[key].append(number)
        for feature in features_of(row, order, num_texts):
            rows_with_feature[feature].append(number)
    assert sorted(rows_with_key.values()) == sorted(rows_with_feature.values())  # keys are features by another name


def test_no_gram_reaches_across_a_separator() -> None:
    joined, apart = [0, 1, 2, 0], [0, 1, 0, 2, 0]
    assert (1, 2) in features_of(joined, 3, 1)
    assert (1, 2) not in features_of(apart, 3, 1)
    model = fitted([joined, apart] * 4, np.array([0, 1] * 4), order=3, strength=0.01)
    assert log_probs(model, [joined, apart]).argmax(axis=1).tolist() == [0, 1]


def test_min_count_counts_rows_and_not_occurrences() -> None:
    rows = [[0, 1, 1, 1, 0], [0, 2, 0], [0, 2, 0]]
    model = fitted(rows, np.array([0, 1, 1]), order=1, min_count=2)
    assert model.weights.shape == (1, 2)  # of the token 2


def test_where_grams_are_many_those_of_one_text_alone_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = [[0, 1, 0], [0, 1, 0], [0, 2, 0]], np.array([0, 0, 1])
    assert len(fitted(rows, labels, order=1).weights) == 2
    monkeypatch.setattr(bag_of_ngrams, "MAX_SINGLE_GRAMS", 1)
    assert len(fitted(rows, labels, order=1).weights) == 1
    assert len(fitted(rows, labels, order=1, min_count=1).weights) == 2


# -- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "strength", "alpha"), [(1, 1.0, 1.0), (2, 0.1, 0.5), (3, 20.0, 0.1)])
@pytest.mark.usefixtures("to_the_end")
def test_with_two_labels_it_is_scikit_learns_optimum(order: int, strength: float, alpha: float) -> None:
    """Two weights of opposite sign are one of twice the size, so half the strength."""
    rows, labels = random_rows(60)
    model = fitted(rows, labels, order=order, strength=strength, alpha=alpha)
    features, ratios = design(rows, labels, 2, order, alpha)
    scaled = np.concatenate([features * ratios[1], np.ones((len(rows), 1))], axis=1)  # and the bias
    reference = LogisticRegression(C=2 / strength, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(scaled, labels)
    np.testing.assert_allclose(log_probs(model, rows), reference.predict_log_proba(scaled), atol=2e-5)


@pytest.mark.parametrize("num_texts", [1, 2])
@pytest.mark.usefixtures("to_the_end")
def test_the_gradient_of_the_objective_is_zero(num_texts: int) -> None:
    """(5) by automatic differentiation: four labels, one without a text, uneven weights, uneven numbers of texts."""
    rows, labels = random_rows(50, num_texts=num_texts, num_labels=3)
    labels[:10] = 1
    strength, alpha, weights = 0.7, 0.5, np.array([1.0, 0.4, 3.0, 1.0])
    settings: dict[str, Any] = {"order": 2, "strength": strength, "alpha": alpha, "label_weights": weights}
    model = fitted(rows, labels, num_labels=4, num_texts=num_texts, **settings)
    features, ratios = (torch.tensor(x) for x in design(rows, labels, 4, 2, alpha, num_texts))
    prior = torch.tensor(weights * (1 + np.bincount(labels, minlength=4)))
    # u and b are read off the model's answers: probabilities of all rows determine the gradient
    p = torch.tensor(np.exp(log_probs(model, rows)))
    pull = torch.tensor(weights[labels])[:, None] * (torch.eye(4, dtype=torch.float64)[labels] - p)  # (M, N)
    u = (ratios.T * (features.T @ pull) / strength).requires_grad_()  # where the gradient is zero, u is this
    b = (pull.sum(dim=0) / strength).requires_grad_()
    logits = (prior / prior.sum()).log() + b + features @ (ratios.T * u)
    loss = -(torch.tensor(weights[labels]) * logits.log_softmax(dim=1)[torch.arange(50), torch.tensor(labels)]).sum()
    (loss + strength / 2 * ((u**2).sum() + (b**2).sum())).backward()
    assert u.grad is not None
    assert b.grad is not None
    assert max(float(u.grad.abs().max()), float(b.grad.abs().max())) < 5e-4  # weights are kept in 32 bits
    np.testing.assert_allclose(logits.log_softmax(dim=1).detach().numpy(), log_probs(model, rows), atol=1e-4)


def test_a_stronger_pull_makes_answers_less_sure() -> None:
    rows, labels = random_rows(60)
    sure = [np.exp(log_probs(fitted(rows, labels, strength=s), rows)).max(axis=1).mean() for s in (0.01, 1.0, 1000.0)]
    assert sure[0] > sure[1] + 0.05 > sure[2] + 0.1


def test_the_strength_that_validates_best_is_kept() -> None:
    rows, labels = random_rows(400, seed=1)
    valid, valid_labels = random_rows(400, seed=2)
    chosen = fitted(rows, labels, valid=(Rows.of(map(np.array, valid)), valid_labels))
    assert bag_of_ngrams.STRENGTHS[-1] < chosen.strength < bag_of_ngrams.STRENGTHS[0] + 1

    def loss(model: BagOfNgrams) -> float:
        return -float(log_probs(model, valid)[np.arange(400), valid_labels].mean())

    fixed = [fitted(rows, labels, strength=s, valid=(Rows.of(map(np.array, valid)), valid_labels)) for s in (0.03, 30)]
    assert loss(chosen) <= min(map(loss, fixed)) + 1e-3


@pytest.mark.usefixtures("to_the_end")
def test_a_strength_found_by_trying_is_the_strength_alone_with_logits_over_the_temperature() -> None:
    rows, labels = random_rows(61, seed=3)
    labels[:9] = 0  # so that there is a bias to divide
    valid, valid_labels = random_rows(50, seed=4)
    found = fitted(rows, labels, order=2, valid=(Rows.of(map(np.array, valid)), valid_labels))
    alone = fitted(rows, labels, order=2, strength=found.strength)
    assert found.strength < bag_of_ngrams.STRENGTHS[0]  # others were tried before it
    assert abs(found.temperature - 1) > 0.01
    expected = torch.tensor(log_probs(alone, valid) / found.temperature).log_softmax(dim=1)
    np.testing.assert_allclose(log_probs(found, valid), expected, atol=2e-5)


def test_the_order_that_validates_best_is_kept() -> None:
    """A pair of tokens tells the label, in this order only; what one alone tells is taken away."""
    random = np.random.default_rng(0)
    labels = np.arange(400) % 2
    rows = [[0, *([1, 2] if label else [2, 1]), *random.integers(3, VOCAB, size=6).tolist(), 0] for label in labels]
    halves = [(rows[a : a + 200], labels[a : a + 200]) for a in (0, 200)]
    valid = (Rows.of(map(np.array, halves[1][0])), halves[1][1])
    model = fitted(*halves[0], order=0, valid=valid)
    assert model.order >= 2
    other = BagOfNgrams(model.config, schemas.of_answers(2, vocab_size=VOCAB))
    other.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(log_probs(other, rows), log_probs(model, rows))
    assert fitted(*halves[0], order=0).order == bag_of_ngrams.USUAL_ORDER  # nothing to validate on


def test_it_learns_what_is_planted() -> None:
    """A pair of tokens tells the label, in this order only."""
    random = np.random.default_rng(0)
    labels = random.integers(3, size=300)
    pairs = [[1, 2], [2, 1], [1, 3]]
    rows = [[0, *random.integers(4, VOCAB, size=4).tolist(), *pairs[label], 5, 0] for label in labels]
    model = fitted(rows[:200], labels[:200], num_labels=3, order=2)
    assert (log_probs(model, rows[200:]).argmax(axis=1) == labels[200:]).all()
    alone = fitted(rows[:200], labels[:200], num_labels=3, order=1)
    assert (log_probs(alone, rows[200:]).argmax(axis=1) == labels[200:]).mean() < 0.9


def test_what_two_texts_share_is_seen() -> None:
    """Whether the second text repeats the first, whatever that says."""
    random, rows, labels = np.random.default_rng(0), [], np.arange(300) % 2
    for label in labels:
        first, second = random.integers(1, VOCAB, size=(2, 4)).tolist()
        rows.append([0, *first, 0, *(first if label else second), 0])
    model = fitted(rows[:200], labels[:200], order=2, num_texts=2)
    assert (log_probs(model, rows[200:]).argmax(axis=1) == labels[200:]).mean() > 0.97


def test_weights_of_labels_move_the_answers() -> None:
    rows, labels = random_rows(60)
    even = fitted(rows, labels, strength=1.0)
    heavy = fitted(rows, labels, strength=1.0, label_weights=np.array([1.0, 10.0]))
    assert (log_probs(heavy, rows)[:, 1] > log_probs(even, rows)[:, 1]).mean() > 0.9
    odds = [np.subtract(*log_probs(model, [[0, 8, 7, 0]])[0, ::-1]) for model in (even, heavy)]
    assert odds[1] > odds[0] + 1


def test_a_label_with_no_text_is_improbable_but_possible() -> None:
    rows, labels = random_rows(60)
    model = fitted(rows, labels, num_labels=3, strength=1.0)
    found = log_probs(model, [*rows, [0, 8, 8, 8, 0], [0, 0]])
    assert np.isfinite(found).all()
    assert found[:, 2].max() < math.log(0.2)


@pytest.mark.parametrize("rows", [[[0, 0]], [[0, 1, 0]], [[0, 0], [0, 0]], [[0, *([3] * 500), 0], [0, 1, 0]]])
def test_tiny_empty_and_long_texts_are_learned_from(rows: list[list[int]]) -> None:
    labels = np.arange(len(rows))
    model = fitted(rows, labels, valid=(Rows.of(map(np.array, rows)), labels))
    found = np.exp(log_probs(model, [*rows, [0, 7, 7, 0], [0, 0]]))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


def test_hundreds_of_labels() -> None:
    rows = [[0, 1 + label % 8, 1 + label // 8 % 8, 1 + label // 64, 0] for label in range(200)] * 3
    labels = np.tile(np.arange(200), 3)
    model = fitted(rows, labels, num_labels=200, order=3, strength=0.01)
    assert (log_probs(model, rows).argmax(axis=1) == labels).mean() > 0.99


# -- temperature ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_is_found_that_was_planted(temperature: float) -> None:
    random = np.random.default_rng(0)
    honest = random.normal(scale=2, size=(4000, 3))
    labels = (honest + random.gumbel(size=honest.shape)).argmax(axis=1)  # drawn by softmax(honest)
    found, loss = fit_temperature(honest * temperature, labels, np.ones(4000))
    assert found == pytest.approx(temperature, rel=0.08)
    p = honest - np.log(np.exp(honest).sum(axis=1, keepdims=True))
    assert loss == pytest.approx(-p[np.arange(4000), labels].mean(), abs=0.01)


def test_few_rows_that_are_all_right_do_not_make_it_certain() -> None:
    logits = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    assert fit_temperature(logits, np.array([0, 1, 0]), np.ones(3))[0] > 0.3


# -- the verbs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_texts", [1, 2])
def test_padding_and_neighbours_change_nothing(num_texts: int) -> None:
    rows, labels = random_rows(40, num_texts=num_texts)
    model = fitted(rows, labels, num_texts=num_texts, strength=1.0)
    alone = np.concatenate([log_probs(model, [row]) for row in rows])
    np.testing.assert_allclose(log_probs(model, rows), alone, atol=1e-9)
    np.testing.assert_allclose(np.exp(alone).sum(axis=1), 1.0, atol=1e-12)


def test_score_and_predict_say_the_same() -> None:
    rows, labels = random_rows(20)
    model = fitted(rows, labels)
    batch = Batch({"tokens": pad_rows(rows)}, {"label": Labels(torch.tensor(labels))})
    prediction, (scores, state) = model.predict(batch), model.score(batch)
    assert state is None
    assert prediction.log_probs is not None
    assert scores.shape == (20, 1)
    assert torch.equal(scores[:, 0], prediction.log_probs[torch.arange(20), torch.tensor(labels)])
    assert torch.equal(prediction.answers, prediction.log_probs.argmax(dim=1))


@pytest.mark.parametrize("num_texts", [1, 2])
def test_weights_of_a_text_add_up_to_its_logits(num_texts: int) -> None:
    rows, labels = random_rows(40, num_texts=num_texts, num_labels=3)
    model = fitted(rows, labels, num_labels=3, num_texts=num_texts, order=3, min_count=2)
    for row in [*rows[:10], [0, 1, 1, 1, 0, 1, 1, 0][: 5 + 3 * (num_texts == 2)]]:
        spans, weights = model.weights_of(np.array(row))
        logits = torch.tensor(model.bias + weights.sum(axis=0))
        np.testing.assert_allclose(logits.log_softmax(dim=0), log_probs(model, [row])[0], atol=1e-9)
        expected = sorted((start, start + len(gram)) for start, gram in grams_of(row, 3))
        assert sorted(map(tuple, spans.tolist()))[: len(expected) + 1] == sorted(
            expected + [(0, len(row))] * (num_texts == 2)
        )


def test_weights_stand_with_the_gram_they_belong_to() -> None:
    rows, labels = [[0, 3, 1, 4, 0], [0, 3, 2, 4, 0]] * 5, np.array([0, 1] * 5)
    spans, weights = fitted(rows, labels, order=1).weights_of(np.array([0, 3, 1, 4, 2, 0]))
    assert spans.tolist() == [[1, 2], [2, 3], [3, 4], [4, 5]]
    assert weights[1, 0] > 0.1 > abs(weights[0, 0]) + abs(weights[2, 0])
    assert weights[3, 1] > 0.1


# -- the run folder ---------------------------------------------------------------------------------------------------


def test_a_saved_model_gives_the_same_numbers() -> None:
    rows, labels = random_rows(40, num_texts=2)
    model = fitted(rows, labels, num_texts=2, valid=(Rows.of(map(np.array, rows)), labels))
    other = BagOfNgrams(model.config, schemas.of_answers(2, vocab_size=VOCAB))
    other.load_state_dict(load(save(model.state_dict())))
    np.testing.assert_array_equal(log_probs(other, rows), log_probs(model, rows))
    assert (other.num_texts, other.separator, other.strength) == (2, SEPARATOR, model.strength)
    assert other.num_parameters == model.num_parameters == model.weights.size + 2


def test_damaged_files_get_a_sentence() -> None:
    model = fitted(*random_rows(40))
    fresh = BagOfNgrams(model.config, schemas.of_answers(2, vocab_size=VOCAB))
    saved = model.state_dict()
    with pytest.raises(CheckpointError, match="lacks 'bias'"):
        fresh.load_state_dict({name: tensor for name, tensor in saved.items() if name != "bias"})
    with pytest.raises(CheckpointError, match="weights of shape"):
        fresh.load_state_dict({**saved, "weights": saved["weights"][:-1]})
    with pytest.raises(CheckpointError, match="should be sorted"):
        fresh.load_state_dict({**saved, "vocabulary": saved["vocabulary"].flip(0)})
    with pytest.raises(CheckpointError, match="weights be numbers"):
        fresh.load_state_dict({**saved, "weights": saved["weights"] * float("nan")})


def test_mistakes_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="order = 21 should lie between 1 and 20, or be 0"):
        BagConfig(order=21)
    with pytest.raises(ConfigError, match="alpha = 0 should be above 0"):
        BagConfig(alpha=0)
    with pytest.raises(ConfigError, match="min_count = -1"):
        BagConfig(min_count=-1)
    with pytest.raises(ConfigError, match="strength = -1"):
        BagConfig(strength=-1)
    with pytest.raises(DataError, match=r"text 2 has the label 2; labels go from 0 to 1\."):
        fitted([[0, 1, 0], [0, 1, 0]], np.array([0, 2]))
    with pytest.raises(DataError, match="found 2 texts and 1 labels"):
        fitted([[0, 1, 0], [0, 1, 0]], np.array([0]))
    with pytest.raises(ConfigError, match=r"found label weights \[1.0, 0.0\]; expected 2 numbers above 0"):
        fitted([[0, 1, 0], [0, 1, 0]], np.array([0, 1]), label_weights=np.array([1.0, 0.0]))
    with pytest.raises(DataError, match="token 9 is not in the vocabulary"):
        fitted([[0, 9, 0]], np.array([0]))
    with pytest.raises(ConfigError, match="a classifier answers with a label"):
        BagOfNgrams(BagConfig(), schemas.of_text(5))
