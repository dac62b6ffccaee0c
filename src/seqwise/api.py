"""The same verbs from Python.

import seqwise
run = seqwise.train("poems.txt", model="lstm", minutes=2)
print(run.generate("Shall I "))
print(run.evaluate().bits_per_char)
print(seqwise.compare("poems.txt", minutes=10).recommendation)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import build
from .decoding import DecodingConfig, Hypothesis, generate
from .decoding.translate import Answer
from .errors import ConfigError, DataError
from .evaluation.search_report import SearchReport
from .run import Run
from .tasks import Task, task_named
from .tasks.pairs import PairsTask
from .tasks.task import Advance, AnswersLines
from .text import Tokenizer
from .text.unseen import unseen_in
from .training.report import Report
from .training.session import prepare, resume

if TYPE_CHECKING:
    from .comparison.results import Comparison
    from .inspection.inspect import Inspection


class TrainedRun:
    """A run folder with its model, ready to use."""

    def __init__(self, path: str | Path):
        self.run = Run.open(Path(path))
        self.path = self.run.path

    @property
    def tokenizer(self) -> Tokenizer:
        return self.run.tokenizer

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

    @property
    def task(self) -> Task:
        return task_named(self.run.config.task)

    def evaluate(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        advance: Advance = lambda *_: None,
        **options: Any,
    ) -> Any:
        """How well the model does on the run's own test part (valid where it has none), or on other data.

        `advance` is told (what, done, of how many) where that takes long.
        Options for text: `view` ("disjoint", "sliding", "carried"), `context`, `stride`; for numbers: `horizon`.
        """
        options = {name: value for name, value in options.items() if value is not None}
        for name in set(options) - set(self.task.score_options):
            known = ", ".join(self.task.score_options) or "none"
            raise ConfigError(f"{name} says nothing where {self.task.name} is scored; what can be told: {known}.")
        opened, part = self._open(data, split)
        store = self.task.store(opened, part, self.run.vocab)
        scored = f"{part}:{opened.fingerprint[:8]}"
        config = self.run.config.data
        return self.task.score(self.model, store, self.run.vocab, config, scored=scored, advance=advance, **options)

    def predict(self, data: str | Path | None = None, *, split: str | None = None, **options: Any) -> Iterator[str]:
        """Lines of answers: forecasts of what comes after the data, labels, or tags of a text."""
        opened, part = self._open(data, split)
        config = self.run.config.data
        return self.task.predict(self.model, opened, part, self.run.vocab, config, **options)

    def sources(self, data: str | Path | None = None, *, split: str | None = None) -> Iterator[str]:
        """Pairs: the sources of the run's own test part, or of other data."""
        opened, part = self._open(data, split)
        return (source for source, _ in opened.parts[part])

    def answers(self, lines: Iterable[str], **options: Any) -> Iterator[Answer]:
        """An answer for each line, with scores; options as in `DecodingConfig`, and `with_alignments`."""
        if not isinstance(self.task, AnswersLines):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; only models of pairs answer line by line.")
        config = self.run.config.data
        return self.task.answer_lines(self.model, lines, self.run.vocab, config, **options)

    def report_on_search(
        self, data: str | Path | None = None, *, split: str | None = None, most: int | None = None, **options: Any
    ) -> SearchReport:
        """How far beam search can be trusted on the run's own test part, or on other data; on `most` pairs at most."""
        if not isinstance(self.task, PairsTask):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; there is a search to report on for pairs.")
        opened, part = self._open(data, split)
        store = self.task.store(opened, part, self.run.vocab)
        store = store if most is None else store.pairs(most)
        return self.task.report_on_search(self.model, store, self.run.vocab, self.run.config.data, **options)

    def translate(self, text: str, **options: Any) -> str:
        """The best target for one source."""
        return next(self.answers([text], **options)).text

    def _open(self, data: str | Path | None, split: str | None) -> tuple[Any, str]:
        config = self.run.config.data
        if data is not None:
            opened, part = self.task.open_other(str(data), split, self.run.vocab)
        elif not config.source:
            raise DataError(f"{self.path} was {config.description}; its text is not known. Name a file to score.")
        else:
            opened = self.task.open(config)
            part = split or ("test" if "test" in opened.parts else "valid")
            if opened.fingerprint != config.fingerprint:
                raise DataError(
                    f"{', '.join(config.source)} has changed since {self.path} was trained, so its {part} part "
                    "cannot be scored. Restore it, or name a file: seqwise evaluate RUN FILE."
                )
        if part not in opened.parts:
            raise DataError(f"{opened.name} has no {part} part; it has {', '.join(opened.parts)}.")
        return opened, part

    def unseen_text(self, num_chars: int) -> str:
        """The beginning of the run's own test or valid part; pairs: its first source."""
        opened, part = self._open(None, None)
        if self.run.config.task == "pairs":
            return str(opened.parts[part][0][0])
        return "".join(islice(opened.parts[part].blocks(), 8))[:num_chars]

    def unseen_store(self) -> Any:
        """The run's own test or valid part, as its task stores it."""
        opened, part = self._open(None, None)
        return self.task.store(opened, part, self.run.vocab)

    def inspect(self, text: str | None = None, *, target: str | None = None, **options: Any) -> Inspection:
        """What goes on inside the model while it reads a text, or its own unseen data; options: `InspectOptions`."""
        from .inspection.inspect import InspectOptions, inspect_run

        return inspect_run(self, text, target=target, options=InspectOptions(**options))

    def about_prompt(self, prompt: str) -> Iterator[str]:
        """What a user should know about a prompt: characters never seen, more tokens than the model can see."""
        yield from unseen_in(self.tokenizer, prompt)
        ids, context = self.tokenizer.encode(prompt), getattr(self.model, "context", None)
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


def compare(
    data: str | Path | Sequence[str | Path], *, minutes: float = 10.0, out: str | Path | None = None, **options: Any
) -> Comparison:
    """Train all families on the data under one budget, and say which to use. Options as in `seqwise compare`.

    In a notebook the result shows itself; `.winner`, `.ladder`, `.final` hold what was found, and report.html in the
    folder the pictures.
    """
    from .comparison.compare import choose_settings, run_comparison

    path = Path(out) if out is not None else free_path(data, "compare")
    return run_comparison(path, choose_settings(data, minutes=minutes, **options))


def continue_comparison(path: str | Path) -> Comparison:
    """Go on with a comparison that was stopped, to the end; what failed in it is tried again."""
    from .comparison.compare import run_comparison

    return run_comparison(Path(path))


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
    name = f"{Path(first).name.split('.')[0].replace(':', '-')}-{model}"
    number = 1
    while (path := folder / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return path
