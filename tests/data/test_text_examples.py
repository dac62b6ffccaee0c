"""Texts with answers as ids: rows, targets, spelled words, batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqwise.data.annotated import LabelledData, LabelledRow, TaggedData, TaggedRow
from seqwise.data.batch import Labels, LabelSets, Tags, Tokens
from seqwise.data.schema import (
    LabelSpec,
    NumberSpec,
    TagSpec,
    TokenSpec,
    answer_schema,
    tag_schema,
)
from seqwise.data.specs import MAX_WORD_CHARACTERS
from seqwise.data.text_examples import RowBatches, TextStore, build_label_store, build_tag_store, rare_tokens
from seqwise.text.words import WordTokenizer

WORDS = WordTokenizer(["a", "fine", "film", "bad", "the", "cat"])
SPEC = TokenSpec(WORDS)
B = WORDS.boundary
ROWS = [
    LabelledRow(("a fine film",), "good"),
    LabelledRow(("bad",), "bad"),
    LabelledRow(("the cat , unseen",), "odd"),
    LabelledRow(("",), "good"),
]
LABELS = ["bad", "good"]


def ids(text: str) -> list[int]:
    return WORDS.encode(text).tolist()


def labelled() -> TextStore:
    return build_label_store(ROWS, answer_schema(SPEC, LabelSpec(LABELS)))


def test_a_row_stands_between_boundaries() -> None:
    tokens = labelled().batch(np.array([0, 1, 3])).inputs["tokens"]
    assert tokens.ids.tolist() == [[B, *ids("a fine film"), B], [B, *ids("bad"), B, 0, 0], [B, B, 0, 0, 0]]
    assert tokens.is_token.tolist() == [[True] * 5, [True] * 3 + [False] * 2, [True] * 2 + [False] * 3]
    assert tokens.segments is tokens.characters is None


def test_a_label_that_is_not_known_is_minus_one() -> None:
    assert labelled().answers.tolist() == [1, 0, -1, 1]
    assert labelled().batch(slice(0, 4)).targets["label"].ids.tolist() == [1, 0, -1, 1]


def test_two_texts_are_told_apart_by_segments() -> None:
    rows = [LabelledRow(("a film", "bad"), "good"), LabelledRow(("", "the"), "bad")]
    tokens = build_label_store(rows, answer_schema(TokenSpec(WORDS, num_texts=2), LabelSpec(LABELS))).batch(slice(0, 2))
    field = tokens.inputs["tokens"]
    assert field.ids.tolist() == [[B, *ids("a film"), B, *ids("bad"), B], [B, B, *ids("the"), B, 0, 0]]
    assert field.segments.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]]


def test_several_labels_and_numbers() -> None:
    several = build_label_store(
        [LabelledRow(("a",), ("good", "bad")), LabelledRow(("bad",), ()), LabelledRow(("a",), ("new", "good"))],
        answer_schema(SPEC, LabelSpec(LABELS), several=True),
    )
    field = several.batch(slice(0, 3)).targets["labels"]
    assert isinstance(field, LabelSets)
    assert field.is_right.tolist() == [[True, True], [False, False], [False, True]]
    assert (field.count(), field.shape) == (3, (3, 1))
    numbers = build_label_store(
        [LabelledRow(("a",), 4.5), LabelledRow(("bad",), -1.0)], answer_schema(SPEC, NumberSpec())
    )
    assert numbers.batch(np.array([1, 0])).targets["number"].values.flatten().tolist() == [-1.0, 4.5]


def test_the_beginning_of_a_store() -> None:
    store = labelled()
    assert store.take(10) is store
    some = store.take(2)
    assert (len(some), some.answers.tolist(), some.rows) == (2, [1, 0], ROWS[:2])
    assert (
        some.batch(slice(0, 9)).inputs["tokens"].ids.tolist() == store.batch(slice(0, 2)).inputs["tokens"].ids.tolist()
    )


TAGGED = [
    TaggedRow(("the", "cat"), ("O", "B-x"), "yes"),
    TaggedRow(("fine", "catamaran", "bad"), ("B-x", "I-x", "O"), "no"),
    TaggedRow((), (), "yes"),
]
TAGS = tag_schema(
    TokenSpec(WORDS, alphabet="abcdeft"), TagSpec(["B-x", "I-x", "O"], scheme="IOB2"), LabelSpec(["no", "yes"])
)


def test_tags_stand_where_their_words_begin() -> None:
    batch = build_tag_store(TAGGED, TAGS).batch(slice(0, 3))
    tags = batch.targets["tags"]
    assert isinstance(tags, Tags)
    assert tags.is_word.tolist() == [[True, True, False], [True] * 3, [False] * 3]
    assert tags.ids.tolist() == [[2, 0, 0], [0, 1, 2], [0, 0, 0]]
    assert tags.steps[:2].tolist() == [[1, 2, 0], [1, 2, 3]]
    assert batch.targets["label"].ids.tolist() == [1, 0, 1]
    assert batch.inputs["tokens"].ids[1].tolist() == [B, WORDS.encode("fine")[0], 0, WORDS.encode("bad")[0], B]


def test_pieces_of_a_word_have_its_characters_and_boundaries_none() -> None:
    pieces = WordTokenizer(["re", "do", "-", "it"], split_punctuation=True)
    schema = tag_schema(TokenSpec(pieces, alphabet="redoit-"), TagSpec(["O"]))
    rows = [TaggedRow(("it", "re-do", " "), ("O",) * 3), TaggedRow(("do",), ("O",))]
    batch = build_tag_store(rows, schema).batch(slice(0, 2))
    spell = schema.input("tokens", TokenSpec).spell
    found = batch.inputs["tokens"].characters.numpy()
    assert batch.targets["tags"].steps.tolist() == [[1, 2, 5], [1, 0, 0]]
    expected = spell(["", "it", "re-do", "re-do", "re-do", " ", ""])
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1, :3], spell(["", "do", ""]))


def test_words_are_spelled_by_the_alphabet_and_long_ones_keep_both_ends() -> None:
    spec = TokenSpec(WORDS, alphabet="abz")
    long = "a" * 20 + "?" + "b" * 20
    found = spec.spell(["za", "q", long])
    assert found.shape == (3, MAX_WORD_CHARACTERS)
    assert found[0, :3].tolist() == [4, 2, 0]
    assert found[1, :2].tolist() == [1, 0]
    assert found[2].tolist() == [2] * 12 + [3] * 12
    assert spec.num_characters == 5
    assert TokenSpec(WORDS).num_characters == 0


def many(num: int = 200) -> TextStore:
    random = np.random.default_rng(0)
    rows = [LabelledRow((" ".join(["a"] * int(n)),), "good") for n in random.integers(1, 40, size=num)]
    return build_label_store(rows, answer_schema(SPEC, LabelSpec(LABELS)))


def test_each_epoch_reads_every_row_once_in_another_order() -> None:
    store = many(203)
    batches = RowBatches(store, batch_size=16, seed=3)
    assert batches.steps_per_epoch == 13
    read = []
    for epoch in range(2):
        lengths = [batches.batch(epoch * 13 + step).inputs["tokens"].lengths.tolist() for step in range(13)]
        assert sorted(n for row in lengths for n in row) == sorted(store.lengths.tolist())
        read.append(lengths)
    assert read[0] != read[1]
    again = RowBatches(store, batch_size=16, seed=3)
    assert again.batch(17).inputs["tokens"].lengths.tolist() == read[1][4]
    assert RowBatches(store, batch_size=16, seed=4).batch(0).inputs["tokens"].lengths.tolist() != read[0][0]


def test_rows_of_a_batch_are_of_about_one_length() -> None:
    store = many(2000)
    batches = RowBatches(store, batch_size=16)
    spreads = [np.ptp(batches.batch(step).inputs["tokens"].lengths.numpy()) for step in range(20)]
    assert np.mean(spreads) < 3


def test_words_that_training_has_once_are_unknown_half_of_the_time() -> None:
    """Each step draws its own, and the same whenever it is asked for."""
    tokenizer = WordTokenizer(["often", *(f"w{n}" for n in range(200))])
    schema = tag_schema(TokenSpec(tokenizer), TagSpec(["O"]))
    store = build_tag_store([TaggedRow(("often", f"w{n}"), ("O", "O")) for n in range(200)], schema)
    assert np.flatnonzero(rare_tokens(store)).tolist() == [tokenizer.encode(f"w{n}")[0] for n in range(200)]
    batches = RowBatches(store, batch_size=200)
    first, again, other = (batches.batch(step).inputs["tokens"].ids for step in (0, 0, 1))
    assert 70 <= int((first == tokenizer.unknown).sum()) <= 130
    assert int((first == tokenizer.encode("often")[0]).sum()) == 200
    assert torch.equal(first, again)
    assert not torch.equal(first == tokenizer.unknown, other == tokenizer.unknown)


@pytest.mark.parametrize("limit", [2, 3, 4, 7])
def test_long_rows_keep_their_beginning_and_their_end(limit: int) -> None:
    rows = torch.arange(1, 8).repeat(3, 1)
    lengths = torch.tensor([7, 3, 5])
    is_token = torch.arange(7) < lengths.unsqueeze(1)
    found = Tokens(rows, is_token, segments=rows * 10).shortened(limit)
    for row, length in enumerate(lengths.tolist()):
        whole = list(range(1, length + 1))
        kept = whole if length <= limit else whole[: limit - limit // 2] + whole[len(whole) - limit // 2 :]
        num = int(found.lengths[row])
        assert found.ids[row, :num].tolist() == kept
        assert found.segments is not None
        assert found.segments[row, :num].tolist() == [10 * token for token in kept]


def test_what_is_short_stays_as_it_is() -> None:
    field = Tokens(torch.zeros(2, 5, dtype=torch.long))
    assert field.shortened(5) is field


def test_labels_are_those_of_the_training_part() -> None:
    rows = [LabelledRow(("x",), "10"), LabelledRow(("y",), "9"), LabelledRow(("z",), "9")]
    data = LabelledData("d", {"train": rows[:2], "test": [LabelledRow(("q",), "11")]}, "label", "split by chance")
    assert data.labels == ["9", "10"]
    assert data.description == "d: 3 texts with one of 2 labels each; split by chance (train 2, test 1)"
    other = LabelledData("d", {"train": rows[:1], "test": rows[1:]}, "label", "split by chance")
    assert data.fingerprint != other.fingerprint
    tagged = TaggedData("t", {"whole": TAGGED}, "IOB2", "scored whole")
    assert (tagged.tags, tagged.labels) == (["B-x", "I-x", "O"], ["no", "yes"])
    assert tagged.description == (
        "t: 3 rows of 5 words, one of 3 tags each (IOB2), and one of 2 labels for the row; scored whole (whole 3)"
    )


def test_a_number_is_encoded_as_it_is() -> None:
    assert NumberSpec().encode([1.5]).tolist() == [1.5]
    assert isinstance(labelled().batch(slice(0, 1)).targets["label"], Labels)


def test_a_sample_has_each_label_in_its_share_and_at_least_once() -> None:
    rows = [LabelledRow((f"a film {n}",), "good" if n % 10 else "bad") for n in range(1000)]
    rows[500] = LabelledRow(("odd",), "rare")
    store = build_label_store(rows, answer_schema(SPEC, LabelSpec(["bad", "good", "rare"])))
    some = store.sample(100, seed=1)
    assert len(some) == 100
    counts = np.bincount(some.answers, minlength=3)
    assert counts[2] == 1
    assert 8 <= counts[0] <= 12
    texts = [row.texts[0] for row in some.rows]
    again = build_label_store(some.rows, answer_schema(SPEC, LabelSpec(["bad", "good", "rare"])))
    assert torch.equal(some.batch(slice(0, 100)).inputs["tokens"].ids, again.batch(slice(0, 100)).inputs["tokens"].ids)
    assert [row.texts[0] for row in store.sample(100, seed=1).rows] == texts
    assert [row.texts[0] for row in store.sample(100, seed=2).rows] != texts
    assert store.sample(2000, seed=1) is store
    assert all(label in {row.answer for row in store.sample(3, seed=5).rows} for label in ("bad", "good", "rare"))


def test_chosen_rows_bring_their_tags_and_spellings() -> None:
    store = build_tag_store(TAGGED, TAGS)
    some = store.choose(np.array([1, 0]))
    found, whole = some.batch(slice(0, 2)), store.batch(np.array([1, 0]))
    assert torch.equal(found.inputs["tokens"].characters, whole.inputs["tokens"].characters)
    assert torch.equal(found.targets["tags"].ids, whole.targets["tags"].ids)
    assert torch.equal(found.targets["label"].ids, whole.targets["label"].ids)
    assert [row.words for row in some.rows] == [TAGGED[1].words, TAGGED[0].words]
