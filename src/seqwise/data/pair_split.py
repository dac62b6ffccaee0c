"""Pairs -> train, valid, test: all pairs of one source stay together, so that no test is known from training."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..errors import DataError
from .pair_files import Pair
from .source import DEFAULT_SPLIT, PARTS, split_edges

MAX_HELD_OUT_PAIRS = 2_000  # each in valid and test where nobody said how to split: more cost time and tell little
SOURCE, TARGET = 0, 1


def place_in_shuffle(text: str) -> bytes:
    """Sorting by this shuffles: the same texts always fall into the same order, wherever they stood."""
    return hashlib.blake2b(text.encode(), digest_size=16, key=b"seqwise pairs").digest()


def split_pairs(name: str, pairs: Sequence[Pair], split: str | None, *, side: int = SOURCE) -> dict[str, list[Pair]]:
    """Each part shuffled; pairs that share the text of `side` are in one part, next to each other.

    Groups are dealt out in shuffled order: to valid while they fit, then to test, and all others to train.
    """
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair[side], []).append(pair)
    shuffled = sorted(groups, key=place_in_shuffle)
    edges = split_edges(len(pairs), split or DEFAULT_SPLIT)
    sizes = sorted(len(group) for group in groups.values())
    parts: dict[str, list[Pair]] = {part: [] for part, _ in zip(PARTS, edges[1:], strict=False)}
    held_out = [part for part in parts if part != "train"]
    room = {part: edges[place + 2] - edges[place + 1] for place, part in enumerate(held_out)}
    for place, part in enumerate(held_out):
        if split is None:
            room[part] = min(room[part], MAX_HELD_OUT_PAIRS)
        room[part] = max(room[part], sizes[min(place, len(sizes) - 1)])  # one group at least
    for key in shuffled:
        group = groups[key]
        part = next((part for part in held_out if len(parts[part]) + len(group) <= room[part]), "train")
        parts[part] += group
    for part, found in parts.items():
        if not found:
            raise DataError(
                f"{name}: {len(pairs):,} pairs with {len(groups):,} distinct {('sources', 'targets')[side]} leave none "
                f"to {part} (split {split or DEFAULT_SPLIT}). Give more pairs, or cut elsewhere with --split-at."
            )
    return parts
