"""Runs that are served, by name: loaded when they are first asked for, and the longest unused ones unloaded when memory
is short.

    hosting = Hosting({"poems": Path("runs/poems-lstm")}, Limits())
    async with hosting.used("poems") as hosted:
        hosted.batcher.submit(...)
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.schema import NEXT_TOKEN
from ..errors import ConfigError, did_you_mean
from ..models import num_parameters
from ..models.engine import MAX_ROWS
from ..trained_run import TrainedRun
from .batching import Batcher
from .joined import Joined

BYTES_OF_A_WEIGHT = 4


@dataclass(frozen=True)
class Limits:
    """What a server takes on."""

    max_rows: int = MAX_ROWS
    """Texts of one run that are written side by side."""
    max_waiting: int = 256
    """Requests of one run that may wait."""
    max_tokens: int = 4096
    """That a request may ask for."""
    max_body: int = 4 << 20
    """Bytes of a request."""
    seconds: float = 120.0
    """That a request may take."""
    receive_seconds: float = 20.0
    """That a request may take to arrive."""
    max_memory: float = math.inf
    """Bytes of weights of all runs that are loaded."""
    prefix_bytes: int = 256 << 20
    """Of states after the beginnings of prompts, for each run."""


class Hosted:
    """A run, and what answers for it once it is loaded."""

    def __init__(self, name: str, path: Path, limits: Limits, precision: str = "float32"):
        self.name, self.limits, self.precision = name, limits, precision
        self.run = TrainedRun(path, precision=precision)  # opened: config and schema are read, weights are not
        self.path, self.last_used, self.users = path, 0.0, 0
        self.created = int((path / "config.toml").stat().st_mtime)
        self._batcher: Batcher | None = None
        self._loading = asyncio.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"answers-{name}")
        self.joined: dict[str, Joined] = {}

    @property
    def continues(self) -> bool:
        """Whether it goes on from a prompt of text."""
        return self.run.run.schema.kind == NEXT_TOKEN

    @property
    def is_loaded(self) -> bool:
        return "model" in vars(self.run)

    @property
    def num_bytes(self) -> int:
        return BYTES_OF_A_WEIGHT * num_parameters(self.run.model) if self.is_loaded else 0

    @property
    def batcher(self) -> Batcher:
        check_continues(self)
        if self._batcher is None:
            self._batcher = Batcher(
                self.run.model,
                max_rows=self.limits.max_rows,
                max_waiting=self.limits.max_waiting,
                prefix_bytes=self.limits.prefix_bytes,
            )
        return self._batcher

    @property
    def running(self) -> Batcher | None:
        """Where anything was written yet."""
        return self._batcher

    async def load(self) -> None:
        async with self._loading:
            if not self.is_loaded:
                await self.in_worker(lambda: self.run.model)

    async def in_worker(self, work: Any) -> Any:
        """In the one thread in which this run answers."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def join(self, what: str, answer: Any) -> Joined:
        """Questions of one sort are joined."""
        return self.joined.setdefault(what, Joined(answer, self._worker))

    def unload(self) -> None:
        self.stop(seconds=0.0)
        vars(self.run).pop("model", None)

    def stop(self, *, seconds: float) -> None:
        if self._batcher is not None:
            self._batcher.stop(seconds=seconds)
            self._batcher = None


class Hosting:
    def __init__(self, paths: Mapping[str, Path], limits: Limits, *, precision: str = "float32"):
        self.limits = limits
        self.runs = {name: Hosted(name, path, limits, precision) for name, path in paths.items()}
        self._loading = asyncio.Lock()

    def find(self, name: str | None) -> Hosted:
        """By name; the only one where there is but one and none is named."""
        if name is None and len(self.runs) == 1:
            return next(iter(self.runs.values()))
        if name is None:
            raise ConfigError(f'several runs are served; name one as "model": {", ".join(self.runs)}.')
        if name not in self.runs:
            raise UnknownRunError(f'no run is served as "{name}". {did_you_mean(name, self.runs)}')
        return self.runs[name]

    @asynccontextmanager
    async def used(self, name: str | None) -> AsyncIterator[Hosted]:
        """A run that is loaded, and stays so as long as it is used."""
        hosted = self.find(name)
        hosted.users += 1
        try:
            async with self._loading:
                if not hosted.is_loaded:
                    self._make_room()
                    await hosted.load()
            hosted.last_used = time.monotonic()
            yield hosted
        finally:
            hosted.users -= 1

    def _make_room(self) -> None:
        """Runs that nobody uses leave, the longest unused first, until what is left is within bounds."""
        idle = sorted((run for run in self.runs.values() if run.is_loaded and not run.users), key=lambda r: r.last_used)
        while idle and sum(run.num_bytes for run in self.runs.values()) > self.limits.max_memory:
            idle.pop(0).unload()

    def stop(self, *, seconds: float) -> None:
        for hosted in self.runs.values():
            hosted.stop(seconds=seconds)


class UnknownRunError(ConfigError):
    """No run has this name."""


def check_continues(hosted: Hosted) -> None:
    """Refuse a run that has other answers to give."""
    if not hosted.continues:
        config = hosted.run.run.config
        raise ConfigError(
            f"{hosted.name} is a {config.model_name} model of {config.task}: it does not continue text; ask /predict."
        )
