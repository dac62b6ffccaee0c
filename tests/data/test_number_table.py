"""How a table of numbers is written: commas within numbers, what stands between cells, headers, blank lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqwise.data.number_table import NumberTable, read_number_table
from seqwise.data.numbers import open_numbers
from seqwise.errors import DataError


def read(folder: Path, content: str) -> NumberTable:
    path = folder / "x.csv"
    path.write_text(content)
    return read_number_table(path)


def values(table: NumberTable) -> list[list[float]]:
    return [table.numbers(index).tolist() for index in table.choose(None)[0]]


# -- commas within numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected", "note"),
    [
        ("a;b\n1,5;2\n-0,25;3\n", [[1.5, -0.25], [2, 3]], 'numbers are read with a decimal comma: "1,5" is 1.5'),
        ("a\tb\n1,5\t2\n2,5\t3\n", [[1.5, 2.5], [2, 3]], 'numbers are read with a decimal comma: "1,5" is 1.5'),
        ("1,5;2,5;3,5\n4,5;5,5;6,5\n", [[1.5, 4.5], [2.5, 5.5], [3.5, 6.5]], 'decimal comma: "1,5" is 1.5'),
        ("a;b\n1.234,56;2\n7,5;3\n", [[1234.56, 7.5], [2, 3]], 'decimal comma: "1.234,56" is 1234.56'),
        ("a;b\n1.234;7,5\n1.234.567;3\n", [[1234, 1234567], [7.5, 3]], 'decimal comma: "1.234.567" is 1234567'),
        ("a;b\n1,234;2\n7,5;3\n", [[1.234, 7.5], [2, 3]], 'decimal comma: "7,5" is 7.5'),
        ("a;b\n1,5e3;2\n7,5;3\n", [[1500, 7.5], [2, 3]], 'decimal comma: "1,5e3" is 1500'),
        ("a;b\n1,234.5;2\n7;3\n", [[1234.5, 7], [2, 3]], 'are read as thousands: "1,234.5" is 1234.5'),
        ("a;b\n1,234,567;2\n7;3\n", [[1234567, 7], [2, 3]], 'are read as thousands: "1,234,567" is 1234567'),
        ('a,b\n"1,234",2.5\n7,3\n', [[1234, 7], [2.5, 3]], 'are read as thousands: "1,234" is 1234'),
        ('a,b\n"1,5",2\n"2,5",3\n', [[1.5, 2.5], [2, 3]], 'decimal comma: "1,5" is 1.5'),
    ],
)
def test_commas_that_can_be_read_in_one_way_are_and_it_is_said(
    tmp_path: Path, content: str, expected: list[list[float]], note: str
) -> None:
    table = read(tmp_path, content)
    assert values(table) == expected
    assert len(table.notes) == 1
    assert table.notes[0].endswith(note)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("a;b\n1,234;x\n2,345;y\n", 'Line 2: "1,234" may be 1.234 or 1234, and nothing in the file tells which; write'),
        ('a;b\n"1,5";"1,234.5"\n"2,5";"1,234.5"\n', "Line 2 has a decimal comma (1,5) and line 2 a decimal point (1,2"),
    ],
)
def test_commas_that_can_be_read_in_two_ways_are_told(tmp_path: Path, content: str, hint: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, content).choose(None)
    assert hint in str(caught.value)


def test_a_column_with_commas_among_others_is_left_out_with_a_hint(tmp_path: Path) -> None:
    table = read(tmp_path, "a;b\n1.5;12,34\n2.5;12,35\n")
    assert values(table) == [[1.5, 2.5]]
    assert table.notes == [
        "line 2 has a decimal comma (12,34) and line 2 a decimal point (1.5); write all numbers with a point"
    ]
    with pytest.raises(DataError, match=r'line 2, column b: "12,34" is not a number \(a comma within a number\?\)\.'):
        table.numbers(1)


def test_decimal_commas_between_commas_get_a_hint(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'line 2 has 4 cells.*Is a comma within its numbers\? Put ";" between cells\.'):
        read(tmp_path, "a,b\n1,5,2,5\n3,5,4,5\n")


def test_a_table_without_commas_in_its_numbers_has_no_note(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b,c\n1.5,2,"one, two"\n2.5,3,"x, y"\n').notes == []


# -- headers ---------------------------------------------------------------------------------------------------------

NUMBERS_IN_HEADER = ["line 1 is taken for a header, though it holds numbers"]


@pytest.mark.parametrize(
    ("content", "header", "note"),
    [
        ("a,b\n1,2\n3,4\n", ["a", "b"], []),
        ("1,2\n3,4\n", ["column1", "column2"], []),
        ("NA,NA\n3,4\n", ["column1", "column2"], []),
        ("NA\n3\n4\n", ["column1"], []),
        ("1,5;2,5\n3,5;4,5\n", ["column1", "column2"], None),
        ("a,2019\n1,2\n3,4\n", ["a", "2019"], NUMBERS_IN_HEADER),
        ("day,1,2\n2020-01-01,1,2\n2020-01-02,3,4\n2020-01-03,3,4\n", ["day", "1", "2"], NUMBERS_IN_HEADER),
        ("2020-01-01,1,2\n2020-01-02,3,4\n2020-01-03,3,4\n2020-01-04,3,4\n", ["column1", "column2", "column3"], []),
        ("x,1,2\ny,3,4\n", ["column1", "column2", "column3"], []),
    ],
)  # fmt: skip
def test_a_first_line_of_names_is_a_header(
    tmp_path: Path, content: str, header: list[str], note: list[str] | None
) -> None:
    table = read(tmp_path, content)
    assert table.header == header
    assert note is None or table.notes == note


# -- blank lines -----------------------------------------------------------------------------------------------------


def test_a_blank_line_in_one_column_is_a_missing_number(tmp_path: Path) -> None:
    table = read(tmp_path, "\na\n1\n2\n\n4\n\n6\n\n\n")
    found = table.numbers(0)
    assert np.isnan(found).tolist() == [False, False, True, False, True, False]
    assert found[[0, 1, 3, 5]].tolist() == [1, 2, 4, 6]
    assert table.lines == [3, 4, 5, 6, 7, 8]
    assert table.notes == ["2 blank lines are taken for missing numbers (the first is line 5)"]


def test_a_blank_line_between_rows_of_several_columns_is_no_step(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b\n1,2\n\n3,4\n")
    assert values(table) == [[1, 3], [2, 4]]
    assert table.notes == []


def test_how_a_file_was_read_is_among_the_notes_of_its_data(tmp_path: Path) -> None:
    read(tmp_path, "a;b\n" + "".join(f"{n},5;{n * n % 7}\n" for n in range(20)))
    data = open_numbers(tmp_path / "x.csv")
    assert data.values[:3].tolist() == [[0.5, 0], [1.5, 1], [2.5, 4]]
    assert data.notes == ['numbers are read with a decimal comma: "0,5" is 0.5']
