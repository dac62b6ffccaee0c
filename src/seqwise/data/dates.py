"""A column of dates: how far apart its rows are, which seasons that suggests, and where it is out of step.

dates = read_dates("date", ["2016-07-01 00:00:00", "2016-07-01 01:00:00", ...], lines=[2, 3, ...])
dates.step        # "1 hour"
dates.seasons     # (24, 168)
dates.oddities    # "column date: 2 gaps in its dates, the first before line 18 (…)"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

import numpy as np

MINUTE, HOUR, DAY = 60, 3600, 86400
TRIED = 50  # cells that tell whether a column may hold dates
MIN_DATES = 3
FORMS = (
    *("%Y-%m", "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"),
    *("%m/%d/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%b %Y", "%d %b %Y", "%b %d, %Y"),
)


@dataclass(frozen=True)
class Dates:
    column: str
    step: str
    """From one row to the next, mostly: "1 hour"."""
    seasons: tuple[int, ...]
    """Steps after which such data often resembles itself, the shortest first: a day, a week, a year."""
    oddities: list[str] = field(default_factory=list)
    """Gaps, repeated and unsorted dates: how many, and where the first is."""


def read_dates(column: str, cells: Sequence[str], lines: Sequence[int]) -> Dates | None:
    """What a column of words says of time, or None where it holds no dates. `lines` are those of the file."""
    found = _times(cells)
    if found is None:
        return None
    ticks, step, words, seasons = _step_of(found)
    return Dates(column, words, seasons, list(_oddities(column, ticks, step, cells, lines)))


def _times(cells: Sequence[str]) -> list[datetime] | None:
    """The dates of the cells; where days and months could be either, those that are the most evenly apart."""
    readings = list[tuple[float, list[datetime]]]()
    for read in (datetime.fromisoformat, *(_reader(form) for form in FORMS)):
        try:
            for cell in cells[:TRIED]:
                read(cell.strip())
            found = [read(cell.strip()).replace(tzinfo=None) for cell in cells]
        except ValueError:
            continue
        if len(set(found)) >= MIN_DATES:
            apart = np.diff(_step_of(found)[0])
            readings.append((float((apart != np.median(apart)).mean()), found))
    return min(readings, key=lambda reading: reading[0])[1] if readings else None


def _reader(form: str) -> Callable[[str], datetime]:
    return lambda cell: datetime.strptime(cell, form)


def _step_of(times: list[datetime]) -> tuple[np.ndarray, int, str, tuple[int, ...]]:
    """Dates as whole numbers (N,), how far two neighbours are apart, that in words, and what seasons it suggests."""
    start = datetime(1970, 1, 1)
    seconds = np.array([round((time - start).total_seconds()) for time in times])
    step = int(median(np.diff(np.unique(seconds))))
    if step >= 28 * DAY:
        months = np.array([12 * time.year + time.month for time in times])
        step = max(1, int(median(np.diff(np.unique(months)))))
        words = f"{step // 12} year" if step % 12 == 0 else f"{step} month"
        return months, step, _plural(words), (12 // step,) if step < 12 and 12 % step == 0 else ()
    days = seconds // DAY
    if step == DAY and not np.isin((days + 3) % 7, (5, 6)).any() and days.max() - days.min() >= 14:
        return np.busday_count("1970-01-01", days.astype("datetime64[D]")), 1, "1 working day", (5, 261)
    for size, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")):
        if step % size == 0:
            return seconds, step, _plural(f"{step // size} {name}"), _seasons(step)
    return seconds, max(1, step), "less than a second", ()


def _seasons(step: int) -> tuple[int, ...]:
    """Of days a week and a year, of hours a day and a week, of minutes an hour and a day, in whole steps."""
    if step == 7 * DAY:
        return (52,)
    lengths = (7 * DAY, 365 * DAY) if step >= DAY else (DAY, 7 * DAY) if step > 5 * MINUTE else (HOUR, DAY)
    return tuple(length // step for length in lengths if length % step == 0 and length > step)


def _plural(words: str) -> str:
    return words if words.startswith("1 ") else f"{words}s"


def _oddities(column: str, ticks: np.ndarray, step: int, cells: Sequence[str], lines: Sequence[int]) -> Iterator[str]:
    apart = np.diff(ticks)
    for is_odd, one, many, why in (
        (
            apart > 1.5 * step,
            "gap",
            "gaps",
            "rows are taken for evenly spaced; put in the rows that are missing, left empty",
        ),
        (apart == 0, "repeated date", "repeated dates", "keep one row for each"),
        (apart < 0, "date before the one above it", "dates before the one above them", "sort the rows by time"),
    ):
        places = np.flatnonzero(is_odd)
        if len(places):
            at = int(places[0])
            count = f"{len(places):,} {one if len(places) == 1 else many}"
            where = f"line {lines[at + 1]}, {cells[at + 1].strip()} behind {cells[at].strip()}"
            first = where if len(places) == 1 else f"the first in {where}"
            yield f"column {column}: {count} ({first}): {why}"
