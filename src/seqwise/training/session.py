"""A run that learns: the stream of its reports, and at the end its score and its card.

session = prepare(Request.of("poems.txt", model="lstm", out="runs/poems", minutes=2))
score = session.train()      # of the best model on the validation part
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from ..goals import AnyGoal
from ..goals.goal import ChoosesSettings, Score, Tell
from ..models import family
from ..models.contract import Model
from ..run import Checkpoint, Run
from ..tasks import Task, goal_of
from .averaging import WeightAverage
from .borrowed import features_in_words
from .card import write_card
from .learners import LEARNERS, AnyLearner, WantsStop
from .loop import Hooks
from .report import Report

MAX_FINAL_TOKENS = 1_000_000  # for the score at the end; `seqwise evaluate` scores all


@dataclass
class Session:
    """A run that is ready to train, from the start or from its last checkpoint."""

    run: Run
    task: Task
    data: Any
    stores: dict[str, Any]
    resume_from: Checkpoint | None = None
    score_with: Callable[[Model], Score] | None = None
    """Scores the best model at the end; without it, on the validation part."""
    score: Score | None = None
    """Of the best model on the validation part, once training is over."""
    is_interrupted: bool = False
    has_start: bool = False
    """Whether learning begins from what the model holds, and not from chance."""
    _progress: dict[str, Any] | None = None
    """Of the last checkpoint that was written."""

    @property
    def goal(self) -> AnyGoal:
        return goal_of(self.task, self.run.schema)

    @property
    def learner(self) -> AnyLearner:
        return learner_of(self.run)

    def train(
        self,
        on_report: Callable[[Report], None] = lambda _: None,
        *,
        wants_stop: WantsStop = lambda: False,
        tell: Tell = lambda _: None,
    ) -> Score | None:
        """Learn to the end, then score the best model and write the card; None where it was asked to stop."""
        for report in self.reports(wants_stop=wants_stop, tell=tell):
            on_report(report)
        return None if self.is_interrupted else self.finish(tell)

    def reports(self, *, wants_stop: WantsStop = lambda: False, tell: Tell = lambda _: None) -> Iterator[Report]:
        """Learn to the end (or until `wants_stop`), writing the log, checkpoints and the best model on the way."""
        config = self.run.config.training
        if config.threads:
            torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        model = self.run.build_model()
        self.has_start = self.run.load_initial_weights(model)
        model = self.learner.plan(self, model, wants_stop, tell)
        for report in self.learner.run(self, model, self._hooks(model, wants_stop), tell):
            self.run.append_log(report.to_dict())
            yield report
        is_over = self._progress is None or self.learner.is_over(self._progress, self.run.config)
        self.is_interrupted = wants_stop() and not is_over

    def finish(self, tell: Tell = lambda _: None) -> Score:
        """Score the best model, and write the card."""
        self._choose_settings(tell)
        best = self.run.load_model()
        self.score = self.score_with(best) if self.score_with else self._score(best, tell)
        for sentence in features_in_words(self.run, best):
            tell(sentence)
        self.run.save_card(write_card(self.run, best, self.score, self.learner.in_words(self.run.config)))
        return self.score

    def _choose_settings(self, tell: Tell) -> None:
        """Those that are left until learning is over, and that nobody set."""
        settings = self.run.config.model
        if not isinstance(self.goal, ChoosesSettings):
            return
        chosen = self.goal.chosen_settings(
            self.run.load_model(), self.goal.take(self.stores["valid"], MAX_FINAL_TOKENS)
        )
        chosen = {name: value for name, value in chosen.items() if getattr(settings, name) is None}
        if chosen:
            self.run.save_config(replace(self.run.config, model=replace(settings, **chosen)))
            told = ", ".join(f"model.{name} = {value}" for name, value in chosen.items())
            tell(f"{told}, chosen on the validation part")

    def _score(self, model: Model, tell: Tell) -> Score:
        valid = self.goal.take(self.stores["valid"], MAX_FINAL_TOKENS)
        scored = f"valid:{self.data.fingerprint[:8]}:{len(valid)}"
        self._tell_of_samples(len(valid), tell)
        return self.goal.score(model, valid, self.run.schema, self.run.config.data, scored=scored)

    def sequences(self, model: Model, limit: int = 0) -> list[Any]:
        """The training part, or its beginning, as counting and EM want it."""
        limit = limit or self.run.config.training.train_tokens
        store = self.stores["train"]
        return self.goal.sequences(self.goal.take(store, limit) if limit else store, model)

    def validate(self, model: Model) -> float:
        return self.goal.validate(model, self.stores["valid"], self.run.config.training.valid_tokens or None)

    def _tell_of_samples(self, num_scored: int, tell: Tell) -> None:
        """Why the last validation of the log and the score at the end are not the same number."""
        store, unit = self.stores["valid"], self.goal.unit
        seen = len(self.goal.validated(store, self.run.config.training.valid_tokens or None))
        if seen != num_scored:
            of = "all" if num_scored == len(store) else "the first"
            tell(
                f"validation while training read the first {seen:,} {unit} of valid, the score at the end reads {of} "
                f"{num_scored:,}: the two may differ"
            )

    def _hooks(self, model: Model, wants_stop: WantsStop) -> Hooks:
        run = self.run
        over = run.config.training.average_over
        average = WeightAverage(model, over) if over and isinstance(model, nn.Module) else None
        mean_is_better = False

        def validate() -> float:
            nonlocal mean_is_better
            loss = self.validate(model)
            if average is None:
                return loss
            average.add()
            with average.applied():
                loss_of_mean = self.validate(model)
            mean_is_better = loss_of_mean < loss
            return min(loss, loss_of_mean)

        def keep_best() -> None:
            with average.applied() if average is not None and mean_is_better else nullcontext():
                run.save_model(model)

        def sample() -> str | None:
            return self.goal.sample(model, self.stores["valid"], run.schema, run.config.training)

        def checkpoint(saved: Checkpoint) -> None:
            self._progress = {**saved.progress, "log_length": run.log_length()}
            run.save_checkpoint(replace(saved, progress=self._progress))

        hooks = Hooks(validate, sample, keep_best, checkpoint, wants_stop=wants_stop)
        return hooks if average is None else replace(hooks, tensors=average.tensors, restore=average.load)


def learner_of(run: Run) -> AnyLearner:
    """How the family of a run learns what is asked of it."""
    return LEARNERS[family(run.config.model_name).learns[run.schema.kind]]
