"""Layers of a language model as features of a tagger: copied whole, never moved, and mixed by weights that learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import seqwise
from seqwise.api import TrainedRun
from seqwise.errors import ConfigError
from seqwise.inspection.inspect import inspect_run
from seqwise.inspection.page import write_inspection
from seqwise.layers.contextual import layer_weights
from seqwise.run import Run
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "mat", "a"]


@pytest.fixture(scope="module")
def elmo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elmo")
    lines = [" ".join(WORDS[(i * k) % 8] for k in range(1, 6)) for i in range(300)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    sizes = ["model.model_dim=6", "model.memory_dim=8", "model.num_filters=1", "training.batch_size=4"]
    seqwise.train(folder / "text.txt", "elmo", out=folder / "run", tokenizer="word", steps=5, overrides=sizes)
    return folder / "run"


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nouns are tagged N, other words X; some words are only in the last rows."""
    path = tmp_path_factory.mktemp("tagged") / "words.conll"
    nouns = {"cat", "dog", "mat", "cow"}
    rows = []
    for i in range(120):
        words = [[*WORDS, "cow", "hen"][(i * k + k * k) % (8 if i < 100 else 10)] for k in range(1, 6)]
        rows.append("\n".join(f"{word}\t{'N' if word in nouns else 'X'}" for word in words))
    path.write_text("\n\n".join(rows) + "\n")
    return path


def settings(elmo: Path) -> list[str]:
    return [f"model.features={elmo}", "model.model_dim=8", "model.embed_dim=8", "model.character_dim=4"]


def test_features_are_copied_stay_as_they_are_and_are_mixed(elmo: Path, tagged: Path, tmp_path: Path) -> None:
    run = seqwise.train(tagged, "lstm", out=tmp_path / "run", task="tags", steps=20, overrides=settings(elmo))
    features = run.model.body.embedding.features
    source = Run.open(elmo).load_model()
    for name, weight in source.body.state_dict().items():
        assert torch.equal(features.reader.state_dict()[name], weight), name
    assert not torch.allclose(features.mix, torch.zeros(3))  # it has learned which layers to read
    assert features.weights.sum().item() == pytest.approx(1.0)
    assert run.run.config.model.feature_sizes == list(source.config.sizes.values())
    assert len(run.run.config.model.features_fingerprint) == 64


@pytest.fixture(scope="module")
def tagger(elmo: Path, tagged: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    """Whose mix is as if it had learned: 0.2, 0.5, 0.3, times 1.08."""
    path = tmp_path_factory.mktemp("tagger") / "run"
    run = seqwise.train(tagged, "lstm", out=path, task="tags", steps=3, overrides=settings(elmo))
    features = run.model.body.embedding.features
    with torch.no_grad():
        features.mix.copy_(torch.tensor([0.2, 0.5, 0.3]).log() + 4.0)
        features.scale.fill_(1.08)
    return run


def test_the_weights_of_layers_are_shares_by_name(tagger: TrainedRun) -> None:
    found = layer_weights(tagger.model)
    assert found.shares == pytest.approx({"embeddings": 0.2, "layer 1": 0.5, "layer 2": 0.3})
    assert math.isclose(found.scale, 1.08, rel_tol=1e-6)
    assert str(found) == "embeddings 0.20, layer 1 0.50, layer 2 0.30, scale 1.08"
    assert layer_weights(Run.open(tagger.run.config.model.features).load_model()) is None  # it is read, and reads none
    assert layer_weights(object()) is None


def test_the_card_and_the_end_of_training_tell_them(elmo: Path, tagged: Path, tmp_path: Path) -> None:
    told: list[str] = []
    overrides = [*settings(elmo), "training.learning_rate=0.1"]
    request = Request.of(tagged, model="gru", out=tmp_path / "run", task="tags", steps=20, overrides=overrides)
    prepare(request).train(tell=told.append)
    expected = f"Features of {elmo.resolve()}: {layer_weights(seqwise.load(tmp_path / 'run').model)}"
    assert f"- {expected}" in (tmp_path / "run" / "card.md").read_text().splitlines()
    assert expected in told
    assert "embeddings 0.33, layer 1 0.33, layer 2 0.33" not in expected  # of the model that has learned
    assert "Features" not in (elmo / "card.md").read_text()


def test_the_page_shows_them_beside_the_answer(show: Any, tagger: TrainedRun) -> None:
    found = inspect_run(tagger, "the cat sat")
    assert found.to_dict()["layer_weights"]["shares"] == {"embeddings": 0.2, "layer 1": 0.5, "layer 2": 0.3}
    page = show(found)
    page.click("nav a[href='#answer']")
    figure = page.locator("#answer figure", has_text="Layers of the features")
    assert figure.is_visible()
    assert figure.locator("dt").all_inner_texts() == ["embeddings", "layer 1", "layer 2"]
    bars = figure.locator("meter").evaluate_all("bars => bars.map((bar) => bar.value)")
    assert bars == pytest.approx([0.2, 0.5, 0.3], abs=1e-4)
    assert "50.0 %" in figure.inner_text()
    assert "multiplied by 1.08" in figure.inner_text()


def test_a_classifier_with_features_is_inspected_and_only_its_own_layers_are_followed(
    elmo: Path, tmp_path: Path
) -> None:
    lines = [f"{' '.join(WORDS[(i * k) % 8] for k in range(1, 6))},{'ab'[i % 2]}" for i in range(80)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    asked = {"task": "label", "tokenizer": "word", "steps": 2, "overrides": settings(elmo)[:3]}
    run = seqwise.train(tmp_path / "texts.csv", "lstm", out=tmp_path / "run", **asked)
    found = inspect_run(run, "the cat sat on the mat")
    assert found.layer_weights == layer_weights(run.model)
    assert found.evidence is not None
    assert "Layers of the features" in write_inspection([found])
    assert found.flow  # gradients go back through the classifier, and none into what is only read
    assert not any("features" in each.site for each in (*found.flow, *found.over_text))


def test_who_reads_no_features_has_no_such_bars(tagged: Path, tmp_path: Path) -> None:
    run = seqwise.train(tagged, "lstm", out=tmp_path / "run", task="tags", steps=2, overrides=["model.model_dim=8"])
    found = inspect_run(run, "the cat sat")
    assert found.layer_weights is None
    assert "Layers of the features" not in write_inspection([found])
    assert "Features" not in (tmp_path / "run" / "card.md").read_text()


def test_the_run_stands_alone(elmo: Path, tagged: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "elmo"
    shutil.copytree(elmo, other)
    run = seqwise.train(tagged, "lstm", out=tmp_path / "run", task="tags", steps=3, overrides=settings(other))
    found = run.answer_texts(["the cat sat"])
    shutil.rmtree(other)
    assert seqwise.load(tmp_path / "run").answer_texts(["the cat sat"]) == found


def test_features_that_are_none_are_refused(tagged: Path, tmp_path: Path) -> None:
    seqwise.train(tagged, "lstm", out=tmp_path / "tagger", task="tags", steps=2, overrides=["model.model_dim=8"])
    with pytest.raises(ConfigError, match="read off a run of elmo"):
        seqwise.train(
            tagged,
            "lstm",
            out=tmp_path / "x",
            task="tags",
            steps=2,
            overrides=[f"model.features={tmp_path / 'tagger'}"],
        )
    assert not (tmp_path / "x").exists()


def test_probes_tell_which_layer_knows(elmo: Path, tagged: Path) -> None:
    found = seqwise.load(elmo).probe(tagged, task="tags", split="valid")
    assert [probe.layer for probe in found.layers] == [0, 1, 2]
    assert all(probe.accuracy >= found.baseline for probe in found.layers)  # a noun is known by its letters
    assert found.layers[0].accuracy > found.baseline + 0.1
    assert "without reading anything" in " ".join(found.sentences())


def test_what_has_no_layers_cannot_be_probed(tagged: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 50)
    run = seqwise.train(tmp_path / "text.txt", "ngram", out=tmp_path / "run", tokenizer="word")
    with pytest.raises(ConfigError, match="no layers to probe"):
        run.probe(tagged, task="tags", split="valid")
