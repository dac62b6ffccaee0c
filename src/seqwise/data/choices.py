"""Questions with a few choices each as ids: begin, what is asked, separator, choice, separator; a row for each choice.

The rows of one question are a group of a batch: they stand side by side, and nothing cuts them apart.

Shapes: N questions, R rows of all of them, B batch, T steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from ..errors import DataError
from .annotated import LabelledRow
from .batch import Batch, Choices
from .pair_store import Rows
from .schema import LabelSpec, Schema, TokenSpec
from .seen import SeenRow
from .text_examples import AnswerColumn, TextStore


@dataclass(frozen=True)
class ChoiceStore(TextStore):
    """Counted in questions; its tokens are those of all rows."""

    edges: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """(N + 1,): the first row of each question, and behind the last."""

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Of the longest row of each question."""
        return np.maximum.reduceat(self.tokens.lengths, self.edges[:-1])

    def take(self, num: int) -> ChoiceStore:
        return self if num >= len(self) else self.choose(np.arange(num))

    def choose(self, chosen: np.ndarray) -> ChoiceStore:
        """These questions, (n,), in this order."""
        flat = TextStore(self.tokens, {}, range(len(self.tokens)), self.segments).choose(rows_of(chosen, self.edges))  # type: ignore[arg-type]
        sizes = np.diff(self.edges)[chosen]
        return replace(
            self,
            tokens=flat.tokens,
            segments=flat.segments,
            targets={name: column.choose(chosen) for name, column in self.targets.items()},
            rows=[self.rows[row] for row in chosen.tolist()],
            edges=np.concatenate([[0], np.cumsum(sizes)]),
        )

    def batch(self, chosen: np.ndarray | slice) -> Batch:
        """Of some questions, all of their rows; a group is known by the number of its question."""
        chosen = np.arange(len(self))[chosen] if isinstance(chosen, slice) else chosen
        rows, wanted = grouped(chosen, self.edges, self.answers)
        (name,) = self.targets
        return Batch({"tokens": self.tokens_of(rows)}, {name: wanted}, groups=wanted.groups)


def rows_of(chosen: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """All rows of some questions, one behind the other."""
    return np.concatenate([np.arange(edges[one], edges[one + 1]) for one in chosen])


def grouped(chosen: np.ndarray, edges: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, Choices]:
    """The same, and which of them are right; a group is known by the number of its question."""
    rows, sizes = rows_of(chosen, edges), np.diff(edges)[chosen]
    groups = np.repeat(chosen, sizes)
    place = rows - np.repeat(edges[chosen], sizes)  # within its question
    is_right = place == np.repeat(answers[chosen], sizes)
    return rows, Choices(torch.from_numpy(is_right), torch.from_numpy(groups.astype(np.int64)))


def build_choice_store(rows: Sequence[LabelledRow], schema: Schema, *, where: str = "this data") -> ChoiceStore:
    spec, numbers = schema.input("tokens", TokenSpec), schema.target(schema.main, LabelSpec)
    most = max(len(row.texts) - 1 for row in rows)
    if most > numbers.size:
        raise DataError(
            f"{where} has a question with {most} choices, and the model was made for {numbers.size} at most. "
            "Leave such questions out, or train with one of them."
        )
    encoded = [spec.encode_texts((row.texts[0], choice)) for row in rows for choice in row.texts[1:]]
    segments = np.concatenate([found for _, found in encoded]).astype(np.int8)
    edges = np.concatenate([[0], np.cumsum([len(row.texts) - 1 for row in rows])])
    answers = AnswerColumn(numbers.encode([str(row.answer) for row in rows]))
    return ChoiceStore(Rows.of(ids for ids, _ in encoded), {schema.main: answers}, rows, segments, edges=edges)


def answer_counts(rows: Sequence[LabelledRow | SeenRow], labels: Sequence[str]) -> list[int]:
    """How often each number is the right one."""
    counts = Counter(row.answer for row in rows)
    return [counts[label] for label in labels]
