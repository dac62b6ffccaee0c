"""The folder of a comparison: what is read from it is not trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqwise.comparison.plan import Settings, Trial
from seqwise.comparison.workspace import Workspace
from seqwise.errors import CheckpointError

OUTSIDE = ["../../../escaped", "/tmp/escaped", "..", ".", "", "a/b", "a\\b", "a\0b", "a\nb", ".hidden", "-rf", 5, None]


@pytest.fixture
def folder(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "outer" / "compared")
    made.create(Settings(["poems.txt"], 1.0, ["lstm"], ["char", "bpe"]))
    made.save_plan([Trial("lstm-char-seed-1", "lstm", "lstm", "lstm", "char", "ladder", 0, 1.0)], "why")
    return made


def change(folder: Workspace, file: str, edit: Any) -> None:
    found = json.loads((folder.path / file).read_text())
    edit(found)
    (folder.path / file).write_text(json.dumps(found))


def test_what_was_written_is_read(folder: Workspace) -> None:
    assert folder.settings.tokenizers == ["char", "bpe"]
    assert [trial.name for trial in folder.trials] == ["lstm-char-seed-1"]
    assert folder.run("lstm-char-seed-1") == folder.path / "runs" / "lstm-char-seed-1"


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("field", ["name", "tokenizer"])
def test_a_name_in_the_plan_that_leads_out_of_the_folder_is_refused(folder: Workspace, field: str, name: Any) -> None:
    change(folder, "plan.json", lambda plan: plan["trials"][0].update({field: name}))
    with pytest.raises(CheckpointError, match=r"plan\.json is not what seqwise wrote.*Start the comparison again\.$"):
        folder.trials  # noqa: B018


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_tokenizer_in_the_settings_that_leads_out_of_the_folder_is_refused(folder: Workspace, name: Any) -> None:
    change(folder, "settings.json", lambda settings: settings["tokenizers"].append(name))
    with pytest.raises(CheckpointError, match=r"settings\.json is not what seqwise wrote"):
        folder.settings  # noqa: B018


@pytest.mark.parametrize("name", [name for name in OUTSIDE if isinstance(name, str)])
def test_no_path_is_made_of_such_a_name(folder: Workspace, name: str) -> None:
    for use in (
        lambda: folder.run(name),
        lambda: folder.vocab(name),
        lambda: folder.found(name, "trained"),
        lambda: folder.save_found(name, "trained", {}),
        lambda: folder.forget(name, "trained"),
    ):
        with pytest.raises(ValueError, match="is no name of a trial"):
            use()


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "5",
        '{"trials": 5}',
        '{"trials": [5]}',
        '{"trials": [{"colour": "red"}]}',
        "{}",
        "{",
        "[" * 100_000,
        '{"trials": ' + "[" * 200 + "]" * 200 + "}",
    ],
)
def test_a_plan_that_is_none_is_named(folder: Workspace, content: str) -> None:
    (folder.path / "plan.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"plan\.json .*Start the comparison again\.$"):
        folder.trials  # noqa: B018
