"""DATA -> questions with a few choices each, in three parts: tables, and toys that have a name.

What is asked is in one column or several, the choices in a list or in columns with a number or a letter each, and the
right one is told by its number, from 0 or from 1, by its letter, or by its text:

    {"question": "where do fish live", "choices": ["in water", "in trees"], "answer": "A"}
    context,question,answer0,answer1,answer2,label
    {"ctx": "a man sits down and", "endings": ["flies off", "reads"], "label": 1}
    {"question": "…", "choices": {"text": ["…", "…"], "label": ["A", "B"]}, "answerKey": "B"}
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError, DataError
from ..wording import counted
from .annotated import LabelledData, LabelledRow
from .builtin import is_choice_toy
from .files import kind_of, shown
from .label_checks import lines_told
from .label_folders import one_line
from .label_split import CUT_SPLIT, VALID_SHARE, deal
from .labelled import given_roles
from .source import DEFAULT_SPLIT, PARTS, unknown_set
from .text_tables import TABLE_KINDS, Cell, Table, read_beginning, read_table

CONTEXT_NAMES = (
    *("context", "passage", "article", "story", "premise", "ctx", "goal", "sent1", "sent2", "text", "question", "stem"),
    "prompt",
)
"""What is asked, in this order where a table has several."""
LIST_NAMES = ("choices", "endings", "options", "answers", "candidates")
NUMBERED = re.compile(r"(ending|choice|option|answer|candidate|sol|solution)[ _]?(\d|[a-h])", re.IGNORECASE)
ANSWER_NAMES = ("label", "answerkey", "answer_key", "answer", "correct", "gold", "target", "correct_answer")
KNOWN_NAMES = frozenset({*CONTEXT_NAMES, *LIST_NAMES, *ANSWER_NAMES})
MIN_ROWS = 3
TOY_ROWS, TOY_WORDS, TOY_LENGTH, TOY_CHOICES = 3_000, 40, 6, 4


@dataclass(frozen=True)
class ChoiceData(LabelledData):
    """LabelledRow(("where do fish live", "in water", "in trees"), "1"): the right one by its number from 1."""

    @property
    def num_texts(self) -> int:
        """That are read together: what is asked, and one of the choices."""
        return 2

    @property
    def num_choices(self) -> int:
        """Of a question, at most."""
        return max(len(row.texts) - 1 for rows in self.parts.values() for row in rows)

    @property
    def labels(self) -> list[str]:
        """Numbers of the choices, from 1."""
        return [str(number + 1) for number in range(self.num_choices)]

    @property
    def description(self) -> str:
        total = sum(len(rows) for rows in self.parts.values())
        fewest = min(len(row.texts) - 1 for rows in self.parts.values() for row in rows)
        choices = f"{fewest} to {self.num_choices}" if fewest < self.num_choices else str(self.num_choices)
        sizes = ", ".join(f"{part} {len(rows):,}" for part, rows in self.parts.items())
        return f"{self.name}: {counted(total, 'question')} with {choices} choices each; {self.split} ({sizes})"


class Columns(NamedTuple):
    """What is where in a table."""

    contexts: list[str]
    choices: list[str]
    """One that holds lists, or one for each choice."""
    answer: str | None

    @property
    def as_given(self) -> tuple[str, ...]:
        """As --columns has it; columns of one choice each are found again by their names."""
        named = [f"{role}={name}" for role, name in zip(("text", "text2"), self.contexts, strict=False)]
        named += [f"choices={self.choices[0]}"] if len(self.choices) == 1 else []
        return (*named, *([f"label={self.answer}"] if self.answer else []))


class Question(NamedTuple):
    """A row of a table, before it is known how its answers are counted."""

    line: int
    context: str
    choices: tuple[str, ...]
    names: tuple[str, ...]
    """What an answer may call them; none where they are counted."""
    answer: str


@dataclass(frozen=True)
class Found:
    rows: list[LabelledRow]
    notes: list[str]
    columns: Columns


def open_choices(
    sources: Sequence[str | Path],
    *,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    split: str | None = None,
    columns: Sequence[str] = (),
) -> ChoiceData:
    """Find the questions, their choices and answers, and put them into parts; the same context is in one part."""
    files = {part: file for part, file in (("valid", valid), ("test", test)) if file is not None}
    if len(sources) == 1 and not Path(sources[0]).exists():
        if not is_choice_toy(str(sources[0])):
            raise unknown_set(str(sources[0]))
        if files or columns:
            raise ConfigError(f'"{sources[0]}" brings its own parts and columns; drop --valid, --test and --columns.')
        name, parts, notes, as_given = str(sources[0]), {"train": which_word()}, list[str](), tuple[str, ...]()
    else:
        name = " and ".join(Path(source).name for source in sources)
        found = {"train": read_choices(sources, columns)}
        as_given = found["train"].columns.as_given
        found |= {part: read_choices([file], columns) for part, file in files.items()}
        parts = {part: found[part].rows for part in PARTS if part in found}
        notes = [note for one in found.values() for note in one.notes]
    _check(name, parts)
    if len(parts) > 1 and split is not None:
        raise ConfigError(f'{name} has parts already, and --split-at "{split}" would make others; drop one.')
    words = "split as given"
    if len(parts) == 1:
        parts, words = _deal(name, parts["train"], split or DEFAULT_SPLIT), f"shuffled, split {split or DEFAULT_SPLIT}"
    elif "valid" not in parts:
        cut = _deal(name, parts["train"], CUT_SPLIT)
        parts = {"train": cut["train"], "valid": cut["valid"], "test": parts["test"]}
        words = f"test as given, valid is {VALID_SHARE} % of what was there to train on, shuffled"
    return ChoiceData(name, parts, "label", words, notes, as_given)


def _deal(name: str, rows: Sequence[LabelledRow], split: str) -> dict[str, list[LabelledRow]]:
    return deal(name, rows, key=lambda row: row.texts[0], label=lambda row: "", split=split)


def _check(name: str, parts: dict[str, list[LabelledRow]]) -> None:
    total = sum(len(rows) for rows in parts.values())
    if total < MIN_ROWS or not all(parts.values()):
        raise DataError(
            f"{name}: {counted(total, 'question')} with choices and an answer; {MIN_ROWS} are the fewest to train, "
            "validate and test on. A model needs some hundred at least."
        )


def open_whole_choices(source: str | Path, columns: Sequence[str]) -> ChoiceData:
    """A table as one part named "whole", for scoring."""
    found = read_choices([source], columns)
    if not found.rows:
        raise DataError(f"{source}: no questions with choices and an answer. Give some to score.")
    return ChoiceData(Path(source).name, {"whole": found.rows}, "label", "scored whole", found.notes)


def questions_of(source: str | Path, columns: Sequence[str]) -> list[LabelledRow]:
    """The questions of a table, to be answered: no answer is needed there."""
    given = [column for column in columns if not column.startswith("label=")]
    rows, _ = _questions(Path(source), given)
    return [LabelledRow((row.context, *row.choices), "") for row in rows]


def looks_like_choices(sources: Sequence[str | Path]) -> bool:
    """Whether data is taken for questions with choices where nobody said so."""
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        return is_choice_toy(str(sources[0]))
    for path in paths:
        table = read_beginning(path, KNOWN_NAMES) if path.is_file() and kind_of(path) in TABLE_KINDS else None
        if table is None or not table.has_header:
            return False
        choices, names = _choice_columns(table), {name.casefold() for name in table.names}
        if not choices or not names & set(CONTEXT_NAMES) or not names & set(ANSWER_NAMES):
            return False
        if len(choices) == 1 and not any(_parts_of(row.cells[table.checked_place(choices[0])]) for row in table.rows):
            return False
    return True


# -- one table -------------------------------------------------------------------------------------------------------


def read_choices(sources: Sequence[str | Path], columns: Sequence[str]) -> Found:
    """Questions with their answers; those without one are left out, and told."""
    rows: list[LabelledRow] = []
    notes: list[str] = []
    for path in map(Path, sources):
        questions, found = _questions(path, columns)
        if found.answer is None:
            raise DataError(f"{path}: there is no column with the right choice. Name it with --columns label=NAME.")
        first, missing = _first_number(questions, found), list[int]()
        for row in questions:
            right = _right(row, first, path)
            if right is None:
                missing.append(row.line)
            else:
                rows.append(LabelledRow((row.context, *row.choices), str(right + 1)))
        told = f"what is asked is in {' and '.join(found.contexts)}, choices in {', '.join(found.choices)}"
        notes.append(f"{path.name}: {told}, the right one in {found.answer}" + _counted_from(questions, first))
        if missing:
            lines = f"({lines_told(missing)}) and {'is' if len(missing) == 1 else 'are'} left out"
            notes.append(f"{path.name}: {counted(len(missing), 'row has', 'rows have')} no answer {lines}")
    return Found(rows, notes, found)


def _counted_from(questions: Sequence[Question], first: int) -> str:
    return f", counted from {first}" if any(row.answer.isdecimal() and not row.names for row in questions) else ""


def _questions(path: Path, columns: Sequence[str]) -> tuple[list[Question], Columns]:
    if not path.exists():
        raise DataError(f"{path}: no such file or folder.")
    if kind_of(path) not in TABLE_KINDS:
        raise DataError(f"{path}: questions with choices are read from a .csv, .tsv or .jsonl file.")
    table = read_table(path, KNOWN_NAMES)
    found = _columns(table, given_roles(columns))
    contexts, choices = ([table.checked_place(name) for name in names] for names in (found.contexts, found.choices))
    answer = None if found.answer is None else table.checked_place(found.answer)
    rows = []
    for row in table.rows:
        context = " ".join(filter(None, (_text(row.cells[place]) for place in contexts)))
        texts, names = _cells_of([row.cells[place] for place in choices])
        if not context or len(texts) < 2:
            missing = "no question" if not context else f"{counted(len(texts), 'choice')}, and two are the fewest"
            raise DataError(f"{path}: line {row.line} has {missing}. Mend it, or leave it out.")
        rows.append(Question(row.line, context, texts, names, "" if answer is None else _text(row.cells[answer])))
    return rows, found


def _columns(table: Table, given: dict[str, str]) -> Columns:
    lower = {name.casefold(): name for name in table.names}
    contexts = [given[role] for role in ("text", "text2") if role in given]
    contexts = contexts or [lower[name] for name in CONTEXT_NAMES if name in lower]
    choices = [given["choices"]] if "choices" in given else _choice_columns(table)
    answers = [lower[name] for name in ANSWER_NAMES if name in lower and lower[name] not in (*contexts, *choices)]
    for found, what, role in ((contexts, "what is asked", "text"), (choices, "the choices", "choices")):
        if not found:
            raise DataError(
                f"{table.path}: no column is known for {what}; it has {', '.join(table.names)}. Name it with "
                f"--columns {role}=NAME."
            )
    return Columns(contexts, choices, given.get("label") or next(iter(answers), None))


def _choice_columns(table: Table) -> list[str]:
    """One with lists, or those with a number or letter each, in their order."""
    numbered: dict[str, list[str]] = {}
    for name in table.names:
        if match := NUMBERED.fullmatch(name):
            numbered.setdefault(match[1].casefold(), []).append(name)
    several = max(numbered.values(), key=len, default=[])
    if len(several) > 1:
        return sorted(several, key=str.casefold)
    return [name for name in table.names if name.casefold() in LIST_NAMES][:1]


def _cells_of(cells: Sequence[Cell]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts of the choices, and what they are called where that is said."""
    if len(cells) > 1:
        return tuple(text for cell in cells if (text := _text(cell))), ()
    return _parts_of(cells[0]) or ((), ())


def _parts_of(cell: Cell) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Of a list; of texts with labels; of a cell with | between. None where it is one text."""
    if isinstance(cell, tuple):
        return tuple(filter(None, map(one_line, cell))), ()
    if cell.startswith(("[", "{")):
        try:
            return _of_json(json.loads(cell))
        except (ValueError, TypeError, KeyError):
            return None
    parts = tuple(one_line(part) for part in cell.split("|"))
    return (parts, ()) if len(parts) > 1 else None


def _of_json(value: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """{"text": [...], "label": [...]} or [{"text": …, "label": …}, …]."""
    pairs = zip(value["text"], value["label"], strict=True) if isinstance(value, dict) else None
    found = list(pairs or ((one["text"], one["label"]) for one in value))
    return tuple(one_line(str(text)) for text, _ in found), tuple(str(label) for _, label in found)


def _text(cell: Cell) -> str:
    return one_line(cell if isinstance(cell, str) else " ".join(cell))


def _first_number(questions: Sequence[Question], columns: Columns) -> int:
    """Whether answers that are numbers are counted from 0 or from 1."""
    numbers = [int(row.answer) for row in questions if row.answer.isdecimal() and not row.names]
    if not numbers or min(numbers) == 0:
        return 0
    most = max(len(row.choices) for row in questions)
    named = NUMBERED.fullmatch(columns.choices[0])
    return int(max(numbers) == most or bool(named and named[2] == "1"))


def _right(row: Question, first: int, path: Path) -> int | None:
    """The place of the right choice; None where there is no answer."""
    if row.answer in ("", "-1"):
        return None
    place = -1
    if row.names:
        place = row.names.index(row.answer) if row.answer in row.names else -1
    elif row.answer.isdecimal():
        place = int(row.answer) - first
    elif len(row.answer) == 1 and row.answer.isalpha():
        place = ord(row.answer.casefold()) - ord("a")
    elif row.answer in row.choices:
        place = row.choices.index(row.answer)
    if not 0 <= place < len(row.choices):
        raise DataError(
            f"{path}: line {row.line}: the answer {shown(row.answer)} is none of its "
            f"{len(row.choices)} choices. Give its number, its letter or its text."
        )
    return place


# -- a toy -----------------------------------------------------------------------------------------------------------


def which_word() -> list[LabelledRow]:
    """Six words, and four of which one is among them."""
    chance, rows = random.Random(0), []
    words = [
        f"{a}{b}" for a in ("ba", "do", "fi", "gu", "le", "mo", "nu", "pa") for b in ("ki", "lo", "ra", "su", "te")
    ]
    for _ in range(TOY_ROWS):
        drawn = chance.sample(words[:TOY_WORDS], TOY_LENGTH + TOY_CHOICES - 1)
        read, others = drawn[:TOY_LENGTH], drawn[TOY_LENGTH:]
        right = chance.randrange(TOY_CHOICES)
        choices = [*others[:right], chance.choice(read), *others[right:]]
        rows.append(LabelledRow((" ".join(read), *choices), str(right + 1)))
    return rows
