"""seqwise check on the command line: its lines, its --json, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Terminal

import seqwise
from seqwise.inspection.invariances import CHECKS
from seqwise.models.ngram import Ngram


@pytest.fixture
def run(terminal: Terminal, tmp_path: Path) -> Path:
    (tmp_path / "cats.txt").write_text("the cat sat on the mat and the rat sat on the cat\n" * 40)
    seqwise.train(tmp_path / "cats.txt", "ngram", out=tmp_path / "run")
    return tmp_path / "run"


def test_each_invariance_has_a_line_and_the_last_is_a_verdict(terminal: Terminal, run: Path) -> None:
    out, err = terminal.done("check", "run")
    *lines, verdict = out.splitlines()
    assert lines[0] == "kept: padding changes no log-probability (largest difference 0, bound 1e-05)"
    assert lines[2] == (
        "does not apply: micro-batches give the gradient of the whole batch, because ngram does not learn by gradients"
    )
    assert [check.sentence in line for check, line in zip(CHECKS, lines, strict=True)] == [True] * len(CHECKS)
    assert verdict == "run keeps all 6 invariances that apply"
    assert err == ""


def test_other_data_and_other_parts_can_be_named(terminal: Terminal, run: Path) -> None:
    Path("other.txt").write_text("a rat and a cat\n" * 5)
    assert "other.txt" in terminal.done("check", "run", "other.txt")[1]
    assert terminal.done("check", "run", "--split", "valid")[0] == terminal.done("check", "run")[0]
    assert "has no third part" in terminal.refuses("check", "run", "--split", "third")
    assert "--split is empty" in terminal.refuses("check", "run", "--split", "")
    assert "nowhere.txt: no such file" in terminal.refuses("check", "run", "nowhere.txt")
    assert "nowhere: no such run folder" in terminal.refuses("check", "nowhere")


def test_data_that_is_gone_or_has_changed_is_told_with_the_command_that_was_called(
    terminal: Terminal, run: Path
) -> None:
    text = Path("cats.txt").read_text()
    Path("cats.txt").write_text(text + "and the dog\n")
    for command in ("check", "evaluate"):
        told = terminal.refuses(command, "run")
        assert told.endswith(f"Restore it, or name a file: seqwise {command} run FILE")
        assert "cats.txt has changed since run was trained, so its test part cannot be used." in told
    Path("cats.txt").rename("moved.txt")
    for command in ("check", "evaluate"):
        assert f"(- for standard input): seqwise {command} run NEWPATH" in terminal.refuses(command, "run")
    Path("moved.txt").write_text(text)
    assert terminal.done("check", "run", "moved.txt")[0].endswith("run keeps all 6 invariances that apply\n")


def test_a_failure_is_exit_code_1_for_people_and_for_programs(
    terminal: Terminal, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = json.loads(terminal.done("check", "run", "--json")[0])["results"]
    assert [result["name"] for result in results] == [check.name for check in CHECKS]
    assert {result["outcome"] for result in results} == {"kept", "does not apply"}
    assert all((result["difference"] is None) == bool(result["why_not"]) for result in results)
    step = Ngram.step
    monkeypatch.setattr(Ngram, "step", lambda *given: (step(*given)[0].roll(1, dims=1), step(*given)[1]))
    code, out, _ = terminal.run("check", "run", "--json")
    failed = [result for result in json.loads(out)["results"] if result["outcome"] == "failed"]
    assert [result["name"] for result in failed] == ["stepping"]
    assert failed[0]["difference"] > failed[0]["bound"] == 1e-5
    assert failed[0]["run"] == "run"
    assert code == 1
    code, out, _ = terminal.run("check", "run")
    assert code == 1
    assert out.splitlines()[-1] == "run fails 1 of 6 invariances: stepping"
