"""Texts with labels are recognised before they are misread, and nothing else is taken for them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.kinds import task_for
from seqwise.data.labelled import refuse_labelled
from seqwise.errors import DataError

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
LABELLED = {
    "named.csv": lines(NUMBERED, ",", "text,label"),
    "first.csv": lines([(answer, text) for text, answer in ROWS], ",", "v1,v2"),
    "semicolons.csv": lines(NUMBERED, ";", "review;stars"),
    "quoted.csv": lines([(f'"{text}, and more"', answer) for text, answer in ROWS], ",", "text,label"),
    "id.csv": lines([(place, *row) for place, row in enumerate(NUMBERED)], ",", "id,text,label"),
    "few.csv": lines(NUMBERED[:5], ",", "text,label"),
    "plain.tsv": lines(ROWS, "\t"),
    "named.tsv": lines(ROWS, "\t", "sentence\tlabel"),
    "two.csv": lines([(n % 4 + 1, f"{text} title", text) for n, text in enumerate(TEXTS)], ","),
    "more.tsv": lines(
        [("gj04" if n < 50 else "cj99", n % 2, "*" * (n % 2), text) for n, text in enumerate(TEXTS)], "\t"
    ),
    "words.jsonl": objects(ROWS, "text", "label"),
    "numbers.jsonl": objects(NUMBERED, "text", "label"),
    "unnamed.jsonl": objects(ROWS, "a", "b"),
}
OTHER = {
    "pairs.tsv": lines([(text, text.upper()) for text in TEXTS], "\t"),
    "pairs.jsonl": objects([(text, text.upper()) for text in TEXTS], "source", "target"),
    "domains.tsv": lines([(text, text.upper(), n % 3) for n, text in enumerate(TEXTS)], "\t"),
    "diary.csv": lines([(text, n % 3, n * 1.5) for n, text in enumerate(TEXTS)], ","),
    "short.tsv": lines([(f"word{n}", "YES" if n % 2 else "NO") for n in range(100)], "\t"),
    "series.csv": lines([(f"2020-01-{n % 28 + 1:02} 00:00:00", n % 3) for n in range(100)], ",", "date,on"),
    "days.csv": lines([(f"Jan {n} 2020", n % 2) for n in range(100)], ",", "date,on"),
    "weather.csv": lines([(n * 1.5, "light rain and snow") for n in range(100)], ",", "temperature,sky"),
    "tweets.csv": lines([(text, n * 7) for n, text in enumerate(TEXTS)], ",", "body,likes"),
    "damaged.jsonl": "{" * 50,
    "ragged.tsv": "a\tb\nc\n",
    "empty.csv": "",
}


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_text_is_told_and_what_to_do(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LABELLED[name])
    with pytest.raises(DataError) as caught:
        task_for(None, [str(path)])
    told = str(caught.value)
    assert told.startswith(f"{path}: this looks like labelled text (texts in ")
    assert "write them into a .txt file" in told
    assert "add --task pairs or --task numbers" in told


def test_columns_and_some_labels_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(LABELLED["named.csv"])
    with pytest.raises(DataError, match=r'texts in text, labels such as "0", "1" in label'):
        refuse_labelled(tmp_path / "x.csv")


@pytest.mark.parametrize("name", OTHER)
def test_other_tables_are_left_to_their_readers(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(OTHER[name])
    refuse_labelled(path)


@pytest.mark.parametrize("name", ["named.csv", "plain.tsv", "words.jsonl"])
def test_who_names_task_or_columns_is_believed(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LABELLED[name])
    assert task_for("pairs", [str(path)]) == "pairs"
    assert task_for(None, [str(path)], ["text", "label"]) == ("numbers" if name.endswith(".csv") else "pairs")


def test_a_folder_of_labelled_text_is_told(tmp_path: Path) -> None:
    for part in ("train", "valid"):
        (tmp_path / f"{part}.tsv").write_text(LABELLED["plain.tsv"])
    with pytest.raises(DataError, match="looks like labelled text"):
        task_for(None, [str(tmp_path)])
