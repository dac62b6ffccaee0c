"""From data and settings to a trained run folder: prepare everything, then hand out the stream of reports.

session = prepare("poems.txt", model="lstm", out=Path("runs/poems"), minutes=2)
for report in session.reports():
    ...
session.score        # of the best model on the whole validation part
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..config import build
from ..data.pipes import owned
from ..data.vocab import Vocab
from ..errors import CheckpointError, ConfigError
from ..machine import check_memory
from ..models import MODELS, Family, family, num_parameters
from ..models.contract import Interface
from ..models.ngram import Ngram
from ..run import Checkpoint, Run, RunConfig, check_free, interface_of, load_weights
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..tasks import Task, task_for, task_named
from ..tasks.task import Advance, Score, Tell
from ..wording import counted
from .averaging import WeightAverage
from .card import write_card
from .counting import count
from .em import expect_and_maximise
from .given import BUDGETS, absolute, check_given, check_present, check_same, given_settings, moved_data
from .loop import Hooks, train
from .planning import (
    choose_order,
    choose_states,
    countable_tokens,
    plan_iterations,
    plan_steps,
    planned_anew,
    tokens_and_iterations,
)
from .report import Report
from .sizing import DEFAULT_MINUTES, fitting_heads, least_training_bytes, narrowed, suggest, tried_tokens
from .timing import compiled_loss

MAX_VALID_TOKENS = 250_000  # for a validation while training
MAX_FINAL_TOKENS = 1_000_000  # for the one at the end; `seqwise evaluate` scores all


@dataclass
class Session:
    """A run that is ready to train, from the start or from its last checkpoint."""

    run: Run
    task: Task
    data: Any
    stores: dict[str, Any]
    resume_from: Checkpoint | None = None
    score_with: Callable[[Any], Score] | None = None
    """Scores the best model at the end; without it, on the validation part."""
    score: Score | None = None
    """Of the best model on the validation part, once training is over."""
    is_interrupted: bool = False
    _progress: dict[str, Any] | None = None
    """Of the last checkpoint that was written."""

    def reports(
        self, *, wants_stop: Callable[[], bool] = lambda: False, tell: Tell = lambda _: None
    ) -> Iterator[Report]:
        """Train to the end (or until `wants_stop`), writing the log, checkpoints, best model and card on the way."""
        config = self.run.config.training
        if config.threads:
            torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        model = self.run.build_model()
        has_start = self.run.load_initial_weights(model)
        hooks = self._hooks(model, wants_stop)
        learns_by = family(self.run.config.model_name).learns_by
        if learns_by == "counting":
            if self.run.config.model.order == 0:
                self._choose_order(tell)
                model = self.run.build_model()
                hooks = self._hooks(model, wants_stop)
            reports = count(model, self._sequences(model)[0], hooks)
        elif learns_by == "em":
            if getattr(self.run.config.model, "num_states", None) == 0:
                model, has_start = self._choose_states(wants_stop, tell), True
                hooks = self._hooks(model, wants_stop)
            elif config.minutes is not None and self.resume_from is None:
                self._plan_iterations(tell)
            config = self.run.config.training
            reports = expect_and_maximise(
                model, self._sequences(model), config, hooks=hooks, resume=self.resume_from, has_start=has_start
            )
        else:
            model.to(choose_device(config.device))
            if config.steps == 0:
                self._plan_steps(model, tell)
            config = self.run.config.training
            batches = self.task.batches(self.stores["train"], model, config)
            objective = compiled_loss(model) if config.compile == "always" else None
            if config.minutes is not None:
                per_epoch = batches.steps_per_epoch
                hooks = replace(hooks, plan=lambda step, seconds: self._plan_anew(step, seconds, per_epoch, tell))
            reports = train(model, batches, config, objective=objective, hooks=hooks, resume=self.resume_from)
        last = None
        for last in reports:
            self.run.append_log(last.to_dict())
            yield last
        self.is_interrupted = (
            wants_stop() and self._progress is not None and not is_over(self._progress, self.run.config)
        )
        if not self.is_interrupted:
            best = self.run.load_model()
            self.score = self.score_with(best) if self.score_with else self._score(best, tell)
            self.run.save_card(write_card(self.run, best, self.score))

    def _score(self, model: Any, tell: Tell) -> Score:
        valid = self.task.beginning(self.stores["valid"], MAX_FINAL_TOKENS)
        scored = f"valid:{self.data.fingerprint[:8]}:{len(valid)}"
        self._tell_of_samples(len(valid), tell)
        return self.task.score(model, valid, self.run.vocab, self.run.config.data, scored=scored)

    def _sequences(self, model: Any, most: int = 0) -> list[Any]:
        """The training part, or its beginning, as counting and EM want it."""
        most = most or self.run.config.training.train_tokens
        store = self.stores["train"]
        return self.task.sequences(self.task.beginning(store, most) if most else store, model)

    def _validate(self, model: Any) -> float:
        return self.task.validate(model, self.stores["valid"], self.run.config.training.valid_tokens or None)

    def _tell_of_samples(self, scored: int, tell: Tell) -> None:
        """Why the last validation of the log and the score at the end are not the same number."""
        store, unit = self.stores["valid"], self.task.unit
        seen = len(self.task.validated(store, self.run.config.training.valid_tokens or None))
        if seen != scored:
            of = "all" if scored == len(store) else "the first"
            tell(
                f"validation while training read the first {seen:,} {unit} of valid, the score at the end reads {of} "
                f"{scored:,}: the two may differ"
            )

    def _choose_order(self, tell: Tell) -> None:
        config, model = self.run.config.training, self.run.build_model()
        first = suggest("ngram", self.task.facts(self.data, self.stores["train"], self.run.vocab, None))[0]["order"]
        settings, interface = self.run.config.model, interface_of(self.run.vocab)
        ids, seconds = self._sequences(model)[0], 60 * (config.minutes or DEFAULT_MINUTES)
        if config.minutes is not None:
            most = countable_tokens(Ngram(replace(settings, order=first), interface), ids, seconds=seconds)
            if most < len(ids) - 1:
                tell(f"learns from the first {most:,} of {len(ids) - 1:,} tokens, so that counting them fits")
                self.run.save_config(self.run.with_training(train_tokens=most))
                ids = ids[: most + 1]
        order = choose_order(
            settings,
            interface,
            ids,
            self._validate,
            first=first,
            most_parameters=config.most_parameters,
            seconds=seconds,
            tell=tell,
        )
        self.run.save_config(replace(self.run.config, model=replace(self.run.config.model, order=order)))

    def _choose_states(self, wants_stop: Callable[[], bool], tell: Tell) -> Any:
        """A model with as many hidden states as validate best, learned already; what is left is to end its learning."""
        config, interface = self.run.config.training, interface_of(self.run.vocab)
        settings, row = self.run.config.model, family(self.run.config.model_name)
        seconds = 60 * (config.minutes or DEFAULT_MINUTES)
        began = time.perf_counter()

        def build(num_states: int) -> Any:
            return row.build(replace(settings, num_states=num_states), interface)

        whole, some = len(self.stores["train"]), tried_tokens(seconds)
        num_states, model, per_iteration = choose_states(
            build,
            self._sequences(build(1), some),
            config,
            self._validate,
            seconds=seconds,
            wants_stop=wants_stop,
            tell=tell,
        )
        left = max(0.0, seconds - (time.perf_counter() - began))
        tokens, iterations = tokens_and_iterations(left, per_iteration / min(some, whole), whole, least=some)
        changes = {
            "steps": min(config.steps or 1, iterations),
            "restarts": 1,
            "train_tokens": 0 if tokens == whole else tokens,
        }
        self.run.save_config(replace(self.run.with_training(**changes), model=replace(settings, num_states=num_states)))
        return model

    def _plan_iterations(self, tell: Tell) -> None:
        model, store = self.run.build_model(), self.stores["train"]
        changes = plan_iterations(
            model, lambda most: self._sequences(model, most), len(store), self.run.config.training, tell
        )
        self.run.save_config(self.run.with_training(**changes))

    def _plan_steps(self, model: torch.nn.Module, tell: Tell) -> None:
        """Turn a budget in minutes or epochs into steps, once; from then on they are a setting of the run."""
        config = self.run.config.training
        batches = self.task.batches(self.stores["train"], model, config)
        if config.epochs is not None:
            changes: dict[str, Any] = {"steps": max(1, round(config.epochs * batches.steps_per_epoch))}
        else:
            changes = plan_steps(model, batches, config, len(self.stores["valid"]), tell)
        self.run.save_config(self.run.with_training(**changes))

    def _plan_anew(self, step: int, seconds: float, steps_per_epoch: int, tell: Tell) -> int | None:
        config = self.run.config.training
        steps = planned_anew(step, seconds, config, steps_per_epoch)
        if steps is not None:
            self.run.save_config(self.run.with_training(steps=steps))
            tell(f"a step takes {seconds / step:.3f} s now: {counted(steps, 'step')} fit, instead of {config.steps:,}")
        return steps

    def _hooks(self, model: Any, wants_stop: Callable[[], bool]) -> Hooks:
        run, task = self.run, self.task

        over = run.config.training.average_over
        average = WeightAverage(model, over) if over else None
        mean_is_better = False

        def validate() -> float:
            nonlocal mean_is_better
            loss = self._validate(model)
            if average is None:
                return loss
            average.add()
            with average.applied():
                loss_of_mean = self._validate(model)
            mean_is_better = loss_of_mean < loss
            return min(loss, loss_of_mean)

        def keep_best() -> None:
            with average.applied() if average is not None and mean_is_better else nullcontext():
                run.save_model(model)

        def sample() -> str | None:
            return task.sample(model, self.stores["valid"], run.vocab, run.config.training)

        def checkpoint(saved: Checkpoint) -> None:
            self._progress = {**saved.progress, "log_length": run.log_length()}
            run.save_checkpoint(replace(saved, progress=self._progress))

        hooks = Hooks(validate, sample, keep_best, checkpoint, wants_stop=wants_stop)
        return hooks if average is None else replace(hooks, tensors=average.tensors, restore=average.load)


def prepare(
    source: str | Path | Sequence[str | Path],
    *,
    model: str,
    out: Path,
    task: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    tokenizer: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
    season: int | list[int] | None = None,
    seed: int | None = None,
    config_file: Path | None = None,
    overrides: Sequence[str] = (),
    start_from: Path | None = None,
    vocab: Vocab | None = None,
    tell: Tell = lambda _: None,
    advance: Advance = lambda *_: None,
) -> Session:
    """Check everything, encode the data, choose the sizes, and create the run folder. Nothing is written before.

    `vocab` is one that was learned from this data already.
    """
    if sum(budget is not None for budget in (minutes, steps, epochs)) > 1:
        raise ConfigError("give one budget: --minutes, --steps or --epochs.")
    sources = [absolute(s) for s in owned([source] if isinstance(source, str | Path) else source, task)]
    valid, test = (part and absolute(owned([part], task)[0]) for part in (valid, test))
    check_free(out)
    row = family(model)
    base = Run.open(start_from) if start_from is not None else None
    if base is not None and base.config.model_name != model:
        raise ConfigError(f"{start_from} is a {base.config.model_name} model; --model {model} cannot start from it.")
    if row.learns_by == "em" and epochs is not None:
        raise ConfigError(f"{model} learns by EM: its budget is --minutes, or --steps, the iterations at most.")
    if base is not None and tokenizer is not None:
        raise ConfigError(f"--from {start_from} brings its own tokenizer; drop --tokenizer.")
    where = str(config_file) if config_file else "--set"
    chosen_task = _choose_task(task, sources, columns, model)
    if season is not None and chosen_task.name != "numbers":
        raise ConfigError(f"--season goes with numbers, and this is taken for {chosen_task.name}; drop it.")
    if base is not None and base.config.task != chosen_task.name:
        raise ConfigError(
            f"{start_from} was trained on {base.config.task}, and this is {chosen_task.name}; drop --from."
        )
    options: dict[str, dict[str, Any]] = {
        "data": {
            "source": sources,
            "valid": valid,
            "test": test,
            "split": split,
            "columns": list(columns) or None,
            "season": season,
        },
        "tokenizer": {"kind": tokenizer},
        "training": {"minutes": minutes, "steps": steps, "epochs": epochs, "seed": seed},
    }
    given = given_settings(config_file, options, overrides)
    check_given(given, row.config, where)
    data_config = build(DataConfig, given["data"], section="data", where=where)
    tokenizer_config = build(TokenizerConfig, given["tokenizer"], section="tokenizer", where=where)
    if row.learns_by == "gradients" and not set(BUDGETS) & set(given["training"]):
        given["training"]["minutes"] = DEFAULT_MINUTES
    choose_device(build(TrainingConfig, given["training"], section="training", where=where).device)

    data = chosen_task.open(data_config)
    tell(data.description)
    for sentence in getattr(data, "notes", ()):  # what was found or dropped
        tell(sentence)
    if base is not None:
        vocab = base.vocab
    vocab = vocab or chosen_task.learn_vocab(data, tokenizer_config, tell)
    stores = chosen_task.stores(data, vocab, advance)
    facts = chosen_task.facts(data, stores["train"], vocab, given["training"].get("minutes"))
    found = {name: value for name, value in facts.data.items() if getattr(data_config, name) is None}
    data_config = replace(data_config, **found)
    suggested_model, suggested_training = suggest(model, facts)
    suggested_model = fitting_heads(suggested_model, given["model"])
    most = given["training"].get("most_parameters", 0)
    if most and row.learns_by == "gradients":
        suggested_model = _small_enough(row, {**suggested_model, **given["model"]}, interface_of(vocab), most)
    if "context" in given["model"]:
        suggested_training["context"] = given["model"]["context"]
    if base is not None:
        suggested_model = vars(base.config.model)
        suggested_training["context"] = base.config.training.context
    model_config: Any = build(row.config, {**suggested_model, **given["model"]}, section="model", where=where)
    training = build(TrainingConfig, {**suggested_training, **given["training"]}, section="training", where=where)
    training = replace(training, threads=training.threads or torch.get_num_threads())
    if training.valid_tokens == 0 and len(stores["valid"]) > MAX_VALID_TOKENS:
        training = replace(training, valid_tokens=MAX_VALID_TOKENS)
    _check_context(model_config, training)
    data_config = replace(data_config, fingerprint=data.fingerprint, description=data.description)
    if vocab.tokenizer is not None:
        tokenizer_config = replace(tokenizer_config, kind=vocab.tokenizer.kind)  # type: ignore[arg-type]
    config = RunConfig(model, data_config, tokenizer_config, model_config, training, task=chosen_task.name)
    built = row.build(model_config, interface_of(vocab))  # what does not fit is told before anything is written
    if row.learns_by == "gradients":
        check_memory(
            least_training_bytes(num_parameters(built), model_config, training, len(stores["train"])),
            f"training {num_parameters(built):,} weights, {training.batch_size} x {training.context} steps at a time,",
            "Choose a smaller model.model_dim, training.batch_size or training.context, or compute batches in parts: "
            "training.micro_batches.",
        )
    tell(sizes_in_words(config))
    weights = None
    if base is not None:
        weights = base.load_model().state_dict()
        try:
            load_weights(row.build(model_config, interface_of(vocab)), weights, base.path)
        except CheckpointError:
            changed = ", ".join(f"model.{name} = {value}" for name, value in given["model"].items())
            raise ConfigError(f"{start_from} has weights of other shapes than {changed}; drop that setting.") from None
    return Session(Run.create(out, config, vocab, initial_weights=weights), chosen_task, data, stores)


def _small_enough(row: Family, settings: dict[str, Any], interface: Interface, most: int) -> dict[str, Any]:
    """The settings, narrower by steps until the model has at most so many parameters."""
    while num_parameters(row.build(row.config(**settings), interface)) > most:
        narrower = narrowed(settings)
        if narrower is None:
            raise ConfigError(f"even the narrowest network has more than {most:,} parameters here; allow more.")
        settings = narrower
    return settings


def is_em(config: RunConfig) -> bool:
    return family(config.model_name).learns_by == "em"


def is_over(progress: dict[str, Any], config: RunConfig) -> bool:
    """Whether there is nothing left to train. EM says so itself: it may end before all its iterations."""
    return bool(progress["is_stopped"]) or (not is_em(config) and progress["step"] >= config.training.steps)


def _choose_task(asked: str | None, sources: list[str], columns: Sequence[str], model: str) -> Task:
    found = task_named(task_for(asked, sources, columns))
    if found.name not in family(model).tasks:
        others = ", ".join(name for name, row in MODELS.items() if found.name in row.tasks)
        raise ConfigError(
            f"{sources[0]} is taken for {found.name} ({found.title}), which {model} does not do. "
            f"Families that do: {others}."
        )
    return found


def resume(
    out: Path,
    *,
    asked: dict[str, Any] | None = None,
    tell: Tell = lambda _: None,
    advance: Advance = lambda *_: None,
) -> Session:
    """Go on with a run from its newest whole checkpoint. What was asked for must be what the run was made with.

    Data that was moved may be named by its new place.
    """
    run = Run.open(out)
    asked = dict(asked or {})
    data_config = moved_data(run, asked)
    check_same(run, asked)
    check_present(run, data_config, f"seqwise train NEWPATH --resume --out {out}")
    task = task_named(run.config.task)
    data = task.open(data_config)
    if data.fingerprint != run.config.data.fingerprint:
        changed = "has changed since" if data_config == run.config.data else "does not hold the same"
        raise CheckpointError(
            f"{out} was trained on other data: {', '.join(data_config.source)} {changed} "
            f"(sha256 {data.fingerprint[:12]}…, was {run.config.data.fingerprint[:12]}…). "
            "Restore the data, or train a new run with another --out."
        )
    if data_config != run.config.data:
        run.save_config(replace(run.config, data=data_config))
        tell(f"{', '.join(data_config.source)} holds the data of {out}, and is read from now on")
    config = run.config
    checkpoint, notes = run.latest_checkpoint()
    for note in notes:
        tell(note)
    if checkpoint is None:
        tell(f"{out}: no checkpoint yet; starting from the first step")
        run.cut_log(0)
    else:
        what = "trained to the end already, at" if is_over(checkpoint.progress, config) else "going on from"
        steps = config.training.steps * (config.training.restarts if is_em(config) else 1)
        tell(f"{out}: {what} step {checkpoint.step:,} of {steps:,}")
        if not run.cut_log(int(checkpoint.progress["log_length"])):
            tell(f"{out / 'log.jsonl'} has lost its end: some reports before step {checkpoint.step:,} are missing")
        if config.training.threads and config.training.threads != torch.get_num_threads():
            tell(f"using {counted(config.training.threads, 'thread')} as before, so that the numbers are the same")
        if config.torch != torch.__version__:
            tell(f"begun with torch {config.torch}, going on with {torch.__version__}: the numbers may differ slightly")
    return Session(run, task, data, task.stores(data, run.vocab, advance), checkpoint)


def choose_device(name: str) -> torch.device:
    if name != "auto":
        try:
            return torch.empty(0, device=name).device
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(
                f"device {name} cannot be used here ({str(error).splitlines()[0]}). Try --device cpu."
            ) from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _check_context(model_config: Any, training: TrainingConfig) -> None:
    limit = getattr(model_config, "context", None)
    if limit is not None and training.context > limit:
        raise ConfigError(
            f"training.context = {training.context} is longer than model.context = {limit}. "
            f"Set model.context={training.context}, or a shorter training.context."
        )


SHOWN = (
    *("smoothing", "order", "num_states", "state_dim", "window", "cell", "attention", "num_layers", "model_dim"),
    *("num_heads", "kernel_size"),
    *("context", "dropout", "pooling"),
)


def sizes_in_words(config: RunConfig) -> str:
    left_out = () if config.task == "label" else ("pooling",)
    model = ", ".join(
        f"{name} {getattr(config.model, name)}"
        for name in SHOWN
        if hasattr(config.model, name) and name not in left_out
    )
    if family(config.model_name).learns_by != "gradients":
        return f"{config.model_name}: {model}"
    t = config.training
    rows = f"{t.batch_tokens:,} tokens a side" if t.batch_tokens else f"{t.batch_size} x {t.context} steps"
    return f"{config.model_name}: {model}; {t.optimizer}, rate {t.learning_rate:g}, batches of {rows}"
