"""What may be wrong with labelled rows: labels that are one, rare, misspelled or never seen, texts that stand twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..errors import DataError
from ..wording import counted
from .annotated import Answer, LabelledRow, in_order
from .files import shown

MAX_SHOWN = 5  # labels or lines in a sentence
MIN_ROWS = 3  # to train, validate and test on


def labels_in(answer: Answer) -> tuple[str, ...]:
    if isinstance(answer, str):
        return (answer,)
    return answer if isinstance(answer, tuple) else ()


def lines_told(lines: Sequence[int]) -> str:
    """ "line 4", "lines 4, 9 and 12", "lines 4, 9, 12, 13, 20 and 7 more"."""
    if len(lines) > MAX_SHOWN:
        return f"lines {', '.join(map(str, lines[:MAX_SHOWN]))} and {len(lines) - MAX_SHOWN:,} more"
    *some, last = map(str, lines)
    return f"lines {', '.join(some)} and {last}" if some else f"line {last}"


def named(labels: Sequence[str]) -> str:
    some = ", ".join(shown(label) for label in labels[:MAX_SHOWN])
    return some + (f" and {len(labels) - MAX_SHOWN:,} more" if len(labels) > MAX_SHOWN else "")


def check_rows(name: str, parts: dict[str, list[LabelledRow]]) -> None:
    """Enough to learn from: rows in each part, and two labels, or numbers that differ."""
    total = sum(len(rows) for rows in parts.values())
    if total < MIN_ROWS:
        raise DataError(
            f"{name}: {counted(total, 'row')} with a text and an answer; {MIN_ROWS} are the fewest to train, "
            "validate and test on. A model needs some hundred at least."
        )
    for part, rows in parts.items():
        if not rows:
            raise DataError(f"{name}: the {part} part has no rows with a text and an answer.")
    train = parts["train"]
    if isinstance(train[0].answer, tuple):
        found = {label for row in train for label in labels_in(row.answer)}
        if found and any(set(labels_in(row.answer)) != found for row in train):
            return
        what = f"the labels {named(sorted(found))}" if found else "no label"
    else:
        answers = {row.answer for row in train}
        if len(answers) > 1:
            return
        what = f"the {'label' if isinstance(train[0].answer, str) else 'number'} {shown(str(train[0].answer))}"
    raise DataError(f"{name}: all {len(train):,} rows to train on have {what}: there is nothing to learn.")


def notes_on(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    """A sentence for each thing that people should know before they train."""
    yield from label_notes(parts)
    yield from _twice(parts)
    yield from _overlaps(parts)


def label_notes(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    """The same on labels alone."""
    yield from _spellings(parts)
    yield from _rare(parts)
    yield from unseen_labels(parts)


def _counts(rows: Sequence[LabelledRow]) -> Counter[str]:
    return Counter(label for row in rows for label in labels_in(row.answer))


def _spellings(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for rows in parts.values():
        counts += _counts(rows)
    alike: dict[str, list[str]] = {}
    for label in in_order(counts):
        alike.setdefault("".join(label.casefold().split()), []).append(label)
    for labels in alike.values():
        if len(labels) > 1:
            told = " and ".join(f"{shown(label)} ({counts[label]:,})" for label in labels)
            yield f"the labels {told} differ by case or spaces alone, and are learned as different ones"


def _rare(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    train = _counts(parts["train"])
    if once := [label for label in in_order(train) if train[label] == 1]:
        yield f"train: {counted(len(once), 'label stands', 'labels stand')} there only once: {named(once)}"
    for part, rows in parts.items():
        found = _counts(rows)
        if part != "train" and (absent := [label for label in in_order(train) if label not in found]):
            yield f"{part}: {counted(len(absent), 'label is', 'labels are')} not in this part: {named(absent)}"


def unseen_labels(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    """A model cannot say them; the rows stay, and count as wrong."""
    known = set(_counts(parts["train"]))
    for part, rows in parts.items():
        unseen = Counter(label for row in rows for label in set(labels_in(row.answer)) - known)
        if unseen:
            many = counted(sum(unseen.values()), "row has", "rows have")
            told = f"a label that the training part lacks ({named(in_order(unseen))})"
            yield f"{part}: {many} {told}, and no model can be right there"


def _twice(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    answers: dict[tuple[str, ...], set[Answer]] = {}
    num_copies = 0
    for row in parts["train"]:
        found = answers.setdefault(row.texts, set())
        num_copies += row.answer in found
        found.add(row.answer)
    if num_different := sum(len(found) > 1 for found in answers.values()):
        texts = counted(num_different, "text stands", "texts stand")
        yield f"train: {texts} there more than once, with different answers"
    if num_copies:
        yield f"train: {num_copies:,} of {len(parts['train']):,} rows are copies of others"


def _overlaps(parts: dict[str, list[LabelledRow]]) -> Iterator[str]:
    known = {row.texts for row in parts["train"]}
    for part, rows in parts.items():
        num_known = sum(row.texts in known for row in rows)
        if part != "train" and num_known:
            yield f"{part}: {num_known:,} of {len(rows):,} texts stand in the training part too"
