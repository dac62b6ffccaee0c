"""What is asked of a comparison: built once by the command line or by Python, checked, and made its settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.pipes import owned
from ..data.schema import BOUNDS, STARTS, UNRANKED
from ..errors import CheckpointError, ConfigError, did_you_mean
from ..machine import available_cores, wanted_threads
from ..models import MODELS
from ..run import Run
from ..tasks import TASKS, Task, task_for, task_named
from ..text import TOKENIZERS
from ..training.overrides import absolute
from .entrants import Start, choose_models, kinds_from
from .plan import Limits, Settings, choose_seeds

Source = str | Path | Sequence[str | Path]
"""Files, a folder, or the name of a data set."""


@dataclass(frozen=True)
class ComparisonRequest:
    source: Source
    minutes: float = 10.0
    """Of wall clock, for everything."""
    models: Sequence[str] | None = None
    """Families, or forms of them, that take part; all that do the task where None."""
    tokenizers: Sequence[str] | None = None
    """Each takes part with each family of text; chosen by the data where None."""
    task: str | None = None
    columns: Sequence[str] = ()
    season: int | None = None
    valid: str | Path | None = None
    test: str | Path | None = None
    split: str | None = None
    start_from: str | Path | None = None
    """A run: its family takes part once more, with the body of the run kept."""
    label_counts: Sequence[int | None] = (None,)
    """Labels and tags: rows of the training part to learn from, each number of them in turn; None for all."""
    seeds: int | None = None
    """Runs of each family; by the budget where None."""
    seed: int = 0
    """Random seed of the first run."""
    workers: int = 1
    """Trials at once."""
    max_parameters: int | None = None
    max_latency_ms: float | None = None
    max_megabytes: float | None = None

    def __post_init__(self) -> None:
        at_least = {"seeds": 1, "workers": 1, "max_parameters": 1, "seed": 0, "season": 1}
        for name in ("minutes", "max_latency_ms", "max_megabytes"):
            self._check(name, lambda value: value > 0, "above 0")
        for name, lowest in at_least.items():
            self._check(name, lambda value, lowest=lowest: value >= lowest, f"at least {lowest}")
        if not self.label_counts:
            raise ConfigError("--labels is empty. Give it numbers, as in --labels 100,500,all, or drop it.")
        for labels in self.label_counts:
            if labels is not None and labels < 1:
                raise ConfigError(f"--labels {labels} should be at least 1, or all.")
        if self.workers > (cores := available_cores()):
            raise ConfigError(
                f"--workers {self.workers} is more than the {cores} cores that may be used here; ask for fewer."
            )

    def _check(self, name: str, is_right: Any, expected: str) -> None:
        value = getattr(self, name)
        if value is not None and not (math.isfinite(value) and is_right(value)):
            raise ConfigError(f"--{name.replace('_', '-')} {value:g} should be {expected}.")

    def settings(self) -> Settings:
        """With files by their full path, pipes read, and the rest chosen."""
        source = [self.source] if isinstance(self.source, str | Path) else self.source
        sources = [absolute(found) for found in owned(source, self.task)]
        parts = (self.valid, self.test)
        valid, test = (None if part is None else absolute(owned([part], self.task)[0]) for part in parts)
        task, cores = task_named(task_for(self.task, sources, self.columns)), available_cores()
        _check_ranked(task)
        counts = sorted(set(self.label_counts), key=lambda labels: math.inf if labels is None else labels)
        asked = {"tokenizers": bool(self.tokenizers), "season": self.season is not None, "labels": counts != [None]}
        _check_options(task, asked)
        for tokenizer in self.tokenizers or ():
            if tokenizer not in TOKENIZERS:
                raise ConfigError(f'unknown tokenizer "{tokenizer}". {did_you_mean(tokenizer, TOKENIZERS)}')
        start = None if self.start_from is None else _start(Path(self.start_from), task.name, self.models)
        return Settings(
            source=sources,
            minutes=self.minutes,
            models=choose_models(self.models, task.name, start),
            tokenizers=list(dict.fromkeys(self.tokenizers or ["auto"])),
            task=task.name,
            columns=list(self.columns),
            season=self.season,
            valid=valid,
            test=test,
            split=self.split,
            seeds=self.seeds or choose_seeds(self.minutes),
            seed=self.seed,
            workers=self.workers,
            threads=min(wanted_threads() or cores, max(1, cores // self.workers)),
            limits=Limits(self.max_parameters, self.max_latency_ms, self.max_megabytes),
            start=start,
            label_counts=counts,
        )


def _check_ranked(task: Task) -> None:
    """Refuse what is learned as a start for something else, and what is scored by a bound."""
    if set(task.kinds) <= set(STARTS):
        ranked = ", ".join(known.name for known in _ranked())
        raise ConfigError(
            f"--task {task.name} learns a start for other models, which only they can judge: train it, go on from it "
            f"with train --from, and evaluate what comes out. Tasks that are compared: {ranked}."
        )
    if set(task.kinds) <= set(BOUNDS):
        raise ConfigError(
            f"--task {task.name} is scored by a bound, which is no likelihood and ranks nothing: train runs with the "
            "same minutes, and set their bounds side by side with seqwise evaluate RUN RUN."
        )


def _ranked() -> list[Task]:
    """Tasks whose models are set beside each other."""
    return [known for known in TASKS.values() if not set(known.kinds) <= set(UNRANKED)]


def _check_options(task: Task, asked: dict[str, bool]) -> None:
    """Refuse an option that is for another task."""
    for name in (name for name, is_asked in asked.items() if is_asked and name not in task.options):
        holding = " or ".join(known.name for known in _ranked() if name in known.options)
        raise ConfigError(f"--{name} goes with {holding}, and this is taken for {task.name}; drop it.")


def _start(path: Path, task: str, models: Sequence[str] | None) -> Start:
    """The run to start from; refused where nobody who takes part could."""
    run = Run.open(path)
    found = Start(absolute(path), run.config.model_name)
    able = [family for family in MODELS if kinds_from(family, task)]
    if found.family not in able:
        raise ConfigError(
            f"{path} is a {found.family} model, and no start for the task {task}: drop --from, or name a run of "
            f"{', '.join(able)}."
        )
    if not run.weights_path.exists():
        raise CheckpointError(f"{path} has no trained model yet. Go on with: seqwise train --resume --out {path}")
    chosen = choose_models(models, task, found)
    if f"{found.family}-{found.name}" not in chosen:
        raise ConfigError(
            f"{path} is a {found.family} model, and --models {','.join(models or [])} has none: add {found.family}, "
            "or drop --from."
        )
    return found
