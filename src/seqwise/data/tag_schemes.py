"""Tag schemes: how one tag for each word marks entities of several words.

    words    Ada    Lovelace  Mary   met  London     two people side by side, and a place
    IOB1     I-PER  I-PER     B-PER  O    I-LOC      B- only right behind another entity of the same type
    IOB2     B-PER  I-PER     B-PER  O    B-LOC      B- on every first word
    BIOES    B-PER  E-PER     S-PER  O    S-LOC      and E- on the last, S- on a single one
    BILOU    B-PER  L-PER     U-PER  O    U-LOC      the same with other letters; IOBES is BIOES

IOB1: Ramshaw & Marcus 1995. IOB2: Ratnaparkhi 1998. BILOU: Ratinov & Roth 2009. Parts of speech have no scheme: there
the name is "". Entities are read as conlleval does (Tjong Kim Sang & De Meulder 2003), which takes any of these, broken
or not: a word goes on with the entity of the word before it where

    that word is B- or I-, this one is I- or E-, and both have the same type;                                       (1)

any other word with a prefix begins an entity, so an I- after O does, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..errors import ConfigError, DataError, did_you_mean
from ..wording import counted

OUTSIDE = "O"
BILOU_TO_BIOES = {"L": "E", "U": "S"}
BIOES_TO_BILOU = {"E": "L", "S": "U"}
MAX_SHOWN = 3  # oddities that a sentence names
EDGE = ""  # stands before the first word of a row and behind the last; entities see it as they see O


class Mark(NamedTuple):
    """A tag taken apart: "I-PER" is ("I", "PER"); what has no prefix is ("", the tag), and outside, as O is."""

    prefix: str
    type: str
    """Empty where a corpus has entities of one kind only and writes B and I alone."""


class Entity(NamedTuple):
    type: str
    begin: int
    """The first word."""
    end: int
    """Behind the last word."""


@dataclass(frozen=True)
class Oddity:
    """Something that a scheme does not allow."""

    what: str
    """ "I-PER after O"."""
    count: int
    row: int
    """Where it stands first, from 0."""
    word: int


class Detected(NamedTuple):
    scheme: str
    """A name of SCHEMES, or "" where tags mark no entities: parts of speech."""
    reason: str
    """Why, in words."""
    odd: list[Oddity]
    """What does not fit, the most frequent first."""


@lru_cache(maxsize=4096)
def split_tag(tag: str) -> Mark:
    """L- and U- are told as E- and S-."""
    letter, hyphen, entity_type = tag.partition("-")
    if letter not in tuple("BIESLU") or bool(hyphen) != bool(entity_type):
        return Mark(OUTSIDE if tag in (OUTSIDE, EDGE) else "", "" if tag in (OUTSIDE, EDGE) else tag)
    return Mark(BILOU_TO_BIOES.get(letter, letter), entity_type)


def _is_open(mark: Mark) -> bool:
    """Whether the next word may belong to the same entity."""
    return mark.prefix in ("B", "I")


def _goes_on(before: Mark, after: Mark) -> bool:
    """(1)"""
    return _is_open(before) and after.prefix in ("I", "E") and before.type == after.type


def _fits_iob1(before: Mark, after: Mark) -> bool:
    return after.prefix != "B" or (_is_open(before) and before.type == after.type)


def _fits_iob2(before: Mark, after: Mark) -> bool:
    return after.prefix != "I" or _goes_on(before, after)


def _fits_bioes(before: Mark, after: Mark) -> bool:
    return _goes_on(before, after) or not (_is_open(before) or after.prefix in ("I", "E"))


class Scheme(NamedTuple):
    letters: str
    """Prefixes that it has."""
    fits: Callable[[Mark, Mark], bool]
    """Whether one tag may stand right behind another."""
    writes: Callable[[int, int, bool], str]
    """The letter of word i of an entity of n words; whether one of the same type ends right before it."""
    reason: str


def _iob1_letter(i: int, n: int, is_beside_its_like: bool) -> str:
    return "B" if i == 0 and is_beside_its_like else "I"


def _iob2_letter(i: int, n: int, is_beside_its_like: bool) -> str:
    return "B" if i == 0 else "I"


def _bioes_letter(i: int, n: int, is_beside_its_like: bool) -> str:
    return "S" if n == 1 else "B" if i == 0 else "E" if i == n - 1 else "I"


def _bilou_letter(i: int, n: int, is_beside_its_like: bool) -> str:
    letter = _bioes_letter(i, n, is_beside_its_like)
    return BIOES_TO_BILOU.get(letter, letter)


SCHEMES = {  # of two that fit a corpus alike the first is taken
    "IOB2": Scheme("BI", _fits_iob2, _iob2_letter, "entities begin with B-"),
    "IOB1": Scheme(
        "BI", _fits_iob1, _iob1_letter, "entities begin with I-, and with B- only behind another of their type"
    ),
    "BIOES": Scheme("BIES", _fits_bioes, _bioes_letter, "entities end with E-, those of one word are S-"),
    "BILOU": Scheme("BILU", _fits_bioes, _bilou_letter, "entities end with L-, those of one word are U-"),
}


def scheme_named(name: str) -> Scheme:
    """IOBES, BIO and IOB are known, too."""
    found = {"IOBES": "BIOES", "BIO": "IOB2", "IOB": "IOB1"}.get(name, name)
    if found not in SCHEMES:
        raise ConfigError(f'unknown tag scheme "{name}". {did_you_mean(name, SCHEMES)}')
    return SCHEMES[found]


def entities_of(tags: Sequence[str]) -> list[Entity]:
    """By (1), from left to right: entities_of(["B-PER", "I-PER", "O", "I-LOC"]) is PER from 0 to 2, LOC from 3 to 4."""
    found: list[Entity] = []
    before = split_tag(OUTSIDE)
    for place, tag in enumerate(tags):
        after = split_tag(tag)
        if _goes_on(before, after):
            found[-1] = found[-1]._replace(end=place + 1)
        elif after.prefix not in (OUTSIDE, ""):
            found.append(Entity(after.type, place, place + 1))
        before = after
    return found


def tags_of(entities: Iterable[Entity], num_words: int, scheme: str) -> list[str]:
    """The way back; entities stand in order and share no word."""
    writes, tags, last = scheme_named(scheme).writes, [OUTSIDE] * num_words, Entity("", 0, 0)
    for entity in entities:
        is_beside_its_like = last.end == entity.begin and last.end > 0 and last.type == entity.type
        num = entity.end - entity.begin
        for i in range(num):
            letter = writes(i, num, is_beside_its_like)
            tags[entity.begin + i] = f"{letter}-{entity.type}" if entity.type else letter
        last = entity
    return tags


def to_scheme(tags: Sequence[str], scheme: str) -> list[str]:
    """The same entities in another scheme, all tags in order; tags without a prefix become O."""
    return tags_of(entities_of(tags), len(tags), scheme)


def to_iob2(tags: Sequence[str]) -> list[str]:
    return to_scheme(tags, "IOB2")


def legal_transitions(names: Sequence[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which tag may stand behind which (N, N: [before, after]), first in a row (N,), last in a row (N,): all bool.

    Where there is no scheme, every tag may stand everywhere.
    """
    num = len(names)
    if not scheme:
        return np.ones((num, num), dtype=bool), np.ones(num, dtype=bool), np.ones(num, dtype=bool)
    rules = scheme_named(scheme)
    if strange := [name for name in names if not _has_letter(name, rules)]:
        raise DataError(f"the tag {strange[0]} does not belong to the scheme {scheme}; convert the tags first.")
    marks, edge = [split_tag(name) for name in names], split_tag(EDGE)
    can_follow = [[rules.fits(before, after) for after in marks] for before in marks]
    can_begin, can_end = [rules.fits(edge, mark) for mark in marks], [rules.fits(mark, edge) for mark in marks]
    return np.array(can_follow, dtype=bool).reshape(num, num), np.array(can_begin, bool), np.array(can_end, bool)


def detect_scheme(sequences: Iterable[Sequence[str]]) -> Detected:
    """The scheme that the fewest tags offend; none where less than half of the tags besides O have a prefix."""
    rows = list(sequences)
    pairs = _count_pairs(rows)
    tags: Counter[str] = Counter()
    for (_, tag), count in pairs.items():
        if tag not in (OUTSIDE, EDGE):
            tags[tag] += count
    marked, total = sum(count for tag, count in tags.items() if split_tag(tag).prefix), sum(tags.values())
    if not any("-" in tag for tag in tags if split_tag(tag).prefix) and not _are_letters(tags):
        return Detected("", "no tag has a prefix such as B- or I-", [])
    if 2 * marked < total:
        return Detected("", f"of {counted(total, 'tag')} besides O only {marked:,} have a prefix such as B- or I-", [])
    offences = {
        name: sum(count for pair, count in pairs.items() if _what_is_odd(*pair, scheme))
        for name, scheme in SCHEMES.items()
    }
    name = min(offences, key=offences.__getitem__)
    reason = SCHEMES[name].reason
    if name == "IOB1" and not any(tag.startswith("B") for tag in tags):
        reason = "entities begin with I-, and B- is nowhere"
    return Detected(name, reason, odd_tags(rows, name))


def odd_tags(sequences: Iterable[Sequence[str]], scheme: str) -> list[Oddity]:
    """What a scheme does not allow, each with how often and where first, the most frequent first."""
    rules, rows = scheme_named(scheme), list(sequences)
    counts: Counter[str] = Counter()
    odd: dict[tuple[str, str], str] = {}
    for pair, count in _count_pairs(rows).items():
        if what := _what_is_odd(*pair, rules):
            odd[pair] = what
            counts[what] += count
    places: dict[str, tuple[int, int]] = {}
    for row, tags in enumerate(rows if odd else ()):
        for word, pair in enumerate(zip((EDGE, *tags), (*tags, EDGE), strict=True)):
            if pair in odd:
                places.setdefault(odd[pair], (row, min(word, len(tags) - 1)))
    return [Oddity(what, count, *places[what]) for what, count in counts.most_common()]


def odd_in_words(odd: Sequence[Oddity]) -> str:
    """A clause for people: "12 odd tags: I-PER after O (9, first in row 3, word 1), …"; empty where nothing is odd."""
    shown = [f"{one.what} ({one.count:,}, first in row {one.row + 1:,}, word {one.word + 1:,})" for one in odd]
    if not shown:
        return ""
    rest = f", and {counted(len(shown) - MAX_SHOWN, 'other kind')}" if len(shown) > MAX_SHOWN else ""
    return f"{counted(sum(one.count for one in odd), 'odd tag')}: {', '.join(shown[:MAX_SHOWN])}{rest}"


def _count_pairs(rows: Sequence[Sequence[str]]) -> Counter[tuple[str, str]]:
    """How often each tag stands behind each other one: all that any scheme asks."""
    pairs: Counter[tuple[str, str]] = Counter()
    for tags in rows:
        pairs.update(zip((EDGE, *tags), (*tags, EDGE), strict=True))
    return pairs


def _has_letter(tag: str, scheme: Scheme) -> bool:
    """Whether the scheme has the prefix of a tag; a tag without one is no matter of schemes."""
    return split_tag(tag).prefix in (OUTSIDE, "") or tag[0] in scheme.letters


def _are_letters(tags: Iterable[str]) -> bool:
    """Whether a corpus of one kind of entity writes B and I alone: no other tag stands beside them."""
    found = set(tags)
    return found <= set("BIESLU") and bool(found & set("BI"))


def _what_is_odd(before: str, after: str, scheme: Scheme) -> str:
    """What is wrong with `after` behind `before`; empty where it may stand there."""
    marks = split_tag(before), split_tag(after)
    if marks[1].prefix == "":
        return f"{after} without a prefix"
    if not _has_letter(after, scheme):
        return f"{after} with a prefix of another scheme"
    if scheme.fits(*marks):
        return ""
    if before == EDGE:
        return f"{after} at the beginning of a row"
    return f"{after} after {before}" if after != EDGE else f"{before} at the end of a row"
