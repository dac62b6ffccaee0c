"""WordNet: a taxonomy of five words written as WordNet writes its own, and the real one where it is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqwise.data.wordnet import WordNet
from seqwise.errors import DataError

LICENCE = "  1 This software and database is being provided to you  \n"
INDEX = """\
animal n 1 2 @ ~ 1 1 00000001
cat n 2 1 @ 2 1 00000002 00000005
dog n 1 1 @ 1 1 00000003
big_cat n 1 1 @ 1 0 00000005
puppy n 1 1 @i 1 0 00000004
box n 1 0 1 0 00000006
"""
DATA = """\
00000001 05 n 01 animal 0 000 | a living thing
00000002 05 n 01 cat 0 001 @ 00000001 n 0000 | a small animal; "a cat | a pipe"
00000003 05 n 02 dog 0 domestic_dog 0 001 @ 00000001 n 0000 | barks
00000004 18 n 0a puppy 0 p1 0 p2 0 p3 0 p4 0 p5 0 p6 0 p7 0 p8 0 p9 0 002 #m 00000001 n 0000 @i 00000003 n 0000 | small
00000005 05 n 02 big_cat 0 cat 0 001 @ 00000002 n 0000 | large
00000006 06 n 01 box 0 000 | a thing that nothing is above
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.noun").write_text(LICENCE + INDEX)
    (tmp_path / "data.noun").write_text(LICENCE + DATA)
    (tmp_path / "noun.exc").write_text("doggen dog\n")
    return tmp_path


@pytest.mark.parametrize(
    ("first", "second", "edges"),
    [
        ("cat", "cat", 0),
        ("cat", "animal", 1),
        ("animal", "cat", 1),
        ("cat", "dog", 2),
        ("puppy", "animal", 2),  # an instance, and ten words in hexadecimal before its pointers
        ("puppy", "cat", 3),
        ("big cat", "cat", 0),  # one meaning of cat
        ("Big_Cat", "dog", 3),
        ("doggen", "dogs", 0),  # a plural by itself, and one by rule
        ("boxes", "box", 0),
        ("puppies", "puppy", 0),
        ("box", "cat", None),  # no way leads there
        ("run", "cat", None),
    ],
)
def test_similarity_is_the_shortest_way(folder: Path, first: str, second: str, edges: int | None) -> None:
    found = WordNet.open(folder).path_similarity(first, second)
    assert found == (None if edges is None else pytest.approx(1 / (1 + edges)))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("data.noun", DATA[:-90], "data.noun: line 6: expected a synset"),
        ("data.noun", "".join(DATA.splitlines(keepends=True)[:-1]), "data.noun lacks the synset 00000006"),
        ("data.noun", DATA.replace("@ 00000002", "@ 00000009"), "data.noun lacks the synset 00000009"),
        ("data.noun", DATA.replace("0000 | barks", "\n"), "data.noun: line 4: expected a synset"),
        ("data.noun", "not WordNet\n", "data.noun: line 2: expected a synset"),
        ("index.noun", "cat n 2 1 @ 2 1 00000002\n", "index.noun: line 2: expected a word"),
        ("index.noun", "cat n two\n", "index.noun: line 2: expected a word"),
    ],
)
def test_damaged_files_are_told_by_line(folder: Path, name: str, text: str, told: str) -> None:
    (folder / name).write_text(LICENCE + text)
    with pytest.raises(DataError, match=told):
        WordNet.open(folder)


def test_a_folder_without_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"has no index\.noun"):
        WordNet.open(tmp_path)
    monkeypatch.setattr("seqwise.data.wordnet.FOLDERS", (tmp_path,))
    assert not WordNet.is_at_hand()
    with pytest.raises(DataError, match="apt-get install wordnet-base"):
        WordNet.open()


@pytest.mark.skipif(not WordNet.is_at_hand(), reason="needs WordNet's data: apt-get install wordnet-base")
def test_the_real_one_has_the_known_similarities() -> None:
    nouns = WordNet.open()
    assert len(nouns.meanings) > 100_000
    assert nouns.path_similarity("dog", "cat") == pytest.approx(0.2)  # by way of carnivore
    assert nouns.path_similarity("car", "automobile") == 1.0
    assert nouns.path_similarity("children", "child") == 1.0
    assert nouns.path_similarity("car", "quickly") is None
