"""Runs a comparison: prepare, the ladder, the finals, the scoring; after each trial the results are written anew."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..config import parse_json
from ..errors import ConfigError, DataError, SeqwiseError, did_you_mean
from ..evaluation.segments import Metric, Segments
from ..tasks import task_named, task_of
from ..text import TOKENIZERS
from ..training.given import absolute
from .assemble import write_results
from .folder import Folder
from .nursery import STOPPED, Ended, Job, Nursery, check_can_fork
from .plan import (
    Limits,
    Settings,
    Standing,
    Trial,
    choose_models,
    choose_seeds,
    finals,
    ladder,
    seconds_left,
)
from .results import Comparison, Stage

POLL_SECONDS = 0.3
WRITE_SECONDS = 5.0  # between two versions of the results


class Watch(Protocol):
    """Who wants to know how it goes."""

    def tell(self, sentence: str) -> None: ...
    def begin(self, what: str, trials: Sequence[str]) -> None:
        """A stage, and the trials in it."""
        ...

    def progress(self, trial: str, line: dict[str, Any]) -> None:
        """The last line of a trial's log."""
        ...

    def end(self, trial: str, sentence: str) -> None: ...


def choose_settings(
    source: str | Path | Sequence[str | Path],
    *,
    minutes: float = 10.0,
    models: Sequence[str] | None = None,
    tokenizers: Sequence[str] | None = None,
    task: str | None = None,
    columns: Sequence[str] = (),
    valid: str | None = None,
    test: str | None = None,
    split: str | None = None,
    seeds: int | None = None,
    seed: int = 0,
    workers: int = 1,
    max_parameters: int | None = None,
    max_latency_ms: float | None = None,
    max_megabytes: float | None = None,
) -> Settings:
    """What was asked for, checked, and the rest chosen."""
    for name, value, least in (
        ("--minutes", minutes, 0.0),
        ("--max-latency-ms", max_latency_ms, 0.0),
        ("--max-megabytes", max_megabytes, 0.0),
        ("--seeds", seeds, 1),
        ("--workers", workers, 1),
        ("--max-parameters", max_parameters, 1),
        ("--seed", seed, 0),
    ):
        is_open = isinstance(least, float)  # must be above, not at it
        if value is not None and not (math.isfinite(value) and (value > least if is_open else value >= least)):
            raise ConfigError(f"{name} {value:g} should be {'above' if is_open else 'at least'} {least:g}.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers > cores:
        raise ConfigError(f"--workers {workers} is more than this machine's {cores} cores; ask for fewer.")
    sources = [absolute(s) for s in ([source] if isinstance(source, str | Path) else source)]
    chosen_task = task_named(task or task_of(sources)).name
    if tokenizers and chosen_task != "text":
        raise ConfigError(f"--tokenizers goes with text, and this is taken for {chosen_task}; drop it.")
    for tokenizer in tokenizers or ():
        if tokenizer not in TOKENIZERS:
            raise ConfigError(f'unknown tokenizer "{tokenizer}". {did_you_mean(tokenizer, TOKENIZERS)}')
    return Settings(
        source=sources,
        minutes=minutes,
        models=choose_models(models, chosen_task),
        tokenizers=list(dict.fromkeys(tokenizers or ["auto"])),
        task=chosen_task,
        columns=list(columns),
        valid=valid and absolute(valid),
        test=test and absolute(test),
        split=split,
        seeds=seeds or choose_seeds(minutes),
        seed=seed,
        workers=workers,
        threads=max(1, cores // workers),
        limits=Limits(max_parameters, max_latency_ms, max_megabytes),
    )


class _Silent:
    def tell(self, sentence: str) -> None: ...
    def begin(self, what: str, trials: Sequence[str]) -> None: ...
    def progress(self, trial: str, line: dict[str, Any]) -> None: ...
    def end(self, trial: str, sentence: str) -> None: ...


def run_comparison(
    path: Path,
    settings: Settings | None = None,
    *,
    watch: Watch | None = None,
    wants_stop: Callable[[], bool] = lambda: False,
) -> Comparison:
    """Begin a comparison in a folder, or go on with the one that is there (no settings). Stopped, it is incomplete."""
    check_can_fork()
    folder = Folder(path)
    if settings is not None:
        folder.create(settings)
    chosen = folder.settings
    with Nursery(path) as nursery:
        runner = _Runner(folder, chosen, nursery, watch or _Silent(), wants_stop)
        try:
            runner.prepare()
        except SeqwiseError:
            if settings is not None:  # it was made just now, and there is nothing in it
                shutil.rmtree(path)
            raise
        return runner.run()


class _Runner:
    def __init__(
        self, folder: Folder, settings: Settings, nursery: Nursery, watch: Watch, wants_stop: Callable[[], bool]
    ):
        self.folder, self.settings, self.nursery, self.watch = folder, settings, nursery, watch
        self.wants_stop = wants_stop
        self.is_stopped = False
        self.began = time.perf_counter()
        self.written = 0.0
        self.clock_before = folder.clock

    def run(self) -> Comparison:
        if not self.is_stopped and not self.folder.trials:
            self.folder.save_plan(ladder(self.settings, self._clock()), "")
        self._train("ladder")
        if not self.is_stopped and not self.folder.read("plan.json")["why"]:
            self._plan_finals()
        self._train("final")
        if not self.is_stopped:
            trained = [trial for trial in self.folder.trials if self.folder.found(trial.name, "trained")]
            self._work("scoring", "score", trained, done="scored")
        self.watch.tell("writing the report")
        return self._write(is_complete=not self.is_stopped)

    def _train(self, stage: Stage) -> None:
        trials = [trial for trial in self.folder.trials if trial.stage == stage]
        if trials and not self.is_stopped:
            self._work(stage, "train", trials, done="trained")

    def prepare(self) -> None:
        """Read and encode the data; where that was done before, see that it is the same."""
        self.watch.tell("reading the data")
        is_begun = (self.folder.path / "prepared.json").exists()
        self.nursery.start(Job("check" if is_begun else "prepare", "data"))
        (ended,) = self._wait()
        if self.is_stopped:
            return
        if ended.code:
            raise DataError(ended.reason)
        self.watch.tell(self.folder.read("prepared.json")["data"]["description"])

    def _work(self, what: str, kind: str, trials: Sequence[Trial], *, done: str) -> None:
        """A job for each trial that has not had it yet, as many at once as there are workers."""
        todo = [trial for trial in trials if not self.folder.found(trial.name, done)]
        for trial in todo:  # what failed before has another try
            self.folder.forget(trial.name, "failed")
        waiting = list(todo)
        self.watch.begin(what, [trial.name for trial in trials])
        while (waiting or self.nursery.running) and not self.is_stopped:
            while waiting and len(self.nursery.running) < self.settings.workers:
                self.nursery.start(Job(kind, waiting.pop(0).name))
            for ended in self._wait():
                self._take_in(ended, done)

    def _wait(self) -> list[Ended]:
        """Until a job ends; asked to stop, until all have."""
        found: list[Ended] = []
        while True:
            if self.wants_stop() and not self.is_stopped:
                self.is_stopped = True
                self.nursery.stop_all()
            found += self.nursery.ended(POLL_SECONDS)
            for job in self.nursery.running:
                if job.kind == "train" and (line := _last_line(self.folder.run(job.name) / "log.jsonl")):
                    self.watch.progress(job.name, line)
            if found and not (self.is_stopped and self.nursery.running):
                return found

    def _take_in(self, ended: Ended, done: str) -> None:
        name = ended.job.name
        found = self.folder.found(name, done)
        if ended.code == STOPPED or (ended.code and self.is_stopped):
            self.watch.end(name, "stopped; everything is saved")
        elif ended.code or found is None:
            reason = ended.reason or "it ended without a result"
            self.folder.save_found(name, "failed", {"reason": reason})
            self.watch.end(name, f"failed: {reason}")
        else:
            if done == "trained":
                self.folder.save_found(name, done, {**found, "peak_bytes": ended.peak_bytes})
            self.watch.end(name, _told(found))
        if time.monotonic() - self.written > WRITE_SECONDS:
            self._write(is_complete=False)

    def _plan_finals(self) -> None:
        trials, left = self.folder.trials, seconds_left(self.settings, self._clock())
        chosen, why = finals(self.settings, self._standings(), share=trials[0].minutes, seconds=left)
        self.folder.save_plan([*trials, *chosen], why)
        self.watch.tell(why)

    def _clock(self) -> float:
        """Seconds that this comparison has been at work."""
        return float(self.clock_before + time.perf_counter() - self.began)

    def _standings(self) -> list[Standing]:
        by_entry: dict[str, list[tuple[Trial, dict[str, Any]]]] = {}
        for trial in self.folder.trials:
            if found := self.folder.found(trial.name, "trained"):
                by_entry.setdefault(trial.entry, []).append((trial, found))
        return [
            Standing(
                name,
                seeds[0][0].entrant,
                seeds[0][0].tokenizer,
                sum(found["valid"] for _, found in seeds) / len(seeds),
                max(found["best_at"] for _, found in seeds),
            )
            for name, seeds in by_entry.items()
        ]

    def _write(self, *, is_complete: bool) -> Comparison:
        self.written = time.monotonic()
        self.folder.save_clock(self._clock(), is_complete=is_complete)
        return write_results(self.folder, {job.name for job in self.nursery.running})


def _told(found: dict[str, Any]) -> str:
    metric = Metric(**found["metric"])
    if "valid" in found:
        return f"{metric.shown(found['valid']):.4f} on validation after {found['seconds']:.0f} s"
    return f"{metric.shown(Segments.from_dict(found['segments']).value):.4f} {metric.name}"


def _last_line(path: Path) -> dict[str, Any] | None:
    """The last whole line of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8192))
            lines = file.read().split(b"\n")[:-1]
            return parse_json(lines[-1]) if lines else None
    except (OSError, ValueError):
        return None
