"""Words as points: neighbours and analogies by brute force, and words that have no vector."""

from __future__ import annotations

import numpy as np
import pytest

from seqwise.data.word_vectors import TINY, Method, WordVectors
from seqwise.errors import DataError

WORDS = [f"word{k}" for k in range(9)]
VECTORS = np.random.default_rng(3).standard_normal((9, 4)).astype(np.float32)


def cosine(a: str, b: str) -> float:
    u, v = (VECTORS[WORDS.index(word)].astype(np.float64) for word in (a, b))
    return float(u @ v / np.linalg.norm(u) / np.linalg.norm(v))


def value(w: str, a: str, b: str, c: str, method: Method) -> float:
    if method == "add":
        return cosine(w, b) - cosine(w, a) + cosine(w, c)
    s = {other: (cosine(w, other) + 1) / 2 for other in (a, b, c)}
    return s[b] * s[c] / (s[a] + TINY)


def test_neighbours_are_those_of_the_highest_cosine() -> None:
    found = WordVectors(WORDS, VECTORS).neighbours("word3", 4)
    best = sorted((word for word in WORDS if word != "word3"), key=lambda word: -cosine("word3", word))[:4]
    assert [word for word, _ in found] == best
    assert [near for _, near in found] == pytest.approx([cosine("word3", word) for word in best], abs=1e-6)
    assert len(WordVectors(WORDS, VECTORS).neighbours("word3", 99)) == 8


@pytest.mark.parametrize("method", ["add", "multiply"])
def test_analogies_are_answered_by_the_best_of_all_other_words(method: Method) -> None:
    vectors = WordVectors(WORDS, VECTORS * np.arange(1, 10, dtype=np.float32)[:, None])  # lengths say nothing
    questions = [(a, b, c) for a in range(5) for b in range(5) for c in range(5) if len({a, b, c}) == 3]
    answers = vectors.answer(np.array(questions), method=method)
    for (a, b, c), answer in zip(questions, answers, strict=True):
        asked = [WORDS[a], WORDS[b], WORDS[c]]
        ranked = sorted((w for w in WORDS if w not in asked), key=lambda w: -value(w, *asked, method))
        assert WORDS[answer] == ranked[0]
        found = vectors.analogy(*asked, 3, method=method)
        assert [word for word, _ in found] == ranked[:3]
        assert found[0][1] == pytest.approx(value(ranked[0], *asked, method), rel=1e-4, abs=1e-5)


def test_many_questions_are_answered_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, questions = (
        WordVectors(WORDS, VECTORS),
        np.random.default_rng(0).permuted(np.tile(np.arange(9), (50, 1)), axis=1),
    )
    whole = vectors.answer(questions[:, :3])
    monkeypatch.setattr("seqwise.data.word_vectors.QUESTIONS_AT_ONCE", 7)
    assert np.array_equal(vectors.answer(questions[:, :3]), whole)
    assert len(vectors.answer(questions[:0, :3])) == 0


def test_words_are_found_as_written_and_else_whatever_their_capitals() -> None:
    vectors = WordVectors(["us", "Paris", "US", "paris", "München"], np.eye(5, dtype=np.float32))
    assert [vectors.find(word) for word in ("us", "US", "Us", "paris", "PARIS", "münchen")] == [0, 2, 0, 3, 1, 4]
    assert "PARIS" in vectors
    assert "rome" not in vectors
    assert vectors.similarity("us", "rome") is None
    assert vectors.similarity("us", "Us") == pytest.approx(1.0)
    assert np.array_equal(vectors.vector("MÜNCHEN"), np.eye(5)[4])


def test_a_word_without_a_vector_is_told_with_the_nearest_one() -> None:
    vectors = WordVectors(["kitchen", "garden"], np.eye(2, dtype=np.float32))
    with pytest.raises(DataError, match=r'^"kitchn" has no vector\. Did you mean "kitchen"'):
        vectors.neighbours("kitchn")
    with pytest.raises(DataError, match=r'^"zzz" has no vector\. Words that the text has too rarely have none\.'):
        vectors.analogy("kitchen", "garden", "zzz")


def test_a_vector_of_zeros_is_like_nothing() -> None:
    vectors = WordVectors(["none", "some"], np.array([[0, 0], [1, 2]], dtype=np.float32))
    assert vectors.similarity("none", "some") == 0.0
    assert vectors.similarity("none", "none") == 0.0


def test_as_many_words_as_vectors() -> None:
    with pytest.raises(ValueError, match="3 words, but 2 vectors"):
        WordVectors(["a", "b", "c"], np.zeros((2, 4)))
