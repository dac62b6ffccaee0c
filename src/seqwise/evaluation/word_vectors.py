"""How well word vectors agree with people: similarity of word pairs, and analogies, with intervals.

    pairs = read_word_pairs("EN-WS-353-ALL.txt")
    evaluate_similarity(model.words.similarity, pairs).headline()
    evaluate_analogies(model.words, read_analogies("questions-words.txt")).headline()

Similarity: people rated pairs of words; Spearman's correlation (1904) between their ratings and ours is that of the
ranks, so that only the order counts:

    rank of x = how many are below it + (how many equal it + 1) / 2                                               (1)
    rho       = cov(ranks of ratings, ranks of similarities) / (their deviations)                                 (2)

Where all similarities are equal there is no order, and rho is 0. Whatever gives two words a number can be asked: the
cosine of vectors, `one_hot_similarity`, or a path in WordNet (data/wordnet.py), beside each other on the same pairs.

Analogies: "Athens Greece Baghdad Iraq", answered right where the nearest word is the fourth (data/word_vectors.py).

Intervals are resampled from pairs, and for analogies from questions with the same first pair, which share their
mistakes. Words that are not known are left out, and how many are known is told.

Shapes: N pairs, R resamples, Q questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..data.files import lines_of, read_text, shown
from ..data.word_vectors import Method, WordVectors
from ..errors import DataError
from .labels import spearman
from .segments import (
    MIN_SEGMENTS,
    RESAMPLES,
    Difference,
    Metric,
    Segments,
    interval_around,
    interval_in_words,
)

Similarity = Callable[[str, str], float | None]
"""How similar two words are; None where one of them is not known."""
RESAMPLED_AT_ONCE = 100


@dataclass(frozen=True)
class WordPairs:
    name: str
    """Of the file, without its suffix."""
    pairs: list[tuple[str, str]]
    ratings: np.ndarray
    """(N,): how similar people find them; higher is more similar."""


@dataclass(frozen=True)
class Analogies:
    name: str
    """Of the file, without its suffix."""
    questions: list[tuple[str, str, str, str]]
    """a, b, c and the answer: a is to b as c is to the answer."""
    groups: list[str]
    """Of each question, what kind it is."""


def read_word_pairs(path: str | Path) -> WordPairs:
    """Two words and a rating in each line, separated by tabs or by spaces; lines that begin with # say nothing."""
    path = Path(path)
    pairs: list[tuple[str, str]] = []
    ratings: list[float] = []
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
        if len(cells) != 3 or not all(cells):
            raise DataError(
                f"{path}: line {number}: {len(cells)} fields in {shown(line)}, expected two words and a rating."
            )
        try:
            ratings.append(float(cells[2]))
        except ValueError:
            raise DataError(f"{path}: line {number}: the rating {shown(cells[2])} is not a number.") from None
        pairs.append((cells[0], cells[1]))
    if not np.isfinite(ratings).all():
        raise DataError(f"{path}: a rating is not a finite number.")
    if not pairs:
        raise DataError(f"{path}: holds no word pairs: each line should have two words and a rating.")
    return WordPairs(path.name.partition(".")[0], pairs, np.array(ratings))


def read_analogies(path: str | Path) -> Analogies:
    """Four words in each line, below lines ": NAME" that begin a group."""
    path = Path(path)
    questions: list[tuple[str, str, str, str]] = []
    groups: list[str] = []
    group = ""
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        words = line.split()
        if words[:1] == [":"]:
            group = " ".join(words[1:])
        elif len(words) == 4:
            questions.append((words[0], words[1], words[2], words[3]))
            groups.append(group)
        elif words:
            raise DataError(
                f'{path}: line {number}: {len(words)} words in {shown(line)}, expected four, or ": NAME" of a group.'
            )
    if not questions:
        raise DataError(f"{path}: holds no analogies: each line should have four words.")
    return Analogies(path.name.partition(".")[0], questions, groups)


# -- similarity ----------------------------------------------------------------------------------------------------


def one_hot_similarity(first: str, second: str) -> float:
    """What vectors with a single one say: every word is like itself, and no two words are more alike than others."""
    return float(first == second)


def drawn_ranks(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """(1) of values (N,) where each was drawn so many times, (R, N) -> (R, N)."""
    order = np.argsort(values, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(values[order]) != 0))  # of values that are equal
    sizes = np.add.reduceat(drawn[:, order], begins, axis=1)
    middles = np.cumsum(sizes, axis=1) - sizes + (sizes + 1) / 2
    found = np.empty(drawn.shape)
    found[:, order] = np.repeat(middles, np.diff(np.append(begins, len(values))), axis=1)
    return found


def drawn_spearman(first: np.ndarray, second: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """(2) of two rows of numbers (N,), for each way of drawing from them (R, N): (R,)."""
    a, b = drawn_ranks(first, drawn), drawn_ranks(second, drawn)
    middle = (drawn.sum(axis=1, keepdims=True) + 1) / 2
    a, b = a - middle, b - middle
    deviations = np.sqrt((drawn * a * a).sum(axis=1) * (drawn * b * b).sum(axis=1))
    return np.where(deviations > 0, (drawn * a * b).sum(axis=1) / np.maximum(deviations, 1e-300), 0.0)


@dataclass(frozen=True)
class SimilarityScore:
    name: str
    ratings: np.ndarray
    """(N,): of people."""
    similarities: np.ndarray
    """(N,): of ours; not a number where a word is not known."""
    about: str = ""
    """Of what was asked, for the signature."""
    metric = Metric("Spearman's correlation", "Spearman", digits=3, is_higher_better=True)

    @cached_property
    def is_known(self) -> np.ndarray:
        """(N,) bool."""
        return ~np.isnan(self.similarities)

    @property
    def share_known(self) -> float:
        """Pairs of which both words are known."""
        return float(self.is_known.mean())

    @cached_property
    def correlation(self) -> float:
        known = self.is_known
        return spearman(self.ratings[known], self.similarities[known]) or 0.0

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 %, by resampling pairs; without ends where they are too few."""
        known = self.is_known
        found = _resampled(self.ratings[known], self.similarities[known])
        return _ends(self.correlation, found, int(known.sum()), bounds=(-1.0, 1.0))

    @property
    def signature(self) -> str:
        parts = [f"{self.name}:{len(self.ratings)}", self.about, f"bootstrap={RESAMPLES}x{int(self.is_known.sum())}"]
        return "|".join(["Spearman", *(part for part in parts if part), f"seqwise={__version__}"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        return (
            f"{self.name}: Spearman {self.correlation:.3f} ({interval_in_words(self.interval, 3)}), "
            f"{100 * self.share_known:.1f} % of {len(self.ratings):,} pairs known"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield self.name, self.headline().partition(": ")[2]
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "spearman": self.correlation,
            "interval": list(self.interval),
            "pairs": len(self.ratings),
            "share_known": self.share_known,
            "signature": self.signature,
        }


def evaluate_similarity(similar: Similarity, pairs: WordPairs, *, about: str = "") -> SimilarityScore:
    found = [similar(*pair) for pair in pairs.pairs]
    similarities = np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    return SimilarityScore(pairs.name, pairs.ratings, similarities, about)


def on_shared_pairs(first: SimilarityScore, second: SimilarityScore) -> tuple[SimilarityScore, SimilarityScore]:
    """Two scores of the same pairs, of those alone that both know."""
    if not np.array_equal(first.ratings, second.ratings):
        raise DataError(f"{first.name} and {second.name} are not the same pairs: they cannot be compared.")
    known = first.is_known & second.is_known
    ours, theirs = (
        replace(one, ratings=one.ratings[known], similarities=one.similarities[known]) for one in (first, second)
    )
    return ours, theirs


def compare_similarities(first: SimilarityScore, second: SimilarityScore) -> Difference:
    """How much higher the correlation of the first is than that of the second, on the pairs that both know."""
    shared = on_shared_pairs(first, second)
    num = len(shared[0].ratings)
    if num == 0:
        return Difference(0.0, (-np.inf, np.inf), is_enough=False)
    gain = shared[0].correlation - shared[1].correlation
    ours, theirs = (_resampled(one.ratings, one.similarities) for one in shared)
    return Difference(gain, _ends(gain, ours - theirs, num, bounds=(-2.0, 2.0)), num >= MIN_SEGMENTS)


def _resampled(ratings: np.ndarray, similarities: np.ndarray) -> np.ndarray:
    """(2) of RESAMPLES draws from the pairs; the same draws each time, so that two can be compared."""
    random, num = np.random.default_rng(0), len(ratings)
    if num == 0:
        return np.zeros(RESAMPLES)
    parts = []
    for _ in range(0, RESAMPLES, RESAMPLED_AT_ONCE):
        drawn = random.multinomial(num, np.full(num, 1 / num), RESAMPLED_AT_ONCE)
        parts.append(drawn_spearman(ratings, similarities, drawn))
    return np.concatenate(parts)


def _ends(found: float, resampled: np.ndarray, num: int, *, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval around what was found, as segments.py has it."""
    if num < MIN_SEGMENTS:
        return -np.inf, np.inf
    low, high = interval_around(found, resampled, [(num / (num - 1) * float(resampled.var()), num - 1)])
    return max(bounds[0], low), min(bounds[1], high)


# -- analogies -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnalogyScore:
    name: str
    groups: list[str]
    """(Q,): of each question whose words are all known."""
    first_pairs: list[tuple[str, str]]
    """(Q,): a and b of these questions."""
    is_right: np.ndarray
    """(Q,) bool."""
    num_questions: int
    """In the file."""
    method: Method
    metric = Metric("share of wrong analogies", "wrong", digits=4)

    @property
    def accuracy(self) -> float:
        return float(self.is_right.mean()) if len(self.is_right) else 0.0

    @property
    def share_known(self) -> float:
        """Questions of which all four words are known."""
        return len(self.is_right) / self.num_questions

    @cached_property
    def segments(self) -> Segments:
        """Wrong answers, by first pair."""
        names = list(zip(self.groups, self.first_pairs, strict=True))
        place_of = {name: place for place, name in enumerate(dict.fromkeys(names))}
        places = np.array([place_of[name] for name in names], dtype=np.int64)
        return Segments.of(np.bincount(places, weights=~self.is_right), np.bincount(places))

    @property
    def interval(self) -> tuple[float, float]:
        """Of the accuracy, 95 %; without ends where first pairs are too few."""
        low, high = self.segments.interval
        return 1 - high, 1 - low

    @property
    def by_group(self) -> dict[str, tuple[int, int]]:
        """Right answers, and known questions, of each group."""
        found: dict[str, tuple[int, int]] = {}
        for group, is_right in zip(self.groups, self.is_right.tolist(), strict=True):
            right, num = found.get(group, (0, 0))
            found[group] = right + is_right, num + 1
        return found

    @property
    def signature(self) -> str:
        num_segments = self.segments.statistics.shape[1]
        method = {"add": "3CosAdd", "multiply": "3CosMul"}[self.method]
        parts = [f"{self.name}:{self.num_questions}", method, f"bootstrap={RESAMPLES}x{num_segments}"]
        return "|".join(["analogies", *parts, f"seqwise={__version__}"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        low, high = self.interval
        return (
            f"{self.name}: {100 * self.accuracy:.1f} % right ({interval_in_words((100 * low, 100 * high), 1)}), "
            f"{100 * self.share_known:.1f} % of {self.num_questions:,} questions known"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield self.name, self.headline().partition(": ")[2]
        for group, (right, num) in self.by_group.items():
            yield group, f"{100 * right / num:.1f} % of {num:,}"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "questions": self.num_questions,
            "share_known": self.share_known,
            "groups": {group: {"right": right, "known": num} for group, (right, num) in self.by_group.items()},
            "signature": self.signature,
        }


def evaluate_analogies(vectors: WordVectors, analogies: Analogies, *, method: Method = "add") -> AnalogyScore:
    """Answer every question whose four words are known; answers are looked for among all words but the three asked."""
    rows = [[vectors.find(word) for word in question] for question in analogies.questions]
    known = [place for place, found in enumerate(rows) if None not in found]
    asked = np.array([rows[place] for place in known], dtype=np.int64).reshape(-1, 4)
    is_right = vectors.answer(asked[:, :3], method=method) == asked[:, 3]
    questions: Sequence[tuple[str, str, str, str]] = [analogies.questions[place] for place in known]
    groups = [analogies.groups[place] for place in known]
    first_pairs = [(a, b) for a, b, _, _ in questions]
    return AnalogyScore(analogies.name, groups, first_pairs, is_right, len(analogies.questions), method)
