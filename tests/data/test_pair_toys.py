"""Built-in pairs: answers typed by hand, values distinct across parts, the same name gives the same pairs."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from babel.dates import format_date, format_skeleton

from seqwise.data.pair_toys import (
    date_languages,
    date_pairs,
    date_styles,
    long_style,
    number_in_words,
    number_languages,
    number_values,
    toy_parts,
    write_date,
)
from seqwise.data.pairs import open_pairs
from seqwise.errors import DataError


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "March 5, 1987"),
        ("en_GB", "5 March 1987"),
        ("fr", "5 mars 1987"),
        ("de", "5. März 1987"),
        ("es", "5 de marzo de 1987"),
        ("it", "5 marzo 1987"),
        ("nl", "5 maart 1987"),
        ("pt_BR", "5 de março de 1987"),
        ("ja", "1987年3月5日"),
        ("zh", "1987年3月5日"),
        ("hu", "1987. március 5."),
        ("fi", "5. maaliskuuta 1987"),
    ],
)
def test_the_long_form_of_a_day(language: str, expected: str) -> None:
    assert write_date(date(1987, 3, 5), long_style(language), language).text == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Thursday, March 5, 1987", "March 5, 1987", "Mar 5, 1987", "Thu, Mar 5, 1987", "3/5/1987"]),
        ("fr", ["jeudi 5 mars 1987", "5 mars 1987", "5 mars 1987", "jeu. 5 mars 1987", "05/03/1987"]),
        ("de", ["Donnerstag, 5. März 1987", "5. März 1987", "05.03.1987", "Do., 5. März 1987", "5.3.1987"]),
        ("ja", ["1987年3月5日木曜日", "1987年3月5日", "1987/03/05", "1987年3月5日(木)", "1987/3/5"]),
    ],
)
def test_the_styles_of_a_language(language: str, expected: list[str]) -> None:
    day = date(1987, 3, 5)
    assert [write_date(day, style, language).text for style in date_styles(language)] == expected


@pytest.mark.parametrize("language", ["en", "fr", "de", "ja", "ru", "ar", "th", "he", "tr", "pt_BR", "ckb", "eu"])
def test_days_are_written_as_babel_writes_them(language: str) -> None:
    rng = random.Random(0)
    for _ in range(20):
        day = date(1600, 1, 1) + timedelta(days=rng.randrange(290_000))
        written = {write_date(day, style, language).text for style in date_styles(language)}
        by_babel = {format_date(day, form, locale=language) for form in ("full", "long", "medium")}
        by_babel |= {format_skeleton(skeleton, day, locale=language) for skeleton in ("yMMMEd", "yMd")}
        assert written <= by_babel
        assert write_date(day, long_style(language), language).text == format_date(day, "long", locale=language)
        assert all(str(day.year) in text for text in written)


@pytest.mark.parametrize("language", ["en", "en_GB", "fr", "de", "ja", "ru", "he", "hu", "fa", "ckb", "mr"])
def test_a_text_stands_for_one_day_only(language: str) -> None:
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(366)]
    meaning: dict[str, date] = {}
    assert len(date_styles(language)) >= 3
    for style in date_styles(language):
        for day in days:
            assert meaning.setdefault(write_date(day, style, language).text, day) == day


@pytest.mark.parametrize("name", ["dates:en-fr:50", "dates:fr-ja:50", "dates:ja-en:50", "dates:ru-hu:50"])
def test_the_places_of_day_month_and_year_are_known(name: str) -> None:
    pairs = date_pairs(name)["train"]
    assert [(source.text, target.text) for source, target in pairs] == toy_parts(name)["train"]
    for source, target in pairs:
        assert set(source.places) == set(target.places) == {"day", "month", "year"}
        for field in ("day", "year"):
            assert int(source.text[source.places[field]]) == int(target.text[target.places[field]])
    assert len({source.text[source.places["month"]] for source, _ in pairs}) >= 12


def test_the_places_of_one_day() -> None:
    written = write_date(date(1987, 3, 5), "EEEE, MMMM d, y", "en")
    assert written.text == "Thursday, March 5, 1987"
    assert {name: written.text[place] for name, place in written.places.items()} == {
        "day": "5",
        "month": "March",
        "year": "1987",
    }


def test_french_days_follow_from_english_ones() -> None:
    months = ["janvier", "février", "mars", "avril", "mai", "juin"]
    months += ["juillet", "août", "septembre", "octobre", "novembre", "décembre"]
    for source, target in date_pairs("dates:en-fr:200")["test"]:
        day, month, year = target.text.split()
        assert (source.text[source.places["day"]], source.text[source.places["year"]]) == (day, year)
        spelled = source.text[source.places["month"]]
        english = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        number = int(spelled) if spelled.isdigit() else english.index(spelled[:3]) + 1
        assert months[number - 1] == month


@pytest.mark.parametrize(
    ("value", "language", "expected"),
    [
        (0, "en", "zero"),
        (21, "en", "twenty-one"),
        (1_999, "en", "one thousand, nine hundred and ninety-nine"),
        (0, "de", "null"),
        (21, "de", "einundzwanzig"),
        (1_999, "de", "eintausendneunhundertneunundneunzig"),
        (2_000_001, "de", "zwei Millionen eins"),
        (71, "fr", "soixante et onze"),
        (80, "fr", "quatre-vingts"),
        (81, "fr", "quatre-vingt-un"),
        (71, "fr_CH", "septante et un"),
        (1_234, "es", "mil doscientos treinta y cuatro"),
        (101, "it", "centouno"),
        (10_000, "ja", "一万"),
        (123_456_789, "ja", "一億二千三百四十五万六千七百八十九"),
    ],
)
def test_numbers_in_words(value: int, language: str, expected: str) -> None:
    assert number_in_words(value, language) == expected


@pytest.mark.parametrize("language", number_languages())
def test_no_two_numbers_are_said_alike(language: str) -> None:
    rng = random.Random(1)
    values = {*range(130), *(1_000 * n + 1 for n in range(9, 130, 3)), *(10**6 * n for n in range(1, 130, 9))}
    values |= {rng.randrange(10**9) for _ in range(20)}
    words = [number_in_words(value, language) for value in values]
    assert len(set(words)) == len(values)
    assert all(text == text.strip() and text and "\t" not in text and "\n" not in text for text in words)


def test_parts_hold_distinct_values_of_every_length() -> None:
    values = number_values(20_000)
    assert {part: len(some) for part, some in values.items()} == {"train": 20_000, "valid": 1_000, "test": 2_000}
    assert len({value for some in values.values() for value in some}) == 23_000
    assert set(range(100)) <= set(values["train"])
    for part in values:
        lengths = Counter(len(str(value)) for value in values[part])
        assert all(lengths[digits] > 0.08 * len(values[part]) for digits in range(4, 10))
        assert lengths[3] > 0.02 * len(values[part])


def test_held_out_values_do_not_depend_on_how_many_are_asked_for() -> None:
    few, many = number_values(2_000), number_values(5_000)
    assert (few["valid"], few["test"]) == (many["valid"], many["test"])
    assert many["train"][:2_000] == few["train"]
    assert toy_parts("dates:en-fr:50")["test"] == toy_parts("dates:en-fr:100")["test"]
    assert toy_parts("dates:en-fr:100")["train"][:50] == toy_parts("dates:en-fr:50")["train"]


@pytest.mark.parametrize("name", ["dates:en-fr", "dates:de-ja:300", "numbers:es-it:300", "numbers:ja-vi:300"])
def test_the_pairs_of_a_name(name: str) -> None:
    data = open_pairs([name])
    count = 300 if name.endswith(":300") else 20_000
    assert data.description == (
        f"{name}: {count + 3_000:,} pairs of sequences; split as given (train {count:,}, valid 1,000, test 2,000)"
    )
    assert data.notes == []
    sources = [source for pairs in data.parts.values() for source, _ in pairs]
    assert len(set(sources)) == len(sources)
    assert open_pairs([name]).fingerprint == data.fingerprint


def test_numbers_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path))
    first = toy_parts("numbers:es-ja:10")
    assert len(list((tmp_path / "builtin").iterdir())) == 1
    monkeypatch.setattr("seqwise.data.pair_toys.number_in_words", None)
    assert toy_parts("numbers:es-ja:10") == first


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path))
    (tmp_path / "builtin").write_text("a file, where a folder should be")
    with pytest.raises(DataError, match=r"cannot write .* set SEQWISE_CACHE to a folder on another disk"):
        toy_parts("numbers:es-ja:10")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dates", '"dates": expected two languages, and a number of training pairs if wanted: dates:en-fr or '),
        ("numbers:en", '"numbers:en": expected two languages, '),
        ("dates:en-pt-br", "(a region with an underscore: pt_BR)."),
        ("dates:en-fr:1:2", "expected two languages"),
        ("dates:en-frx", 'Babel has no language "frx". Did you mean "fr"?'),
        ("numbers:en-dde", 'num2words has no language "dde". Did you mean "de"?'),
        ("numbers:en-qqq", 'num2words has no language "qqq". Known: ar, be, '),
        ("numbers:en-tr", 'num2words writes some numbers wrongly in "tr". Choose another language.'),
        ("numbers:en-de:0", "expected a whole number of training pairs from 1 to 1,000,000 behind the colon."),
        ("numbers:en-de:many", "expected a whole number of training pairs from 1 to 1,000,000"),
        ("numbers:en-de:-5", "expected a whole number of training pairs"),
        ("numbers:en-de:99999999999999999999", "expected a whole number of training pairs"),
        ("dates:en-fr:289195", "expected a whole number of training pairs from 1 to 289,194 behind the colon."),
    ],
)
def test_a_name_that_makes_no_sense_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        open_pairs([name])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_regions_are_languages_too() -> None:
    assert {"en_GB", "pt_BR"} <= set(date_languages())
    assert "fr_CH" in number_languages()
    assert toy_parts("dates:en-en_GB:10")["train"][0] == ("Jun 10, 2195", "10 June 2195")
