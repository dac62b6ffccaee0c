"""Sentences about options, in the words of Python; none of ours is left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seqwise
from seqwise.errors import ConfigError
from seqwise.wording import all_speak_python, as_typed, counted, in_python, speaks_python

ROOT = Path(seqwise.__file__).parent


def test_one_is_singular() -> None:
    assert [counted(n, "token") for n in (0, 1, 2, 1200)] == ["0 tokens", "1 token", "2 tokens", "1,200 tokens"]
    assert counted(2, "series", "series") == "2 series"


SINGLE = re.compile(r"(?<![\d.,:-])1 (\w+s)\b")  # "1 tokens", but not "0.1 nats" and "90/5/1 parts"
NO_PLURALS = {"is", "was", "has", "does", "lies", "occurs", "series"}


def wrong_plurals(text: str) -> list[str]:
    return [found[0] for found in SINGLE.finditer(text) if found[1] not in NO_PLURALS]


def test_one_of_a_thing_is_told_as_one(terminal: Any, tmp_path: Path) -> None:
    """A line, a column, a step, a minute, a token of a prompt: wherever a number may be one."""
    (tmp_path / "line.txt").write_text("the cat sat on the mat and the rat sat on the cat " * 8 + "\n")
    (tmp_path / "one.csv").write_text("value\n" + "".join(f"{n % 7}\n" for n in range(60)) + "900\n" * 1)
    (tmp_path / "pair.tsv").write_text("".join(f"{a}{b}\t{b}{a}\n" for a in "abcde" for b in "fghij"))
    (tmp_path / "valid.tsv").write_text("aé\téa\n")
    commands = [
        [
            "train",
            "line.txt",
            "--model",
            "gpt",
            "--steps",
            "1",
            "--out",
            "gpt",
            "--set",
            "model.model_dim=8",
            "--set",
            "model.num_heads=2",
        ],
        ["train", "line.txt", "--model", "hmm", "--steps", "1", "--set", "training.restarts=1", "--out", "hmm"],
        ["train", "line.txt", "--model", "ngram", "--tokenizer", "word", "--out", "words"],
        ["train", "one.csv", "--model", "kalman", "--steps", "1", "--out", "numbers"],
        ["evaluate", "numbers", "--horizon", "1"],
        ["generate", "words", "--prompt", "wombat", "--max-tokens", "1"],
        ["inspect", "gpt", "--text", "th"],
        ["data", "check", "line.txt"],
        ["data", "check", "one.csv"],
        ["data", "check", "pair.tsv", "--valid", "valid.tsv"],
        ["inspect", "numbers", "--row", "0"],
    ]
    told = ""
    for command in commands:
        told += "".join(terminal.done(*command))
    told += "".join(path.read_text() for path in tmp_path.glob("*/card.md"))
    told += (tmp_path / "inspect.html").read_text()
    told += "".join(repr(seqwise.load(tmp_path / name)) for name in ("gpt", "words"))
    assert wrong_plurals(told) == []
    for single in (
        "in 1 line;",
        "1 number (value)",
        "over 1 step ",
        "- Training: 1 step,",
        "1 iteration,",
        "1 word is",
    ):
        assert single in told
    assert wrong_plurals("1 tokens, 0.1 nats, 11 steps, 1 series") == ["1 tokens"]


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("give one budget: --minutes, --steps or --epochs.", "give one budget: minutes=..., steps=... or epochs=..."),
        ("--minutes 0.5 should be above 1.", "minutes=0.5 should be above 1."),
        ("--max-latency-ms -1 should be", "max_latency_ms=-1 should be"),
        ('--split-at "90/20" should be two', 'split="90/20" should be two'),
        ("--from runs/x brings its own; drop --tokenizer.", 'start_from="runs/x" brings its own; drop tokenizer=...'),
        ("--tokenizer bpe: numbers have none", 'tokenizer="bpe": numbers have none'),
        ("--columns goes with files: --columns en,de", 'columns=... goes with files: columns=["en", "de"]'),
        ("such as --columns text=a,label=b.", 'such as columns=["text=a", "label=b"].'),
        ("Try --columns tags=xpos, or", 'Try columns=["tags=xpos"], or'),
        ("Add --valid FILE.", "Add valid=FILE."),
        ("--set a.b=1: unknown", 'overrides=["a.b=1"]: unknown'),
        ("a lower rate (--set training.rate=0.003).", 'a lower rate (overrides=["training.rate=0.003"]).'),
        ("Try --device cpu.", 'Try overrides=["training.device=cpu"].'),
        ("Go on with --resume, or another --out.", "Go on with seqwise.continue_training, or another out=..."),
        ("Train one with: seqwise train DATA --out runs/x", 'Train one with: seqwise.train(DATA, out="runs/x")'),
        ("name a file: seqwise evaluate RUN FILE.", "name a file: seqwise.load(RUN).evaluate(FILE)."),
        ("use: seqwise generate.", "use: seqwise.load(...).generate(...)."),
        ("go on with: seqwise train --resume --out runs/x", 'go on with: seqwise.continue_training("runs/x")'),
        ("--season goes with numbers; drop it.", "season=... goes with numbers; drop it."),
        ("--tokenizers goes with text; drop it.", "tokenizers=... goes with text; drop it."),
        ("see: seqwise data list", "see: seqwise data list"),
        ("nothing-to do here -- at all", "nothing-to do here -- at all"),
    ],
)  # fmt: skip
def test_options_become_arguments(typed: str, called: str) -> None:
    assert in_python(typed) == called


def test_a_comparison_goes_on_by_its_own_function() -> None:
    assert in_python("Go on with --resume.", resume="continue_comparison") == "Go on with seqwise.continue_comparison."


def sentences() -> Iterator[tuple[str, str]]:
    """Everything that is raised outside of the command line, with X for what is filled in; as an option, --season."""
    for path in ROOT.rglob("*.py"):
        if path.parent.name == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                parts = [part for part in ast.walk(node.exc.args[0]) if isinstance(part, ast.Constant)]
                sentence = "X".join(part.value for part in parts if isinstance(part.value, str))
                sentence = sentence.replace("--X", "--season")
                if "--" in sentence:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", sentence


def test_no_sentence_of_ours_has_options_left_in_python() -> None:
    found = dict(sentences())
    assert len(found) > 20
    left = {where: in_python(sentence) for where, sentence in found.items() if "--" in in_python(sentence)}
    assert left == {}


@speaks_python
def wrong(minutes: float) -> None:
    """Says so."""
    raise ConfigError(f"--minutes {minutes:g} is wrong.")


def test_functions_of_the_api_speak_python_but_not_to_who_types() -> None:
    with pytest.raises(ConfigError, match=r"^minutes=2 is wrong\.$"):
        wrong(2)
    with as_typed(), pytest.raises(ConfigError, match=r"^--minutes 2 is wrong\.$"):
        wrong(2)
    assert wrong.__doc__ == "Says so."


def test_what_is_iterated_over_speaks_python_too() -> None:
    def later() -> Iterator[int]:
        yield 1
        raise ConfigError("drop --seed.")

    @all_speak_python
    class Answers:
        def lines(self) -> Iterator[int]:
            return later()

        @property
        def tokenizer(self) -> str:
            raise ConfigError("drop --tokenizer.")

    lines = Answers().lines()
    assert next(lines) == 1
    with pytest.raises(ConfigError, match=r"drop seed=\.\.\."):
        next(lines)
    with pytest.raises(ConfigError, match=r"drop tokenizer=\.\.\."):
        _ = Answers().tokenizer
