"""Batches in parallel, one core each: the steps of search are small, and cores that share one wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Found = TypeVar("Found")


def parallel_map(work: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """`work` of each item, in order; the last items are begun first. torch releases Python's lock while it computes."""
    cores = torch.get_num_threads()
    if cores == 1 or len(items) < 2:
        return [work(item) for item in items]
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(min(cores, len(items)), initializer=torch.set_num_threads, initargs=(1,))
    try:
        waiting = [pool.submit(work, item) for item in reversed(items)]
        return [future.result() for future in reversed(waiting)]
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(cores)
