"""DATA -> parts: the split is exact, nothing is lost, and mistakes get one sentence."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.data.source import TextData, TextPart, check_learnable, joined_text, open_text, open_whole
from seqwise.errors import ConfigError, DataError
from seqwise.wording import counted

EXAMPLES = settings(max_examples=50, deadline=None, derandomize=True, database=None)
TEXT = "".join(f"line {i}: häuser\n" for i in range(50))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def text_of(data: TextData, part: str) -> str:
    return "".join(data.parts[part].blocks())


@pytest.mark.parametrize("length", [*range(20, 61), 101, 1_000, 99_999])
def test_ninety_to_ten_cuts_after_nine_tenths_of_the_characters(length: int, tmp_path: Path) -> None:
    text = ("aé\n日" * length)[:length]
    data = open_text(write(tmp_path / "poems.txt", text), split="90/10")
    assert text_of(data, "train") == text[: length * 9 // 10]
    assert text_of(data, "valid") == text[length * 9 // 10 :]
    assert data.characters == {"train": length * 9 // 10, "valid": length - length * 9 // 10}


@pytest.mark.parametrize("split", ["90/5/5", "80/10/10", "50/50", "33.3/33.3/33.4", "98/1/1", "12.5/12.5/75"])
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_the_parts_of_a_split_give_the_text_back(
    split: str, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqwise.data.files.BLOCK_BYTES", block_bytes)
    data = open_text(write(tmp_path / "poems.txt", TEXT), split=split)
    assert "".join(text_of(data, part) for part in data.parts) == TEXT
    assert {part: len(text_of(data, part)) for part in data.parts} == data.characters
    for part, share in zip(data.parts, split.split("/"), strict=True):
        assert abs(data.characters[part] - float(share) / 100 * len(TEXT)) <= 1
    assert data.lines == 50


@EXAMPLES
@given(start=st.integers(0, 30), length=st.integers(0, 30))
def test_a_segment_of_several_files_is_that_segment_of_their_text(
    tmp_path_factory: pytest.TempPathFactory, start: int, length: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "segment"
    files = (write(folder / "a.txt", "one\ntwo"), write(folder / "b.txt", ""), write(folder / "c.txt", "three\nfour\n"))
    assert "".join(TextPart(files, start, start + length).blocks()) == "one\ntwo\nthree\nfour\n"[start : start + length]


def test_without_a_word_the_split_is_ninety_five_five(tmp_path: Path) -> None:
    data = open_text(write(tmp_path / "poems.txt", "x" * 1000))
    assert data.characters == {"train": 900, "valid": 50, "test": 50}
    assert data.description == (
        "poems.txt: 1,000 characters of text in 0 lines; split in order 90/5/5 (train 900, valid 50, test 50)"
    )


@pytest.mark.parametrize(
    "split", ["90", "90/20", "100/0", "a/b", "0", "/", "110/-10", "25/25/25/25", "nan/50", "90,10"]
)
def test_a_split_that_makes_no_sense_is_refused(split: str, tmp_path: Path) -> None:
    path = write(tmp_path / "poems.txt", TEXT)
    with pytest.raises(ConfigError, match=r'^--split-at ".*" should be two or three shares that add up to 100'):
        open_text(path, split=split)


def test_given_files_are_the_parts(tmp_path: Path) -> None:
    files = {part: write(tmp_path / f"{part}-text", f"{part}\n{TEXT}") for part in ("some", "held", "out")}
    data = open_text(files["some"], valid=files["held"], test=files["out"])
    assert {part: text_of(data, part) for part in data.parts} == {
        "train": f"some\n{TEXT}",
        "valid": f"held\n{TEXT}",
        "test": f"out\n{TEXT}",
    }
    assert data.split == "split as given"
    assert list(open_text(files["some"], valid=files["held"]).parts) == ["train", "valid"]


def test_a_split_beside_given_files_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "poems.txt", TEXT)
    with pytest.raises(ConfigError, match="exclude each other; drop one"):
        open_text(path, valid=path, split="90/10")


def test_a_test_file_alone_asks_for_one_to_validate_on(tmp_path: Path) -> None:
    path = write(tmp_path / "poems.txt", TEXT)
    with pytest.raises(DataError, match=r"none to validate on\. Add --valid FILE"):
        open_text(path, test=path)


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "valid.txt", "test.txt"),
        ("ptb.train.txt", "ptb.dev.txt", "ptb.test.txt"),
        ("wiki_TRAIN.txt", "wiki_val.txt", "wiki-test.md"),
    ],
)
def test_a_folder_whose_files_are_named_after_the_parts_is_split_already(
    names: tuple[str, str, str], tmp_path: Path
) -> None:
    for name in names:
        write(tmp_path / name, f"{name}\n{TEXT}")
    data = open_text(tmp_path)
    assert [text_of(data, part).split("\n")[0] for part in ("train", "valid", "test")] == list(names)


def test_a_folder_of_other_files_is_one_text_in_the_order_of_names(tmp_path: Path) -> None:
    write(tmp_path / "b.txt", TEXT)
    write(tmp_path / "a.txt", "first")
    data = open_text(tmp_path, split="50/50")
    assert "".join(text_of(data, part) for part in data.parts) == "first\n" + TEXT


def test_a_folder_with_a_test_file_and_none_to_validate_on_is_not_trained_on_its_test_file(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", TEXT)
    write(tmp_path / "test.txt", "secret\n" * 100)
    with pytest.raises(DataError, match="none to validate on"):
        open_text(tmp_path)


def test_several_files_are_joined_each_on_lines_of_its_own(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "1", "no line end"),
        write(tmp_path / "2", ""),
        write(tmp_path / "3", "line end\n"),
        write(tmp_path / "4", "last"),
    ]
    assert "".join(joined_text(files)) == "no line end\nline end\nlast"
    data = open_text([*files, write(tmp_path / "5", TEXT)])
    assert "".join(text_of(data, part) for part in data.parts) == "no line end\nline end\nlast\n" + TEXT
    assert data.name == "1 and 4 more"


def test_the_fingerprint_changes_with_the_content_and_with_the_split_and_with_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "poems.txt", TEXT)
    first = open_text(path).fingerprint
    packed = tmp_path / "other-name.txt.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert open_text(packed).fingerprint == first
    assert open_text(write(tmp_path / "windows.txt", "\ufeff" + TEXT.replace("\n", "\r\n"))).fingerprint == first
    others = [
        open_text(path, split="90/10").fingerprint,
        open_text(path, split="80/10/10").fingerprint,
        open_text(path, valid=path).fingerprint,
        open_text(path, valid=path, test=path).fingerprint,
        open_text(write(tmp_path / "changed.txt", TEXT.replace("line 9", "line 8"))).fingerprint,
        open_whole(path).fingerprint,
    ]
    assert len({first, *others}) == 7


def test_the_fingerprint_changes_when_text_moves_from_one_part_to_the_next(tmp_path: Path) -> None:
    """Token stores are cached by it, so it must tell even such texts apart."""
    early, late = write(tmp_path / "1", "abc"), write(tmp_path / "2", "de<valid>fg")
    data = open_text(early, valid=late)
    write(early, "abc<valid>de")
    write(late, "fg")
    assert open_text(early, valid=late).fingerprint != data.fingerprint


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    for text in ("", "\ufeff"):
        path = write(tmp_path / "empty.txt", text)
        with pytest.raises(DataError) as caught:
            open_text(path)
        assert str(caught.value) == f"{path}: the file is empty. Give some text to learn from."


def test_an_empty_file_to_validate_on_is_named(tmp_path: Path) -> None:
    path, empty = write(tmp_path / "poems.txt", TEXT), write(tmp_path / "empty.txt", "")
    with pytest.raises(DataError) as caught:
        open_text(path, valid=empty)
    assert str(empty) in str(caught.value)


@pytest.mark.parametrize("text", ["x", "\n", "é", "ab", "x" * 19])
def test_a_file_too_short_to_split_is_told_how_short(text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "poems.txt", text)
    with pytest.raises(DataError, match=f"too little text: {counted(len(text), 'character')} in all"):
        open_text(path)


@pytest.mark.parametrize("name", ["table.csv", "pairs.TSV", "rows.jsonl", "tree.conllu", "table.csv.gz"])
def test_a_file_of_columns_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    with pytest.raises(DataError, match=r"holds columns, and language models read running text\. Give a \.txt file"):
        open_text(path)


@pytest.mark.parametrize("part", ["valid", "test"])
def test_a_file_of_columns_is_refused_for_every_part(part: str, tmp_path: Path) -> None:
    text, table = write(tmp_path / "poems.txt", TEXT), write(tmp_path / "table.csv", TEXT)
    with pytest.raises(DataError, match=r"table\.csv: a \.csv file holds columns"):
        open_text(text, **{"valid": text, part: table})


def test_text_that_is_not_utf8_is_found_before_anything_is_trained(tmp_path: Path) -> None:
    path = tmp_path / "poems.txt"
    path.write_bytes(TEXT.encode() + b"\xff")
    for opened in (lambda: open_text(path), lambda: open_text(write(tmp_path / "ok.txt", TEXT), valid=path)):
        with pytest.raises(DataError, match="not UTF-8: line 51, byte"):
            opened()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tinyshakespear", '"tinyshakespear" is neither a file nor a data set. Did you mean "tinyshakespeare"?'),
        ("wikitext2", '"wikitext2" is neither a file nor a data set. Did you mean "wikitext-2"?'),
        ("python-refrence", '"python-refrence" is neither a file nor a data set. Did you mean "python-reference"?'),
        ("poems.txt", "poems.txt: no such file or folder."),
        ("folder/poems", "folder/poems: no such file or folder."),
        (
            "ptb",
            'data set "ptb" is not on this machine. Run: seqwise data get ptb '
            "(or set SEQWISE_DATA to a folder that has it).",
        ),
    ],
)
def test_a_name_that_leads_nowhere_gets_a_sentence(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError) as caught:
        open_text(name)
    assert str(caught.value) == sentence


def test_one_missing_file_among_several_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "poems.txt", TEXT)
    with pytest.raises(DataError, match=r"more\.txt: no such file or folder"):
        open_text([path, tmp_path / "more.txt"])


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_data_set_is_found_in_the_folder_that_seqwise_data_names(
    packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path / "sets"))
    for name in ("tinyshakespeare/input.txt", "ptb/ptb.train.txt", "ptb/ptb.valid.txt", "ptb/ptb.test.txt"):
        path = write(tmp_path / "sets" / (name + packed), name)
        text = f"{name}\n{TEXT}".encode()
        path.write_bytes(gzip.compress(text) if packed else text)
    plays = open_text("tinyshakespeare")
    assert list(plays.parts) == ["train", "valid"]  # first 90 %, last 10 %, as everyone measures on it
    assert plays.characters["train"] == sum(plays.characters.values()) * 9 // 10
    assert list(open_text("tinyshakespeare", split="80/10/10").parts) == ["train", "valid", "test"]
    treebank = open_text("ptb")
    assert {part: text_of(treebank, part).split("\n")[0] for part in treebank.parts} == {
        part: f"ptb/ptb.{part}.txt" for part in ("train", "valid", "test")
    }


def test_a_path_is_taken_before_the_name_of_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "names", TEXT)
    assert text_of(open_text("names"), "train") == TEXT[: len(TEXT) * 9 // 10]


def test_a_whole_text_is_opened_for_scoring(tmp_path: Path) -> None:
    data = open_whole(write(tmp_path / "poems.txt", TEXT))
    assert list(data.parts) == list(data.characters) == ["whole"]
    assert text_of(data, "whole") == TEXT
    assert data.characters["whole"] == len(TEXT)
    folder = tmp_path / "folder"
    write(folder / "train.txt", "one"), write(folder / "valid.txt", "two")
    assert text_of(open_whole(folder), "whole") == "one\ntwo"
    with pytest.raises(DataError, match=r"nothing\.txt: no such file or folder"):
        open_whole(tmp_path / "nothing.txt")
    with pytest.raises(DataError, match="empty"):
        open_whole(write(tmp_path / "empty.txt", ""))


PARTS = {"train.txt": "train " * 20, "valid.txt": "valid " * 20, "test.txt": "test " * 20}


def folder_of(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        write(folder / name, text)
    return folder


@pytest.mark.parametrize("other", ["README.md", "notes.txt", "docs/about.rst"])
def test_a_file_beside_the_parts_of_a_folder_is_left_out_and_named(other: str, tmp_path: Path) -> None:
    data = open_text(folder_of(tmp_path, {**PARTS, other: "how this was made " * 5}))
    assert {part: text_of(data, part) for part in data.parts} == {n.removesuffix(".txt"): t for n, t in PARTS.items()}
    assert data.notes == [f"left out, as their names tell no part: {other}"]


def test_folders_named_by_their_part_are_a_split(tmp_path: Path) -> None:
    files = {"train/a.txt": "one " * 9, "train/b.txt": "two " * 9, "dev/a.txt": "six " * 9, "README.md": "read me"}
    data = open_text(folder_of(tmp_path, files))
    assert text_of(data, "train") == "one " * 9 + "\n" + "two " * 9
    assert text_of(data, "valid") == "six " * 9
    assert data.notes == ["left out, as their names tell no part: README.md"]


def test_a_program_with_its_tests_is_one_text(tmp_path: Path) -> None:
    files = {"train.py": "def train(): ...\n" * 9, "test_model.py": "def test(): ...\n" * 9, "model.py": "x = 1\n" * 9}
    data = open_text(folder_of(tmp_path, files))
    assert sum(data.characters.values()) == sum(map(len, files.values()))
    assert data.notes == ["3 files are read as one text: model.py, test_model.py, train.py"]


def test_what_is_no_text_in_a_folder_is_named_but_for_hidden_files(tmp_path: Path) -> None:
    pictures = {f"{number}.png": "x" for number in range(7)}
    data = open_text(folder_of(tmp_path, {"poems.txt": TEXT, ".git/config": "x", **pictures}))
    assert data.notes == ["left out, as they are no text by their names: 0.png, 1.png, 2.png, 3.png, 4.png and 2 more"]


def test_a_page_of_the_web_is_told(tmp_path: Path) -> None:
    data = open_text(write(tmp_path / "page.html", " <!DOCTYPE HTML><html>" + "<p>a text</p>\n" * 30))
    assert data.notes == ["page.html is an HTML page: its tags are learned too, unless you take the text out of it"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("\0" * 500, "NULs"),
        ("\n" * 500, "line ends"),
        ("  \n" * 500, "blanks and line ends"),
        ("a" * 500, 'the character "a"'),
        ("a" * 500 + "\n", 'the character "a"'),
    ],
)
def test_a_text_with_nothing_to_learn_is_refused(text: str, what: str, tmp_path: Path) -> None:
    data = open_text(write(tmp_path / "poems.txt", text))
    with pytest.raises(DataError) as caught:
        check_learnable(data)
    assert str(caught.value) == (
        f"poems.txt: the training part holds nothing but {what}: nothing can be learned. Give some text."
    )


def test_two_characters_can_be_learned(tmp_path: Path) -> None:
    check_learnable(open_text(write(tmp_path / "poems.txt", "ab" * 500)))
    check_learnable(open_text(write(tmp_path / "tally.txt", "|||\n||\n" * 500)))


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".csv.gz"])
def test_columns_are_not_scored_as_prose(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds columns, and language models read running text"):
        open_whole(write(tmp_path / f"table{suffix}", "a\tb\n" * 50))
