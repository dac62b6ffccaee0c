"""A small run of every format that was ever released stays here and keeps loading."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from seqwise.data.schema import BESIDE, Schema
from seqwise.models import MODELS
from seqwise.run import RUN_FORMAT, Run
from seqwise.training.averaging import WeightAverage
from seqwise.training.overrides import settings_in

FIXTURES = Path(__file__).parent / "fixtures"
RUNS = sorted(path.parent for path in FIXTURES.glob("format-*/*/config.toml"))
CAME_WITH_FORMAT_3 = {"word2vec", "elmo", "bert", "captioner", "glimpse", "draw", "crossmodal"}
NEWEST = FIXTURES / f"format-{RUN_FORMAT}"
specification = importlib.util.spec_from_file_location("make_runs", FIXTURES / "make_runs.py")
assert specification is not None
assert specification.loader is not None
make_runs = importlib.util.module_from_spec(specification)
specification.loader.exec_module(make_runs)
each_run = pytest.mark.parametrize("folder", RUNS, ids=lambda path: f"{path.parent.name}-{path.name}")


def written(schema: Schema, folder: Path) -> dict[str, str]:
    """The files of a schema."""
    folder.mkdir()
    schema.save(folder)
    return {path.name: path.read_text() for path in folder.iterdir()}


@each_run
def test_an_old_run_loads_and_says_what_it_said(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    assert make_runs.log_probs(folder) == pytest.approx(expected, abs=1e-5)


@each_run
def test_an_old_run_whose_settings_are_written_anew_is_one_of_the_present_format(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    before = Run.open(tmp_path / "run")
    before.save_config(before.config)
    after = Run.open(tmp_path / "run")
    assert (after.config.format, after.config) == (RUN_FORMAT, before.config)
    assert f"format = {RUN_FORMAT}\n" in (tmp_path / "run" / "config.toml").read_text()
    assert written(after.schema, tmp_path / "after") == written(before.schema, tmp_path / "before")
    expected = json.loads((folder / "expected.json").read_text())
    assert make_runs.log_probs(tmp_path / "run") == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["most_parameters", "max_parameters"])
def test_a_setting_that_was_renamed_keeps_its_value(name: str, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "format-2" / "transformer", tmp_path / "run")
    path = tmp_path / "run" / "config.toml"
    path.write_text(path.read_text().replace("most_parameters = 0", f"{name} = 12345"))
    run = Run.open(tmp_path / "run")
    assert run.config.training.max_parameters == 12345
    assert settings_in(path)["training"]["max_parameters"] == 12345  # of a run as the settings of another
    run.save_config(run.config)
    assert "\nmax_parameters = 12345\n" in path.read_text()
    assert "most_parameters" not in path.read_text()


def test_a_setting_of_a_family_that_was_renamed_keeps_its_value(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "format-2" / "conv", tmp_path / "run")
    path = tmp_path / "run" / "config.toml"
    path.write_text(path.read_text().replace("most_dilation = 512", "most_dilation = 2"))
    assert Run.open(tmp_path / "run").config.model.max_dilation == 2


def test_a_running_mean_of_weights_that_were_renamed_goes_on() -> None:
    """Of a checkpoint, in which it stands beside the optimizer."""
    model = Run.open(FIXTURES / "format-2" / "gpt").load_model()
    average = WeightAverage(model, over=3)
    average.add()
    saved = {}
    for name, tensor in average.tensors().items():
        before = name.replace("head.tokens.", "head.").replace(".qkv.", ".to_query_key_value.")
        saved[before.replace(".up.", ".widen.").replace(".down.", ".narrow.")] = tensor
    assert sum(name not in saved for name in average.tensors()) == 3 * len(model.body.blocks) + 1
    again = WeightAverage(model, over=3)
    again.load(saved)
    assert again.mean.keys() == average.mean.keys()
    assert again.number == 1


def test_every_family_has_a_run_of_the_format_that_brought_it() -> None:
    assert {path.name for path in RUNS if path.parent.name == "format-1"} == {"ngram", "lstm", "gpt"}
    assert {path.name for path in RUNS if path.parent.name == "format-2"} == {*MODELS} - CAME_WITH_FORMAT_3
    assert {path.name for path in RUNS if path.parent == NEWEST} == {*MODELS, *make_runs.ANSWERS}


def test_every_kind_of_target_has_a_run_of_the_present_format() -> None:
    learned = {kind for row in MODELS.values() for kind in row.learns if kind not in BESIDE}
    assert {Run.open(path).schema.kind for path in RUNS if path.parent == NEWEST} == learned


@each_run
def test_a_run_holds_the_vocabulary_of_its_format(folder: Path) -> None:
    found = {path.name for path in (folder / "vocab").iterdir()}
    if folder.parent == NEWEST:
        assert found == {"schema.json", *(f"{name}.json" for name in Run.open(folder).schema.specs)}
    else:
        assert "schema.json" not in found


@each_run
def test_no_run_names_a_folder_of_the_machine_it_was_made_on(folder: Path) -> None:
    assert all(not Path(source).is_absolute() for source in Run.open(folder).config.data.source)
    for path in folder.rglob("*"):
        if path.suffix in (".toml", ".md", ".json", ".jsonl"):
            assert not any(place in path.read_text() for place in ('"/', "`/", "/tmp/", "/home/", "/root/")), path
