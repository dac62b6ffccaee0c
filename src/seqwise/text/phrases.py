"""Phrases: two words that stand together more often than chance would have it become one, "new york" new_york.

Mikolov et al. 2013 (section 4). Of the bigram a b in a text of N words,

    score(a b) = (count(a b) - discount) / (count(a) count(b)) * N                                                (1)

is how many times as often as by chance it stands there; the discount keeps pairs of rare words out. Bigrams above a
threshold are joined, from left to right, none of them overlapping. A second pass over the joined text finds phrases of
three and four words.

    phrases = find_phrases(lines)              # lines of words
    join_phrases("in new york city".split(), phrases)          # ["in", "new_york", "city"]

Shapes: N words, P bigrams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

JOINT = "_"
READ_AT_ONCE = 1 << 22  # bigrams that are counted together

Phrases = Mapping[tuple[str, str], float]
"""Bigrams that are joined, each with its score."""


def score_bigrams(
    ids: np.ndarray, vocab_size: int, *, apart: Sequence[int] = (), discount: float = 5.0, min_count: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids (N,) -> bigrams that are seen `min_count` times (P, 2), and (1) of each (P,), best first.

    Tokens in `apart` (the end of a line, unknown words) belong to no bigram and are not counted.
    """
    is_word = np.ones(vocab_size, dtype=bool)
    is_word[list(apart)] = False
    counts, keys, pairs = np.zeros(vocab_size, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for start in range(0, len(ids), READ_AT_ONCE):
        here = np.asarray(ids[start : start + READ_AT_ONCE + 1], dtype=np.int64)  # the last begins the next part too
        counts += np.bincount(here[:READ_AT_ONCE], minlength=vocab_size)
        both = is_word[here[:-1]] & is_word[here[1:]]
        found, num = np.unique(here[:-1][both] * vocab_size + here[1:][both], return_counts=True)
        keys, places = np.unique(np.concatenate([keys, found]), return_inverse=True)
        pairs = np.bincount(places, weights=np.concatenate([pairs, num]), minlength=len(keys)).astype(np.int64)
    keys, pairs = keys[pairs >= min_count], pairs[pairs >= min_count]
    bigrams = np.stack([keys // vocab_size, keys % vocab_size], axis=1)
    scores = (pairs - discount) / counts[bigrams].prod(axis=1) * counts[is_word].sum()  # (1)
    order = np.argsort(-scores, kind="stable")
    return bigrams[order], scores[order]


def find_phrases(
    lines: Iterable[Sequence[str]],
    *,
    threshold: float = 100.0,
    discount: float = 5.0,
    min_count: int = 5,
    never: Iterable[str] = (),
) -> dict[tuple[str, str], float]:
    """Bigrams of these lines of words that score above the threshold, best first; words in `never` are in none."""
    id_of: dict[str, int] = {"": 0}  # 0 stands behind each line
    parts: list[np.ndarray] = []
    for line in lines:
        parts.append(np.array([*(id_of.setdefault(word, len(id_of)) for word in line), 0], dtype=np.int32))
    if not parts:
        return {}
    apart = {0, *(id_of[word] for word in never if word in id_of)}
    ids = np.concatenate(parts)
    bigrams, scores = score_bigrams(ids, len(id_of), apart=sorted(apart), discount=discount, min_count=min_count)
    words, num = list(id_of), int((scores > threshold).sum())
    joined = zip(bigrams[:num].tolist(), scores[:num].tolist(), strict=True)
    return {(words[first], words[second]): score for (first, second), score in joined}


def join_phrases(words: Sequence[str], phrases: Phrases, *, joint: str = JOINT) -> list[str]:
    """A line with its phrases joined: of two that overlap, the first."""
    joined: list[str] = []
    place = 0
    while place < len(words):
        is_phrase = place + 1 < len(words) and (words[place], words[place + 1]) in phrases
        joined.append(words[place] + joint + words[place + 1] if is_phrase else words[place])
        place += 2 if is_phrase else 1
    return joined


def join_text(
    lines: Sequence[Sequence[str]], *, passes: int = 1, threshold: float = 100.0, min_count: int = 5
) -> tuple[list[list[str]], dict[str, float]]:
    """Lines with their phrases joined, pass by pass, and what was joined with its score, best first.

    Marks belong to no phrase.
    """
    joined = [list(line) for line in lines]
    found: dict[str, float] = {}
    for _ in range(passes):
        marks = {word for line in joined for word in line if not word[0].isalnum()}
        phrases = find_phrases(joined, threshold=threshold, min_count=min_count, never=marks)
        found |= {f"{first}{JOINT}{second}": score for (first, second), score in phrases.items()}
        joined = [join_phrases(line, phrases) for line in joined]
    return joined, dict(sorted(found.items(), key=lambda phrase: -phrase[1]))
