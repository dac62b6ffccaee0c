"""Text bit by bit: put together it is what would be shown all at once, and nothing that was shown is taken back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqwise.serving.pieces import Pieces
from seqwise.text import train_tokenizer

TEXT = "the quick brown fox doesn't jump, über die 日本語 \U0001f600!\nI said: 'no way' (twice).\n"
KINDS = ["char", "word", "bpe", "wordpiece"]
TOKENIZERS: dict[str, Any] = {
    kind: train_tokenizer(kind, [TEXT * 3], **({} if kind == "char" else {"vocab_size": 300})) for kind in KINDS
}


def shown(pieces: Pieces, tokens: list[int], sizes: list[int]) -> str:
    text, place = "", 0
    for size in [*sizes, len(tokens)]:
        text += pieces.add(tokens[place : place + size])
        assert pieces.text == text
        place += size
    return text + pieces.finish()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_pieces_put_together_are_the_whole(kind: str, data: Any) -> None:
    """Any tokens, halves of characters among them, however they come."""
    tokenizer = TOKENIZERS[kind]
    prompt = data.draw(st.sampled_from(["", "the", "the ", "I said:", "über d", "\n"]))
    tokens = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    sizes = data.draw(st.lists(st.integers(1, 4), max_size=12))
    assert shown(Pieces(tokenizer, prompt), tokens, sizes) == shown(Pieces(tokenizer, prompt), tokens, [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_comes_back_as_it_was_written(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(TEXT).tolist()
    assert shown(Pieces(tokenizer), ids, [1] * len(ids)) == tokenizer.decode(ids)


def test_half_a_character_is_held_back() -> None:
    tokenizer = TOKENIZERS["bpe"]
    ids = tokenizer.encode("日").tolist()
    if len(ids) == 1:
        ids = tokenizer.encode("\U0001f601").tolist()  # was not in the text: byte by byte
    pieces = Pieces(tokenizer)
    assert len(ids) > 1
    assert [pieces.add([token]) for token in ids[:-1]] == [""] * (len(ids) - 1)
    assert pieces.add(ids[-1:]) == tokenizer.decode(ids)


@given(
    text=st.text(alphabet="abc", max_size=30),
    stops=st.lists(st.text(alphabet="abc", min_size=1, max_size=4), max_size=3),
    sizes=st.lists(st.integers(1, 5), max_size=10),
)
def test_stop_strings_end_a_text_wherever_tokens_meet(text: str, stops: list[str], sizes: list[int]) -> None:
    """By the first place at which one of them is whole; what may become one is not shown before."""
    tokenizer = train_tokenizer("char", ["abc\n"])
    pieces = Pieces(tokenizer, stops=stops)
    found = shown(pieces, tokenizer.encode(text).tolist(), sizes)
    ends = {
        end: max(len(stop) for stop in stops if text[:end].endswith(stop))
        for end in range(len(text) + 1)
        if any(text[:end].endswith(stop) for stop in stops)
    }
    assert pieces.is_stopped == bool(ends)
    if not ends:
        assert found == text
    else:
        assert text.startswith(found)
        assert not any(stop in found for stop in stops)
        assert len(found) <= min(ends)
