"""Questions with a passage each: what readers of SQuAD files give, part by part.

Question("q1", "Where is the key?", "The key is in the blue box.", (Reference("the blue box", 14),), "rooms")
Question("q2", "Where is the lamp?", "The key is in the blue box.", (), "rooms")     the passage does not say
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ..wording import counted

NOWHERE = -1


class Reference(NamedTuple):
    """What somebody answered."""

    text: str
    start: int
    """Character of the passage at which it stands; -1 where that is not known."""


class Question(NamedTuple):
    id: str
    text: str
    passage: str
    references: tuple[Reference, ...] = ()
    """Several where several people answered; none where the passage does not hold the answer, or nobody was asked."""
    article: str = ""
    """What the passage is part of."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Of the references."""
        return tuple(reference.text for reference in self.references)


@dataclass(frozen=True)
class SpanData:
    """Questions in up to three parts, known by their fingerprint."""

    name: str
    parts: dict[str, list[Question]]
    """train, valid and test; or all of it as "whole"."""
    split: str
    """How the parts were made, in words."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each thing that was found, mended or left out."""
    stride: int | None = None
    """Tokens from the beginning of a window to that of the next; by the size of windows where not set."""

    @property
    def may_lack(self) -> bool:
        """Whether some passages of the training part (of the whole, where there is none) do not hold the answer."""
        return any(not question.references for question in self.parts.get("train", next(iter(self.parts.values()))))

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of all questions of all parts."""
        digest = hashlib.sha256()
        for part, questions in self.parts.items():
            digest.update(f"{part} {len(questions)}\n".encode())
            for question in questions:
                digest.update(repr(tuple(question)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @property
    def description(self) -> str:
        questions = [question for part in self.parts.values() for question in part]
        passages = counted(len({question.passage for question in questions}), "passage")
        lacking = sum(not question.references for question in questions)
        none = f", {lacking:,} of them without an answer" if lacking else ""
        sizes = ", ".join(f"{part} {len(some):,}" for part, some in self.parts.items())
        return f"{self.name}: {counted(len(questions), 'question')} on {passages}{none}; {self.split} ({sizes})"


def distinct_passages(questions: Sequence[Question]) -> list[str]:
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(question.passage for question in questions))
