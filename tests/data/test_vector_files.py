"""Files of word vectors: round trips, the peer's own files, and files that are damaged in every way we thought of."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from seqwise.data.vector_files import Format, read_vectors, write_vectors
from seqwise.data.word_vectors import WordVectors
from seqwise.errors import DataError

WORDS = ["the", "naïve", "日本", ",", "1999", "</s>"]
NUMBERS = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32) * np.float32(1e-3)
VECTORS = WordVectors(WORDS, NUMBERS)
FORMATS: list[tuple[str, Format]] = [
    ("vectors.txt", "text"),
    ("vectors.vec.gz", "text"),
    ("vectors.bin", "binary"),
    ("vectors.bin.gz", "binary"),
    ("glove.txt", "glove"),
    ("glove.txt.gz", "glove"),
]


@pytest.mark.parametrize(("name", "format"), FORMATS)
def test_what_was_written_is_read_to_the_bit(tmp_path: Path, name: str, format: Format) -> None:
    write_vectors(VECTORS, tmp_path / name, format=None if format != "glove" else format)
    found = read_vectors(tmp_path / name)
    assert found.words == WORDS
    assert np.array_equal(found.vectors, NUMBERS)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    some = read_vectors(tmp_path / name, max_words=2)
    assert some.words == WORDS[:2]
    assert np.array_equal(some.vectors, NUMBERS[:2])


@pytest.mark.parametrize("is_binary", [False, True])
def test_the_peer_reads_what_we_write_and_we_what_it_writes(tmp_path: Path, is_binary: bool) -> None:
    models = pytest.importorskip("gensim.models", reason="needs gensim: pip install gensim")
    write_vectors(VECTORS, tmp_path / "ours", format="binary" if is_binary else "text")
    theirs = models.KeyedVectors.load_word2vec_format(tmp_path / "ours", binary=is_binary)
    assert theirs.index_to_key == WORDS
    np.testing.assert_array_equal(theirs.vectors, NUMBERS)
    theirs.save_word2vec_format(tmp_path / "theirs", binary=is_binary)
    found = read_vectors(tmp_path / "theirs")
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, NUMBERS)
    if not is_binary:
        write_vectors(VECTORS, tmp_path / "glove", format="glove")
        glove = models.KeyedVectors.load_word2vec_format(tmp_path / "glove", binary=False, no_header=True)
        np.testing.assert_array_equal(glove.vectors, NUMBERS)


def test_files_of_the_first_program_are_read(tmp_path: Path) -> None:
    """It ends each line of text with a space, and each binary vector with a newline or with nothing."""
    (tmp_path / "text").write_text("2 3 \nthe 1 2 3 \ncat -0.5 1e-3 0 \n")
    found = read_vectors(tmp_path / "text")
    assert found.words == ["the", "cat"]
    np.testing.assert_allclose(found.vectors, [[1, 2, 3], [-0.5, 1e-3, 0]])
    rows = np.array([[1, 2, 3], [10, 32, 0]], dtype="<f4")  # bytes that look like letters are none
    for end in (b"\n", b""):
        (tmp_path / "binary").write_bytes(b"2 3\nthe " + rows[0].tobytes() + end + b"cat " + rows[1].tobytes() + end)
        found = read_vectors(tmp_path / "binary")
        assert found.words == ["the", "cat"]
        np.testing.assert_array_equal(found.vectors, rows)


def test_words_with_spaces_in_glove_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("the 1 2\n. . 3 4\nat name@domain.com 5 6\n")
    assert read_vectors(tmp_path / "glove.txt").words == ["the", ". .", "at name@domain.com"]


def test_large_binary_files_are_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_vectors(VECTORS, tmp_path / "vectors.bin")
    for size in (1, 7, 23, 64):
        monkeypatch.setattr("seqwise.data.files.BLOCK_BYTES", max(size, 4))
        found = read_vectors(tmp_path / "vectors.bin", format="binary")
        assert np.array_equal(found.vectors, NUMBERS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3 2\na 1 2\nb 3 4\n", "ends after 2 words, but line 1 tells of 3. It is cut short"),
        ("1 2\na 1 2\nb 3 4\n", "line 3: one more than the 1 words"),
        ("2 2\na 1 2\nb 3\n", 'line 3: 1 numbers behind "b", expected 2. The file is cut short'),
        ("2 2\na 1 2\nb 3 four\n", 'line 3: "four" behind "b" is not a number'),
        ("2 2\na 1 2\nb 3 nan\n", 'line 3: the vector of "b" is not finite'),
        ("2 2\na 1 2\na 3 4\n", 'the word "a" stands there for the second time'),
        ("2 0\na\n", 'line 1: "2 0", expected how many words'),
        ("a 1 2 3\nb 1 2\n", 'line 2: 2 numbers behind "b", expected 3'),
        ("a 1 2 3\nb 1 2 x\n", 'line 2: "x" behind "b" is not a number'),
        ("just a sentence\n", 'line 1: "a" behind "just" is not a number'),
        ("word\n", 'line 1: "word", expected a word and the numbers'),
        ("", "is empty"),
        ("\n\n", "is empty"),
    ],
)
def test_a_damaged_text_file_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "vectors.txt").write_text(text)
    with pytest.raises(DataError, match=f"vectors.txt: {told}"):
        read_vectors(tmp_path / "vectors.txt")


def binary(num: int = 6, width: int = 5, cut: int | None = None, more: bytes = b"") -> bytes:
    rows = b"".join(word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(WORDS, NUMBERS, strict=True))
    return (f"{num} {width}\n".encode() + rows)[:cut] + more


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (binary(cut=-9), "ends within word 6 of 6. It is cut short"),
        (binary(cut=30), "ends within word 2 of 6"),
        (binary(num=7), "ends within word 7 of 7"),
        (binary(width=4), "is no UTF-8 text: the file is damaged, or its vectors have another width"),
        (binary(num=5), "goes on behind the 5 words"),
        (binary(more=b"and more"), "goes on behind the 6 words"),
        (b"1 2\nw " + np.array([1, np.inf], dtype="<f4").tobytes(), 'the vector of "w" is not finite'),
        (b"1 99999999\nw \xff\xff", "expected how many words"),
        (b"2 1\n" + bytes(5000) + b"\xff", "word 1 is no UTF-8 text"),
    ],
)
def test_a_damaged_binary_file_is_told_with_its_word(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "vectors.bin").write_bytes(content)
    with pytest.raises(DataError, match=told):
        read_vectors(tmp_path / "vectors.bin", format="binary")


def test_missing_and_packed_files_that_are_damaged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.txt: cannot be read"):
        read_vectors(tmp_path / "nowhere.txt")
    write_vectors(VECTORS, tmp_path / "vectors.txt.gz")
    (tmp_path / "cut.txt.gz").write_bytes((tmp_path / "vectors.txt.gz").read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut-off archive"):
        read_vectors(tmp_path / "cut.txt.gz")
    with gzip.open(tmp_path / "vectors.txt.gz") as file:
        assert file.readline() == b"6 5\n"


def test_words_with_white_space_are_not_written(tmp_path: Path) -> None:
    for word in ("new york", "", "a\tb", "a\u00a0b"):
        with pytest.raises(DataError, match="has white space"):
            write_vectors(WordVectors([word], NUMBERS[:1]), tmp_path / "vectors.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="cannot write"):
        write_vectors(VECTORS, tmp_path / "no folder" / "vectors.txt")
