"""A few threads that run one compiled function together, and wait for each other inside of it.

Each thread is given its rank. They share memory; where one reads what others wrote, all meet first (`wait`). No library
of threads is needed for it: the threads are Python's, which compiled code lets run side by side, so that several calls
at once and processes that were forked are nothing special. A meeting of two takes some tenths of a microsecond while
both have a core; who waits for a thread that has none lets others run.

    meetings      how often anyone arrived; a rank is through when all have arrived as often as itself      (1)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as finish
from threading import Lock

import numpy as np
from numba import carray, int64, njit, types
from numba.extending import intrinsic

from .arithmetic import IN_ORDER, LOOP, UNIT, floats_at, ints_at, log_softmax, product, share

SPINS = 2_000  # looks before others are let run
_give_way = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def _arrive(typing_context, address):
    """One more has arrived."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(types.int64)
        counter = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.atomic_rmw("add", counter, kind(1), "seq_cst")

    return types.int64(types.int64), generate


@intrinsic
def _arrived(typing_context, address):
    """How many have."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(types.int64)
        counter = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.load_atomic(counter, "seq_cst", 8)

    return types.int64(types.int64), generate


@njit(**IN_ORDER)
def wait(ranks, meetings, before):
    """All meet: returns how many arrivals there were, to be handed to the next meeting as `before` (1)."""
    if ranks == 1:
        return before
    wanted = before + ranks
    _arrive(meetings)
    looks = 0
    while _arrived(meetings) < wanted:
        looks += 1
        if looks > SPINS:
            _give_way()
    return wanted


@njit(**LOOP)
def expect(rank, ranks, meetings, met, head_at, hidden_at, log_probs_at, B, D, V):
    """What every step ends with: log p of what comes next, (B, V), from hidden states (B, D)."""
    first, last = share(rank, ranks, V, int64(UNIT))
    product(head_at, hidden_at, log_probs_at, B, D, V, first, last, int64(0))
    met = wait(ranks, meetings, met)
    first, last = share(rank, ranks, B, int64(1))
    for b in range(first, last):
        log_softmax(carray(floats_at(log_probs_at + 4 * b * V), (V,)))
    return wait(ranks, meetings, met)


@njit(**LOOP)
def advance(lengths_at, B):
    """One more step is taken in each row, (B,)."""
    lengths = carray(ints_at(lengths_at), (B,))
    for b in range(B):
        lengths[b] += 1


class Team:
    """Threads that wait to be given work. One piece of work at a time has them; another finds them busy, and is done by
    the thread that asked."""

    def __init__(self) -> None:
        self._lock, self._pool = Lock(), None  # type: tuple[Lock, ThreadPoolExecutor | None]
        self._size, self._process = 0, 0

    def run(self, work: Callable[[int, int, int], int], ranks: int) -> int:
        """What `work(rank, ranks, address of the meetings)` of rank zero returns, when all are done."""
        if ranks == 1 or not self._lock.acquire(blocking=False):
            return work(0, 1, 0)
        try:
            pool, begun = self._threads(ranks), list[Future[int]]()
            try:
                # none of them is the thread that Ctrl-C interrupts: the others would wait for it for ever
                begun.append(pool.submit(self._lead, pool, work, ranks))
                return begun[0].result()
            except BaseException:
                self._pool = None  # what was begun, and perhaps not noted, has its threads to itself until it ends
                raise
            finally:
                finish(begun)  # behind Ctrl-C too: what they write to has to live
        finally:
            self._lock.release()

    @staticmethod
    def _lead(pool: ThreadPoolExecutor, work: Callable[[int, int, int], int], ranks: int) -> int:
        meetings = np.zeros(8, dtype=np.int64)  # a line of the cache of its own
        others = [pool.submit(work, rank, ranks, meetings.ctypes.data) for rank in range(1, ranks)]
        found = work(0, ranks, meetings.ctypes.data)
        for other in others:
            other.result()
        return found

    def _threads(self, num: int) -> ThreadPoolExecutor:
        """One for each rank, or they would wait for one that never begins."""
        if self._pool is None or self._size < num or self._process != os.getpid():  # threads do not outlive a fork
            self._pool, self._size, self._process = ThreadPoolExecutor(num), num, os.getpid()
        return self._pool


TEAM = Team()
