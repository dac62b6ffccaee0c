"""Runs a comparison: prepare, timing, the ladder, the finals, the scoring; after each trial the results are written
anew."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ..config import parse_json
from ..data.schema import ASKED_FOR
from ..errors import CheckpointError, ConfigError, DataError
from ..evaluation.segments import Metric, Segments
from ..pages.quantities import duration
from ..wording import counted
from .aggregate import write_results
from .entrants import BY_GRADIENTS
from .fork_server import STOPPED, Ended, ForkServer, Job, check_can_fork
from .plan import (
    MAX_TIMING,
    NOT_TIMED,
    SCORING_SHARE,
    Settings,
    Standing,
    Timing,
    Trial,
    amount_to_score,
    amount_to_validate,
    finals,
    ladder,
    minutes_for_all,
    next_round,
    second_round,
    seconds_left,
    shared_anew,
    timed_name,
)
from .results import Comparison, Stage
from .words import words_for
from .workspace import Workspace

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
    folder = Workspace(path)
    if settings is not None:
        folder.create(settings)
    chosen = folder.settings
    with ForkServer(path) as server:
        runner = _Runner(folder, chosen, server, watch or _Silent(), wants_stop)
        try:
            runner.prepare()
            runner.plan()
        except (ConfigError, DataError):
            if settings is not None:  # it was made just now, and there is nothing in it
                shutil.rmtree(path)
            raise
        return runner.run()


class _Runner:
    def __init__(
        self, folder: Workspace, settings: Settings, server: ForkServer, watch: Watch, wants_stop: Callable[[], bool]
    ):
        self.folder, self.settings, self.server, self.watch = folder, settings, server, watch
        self.wants_stop = wants_stop
        self.is_stopped = False
        self.began = time.perf_counter()
        self.written = 0.0
        self.clock_before = folder.clock

    def run(self) -> Comparison:
        """Train and score what was planned."""
        if self.settings.is_by_labels:
            self._train_by_labels()
        else:
            self._train_ladder_and_finals()
        if not self.is_stopped:
            trained = [trial for trial in self.folder.trials if self.folder.found(trial.name, "trained")]
            self._plan_scoring(trained)
            self._work("scoring", "score", trained, done="scored")
        self.watch.tell("writing the report")
        return self._write(is_complete=not self.is_stopped)

    def _train_ladder_and_finals(self) -> None:
        self._train("ladder")
        if not self.is_stopped and self._plan_second_round():
            self._train("ladder")
        if not self.is_stopped and not self.folder.read("plan.json")["why"]:
            self._plan_finals()
        self._train("final")

    def _train_by_labels(self) -> None:
        """From few labels to many; before each round the time that is left is shared anew. Who failed is tried again
        when the comparison is gone on with, and not before."""
        tried: set[str] = set()
        while not self.is_stopped and (waiting := self._plan_round(tried)):
            trials = next_round(self.settings, waiting)
            tried.update(trial.name for trial in trials)
            self._work(self._labels_in_words(trials[0].labels), "train", trials, done="trained")

    def _plan_round(self, tried: Collection[str]) -> list[Trial]:
        """Those that are not trained yet and still have time for it; what was begun before keeps its share."""
        plan = self.folder.read("plan.json")
        begun = [trial for trial in self.folder.trials if self._is_begun(trial) or trial.name in tried]
        made = shared_anew(self.settings, self._clock(), self._timings(), begun, plan["valid_amount"])
        not_timed = {name: why for name, why in plan["left_out"].items() if why == NOT_TIMED}
        for entry, reason in made.left_out.items():
            if entry not in plan["left_out"]:
                self.watch.tell(f"{entry} is left out: {reason}")
        self.folder.save_plan([*begun, *made.trials], left_out={**made.left_out, **not_timed})
        waiting = [trial for trial in begun if trial.name not in tried and not self.folder.found(trial.name, "trained")]
        return [*waiting, *made.trials]

    def _plan_in_words(self, trials: Sequence[Trial]) -> str:
        """What is trained with how many labels, fewest first."""
        by_labels: dict[int | None, list[str]] = {}
        for trial in sorted(trials, key=lambda trial: trial.labels or math.inf):
            by_labels.setdefault(trial.labels, []).append(trial.entrant)
        rounds = "; ".join(
            f"{self._labels_in_words(labels)}: {', '.join(dict.fromkeys(names))}" for labels, names in by_labels.items()
        )
        return f"{counted(len(trials), 'trial')} will be trained. {rounds}"

    def _labels_in_words(self, labels: int | None) -> str:
        labelled = words_for(self.folder.read("prepared.json")["kind"]).labelled
        return f"all {labelled}s" if labels is None else counted(labels, labelled)

    def _is_begun(self, trial: Trial) -> bool:
        return (self.folder.run(trial.name) / "config.toml").exists()

    def _timings(self) -> dict[str, Timing]:
        """By the entry that was timed; of one that failed then, nothing is known."""
        names = {timed_name(self.settings, contender) for contender in self.settings.contenders}
        return {
            name: self.folder.timing(name)
            for name in names
            if self.folder.found(name, "timed") or self.folder.found(name, "failed")
        }

    def plan(self) -> None:
        """Time an update and a scoring of everyone, then decide who is trained, for how long, and what ranks them."""
        if self.is_stopped or "valid_amount" in (self.folder.read_if_there("plan.json") or {}):
            return
        if any(self.folder.found(trial.name, "trained") for trial in self.folder.trials):
            raise CheckpointError(
                f"{self.folder.path} was begun by an older seqwise, which planned otherwise. Start the comparison "
                "again, with another --out."
            )
        if not self.folder.trials:
            self.folder.save_plan(ladder(self.settings, self._clock()).trials)
        timed = [trial for trial in self.folder.trials if trial.name == trial.timed_as]  # one seed tells for all
        networks = [trial for trial in timed if self.settings.entrant(trial.entrant).learns_by == BY_GRADIENTS]
        threads = self.settings.threads
        if threads > 1 and networks:  # does other work on this machine make them wait for each other?
            self._work("timing", "time", networks[:1], done="timed")
            threads = min(threads, self.folder.timing(networks[0].entry).threads or threads)
            if threads < self.settings.threads:
                self.watch.tell("other work on this machine makes several threads slower than one: each trial has one")
        self.folder.save_plan(self.folder.trials, threads=threads)
        self._work("timing", "time", timed, done="timed", until=MAX_TIMING * 60 * self.settings.minutes)
        if self.is_stopped:
            return
        timings = self._timings()
        made = ladder(self.settings, self._clock(), timings)
        amount = amount_to_validate(made.trials, timings)
        self.server.start(Job("baseline", str(amount)))
        (ended,) = self._wait()
        if self.is_stopped:
            return
        if ended.code:
            raise DataError(ended.reason)
        enough = minutes_for_all(self.settings, timings, self._clock())
        self.folder.save_plan(made.trials, left_out=made.left_out, valid_amount=amount, minutes_for_all=enough)
        if self.settings.is_by_labels:
            self.watch.tell(self._plan_in_words(made.trials))

    def _plan_second_round(self) -> bool:
        """Whether somebody who was left out can be trained, because the others needed less than was thought."""
        plan = self.folder.read("plan.json")
        if plan["why"] or not plan["left_out"]:
            return False
        timings = {name: self.folder.timing(name) for name in plan["left_out"] if self.folder.found(name, "timed")}
        made = second_round(self.settings, self._clock(), timings, plan["left_out"], plan["valid_amount"])
        self.folder.save_plan([*self.folder.trials, *made.trials], left_out=made.left_out)
        for name, reason in made.left_out.items():
            self.watch.tell(f"{name} is left out: {reason}")
        return bool(made.trials)

    def _plan_scoring(self, trained: Sequence[Trial]) -> None:
        """As much is scored and measured as the time that is left allows, by what validation took each of them."""
        waiting = [trial for trial in trained if not self.folder.found(trial.name, "scored")]
        plan = self.folder.read("plan.json")
        if not waiting or ("scored_amount" in plan and len(waiting) < len(trained)):
            return  # who was scored before was scored on so much
        found = [self.folder.found(trial.name, "trained") or {} for trial in waiting]
        starts = sum(self.folder.timing(trial.timed_as).start for trial in waiting) / self.settings.workers
        left = max(0.0, 60 * self.settings.minutes - self._clock() - starts)
        amount = amount_to_score(left, [one["scoring_seconds_per_unit"] for one in found], self.settings.workers)
        measuring = (1 - SCORING_SHARE) * left * self.settings.workers / len(waiting)
        self.folder.save_plan(self.folder.trials, plan["why"], scored_amount=amount, measuring_seconds=measuring)

    def _train(self, stage: Stage) -> None:
        trials = [trial for trial in self.folder.trials if trial.stage == stage]
        if trials and not self.is_stopped:
            self._work(stage, "train", trials, done="trained")

    def prepare(self) -> None:
        """Read and encode the data; where that was done before, see that it is the same."""
        self.watch.tell("reading the data")
        is_begun = (self.folder.path / "prepared.json").exists()
        self.server.start(Job("check" if is_begun else "prepare", "data"))
        (ended,) = self._wait()
        if self.is_stopped:
            return
        if ended.code:
            raise DataError(ended.reason)
        prepared = self.folder.read("prepared.json")
        data, kinds = prepared["data"], prepared.get("kinds", [prepared["kind"]])
        for sentence in (data["description"], *data.get("notes", ())):
            self.watch.tell(sentence)
        self.settings = replace(self.settings, label_counts=prepared.get("label_counts", self.settings.label_counts))
        self._leave_out(kinds, prepared.get("unfit", ()))

    def _leave_out(self, kinds: Sequence[str], unfit: Collection[str]) -> None:
        """Who does the task, but not what this very data asks for, does not take part. `unfit`: who could only learn
        from text, which this data is not."""
        models = self.settings.models
        asked = " and ".join(ASKED_FOR[kind] for kind in kinds)
        why_not = {
            name: f"it does not answer {asked}" for name in models if not self.settings.entrant(name).does(kinds)
        }
        why_not |= {name: "it labels texts only" for name in models if name in unfit}
        doing = [name for name in models if name not in why_not]
        if not doing:
            raise ConfigError(f"none of {', '.join(models)} answers {asked}, which this data asks for.")
        for name, reason in why_not.items():
            self.watch.tell(f"{name} takes no part: {reason}")
        self.settings = replace(self.settings, models=doing)

    def _work(self, what: str, kind: str, trials: Sequence[Trial], *, done: str, until: float = math.inf) -> None:
        """A job for each trial that has not had it yet, as many at once as there are workers; none is begun later than
        `until` seconds on the clock."""
        todo = [trial for trial in trials if not self.folder.found(trial.name, done)]
        for trial in todo:  # what failed before has another try
            self.folder.forget(trial.name, "failed")
        waiting = list(todo)
        self.watch.begin(what, [trial.name for trial in trials])
        while (waiting or self.server.running) and not self.is_stopped:
            if self._clock() > until:
                waiting = []
            while waiting and len(self.server.running) < self.settings.workers:
                self.server.start(Job(kind, waiting.pop(0).name))
            for ended in self._wait() if self.server.running else []:
                self._take_in(ended, done)

    def _wait(self) -> list[Ended]:
        """Until a job ends; asked to stop, until all have."""
        found: list[Ended] = []
        while True:
            if self.wants_stop() and not self.is_stopped:
                self.is_stopped = True
                self.server.stop_all()
            found += self.server.ended(POLL_SECONDS)
            for job in self.server.running:
                if job.kind == "train" and (line := _last_line(self.folder.run(job.name) / "log.jsonl")):
                    self.watch.progress(job.name, line)
            if found and not (self.is_stopped and self.server.running):
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
        return write_results(self.folder, {job.name for job in self.server.running})


def _told(found: dict[str, Any]) -> str:
    if "update" in found:
        return f"an update takes {duration(found['update'])}" if found["update"] else "timed"
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
