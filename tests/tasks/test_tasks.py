"""Tasks: what data is taken for, and the way from it to a run that is scored and answers, for numbers and labels."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs_by_hand import log_without_clock, prepare, stop_after
from safetensors.torch import load_file

import seqwise
from seqwise.api import TrainedRun
from seqwise.data import toys
from seqwise.data.schema import LABEL, NUMBER, ValueSpec
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.models import MODELS
from seqwise.run import Run
from seqwise.tasks import TASKS, can_do, task_named, task_of
from seqwise.training.preparing import resume
from seqwise.training.report import Report
from seqwise.training.session import Session

SIZES = {"train": 200, "valid": 30, "test": 40}
TINY: dict[str, list[str]] = {
    "hmm": ["model.num_states=3"],
    "kalman": ["model.state_dim=4"],
    "rnn": ["model.model_dim=8", "model.dropout=0.2"],
    "gru": ["model.model_dim=8", "model.dropout=0.2"],
    "lstm": ["model.model_dim=8"],
    "gpt": ["model.model_dim=8", "model.num_heads=2", "model.num_layers=1", "model.dropout=0.2"],
}
NUMBER_RUNS = ["hmm", "kalman", "gru", "gpt"]
LABEL_RUNS = ["rnn", "gpt"]
TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat.\n" * 20


def write_csv(path: Path, *, num_rows: int = 120, seed: int = 0, columns: str = "level,season") -> Path:
    """A line that rises by 2 a step, and a season of 12 of which a few numbers are missing; both with noise."""
    random, time = np.random.default_rng(seed), np.arange(num_rows)
    level = 50 + 2 * time + random.normal(size=num_rows)
    season = 3 * np.sin(2 * np.pi * time / 12) + 0.3 * random.normal(size=num_rows)
    is_there = random.random(num_rows) > 0.05
    rows = [f"{level[t]:.4f},{f'{season[t]:.4f}' if is_there[t] else ''}\n" for t in time]
    path.write_text(columns + "\n" + "".join(rows))
    return path


def prepare_tiny(source: str | Path, name: str, out: Path, *overrides: str, **options: Any) -> Session:
    options = {"steps": 6, **options}
    return prepare(source, model=name, out=out, overrides=["training.threads=1", *TINY[name], *overrides], **options)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a table, a text, and a trained run of each kind."""
    folder = tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQWISE_CACHE", str(folder / "cache"))
        for part, size in SIZES.items():
            patch.setitem(toys.EXAMPLES, part, size)
        table, text = write_csv(folder / "x.csv"), folder / "cats.txt"
        text.write_text(TEXT)
        for name in NUMBER_RUNS:
            prepare_tiny(table, name, folder / f"numbers-{name}").train()
        for name in LABEL_RUNS:
            prepare_tiny("parity:8", name, folder / f"label-{name}").train()
        prepare_tiny("adding:6", "rnn", folder / "adding-rnn").train()
        for name in ("lstm", "hmm"):
            prepare_tiny(text, name, folder / f"text-{name}", "training.sample_tokens=5").train()
        yield folder


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for part, size in SIZES.items():
        monkeypatch.setitem(toys.EXAMPLES, part, size)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "x.csv")


each_number_run = pytest.mark.parametrize("name", NUMBER_RUNS)
each_label_run = pytest.mark.parametrize("name", LABEL_RUNS)


# -- what data is taken for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sources", "task"),
    [
        (["x.csv"], "numbers"),
        (["x.CSV"], "numbers"),
        (["x.csv.gz"], "numbers"),
        (["x.txt"], "text"),
        (["x.csv", "y.csv"], "text"),
        (["folder"], "text"),
        (["tinyshakespeare"], "text"),
        (["markov"], "text"),
        (["copy:20"], "text"),
        (["adding:20"], "label"),
        (["adding"], "label"),
        (["parity:8"], "label"),
        (["digits-rows"], "label"),
        (["mnist-pixels"], "label"),
    ],
)
def test_a_file_is_taken_for_what_its_name_says(sources: list[str], task: str) -> None:
    assert task_of(sources) == task


def test_a_file_that_is_there_wins_over_a_set_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("parity").write_text("a text")
    assert task_of(["parity"]) == "text"


def test_an_unknown_task_gets_the_nearest_name(table: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'unknown task "number"\. Did you mean "numbers"\?'):
        prepare_tiny(table, "gru", tmp_path / "run", task="number")
    assert [task_named(name).name for name in TASKS] == list(TASKS)


@pytest.mark.parametrize(
    ("data", "task", "name"),
    [
        ("x.csv", "numbers", "ngram"),
        ("parity:8", "label", "kalman"),
        ("cats.txt", "text", "kalman"),
    ],
)
def test_a_family_that_does_not_do_the_task_is_told_with_those_that_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, task: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "x.csv")
    (tmp_path / "cats.txt").write_text(TEXT)
    with pytest.raises(ConfigError) as caught:
        prepare(data, model=name, out=tmp_path / "run", steps=2)
    sentence = str(caught.value)
    assert f"{data} is taken for {task}" in sentence
    assert f"which {name} does not do" in sentence
    others = [other for other, row in MODELS.items() if can_do(row, TASKS[task])]
    assert sentence.endswith(f"Families that do: {', '.join(others)}.")
    assert not (tmp_path / "run").exists()


def test_a_family_that_counts_words_reads_no_other_sequences(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"parity:8 is no text, and ngram labels texts only; choose another --model."):
        prepare("parity:8", model="ngram", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("data", "options", "sentence"),
    [
        ("x.csv", {"tokenizer": "char"}, "--tokenizer char: numbers have no tokenizer; drop it."),
        ("x.csv", {"valid": "x.csv"}, "numbers are read from one .csv file, split in order; drop the other files."),
        ("x.csv", {"columns": ["levl"]}, 'no column "levl". Did you mean "level"?'),
        ("x.csv", {"split": "50/60"}, '--split-at "50/60" should be two or three shares that add up to 100'),
        ("x.csv", {"task": "text"}, "x.csv: a .csv file holds columns, and language models read running text."),
        ("x.csv", {"task": "label"}, "x.csv: no column of texts among level, season."),
        ("nowhere.csv", {}, "nowhere.csv: cannot be read: No such file or directory."),
        ("parity:8", {"tokenizer": "bpe"}, "--tokenizer bpe: these sequences are not text; drop it."),
        ("parity:8", {"split": "80/20"}, "a set of examples brings its own parts; drop the other files and --split-at"),
        ("parity:8", {"task": "numbers"}, "parity:8: cannot be read"),
        ("adding:x", {}, '"adding:x": expected a whole number behind the colon, such as adding:100.'),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("few")
def test_what_does_not_suit_the_task_is_told_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, options: dict[str, Any], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "x.csv")
    with pytest.raises((ConfigError, DataError)) as caught:
        prepare_tiny(data, "gru", tmp_path / "run", **options)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


# -- numbers ---------------------------------------------------------------------------------------------------------


@each_number_run
def test_a_run_on_numbers_holds_what_it_needs(world: Path, name: str) -> None:
    out = world / f"numbers-{name}"
    assert sorted(path.name for path in (out / "vocab").iterdir()) == ["schema.json", "values.json"]
    saved = json.loads((out / "vocab" / "values.json").read_text())
    assert saved["columns"] == ["level", "season"]
    config = Run.open(out).config
    assert (config.task, config.model_name) == ("numbers", name)
    assert config.data.season == [1, 12]
    card = (out / "card.md").read_text()
    assert "- Columns: level, season, each brought to mean zero and variance one" in card
    assert "log-likelihood, nats per step" in card
    assert "MAE of seasonal naive (season none in level, 12 in season)" in card
    assert "seqwise predict " in card
    assert not [p for p in out.rglob(".*")]


@each_number_run
def test_a_run_on_numbers_is_scored_on_its_test_part(world: Path, name: str) -> None:
    run = TrainedRun(world / f"numbers-{name}")
    found = run.evaluate(horizon=5).to_dict()
    assert found["horizon"] == 5
    assert found["steps"] <= 12
    assert "|test:" in found["signature"]
    assert all(math.isfinite(found[key]) for key in ("log_likelihood_per_step", "mae", "mae_over_naive", "coverage"))
    assert run.evaluate().horizon == 12  # a season
    assert "|valid:" in run.evaluate(split="valid").signature
    assert run.evaluate(split="train").observed.sum() > 90


@each_number_run
@pytest.mark.parametrize("horizon", [1, 3, 40])
def test_a_forecast_is_a_table_of_finite_numbers(world: Path, name: str, horizon: int) -> None:
    lines = list(TrainedRun(world / f"numbers-{name}").predict(horizon=horizon))
    rows = list(csv.DictReader(lines))
    assert lines[0] == "step,level,level_low,level_high,season,season_low,season_high"
    assert [row["step"] for row in rows] == [str(step) for step in range(1, horizon + 1)]
    for row in rows:
        numbers = {column: float(cell) for column, cell in row.items()}
        assert all(math.isfinite(number) for number in numbers.values())
        for column in ("level", "season"):
            assert numbers[f"{column}_low"] <= numbers[column] <= numbers[f"{column}_high"]


def test_a_forecast_has_the_season_as_its_length_where_nothing_is_said(world: Path) -> None:
    assert len(list(TrainedRun(world / "numbers-kalman").predict())) == 1 + 12


def test_a_forecast_goes_on_from_the_end_of_the_data(tmp_path: Path, table: Path) -> None:
    """The line has risen to 290 after 120 steps, and goes on to rise by 2 a step."""
    session = prepare_tiny(table, "kalman", tmp_path / "run", steps=30)
    list(session.reports())
    rows = list(csv.DictReader(TrainedRun(tmp_path / "run").predict(horizon=5)))
    assert [float(row["level"]) for row in rows] == pytest.approx([290, 292, 294, 296, 298], abs=4)


def test_a_forecast_is_the_same_for_the_same_seed(world: Path) -> None:
    run = TrainedRun(world / "numbers-gru")
    one, again, other = (list(run.predict(horizon=3, seed=seed)) for seed in (1, 1, 2))
    assert one == again
    assert one != other


@each_number_run
def test_a_run_on_numbers_stands_alone(world: Path, tmp_path: Path, name: str) -> None:
    """Copied away from its data, it loads and forecasts from other numbers."""
    shutil.copytree(world / f"numbers-{name}", tmp_path / "copy")
    other = write_csv(tmp_path / "other.csv", seed=5, num_rows=60)
    config = tmp_path / "copy" / "config.toml"
    config.write_text(config.read_text().replace(str(world), "/nowhere"))
    run = TrainedRun(tmp_path / "copy")
    assert len(list(run.predict(other, horizon=3))) == 4
    assert math.isfinite(run.evaluate(other, horizon=3).log_likelihood)
    with pytest.raises(DataError, match=r"/nowhere/x\.csv: no such file"):
        run.evaluate()


def test_numbers_that_changed_since_are_not_scored(tmp_path: Path, table: Path) -> None:
    list(prepare_tiny(table, "kalman", tmp_path / "run").reports())
    write_csv(table, seed=3)
    for use in (TrainedRun(tmp_path / "run").evaluate, lambda: list(TrainedRun(tmp_path / "run").predict())):
        with pytest.raises(DataError, match=r"x\.csv has changed since .*run was trained"):
            use()
    with pytest.raises(CheckpointError, match=r"was trained on other data: .*x\.csv has changed since"):
        resume(tmp_path / "run")


def test_numbers_in_other_columns_are_refused(world: Path, tmp_path: Path) -> None:
    other = write_csv(tmp_path / "other.csv", columns="height,season")
    with pytest.raises(ConfigError, match=r'other\.csv: no column "level"\. Known: height, season\.'):
        TrainedRun(world / "numbers-kalman").evaluate(other)


@pytest.mark.parametrize("how", ["in another order", "one more", "one that does not change"])
def test_other_numbers_are_read_by_the_names_of_their_columns(world: Path, tmp_path: Path, how: str) -> None:
    rows = [line.split(",") for line in write_csv(tmp_path / "other.csv", seed=5).read_text().splitlines()]
    if how == "in another order":
        rows = [row[::-1] for row in rows]
    elif how == "one more":
        rows = [[*row, str(i) if i else "more"] for i, row in enumerate(rows)]
    else:
        rows = [["7" if i else "level", row[1]] for i, row in enumerate(rows)]
    (tmp_path / "other.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    lines = list(TrainedRun(world / "numbers-kalman").predict(tmp_path / "other.csv", horizon=2))
    assert lines[0] == "step,level,level_low,level_high,season,season_low,season_high"


def test_a_few_rows_are_enough_to_forecast_from(world: Path, tmp_path: Path) -> None:
    few_rows = write_csv(tmp_path / "few.csv", num_rows=6)
    assert len(list(TrainedRun(world / "numbers-kalman").predict(few_rows, horizon=2))) == 3


@pytest.mark.parametrize("data", ["parity:8", "cats.txt"])
@pytest.mark.usefixtures("few")
def test_a_run_that_starts_from_one_of_another_task_keeps_its_body_and_says_what_it_starts_anew(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    monkeypatch.chdir(world)
    told: list[str] = []
    base, target = world / "numbers-gru", "label" if data == "parity:8" else "tokens"
    session = prepare(data, model="gru", out=tmp_path / "run", steps=2, start_from=base, tell=told.append)
    assert told[-3].startswith("kept: body.stack")
    assert (
        told[-2] == f"started from scratch: body.embedding, head.{target}{' (2 tensors)' if target == 'label' else ''}"
    )
    assert told[-1] == "left out: body.embedding (2 tensors), head.values (2 tensors)"
    before, after = load_file(base / "model.safetensors"), load_file(tmp_path / "run" / "initial.safetensors")
    kept = [name for name in after if name.startswith("body.stack.")]
    assert kept
    assert all(torch.equal(after[name], before[name]) for name in kept)
    assert session.run.config.model == Run.open(base).config.model
    assert session.train() is not None
    assert set(load_file(tmp_path / "run" / "model.safetensors")) == set(session.run.build_model().state_dict())


@pytest.mark.parametrize(("base", "data"), [("numbers-hmm", "cats.txt"), ("text-hmm", "x.csv")])
def test_tables_of_another_task_are_refused_before_anything_is_written(
    world: Path, tmp_path: Path, base: str, data: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(world / data, model="hmm", out=tmp_path / "run", steps=2, start_from=world / base)
    assert str(caught.value) == f"{world / base} has other tables than this data asks for; train without --from."
    assert not (tmp_path / "run").exists()


def test_a_part_that_is_not_there_is_told(tmp_path: Path, table: Path) -> None:
    list(prepare_tiny(table, "kalman", tmp_path / "run", split="80/20").reports())
    run = TrainedRun(tmp_path / "run")
    assert "|valid:" in run.evaluate().signature
    with pytest.raises(DataError, match=r"x\.csv has no test part; it has train, valid\."):
        run.evaluate(split="test")


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    rows = "".join(f"day {i},{i * i % 7},3\n" for i in range(60))
    (tmp_path / "x.csv").write_text("day,a,c\n" + rows)
    told: list[str] = []
    session = prepare_tiny(tmp_path / "x.csv", "kalman", tmp_path / "run", tell=told.append)
    assert 'column day holds words ("day 0") and is left out' in told
    assert "column c is always 3 in the training part and is left out" in told
    assert session.run.schema.kind == "next_values"
    assert session.run.schema.specs["values"].columns == ["a"]


def test_chosen_columns_are_those_of_the_run(tmp_path: Path, table: Path) -> None:
    list(prepare_tiny(table, "gpt", tmp_path / "run", columns=["season"]).reports())
    assert next(TrainedRun(tmp_path / "run").predict()) == "step,season,season_low,season_high"


@pytest.mark.parametrize("name", ["gru", "gpt"])
@pytest.mark.parametrize("minutes", [None, 0.004])
def test_budgets_in_minutes_and_in_epochs_become_steps(
    tmp_path: Path, table: Path, name: str, minutes: float | None
) -> None:
    options: dict[str, Any] = {"steps": None, "minutes": minutes, "epochs": None if minutes else 2.0}
    session = prepare_tiny(table, name, tmp_path / "run", **options)
    list(session.reports())
    assert session.run.config.training.steps >= 2


# -- resuming --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name"), [("x.csv", "gru"), ("x.csv", "gpt"), ("parity:8", "rnn"), ("adding:6", "gpt")]
)
@pytest.mark.usefixtures("few")
def test_a_run_that_is_stopped_and_resumed_ends_as_the_one_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "x.csv")
    settings = ["training.report_every=1", "training.evaluate_every=2", "training.batch_size=2"]
    list(prepare_tiny(data, name, tmp_path / "whole", *settings).reports())
    session = prepare_tiny(data, name, tmp_path / "stopped", *settings)
    list(session.reports(wants_stop=stop_after(3)))
    assert session.is_interrupted
    torch.manual_seed(123)
    list(resume(tmp_path / "stopped").reports())
    assert log_without_clock(tmp_path / "stopped") == log_without_clock(tmp_path / "whole")
    for file in ("model.safetensors", "checkpoints/6/weights.safetensors"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


# -- labels ----------------------------------------------------------------------------------------------------------


@each_label_run
@pytest.mark.usefixtures("few")
def test_a_run_on_labels_is_scored_and_answers(world: Path, name: str) -> None:
    run = TrainedRun(world / f"label-{name}")
    files = {path.name: json.loads(path.read_text()) for path in (run.path / "vocab").iterdir()}
    assert sorted(files) == ["label.json", "schema.json", "tokens.json"]
    assert files["label.json"] == {"names": ["even", "odd"]}
    assert files["tokens.json"]["vocab_size"] == 2
    assert files["schema.json"]["targets"] == {"label": {"spec": "label", "head": LABEL, "weight": 1.0}}
    answers = [line.split("\t")[0] for line in run.predict()]
    assert len(answers) == SIZES["test"]
    assert set(answers) <= {"even", "odd"}
    found = list(run.predictions())
    assert [answer["label"] for answer in found] == answers
    assert all(sum(answer["probabilities"].values()) == pytest.approx(1) for answer in found)
    truth = [
        run.run.schema.specs["label"].names[answer] for answer in toys.open_examples("parity:8").parts["test"].answers
    ]
    score = run.evaluate()
    assert score.accuracy == pytest.approx(np.mean([a == t for a, t in zip(answers, truth, strict=True)]))
    assert score.to_dict()["answers"] == SIZES["test"]
    assert "|test:" in score.signature
    assert len(list(run.predict(split="valid"))) == SIZES["valid"]
    card = (run.path / "card.md").read_text()
    assert "- Labels: even, odd" in card
    assert "% right" in card


@pytest.mark.usefixtures("few")
def test_a_run_whose_answers_are_numbers_is_scored_and_answers(world: Path) -> None:
    run = TrainedRun(world / "adding-rnn")
    files = {path.name: json.loads(path.read_text()) for path in (run.path / "vocab").iterdir()}
    assert sorted(files) == ["number.json", "schema.json", "values.json"]
    assert len(files["values.json"]["columns"]) == 2
    assert files["schema.json"]["targets"] == {"number": {"spec": "number", "head": NUMBER, "weight": 1.0}}
    answers = np.array([float(line) for line in run.predict()])
    truth = toys.open_examples("adding:6").parts["test"].answers
    assert len(answers) == len(truth)
    assert run.evaluate().mean_squared_error == pytest.approx(((answers - truth) ** 2).mean(), rel=1e-3)


@pytest.mark.usefixtures("few")
def test_a_run_on_labels_stands_alone_and_reads_other_lengths(world: Path, tmp_path: Path) -> None:
    shutil.copytree(world / "label-rnn", tmp_path / "copy")
    run = TrainedRun(tmp_path / "copy")
    assert len(list(run.predict("parity:12"))) == SIZES["test"]
    assert 0 <= run.evaluate("parity:3").accuracy <= 1


@pytest.mark.parametrize(
    ("run", "data", "sentence"),
    [
        ("label-rnn", "adding:6", "adding:6 has other inputs or labels than the model was trained for."),
        ("adding-rnn", "parity:8", "parity:8 has other inputs or labels than the model was trained for."),
        ("label-gpt", "parity:12", "12 steps are more than the model's context of 8."),
        ("label-rnn", "x.csv", "x.csv: no such file or folder."),
    ],
)
@pytest.mark.usefixtures("few")
def test_other_examples_than_those_it_was_trained_for_are_refused(
    world: Path, run: str, data: str, sentence: str
) -> None:
    for use in (TrainedRun(world / run).evaluate, lambda data: list(TrainedRun(world / run).predict(data))):
        with pytest.raises((ConfigError, DataError)) as caught:
            use(data)
        assert sentence in str(caught.value)


# -- damaged files ---------------------------------------------------------------------------------------------------

DAMAGED = {
    "empty": "",
    "cut short": '{"columns": ["level", "sea',
    "not JSON": "\x00\x01",
    "a list": "[1, 2]",
    "nothing": "null",
    "a word": '"names"',
    "no keys": "{}",
    "wrong kinds": '{"columns": 3, "mean": 1, "scale": {}, "names": 5, "specs": 3, "inputs": "x", "targets": 1}',
    "lengths differ": '{"columns": ["level"], "mean": [0.0, 1.0], "scale": [1.0], "names": null, "specs": {}}',
}
VOCABULARIES = [("numbers-kalman", "values.json"), ("label-rnn", "label.json"), ("label-rnn", "schema.json")]


@pytest.mark.parametrize("content", list(DAMAGED.values()), ids=list(DAMAGED))
@pytest.mark.parametrize(("run", "file"), VOCABULARIES)
def test_a_damaged_vocabulary_is_named(world: Path, tmp_path: Path, run: str, file: str, content: str) -> None:
    shutil.copytree(world / run, tmp_path / "run")
    path = tmp_path / "run" / "vocab" / file
    path.write_text(content)
    with pytest.raises(CheckpointError) as caught:
        TrainedRun(tmp_path / "run")
    assert str(caught.value) == f"{path}: damaged: not what seqwise wrote. Restore it or train again."


@pytest.mark.parametrize(("run", "file"), VOCABULARIES)
def test_a_missing_vocabulary_is_named(world: Path, tmp_path: Path, run: str, file: str) -> None:
    shutil.copytree(world / run, tmp_path / "run")
    (tmp_path / "run" / "vocab" / file).unlink()
    with pytest.raises(CheckpointError, match=rf"{file}: cannot be read: No such file or directory\."):
        TrainedRun(tmp_path / "run")


@pytest.mark.parametrize("name", NUMBER_RUNS)
def test_a_scaling_of_fewer_columns_does_not_fit_the_weights(world: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(world / f"numbers-{name}", tmp_path / "run")
    path = tmp_path / "run" / "vocab" / "values.json"
    path.write_text('{"columns": ["level"], "mean": [0.0], "scale": [1.0]}')
    with pytest.raises(CheckpointError):
        _ = TrainedRun(tmp_path / "run").model


@pytest.mark.parametrize("scale", ["[NaN, 1.0]", "[0.0, 1.0]", "[-1.0, 1.0]", "[[1.0], [1.0]]"])
def test_a_scaling_that_cannot_be_is_named(world: Path, tmp_path: Path, scale: str) -> None:
    shutil.copytree(world / "numbers-kalman", tmp_path / "run")
    path = tmp_path / "run" / "vocab" / "values.json"
    path.write_text('{"columns": ["level", "season"], "mean": [0.0, 0.0], "scale": ' + scale + "}")
    with pytest.raises(CheckpointError, match=r"values\.json"):
        TrainedRun(tmp_path / "run")


# -- options that say nothing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "options", "sentence"),
    [
        (
            "numbers-gru",
            {"view": "sliding"},
            "view does not apply to numbers; options are: horizon, season.",
        ),
        (
            "numbers-gru",
            {"context": 5},
            "context does not apply to numbers; options are: horizon, season.",
        ),
        ("label-rnn", {"horizon": 3}, "horizon does not apply to label; options are: none."),
        ("label-rnn", {"stride": 3}, "stride does not apply to label; options are: none."),
        ("text-lstm", {"horizon": 3}, "horizon does not apply to text; options are: view, context, "),
    ],
)
def test_an_option_that_says_nothing_for_the_task_is_refused(
    world: Path, run: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainedRun(world / run).evaluate(**options)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("run", ["numbers-kalman", "label-rnn"])
def test_a_run_that_did_not_read_text_does_not_write(world: Path, run: str) -> None:
    with pytest.raises(
        ConfigError, match=r"was trained on (numbers|label), not on text: it does not go on from a prompt\."
    ):
        TrainedRun(world / run).generate("the ")


@pytest.mark.parametrize("name", ["kalman", *(pytest.param(name) for name in NUMBER_RUNS if name != "kalman")])
def test_a_forecast_of_a_negative_length_is_refused(world: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="a horizon of -2 steps is too short; ask for at least 1"):
        list(TrainedRun(world / f"numbers-{name}").predict(horizon=-2))


@pytest.mark.parametrize("verb", ["evaluate", "predict"])
def test_a_forecast_of_no_length_is_refused(world: Path, verb: str) -> None:
    run = TrainedRun(world / "numbers-kalman")
    with pytest.raises(ConfigError, match="a horizon of 0 steps is too short"):
        list(run.predict(horizon=0)) if verb == "predict" else run.evaluate(horizon=0)


@pytest.mark.parametrize("setting", ["data.season=-3", "data.horizon=-1"])
def test_a_season_or_horizon_that_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, table: Path, setting: str
) -> None:
    with pytest.raises(ConfigError, match=setting.partition("=")[0]):
        prepare_tiny(table, "gru", tmp_path / "run", setting)


# -- validation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("numbers", "gru"),
        ("numbers", "gpt"),
        ("label", "rnn"),
        ("label", "gpt"),
    ],
)
@pytest.mark.usefixtures("few")
def test_nothing_is_dropped_while_validating(tmp_path: Path, table: Path, task: str, name: str) -> None:
    """A model in training is validated as the model that will be kept."""
    settings = ["model.dropout=0.5", *(["model.num_layers=2"] if name == "rnn" else [])]
    session = prepare_tiny(table if task == "numbers" else "parity:8", name, tmp_path / "run", *settings)
    model, valid = session.run.build_model(), session.stores["valid"]
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    model.eval()
    expected = session.goal.validate(model, valid, None)
    model.train()
    assert session.goal.validate(model, valid, None) == pytest.approx(expected, abs=1e-6)
    assert model.training


@pytest.mark.parametrize("name", ["gru", "gpt", "hmm", "kalman"])
def test_the_last_validation_is_the_score_of_the_kept_model_in_scaled_units(
    tmp_path: Path, table: Path, name: str
) -> None:
    settings = [] if name in ("hmm", "kalman") else ["model.dropout=0"]
    session = prepare_tiny(table, name, tmp_path / "run", *settings)
    reports: list[Report] = []
    score = session.train(reports.append)
    assert score is not None
    best = [report.valid for report in reports if report.is_best][-1]
    scaling, store = session.run.schema.input("values", ValueSpec), session.stores["valid"]
    shift = (store.is_observed[store.first :] * np.log(scaling.scale)).sum(axis=1)
    is_there = store.is_observed[store.first :].any(axis=1)
    own = score.to_dict()["log_likelihood_per_step"]
    assert best == pytest.approx(-own - shift[is_there].mean(), abs=1e-4)


# -- text that is answered -------------------------------------------------------------------------------------------


def test_a_model_that_continues_text_has_no_answers(world: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"says what comes next and has no answers to give; use: seqwise\.load\(\.\.\.\)\.generate"
    ):
        list(TrainedRun(world / "text-lstm").predict())


def test_nor_has_one_that_counts(text_run: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"continues text and has no answers to give; use: seqwise\.load\(\.\.\.\)\.generate"
    ):
        list(TrainedRun(text_run / "run").predict())


def test_an_hmm_tags_each_token_with_a_hidden_state(world: Path, tmp_path: Path) -> None:
    run = TrainedRun(world / "text-hmm")
    if not hasattr(run.model, "predict"):
        pytest.skip("this hmm has no predict")
    (tmp_path / "new.txt").write_text("the cat\nsat on a log\n")
    lines = list(run.predict(tmp_path / "new.txt"))
    assert len(lines) == 2
    tags = [tag.rpartition("/") for line in lines for tag in line.split(" ") if "/" in tag]
    assert {state for _, _, state in tags} <= {"0", "1", "2"}
    assert "".join(piece for piece, _, _ in tags).replace(" ", "") != ""
    assert len(tags) == len("the cat") + len("sat on a log")


# -- which data is scored --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moved")
    (folder / "cats.txt").write_text("the cat sat on the mat.\nthe dog sat on the log.\n" * 60)
    seqwise.train(folder / "cats.txt", "ngram", out=folder / "run")
    return folder


def test_the_runs_own_data_is_known_wherever_it_lies(text_run: Path, tmp_path: Path) -> None:
    run, told = TrainedRun(text_run / "run"), list[str]()
    expected = run.evaluate()
    moved = shutil.copy(text_run / "cats.txt", tmp_path / "elsewhere.txt")
    found = run.evaluate(moved, tell=told.append)
    assert (found.signature, found.bits_per_char) == (expected.signature, expected.bits_per_char)
    assert "|test:" in found.signature
    assert told == [f"{moved} holds the data of {run.path}: its test part is read, which was not trained on"]
    assert "|valid:" in run.evaluate(moved, split="valid").signature


def test_other_data_is_scored_whole_and_told(text_run: Path, tmp_path: Path) -> None:
    run, told = TrainedRun(text_run / "run"), list[str]()
    (tmp_path / "dogs.txt").write_text("the dog sat on the mat.\n" * 30)
    assert "|whole:" in run.evaluate(tmp_path / "dogs.txt", tell=told.append).signature
    assert told == [f"{tmp_path / 'dogs.txt'}: 720 characters of text in 30 lines; scored whole (whole 720)"]


def test_a_run_whose_data_is_gone_says_how_to_name_it(text_run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(text_run / "run", tmp_path / "copy")
    config = tmp_path / "copy" / "config.toml"
    config.write_text(config.read_text().replace(str(text_run), "/nowhere"))
    with pytest.raises(DataError) as caught:
        TrainedRun(copy).evaluate()
    assert str(caught.value) == (
        f"/nowhere/cats.txt: no such file or folder, and {copy} was trained on it. If it was moved, name its new place "
        f'(- for standard input): seqwise.load("{copy}").evaluate(NEWPATH)'
    )
    assert (
        TrainedRun(copy).evaluate(text_run / "cats.txt").signature == TrainedRun(text_run / "run").evaluate().signature
    )


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.jsonl"])
def test_a_run_on_text_does_not_score_columns_as_prose(text_run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("the cat\tthe dog\n" * 30)
    with pytest.raises(DataError, match="holds columns, and language models read running text"):
        TrainedRun(text_run / "run").evaluate(tmp_path / name)


@pytest.mark.parametrize("text", ["\0" * 900, "\n" * 900, "a" * 900])
def test_nothing_is_trained_on_a_text_with_nothing_to_learn(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(DataError, match="nothing can be learned"):
        seqwise.train(tmp_path / "x.txt", "ngram", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
