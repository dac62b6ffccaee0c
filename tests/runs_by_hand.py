"""What several test files need to stop runs and to compare what they left."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqwise.data.schema import Schema
from seqwise.goals.goal import OnProgress, Tell
from seqwise.training import preparing
from seqwise.training.report import CLOCK_FIELDS
from seqwise.training.request import Request
from seqwise.training.session import Session


def stop_after(number: int) -> Callable[[], bool]:
    """wants_stop, which is asked once after each step and once at the end."""
    asked: list[None] = []

    def wants_stop() -> bool:
        asked.append(None)
        return len(asked) >= number

    return wants_stop


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """What never ends, or waits for ever, fails instead of hanging."""

    def give_up(signum: int, frame: Any) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def log_without_clock(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in CLOCK_FIELDS} for line in lines]


def prepare(
    source: str | Path | Sequence[str | Path],
    *,
    schema: Schema | None = None,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
    **asked: Any,
) -> Session:
    """A session from what is asked, in one call."""
    return preparing.prepare(Request.of(source, **asked), schema=schema, tell=tell, on_progress=on_progress)
