"""Vectors that embeddings start from: the right rows, at the right size, and what is not known is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import seqwise
from seqwise.data.schema import TokenSpec
from seqwise.data.vector_files import write_vectors
from seqwise.data.word_vectors import WordVectors
from seqwise.errors import ConfigError, DataError
from seqwise.run import Run
from seqwise.text.words import WordTokenizer
from seqwise.training.preparing import prepare
from seqwise.training.request import Request
from seqwise.training.word_vectors import load_word_vectors

KNOWN = ["good", "Bad", "film", "plot", "elsewhere", "new york"]
SMALL = ["model.model_dim=6", "training.batch_size=8"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of four words of the data, of one that is not in it, and of two words that no token is."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    found = WordVectors([word.replace(" ", "_") for word in KNOWN], np.random.default_rng(0).normal(size=(6, 5)) * 7)
    write_vectors(found, path)
    return path


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews.csv"
    rows = [f"a {'good' if i % 2 else 'bad'} {'film' if i % 3 else 'plot'} indeed w{i},{i % 2}" for i in range(80)]
    path.write_text("review,label\n" + "\n".join(rows) + "\n")
    return path


def prepared(reviews: Path, vectors: Path, out: Path, *more: str, model: str = "lstm") -> tuple[Run, list[str]]:
    said: list[str] = []
    settings = [f"model.embeddings={vectors}", *SMALL, *more]
    request = Request.of(reviews, model=model, out=out, steps=3, overrides=settings)
    return prepare(request, tell=said.append).run, said


def tokenizer_of(run: Run) -> WordTokenizer:
    found = run.schema.input("tokens", TokenSpec).tokenizer
    assert isinstance(found, WordTokenizer)
    return found


def test_rows_of_known_words_are_copied_at_the_spread_of_the_table(
    reviews: Path, vectors: Path, tmp_path: Path
) -> None:
    run, said = prepared(reviews, vectors, tmp_path / "run")
    model = run.build_model()
    fresh = model.body.embedding.weight.detach().clone()
    run.load_initial_weights(model)
    table, words = model.body.embedding.weight.detach(), load_word_vectors(vectors)
    tokens = {word: int(tokenizer_of(run).encode(word)[0]) for word in ("good", "bad", "film", "plot", "elsewhere")}
    assert tokenizer_of(run).unknown not in tokens.values()  # elsewhere is known by its vector alone
    expected = np.stack([words.vector(word) for word in tokens])
    found = table[list(tokens.values())].numpy()
    ratios = found / expected
    assert ratios == pytest.approx(np.full(ratios.shape, ratios[0, 0]), rel=1e-4)
    assert found.std() == pytest.approx(float(fresh.std()), rel=0.3)
    assert not np.isclose(table[tokenizer_of(run).encode("indeed")[0]], 0).all()  # by chance, as before
    assert run.config.model.embed_dim == 5
    assert len(run.config.model.embeddings_fingerprint) == 64
    assert any("of those that have none, the most frequent: a, indeed" in sentence for sentence in said)
    assert any("2 more words are known by their vectors alone" in sentence for sentence in said)


def test_a_frozen_table_stays_and_a_tuned_one_moves(reviews: Path, vectors: Path, tmp_path: Path) -> None:
    for name, freeze in (("tuned", "[]"), ("frozen", '["body.embedding.weight"]')):
        settings = [f"model.embeddings={vectors}", *SMALL, f"training.freeze={freeze}"]
        run = seqwise.train(reviews, "lstm", out=tmp_path / name, steps=5, overrides=settings)
        start = run.run.build_model()
        run.run.load_initial_weights(start)
        assert torch.equal(start.body.embedding.weight, run.model.body.embedding.weight) == (name == "frozen")


def test_the_run_stands_alone(reviews: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    write_vectors(WordVectors(["good", "bad"], np.ones((2, 5))), path)
    settings = [f"model.embeddings={path}", *SMALL]
    run = seqwise.train(reviews, "lstm", out=tmp_path / "run", steps=3, overrides=settings)
    before = run.answer_texts(["a good film"])
    path.unlink()
    assert seqwise.load(tmp_path / "run").answer_texts(["a good film"]) == before


def test_characters_stand_beside_the_vectors(vectors: Path, tmp_path: Path) -> None:
    tagged = tmp_path / "words.conll"
    tagged.write_text("\n\n".join(f"good\tA\nfilm\tN\nw{i}\tN" for i in range(40)) + "\n")
    settings = [f"model.embeddings={vectors}", *SMALL, "model.characters=conv", "model.character_dim=4"]
    run = seqwise.train(tagged, "lstm", out=tmp_path / "run", task="tags", steps=2, overrides=settings)
    assert run.run.config.model.embed_dim == 9
    assert run.model.body.embedding.weight.shape[1] == 5


def test_pairs_start_from_them_on_both_sides(vectors: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"good film {i % 3}\tbad plot {i % 3}\n" for i in range(60)))
    settings = [
        f"model.embeddings={vectors}",
        "model.model_dim=6",
        "model.shared_embeddings=none",
        "tokenizer.joint=false",
    ]
    request = Request.of(pairs, model="seq2seq", out=tmp_path / "run", tokenizer="word", steps=1, overrides=settings)
    run = prepare(request).run
    model, words = run.build_model(), load_word_vectors(vectors)
    run.load_initial_weights(model)
    for table, field, word in (
        (model.body.source_embedding, "source", "film"),
        (model.body.embedding, "tokens", "plot"),
    ):
        tokenizer = run.schema.specs[run.schema.inputs[field]].tokenizer
        row = table.weight.detach()[int(tokenizer.encode(word)[0])].numpy()
        assert np.corrcoef(row, words.vector(word))[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.embed_dim=4"], r"vectors of 5 numbers, and a table of this model has rows of 4: make them equal"),
        (["tokenizer.kind=char"], r"made of char tokens; add --tokenizer word"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_written(
    reviews: Path, vectors: Path, tmp_path: Path, settings: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        prepared(reviews, vectors, tmp_path / "run", *settings)
    assert not (tmp_path / "run").exists()


def test_files_that_are_missing_or_damaged_are_named(reviews: Path, vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model.embeddings = .*none.txt: there is no such run or file"):
        prepared(reviews, tmp_path / "none.txt", tmp_path / "run")
    (tmp_path / "cut.txt").write_text("\n".join(vectors.read_text().splitlines()[:4]))
    with pytest.raises(DataError, match=r"cut.txt: ends after 3 words, but line 1 tells of 6"):
        prepared(reviews, tmp_path / "cut.txt", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_any_table_of_tokens_has_words(reviews: Path, tmp_path: Path) -> None:
    seqwise.train(reviews, "lstm", out=tmp_path / "run", steps=2, overrides=SMALL)
    words = load_word_vectors(tmp_path / "run")
    assert "good" in words
    assert "<unk>" not in words
    seqwise.train(reviews, "ngram", out=tmp_path / "counts")
    with pytest.raises(ConfigError, match="is a ngram model, which has no vectors of words"):
        load_word_vectors(tmp_path / "counts")
