"""Labelled texts out of tables and folders: every quirk of files, parts that are fair, and mistakes that are told."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.annotated import LabelledData, LabelledRow
from seqwise.data.label_files import looks_labelled, open_labelled, open_whole_labelled, texts_of
from seqwise.data.label_split import deal, split_labelled
from seqwise.errors import ConfigError, DataError

RANDOM = random.Random(0)
WORDS = ["the", "film", "was", "good", "bad", "long", "short", "and", "of", "a", "story"]
TEXTS = [f"{' '.join(RANDOM.choices(WORDS, k=6))} no {number}" for number in range(200)]
ROWS = [(text, ("pos", "neg", "so")[n % 3 if n % 7 else 0]) for n, text in enumerate(TEXTS)]


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def table(rows: list[Any], between: str = ",", header: str = "text,label") -> str:
    return (f"{header}\n" if header else "") + "".join(between.join(map(str, row)) + "\n" for row in rows)


def quoted(rows: list[Any], between: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=between, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def found(data: LabelledData) -> set[tuple[tuple[str, ...], Any]]:
    return {(row.texts, row.answer) for rows in data.parts.values() for row in rows}


def told(data: LabelledData, sentence: str) -> bool:
    return any(sentence in note for note in data.notes)


# -- files as they are ---------------------------------------------------------------------------------------------


EXPECTED = {((text,), label) for text, label in ROWS}
SAME = {
    "plain.csv": table(ROWS),
    "crlf.csv": table(ROWS).replace("\n", "\r\n"),
    "bom.csv": "\ufeff" + table(ROWS),
    "blank.csv": table(ROWS).replace("\n", "\n\n"),
    "semicolons.csv": table(ROWS, ";", "review;stars"),
    "tabs.csv": table(ROWS, "\t", "review\tstars"),
    "quoted.csv": quoted(ROWS),
    "first.csv": table([(label, text) for text, label in ROWS], ",", ""),
    "plain.tsv": table(ROWS, "\t", ""),
    "other.csv": table([(n, text, n * 1.5, label) for n, (text, label) in enumerate(ROWS)], ",", "id,text,x,label"),
    "plain.jsonl": "".join(json.dumps({"text": text, "label": label}) + "\n\n" for text, label in ROWS),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_rows_however_they_are_written(name: str, tmp_path: Path) -> None:
    data = open_labelled([written(tmp_path, name, SAME[name])])
    assert found(data) == EXPECTED
    assert (data.asks_for, data.labels, data.num_texts) == ("label", ["neg", "pos", "so"], 1)
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 180, "valid": 10, "test": 10}
    assert told(data, "(3: neg, pos, so)")


def test_what_it_was_taken_for_is_said(tmp_path: Path) -> None:
    rows = [(text, n % 5 + 1, n) for n, text in enumerate(TEXTS)]
    data = open_labelled([written(tmp_path, "reviews.csv", table(rows, ",", "review,stars,day"))])
    assert data.notes[0].startswith("reviews.csv: texts are in review, labels in stars (5: 1, 2, 3, 4, 5)")
    assert data.notes[0].endswith("; not read: day")
    assert data.columns == ("text=review", "label=stars")
    data = open_labelled([tmp_path / "reviews.csv"], columns=["text=review", "number=stars"])
    assert data.notes[0] == "reviews.csv: texts are in review, numbers in stars (1 to 5); not read: day"
    assert (data.asks_for, data.labels) == ("number", [])
    assert {row.answer for row in data.parts["train"]} == {1.0, 2.0, 3.0, 4.0, 5.0}


def test_quotes_across_lines_belong_to_one_text_and_lines_are_counted_all_the_same(tmp_path: Path) -> None:
    long = [(f'{text}\n"and", more\n\nof it', label) for text, label in ROWS]
    path = written(tmp_path, "x.csv", quoted([("text", "label"), *long]))
    data = open_labelled([path])
    assert found(data) == {((f'{text} "and", more of it',), label) for text, label in ROWS}
    assert told(data, "x.csv: 200 texts of several lines are joined into one")
    path.write_text(quoted([("text", "label"), *long[:3], ("", "pos"), *long[3:]]))
    assert told(open_labelled([path]), "x.csv: 1 row has no text (line 14) and is left out")
    path.write_text(quoted([("text", "label"), *long[:3]]) + "one,two,three\n" + quoted(long[3:]))
    with pytest.raises(
        DataError, match=r"x\.csv: line 14 has 3 columns, but line 1 has 2\. Put cells that hold commas"
    ):
        open_labelled([path])


def test_quotes_that_do_not_balance_are_text(tmp_path: Path) -> None:
    rows = [(f'"{text}" they said', label) if n % 3 else (f'"{text}', label) for n, (text, label) in enumerate(ROWS)]
    data = open_labelled([written(tmp_path, "x.tsv", table(rows, "\t", ""))])
    assert found(data) == {((text,), label) for text, label in rows}
    assert told(data, "x.tsv: quotes are read as part of the text, as they do not balance")


def test_a_quoted_cell_of_a_table_with_tabs_that_would_eat_lines_is_text(tmp_path: Path) -> None:
    rows = [(f'"{text}' if n == 3 else f'{text}"' if n == 9 else text, label) for n, (text, label) in enumerate(ROWS)]
    assert found(open_labelled([written(tmp_path, "x.tsv", table(rows, "\t", ""))])) == {((t,), a) for t, a in rows}


def test_a_quote_that_is_never_closed_is_told_with_its_line(tmp_path: Path) -> None:
    rows = [(f'"{text}, and' if n == 4 else f"{text}", label) for n, (text, label) in enumerate(ROWS)]
    path = written(tmp_path, "x.csv", table(rows))
    with pytest.raises(DataError, match=r"x\.csv: line 6: a quote opens a cell there, and does not close it"):
        open_labelled([path])


def test_a_text_of_very_many_words(tmp_path: Path) -> None:
    rows = [*ROWS, ("word, " * 100_000 + "end", "pos")]
    data = open_labelled([written(tmp_path, "x.csv", quoted([("text", "label"), *rows]))])
    assert found(data) == {((text,), label) for text, label in rows}
    assert csv.field_size_limit() == 131_072  # as it was


def test_two_texts_and_numbers(tmp_path: Path) -> None:
    rows = [(text, text.upper(), n / 7) for n, text in enumerate(TEXTS)]
    data = open_labelled([written(tmp_path, "x.tsv", table(rows, "\t", "sentence1\tsentence2\tsimilarity"))])
    assert (data.num_texts, data.asks_for) == (2, "number")
    assert found(data) == {((a, b), number) for a, b, number in rows}
    assert data.split == "shuffled, split 90/5/5"


@pytest.mark.parametrize("mark", ["|", ";"])
def test_several_labels_in_a_cell_where_it_is_told(mark: str, tmp_path: Path) -> None:
    rows = [(text, mark.join(["loud, clear", "slow", "new"][: n % 4])) for n, text in enumerate(TEXTS)]
    path = written(tmp_path, "x.tsv", table(rows, "\t", "text\tkinds"))
    data = open_labelled([path], columns=["text=text", "labels=kinds"])
    assert (data.asks_for, data.labels) == ("labels", ["loud, clear", "new", "slow"])
    assert Counter(len(answer) for _, answer in found(data)) == {0: 50, 1: 50, 2: 50, 3: 50}
    assert open_labelled([path], columns=["text", "kinds"]).asks_for == "label"


def test_a_list_is_several_labels(tmp_path: Path) -> None:
    rows = [{"text": text, "labels": ["b", "a", "c"][: n % 4]} for n, text in enumerate(TEXTS)]
    data = open_labelled([written(tmp_path, "x.jsonl", "\n".join(map(json.dumps, rows)))])
    assert (data.asks_for, data.labels) == ("labels", ["a", "b", "c"])
    assert {answer for _, answer in found(data)} == {(), ("b",), ("a", "b"), ("a", "b", "c")}


# -- parts ---------------------------------------------------------------------------------------------------------


def test_parts_are_fair_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    rows = [(f"text number {n} of them", "rare" if n < 30 else "often") for n in range(1000)]
    data = open_labelled([written(tmp_path, "x.csv", table(rows))])
    counts = {part: Counter(row.answer for row in some) for part, some in data.parts.items()}
    assert counts["valid"].total() == counts["test"].total() == 50
    for part in ("valid", "test"):
        assert counts[part]["rare"] in (1, 2)
    RANDOM.shuffle(rows)
    again = open_labelled([written(tmp_path, "x.csv", table(rows))])
    assert again.parts == data.parts
    assert again.fingerprint == data.fingerprint
    train = [row.answer for row in data.parts["train"]]
    for place in range(0, 900, 300):
        assert 3 <= train[place : place + 300].count("rare") <= 16


def test_identical_texts_are_in_one_part(tmp_path: Path) -> None:
    rows = [(f"text number {n % 250} of them", "ab"[n % 2]) for n in range(1000)]
    data = open_labelled([written(tmp_path, "x.csv", table(rows))])
    seen = [{row.texts for row in some} for some in data.parts.values()]
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]
    assert sum(map(len, seen)) == 250
    assert told(data, "rows are copies of others")
    pairs = [LabelledRow((f"premise {n // 3}", f"claim {n}"), "abc"[n % 3]) for n in range(300)]
    parts = split_labelled("x", pairs, None)
    seen_first = [{row.texts[0] for row in some} for some in parts.values()]
    assert not seen_first[0] & seen_first[1] | seen_first[0] & seen_first[2] | seen_first[1] & seen_first[2]
    few = [LabelledRow((f"question {n % 2}", f"answer {n}"), "abc"[n % 3]) for n in range(300)]
    assert {part: len(some) for part, some in split_labelled("x", few, None).items()}["test"] == 15


@pytest.mark.parametrize("seed", range(20))
def test_dealing_out_by_brute_force(seed: int) -> None:
    some = random.Random(seed)
    items = [(some.randrange(some.choice([5, 400])), some.choice("aaaaab")) for _ in range(some.randrange(20, 400))]
    label = {key: mark for key, mark in reversed(items)}
    parts = deal("x", items, key=lambda item: str(item[0]), label=lambda item: label[item[0]], split="80/10/10")
    assert sorted(item for some in parts.values() for item in some) == sorted(items)
    for part, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not {key for key, _ in parts[part]} & {key for key, _ in parts[other]}
    groups = Counter(key for key, _ in items)
    for part in ("valid", "test"):
        assert 0 < len(parts[part]) <= len(items) / 10 + max(groups.values())
    for mark in set(label.values()):
        assert any(label[key] == mark for key, _ in parts["train"])
    if max(groups.values()) == 1:
        for part in ("valid", "test"):
            assert abs(len(parts[part]) - len(items) / 10) <= 1
            for mark in set(label.values()):
                wanted = sum(label[key] == mark for key, _ in items) / 10
                assert abs(sum(label[key] == mark for key, _ in parts[part]) - wanted) <= 1


def test_every_label_is_there_to_learn_from_and_none_comes_first() -> None:
    few = [(n, n % 40) for n in range(80)]
    parts = deal("x", few, key=lambda item: str(item[0]), label=lambda item: str(item[1]), split="40/30/30")
    assert {label for _, label in parts["train"]} == set(range(40))
    many = [(n, n % 25) for n in range(2500)]
    parts = deal("x", many, key=lambda item: str(item[0]), label=lambda item: str(item[1]), split="80/10/10")
    for some in parts.values():
        for place in range(0, 250, 25):
            assert len({label for _, label in some[place : place + 25]}) >= 10


def test_valid_is_cut_from_train_where_there_is_a_test_and_said(tmp_path: Path) -> None:
    train, test = (written(tmp_path, f"{part}.csv", table(some)) for part, some in (("train", ROWS[:150]),
                                                                                  ("test", ROWS[150:])))  # fmt: skip
    for data in (open_labelled([train], test=test), open_labelled([tmp_path])):
        assert [row.texts[0] for row in data.parts["test"]] == TEXTS[150:]
        assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 135, "valid": 15, "test": 50}
        assert told(data, "there is no part to validate on: it is 10 % of the training part")
        assert "valid is 10 % of what was there to train on" in data.split
    written(tmp_path, "dev.csv", table(ROWS[100:120]))
    data = open_labelled([tmp_path])
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 150, "valid": 20, "test": 50}
    assert told(data, "valid: 20 of 20 texts stand in the training part too")
    with pytest.raises(ConfigError, match="has parts already"):
        open_labelled([tmp_path], split="80/20")
    assert list(open_labelled([train], split="80/20").parts) == ["train", "valid"]


def test_parts_are_read_as_the_training_part_is(tmp_path: Path) -> None:
    train = written(tmp_path, "train.csv", table(ROWS, ",", "a,b"))
    test = written(tmp_path, "test.csv", table([(label, text) for text, label in ROWS[:5]], "\t", "b\ta"))
    assert [row.texts[0] for row in open_labelled([train], test=test).parts["test"]] == TEXTS[:5]
    test.write_text(table(TEXTS[:5], "", "a"))
    with pytest.raises(DataError, match=r'test\.csv: there is no column "b", which is read of the training part'):
        open_labelled([train], test=test)


# -- folders -------------------------------------------------------------------------------------------------------


def test_a_folder_for_each_label(tmp_path: Path) -> None:
    for n, (text, label) in enumerate(ROWS):
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / f"{n}.txt").write_text(f"{text}\n\nand more\n")
    (tmp_path / "pos" / "none.txt").write_text(" \n")
    (tmp_path / "README.txt").write_text("about it")
    data = open_labelled([tmp_path])
    assert found(data) == {((f"{text} and more",), label) for text, label in ROWS}
    assert told(data, 'each folder is a label (3: "neg", "pos", "so"), each file a text')
    assert told(data, "1 file is empty and left out: pos/none.txt")
    assert told(data, "README.txt")


def test_a_file_for_each_label(tmp_path: Path) -> None:
    for label in ("Dutch", "Czech"):
        names = "\n".join(f"{label} name {n}" for n in range(50))
        (tmp_path / f"{label}.txt").write_text(names + "\n\n")
    data = open_labelled([tmp_path])
    assert found(data) == {((f"{label} name {n}",), label) for label in ("Dutch", "Czech") for n in range(50)}
    assert told(data, 'each file is a label (2: "Czech", "Dutch"), each line a text')


def test_folders_of_labels_below_folders_of_parts(tmp_path: Path) -> None:
    for part, few in (("train", 40), ("dev", 5), ("test", 6)):
        for label in ("pos", "neg"):
            folder = tmp_path / part / label
            folder.mkdir(parents=True)
            for n in range(few):
                (folder / f"{n}.txt").write_text(f"{part} {label} {n}")
    data = open_labelled([tmp_path])
    assert {part: len(rows) for part, rows in data.parts.items()} == {"train": 80, "valid": 10, "test": 12}
    assert all(row.texts[0].split()[1] == row.answer for rows in data.parts.values() for row in rows)
    assert looks_labelled([tmp_path])


def test_a_folder_without_labels_is_told(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a\nb\nc\n")
    with pytest.raises(DataError, match="expected a folder or a file for each label"):
        open_labelled([tmp_path])


# -- what may be wrong ---------------------------------------------------------------------------------------------


def test_rows_without_text_or_label_are_left_out_and_told_with_their_lines(tmp_path: Path) -> None:
    rows = [*ROWS[:3], ("", "pos"), ("some text", ""), *ROWS[3:], *[("  ", "pos")] * 7]
    data = open_labelled([written(tmp_path, "x.csv", table(rows))])
    assert found(data) == EXPECTED
    assert told(data, "x.csv: 8 rows have no text (lines 5, 204, 205, 206, 207 and 3 more) and are left out")
    assert told(data, "x.csv: 1 row has no label (line 6) and is left out")


def test_labels_that_differ_by_case_or_spaces_are_named(tmp_path: Path) -> None:
    rows = [(text, ("Sci Tech", "sci  tech", "SciTech", "Sport")[n % 4]) for n, text in enumerate(TEXTS)]
    data = open_labelled([written(tmp_path, "x.csv", table(rows))])
    assert told(
        data, 'the labels "Sci Tech" (50) and "SciTech" (50) and "sci  tech" (50) differ by case or spaces alone'
    )
    assert not told(data, '"Sport"')


def test_rare_labels_and_copies_with_other_labels_are_counted(tmp_path: Path) -> None:
    rows = [*ROWS, ("a text that is there once", "once"), *[("a text that is there often", label) for label in "abc"]]
    data = open_labelled([written(tmp_path, "x.csv", table(rows))])
    assert told(data, 'train: 4 labels stand there only once: "a", "b", "c", "once"')
    assert told(data, 'valid: 4 labels are not in this part: "a", "b", "c", "once"')
    assert told(data, "train: 1 text stands there more than once, with different answers")


def test_a_label_of_the_test_part_alone_stays_and_is_told(tmp_path: Path) -> None:
    train = written(tmp_path, "train.csv", table(ROWS))
    test = written(tmp_path, "test.csv", table([("a new text of its kind", "new"), *[(f"{t} b", a) for t, a in ROWS]]))
    data = open_labelled([train], test=test)
    assert data.labels == ["neg", "pos", "so"]
    assert data.parts["test"][0].answer == "new"
    assert told(data, 'test: 1 row has a label that the training part lacks ("new"), and no model can be right there')


def test_one_label_is_nothing_to_learn(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'all 200 rows to train on have the label "1": there is nothing to learn'):
        open_labelled([written(tmp_path, "x.csv", table([(text, 1) for text in TEXTS]))])
    path = written(tmp_path, "x.jsonl", "\n".join(json.dumps({"text": t, "label": ["a", "b"]}) for t in TEXTS))
    with pytest.raises(DataError, match=r'have the labels "a", "b": there is nothing'):
        open_labelled([path])


def test_too_many_labels_are_no_labels(tmp_path: Path) -> None:
    rows = [(text, f"kind {n}") for n, text in enumerate(TEXTS)]
    with pytest.raises(DataError, match=r"label has 200 different cells in 200 rows .* too many for labels"):
        open_labelled([written(tmp_path, "x.csv", table(rows))])


@pytest.mark.parametrize("rows", [[], ROWS[:2]])
def test_too_few_rows(rows: list[Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no rows in it|2 rows with a text and an answer; 3 are the fewest"):
        open_labelled([written(tmp_path, "x.csv", table(rows))])


def test_numbers_that_are_none_are_told(tmp_path: Path) -> None:
    rows = [(text, "NA" if n == 5 else n / 3) for n, text in enumerate(TEXTS)]
    path = written(tmp_path, "x.csv", table(rows, ",", "text,score"))
    data = open_labelled([path], columns=["number=score"])
    assert told(data, "x.csv: 1 row has no number (line 7) and is left out")
    for bad in ("many", "inf"):
        path.write_text(table([*rows, ("a text", bad)], ",", "text,score"))
        with pytest.raises(DataError, match=rf'line 202: expected a number, found "{bad}"'):
            open_labelled([path], columns=["number=score"])


def test_other_files_and_names_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labelled texts are read from a \.csv"):
        open_labelled([written(tmp_path, "x.txt", "a\n")])
    with pytest.raises(DataError, match="neither a file nor a data set"):
        open_labelled(["sst22"])
    with pytest.raises(DataError, match=r"nowhere\.csv: no such file"):
        open_labelled([written(tmp_path, "x.csv", table(ROWS))], test=tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match=r"line 2 is not JSON"):
        open_labelled([written(tmp_path, "x.jsonl", '{"text": "a b c", "label": 1}\n{"text"\n')])
    with pytest.raises(DataError, match=r'line 1: field "text" holds half a character'):
        open_labelled([written(tmp_path, "x.jsonl", r'{"text": "a \ud800", "label": 1}')])


# -- scoring and answering -----------------------------------------------------------------------------------------


def test_other_data_is_scored_whole(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", table([(label, "x", text) for text, label in ROWS[:4]], ",", "b,c,a"))
    data = open_whole_labelled([path], ["text=a", "label=b"], ["neg", "pos", "so"])
    assert data.parts == {"whole": [LabelledRow((text,), label) for text, label in ROWS[:4]]}
    assert data.split == "scored whole"
    with pytest.raises(DataError, match=r'x\.csv: line 3: the model does not know the label "neg"\. Known: pos, so\.'):
        open_whole_labelled([path], ["text=a", "label=b"], ["pos", "so"])
    with pytest.raises(ConfigError, match=r'x\.csv: there is no column "d"'):
        open_whole_labelled([path], ["text=a", "label=d"], ["pos", "so"])
    with pytest.raises(DataError, match="no rows with a text"):
        open_whole_labelled([written(tmp_path, "y.csv", table([("a text of words", ""), ("", "pos")]))], (), ["pos"])


def test_labels_and_numbers_of_other_data_are_what_the_model_has(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", table([(text, f"{n % 2}.0") for n, text in enumerate(TEXTS[:10])]))
    assert open_whole_labelled([path], (), ["0", "1"]).parts["whole"][1].answer == "1"
    assert open_whole_labelled([path]).parts["whole"][1].answer == 1.0
    path.write_text(table([(text, n) for n, text in enumerate(TEXTS[:40])]))
    assert open_whole_labelled([path], ["label=label"], [str(n) for n in range(40)]).asks_for == "label"
    path.write_text(table([(text, "a|b" if n else "") for n, text in enumerate(TEXTS[:4])]))
    data = open_whole_labelled([path], ["text=text", "labels=label"], ["a", "b"])
    assert [row.answer for row in data.parts["whole"]] == [(), ("a", "b"), ("a", "b"), ("a", "b")]


def test_texts_to_answer_need_no_labels(tmp_path: Path) -> None:
    columns = ["text=review", "label=stars"]
    path = written(tmp_path, "x.csv", quoted([("day", "review"), (1, "a, b\nc"), (2, "")]))
    assert list(texts_of(path, columns)) == [("a, b c",), ("",)]
    assert list(texts_of(written(tmp_path, "one.csv", "text\nfine, or not\nbad\n"), columns)) == [
        ("fine, or not",),
        ("bad",),
    ]
    assert list(texts_of(written(tmp_path, "x.txt", "one\n\ntwo, three\n"), columns)) == [
        ("one",),
        ("",),
        ("two, three",),
    ]
    pair = ["text=a", "text2=b", "label=c"]
    assert list(texts_of(written(tmp_path, "y.txt", "one\ttwo\n"), pair)) == [("one", "two")]
    assert list(texts_of(written(tmp_path, "y.jsonl", '{"b": "two", "a": "one"}\n'), pair)) == [("one", "two")]
    assert list(texts_of(written(tmp_path, "z.csv", table(ROWS)))) == [(text,) for text in TEXTS]
    with pytest.raises(ConfigError, match='no column "review"'):
        list(texts_of(written(tmp_path, "z.csv", "a,b\nsome,words\nor,other\n"), columns))
