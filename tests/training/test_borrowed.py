"""Layers of a language model as features of a tagger: copied whole, never moved, and mixed by weights that learn."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import seqwise
from seqwise.errors import ConfigError
from seqwise.run import Run

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
