"""What is asked of training: the same however it is written, checked once, and put together from file and options."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.schema import TokenSpec
from seqwise.errors import ConfigError
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

TEXT = "the cat sat on the mat.\n" * 60
BUDGETS = {"minutes": 1.0, "steps": 2, "epochs": 3.0}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where one stands: with a text and its parts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    for name in ("cats.txt", "valid.txt", "test.txt"):
        Path(name).write_text(TEXT)
    return tmp_path


def asked(**options: Any) -> Request:
    return Request.of("cats.txt", **{"model": "gpt", "out": "run", **options})


# -- as people write it ----------------------------------------------------------------------------------------------


def test_paths_may_be_words_or_paths_and_one_file_is_a_list_of_one() -> None:
    words = Request.of(
        "cats.txt", model="gpt", out="run", valid="valid.txt", test="test.txt", config_file="a.toml", start_from="base"
    )
    paths = Request.of(
        Path("cats.txt"), model="gpt", out=Path("run"), valid=Path("valid.txt"), test=Path("test.txt"),
        config_file=Path("a.toml"), start_from=Path("base"),
    )  # fmt: skip
    assert words == paths
    assert (words.source, words.valid, words.test) == (["cats.txt"], "valid.txt", "test.txt")
    assert (words.out, words.config_file, words.start_from) == (Path("run"), Path("a.toml"), Path("base"))
    assert Request.of(["a.txt", Path("b.txt")], model="gpt", out="run").source == ["a.txt", "b.txt"]


def test_what_is_none_was_not_asked() -> None:
    nothing = {each.name: None for each in fields(Request) if each.name not in ("source", "model", "out")}
    assert asked(**nothing) == asked()
    assert asked().overrides == []


def test_lists_are_its_own() -> None:
    columns, overrides = ("a", "b"), ["model.num_layers=2"]
    request = asked(columns=columns, overrides=overrides)
    overrides.append("model.num_layers=3")
    assert (request.columns, request.overrides) == (["a", "b"], ["model.num_layers=2"])
    assert asked().overrides is not asked().overrides


def test_a_name_that_is_not_known_is_refused() -> None:
    with pytest.raises(TypeError, match="minute"):
        asked(minute=2)


def test_a_request_stays_what_it_is() -> None:
    with pytest.raises(FrozenInstanceError):
        asked().model = "lstm"  # type: ignore[misc]


# -- checked ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [pair for number in (2, 3) for pair in combinations(BUDGETS, number)], ids=" ".join)
def test_there_is_one_budget(given: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=r"^give one budget: --minutes, --steps or --epochs\.$"):
        asked(**{name: BUDGETS[name] for name in given}).checked()


@pytest.mark.parametrize("budget", [{}, *({name: value} for name, value in BUDGETS.items())], ids=" ".join)
def test_one_budget_or_none_is_right(budget: dict[str, Any]) -> None:
    assert asked(**budget).checked() == replace(asked(**budget), source=[str(Path("cats.txt").resolve())])


def test_files_are_known_by_their_full_path_and_sets_by_their_name(folder: Path) -> None:
    request = Request.of(
        ["cats.txt", "tinyshakespeare"], model="gpt", out="run", valid="valid.txt", test="nowhere.txt"
    ).checked()
    assert request.source == [str(folder / "cats.txt"), "tinyshakespeare"]
    assert (request.valid, request.test) == (str(folder / "valid.txt"), "nowhere.txt")
    assert request.out == Path("run")
    assert asked().checked().valid is None


@pytest.fixture
def pipe() -> Iterator[str]:
    """The name of a pipe out of which a text comes once."""
    reading, writing = os.pipe()
    os.write(writing, TEXT.encode())
    os.close(writing)
    yield f"/dev/fd/{reading}"
    os.close(reading)


@pytest.mark.parametrize(
    ("part", "task", "suffix"),
    [("source", None, ".txt"), ("source", "pairs", ".tsv"), ("source", "numbers", ".csv"), ("valid", "pairs", ".tsv"),
     ("test", None, ".txt")],
)  # fmt: skip
def test_what_comes_out_of_a_pipe_is_kept_in_a_file(pipe: str, part: str, task: str | None, suffix: str) -> None:
    parts = {"source": [pipe]} if part == "source" else {part: pipe}
    found = getattr(replace(asked(task=task), **parts).checked(), part)  # type: ignore[arg-type]
    file = Path(found[0] if part == "source" else found)
    assert file.is_absolute()
    assert file.suffix == suffix
    assert file.read_text() == TEXT


# -- settings --------------------------------------------------------------------------------------------------------


def test_options_win_over_the_file_and_set_over_both() -> None:
    Path("a.toml").write_text(
        '[model]\nnum_layers = 3\nmodel_dim = 16\n[training]\nseed = 1\nlearning_rate = 0.5\nbatch_size = 4\n'
        '[tokenizer]\nkind = "bpe"\n'
    )  # fmt: skip
    request = asked(config_file="a.toml", seed=2, tokenizer="word", overrides=["training.seed=3", "model.num_layers=4"])
    settings = request.settings()
    assert settings["model"] == {"num_layers": 4, "model_dim": 16}
    assert settings["training"] == {"seed": 3, "learning_rate": 0.5, "batch_size": 4}
    assert settings["tokenizer"] == {"kind": "word"}
    assert replace(request, overrides=[]).settings()["training"]["seed"] == 2
    assert replace(request, overrides=[], seed=None, tokenizer=None).settings()["tokenizer"] == {"kind": "bpe"}


def test_nothing_is_a_setting_but_what_was_asked() -> None:
    assert asked().settings() == {"data": {"source": ["cats.txt"]}, "tokenizer": {}, "model": {}, "training": {}}
    assert asked(columns=[]).settings()["data"] == {"source": ["cats.txt"]}
    assert asked(seed=0).settings()["training"] == {"seed": 0}


def test_every_option_about_the_data_arrives() -> None:
    options = {"valid": "valid.txt", "test": "test.txt", "split": "80/20", "season": 7, "columns": ["a"]}
    assert asked(**options).settings()["data"] == {"source": ["cats.txt"], **options}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_takes_the_place_of_that_of_the_file(name: str) -> None:
    Path("a.toml").write_text("[training]\nminutes = 9.0\nbatch_size = 4\n")
    found = asked(config_file="a.toml", **{name: BUDGETS[name]}).settings()["training"]
    assert found == {"batch_size": 4, name: BUDGETS[name]}
    assert asked(config_file="a.toml").settings()["training"] == {"batch_size": 4, "minutes": 9.0}


def test_the_data_of_a_settings_file_is_not_taken() -> None:
    """It may be the config.toml of a run on other data."""
    Path("a.toml").write_text('[data]\nsource = ["dogs.txt"]\nsplit = "50/50"\n')
    assert asked(config_file="a.toml").settings()["data"] == {"source": ["cats.txt"]}


def test_a_message_names_the_file_or_the_option() -> None:
    assert asked().where == "--set"
    assert asked(config_file="a.toml").where == "a.toml"


def test_a_request_becomes_the_settings_of_a_run(folder: Path) -> None:
    overrides = ["model.model_dim=8", "model.num_heads=2"]
    request = asked(steps=2, seed=5, tokenizer="word", valid="valid.txt", test="test.txt", overrides=overrides)
    run = prepare(request).run
    assert run.path == Path("run")
    assert (run.config.model_name, run.config.task, run.config.model.model_dim) == ("gpt", "text", 8)
    assert (run.config.training.steps, run.config.training.seed, run.config.training.minutes) == (2, 5, None)
    assert run.config.data.source == [str(folder / "cats.txt")]
    assert (run.config.data.valid, run.config.data.test) == (str(folder / "valid.txt"), str(folder / "test.txt"))
    assert run.schema.input("tokens", TokenSpec).tokenizer.kind == "word"
