"""Questions that are answered all at once: those that come while others are being answered are joined.

    joined = Joined(lambda texts, how: run.answer_texts(texts), worker)
    answers = await joined.ask(["a fine film"])

One thread for each run, so a model is never used twice at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from .batching import FullError

MAX_JOINED = 256  # questions that are answered side by side


class Joined:
    def __init__(
        self, answer: Callable[[list[Any], Any], Sequence[Any]], worker: ThreadPoolExecutor, max_waiting: int = 4096
    ):
        self._answer, self._worker, self._max_waiting = answer, worker, max_waiting
        self._waiting: list[tuple[list[Any], Any, asyncio.Future[list[Any]]]] = []
        self._is_running = False

    async def ask(self, questions: Sequence[Any], how: Any = None) -> list[Any]:
        """The answer to each; those that are asked alike, by `how`, are answered side by side."""
        if not questions:
            return []
        if sum(len(others) for others, *_ in self._waiting) + len(questions) > self._max_waiting:
            raise FullError("too many questions wait already; try again later.")
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((list(questions), how, future))
        if not self._is_running:
            self._is_running = True
            asyncio.get_running_loop().create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._answer_some()
        finally:
            self._is_running = False

    async def _answer_some(self) -> None:
        """Those that came first, as many as go side by side; where one of several goes wrong, each is asked alone."""
        asked, how, future = self._waiting.pop(0)
        taken, num = [(asked, future)], len(asked)
        while self._waiting and self._waiting[0][1] == how and num + len(self._waiting[0][0]) <= MAX_JOINED:
            asked, _, future = self._waiting.pop(0)
            taken, num = [*taken, (asked, future)], num + len(asked)
        taken = [(asked, future) for asked, future in taken if not future.cancelled()]
        try:
            found = await self._in_worker([question for asked, _ in taken for question in asked], how)
        except Exception as error:
            if len(taken) == 1:
                _settle(taken[0][1], error=error)
                return
            for asked, future in taken:
                try:
                    _settle(future, answers=await self._in_worker(asked, how))
                except Exception as own:
                    _settle(future, error=own)
            return
        place = 0
        for asked, future in taken:
            _settle(future, answers=found[place : place + len(asked)])
            place += len(asked)

    async def _in_worker(self, questions: list[Any], how: Any) -> list[Any]:
        def work() -> list[Any]:
            with torch.inference_mode():
                return list(self._answer(questions, how))

        return await asyncio.get_running_loop().run_in_executor(self._worker, work) if questions else []


def _settle(
    future: asyncio.Future[list[Any]], *, answers: list[Any] | None = None, error: BaseException | None = None
) -> None:
    if future.done():  # who asked has gone
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answers or [])
