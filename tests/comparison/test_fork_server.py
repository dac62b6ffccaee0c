"""Processes that fail, are killed, are asked to stop, or lose their parent: what is told of each, and who goes on.

The fork server runs here as it is, with jobs of this file in place of those that train: this file is its program too.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import seqwise.comparison
from seqwise.comparison import fork_server as module
from seqwise.comparison.fork_server import STOPPED, Ended, ForkServer, Job
from seqwise.errors import DataError

EATEN_BYTES = 200_000_000
PATIENCE = 1.0  # seconds, for jobs that do not listen

# -- jobs ------------------------------------------------------------------------------------------------------------


def mark(folder: Path, name: str) -> None:
    """Say that the job is at work, and in which process."""
    (folder / f".{name}").write_text(str(os.getpid()))
    (folder / f".{name}").rename(folder / f"{name}.pid")


def succeed(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    mark(folder, name)
    return False


def listen(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    mark(folder, name)
    until = time.monotonic() + 60
    while not wants_stop() and time.monotonic() < until:
        time.sleep(0.01)
    return wants_stop()


def not_listen(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    mark(folder, name)
    time.sleep(60)
    return False


def meet(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    """Ends when there are three of its kind."""
    mark(folder, name)
    until = time.monotonic() + 20
    while len(list(folder.glob("meet-*.pid"))) < 3:
        if time.monotonic() > until:
            raise DataError("nobody came.")
        time.sleep(0.01)
    return False


def refuse(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    sys.stdout.write("reading\n")
    raise DataError("poems.txt: the file is empty. Give some text, für 日本.")


def err(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    raise ZeroDivisionError("our mistake")


def run_out_of_memory(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    raise MemoryError


def run_out_of_torchs_memory(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    raise RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 4503599627370496 bytes. Error code 12 (Cannot allocate memory)\n"
    )


def fill_the_disk(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    raise OSError(errno.ENOSPC, "No space left on device", "model.safetensors")


def die(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return False


def crash(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    os.kill(os.getpid(), signal.SIGSEGV)
    return False


def eat(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    eaten = bytearray(b"x") * EATEN_BYTES
    mark(folder, name)
    return len(eaten) == 0


def speak(folder: Path, name: str, wants_stop: Callable[[], bool]) -> bool:
    sys.stdout.write("320 steps of 2,048 fit 1 minutes\n")
    sys.stderr.write("a warning\n")
    return False


JOBS = {
    job.__name__: job
    for job in (succeed, listen, not_listen, meet, refuse, err, run_out_of_memory, run_out_of_torchs_memory)
} | {job.__name__: job for job in (fill_the_disk, die, crash, eat, speak)}


def start_this_file(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """In place of Popen: the fork server of this file instead of the one that loads torch."""
    assert command[:3] == [sys.executable, "-m", "seqwise.comparison.fork_server"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen([sys.executable, __file__, "fork_server", command[3]], env=environment, **options)


def be_the_fork_server(folder: Path) -> None:
    jobs: Any = types.ModuleType("seqwise.comparison.jobs")
    jobs.JOBS, jobs.warm_up = JOBS, lambda folder: None
    sys.modules[jobs.__name__] = seqwise.comparison.jobs = jobs  # type: ignore[attr-defined]
    module.PATIENCE_SECONDS = PATIENCE
    module.serve(folder)


def be_a_parent(folder: Path) -> None:
    """Start jobs that would take long, and wait to be killed."""
    module.subprocess = types.SimpleNamespace(Popen=start_this_file, PIPE=subprocess.PIPE)  # type: ignore[assignment]
    with ForkServer(folder) as server:
        server.start(Job("listen", "patient"))
        server.start(Job("not_listen", "deaf"))
        time.sleep(60)


# -- the tests -------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    monkeypatch.setattr(module, "subprocess", types.SimpleNamespace(Popen=start_this_file, PIPE=subprocess.PIPE))
    with ForkServer(tmp_path) as server:
        yield server


def wait_until(is_so: Callable[[], bool], *, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def pid_of(folder: Path, name: str) -> int:
    wait_until((folder / f"{name}.pid").exists)
    return int((folder / f"{name}.pid").read_text())


def is_alive(pid: int) -> bool:
    """A process that has ended and waits to be counted is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_ended(server: ForkServer, *, seconds: float = 20.0) -> dict[str, Ended]:
    """By name, when nothing is running any more."""
    found: dict[str, Ended] = {}
    until = time.monotonic() + seconds
    while server.running:
        assert time.monotonic() < until, f"nothing is told of {sorted(job.name for job in server.running)}"
        found |= {ended.job.name: ended for ended in server.ended(0.1)}
    return found


def outcome(server: ForkServer, kind: str) -> Ended:
    server.start(Job(kind, "x"))
    return all_ended(server)["x"]


def test_a_job_that_is_done_has_no_reason(server: ForkServer) -> None:
    ended = outcome(server, "succeed")
    assert (ended.job, ended.code, ended.reason) == (Job("succeed", "x"), 0, "")


def test_what_the_user_got_wrong_is_told_in_its_sentence(server: ForkServer) -> None:
    ended = outcome(server, "refuse")
    assert (ended.code, ended.reason) == (2, "poems.txt: the file is empty. Give some text, für 日本.")


def test_our_mistake_leaves_its_traceback_in_the_log(server: ForkServer) -> None:
    ended = outcome(server, "err")
    assert (ended.code, ended.reason) == (1, "ZeroDivisionError: our mistake")
    log = (server.folder / "logs" / "x.err.log").read_text()
    assert log.startswith("Traceback (most recent call last):")
    assert "in err\n" in log


@pytest.mark.parametrize("kind", ["run_out_of_memory", "run_out_of_torchs_memory"])
def test_memory_that_ran_out_is_called_that(server: ForkServer, kind: str) -> None:
    """torch says so in a RuntimeError of its own."""
    ended = outcome(server, kind)
    assert ended.code == 2
    assert ended.reason.startswith("memory ran out")


def test_a_full_disk_is_told_with_the_file(server: ForkServer) -> None:
    ended = outcome(server, "fill_the_disk")
    assert (ended.code, ended.reason) == (2, "No space left on device: model.safetensors")


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("die", -signal.SIGKILL, "its process was killed, perhaps because memory ran out"),
        ("crash", -signal.SIGSEGV, "its process was ended by signal 11 (SIGSEGV)"),
    ],
)
def test_a_process_that_was_ended_says_by_what(server: ForkServer, kind: str, code: int, reason: str) -> None:
    ended = outcome(server, kind)
    assert (ended.code, ended.reason) == (code, reason)


def test_one_that_is_killed_from_outside_takes_nobody_with_it(server: ForkServer) -> None:
    server.start(Job("listen", "victim"))
    server.start(Job("listen", "bystander"))
    os.kill(pid_of(server.folder, "victim"), signal.SIGKILL)
    wait_until(lambda: any(ended.job.name == "victim" for ended in server.ended(0.1)))
    assert is_alive(pid_of(server.folder, "bystander"))
    server.start(Job("succeed", "next"))
    wait_until(lambda: any(ended.job.name == "next" and ended.code == 0 for ended in server.ended(0.1)))
    server.stop_all()
    assert all_ended(server)["bystander"].code == STOPPED


def test_all_that_are_asked_to_stop_do(server: ForkServer) -> None:
    for number in range(3):
        server.start(Job("listen", f"job-{number}"))
    pids = [pid_of(server.folder, f"job-{number}") for number in range(3)]
    assert all(map(is_alive, pids))
    server.stop_all()
    ended = all_ended(server)
    assert {name: found.code for name, found in ended.items()} == {f"job-{number}": STOPPED for number in range(3)}
    assert {found.reason for found in ended.values()} == {"stopped before it was done"}
    assert not any(map(is_alive, pids))


def test_a_job_that_is_asked_to_stop_the_moment_it_starts_is_stopped_and_did_not_fail(server: ForkServer) -> None:
    """Ctrl-C between two trials: the process is there, and not yet ready to be asked."""
    for number in range(10):
        server.start(Job("listen", f"job-{number}"))
        server.stop_all()
        assert all_ended(server)[f"job-{number}"].code == STOPPED


def test_a_job_that_does_not_listen_is_ended_when_patience_is_over(server: ForkServer) -> None:
    server.start(Job("not_listen", "deaf"))
    server.start(Job("listen", "patient"))
    deaf = pid_of(server.folder, "deaf")
    pid_of(server.folder, "patient")
    server.stop_all()
    ended = all_ended(server)
    assert ended["patient"].code == STOPPED
    assert ended["deaf"].code == -signal.SIGKILL
    assert not is_alive(deaf)


def test_jobs_run_side_by_side(server: ForkServer) -> None:
    """Each waits for the others."""
    for number in range(3):
        server.start(Job("meet", f"meet-{number}"))
    assert [ended.code for ended in all_ended(server).values()] == [0, 0, 0]


def test_of_jobs_that_end_at_the_same_moment_each_is_told(server: ForkServer) -> None:
    """Their lines come in one piece, and no more lines follow that could wake anybody."""
    for number in range(6):
        server.start(Job("succeed", f"job-{number}"))
    for number in range(6):
        pid = pid_of(server.folder, f"job-{number}")
        wait_until(lambda pid=pid: not is_alive(pid))
    time.sleep(0.3)
    ended = all_ended(server, seconds=5.0)
    assert sorted(ended) == [f"job-{number}" for number in range(6)]


def test_asking_who_ended_waits_no_longer_than_said(server: ForkServer) -> None:
    server.start(Job("listen", "x"))
    pid_of(server.folder, "x")
    began = time.monotonic()
    assert list(server.ended(0.2)) == []
    assert 0.15 < time.monotonic() - began < 3.0


def test_memory_is_counted_for_each_job_by_itself(server: ForkServer) -> None:
    much, little = outcome(server, "eat"), outcome(server, "succeed")
    assert EATEN_BYTES < much.peak_bytes < EATEN_BYTES + 300_000_000
    assert 1_000_000 < little.peak_bytes < EATEN_BYTES


def test_what_a_job_prints_stands_in_its_log(server: ForkServer) -> None:
    assert outcome(server, "speak").code == 0
    log = (server.folder / "logs" / "x.speak.log").read_text()
    assert sorted(log.splitlines()) == ["320 steps of 2,048 fit 1 minutes", "a warning"]


def test_leaving_the_fork_server_stops_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "subprocess", types.SimpleNamespace(Popen=start_this_file, PIPE=subprocess.PIPE))
    with ForkServer(tmp_path) as server:
        server.start(Job("listen", "x"))
        pid = pid_of(tmp_path, "x")
    assert not is_alive(pid)


def test_when_the_parent_is_killed_all_its_processes_end(tmp_path: Path) -> None:
    """Those that listen at once, those that do not when patience is over."""
    parent = subprocess.Popen([sys.executable, __file__, "parent", str(tmp_path)])
    pids = [pid_of(tmp_path, "patient"), pid_of(tmp_path, "deaf")]
    between = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])  # the fork server
    assert all(map(is_alive, [*pids, between]))
    parent.kill()
    parent.wait()
    for pid in [*pids, between]:
        wait_until(lambda pid=pid: not is_alive(pid), seconds=PATIENCE + 15)


def test_a_fork_server_that_is_killed_is_told_and_nothing_waits_for_it(server: ForkServer) -> None:
    server.start(Job("listen", "x"))
    orphan = pid_of(server.folder, "x")
    try:
        server._process.kill()
        ended = all_ended(server)["x"]
        assert (ended.code, ended.reason) == (-signal.SIGKILL, "the process that starts trials was killed")
        assert outcome(server, "succeed").code == -signal.SIGKILL
    finally:
        if is_alive(orphan):
            os.kill(orphan, signal.SIGKILL)


if __name__ == "__main__":
    {"fork_server": be_the_fork_server, "parent": be_a_parent}[sys.argv[1]](Path(sys.argv[2]))
