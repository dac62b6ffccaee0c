"""What a run answers without a file: texts, a hidden word, a passage, a picture, a series; and what it paints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data.schema import MASKED_TOKEN, PICTURE, TokenSpec, ValueSpec
from .decoding import DecodingConfig
from .decoding.translate import Answer
from .errors import ConfigError, DataError
from .goals.caption import CaptionGoal
from .goals.goal import AnswersLines, AnswersRows
from .opened_run import OpenedRun
from .signatures import takes
from .tasks import ReadsQuestions, ask_on_picture
from .wording import all_speak_python, counted

if TYPE_CHECKING:
    import numpy as np

    from .evaluation.filling import Filling
    from .evaluation.span_answers import FoundSpan


@all_speak_python
class ShortAnswers(OpenedRun):
    """What can be asked of a run without a file."""

    @property
    def _rows_goal(self) -> AnswersRows:
        if not isinstance(self.goal, AnswersRows):
            raise ConfigError(
                f"{self.path} was trained on {self.task.name}; only labels and tags are answered row by row."
            )
        return self.goal

    def answer_texts(self, texts: Sequence[str | Sequence[str]]) -> list[dict[str, Any]]:
        """Labels and tags: the answer to each text, with probabilities; pairs of texts as (first, second).

        >>> run.answer_texts(["a fine film"])
        [{"label": "1", "probabilities": {"1": 0.93, "0": 0.07}}]
        """
        goal = self._rows_goal
        if not isinstance(self.task, ReadsQuestions):
            raise ConfigError(
                f"{self.path} was trained on {self.task.name}; only models of labels and tags answer texts."
            )
        return list(goal.answers(self.model, self.task.questions(texts, self.run.schema), self.run.schema))

    @takes(DecodingConfig, default=None, without=("stop",))
    def answers(self, lines: Iterable[str], *, with_alignments: bool = False, **search: Any) -> Iterator[Answer]:
        """Pairs: an answer for each line, with scores; settings as in `DecodingConfig`, by default a beam of five."""
        if not isinstance(self.goal, AnswersLines):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; only models of pairs answer line by line.")
        config, schema = self.run.config.data, self.run.schema
        return self.goal.answer_lines(self.model, lines, schema, config, with_alignments=with_alignments, **search)

    @takes(DecodingConfig, default=None, without=("stop",))
    def translate(self, text: str, **search: Any) -> str:
        """Pairs: the best target for one source; settings as in `answers`."""
        return next(self.answers([text], **search)).text

    def paint(self, num: int = 16, *, seed: int = 0) -> np.ndarray:
        """Pictures with the canvas after each step, (num, steps, height, width, channels), uint8."""
        from .decoding.painting import paint

        if self.run.schema.kind != PICTURE:
            raise ConfigError(f"{self.path} was trained on {self.run.config.task}: it paints no pictures.")
        if num < 1:
            raise ConfigError(f"num = {num} should be at least 1.")
        return paint(self.model, num, seed=seed)

    def forecast(self, values: Sequence[Any], *, horizon: int, seed: int = 0) -> dict[str, Any]:
        """Numbers: what comes after a series (rows of numbers, None where one is missing), with a 95 % interval.

        >>> run.forecast([[20.7], [17.9], [18.8]], horizon=2)
        {"columns": ["Temp"], "middle": [[15.1], [14.7]], "low": [[9.8], [8.9]], "high": [[20.4], [20.5]]}
        """
        import numpy as np

        from .data.numbers import store_of
        from .goals.next_values import NextValuesGoal

        if not isinstance(self.goal, NextValuesGoal):
            raise ConfigError(f"{self.path} was trained on {self.task.name}; only models of numbers forecast.")
        spec = self.run.schema.target("values", ValueSpec)
        rows = np.array([row if isinstance(row, Sequence) else [row] for row in values], dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(spec.columns) or not len(rows):
            raise DataError(
                f"{self.path} forecasts {counted(len(spec.columns), 'column')} ({', '.join(spec.columns)}): give rows "
                "of as many numbers."
            )
        store = store_of(rows, spec, "the series")
        found = self.goal.forecast(self.model, store, self.run.schema, horizon, seed=seed)
        named = zip(("middle", "low", "high"), (each.tolist() for each in found), strict=True)
        return {"columns": spec.columns, **dict(named)}

    def fill(self, text: str, *, num: int = 5) -> list[Filling]:
        """The most probable words for each [MASK] of a text."""
        from .evaluation.filling import fill

        if self.run.schema.kind != MASKED_TOKEN:
            raise ConfigError(
                f"{self.path} is a {self.run.config.model_name} model of {self.run.config.task}: it fills in no hidden "
                "words. Train one that does: seqwise train DATA --model bert."
            )
        return fill(self.model, self.run.schema.input("tokens", TokenSpec), text, num=num)

    def ask(self, image: str | Path, questions: Sequence[str], *, num: int = 3) -> list[dict[str, float]]:
        """Pictures: the most probable answers to each question on one of them, with their probabilities."""
        return ask_on_picture(self.answer_texts, self.run.schema, str(self.path), str(image), questions, num)

    def answer(self, question: str, context: str, *, num: int = 1) -> list[FoundSpan]:
        """Spans: the answers to a question that a passage holds, best first, with their probabilities and places.

        >>> run.answer("Where is the key?", "The key is in the blue box.")[0].text
        "in the blue box"
        """
        from .goals.span import SpanGoal
        from .tasks.span import SpanTask

        if not isinstance(self.goal, SpanGoal) or not isinstance(self.task, SpanTask):
            raise ConfigError(
                f"{self.path} is a {self.run.config.model_name} model of {self.run.config.task}: it finds no answers "
                "in passages. Train one that does: seqwise train rooms --model bert, or start from it with --from."
            )
        asked = self.task.questions([(question, context)], self.run.schema, self.run.config.data.stride)
        return self.goal.answer(self.model, asked, num)[0]

    @takes(DecodingConfig, default=None, without=("stop",))
    def caption(self, images: Sequence[str | Path], **search: Any) -> list[str]:
        """Captions: a sentence about each of some files; settings as in `DecodingConfig`, by default a beam of five.

        >>> run.caption(["dog.jpg"])
        ["a brown dog runs on the grass"]
        """
        if not isinstance(self.goal, CaptionGoal) or not isinstance(self.task, ReadsQuestions):
            raise ConfigError(
                f"{self.path} is a {self.run.config.model_name} model of {self.run.config.task}: it writes no "
                "captions. Train one that does: seqwise train FOLDER --model captioner, captions.csv being in it."
            )
        schema, given = self.run.schema, {name: value for name, value in search.items() if value is not None}
        store = self.task.questions([str(image) for image in images], schema)
        found = self.goal.answers(self.model, store, schema, self.run.config.data, **given)
        return [str(answer["caption"]) for answer in found]
