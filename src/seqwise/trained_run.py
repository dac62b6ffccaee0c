"""A trained run from Python: everything that one can ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import build
from .data.pipes import owned
from .decoding import DecodingConfig, Hypothesis, generate
from .errors import ConfigError, DataError, SeqwiseError
from .evaluation.search_report import WIDTHS, SearchReport
from .goals.goal import OnProgress, ScoreOptions, Tell
from .goals.sequence import SequenceGoal
from .inspection.options import InspectOptions
from .short_answers import ShortAnswers
from .signatures import takes
from .tasks import ReadsQuestions
from .text.unseen import unseen_in
from .training.overrides import check_present
from .wording import all_speak_python, counted

if TYPE_CHECKING:
    import numpy as np

    from .data.word_vectors import WordVectors
    from .evaluation.probes import Probes
    from .evaluation.sentence_search import Hit
    from .evaluation.sentence_vectors import TextEncoder
    from .inspection.inspect import Inspection
    from .inspection.invariances import Invariance


@all_speak_python
class TrainedRun(ShortAnswers):
    """A run folder with its model, ready to use."""

    @takes(DecodingConfig)
    def hypotheses(self, prompt: str = "", **search: Any) -> list[Hypothesis]:
        """The continuations of a prompt with their log-probabilities; settings as in `DecodingConfig`."""
        config = build(DecodingConfig, search, section="decoding")
        return generate(self.model, [self.prompt_ids(prompt)], config)[0]

    @takes(DecodingConfig)
    def generate(self, prompt: str = "", **search: Any) -> str:
        """The prompt and its best continuation as text; settings as in `DecodingConfig`."""
        return prompt + self.text_after(prompt, self.hypotheses(prompt, **search)[0].tokens)

    @takes(ScoreOptions, default=None)
    def evaluate(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        on_progress: OnProgress = lambda *_: None,
        tell: Tell = lambda _: None,
        **options: Any,
    ) -> Any:
        """How well the model does on the run's own test part (valid where it has none), or on other data.

        Data that is the run's own by its fingerprint, wherever it lies now, is scored by the same part.
        `on_progress` is told (what, done, of how many) where that takes long, `tell` what other data was taken for.
        Text: `view` ("disjoint", "sliding", "carried"), `context`, `stride`. Numbers: `horizon`, `season`. Pairs: the
        others.
        """
        self._check_answers()
        options = {name: value for name, value in options.items() if value is not None}
        for name in set(options) - set(self.goal.score_options):
            known = ", ".join(self.goal.score_options) or "none"
            raise ConfigError(f"{name} does not apply to {self.task.name}; options are: {known}.")
        opened, part = self._open(data, split, is_scored=True, tell=tell)
        store = self.task.store(opened, part, self.run.schema)
        scored = f"{part}:{opened.fingerprint[:8]}"
        if self.precision != "float32":
            scored += f"|precision={self.precision}"
        config = self.run.config.data
        return self.goal.score(
            self.model, store, self.run.schema, config, scored=scored, on_progress=on_progress, **options
        )

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
        opened, part = self._open_questions(data, split)
        options = {"seed": seed} if horizon is None else {"seed": seed, "horizon": horizon}
        store = self.task.store(opened, self.goal.predicted(list(opened.parts), part), self.run.schema)
        return self.goal.predict(self.model, store, self.run.schema, self.run.config.data, **options)

    def predictions(self, data: str | Path | None = None, *, split: str | None = None) -> Iterator[dict[str, Any]]:
        """Labels and tags: what `predict` writes, for programs: answers with their probabilities."""
        opened, part = self._open_questions(data, split)
        return self._rows_goal.answers(self.model, self.task.store(opened, part, self.run.schema), self.run.schema)

    def _open_questions(self, data: str | Path | None, split: str | None) -> tuple[Any, str]:
        """A file to be answered needs no answers."""
        self._check_answers()
        if data is None or split is not None or not isinstance(self.task, ReadsQuestions):
            return self._open(data, split, command="predict")
        source = owned([data], self.task.name)[0]
        return self.task.open_questions(source, self.run.schema, self.run.config.data)

    def sources(self, data: str | Path | None = None, *, split: str | None = None) -> Iterator[str]:
        """Pairs: the sources of the run's own test part, or of other data."""
        opened, part = self._open(data, split, command="predict")
        return (source for source, _ in opened.parts[part])

    def report_on_search(
        self,
        data: str | Path | None = None,
        *,
        split: str | None = None,
        limit: int | None = None,
        widths: Sequence[int] = WIDTHS,
        length_penalty: float | None = None,
        length_form: str | None = None,
    ) -> SearchReport:
        """How far beam search can be trusted on the run's own test part, or on other data; on `limit` pairs at most."""
        if not isinstance(self.goal, SequenceGoal):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; there is a search to report on for pairs.")
        opened, part = self._open(data, split, is_scored=True)
        store = self.task.store(opened, part, self.run.schema)
        store = store if limit is None else store.pairs(limit)
        config, search = self.run.config.data, {"length_penalty": length_penalty, "length_form": length_form}
        return self.goal.report_on_search(self.model, store, self.run.schema, config, widths, **search)

    def _open(
        self,
        data: str | Path | None,
        split: str | None,
        *,
        is_scored: bool = False,
        tell: Tell = lambda _: None,
        command: str = "evaluate",
    ) -> tuple[Any, str]:
        """The run's own data, or other data, and which part of it; what is scored should not be what was learned.

        `command` can be told other data by its name.
        """
        config = self.run.config.data
        named = None if data is None else owned([data], self.task.name)[0]
        own = None if named is None or not is_scored else self._own_data(named)
        if own is not None:
            opened, part = own, split or ("test" if "test" in own.parts else "valid")
            tell(f"{data} holds the data of {self.path}: its {part} part is read, which was not trained on")
        elif named is not None:
            opened, part = self.task.open_other(named, split, self.run.schema, config)
            tell(opened.description)
            for sentence in opened.notes:
                tell(sentence)
        elif not config.source:
            raise DataError(
                f"{self.path} was {config.description}; its text is not known. "
                f"Name a file: seqwise {command} {self.path} FILE"
            )
        else:
            check_present(self.run, config, f"seqwise {command} {self.path} NEWPATH")
            opened = self.task.open(config)
            part = split or ("test" if "test" in opened.parts else "valid")
            if opened.fingerprint != config.fingerprint:
                raise DataError(
                    f"{', '.join(config.source)} has changed since {self.path} was trained, so its {part} part "
                    f"cannot be used. Restore it, or name a file: seqwise {command} {self.path} FILE"
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

    def unseen_text(self, num_chars: int) -> str | None:
        """The beginning of the run's own test or valid part, of pairs its first source; None where it is no text."""
        opened, part = self._open(None, None)
        return self.goal.beginning_of_text(opened, part, num_chars)

    def unseen_store(self) -> Any:
        """The run's own test or valid part, as its task stores it."""
        return self._unseen

    @cached_property
    def _unseen(self) -> Any:
        opened, part = self._open(None, None)
        return self.task.store(opened, part, self.run.schema)

    def encoder(self, *, pooling: str | None = None, normalise: bool | None = None) -> TextEncoder:
        """What makes vectors of texts, by `pooling` ("mean", "cls", "last", "max"); as the run says, else the mean."""
        from .evaluation.sentence_vectors import TextEncoder

        return TextEncoder(self.run, self.model, pooling=pooling, normalise=normalise)

    def embed(
        self,
        texts: Sequence[str],
        *,
        pooling: str | None = None,
        normalise: bool | None = None,
        tell: Tell = lambda _: None,
        on_progress: OnProgress = lambda *_: None,
    ) -> np.ndarray:
        """A vector for each text, (N, D); `tell` is told how many were empty, or longer than the model can read."""
        found = self.encoder(pooling=pooling, normalise=normalise).embed(texts, on_progress=on_progress)
        for sentence in found.notes():
            tell(sentence)
        return found.vectors

    def search(
        self,
        corpus: str | Path,
        queries: Sequence[str],
        *,
        num: int = 5,
        columns: Sequence[str] = (),
        pooling: str | None = None,
        use_cache: bool = True,
        on_progress: OnProgress = lambda *_: None,
    ) -> list[list[Hit]]:
        """For each query, the texts of a file nearest to it by cosine: its lines, or the `columns` of a table."""
        from .evaluation.sentence_search import read_corpus, search

        encoder, texts = self.encoder(pooling=pooling), read_corpus(corpus, columns)
        return search(encoder, texts, queries, num=num, use_cache=use_cache, on_progress=on_progress)

    @cached_property
    def words(self) -> WordVectors:
        """The words of the model with their vectors: neighbours, similarity, analogies."""
        from .training.word_vectors import words_of

        return words_of(self.run)

    @takes(InspectOptions)
    def inspect(self, text: str | None = None, *, target: str | None = None, **options: Any) -> Inspection:
        """What goes on inside the model while it reads a text, or its own held-out data; settings: `InspectOptions`."""
        from .inspection.inspect import inspect_run

        options["analogies"] = tuple(options.get("analogies", ()))
        return inspect_run(self, text, target=target, options=InspectOptions(**options))

    def probe(
        self,
        data: str | Path,
        *,
        task: str | None = None,
        columns: Sequence[str] = (),
        split: str = "test",
        tell: Tell = lambda _: None,
    ) -> Probes:
        """What each layer knows of labels or tags: a linear probe on each, trained on the data's training part.

        `split` is the part that probes are judged on.
        """
        from .evaluation.probes import probe_layers
        from .training.probing import probe_stores

        train, judged = probe_stores(
            self.run, self.model, str(data), task=task, columns=columns, split=split, tell=tell
        )
        return probe_layers(self.model, train, judged)

    def check(
        self, data: str | Path | None = None, *, split: str | None = None, tell: Tell = lambda _: None
    ) -> list[Invariance]:
        """What every model should keep, measured on the run's test part (valid where it has none), or on other data.

        Padding, the other rows of a batch and what comes later change no log-probability; micro-batches give the
        gradient of the whole batch, steps what the parallel pass gives; saving loses nothing; probabilities sum to one.
        `tell` is told what other data was taken for.
        """
        from .inspection.invariances import check_run

        opened, part = self._open(data, split, is_scored=True, tell=tell, command="check")
        return check_run(self.run, self.model, self.task.store(opened, part, self.run.schema))

    def about_prompt(self, prompt: str) -> Iterator[str]:
        """What a user should know about a prompt: characters never seen, more tokens than the model can see."""
        yield from unseen_in(self.tokenizer, prompt)
        ids, context = self.tokenizer.encode(prompt), self.model.context
        if context is not None and len(ids) >= context:
            read = counted(len(ids), "token")
            yield f"the prompt has {read} and the model sees {context}: it reads the end of the prompt only"
