"""Built-in labels and tags: the same each time, of bounded size, with answers that can be checked by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from seqwise.data.annotated_toys import LANGUAGES, MAX_NAMES, language_rows, roles_in
from seqwise.data.label_files import open_labelled
from seqwise.data.tag_files import open_tagged


def test_each_name_has_one_language() -> None:
    pytest.importorskip("babel", reason="needs Babel: pip install Babel")
    rows = language_rows()
    counts = Counter(row.answer for row in rows)
    assert set(counts) == set(LANGUAGES)
    assert min(counts.values()) > 200
    assert len({row.texts for row in rows}) == len(rows) <= MAX_NAMES
    known = {row.texts[0]: row.answer for row in rows}
    assert (known["Deutschland"], known["Frankreich"], known["mercoledì"], known["воскресенье"]) == (
        "de",
        "de",
        "it",
        "ru",
    )
    assert "Angola" not in known  # the same in many languages
    data = open_labelled(["cldr-languages"])
    assert data.fingerprint == open_labelled(["cldr-languages"]).fingerprint
    assert [len(rows) for rows in data.parts.values()][1:] == [len(rows) // 20, len(rows) - len(rows) * 95 // 100]
    assert data.labels == sorted(LANGUAGES)


def test_the_roles_of_a_line() -> None:
    source = '''def total(self, values=None):
    """All of
    them."""
    return self.sum + len(values) * 0x1F  # and more

# alone
x = f"{x} is"
'''
    lines = list(roles_in(source))
    assert [line.line for line in lines] == [1, 2, 4, 6, 7]
    assert list(zip(lines[0].words, lines[0].tags, strict=True)) == [
        *(("def", "keyword"), ("total", "definition"), ("(", "operator"), ("self", "name"), (",", "operator")),
        *(("values", "name"), ("=", "operator"), ("None", "keyword"), (")", "operator"), (":", "operator")),
    ]
    assert (lines[1].words, set(lines[1].tags)) == (('"""All', "of", 'them."""'), {"string"})
    assert lines[2].words == (
        "return",
        "self",
        ".",
        "sum",
        "+",
        "len",
        "(",
        "values",
        ")",
        "*",
        "0x1F",
        "#",
        "and",
        "more",
    )
    assert lines[2].tags == (
        *("keyword", "name", "operator", "attribute", "operator", "builtin", "operator", "name", "operator"),
        *("operator", "number", "comment", "comment", "comment"),
    )
    assert (lines[3].words, lines[3].tags) == (("#", "alone"), ("comment", "comment"))
    assert lines[4].tags[:2] == ("name", "operator")
    assert list(roles_in("x = (\n")) == []


def test_the_library_gives_enough_lines_each_once() -> None:
    data = open_tagged(["python-roles"])
    lines = [row for rows in data.parts.values() for row in rows]
    assert len({line.words for line in lines}) == len(lines)
    num_words = sum(len(line.words) for line in lines)
    assert 200_000 <= num_words < 260_000
    assert max(len(line.words) for line in lines) <= 60
    roles = {"keyword", "builtin", "definition", "attribute", "name", "number", "string", "operator", "comment"}
    assert {tag for line in lines for tag in line.tags} == roles
    assert not any(character.isspace() for line in lines for word in line.words for character in word)
    assert (data.scheme, set(data.tags)) == ("", roles)
