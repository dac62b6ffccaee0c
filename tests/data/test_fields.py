"""Fields beyond plain rows: targets of which only some count, tags of words, rows that belong together."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqwise.data.batch import Batch, Tags, Tokens

IDS = torch.arange(12).view(3, 4)
IS_TOKEN = torch.tensor([[True] * 4, [True, True, False, False], [True] * 4])


def test_masked_targets_are_sparse() -> None:
    is_scored = torch.zeros(3, 4, dtype=torch.bool)
    is_scored[0, 2] = is_scored[1, 0] = True
    field = Tokens(IDS, IS_TOKEN, is_scored=is_scored)
    assert (field.count(), int(field.lengths.sum())) == (2, 10)
    assert field.is_target is is_scored
    assert Tokens(IDS, IS_TOKEN).count() == 10


def test_what_belongs_to_tokens_follows_them() -> None:
    spelled = torch.zeros(3, 4, 2, dtype=torch.long)
    field = Tokens(IDS, IS_TOKEN, segments=IDS % 2, characters=spelled, is_scored=IS_TOKEN)
    rows = Batch({"tokens": field}, {}).rows(slice(1, 2)).inputs["tokens"]
    assert (rows.segments.tolist(), rows.characters.shape, rows.is_scored.tolist()) == (
        [[0, 1, 0, 1]], (1, 4, 2), [[True, True, False, False]],
    )  # fmt: skip


def test_tags_count_words() -> None:
    tags = Tags(
        torch.tensor([[1, 0], [2, 0]]), torch.tensor([[0, 3], [1, 0]]), torch.tensor([[True, True], [True, False]])
    )
    assert (tags.count(), tags.shape, tags.lengths.tolist()) == (3, (2, 2), [2, 1])
    assert Batch({"tokens": Tokens(IDS[:2])}, {"tags": tags}).counts() == {"tags": 3}
    assert tags.map(lambda tensor: tensor[1:]).steps.tolist() == [[1, 0]]


def test_what_is_read_is_counted_over_all_inputs() -> None:
    batch = Batch({"source": Tokens(IDS, IS_TOKEN), "tokens": Tokens(IDS[:, :2])}, {"tokens": Tokens(IDS[:, :2])})
    assert batch.num_steps == 10 + 6
    assert batch.sizes() == {"rows": 3, "groups": 3}


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6), parts=st.integers(1, 8))
def test_a_split_never_cuts_a_group(sizes: list[int], parts: int) -> None:
    groups = torch.repeat_interleave(torch.arange(len(sizes)) + 7, torch.tensor(sizes))
    ids = torch.arange(len(groups)).unsqueeze(1)
    batch = Batch({"tokens": Tokens(ids)}, {"tokens": Tokens(ids)}, groups=groups)
    assert batch.sizes() == {"rows": len(groups), "groups": len(sizes)}
    split = batch.split(parts)
    assert torch.cat([part.inputs["tokens"].ids for part in split]).tolist() == ids.tolist()
    kept = [set(part.groups.tolist()) for part in split]
    assert all(len(part) for part in split)
    assert sum(map(len, kept)) == len(sizes)  # each group in one part alone
    assert len(split) <= max(1, min(parts, len(sizes)))


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_rows_that_stand_alone_are_split_as_evenly_as_can_be(parts: int) -> None:
    batch = Batch({"tokens": Tokens(IDS)}, {})
    assert [len(part) for part in batch.split(parts)] == {1: [3], 2: [2, 1], 3: [1, 1, 1]}[parts]
