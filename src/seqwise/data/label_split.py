"""Rows -> train, valid, test: shuffled, each label in the same shares, what is the same in one part.

Files are often sorted by label, and the same text often stands in them twice: neither may decide how well a model does.
The place of a row follows from a hash of its text, so the same rows are always cut alike, in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import DataError
from .annotated import LabelledRow
from .pair_split import place_in_shuffle
from .source import DEFAULT_SPLIT, PARTS, split_edges

VALID_SHARE = 10  # per cent of the training part, where there is a part to test on and none to validate on
CUT_SPLIT = f"{100 - VALID_SHARE}/{VALID_SHARE}"
MAX_SHARE = 20  # of the rows, one in so many, that may share their first text and stay together for it
T = TypeVar("T")


def deal(
    name: str, items: Sequence[T], *, key: Callable[[T], str], label: Callable[[T], str], split: str
) -> dict[str, list[T]]:
    """Items with the same key stay together, next to each other; each label is dealt out in the shares of `split`.

    What one label leaves over by rounding, the next takes along, so that the parts have their sizes.
    """
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    shuffled = sorted(groups, key=place_in_shuffle)
    strata: dict[str, list[str]] = {}
    for one in shuffled:
        strata.setdefault(label(groups[one][0]), []).append(one)
    edges = split_edges(len(items), split)
    sizes = {part: edges[place + 1] - edges[place] for place, part in enumerate(PARTS[: len(edges) - 1])}
    held_out = {part: max(1, size) / len(items) for part, size in sizes.items() if part != "train"}
    owed = dict.fromkeys(held_out, 0.0)
    part_of: dict[str, str] = {}
    for stratum in sorted(strata):
        left = strata[stratum]
        num, num_left = sum(len(groups[one]) for one in left), len(left)
        for part, share in held_out.items():
            owed[part] += share * num
            for one in left:
                if num_left > 1 and len(groups[one]) <= owed[part] + 1e-9:  # one stays to learn from
                    part_of[one] = part
                    owed[part] -= len(groups[one])
                    num_left -= 1
            left = [one for one in left if one not in part_of]
    _fill_empty(part_of, strata, list(held_out))
    parts: dict[str, list[T]] = {part: [] for part in sizes}
    for one in sorted(groups, key=lambda one: place_in_shuffle(f"{one}\n")):  # anew: each label gave its first away
        parts[part_of.get(one, "train")] += groups[one]
    for part, found in parts.items():
        if not found:
            raise DataError(
                f"{name}: {len(items):,} rows with {len(groups):,} distinct texts leave none to {part} "
                f"(split {split}). Give more rows, or cut elsewhere with --split-at."
            )
    return parts


def _fill_empty(part_of: dict[str, str], strata: dict[str, list[str]], held_out: list[str]) -> None:
    """Where labels are few and large groups stand in the way, a part takes one group from the label with most."""
    for part in held_out:
        if part in part_of.values():
            continue
        left = {stratum: [one for one in some if one not in part_of] for stratum, some in strata.items()}
        largest = max(sorted(left), key=lambda stratum: len(left[stratum]))
        if len(left[largest]) > 1:
            part_of[left[largest][0]] = part


def split_labelled(name: str, rows: Sequence[LabelledRow], split: str | None) -> dict[str, list[LabelledRow]]:
    """Rows with the same first text are in one part; but for texts that very many rows share: there both count."""
    by_first: dict[str, int] = {}
    for row in rows:
        by_first[row.texts[0]] = by_first.get(row.texts[0], 0) + 1
    few = max(by_first.values(), default=0) * MAX_SHARE <= len(rows)
    num_texts = 1 if few else 2
    return deal(
        name,
        rows,
        key=lambda row: "\n".join(row.texts[:num_texts]),
        label=lambda row: row.answer if isinstance(row.answer, str) else "",
        split=split or DEFAULT_SPLIT,
    )
