"""Batch: rows, masks and counts."""

from __future__ import annotations

from itertools import product

import torch

from seqwise.data.batch import Batch, Tokens, next_token_batch, pad_rows, prompt_batch


def numbered_batch(num_rows: int, length: int = 3) -> Batch:
    rows = torch.arange(num_rows * (length + 1)).reshape(num_rows, length + 1)
    is_token = torch.ones_like(rows, dtype=torch.bool)
    is_token[::2, -1] = False
    batch = next_token_batch(rows, is_token)
    return Batch(batch.inputs, batch.targets, torch.arange(num_rows) % 3 == 0)


def test_micro_batches_are_whole_rows_as_even_as_can_be() -> None:
    for num_rows, parts in product(range(1, 40), range(1, 12)):
        whole = numbered_batch(num_rows)
        some = whole.split(parts)
        sizes = [len(part) for part in some]
        assert len(some) == min(parts, num_rows)
        assert sum(sizes) == num_rows
        assert max(sizes) - min(sizes) <= 1
        assert torch.equal(torch.cat([part.inputs["tokens"].ids for part in some]), whole.inputs["tokens"].ids)
        assert torch.equal(torch.cat([part.targets["tokens"].ids for part in some]), whole.targets["tokens"].ids)


def test_micro_batches_keep_masks_and_marks_and_their_counts_add_up() -> None:
    whole = numbered_batch(7)
    some = whole.split(3)
    masks = [part.targets["tokens"].is_token for part in some]
    assert torch.equal(torch.cat([m for m in masks if m is not None]), whole.targets["tokens"].is_token)
    marks = [part.resets for part in some]
    assert torch.equal(torch.cat([m for m in marks if m is not None]), whole.resets)
    assert sum(part.counts()["tokens"] for part in some) == whole.counts()["tokens"] == 7 * 3 - 4


def test_a_batch_without_masks_stays_without() -> None:
    (first, second) = next_token_batch(torch.zeros(2, 4, dtype=torch.long)).split(2)
    assert first.inputs["tokens"].is_token is None
    assert second.resets is None
    assert first.counts() == {"tokens": 3}
    assert first.to("cpu").inputs["tokens"].is_token is None


def test_rows_of_different_lengths_are_padded_at_the_end() -> None:
    tokens = pad_rows([[5, 6, 7], [8], []])
    assert tokens.is_token is not None
    assert tokens.is_token.tolist() == [[True, True, True], [True, False, False], [False, False, False]]
    assert tokens.ids[tokens.is_token].tolist() == [5, 6, 7, 8]
    assert tokens.ids.dtype == torch.int64
    assert tokens.lengths.tolist() == [3, 1, 0]
    assert tokens.count() == 4


def test_rows_of_one_length_need_no_mask() -> None:
    tokens = pad_rows([[1, 2], [3, 4]])
    assert tokens.is_token is None
    assert tokens.lengths.tolist() == [2, 2]
    assert tokens.count() == 4
    assert tokens.shape == (2, 2)


def test_prompts_have_no_targets() -> None:
    batch = prompt_batch([[1, 2], [3]])
    assert len(batch) == 2
    assert batch.targets == {}
    assert batch.counts() == {}


def test_targets_stand_one_step_ahead_and_padding_is_neither_read_nor_scored() -> None:
    rows = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    batch = next_token_batch(rows, torch.tensor([[True] * 4, [True, True, False, False]]))
    assert batch.inputs["tokens"].ids.tolist() == [[1, 2, 3], [5, 6, 0]]
    assert batch.targets["tokens"].ids.tolist() == [[2, 3, 4], [6, 0, 0]]
    expected = [[True, True, True], [True, False, False]]
    for field in (batch.inputs["tokens"], batch.targets["tokens"]):
        assert field.is_token is not None
        assert field.is_token.tolist() == expected
    assert batch.counts() == {"tokens": 4}


def test_counts_are_of_targets_not_of_places() -> None:
    ids = torch.zeros(2, 3, dtype=torch.long)
    is_scored = torch.tensor([[False, True, True], [False, False, True]])
    assert Batch({"tokens": Tokens(ids)}, {"tokens": Tokens(ids, is_scored)}).counts() == {"tokens": 3}
