"""--json: one object of one shape, for every command that has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import seqwise
from seqwise.cli import app
from seqwise.cli.results import say_results

TEXT = "the cat sat on the mat and the rat sat on the cat\n" * 40
PAIRS = "".join(f"{a}{b}{c}\t{c}{b}{a}\n" for a in "crm" for b in "ao" for c in "tnsd")
NUMBERS = "value\n" + "".join(f"{n % 7 + n % 3}\n" for n in range(200))
COMMANDS = {
    "train": ["train", "poems.txt", "--model", "ngram", "--out", "new", "--json"],
    "evaluate": ["evaluate", "text", "--json"],
    "generate": ["generate", "text", "--prompt", "the ", "--max-tokens", "5", "--num", "2", "--json"],
    "inspect": ["inspect", "text", "--text", "the cat", "--json"],
    "check": ["check", "text", "--json"],
    "predict": ["predict", "numbers", "--horizon", "3", "--json"],
    "reproduce": ["reproduce", "--json"],
    "models": ["models", "gpt", "--json"],
    "doctor": ["doctor", "--json"],
    "data list": ["data", "list", "--json"],
    "data check": ["data", "check", "poems.txt", "--json"],
    "words": ["words", "network", "the", "--json"],
    "embed": ["embed", "network", "poems.txt", "--json"],
    "search": ["search", "network", "poems.txt", "the cat", "--json"],
    "similarity": ["similarity", "network", "rated.csv", "--json"],
    "data phrases": ["data", "phrases", "poems.txt", "--out", "joined.txt", "--json"],
    "answer": ["answer", "questions", "--text", "the key is in the box", "where is the key", "--json"],
    "fill": ["fill", "hidden", "the [MASK] sat", "--json"],
    "probe": ["probe", "network", "tags.conll", "--split", "valid", "--json"],
}
ELSEWHERE = {"compare", "ask", "caption"}  # tests/comparison/test_compare.py, test_ask.py, journeys/test_captions.py


def options_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts


def commands_with_json() -> Iterator[str]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for inner, each in getattr(command, "commands", {"": command}).items():
            if "--json" in options_of(each):
                yield f"{name} {inner}".strip()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    for name, content in (("poems.txt", TEXT), ("pairs.tsv", PAIRS), ("numbers.csv", NUMBERS)):
        (folder / name).write_text(content)
    seqwise.train(folder / "poems.txt", "ngram", out=folder / "text")
    seqwise.train(folder / "numbers.csv", "kalman", out=folder / "numbers", steps=2)
    tags = "".join(f"the X\n{word} N\nsat X\n\n" for word in ("cat", "dog", "rat", "hen") * 15)
    (folder / "tags.conll").write_text(tags)
    rated = "".join(f"the cat {n},the rat {n % 4} sat,{n % 5}.5\n" for n in range(20))
    (folder / "rated.csv").write_text("sentence1,sentence2,score\n" + rated)
    small = ["model.model_dim=4", "training.context=8"]
    seqwise.train(folder / "poems.txt", "rnn", out=folder / "network", tokenizer="word", steps=2, overrides=small)
    small = ["model.model_dim=8", "model.num_heads=1", "model.num_layers=1", "model.context=16", "training.context=16"]
    seqwise.train(folder / "poems.txt", "bert", out=folder / "hidden", tokenizer="word", steps=2, overrides=small)
    small = ["model.model_dim=4", "model.embed_dim=4", "training.batch_size=64"]
    seqwise.train("rooms", "gru", out=folder / "questions", steps=1, overrides=small)
    for name, attention in (("pairs", "general"), ("blind", "none")):
        overrides = ["model.model_dim=8", f"model.attention={attention}"]
        seqwise.train(folder / "pairs.tsv", "seq2seq", out=folder / name, steps=2, overrides=overrides)
    return folder


def test_every_command_that_has_json_is_tried() -> None:
    assert set(commands_with_json()) == {*COMMANDS, *ELSEWHERE}


@pytest.mark.parametrize("command", COMMANDS)
def test_programs_read_one_shape(
    world: Path, terminal: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    monkeypatch.chdir(world)
    arguments = [str(tmp_path / "new") if argument == "new" else argument for argument in COMMANDS[command]]
    found = json.loads(terminal.done(*arguments)[0])
    assert list(found) == ["seqwise", "command", "results"]
    assert (found["seqwise"], found["command"]) == (seqwise.__version__, command)
    assert found["results"]
    assert all(isinstance(result, dict) for result in found["results"])


def results(terminal: Any, *arguments: str | Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(terminal.done(*arguments, "--json")[0])["results"]
    return found


def test_training_tells_the_run_and_its_score(world: Path, terminal: Any) -> None:
    (found,) = results(terminal, "train", world / "poems.txt", "--model", "ngram", "--out", "run")
    assert (found["run"], found["model"], found["task"], found["finished"]) == ("run", "ngram", "text", True)
    (scored,) = results(terminal, "evaluate", "run", "--split", "valid")
    assert found["valid"]["bits_per_char"] == pytest.approx(scored["bits_per_char"])


def test_a_family_is_told_with_its_settings(terminal: Any) -> None:
    (found,) = results(terminal, "models", "gpt")
    settings = {setting["name"]: setting for setting in found["settings"]}
    assert settings["model.positions"]["default"] == "rotary"
    assert settings["model.positions"]["choices"] == ["rotary", "learned", "sinusoidal"]
    assert "settings" not in results(terminal, "models")[0]


def test_forecasts_are_numbers(world: Path, terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    found = results(terminal, "predict", "numbers", "--horizon", "2")
    assert [row["step"] for row in found] == [1, 2]
    assert all(row["value_low"] < row["value"] < row["value_high"] for row in found)


def test_answers_have_their_alignment_wherever_the_model_has_one(world: Path, terminal: Any) -> None:
    for options in ([world / "pairs.tsv"], ["--split", "valid"]):
        found = results(terminal, "predict", world / "pairs", *options)
        assert found
        for answer in found:
            rows = answer["alignment"]["weights"]
            assert len(rows) == len(answer["alignment"]["target"])
            assert all(len(row) == len(answer["source"]) for row in rows)
        blind = results(terminal, "predict", world / "blind", *options)
        assert {answer["alignment"] for answer in blind} == {None}
    assert "no attention" in terminal.refuses("predict", world / "blind", world / "pairs.tsv", "--alignments", "--json")


def test_a_result_is_written_as_soon_as_it_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    def two() -> Iterator[int]:
        yield 1
        first = capsys.readouterr().out
        assert first.endswith("\n1")
        sent.append(first)
        yield 2

    sent: list[str] = []
    say_results("predict", two())
    assert json.loads("".join([*sent, capsys.readouterr().out]))["results"] == [1, 2]
    say_results("predict", [])
    assert json.loads(capsys.readouterr().out)["results"] == []


def test_where_the_first_result_fails_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        say_results("predict", (1 // n for n in (0, 1)))
    assert capsys.readouterr().out == ""
