"""What may be wrong with pictures and what is said of them: empty parts, one label alone, pictures in two parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..errors import DataError
from ..wording import counted
from .annotated import LabelledRow
from .files import shown
from .label_checks import label_notes, unseen_labels
from .seen import SeenRow, frames_of

FEWEST = 3  # rows, to train, validate and test on
OFTEN_SAID = {
    "caption": "captions",
    "answer": "questions",
    "choice": "questions",
    "label": "labels",
    "picture": "pictures",
}


def check_parts(name: str, parts: Mapping[str, Sequence[SeenRow]], asks_for: str) -> None:
    """Enough to learn from: pictures in each part, and two labels or answers."""
    total = sum(map(len, parts.values()))
    if total < FEWEST:
        raise DataError(
            f"{name}: {counted(total, 'picture')} with what is said of it; {FEWEST} are the fewest to train, "
            "validate and test on. A model needs some hundred at least."
        )
    for part, rows in parts.items():
        if not rows:
            raise DataError(f"{name}: the {part} part has no {OFTEN_SAID[asks_for]}.")
    if asks_for in ("label", "answer") and len({row.answer for row in parts["train"]}) < 2:
        only = shown(str(parts["train"][0].answer))
        raise DataError(f"{name}: all pictures to train on have the {asks_for} {only}: there is nothing to learn.")


def notes_on(parts: Mapping[str, Sequence[SeenRow]], asks_for: str) -> Iterator[str]:
    """A sentence for each thing that people should know before they train."""
    if asks_for in ("label", "answer"):
        rows = {part: [LabelledRow((), row.answer or "") for row in rows] for part, rows in parts.items()}
        yield from (label_notes if asks_for == "label" else unseen_labels)(rows)
    if asks_for == "caption":
        yield from _captions(parts)


def shared(parts: Mapping[str, Sequence[SeenRow]]) -> Iterator[str]:
    """How many pictures of another part training has, by their names."""
    known = set(frames_of(parts["train"]))
    for part, rows in parts.items():
        pictures = frames_of(rows)
        num = sum(frames in known for frames in pictures)
        if part != "train" and num:
            yield f"{part}: {num:,} of its {len(pictures):,} pictures occur in the training part too"


def _captions(parts: Mapping[str, Sequence[SeenRow]]) -> Iterator[str]:
    for part, rows in parts.items():
        numbers = Counter(len(row.texts) for row in rows)
        if len(numbers) > 1:
            yield f"{part}: {min(numbers)} to {max(numbers)} captions a picture"
