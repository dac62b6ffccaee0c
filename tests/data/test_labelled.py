"""Which tables are texts with an answer each, and which column is which: by name, by content, or as given."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.kinds import task_for, task_of
from seqwise.data.label_files import looks_labelled
from seqwise.data.labelled import find_roles, given_roles, reading_of
from seqwise.data.text_tables import read_table
from seqwise.errors import ConfigError, DataError

RANDOM = random.Random(0)
WORDS = ["the", "film", "was", "good", "bad", "long", "short", "and", "of", "a", "story"]
TEXTS = [f"{' '.join(RANDOM.choices(WORDS, k=6))} {number}" for number in range(100)]
ANSWERS = [RANDOM.choice(["pos", "neg"]) for _ in TEXTS]
ROWS = list(zip(TEXTS, ANSWERS, strict=True))


def lines(rows: list[Any], between: str, header: str = "") -> str:
    return (f"{header}\n" if header else "") + "".join(between.join(map(str, row)) + "\n" for row in rows)


def objects(rows: list[Any], *names: str) -> str:
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


NUMBERED = [(text, int(answer == "pos")) for text, answer in ROWS]
SORTED = sorted([(f"{text} {n}", answer) for n in range(30) for text, answer in ROWS], key=lambda row: row[1])
LABELLED = {
    "named.csv": lines(NUMBERED, ",", "text,label"),
    "first.csv": lines([(answer, text) for text, answer in ROWS], ",", "v1,v2"),
    "semicolons.csv": lines(NUMBERED, ";", "review;stars"),
    "tabs.csv": lines([(f"{text}, and, more", answer) for text, answer in ROWS], "\t", "review\tstars"),
    "quoted.csv": lines([(f'"{text}, and more"', answer) for text, answer in ROWS], ",", "text,label"),
    "id.csv": lines([(place, *row) for place, row in enumerate(NUMBERED)], ",", "id,text,label"),
    "few.csv": lines(NUMBERED[:5], ",", "text,label"),
    "spam.csv": lines([("spam" if n % 2 else "ham", text) for n, text in enumerate(TEXTS, start=1)], ","),
    "short.csv": lines([("Mac" + "abcdefghij"[n // 9] + "ald" * (n % 9), n % 3) for n in range(90)], ",", "name,topic"),
    "similar.csv": lines([(text, text[::-1], n / 7) for n, text in enumerate(TEXTS)], ",", "sentence1,sentence2,score"),
    "plain.tsv": lines(ROWS, "\t"),
    "sorted.tsv": lines(SORTED, "\t"),
    "named.tsv": lines(ROWS, "\t", "sentence\tlabel"),
    "pair.tsv": lines([(text, text.upper(), n % 3) for n, text in enumerate(TEXTS)], "\t", "premise\thypothesis\tspam"),
    "two.csv": lines([(n % 4 + 1, f"{text} title", text) for n, text in enumerate(TEXTS)], ","),
    "more.tsv": lines(
        [("gj04" if n < 50 else "cj99", n % 2, "*" * (n % 2), text) for n, text in enumerate(TEXTS)], "\t"
    ),
    "words.jsonl": objects(ROWS, "text", "label"),
    "numbers.jsonl": objects(NUMBERED, "text", "label"),
    "unnamed.jsonl": objects(ROWS, "a", "b"),
    "lists.jsonl": objects([(text, ["a", "b"][: n % 3]) for n, text in enumerate(TEXTS)], "text", "labels"),
}  # fmt: skip
OTHER = {
    "pairs.tsv": (lines([(text, text.upper()) for text in TEXTS], "\t"), "pairs"),
    "pairs.jsonl": (objects([(text, text.upper()) for text in TEXTS], "source", "target"), "pairs"),
    "short.tsv": (lines([(f"word{n}", "YES" if n % 2 else "NO") for n in range(100)], "\t"), "pairs"),
    "digits.tsv": (lines([(text, n * 7) for n, text in enumerate(TEXTS)], "\t"), "pairs"),
    "series.csv": (lines([(f"2020-01-{n % 28 + 1:02} 0:0", n % 3) for n in range(100)], ",", "date,on"), "numbers"),
    "days.csv": (lines([(f"Jan {n} 2020", n % 2) for n in range(100)], ",", "date,on"), "numbers"),
    "weather.csv": (lines([(n * 1.5, "light rain and snow") for n in range(100)], ",", "degrees,sky"), "numbers"),
    "values.csv": (lines([(n * 1.5, n % 3) for n in range(100)], ",", "value,label"), "numbers"),
    "damaged.jsonl": ("{" * 50, "text"),
    "ragged.tsv": ("a\tb\nc\n", "pairs"),
    "empty.csv": ("", "numbers"),
}
DOUBTFUL = {
    "domains.tsv": (lines([(text, text.upper(), n % 3) for n, text in enumerate(TEXTS)], "\t"), "pairs"),
    "diary.csv": (lines([(text, n % 3, n * 1.5) for n, text in enumerate(TEXTS)], ","), "numbers"),
    "tweets.csv": (lines([(text, n * 7) for n, text in enumerate(TEXTS)], ",", "body,likes"), "numbers"),
}


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_text_is_taken_for_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LABELLED[name])
    assert task_for(None, [str(path)]) == task_of([str(path)]) == "label"
    assert looks_labelled([path])


@pytest.mark.parametrize("name", OTHER)
def test_other_tables_are_left_to_their_readers(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    text, task = OTHER[name]
    path.write_text(text)
    assert task_for(None, [str(path)]) == task_of([str(path)]) == task
    assert not looks_labelled([path])


@pytest.mark.parametrize("name", DOUBTFUL)
def test_where_two_readings_are_possible_it_asks(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    text, task = DOUBTFUL[name]
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        task_for(None, [str(path)])
    told = str(caught.value)
    assert told.startswith(f"{path}: it may hold texts (")
    assert f"Say which with --task label or --task {task}, or name what to read with --columns, such as" in told
    assert task_of([str(path)]) == task  # what a person would have got who said so
    columns = told.partition("such as --columns ")[2].rstrip(".").split(",")
    assert task_for(None, [str(path)], columns) == "label"
    roles = find_roles(read_table(path), given_roles(columns))
    assert TEXTS[0] in read_table(path).rows[0].cells[read_table(path).checked_place(roles.texts[0])]


@pytest.mark.parametrize("name", ["named.csv", "plain.tsv", "words.jsonl"])
def test_who_names_a_task_is_believed(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LABELLED[name])
    assert task_for("pairs", [str(path)]) == "pairs"
    assert task_for(None, [str(path)], ["text=a", "tags=b"]) == "tags"
    assert task_for(None, [str(path)], ["number=a"]) == "label"


def test_bare_columns_are_a_text_and_its_label_where_they_are_such(tmp_path: Path) -> None:
    table = tmp_path / "x.csv"
    table.write_text(lines([(n, *row, n * 1.5) for n, row in enumerate(NUMBERED)], ",", "step,text,label,height"))
    assert task_for(None, [str(table)], ["text", "label"]) == "label"
    assert task_for(None, [str(table)], ["label", "height"]) == "numbers"
    pairs = tmp_path / "x.jsonl"
    pairs.write_text(objects([(text, text.upper(), n % 2) for n, text in enumerate(TEXTS)], "en", "de", "label"))
    assert task_for(None, [str(pairs)], ["en", "de"]) == "pairs"
    assert task_for(None, [str(pairs)], ["en", "label"]) == "label"


def test_a_folder_is_taken_for_what_its_training_file_is(tmp_path: Path) -> None:
    for part in ("train", "valid"):
        (tmp_path / f"{part}.tsv").write_text(LABELLED["plain.tsv"])
    assert task_for(None, [str(tmp_path)]) == "label"
    for part in ("train", "valid"):
        (tmp_path / f"{part}.tsv").write_text(OTHER["pairs.tsv"][0])
    assert task_for(None, [str(tmp_path)]) == "pairs"


def test_folders_of_texts_are_labels_where_the_parts_tell_and_asked_for_where_not(tmp_path: Path) -> None:
    for place in ("poems/keats", "poems/byron", "reviews/train/pos", "reviews/train/neg", "reviews/test/pos",
                  "reviews/test/neg"):  # fmt: skip
        (tmp_path / place).mkdir(parents=True)
        for name in ("1.txt", "2.txt"):
            (tmp_path / place / name).write_text(f"some text {place}")
    assert task_for(None, [str(tmp_path / "reviews")]) == "label"
    with pytest.raises(DataError, match=r"Say which with --task label or --task text\."):
        task_for(None, [str(tmp_path / "poems")])
    assert task_of([str(tmp_path / "poems")]) == "text"


# -- which column is which -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "texts", "answer", "asks_for"),
    [
        ("named.csv", ("text",), "label", "label"),
        ("first.csv", ("v2",), "v1", "label"),
        ("spam.csv", ("column 2",), "column 1", "label"),
        ("id.csv", ("text",), "label", "label"),
        ("two.csv", ("column 2", "column 3"), "column 1", "label"),
        ("similar.csv", ("sentence1", "sentence2"), "score", "number"),
        ("pair.tsv", ("premise", "hypothesis"), "spam", "label"),
        ("plain.tsv", ("column 1",), "column 2", "label"),
        ("lists.jsonl", ("text",), "labels", "labels"),
        ("unnamed.jsonl", ("a",), "b", "label"),
    ],
)
def test_roles_are_found(name: str, texts: tuple[str, ...], answer: str, asks_for: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(LABELLED[name])
    roles = find_roles(read_table(tmp_path / name), {})
    assert (roles.texts, roles.answer, roles.asks_for) == (texts, answer, asks_for)
    again = find_roles(read_table(tmp_path / name), given_roles(roles.as_columns))
    assert again == roles


@pytest.mark.parametrize(
    ("cells", "name", "asks_for"),
    [
        (range(20), "stars", "label"),
        (range(21), "stars", "number"),
        (range(21), "label", "label"),  # its name says so
        ([f"{n}.0" for n in range(3)], "stars", "label"),
        ([0.5, 1, 2], "stars", "number"),
        ([0.5, 1, 2], "label", "number"),
        (["1", "2", "two"], "stars", "label"),
    ],
)
def test_few_whole_numbers_are_labels_and_others_numbers(cells: Any, name: str, asks_for: str, tmp_path: Path) -> None:
    found = [(text, list(cells)[n % len(cells)]) for n, text in enumerate(TEXTS)]
    (tmp_path / "x.csv").write_text(lines(found, ",", f"text,{name}"))
    table = read_table(tmp_path / "x.csv")
    assert find_roles(table, {}).asks_for == asks_for
    for role in ("label", "number"):
        assert find_roles(table, given_roles([f"{role}={name}"])).asks_for == role


def test_what_is_not_clear_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text(LABELLED["more.tsv"])
    with pytest.raises(DataError, match=r"may stand in column 1, column 2 or column 3\. .* --columns label=1\."):
        find_roles(read_table(tmp_path / "x.tsv"), {})
    assert find_roles(read_table(tmp_path / "x.tsv"), {"label": "2"}).answer == "column 2"
    three = [(f"{text} a", f"{text} b", f"{text} c", n % 2) for n, text in enumerate(TEXTS)]
    (tmp_path / "x.csv").write_text(lines(three, ",", "p,q,r,label"))
    with pytest.raises(DataError, match="the columns p, q, r all hold texts"):
        find_roles(read_table(tmp_path / "x.csv"), {})
    (tmp_path / "x.csv").write_text(lines([(text,) for text in TEXTS], ",", "text"))
    with pytest.raises(DataError, match="no column of labels or numbers beside the texts"):
        find_roles(read_table(tmp_path / "x.csv"), {})
    (tmp_path / "x.csv").write_text(lines([(n % 2, n * 0.5) for n in range(50)], ",", "label,x"))
    with pytest.raises(DataError, match="no column of texts among label, x"):
        find_roles(read_table(tmp_path / "x.csv"), {})


def test_roles_may_be_given_by_name_in_any_case_or_by_number(tmp_path: Path) -> None:
    assert given_roles(["review", "stars"]) == {"text": "review", "label": "stars"}
    assert given_roles(["a", "b", "c"]) == {"text": "a", "text2": "b", "label": "c"}
    (tmp_path / "x.csv").write_text(LABELLED["named.csv"])
    assert find_roles(read_table(tmp_path / "x.csv"), given_roles(["TEXT", "Label"])).texts == ("text",)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["text=a", "labl=b"], r'unknown role "labl"\. Did you mean "label"\?'),
        (["text=a", "text=b"], "gives text= twice"),
        (["label=a", "number=b"], "asks for label and number"),
        (["text=a", "b"], r'"b": expected a role and a name'),
        (["text2=a", "label=b"], "has text2= and no text="),
        (["a", "b", "c", "d"], "4 names; say what they are"),
    ],
)
def test_wrong_roles_are_told(columns: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        given_roles(columns)


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(LABELLED["named.csv"])
    with pytest.raises(ConfigError, match=r'no column "lable"\. Did you mean "label"\?'):
        find_roles(read_table(tmp_path / "x.csv"), {"label": "lable"})


def test_a_table_sorted_by_label_is_read_on_until_another_one_comes(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(lines(SORTED, "\t"))
    assert reading_of(path) is not None
    path.write_text(lines([(text, "pos") for text, _ in SORTED], "\t"))
    assert reading_of(path) is None
