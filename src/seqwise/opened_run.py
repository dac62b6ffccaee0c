"""A run folder that was opened: what it is, and its model, once it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from .data.schema import VECTOR, TokenSpec
from .errors import ConfigError
from .goals import AnyGoal
from .goals.vector import no_answers
from .layers.int8 import PRECISIONS, to_int8
from .run import Run
from .tasks import Task, goal_of, task_named
from .text import Tokenizer
from .wording import all_speak_python, counted

if TYPE_CHECKING:
    pass


@all_speak_python
class OpenedRun:
    """What every run has, whatever it answers."""

    def __init__(self, path: str | Path, *, precision: str = "float32"):
        """`precision`: weights as they were learned, "float32", or rounded to 8 bits, "int8"."""
        self.run = Run.open(Path(path))
        self.path, self.precision = self.run.path, precision
        if precision not in PRECISIONS:
            raise ConfigError(f'--precision "{precision}" is not one of {", ".join(PRECISIONS)}.')

    def _facts(self) -> dict[str, str]:
        """What the run is, without loading its model."""
        config, unit = self.run.config, self.goal.unit.rstrip("s")
        losses = [report["valid"] for report in self.run.read_log() if report.get("valid") is not None]
        steps = max((report["step"] for report in self.run.read_log()), default=0)
        facts = {"model": config.model_name, "task": config.task, "data": config.data.description}
        main = self.run.schema.main_spec
        if isinstance(main, TokenSpec):
            facts["tokenizer"] = f"{main.tokenizer.kind}, {counted(main.size, 'token')}"
        facts["trained"] = counted(steps, "step") if steps else "not yet"
        return facts | ({"best validation": f"{min(losses):.4f} nats per {unit}"} if losses else {})

    def __repr__(self) -> str:
        facts = self._facts()
        what = f"{facts.pop('model')} on {facts.pop('task')}"
        told = [f"{name} {value}" for name, value in facts.items() if name != "data"]
        return f"<TrainedRun {self.path}: {'; '.join([what, *told])}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        left = 'style="text-align: left"'
        rows = "".join(
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>{escape(str(self.path))}</caption>{rows}</table>"

    @property
    def tokenizer(self) -> Tokenizer:
        self._check_answers()
        return self.run.tokenizer

    @cached_property
    def model(self) -> Any:
        model = self.run.load_model()
        if self.precision == "int8":
            if not isinstance(model, nn.Module):
                raise ConfigError(
                    f"{self.path} is a {self.run.config.model_name}: it has no matrices that could be rounded to 8 "
                    "bits. Leave out --precision."
                )
            to_int8(model)
        return model

    @property
    def about_precision(self) -> str:
        """What a user should know of it; empty where there is nothing."""
        if self.precision == "float32" or self.model is None:  # the model first: it may have nothing to round
            return ""
        return f"weights are rounded to 8 bits; what that costs: seqwise evaluate {self.path} --precision int8"

    def prompt_ids(self, prompt: str) -> list[int]:
        """A prompt as ids, behind what stood before a text in training: the boundary token, or the one that an imported
        vocabulary has for that."""
        tokenizer = self.tokenizer
        begin = self.run.schema.target(self.run.schema.main, TokenSpec).begin
        return [begin, *tokenizer.encode(prompt).tolist()]

    def text_after(self, prompt: str, tokens: Sequence[int]) -> str:
        """A continuation as it is written behind its prompt: with the space before a word that follows a word."""
        before = self.tokenizer.encode(prompt).tolist()
        written = self.tokenizer.decode([*before, *tokens])
        beginning = self.tokenizer.decode(before)
        if not written.startswith(beginning):  # tokens may complete a character that the prompt began
            return self.tokenizer.decode(tokens)
        is_spaced = prompt[-1:].isspace() and not beginning.endswith(prompt[-1])  # words leave spaces out
        return written[len(beginning) :].removeprefix(" " if is_spaced else "")

    @property
    def task(self) -> Task:
        return task_named(self.run.config.task)

    @property
    def goal(self) -> AnyGoal:
        """What is done about what the run was trained to answer."""
        return goal_of(self.task, self.run.schema)

    def _check_answers(self) -> None:
        if self.run.schema.kind == VECTOR:
            raise no_answers(self.path)
