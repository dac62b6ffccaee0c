"""Threads that compute together: they meet as often as they should, and nobody waits for one who does not come."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import carray, int64, njit

from seqwise.kernels.arithmetic import ints_at
from seqwise.kernels.team import TEAM, Team, wait

MEETINGS = 400
PATIENCE = 120  # seconds, after which something hangs


@njit(nogil=True)
def _take_turns(rank, ranks, meetings, places_at, num):
    """Each writes to its place, all meet, each reads all places, all meet: the sum of what was read."""
    places, met, total = carray(ints_at(places_at), (ranks,)), int64(0), 0
    for turn in range(num):
        places[rank] = turn * (rank + 1)
        met = wait(ranks, meetings, met)
        for place in places:
            total += place
        met = wait(ranks, meetings, met)
    return total if met == 2 * num * ranks or ranks == 1 else -1


def turns(places: np.ndarray, num: int = MEETINGS) -> Callable[[int, int, int], int]:
    return lambda rank, ranks, meetings: int(_take_turns(rank, ranks, meetings, places.ctypes.data, num))


def sum_of(ranks: int, num: int = MEETINGS) -> int:
    return sum(turn * (rank + 1) for turn in range(num) for rank in range(ranks))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_all_see_what_others_wrote_before_they_met(ranks: int) -> None:
    """More ranks than cores too, which wait for each other all the longer."""
    num = MEETINGS if ranks <= 2 else 20
    for _ in range(3):
        found: dict[int, int] = {}
        together = turns(np.zeros(8, np.int64), num)

        def work(rank: int, size: int, meetings: int, found: Any = found, together: Any = together) -> int:
            found[rank] = together(rank, size, meetings)
            return int(found[rank])

        assert TEAM.run(work, ranks) == sum_of(ranks, num)
        assert found == dict.fromkeys(range(ranks), sum_of(ranks, num))


def test_work_while_others_work_is_done_alone() -> None:
    team, inside, go_on = Team(), threading.Event(), threading.Event()
    seen: list[tuple[int, int]] = []

    def long(rank: int, ranks: int, meetings: int) -> int:
        seen.append((rank, ranks))
        inside.set()
        assert go_on.wait(PATIENCE)
        return 5

    first = threading.Thread(target=team.run, args=(long, 2))
    first.start()
    assert inside.wait(PATIENCE)
    assert team.run(lambda rank, ranks, meetings: 10 * rank + ranks, 2) == 1
    assert team.run(turns(np.zeros(8, np.int64)), 2) == sum_of(1)
    go_on.set()
    first.join(PATIENCE)
    assert sorted(seen) == [(0, 2), (1, 2)]
    assert team.run(turns(np.zeros(8, np.int64)), 2) == sum_of(2)  # and then together again


@pytest.mark.parametrize("which", [0, 1])
def test_what_goes_wrong_in_any_rank_reaches_who_asked(which: int) -> None:
    team = Team()

    def work(rank: int, ranks: int, meetings: int) -> int:
        if rank == which:
            raise ZeroDivisionError("of this rank")
        return 7

    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of this rank"):
            team.run(work, 2)
    assert team.run(lambda rank, ranks, meetings: 7 + rank, 2) == 7


def test_what_is_returned_is_that_of_rank_zero() -> None:
    assert Team().run(lambda rank, ranks, meetings: rank + 3, 3) == 3


def run_apart(code: str) -> Any:
    """In a process of its own."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "sys.path.insert(0, sys.argv[1])\n" + code,
            __file__.rsplit("/", 1)[0],
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    code = """
import os
import numpy as np
from test_team import TEAM, sum_of, turns
places = np.zeros(8, np.int64)
assert TEAM.run(turns(places), 2) == sum_of(2)
child = os.fork()
if child == 0:
    os._exit(0 if TEAM.run(turns(places), 2) == sum_of(2) else 3)
assert os.waitpid(child, 0)[1] == 0
assert TEAM.run(turns(places), 2) == sum_of(2)
"""
    run_apart(code)


def test_ctrl_c_while_ranks_work_leaves_nobody_waiting() -> None:
    code = """
import signal, time
import numpy as np
from test_team import Team, sum_of, turns
signal.signal(signal.SIGALRM, signal.default_int_handler)
team, num_struck, ended = Team(), 0, []
def slow(rank, ranks, meetings):
    time.sleep(0.3)
    ended.append(rank)
    return 0
for number in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        team.run(slow, 2)
    except KeyboardInterrupt:
        num_struck += 1
    assert team.run(turns(np.zeros(8, np.int64), 20), 2) == sum_of(2, 20)
assert sorted(ended) == [0, 0, 0, 1, 1, 1], ended
print(num_struck)
"""
    assert hasattr(signal, "setitimer")
    assert int(run_apart(code)) == 3
