"""The HMM classifier against Bayes' rule by hand, from HMMs that have their own tests."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch, Labels, Tokens, Values, pad_rows
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.models.hmm import HMM, HMMConfig, Observed
from seqwise.models.hmm_classifier import HMMClassifier, HMMClassifierConfig
from seqwise.settings import TrainingConfig
from seqwise.training.em import expect_and_maximise, length_of

VOCAB, COLUMNS = 5, 2
Labelled = list[tuple[Any, ...]]


def random_texts(num: int, *, num_labels: int = 3, seed: int = 0) -> Labelled:
    """Each label goes from token to token in steps of its own, behind the boundary 0."""
    random, found = np.random.default_rng(seed), []
    for label in np.arange(num) % num_labels:
        row = [0, int(random.integers(1, VOCAB))]
        for _ in range(random.integers(1, 8)):
            row.append(int((row[-1] + label) % (VOCAB - 1) + 1 if random.random() < 0.9 else random.integers(1, VOCAB)))
        found.append((np.array([*row, 0]), int(label)))
    return found


def random_series(num: int, *, seed: int = 0, share_missing: float = 0.2) -> Labelled:
    """Two labels: the numbers change their sign at each step, or at every other."""
    random, found = np.random.default_rng(seed), []
    for label in np.arange(num) % 2:
        steps = np.arange(random.integers(3, 9))
        values = (-1.0) ** (steps // (1 + label))[:, None] + random.normal(scale=0.3, size=(len(steps), COLUMNS))
        found.append((values, random.random(values.shape) >= share_missing, int(label)))
    return found


def empty(*, num_labels: int = 3, numbers: bool = False, **settings: Any) -> HMMClassifier:
    sizes = {"num_columns": COLUMNS} if numbers else {"vocab_size": VOCAB}
    config = HMMClassifierConfig(**{"num_states": 3, **settings})
    return HMMClassifier(config, schemas.of_answers(num_labels, **sizes))


def learned(sequences: Labelled, *, steps: int = 10, seed: int = 0, **settings: Any) -> HMMClassifier:
    model = empty(numbers=len(sequences[0]) == 3, **settings)
    list(expect_and_maximise(model, sequences, TrainingConfig(steps=steps, seed=seed)))
    return model


def field_of(sequences: Labelled) -> Tokens | Values:
    if len(sequences[0]) == 2:
        return pad_rows([ids.tolist() for ids, _ in sequences])
    longest = max(len(values) for values, *_ in sequences)
    values = torch.zeros(len(sequences), longest, COLUMNS, dtype=torch.float64)
    there = torch.zeros(values.shape, dtype=torch.bool)
    is_step = torch.zeros(len(sequences), longest, dtype=torch.bool)
    for row, (own, is_observed, _) in enumerate(sequences):
        values[row, : len(own)], there[row, : len(own)] = torch.tensor(own), torch.tensor(is_observed)
        is_step[row, : len(own)] = True
    return Values(values, there, is_step)


def log_probs(model: HMMClassifier, sequences: Labelled) -> np.ndarray:
    return model.log_probs(field_of(sequences)).numpy()


def of_label(sequences: Labelled, label: int | None = None) -> list[Observed]:
    return [
        (parts[0], parts[1]) if len(parts) == 2 else parts[0]
        for *parts, own in sequences
        if label is None or own == label
    ]


@pytest.mark.parametrize("background", [0.0, 4.0])
@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_it_is_bayes_rule_over_a_model_for_each_label(background: float, kind: str) -> None:
    sequences = random_texts(31, num_labels=2) if kind == "text" else random_series(31)
    model = learned(sequences, num_labels=2, background=background)
    probes = random_texts(8, seed=5) if kind == "text" else random_series(8, seed=5)
    found = log_probs(model, probes)
    for probe, answer in zip(probes, found, strict=True):
        log_joint = []
        for label, count in enumerate([16, 15]):
            own, of_all = (model.models[name].log_likelihood(of_label([probe])) for name in (str(label), "all"))
            share = background / (background + count)
            likelihood = (1 - share) * math.exp(own) + share * math.exp(of_all)
            log_joint.append(math.log((1 + count) / 33) + math.log(likelihood))
        np.testing.assert_allclose(answer, np.array(log_joint) - np.logaddexp.reduce(log_joint), atol=1e-9)


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_each_model_is_the_hmm_of_its_sequences(kind: str) -> None:
    sequences = random_texts(30, num_labels=2) if kind == "text" else random_series(30)
    model = empty(num_labels=2, numbers=kind == "numbers")
    model.initialise(sequences, seed=3)
    schema = schemas.of_text(VOCAB) if kind == "text" else schemas.of_numbers(COLUMNS)
    alone = []
    for name, label in (("all", None), ("0", 0), ("1", 1)):
        hmm = HMM(HMMConfig(num_states=3, smoothing=0.1), schema)
        hmm.load_state_dict(model.models[name].state_dict())
        alone.append((name, hmm, of_label(sequences, label)))
    for _ in range(3):
        assert model.em_step(sequences) == pytest.approx(sum(hmm.em_step(own) for _, hmm, own in alone), abs=1e-9)
    for name, hmm, _ in alone:
        for part, tensor in hmm.state_dict().items():
            np.testing.assert_allclose(model.models[name].state_dict()[part], tensor, atol=1e-12)


def test_starts_differ_by_label_and_by_seed() -> None:
    sequences = random_texts(30)
    model, other = empty(), empty()
    model.initialise(sequences, seed=0)
    other.initialise(sequences, seed=1)
    starts = [each.models[name].initial for each in (model, other) for name in ("all", "0", "1", "2")]
    assert len({tuple(start.tolist()) for start in starts}) == 8


def test_the_learner_runs_it_and_no_step_lowers_the_objective() -> None:
    sequences, model = random_texts(40), empty()
    assert length_of(sequences) == sum(len(ids) for ids, _ in sequences)
    reports = list(expect_and_maximise(model, sequences, TrainingConfig(steps=15, restarts=2)))
    losses = [report.loss for report in reports[:15]]
    assert all(after <= before + 1e-9 for before, after in pairwise(losses))
    assert losses[-1] < losses[0] - 0.1


def test_it_learns_what_follows_what() -> None:
    sequences = random_texts(450)
    found = log_probs(learned(sequences[:300], steps=60, num_states=6), sequences[300:])
    assert (found.argmax(axis=1) == [label for _, label in sequences[300:]]).mean() > 0.8


def test_it_learns_from_numbers() -> None:
    sequences = random_series(200)
    model = learned(sequences[:150], steps=40, num_labels=2, num_states=4)
    assert (log_probs(model, sequences[150:]).argmax(axis=1) == [label for *_, label in sequences[150:]]).mean() > 0.9


def test_labels_with_one_sequence_and_with_none() -> None:
    sequences = [*random_texts(40, num_labels=2), (np.array([0, 4, 4, 4, 0]), 2)]
    model = learned(sequences, num_labels=4, steps=30)
    found = log_probs(model, [*sequences, (np.array([0, 1, 0]), 0), (np.array([0]), 0)])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, atol=1e-12)
    assert found[-3].argmax() == 2  # the one it knows by heart
    assert (found[:-3].argmax(axis=1) < 2).all()
    assert "3" not in model.models


def test_what_no_model_can_show_has_the_prior() -> None:
    sequences = [(np.array([0, 1, 0]), 0), (np.array([0, 1, 0]), 0), (np.array([0, 2, 0]), 1)]
    model = learned(sequences, num_labels=2, smoothing=0.0)
    found = np.exp(log_probs(model, [(np.array([0, 3, 0]), 0)]))
    np.testing.assert_allclose(found[0], [0.6, 0.4])


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_padding_and_neighbours_change_nothing(kind: str) -> None:
    sequences = random_texts(30) if kind == "text" else random_series(30)
    model = learned(sequences)
    alone = np.concatenate([log_probs(model, [sequence]) for sequence in sequences])
    np.testing.assert_allclose(log_probs(model, sequences), alone, atol=1e-9)
    np.testing.assert_allclose(np.exp(alone).sum(axis=1), 1.0, atol=1e-12)


def test_score_and_predict_say_the_same() -> None:
    sequences = random_texts(20)
    model, labels = learned(sequences), torch.tensor([label for _, label in sequences])
    batch = Batch({"tokens": field_of(sequences)}, {"label": Labels(labels)})
    prediction, (scores, state) = model.predict(batch), model.score(batch)
    assert state is None
    assert prediction.log_probs is not None
    assert torch.equal(scores[:, 0], prediction.log_probs[torch.arange(20), labels])
    assert torch.equal(prediction.answers, prediction.log_probs.argmax(dim=1))


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_a_saved_model_gives_the_same_numbers(kind: str) -> None:
    sequences = random_texts(20, num_labels=2) if kind == "text" else random_series(20)
    model = learned(sequences)
    other = empty(numbers=kind == "numbers")
    other.load_state_dict(load(save(model.state_dict())))
    np.testing.assert_array_equal(log_probs(other, sequences), log_probs(model, sequences))
    assert other.num_parameters == model.num_parameters > 20


def test_damaged_files_and_mistakes_get_a_sentence() -> None:
    model = learned(random_texts(20))
    saved, fresh = model.state_dict(), empty()
    with pytest.raises(CheckpointError, match='lacks "counts"'):
        fresh.load_state_dict({})
    with pytest.raises(CheckpointError, match='lacks "initial"'):
        fresh.load_state_dict({name: tensor for name, tensor in saved.items() if name != "1.initial"})
    with pytest.raises(CheckpointError, match="was not trained for 3 labels"):
        fresh.load_state_dict({**saved, "counts": saved["counts"][1:]})
    with pytest.raises(DataError, match="sequence 2 has the label 3; labels go from 0 to 2"):
        fresh.initialise([(np.array([0, 1]), 0), (np.array([0, 1]), 3)], seed=0)
    with pytest.raises(ConfigError, match="background = -1 should be 0 or more"):
        HMMClassifierConfig(background=-1)
    with pytest.raises(ConfigError, match="num_states = -1"):
        HMMClassifierConfig(num_states=-1)
