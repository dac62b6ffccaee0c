"""The vocab folder of formats 1 and 2, each layout read as a schema."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.data.old_schemas import LOADERS, load_old_schema
from seqwise.data.schema import (
    LABEL,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    SEQUENCE,
    LabelSpec,
    Schema,
    TokenSpec,
    ValueSpec,
    pair_tokenizers,
)
from seqwise.errors import CheckpointError
from seqwise.run import Run
from seqwise.tasks import TASKS

CHARACTERS = {"kind": "char", "characters": ["\n", "a", "b"]}
WORDS = {"kind": "word", "words": ["cat", "mat"], "lower_case": False, "split_punctuation": True}
SCALING = {"columns": ["wind", "rain"], "mean": [0.1, 2.0], "scale": [0.3, 1e-7]}
LABELS = {"labels": ["even", "odd"], "input_size": 3, "inputs_are_tokens": True}
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("text", {"tokenizer.json": CHARACTERS}),
    "pairs": ("pairs", {"tokenizer.json": WORDS, "source.json": CHARACTERS}),
    "pairs joint": ("pairs", {"tokenizer.json": CHARACTERS}),
    "numbers": ("numbers", {"scaling.json": SCALING}),
    "labels of tokens": ("label", {"labels.json": LABELS}),
    "labels of numbers": ("label", {"labels.json": {**LABELS, "inputs_are_tokens": False}}),
    "a number": ("label", {"labels.json": {"labels": [], "input_size": 2, "inputs_are_tokens": False}}),
}
FIXTURES = Path(__file__).parent.parent / "fixtures"


def written(folder: Path, layout: str) -> tuple[Path, str]:
    task, files = LAYOUTS[layout]
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder, task


def read(folder: Path, layout: str) -> Schema:
    return load_old_schema(*written(folder / "vocab", layout))


def test_every_task_of_those_formats_is_here() -> None:
    assert set(LOADERS) == {task for task, _ in LAYOUTS.values()}
    assert set(LOADERS) <= set(TASKS)


def test_text(tmp_path: Path) -> None:
    schema = read(tmp_path, "text")
    assert (schema.kind, schema.inputs, schema.main) == (NEXT_TOKEN, {"tokens": "tokens"}, "tokens")
    spec = schema.input("tokens", TokenSpec)
    assert (spec.tokenizer.kind, spec.special) == ("char", {})
    assert spec.decode(spec.encode("ab\n")) == "ab\n"
    assert spec.encode("ab\n").tolist() == [spec.boundary + 1, spec.boundary + 2, spec.boundary]
    assert schema.target("tokens", TokenSpec) is spec


def test_pairs_of_two_tokenizers(tmp_path: Path) -> None:
    schema = read(tmp_path, "pairs")
    assert (schema.kind, schema.main) == (SEQUENCE, "tokens")
    assert [tokenizer.kind for tokenizer in pair_tokenizers(schema)] == ["char", "word"]
    assert schema.input("tokens", TokenSpec) is schema.target("tokens", TokenSpec)


def test_pairs_of_one_tokenizer_share_their_spec(tmp_path: Path) -> None:
    schema = read(tmp_path, "pairs joint")
    assert schema.kind == SEQUENCE
    assert schema.input("source", TokenSpec) is schema.target("tokens", TokenSpec)


def test_numbers(tmp_path: Path) -> None:
    schema = read(tmp_path, "numbers")
    assert (schema.kind, schema.inputs, schema.main) == (NEXT_VALUES, {"values": "values"}, "values")
    assert schema.input("values", ValueSpec).to_dict() == SCALING


def test_labels_of_tokens(tmp_path: Path) -> None:
    schema = read(tmp_path, "labels of tokens")
    assert (schema.kind, schema.inputs, schema.main) == (LABEL, {"tokens": "tokens"}, "label")
    assert (schema.input("tokens", TokenSpec).tokenizer.kind, schema.only_input().size) == ("symbol", 3)
    assert schema.target("label", LabelSpec).names == ["even", "odd"]


def test_labels_of_numbers_are_read_as_they_are(tmp_path: Path) -> None:
    schema = read(tmp_path, "labels of numbers")
    assert (schema.kind, schema.inputs) == (LABEL, {"values": "values"})
    spec, values = schema.input("values", ValueSpec), np.array([[1.0, 2.0, 3.0]])
    assert spec.size == 3
    np.testing.assert_array_equal(spec.encode(values), values)


def test_no_labels_are_a_number(tmp_path: Path) -> None:
    schema = read(tmp_path, "a number")
    assert (schema.kind, schema.main, schema.inputs) == (NUMBER, "number", {"values": "values"})
    assert schema.only_input().size == 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_saved_anew_it_is_the_same_schema(layout: str, tmp_path: Path) -> None:
    """In the same folder, as a run does that goes on: what stood there before changes nothing."""
    folder, task = written(tmp_path / "vocab", layout)
    before = load_old_schema(folder, task)
    before.save(folder)
    after = Schema.load(folder)
    assert {name: spec.to_dict() for name, spec in after.specs.items()} == {
        name: spec.to_dict() for name, spec in before.specs.items()
    }
    assert (after.inputs, after.targets) == (before.inputs, before.targets)


FILES = [(layout, name) for layout, (_, files) in LAYOUTS.items() for name in files]


@pytest.mark.parametrize(("layout", "name"), FILES)
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"kind": "char"}', '{"columns": ["a"]}', '{"labels": 5}'])
def test_a_damaged_file_is_named(layout: str, name: str, content: str, tmp_path: Path) -> None:
    folder, task = written(tmp_path / "vocab", layout)
    (folder / name).write_text(content)
    with pytest.raises(CheckpointError) as caught:
        load_old_schema(folder, task)
    assert str(caught.value) == f"{folder / name}: damaged: not what seqwise wrote. Restore it or train again."


@pytest.mark.parametrize(("layout", "name"), [(layout, name) for layout, name in FILES if name != "source.json"])
def test_a_missing_file_is_named(layout: str, name: str, tmp_path: Path) -> None:
    folder, task = written(tmp_path / "vocab", layout)
    (folder / name).unlink()
    with pytest.raises(CheckpointError) as caught:
        load_old_schema(folder, task)
    assert str(caught.value) == f"{folder / name}: cannot be read: No such file or directory."


@pytest.mark.parametrize("change", [{"input_size": 0}, {"input_size": "many"}, {"labels": None}])
def test_sizes_that_cannot_be_are_damage(change: dict[str, Any], tmp_path: Path) -> None:
    folder, task = written(tmp_path / "vocab", "labels of tokens")
    (folder / "labels.json").write_text(json.dumps({**LABELS, **change}))
    with pytest.raises(CheckpointError, match=r"labels\.json: damaged"):
        load_old_schema(folder, task)


@pytest.mark.parametrize("family", ["lstm", "kalman", "seq2seq"])
def test_a_run_that_was_killed_between_its_new_schema_and_its_new_settings_still_opens(
    family: str, tmp_path: Path
) -> None:
    shutil.copytree(FIXTURES / "format-2" / family, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    run.schema.save(tmp_path / "run" / "vocab")
    assert "format = 2" in (tmp_path / "run" / "config.toml").read_text()
    assert Run.open(tmp_path / "run").schema.kind == run.schema.kind
    (tmp_path / "run" / "vocab" / "schema.json").unlink()  # and a moment before
    assert Run.open(tmp_path / "run").schema.kind == run.schema.kind
