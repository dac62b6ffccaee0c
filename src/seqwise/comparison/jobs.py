"""The work of one process: prepare the data, train a trial, or score it. Each writes what it found into the folder.

A job is told the folder, the name of a trial, and how to ask whether it should stop; it returns whether it did.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Sized
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data.schema import Schema, TokenSpec
from ..data.text_examples import TextStore
from ..errors import CheckpointError, ConfigError, TrainingError
from ..goals import AnyGoal
from ..goals.goal import Score
from ..models import family, num_parameters
from ..models.contract import LearnsFromExamples, Model
from ..run import Run, load_weights
from ..settings import DataConfig, TokenizerConfig
from ..tasks import Task, goal_of, task_named
from ..training.preparing import MAX_VALID_TOKENS, can_learn, prepare, resume, sizes_in_words
from ..training.request import Request
from ..training.session import Session
from ..training.timing import FASTER_ALONE, seconds_per_step
from .entrants import Start, not_ranked
from .measure import SUBJECTS, Subject, Timer
from .plan import MIN_SCORED, Settings, Timing, Trial
from .warm_up import warm_up as warm_up
from .warm_up import with_sizes
from .workspace import Workspace

WantsStop = Callable[[], bool]
MAX_OVERRUN = 1.1  # times its share of the clock: who is still at work then is ended as it is
TIMING_SHARE = 0.05  # of the budget, to time all entries
TIMED_TOKENS = 20_000  # of the training part, that a family which counts or iterates learns from to be timed
EACH_VALIDATION = 0.03  # of a trial's time, for each validation of a family that counts or iterates


def prepare_data(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Read the data, learn the vocabularies, encode all parts: once, for all trials."""
    workspace = Workspace(folder)
    settings = workspace.settings
    task, began = task_named(settings.task), time.perf_counter()
    data = task.open(_data_config(workspace))
    kinds, stores = {}, {}
    for vocabulary in settings.vocabularies:
        schema = _schema(settings, task, data, vocabulary)
        if isinstance(schema.main_spec, TokenSpec):
            kinds[vocabulary] = schema.main_spec.tokenizer.kind
        path = workspace.vocab(vocabulary)
        path.mkdir(parents=True, exist_ok=True)
        schema.save(path)
        stores = task.stores(data, schema)
    subject = SUBJECTS[schema.kind]
    doing = [one for one in map(settings.entrant, settings.models) if one.does(schema.kinds)]
    label_counts, notes = _counts_there(settings, data.name, stores["train"])
    left_out = [f"{name} is left out: {why}" for name, why in not_ranked(task.name).items()]
    scored = "test" if "test" in data.parts else "valid"
    found: dict[str, Any] = {
        "data": {
            "name": data.name,
            "description": data.description,
            "notes": [*data.notes, *notes, *left_out],
            "fingerprint": data.fingerprint,
            "parts": subject.sizes(data, stores),
        },
        "scored": scored,
        "kind": schema.kind,
        "kinds": list(schema.kinds),
        "unfit": [one.name for one in doing if not can_learn(one.family, schema, stores["train"])],
        "tokenizers": kinds,
        "label_counts": label_counts,
        "train_rows": len(stores["train"]),
        "machine": {
            "cores": f"{settings.workers} x {settings.threads} of {os.cpu_count()}",
            "processor": _processor(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }
    if settings.start is not None:
        found["start"] = _weights_of(settings.start)
    found |= subject.passage(data, scored)
    found["seconds"] = time.perf_counter() - began
    workspace.write("prepared.json", found)
    return False


def _schema(settings: Settings, task: Task, data: Any, vocabulary: str) -> Schema:
    """By a tokenizer, or as the run reads that some start from."""
    start = settings.start
    if start is None or vocabulary != start.name:
        return task.schema(data, TokenizerConfig(kind=vocabulary), print)  # type: ignore[arg-type]
    base = Run.open(Path(start.path)).schema
    schema = task.schema(data, TokenizerConfig(), print, base)
    before, now = (type(next(iter(one.specs.values()))) for one in (base, schema))
    if before is not now:
        raise ConfigError(f"--from {start.path}: that run does not read what {data.name} is made of; drop it.")
    return schema


def _counts_there(settings: Settings, name: str, store: Sized) -> tuple[list[int | None], list[str]]:
    """Numbers of labels to learn from, the fewest first, and what to say of those that the training part has not."""
    if not settings.is_by_labels:
        return settings.label_counts, []
    if not isinstance(store, TextStore):
        raise ConfigError(f"--labels goes with texts that have labels or tags, and {name} is no text; drop it.")
    counts = [None if labels is None or labels >= len(store) else labels for labels in settings.label_counts]
    more = ",".join(str(labels) for labels in settings.label_counts if labels is not None and labels >= len(store))
    notes = [f"the training part has {len(store):,} rows, so that --labels {more} stands for all"] if more else []
    return list(dict.fromkeys(counts)), notes


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def check_data(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Before a comparison goes on: are the data, and the run that some start from, still what they were?"""
    workspace = Workspace(folder)
    settings, prepared = workspace.settings, workspace.read("prepared.json")
    was = prepared["data"]["fingerprint"]
    fingerprint = task_named(settings.task).open(_data_config(workspace)).fingerprint
    if fingerprint != was:
        raise CheckpointError(
            f"{', '.join(settings.source)} has changed since the comparison began (sha256 {fingerprint[:12]}…, was "
            f"{was[:12]}…). Restore it, or begin another comparison."
        )
    if settings.start is not None and _weights_of(settings.start) != prepared["start"]:
        raise CheckpointError(
            f"{settings.start.path} was trained again since the comparison began from it. Restore it, or begin another "
            "comparison."
        )
    return False


def _weights_of(start: Start) -> str:
    """A checksum of the weights that some start from."""
    return Run.open(Path(start.path)).fingerprint


def time_trial(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """How long an update and a scoring take here and now; what was made for it is thrown away."""
    began = time.perf_counter()
    workspace = Workspace(folder)
    settings, trial = workspace.settings, workspace.trial(name)
    threads = workspace.read("plan.json").get("threads", 0)
    torch.set_num_threads(threads or settings.threads)
    scratch = workspace.path / "timing" / name
    shutil.rmtree(scratch, ignore_errors=True)
    session = _begin(workspace, trial, scratch, seconds=60 * trial.minutes, threads=threads or settings.threads)
    learns_by, subject = family(trial.family).learns[session.run.schema.kind], SUBJECTS[session.run.schema.kind]
    start = time.perf_counter() - began
    seconds = (
        TIMING_SHARE * 60 * settings.minutes * settings.workers / len({trial.timed_as for trial in workspace.trials})
    )
    update = updates_per_row = 0.0
    if learns_by == "gradients":
        model = session.run.build_model()
        update = _seconds_of_update(session, model, seconds)
        updates_per_row = _updates_per_row(session, model)
        if not threads and settings.threads > 1:
            torch.set_num_threads(1)
            alone = _seconds_of_update(session, model, seconds)
            threads, update = (1, alone) if update > FASTER_ALONE * alone else (settings.threads, update)
            torch.set_num_threads(threads)
    else:
        model = _quickly_learned(session, learns_by)
    score = _seconds_of_scoring(session, subject, model, seconds)
    shutil.rmtree(scratch, ignore_errors=True)
    units = subject.amount(session.stores["valid"])
    took = time.perf_counter() - began
    found = Timing(start, update, score, units, threads or settings.threads, took, updates_per_row)
    workspace.save_found(name, "timed", asdict(found))
    return False


def _seconds_of_update(session: Session, model: nn.Module, seconds: float) -> float:
    config = session.run.config.training
    batches = session.goal.batches(session.stores["train"], model, config)
    return seconds_per_step(model, batches, config, max_seconds=seconds / 3, min_steps=2).each


def _updates_per_row(session: Session, model: nn.Module) -> float:
    """For as many passes over the training part as help."""
    config, train = session.run.config.training, session.stores["train"]
    batches = session.goal.batches(train, model, config)
    return float(config.max_epochs * batches.steps_per_epoch / max(1, len(train)))


def _seconds_of_scoring(session: Session, subject: Subject[Any, Any, Any], model: Model, seconds: float) -> float:
    """Of one unit of the validation part: more of it is scored while that takes little time."""
    run, task, limit = session.run, session.task, subject.timed
    config, options = subject.as_if_trained(run.config.data), subject.score_options(model)
    while True:
        store, is_whole = subject.take(task, session.data, "valid", run.schema, limit)
        began = time.perf_counter()
        session.goal.score(model, store, run.schema, config, scored="timing", **options)
        took, limit = time.perf_counter() - began, 8 * limit
        if is_whole or 8 * took > seconds / 3:
            return took / max(1, subject.amount(store))


def _quickly_learned(session: Session, learns_by: str) -> Any:
    """A model of a family that counts or iterates, from a little of the training part."""
    run, goal, stores = session.run, session.goal, session.stores
    model = family(run.config.model_name).build(with_sizes(run.config.model), run.schema)
    train, valid = (_beginning(goal, stores[part]) for part in ("train", "valid"))
    if isinstance(model, LearnsFromExamples):
        model.learn(train, valid, seed=0)
    elif learns_by == "counting":
        model.fit(goal.sequences(train, model)[0])
    else:
        model.initialise(goal.sequences(train, model), 0)
    return model


def _beginning(goal: AnyGoal, store: Sized) -> Any:
    """Of a part: about as many tokens as a family is timed on."""
    tokens_each = len(store.tokens.ids) / len(store) if isinstance(store, TextStore) else 1
    return goal.take(store, max(1, round(TIMED_TOKENS / tokens_each)))


def score_baseline(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """What one gets without learning on so much of the validation part (`name`), for each vocabulary."""
    workspace, amount = Workspace(folder), int(name)
    settings = workspace.settings
    task, config = task_named(settings.task), _data_config(workspace)
    data, found = task.open(config), {}
    for vocabulary in settings.vocabularies:
        schema = Schema.load(workspace.vocab(vocabulary))
        subject = SUBJECTS[schema.kind]
        store, _ = subject.take(task, data, "valid", schema, amount)
        baseline = subject.baseline(task, data, store, schema, config)
        found[vocabulary] = baseline.to_dict()
    workspace.write("baseline.json", found)
    return False


def train_trial(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Train one trial, or go on with it. All that its process does counts as its share of the clock."""
    began = time.perf_counter()
    workspace = Workspace(folder)
    trial, out = workspace.trial(name), workspace.run(name)
    plan = workspace.read("plan.json")
    amount, timing = int(plan["valid_amount"]), workspace.timing(trial.timed_as)
    torch.set_num_threads(plan["threads"])
    before = (workspace.found(name, "clock") or {"seconds": 0.0})["seconds"]
    to_train = 60 * trial.minutes - timing.start - amount * timing.score
    if (out / "config.toml").exists():
        session = resume(out, tell=print)
    else:
        session = _begin(workspace, trial, out, seconds=to_train, threads=plan["threads"])
    is_late = False

    def clock() -> float:
        return float(before + time.perf_counter() - began)

    def should_stop() -> bool:
        nonlocal is_late
        is_late = clock() > MAX_OVERRUN * 60 * trial.minutes - amount * timing.score
        return is_late or wants_stop()

    for _ in session.reports(wants_stop=should_stop, tell=print):
        pass
    if session.is_interrupted and not is_late:
        workspace.save_found(name, "clock", {"seconds": clock()})
        return True
    if not session.run.weights_path.exists():
        _keep_last(session.run)
    found = _trained(session, amount)
    workspace.save_found(name, "trained", {"seconds": clock(), "is_late": session.is_interrupted, **found})
    return False


def _trained(session: Session, amount: int) -> dict[str, Any]:
    """What is known of a run that was trained: its score on as much of the validation part as all are ranked by."""
    run, subject, validating = session.run, SUBJECTS[session.run.schema.kind], 0.0

    def score(model: Model) -> Score:
        nonlocal validating
        started = time.perf_counter()
        store, is_whole = subject.take(session.task, session.data, "valid", run.schema, amount)
        scored = f"valid{'' if is_whole else f'[:{subject.amount(store)}]'}:{session.data.fingerprint[:8]}"
        config, options = run.config.data, subject.score_options(model)
        found = session.goal.score(model, store, run.schema, config, scored=scored, **options)
        validating = (time.perf_counter() - started) / max(1, subject.amount(store))
        return found

    session.score_with = score
    result, log = session.finish(print), list(run.read_log())
    is_network = family(run.config.model_name).learns[run.schema.kind] == "gradients"
    return {
        "updates": log[-1]["step"] if is_network else None,
        "train_tokens": run.config.training.train_tokens,
        "valid": result.segments.value,
        "metric": asdict(result.metric),
        "validated": result.segments.to_dict(),
        "scoring_seconds_per_unit": validating,
        "settings": sizes_in_words(run.config, run.schema),
        "tokens_per_second": log[-1]["tokens_per_second"],
        "best_at": _best_at(log),
        "curve": _curve(log, session.goal.loss_as_value(result)),
    }


def _begin(workspace: Workspace, trial: Trial, out: Path, *, seconds: float, threads: int) -> Session:
    """A run of the trial that may take so many seconds."""
    settings, timing = workspace.settings, workspace.timing(trial.timed_as)
    entrant, schema = settings.entrant(trial.entrant), Schema.load(workspace.vocab(trial.tokenizer))
    overrides = [f"training.threads={threads}", f"training.seed={trial.seed}", "training.num_samples=0"]
    overrides += entrant.overrides
    if trial.labels is not None:
        overrides.append(f"training.train_examples={trial.labels}")
    if settings.limits.parameters:
        overrides.append(f"training.max_parameters={settings.limits.parameters}")
    if entrant.row.learns[schema.kind] != "gradients" and timing.score:  # networks find out for themselves what fits
        affordable = EACH_VALIDATION * seconds / timing.score
        overrides.append(f"training.valid_tokens={int(min(MAX_VALID_TOKENS, max(MIN_SCORED, affordable)))}")
    request = Request(
        settings.source,
        trial.family,
        out,
        task=settings.task,
        minutes=max(seconds, 0.1 * 60 * trial.minutes) / 60,
        valid=settings.valid,
        test=settings.test,
        split=settings.split,
        columns=settings.columns,
        season=settings.season,
        overrides=overrides,
        start_from=None if entrant.start is None else Path(entrant.start.path),
    )
    return prepare(request, schema=schema, tell=print)


def _keep_last(run: Run) -> None:
    """Ended before it was validated for the first time: then the last weights are the best known."""
    checkpoint, _ = run.latest_checkpoint()
    if checkpoint is None or checkpoint.step == 0:
        raise TrainingError("its time was up before it had made a step")
    model = run.build_model()
    load_weights(model, checkpoint.weights, run.path)
    run.save_model(model)


def _best_at(log: list[dict[str, Any]]) -> float:
    """The share of the steps made after which validation was best."""
    best = max((line["step"] for line in log if line.get("is_best")), default=log[-1]["step"])
    return float(best / log[-1]["step"])


def _curve(log: list[dict[str, Any]], as_value: Callable[[float], float] | None) -> list[dict[str, float]]:
    if as_value is None:
        return []
    validated = [line for line in log if line.get("valid") is not None]
    return [
        {"seconds": line["seconds"], "tokens": line["tokens"], "value": as_value(line["valid"])} for line in validated
    ]


def score_trial(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Score one trained run on the part that no choice was made by, and measure the rest."""
    workspace = Workspace(folder)
    settings, prepared = workspace.settings, workspace.read("prepared.json")
    plan = workspace.read("plan.json")
    torch.set_num_threads(plan["threads"])
    run, task = Run.open(workspace.run(name)), task_named(settings.task)
    subject, goal = SUBJECTS[run.schema.kind], goal_of(task, run.schema)
    model = run.load_model()
    data = task.open(run.config.data)
    part = prepared["scored"]
    began = time.perf_counter()
    store, is_whole = subject.take(task, data, part, run.schema, int(plan["scored_amount"]))
    scored = f"{part}{'' if is_whole else f'[:{subject.amount(store)}]'}:{data.fingerprint[:8]}"
    score = goal.score(model, store, run.schema, run.config.data, scored=scored, **subject.score_options(model))
    seconds = time.perf_counter() - began
    told = score.to_dict()
    numbers = {name: value for name, value in told.items() if isinstance(value, float)}
    numbers |= {f"{target}_accuracy": other["accuracy"] for target, other in told.get("others", {}).items()}
    found: dict[str, Any] = {
        "segments": score.segments.to_dict(),
        "metric": asdict(score.metric),
        "more": numbers,
        "signature": score.signature,
        "parameters": num_parameters(model),
        "bytes_on_disk": _bytes_to_ship(run),
        "scoring_seconds": seconds,
    }
    began = time.perf_counter()
    timer = Timer(float(plan["measuring_seconds"]), seconds / max(1, subject.amount(store)))
    found |= subject.measure(run, model, data, store, prepared.get("passage", ""), score, timer)
    found["not_measured"] = timer.left_out
    found["measuring_seconds"] = time.perf_counter() - began
    workspace.save_found(name, "scored", found)
    return False


def _bytes_to_ship(run: Run) -> int:
    """Model, settings and vocabulary: what another machine needs to use it."""
    files = [run.weights_path, run.path / "config.toml", *(run.path / "vocab").iterdir()]
    return sum(file.stat().st_size for file in files)


def _data_config(workspace: Workspace) -> DataConfig:
    settings = workspace.settings
    return DataConfig(
        source=settings.source,
        valid=settings.valid,
        test=settings.test,
        split=settings.split,
        columns=settings.columns,
        season=settings.season,
    )


JOBS = {
    "prepare": prepare_data,
    "check": check_data,
    "time": time_trial,
    "baseline": score_baseline,
    "train": train_trial,
    "score": score_trial,
}
