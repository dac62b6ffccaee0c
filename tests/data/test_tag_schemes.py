"""Tag schemes: what marks an entity, by hand, by a search over all tag sequences, and back and forth."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqwise.data.tag_schemes import (
    SCHEMES,
    Entity,
    Oddity,
    detect_scheme,
    entities_of,
    legal_transitions,
    odd_in_words,
    odd_tags,
    scheme_named,
    split_tag,
    tags_of,
    to_iob2,
    to_scheme,
)
from seqwise.errors import ConfigError, DataError

ENTITIES = [Entity("PER", 0, 2), Entity("PER", 2, 3), Entity("LOC", 4, 5), Entity("PER", 5, 8)]
WRITTEN = {
    "IOB1": ["I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER", "I-PER", "I-PER"],
    "IOB2": ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-PER", "I-PER", "I-PER"],
    "BIOES": ["B-PER", "E-PER", "S-PER", "O", "S-LOC", "B-PER", "I-PER", "E-PER"],
    "BILOU": ["B-PER", "L-PER", "U-PER", "O", "U-LOC", "B-PER", "I-PER", "L-PER"],
}
each_scheme = pytest.mark.parametrize("scheme", SCHEMES)
any_tags = st.lists(st.sampled_from(["O", *(f"{p}-{t}" for p in "BIESLU" for t in "xy")]), max_size=9)


@st.composite
def spans(draw: st.DrawFn) -> tuple[list[Entity], int]:
    """Entities in order, some side by side, and the number of words."""
    found, place = [], 0
    for _ in range(draw(st.integers(0, 5))):
        begin = place + draw(st.integers(0, 2))
        place = begin + draw(st.integers(1, 3))
        found.append(Entity(draw(st.sampled_from(["PER", "LOC", "A-B", ""])), begin, place))
    return found, place + draw(st.integers(0, 2))


@each_scheme
def test_entities_are_written_and_read_in_every_scheme(scheme: str) -> None:
    assert tags_of(ENTITIES, 8, scheme) == WRITTEN[scheme]
    assert entities_of(WRITTEN[scheme]) == ENTITIES
    for other in SCHEMES:
        assert to_scheme(WRITTEN[other], scheme) == WRITTEN[scheme]
    assert to_iob2(WRITTEN[scheme]) == WRITTEN["IOB2"]


@given(spans(), st.sampled_from(list(SCHEMES)))
def test_what_is_written_is_read_again_and_offends_nothing(found: tuple[list[Entity], int], scheme: str) -> None:
    entities, num_words = found
    tags = tags_of(entities, num_words, scheme)
    assert len(tags) == num_words
    assert entities_of(tags) == entities
    assert odd_tags([tags], scheme) == []


@given(any_tags, st.sampled_from(list(SCHEMES)))
def test_whatever_was_broken_is_in_order_after_it_was_converted(tags: list[str], scheme: str) -> None:
    converted = to_scheme(tags, scheme)
    assert odd_tags([converted], scheme) == []
    assert entities_of(converted) == entities_of(tags)
    assert to_scheme(converted, scheme) == converted


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("O I-PER I-PER", [("PER", 1, 3)]),  # an I- after O opens an entity
        ("B-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),  # and so does one of another type
        ("E-PER E-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("B-PER S-PER E-PER", [("PER", 0, 1), ("PER", 1, 2), ("PER", 2, 3)]),
        ("I-PER PER I-PER", [("PER", 0, 1), ("PER", 2, 3)]),  # what has no prefix is outside
        ("B I O I", [("", 0, 2), ("", 3, 4)]),
        ("B-A-B I-A-B", [("A-B", 0, 2)]),
        ("", []),
    ],
)
def test_broken_tags_are_read_as_the_scorer_of_conll_reads_them(tags: str, entities: list[tuple]) -> None:
    assert entities_of(tags.split()) == [Entity(*entity) for entity in entities]


@pytest.mark.parametrize(
    ("tag", "mark"),
    [
        ("B-PER", ("B", "PER")),
        ("L-PER", ("E", "PER")),
        ("U-PER", ("S", "PER")),
        ("I", ("I", "")),
        ("O", ("O", "")),
        ("NOUN", ("", "NOUN")),
        ("-LRB-", ("", "-LRB-")),
        ("S-", ("", "S-")),
        ("BI-x", ("", "BI-x")),
        ("b-per", ("", "b-per")),
        ("O-PER", ("", "O-PER")),
    ],
)
def test_a_tag_is_taken_apart(tag: str, mark: tuple[str, str]) -> None:
    assert split_tag(tag) == mark


@each_scheme
def test_the_scheme_of_a_corpus_is_found_with_its_reason(scheme: str) -> None:
    found = detect_scheme([WRITTEN[scheme], ["O", "O"], []])
    assert (found.scheme, found.reason, found.odd) == (scheme, SCHEMES[scheme].reason, [])


@pytest.mark.parametrize(
    ("row", "scheme", "reason"),
    [
        ("DET NOUN VERB", "", "no tag has a prefix such as B- or I-"),
        ("O O O", "", "no tag has a prefix such as B- or I-"),
        ("B M E S", "", "no tag has a prefix such as B- or I-"),  # Chinese words, of which M is no letter of ours
        ("S O", "", "no tag has a prefix such as B- or I-"),
        ("S- I- Nb Df", "", "no tag has a prefix such as B- or I-"),
        ("PER PER I-LOC O O O", "", "of 3 tags besides O only 1 have a prefix such as B- or I-"),
        ("I-PER O I-LOC I-LOC", "IOB1", "entities begin with I-, and B- is nowhere"),
        ("B I O B", "IOB2", "entities begin with B-"),
        ("B E S O", "BIOES", "entities end with E-, those of one word are S-"),
        ("S-PER", "BIOES", "entities end with E-, those of one word are S-"),
        ("U-PER", "BILOU", "entities end with L-, those of one word are U-"),
    ],
)
def test_schemes_of_small_corpora(row: str, scheme: str, reason: str) -> None:
    found = detect_scheme([row.split()])
    assert (found.scheme, found.reason, found.odd) == (scheme, reason, [])


def test_a_few_broken_tags_do_not_hide_the_scheme_and_are_named() -> None:
    rows = [WRITTEN["IOB2"]] * 50 + [["I-LOC", "O"], ["O", "I-PER"], ["B-PER", "I-LOC", "ORG", "S-PER"], ["O", "I-PER"]]
    found = detect_scheme(rows)
    assert found.scheme == "IOB2"
    assert found.odd == [
        Oddity("I-PER after O", 2, 51, 1),
        Oddity("I-LOC at the beginning of a row", 1, 50, 0),
        Oddity("I-LOC after B-PER", 1, 52, 1),
        Oddity("ORG without a prefix", 1, 52, 2),
        Oddity("S-PER with a prefix of another scheme", 1, 52, 3),
    ]
    assert odd_in_words(found.odd) == (
        "6 odd tags: I-PER after O (2, first in row 52, word 2), I-LOC at the beginning of a row (1, first in row 51, "
        "word 1), I-LOC after B-PER (1, first in row 53, word 2), and 2 other kinds"
    )


def test_what_is_odd_at_the_end_of_a_row_is_told_of_its_last_word() -> None:
    assert odd_tags([["O"], ["O", "B-PER"], ["B-PER", "O"]], "BIOES") == [
        Oddity("B-PER at the end of a row", 1, 1, 1),
        Oddity("O after B-PER", 1, 2, 1),
    ]
    assert odd_tags([["B-PER"], ["O", "B-PER", "I-PER", "B-PER"]], "IOB1") == [
        Oddity("B-PER at the beginning of a row", 1, 0, 0),
        Oddity("B-PER after O", 1, 1, 1),
    ]
    assert odd_in_words([]) == ""


@each_scheme
def test_legal_rows_are_those_that_entities_are_written_as(scheme: str) -> None:
    """Every row of three words: legal by the tables, or not what any entities look like in this scheme."""
    names = ["O", *(f"{letter}-{kind}" for letter in SCHEMES[scheme].letters for kind in "xy")]
    can_follow, can_begin, can_end = legal_transitions(names, scheme)
    assert (can_follow.dtype, can_begin.dtype, can_end.dtype) == (bool, bool, bool)
    for row in product(range(len(names)), repeat=3):
        is_legal = can_begin[row[0]] and can_end[row[-1]] and all(can_follow[a, b] for a, b in pairwise(row))
        tags = [names[tag] for tag in row]
        assert is_legal == (to_scheme(tags, scheme) == tags)


def test_transitions_by_hand() -> None:
    can_follow, can_begin, can_end = legal_transitions(["O", "B-PER", "I-PER", "I-LOC"], "IOB2")
    assert can_follow.tolist() == [
        [True, True, False, False],
        *[[True, True, True, False]] * 2,
        [True, True, False, True],
    ]
    assert can_begin.tolist() == [True, True, False, False]
    assert can_end.all()


def test_plain_tags_may_stand_everywhere() -> None:
    can_follow, can_begin, can_end = legal_transitions(["NOUN", "I-x", "VERB"], "")
    assert (can_follow.shape, can_begin.shape, can_end.shape) == ((3, 3), (3,), (3,))
    assert np.concatenate([can_follow.ravel(), can_begin, can_end]).all()


def test_a_tag_of_another_scheme_has_no_transitions() -> None:
    with pytest.raises(DataError, match="the tag S-PER does not belong to the scheme IOB2; convert the tags first"):
        legal_transitions(["O", "S-PER"], "IOB2")
    with pytest.raises(DataError, match="the tag E-PER does not belong to the scheme BILOU"):
        legal_transitions(["O", "E-PER"], "BILOU")


def test_schemes_by_their_other_names() -> None:
    assert [scheme_named(name) for name in ("IOBES", "BIO", "IOB")] == [SCHEMES[s] for s in ("BIOES", "IOB2", "IOB1")]
    with pytest.raises(ConfigError, match=r'unknown tag scheme "IOB3"\. Did you mean "IOB2"'):
        to_scheme(["O"], "IOB3")
