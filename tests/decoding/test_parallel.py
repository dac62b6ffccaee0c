"""Work on cores of its own: order, errors, and threads as they were."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from seqwise.decoding.parallel import parallel_map


@pytest.fixture(params=[1, 2, 3])
def cores(request: pytest.FixtureRequest) -> int:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_answers_come_in_order_and_each_core_works_with_one_thread(cores: int) -> None:
    def work(number: int) -> tuple[int, int]:
        time.sleep(0.01 * (number % 3))
        return number, torch.get_num_threads()

    found = parallel_map(work, list(range(7)))
    assert [number for number, _ in found] == list(range(7))
    assert {threads for _, threads in found} == {1}
    assert torch.get_num_threads() == cores


def test_one_item_has_all_threads(cores: int) -> None:
    assert parallel_map(lambda _: torch.get_num_threads(), ["only"]) == [cores]
    assert parallel_map(lambda _: 1, []) == []


def test_what_goes_wrong_is_told_and_threads_are_given_back(cores: int) -> None:
    def work(number: int) -> int:
        if number == 8:
            raise ValueError("eight")
        return number

    with pytest.raises(ValueError, match="eight"):
        parallel_map(work, list(range(9)))
    assert torch.get_num_threads() == cores


def test_two_cores_work_at_the_same_time() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        meet = threading.Barrier(2, timeout=20)  # each waits for the other
        assert len(parallel_map(lambda _: meet.wait(), [1, 2])) == 2
    finally:
        torch.set_num_threads(before)
