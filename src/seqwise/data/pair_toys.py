"""Built-in pairs whose answers are known, made by libraries that know how to write: no file, no download.

    dates:en-fr      a day in one of several styles of English -> its long form in French          (Babel, CLDR)
    numbers:en-de    a whole number below a thousand million in words -> the same in German        (num2words)

for any two languages that the library knows, and as many training pairs as a second colon asks for
(numbers:en-de:50000). Valid and test hold the same values whatever the languages and however many pairs are asked
for; from 1,000 pairs on, the training part of a smaller set is the beginning of a larger one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.metadata import version

import num2words
from babel import Locale, localedata
from babel.dates import DateTimeFormat, tokenize_pattern

from ..errors import DataError, did_you_mean
from .builtin import PAIR_TOYS, TOYS_VERSION, write_once
from .pair_files import Pair
from .paths import cache_folder

HELD_OUT = {"valid": 1_000, "test": 2_000}
TRAIN_PAIRS = 20_000
MAX_NUMBER_PAIRS = 1_000_000  # training pairs
MAX_DIGITS = 9
ALPHABET = 100  # numbers below this are what all others are said with: they are trained on, from 1,000 pairs on
UNSOUND = ("am", "az", "tet", "tr")  # num2words 0.5.14 says 10,000 and 11,000 alike in az, others too; am never ends
FIRST_DAY, LAST_DAY = date(1600, 1, 1), date(2399, 12, 31)
NUM_DAYS = (LAST_DAY - FIRST_DAY).days + 1
FIELDS = {"d": "day", "M": "month", "L": "month", "y": "year"}  # letters of a CLDR pattern


def toy_parts(name: str) -> dict[str, list[Pair]]:
    """'dates:en-fr:500' -> train, valid and test; the same name always gives the same pairs."""
    toy = _parse(name)
    if toy.kind == "numbers":
        return _number_parts(toy)
    return {part: [(source.text, target.text) for source, target in pairs] for part, pairs in date_pairs(name).items()}


@dataclass(frozen=True)
class _Toy:
    kind: str
    source: str
    target: str
    count: int
    """Training pairs."""


def _parse(name: str) -> _Toy:
    kind, *rest = name.split(":")
    languages = rest[0].split("-") if rest else []
    if kind not in PAIR_TOYS or len(rest) not in (1, 2) or len(languages) != 2:
        raise DataError(
            f'"{name}": expected two languages, and a number of training pairs if wanted: {kind}:en-fr or '
            f"{kind}:en-fr:50000 (a region with an underscore: pt_BR)."
        )
    known = number_languages() if kind == "numbers" else date_languages()
    for language in languages:
        if kind == "numbers" and language in UNSOUND:
            raise DataError(
                f'"{name}": num2words writes some numbers wrongly in "{language}". Choose another language.'
            )
        if language not in known:
            library = "num2words" if kind == "numbers" else "Babel"
            shown = [code for code in known if "_" not in code]
            raise DataError(f'"{name}": {library} has no language "{language}". {did_you_mean(language, shown)}')
    limit = MAX_NUMBER_PAIRS if kind == "numbers" else NUM_DAYS - sum(HELD_OUT.values())
    count = rest[1] if len(rest) == 2 else str(TRAIN_PAIRS)
    if not (count.isascii() and count.isdecimal() and len(count) < 10 and 1 <= int(count) <= limit):
        raise DataError(f'"{name}": expected a whole number of training pairs from 1 to {limit:,} behind the colon.')
    return _Toy(kind, languages[0], languages[1], int(count))


def _distinct(draw: Callable[[], int], count: int, seen: set[int]) -> Iterator[int]:
    """`count` values that were not seen before; they are then."""
    for _ in range(count):
        value = draw()
        while value in seen:
            value = draw()
        seen.add(value)
        yield value


# -- numbers -----------------------------------------------------------------------------------------------------


def number_languages() -> list[str]:
    """With their regions: es, es_CO, …"""
    return sorted(name for name in num2words.CONVERTER_CLASSES if name not in UNSOUND)


def number_in_words(value: int, language: str) -> str:
    return str(num2words.num2words(value, lang=language)).strip()


def number_values(count: int) -> dict[str, list[int]]:
    """Distinct numbers below 10^9 for each part; each number of digits is as likely as any other, while they last."""
    rng = random.Random("numbers")

    def draw() -> int:
        digits = rng.randint(1, MAX_DIGITS)
        return rng.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)

    alphabet = list(range(ALPHABET)) if count >= 1_000 else []
    seen = set(range(ALPHABET))
    held_out = {part: list(_distinct(draw, num, seen)) for part, num in HELD_OUT.items()}
    train = alphabet + list(_distinct(draw, count - len(alphabet), seen))
    return {"train": train, **held_out}


def _number_parts(toy: _Toy) -> dict[str, list[Pair]]:
    """From the cache, as writing 23,000 numbers takes some seconds."""
    made_by = f"{TOYS_VERSION}-{version('num2words')}"
    path = cache_folder() / "builtin" / f"numbers-{toy.source}-{toy.target}-{toy.count}-{made_by}.tsv"
    write_once(path, lambda: "".join(_number_lines(toy)))
    parts: dict[str, list[Pair]] = {part: [] for part in ("train", *HELD_OUT)}
    for line in path.read_text(encoding="utf-8").splitlines():
        part, source, target = line.split("\t")
        parts[part].append((source, target))
    return parts


def _number_lines(toy: _Toy) -> Iterator[str]:
    for part, values in number_values(toy.count).items():
        for value in values:
            yield f"{part}\t{number_in_words(value, toy.source)}\t{number_in_words(value, toy.target)}\n"


# -- dates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrittenDate:
    text: str
    places: dict[str, slice]
    """Which characters of the text are the day, the month and the year."""


@cache
def date_languages() -> list[str]:
    """With their regions: en, en_GB, …; "root" is the form that stands in where a language has none."""
    return sorted(name for name in localedata.locale_identifiers() if name != "root")


def write_date(day: date, pattern: str, language: str) -> WrittenDate:
    """A day as a CLDR pattern such as 'd MMMM y' has it."""
    fields = DateTimeFormat(day, Locale.parse(language))
    text, places = "", {}
    for token in _tokens(pattern):
        start = len(text)
        if isinstance(token, str):
            text += token
            continue
        letter, width = token
        text += fields[letter * width]
        if letter in FIELDS:
            places[FIELDS[letter]] = slice(start, len(text))
    return WrittenDate(text, places)


def _tokens(pattern: str) -> list[str | tuple[str, int]]:
    """ "d 'de' MMMM" -> ('d', 1), ' de ', ('M', 4): fields by letter and width, and what stands between them."""
    return [token for _, token in tokenize_pattern(pattern)]


def long_style(language: str) -> str:
    return str(Locale.parse(language).date_formats["long"].pattern)


@cache
def date_styles(language: str) -> list[str]:
    """The patterns that Babel offers for a language from which a day can be read without guessing.

    Years are whole; and where two patterns write two days in the same way (3/5 and 5/3), only the first is taken.
    """
    locale = Locale.parse(language)
    candidates = [str(locale.date_formats[name].pattern) for name in ("full", "long", "medium")]
    skeletons = locale.datetime_skeletons
    candidates += [str(getattr(skeletons[s], "pattern", skeletons[s])) for s in ("yMMMEd", "yMd") if s in skeletons]
    styles: list[str] = []
    meaning: dict[str, date] = {}
    for pattern in dict.fromkeys(candidates):
        if not _is_whole(pattern):
            continue
        days = [date(2000, 1, 1) + timedelta(days=n) for n in range(366)]
        texts = {day: write_date(day, pattern, language).text for day in days}
        is_clear = len(set(texts.values())) == len(days)
        if is_clear and all(meaning.get(text, day) == day for day, text in texts.items()):
            meaning |= {text: day for day, text in texts.items()}
            styles.append(pattern)
    return styles


def _is_whole(pattern: str) -> bool:
    """Day, month and all digits of the year."""
    fields = [token for token in _tokens(pattern) if not isinstance(token, str)]
    return {FIELDS.get(letter) for letter, _ in fields} >= {"day", "month", "year"} and ("y", 2) not in fields


def date_pairs(name: str) -> dict[str, list[tuple[WrittenDate, WrittenDate]]]:
    """The pairs of toy_parts(name), with the places of day, month and year on both sides."""
    toy = _parse(name)
    days, styles = random.Random("days"), random.Random("styles")
    offered, wanted = date_styles(toy.source), long_style(toy.target)
    seen: set[int] = set()
    parts: dict[str, list[tuple[WrittenDate, WrittenDate]]] = {}
    for part, count in (*HELD_OUT.items(), ("train", toy.count)):
        parts[part] = []
        for number in _distinct(lambda: days.randrange(NUM_DAYS), count, seen):
            day = FIRST_DAY + timedelta(days=number)
            source = write_date(day, styles.choice(offered), toy.source)
            parts[part].append((source, write_date(day, wanted, toy.target)))
    return {part: parts[part] for part in ("train", *HELD_OUT)}
