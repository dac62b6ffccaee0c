"""Pairs as ids, and batches of them by length."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqwise.data.pair_store import PairBatches, Rows, build_pair_store, cuts_by_length
from seqwise.text import train_tokenizer

PAIRS = [("ab", "x"), ("", "yy"), ("abba", "xyxyxy"), ("b", ""), ("aab", "yx")]
SOURCE, TARGET = (train_tokenizer("char", [letters + "\n"]) for letters in ("ab", "xy"))


def some_pairs(num: int = 300) -> list[tuple[str, str]]:
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("ab"), size=n)) for n in random.integers(1, 40, size=num)]
    return [(word, word.replace("a", "x").replace("b", "y") * int(random.integers(1, 3))) for word in words]


def test_a_source_ends_and_a_target_begins_and_ends_in_the_boundary() -> None:
    store = build_pair_store(PAIRS, SOURCE, TARGET)
    assert store.num_pairs == 5
    assert len(store) == sum(len(target) + 1 for _, target in PAIRS)
    batch = store.batch(np.arange(5))
    for row, (source, target) in enumerate(PAIRS):
        length = int(batch.inputs["source"].lengths[row])
        assert SOURCE.decode(batch.inputs["source"].ids[row, :length].numpy()) == source + "\n"
        length = int(batch.targets["tokens"].lengths[row])
        assert TARGET.decode(batch.inputs["tokens"].ids[row, :length].numpy()) == "\n" + target
        assert TARGET.decode(batch.targets["tokens"].ids[row, :length].numpy()) == target + "\n"
    assert batch.counts() == {"tokens": len(store)}
    same = store.batch(np.array([2, 2]))
    assert same.inputs["source"].is_token is None
    assert same.targets["tokens"].is_token is None


def test_the_beginning_of_a_store_has_as_many_target_tokens_as_asked() -> None:
    store = build_pair_store(PAIRS, SOURCE, TARGET)
    assert [store.take(most).num_pairs for most in (0, 1, 4, 5, 11, 12, 1000)] == [1, 1, 1, 2, 2, 3, 5]
    some = store.take(5)
    assert (some.texts, len(some)) == (PAIRS[:2], 5)
    assert torch.equal(
        some.batch(np.array([1])).targets["tokens"].ids, store.batch(np.array([1])).targets["tokens"].ids
    )


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 400))
def test_cuts_hold_every_row_once_within_the_limit(lengths: list[int], most: int) -> None:
    cuts = cuts_by_length(np.array(lengths), most)
    assert [a for a, _ in cuts] == [0, *(b for _, b in cuts)][:-1]
    assert cuts[-1][1] == len(lengths)
    for a, b in cuts:
        assert b == a + 1 or (b - a) * max(lengths[a:b]) <= most
        assert b == len(lengths) or (b + 1 - a) * max(lengths[a : b + 1]) > most  # one more would not have fitted


def test_an_epoch_holds_every_pair_once_and_the_next_in_another_order() -> None:
    pairs = some_pairs()
    store = build_pair_store(pairs, SOURCE, TARGET)
    batches = PairBatches(store, batch_tokens=200, seed=1)

    def sources(epoch: int) -> list[str]:
        found = []
        for step in range(epoch * batches.steps_per_epoch, (epoch + 1) * batches.steps_per_epoch):
            source = batches.batch(step).inputs["source"]
            lengths = source.lengths.tolist()
            found += [SOURCE.decode(row[: n - 1].numpy()) for row, n in zip(source.ids, lengths, strict=True)]
        return found

    first, second = sources(0), sources(1)
    assert sorted(first) == sorted(second) == sorted(source for source, _ in pairs)
    assert first != second


def test_the_batch_of_a_step_is_the_same_whoever_asks() -> None:
    store = build_pair_store(some_pairs(), SOURCE, TARGET)
    batches, others = (PairBatches(store, batch_tokens=150, seed=3) for _ in range(2))
    step = 2 * batches.steps_per_epoch + 1
    for _ in range(3):
        batches.batch(_)
    assert torch.equal(batches.batch(step).inputs["source"].ids, others.batch(step).inputs["source"].ids)
    other_seed = PairBatches(store, batch_tokens=150, seed=4)
    assert any(
        not torch.equal(batches.batch(s).inputs["source"].ids, other_seed.batch(s).inputs["source"].ids)
        for s in range(3)
    )


def test_little_padding_is_computed() -> None:
    store = build_pair_store(some_pairs(3000), SOURCE, TARGET)
    batches = PairBatches(store, batch_tokens=1000)
    filled = places = without_mask = 0
    for step in range(batches.steps_per_epoch):
        batch = batches.batch(step)
        for tokens in (batch.inputs["source"], batch.targets["tokens"]):
            filled += tokens.count()
            places += tokens.ids.numel()
            assert tokens.ids.numel() <= 1100  # the target may be a little longer than in the order that was cut
        without_mask += batch.inputs["source"].is_token is None
    assert filled / places > 0.9
    assert without_mask > 0.7 * batches.steps_per_epoch


def test_rows_of_nothing_are_no_rows() -> None:
    assert len(Rows.of([])) == 0
    with pytest.raises(IndexError):
        Rows.of([np.array([1])]).padded(np.array([1]))
