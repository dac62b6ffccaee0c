"""seqwise train, evaluate, predict on columns of numbers: results on standard output, mistakes in one sentence."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TRAINING = ["--steps", "5", "--set", "training.threads=1"]
SIZES = {"kalman": ["--set", "model.state_dim=3"], "gru": ["--set", "model.model_dim=8"]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A season of 7 and a line, with a column of dates beside them."""
    random, time = np.random.default_rng(0), np.arange(100)
    season = 20 + 5 * np.sin(2 * np.pi * time / 7) + 0.2 * random.normal(size=100)
    line = 0.5 * time + random.normal(size=100)
    path = tmp_path / "x.csv"
    path.write_text(
        "date,season,line\n"
        + "".join(f"day {t},{season[t]:.3f},{'NA' if t == 9 else f'{line[t]:.3f}'}\n" for t in time)
    )
    return path


@pytest.fixture
def run(terminal: Any, table: Path) -> Path:
    terminal.done("train", table, "--model", "kalman", "--out", "run", *TRAINING, *SIZES["kalman"])
    return Path("run")


@pytest.mark.parametrize("model", list(SIZES))
def test_a_table_is_trained_on_scored_and_forecast(terminal: Any, table: Path, model: str) -> None:
    out, err = terminal.done("train", table, "--model", model, "--out", "run", *TRAINING, *SIZES[model])
    assert "x.csv: 100 steps of 2 numbers (season, line), 1 number missing; split in order 80/10/10" in err
    assert 'column date holds words ("day 0") and is left out' in err
    assert out.splitlines()[0].startswith("run: on valid: log-likelihood ")
    assert "seasonal naive" in out.splitlines()[0]
    assert out.splitlines()[1].startswith("signature: forecast:horizon=7,")
    assert out.splitlines()[2] == "next: seqwise predict run --horizon 24"
    plain, _ = terminal.done("evaluate", "run")
    assert plain.splitlines()[0].startswith("run: log-likelihood ")
    forecast, _ = terminal.done("predict", "run", "--horizon", "3")
    rows = list(csv.DictReader(forecast.splitlines()))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    assert list(rows[0]) == ["step", "season", "season_low", "season_high", "line", "line_low", "line_high"]
    assert all(math.isfinite(float(cell)) for row in rows for cell in row.values())


def test_the_score_can_be_read_by_a_program(terminal: Any, run: Path) -> None:
    out, err = terminal.done("evaluate", run, "--horizon", "4", "--json")
    found = json.loads(out)["results"][0]
    assert err == ""
    assert (found["run"], found["horizon"], found["season"], found["steps"]) == ("run", 4, 7, 10)
    assert set(found["mae_by_column"]) == {"season", "line"}
    assert "|test:" in found["signature"]
    assert all(math.isfinite(v) for v in found.values() if isinstance(v, float))


def test_two_runs_are_scored_side_by_side(terminal: Any, table: Path, run: Path) -> None:
    terminal.done("train", table, "--model", "gru", "--out", "other", *TRAINING, *SIZES["gru"])
    found = json.loads(terminal.done("evaluate", run, "other", "--json")[0])["results"]
    assert [score["run"] for score in found] == ["run", "other"]
    few = terminal.done("evaluate", run, "other", "--split", "valid")[0].splitlines()[-1]
    assert "too little data to tell which is better" in few  # of five rows
    lines = terminal.done("evaluate", run, "other", "--split", "train")[0].splitlines()
    *scores, comparison = lines
    assert [line.partition(":")[0] for line in scores] == ["run", "run", "other", "other"]
    assert re.match(r"(run|other) (is better than|and) (run|other) .* nats per step \(paired, 95 %: ", comparison)


@pytest.mark.parametrize("model", list(SIZES))
def test_words_for_missing_numbers_reach_no_result(terminal: Any, table: Path, model: str) -> None:
    header, *rows = table.read_text().splitlines()
    words = ["nan", "NaN", "-nan", "NA", "", "null", "#N/A"]
    for place, word in enumerate(words):
        for row in (3 + 2 * place, 84 + place, 93 + place):
            cells = rows[row].split(",")
            rows[row] = ",".join([cells[0], word, cells[2] if place % 2 else word])
    table.write_text("\n".join([header, *rows]) + "\n")
    terminal.done("train", table, "--model", model, "--out", "run", *TRAINING, *SIZES[model])

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in the JSON")

    found = json.loads(terminal.done("evaluate", "run", "--json")[0], parse_constant=refuse)
    assert None not in [v for name, v in found.items() if name != "season_by_column"]
    for line in Path("run/log.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    forecast, _ = terminal.done("predict", "run", "--horizon", "3")
    assert all(math.isfinite(float(cell)) for line in forecast.splitlines()[1:] for cell in line.split(","))


def test_a_season_can_be_given(terminal: Any, table: Path) -> None:
    given = ["train", table, "--model", "kalman", "--out", "run", *TRAINING, *SIZES["kalman"]]
    out, _ = terminal.done(*given, "--season", "5")
    assert out.splitlines()[1].startswith("signature: forecast:horizon=5,origins=6,season=5|")
    asked = ([], ["--season", "7"])
    found, other = (json.loads(terminal.done("evaluate", "run", *more, "--json")[0])["results"][0] for more in asked)
    assert (found["season"], other["season"]) == (5, 7)
    assert found["season_by_column"] == {"season": 5, "line": 5}
    assert other["mae_seasonal_naive"] < found["mae_seasonal_naive"]
    none, _ = terminal.done("evaluate", "run", "--season", "1")
    assert "seasonal" not in none
    assert "data.season = 0 should be at least 1." in terminal.refuses("evaluate", "run", "--season", "0")
    assert "data.season = -2 should be at least 1." in terminal.refuses(*given[:-4], "--out", "x", "--season", "-2")
    assert "was trained with data.season = 5, not 6." in terminal.refuses(
        "train", "--resume", "--out", "run", "--season", "6"
    )


def test_columns_can_be_chosen(terminal: Any, table: Path) -> None:
    terminal.done("train", table, "--model", "kalman", "--columns", "line", "--out", "run", *TRAINING, *SIZES["kalman"])
    assert terminal.done("predict", "run")[0].splitlines()[0] == "step,line,line_low,line_high"


def test_a_run_is_resumed(terminal: Any, run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()
    _, err = terminal.done("train", "--resume", "--out", run)
    assert "trained to the end already" in err
    assert (run / "model.safetensors").read_bytes() == before


# -- mistakes --------------------------------------------------------------------------------------------------------


def a_word(path: Path) -> None:
    path.write_text(path.read_text().replace("\nday 4,", "\nday 4,oops", 1))


def infinite(path: Path) -> None:
    lines = path.read_text().splitlines()
    lines[5] = "day 4,1e999,3"
    path.write_text("\n".join(lines) + "\n")


def constant(path: Path) -> None:
    path.write_text("a,b\n" + "1,2\n" * 50)


def too_few(path: Path) -> None:
    path.write_text("\n".join(path.read_text().splitlines()[:7]))


def ragged(path: Path) -> None:
    path.write_text(path.read_text() + "day 100,1\n")


def empty(path: Path) -> None:
    path.write_text("")


def good(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (a_word, [], ["x.csv: line 6, column season: \"oops", "is not a number. Mend it,", "--columns."]),
        (infinite, [], ['x.csv: line 6, column season: "1e999" is beyond 1e+100. Mend it, leave the cell empty']),
        (good, ["--season", "0"], ["data.season = 0 should be at least 1."]),
        (good, ["--set", "data.season=[7]"], ["data.season names 1 seasons for 2 columns (season, line); give one"]),
        (good, ["--set", "data.season=[7, 'a']"], ["data.season = [7, 'a'] should be a list of whole numbers."]),
        (constant, [], ["x.csv: nothing to forecast: column a is always 1 in the training", "column b is always 2"]),
        (too_few, [], ["x.csv: too few rows: 6 in all leave 4 to train on, and 8 are needed."]),
        (ragged, [], ["x.csv: line 102 has 2 cells, but the first line has 3."]),
        (empty, [], ["x.csv: the file is empty."]),
        (good, ["--tokenizer", "char"], ["--tokenizer char: numbers have no tokenizer; drop it."]),
        (good, ["--columns", "seasn"], ['no column "seasn". Did you mean "season"?']),
        (good, ["--columns", "date"], ['x.csv: line 2, column date: "day 0" is not a number.']),
        (good, ["--model", "ngram"], ["is taken for numbers (columns of numbers), which ngram does not do."]),
        (good, ["--valid", "x.csv"], ["numbers are read from one .csv file, split in order; drop the other files."]),
        (good, ["--task", "text", "--model", "gru"], ["x.csv: a .csv file holds columns, and language"]),
        (good, ["--task", "table"], ['unknown task "table".']),
        (good, ["--split-at", "80/30"], ['--split-at "80/30" should be two or three shares that add up to 100']),
    ],
    ids=["word", "infinite", "season", "seasons", "words for seasons", "constant", "too few", "ragged", "empty",
         "tokenizer", "column", "words asked for", "family", "valid",
         "text", "task", "split"],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    terminal: Any, table: Path, make: Callable[[Path], None], options: list[str], words: list[str]
) -> None:
    make(table)
    before = sorted(table.parent.rglob("*"))
    model = [] if "--model" in options else ["--model", "kalman"]
    sentence = terminal.refuses("train", "x.csv", *model, "--out", "runs/x", *TRAINING, *options)
    for word in words:
        assert word in sentence
    assert sentence.endswith((".", "?"))
    assert sorted(table.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["evaluate", "run", "--context", "5"], "context does not apply to numbers; options are: horizon, season."),
        (["evaluate", "run", "--view", "sliding"], "view does not apply to numbers; options are: horizon, season."),
        (["evaluate", "run", "--split", "dev"], "x.csv has no dev part; it has train, valid, test."),
        (["evaluate", "run", "--horizon", "-1"], "a horizon of -1 steps is too short; ask for at least 1."),
        (["predict", "run", "--horizon", "-1"], "a horizon of -1 steps is too short; ask for at least 1."),
        (["predict", "run", "nowhere.csv"], "nowhere.csv: no such file or folder."),
        (["generate", "run"], "run was trained on numbers, not on text: it does not go on from a prompt."),
        (["train", "x.csv", "--model", "kalman", "--out", "run"], "run exists already. Go on with --resume, or"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value[:4]),
)  # fmt: skip
@pytest.mark.usefixtures("run")
def test_a_run_on_numbers_says_what_it_cannot_do(terminal: Any, arguments: list[str], sentence: str) -> None:
    assert sentence in terminal.refuses(*arguments)
