"""Measures of labels, probabilities and numbers against scikit-learn and scipy, and by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn import calibration, metrics

from seqwise.evaluation.labels import (
    Bin,
    Counts,
    auc,
    confusion_matrix,
    counts_by_label,
    expected_calibration_error,
    label_set_counts,
    label_set_exact_match,
    label_set_macro_f1,
    label_set_micro_f1,
    label_sets_above,
    macro_f1,
    matthews_correlation,
    mean_f1,
    micro_f1,
    pearson,
    ranks,
    reliability_table,
    spearman,
    sum_of,
)

seeds = pytest.mark.parametrize("seed", range(20))


def labels(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Wanted and answered ids of up to six labels, of which some never occur."""
    random = np.random.default_rng(seed)
    num, num_labels = int(random.integers(2, 60)), int(random.integers(2, 7))
    wanted = random.choice(num_labels, size=num, p=random.dirichlet(np.ones(num_labels)))
    answers = np.where(random.random(num) < 0.6, wanted, random.integers(num_labels, size=num))
    return wanted, answers, num_labels


@seeds
def test_counts_are_those_of_scikit_learn(seed: int) -> None:
    wanted, answers, num_labels = labels(seed)
    table = confusion_matrix(wanted, answers, num_labels)
    ids = range(num_labels)
    assert (table == metrics.confusion_matrix(wanted, answers, labels=ids)).all()
    expected = metrics.precision_recall_fscore_support(wanted, answers, labels=ids, zero_division=0)
    found = [(one.precision, one.recall, one.f1, one.wanted) for one in counts_by_label(table)]
    np.testing.assert_allclose(np.array(found).T, np.array(expected))
    assert macro_f1(table) == pytest.approx(metrics.f1_score(wanted, answers, average="macro"))
    assert micro_f1(table) == pytest.approx(metrics.f1_score(wanted, answers, average="micro"))
    assert micro_f1(table) == pytest.approx(metrics.accuracy_score(wanted, answers))


@seeds
def test_matthews_correlation_is_that_of_scikit_learn(seed: int) -> None:
    wanted, answers, num_labels = labels(seed)
    found = matthews_correlation(confusion_matrix(wanted, answers, num_labels))
    if len(set(wanted)) == 1 or len(set(answers)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(metrics.matthews_corrcoef(wanted, answers))


def test_matthews_correlation_by_hand() -> None:
    assert matthews_correlation(np.array([[3, 0], [0, 5]])) == pytest.approx(1.0)
    assert matthews_correlation(np.array([[0, 3], [5, 0]])) == pytest.approx(-1.0)
    assert matthews_correlation(np.array([[2, 2], [3, 3]])) == pytest.approx(0.0)
    assert matthews_correlation(np.array([[4, 0], [5, 0]])) is None  # always the same answer
    assert matthews_correlation(np.array([[4, 5], [0, 0]])) is None  # always the same label
    assert matthews_correlation(np.zeros((2, 2), dtype=np.int64)) is None
    many = matthews_correlation(np.array([[4, 1], [2, 3]]) * 10**9)  # whose squares are beyond 64 bits
    assert many == pytest.approx(matthews_correlation(np.array([[4, 1], [2, 3]])))


@seeds
@pytest.mark.parametrize("has_ties", [False, True])
def test_auc_is_that_of_scikit_learn(seed: int, has_ties: bool) -> None:
    random = np.random.default_rng(seed)
    is_positive = random.random(40) < 0.3
    is_positive[:2] = [True, False]
    scores = random.integers(5, size=40) / 5.0 + (0 if has_ties else random.random(40)) + 0.3 * is_positive
    assert auc(is_positive, scores) == pytest.approx(metrics.roc_auc_score(is_positive, scores))
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[is_positive] for b in scores[~is_positive]]
    assert auc(is_positive, scores) == pytest.approx(np.mean(pairs))  # (4) as it stands


def test_auc_by_hand_and_of_one_label() -> None:
    assert auc(np.array([False, True]), np.array([-np.inf, 0.0])) == 1.0
    assert auc(np.array([False, True]), np.array([0.5, 0.5])) == 0.5  # constant scores tell nothing
    assert auc(np.array([True, False, False]), np.array([2.0, 1.0, 3.0])) == 0.5
    assert auc(np.array([True, True]), np.array([0.1, 0.2])) is None
    assert auc(np.array([False, False]), np.array([0.1, 0.2])) is None


def test_ranks_of_equals_are_shared() -> None:
    assert ranks(np.array([30, 10, 20, 20])).tolist() == [4.0, 1.0, 2.5, 2.5]
    values = np.random.default_rng(0).integers(6, size=50)
    assert ranks(values).tolist() == stats.rankdata(values).tolist()


@seeds
def test_the_reliability_table_is_that_of_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    confidences = random.choice([0.0, 0.1, 0.2, 0.5, 1.0, *random.random(30)], size=80)  # edges of bins, too
    is_right = random.random(80) < confidences
    table = reliability_table(is_right, confidences, num_bins=10)
    share_right, confidence = calibration.calibration_curve(is_right, confidences, n_bins=10, strategy="uniform")
    assert [one.share_right for one in table] == pytest.approx(share_right.tolist())
    assert [one.confidence for one in table] == pytest.approx(confidence.tolist())
    assert sum(one.count for one in table) == 80
    for one in table:
        assert one.low <= one.confidence <= one.high
    expected = sum(one.count / 80 * abs(one.share_right - one.confidence) for one in table)
    assert expected_calibration_error(is_right, confidences, num_bins=10) == pytest.approx(expected)


def test_calibration_by_hand() -> None:
    is_right, confidences = np.array([True, False, True, True]), np.array([0.6, 0.6, 0.9, 0.8])
    table = reliability_table(is_right, confidences, num_bins=5)
    assert table == [
        Bin(pytest.approx(0.4), pytest.approx(0.6), 2, pytest.approx(0.6), 0.5),
        Bin(pytest.approx(0.6), pytest.approx(0.8), 1, pytest.approx(0.8), 1.0),
        Bin(pytest.approx(0.8), pytest.approx(1.0), 1, pytest.approx(0.9), 1.0),
    ]
    error = expected_calibration_error(is_right, confidences, num_bins=5)
    assert error == pytest.approx((2 * 0.1 + 0.2 + 0.1) / 4)
    assert expected_calibration_error(np.ones(5, dtype=bool), np.ones(5)) == 0.0
    assert expected_calibration_error(np.zeros(5, dtype=bool), np.ones(5)) == 1.0
    assert expected_calibration_error(np.zeros(0, dtype=bool), np.zeros(0)) == 0.0
    assert reliability_table(np.zeros(0, dtype=bool), np.zeros(0)) == []


@seeds
def test_correlations_are_those_of_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = random.normal(size=30).round(1 if seed % 2 else 6)  # with ties, and without
    second = (first + random.normal(size=30) * random.choice([0.1, 1.0, 5.0])).round(1)
    assert pearson(first, second) == pytest.approx(stats.pearsonr(first, second).statistic)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)


def test_correlations_by_hand_and_where_there_are_none() -> None:
    rising = np.array([1.0, 2.0, 3.0])
    assert pearson(rising, 5 - 2 * rising) == pytest.approx(-1.0)
    assert pearson(rising * 1e200, rising * 1e-200) == pytest.approx(1.0)
    assert pearson(rising, np.array([1.0, 3.0, 2.0])) == pytest.approx(0.5)
    assert spearman(rising, np.array([1.0, 10.0, 1000.0])) == pytest.approx(1.0)
    for measure in (pearson, spearman):
        assert measure(rising, np.full(3, 0.1)) is None
        assert measure(np.full(3, 7), rising) is None
        assert measure(np.array([1.0]), np.array([2.0])) is None
        assert measure(np.zeros(0), np.zeros(0)) is None


@seeds
def test_sets_of_labels_are_scored_as_scikit_learn_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    wanted, probabilities = random.random((25, 5)) < 0.3, random.random((25, 5))
    wanted[:, 4] = False  # nobody wants the last one
    answers = label_sets_above(probabilities, [0.5, 0.7, 0.2, 0.5, 2.0])  # nor is it answered
    assert not answers[:, 4].any()
    expected = metrics.precision_recall_fscore_support(wanted, answers, zero_division=0)
    found = [(one.precision, one.recall, one.f1, one.wanted) for one in label_set_counts(wanted, answers)]
    np.testing.assert_allclose(np.array(found).T, np.array(expected))
    assert label_set_micro_f1(wanted, answers) == pytest.approx(metrics.f1_score(wanted, answers, average="micro"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        among = metrics.f1_score(wanted, answers, average="macro", labels=range(4), zero_division=0)
    assert label_set_macro_f1(wanted, answers) == pytest.approx(among)
    assert label_set_exact_match(wanted, answers) == pytest.approx(metrics.accuracy_score(wanted, answers))


def test_sets_of_labels_by_hand() -> None:
    wanted = np.array([[True, False, True], [False, False, False], [False, True, False]])
    answers = label_sets_above(np.array([[0.5, 0.2, 0.4], [0.1, 0.1, 0.1], [0.1, 0.9, 0.8]]))
    assert answers.tolist() == [[True, False, False], [False, False, False], [False, True, True]]
    assert label_set_counts(wanted, answers) == [Counts(1, 1, 1), Counts(1, 1, 1), Counts(0, 1, 1)]
    assert label_set_exact_match(wanted, answers) == pytest.approx(1 / 3)
    assert label_set_micro_f1(wanted, answers) == pytest.approx(2 * 2 / 6)
    assert label_set_macro_f1(wanted, answers) == pytest.approx(2 / 3)
    nothing = np.zeros((2, 3), dtype=bool)
    assert (label_set_micro_f1(nothing, nothing), label_set_macro_f1(nothing, nothing)) == (0.0, 0.0)
    assert label_set_exact_match(nothing, nothing) == 1.0


def test_one_label_only_and_nothing_at_all_have_their_values() -> None:
    table = confusion_matrix(np.zeros(4, dtype=int), np.zeros(4, dtype=int), 3)
    assert (micro_f1(table), macro_f1(table), matthews_correlation(table)) == (1.0, 1.0, None)
    empty = confusion_matrix(np.zeros(0, dtype=int), np.zeros(0, dtype=int), 3)
    assert (empty.shape, micro_f1(empty), macro_f1(empty)) == ((3, 3), 0.0, 0.0)
    assert (sum_of([]), mean_f1([])) == (Counts(0, 0, 0), 0.0)
    assert sum_of([Counts(1, 2, 3), Counts(10, 20, 30)]) == Counts(11, 22, 33)
