"""Which columns of a table are texts, and which one holds the answer: a label, several labels, or a number.

Roles are given (text=review, label=stars), or found: by what columns are called, then by what they hold.

    text      mostly letters, hardly ever the same
    label     short cells, few of them distinct, that come again and again; whole numbers of at most 20 kinds
    number    other numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from ..errors import ConfigError, DataError, did_you_mean
from .files import kind_of
from .source import part_of
from .text_tables import TABLE_KINDS, TEXT_WORDS, Cell, Table, is_number, read_beginning, read_table

ROLES = ("text", "text2", "label", "labels", "number", "tags", "choices")
CLASS_NAMES = (  # the first that a table has is it
    *("label", "labels", "gold_label", "label_text", "label_name", "label_id", "class", "category", "intent", "topic"),
    *("emotion", "sentiment", "polarity", "language", "nationality", "entailment_judgment", "is_duplicate"),
    *("is_spam", "is_toxic", "spam", "toxic", "quality"),
)
RATING_NAMES = ("rating", "stars")
NUMBER_NAMES = ("score", "similarity", "relatedness_score", "relatedness", "number", "value")
LABEL_NAMES = (*CLASS_NAMES, *RATING_NAMES)
TEXT_NAMES = (
    *("text", "texts", "sentence", "review", "message", "comment", "tweet", "title", "body", "content", "utterance"),
    *("headline", "document", "question", "query", "phrase", "name", "post", "description", "abstract"),
)
TEXT_PAIRS = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2")),
    *(("text", "text2"), ("text_a", "text_b"), ("sentence_a", "sentence_b"), ("#1 string", "#2 string")),
    *(("question", "sentence"), ("query", "passage"), ("query", "document"), ("question", "passage")),
)
ID_NAMES = ("", "id", "idx", "index", "guid", "uid", "pair_id", "pairid", "unnamed: 0", "#1 id", "#2 id")
KNOWN_NAMES = frozenset(
    {*LABEL_NAMES, *NUMBER_NAMES, *TEXT_NAMES, *(name for pair in TEXT_PAIRS for name in pair), *ID_NAMES} - {""}
)
LOOKED_AT = 1000  # rows, taken from all over the table
MIN_ROWS = 20  # to take a column for labels that is not named so
MAX_LABELS = 50
MAX_WHOLE_NUMBERS = 20  # distinct ones, that are labels
MAX_LABEL_CHARACTERS = 30  # characters
LABEL_WORDS = 2


@dataclass(frozen=True)
class Roles:
    texts: tuple[str, ...]
    """Names of columns."""
    answer: str
    asks_for: Literal["label", "labels", "number"]

    @property
    def as_columns(self) -> tuple[str, ...]:
        """As --columns takes them."""
        texts = (f"{role}={name}" for role, name in zip(("text", "text2"), self.texts, strict=False))
        return (*texts, f"{self.asks_for}={self.answer}")


@dataclass(frozen=True)
class Reading:
    """What a table would be, if it is of labelled texts."""

    texts: list[str]
    answer: str
    other_task: str
    """As which it could be read as well; empty where there is no doubt."""


@dataclass(frozen=True)
class _Column:
    name: str
    cells: list[Cell]
    step: int
    """The cells are of every so many-th row."""

    @cached_property
    def words(self) -> list[str]:
        return [cell if isinstance(cell, str) else " ".join(cell) for cell in self.cells]

    @cached_property
    def num_distinct(self) -> int:
        return len(set(self.words))

    @property
    def key(self) -> str:
        return self.name.casefold()

    @property
    def mean_words(self) -> float:
        return sum(len(cell.split()) for cell in self.words) / max(1, len(self.words))

    @cached_property
    def is_id(self) -> bool:
        """A name or a number of the row, which never comes again."""
        if self.key in LABEL_NAMES or self.num_distinct < len(self.words):
            return self.key in ID_NAMES
        if self.key in ID_NAMES or self.key.endswith(("_id", " id")):
            return True
        if len(self.words) < MIN_ROWS or not all(_is_code(cell) for cell in self.words):
            return False
        numbers = [int(cell) for cell in self.words if cell.isdecimal()]
        return len(numbers) < len(self.words) or max(numbers) - min(numbers) <= 2 * self.step * len(numbers)

    @cached_property
    def is_varied(self) -> bool:
        """Mostly letters and hardly ever the same: not dates, not kinds of weather."""
        everything = "".join(self.words)
        letters = sum(character.isalpha() for character in everything)
        visible = sum(not character.isspace() for character in everything)
        return 2 * self.num_distinct >= len(self.words) and 2 * letters >= max(1, visible)

    @property
    def is_text(self) -> bool:
        return self.is_varied and self.mean_words >= TEXT_WORDS

    @cached_property
    def is_short(self) -> bool:
        return all(len(cell) <= MAX_LABEL_CHARACTERS and len(cell.split()) <= LABEL_WORDS for cell in self.words)

    @cached_property
    def is_list(self) -> bool:
        return any(isinstance(cell, tuple) for cell in self.cells)

    @property
    def is_label(self) -> bool:
        """Short, and few that come again and again; where the name says so, few are enough."""
        if self.key in LABEL_NAMES and self.is_list:
            return True
        if not self.is_short:
            return False
        if self.key in LABEL_NAMES:
            return self.num_distinct <= MAX_LABELS
        return len(self.words) >= MIN_ROWS and 2 <= self.num_distinct <= min(MAX_LABELS, len(self.words) // 5)

    @cached_property
    def is_numeric(self) -> bool:
        return any(self.words) and all(is_number(cell) for cell in self.words if cell)


def _is_code(cell: str) -> bool:
    return cell.isascii() and cell.isalnum() and any(character.isdecimal() for character in cell)


# -- roles that are given ------------------------------------------------------------------------------------------


def has_roles(columns: Sequence[str]) -> bool:
    """Whether columns are given with what they are for, as text=review."""
    return any(column.partition("=")[0] in ROLES and "=" in column for column in columns)


def given_roles(columns: Sequence[str]) -> dict[str, str]:
    """["text=review", "label=stars"] -> {"text": "review", "label": "stars"}.

    Bare names are a text and its label, or two texts and their label.
    """
    if not columns:
        return {}
    if not any("=" in column for column in columns):
        bare = {1: ("text",), 2: ("text", "label"), 3: ("text", "text2", "label")}.get(len(columns))
        if bare is None:
            raise ConfigError(f"--columns: {len(columns)} names; say what they are, such as --columns text=a,label=b.")
        return dict(zip(bare, columns, strict=True))
    found: dict[str, str] = {}
    for column in columns:
        role, equals, name = column.partition("=")
        if not equals or not name:
            raise ConfigError(f'--columns "{column}": expected a role and a name, such as text=review or label=stars.')
        if role not in ROLES:
            raise ConfigError(f'--columns "{column}": unknown role "{role}". {did_you_mean(role, ROLES)}')
        if role in found:
            raise ConfigError(f"--columns gives {role}= twice; drop one.")
        found[role] = name
    answers = [role for role in ("label", "labels", "number") if role in found]
    if len(answers) > 1:
        raise ConfigError(f"--columns asks for {' and '.join(answers)}; a model learns one of them. Drop the other.")
    if "text2" in found and "text" not in found:
        raise ConfigError("--columns has text2= and no text=; name both.")
    return found


# -- roles that are found ------------------------------------------------------------------------------------------


def find_roles(table: Table, given: dict[str, str]) -> Roles:
    """Of a table that is known to be of labelled texts; where they are not clear, a DataError asks for --columns."""
    columns = _sampled(table)
    texts = find_texts(table, given)
    answer = next((given[role] for role in ("label", "labels", "number") if role in given), None)
    if answer is None:
        column = _answer_column(table, [column for column in columns if column.name not in texts])
    else:
        column = columns[table.checked_place(answer)]
    return Roles(texts, column.name, _asks_for(table, column.name, given))


def find_texts(table: Table, given: dict[str, str]) -> tuple[str, ...]:
    """The column of the texts, or two."""
    if "text" in given:
        wanted = [given[role] for role in ("text", "text2") if role in given]
        return tuple(table.names[table.checked_place(name)] for name in wanted)
    answers = [table.names[table.checked_place(given[role])] for role in ("label", "labels", "number") if role in given]
    columns = [column for column in _sampled(table) if column.name not in answers]
    found = _text_columns(columns, is_sure=True)
    if not found:
        raise DataError(f"{table.path}: no column of texts among {_listed(table)}. Name it with --columns text=NAME.")
    if len(found) > 2:
        raise DataError(
            f"{table.path}: the columns {', '.join(column.name for column in found)} all hold texts. Name the one to "
            f"read, or two, such as --columns text={found[0].name}."
        )
    return tuple(column.name for column in found)


def _text_columns(columns: Sequence[_Column], *, is_sure: bool) -> list[_Column]:
    """By name, then by content. `is_sure` where the table is known to be of texts, so that they may be short."""
    by_name = {column.key: column for column in columns}
    for pair in TEXT_PAIRS:
        if all(name in by_name for name in pair):
            return [by_name[name] for name in pair]
    named = [column for column in columns if column.key in TEXT_NAMES]
    if named:
        return [max(named, key=lambda column: column.mean_words)]
    found = [column for column in columns if column.is_text and not column.is_id]
    if not found and is_sure:
        varied = [column for column in columns if column.is_varied and not column.is_id]
        found = varied[:1] if len(varied) == 1 else []
    if not found and is_sure and len(columns) == 1:
        found = list(columns)
    return found


def _answer_column(table: Table, columns: Sequence[_Column]) -> _Column:
    named = [column for column in columns if column.key in (*LABEL_NAMES, *NUMBER_NAMES)]
    if named:
        return min(named, key=_name_rank)
    rest = [column for column in columns if not column.is_id and not column.is_text]
    candidates = [column for column in rest if column.is_label or column.is_list]
    candidates = candidates or [column for column in rest if column.is_numeric] or rest
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise DataError(
            f"{table.path}: no column of labels or numbers beside the texts; it has {_listed(table)}. Name it with "
            "--columns label=NAME."
        )
    names = [column.name for column in candidates]
    raise DataError(
        f"{table.path}: the answer may stand in {', '.join(names[:-1])} or {names[-1]}. Say which with --columns, such "
        f"as --columns label={_short(names[0])}."
    )


def _short(name: str) -> str:
    """A column without a name is given by its number."""
    return name.removeprefix("column ")


def _listed(table: Table) -> str:
    return ", ".join(name or '""' for name in table.names)


def _asks_for(table: Table, name: str, given: dict[str, str]) -> Literal["label", "labels", "number"]:
    for role in ("labels", "number"):
        if role in given:
            return role
    place = table.checked_place(name)
    cells = {row.cells[place] for row in table.rows} - {""}
    if any(isinstance(cell, tuple) for cell in cells):
        return "labels"
    if "label" in given or not cells or not all(is_number(cell) for cell in cells):
        return "label"
    are_whole = all(float(cell).is_integer() for cell in cells if isinstance(cell, str))
    is_class = name.casefold() in CLASS_NAMES
    return "label" if are_whole and (is_class or len(cells) <= MAX_WHOLE_NUMBERS) else "number"


# -- does a table hold labelled texts? -----------------------------------------------------------------------------


def reading_of(path: Path, columns: Sequence[str] = ()) -> Reading | None:
    """What a table is read as, where it may be one of labelled texts; of some `columns` alone, where such are given."""
    if kind_of(path) not in TABLE_KINDS or not path.is_file():
        return None
    table = read_beginning(path, KNOWN_NAMES)
    if table is None:
        return None
    if _may_be_sorted(table):
        table = read_table(path, KNOWN_NAMES)
    found = _sampled(table)
    if columns:
        places = [table.place(name) for name in columns]
        found = [found[place] for place in places if place is not None]
        if len(found) != len(columns):
            return None
    return _reading(kind_of(path), found)


def _may_be_sorted(table: Table) -> bool:
    """Whether the beginning is of texts with the same short cell throughout, as where rows are sorted by label."""
    if len(table.rows) < LOOKED_AT // 2:
        return False
    columns = _sampled(table)
    has_label = any(column.is_label or column.key in LABEL_NAMES for column in columns)
    is_constant = any(column.num_distinct == 1 and column.is_short and column.words[0] for column in columns)
    return not has_label and is_constant and any(column.is_text for column in columns)


def _reading(kind: str, columns: Sequence[_Column]) -> Reading | None:
    named = [column for column in columns if column.key in (*LABEL_NAMES, *NUMBER_NAMES)]
    labels = [column for column in columns if column.is_label]
    numbers = [column for column in columns if column.is_numeric and not column.is_id and column not in labels]
    answers = [column for column in named if column in labels or column in numbers]
    is_named = bool(answers)
    answers += [*labels, *numbers]
    if not answers:
        return None
    answer = min(answers, key=_name_rank)
    texts = _text_columns([column for column in columns if column is not answer], is_sure=is_named)
    texts = [c for c in texts if c.is_varied or (is_named and (len(texts) == 2 or c.key in TEXT_NAMES))][:2]
    is_sure = is_named and (answer in labels or all(column.key in TEXT_NAMES for column in texts) or len(texts) == 2)
    if not texts or (kind == ".jsonl" and not (is_sure or labels)):
        return None
    other = ""
    if kind == ".csv" and not is_sure and numbers:
        other = "numbers"  # it may be a table of steps with a remark at each
    elif kind == ".tsv" and not is_sure:
        if not labels:
            return None
        other = "pairs" if all(column.is_text for column in columns[:2]) else ""
    return Reading([column.name for column in texts], answer.name, other)


def _name_rank(column: _Column) -> int:
    names = (*LABEL_NAMES, *NUMBER_NAMES)
    return names.index(column.key) if column.key in names else len(names)


def label_files(folder: Path) -> dict[str, Path]:
    """The tables of a folder by their part; none where some part has two."""
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        part = part_of(file)
        if part is None or kind_of(file) not in TABLE_KINDS or not file.is_file():
            continue
        if part in found:
            return {}
        found[part] = file
    return found if "train" in found else {}


def _sampled(table: Table) -> list[_Column]:
    """The columns, by rows from all over the table: files are often sorted by label."""
    step = -(-max(1, len(table.rows)) // LOOKED_AT)
    rows = list(islice(table.rows, 0, None, step))
    return [_Column(name, [row.cells[place] for row in rows], step) for place, name in enumerate(table.names)]
