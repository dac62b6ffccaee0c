"""The same verbs from Python.

import seqwise
run = seqwise.train("poems.txt", model="lstm", minutes=2)
print(run.generate("Shall I "))
print(run.evaluate().bits_per_char)
print(seqwise.compare("poems.txt", minutes=10).recommendation)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import build
from .data.pipes import owned
from .decoding import DecodingConfig, Hypothesis, generate
from .decoding.translate import Answer
from .errors import ConfigError, DataError, SeqwiseError
from .evaluation.search_report import WIDTHS, SearchReport
from .run import Run
from .tasks import Task, task_named
from .tasks.pairs import PairsTask
from .tasks.task import Advance, AnswersLines, Tell
from .text import Tokenizer
from .text.unseen import unseen_in
from .training.given import check_present
from .training.report import Report
from .training.session import prepare, resume
from .wording import all_speak_python, counted, speaks_python

if TYPE_CHECKING:
    from .comparison.results import Comparison
    from .inspection.inspect import Inspection


@all_speak_python
class TrainedRun:
    """A run folder with its model, ready to use."""

    def __init__(self, path: str | Path):
        self.run = Run.open(Path(path))
        self.path = self.run.path

    def _facts(self) -> dict[str, str]:
        """What the run is, without loading its model."""
        config, unit = self.run.config, self.task.unit.rstrip("s")
        losses = [report["valid"] for report in self.run.read_log() if report.get("valid") is not None]
        steps = max((report["step"] for report in self.run.read_log()), default=0)
        facts = {"model": config.model_name, "task": config.task, "data": config.data.description}
        if self.run.vocab.tokenizer is not None:
            tokenizer = self.run.vocab.tokenizer
            facts["tokenizer"] = f"{tokenizer.kind}, {counted(tokenizer.vocab_size, 'token')}"
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
        return self.run.tokenizer

    @cached_property
    def model(self) -> Any:
        return self.run.load_model()

    def prompt_ids(self, prompt: str) -> list[int]:
        """A prompt as ids: the boundary token stands before it, as it did before the text in training."""
        return [self.tokenizer.boundary, *self.tokenizer.encode(prompt).tolist()]

    def hypotheses(
        self,
        prompt: str = "",
        *,
        method: str = "sample",
        max_tokens: int = 200,
        min_tokens: int = 0,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        num_results: int = 1,
        beam_width: int = 4,
        length_penalty: float = 0.0,
        length_form: str = "power",
        repetition_penalty: float = 1.0,
        stop: int | None = None,
    ) -> list[Hypothesis]:
        """The continuations of a prompt with their log-probabilities; settings as in `DecodingConfig`."""
        settings = dict(
            method=method,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            num_results=num_results,
            beam_width=beam_width,
            length_penalty=length_penalty,
            length_form=length_form,
            repetition_penalty=repetition_penalty,
            stop=stop,
        )
        config = build(DecodingConfig, settings, section="decoding")
        return generate(self.model, [self.prompt_ids(prompt)], config)[0]

    def generate(
        self,
        prompt: str = "",
        *,
        method: str = "sample",
        max_tokens: int = 200,
        min_tokens: int = 0,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        num_results: int = 1,
        beam_width: int = 4,
        length_penalty: float = 0.0,
        length_form: str = "power",
        repetition_penalty: float = 1.0,
        stop: int | None = None,
    ) -> str:
        """The prompt and its best continuation as text; settings as in `DecodingConfig`."""
        found = self.hypotheses(
            prompt,
            method=method,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            num_results=num_results,
            beam_width=beam_width,
            length_penalty=length_penalty,
            length_form=length_form,
            repetition_penalty=repetition_penalty,
            stop=stop,
        )
        return prompt + self.text_after(prompt, found[0].tokens)

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

    def evaluate(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        advance: Advance = lambda *_: None,
        tell: Tell = lambda _: None,
        view: str | None = None,
        context: int | None = None,
        stride: int | None = None,
        horizon: int | None = None,
        season: int | None = None,
        method: str | None = None,
        beam_width: int | None = None,
        length_penalty: float | None = None,
        length_form: str | None = None,
    ) -> Any:
        """How well the model does on the run's own test part (valid where it has none), or on other data.

        Data that is the run's own by its fingerprint, wherever it lies now, is scored by the same part.
        `advance` is told (what, done, of how many) where that takes long, `tell` what other data was taken for.
        Text: `view` ("disjoint", "sliding", "carried"), `context`, `stride`. Numbers: `horizon`, `season`. Pairs: the
        others.
        """
        asked: dict[str, Any] = {
            "view": view,
            "context": context,
            "stride": stride,
            "horizon": horizon,
            "season": season,
            "method": method,
        }
        asked |= {"beam_width": beam_width, "length_penalty": length_penalty, "length_form": length_form}
        options = {name: value for name, value in asked.items() if value is not None}
        for name in set(options) - set(self.task.score_options):
            known = ", ".join(self.task.score_options) or "none"
            raise ConfigError(f"{name} says nothing where {self.task.name} is scored; what can be told: {known}.")
        opened, part = self._open(data, split, is_scored=True, tell=tell)
        store = self.task.store(opened, part, self.run.vocab)
        scored = f"{part}:{opened.fingerprint[:8]}"
        config = self.run.config.data
        return self.task.score(self.model, store, self.run.vocab, config, scored=scored, advance=advance, **options)

    def predict(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        horizon: int | None = None,
        seed: int = 0,
    ) -> Iterator[str]:
        """Lines of answers: forecasts of what comes after the data, labels, tags of a text, or answers to sources.

        Numbers: `horizon`, how many steps are forecast. `answers` can be told how to search.
        """
        opened, part = self._open(data, split)
        options = {"seed": seed} if horizon is None else {"seed": seed, "horizon": horizon}
        return self.task.predict(self.model, opened, part, self.run.vocab, self.run.config.data, **options)

    def sources(self, data: str | Path | None = None, *, split: str | None = None) -> Iterator[str]:
        """Pairs: the sources of the run's own test part, or of other data."""
        opened, part = self._open(data, split)
        return (source for source, _ in opened.parts[part])

    def answers(
        self,
        lines: Iterable[str],
        *,
        with_alignments: bool = False,
        method: str | None = None,
        beam_width: int | None = None,
        num_results: int | None = None,
        length_penalty: float | None = None,
        length_form: str | None = None,
        min_tokens: int | None = None,
        max_tokens: int | None = None,
        repetition_penalty: float | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Iterator[Answer]:
        """Pairs: an answer for each line, with scores; settings as in `DecodingConfig`, by default a beam of five."""
        if not isinstance(self.task, AnswersLines):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; only models of pairs answer line by line.")
        config = self.run.config.data
        return self.task.answer_lines(
            self.model,
            lines,
            self.run.vocab,
            config,
            with_alignments=with_alignments,
            method=method,
            beam_width=beam_width,
            num_results=num_results,
            length_penalty=length_penalty,
            length_form=length_form,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            repetition_penalty=repetition_penalty,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
        )

    def report_on_search(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        most: int | None = None,
        widths: Sequence[int] = WIDTHS,
        length_penalty: float | None = None,
        length_form: str | None = None,
    ) -> SearchReport:
        """How far beam search can be trusted on the run's own test part, or on other data; on `most` pairs at most."""
        if not isinstance(self.task, PairsTask):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; there is a search to report on for pairs.")
        opened, part = self._open(data, split, is_scored=True)
        store = self.task.store(opened, part, self.run.vocab)
        store = store if most is None else store.pairs(most)
        config, search = self.run.config.data, {"length_penalty": length_penalty, "length_form": length_form}
        return self.task.report_on_search(self.model, store, self.run.vocab, config, widths, **search)

    def translate(
        self,
        text: str,
        *,
        method: str | None = None,
        beam_width: int | None = None,
        num_results: int | None = None,
        length_penalty: float | None = None,
        length_form: str | None = None,
        min_tokens: int | None = None,
        max_tokens: int | None = None,
        repetition_penalty: float | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> str:
        """Pairs: the best target for one source; settings as in `answers`."""
        found = self.answers(
            [text],
            method=method,
            beam_width=beam_width,
            num_results=num_results,
            length_penalty=length_penalty,
            length_form=length_form,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            repetition_penalty=repetition_penalty,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
        )
        return next(found).text

    def _open(
        self, data: str | Path | None, split: str | None, *, is_scored: bool = False, tell: Tell = lambda _: None
    ) -> tuple[Any, str]:
        """The run's own data, or other data, and which part of it; what is scored should not be what was learned."""
        config = self.run.config.data
        named = None if data is None else owned([data], self.task.name)[0]
        own = None if named is None or not is_scored else self._own_data(named)
        if own is not None:
            opened, part = own, split or ("test" if "test" in own.parts else "valid")
            tell(f"{data} holds the data of {self.path}: its {part} part is read, which was not trained on")
        elif named is not None:
            opened, part = self.task.open_other(named, split, self.run.vocab, config)
            tell(opened.description)
            for sentence in getattr(opened, "notes", ()):
                tell(sentence)
        elif not config.source:
            raise DataError(f"{self.path} was {config.description}; its text is not known. Name a file to score.")
        else:
            check_present(self.run, config, f"seqwise evaluate {self.path} NEWPATH")
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

    def _own_data(self, data: str) -> Any | None:
        """The data that the run was trained on, where it is what lies here, by its fingerprint."""
        names = [data] if Path(data).exists() else data.split(",")
        try:
            opened = self.task.open(replace(self.run.config.data, source=names))
        except SeqwiseError:
            return None
        return opened if opened.fingerprint == self.run.config.data.fingerprint else None

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

    def inspect(
        self,
        text: str | None = None,
        *,
        target: str | None = None,
        most_tokens: int = 500,
        beam_width: int | None = None,
        search_tokens: int = 12,
        most_lags: int = 100,
        held_out_tokens: int = 4000,
        row: int = 0,
        pairs: str | None = None,
        analogies: Sequence[str] = (),
        seed: int = 0,
    ) -> Inspection:
        """What goes on inside the model while it reads a text, or its own unseen data; settings: `InspectOptions`."""
        from .inspection.inspect import InspectOptions, inspect_run

        options = InspectOptions(
            most_tokens=most_tokens,
            beam_width=beam_width,
            search_tokens=search_tokens,
            most_lags=most_lags,
            held_out_tokens=held_out_tokens,
            row=row,
            pairs=pairs,
            analogies=tuple(analogies),
            seed=seed,
        )
        return inspect_run(self, text, target=target, options=options)

    def about_prompt(self, prompt: str) -> Iterator[str]:
        """What a user should know about a prompt: characters never seen, more tokens than the model can see."""
        yield from unseen_in(self.tokenizer, prompt)
        ids, context = self.tokenizer.encode(prompt), getattr(self.model, "context", None)
        if context is not None and len(ids) >= context:
            read = counted(len(ids), "token")
            yield f"the prompt has {read} and the model sees {context}: it reads the end of the prompt only"


@speaks_python
def train(
    data: str | Path | Sequence[str | Path],
    model: str = "gpt",
    *,
    out: str | Path | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    task: str | None = None,
    tokenizer: str | None = None,
    columns: Sequence[str] = (),
    season: int | None = None,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    seed: int | None = None,
    config_file: str | Path | None = None,
    overrides: Sequence[str] = (),
    start_from: str | Path | None = None,
    on_report: Callable[[Report], None] = lambda _: None,
    tell: Tell = lambda _: None,
    advance: Advance = lambda *_: None,
) -> TrainedRun:
    """Train a model on a file, a folder or a data set, and return the run.

    The budget is one of `minutes` (2 where none is given), `steps` and `epochs`. `overrides` are settings such as
    "model.num_layers=2"; `config_file` is a TOML file of them. `on_report` is given each report of training, `tell`
    what was found in the data and chosen, `advance` (what, done, of how many) while data is read.
    """
    path = Path(out) if out is not None else free_path(data, model)
    session = prepare(
        data,
        model=model,
        out=path,
        minutes=minutes,
        steps=steps,
        epochs=epochs,
        task=task,
        tokenizer=tokenizer,
        columns=columns,
        season=season,
        valid=None if valid is None else str(valid),
        test=None if test is None else str(test),
        split=split,
        seed=seed,
        config_file=None if config_file is None else Path(config_file),
        overrides=overrides,
        start_from=None if start_from is None else Path(start_from),
        tell=tell,
        advance=advance,
    )
    for report in session.reports():
        on_report(report)
    return TrainedRun(path)


@partial(speaks_python, resume="continue_comparison")
def compare(
    data: str | Path | Sequence[str | Path],
    *,
    minutes: float = 10.0,
    out: str | Path | None = None,
    models: Sequence[str] | None = None,
    tokenizers: Sequence[str] | None = None,
    task: str | None = None,
    columns: Sequence[str] = (),
    season: int | None = None,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    seeds: int | None = None,
    seed: int = 0,
    workers: int = 1,
    max_parameters: int | None = None,
    max_latency_ms: float | None = None,
    max_megabytes: float | None = None,
) -> Comparison:
    """Train all families on the data under one budget of wall clock, and say which to use.

    In a notebook the result shows itself; `.winner`, `.ladder`, `.final` hold what was found, and report.html in the
    folder the pictures.
    """
    from .comparison.compare import choose_settings, run_comparison

    path = Path(out) if out is not None else free_path(data, "compare")
    settings = choose_settings(
        data,
        minutes=minutes,
        models=models,
        tokenizers=tokenizers,
        task=task,
        columns=columns,
        season=season,
        valid=None if valid is None else str(valid),
        test=None if test is None else str(test),
        split=split,
        seeds=seeds,
        seed=seed,
        workers=workers,
        max_parameters=max_parameters,
        max_latency_ms=max_latency_ms,
        max_megabytes=max_megabytes,
    )
    return run_comparison(path, settings)


@partial(speaks_python, resume="continue_comparison")
def continue_comparison(path: str | Path) -> Comparison:
    """Go on with a comparison that was stopped, to the end; what failed in it is tried again."""
    from .comparison.compare import run_comparison

    return run_comparison(Path(path))


@speaks_python
def load(path: str | Path) -> TrainedRun:
    """Open a run folder."""
    return TrainedRun(path)


@speaks_python
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
