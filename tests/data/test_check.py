"""The preflight: what is counted, and what is warned of."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.data.check import CheckResult, check_text
from seqwise.data.files import lines_of
from seqwise.data.source import open_text

EXAMPLES = settings(max_examples=50, deadline=None, derandomize=True, database=None)
LINES = [f"line {i}, which jumps quickly over the lazy dog, box of {i % 9}" for i in range(1000)]


def check(folder: Path, train: list[str], valid: list[str]) -> CheckResult:
    (folder / "train.txt").write_text("\n".join(train) + "\n")
    (folder / "valid.txt").write_text("\n".join(valid) + "\n")
    return check_text(open_text(folder))


def test_a_good_text_has_no_warnings_and_right_counts(tmp_path: Path) -> None:
    result = check(tmp_path, [*LINES, "", "  "], ["another one of that kind, also new"] * 3)
    assert result.warnings == []
    train = result.parts["train"]
    assert (train.lines, train.blank_lines) == (1002, 2)
    assert train.words == 1000 * 12
    assert train.characters == len("\n".join(LINES)) + 5
    assert (train.longest_line, train.longest_line_number) == (len(LINES[100]), 101)
    assert train.median_line == len(LINES[500])
    assert result.parts["valid"].lines == 3
    assert result.distinct_words == len({word for line in LINES for word in line.split()})
    assert result.distinct_characters == len(set("".join(LINES)))
    assert result.rare_characters == 0
    assert result.unseen_characters == {"valid": 0}
    assert json.loads(json.dumps(result.to_dict()))["parts"]["train"]["lines"] == 1002


def test_lines_of_the_training_part_in_another_part_are_found(tmp_path: Path) -> None:
    own = [f"a line that only this part has, {i}" for i in range(6)]
    result = check(tmp_path, [*LINES, "ROMEO:"], [*LINES[10:14], *own, "ROMEO:", f"  {LINES[0]} "])
    valid = result.parts["valid"]
    assert (valid.repeated_in_train, valid.comparable_lines) == (5, 11)  # short lines repeat by nature
    assert result.warnings == [
        "valid: 5 of 11 longer lines (45 %) stand in the training part too: scores on it will look better than they are"
    ]
    assert result.parts["train"].repeated_in_train == 0


def test_a_few_repeated_lines_are_counted_but_not_warned_of(tmp_path: Path) -> None:
    own = [f"a line that only this part has, {i}" for i in range(99)]
    result = check(tmp_path, LINES, [*own, LINES[5]])
    assert result.parts["valid"].repeated_in_train == 1
    assert result.warnings == []


def test_a_line_far_longer_than_the_others_is_told_by_its_number(tmp_path: Path) -> None:
    result = check(tmp_path, [*LINES[:40], "x" * 20_000, *LINES[40:]], ["short and new, but long enough"])
    assert result.warnings == [
        f"train: line 41 has 20,000 characters (the median line has {len(LINES[100])}): is it text?"
    ]


def test_characters_that_training_never_shows_are_counted(tmp_path: Path) -> None:
    result = check(tmp_path, LINES, ["ÄÖ and ÄÖ, which no one sees"])
    assert result.unseen_characters == {"valid": 4}
    assert result.warnings == [
        "valid: 4 characters never occur in the training part; each is spelled in several tokens"
    ]


def test_a_short_text_is_told_to_be_short(tmp_path: Path) -> None:
    (warning,) = check(tmp_path, LINES[:10], ["x" * 10]).warnings[:1]
    assert warning.startswith("the training part has only 5")
    assert warning.endswith("expect an n-gram to do as well as a network")


def test_a_text_of_one_character_has_nothing_to_learn(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a" * 20_000)
    result = check_text(open_text(path))
    assert any("a single kind of character: there is nothing to learn" in warning for warning in result.warnings)
    assert result.parts["train"].lines == 1


@EXAMPLES
@given(blocks=st.lists(st.text("ab\n", max_size=6), max_size=8))
def test_lines_are_those_of_the_whole_text(blocks: list[str]) -> None:
    text = "".join(blocks)
    expected = text.removesuffix("\n").split("\n") if text else []
    assert list(lines_of(iter(blocks))) == expected


def test_one_endless_line_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "endless.txt"
    path.write_text("ab cd " * 500_000)
    result = check_text(open_text(path))
    assert result.parts["train"].longest_line == result.parts["train"].characters
    assert any("train: line 1 has 2,700,000 characters" in warning for warning in result.warnings)
