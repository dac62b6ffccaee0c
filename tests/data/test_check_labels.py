"""The preflight of labelled texts and tagged words: what is counted, and what is worth a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.annotated import LabelledData, LabelledRow, TaggedData, TaggedRow
from seqwise.data.check_labels import MAX_LABELS, LabelCheck, check_labels, counts_by_part, with_warnings
from seqwise.data.check_pairs import Quantiles
from seqwise.data.check_tags import check_tags
from seqwise.data.toys import open_examples
from seqwise.errors import ConfigError

COMMON = [f"{first}{second}" for first in "abcde" for second in "wxyz"]


def texts(num: int, *, first: int = 0) -> list[LabelledRow]:
    """Two labels in equal shares; each text stands once."""
    rows = []
    for place in range(first, first + num):
        words = [COMMON[place // 20**power % 20] for power in range(4)]
        rows.append(LabelledRow((" ".join(words),), ("bad", "good")[place % 2]))
    return rows


def checked(train: list[LabelledRow], valid: list[LabelledRow], asks_for: Any = "label") -> LabelCheck:
    return check_labels(LabelledData("x.tsv", {"train": train, "valid": valid}, asks_for, "split as given", ["a note"]))


def test_sound_rows_have_nothing_odd() -> None:
    found = checked(texts(400), texts(50, first=400))
    train, valid = found.parts["train"], found.parts["valid"]
    assert found.warnings == []
    assert (train.rows, valid.rows, found.vocabulary) == (400, 50, 20)
    assert train.labels == {"bad": 200, "good": 200}
    assert train.words == Quantiles(4, 4, 4, 4)
    assert (train.copies, train.two_answers, valid.known_texts, valid.unknown_words) == (0, 0, 0, 0)
    told = list(with_warnings(found.sentences(), found.warnings))
    assert told[:2] == [found.description, "a note"]
    assert any(line.startswith("valid: 50 rows; words of a text 4 (4 to 4, at most 4), characters ") for line in told)
    assert told[-1] == "nothing suspicious found"
    assert list(found.tables()) == [
        [["label", "train", "share", "valid", "share"], ['"bad"', "200", "50.0 %", "25", "50.0 %"],
         ['"good"', "200", "50.0 %", "25", "50.0 %"]]
    ]  # fmt: skip
    assert json.loads(json.dumps(found.to_dict()))["parts"]["train"]["labels"] == {"bad": 200, "good": 200}


def test_what_is_odd_is_told() -> None:
    train = texts(400)
    odd = [
        *(LabelledRow(row.texts, "good") for row in train),  # half of them with another label, all of them twice
        LabelledRow(("zebra " * 1_200,), "good"),
        *[LabelledRow(("aw",), "rare")] * 3,
    ]
    valid = [*train[:10], *[LabelledRow(("zebras aw giraffes",), "good")] * 20]
    found = checked([*train, *odd], valid)
    facts = found.parts["train"]
    assert (facts.rows, facts.copies, facts.two_answers) == (804, 402, 200)
    assert found.parts["valid"].known_texts == 10
    assert found.parts["valid"].unknown_words == 40  # "aw" is known
    assert found.warnings == [
        'train: 1 label has fewer than 10 rows to learn from: "rare"',
        "train: 402 of 804 rows (50 %) have texts that stood there before",
        "train: 200 texts stand there with different answers: no model can be right on all of them",
        "train: the longest text has 1,200 words (the median 4): is it one text?",
        "valid: 19 of 30 rows (63 %) have texts that stood there before",
        "valid: 10 of 30 texts (33 %) stand in the training part too: scores on it will look better than they are",
        "valid: 40 % of its words never occur in the training part: smaller pieces may help (--tokenizer bpe)",
    ]


def test_a_label_that_is_nearly_all_is_told_and_so_are_parts_that_differ() -> None:
    train = [LabelledRow(row.texts, "good" if place % 20 else "bad") for place, row in enumerate(texts(400))]
    valid = [LabelledRow(row.texts, "bad") for row in texts(20, first=400)]
    assert checked(train, valid).warnings == [
        'train: 95 % of all rows have the label "good": who always says so is mostly right, so look at macro F1',
        "valid: labels have other shares than in the training part (95 % of rows apart)",
    ]
    few = checked(texts(100), texts(20, first=100)).warnings
    assert few == ["the training part has only 100 rows: expect counting to do as well as a network"]


def test_numbers_and_sets_are_counted_in_their_own_way() -> None:
    numbers = [LabelledRow(row.texts, float(place % 5)) for place, row in enumerate(texts(400))]
    found = checked(numbers, numbers[:1], "number")
    assert found.parts["train"].numbers == Quantiles(0, 2, 4, 4)
    assert list(found.tables()) == []
    assert "train: numbers 2 (0 to 4, at most 4)" in list(found.sentences())
    several = [LabelledRow(row.texts, ("a", "b") if place % 2 else ()) for place, row in enumerate(texts(400))]
    found = checked(several, several[:2], "labels")
    assert (found.parts["train"].labels, found.parts["train"].unlabelled) == ({"a": 200, "b": 200}, 200)
    assert "train: no label is right for 200 of 400 rows" in found.warnings


def test_names_and_codes_are_not_blamed_for_words_that_are_new() -> None:
    names = [LabelledRow((f"Smith{place}",), ("x", "y")[place % 2]) for place in range(400)]
    assert checked(names, [LabelledRow(("Miller",), "x"), LabelledRow(("Meyer",), "y")]).warnings == []


def test_of_many_labels_the_rare_are_summed() -> None:
    counts = {"train": {f"l{n:03}": 1000 - n for n in range(MAX_LABELS + 7)}, "test": {"new": 3}}
    table = counts_by_part("label", counts, {"train": 1_000_000, "test": 4})
    assert len(table) == MAX_LABELS + 2
    assert table[1][:2] == ['"l000"', "1,000"]
    assert table[-1] == ["8 others", "6,699", "0.7 %", "3", "75.0 %"]


def test_examples_that_are_made_by_rule_are_refused() -> None:
    with pytest.raises(ConfigError, match="parity:4 is made by rule"):
        check_labels(open_examples("parity:4"))


def tagged(num: int, *, first: int = 0) -> list[TaggedRow]:
    rows = []
    for place in range(first, first + num):
        words = [COMMON[place // 20**power % 20] for power in range(4)]
        row = TaggedRow((*words, "Oslo", "city"), (*("O",) * 4, "B-LOC", "I-LOC"), ("ask", "tell")[place % 2])
        rows.append(row)
    return rows


def tags(train: list[TaggedRow], valid: list[TaggedRow], scheme: str = "IOB2") -> Any:
    return check_tags(TaggedData("x.conll", {"train": train, "valid": valid}, scheme, "split as given", ["a note"]))


def test_tags_entities_and_labels_of_rows_are_counted() -> None:
    found = tags(tagged(2_000), tagged(20, first=2_000))
    assert found.warnings == []
    train = found.parts["train"]
    assert (train.rows, train.words, train.entities, train.labels) == (
        2_000, 12_000, {"LOC": 2_000}, {"ask": 1_000, "tell": 1_000},
    )  # fmt: skip
    assert train.tags == {"B-LOC": 2_000, "I-LOC": 2_000, "O": 8_000}
    assert (found.vocabulary, found.ambiguous) == (22, 0)
    assert "train: 2,000 rows of 12,000 words, 2,000 entities, 0 copies; words of a row 6 (6 to 6, at most 6)" in list(
        found.sentences()
    )
    types, labels = found.tables()
    assert types == [["type", "train", "share", "valid", "share"], ['"LOC"', "2,000", "100.0 %", "20", "100.0 %"]]
    assert labels[1] == ['"ask"', "1,000", "50.0 %", "10", "50.0 %"]
    plain = tags(tagged(2_000), tagged(20, first=2_000), scheme="")
    assert [row[0] for row in next(plain.tables())] == ["tag", '"O"', '"B-LOC"', '"I-LOC"']
    json.dumps(found.to_dict())


def test_odd_tags_are_told() -> None:
    train = [*tagged(100), TaggedRow(("aw",) * 600, ("B-ODD", *("O",) * 599), "ask")]
    new = [TaggedRow(("zebras", "sleep"), ("O", "O"), "ask")] * 5
    found = tags(train, [*tagged(3), *new])
    assert found.ambiguous == 1  # "aw" is O, and once odd
    assert found.warnings == [
        "the training part has only 1,200 words: expect the most frequent tag of each word to do as well as a network",
        "train: 1 type of entity stands there fewer than 10 times, which is little to learn from",
        "valid: labels have other shares than in the training part (37 % of rows apart)",
        "train: the longest row has 600 words: is it one sentence?",
        "valid: 3 of 8 rows (38 %) stand in the training part too: scores on it will look better than they are",
        "valid: 36 % of its words never occur in the training part",
    ]


def test_the_command_checks_labels_and_tags(terminal: Any, tmp_path: Path) -> None:
    rows = "".join(f"{row.texts[0]}\t{row.answer}\n" for row in texts(400))
    (tmp_path / "reviews.tsv").write_text("text\tlabel\n" + rows)
    out = terminal.done("data", "check", "reviews.tsv")[0]
    assert '"bad"     180  50.0 %     10  50.0 %    10  50.0 %' in out
    assert out.endswith("nothing suspicious found\n")
    found = json.loads(terminal.done("data", "check", "reviews.tsv", "--json")[0])["results"][0]
    assert found["parts"]["train"]["labels"] == {"bad": 180, "good": 180}
    lines = "\n".join("".join(f"{w} {t}\n" for w, t in zip(r.words, r.tags, strict=True)) for r in tagged(200))
    (tmp_path / "places.conll").write_text(lines)
    out = terminal.done("data", "check", "places.conll", "--task", "tags")[0]
    assert '"LOC"    180' in out
    assert "look at this: the training part has only 1,080 words" in out
    assert "is made by rule" in terminal.refuses("data", "check", "parity:4")
