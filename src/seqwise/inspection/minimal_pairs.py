"""Minimal pairs: two texts that differ in one place, one of them right. Which does the model find more probable?

    is right where  log p(beginning + good)  >  log p(beginning + bad)                       (1)   Linzen et al. 2016

Where both are equally probable, as two words are that a model knows neither of, that is right by half.

A file has a line for each: beginning TAB good TAB bad, and if known TAB the distance, in words, between what must
agree. The built-in list is English number agreement: "The writer of the books" is / are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch

from ..data.batch import Batch, Tokens
from ..errors import DataError
from ..models.contract import LanguageModel, device_of, evaluating
from ..text import Tokenizer

ROWS = 64


@dataclass(frozen=True)
class MinimalPair:
    beginning: str
    good: str
    bad: str
    distance: int
    """Words between the two that must agree."""


@dataclass(frozen=True)
class Judged:
    pair: MinimalPair
    margin: float
    """log p(good) - log p(bad) after the beginning, nats."""

    @property
    def right(self) -> float:
        return 1.0 if self.margin > 0 else 0.5 if self.margin == 0 else 0.0


@dataclass(frozen=True)
class AtDistance:
    distance: int
    right: float
    of: int

    @property
    def accuracy(self) -> float:
        return self.right / self.of


HEADS = (("writer", "writers"), ("student", "students"), ("friend", "friends"), ("child", "children"))
OTHERS = (("book", "books"), ("teacher", "teachers"), ("city", "cities"))
VERBS = (("is", "are"), ("was", "were"), ("has", "have"))
BETWEEN = ("", "of the {}", "near the old {}", "who the {} in the big house")


def builtin_pairs() -> list[MinimalPair]:
    """All combinations; the noun in between has the other number, so that the nearest noun misleads."""
    pairs = []
    for nouns, others, verbs, between in product(HEADS, OTHERS, VERBS, BETWEEN):
        for number in (0, 1):
            middle = between.format(others[1 - number])
            beginning = f"The {nouns[number]} {middle}".rstrip()
            good, bad = verbs[number], verbs[1 - number]
            pairs.append(MinimalPair(beginning, f" {good}", f" {bad}", len(middle.split())))
    return sorted(set(pairs), key=lambda pair: (pair.distance, pair.beginning, pair.good))


def read_pairs_file(path: Path) -> list[MinimalPair]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text. Save it as UTF-8.") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) not in (3, 4) or not parts[1].strip() or not parts[2].strip():
            raise DataError(f"{path}, line {number}: should be beginning TAB good TAB bad, with the distance after it.")
        if len(parts) == 4 and not parts[3].strip().isdecimal():
            raise DataError(f'{path}, line {number}: the distance should be a whole number, not "{parts[3].strip()}".')
        beginning, good, bad = parts[:3]
        joined = [word if word.startswith(" ") or not beginning else f" {word}" for word in (good, bad)]
        distance = int(parts[3]) if len(parts) == 4 else len(beginning.split()) - 1
        pairs.append(MinimalPair(beginning, joined[0], joined[1], max(0, distance)))
    if not pairs:
        raise DataError(f"{path} has no pairs.")
    return pairs


def judge(model: LanguageModel, tokenizer: Tokenizer, pairs: Sequence[MinimalPair]) -> list[Judged]:
    """(1) of each pair. Both texts have the same beginning, so what it costs cancels out."""
    limit = model.context or math.inf
    rows: list[np.ndarray] = []
    for pair in pairs:
        both = [
            np.concatenate([[tokenizer.boundary], tokenizer.encode(pair.beginning + word)])
            for word in (pair.good, pair.bad)
        ]
        too_long = int(max(0, max(map(len, both)) - 1 - limit))  # cut from both, so that they begin alike
        rows += [row[too_long:] for row in both]
    log_probs = _log_probs(model, rows)
    return [Judged(pair, log_probs[2 * n] - log_probs[2 * n + 1]) for n, pair in enumerate(pairs)]


def by_distance(judged: Sequence[Judged]) -> list[AtDistance]:
    distances = sorted({one.pair.distance for one in judged})
    found = []
    for distance in distances:
        here = [one for one in judged if one.pair.distance == distance]
        found.append(AtDistance(distance, sum(one.right for one in here), len(here)))
    return found


def about_halves(judged: Sequence[Judged]) -> list[str]:
    """Sentences on why exactly half are right, where a model does not choose at all, or always chooses alike."""
    found, undecided = [], [one for one in judged if one.margin == 0]
    if undecided:
        found.append(
            f"In {len(undecided):,} of {len(judged):,} both are equally probable, as two words are of which the model "
            "knows neither: these count as half right."
        )
    chosen: dict[frozenset[str], set[str]] = {}
    for one in (one for one in judged if one.margin != 0):
        choice = one.pair.good if one.margin > 0 else one.pair.bad
        chosen.setdefault(frozenset((one.pair.good, one.pair.bad)), set()).add(choice)
    is_half = sum(one.right for one in judged) == len(judged) / 2
    if is_half and len(undecided) < len(judged) and all(len(choices) == 1 for choices in chosen.values()):
        found.append(
            "It chooses the same word whatever stands before, and in this list each is right as often as the other."
        )
    return found


@torch.inference_mode()
def _log_probs(model: LanguageModel, rows: Sequence[np.ndarray]) -> list[float]:
    """log p of what stands behind the first token of each row, nats."""
    device, found = device_of(model), []
    with evaluating(model):
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            width = max(len(row) for row in some)
            ids = torch.zeros(len(some), width, dtype=torch.long)
            for place, row in enumerate(some):
                ids[place, : len(row)] = torch.from_numpy(row)
            lengths = torch.tensor([len(row) - 1 for row in some])
            is_token = torch.arange(width - 1) < lengths.unsqueeze(1)
            inputs, targets = Tokens(ids[:, :-1], is_token), Tokens(ids[:, 1:], is_token)
            log_probs, _ = model.score(Batch({"tokens": inputs}, {"tokens": targets}).to(device))
            found += log_probs.cpu().double().masked_fill(~is_token, 0.0).sum(dim=1).tolist()
    return found
