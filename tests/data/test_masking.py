"""Hidden words: how many, which, read as what; texts that follow each other, and documents that do not mix."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqwise.data.masking import FOLLOWS, MaskedBatches, MaskedStore, Masking, cut
from seqwise.data.schema import TokenSpec, masked_schema
from seqwise.data.store import TokenStore
from seqwise.errors import DataError
from seqwise.text.words import WordTokenizer

WORDS = WordTokenizer([f"w{number}" for number in range(50)])


def store_of(documents: list[list[list[int]]], *, has_pairs: bool) -> MaskedStore:
    """Documents of lines of words, blank lines between them."""
    ids = [WORDS.boundary]
    for document in documents:
        for line in document:
            ids += [2 + word for word in line] + [WORDS.boundary]
        ids.append(WORDS.boundary)
    spec = masked_schema(WORDS, next_sentence=has_pairs).input("tokens", TokenSpec)
    return MaskedStore(TokenStore(np.array(ids), 2 * len(ids)), spec, has_pairs)


def many(num: int, *, has_pairs: bool, seed: int = 0) -> MaskedStore:
    random = np.random.default_rng(seed)
    documents = [
        [random.integers(50, size=random.integers(3, 30)).tolist() for _ in range(6)] for _ in range(max(2, num // 100))
    ]
    return store_of(documents, has_pairs=has_pairs)


def test_fifteen_in_a_hundred_are_hidden_and_read_as_published() -> None:
    """A million tokens."""
    batches = MaskedBatches(many(200_000, has_pairs=False), context=128, batch_size=64, masking=Masking(), seed=0)
    hidden = tokens = masked = same = 0
    step = 0
    while tokens < 1_000_000:
        batch = batches.batch(step)
        step += 1
        wanted, read = batch.targets["tokens"], batch.inputs["tokens"].ids
        can_hide = (wanted.ids >= 2) & (wanted.ids < WORDS.vocab_size)
        can_hide &= torch.ones_like(can_hide) if wanted.is_token is None else wanted.is_token
        assert not (wanted.is_scored & ~can_hide).any()  # marks and padding are never hidden
        assert torch.equal(read[~wanted.is_scored], wanted.ids[~wanted.is_scored])
        tokens += int(can_hide.sum())
        hidden += int(wanted.is_scored.sum())
        masked += int((read[wanted.is_scored] == batches.rows.mask).sum())
        same += int((read[wanted.is_scored] == wanted.ids[wanted.is_scored]).sum())
    assert hidden / tokens == pytest.approx(0.15, abs=0.001)
    assert masked / hidden == pytest.approx(0.8, abs=0.01)
    assert same / hidden == pytest.approx(0.1 + 0.1 / 52, abs=0.01)


def test_half_of_the_second_texts_follow_and_the_others_are_of_another_document() -> None:
    store = many(40_000, has_pairs=True)
    rows = store.rows(64)
    chosen = np.arange(len(rows))
    batch = rows.batch(chosen, Masking(), (0, 0))
    follows = batch.targets["next"].ids.numpy()
    assert follows.mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(len(follows)))
    wanted, texts = batch.targets["tokens"], batch.inputs["tokens"].segments
    for row in range(0, len(rows), 7):
        length = int(wanted.lengths[row])
        ids, belongs = wanted.ids[row, :length].numpy(), texts[row, :length].numpy()
        assert ids[0] == rows.begin
        first, second = ids[belongs == 0][1:-1], ids[belongs == 1][:-1]
        piece = rows.first[chosen[row]]
        assert first.tolist() == rows.ids[rows.starts[piece] : rows.ends[piece]].tolist()
        begins = np.flatnonzero(
            [rows.ids[s:e].tolist() == second.tolist() for s, e in zip(rows.starts, rows.ends, strict=True)]
        )
        if follows[row] == FOLLOWS:
            assert piece + 1 in begins
        else:
            assert any(rows.documents[other] != rows.documents[piece] for other in begins)


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=9), min_size=1, max_size=4), min_size=1, max_size=4))
def test_pieces_are_all_of_the_text_and_none_has_parts_of_two_documents(documents: list[list[list[int]]]) -> None:
    store = store_of(documents, has_pairs=True)
    ids = store.text.ids[1:]
    starts, ends, found = cut(ids, WORDS.boundary, 5, apart=True)
    assert all(0 < end - start <= 5 for start, end in zip(starts, ends, strict=True))
    words = sum(len(line) for document in documents for line in document)
    assert sum(int((ids[s:e] != WORDS.boundary).sum()) for s, e in zip(starts, ends, strict=True)) == words
    blank = [place for place in range(1, len(ids)) if ids[place] == ids[place - 1] == WORDS.boundary]
    for (s, e), (s2, _), same in zip(
        zip(starts[:-1], ends[:-1], strict=True),
        zip(starts[1:], ends[1:], strict=True),
        found[:-1] == found[1:],
        strict=True,
    ):
        assert e <= s2
        assert same == (not any(s < place < s2 for place in blank)) or not blank


def test_static_masks_hide_the_same_and_dynamic_ones_others() -> None:
    rows = many(5000, has_pairs=False).rows(32)
    chosen = np.arange(8)
    for is_static in (True, False):
        hidden = [
            rows.batch(chosen, Masking(is_static=is_static), (3, step)).targets["tokens"].is_scored for step in (1, 2)
        ]
        assert torch.equal(*hidden) == is_static


def test_a_step_gives_the_same_batch_each_time() -> None:
    batches = MaskedBatches(many(5000, has_pairs=True), context=40, batch_size=4, masking=Masking(), seed=5)
    first, again = batches.batch(7), batches.batch(7)
    assert torch.equal(first.inputs["tokens"].ids, again.inputs["tokens"].ids)
    assert torch.equal(first.targets["next"].ids, again.targets["next"].ids)


def test_whole_words_are_hidden_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens with an odd number go on with the word before them."""
    monkeypatch.setattr(WordTokenizer, "starts_word", lambda self, token: token % 2 == 0, raising=False)
    rows = many(20_000, has_pairs=False).rows(64)
    wanted = rows.batch(np.arange(len(rows)), Masking(whole_words=True), (0, 0)).targets["tokens"]
    ids, hidden = wanted.ids.numpy(), wanted.is_scored.numpy()
    goes_on = (ids[:, 1:] % 2 == 1) & (ids[:, 1:] >= 2) & (ids[:, 1:] < WORDS.vocab_size)
    goes_on &= (ids[:, :-1] >= 2) & (ids[:, :-1] < WORDS.vocab_size)
    assert goes_on.sum() > 1000
    assert (hidden[:, 1:][goes_on] == hidden[:, :-1][goes_on]).all()


def test_short_documents_are_cut_in_two_and_those_of_one_token_are_told() -> None:
    rows = store_of([[[1, 2, 3]], [[4, 5]], [[6]]], has_pairs=True).rows(32)
    assert len(rows) == 2  # the first two have a beginning and an end
    with pytest.raises(DataError, match="no document has two pieces of text"):
        store_of([[[1]], [[2]]], has_pairs=True).rows(32)
