"""Questions on pictures with a few choices each: a row for each choice, all of which look at one picture.

Zellers et al. 2019 (VCR): answers are chosen for a question, and reasons for a question with its answer. Both are
questions with choices here.

Shapes: N questions, R rows of all of them, B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import DataError
from .batch import Batch
from .choices import grouped, rows_of
from .pair_store import Rows
from .schema import LabelSpec, Schema, TokenSpec
from .seen import SeenData, SeenRow
from .seen_build import Encoded as EncodedRows
from .seen_build import build_seen_store
from .seen_store import SeenStore
from .text_examples import AnswerColumn


@dataclass(frozen=True)
class SeenChoiceStore(SeenStore):
    """Counted in questions; its tokens are those of all rows."""

    edges: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """(N + 1,): the first row of each question, and behind the last."""
    segments: Rows | None = None
    """Of each row, which tokens are of the choice."""

    @property
    def lengths(self) -> np.ndarray:
        """Of the longest row of each question."""
        assert self.tokens is not None
        return np.maximum.reduceat(self.tokens.lengths, self.edges[:-1])

    def choose(self, chosen: np.ndarray) -> SeenChoiceStore:
        """These questions, (n,), in this order."""
        assert self.tokens is not None
        assert self.segments is not None
        rows = rows_of(chosen, self.edges)
        return replace(
            self,
            picture_of=self.picture_of[chosen],
            targets={name: column.choose(chosen) for name, column in self.targets.items()},
            rows=[self.rows[row] for row in chosen.tolist()],
            tokens=self.tokens.at(rows),
            segments=self.segments.at(rows),
            edges=np.concatenate([[0], np.cumsum(np.diff(self.edges)[chosen])]),
        )

    def batch(self, chosen: np.ndarray | slice) -> Batch:
        """Of some questions, all of their rows."""
        assert self.tokens is not None
        assert self.segments is not None
        chosen = np.arange(len(self))[chosen] if isinstance(chosen, slice) else chosen
        rows, wanted = grouped(chosen, self.edges, self.answers)
        tokens = replace(self.tokens.padded(rows), segments=self.segments.padded(rows).ids)
        image = self.pictures.field(self.picture_of[wanted.groups.numpy()])
        (name,) = self.targets
        return Batch({"image": image, "tokens": tokens}, {name: wanted}, groups=wanted.groups)


def build_seen_choice_store(data: SeenData, part: str, schema: Schema) -> SeenChoiceStore:
    rows, spec, numbers = data.parts[part], schema.input("tokens", TokenSpec), schema.target(schema.main, LabelSpec)
    most = max(len(row.texts) - 1 for row in rows)
    if most > numbers.size:
        raise DataError(
            f"{data.name} has a question with {most} choices, and the model was made for {numbers.size} at most. "
            "Leave such questions out, or train with one of them."
        )
    encoded = [spec.encode_texts((row.texts[0], choice)) for row in rows for choice in row.texts[1:]]
    answers = AnswerColumn(numbers.encode([str(row.answer) for row in rows]))

    def encode(rows: Sequence[SeenRow], schema: Schema) -> EncodedRows:
        return EncodedRows(rows, {schema.main: answers}, Rows.of(ids for ids, _ in encoded))

    flat = build_seen_store(data, part, schema, encode)
    return SeenChoiceStore(
        **vars(flat),
        edges=np.concatenate([[0], np.cumsum([len(row.texts) - 1 for row in rows])]),
        segments=Rows.of(segments for _, segments in encoded),
    )
