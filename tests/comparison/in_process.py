"""In place of the processes of a comparison: its jobs in this one, so that tests can look at them and are quick."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import torch

from seqwise.comparison.fork_server import STOPPED, Ended, Job
from seqwise.comparison.jobs import JOBS
from seqwise.errors import SeqwiseError


class Here:
    """In place of the fork server: jobs in this process, one at a time, in the order in which they are started."""

    def __init__(self, folder: Path):
        self.folder, self.is_stopping = folder, False
        self.running: list[Job] = []
        (folder / "logs").mkdir(parents=True, exist_ok=True)

    def start(self, job: Job) -> None:
        self.running.append(job)

    def stop_all(self) -> None:
        self.is_stopping = True

    def ended(self, timeout: float = 0.5) -> Iterator[Ended]:
        if not self.running:
            return
        job = self.running.pop(0)
        if self.is_stopping:
            yield Ended(job, STOPPED, 0, "stopped before it was done")
            return
        threads = torch.get_num_threads()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                peak_bytes = self.work(job)
            yield Ended(job, 0, peak_bytes, "")
        except SeqwiseError as error:
            yield Ended(job, 2, 0, str(error))
        finally:
            torch.set_num_threads(threads)

    def work(self, job: Job) -> int:
        """Bytes that it needed."""
        JOBS[job.kind](self.folder, job.name, lambda: False)
        return 100_000_000

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass
