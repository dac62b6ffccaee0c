"""Progress: a bar on a terminal, plain lines in a pipe. Both read the same reports."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from ..training.report import Report
from .terminal import shown_on, write

Item = TypeVar("Item")
LINE_SECONDS = 5.0  # between plain lines


class Display(Protocol):
    def report(self, report: Report) -> None: ...
    def prepare(self, what: str, done: int, total: int) -> None: ...
    def tell(self, sentence: str) -> None: ...


@contextmanager
def display() -> Iterator[Display]:
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with bar:
            yield _Bar(bar)
    else:
        yield _Lines()


@contextmanager
def on_terminal() -> Iterator[Callable[[str, int, int], None]]:
    """What is told (what, done, of how many), and shows it on a terminal alone: for work of seconds, not of hours."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    with display() as shown:
        yield shown.prepare


def counting(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The items as they are; their number and rate on the terminal, where the items themselves go elsewhere."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield from items
        return
    began, shown = time.monotonic(), 0.0
    for number, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - shown > 0.2:
            sys.stderr.write(f"\r{number:,} {what}, {number / max(1e-9, now - began):,.0f} a second ")
            shown = now
    sys.stderr.write("\r\033[K")


class _Bar:
    def __init__(self, bar: Any):
        self.bar = bar
        self.tasks: dict[str, Any] = {}
        self.valid = ""

    def _update(self, name: str, done: int, total: int, detail: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bar.add_task(name, total=total, detail="")
        self.bar.update(self.tasks[name], completed=done, total=total, detail=detail)

    def report(self, report: Report) -> None:
        if report.valid is not None:
            self.valid = f" valid {report.valid:.3f}"
        speed = f"{report.tokens_per_second:,.0f} tokens/s"
        detail = f"loss {report.loss:.3f}{_terms(report)}{self.valid} {speed} rate {report.learning_rate:.1e}"
        self._update("training", report.step, report.steps, detail)
        if report.event:
            self.tell(report.event)

    def prepare(self, what: str, done: int, total: int) -> None:
        self._update(what, done, total, "")

    def tell(self, sentence: str) -> None:
        self.bar.console.print(shown_on(self.bar.console.file, sentence), markup=False, highlight=False)


class _Lines:
    def __init__(self) -> None:
        self.last, self.preparing = 0.0, ""

    def report(self, report: Report) -> None:
        is_due = time.monotonic() - self.last >= LINE_SECONDS
        if not (is_due or report.step == report.steps or report.valid is not None or report.event):
            return
        self.last = time.monotonic()
        left = (report.steps - report.step) * report.seconds / max(1, report.step)
        parts = [f"step {report.step}/{report.steps}", f"loss {report.loss:.4f}{_terms(report)}"]
        parts += [f"valid {report.valid:.4f}"] if report.valid is not None else []
        parts += [f"{report.tokens_per_second:,.0f} tokens/s", f"{left:.0f} s left"]
        self.tell("  ".join(parts))
        if report.event:
            self.tell(report.event)

    def prepare(self, what: str, done: int, total: int) -> None:
        """Now and then; what was begun is also told when it is done."""
        is_end = done >= total and self.preparing == what
        if is_end or time.monotonic() - self.last >= LINE_SECONDS:
            self.last, self.preparing = time.monotonic(), "" if done >= total else what
            self.tell(f"{what}: {done:,} of {total:,}")

    def tell(self, sentence: str) -> None:
        write(sys.stderr, sentence + "\n")


@contextmanager
def bytes_bar(name: str, total: int) -> Iterator[Callable[[int], None]]:
    with display() as shown:
        done = 0

        def advance(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            shown.prepare(f"fetching {name}", done, total)

        yield advance


def _terms(report: Report) -> str:
    """What the loss is made of, where it has several terms."""
    return f" ({', '.join(f'{name} {value:.3f}' for name, value in report.terms.items())})" if report.terms else ""
