"""From data and settings to a trained run folder: prepare everything, then hand out the stream of reports.

session = prepare("poems.txt", model="lstm", out=Path("runs/poems"), minutes=2)
for report in session.reports():
    ...
session.score        # of the best model on the whole validation part
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from ..config import build
from ..data.batches import Streams, Windows
from ..data.source import TextData, open_text
from ..data.store import TokenStore, build_store
from ..decoding import DecodingConfig, generate
from ..errors import CheckpointError, ConfigError
from ..evaluation.likelihood import Score, evaluate
from ..models import family
from ..run import Checkpoint, Run, RunConfig, check_free, interface_of, load_weights
from ..settings import DataConfig, TokenizerConfig, TrainingConfig
from ..text import UNKNOWN_WORD, Tokenizer, train_tokenizer, whole_blocks
from .card import write_card
from .counting import count
from .given import BUDGETS, absolute, check_given, check_same, given_settings
from .loop import BatchSource, Hooks, train
from .optimizers import build_optimizers
from .report import Report
from .sizing import DEFAULT_MINUTES, Facts, choose_tokenizer, suggest

BPE_CHARACTERS = 50_000_000  # as many are enough to choose byte pairs by
TRAINING_SHARE = 0.9  # of a budget in minutes; the rest is validation, samples and checkpoints
MOST_VALID_TOKENS = 250_000  # for a validation while training
MOST_FINAL_TOKENS = 1_000_000  # for the one at the end; `seqwise evaluate` scores all
VALIDATION_SHARE = 0.006  # of a budget, for each of about ten validations

Tell = Callable[[str], None]
"""Told a sentence on each thing that was decided, found or begun."""
Advance = Callable[[str, int, int], None]
"""Told (what, done, of how many) while data is prepared."""


@dataclass
class Session:
    """A run that is ready to train, from the start or from its last checkpoint."""

    run: Run
    data: TextData
    stores: dict[str, TokenStore]
    resume_from: Checkpoint | None = None
    score: Score | None = None
    """Of the best model on the validation part (a million tokens of it at most), once training is over."""
    is_interrupted: bool = False

    def reports(
        self, *, wants_stop: Callable[[], bool] = lambda: False, tell: Tell = lambda _: None
    ) -> Iterator[Report]:
        """Train to the end (or until `wants_stop`), writing the log, checkpoints, best model and card on the way."""
        config = self.run.config.training
        if config.threads:
            torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        model = self.run.build_model()
        self.run.load_initial_weights(model)
        if family(self.run.config.model_name).learns_by == "counting":
            reports = count(model, self.stores["train"], self._hooks(model, wants_stop))
        else:
            model.to(choose_device(config.device))
            if config.steps == 0:
                self._plan_steps(model, tell)
            reports = train(
                model,
                self._batches(model),
                self.run.config.training,
                hooks=self._hooks(model, wants_stop),
                resume=self.resume_from,
            )
        last = None
        for last in reports:
            self.run.append_log(last.to_dict())
            yield last
        self.is_interrupted = wants_stop() and (last is None or last.step < self.run.config.training.steps)
        if not self.is_interrupted:
            best = self.run.load_model()
            valid = self.stores["valid"].first(MOST_FINAL_TOKENS)
            scored = about(self.run, f"valid:{self.data.fingerprint[:8]}:{valid.num_tokens}")
            self.score = evaluate(best, valid, about=scored)
            self.run.save_card(write_card(self.run, best, self.score))

    def _batches(self, model: Any) -> Streams | Windows:
        config = self.run.config.training
        common = {"context": config.context, "batch_size": config.batch_size, "seed": config.seed}
        if model.carries_state:
            return Streams(self.stores["train"], **common)
        return Windows(self.stores["train"], stride=config.stride, **common)

    def _plan_steps(self, model: torch.nn.Module, tell: Tell) -> None:
        """Turn a budget in minutes or epochs into steps, once; from then on they are a setting of the run."""
        config = self.run.config.training
        batches = self._batches(model)
        if config.epochs is not None:
            self.run.save_config(self.run.with_training(steps=max(1, round(config.epochs * batches.steps_per_epoch))))
            return
        seconds = (config.minutes or DEFAULT_MINUTES) * 60
        per_step = seconds_per_step(model, batches, config, longest=0.04 * seconds)
        steps = max(10, int(TRAINING_SHARE * seconds / per_step))
        tokens_per_step = batches.batch(0).counts()["tokens"]
        # scoring costs about a third of training on as many tokens
        affordable = int(VALIDATION_SHARE * seconds * 3 * tokens_per_step / per_step)
        changes = {"steps": steps}
        if affordable < (config.valid_tokens or self.stores["valid"].num_tokens):
            changes["valid_tokens"] = max(4096, affordable)
        self.run.save_config(self.run.with_training(**changes))
        epochs = steps / batches.steps_per_epoch
        tell(
            f"{steps:,} steps of {tokens_per_step:,} tokens fit {seconds / 60:g} minutes ({epochs:.2g} times the text)"
        )

    def _hooks(self, model: Any, wants_stop: Callable[[], bool]) -> Hooks:
        config, run = self.run.config.training, self.run
        valid = self.stores["valid"].first(config.valid_tokens or None)
        decoding = DecodingConfig(max_tokens=config.sample_tokens, seed=config.seed, temperature=0.8)

        def validate() -> float:
            return evaluate(model, valid).nats_per_token

        def sample() -> str:
            was_training = getattr(model, "training", False)
            if was_training:
                model.eval()
            tokens = generate(model, [[run.tokenizer.boundary]], decoding)[0][0].tokens
            if was_training:
                model.train()
            return run.tokenizer.decode(tokens)

        def checkpoint(saved: Checkpoint) -> None:
            progress = {**saved.progress, "log_length": run.log_length()}
            run.save_checkpoint(replace(saved, progress=progress))

        return Hooks(validate, sample, lambda: run.save_model(model), checkpoint, wants_stop)


def prepare(
    source: str | Path | Sequence[str | Path],
    *,
    model: str,
    out: Path,
    minutes: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    tokenizer: str | None = None,
    valid: str | None = None,
    test: str | None = None,
    split: str | None = None,
    seed: int | None = None,
    config_file: Path | None = None,
    overrides: Sequence[str] = (),
    start_from: Path | None = None,
    tell: Tell = lambda _: None,
    advance: Advance = lambda *_: None,
) -> Session:
    """Check everything, encode the data, choose the sizes, and create the run folder. Nothing is written before."""
    if sum(budget is not None for budget in (minutes, steps, epochs)) > 1:
        raise ConfigError("give one budget: --minutes, --steps or --epochs.")
    check_free(out)
    row = family(model)
    base = Run.open(start_from) if start_from is not None else None
    if base is not None and base.config.model_name != model:
        raise ConfigError(f"{start_from} is a {base.config.model_name} model; --model {model} cannot start from it.")
    if base is not None and tokenizer is not None:
        raise ConfigError(f"--from {start_from} brings its own tokenizer; drop --tokenizer.")
    where = str(config_file) if config_file else "--set"
    sources = [absolute(s) for s in ([source] if isinstance(source, str | Path) else source)]
    options: dict[str, dict[str, Any]] = {
        "data": {
            "source": sources,
            "valid": valid and absolute(valid),
            "test": test and absolute(test),
            "split": split,
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

    data = open_text(sources if len(sources) > 1 else sources[0], **_data_options(data_config))
    tell(data.description)
    made = base.tokenizer if base is not None else _make_tokenizer(tokenizer_config, data, tell)
    stores = encode(data, made, advance)
    for part, store in stores.items():
        if store.num_tokens < 2:
            raise ConfigError(f"{data.name}: the {part} part has {store.num_tokens} tokens; give more text.")
    facts = Facts(stores["train"].num_tokens, made.vocab_size, made.kind, given["training"].get("minutes"))
    suggested_model, suggested_training = suggest(model, facts)
    if "context" in given["model"]:
        suggested_training["context"] = given["model"]["context"]
    if base is not None:
        suggested_model = vars(base.config.model)
        suggested_training["context"] = base.config.training.context
    model_values = {**suggested_model, **given["model"]}
    model_config: Any = build(row.config, model_values, section="model", where=where)
    training = build(TrainingConfig, {**suggested_training, **given["training"]}, section="training", where=where)
    training = replace(training, threads=training.threads or torch.get_num_threads())
    if training.valid_tokens == 0 and stores["valid"].num_tokens > MOST_VALID_TOKENS:
        training = replace(training, valid_tokens=MOST_VALID_TOKENS)
    _check_context(model_config, training)
    data_config = replace(data_config, fingerprint=data.fingerprint, description=data.description)
    tokenizer_config = replace(tokenizer_config, kind=made.kind)  # type: ignore[arg-type]
    config = RunConfig(model, data_config, tokenizer_config, model_config, training)
    tell(_sizes(config))
    weights = None
    if base is not None:
        weights = base.load_model().state_dict()
        try:
            load_weights(row.build(model_config, interface_of(made)), weights, base.path)
        except CheckpointError:
            changed = ", ".join(f"model.{name} = {value}" for name, value in given["model"].items())
            raise ConfigError(f"{start_from} has weights of other shapes than {changed}; drop that setting.") from None
    return Session(Run.create(out, config, made, initial_weights=weights), data, stores)


def resume(
    out: Path,
    *,
    asked: dict[str, Any] | None = None,
    tell: Tell = lambda _: None,
    advance: Advance = lambda *_: None,
) -> Session:
    """Go on with a run from its newest whole checkpoint. What was asked for must be what the run was made with."""
    run = Run.open(out)
    config = run.config
    check_same(run, asked or {})
    sources = config.data.source
    data = open_text(sources if len(sources) > 1 else sources[0], **_data_options(config.data))
    if data.fingerprint != config.data.fingerprint:
        raise CheckpointError(
            f"{out} was trained on other data: {', '.join(sources)} has changed since "
            f"(sha256 {data.fingerprint[:12]}…, was {config.data.fingerprint[:12]}…). "
            "Restore the data, or train a new run with another --out."
        )
    checkpoint, notes = run.latest_checkpoint()
    for note in notes:
        tell(note)
    if checkpoint is None:
        tell(f"{out}: no checkpoint yet; starting from the first step")
        run.cut_log(0)
    else:
        is_over = checkpoint.step >= config.training.steps or checkpoint.progress["is_stopped"]
        what = "trained to the end already, at" if is_over else "going on from"
        tell(f"{out}: {what} step {checkpoint.step:,} of {config.training.steps:,}")
        run.cut_log(int(checkpoint.progress["log_length"]))
        if config.training.threads and config.training.threads != torch.get_num_threads():
            tell(f"using {config.training.threads} threads as before, so that the numbers are the same")
        if config.torch != torch.__version__:
            tell(f"begun with torch {config.torch}, going on with {torch.__version__}: the numbers may differ slightly")
    return Session(run, data, encode(data, run.tokenizer, advance), checkpoint)


def encode(data: TextData, tokenizer: Tokenizer, advance: Advance = lambda *_: None) -> dict[str, TokenStore]:
    """The parts of the data as token stores, from the cache where they are known."""
    stores = {}
    for part in data.parts:
        done = 0

        def progress(num_chars: int, part: str = part) -> None:
            nonlocal done
            done += num_chars
            advance(f"encoding {part}", done, data.characters[part])

        stores[part] = build_store(data, part, tokenizer, progress=progress)
    return stores


def about(run: Run, scored: str) -> str:
    """What a score's signature says of the text, named with the beginning of its fingerprint, and of the tokenizer."""
    return f"{scored}|tokenizer={run.config.tokenizer.kind}:{run.tokenizer.vocab_size}"


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


def seconds_per_step(model: torch.nn.Module, batches: BatchSource, config: TrainingConfig, *, longest: float) -> float:
    """The time of a training step, measured on a copy of the model that is thrown away."""
    trial = copy.deepcopy(model).train()
    random_state = torch.get_rng_state()
    optimizers = build_optimizers(trial, config)
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 4 or (len(times) < 24 and time.perf_counter() - began < longest):
        start = time.perf_counter()
        batch = batches.batch(len(times)).to(next(trial.parameters()).device)
        trial.loss(batch).over(batch.counts()).backward()  # type: ignore[operator]
        torch.nn.utils.clip_grad_norm_(trial.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    torch.set_rng_state(random_state)
    return statistics.median(times[2:])  # the first ones allocate


def _data_options(config: DataConfig) -> dict[str, str | None]:
    return {"valid": config.valid, "test": config.test, "split": config.split}


def _make_tokenizer(config: TokenizerConfig, data: TextData, tell: Tell) -> Tokenizer:
    train_part = data.parts["train"]
    kind: str = config.kind
    why = "as asked"
    if kind == "auto":
        beginning = next(iter(train_part.blocks()))
        kind, why = choose_tokenizer(data.characters["train"], has_unknown_words=UNKNOWN_WORD in beginning)
    options: dict[str, Any] = {"min_count": config.min_count} if config.min_count is not None else {}
    if kind in ("word", "bpe") and config.vocab_size is not None:
        options["vocab_size"] = config.vocab_size
    if kind == "word":
        options["lower_case"] = config.lower_case
    blocks: Iterator[str] = whole_blocks(train_part.blocks())
    if kind == "bpe":  # pairs of bytes are learned from a part of a long text, taken evenly
        blocks = islice(blocks, 0, None, -(-data.characters["train"] // BPE_CHARACTERS))
    made = train_tokenizer(kind, blocks, **options)
    names = {"char": "characters", "word": "words", "bpe": "byte pairs"}
    tell(f"tokenizer: {names[kind]}, {made.vocab_size:,} tokens ({why})")
    return made


def _check_context(model_config: Any, training: TrainingConfig) -> None:
    limit = getattr(model_config, "context", None)
    if limit is not None and training.context > limit:
        raise ConfigError(
            f"training.context = {training.context} is longer than model.context = {limit}. "
            f"Set model.context={training.context}, or a shorter training.context."
        )


def _sizes(config: RunConfig) -> str:
    shown = ("order", "num_layers", "model_dim", "num_heads", "context", "dropout")
    model = ", ".join(f"{name} {getattr(config.model, name)}" for name in shown if hasattr(config.model, name))
    if family(config.model_name).learns_by == "counting":
        return f"{config.model_name}: {model}"
    t = config.training
    return (
        f"{config.model_name}: {model}; {t.optimizer}, rate {t.learning_rate:g}, "
        f"batches of {t.batch_size} x {t.context} tokens"
    )
