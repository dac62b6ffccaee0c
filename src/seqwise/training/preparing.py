"""From what is asked for to a run folder that is ready to learn: the data read and encoded, the sizes chosen.

session = prepare(Request.of("poems.txt", model="lstm", out="runs/poems", minutes=2))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..config import build, settings_of
from ..data.schema import ASKED_FOR, LABEL, LABELS, NUMBER, TAG, Schema, TokenSpec
from ..data.seen_store import SeenStore
from ..data.span_store import SpanStore
from ..data.text_examples import TextStore
from ..errors import CheckpointError, ConfigError
from ..goals import AnyGoal
from ..goals.goal import OnProgress, Tell
from ..machine import check_memory
from ..models import MODELS, Family, family, num_parameters
from ..models.adapters import adapt, is_adapted
from ..models.build import sees_all
from ..models.eyes import IMAGE, EyesConfig
from ..run import Run, RunConfig, check_free, load_weights
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..tasks import ALSO_READ_AS, Task, can_do, goal_of, task_for, task_named
from ..wording import counted
from .borrowed import Features
from .encoder import Encoder, seen_by_frozen_eyes
from .learners import LEARNERS, choose_device, freeze
from .overrides import BUDGETS, check_overrides, check_present, check_same, moved_data
from .request import Request
from .session import Session, learner_of
from .sizing import DEFAULT_MINUTES, fitting_heads, min_training_bytes, narrowed, suggest
from .transfer import Transfer, transfer
from .tuning import check_lengths, in_words, own_weights, rule_for, with_base
from .word_vectors import StartVectors

MAX_VALID_TOKENS = 250_000  # for a validation while training


def prepare(
    request: Request,
    *,
    schema: Schema | None = None,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
) -> Session:
    """Check everything, encode the data, choose the sizes, and create the run folder. Nothing is written before.

    `schema` is one that was learned from this data already.
    """
    request = request.checked()
    check_free(request.out)
    row, base = family(request.model), _base_of(request)
    task = choose_task(request)
    settings = _checked_settings(request, row, task)
    data_config = build(DataConfig, settings["data"], section="data", where=request.where)
    tokenizer = build(TokenizerConfig, settings["tokenizer"], section="tokenizer", where=request.where)

    data = task.open(data_config)
    for sentence in (data.description, *data.notes):
        tell(sentence)
    schema = schema or task.schema(data, tokenizer, tell, base.schema if base is not None else None)
    check_does(request.model, schema, data.name)
    _fill_in_budget(settings["training"], row, base, schema)
    features = Features.of(path) if (path := settings["model"].get("features")) else None
    if features is not None:
        schema, settings["model"] = features.spelled(schema), {**settings["model"], **features.settings()}
    encoder = None
    if path := settings["model"].get("encoder"):
        encoder = Encoder.of(path, settings["model"].get("encoder_stride", ENCODER_STRIDE))
        schema, settings["model"] = encoder.seen(schema), {**settings["model"], **encoder.settings()}
    vectors = StartVectors.of(path) if (path := settings["model"].get("embeddings")) else None
    schema = schema if vectors is None else vectors.known(schema, tell)
    stores = task.stores(data, schema, on_progress)
    if not can_learn(request.model, schema, stores["train"]):
        raise ConfigError(f"{data.name} is no text, and {request.model} labels texts only; choose another --model.")
    sized = _choose_sizes(request, settings, base, vectors, schema, goal_of(task, schema), data, stores)
    found = {name: value for name, value in sized.data.items() if getattr(data_config, name) in (None, [])}
    data_config = replace(data_config, **found, fingerprint=data.fingerprint, description=data.description)
    if isinstance(schema.main_spec, TokenSpec):
        tokenizer = replace(tokenizer, kind=schema.main_spec.tokenizer.kind)  # type: ignore[arg-type]
    config = RunConfig(request.model, data_config, tokenizer, sized.model, sized.training, task=task.name)
    _check_fits(row, config, schema, len(stores["train"]))
    tell(sizes_in_words(config, schema))
    if tuned := in_words(config, schema):
        tell(tuned)
    weights = _initial_weights(base, (features, encoder), vectors, config, schema, settings["model"], tell)
    stores = limited(stores, config.training)
    run = Run.create(request.out, config, schema, initial_weights=weights)
    return Session(run, task, data, seen_by_frozen_eyes(run, stores, on_progress))


def _initial_weights(
    base: Run | None,
    borrowed: tuple[Features | None, Encoder | None],
    vectors: StartVectors | None,
    config: RunConfig,
    schema: Schema,
    asked: dict[str, Any],
    tell: Tell,
) -> dict[str, Tensor] | None:
    """What training starts from instead of chance; None where that is all."""
    weights = None
    if base is not None:
        moved = transferred(base, config, schema, asked)
        weights = own_weights(moved, schema) if is_adapted(config.model) else moved.weights
        if moved.started or moved.grown:
            for sentence in moved.sentences():
                tell(sentence)
    features, encoder = borrowed
    if features is None and encoder is None and vectors is None:
        return weights
    torch.manual_seed(config.training.seed)
    model = family(config.model_name).build(config.model, schema)
    if vectors is not None:
        weights = vectors.filled_in(model, weights, schema)
    if features is not None:
        weights = features.filled_in(model, weights)
        tell(f"features: the layers of {features.path} are read beside each word, and stay as they are")
    if encoder is not None:
        weights = encoder.filled_in(model, weights)
        tell(encoder.in_words(config.model))
    return weights


def limited(stores: dict[str, Any], config: TrainingConfig) -> dict[str, Any]:
    """With as many rows of the training part as were asked for."""
    if not config.train_examples:
        return stores
    if not isinstance(stores["train"], TextStore | SpanStore | SeenStore):
        raise ConfigError(
            "training.train_examples goes with pictures, and texts that have labels, tags or questions; drop it."
        )
    return {**stores, "train": stores["train"].sample(config.train_examples, config.seed)}


def choose_task(request: Request) -> Task:
    """The task that was asked for, or that the data is taken for; the family must do it."""
    found = task_named(task_for(request.task, request.source, request.columns or ()))
    if request.task is None and not can_do(family(request.model), found):
        others = [task_named(name) for name in ALSO_READ_AS.get(found.name, ())]
        found = next((other for other in others if can_do(family(request.model), other)), found)
    doing = [name for name, row in MODELS.items() if can_do(row, found)]
    if request.model not in doing:
        raise ConfigError(
            f"{request.source[0]} is taken for {found.name} ({found.title}), which {request.model} does not do. "
            f"Families that do: {', '.join(doing)}."
        )
    if request.season is not None and "season" not in found.options:
        raise ConfigError(f"--season goes with numbers, and this is taken for {found.name}; drop it.")
    return found


def _base_of(request: Request) -> Run | None:
    if request.start_from is None:
        return None
    base = Run.open(request.start_from)
    if base.config.model_name not in (request.model, *family(request.model).starts_from):
        raise ConfigError(
            f"{base.path} is a {base.config.model_name} model; --model {request.model} cannot start from it."
        )
    if request.tokenizer is not None:
        raise ConfigError(f"--from {base.path} brings its own tokenizer; drop --tokenizer.")
    return base


def _checked_settings(request: Request, row: Family, task: Task) -> dict[str, dict[str, Any]]:
    """What was set, by section, with the mistakes told that can be told before the data is read."""
    learners = [LEARNERS[row.learns[kind]] for kind in task.kinds if kind in row.learns]
    for learner in learners:
        learner.check_budget(request.model, request.epochs)
    settings = request.settings()
    check_overrides(settings, row.config, request.where)
    if settings["tokenizer"].get("kind", row.tokenizer.get("kind")) == row.tokenizer.get("kind"):
        settings["tokenizer"] = {**row.tokenizer, **settings["tokenizer"]}
    choose_device(build(TrainingConfig, settings["training"], section="training", where=request.where).device)
    return settings


def _fill_in_budget(training: dict[str, Any], row: Family, base: Run | None, schema: Schema) -> None:
    """Minutes, where nothing was asked for; what is fine-tuned has its own number of epochs."""
    is_open = LEARNERS[row.learns[schema.kind]].needs_budget and not set(BUDGETS) & set(training)
    if is_open and rule_for(base, schema) is None:
        training["minutes"] = DEFAULT_MINUTES


def check_does(model: str, schema: Schema, name: str) -> None:
    """Refuse a family that does not answer what this very data asks for."""
    if not family(model).fits(schema):
        doing = [other for other, row in MODELS.items() if row.fits(schema)]
        asked = " and ".join(ASKED_FOR[kind] for kind in schema.kinds)
        raise ConfigError(
            f"{name} asks for {asked}, which {model} does not answer. Families that do: {', '.join(doing)}."
        )


def can_learn(model: str, schema: Schema, store: object) -> bool:
    """Families that count to answer for a whole sequence do so of texts, and of no other examples."""
    learns_by = family(model).learns[schema.kind]
    return learns_by != "counting" or schema.kind not in (LABEL, LABELS, NUMBER, TAG) or isinstance(store, TextStore)


@dataclass(frozen=True)
class _Sized:
    model: Any
    training: TrainingConfig
    data: dict[str, Any]
    """Settings of the section data that were found in the training part."""


def _choose_sizes(
    request: Request,
    settings: dict[str, dict[str, Any]],
    base: Run | None,
    vectors: StartVectors | None,
    schema: Schema,
    goal: AnyGoal,
    data: Any,
    stores: dict[str, Any],
) -> _Sized:
    """Sizes by rule, over them those of the run that is started from, over those what was set."""
    row = family(request.model)
    asked = row.filled_in(settings["model"])
    facts = goal.facts(data, stores["train"], schema, settings["training"].get("minutes"))
    model, training = suggest(request.model, schema.kind, facts)
    model = fitting_heads(model, asked)
    if vectors is not None:
        asked = {
            **vectors.settings(settings_of(row.config), {**model, **asked}),
            **asked,
            "embeddings": str(vectors.path),
        }
    limit = settings["training"].get("max_parameters", 0)
    if limit and row.learns[schema.kind] == "gradients":
        model = _small_enough(row, {**model, **asked}, schema, limit)
    if "context" in asked:
        training["context"] = asked["context"]
    if base is not None:
        rule = rule_for(base, schema)
        rows = min(len(stores["train"]), settings["training"].get("train_examples") or len(stores["train"]))
        tuning = None if rule is None else rule(base, rows)
        has_adapter = asked.get("adapter", "none") != "none"
        of_eyes: dict[str, Any] = {name: model[name] for name in ("widths", "eye_stride") if name in model}
        model, training = with_base(base, (model, training), schema, tuning, has_adapter=has_adapter)
        if base.config.model_name != request.model:  # which had no eyes
            model |= of_eyes
        training |= {"start": str(base.path.resolve()), "start_fingerprint": base.fingerprint}
        training = {name: value for name, value in training.items() if not _is_set(name, settings["training"])}
    model_config: Any = build(row.config, {**model, **asked}, section="model", where=request.where)
    chosen = build(TrainingConfig, {**training, **settings["training"]}, section="training", where=request.where)
    if chosen.minutes is None or row.learns[schema.kind] != "gradients":  # else it is found by trying
        chosen = replace(chosen, threads=chosen.threads or torch.get_num_threads())
    if chosen.valid_tokens == 0 and len(stores["valid"]) > MAX_VALID_TOKENS:
        chosen = replace(chosen, valid_tokens=MAX_VALID_TOKENS)
    _check_context(model_config, chosen)
    if base is None and is_adapted(model_config):
        raise ConfigError("model.adapter is learned beside a body that knows something already: name it with --from.")
    if base is not None:
        check_lengths(base, model_config, stores, data.name)
    return _Sized(model_config, chosen, facts.data)


def _is_set(name: str, asked: dict[str, Any]) -> bool:
    """Whether something that was asked for stands in the place of this setting: another budget, another warm-up."""
    instead = {"epochs": BUDGETS, "warmup_share": ("warmup_steps",)}
    return bool(set(instead.get(name, ())) & set(asked))


def _small_enough(row: Family, settings: dict[str, Any], schema: Schema, limit: int) -> dict[str, Any]:
    """The settings, narrower by steps until the model has at most so many parameters."""
    while num_parameters(row.build(row.config(**settings), schema)) > limit:
        narrower = narrowed(settings)
        if narrower is None:
            raise ConfigError(f"even the narrowest network has more than {limit:,} parameters here; allow more.")
        settings = narrower
    return settings


def _check_fits(row: Family, config: RunConfig, schema: Schema, train_tokens: int) -> None:
    """What does not fit into memory, or names no weight, is told before anything is written."""
    built, training = row.build(config.model, schema), config.training
    if row.learns[schema.kind] != "gradients":
        return
    check_memory(
        min_training_bytes(num_parameters(built), config.model, training, train_tokens),
        f"training {num_parameters(built):,} weights, {training.batch_size} x {training.context} steps at a time,",
        "Choose a smaller model.model_dim, training.batch_size or training.context, or compute batches in parts: "
        "training.micro_batches.",
    )
    if is_adapted(config.model):
        adapt(built, config.model, [name for name, _ in built.named_parameters() if name.startswith("head.")])
    freeze(built, training.freeze)


def transferred(base: Run, config: RunConfig, schema: Schema, asked: dict[str, Any]) -> Transfer:
    """The weights of the base as the new run takes them over; what starts anew starts by the run's seed."""
    torch.manual_seed(config.training.seed)
    model = family(config.model_name).build(config.model, schema)
    weights = family(config.model_name).named_here(base.config.model_name, base.load_model().state_dict())
    is_part = base.config.model_name != config.model_name  # what surrounds it starts anew, whatever was asked for
    changed = "" if is_part else ", ".join(f"model.{name} = {value}" for name, value in asked.items())
    if isinstance(model, torch.nn.Module):
        return transfer(weights, base.schema, model, schema, where=str(base.path), changed=changed)
    try:
        load_weights(model, weights, base.path)
    except CheckpointError:  # tables are taken over whole
        other, advice = (changed, "drop that setting") if changed else ("this data", "train without --from")
        raise ConfigError(f"{base.path} has other tables than {other} asks for; {advice}.") from None
    return Transfer(weights, list(weights), [], [], [])


def resume(
    out: Path,
    *,
    asked: dict[str, Any] | None = None,
    tell: Tell = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
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
    checkpoint, notes = run.latest_checkpoint()
    for sentence in notes:
        tell(sentence)
    if checkpoint is None:
        tell(f"{out}: no checkpoint yet; starting from the first step")
        run.cut_log(0)
    else:
        _go_back(run, checkpoint.step, checkpoint.progress, tell)
    stores = limited(task.stores(data, run.schema, on_progress), run.config.training)
    stores = seen_by_frozen_eyes(run, stores, on_progress)
    return Session(run, task, data, stores, checkpoint)


def _go_back(run: Run, step: int, progress: dict[str, Any], tell: Tell) -> None:
    """The log as it was at a checkpoint; what may differ from then on is told."""
    config, learner = run.config, learner_of(run)
    what = "trained to the end already, at" if learner.is_over(progress, config) else "going on from"
    tell(f"{run.path}: {what} step {step:,} of {learner.steps(config):,}")
    if not run.cut_log(int(progress["log_length"])):
        tell(f"{run.path / 'log.jsonl'} has lost its end: some reports before step {step:,} are missing")
    if config.training.threads and config.training.threads != torch.get_num_threads():
        tell(f"using {counted(config.training.threads, 'thread')} as before, so that the numbers are the same")
    if config.torch != torch.__version__:
        tell(f"begun with torch {config.torch}, going on with {torch.__version__}: the numbers may differ slightly")


def _check_context(model_config: Any, training: TrainingConfig) -> None:
    limit = vars(model_config).get("context")
    if limit is not None and training.context > limit:
        raise ConfigError(
            f"training.context = {training.context} is longer than model.context = {limit}. "
            f"Set model.context={training.context}, or a shorter training.context."
        )


OWN_EYES = ("widths", "blocks_per_stage", "eye_stride")
SHOWN_OF_PICTURES = ("dropout", "label_smoothing", "pooling")
ENCODER_STRIDE = EyesConfig().encoder_stride
SHOWN = (
    *("order", "num_states", "state_dim", "window", "cell", "attention", "num_layers", "model_dim"),
    *("num_heads", "kernel_size"),
    *("context", "dropout"),
)


def sizes_in_words(config: RunConfig, schema: Schema) -> str:
    settings = vars(config.model)
    shown: Sequence[str] = (
        ("method", *SHOWN, "pooling", "crf", "characters") if sees_all(schema) else ("smoothing", *SHOWN)
    )
    if IMAGE in schema.inputs:
        shown = ("encoder", *SHOWN_OF_PICTURES) if settings.get("encoder") else (*OWN_EYES, *SHOWN_OF_PICTURES)
    values = {name: settings[name] for name in shown if name in settings}
    values |= {name: "by validation" for name in ("order", "num_states") if values.get(name) == 0}
    model = ", ".join(f"{name} {value}" for name, value in values.items())
    if family(config.model_name).learns[schema.kind] != "gradients":
        return f"{config.model_name}: {model}"
    t = config.training
    rows = f"{t.batch_tokens:,} tokens a side" if t.batch_tokens else f"{t.batch_size} x {t.context} steps"
    rows = f"{t.batch_size} pictures" if IMAGE in schema.inputs else rows
    return f"{config.model_name}: {model}; {t.optimizer}, rate {t.learning_rate:g}, batches of {rows}"
