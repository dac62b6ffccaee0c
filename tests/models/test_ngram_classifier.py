"""The n-gram classifier against Bayes' rule by hand, and against n-gram models fitted one by one."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch, Labels, Tokens, next_token_batch, pad_rows
from seqwise.data.pair_store import Rows
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.models.ngram import Ngram, NgramConfig
from seqwise.models.ngram_classifier import NgramClassifier, NgramClassifierConfig

VOCAB = 6


def random_rows(num: int, *, num_labels: int = 3, seed: int = 0) -> tuple[list[list[int]], np.ndarray]:
    """Each label goes from token to token in steps of its own."""
    random, rows = np.random.default_rng(seed), []
    labels = np.arange(num) % num_labels
    for label in labels:
        row = [0, int(random.integers(1, VOCAB))]
        for _ in range(random.integers(0, 7)):
            row.append(int((row[-1] + label) % (VOCAB - 1) + 1 if random.random() < 0.7 else random.integers(1, VOCAB)))
        rows.append([*row, 0])
    return rows, labels


def flat(rows: list[list[int]]) -> Rows:
    return Rows.of(map(np.array, rows))


def fitted(rows: list[list[int]], labels: np.ndarray, *, num_labels: int = 3, **settings: Any) -> NgramClassifier:
    named = {name: settings.pop(name) for name in ("valid", "label_weights") if name in settings}
    model = NgramClassifier(NgramClassifierConfig(**settings), schemas.of_answers(num_labels, vocab_size=VOCAB))
    model.fit(flat(rows), labels, **named)
    return model


def log_probs(model: NgramClassifier, rows: list[list[int]]) -> np.ndarray:
    return model.log_probs(pad_rows(rows)).numpy()


# -- Bayes' rule ------------------------------------------------------------------------------------------------------


def test_order_1_is_naive_bayes_by_hand() -> None:
    rows, labels = [[0, 1, 1, 2, 0], [0, 2, 0], [0, 3, 3, 0]], np.array([0, 0, 1])
    model = fitted(rows, labels, num_labels=2, order=1, smoothing="add_delta", delta=0.5, background=0.0)
    probe = [0, 1, 3, 0]
    counts = [Counter([1, 1, 2, 0, 2, 0]), Counter([3, 3, 0])]
    joint = []
    for prior, own in zip([3 / 5, 2 / 5], counts, strict=True):  # each label once more than it is there
        total = sum(own.values()) + 0.5 * VOCAB
        joint.append(prior * math.prod((own[token] + 0.5) / total for token in probe[1:]))
    expected = [math.log(each / sum(joint)) for each in joint]
    np.testing.assert_allclose(log_probs(model, [probe])[0], expected, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("background", [0.0, 30.0])
def test_it_is_a_model_for_each_label_and_one_of_all(order: int, background: float) -> None:
    rows, labels = random_rows(40)
    model = fitted(rows, labels, order=order, background=background)
    texts = [[row for row, own in zip(rows, labels, strict=True) if own == label] for label in range(3)]
    probes, _ = random_rows(10, seed=9)
    for probe, found in zip(probes, log_probs(model, probes), strict=True):
        batch, log_joint = next_token_batch(torch.tensor([probe])), []
        each = []
        for text in [*texts, rows]:
            ngram = Ngram(NgramConfig(order=order, across_lines=False), schemas.of_text(VOCAB))
            ngram.fit(np.concatenate([[0], *(row[1:] for row in text)]))
            each.append(ngram.score(batch)[0][0].exp().numpy())
        for label, text in enumerate(texts):
            num_tokens = sum(len(row) - 1 for row in text)
            share = background / (background + num_tokens)
            mixed = (1 - share) * each[label] + share * each[-1]
            log_joint.append(math.log((1 + len(text)) / 43) + float(np.log(mixed).sum()))
        expected = np.array(log_joint) - np.logaddexp.reduce(log_joint)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_tokens_add_up_to_the_text() -> None:
    rows, labels = random_rows(30)
    model = fitted(rows, labels, order=2)
    each = model.token_log_probs(pad_rows(rows))
    assert each.shape == (30, max(map(len, rows)) - 1, 3)
    whole = torch.tensor(model.log_prior) + each.sum(dim=1)
    np.testing.assert_allclose(whole.log_softmax(dim=1), log_probs(model, rows), atol=1e-12)
    assert (each[0, len(rows[0]) - 1 :] == 0).all()


def test_tokens_speak_for_the_label_that_has_them() -> None:
    model = fitted([[0, 1, 2, 0], [0, 1, 3, 0]] * 5, np.array([0, 1] * 5), num_labels=2, order=1)
    said = model.token_log_probs(pad_rows([[0, 1, 2, 3, 0]]))[0]
    assert (said[:, 0] - said[:, 1]).sign().tolist()[1:3] == [1, -1]
    assert abs(said[0, 0] - said[0, 1]) < 0.1


# -- little text ------------------------------------------------------------------------------------------------------


def test_a_label_with_no_text_says_what_all_say() -> None:
    rows, labels = random_rows(40, num_labels=2)
    model = fitted(rows, labels, num_labels=3, order=3)
    found, each = log_probs(model, rows), model.token_log_probs(pad_rows(rows))
    assert np.isfinite(found).all()
    assert (found.argmax(axis=1) != 2).all()  # its prior is small
    assert set(model.models) == {0, 1}
    assert model.all is not None
    alone = model.all.score(next_token_batch(pad_rows(rows).ids))[0]
    np.testing.assert_allclose(each[0, : len(rows[0]) - 1, 2], alone[0, : len(rows[0]) - 1])


@pytest.mark.parametrize("smoothing", ["modified_kneser_ney", "kneser_ney", "katz", "stupid", "add_delta"])
@pytest.mark.parametrize("background", [0.0, 50.0])
def test_one_text_of_one_token_is_enough(smoothing: str, background: float) -> None:
    rows = [[0, 1, 0], *random_rows(20, num_labels=1)[0]]
    model = fitted(rows, np.array([1] + [0] * 20), num_labels=2, smoothing=smoothing, background=background, order=5)
    found = log_probs(model, [*rows, [0, 5, 5, 5, 5, 0], [0, 0]])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, atol=1e-12)


def test_a_background_spares_a_label_with_little_text() -> None:
    """Of 40 labels with five texts each, more are found where all texts have their say."""
    random = np.random.default_rng(0)
    likely = random.dirichlet(np.full(VOCAB - 1, 0.5), size=40)
    labels = np.repeat(np.arange(40), 10)
    rows = [[0, *(1 + random.choice(VOCAB - 1, size=8, p=likely[label])).tolist(), 0] for label in labels]
    learn, held = np.arange(400) % 2 == 0, np.arange(400) % 2 == 1
    losses = []
    for background in (0.0, 20.0):
        some = [row for row, there in zip(rows, learn, strict=True) if there]
        model = fitted(some, labels[learn], num_labels=40, order=2, background=background)
        found = log_probs(model, [row for row, there in zip(rows, held, strict=True) if there])
        losses.append(-found[np.arange(200), labels[held]].mean())
    assert losses[1] < losses[0] - 0.1


# -- learning ---------------------------------------------------------------------------------------------------------


def test_it_learns_what_is_planted() -> None:
    """What follows what tells the label; which tokens there are does not."""
    rows, labels = random_rows(600)
    right = {
        order: (
            log_probs(fitted(rows[:400], labels[:400], order=order), rows[400:]).argmax(axis=1) == labels[400:]
        ).mean()
        for order in (1, 2)
    }
    assert right[2] > 0.75 > right[1] + 0.2


def test_order_and_temperature_that_validate_best_are_kept() -> None:
    rows, labels = random_rows(600)
    model = fitted(rows[:300], labels[:300], valid=(flat(rows[300:]), labels[300:]))
    assert model.order == 2
    fixed = fitted(rows[:300], labels[:300], order=2)
    assert fixed.temperature == 1.0

    def loss(some: NgramClassifier) -> float:
        return -float(log_probs(some, rows[300:])[np.arange(300), labels[300:]].mean())

    assert loss(model) < loss(fixed)
    assert fitted(rows, labels).order == 3  # nothing to validate on


def test_weights_of_labels_move_the_prior() -> None:
    rows, labels = random_rows(30, num_labels=2)
    even, heavy = (
        fitted(rows, labels, num_labels=2, order=2, label_weights=weights) for weights in (None, np.array([1.0, 5.0]))
    )
    odds = [np.subtract(*log_probs(model, rows).T[::-1]) for model in (even, heavy)]
    np.testing.assert_allclose(odds[1] - odds[0], math.log(5))


# -- the verbs and the run folder -------------------------------------------------------------------------------------


def test_padding_and_neighbours_change_nothing() -> None:
    rows, labels = random_rows(40)
    model = fitted(rows, labels, order=3)
    alone = np.concatenate([log_probs(model, [row]) for row in rows])
    padded = pad_rows([*rows, [0] + [1] * 30 + [0]])
    is_token = padded.is_token
    assert is_token is not None
    other = Tokens(torch.where(is_token, padded.ids, 5), is_token)  # padding of another kind
    np.testing.assert_allclose(model.log_probs(other).numpy()[:-1], alone, atol=1e-9)
    np.testing.assert_allclose(np.exp(alone).sum(axis=1), 1.0, atol=1e-12)


def test_score_and_predict_say_the_same() -> None:
    rows, labels = random_rows(20)
    model = fitted(rows, labels, order=2)
    batch = Batch({"tokens": pad_rows(rows)}, {"label": Labels(torch.tensor(labels))})
    prediction, (scores, state) = model.predict(batch), model.score(batch)
    assert state is None
    assert prediction.log_probs is not None
    assert torch.equal(scores[:, 0], prediction.log_probs[torch.arange(20), torch.tensor(labels)])
    assert torch.equal(prediction.answers, prediction.log_probs.argmax(dim=1))


def test_a_saved_model_gives_the_same_numbers() -> None:
    rows, labels = random_rows(40, num_labels=2)
    model = fitted(rows, labels, valid=(flat(rows), labels))
    other = NgramClassifier(model.config, schemas.of_answers(3, vocab_size=VOCAB))
    other.load_state_dict(load(save(model.state_dict())))
    np.testing.assert_array_equal(log_probs(other, rows), log_probs(model, rows))
    assert other.num_parameters == model.num_parameters > 100


def test_damaged_files_get_a_sentence() -> None:
    model = fitted(*random_rows(40), order=2)
    saved, fresh = model.state_dict(), NgramClassifier(model.config, schemas.of_answers(3, vocab_size=VOCAB))
    with pytest.raises(CheckpointError, match='lacks "shares"'):
        fresh.load_state_dict({name: tensor for name, tensor in saved.items() if name != "shares"})
    with pytest.raises(CheckpointError, match="lacks 'discounts'"):
        fresh.load_state_dict({name: tensor for name, tensor in saved.items() if name != "label1.discounts"})
    for name in ("log_prior", "shares"):
        with pytest.raises(CheckpointError, match="damaged, or was not trained for 3 labels"):
            fresh.load_state_dict({**saved, name: saved[name] * float("nan")})
    with pytest.raises(CheckpointError, match="damaged, or was not trained for 3 labels"):
        fresh.load_state_dict({**saved, "labels": saved["labels"] + 1})


def test_mistakes_get_a_sentence() -> None:
    with pytest.raises(ConfigError, match="order = -1"):
        NgramClassifierConfig(order=-1)
    with pytest.raises(ConfigError, match="rules out most texts"):
        NgramClassifierConfig(smoothing="maximum_likelihood")
    with pytest.raises(ConfigError, match="background = -1 should be 0 or more"):
        NgramClassifierConfig(background=-1)
    with pytest.raises(ConfigError, match="delta = 0 should be above 0"):
        NgramClassifierConfig(delta=0)
    with pytest.raises(DataError, match="text 1 has the label 3"):
        fitted([[0, 1, 0]], np.array([3]))
    with pytest.raises(DataError, match="token 6 is not in the vocabulary"):
        fitted([[0, 6, 0]], np.array([0]))
