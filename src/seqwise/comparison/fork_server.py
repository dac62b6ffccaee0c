"""The fork server: a process that has loaded torch, and computed nothing yet, forks a worker for each job.

So a job that dies, or takes all memory, takes nothing with it; and starting one costs milliseconds. Parent and server
talk in lines of JSON. When the parent is gone the server asks its workers to stop, and ends.

    with ForkServer(folder) as server:
        server.start(Job("train", "lstm"))
        for ended in server.ended(): ...
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import ConfigError, SeqwiseError

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 60.0  # for children to write a checkpoint when they are asked to stop
STOPPED = 130  # exit code of a job that was asked to stop, and did
LOGS = "logs"


@dataclass(frozen=True)
class Job:
    kind: str
    """A name in jobs.JOBS."""
    name: str
    """Of the trial it is about."""

    @property
    def log(self) -> str:
        """What it printed, and its traceback where it failed by our mistake."""
        return f"{LOGS}/{self.name}.{self.kind}.log"


@dataclass(frozen=True)
class Ended:
    job: Job
    code: int
    """0 done, 2 the user's input, STOPPED; minus the signal where it was killed."""
    peak_bytes: int
    reason: str
    """Why it failed, in a sentence; empty where it did not."""


def check_can_fork() -> None:
    """To be asked before anything is begun."""
    if not hasattr(os, "fork"):
        raise ConfigError(
            f"this system ({sys.platform}) cannot fork processes, and a comparison runs each trial in a fork. Compare "
            "on Linux or macOS (on Windows: in WSL), or train one family at a time: seqwise train DATA --model lstm"
        )


class ForkServer:
    """Runs jobs on a comparison's folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.running: set[Job] = set()
        self._pending = b""
        (folder / LOGS).mkdir(parents=True, exist_ok=True)
        # in a session of its own: Ctrl-C reaches the parent alone, which then asks
        self._process = subprocess.Popen(
            [sys.executable, "-m", "seqwise.comparison.fork_server", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def start(self, job: Job) -> None:
        self.running.add(job)
        self._send({"start": asdict(job)})

    def stop_all(self) -> None:
        """Ask every child to write a checkpoint and end."""
        self._send({"stop": True})

    def ended(self, timeout: float = 0.5) -> Iterator[Ended]:
        """Jobs that have ended since it was last asked; waits for the first of them for `timeout` seconds."""
        assert self._process.stdout is not None
        is_open = True
        if select.select([self._process.stdout], [], [], timeout)[0]:
            read = os.read(self._process.stdout.fileno(), 65536)  # all there is: what a buffer held back, select missed
            is_open = bool(read)
            *lines, self._pending = (self._pending + read).split(b"\n")
            for found in map(json.loads, lines):
                job = Job(**found["job"])
                self.running.discard(job)
                yield Ended(job, found["code"], found["peak_bytes"], self._reason(job, found["code"]))
        if not is_open:  # the fork server itself is gone
            for job in list(self.running):
                self.running.discard(job)
                yield Ended(job, -signal.SIGKILL, 0, "the process that starts trials was killed")

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()  # it sees the end of its input, stops its children, and ends
        self._process.wait()
        self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `ended` will tell
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _reason(self, job: Job, code: int) -> str:
        if code == 0:
            return ""
        if code == STOPPED:
            return "stopped before it was done"
        if code == -signal.SIGKILL:
            return "its process was killed, perhaps because memory ran out"
        if code < 0:
            return f"its process was ended by signal {-code} ({signal.Signals(-code).name})"
        log = self.folder / job.log
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if log.exists() else []
        return lines[-1].removeprefix("error: ") if lines else f"its process ended with code {code}"


# -- the process itself ------------------------------------------------------------------------------------------


def serve(folder: Path) -> None:
    """Read jobs from standard input, fork a child for each, tell of those that ended."""
    from . import jobs  # loads torch, once for all children

    jobs.warm_up(folder)
    children: dict[int, Job] = {}
    pending, is_open = b"", True
    while is_open or children:
        if select.select([0] if is_open else [], [], [], POLL_SECONDS)[0]:
            read = os.read(0, 65536)
            is_open = bool(read)
            *lines, pending = (pending + read).split(b"\n")
            for message in map(json.loads, lines):
                if "start" in message:
                    job = Job(**message["start"])
                    children[_fork(folder, job, jobs.JOBS[job.kind])] = job
            if not is_open or any(b'"stop"' in line for line in lines):
                _ask_to_stop(children)
        for pid in list(children):
            done, status, usage = os.wait4(pid, os.WNOHANG)
            if done:
                ended = {
                    "job": asdict(children.pop(pid)),
                    "code": os.waitstatus_to_exitcode(status),
                    "peak_bytes": 1024 * usage.ru_maxrss,
                }
                if is_open:
                    os.write(1, json.dumps(ended).encode() + b"\n")


def _ask_to_stop(children: dict[int, Job]) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def insist(signum: int, frame: Any) -> None:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    if children:
        signal.signal(signal.SIGALRM, insist)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)


def _fork(folder: Path, job: Job, work: Any) -> int:
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until the child can hear it
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        return child
    code = 1
    try:
        asked: list[int] = []
        signal.signal(signal.SIGTERM, lambda signum, frame: asked.append(signum))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(folder / job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # an orphan stops, too
        code = STOPPED if work(folder, job.name, lambda: bool(asked) or os.getppid() != parent) else 0
    except SeqwiseError as error:
        code = _tell(f"error: {error}")
    except OSError as error:
        code = _tell(f"error: {error.strerror or error}: {error.filename or folder}")
    except BaseException as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error):
            code = _tell("error: memory ran out")
        else:
            _tell(traceback.format_exc())
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(code)


def _tell(sentence: str) -> int:
    """Write it behind what was printed. Returns the exit code of what is not our mistake."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        os.write(2, sentence.encode("utf-8", "replace") + b"\n")
    return 2


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
