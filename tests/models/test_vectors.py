"""Vectors of texts as a target: no weights, nothing to learn, nothing to be judged by, and all else as in any run."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from seqwise.api import TrainedRun, train
from seqwise.data.batch import Batch, Tokens
from seqwise.data.schema import STARTS, VECTOR, Schema, TokenSpec, vector_schema
from seqwise.errors import ConfigError
from seqwise.layers.heads import VectorHead
from seqwise.layers.stream import Stream
from seqwise.models import MODELS, family
from seqwise.models.build import Pooling
from seqwise.run import Run, RunConfig
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig
from seqwise.text import special_of
from seqwise.text.wordpiece import WordPieceTokenizer

LINES = ["a cat sat", "the dog ran far away", "a dog sat", "cats and dogs"] * 12
SETTINGS = {
    "bert": {"num_layers": 2, "model_dim": 16, "num_heads": 2, "context": 24},
    "gpt": {"num_layers": 2, "model_dim": 16, "num_heads": 2, "context": 24},
    "lstm": {"model_dim": 12, "bidirectional": True},
    "conv": {"model_dim": 8, "num_layers": 2},
    "window": {"embed_dim": 8, "model_dim": 8, "window": 3},
}


def tokens() -> TokenSpec:
    tokenizer = WordPieceTokenizer.train(["\n".join(LINES)], vocab_size=80)
    return TokenSpec(tokenizer, special_of(tokenizer))


@pytest.fixture(scope="module")
def schema() -> Schema:
    return vector_schema(tokens())


def vector_run(path: Path, schema: Schema, name: str = "bert", **settings: object) -> TrainedRun:
    row = family(name)
    config = row.config(**{**SETTINGS[name], "pooling": "mean", **settings})
    torch.manual_seed(3)
    run = Run.create(
        path,
        RunConfig(name, DataConfig(), TokenizerConfig(kind="wordpiece"), config, TrainingConfig(), task="vectors"),
        schema,
    )
    run.save_model(row.build(config, schema))
    return TrainedRun(path)


def test_vectors_are_never_ranked_and_heads_have_no_weights(schema: Schema) -> None:
    assert VECTOR in STARTS
    model = family("bert").build(family("bert").config(**SETTINGS["bert"]), schema)
    assert not [name for name in model.state_dict() if name.startswith("head.")]


@pytest.mark.parametrize("kind", ["mean", "first", "last", "max"])
def test_a_vector_is_pooled_from_real_steps_alone(kind: str) -> None:
    hidden = torch.randn(2, 4, 3)
    is_step = torch.tensor([[True] * 4, [True, True, False, False]])
    raw = VectorHead(Pooling(kind, 3)).predict(Stream(hidden, is_step, pooled=torch.zeros(2, 3))).answers
    for row, length in enumerate((4, 2)):
        steps = hidden[row, :length]
        wanted = {"mean": steps.mean(0), "first": steps[0], "last": steps[-1], "max": steps.amax(0)}[kind]
        assert torch.allclose(raw[row], wanted, atol=1e-6)
    unit = VectorHead(Pooling(kind, 3), is_normalised=True).predict(Stream(hidden, is_step)).answers
    assert torch.allclose(unit.norm(dim=-1), torch.ones(2))
    assert torch.allclose(unit * raw.norm(dim=-1, keepdim=True), raw, atol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_body_that_reads_text_may_have_the_head(tmp_path: Path, schema: Schema, name: str) -> None:
    assert VECTOR in MODELS[name].learns
    run = vector_run(tmp_path / "run", schema, name, normalise=True)
    ids = torch.tensor([[1, 5, 7, 2]])
    found = run.model.predict(Batch({"tokens": Tokens(ids)}, {})).answers
    assert math.isclose(float(found.detach().norm()), 1.0, rel_tol=1e-5)


def test_pooling_that_would_have_to_be_learned_is_refused(schema: Schema) -> None:
    with pytest.raises(ConfigError, match="vectors are not learned"):
        family("bert").build(family("bert").config(**SETTINGS["bert"], pooling="attention"), schema)


@pytest.mark.parametrize("name", ["bert", "gpt", "lstm"])
def test_such_a_run_is_checked_like_any_other(tmp_path: Path, schema: Schema, name: str) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(LINES) + "\n")
    found = {one.name: one for one in vector_run(tmp_path / "run", schema, name).check(file)}
    assert {name for name, one in found.items() if one.is_kept} == {"padding", "batch composition", "save and load"}
    assert not [one for one in found.values() if one.is_broken]
    assert found["padding"].sentence == "padding changes no vector"


def test_it_has_no_answers_of_its_own(tmp_path: Path, schema: Schema) -> None:
    run = vector_run(tmp_path / "run", schema)
    for ask in (run.evaluate, run.predict, lambda: run.generate("a"), lambda: list(run.predict(tmp_path / "x.txt"))):
        with pytest.raises(ConfigError, match="no answers of its own to be judged by: fine-tune it"):
            ask()
    with pytest.raises(ConfigError, match="no answers to be judged by"):
        run.model.score(Batch({"tokens": Tokens(torch.tensor([[1, 2]]))}, {}))
    file = tmp_path / "lines.txt"
    file.write_text("\n".join(LINES) + "\n")
    with pytest.raises(ConfigError, match="nothing to learn for task="):
        train(file, "bert", task="vectors", steps=1, out=tmp_path / "other")


def test_it_is_looked_into(tmp_path: Path, schema: Schema) -> None:
    found = vector_run(tmp_path / "run", schema).inspect("the dog ran")
    assert [one.weights.shape for one in found.attention] == [(2, 5, 5)] * 2
    assert "gradients" in found.absent
    found.to_dict()
    found.save(tmp_path / "page.html")


def test_labels_start_from_it(tmp_path: Path, schema: Schema) -> None:
    base = vector_run(tmp_path / "base", schema, normalise=True)
    file = tmp_path / "labels.csv"
    file.write_text("text,label\n" + "".join(f"{line},{'cat' in line}\n" for line in LINES))
    run = train(
        file, "bert", start_from=base.path, steps=1, out=tmp_path / "labels", overrides=["training.learning_rate=1e-9"]
    )
    for name, weight in base.model.state_dict().items():
        assert np.allclose(weight, run.model.state_dict()[name], atol=1e-6)
