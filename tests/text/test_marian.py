"""Pieces of Marian's translators, by sentencepiece."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from marian_folders import PAIRS, write_pieces

from seqwise.errors import ConfigError
from seqwise.text import tokenizer_from_dict
from seqwise.text.marian import MarianTokenizer

sentencepiece = pytest.importorskip("sentencepiece", reason="needs the extra marian")
LINES = [
    *(text for pair in PAIRS for text in pair),
    *("", " ", "  the  cat ", "the ☃☃ cat", "ﬁne", "é", "a\tb", "\u00a0x", "日本 cat", "the\u200bcat"),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[MarianTokenizer, MarianTokenizer]:
    folder = tmp_path_factory.mktemp("pieces")
    write_pieces(folder)
    ids = json.loads((folder / "vocab.json").read_text())
    source, target = (
        MarianTokenizer((folder / f"{side}.spm").read_bytes(), list(ids), boundary=0, unknown=1)
        for side in ("source", "target")
    )
    return source, target


@pytest.mark.parametrize("line", LINES, ids=repr)
def test_pieces_are_those_of_the_library_by_the_ids_of_the_list(
    line: str, sides: tuple[MarianTokenizer, MarianTokenizer]
) -> None:
    for side in sides:
        cutter = sentencepiece.SentencePieceProcessor(model_proto=side.model)
        known = {piece: token for token, piece in enumerate(side.joint_pieces)}
        assert side.encode(line).tolist() == [known.get(piece, 1) for piece in cutter.encode(line, out_type=str)]


@pytest.mark.parametrize("text", [*LINES, "the cat\n\na ☃\n", ">>de<< the cat\nx", "\n"], ids=repr)
def test_offsets_and_lengths_cover_the_text(text: str, sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    for side in sides:
        ids, spans = side.encode_with_offsets(text)
        assert ids.tolist() == side.encode(text).tolist()
        assert (spans[:, 0] < spans[:, 1]).all()
        assert (np.diff(spans[:, 1]) >= 0).all()
        assert not len(spans) or (spans[:, 0].min() >= 0 and spans[:, 1].max() <= len(text))
        found = side.measure(text)
        assert not len(ids) or found.lengths.sum() == len(text)
        assert len(found.spelling) == len(found.unknown) == (ids == 1).sum()
        assert (found.spelling > 0).all()


def test_each_piece_stands_where_its_offsets_say(sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    text = ">>de<< a dog\nthe cat é"
    ids, spans = sides[0].encode_with_offsets(text)
    for token, (begin, end) in zip(ids.tolist(), spans.tolist(), strict=True):
        piece = sides[0].piece(token).strip(" ")
        if token != 1 and piece:
            assert text[begin:end].strip(" ") == piece


def test_a_language_code_is_one_piece(sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    source = sides[0]
    code = source.joint_pieces.index(">>de<<")
    assert source.encode(">>de<< a dog").tolist() == [code, *source.encode("a dog").tolist()]
    assert source.encode(">>xx<< a dog").tolist() == [1, *source.encode("a dog").tolist()]
    assert source.encode(">> a dog").tolist()[0] != code


def test_texts_come_back_line_by_line(sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    source = sides[0]
    assert source.decode(source.encode("the small cat\n\na dog")) == "the small cat\n\na dog"
    assert source.decode([*source.encode("a"), 1, *source.encode("dog")]) == "a<unk> dog"
    assert source.decode([]) == ""


def test_the_two_sides_cut_differently_and_share_their_ids(sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    source, target = sides
    assert source.joint_pieces == target.joint_pieces
    assert source.encode("die kleine Katze").tolist() != target.encode("die kleine Katze").tolist()


def test_saved_and_loaded(sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    saved = json.loads(json.dumps({"kind": "marian", **sides[1].to_dict()}))
    again = tokenizer_from_dict(saved)
    for line in LINES:
        assert again.encode(line).tolist() == sides[1].encode(line).tolist()


def test_what_is_damaged_is_refused(sides: tuple[MarianTokenizer, MarianTokenizer]) -> None:
    saved = sides[0].to_dict()
    for change in ({"model": "not base 64!"}, {"model": "AAAA"}, {"pieces": ["a", "a"]}, {"boundary": 10_000}):
        with pytest.raises(ValueError):
            MarianTokenizer.from_dict(saved | change)


def test_without_the_library_the_extra_is_named(
    sides: tuple[MarianTokenizer, MarianTokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ConfigError, match=r'pip install "\.\[marian\]"'):
        MarianTokenizer.from_dict(sides[0].to_dict())


def test_words_begin_where_a_space_was(sides: tuple[MarianTokenizer, MarianTokenizer], tmp_path: Path) -> None:
    ids = sides[0].encode("a dog\nthe")
    begins = [sides[0].starts_word(token) for token in ids.tolist()]
    assert begins[0]
    assert sum(begins) == 4  # three words and the newline
