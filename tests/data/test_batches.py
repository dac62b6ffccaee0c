"""Token store -> batches: every token in its turn, the same in every run, and scored exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from seqwise.data.batch import Batch
from seqwise.data.batches import Streams, Windows, score_streams, score_windows
from seqwise.data.store import TokenStore


def numbered(num_tokens: int) -> TokenStore:
    """A store whose ids are their own places: the boundary is 0, the tokens are 1 to N."""
    return TokenStore(np.arange(num_tokens + 1, dtype=np.uint16), num_tokens)


def inputs(batch: Batch) -> torch.Tensor:
    return batch.inputs["tokens"].ids


def targets(batch: Batch) -> torch.Tensor:
    return batch.targets["tokens"].ids


def epoch_of(source: Windows | Streams, epoch: int) -> list[Batch]:
    return [source.batch(epoch * source.steps_per_epoch + i) for i in range(source.steps_per_epoch)]


def target_counts(batches: Iterable[Batch]) -> Counter[int]:
    return Counter(i for batch in batches for i in targets(batch).flatten().tolist())


def scored_tokens(batches: Iterable[Batch]) -> list[int]:
    """The targets that count, after a check that each follows its input."""
    found: list[int] = []
    for batch in batches:
        field, given = batch.targets["tokens"], batch.inputs["tokens"]
        is_scored = torch.ones_like(field.ids, dtype=torch.bool) if field.is_token is None else field.is_token
        is_given = torch.ones_like(given.ids, dtype=torch.bool) if given.is_token is None else given.is_token
        assert given.ids.dtype == field.ids.dtype == torch.int64
        assert not (is_scored & ~is_given).any()  # what is scored was read
        assert (is_given.int().diff(dim=1) <= 0).all()  # padding stands at the end
        assert torch.equal(given.ids[is_given] + 1, field.ids[is_given])
        assert batch.counts() == {"tokens": int(is_scored.sum())}
        found += field.ids[is_scored].tolist()
    return found


# ---- windows


@pytest.mark.parametrize(
    ("num_tokens", "context"), [(100, 10), (101, 10), (109, 10), (10, 10), (57, 8), (5, 64), (2, 3)]
)
def test_over_an_epoch_every_token_is_a_target_once_up_to_the_shift(num_tokens: int, context: int) -> None:
    windows = Windows(numbered(num_tokens), context=context, batch_size=1)
    for epoch in range(3):
        counts = target_counts(epoch_of(windows, epoch))
        assert set(counts.values()) == {1}
        places = sorted(counts)
        assert places == list(range(places[0], places[-1] + 1))  # no gap between the windows
        assert num_tokens - len(places) < 2 * context


@pytest.mark.parametrize("num_tokens", [2, 3, 10, 11, 15, 19, 40])
@pytest.mark.parametrize(("context", "stride"), [(4, None), (4, 2), (5, 1), (64, None)])
def test_over_many_epochs_no_token_is_left_out(num_tokens: int, context: int, stride: int | None) -> None:
    windows = Windows(numbered(num_tokens), context=context, stride=stride, batch_size=2)
    counts = target_counts(batch for epoch in range(200) for batch in epoch_of(windows, epoch))
    assert set(counts) == set(range(1, num_tokens + 1))


def test_with_a_stride_every_token_is_a_target_as_often_as_windows_overlap() -> None:
    windows = Windows(numbered(100), context=12, stride=4, batch_size=1)
    starts = sorted(int(inputs(batch)[0, 0]) for batch in epoch_of(windows, 0))
    assert set(np.diff(starts)) == {4}
    counts = target_counts(epoch_of(windows, 0))
    assert {counts[place] for place in range(starts[2] + 1, starts[-2] + 1)} == {3}


def test_targets_are_one_step_ahead() -> None:
    for source in (
        Windows(numbered(50), context=8, batch_size=3),
        Streams(numbered(50), context=8, batch_size=3),
    ):
        for step in range(20):
            assert torch.equal(inputs(source.batch(step)) + 1, targets(source.batch(step)))


def test_rows_of_windows_have_the_asked_shape() -> None:
    batch = Windows(numbered(1000), context=16, batch_size=8).batch(0)
    assert inputs(batch).shape == targets(batch).shape == (8, 16)
    assert batch.counts() == {"tokens": 128}
    assert batch.resets is None


@pytest.mark.parametrize("make", [Windows, Streams])
def test_the_batch_of_a_step_is_the_same_in_any_order_of_calls(make: type[Windows] | type[Streams]) -> None:
    store = numbered(200)
    source = make(store, context=7, batch_size=4, seed=5)
    steps = range(3 * source.steps_per_epoch + 2)
    forwards = [inputs(source.batch(step)) for step in steps]
    for step in reversed(steps):
        assert torch.equal(inputs(source.batch(step)), forwards[step])
        resumed = make(store, context=7, batch_size=4, seed=5)
        assert torch.equal(inputs(resumed.batch(step)), forwards[step])


def test_another_seed_and_another_epoch_have_another_order() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        windows = Windows(numbered(300), context=10, batch_size=2, seed=seed)
        return [inputs(batch).flatten().tolist() for batch in epoch_of(windows, epoch)]

    orders = [order(0, 0), order(0, 1), order(0, 2), order(1, 0), order(1, 1)]
    assert len({str(o) for o in orders}) == 5
    assert orders[0] == order(0, 0)


def test_windows_are_shuffled_and_shifted() -> None:
    windows = Windows(numbered(1000), context=10, batch_size=1)
    starts = [[int(inputs(batch)[0, 0]) for batch in epoch_of(windows, epoch)] for epoch in range(20)]
    assert all(some != sorted(some) for some in starts)
    assert len({some[0] % 10 for some in starts}) > 3


# ---- streams


@pytest.mark.parametrize(("num_tokens", "context", "batch_size"), [(500, 7, 4), (64, 8, 2), (101, 3, 5), (40, 64, 2)])
def test_each_row_of_a_stream_goes_on_where_it_stopped(num_tokens: int, context: int, batch_size: int) -> None:
    streams = Streams(numbered(num_tokens), context=context, batch_size=batch_size)
    for epoch in range(3):
        batches = epoch_of(streams, epoch)
        for before, after in pairwise(batches):
            assert torch.equal(targets(before)[:, -1], inputs(after)[:, 0])
        assert set(target_counts(batches).values()) == {1}


def test_rows_start_anew_with_the_epoch_and_in_turns_later() -> None:
    streams = Streams(numbered(4000), context=5, batch_size=8)
    marks = [batch.resets for batch in epoch_of(streams, 1)]
    assert all(mark is not None and mark.dtype == torch.bool and mark.shape == (8,) for mark in marks)
    table = torch.stack([mark for mark in marks if mark is not None])  # (steps, rows)
    assert table[0].all()
    for row in range(8):
        places = table[:, row].nonzero().flatten().tolist()
        assert set(np.diff(places)[1:].tolist()) == {Streams.ANEW_EVERY}
    assert (table[1:].sum(dim=1) <= 1).all()  # never many at once


def test_rows_of_a_stream_read_different_segments_and_nearly_all_of_the_text() -> None:
    for num_tokens, context, batch_size in product((2, 3, 7, 20, 61), (1, 3, 8), (1, 2, 4)):
        streams = Streams(numbered(num_tokens), context=context, batch_size=batch_size)
        seen: Counter[int] = Counter()
        for epoch in range(40):
            counts = target_counts(epoch_of(streams, epoch))
            assert set(counts.values()) == {1}
            seen += counts
        assert len(seen) > num_tokens - batch_size  # what is left over when the tracks are made equal


# ---- scoring


def test_windows_score_every_token_exactly_once() -> None:
    for num_tokens, context, batch_size in product(range(1, 24), range(1, 9), (1, 3, 64)):
        for stride in (None, *range(1, context + 1)):
            batches = score_windows(numbered(num_tokens), context=context, stride=stride, batch_size=batch_size)
            assert sorted(scored_tokens(batches)) == list(range(1, num_tokens + 1))


def test_sliding_windows_show_each_token_as_much_before_it_as_promised() -> None:
    context, stride = 8, 3
    for batch in score_windows(numbered(50), context=context, stride=stride):
        is_scored = batch.targets["tokens"].is_token
        assert is_scored is not None
        for row, scored in zip(inputs(batch), is_scored, strict=True):
            places = scored.nonzero().flatten().tolist()
            assert row[0] == 0 or min(places, default=context) >= context - stride


def test_disjoint_windows_begin_where_the_one_before_ended() -> None:
    rows = torch.cat([inputs(batch) for batch in score_windows(numbered(40), context=10)])
    assert rows[:, 0].tolist() == [0, 10, 20, 30]


def test_streams_score_every_token_exactly_once() -> None:
    for num_tokens, chunk, tracks in product(range(1, 24), range(1, 9), (1, 2, 3, 5, 8, 64)):
        batches = list(score_streams(numbered(num_tokens), chunk=chunk, tracks=tracks))
        assert sorted(scored_tokens(batches)) == list(range(1, num_tokens + 1))


def test_streams_for_scoring_carry_each_track_on() -> None:
    batches = list(score_streams(numbered(47), chunk=4, tracks=3))
    assert {len(batch) for batch in batches} == {3}
    for before, after in pairwise(batches):
        given = after.inputs["tokens"]
        is_read = torch.ones(3, dtype=torch.bool) if given.is_token is None else given.is_token[:, 0]
        assert torch.equal(targets(before)[is_read, -1], inputs(after)[is_read, 0])


@pytest.mark.parametrize("num_tokens", [1, 2, 3])
def test_tiny_stores_work_everywhere(num_tokens: int) -> None:
    store = numbered(num_tokens)
    for context, batch_size in product((1, 2, 64), (1, 2, 32)):
        for source in (
            Windows(store, context=context, batch_size=batch_size),
            Windows(store, context=context, batch_size=batch_size, stride=1),
            Streams(store, context=context, batch_size=batch_size),
        ):
            for step in range(5):
                batch = source.batch(step)
                assert len(batch) >= 1
                assert torch.equal(inputs(batch) + 1, targets(batch))
                assert int(targets(batch).max()) <= num_tokens
        assert scored_tokens(score_windows(store, context=context)) == list(range(1, num_tokens + 1))
        assert sorted(scored_tokens(score_streams(store, chunk=context, tracks=batch_size))) == list(
            range(1, num_tokens + 1)
        )


def test_ids_of_two_bytes_become_whole_numbers_that_torch_can_index() -> None:
    store = TokenStore(np.array([0, 65535, 40000], dtype=np.uint16), 2)
    assert targets(Windows(store, context=2, batch_size=1).batch(0)).tolist() == [[65535, 40000]]
    assert targets(next(score_streams(store, chunk=2, tracks=1))).tolist() == [[65535, 40000]]


@pytest.mark.parametrize("stride", [None, 3, 10**9])
def test_a_context_longer_than_the_text_reads_no_more_than_the_text(stride: int | None) -> None:
    store = TokenStore(np.arange(8) % 5, 7)
    (batch,) = score_windows(store, context=10**6, stride=stride)
    assert batch.inputs["tokens"].ids.tolist() == [store.ids[:7].tolist()]
    assert batch.targets["tokens"].ids.tolist() == [store.ids[1:].tolist()]
    assert batch.targets["tokens"].count() == 7
