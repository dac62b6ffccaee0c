"""Columns of dates: their step, the seasons it suggests, and where they are out of step, by line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from seqwise.data.check_numbers import check_numbers
from seqwise.data.dates import Dates, read_dates
from seqwise.data.numbers import open_numbers

START = datetime(2019, 12, 30)  # a Monday


def every(form: str = "%Y-%m-%d %H:%M:%S", *, num: int = 60, **step: float) -> list[str]:
    return [(START + place * timedelta(**step)).strftime(form) for place in range(num)]


def months(form: str, *, num: int = 40, step: int = 1) -> list[str]:
    return [datetime(2000 + n // 12, n % 12 + 1, 1).strftime(form) for n in range(0, num * step, step)]


def read(cells: Sequence[str]) -> Dates | None:
    return read_dates("date", cells, range(2, len(cells) + 2))


@pytest.mark.parametrize(
    ("cells", "step", "seasons"),
    [
        (every(hours=1), "1 hour", (24, 168)),
        (every("%Y-%m-%dT%H:%M:%S+02:00", hours=1), "1 hour", (24, 168)),
        (every("%Y/%m/%d %H:%M", hours=2), "2 hours", (12, 84)),
        (every(minutes=10), "10 minutes", (144, 1008)),
        (every(minutes=1), "1 minute", (60, 1440)),
        (every(seconds=7), "7 seconds", ()),
        (every("%Y-%m-%d", days=1), "1 day", (7, 365)),
        (every("%d.%m.%Y", days=1), "1 day", (7, 365)),
        (every("%d/%m/%Y", days=1), "1 day", (7, 365)),
        (every("%m/%d/%Y", days=1), "1 day", (7, 365)),
        (every("%m/%d/%Y", weeks=1), "7 days", (52,)),
        ([day for n, day in enumerate(every("%Y-%m-%d", days=1)) if n % 7 < 5], "1 working day", (5, 261)),
        (months("%Y-%m"), "1 month", (12,)),
        (months("%Y-%m-%d"), "1 month", (12,)),
        (months("%d/%m/%Y"), "1 month", (12,)),
        (months("%b %Y"), "1 month", (12,)),
        (months("%Y-%m-%d", step=3), "3 months", (4,)),
        (months("%Y-%m-%d", step=12), "1 year", ()),
    ],
)
def test_the_step_tells_which_seasons_to_look_for(cells: list[str], step: str, seasons: tuple[int, ...]) -> None:
    found = read(cells)
    assert found is not None
    assert (found.step, found.seasons, found.oddities) == (step, seasons, [])


@pytest.mark.parametrize("cells", [["day 1", "day 2"], ["1-01", "1-02", "2-01"], ["2020-01-01"] * 9, ["a", "b", "c"]])
def test_other_words_are_no_dates(cells: list[str]) -> None:
    assert read(cells) is None


def test_gaps_repeated_and_unsorted_dates_are_counted_and_the_first_is_named() -> None:
    hours = every(hours=1)
    cells = [*hours[:10], *hours[12:20], *hours[19:30], *hours[33:40], hours[38], *hours[40:]]
    found = read(cells)
    assert found is not None
    gaps, repeated, unsorted = found.oddities
    assert gaps.startswith("column date: 3 gaps (the first in line 12, 2019-12-30 12:00:00 behind 2019-12-30 09:00:00)")
    assert repeated == (
        "column date: 1 repeated date (line 20, 2019-12-30 19:00:00 behind 2019-12-30 19:00:00): keep one row for each"
    )
    assert unsorted.startswith("column date: 1 date before the one above it (line 38, 2019-12-31 14:00:00 behind")
    assert unsorted.endswith("sort the rows by time")


def test_months_of_other_lengths_are_no_gaps_and_a_missing_one_is() -> None:
    cells = months("%Y-%m-%d")
    found = read([*cells[:5], *cells[6:]])
    assert found is not None
    assert len(found.oddities) == 1
    assert "1 gap (line 7, 2000-07-01 behind 2000-05-01)" in found.oddities[0]


def test_a_table_with_dates_says_what_is_odd_in_them(tmp_path: Path) -> None:
    path, days = tmp_path / "x.csv", every("%Y-%m-%d", days=1)
    path.write_text("date,a\n" + "".join(f"{day},{n * n % 11}\n" for n, day in enumerate(days) if n != 20))
    data = open_numbers(path)
    first, second = data.notes
    assert first == "column date holds dates, 1 day apart, and is not forecast"
    assert second.startswith("column date: 1 gap (line 22, 2020-01-20 behind 2020-01-18): ")
    found = check_numbers(data)
    assert found.notes == [first]
    assert found.warnings[0] == second
    assert open_numbers(path, columns=["a"]).notes == [second]
