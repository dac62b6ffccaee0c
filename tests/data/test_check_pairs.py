"""The preflight of pairs names what is long, uneven, copied or known from training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.check_pairs import Quantiles, check_pairs
from seqwise.data.pairs import Pair, open_pairs

TRAIN = [(f"the number {i} is nice", f"die Zahl {i} ist sehr nett") for i in range(2_000)]
VALID = [(f"the number {i} is nice", f"die Zahl {i} ist sehr nett") for i in range(3_000, 3_050)]


def write(path: Path, pairs: list[Pair]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return path


def check(tmp_path: Path, train: list[Pair], valid: list[Pair]) -> Any:
    return check_pairs(open_pairs([write(tmp_path / "a.tsv", train)], valid=write(tmp_path / "b.tsv", valid)))


def test_sound_pairs_have_nothing_odd(tmp_path: Path) -> None:
    found = check(tmp_path, TRAIN, VALID)
    assert found.warnings == []
    train, valid = found.parts["train"], found.parts["valid"]
    assert (train.pairs, valid.pairs) == (2_000, 50)
    assert train.source_words == Quantiles(5, 5, 5, 5)
    assert train.target_words == Quantiles(6, 6, 6, 6)
    assert valid.source_characters == Quantiles(23, 23, 23, 23)
    assert valid.target_characters == Quantiles(27, 27, 27, 27)
    assert valid.length_ratio.middle == pytest.approx(27 / 23)
    assert (train.copies, train.same_sides, valid.known_sources, valid.known_pairs) == (0, 0, 0, 0)
    assert (found.source_alphabet, found.target_alphabet) == (
        len(set("the number is nice0123456789")),
        len(set("die Zahl ist sehr nett0123456789")),
    )
    sentences = list(found.sentences())
    assert sentences[0] == found.description
    assert "valid: source characters 23 (23 to 23, at most 23), words 5 (5 to 5, at most 5)" in sentences
    assert sentences[-1] == "nothing suspicious found"


def test_what_is_odd_is_told(tmp_path: Path) -> None:
    train = [*TRAIN, *TRAIN[:300], *((source, source) for source, _ in TRAIN[:200])]
    valid = [*VALID, *TRAIN[:10], (TRAIN[0][0], "etwas anderes"), ("日本 " + "x" * 2_100, "日本")]
    found = check(tmp_path, train, valid)
    facts = found.parts["valid"]
    assert (found.parts["train"].copies, found.parts["train"].same_sides) == (300, 200)
    assert (facts.known_sources, facts.known_pairs) == (11, 10)
    assert facts.unseen_characters == 2_105  # x, w and two characters twice
    assert found.warnings == [
        "train: the target of 200 of 2,500 pairs (8 %) is the source itself",
        "train: 300 of 2,500 pairs (12 %) are copies of others in it",
        "valid: the longest source has 2,103 characters",
        "valid: the source of 11 of 62 pairs (18 %) stands in the training part too: "
        "scores on it will look better than they are",
        "valid: 2,105 characters never occur in the training part",
    ]


def test_sides_that_do_not_belong_together_are_told(tmp_path: Path) -> None:
    train = [(f"{i:04}" + "x" * (i % 7) * 5, "y" * (1 + (i % 5) * 10)) for i in range(2_000)]
    assert any("do the sides belong together?" in warning for warning in check(tmp_path, train, VALID).warnings)


def test_few_pairs_are_told_with_what_was_left_out(tmp_path: Path) -> None:
    found = check(tmp_path, [*TRAIN[:50], ("x", "")], VALID)
    assert found.notes == ["train: 1 of 51 pairs have an empty side and are left out"]
    assert found.notes[0] in list(found.sentences())
    assert found.warnings[0].startswith("the training part has only 50 pairs: ")


def test_from_the_command_line(terminal: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", TRAIN)
    out, err = terminal.done("data", "check", path, "--split-at", "80/20")
    assert out.splitlines()[0] == (
        "pairs.tsv: 2,000 pairs of sequences; split by source 80/20 (train 1,600, valid 400)"
    )
    assert (out.splitlines()[-1], err) == ("nothing suspicious found", "")
    out, _ = terminal.done("data", "check", path, "--valid", write(tmp_path / "b.tsv", VALID), "--json")
    assert json.loads(out)["results"][0]["parts"]["valid"]["source_words"] == {
        "low": 5,
        "middle": 5,
        "high": 5,
        "most": 5,
    }


def test_two_texts_are_pairs_where_the_user_says_so(terminal: Any, tmp_path: Path) -> None:
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for side, file in enumerate(files):
        file.write_text("".join(f"{pair[side]}\n" for pair in TRAIN))
    assert "characters of text" in terminal.done("data", "check", *files)[0]
    assert "a.txt and b.txt: 2,000 pairs of sequences" in terminal.done("data", "check", *files, "--task", "pairs")[0]


def test_columns_are_passed_on(terminal: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"a": "x", "en": s, "de": t}) + "\n" for s, t in TRAIN))
    out, _ = terminal.done("data", "check", path, "--task", "pairs", "--columns", "en,de")
    assert "2,000 pairs of sequences" in out


def test_mistakes_are_one_sentence(terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\nc\n")
    assert terminal.refuses("data", "check", "x.tsv") == ('x.tsv: line 2 has no TAB, expected source TAB target: "c".')
    (tmp_path / "x.txt").write_text("some text\n" * 100)
    assert "--columns goes with numbers and pairs" in terminal.refuses("data", "check", "x.txt", "--columns", "a,b")
    assert 'unknown task "xyz". Known: text' in terminal.refuses("data", "check", "x.txt", "--task", "xyz")
    assert "x.txt: no tagged words in it." in terminal.refuses("data", "check", "x.txt", "--task", "tags")
    sentence = terminal.refuses("data", "check", "parity:8", "--task", "label")
    assert sentence == "parity:8 is made by rule, and sound by that; check files with texts and labels."
