"""The work of one process: prepare the data, train a trial, or score it. Each writes what it found into the folder.

A job is told the folder, the name of a trial, and how to ask whether it should stop; it returns whether it did.
"""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.batch import next_token_batch, next_value_batch
from ..data.vocab import Vocab
from ..errors import CheckpointError, TrainingError
from ..models import family, num_parameters
from ..models.contract import Interface
from ..run import Run, interface_of, load_weights
from ..settings import DataConfig, TokenizerConfig
from ..tasks import task_named
from ..tasks.task import Score
from ..training.session import MAX_VALID_TOKENS, Session, prepare, resume, sizes_in_words
from ..training.timing import seconds_per_step
from .folder import Folder
from .measure import SUBJECTS, Subject, Timer
from .plan import MIN_SCORED, Timing, Trial, entrants

WantsStop = Callable[[], bool]
LATEST = 1.1  # times its share of the clock: who is still at work then is ended as it is
TIMING_SHARE = 0.05  # of the budget, to time all entries
FASTER_ALONE = 1.1  # times as long with several threads as with one
TIMED_TOKENS = 20_000  # of the training part, that a family which counts or iterates learns from to be timed
TIMED_ORDER, TIMED_STATES = 5, 16  # of a family that will choose its own
EACH_VALIDATION = 0.03  # of a trial's time, for each validation of a family that counts or iterates


def prepare_data(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Read the data, learn the vocabularies, encode all parts: once, for all trials."""
    comparison = Folder(folder)
    settings = comparison.settings
    task, subject = task_named(settings.task), SUBJECTS[settings.task]
    began = time.perf_counter()
    data = task.open(_data_config(comparison))
    kinds, stores = {}, {}
    for tokenizer in settings.tokenizers:
        vocab = task.learn_vocab(data, TokenizerConfig(kind=tokenizer), print)  # type: ignore[arg-type]
        if vocab.tokenizer is not None:
            kinds[tokenizer] = vocab.tokenizer.kind
        path = comparison.vocab(tokenizer)
        path.mkdir(parents=True, exist_ok=True)
        vocab.save(path)
        stores = task.stores(data, vocab)
    scored = "test" if "test" in data.parts else "valid"
    found: dict[str, Any] = {
        "data": {
            "name": data.name,
            "description": data.description,
            "notes": list(getattr(data, "notes", ())),
            "fingerprint": data.fingerprint,
            "parts": subject.sizes(data, stores),
        },
        "scored": scored,
        "tokenizers": kinds,
        "machine": {
            "cores": f"{settings.workers} x {settings.threads} of {os.cpu_count()}",
            "processor": _processor(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }
    found |= subject.passage(data, scored)
    found["seconds"] = time.perf_counter() - began
    comparison.write("prepared.json", found)
    return False


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def check_data(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Before a comparison goes on: is the data still what it was?"""
    comparison = Folder(folder)
    settings, was = comparison.settings, comparison.read("prepared.json")["data"]["fingerprint"]
    fingerprint = task_named(settings.task).open(_data_config(comparison)).fingerprint
    if fingerprint != was:
        raise CheckpointError(
            f"{', '.join(settings.source)} has changed since the comparison began (sha256 {fingerprint[:12]}…, was "
            f"{was[:12]}…). Restore it, or begin another comparison."
        )
    return False


def time_trial(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """How long an update and a scoring take here and now; what was made for it is thrown away."""
    began = time.perf_counter()
    comparison = Folder(folder)
    settings, trial, subject = comparison.settings, comparison.trial(name), SUBJECTS[comparison.settings.task]
    threads = comparison.read("plan.json").get("threads", 0)
    torch.set_num_threads(threads or settings.threads)
    scratch = comparison.path / "timing" / name
    shutil.rmtree(scratch, ignore_errors=True)
    session = _begin(comparison, trial, scratch, seconds=60 * trial.minutes, threads=threads or settings.threads)
    learns_by = family(trial.family).learns_by
    start = time.perf_counter() - began
    seconds = TIMING_SHARE * 60 * settings.minutes * settings.workers / len(comparison.trials)
    update = 0.0
    if learns_by == "gradients":
        model = session.run.build_model()
        update = _seconds_of_update(session, model, seconds)
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
    found = Timing(start, update, score, units, threads or settings.threads, time.perf_counter() - began)
    comparison.save_found(name, "timed", asdict(found))
    return False


def _seconds_of_update(session: Session, model: Any, seconds: float) -> float:
    config = session.run.config.training
    batches = session.task.batches(session.stores["train"], model, config)
    return seconds_per_step(model, batches, config, longest=seconds / 3, least=2).each


def _seconds_of_scoring(session: Session, subject: Subject, model: Any, seconds: float) -> float:
    """Of one unit of the validation part: more of it is scored while that takes little time."""
    run, task, most = session.run, session.task, subject.timed
    config, options = subject.as_if_trained(run.config.data), subject.score_options(model)
    while True:
        store, is_whole = subject.beginning(task, session.data, "valid", run.vocab, most)
        began = time.perf_counter()
        task.score(model, store, run.vocab, config, scored="timing", **options)
        took, most = time.perf_counter() - began, 8 * most
        if is_whole or 8 * took > seconds / 3:
            return took / max(1, subject.amount(store))


def _quickly_learned(session: Session, learns_by: str) -> Any:
    """A model of a family that counts or iterates, from a little of the training part."""
    run, task = session.run, session.task
    sizes = {"order": TIMED_ORDER, "num_states": TIMED_STATES}
    chosen = {name: size for name, size in sizes.items() if getattr(run.config.model, name, None) == 0}
    row = family(run.config.model_name)
    model = row.build(replace(run.config.model, **chosen), interface_of(run.vocab))
    sequences = task.sequences(task.beginning(session.stores["train"], TIMED_TOKENS), model)
    if learns_by == "counting":
        model.fit(sequences[0])
    else:
        model.initialise(sequences, 0)
    return model


def score_baseline(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """What one gets without learning on so much of the validation part (`name`), for each tokenizer."""
    comparison, amount = Folder(folder), int(name)
    settings = comparison.settings
    task, subject, config = task_named(settings.task), SUBJECTS[settings.task], _data_config(comparison)
    data, found = task.open(config), {}
    for tokenizer in settings.tokenizers:
        vocab = Vocab.load(comparison.vocab(tokenizer), settings.task)
        store, _ = subject.beginning(task, data, "valid", vocab, amount)
        baseline = subject.baseline(task, data, store, vocab, config)
        found[tokenizer] = {"name": baseline.name, "segments": baseline.segments.to_dict()}
    comparison.write("baseline.json", found)
    return False


def train_trial(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Train one trial, or go on with it. All that its process does counts as its share of the clock."""
    began = time.perf_counter()
    comparison = Folder(folder)
    settings, trial, out = comparison.settings, comparison.trial(name), comparison.run(name)
    plan, subject = comparison.read("plan.json"), SUBJECTS[settings.task]
    amount, timing = int(plan["valid_amount"]), comparison.timing(trial.entry)
    torch.set_num_threads(plan["threads"])
    before = (comparison.found(name, "clock") or {"seconds": 0.0})["seconds"]
    to_train = 60 * trial.minutes - timing.start - amount * timing.score
    if (out / "config.toml").exists():
        session = resume(out, tell=print)
    else:
        session = _begin(comparison, trial, out, seconds=to_train, threads=plan["threads"])
    is_late, validating = False, 0.0

    def clock() -> float:
        return float(before + time.perf_counter() - began)

    def should_stop() -> bool:
        nonlocal is_late
        is_late = clock() > LATEST * 60 * trial.minutes - amount * timing.score
        return is_late or wants_stop()

    def score(model: Any) -> Score:
        """On what all are ranked by."""
        nonlocal validating
        started = time.perf_counter()
        store, is_whole = subject.beginning(session.task, session.data, "valid", session.run.vocab, amount)
        about = f"valid{'' if is_whole else f'[:{subject.amount(store)}]'}:{session.data.fingerprint[:8]}"
        config, options = session.run.config.data, subject.score_options(model)
        found = session.task.score(model, store, session.run.vocab, config, scored=about, **options)
        validating = (time.perf_counter() - started) / max(1, subject.amount(store))
        return found

    session.score_with = score
    for _ in session.reports(wants_stop=should_stop, tell=print):
        pass
    if session.is_interrupted and not is_late:
        comparison.save_found(name, "clock", {"seconds": clock()})
        return True
    run = session.run
    if not (run.path / "model.safetensors").exists():
        _keep_last(run)
    scored = session.score or score(run.load_model())
    log = list(run.read_log())
    learns_by = family(trial.family).learns_by
    comparison.save_found(
        name,
        "trained",
        {
            "seconds": clock(),
            "is_late": session.is_interrupted,
            "updates": log[-1]["step"] if learns_by == "gradients" else None,
            "train_tokens": run.config.training.train_tokens,
            "valid": scored.segments.value,
            "metric": asdict(scored.metric),
            "validated": scored.segments.to_dict(),
            "scoring_seconds_per_unit": validating,
            "settings": sizes_in_words(run.config),
            "tokens_per_second": log[-1]["tokens_per_second"],
            "best_at": _best_at(log),
            "curve": _curve(log, session.task.loss_as_value(scored)),
        },
    )
    return False


def _begin(comparison: Folder, trial: Trial, out: Path, *, seconds: float, threads: int) -> Session:
    """A run of the trial that may take so many seconds."""
    settings, timing = comparison.settings, comparison.timing(trial.entry)
    row = entrants(settings.task)[trial.entrant].row
    overrides = [f"training.threads={threads}", f"training.seed={trial.seed}", "training.num_samples=0"]
    overrides += entrants(settings.task)[trial.entrant].settings
    if settings.limits.parameters:
        overrides.append(f"training.most_parameters={settings.limits.parameters}")
    if row.learns_by != "gradients" and timing.score:  # networks find out for themselves what fits
        affordable = EACH_VALIDATION * seconds / timing.score
        overrides.append(f"training.valid_tokens={int(min(MAX_VALID_TOKENS, max(MIN_SCORED, affordable)))}")
    return prepare(
        settings.source,
        model=trial.family,
        out=out,
        task=settings.task,
        minutes=max(seconds, 0.1 * 60 * trial.minutes) / 60,
        valid=settings.valid,
        test=settings.test,
        split=settings.split,
        columns=settings.columns,
        season=settings.season,
        vocab=Vocab.load(comparison.vocab(trial.tokenizer), settings.task),
        overrides=overrides,
        tell=print,
    )


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
    comparison = Folder(folder)
    settings, prepared = comparison.settings, comparison.read("prepared.json")
    plan = comparison.read("plan.json")
    torch.set_num_threads(plan["threads"])
    run, task, subject = Run.open(comparison.run(name)), task_named(settings.task), SUBJECTS[settings.task]
    model = run.load_model()
    data = task.open(run.config.data)
    part = prepared["scored"]
    began = time.perf_counter()
    store, is_whole = subject.beginning(task, data, part, run.vocab, int(plan["scored_amount"]))
    about = f"{part}{'' if is_whole else f'[:{subject.amount(store)}]'}:{data.fingerprint[:8]}"
    score = task.score(model, store, run.vocab, run.config.data, scored=about, **subject.score_options(model))
    seconds = time.perf_counter() - began
    numbers = {name: value for name, value in score.to_dict().items() if isinstance(value, float)}
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
    comparison.save_found(name, "scored", found)
    return False


def _bytes_to_ship(run: Run) -> int:
    """Model, settings and vocabulary: what another machine needs to use it."""
    files = [run.path / "model.safetensors", run.path / "config.toml", *(run.path / "vocab").iterdir()]
    return sum(file.stat().st_size for file in files)


def _data_config(comparison: Folder) -> DataConfig:
    settings = comparison.settings
    return DataConfig(
        source=settings.source,
        valid=settings.valid,
        test=settings.test,
        split=settings.split,
        columns=settings.columns,
        season=settings.season,
    )


def warm_up(folder: Path) -> None:
    """Load what each trial would otherwise load at the cost of its share. Called before the first fork: nothing here
    may start a thread."""
    settings = Folder(folder).settings
    interface = Interface("numbers", num_columns=1) if settings.task == "numbers" else Interface(vocab_size=3)
    for name in settings.models:
        row = entrants(settings.task)[name].row
        if row.learns_by == "gradients":
            weight = torch.zeros(1, requires_grad=True)
            weight.grad = torch.zeros(1)
            torch.optim.AdamW([weight]).step()  # imports most of torch's compiler
            continue
        model, ids, values = row.build(row.config(), interface), np.array([0, 1, 2, 1]), np.zeros((8, 1))
        if row.learns_by == "counting":
            model.fit(ids)
        else:
            sequences = [(values, None)] if settings.task == "numbers" else [ids]
            model.initialise(sequences, 0)
            model.em_step(sequences)
        if settings.task == "numbers":
            model.score(next_value_batch(torch.from_numpy(values)[None]))
        else:
            model.score(next_token_batch(torch.from_numpy(ids)[None]))


JOBS = {
    "prepare": prepare_data,
    "check": check_data,
    "time": time_trial,
    "baseline": score_baseline,
    "train": train_trial,
    "score": score_trial,
}
