"""The preflight for labelled text: how many rows have which label, how long texts are, what a test knows already."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import ConfigError
from ..wording import counted
from .annotated import Answer, LabelledData, LabelledRow, in_order
from .check_pairs import Quantiles
from .examples import ExampleData
from .files import shown
from .label_checks import labels_in, named

WORD = re.compile(r"\w+")
MIN_ROWS = 300
MIN_OF_LABEL = 10  # rows
MANY = 0.9  # of all rows: then it says little how many answers are right
MAX_ODD_SHARE = 0.05
MAX_TWO_ANSWERS = 0.01
MAX_UNKNOWN_SHARE = 0.15  # of the words of a part
MIN_WORDS = 2.5  # of a text, in the mean: below, texts are names or codes, whose characters tell more than words
OTHER_SHARES = 0.1  # of rows that would have to change their label for two parts to be alike
MAX_LABELS = 40  # in a table
LONG_TEXT = 1_000  # words


@dataclass(frozen=True)
class LabelFacts:
    """One part."""

    rows: int
    labels: dict[str, int]
    """Rows of each; none where numbers are asked for."""
    numbers: Quantiles | None
    """What is asked for, where it is numbers."""
    unlabelled: int
    """Rows none of whose labels is right, where any number may be."""
    words: Quantiles
    """Of a text."""
    characters: Quantiles
    num_words: int
    """Of all texts."""
    copies: int
    """Rows whose texts stood in the same part before."""
    two_answers: int
    """Texts that stand there more than once, with different answers."""
    known_texts: int = 0
    """Rows whose texts stand in the training part too."""
    unknown_words: int = 0
    """Words, counted as often as they occur, that the training part never shows, whatever their case."""

    @property
    def unknown_share(self) -> float:
        return self.unknown_words / max(1, self.num_words)


@dataclass(frozen=True)
class LabelCheck:
    description: str
    parts: dict[str, LabelFacts]
    vocabulary: int
    """Distinct words of the training part, whatever their case."""
    notes: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        yield self.description
        yield from self.notes
        for part, facts in self.parts.items():
            unknown = "" if part == "train" else f"; {100 * facts.unknown_share:.1f} % of words never occur in train"
            lengths = f"words of a text {facts.words}, characters {facts.characters}"
            yield f"{part}: {counted(facts.rows, 'row')}; {lengths}{unknown}"
            if facts.numbers is not None:
                yield f"{part}: numbers {facts.numbers}"
        yield f"vocabulary of train: {counted(self.vocabulary, 'word')}"

    def tables(self) -> Iterator[list[list[str]]]:
        """Labels by part."""
        labels = {part: facts.labels for part, facts in self.parts.items()}
        if any(labels.values()):
            yield counts_by_part("label", labels, {part: facts.rows for part, facts in self.parts.items()})


def check_labels(data: LabelledData | ExampleData) -> LabelCheck:
    if isinstance(data, ExampleData):
        raise ConfigError(f"{data.name} is made by rule, and sound by that; check files with texts and labels.")
    train = data.parts["train"]
    texts = {row.texts for row in train}
    vocabulary = {word for row in train for word in words_of(row)}
    parts = {}
    for part, rows in data.parts.items():
        known_texts = 0 if part == "train" else sum(row.texts in texts for row in rows)
        parts[part] = _facts(data.asks_for, rows, known_texts, vocabulary)
    warnings = list(_warnings(parts))
    return LabelCheck(data.description, parts, len(vocabulary), data.notes, warnings)


def words_of(row: LabelledRow) -> list[str]:
    return [word for text in row.texts for word in WORD.findall(text.lower())]


def _facts(asks_for: str, rows: Sequence[LabelledRow], known_texts: int, vocabulary: set[str]) -> LabelFacts:
    words = [words_of(row) for row in rows]
    answers: dict[tuple[str, ...], set[Answer]] = {}
    for row in rows:
        answers.setdefault(row.texts, set()).add(row.answer)
    is_number = asks_for == "number"
    counts = Counter(label for row in rows for label in labels_in(row.answer))
    return LabelFacts(
        len(rows),
        {label: counts[label] for label in in_order(counts)},
        Quantiles.of([float(row.answer) for row in rows if not isinstance(row.answer, tuple)]) if is_number else None,
        0 if is_number else sum(not labels_in(row.answer) for row in rows),
        Quantiles.of([len(found) for found in words]),
        Quantiles.of([sum(map(len, row.texts)) for row in rows]),
        num_words=sum(map(len, words)),
        copies=len(rows) - len(answers),
        two_answers=sum(len(found) > 1 for found in answers.values()),
        known_texts=known_texts,
        unknown_words=sum(word not in vocabulary for found in words for word in found),
    )


def counts_by_part(title: str, counts: Mapping[str, Mapping[str, int]], of: Mapping[str, int]) -> list[list[str]]:
    """A table: how often each name stands in each part, and its share of `of`; the most frequent in training first."""
    first = counts["train"] if "train" in counts else next(iter(counts.values()))
    names = list(dict.fromkeys([*first, *(name for found in counts.values() for name in found)]))
    names.sort(key=lambda name: -first.get(name, 0))
    rows = [[title, *(head for part in counts for head in (part, "share"))]]
    rows += [
        [shown(name), *_cells([found.get(name, 0) for found in counts.values()], of)] for name in names[:MAX_LABELS]
    ]
    if rest := names[MAX_LABELS:]:
        sums = [sum(found.get(name, 0) for name in rest) for found in counts.values()]
        rows.append([f"{len(rest):,} others", *_cells(sums, of)])
    return rows


def _cells(nums: Sequence[int], of: Mapping[str, int]) -> list[str]:
    """A number and its share, part by part."""
    pairs = zip(nums, of.values(), strict=True)
    return [cell for num, total in pairs for cell in (f"{num:,}", f"{100 * num / max(1, total):.1f} %")]


def warnings_on_labels(labels: Mapping[str, Mapping[str, int]], rows: Mapping[str, int]) -> Iterator[str]:
    """Of counts of labels by part: one that is nearly all, some that are rare, shares that differ between parts."""
    train, total = labels["train"], max(1, rows["train"])
    most = max(train, key=lambda label: train[label], default=None)
    if most is not None and train[most] > MANY * total:
        yield (
            f"train: {100 * train[most] / total:.0f} % of all rows have the label {shown(most)}: who always says so is "
            "mostly right, so look at macro F1"
        )
    if rare := [label for label, num in train.items() if num < MIN_OF_LABEL]:
        have = counted(
            len(rare), f"label has fewer than {MIN_OF_LABEL} rows", f"labels have fewer than {MIN_OF_LABEL} rows"
        )
        yield f"train: {have} to learn from: {named(rare)}"
    for part, found in labels.items():
        apart = sum(abs(found.get(x, 0) / max(1, rows[part]) - train.get(x, 0) / total) for x in {*found, *train}) / 2
        if part != "train" and apart > OTHER_SHARES:
            yield f"{part}: labels have other shares than in the training part ({100 * apart:.0f} % of rows apart)"


def warnings_on_leaks(part: str, known: int, rows: int, what: str) -> Iterator[str]:
    if known > MAX_ODD_SHARE * rows:
        share = f"{known:,} of {rows:,} {what} ({100 * known / rows:.0f} %)"
        yield f"{part}: {share} stand in the training part too: scores on it will look better than they are"


def _warnings(parts: dict[str, LabelFacts]) -> Iterator[str]:
    train = parts["train"]
    if train.rows < MIN_ROWS:
        yield f"the training part has only {counted(train.rows, 'row')}: expect counting to do as well as a network"
    if train.numbers is None:
        labels, rows = ({part: getattr(f, name) for part, f in parts.items()} for name in ("labels", "rows"))
        yield from warnings_on_labels(labels, rows)
    if train.unlabelled > MAX_ODD_SHARE * train.rows:
        yield f"train: no label is right for {train.unlabelled:,} of {train.rows:,} rows"
    is_of_words = train.num_words >= MIN_WORDS * train.rows
    for part, facts in parts.items():
        if facts.copies > MAX_ODD_SHARE * facts.rows:
            share = f"{facts.copies:,} of {facts.rows:,} rows ({100 * facts.copies / facts.rows:.0f} %)"
            yield f"{part}: {share} have texts that stood there before"
        if facts.two_answers > MAX_TWO_ANSWERS * facts.rows:
            texts = counted(facts.two_answers, "text stands", "texts stand")
            yield f"{part}: {texts} there with different answers: no model can be right on all of them"
        if facts.words.most > max(LONG_TEXT, 50 * facts.words.middle):
            longest = counted(round(facts.words.most), "word")
            yield f"{part}: the longest text has {longest} (the median {facts.words.middle:,.4g}): is it one text?"
        if part == "train":
            continue
        yield from warnings_on_leaks(part, facts.known_texts, facts.rows, "texts")
        if is_of_words and facts.unknown_share > MAX_UNKNOWN_SHARE:
            share = f"{100 * facts.unknown_share:.0f} % of its words"
            yield f"{part}: {share} never occur in the training part: smaller pieces may help (--tokenizer bpe)"


def with_warnings(sentences: Iterable[str], warnings: Sequence[str]) -> Iterator[str]:
    yield from sentences
    for warning in warnings:
        yield f"look at this: {warning}"
    if not warnings:
        yield "nothing suspicious found"
