"""One thread for each run that continues text: requests become rows, and rows enter and leave while others go on.

    batcher = Batcher(model)
    batcher.submit(Job(prompt, choice, limit, chances, take))       # Full where too many wait
    take([Written(token, log_prob, ()), ...])                       # in the batcher's thread; False: enough

A turn: who is gone leaves, some of those that wait have their prompts read and enter, and all rows take some steps
together. What a row writes does not depend on the others: prompts are read alone (prompts.py), a row's chances are its
own, and a compiled step computes each row by itself.

Shapes: R rows, V vocabulary, t steps of a turn.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..decoding import few_threads
from ..decoding.sampling import choose, loop_for
from ..errors import SeqwiseError
from ..models.contract import Resumes, evaluating
from ..models.engine import MAX_ROWS, NO_LIMIT
from ..models.texts import Choice, Texts, join_texts
from .prompts import Prompts
from .rows import Rows

FEW_STEPS = 8  # of a turn while others wait to enter
READ_AT_ONCE = 256  # tokens of prompts that are read before those that write go on
IDLE = 0.5  # seconds between looks at whether to stop
LATE = "the answer took longer than a request may; ask for fewer tokens."


class FullError(SeqwiseError):
    """More requests wait than may."""


class Written(NamedTuple):
    token: int
    log_prob: float
    alternatives: tuple[tuple[int, float], ...]
    """The most probable tokens at this place with their log p, best first; none where they were not asked for."""


@dataclass(eq=False)
class Job:
    """A text to be written."""

    prompt: Sequence[int]
    choice: Choice
    limit: int
    """Tokens at most."""
    chances: np.ndarray
    """(U,) a number between 0 and 1 for each token; empty where the most probable one is taken."""
    take: Callable[[list[Written]], bool]
    """Told what was written, as soon as it is; says whether to go on. In the batcher's thread."""
    end: Callable[[BaseException | None], None]
    """Told that it is over, once, and what went wrong if anything did."""
    num_alternatives: int = 0
    deadline: float = float("inf")
    """By time.monotonic(): when it is given up."""
    is_gone: bool = False
    """Set by who asked: nobody waits for it any more."""
    submitted: float = field(default_factory=time.monotonic)


class LateError(SeqwiseError):
    """It took longer than a request may."""


@dataclass
class Counts:
    """What a batcher has done so far."""

    tokens: int = 0
    steps: int = 0
    rows: int = 0
    """Over all steps: by `steps`, how many rows a step had."""


class Batcher:
    def __init__(
        self, model: Resumes, *, max_rows: int = MAX_ROWS, max_waiting: int = 256, prefix_bytes: int = 256 << 20
    ):
        self.model, self.max_rows, self.max_waiting = model, max_rows, max_waiting
        self.prompts, self.counts = Prompts(model, prefix_bytes), Counts()
        self._rows, self._jobs = Rows(), list[Job]()
        self._texts: Texts | None = None
        self._log_probs: Tensor = torch.empty(0)
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="batcher", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        return len(self._jobs)

    def submit(self, *jobs: Job) -> None:
        """All of them or none."""
        with self._changed:
            if self._is_stopping:
                raise FullError("this server is stopping and takes no more requests.")
            if len(self._waiting) + len(jobs) > self.max_waiting:
                raise FullError(f"{len(self._waiting)} requests wait already; try again later.")
            self._waiting.extend(jobs)
            self._changed.notify()

    def stop(self, *, seconds: float = 30.0) -> None:
        """Take no more; what was taken is finished, or told that it is given up."""
        with self._changed:
            self._is_stopping = True
            now = time.monotonic()
            for job in [*self._waiting, *self._jobs]:
                job.deadline = min(job.deadline, now + seconds)
            self._changed.notify()
        self._thread.join(seconds + 5)

    def _run(self) -> None:
        with torch.inference_mode(), evaluating(self.model):
            while True:
                with self._changed:
                    while not self._waiting and not self._jobs:
                        if self._is_stopping:
                            return
                        self._changed.wait(IDLE)
                try:
                    self._turn()
                except BaseException as error:
                    self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        """Something that should not happen did: those that were running are told, others are not held up by it."""
        gone, self._jobs = self._jobs, []
        self._rows, self._texts = Rows(), None
        for job in gone:
            job.end(error)

    def _turn(self) -> None:
        now = time.monotonic()
        self._leave([row for row, job in enumerate(self._jobs) if job.is_gone or now > job.deadline], LateError(LATE))
        self._enter()
        if self._jobs:
            with few_threads(self.model, len(self._jobs)):
                self._write()

    # -- rows that come and go -----------------------------------------------------------------------------------------

    def _enter(self) -> None:
        read = 0
        while self._waiting and len(self._jobs) < self.max_rows and read < READ_AT_ONCE:
            with self._changed:
                job = self._waiting.popleft()
            if job.is_gone or time.monotonic() > job.deadline:
                job.end(LateError(LATE))
                continue
            try:
                with few_threads(self.model, 1):
                    log_probs, state = self.prompts.read(job.prompt)
            except Exception as error:
                job.end(error)
                continue
            read += len(job.prompt)
            text = Texts.begin([job.choice], [job.limit], job.chances[None])
            self._log_probs = torch.cat([self._log_probs, log_probs]) if self._jobs else log_probs
            self._texts = join_texts([self._texts, text]) if self._texts is not None else text
            self._rows.enter(state)
            self._jobs.append(job)

    def _leave(self, gone: Sequence[int], why: BaseException | None) -> None:
        if not gone:
            return
        ended, order = [self._jobs[row] for row in gone], self._rows.leave(gone)
        self._jobs = [self._jobs[row] for row in order]
        self._log_probs = self._log_probs[torch.tensor(order, dtype=torch.long, device=self._log_probs.device)]
        assert self._texts is not None
        self._texts = self._texts.select(np.array(order)) if order else None
        for job in ended:
            job.end(why)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        texts, state, num = self._texts, self._rows.state, max(job.num_alternatives for job in self._jobs)
        assert texts is not None
        best = self._log_probs.topk(min(num, self._log_probs.shape[1]), dim=1) if num else None
        loop = loop_for(self.model, len(self._jobs))
        steps = 1 if num else FEW_STEPS if self._waiting else NO_LIMIT
        found = None if loop is None else loop.go_on(self._log_probs, state, texts, steps=steps)
        tokens, log_probs, following = found or (*choose(self._log_probs, texts), None)
        texts.add(tokens)
        self.counts.tokens += tokens.size
        self.counts.steps += tokens.shape[1]
        self.counts.rows += tokens.size
        over = texts.is_over.tolist()
        values, ids = ([], []) if best is None else (best.values.tolist(), best.indices.tolist())
        for row, (job, ours, theirs) in enumerate(zip(self._jobs, tokens.tolist(), log_probs.tolist(), strict=True)):
            others = tuple(zip(ids[row], values[row], strict=True))[: job.num_alternatives] if best is not None else ()
            written = [Written(token, log_p, others) for token, log_p in zip(ours, theirs, strict=True)]
            over[row] |= not job.take(written)
        self._rows.keep(state)
        self._log_probs = self._log_probs if following is None else following
        self._leave([row for row, is_over in enumerate(over) if is_over], None)
        if following is None and self._jobs:
            assert self._texts is not None
            last = torch.from_numpy(self._texts.last).to(self._log_probs.device)
            self._log_probs, after = self.model.step(last, self._rows.state)
            self._rows.keep(after)
