"""Public data sets as pairs: how each is laid out, and which of its sides is which.

multi30k:en-de   captions of photographs in four languages        tatoeba:en-fr   short sentences, sorted by length
cmudict          spelling -> phonemes                             dialogues       a turn -> the next turn
summaries        a dialogue -> its summary
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeVar

from ..errors import DataError, did_you_mean
from .files import lines_of, read_text
from .pair_files import Pair, read_pairs
from .pair_split import SOURCE, TARGET, place_in_shuffle
from .public import find_public
from .source import PARTS

VALID_SHARE = 10  # per cent of the development part of a set that has no training part
TURN_END = "__eou__"
T = TypeVar("T")
THREE_LETTER = {"fr": "fra", "de": "deu", "es": "spa"}


@dataclass(frozen=True)
class SetParts:
    parts: dict[str, list[Pair]]
    """As published; a set of one part is split by the text of one side."""
    side: int = SOURCE
    notes: list[str] = field(default_factory=list)


def read_pair_set(name: str) -> SetParts:
    """'multi30k:de-en' -> its parts."""
    kind, colon, languages = name.partition(":")
    if kind in LANGUAGES:
        return (_multi30k if kind == "multi30k" else _tatoeba)(*_direction(kind, languages))
    if colon:
        raise DataError(f'"{name}": {kind} has no languages to choose; drop ":{languages}".')
    return READERS[kind]()


def _direction(kind: str, languages: str) -> tuple[str, str]:
    pairs = LANGUAGES[kind]
    source, _, target = languages.partition("-")
    if (source, target) in pairs:
        return source, target
    known = [f"{kind}:{source}-{target}" for source, target in pairs]
    if not languages:
        raise DataError(f'"{kind}" holds several languages. Ask for two of them: {", ".join(known)}.')
    raise DataError(
        f'"{kind}:{languages}": no such languages in this set. {did_you_mean(f"{kind}:{languages}", known)}'
    )


def _both_ways(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    return [direction for a, b in pairs for direction in ((a, b), (b, a))]


LANGUAGES = {
    "multi30k": _both_ways(("en", "de"), ("en", "fr"), ("en", "cs"), ("de", "fr"), ("de", "cs"), ("fr", "cs")),
    "tatoeba": _both_ways(("en", "fr"), ("en", "de"), ("en", "es")),
}


def _multi30k(source: str, target: str) -> SetParts:
    names = {part: [f"{part}.{language}" for language in (source, target)] for part in PARTS}
    files = find_public("multi30k", chain.from_iterable(names.values()))
    return SetParts({part: read_pairs([files[name] for name in both], (), []) for part, both in names.items()})


def _tatoeba(source: str, target: str) -> SetParts:
    """Many rows share the English side: it decides which part they go to, whatever the direction."""
    other = THREE_LETTER[target if source == "en" else source]
    pairs = read_pairs([find_public("tatoeba", [f"{other}-eng"])[f"{other}-eng"]], (), [])
    if source == "en":
        return SetParts({"train": pairs})
    return SetParts({"train": [(other, english) for english, other in pairs]}, side=TARGET)


def _cmudict() -> SetParts:
    """'NATURAL 1 N AE1 CH ER0 AH0 L' -> ('natural', 'N AE1 CH ER0 AH0 L')."""
    path = find_public("cmudict")["train"]
    try:
        with zipfile.ZipFile(path) as archive:
            lines = archive.read("cmudict/cmudict").decode().splitlines()
    except (OSError, zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not the expected archive ({error}). Get it again.") from None
    entries = (line.split(maxsplit=2) for line in lines if line.strip())
    return SetParts({"train": [(word.lower(), phonemes) for word, _, phonemes in entries]})


def _dialogues() -> SetParts:
    files = find_public("dialogues")
    train, valid = _cut(lines_of(read_text(files["dev"])), place_in_shuffle)
    parts = {"train": train, "valid": valid, "test": list(lines_of(read_text(files["test"])))}
    return SetParts({part: [pair for line in lines for pair in _turns(line)] for part, lines in parts.items()})


def _turns(line: str) -> Iterator[Pair]:
    """Each turn with the turn before it. Behind the turns stand topic, acts and emotions, with TABs between."""
    turns = [turn.strip() for turn in line.split("\t")[0].split(TURN_END) if turn.strip()]
    yield from pairwise(turns)


def _summaries() -> SetParts:
    files = find_public("summaries")
    train, valid = _cut(read_pairs([files["dev"]], ("dialogue", "summary"), []), lambda pair: place_in_shuffle(pair[0]))
    test = read_pairs([files["test"]], ("dialogue", "summary1"), [])
    note = "the test part has three summaries for each dialogue; the first is the target"
    return SetParts({"train": train, "valid": valid, "test": test}, notes=[note])


def _cut(items: Iterable[T], place: Callable[[T], bytes]) -> tuple[list[T], list[T]]:
    """A development part, shuffled and cut into a larger and a smaller piece."""
    shuffled = sorted(items, key=place)
    num_valid = len(shuffled) * VALID_SHARE // 100
    return shuffled[num_valid:], shuffled[:num_valid]


READERS: dict[str, Callable[[], SetParts]] = {"cmudict": _cmudict, "dialogues": _dialogues, "summaries": _summaries}
