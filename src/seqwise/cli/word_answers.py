"""What `seqwise words` answers, each for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from ..data.files import OPENERS
from ..data.paths import data_folders
from ..data.word_vectors import Method, WordVectors
from ..data.wordnet import WordNet
from ..errors import DataError
from ..evaluation.segments import interval_in_words
from ..evaluation.word_vectors import (
    SimilarityScore,
    WordPairs,
    compare_similarities,
    evaluate_analogies,
    evaluate_similarity,
    on_shared_pairs,
    one_hot_similarity,
    read_analogies,
    read_word_pairs,
)
from .tables import columns


@dataclass(frozen=True)
class WordAnswer:
    facts: dict[str, Any]
    """For programs."""
    lines: list[str]


def answer_words(found: WordVectors, words: Sequence[str], num: int) -> Iterator[WordAnswer]:
    """One word has neighbours, two or more have similarities."""
    if len(words) == 1:
        near = found.neighbours(words[0], num)
        yield WordAnswer({"word": words[0], "neighbours": _as_facts(near)}, _listed(near))
    for first, second in combinations(words, 2):
        cosine = found.cosine(first, second)
        yield WordAnswer({"words": [first, second], "cosine": cosine}, [f"{first} {second}: cosine {cosine:.3f}"])


def answer_analogies(
    found: WordVectors, asked: Sequence[Sequence[str]], num: int, method: Method
) -> Iterator[WordAnswer]:
    for a, b, c in asked:
        best = found.analogy(a, b, c, num, method=method)
        facts = {"analogy": [a, b, c], "method": method, "answers": _as_facts(best)}
        yield WordAnswer(facts, [f"{a} is to {b} as {c} is to", *_listed(best)])


def _as_facts(listed: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "value": value} for word, value in listed]


def _listed(listed: Sequence[tuple[str, float]]) -> list[str]:
    return [f"{value:7.3f}  {word}" for word, value in listed]


# -- files that people rated ---------------------------------------------------------------------------------------


def at_hand(name: str, folder: str) -> Path:
    """A file, or the name of one in this folder of the data."""
    given = [Path(name)]
    given += [
        place / folder / f"{name}{ending}{packed}"
        for place in data_folders()
        for ending in ("", ".txt")
        for packed in ("", *OPENERS)
    ]
    path = next((path for path in given if path.is_file()), None)
    if path is None:
        known = sorted({file.name.partition(".")[0] for place in data_folders() for file in place.glob(f"{folder}/*")})
        at_hand = f" At hand are {', '.join(known)}." if known else ""
        raise DataError(f"{name}: there is no such file.{at_hand}")
    return path


def rate_pairs(
    found: WordVectors, files: Sequence[str], wordnet: Path | None, tell: Callable[[str], None]
) -> Iterator[WordAnswer]:
    """Spearman's correlation with people: of vectors, of one-hot ones, and of WordNet on nouns that both know."""
    if not files:
        return
    nouns = WordNet.open(wordnet) if wordnet is not None or WordNet.is_at_hand() else None
    if nouns is None:
        tell("note: WordNet is not at hand (Debian: apt-get install wordnet-base), so it rates no pairs")
    rows = [["pairs", "known", "vectors", "one-hot", "both know", "vectors", "WordNet path", "difference"]]
    answers = []
    for name in files:
        row, facts = _rated(found, read_word_pairs(at_hand(name, "wordsim")), nouns)
        rows.append(row)
        answers.append(facts)
    shown = rows if nouns is not None else [row[:4] for row in rows]
    lines = ["Spearman's correlation with what people say:", *columns(shown)]
    yield WordAnswer(answers[0], lines)
    for facts in answers[1:]:
        yield WordAnswer(facts, [])


def _rated(found: WordVectors, pairs: WordPairs, nouns: WordNet | None) -> tuple[list[str], dict[str, Any]]:
    ours = evaluate_similarity(found.similarity, pairs, about="cosine")
    one_hot = evaluate_similarity(one_hot_similarity, pairs, about="one-hot")
    facts = {**ours.to_dict(), "one_hot": one_hot.correlation}
    row = [pairs.name, f"{100 * ours.share_known:.1f} % of {len(pairs.pairs):,}", _shown(ours)]
    row.append(f"{one_hot.correlation:.3f}")
    if nouns is None:
        return row, facts
    paths = evaluate_similarity(nouns.path_similarity, pairs, about="path")
    here, there = on_shared_pairs(ours, paths)
    num = len(here.ratings)
    if num == 0:
        return [*row, "0", "", "", ""], facts
    gain = compare_similarities(ours, paths)
    facts["wordnet"] = {"pairs": num, "vectors": here.correlation, "paths": there.correlation}
    facts["wordnet"] |= {"difference": gain.gain, "interval": list(gain.interval)}
    difference = f"{gain.gain:+.3f} ({interval_in_words(gain.interval, 3)})"
    return [*row, f"{num:,}", f"{here.correlation:.3f}", f"{there.correlation:.3f}", difference], facts


def _shown(score: SimilarityScore) -> str:
    return f"{score.correlation:.3f} ({interval_in_words(score.interval, 3)})"


def solve_files(found: WordVectors, files: Sequence[str], method: Method) -> Iterator[WordAnswer]:
    """Analogies of a file, by group."""
    for name in files:
        score = evaluate_analogies(found, read_analogies(at_hand(name, "analogy")), method=method)
        width = max(len(first) for first, _ in score.rows())
        yield WordAnswer(score.to_dict(), [f"{first:<{width}}  {second}" for first, second in score.rows()])
