"""The same verbs from Python.

import seqwise
run = seqwise.train("poems.txt", model="lstm", minutes=2)
print(run.generate("Shall I "))
print(run.evaluate().bits_per_char)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from .config import build
from .data.source import TextData, open_text, open_whole
from .data.store import TokenStore, build_store
from .decoding import DecodingConfig, Hypothesis, generate
from .errors import DataError
from .evaluation.likelihood import Score, View, evaluate
from .run import Run
from .training.report import Report
from .training.session import about, prepare, resume


class TrainedRun:
    """A run folder with its model, ready to use."""

    def __init__(self, path: str | Path):
        self.run = Run.open(Path(path))
        self.path = self.run.path
        self.tokenizer = self.run.tokenizer

    @cached_property
    def model(self) -> Any:
        return self.run.load_model()

    def prompt_ids(self, prompt: str) -> list[int]:
        """A prompt as ids: the boundary token stands before it, as it did before the text in training."""
        return [self.tokenizer.boundary, *self.tokenizer.encode(prompt).tolist()]

    def hypotheses(self, prompt: str = "", **settings: Any) -> list[Hypothesis]:
        """The continuations of a prompt with their log-probabilities; settings as in DecodingConfig."""
        config = build(DecodingConfig, settings, section="decoding")
        return generate(self.model, [self.prompt_ids(prompt)], config)[0]

    def generate(self, prompt: str = "", **settings: Any) -> str:
        """The prompt and its best continuation as text."""
        return prompt + self.tokenizer.decode(self.hypotheses(prompt, **settings)[0].tokens)

    def evaluate(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        view: View | None = None,
        context: int | None = None,
        stride: int | None = None,
    ) -> Score:
        """How well the model predicts the run's own test part (valid where it has none), or another text."""
        store, scored = self._store(data, split)
        return evaluate(self.model, store, view=view, context=context, stride=stride, about=about(self.run, scored))

    def _store(self, data: str | Path | None, split: str | None) -> tuple[TokenStore, str]:
        if data is not None:
            text = open_whole(data) if split is None and Path(data).exists() else open_text(data)
            part = split or ("test" if "test" in text.parts else "valid" if "valid" in text.parts else "whole")
            return self._part(text, part), f"{part}:{text.fingerprint[:8]}"
        config = self.run.config.data
        text = open_text(
            config.source if len(config.source) > 1 else config.source[0],
            valid=config.valid,
            test=config.test,
            split=config.split,
        )
        if text.fingerprint != config.fingerprint:
            raise DataError(
                f"{', '.join(config.source)} has changed since {self.path} was trained, so its {split or 'test'} part "
                "cannot be scored. Restore it, or name a file: seqwise evaluate RUN FILE."
            )
        part = split or ("test" if "test" in text.parts else "valid")
        return self._part(text, part), f"{part}:{text.fingerprint[:8]}"

    def _part(self, text: TextData, part: str) -> TokenStore:
        if part not in text.parts:
            raise DataError(f"{text.name} has no {part} part; it has {', '.join(text.parts)}.")
        return build_store(text, part, self.tokenizer)

    def about_prompt(self, prompt: str) -> Iterator[str]:
        """What a user should know about a prompt: characters never seen, more tokens than the model can see."""
        ids = self.tokenizer.encode(prompt)
        unknown = getattr(self.tokenizer, "unknown", None)
        if unknown is not None and (ids == unknown).any():
            yield f"{int((ids == unknown).sum())} words of the prompt are not in the vocabulary and are read as <unk>"
        if self.tokenizer.kind == "char" and len(ids) > len(prompt):
            unseen = sorted({c for c in prompt if len(self.tokenizer.encode(c)) > 1})
            yield f"the model has never seen {' '.join(unseen)}: they are spelled in bytes, expect little of them"
        context = getattr(self.model, "context", None)
        if context is not None and len(ids) >= context:
            yield f"the prompt has {len(ids)} tokens and the model sees {context}: it reads the end of the prompt only"


def train(
    data: str | Path | Sequence[str | Path],
    model: str = "gpt",
    *,
    out: str | Path | None = None,
    on_report: Callable[[Report], None] = lambda _: None,
    **options: Any,
) -> TrainedRun:
    """Train a model on a file, a folder or a data set, and return the run. Options as in `seqwise train`."""
    path = Path(out) if out is not None else free_path(data, model)
    session = prepare(data, model=model, out=path, **options)
    for report in session.reports():
        on_report(report)
    return TrainedRun(path)


def load(path: str | Path) -> TrainedRun:
    """Open a run folder."""
    return TrainedRun(path)


def continue_training(path: str | Path, *, on_report: Callable[[Report], None] = lambda _: None) -> TrainedRun:
    """Resume a run that was stopped, and train it to the end."""
    for report in resume(Path(path)).reports():
        on_report(report)
    return TrainedRun(path)


def free_path(data: str | Path | Sequence[str | Path], model: str, folder: Path = Path("runs")) -> Path:
    """runs/poems-lstm, or the first of runs/poems-lstm-2, -3, ... that is free."""
    first = str(data if isinstance(data, str | Path) else data[0])
    name = f"{Path(first).name.split('.')[0]}-{model}"
    number = 1
    while (path := folder / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path
