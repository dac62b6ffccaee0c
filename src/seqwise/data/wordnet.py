"""WordNet's nouns: a taxonomy made by hand, to hold vectors made by reading against.

    nouns = WordNet.open()                       # where Debian's wordnet-base puts it, else: folder=
    nouns.path_similarity("tiger", "cat")        # 0.5: a tiger is a big cat, which is one meaning of cat

A synset is a set of words with one meaning, and points to those that are more general (hypernyms): tiger -> big cat ->
feline. The similarity of two words is that of their nearest meanings,

    path similarity = 1 / (1 + edges on the shortest way up from one and down to the other)                       (1)

The files are WordNet's own (wndb(5WN)): index.noun has a line for each word, data.noun one for each synset, which is
named by the byte that its line begins at; noun.exc has plurals that no rule makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..errors import DataError
from .files import lines_of, read_text

FOLDERS = (Path("/usr/share/wordnet"), Path("/usr/share/WordNet"), Path("/usr/local/WordNet-3.0/dict"))
MORE_GENERAL = ("@", "@i")  # pointers: is a kind of, is an instance of
ENDINGS = (
    *(("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ("s", ""),
)
"""Of plurals, and of what they are plurals of (morphy(7WN))."""


@dataclass(frozen=True)
class WordNet:
    meanings: dict[str, list[int]]
    """Of each word, its synsets; several words are joined by _."""
    above: dict[int, list[int]]
    """Of each synset, those that are more general."""
    singular: dict[str, str]
    """Of plurals that no rule makes."""

    @staticmethod
    def is_at_hand() -> bool:
        return _folder() is not None

    @staticmethod
    def open(folder: str | Path | None = None) -> WordNet:
        """Read it from a folder, or from where systems put it."""
        found = _folder() if folder is None else Path(folder)
        if found is None:
            raise DataError(
                "WordNet's data is not at hand. Install it (Debian: apt-get install wordnet-base), or name the folder "
                "that has index.noun and data.noun."
            )
        for name in ("index.noun", "data.noun"):
            if not (found / name).exists():
                raise DataError(
                    f"{found}: has no {name}. Name the folder of WordNet that has index.noun and data.noun."
                )
        above, meanings = dict(_synsets(found / "data.noun")), dict(_words(found / "index.noun"))
        named = {synset for synsets in chain(meanings.values(), above.values()) for synset in synsets}
        if not named <= above.keys():
            raise DataError(f"{found}: data.noun lacks the synset {min(named - above.keys()):08}. Get WordNet again.")
        exceptions = found / "noun.exc"
        singular = dict(_exceptions(exceptions)) if exceptions.exists() else {}
        return WordNet(meanings, above, singular)

    def synsets(self, word: str) -> list[int]:
        """The meanings of a word, or of what it is the plural of; none where it is no noun."""
        word = word.lower().replace(" ", "_")
        if word in self.meanings:
            return self.meanings[word]
        if word in self.singular:
            return self.meanings.get(self.singular[word], [])
        for ending, instead in ENDINGS:
            if word.endswith(ending) and (stem := word.removesuffix(ending) + instead) in self.meanings:
                return self.meanings[stem]
        return []

    def path_similarity(self, first: str, second: str) -> float | None:
        """(1), above 0 and at most 1; None where one of the two is no noun, or no way leads from one to the other."""
        ups = [self._distances(self.synsets(word)) for word in (first, second)]
        shared = ups[0].keys() & ups[1].keys()
        return 1 / (1 + min(ups[0][synset] + ups[1][synset] for synset in shared)) if shared else None

    def _distances(self, synsets: list[int]) -> dict[int, int]:
        """All that is more general than one of these meanings, with the fewest edges up to it."""
        distance, found, here = 0, dict.fromkeys(synsets, 0), synsets
        while here:
            distance += 1
            here = [up for synset in here for up in self.above[synset] if up not in found]
            found |= dict.fromkeys(here, distance)
        return found


def _folder() -> Path | None:
    return next((folder for folder in FOLDERS if (folder / "data.noun").exists()), None)


def _words(path: Path) -> Iterator[tuple[str, list[int]]]:
    """lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset [synset_offset...]"""
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if line.startswith(" "):  # the licence
            continue
        try:
            word, _, num, num_pointers, *rest = line.split()
            synsets = [int(offset) for offset in rest[int(num_pointers) + 2 :]]
            if len(synsets) != int(num):
                raise ValueError(line)
        except ValueError:
            raise _damaged(path, number, "a word, its counts and its synsets") from None
        yield word, synsets


def _synsets(path: Path) -> Iterator[tuple[int, list[int]]]:
    """synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt [ptr...] | gloss, where a pointer is
    pointer_symbol synset_offset pos source/target; w_cnt is hexadecimal."""
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if line.startswith(" "):
            continue
        try:
            fields = line.partition("|")[0].split()
            first = 4 + 2 * int(fields[3], 16)
            num = int(fields[first])
            pointers = fields[first + 1 : first + 1 + 4 * num]
            if len(pointers) != 4 * num:
                raise ValueError(line)
            symbols, offsets = pointers[::4], pointers[1::4]
            yield int(fields[0]), [int(to) for by, to in zip(symbols, offsets, strict=True) if by in MORE_GENERAL]
        except (ValueError, IndexError):
            raise _damaged(path, number, "a synset with its words and pointers") from None


def _exceptions(path: Path) -> Iterator[tuple[str, str]]:
    for line in lines_of(read_text(path)):
        plural, *singular = line.split()
        if singular:
            yield plural, singular[0]


def _damaged(path: Path, line: int, expected: str) -> DataError:
    return DataError(f"{path}: line {line}: expected {expected}. Is it WordNet's, and whole? Get it again.")
