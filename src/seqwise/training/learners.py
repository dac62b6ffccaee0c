"""The ways to learn, each a row of LEARNERS: how it turns a budget into a plan, and how it runs.

counting    one pass over the text (n-grams)
em          expectation and maximisation (hidden Markov models, Kalman filters)
gradients   the loop (everything else)
hogwild     many small steps in compiled loops, by threads that do not wait for each other (word2vec; Niu et al. 2011)

Which one a family learns by depends on what it is asked for (Family.learns).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import torch
from torch import nn

from ..errors import ConfigError
from ..goals.goal import Tell
from ..models import family
from ..models.contract import LearnsFromExamples
from ..models.ngram import Ngram
from ..models.word2vec import Word2Vec
from ..run import RunConfig
from ..wording import counted
from .counting import count, count_examples
from .em import LearnsByEM, expect_and_maximise
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
from .sizing import DEFAULT_MINUTES, suggest, tried_tokens
from .skip_gram import learn_vectors, num_workers, planned_steps
from .timing import compiled_loss

if TYPE_CHECKING:
    from .session import Session

WantsStop = Callable[[], bool]


M = TypeVar("M")


class Learner(Protocol[M]):
    needs_budget: bool
    """Whether it goes on until its budget is spent, so that there must be one."""

    def check_budget(self, model: str, epochs: float | None) -> None:
        """Refuse a budget that says nothing to it."""
        ...

    def plan(self, session: Session, model: M, wants_stop: WantsStop, tell: Tell) -> M:
        """Settle what the budget left open, in the run's settings; the model that begins to learn."""
        ...

    def run(self, session: Session, model: M, hooks: Hooks, tell: Tell) -> Iterator[Report]: ...
    def is_over(self, progress: dict[str, Any], config: RunConfig) -> bool:
        """Whether there is nothing left to learn."""
        ...

    def steps(self, config: RunConfig) -> int:
        """In all, at most."""
        ...

    def in_words(self, config: RunConfig) -> str:
        """For the card: "500 steps, seed 0"."""
        ...


class Counting:
    needs_budget = False

    def check_budget(self, model: str, epochs: float | None) -> None: ...

    def plan(self, session: Session, model: Any, wants_stop: WantsStop, tell: Tell) -> Any:
        if not isinstance(model, Ngram) or session.run.config.model.order:
            return model
        self._choose_order(session, tell)
        return session.run.build_model()

    def _choose_order(self, session: Session, tell: Tell) -> None:
        run = session.run
        config, settings, schema = run.config.training, run.config.model, run.schema
        facts = session.goal.facts(session.data, session.stores["train"], schema, None)
        first = suggest(run.config.model_name, schema.kind, facts)[0]["order"]
        ids, seconds = session.sequences(run.build_model())[0], 60 * (config.minutes or DEFAULT_MINUTES)
        if config.minutes is not None:
            limit = countable_tokens(Ngram(replace(settings, order=first), schema), ids, seconds=seconds)
            if limit < len(ids) - 1:
                tell(f"learns from the first {limit:,} of {len(ids) - 1:,} tokens, so that counting them fits")
                run.save_config(run.with_training(train_tokens=limit))
                ids = ids[: limit + 1]
        order = choose_order(
            settings,
            schema,
            ids,
            session.validate,
            first=first,
            max_parameters=config.max_parameters,
            seconds=seconds,
            tell=tell,
        )
        run.save_config(replace(run.config, model=replace(run.config.model, order=order)))

    def run(self, session: Session, model: Ngram | LearnsFromExamples, hooks: Hooks, tell: Tell) -> Iterator[Report]:
        if isinstance(model, LearnsFromExamples):
            seed, stores = session.run.config.training.seed, session.stores
            return count_examples(model, stores["train"], stores["valid"], hooks, seed=seed)
        return count(model, session.sequences(model)[0], hooks)

    def is_over(self, progress: dict[str, Any], config: RunConfig) -> bool:
        return bool(progress["is_stopped"]) or progress["step"] >= config.training.steps

    def steps(self, config: RunConfig) -> int:
        return config.training.steps

    def in_words(self, config: RunConfig) -> str:
        return "counted in one pass"


class EM:
    needs_budget = False

    def check_budget(self, model: str, epochs: float | None) -> None:
        if epochs is not None:
            raise ConfigError(f"{model} learns by EM: its budget is --minutes, or --steps, the iterations at most.")

    def plan(self, session: Session, model: LearnsByEM, wants_stop: WantsStop, tell: Tell) -> LearnsByEM:
        run = session.run
        if vars(run.config.model).get("num_states") == 0:
            session.has_start = True
            return self._choose_states(session, wants_stop, tell)
        if run.config.training.minutes is not None and session.resume_from is None:
            tried, store = run.build_model(), session.stores["train"]
            changes = plan_iterations(
                tried, lambda limit: session.sequences(tried, limit), len(store), run.config.training, tell
            )
            run.save_config(run.with_training(**changes))
        return model

    def _choose_states(self, session: Session, wants_stop: WantsStop, tell: Tell) -> LearnsByEM:
        """A model with as many hidden states as validate best, learned already; what is left is to end its learning."""
        run = session.run
        config, settings, row = run.config.training, run.config.model, family(run.config.model_name)
        seconds = 60 * (config.minutes or DEFAULT_MINUTES)
        began = time.perf_counter()

        def build(num_states: int) -> Any:
            return row.build(replace(settings, num_states=num_states), run.schema)

        whole, some = len(session.stores["train"]), tried_tokens(seconds)
        num_states, model, per_iteration = choose_states(
            build,
            session.sequences(build(1), some),
            config,
            session.validate,
            seconds=seconds,
            wants_stop=wants_stop,
            tell=tell,
        )
        left = max(0.0, seconds - (time.perf_counter() - began))
        tokens, iterations = tokens_and_iterations(left, per_iteration / min(some, whole), whole, min_tokens=some)
        changes = {
            "steps": min(config.steps or 1, iterations),
            "restarts": 1,
            "train_tokens": 0 if tokens == whole else tokens,
        }
        run.save_config(replace(run.with_training(**changes), model=replace(settings, num_states=num_states)))
        return model

    def run(self, session: Session, model: LearnsByEM, hooks: Hooks, tell: Tell) -> Iterator[Report]:
        return expect_and_maximise(
            model,
            session.sequences(model),
            session.run.config.training,
            hooks=hooks,
            resume=session.resume_from,
            has_start=session.has_start,
        )

    def is_over(self, progress: dict[str, Any], config: RunConfig) -> bool:
        """It says so itself: it may end before all its iterations."""
        return bool(progress["is_stopped"])

    def steps(self, config: RunConfig) -> int:
        return config.training.steps * config.training.restarts

    def in_words(self, config: RunConfig) -> str:
        training = config.training
        starts, iterations = counted(training.restarts, "start"), counted(training.steps, "iteration")
        return f"expectation and maximisation, {starts} of up to {iterations}, seed {training.seed}"


class Gradients:
    needs_budget = True

    def check_budget(self, model: str, epochs: float | None) -> None: ...

    def plan(self, session: Session, model: nn.Module, wants_stop: WantsStop, tell: Tell) -> nn.Module:
        """Turn a budget in minutes or epochs into steps, once; from then on they are a setting of the run."""
        run, config = session.run, session.run.config.training
        freeze(model, config.freeze)
        model.to(choose_device(config.device))
        if config.steps == 0:
            batches = session.goal.batches(session.stores["train"], model, config)
            if config.epochs is not None:
                changes: dict[str, Any] = {"steps": max(1, round(config.epochs * batches.steps_per_epoch))}
            else:
                changes = plan_steps(model, batches, config, len(session.stores["valid"]), tell)
            run.save_config(run.with_training(**changes))
        return model

    def run(self, session: Session, model: nn.Module, hooks: Hooks, tell: Tell) -> Iterator[Report]:
        run, config = session.run, session.run.config.training
        batches = session.goal.batches(session.stores["train"], model, config)
        objective = compiled_loss(model) if config.compile == "always" else None

        def plan_anew(step: int, seconds: float) -> int | None:
            config = run.config.training
            steps = planned_anew(step, seconds, config, batches.steps_per_epoch)
            if steps is not None:
                run.save_config(run.with_training(steps=steps))
                fitting = f"{counted(steps, 'step')} fit, instead of {config.steps:,}"
                tell(f"a step takes {seconds / step:.3f} s now: {fitting}")
            return steps

        if config.minutes is not None:
            hooks = replace(hooks, plan=plan_anew)
        return train(model, batches, config, objective=objective, hooks=hooks, resume=session.resume_from)

    def is_over(self, progress: dict[str, Any], config: RunConfig) -> bool:
        return bool(progress["is_stopped"]) or progress["step"] >= config.training.steps

    def steps(self, config: RunConfig) -> int:
        return config.training.steps

    def in_words(self, config: RunConfig) -> str:
        return f"{counted(config.training.steps, 'step')}, seed {config.training.seed}"


class Hogwild:
    needs_budget = False

    def check_budget(self, model: str, epochs: float | None) -> None: ...

    def plan(self, session: Session, model: Word2Vec, wants_stop: WantsStop, tell: Tell) -> Word2Vec:
        run, config = session.run, session.run.config.training
        if config.steps == 0:
            steps, sentence = planned_steps(model, self._text(session), config)
            run.save_config(run.with_training(steps=steps))
            tell(sentence)
        return model

    def run(self, session: Session, model: Word2Vec, hooks: Hooks, tell: Tell) -> Iterator[Report]:
        config = session.run.config.training
        return learn_vectors(model, self._text(session), config, hooks=hooks, resume=session.resume_from)

    def _text(self, session: Session) -> np.ndarray:
        """As it stands on disk: parts of it are read where they are needed."""
        store, limit = session.stores["train"], session.run.config.training.train_tokens
        return (session.goal.take(store, limit) if limit else store).ids

    def is_over(self, progress: dict[str, Any], config: RunConfig) -> bool:
        return bool(progress["is_stopped"]) or progress["step"] >= config.training.steps

    def steps(self, config: RunConfig) -> int:
        return config.training.steps

    def in_words(self, config: RunConfig) -> str:
        training, workers = config.training, num_workers(config.training)
        repeats = "to the bit" if workers == 1 else "not to the bit: set training.threads=1 for that"
        read = f"{counted(training.steps, 'part')} of the text read by {counted(workers, 'worker')}"
        return f"{read}, seed {training.seed}; repeats {repeats}"


AnyLearner = Learner[Any]
LEARNERS: dict[str, AnyLearner] = {
    "counting": Counting(),
    "em": EM(),
    "gradients": Gradients(),
    "hogwild": Hogwild(),
}


def freeze(model: nn.Module, patterns: list[str]) -> None:
    """Keep the weights whose names fit a pattern ("body.*") as they are."""
    for pattern in patterns:
        named = [weight for name, weight in model.named_parameters() if fnmatchcase(name, pattern)]
        if not named:
            known = sorted({".".join(name.split(".")[:2]) for name, _ in model.named_parameters()})
            raise ConfigError(
                f'training.freeze: "{pattern}" is the name of no weight. They begin with {", ".join(known)}; '
                'a star stands for the rest, as in "body.*".'
            )
        for weight in named:
            weight.requires_grad_(False)
    if patterns and not any(weight.requires_grad for weight in model.parameters()):
        raise ConfigError(f"training.freeze = {patterns} leaves nothing to train; freeze less.")


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
