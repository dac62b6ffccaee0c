"""Tables of numbers: what is read, what is left out with a note, what is refused in a sentence that names the place."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.numbers import NumberData, NumberStore, build_number_store, open_numbers, scaling_of
from seqwise.data.schema import ValueSpec
from seqwise.errors import ConfigError, DataError

ROWS = [(i, i * i % 7) for i in range(20)]
WHOLE = {"train": slice(0, 16), "valid": slice(16, 18), "test": slice(18, 20)}


def table(rows: Sequence[tuple[Any, ...]] = ROWS, *, header: str = "a,b", between: str = ",", end: str = "\n") -> str:
    lines = [header.replace(",", between)] if header else []
    return end.join([*lines, *(between.join(map(str, row)) for row in rows)]) + end


def read(folder: Path, content: str | bytes, name: str = "x.csv", **options: Any) -> NumberData:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_numbers(path, **options)


def refused(folder: Path, content: str | bytes, **options: Any) -> str:
    """The one sentence that is told."""
    with pytest.raises((DataError, ConfigError)) as caught:
        read(folder, content, **options)
    sentence = str(caught.value)
    assert sentence.startswith(str(folder / "x.csv"))
    assert "\n" not in sentence
    return sentence.removeprefix(str(folder / "x.csv"))


# -- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("header", ["a,b", ""], ids=["header", "no header"])
def test_a_table_is_read_whatever_stands_between_its_cells(tmp_path: Path, between: str, end: str, header: str) -> None:
    data = read(tmp_path, table(header=header, between=between, end=end))
    assert data.columns == (["a", "b"] if header else ["column1", "column2"])
    assert data.values.dtype == np.float64
    assert data.values.tolist() == [list(map(float, row)) for row in ROWS]
    assert data.notes == []


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (gzip.compress(table().encode()), "x.csv.gz"),
        (b"\xef\xbb\xbf" + table().encode(), "x.csv"),
        (table(header='"a","b"').encode(), "x.csv"),
        (table([(f'"{a}"', f" {b} ") for a, b in ROWS]).encode(), "x.csv"),
        (table(header=" a , b ").encode(), "x.csv"),
        (table().rstrip("\n").encode(), "x.csv"),
        (table().replace("\n", "\n\n").encode(), "x.csv"),
        (table([(f"{a}e0", f"{b:+.3f}") for a, b in ROWS]).encode(), "x.csv"),
    ],
    ids=["gzip", "byte-order mark", "quoted header", "quoted cells", "spaces", "no last newline", "blank lines",
         "forms"],
)  # fmt: skip
def test_other_ways_to_write_the_same_table_give_the_same_data(tmp_path: Path, content: bytes, name: str) -> None:
    plain, data = read(tmp_path, table(), "plain.csv"), read(tmp_path, content, name)
    assert data.columns == plain.columns
    assert data.values.tolist() == plain.values.tolist()
    assert data.fingerprint == plain.fingerprint


def test_a_comma_in_quotes_is_part_of_a_name(tmp_path: Path) -> None:
    assert read(tmp_path, table().replace("a,b", '"a, with a comma",b')).columns == ["a, with a comma", "b"]


@pytest.mark.parametrize(
    "cell", ["", " ", "NA", "na", "N/A", "#N/A", "?", "nan", "NaN", "-nan", "null", "None", "-", "."]
)
def test_what_is_missing_is_marked(tmp_path: Path, cell: str) -> None:
    data = read(tmp_path, table([*ROWS[:5], (5, cell), *ROWS[6:]]))
    assert np.argwhere(np.isnan(data.values)).tolist() == [[5, 1]]
    assert ", 1 number missing;" in data.description


@pytest.mark.parametrize("cell", ["inf", "-inf", "Infinity", "1e999", "-1e999", "1e200"])
def test_what_is_infinite_or_too_large_is_told_with_its_place(tmp_path: Path, cell: str) -> None:
    sentence = refused(tmp_path, table([*ROWS[:5], (5, cell), *ROWS[6:]]))
    assert sentence.startswith(f': line 7, column b: "{cell}" is beyond 1e+100. Mend it, leave the cell empty')


def test_a_number_too_far_from_the_training_part_is_told_before_it_overflows(tmp_path: Path) -> None:
    data = read(tmp_path, table([*ROWS[:-1], (1e60, 3)]))
    build_number_store(data, "valid", scaling_of(data))
    with pytest.raises(DataError, match=r"x\.csv: row 20, column a: 1e\+60 lies 2e\+59 standard deviations from the"):
        build_number_store(data, "test", scaling_of(data))


def test_a_first_row_with_a_gap_is_no_header(tmp_path: Path) -> None:
    data = read(tmp_path, table([("NA", 3), *ROWS[1:]], header=""))
    assert data.columns == ["column1", "column2"]
    assert len(data.values) == 20
    assert math.isnan(data.values[0, 0])


def test_a_header_with_a_name_left_out_is_a_header(tmp_path: Path) -> None:
    """As pandas writes its index."""
    data = read(tmp_path, table(header=",b"))
    assert data.columns[1] == "b"
    assert len(data.values) == 20


@pytest.mark.parametrize(("header", "row"), [("a,b", ("", "")), ("a", ('""',))], ids=["two columns", "one, quoted"])
def test_a_row_of_which_all_is_missing_is_a_step(tmp_path: Path, header: str, row: tuple[str, ...]) -> None:
    rows = [one[: len(row)] for one in ROWS]
    data = read(tmp_path, table([*rows[:5], row, *rows[6:]], header=header))
    assert len(data.values) == 20
    assert np.isnan(data.values[5]).all()


def test_the_description_says_what_was_found(tmp_path: Path) -> None:
    data = read(tmp_path, table())
    words = "x.csv: 20 steps of 2 numbers (a, b); split in order 80/10/10 (train 16, valid 2, test 2)"
    assert data.description == words
    assert read(tmp_path, table(), name="y.csv").name == "y.csv"
    wide = table([tuple(i + j for j in range(8)) for i in range(20)], header=",".join("abcdefgh"))
    assert "20 steps of 8 numbers (a, b, c, d, e, f, …);" in read(tmp_path, wide).description


# -- columns ---------------------------------------------------------------------------------------------------------


def test_columns_of_words_are_left_out_with_a_note(tmp_path: Path) -> None:
    data = read(tmp_path, table([(f"day {a}", a, b) for a, b in ROWS], header="day,a,b"))
    assert data.columns == ["a", "b"]
    assert data.values.tolist() == [list(map(float, row)) for row in ROWS]
    assert data.notes == ['column day holds words ("day 0") and is left out']


def test_a_column_that_never_changes_in_training_is_left_out_with_a_note(tmp_path: Path) -> None:
    data = read(tmp_path, table([(a, b, 2.5 if a < 16 else a) for a, b in ROWS], header="a,b,c"))
    assert data.columns == ["a", "b"]
    assert data.notes == ["column c is always 2.5 in the training part and is left out"]


def test_a_column_without_numbers_in_training_is_left_out_with_a_note(tmp_path: Path) -> None:
    data = read(tmp_path, table([(a, b, "" if a < 16 else a) for a, b in ROWS], header="a,b,c"))
    assert data.columns == ["a", "b"]
    assert data.notes == ["column c has no number in the training part and is left out"]


def test_columns_can_be_chosen_in_any_order(tmp_path: Path) -> None:
    rows = [(f"day {a}", a, b) for a, b in ROWS]
    data = read(tmp_path, table(rows, header="day,a,b"), columns=["b", "a"])
    assert data.columns == ["b", "a"]
    assert data.values.tolist() == [[float(b), float(a)] for a, b in ROWS]
    assert data.notes == []


def test_a_word_beside_the_chosen_columns_does_no_harm(tmp_path: Path) -> None:
    rows = [(a, "oops" if a == 3 else b) for a, b in ROWS]
    assert read(tmp_path, table(rows), columns=["a"]).columns == ["a"]


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("header", "line"), [("a,b", 7), ("", 6)])
def test_a_word_among_numbers_is_told_with_its_place(tmp_path: Path, header: str, line: int) -> None:
    rows = [(a, "oops" if a == 5 else b) for a, b in ROWS]
    sentence = refused(tmp_path, table(rows, header=header))
    column = "b" if header else "column2"
    assert sentence == (
        f': line {line}, column {column}: "oops" is not a number. Mend it, leave the cell empty where the number is '
        "missing, or choose other columns with --columns."
    )


def test_a_column_of_words_that_was_asked_for_is_refused(tmp_path: Path) -> None:
    sentence = refused(tmp_path, table([("x", a) for a, _ in ROWS]), columns=["a", "b"])
    assert sentence.startswith(': line 2, column a: "x" is not a number.')


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (table([*ROWS, (1, 2, 3)]), ": line 22 has 3 cells, but the first line has 2. Every row needs as many."),
        (table([*ROWS[:4], (1,), *ROWS]), ": line 6 has 1 cells, but the first line has 2. Every row needs as many."),
        (table([*ROWS, (1, 2, 3)], header=""), ": line 21 has 3 cells, but the first line has 2."),
        ("", ": the file is empty. Give a table with one step a row."),
        ("\n \n\n", ": the file is empty. Give a table with one step a row."),
        ("a,b\n", ": only a header and no rows."),
        (table([("x", "y")] * 20), ": no column of numbers; found a, b."),
        (table([(1, 2)] * 20), ": nothing to forecast: column a is always 1 in the training part and is left out; "),
        (table(ROWS[:9]), ": too few rows: 9 in all leave 7 to train on, and 8 are needed."),
        (table(ROWS[:1]), ": too few rows: 1 in all leave 0 to train on, and 8 are needed."),
        (b"a,b\n1,\xff\n", ": not UTF-8: line 2, byte 6 is 0xff."),
    ],
    ids=["long row", "short row", "long row without header", "empty", "blank", "header only", "words only", "constant",
         "too few", "one row", "not UTF-8"],
)  # fmt: skip
def test_a_bad_table_is_told_in_a_sentence(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    assert refused(tmp_path, content).startswith(sentence)


def test_an_unknown_column_gets_the_nearest_name(tmp_path: Path) -> None:
    content = table(header="temperature,rain")
    assert refused(tmp_path, content, columns=["temprature"]) == ': no column "temprature". Did you mean "temperature"?'
    assert refused(tmp_path, content, columns=["zzz"]) == ': no column "zzz". Known: temperature, rain.'


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv: cannot be read: No such file or directory\."):
        open_numbers(tmp_path / "nothing.csv")


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder, expected a file\."):
        open_numbers(tmp_path)


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.csv\.gz: damaged or cut-off archive"):
        read(tmp_path, gzip.compress(table().encode())[:40], "x.csv.gz")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(table([*ROWS, ("x", 1)]).replace("a,b\n", "a,b\n\n\n"), 24, id="blank lines before"),
        pytest.param(table([*ROWS, ("x", 1)], header="column1,column2"), 22, id="header column1, column2"),
    ],
)
def test_the_line_of_a_word_is_the_line_of_the_file(tmp_path: Path, content: str, line: int) -> None:
    assert f": line {line}, column " in refused(tmp_path, content)


def test_a_quote_that_is_never_closed_is_one_sentence(tmp_path: Path) -> None:
    refused(tmp_path, table() + '3,"4\n5,6\n7,8\n')


def test_a_quote_that_is_never_closed_in_a_long_table_is_the_users_to_mend(tmp_path: Path) -> None:
    refused(tmp_path, 'a,b\n1,"2\n' + table(ROWS * 2000, header=""))


def test_a_part_without_rows_is_told_by_its_name(tmp_path: Path) -> None:
    assert "valid" in refused(tmp_path, table(ROWS[:9]), split="98/1/1")


def test_a_part_without_numbers_is_told_by_its_name(tmp_path: Path) -> None:
    assert "valid" in refused(tmp_path, table([*ROWS[:16], *[("NA", "NA")] * 4]))


def test_a_blank_first_line_does_not_decide_what_stands_between_cells(tmp_path: Path) -> None:
    assert read(tmp_path, "\n" + table(between=";")).columns == ["a", "b"]


# -- parts and fingerprint -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "parts"),
    [
        (None, WHOLE),
        ("80/20", {"train": slice(0, 16), "valid": slice(16, 20)}),
        ("50/25/25", {"train": slice(0, 10), "valid": slice(10, 15), "test": slice(15, 20)}),
        ("40/30/30", {"train": slice(0, 8), "valid": slice(8, 14), "test": slice(14, 20)}),
    ],
)
def test_parts_are_cut_in_order_of_time(tmp_path: Path, split: str | None, parts: dict[str, slice]) -> None:
    assert read(tmp_path, table(), split=split).parts == parts


@pytest.mark.parametrize("split", ["90/20", "100", "a/b", "80/10/5/5", "-10/110"])
def test_a_split_that_does_not_add_up_is_told(tmp_path: Path, split: str) -> None:
    with pytest.raises(ConfigError, match="should be two or three shares that add up to 100"):
        read(tmp_path, table(), split=split)


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    first = read(tmp_path, table()).fingerprint
    assert len(first) == 64
    assert read(tmp_path, table(), name="other.csv").fingerprint == first
    others = [
        read(tmp_path, table([*ROWS[:-1], (19, 6.001)])),
        read(tmp_path, table([*ROWS[:-1], (19, "")])),
        read(tmp_path, table([*ROWS, (20, 1)])),
        read(tmp_path, table(header="a,c")),
        read(tmp_path, table(), split="80/20"),
        read(tmp_path, table(), columns=["a"]),
        read(tmp_path, table(), columns=["b", "a"]),
    ]
    assert len({first, *(other.fingerprint for other in others)}) == 8


# -- scaling ---------------------------------------------------------------------------------------------------------


def made_up(*, num_rows: int = 20, missing: list[tuple[int, int]] | None = None) -> NumberData:
    random = np.random.default_rng(0)
    values = np.array([5.0, -200.0]) + np.array([0.1, 40.0]) * random.normal(size=(num_rows, 2))
    for row, column in missing or []:
        values[row, column] = np.nan
    return NumberData("made up", ["a", "b"], values, WHOLE, "", "")


def test_scaling_brings_the_training_part_to_mean_zero_and_variance_one() -> None:
    data = made_up(missing=[(3, 0)])
    data.values[16:] = 1e6  # what comes later is not looked at
    scaled = scaling_of(data).encode(data.values)[data.parts["train"]]
    assert np.nanmean(scaled, axis=0) == pytest.approx([0, 0], abs=1e-12)
    assert np.nanvar(scaled, axis=0) == pytest.approx([1, 1])
    assert np.argwhere(np.isnan(scaled)).tolist() == [[3, 0]]


def test_scaling_can_be_undone() -> None:
    data = made_up()
    scaling = scaling_of(data)
    assert scaling.decode(scaling.encode(data.values)) == pytest.approx(data.values)
    assert scaling.decode(np.zeros((2, 3, 2)))[1, 2] == pytest.approx(scaling.mean)  # any number of axes before


def test_a_scaling_comes_back_from_json_to_the_bit() -> None:
    scaling = scaling_of(made_up())
    again = ValueSpec.from_dict(json.loads(json.dumps(scaling.to_dict())))
    assert again.columns == scaling.columns
    assert again.mean.tolist() == scaling.mean.tolist()
    assert again.scale.tolist() == scaling.scale.tolist()


def test_a_scaling_whose_parts_differ_in_length_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit each other"):
        ValueSpec.from_dict({"columns": ["a", "b"], "mean": [0.0], "scale": [1.0, 1.0]})


# -- stores and batches ----------------------------------------------------------------------------------------------


def store_of(part: str = "test", missing: list[tuple[int, int]] | None = None) -> tuple[NumberData, NumberStore]:
    data = made_up(missing=missing)
    return data, build_number_store(data, part, scaling_of(data))


@pytest.mark.parametrize(("part", "first", "length"), [("train", 1, 16), ("valid", 17, 18), ("test", 19, 20)])
def test_a_store_holds_the_series_up_to_the_end_of_its_part(part: str, first: int, length: int) -> None:
    data, store = store_of(part)
    assert (store.first, len(store), len(store.values)) == (first, length, length + 1)
    assert store.values[1:] == pytest.approx(scaling_of(data).encode(data.values[:length]))
    assert store.values[first:] == pytest.approx(scaling_of(data).encode(data.values[data.parts[part]]))


def test_before_the_first_row_stands_one_at_which_nothing_is_observed() -> None:
    _, store = store_of()
    assert store.values[0].tolist() == [0, 0]
    assert store.is_observed[0].tolist() == [False, False]
    assert store.is_observed[1:].all()


def test_a_missing_number_is_zero_and_not_observed() -> None:
    _, store = store_of(missing=[(3, 0), (7, 0), (7, 1)])
    assert np.argwhere(~store.is_observed[1:]).tolist() == [[3, 0], [7, 0], [7, 1]]
    assert store.values[4, 0] == store.values[8, 0] == store.values[8, 1] == 0
    assert np.isfinite(store.values).all()


@pytest.mark.parametrize(("part", "limit", "length"), [("train", 5, 5), ("train", 99, 16), ("valid", 1, 17)])
def test_the_beginning_of_a_part_keeps_what_stands_before_it(part: str, limit: int, length: int) -> None:
    _, store = store_of(part)
    cut = store.take(limit)
    assert (cut.first, len(cut)) == (store.first, length)
    assert cut.values.tolist() == store.values[: length + 1].tolist()


def test_the_beginning_of_a_part_has_something_to_predict() -> None:
    _, store = store_of("valid", missing=[(16, 0), (16, 1)])
    assert store.take(1).is_observed[store.first :].any()


def test_a_batch_has_targets_one_step_ahead_of_inputs() -> None:
    _, store = store_of(missing=[(3, 0), (7, 0), (7, 1)])
    places = np.array([[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [16, 17, 18, 19, 20]])
    batch = store.batch(places)
    inputs, targets = batch.inputs["values"], batch.targets["values"]
    assert inputs.values.dtype == torch.float32
    assert inputs.values.shape == targets.values.shape == inputs.is_observed.shape == (3, 4, 2)
    for field, rows in ((inputs, places[:, :-1]), (targets, places[:, 1:])):
        assert field.values.numpy() == pytest.approx(store.values[rows], rel=1e-6)
        assert field.is_observed.tolist() == store.is_observed[rows].tolist()
    assert batch.counts() == {"values": 11}  # one of twelve steps shows nothing
