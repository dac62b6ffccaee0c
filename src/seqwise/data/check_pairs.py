"""The preflight for pairs: how long they are, whether the sides belong together, and what a test would know already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..wording import counted
from .pairs import Pair, PairData

MIN_PAIRS = 1_000
LONG = 2_000  # characters: longer than most models of pairs can attend to
MAX_ODD_SHARE = 0.05
NEVER_OCCUR = "character never occurs", "characters never occur"
MAX_UNSEEN_SHARE = 0.001
UNEVEN = 4.0  # times between the 5 % and the 95 % quantile of the length ratio


@dataclass(frozen=True)
class Quantiles:
    low: float
    middle: float
    high: float
    most: float

    @staticmethod
    def of(values: list[int] | list[float]) -> Quantiles:
        """At 5 %, 50 %, 95 % and the largest."""
        return Quantiles(*(float(value) for value in np.quantile(values, [0.05, 0.5, 0.95, 1.0])))

    def __str__(self) -> str:
        return f"{self.middle:,.4g} ({self.low:,.4g} to {self.high:,.4g}, at most {self.most:,.6g})"


@dataclass(frozen=True)
class PairFacts:
    """One part. Lengths of sources and targets in characters and in words between spaces."""

    pairs: int
    source_characters: Quantiles
    target_characters: Quantiles
    source_words: Quantiles
    target_words: Quantiles
    length_ratio: Quantiles
    """Characters of the target by characters of the source."""
    copies: int
    """Pairs that stood in the same part before."""
    same_sides: int
    """Pairs whose target is the source."""
    known_sources: int = 0
    """Pairs whose source stands in the training part too."""
    known_pairs: int = 0
    unseen_characters: int = 0
    """Characters, counted as often as they occur, that their side of the training part never shows."""


@dataclass(frozen=True)
class PairCheck:
    description: str
    parts: dict[str, PairFacts]
    source_alphabet: int
    """Distinct characters of the training part."""
    target_alphabet: int
    notes: list[str]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self) -> Iterator[str]:
        yield self.description
        yield from self.notes
        for part, facts in self.parts.items():
            amounts = counted(facts.pairs, "pair"), counted(facts.copies, "copy", "copies")
            yield f"{part}: {', '.join(amounts)}, {facts.same_sides:,} with equal sides"
            yield f"{part}: source characters {facts.source_characters}, words {facts.source_words}"
            yield f"{part}: target characters {facts.target_characters}, words {facts.target_words}"
            yield f"{part}: length of target by source {facts.length_ratio}"
            if part != "train":
                known = counted(facts.known_sources, "source"), counted(facts.known_pairs, "whole pair")
                unseen = counted(facts.unseen_characters, *NEVER_OCCUR)
                yield f"{part}: {' and '.join(known)} stand in train too; {unseen} there"
        source = counted(self.source_alphabet, "character")
        yield f"alphabet of train: {source} in sources, {self.target_alphabet:,} in targets"
        for warning in self.warnings:
            yield f"look at this: {warning}"
        if not self.warnings:
            yield "nothing suspicious found"


def check_pairs(data: PairData) -> PairCheck:
    train = data.parts["train"]
    sources, whole = {source for source, _ in train}, set(train)
    alphabets = [set().union(*(pair[side] for pair in train)) for side in (0, 1)]
    parts = {"train": _facts(train)}
    for part, pairs in data.parts.items():
        if part != "train":
            known_sources = sum(source in sources for source, _ in pairs)
            known_pairs = sum(pair in whole for pair in pairs)
            parts[part] = _facts(pairs, known_sources, known_pairs, _unseen(pairs, alphabets))
    warnings = list(_warnings(parts))
    return PairCheck(data.description, parts, len(alphabets[0]), len(alphabets[1]), data.notes, warnings)


def _facts(pairs: list[Pair], known_sources: int = 0, known_pairs: int = 0, unseen: int = 0) -> PairFacts:
    return PairFacts(
        len(pairs),
        Quantiles.of([len(source) for source, _ in pairs]),
        Quantiles.of([len(target) for _, target in pairs]),
        Quantiles.of([len(source.split()) for source, _ in pairs]),
        Quantiles.of([len(target.split()) for _, target in pairs]),
        Quantiles.of([len(target) / len(source) for source, target in pairs]),
        copies=len(pairs) - len(set(pairs)),
        same_sides=sum(source == target for source, target in pairs),
        known_sources=known_sources,
        known_pairs=known_pairs,
        unseen_characters=unseen,
    )


def _unseen(pairs: list[Pair], alphabets: list[set[str]]) -> int:
    total = 0
    for side, alphabet in enumerate(alphabets):
        counts = Counter[str]()
        for pair in pairs:
            counts.update(pair[side])
        total += sum(count for character, count in counts.items() if character not in alphabet)
    return total


def _warnings(parts: dict[str, PairFacts]) -> Iterator[str]:
    train = parts["train"]
    if train.pairs < MIN_PAIRS:
        only = counted(train.pairs, "pair")
        yield f"the training part has only {only}: a model will learn little more than to copy them"
    if train.same_sides > MAX_ODD_SHARE * train.pairs:
        yield f"train: the target of {_share(train.same_sides, train.pairs)} is the source itself"
    if train.length_ratio.high > UNEVEN * train.length_ratio.low:
        yield (
            f"train: targets have {train.length_ratio.low:.2g} to {train.length_ratio.high:.2g} times the length of "
            "their sources: do the sides belong together?"
        )
    for part, facts in parts.items():
        if facts.copies > MAX_ODD_SHARE * facts.pairs:
            yield f"{part}: {_share(facts.copies, facts.pairs)} are copies of others in it"
        for side, lengths in (("source", facts.source_characters), ("target", facts.target_characters)):
            if lengths.most > LONG:
                yield f"{part}: the longest {side} has {counted(round(lengths.most), 'character')}"
        if facts.known_sources > MAX_ODD_SHARE * facts.pairs:
            yield (
                f"{part}: the source of {_share(facts.known_sources, facts.pairs)} stands in the training part too: "
                "scores on it will look better than they are"
            )
        characters = facts.pairs * (facts.source_characters.middle + facts.target_characters.middle)
        if facts.unseen_characters > MAX_UNSEEN_SHARE * characters:
            yield f"{part}: {counted(facts.unseen_characters, *NEVER_OCCUR)} in the training part"


def _share(some: int, of: int) -> str:
    return f"{some:,} of {of:,} pairs ({100 * some / of:.0f} %)"
