"""The preflight for tagged words: how many words have which tag, how sure a word is of its tag, what a test would know
already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..wording import counted
from .annotated import TaggedData, TaggedRow
from .check_labels import MAX_UNKNOWN_SHARE, counts_by_part, warnings_on_labels, warnings_on_leaks
from .check_pairs import Quantiles
from .tag_schemes import entities_of

MIN_WORDS = 10_000
MIN_OF_TAG = 10
LONG_ROW = 500  # words


@dataclass(frozen=True)
class TagFacts:
    """One part."""

    rows: int
    words: int
    row_words: Quantiles
    """Of a row."""
    tags: dict[str, int]
    """Words with each."""
    entities: dict[str, int]
    """Of each type; none where tags mark no entities."""
    labels: dict[str, int]
    """Rows of each; none where rows have no label."""
    copies: int
    """Rows whose words stood in the same part before."""
    known_rows: int = 0
    """Rows whose words stand in the training part too."""
    unknown_words: int = 0
    """Words, counted as often as they occur, that the training part never shows."""

    @property
    def unknown_share(self) -> float:
        return self.unknown_words / max(1, self.words)


@dataclass(frozen=True)
class TagCheck:
    description: str
    parts: dict[str, TagFacts]
    vocabulary: int
    """Distinct words of the training part."""
    ambiguous: int
    """Those of them that have more than one tag there."""
    notes: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        yield self.description
        yield from self.notes
        for part, facts in self.parts.items():
            unknown = "" if part == "train" else f"; {100 * facts.unknown_share:.1f} % of words never occur in train"
            entities = f", {counted(sum(facts.entities.values()), 'entity', 'entities')}" if facts.entities else ""
            amounts = f"{counted(facts.rows, 'row')} of {counted(facts.words, 'word')}{entities}"
            copies = counted(facts.copies, "copy", "copies")
            yield f"{part}: {amounts}, {copies}; words of a row {facts.row_words}{unknown}"
        several = f"{self.ambiguous:,} of them with more than one tag"
        yield f"vocabulary of train: {counted(self.vocabulary, 'word')}, {several}"

    def tables(self) -> Iterator[list[list[str]]]:
        """Types of entities, or tags; and the labels of rows, where they have one."""
        has_entities = any(facts.entities for facts in self.parts.values())
        title, name = ("type", "entities") if has_entities else ("tag", "tags")
        counts = {part: getattr(facts, name) for part, facts in self.parts.items()}
        yield counts_by_part(title, counts, {part: sum(found.values()) for part, found in counts.items()})
        labels = {part: facts.labels for part, facts in self.parts.items()}
        if any(labels.values()):
            yield counts_by_part("label", labels, {part: facts.rows for part, facts in self.parts.items()})


def check_tags(data: TaggedData) -> TagCheck:
    train = data.parts["train"]
    rows, tags_of = {row.words for row in train}, dict[str, set[str]]()
    for row in train:
        for word, tag in zip(row.words, row.tags, strict=True):
            tags_of.setdefault(word, set()).add(tag)
    parts = {}
    for part, found in data.parts.items():
        known_rows = 0 if part == "train" else sum(row.words in rows for row in found)
        parts[part] = _facts(found, known_rows, tags_of.keys(), has_entities=bool(data.scheme))
    ambiguous = sum(len(tags) > 1 for tags in tags_of.values())
    return TagCheck(data.description, parts, len(tags_of), ambiguous, data.notes, list(_warnings(parts)))


def _facts(rows: Sequence[TaggedRow], known_rows: int, known: Any, *, has_entities: bool) -> TagFacts:
    tags = Counter(tag for row in rows for tag in row.tags)
    entities = Counter(one.type for row in rows for one in entities_of(row.tags)) if has_entities else Counter[str]()
    labels = Counter(row.label for row in rows if row.label is not None)
    return TagFacts(
        len(rows),
        sum(len(row.words) for row in rows),
        Quantiles.of([len(row.words) for row in rows]),
        dict(sorted(tags.items())),
        dict(sorted(entities.items())),
        dict(sorted(labels.items())),
        copies=len(rows) - len({row.words for row in rows}),
        known_rows=known_rows,
        unknown_words=sum(word not in known for row in rows for word in row.words),
    )


def _warnings(parts: dict[str, TagFacts]) -> Iterator[str]:
    train = parts["train"]
    if train.words < MIN_WORDS:
        only = counted(train.words, "word")
        yield f"the training part has only {only}: expect the most frequent tag of each word to do as well as a network"
    what, found = ("type of entity", train.entities) if train.entities else ("tag", train.tags)
    if rare := [name for name, num in found.items() if num < MIN_OF_TAG]:
        many = counted(
            len(rare), f"{what} stands", f"{what.replace('type', 'types')} stand" if train.entities else "tags stand"
        )
        yield f"train: {many} there fewer than {MIN_OF_TAG} times, which is little to learn from"
    if train.labels:
        labels, rows = ({part: getattr(facts, name) for part, facts in parts.items()} for name in ("labels", "rows"))
        yield from warnings_on_labels(labels, rows)
    for part, facts in parts.items():
        if facts.row_words.most > LONG_ROW:
            yield f"{part}: the longest row has {counted(round(facts.row_words.most), 'word')}: is it one sentence?"
        if part == "train":
            continue
        yield from warnings_on_leaks(part, facts.known_rows, facts.rows, "rows")
        if facts.unknown_share > MAX_UNKNOWN_SHARE:
            yield f"{part}: {100 * facts.unknown_share:.0f} % of its words never occur in the training part"
