"""The work of one process: prepare the data, train a trial, or score it. Each writes what it found into the folder.

A job is told the folder, the name of a trial, and how to ask whether it should stop; it returns whether it did.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.batch import next_token_batch, next_value_batch
from ..data.vocab import Vocab
from ..errors import CheckpointError, ConfigError, TrainingError
from ..models import num_parameters
from ..models.contract import Interface
from ..run import Run, load_weights
from ..settings import DataConfig, TokenizerConfig
from ..tasks import task_named
from ..training.session import prepare, resume, sizes_in_words
from .folder import Folder
from .measure import SUBJECTS
from .plan import Settings, entrants

WantsStop = Callable[[], bool]
SCORED_PER_MINUTE, LEAST_SCORED, MOST_SCORED = 50_000, 200_000, 2_000_000  # characters of a part
LATEST, SLACK_SECONDS = 1.3, 3.0  # times its share of the clock, and more: who is still at work then is ended as it is


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
            _check_comparable(vocab.tokenizer.kind, settings.tokenizers)
        path = comparison.vocab(tokenizer)
        path.mkdir(parents=True, exist_ok=True)
        vocab.save(path)
        stores = task.stores(data, vocab)
    scored = "test" if "test" in data.parts else "valid"
    found: dict[str, Any] = {
        "data": {
            "name": data.name,
            "description": data.description,
            "fingerprint": data.fingerprint,
            "notes": list(getattr(data, "notes", ())),
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


def _check_comparable(kind: str, asked: list[str]) -> None:
    if kind == "word" and len(asked) > 1:
        raise ConfigError(
            "a model of words does not say how an unknown word is spelled, so its bits per character cannot be "
            "compared with those of characters or byte pairs. Compare char and bpe, or word alone."
        )


def train_trial(folder: Path, name: str, wants_stop: WantsStop) -> bool:
    """Train one trial, or go on with it."""
    comparison = Folder(folder)
    settings, trial, out = comparison.settings, comparison.trial(name), comparison.run(name)
    subject = SUBJECTS[settings.task]
    torch.set_num_threads(settings.threads)
    if (out / "config.toml").exists():
        session = resume(out, tell=print)
    else:
        overrides = [f"training.threads={settings.threads}", f"training.seed={trial.seed}"]
        overrides += entrants(settings.task)[trial.entrant].settings
        if settings.limits.parameters:
            overrides.append(f"training.most_parameters={settings.limits.parameters}")
        session = prepare(
            settings.source,
            model=trial.family,
            out=out,
            task=settings.task,
            minutes=trial.minutes,
            valid=settings.valid,
            test=settings.test,
            split=settings.split,
            columns=settings.columns,
            vocab=Vocab.load(comparison.vocab(trial.tokenizer), settings.task),
            overrides=overrides,
            tell=print,
        )
    session.most_final_tokens = MOST_SCORED // 4
    before = (comparison.found(name, "clock") or {"seconds": 0.0})["seconds"]
    began = time.perf_counter()
    is_late = False

    def clock() -> float:
        return float(before + time.perf_counter() - began)

    def should_stop() -> bool:
        nonlocal is_late
        is_late = clock() > LATEST * 60 * trial.minutes + SLACK_SECONDS
        return is_late or wants_stop()

    for _ in session.reports(wants_stop=should_stop, tell=print):
        pass
    seconds = clock()
    if session.is_interrupted and not is_late:
        comparison.save_found(name, "clock", {"seconds": seconds})
        return True
    run = session.run
    if not (run.path / "model.safetensors").exists():
        _keep_last(run)
    score, model = session.score, run.load_model()
    store, is_whole = subject.beginning(session.task, session.data, "valid", run.vocab, _most_scored(settings))
    options = subject.score_options(model)
    if score is None or not is_whole or options:  # else it is of the same part, seen in the same way
        score = session.task.score(model, store, run.vocab, run.config.data, scored="valid", **options)
    log = list(run.read_log())
    comparison.save_found(
        name,
        "trained",
        {
            "seconds": seconds,
            "is_late": session.is_interrupted,
            "train_tokens": run.config.training.train_tokens,
            "valid": score.segments.value,
            "metric": asdict(score.metric),
            "validated": score.segments.to_dict(),
            "settings": sizes_in_words(run.config),
            "tokens_per_second": log[-1]["tokens_per_second"],
            "best_at": _best_at(log),
            "curve": _curve(log, session.task.loss_as_value(score)),
        },
    )
    return False


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
    torch.set_num_threads(settings.threads)
    run, task, subject = Run.open(comparison.run(name)), task_named(settings.task), SUBJECTS[settings.task]
    model = run.load_model()
    data = task.open(run.config.data)
    part = prepared["scored"]
    began = time.perf_counter()
    store, is_whole = subject.beginning(task, data, part, run.vocab, _most_scored(settings))
    about = f"{part}{'' if is_whole else f'[:{store.num_chars}]'}:{data.fingerprint[:8]}"
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
    found |= subject.measure(run, model, data, store, prepared.get("passage", ""), score)
    found["measuring_seconds"] = time.perf_counter() - began
    comparison.save_found(name, "scored", found)
    return False


def _most_scored(settings: Settings) -> int:
    """Characters of a part."""
    return int(min(MOST_SCORED, max(LEAST_SCORED, settings.minutes * SCORED_PER_MINUTE)))


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


JOBS = {"prepare": prepare_data, "check": check_data, "train": train_trial, "score": score_trial}
