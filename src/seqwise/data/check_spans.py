"""The preflight for questions on passages: how long passages, questions and answers are, what a test knows already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..wording import counted
from .check_labels import counts_by_part, warnings_on_leaks
from .check_pairs import Quantiles
from .questions import Question, SpanData, distinct_passages

MIN_QUESTIONS = 1000
LONG_PASSAGE = 300  # words: about what a window of 384 tokens holds
LONG_ANSWER = 20  # words
MAX_LONG_SHARE = 0.05
FIRST_WORDS = 12  # by which questions are told apart in a table


@dataclass(frozen=True)
class SpanFacts:
    """One part."""

    questions: int
    passages: int
    articles: int
    without_answer: int
    several_answers: int
    """Questions to which people gave different answers."""
    passage_words: Quantiles
    question_words: Quantiles
    answer_words: Quantiles | None
    """None where no question has an answer."""
    first_words: dict[str, int]
    """Questions that begin with each: who, when, where."""
    long_passages: int
    """Questions whose passage takes several windows of 384 tokens, about."""
    known_passages: int = 0
    """Questions on passages that stand in the training part too."""


@dataclass(frozen=True)
class SpanCheck:
    description: str
    parts: dict[str, SpanFacts]
    notes: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        yield self.description
        yield from self.notes
        for part, facts in self.parts.items():
            none = f", {facts.without_answer:,} of them without an answer" if facts.without_answer else ""
            on = f"{counted(facts.passages, 'passage')} of {counted(facts.articles, 'article')}"
            yield f"{part}: {counted(facts.questions, 'question')}{none}, on {on}"
            yield f"{part}: words of a passage {facts.passage_words}; of a question {facts.question_words}"
            if facts.answer_words is not None:
                differ = counted(facts.several_answers, "question has", "questions have")
                yield f"{part}: words of an answer {facts.answer_words}; {differ} answers that differ"

    def tables(self) -> Iterator[list[list[str]]]:
        counts = {part: facts.first_words for part, facts in self.parts.items()}
        yield counts_by_part("question", counts, {part: facts.questions for part, facts in self.parts.items()})


def check_spans(data: SpanData) -> SpanCheck:
    known = {question.passage for question in data.parts["train"]}
    parts = {part: _facts(rows, set() if part == "train" else known) for part, rows in data.parts.items()}
    return SpanCheck(data.description, parts, data.notes, list(_warnings(parts)))


def _facts(questions: Sequence[Question], known: set[str]) -> SpanFacts:
    passages = distinct_passages(questions)
    words = {passage: len(passage.split()) for passage in passages}
    first = Counter(question.text.split()[0].lower() for question in questions)
    shown = dict(first.most_common(FIRST_WORDS))
    others = sum(first.values()) - sum(shown.values())
    answers = [len(text.split()) for question in questions for text in question.texts[:1]]
    return SpanFacts(
        len(questions),
        len(passages),
        len({question.article for question in questions}),
        sum(not question.references for question in questions),
        sum(len(set(question.texts)) > 1 for question in questions),
        Quantiles.of(list(words.values())),
        Quantiles.of([len(question.text.split()) for question in questions]),
        Quantiles.of(answers) if answers else None,
        {**shown, **({"others": others} if others else {})},
        sum(words[question.passage] > LONG_PASSAGE for question in questions),
        sum(question.passage in known for question in questions),
    )


def _warnings(parts: dict[str, SpanFacts]) -> Iterator[str]:
    train = parts["train"]
    if train.questions < MIN_QUESTIONS:
        yield (
            f"the training part has only {counted(train.questions, 'question')}: begin with a model that has read "
            "other text before (--from RUN)"
        )
    if train.long_passages > MAX_LONG_SHARE * train.questions:
        many = counted(train.long_passages, "question is", "questions are")
        yield f"train: {many} on passages of more than {LONG_PASSAGE} words, which are read in several windows"
    if train.answer_words is not None and train.answer_words.most > LONG_ANSWER:
        longest = counted(round(train.answer_words.most), "word")
        yield f"train: the longest answer has {longest}: is it a span to point at?"
    for part, facts in parts.items():
        if part != "train":
            yield from warnings_on_leaks(part, facts.known_passages, facts.questions, "questions")
        lacks, others = (one.without_answer / max(1, one.questions) for one in (facts, train))
        if bool(lacks) != bool(others):
            which = (part, "train") if lacks else ("train", part)
            yield f"some questions of {which[0]} have no answer, and all of {which[1]} have one"
