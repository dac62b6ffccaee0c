"""Search and similarity with vectors that are known: nearest by brute force, what the cache keeps, ranks of ratings."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import Terminal
from scipy.stats import spearmanr

from seqwise.api import TrainedRun, train
from seqwise.cli.embed_command import write_npy
from seqwise.errors import DataError
from seqwise.evaluation import sentence_search
from seqwise.evaluation.sentence_search import Corpus, corpus_vectors, nearest, read_corpus, search
from seqwise.evaluation.sentence_similarity import RatedPairs, rate, rate_by_words, rated_pairs
from seqwise.evaluation.sentence_vectors import Embedded, TextEncoder

LINES = "the cat sat on the mat\na dog ran\n\nthe dog sat\ncats and dogs\n"


class Known:
    """An encoder whose vectors were chosen."""

    kind, limit = "mean", None

    def __init__(self, vectors: dict[str, list[float]]):
        self.vectors = vectors

    def embed(self, texts: list[str], **_: Any) -> Embedded:
        found = np.array([self.vectors[text] for text in texts], dtype=np.float32)
        return Embedded(found, ~found.any(axis=1), np.zeros(len(found), dtype=bool), None, "mean")


def test_the_nearest_are_those_that_brute_force_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    corpus, queries = random.normal(size=(257, 6)), random.normal(size=(4, 6))
    corpus[100] = corpus[20]  # equal ones: the first wins
    corpus /= np.linalg.norm(corpus, axis=1, keepdims=True)
    for block in (1, 7, 64, 1000):
        monkeypatch.setattr(sentence_search, "BLOCK", block)
        for num in (1, 5, 300):
            found = nearest(queries, corpus.astype(np.float32), num)
            for query, hits in zip(queries, found, strict=True):
                cosines = corpus @ query / np.linalg.norm(query)
                rows = [row for row, _ in hits]
                assert len(rows) == min(num, 257)
                np.testing.assert_allclose([value for _, value in hits], np.sort(cosines)[::-1][:num], atol=1e-6)
                np.testing.assert_allclose(cosines[rows], [value for _, value in hits], atol=1e-6)
                assert 100 not in rows or rows.index(20) < rows.index(100)


def test_a_query_of_which_nothing_is_read_is_named() -> None:
    encoder: Any = Known({"": [0.0, 0.0], "xyz": [0.0, 0.0]})
    with pytest.raises(DataError, match='"xyz": the model reads nothing of this query'):
        search(encoder, Corpus(["a"], [1]), ["xyz"])


def test_a_corpus_is_lines_or_a_column(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text(LINES)
    corpus = read_corpus(tmp_path / "lines.txt")
    assert corpus.lines == [1, 2, 4, 5]
    assert corpus.texts[2] == "the dog sat"
    (tmp_path / "films.csv").write_text('title,plot,year\nA,"a dog runs, far",1990\nB,cats sleep,1991\n')
    (tmp_path / "films.jsonl").write_text(
        '{"title": "A", "plot": "a dog runs, far"}\n{"title": "B", "plot": "cats sleep"}\n'
    )
    for name in ("films.csv", "films.jsonl"):
        assert read_corpus(tmp_path / name, ["plot"]).texts == ["a dog runs, far", "cats sleep"]
        assert read_corpus(tmp_path / name, ["text=title", "text2=plot"]).texts == ["A a dog runs, far", "B cats sleep"]
    with pytest.raises(DataError, match="no such file"):
        read_corpus(tmp_path / "nothing.txt")
    (tmp_path / "blank.txt").write_text("\n  \n")
    with pytest.raises(DataError, match="no text in it to be searched"):
        read_corpus(tmp_path / "blank.txt")


@pytest.fixture(scope="module")
def lstm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lstm")
    (folder / "poems.txt").write_text(LINES * 30)
    settings = ["model.model_dim=8", "training.context=8", "tokenizer.min_count=1"]
    train(folder / "poems.txt", "lstm", out=folder / "run", tokenizer="word", steps=2, overrides=settings)
    return folder / "run"


def test_vectors_are_made_once_for_a_model_and_its_texts(
    lstm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    asked: list[int] = []
    plain = TextEncoder.embed

    def counted(self: TextEncoder, texts: Any, **options: Any) -> Embedded:
        asked.append(len(texts))
        return plain(self, texts, **options)

    monkeypatch.setattr(TextEncoder, "embed", counted)
    run, corpus = TrainedRun(lstm), Corpus(["the cat sat", "a dog ran"], [1, 2])
    first = corpus_vectors(run.encoder(), corpus)
    np.testing.assert_array_equal(corpus_vectors(run.encoder(), corpus), first)
    elsewhere = Corpus(corpus.texts, [7, 9])  # the same texts from another place
    corpus_vectors(TrainedRun(lstm).encoder(normalise=True), elsewhere)
    assert asked == [2]
    for other in (Corpus(["the cat sat", "a dog sat"], [1, 2]), Corpus(["the cat ", "sata dog ran"], [1, 2])):
        corpus_vectors(run.encoder(), other)
    corpus_vectors(run.encoder(pooling="max"), corpus)
    corpus_vectors(run.encoder(), corpus, use_cache=False)
    assert asked == [2] * 5
    for kept in (tmp_path / "cache" / "vectors").iterdir():
        kept.write_bytes(kept.read_bytes()[:90])  # cut short: made again
    np.testing.assert_array_equal(corpus_vectors(run.encoder(), corpus), first)
    assert asked == [2] * 6
    assert not list((tmp_path / "cache" / "vectors").glob("*.[0-9]*"))
    weights = lstm / "model.safetensors"
    monkeypatch.setattr(
        sentence_search.hashlib, "file_digest", lambda *_: SimpleNamespace(hexdigest=lambda: "other weights")
    )
    assert weights.exists()
    corpus_vectors(run.encoder(), corpus)
    assert asked == [2] * 7


def test_similarity_is_the_correlation_of_ranks() -> None:
    random = np.random.default_rng(0)
    vectors = {f"t{n}": list(random.normal(size=4)) for n in range(40)} | {"": [0.0] * 4}
    pairs = [(f"t{a}", f"t{b}") for a, b in random.integers(0, 40, size=(60, 2))]
    ratings = random.integers(0, 6, size=60).astype(float)
    known: Any = Known(vectors)
    found = rate(known, RatedPairs("toy", pairs, ratings))
    cosines = [
        np.dot(vectors[a], vectors[b]) / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]) for a, b in pairs
    ]
    assert found.correlation == pytest.approx(spearmanr(ratings, cosines).statistic, abs=1e-6)
    assert found.interval[0] < found.correlation < found.interval[1]
    assert "cosine|mean" in found.signature
    with_empty = rate(known, RatedPairs("toy", [*pairs, ("", "t1")], np.append(ratings, 5.0)))
    assert with_empty.share_known == pytest.approx(60 / 61)
    assert with_empty.correlation == pytest.approx(found.correlation)


def test_words_in_common_are_the_share_of_all_words() -> None:
    pairs = [("A cat sat.", "a dog sat"), ("one", "two"), ("same same", "same")]
    np.testing.assert_allclose(rate_by_words(RatedPairs("toy", pairs, np.arange(3.0))).similarities, [0.5, 0, 1])


def test_pairs_are_read_from_a_table_and_others_refused(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    rows = "".join(f"a cat {n},the dog {n},{n % 5}.5\n" for n in range(30))
    table.write_text("sentence1,sentence2,score\n" + rows)
    found = rated_pairs(str(table))
    assert (found.pairs[2], found.ratings[2]) == (("a cat 2", "the dog 2"), 2.5)
    assert len(found.pairs) == 30
    one = tmp_path / "one.csv"
    one.write_text("text,score\n" + "".join(f"cat {n},{n % 5}.5\n" for n in range(30)))
    with pytest.raises(DataError, match="no pairs of texts with a number each"):
        rated_pairs(str(one))
    with pytest.raises(DataError, match="no pairs of texts with a number each"):
        rated_pairs("cldr-languages")


def test_the_public_sets_are_rated_on_their_test_part(shared_data: Path) -> None:
    assert [len(rated_pairs(name).pairs) for name in ("stsb", "sick")] == [863, 4927]


# -- commands ------------------------------------------------------------------------------------------------------


def test_vectors_are_written_in_every_format(lstm: Path, terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text(LINES)
    texts = LINES.splitlines()
    wanted = TrainedRun(lstm).embed(texts)
    for ending in ("npy", "npz", "tsv"):
        _, told = terminal.done("embed", lstm, tmp_path / "lines.txt", "--out", f"v.{ending}")
        assert f"v.{ending}: 5 vectors of 8 numbers" in told
        assert "1 text of 5 with nothing that the model reads" in told
    np.testing.assert_array_equal(np.load("v.npy"), wanted)
    kept = np.load("v.npz")
    np.testing.assert_array_equal(kept["vectors"], wanted)
    assert kept["texts"].tolist() == texts
    np.testing.assert_allclose(np.loadtxt("v.tsv", delimiter="\t"), wanted, rtol=1e-6)
    (found, *_) = json.loads(terminal.done("embed", lstm, tmp_path / "lines.txt", "--json")[0])["results"]
    assert found["text"] == texts[0]
    np.testing.assert_allclose(found["vector"], wanted[0], rtol=1e-6)


def test_what_goes_through_a_pipe_is_what_numpy_reads() -> None:
    for vectors in (np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 4), dtype=np.float32)):
        pipe = io.BytesIO()
        write_npy(pipe, vectors)
        np.testing.assert_array_equal(np.load(io.BytesIO(pipe.getvalue())), vectors)


def test_lines_come_from_standard_input_and_bytes_never_reach_a_terminal(
    lstm: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat sat\r\na dog\n")))
    terminal.done("embed", lstm, "--out", "v.npy", "--normalise")
    np.testing.assert_allclose(np.load("v.npy"), TrainedRun(lstm).embed(["the cat sat", "a dog"], normalise=True), 1e-5)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "which a terminal cannot show" in terminal.refuses("embed", lstm)
    assert "give it one of these endings" in terminal.refuses("embed", lstm, "--out", "v.txt")
    Path("lines.txt").write_text(LINES)
    assert 'Did you mean "mean"' in terminal.refuses("embed", lstm, "lines.txt", "--pooling", "maen", "--out", "v.npy")


def test_search_lists_the_nearest_lines(lstm: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("lines.txt").write_text(LINES)
    out, _ = terminal.done("search", lstm, "lines.txt", "the dog sat", "--num", "2")
    assert out.splitlines()[0].split() == ["1.000", "4", "the", "dog", "sat"]
    assert len(out.splitlines()) == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a dog ran\n\ncats and dogs\n")))
    found = json.loads(terminal.done("search", lstm, "lines.txt", "--json", "--no-cache")[0])["results"]
    assert [(one["query"], one["found"][0]["line"]) for one in found] == [("a dog ran", 2), ("cats and dogs", 5)]
    assert "no such file" in terminal.refuses("search", lstm, "nothing.txt", "cat")


def test_runs_stand_in_one_table(lstm: Path, terminal: Terminal) -> None:
    rows = "".join(f"the cat {'sat' * (n % 2)},the dog {'sat' * (n % 3)} ran,{n % 5}.5\n" for n in range(40))
    Path("pairs.csv").write_text("sentence1,sentence2,score\n" + rows)
    out, _ = terminal.done("similarity", lstm, "pairs.csv")
    assert [line.split()[0] for line in out.splitlines()[2:]] == [str(lstm), "words"]
    found = json.loads(terminal.done("similarity", lstm, "pairs.csv", "--json")[0])["results"]
    assert [(one["run"], one["pairs"]) for one in found] == [(str(lstm), 40), (None, 40)]
    assert found[0]["spearman"] == pytest.approx(rate(TrainedRun(lstm).encoder(), rated_pairs("pairs.csv")).correlation)
    assert "is not a run folder" in terminal.refuses("similarity", ".", "pairs.csv")
