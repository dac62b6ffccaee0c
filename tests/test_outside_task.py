"""A task added from outside: one file, registered, and every command knows it. No other file is touched.

Is a string a palindrome? A line holds the string, a space, and yes or no.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqwise
from seqwise import tasks
from seqwise.checks import TASK_NAMES
from seqwise.data.examples import ExampleData, ExampleStore
from seqwise.data.schema import LABEL, LabelSpec, Schema, TokenSpec, answer_schema
from seqwise.errors import ConfigError, DataError
from seqwise.evaluation.answers import LabelScore
from seqwise.goals.answer import AnswerGoal
from seqwise.goals.goal import OnProgress, Tell
from seqwise.models.contract import Model
from seqwise.settings import DataConfig, TokenizerConfig
from seqwise.text.characters import CharTokenizer

ANSWERS, LENGTH = ["no", "yes"], 6


class FoundPalindromes(LabelScore):
    def headline(self) -> str:
        return f"{100 * self.accuracy:.1f} % of the strings told apart"


class PalindromeGoal(AnswerGoal):
    metrics = ("accuracy",)

    def score(
        self,
        model: Model,
        store: ExampleStore,
        schema: Schema,
        config: DataConfig,
        *,
        scored: str,
        on_progress: OnProgress = lambda *_: None,
        **options: Any,
    ) -> FoundPalindromes:
        found = super().score(model, store, schema, config, scored=scored)
        assert isinstance(found, LabelScore)
        signature = f"palindromes|{found.signature}"
        return FoundPalindromes(found.wanted, found.answers, found.log_probs, found.names, signature)


class PalindromeTask:
    name = "palindrome"
    title = "strings that may be palindromes"
    kinds = (LABEL,)
    goal = PalindromeGoal()
    options: tuple[str, ...] = ()

    def open(self, config: DataConfig) -> ExampleData:
        return self._read(config.source[0], {"train": 0.8, "valid": 0.1, "test": 0.1})

    def open_other(self, source: str, split: str | None, schema: Schema, config: DataConfig) -> tuple[ExampleData, str]:
        return self._read(source, {"whole": 1.0}), "whole"

    def _read(self, source: str, shares: dict[str, float]) -> ExampleData:
        lines = [line.split() for line in Path(source).read_text().splitlines()]
        for number, line in enumerate(lines, start=1):
            if len(line) != 2 or len(line[0]) != LENGTH or line[1] not in ANSWERS:
                raise DataError(f"{source}: line {number}: expected a string of {LENGTH} letters, then yes or no.")
        tokenizer = self._tokenizer()
        inputs = np.stack([tokenizer.encode(string) for string, _ in lines])
        answers = np.array([ANSWERS.index(answer) for _, answer in lines])
        edges = np.cumsum([0, *(round(share * len(lines)) for share in shares.values())])
        parts = {
            part: ExampleStore(inputs[start:end], answers[start:end])
            for part, start, end in zip(shares, edges, edges[1:], strict=False)
        }
        return ExampleData(Path(source).name, parts, ANSWERS, tokenizer.vocab_size)

    def _tokenizer(self) -> CharTokenizer:
        return CharTokenizer(["\n", *"abc"])

    def schema(self, data: ExampleData, config: TokenizerConfig, tell: Tell, base: Schema | None = None) -> Schema:
        tokens = base.input("tokens", TokenSpec) if base is not None else TokenSpec(self._tokenizer())
        return answer_schema(tokens, LabelSpec(ANSWERS))

    def stores(
        self, data: ExampleData, schema: Schema, on_progress: OnProgress = lambda *_: None
    ) -> dict[str, ExampleStore]:
        return dict(data.parts)

    def store(self, data: ExampleData, part: str, schema: Schema) -> ExampleStore:
        return data.parts[part]


TASK = PalindromeTask()


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SEQWISE_TASKS", "")
    tasks.register(TASK)
    yield
    tasks.TASKS.pop("palindrome")
    TASK_NAMES.remove("palindrome")


@pytest.fixture(scope="module")
def strings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance, lines = random.Random(1), []
    for number in range(3000):
        half = "".join(chance.choices("abc", k=LENGTH // 2))
        other = half if number % 2 else "".join(chance.choices("abc", k=LENGTH // 2))
        string = half + other[::-1]
        lines.append(f"{string} {'yes' if string == string[::-1] else 'no'}")
    chance.shuffle(lines)
    path = tmp_path_factory.mktemp("strings") / "strings.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(strings: Path) -> Path:
    return strings.with_name("run")


OPTIONS = ["--task", "palindrome", "--set", "model.model_dim=32", "--set", "training.learning_rate=0.01"]


def test_it_trains_evaluates_predicts_and_inspects(terminal: Any, strings: Path, trained: Path, tmp_path: Path) -> None:
    code, out, err = terminal.run("train", strings, "--model", "gru", *OPTIONS, "--steps", "300", "--out", trained)
    assert (code, "of the strings told apart" in out) == (0, True), err
    code, out, _ = terminal.run("evaluate", trained, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["results"][0]["accuracy"] > 0.9  # the share of no and yes is nearly even
    assert found["results"][0]["signature"].startswith("palindromes|")
    (tmp_path / "two.txt").write_text("abccba yes\nabcabc no\n")
    code, out, _ = terminal.run("predict", trained, tmp_path / "two.txt")
    assert (code, [line.split("\t")[0] for line in out.splitlines()]) == (0, ["yes", "no"])
    code, out, err = terminal.run("inspect", trained, "--out", tmp_path / "page.html")
    assert code == 0, err
    assert "whose answer is" in (tmp_path / "page.html").read_text()


def test_it_is_compared(terminal: Any, strings: Path, tmp_path: Path) -> None:
    code, _, err = terminal.run(
        *("compare", strings, "--task", "palindrome", "--models", "gru", "--minutes", "0.5"),
        *("--out", tmp_path / "compared"),
    )
    assert code == 0, err
    found = json.loads((tmp_path / "compared" / "compare.json").read_text())
    assert (found["task"], found["kind"]) == ("palindrome", "label")
    assert {entry["family"] for entry in found["ladder"]} == {"gru"}


def test_what_is_learned_of_text_serves_it(strings: Path, tmp_path: Path) -> None:
    """A language model of the same letters, whose body is kept, and whose head is not."""
    text = tmp_path / "letters.txt"
    text.write_text("".join(f"{line.split()[0]}\n" for line in strings.read_text().splitlines()))
    small = ["model.model_dim=16", "training.context=16"]
    base = seqwise.train(text, "lstm", steps=20, out=tmp_path / "base", overrides=small)
    said: list[str] = []
    run = seqwise.train(
        strings, "lstm", task="palindrome", start_from=base.path, steps=2, out=tmp_path / "tuned", tell=said.append,
        overrides=["training.freeze=['body.*']"],
    )  # fmt: skip
    assert run.run.schema.specs["tokens"].to_dict() == base.run.schema.specs["tokens"].to_dict()
    before, after = base.model.state_dict(), run.model.state_dict()
    kept = [name for name in after if name.startswith("body.")]
    assert kept
    assert all((before[name] == after[name]).all() for name in kept)  # frozen, so still what it was
    assert any(sentence.startswith("kept: body.") for sentence in said)
    assert "started from scratch: head.label (2 tensors)" in said
    assert "left out: head.tokens" in said


def test_a_file_it_cannot_read_is_named(terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("abccba yes\nabc no\n")
    code, _, err = terminal.run("train", tmp_path / "odd.txt", "--model", "gru", *OPTIONS, "--out", tmp_path / "run")
    assert code == 2
    assert "line 2: expected a string of 6 letters" in err
    assert not (tmp_path / "run").exists()


def test_families_that_do_not_label_are_refused(terminal: Any, strings: Path, tmp_path: Path) -> None:
    code, _, err = terminal.run(
        "train", strings, "--model", "kalman", "--task", "palindrome", "--out", tmp_path / "run"
    )
    assert code == 2
    assert "is taken for palindrome (strings that may be palindromes), which kalman does not do" in err
    assert "window, conv, rnn, gru, lstm, gpt, bert." in err


def test_a_family_that_counts_the_words_of_texts_is_refused(terminal: Any, strings: Path, tmp_path: Path) -> None:
    code, _, err = terminal.run("train", strings, "--model", "ngram", "--task", "palindrome", "--out", tmp_path / "run")
    assert code == 2
    assert "strings.txt is no text, and ngram labels texts only; choose another --model." in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [None, "x = 1\n"])
def test_a_file_without_a_task_is_named(tmp_path: Path, content: str | None) -> None:
    """By the environment, as another process is told."""
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content)
    command = [sys.executable, "-m", "seqwise", "train", "markov", "--task", "mine"]
    environment = {**os.environ, "SEQWISE_TASKS": str(file)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert (
        f"SEQWISE_TASKS names {file}, which {'is no Python file' if content is None else 'has no TASK'}." in done.stderr
    )


def test_a_name_is_given_once() -> None:
    with pytest.raises(ConfigError, match='there is a task "palindrome" already'):
        tasks.register(PalindromeTask())
