"""Public sets of labels and tags: sizes as published, what each is asked for, and mistakes that are told."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.annotated import LabelledRow, TaggedRow
from seqwise.data.annotated_sets import LABEL_READERS, ROLES, VARIANTS
from seqwise.data.kinds import task_for
from seqwise.data.label_files import looks_labelled, open_labelled
from seqwise.data.public import PUBLIC, find_file
from seqwise.data.public_annotated import ANNOTATED
from seqwise.data.source import open_text
from seqwise.data.tag_files import looks_tagged, open_tagged
from seqwise.errors import DataError

CUT = "there is no part to validate on: it is 10 % of the training part, shuffled"
DEV = "the published part to test on has no labels: the dev part tests"
LABELS: dict[str, tuple[tuple[int, int, int], int, str]] = {  # parts, labels, what is said
    "sst2": ((6_920, 872, 1_821), 2, "0 is bad, 1 is good"),
    "sst5": ((7_689, 855, 1_101), 5, DEV),
    "imdb": ((22_500, 2_500, 22_963), 2, CUT),
    "ag_news": ((4_500, 500, 7_600), 4, CUT),
    "movie_review_polarity": ((1_800, 100, 100), 2, "split here"),
    "subjectivity": ((9_000, 500, 500), 2, "split here"),
    "qc": ((4_906, 546, 500), 6, CUT),
    "qc:fine": ((4_906, 546, 500), 50, "finer kinds"),
    "cola": ((7_695, 856, 1_043), 2, DEV),
    "mrpc": ((3_576, 500, 1_725), 2, "quotes are read as part of the text"),
    "rte": ((2_241, 249, 277), 2, DEV),
    "sick": ((4_500, 500, 4_927), 3, "the trial part validates"),
    "sick:number": ((4_500, 500, 4_927), 0, "numbers in relatedness_score (1 to 5)"),
    "snli": ((8_857, 985, 9_824), 3, "the published part to train on is not at hand: the dev part trains"),
    "stsb": ((5_436, 604, 863), 0, DEV),
    "qqp_small": ((18_190, 1_011, 1_011), 2, "split here"),
    "names-nationality": ((18_045, 1_002, 1_003), 18, "split here"),
}
TAGS: dict[str, tuple[tuple[int, int, int], int, str]] = {  # parts, tags, scheme
    "ud-ewt": ((12_544, 2_001, 2_077), 17, ""),
    "ud-ewt:xpos": ((12_544, 2_001, 2_077), 49, ""),
    "conll2003": ((14_041, 3_250, 3_453), 9, "IOB2"),
    "conll2003:pos": ((14_041, 3_250, 3_453), 45, ""),
    "conll2003:chunk": ((14_041, 3_250, 3_453), 20, "IOB2"),
    "wnut17": ((3_394, 1_009, 1_287), 13, "IOB2"),
    "wikiann": ((20_000, 10_000, 10_000), 7, "IOB2"),
    "brown": ((51_606, 2_867, 2_867), 466, ""),
    "conll2000": ((8_042, 894, 2_012), 22, "IOB2"),
    "atis": ((4_478, 500, 893), 120, "IOB2"),
    "snips": ((13_084, 700, 700), 72, "IOB2"),
}
FIRST = {
    "ag_news": ("test", "Fears for T N pension after talks Unions representing workers at Turner", "Business"),
    "sst2": ("train", "a stirring , funny and finally transporting re imagining of beauty", "1"),
    "cola": ("test", "The sailors rode the breeze clear of the rocks.", "1"),
    "wikiann": ("train", "R.H. Saunders ( St. Lawrence River", "B-ORG I-ORG O B-ORG I-ORG I-ORG"),
    "conll2003": ("train", "EU rejects German call to boycott", "B-ORG O B-MISC O O O"),
    "conll2000": ("test", "Rockwell International Corp. 's Tulsa unit", "B-NP I-NP I-NP B-NP I-NP I-NP"),
    "atis": ("train", "i want to fly from baltimore", "O O O O O B-fromloc.city_name"),
}
"""Of parts that are as they were published: what their first row begins with."""
SLOW = ("imdb", "brown", "ud-ewt:xpos", "conll2003:chunk")  # seconds each; their like is read beside them


def needed(name: str) -> None:
    if any(find_file(file) is None for file in PUBLIC[name.partition(":")[0]].files.values()):
        pytest.skip(f"needs the data set {name} below SEQWISE_DATA")


@pytest.mark.parametrize("name", [name for name in LABELS if name not in SLOW])
def test_labelled_sets_have_their_sizes(name: str, shared_data: Path) -> None:
    needed(name)
    sizes, num_labels, said = LABELS[name]
    data = open_labelled([name])
    assert tuple(len(rows) for rows in data.parts.values()) == sizes
    assert list(data.parts) == ["train", "valid", "test"]
    assert len(data.labels) == num_labels
    assert data.asks_for == ("label" if num_labels else "number")
    assert any(said in note for note in data.notes)
    if name in FIRST:
        part, text, answer = FIRST[name]
        assert data.parts[part][0].texts[0].startswith(text)
        assert data.parts[part][0].answer == answer
    assert all(text.strip() == text and text for rows in data.parts.values() for row in rows for text in row.texts)


@pytest.mark.parametrize("name", [name for name in TAGS if name not in SLOW])
def test_tagged_sets_have_their_sizes(name: str, shared_data: Path) -> None:
    needed(name)
    sizes, num_tags, scheme = TAGS[name]
    data = open_tagged([name])
    assert tuple(len(rows) for rows in data.parts.values()) == sizes
    assert (len(data.tags), data.scheme) == (num_tags, scheme)
    if name in FIRST:
        part, words, tags = FIRST[name]
        assert data.parts[part][0].words[:6] == tuple(words.split())
        assert data.parts[part][0].tags[:6] == tuple(tags.split())
    assert all(row.words and all(row.words) for rows in data.parts.values() for row in rows)


# -- without any of them ---------------------------------------------------------------------------------------------


def test_every_set_has_a_reader_and_a_task() -> None:
    for name, row in ANNOTATED.items():
        assert task_for(None, [name]) == {"labels": "label", "tags": "tags"}[row.holds]
        assert (looks_labelled([name]), looks_tagged([name])) == (row.holds == "labels", row.holds == "tags")
        if row.holds == "labels":
            assert name in LABEL_READERS or name in ROLES or f"{name}:{VARIANTS[name][0]}" in ROLES
    assert {name.partition(":")[0] for name in (*LABELS, *TAGS)} == set(ANNOTATED)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("sst2", 'data set "sst2" is not on this machine. Run: seqwise data get sst2 (or set SEQWISE_DATA'),
        ("imdb", "Set SEQWISE_DATA to a folder that has imdb/train.tsv, or write the reviews of ai.stanford.edu"),
        ("sst2:fine", '"sst2:fine": sst2 has nothing to choose; drop ":fine".'),
        ("qc:fin", '"qc:fin": no such answers in this set. Did you mean "qc:fine"?'),
    ],
)
def test_a_labelled_set_that_cannot_be_read_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        open_labelled([name])
    assert sentence in str(caught.value)


def test_a_tagged_set_that_cannot_be_read_is_one_sentence() -> None:
    with pytest.raises(DataError, match=r'Did you mean "conll2003:pos"\?'):
        open_tagged(["conll2003:poss"])
    with pytest.raises(DataError, match='data set "brown" is not on this machine'):
        open_tagged(["brown"])


@pytest.mark.parametrize(("name", "task"), [("sst2", "label"), ("atis", "tags"), ("python-roles", "tags")])
def test_they_are_no_running_text(name: str, task: str) -> None:
    with pytest.raises(DataError, match=f"language models read running text. Add --task {task}"):
        open_text(name)


# -- archives like them ----------------------------------------------------------------------------------------------


def zipped(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text.encode("latin-1"))


def tarred(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    return tmp_path


def test_archives_are_read_as_they_are(sets: Path) -> None:
    questions = [f"{'DESC:def' if n % 2 else 'HUM:ind'} What is caf\xe9 {n} ?" for n in range(60)]
    zipped(sets / "nltk/qc.zip", {f"qc/{part}.txt": "\n".join(questions) + "\n" for part in ("train", "test")})
    data = open_labelled(["qc:fine"])
    assert data.parts["test"][0] == LabelledRow(("What is café 0 ?",), "HUM:ind")
    assert data.labels == ["DESC:def", "HUM:ind"]
    reviews = {f"txt_sentoken/{'pos' if n % 2 else 'neg'}/cv{n}.txt": f"a film \n of {n} \n" for n in range(60)}
    tarred(sets / "movie_review_polarity/review_polarity.tar.gz", {"README": "about", **reviews})
    data = open_labelled(["movie_review_polarity"])
    assert sorted(row for rows in data.parts.values() for row in rows)[:2] == [
        LabelledRow(("a film of 0",), "neg"),
        LabelledRow(("a film of 1",), "pos"),
    ]
    text = "\n\n\tThe/at jury/nn 1/2/cd said/vbd ./.\n\n\tNo/at %s/nn\n"
    zipped(sets / "nltk/brown.zip", {"brown/README": "a/b", **{f"brown/c{n}": text % n for n in range(100, 160)}})
    tagged = open_tagged(["brown"])
    assert sum(len(rows) for rows in tagged.parts.values()) == 120
    row = TaggedRow(("The", "jury", "1/2", "said", "."), ("at", "nn", "cd", "vbd", "."))
    assert row in [row for rows in tagged.parts.values() for row in rows]


def test_pairs_without_agreement_are_left_out(sets: Path) -> None:
    (sets / "snli").mkdir()
    for part in ("dev", "test"):
        rows: list[Any] = [("-" if n % 4 == 3 else "abc"[n % 3], f"premise no {n}", f"claim no {n}") for n in range(80)]
        text = "gold_label\tsentence1\tsentence2\n" + "".join("\t".join(row) + "\n" for row in rows)
        (sets / "snli" / f"snli_1.0_{part}.tsv").write_text(text)
    data = open_labelled(["snli"])
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 54, "valid": 6, "test": 60}
    assert "test: 20 pairs on which people did not agree are left out" in data.notes


def test_a_damaged_archive_is_named(sets: Path) -> None:
    zipped(sets / "nltk/qc.zip", {"other.txt": ""})
    (sets / "nltk/brown.zip").write_bytes(b"no archive")
    tarred(sets / "movie_review_polarity/review_polarity.tar.gz", {})
    (sets / "movie_review_polarity/review_polarity.tar.gz").write_bytes(gzip.compress(b"no archive " * 99))
    for name, open_set in (("qc", open_labelled), ("brown", open_tagged), ("movie_review_polarity", open_labelled)):
        with pytest.raises(DataError, match=r"not the expected archive \(.*\)\. Get it again\."):
            open_set([name])
