"""Vectors of texts: the same alone and in a batch, from real tokens alone, for every family that has vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seqwise.api import TrainedRun, train
from seqwise.data.batch import Tokens
from seqwise.data.schema import (
    LabelSpec,
    Schema,
    TagSpec,
    TokenSpec,
    ValueSpec,
    answer_schema,
    masked_schema,
    series_schema,
    tag_schema,
    text_schema,
    vector_schema,
)
from seqwise.errors import ConfigError
from seqwise.models import family
from seqwise.run import Run, RunConfig
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig
from seqwise.text import special_of
from seqwise.text.symbols import SymbolTokenizer
from seqwise.text.wordpiece import WordPieceTokenizer
from seqwise.text.words import WordTokenizer

WORDS = WordTokenizer(["cat", "cats", "dog", "the", "a", "ran", "sat", "far"])
PIECES = WordPieceTokenizer.train(["a cat sat\nthe dog ran far away\ncats and dogs\n" * 9], vocab_size=80)
TEXTS = ["a cat sat", "the", "the dog ran far the dog sat", "cats"]
LSTM = {"model_dim": 6, "embed_dim": 5}
BERT = {"num_layers": 2, "model_dim": 8, "num_heads": 2, "context": 16}
LABELS = LabelSpec(["no", "yes"])
MADE: dict[str, tuple[str, Schema, str, dict[str, Any]]] = {
    "lstm": ("lstm", text_schema(WORDS), "text", LSTM),
    "gru": ("gru", text_schema(WORDS), "text", LSTM),
    "rnn": ("rnn", text_schema(WORDS), "text", LSTM),
    "window": ("window", text_schema(WORDS), "text", {"window": 3, "embed_dim": 5, "model_dim": 6}),
    "conv": ("conv", text_schema(WORDS), "text", {"model_dim": 6, "num_layers": 2}),
    "gpt": ("gpt", text_schema(WORDS), "text", BERT),
    "elmo": ("elmo", text_schema(WORDS), "text", {"model_dim": 4, "memory_dim": 8, "num_filters": 1}),
    "word2vec": ("word2vec", text_schema(WORDS), "text", {"embed_dim": 5}),
    "masked": ("bert", masked_schema(PIECES, next_sentence=True), "masked", BERT),
    "vectors": ("bert", vector_schema(TokenSpec(PIECES, special_of(PIECES))), "vectors", {**BERT, "pooling": "mean"}),
    "labels": ("lstm", answer_schema(TokenSpec(WORDS), LABELS), "label", {**LSTM, "bidirectional": True}),
    "pairs": ("lstm", answer_schema(TokenSpec(WORDS, num_texts=2), LABELS), "label", {**LSTM, "pairing": "siamese"}),
    "compared": (
        *("bert", answer_schema(TokenSpec(PIECES, special_of(PIECES), num_texts=2), LABELS), "label"),
        {**BERT, "pairing": "compared", "pooling": "mean"},
    ),
    "attention": ("gru", answer_schema(TokenSpec(WORDS), LABELS), "label", {**LSTM, "pooling": "attention"}),
    "tags": (
        "lstm",
        tag_schema(TokenSpec(WORDS, alphabet="acdefghorst"), TagSpec(["N", "X"])),
        "tags",
        {**LSTM, "characters": "conv", "character_dim": 2},
    ),
}


def made_run(path: Path, name: str, **settings: Any) -> TrainedRun:
    """With random weights, as nothing has to be learned to be embedded with."""
    model_name, schema, task, given = MADE[name]
    row = family(model_name)
    config: Any = row.config(**{**given, **settings})
    kinds = RunConfig(model_name, DataConfig(), TokenizerConfig(), config, TrainingConfig(), task=task)
    run = Run.create(path, kinds, schema)
    torch.manual_seed(5)
    model = row.build(config, schema)
    if isinstance(model, nn.Module):
        for weight in model.parameters():
            nn.init.normal_(weight, std=0.5)
    else:
        model.initialise(np.tile(np.arange(WORDS.vocab_size - 2), 9))
        model.take_vectors(np.random.default_rng(0).normal(size=(len(WORDS.words), 5)).astype(np.float32))
    run.save_model(model)
    return TrainedRun(path)


@pytest.mark.parametrize("pooling", [None, "mean", "cls", "last", "max"])
@pytest.mark.parametrize("name", MADE)
def test_a_text_has_the_same_vector_alone_and_beside_others(tmp_path: Path, name: str, pooling: str | None) -> None:
    run = made_run(tmp_path / "run", name)
    together = run.embed(TEXTS, pooling=pooling)
    alone = np.concatenate([run.embed([text], pooling=pooling) for text in TEXTS])
    assert together.dtype == np.float32
    assert together.shape == alone.shape
    np.testing.assert_allclose(together, alone, atol=2e-6)
    if pooling in (None, "mean", "max"):  # the first step of a model that reads on knows nothing of the others
        assert len(np.unique(together.round(4), axis=0)) == len(TEXTS)


@torch.no_grad()
@pytest.mark.parametrize("name", ["lstm", "gpt", "window"])
def test_of_a_language_model_the_tokens_of_the_text_alone_are_pooled(tmp_path: Path, name: str) -> None:
    run = made_run(tmp_path / "run", name)
    ids = torch.tensor([[WORDS.boundary, *WORDS.encode("the dog ran")]])
    hidden = run.model.body.encode({"tokens": Tokens(ids)}, None).stream.hidden[0, 1:]
    found = {kind: run.embed(["the dog ran"], pooling=kind)[0] for kind in ("mean", "cls", "last", "max")}
    wanted = {"mean": hidden.mean(0), "cls": hidden[0], "last": hidden[-1], "max": hidden.amax(0)}
    for kind, vector in wanted.items():
        np.testing.assert_allclose(found[kind], vector, atol=1e-6)
    np.testing.assert_array_equal(run.embed(["the dog ran"])[0], found["mean"])


@torch.no_grad()
@pytest.mark.parametrize("name", ["masked", "vectors"])
def test_of_an_encoder_its_special_tokens_are_pooled_too(tmp_path: Path, name: str) -> None:
    run = made_run(tmp_path / "run", name)
    spec = run.run.schema.input("tokens", TokenSpec)
    ids = torch.tensor([[spec.begin, *spec.encode("the dog ran"), spec.separator]])
    hidden = run.model.body.encode({"tokens": Tokens(ids)}, None).stream.hidden[0]
    np.testing.assert_allclose(run.embed(["the dog ran"])[0], hidden.mean(0), atol=1e-6)
    np.testing.assert_allclose(run.embed(["the dog ran"], pooling="cls")[0], hidden[0], atol=1e-6)


@torch.no_grad()
def test_elmo_gives_the_mean_of_its_layers_and_reads_words_it_does_not_know(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", "elmo")
    spec = TokenSpec(WORDS, alphabet=run.model.alphabet)
    for text in ("the dog", "the dogs"):  # of which one is not in the vocabulary
        letters = torch.from_numpy(spec.spell(["", *text.split(), ""])).long().unsqueeze(0)
        layers = torch.stack(run.model.body.layers(letters, torch.tensor([4])))
        np.testing.assert_allclose(run.embed([text])[0], layers.mean(0)[0, 1:-1].mean(0), atol=1e-6)
    assert not np.allclose(run.embed(["the dogs"]), run.embed(["the cans"]))


def test_word2vec_averages_the_words_that_have_a_vector(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", "word2vec")
    found = run.embed(["the unheard cat", "unheard", ""])
    wanted = (run.words.vector("the") + run.words.vector("cat")) / 2
    np.testing.assert_allclose(found[0], wanted, atol=1e-6)
    assert not found[1:].any()


@torch.no_grad()
def test_a_model_that_pools_by_itself_does_so_here(tmp_path: Path) -> None:
    for name in ("labels", "attention"):
        run = made_run(tmp_path / name, name)
        ids = torch.tensor([[WORDS.boundary, *WORDS.encode("the dog ran"), WORDS.boundary]])
        stream = run.model.body.encode({"tokens": Tokens(ids)}, None).stream
        np.testing.assert_allclose(run.embed(["the dog ran"]), run.model.main_head.pooling.of(stream), atol=1e-6)


def test_length_one_is_as_the_run_says_and_as_asked(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", "vectors", normalise=True)
    np.testing.assert_allclose(np.linalg.norm(run.embed(TEXTS), axis=1), 1, atol=1e-6)
    raw = run.embed(TEXTS, normalise=False)
    assert np.linalg.norm(raw, axis=1).max() > 1.1
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), run.embed(TEXTS), atol=1e-6)
    plain = made_run(tmp_path / "plain", "lstm")
    np.testing.assert_allclose(np.linalg.norm(plain.embed(TEXTS, normalise=True), axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("name", ["vectors", "gpt"])
def test_what_is_empty_or_too_long_is_told(tmp_path: Path, name: str) -> None:
    run, told = made_run(tmp_path / "run", name), list[str]()
    long = " ".join(["dog cat"] * 40)
    found = run.embed(["a cat", "", "  ", long], tell=told.append)
    assert not found[1:3].any()
    assert found[0].any()
    assert told == [
        "2 texts of 4 with nothing that the model reads: zero vectors",
        "1 text of 4 longer than the 16 tokens that the model can place: their beginning was read",
    ]
    cut = " ".join(long.split()[:14])
    np.testing.assert_allclose(found[3], run.embed([cut])[0], atol=1e-6)
    assert run.embed([]).shape == (0, found.shape[1])
    np.testing.assert_array_equal(run.embed([""]), np.zeros((1, found.shape[1])))


def test_progress_is_told_up_to_the_end(tmp_path: Path) -> None:
    run, seen = made_run(tmp_path / "run", "lstm"), list[tuple[str, int, int]]()
    run.embed([*TEXTS * 20, ""], on_progress=lambda *told: seen.append(told))
    assert seen == [("embedding", 32, 80), ("embedding", 64, 80), ("embedding", 80, 80)]


def test_models_without_vectors_of_texts_are_refused(tmp_path: Path) -> None:
    for name, schema, task, sentence in (
        ("lstm", series_schema(ValueSpec.unscaled(["x"])), "numbers", "does not read one text at a time"),
        ("lstm", answer_schema(TokenSpec(SymbolTokenizer(4)), LABELS), "label", "does not read one text at a time"),
    ):
        row, path = family(name), tmp_path / f"{name}-{task}"
        config: Any = row.config()
        made = RunConfig(name, DataConfig(), TokenizerConfig(), config, TrainingConfig(), task=task)
        Run.create(path, made, schema).save_model(row.build(config, schema))
        with pytest.raises(ConfigError, match=sentence):
            TrainedRun(path).embed(["a"])
    (tmp_path / "cats.txt").write_text("a cat sat\n" * 40)
    with pytest.raises(ConfigError, match="knows tokens by name"):
        train(tmp_path / "cats.txt", "ngram", out=tmp_path / "ngram").embed(["a"])
    with pytest.raises(ConfigError, match=r'pooling="mena" is not known. Did you mean "mean"'):
        made_run(tmp_path / "run", "lstm").embed(["a"], pooling="mena")
