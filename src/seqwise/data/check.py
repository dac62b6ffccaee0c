"""The preflight: what is in a text, and what in it may hurt, before anything is trained on it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from ..text import UNKNOWN_WORD, pieces_of
from ..wording import counted
from .files import lines_of
from .source import TextData

SHORT_LINE = 20  # characters; shorter lines repeat by nature ("ROMEO:")
MAX_WORDS = 2_000_000  # distinct words that are counted one by one
LONG_LINE = 10_000  # characters
HUGE_LINE = 1_000_000  # odd whatever the other lines are


@dataclass
class PartFacts:
    characters: int = 0
    words: int = 0
    lines: int = 0
    blank_lines: int = 0
    longest_line: int = 0
    longest_line_number: int = 0
    median_line: int = 0
    repeated_in_train: int = 0
    """Lines of at least 20 characters that stand in the training part too."""
    comparable_lines: int = 0


@dataclass
class CheckResult:
    description: str
    parts: dict[str, PartFacts] = field(default_factory=dict)
    distinct_characters: int = 0
    rare_characters: int = 0
    """Characters that occur once in the training part."""
    distinct_words: int = 0
    has_unknown_words: bool = False
    """Whether rare words of the training part stand there as <unk>."""
    unseen_characters: dict[str, int] = field(default_factory=dict)
    """For each other part: how many of its characters the training part never shows."""
    notes: list[str] = field(default_factory=list)
    """What was found or left out when the text was opened."""
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_text(data: TextData) -> CheckResult:
    """Read every part once (the training part twice), in memory that grows with the smaller parts only."""
    result = CheckResult(data.description, notes=list(data.notes))
    held_out: dict[str, set[bytes]] = {}
    characters: dict[str, Counter[str]] = {}
    words: set[str] = set()
    for part in data.parts:
        facts, counts, hashes, lengths = PartFacts(), Counter[str](), set[bytes](), Counter[int]()
        for line in lines_of(data.parts[part].blocks()):
            facts.lines += 1
            words_before = facts.words
            for some in pieces_of(line, HUGE_LINE):
                split = some.split()
                facts.words += len(split)
                if part == "train" and len(words) < MAX_WORDS:
                    words.update(split)
            facts.blank_lines += facts.words == words_before
            lengths[len(line)] += 1
            if len(line) > facts.longest_line:
                facts.longest_line, facts.longest_line_number = len(line), facts.lines
            counts.update(line)
            if part != "train" and len(line) >= SHORT_LINE:
                hashes.add(_hash(line))
        facts.characters = data.characters[part]
        facts.median_line = _median(lengths)
        facts.comparable_lines = len(hashes)
        result.parts[part], held_out[part], characters[part] = facts, hashes, counts
    _find_repeats(data, held_out, result)
    result.distinct_characters = len(characters["train"])
    result.rare_characters = sum(count == 1 for count in characters["train"].values())
    result.distinct_words = len(words)
    result.has_unknown_words = UNKNOWN_WORD in words
    for part, counts in characters.items():
        if part != "train":
            result.unseen_characters[part] = sum(n for c, n in counts.items() if c not in characters["train"])
    result.warnings = list(_warnings(result))
    return result


def _median(counts: Counter[int]) -> int:
    """The middle of the values that were counted."""
    passed = 0
    for value in sorted(counts):
        passed += counts[value]
        if 2 * passed >= counts.total():
            return value
    return 0


def _find_repeats(data: TextData, held_out: dict[str, set[bytes]], result: CheckResult) -> None:
    found: dict[str, set[bytes]] = {part: set() for part in held_out}
    for line in lines_of(data.parts["train"].blocks()):
        if len(line) >= SHORT_LINE:
            key = _hash(line)
            for part, hashes in held_out.items():
                if key in hashes:
                    found[part].add(key)
    for part, keys in found.items():
        result.parts[part].repeated_in_train = len(keys)


def _hash(line: str) -> bytes:
    return hashlib.blake2b(line.strip().encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _warnings(result: CheckResult) -> Iterator[str]:
    train = result.parts["train"]
    if train.characters < 10_000:
        only = counted(train.characters, "character")
        yield f"the training part has only {only}: expect an n-gram to do as well as a network"
    if result.distinct_characters < 2:
        yield "the training part has a single kind of character: there is nothing to learn"
    for part, facts in result.parts.items():
        if facts.longest_line > max(LONG_LINE, min(50 * facts.median_line, HUGE_LINE)):
            yield (
                f"{part}: line {facts.longest_line_number:,} has {facts.longest_line:,} characters "
                f"(the median line has {facts.median_line:,}): is it text?"
            )
        if part != "train" and facts.comparable_lines and facts.repeated_in_train > 0.05 * facts.comparable_lines:
            share = 100 * facts.repeated_in_train / facts.comparable_lines
            yield (
                f"{part}: {facts.repeated_in_train:,} of {facts.comparable_lines:,} longer lines ({share:.0f} %) "
                "stand in the training part too: scores on it will look better than they are"
            )
    for part, count in result.unseen_characters.items():
        if count > 0.001 * result.parts[part].characters:
            unseen = counted(count, "character never occurs", "characters never occur")
            yield f"{part}: {unseen} in the training part; each is spelled in several tokens"
