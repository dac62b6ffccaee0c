"""seqwise evaluate on text: one row for each run, unknown words told, and whether two runs can be told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

KNOWN = "the cat sat on the mat\nthe dog sat on the log\na cat and a dog sat\n" * 60
NEW = "the zebra sat on the mattress\na giraffe and a crocodile sat\n" * 20


@pytest.fixture
def runs(terminal: Any, tmp_path: Path) -> list[str]:
    """Of characters and of words, on one text."""
    (tmp_path / "cats.txt").write_text(KNOWN)
    for kind in ("char", "word"):
        terminal.done("train", "cats.txt", "--model", "ngram", "--tokenizer", kind, "--out", kind)
    return ["char", "word"]


def test_a_word_model_pays_for_the_letters_of_words_it_does_not_know(
    terminal: Any, tmp_path: Path, runs: list[str]
) -> None:
    (tmp_path / "new.txt").write_text(NEW)
    found = terminal.done("evaluate", *runs, "new.txt")[0]
    titles, char, word = (line.split() for line in found.splitlines()[:3])
    assert titles[-1] == "unknown"
    assert (char[-2], word[-2]) == ("0.00", "28.57")  # 4 of 14 tokens, the ends of lines among them
    assert float(char[1]) < float(word[1])  # for nothing, the word model would have half of it
    assert "word: 80 of 280 tokens are unknown words (28.57 %); their letters are" in found
    assert "char is better than word by" in found
    assert "unknown=80:one token,spelled in bits" in found
    assert "unknown" not in terminal.done("evaluate", *runs)[0]


def test_the_share_of_unknown_words_stands_in_the_json(terminal: Any, tmp_path: Path, runs: list[str]) -> None:
    (tmp_path / "new.txt").write_text(NEW)
    text = terminal.done("evaluate", "word", "new.txt", "--json")[0]
    assert '"unknown_words": 80' in text
    assert json.loads(text)


def test_of_a_few_characters_nothing_can_be_told(terminal: Any, tmp_path: Path, runs: list[str]) -> None:
    (tmp_path / "few.txt").write_text("the cat sat on the mat\n")
    found = terminal.done("evaluate", *runs, "few.txt")[0]
    assert found.count("too little data  ") == 2
    assert "too little data to tell which is better" in found
    assert "is better than" not in found
    assert "not distinguishable" not in found
    assert '"is_enough": false' in terminal.done("evaluate", *runs, "few.txt", "--json")[0]
