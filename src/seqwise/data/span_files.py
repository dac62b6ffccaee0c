"""DATA -> questions with a passage each, in three parts: SQuAD 1.1 and 2.0, and sets that have a name.

    data = open_spans(["train-v2.0.json"], test="dev-v2.0.json")
    data.parts["train"][0]     # Question("56be…", "When did …?", "The crisis …", (Reference("in 1973", 29),), …)

A .json is laid out as SQuAD is: {"data": [{"title", "paragraphs": [{"context", "qas": [{"id", "question", "answers":
[{"text", "answer_start"}], "is_impossible"}]}]}]}. A .jsonl has a question on each line: {"id", "title", "context",
"question", "answers": {"text": […], "answer_start": […]}}.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError
from ..wording import counted, plural
from .builtin import is_span_toy
from .files import kind_of, read_text, shown
from .json_lines import check_whole, json_rows
from .label_split import CUT_SPLIT, VALID_SHARE, deal
from .public import is_span_set
from .questions import NOWHERE, Question, Reference, SpanData
from .source import DEFAULT_SPLIT, PARTS, part_of, unknown_set

NEARBY = 40  # characters from where an answer is said to stand
MIN_QUESTIONS = 3
LAYOUT = '{"data": [{"title": …, "paragraphs": [{"context": …, "qas": […]}]}]}, as SQuAD has it'
ROW = '{"context": "…", "question": "…", "answers": {"text": ["…"], "answer_start": [0]}}'
BEGINNING = 4096  # characters that tell what a file holds


@dataclass(frozen=True)
class SpanParts:
    """What a reader found, before it is split."""

    parts: dict[str, list[Question]]
    notes: list[str] = field(default_factory=list)


def open_spans(
    sources: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    stride: int | None = None,
) -> SpanData:
    """Find the questions, check that answers stand where they are said to, and put whole articles into parts.

    `sources` is one or more files, a folder with a file for each part, or the name of a data set.
    """
    name, found = _find(sources, valid, test)
    parts = {part: found.parts[part] for part in PARTS if part in found.parts}
    is_split = len(parts) > 1
    if is_split and split is not None:
        raise ConfigError(f'{name} has parts already, and --split-at "{split}" would make others; drop one.')
    _check_questions(name, parts)
    notes, words = found.notes, "split as given"
    if not is_split:
        parts, unit = _dealt(name, parts["train"], split or DEFAULT_SPLIT)
        words = f"split {split or DEFAULT_SPLIT} by {unit}"
    elif "valid" not in parts:
        cut, unit = _dealt(name, parts["train"], CUT_SPLIT)
        parts = {"train": cut["train"], "valid": cut["valid"], "test": parts["test"]}
        words = f"test as given, valid is {VALID_SHARE} % of what was there to train on, by {unit}"
    notes += _notes_on(parts)
    return SpanData(name, parts, words, notes, stride)


def open_whole_spans(sources: Sequence[str | Path], *, stride: int | None = None, answered: bool = True) -> SpanData:
    """Files as one part named "whole", to be scored; or to be answered, whatever answers they have."""
    paths = [Path(source) for source in sources]
    found = read_span_files({"test": paths}, answered=answered)
    questions, name = found.parts["test"], " and ".join(path.name for path in paths)
    if not questions:
        raise DataError(f"{name}: there are no questions in it.")
    return SpanData(name, {"whole": questions}, "read whole", found.notes, stride)


def looks_like_questions(sources: Sequence[str | Path]) -> bool:
    """Whether data is taken for questions on passages where nobody said so."""
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        return is_span_set(str(sources[0])) or is_span_toy(str(sources[0]))
    if len(paths) == 1 and paths[0].is_dir():
        return "train" in span_files(paths[0])
    return bool(paths) and all(is_span_file(path) for path in paths)


def is_span_file(path: Path) -> bool:
    if not path.is_file() or kind_of(path) not in (".json", ".jsonl"):
        return False
    try:
        beginning = next(read_text(path), "")[:BEGINNING]
    except DataError:
        return False
    if kind_of(path) == ".json":
        return '"data"' in beginning and '"paragraphs"' in beginning
    first = beginning.partition("\n")[0]
    return all(f'"{key}"' in first for key in ("context", "question"))


def span_files(folder: Path) -> dict[str, list[Path]]:
    """The files of a folder that hold questions, by part."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        part = part_of(path)
        if part is not None and is_span_file(path):
            found.setdefault(part, []).append(path)
    return {part: found[part] for part in PARTS if part in found}


def _find(sources: Sequence[str | Path], valid: str | Path | None, test: str | Path | None) -> tuple[str, SpanParts]:
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        if valid or test:
            raise ConfigError(f'"{sources[0]}" brings its own parts; drop --valid and --test.')
        return str(sources[0]), _named_set(str(sources[0]))
    files = {"train": paths}
    if len(paths) == 1 and paths[0].is_dir():
        files = span_files(paths[0])
        if "train" not in files:
            raise DataError(f"{paths[0]}: no questions to train on: expected files such as train.json and dev.json.")
    files |= {part: [Path(file)] for part, file in (("valid", valid), ("test", test)) if file is not None}
    return " and ".join(path.name for path in paths), read_span_files(files)


def _named_set(name: str) -> SpanParts:
    if is_span_toy(name):
        from .span_toys import room_questions

        return SpanParts(
            {"train": room_questions()}, ["a third of the questions ask for what the passage does not say"]
        )
    if is_span_set(name):
        from .span_sets import read_span_set

        return read_span_set(name)
    raise unknown_set(name)


# -- reading -------------------------------------------------------------------------------------------------------


@dataclass
class _Seen:
    """What was odd in a file."""

    answers: int = 0
    mended: int = 0
    lost: int = 0
    """Answers that stand nowhere, or at several places: what is learned from leaves them out."""
    is_learned: bool = True
    first: str = ""
    """Of the questions with an answer that was not at its place."""
    unanswered: int = 0
    blank: int = 0
    """Questions, or passages, without a character."""
    copies: int = 0
    renamed: int = 0

    def sentences(self, name: str) -> Iterator[str]:
        if self.mended or self.lost:
            odd = self.mended + self.lost
            done = [f"{self.mended:,} {plural(self.mended, 'stands', 'stand')} nearby and {_is(self.mended)} mended"]
            done = done if self.mended else []
            fate = "left out" if self.is_learned else "compared with, wherever they stand"
            done += [f"{self.lost:,} {_is(self.lost)} {fate}"] if self.lost else []
            many = f"{odd:,} of {counted(self.answers, 'answer')} {plural(odd, 'is', 'are')} not at the place"
            yield f"{name}: {many} that is given ({', '.join(done)}; first in question {shown(self.first)})"
        if self.unanswered:
            many = counted(self.unanswered, "question")
            yield f"{name}: {many} {_is(self.unanswered)} left out, no answer being left"
        if self.blank:
            yield f"{name}: {counted(self.blank, 'question')} without a text or a passage {_is(self.blank)} left out"
        if self.copies:
            yield f"{name}: {counted(self.copies, 'question')} {plural(self.copies, 'stands', 'stand')} there twice"
        if self.renamed:
            ids = counted(self.renamed, "id belongs", "ids belong")
            yield f"{name}: {ids} to several questions, which now have a number behind it"


def _is(number: int) -> str:
    return plural(number, "is", "are")


def read_span_files(files: dict[str, list[Path]], *, answered: bool = True) -> SpanParts:
    """`answered`: whether questions are read with their answers, and to have none is a mistake.

    What is only scored keeps answers that stand nowhere: they are compared with by their words.
    """
    parts: dict[str, list[Question]] = {}
    notes: list[str] = []
    for part in PARTS:
        for path in files.get(part, ()):
            raw = _raw_questions(path, answered=answered)
            found, odd = checked_questions(raw, path.name, is_learned=part == "train")
            parts.setdefault(part, []).extend(found)
            notes += odd
    return SpanParts(parts, notes)


def checked_questions(
    raw: Iterator[tuple[Question, bool]], name: str, *, is_learned: bool = True
) -> tuple[list[Question], list[str]]:
    """Questions whose answers stand where they are said to, or nearby, and what was odd in words; each comes with
    whether it may lack an answer."""
    seen = _Seen(is_learned=is_learned)
    return list(_checked(raw, seen)), list(seen.sentences(name))


def _checked(raw: Iterator[tuple[Question, bool]], seen: _Seen) -> Iterator[Question]:
    known: dict[str, list[Question]] = {}
    for question, may_lack in raw:
        if not question.text.strip() or not question.passage.strip():
            seen.blank += 1
            continue
        found = question._replace(references=tuple(_mended(question, seen)))
        if not found.references and not may_lack:
            seen.unanswered += 1
            continue
        others = known.setdefault(found.id, [])
        if found in others:
            seen.copies += 1
            continue
        others.append(found)
        if len(others) > 1:
            seen.renamed += 1
            found = found._replace(id=f"{found.id}#{len(others)}")
        yield found


def _mended(question: Question, seen: _Seen) -> Iterator[Reference]:
    for reference in question.references:
        seen.answers += 1
        place = place_of(reference, question.passage)
        if place != reference.start:
            seen.first = seen.first or question.id
            seen.lost, seen.mended = seen.lost + (place is None), seen.mended + (place is not None)
        if place is not None or not seen.is_learned:
            yield Reference(reference.text, NOWHERE if place is None else place)


def place_of(reference: Reference, passage: str) -> int | None:
    """Where an answer stands: at its place, else at the only other one, or at the only one nearby; else None."""
    text, start = reference
    if not text.strip():
        return None
    if start >= 0 and passage.startswith(text, start):
        return start
    places, place = [], passage.find(text)
    while place >= 0:
        places.append(place)
        place = passage.find(text, place + 1)
    near = [place for place in places if abs(place - start) <= NEARBY]
    return next((some[0] for some in (places, near) if len(some) == 1), None)


def _raw_questions(path: Path, *, answered: bool) -> Iterator[tuple[Question, bool]]:
    if not path.exists():
        raise DataError(f"{path}: no such file or folder.")
    return (_of_rows if kind_of(path) == ".jsonl" else _of_articles)(path, answered)


def _of_articles(path: Path, answered: bool) -> Iterator[tuple[Question, bool]]:
    try:
        whole = json.loads("".join(read_text(path)))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}). Get the file again.") from None
    for number, article in enumerate(_list(whole, "data", f"{path}", LAYOUT), start=1):
        where = f"{path}: article {number:,}"
        paragraphs = _list(article, "paragraphs", where, LAYOUT)
        title = str(article.get("title", f"article {number}"))
        for place, paragraph in enumerate(paragraphs, start=1):
            inside = f"{where} ({shown(title)}), paragraph {place:,}"
            asked = _list(paragraph, "qas", inside, LAYOUT)
            passage = _text(paragraph, "context", inside)
            for one in asked:
                yield _question(one, passage, title, inside, answered)


def _of_rows(path: Path, answered: bool) -> Iterator[tuple[Question, bool]]:
    for number, row in json_rows(path, ROW):
        if row is not None:
            where, passage = f"{path}: line {number:,}", _text(row, "context", f"{path}: line {number:,}")
            yield _question({"id": str(number), **row}, passage, str(row.get("title") or ""), where, answered)


def _question(one: Any, passage: str, article: str, where: str, answered: bool) -> tuple[Question, bool]:
    """And whether it may lack an answer: it says so, or has an empty list of them."""
    text = _text(one, "question", where)
    identity = str(one.get("id", f"{article} {text}"))
    if not answered:
        return Question(identity, text, passage, (), article or passage), True
    given = one.get("answers")
    if given is None:
        raise DataError(f'{where}: question {shown(identity)} has no "answers". Give them, or an empty list for none.')
    if isinstance(given, dict):
        texts, starts = given.get("text"), given.get("answer_start")
        given = None
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]
    is_sound = isinstance(given, list) and all(
        isinstance(each, dict) and isinstance(each.get("text"), str) and type(each.get("answer_start")) is int
        for each in given
    )
    if not is_sound:
        expected = '[{"text": "…", "answer_start": 0}]'
        raise DataError(f"{where}: the answers of question {shown(identity)} are not as expected, {expected}.")
    lacks = one.get("is_impossible") is True
    references = [] if lacks else [Reference(check_whole(each["text"], where), each["answer_start"]) for each in given]
    return Question(identity, text, passage, tuple(references), article or passage), lacks or not given


def _list(holder: Any, key: str, where: str, expected: str) -> list[Any]:
    found = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(found, list):
        raise DataError(f'{where}: has no list "{key}"; expected {expected}.')
    return found


def _text(holder: Any, key: str, where: str) -> str:
    found = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(found, str):
        raise DataError(f'{where}: has no text "{key}"; a question needs one to be answered from: {ROW}.')
    return check_whole(found, where)


# -- parts ---------------------------------------------------------------------------------------------------------


def _check_questions(name: str, parts: dict[str, list[Question]]) -> None:
    total = sum(len(some) for some in parts.values())
    if total < MIN_QUESTIONS:
        raise DataError(
            f"{name}: {counted(total, 'question')} with a passage; {MIN_QUESTIONS} are the fewest to train, validate "
            "and test on. A model needs some hundred at least."
        )
    for part, some in parts.items():
        if not some:
            raise DataError(f"{name}: the {part} part has no questions.")
    if not any(question.references for question in parts["train"]):
        raise DataError(f"{name}: no question to train on has an answer: there is nothing to learn.")


def _dealt(name: str, questions: list[Question], split: str) -> tuple[dict[str, list[Question]], str]:
    """By article, so that no part knows what another is about; by passage where there are too few of them."""
    group_of = joined_articles(questions)
    num_parts = split.count("/") + 1
    unit = "article"
    if len(set(group_of.values())) < 2 * num_parts:
        group_of, unit = {passage: passage for passage in group_of}, "passage"
    return deal(name, questions, key=lambda one: group_of[one.passage], label=lambda _: "", split=split), unit


def joined_articles(questions: Sequence[Question]) -> dict[str, str]:
    """The article of each passage; articles that share a passage count as one."""
    above: dict[str, str] = {}

    def root(article: str) -> str:
        while above.setdefault(article, article) != article:
            article = above[article]
        return article

    article_of: dict[str, str] = {}
    for question in questions:
        first = article_of.setdefault(question.passage, question.article)
        above[root(question.article)] = root(first)
    return {passage: root(article) for passage, article in article_of.items()}


def _notes_on(parts: dict[str, list[Question]]) -> Iterator[str]:
    known = {question.passage for question in parts["train"]}
    may_lack = any(not question.references for question in parts["train"])
    for part, questions in parts.items():
        if part == "train":
            continue
        if num_known := sum(question.passage in known for question in questions):
            yield f"{part}: {num_known:,} of {len(questions):,} questions are on passages of the training part"
        counts = Counter(bool(question.references) for question in questions)
        if counts[False] and not may_lack:
            many = counted(counts[False], "question has", "questions have")
            yield f"{part}: {many} no answer, and no model can be right there: the training part always has one"
