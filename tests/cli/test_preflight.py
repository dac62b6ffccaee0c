"""A mistake is told at once: before torch is imported, in a real process; and what is given empty is one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqwise.checks import FAMILIES, TASK_NAMES
from seqwise.models import MODELS
from seqwise.run import Run
from seqwise.tasks import TASKS

TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat, and a frog.\n" * 40
DIARY = "day,height,mood\n" + "".join(f"the day number {n} was good,{n / 2},{n % 2}\n" for n in range(40))
PROGRAM = """
import sys
from seqwise.cli import main
sys.argv = ["seqwise", *sys.argv[1:]]
try:
    main()
finally:
    heavy = [name for name in ("torch", "numba", "tokenizers") if name in sys.modules]
    print("imported:", *heavy, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("train nowhere.txt", "nowhere.txt: no such file or folder."),
        ("train shakespear", '"shakespear" is neither a file nor a data set.'),
        ("train empty.txt", "empty.txt: the file is empty. Give some text to learn from."),
        ("train empty.csv", "empty.csv: the file is empty. Give a table with one step a row."),
        ("train cats.txt --model lstn", 'unknown model "lstn". Did you mean "lstm"?'),
        ("train cats.txt --task texts", 'unknown task "texts". Did you mean "text"?'),
        ("train cats.txt --valid nowhere.txt", "nowhere.txt: no such file or folder."),
        ("train --resume --out nowhere", "nowhere: no such run folder."),
        ("train cats.txt --from nowhere", "nowhere: no such run folder."),
        ("train diary.csv", "diary.csv: it may hold texts (day) with an answer each"),
        ("evaluate nowhere", "nowhere: no such run folder."),
        ("evaluate . cats.txt", ".: is not a run folder: it has no config.toml."),
        ("evaluate run nowhere.txt", "nowhere.txt: no such file or folder."),
        ("evaluate run empty.txt", "empty.txt: the file is empty."),
        ("compare nowhere.txt", "nowhere.txt: no such file or folder."),
        ("compare empty.txt", "empty.txt: the file is empty."),
        ("compare cats.txt --models lstm,gtp", 'unknown family "gtp". Did you mean "gpt"?'),
        ("compare diary.csv", "diary.csv: it may hold texts (day) with an answer each"),
        ("compare --resume --out nowhere", "nowhere holds no comparison."),
        ("report nowhere", "nowhere holds no comparison."),
        ("generate nowhere", "nowhere: no such run folder."),
        ("inspect run nowhere", "nowhere: no such run folder."),
        ("inspect run --pairs nowhere.tsv", "nowhere.tsv: no such file or folder."),
        ("predict nowhere", "nowhere: no such run folder."),
        ("predict run nowhere.txt", "nowhere.txt: no such file or folder."),
        ("check nowhere", "nowhere: no such run folder."),
        ("check run nowhere.txt", "nowhere.txt: no such file or folder."),
        ("export nowhere x.arpa", "nowhere: no such run folder."),
        ("data check nowhere.txt", "nowhere.txt: no such file or folder."),
    ],
)
def test_a_mistake_is_told_before_anything_that_computes_is_imported(
    tmp_path: Path, arguments: str, sentence: str
) -> None:
    (tmp_path / "cats.txt").write_text(TEXT)
    (tmp_path / "diary.csv").write_text(DIARY)
    for name in ("empty.txt", "empty.csv"):
        (tmp_path / name).touch()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").touch()
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments.split()],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    told, imported = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert told.startswith(f"error: {sentence}")
    assert imported == "imported:"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_names_that_are_known_without_torch_are_all_there_are() -> None:
    assert tuple(MODELS) == FAMILIES
    assert list(TASKS) == TASK_NAMES


@pytest.mark.parametrize("option", ["model", "task", "tokenizer", "columns", "valid", "test", "device"])
def test_an_option_given_empty_is_not_the_default(terminal: Any, option: str) -> None:
    Path("cats.txt").write_text(TEXT)
    sentence = f"--{option} is empty. Give it a value, or drop it."
    assert terminal.refuses("train", "cats.txt", f"--{option}", "", "--out", "run") == sentence
    assert not Path("run").exists()


@pytest.mark.parametrize("option", ["models", "tokenizers", "task", "columns", "valid", "test"])
def test_an_option_of_a_comparison_given_empty_is_not_the_default(terminal: Any, option: str) -> None:
    Path("cats.txt").write_text(TEXT)
    sentence = f"--{option} is empty. Give it a value, or drop it."
    assert terminal.refuses("compare", "cats.txt", f"--{option}", "", "--out", "run") == sentence


# -- pipes ---------------------------------------------------------------------------------------------------------


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))


def test_from_a_pipe_to_a_model_and_its_scores(terminal: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    piped(monkeypatch, TEXT)
    assert terminal.done("data", "check", "-")[0].startswith("standard-input.txt: 3,240 characters of text")
    piped(monkeypatch, TEXT)
    _, err = terminal.done("train", "-", "--model", "ngram", "--out", "piped")
    assert "standard-input.txt: 3,240 characters of text" in err
    Path("cats.txt").write_text(TEXT)
    terminal.done("train", "cats.txt", "--model", "ngram", "--out", "filed")
    configs = [Run.open(Path(name)).config for name in ("piped", "filed")]
    assert configs[0].data.fingerprint == configs[1].data.fingerprint
    assert (
        terminal.done("evaluate", "piped", "--json")[0].replace("piped", "filed")
        == terminal.done("evaluate", "filed", "--json")[0]
    )
    Path("other.txt").write_text(TEXT[:700])
    expected, _ = terminal.done("evaluate", "piped", "filed", "other.txt", "--json")
    piped(monkeypatch, TEXT[:700])
    assert terminal.done("evaluate", "piped", "filed", "-", "--json")[0] == expected
    reader, writer = os.pipe()
    os.write(writer, TEXT[:700].encode())
    os.close(writer)
    assert terminal.done("evaluate", "piped", "filed", f"/dev/fd/{reader}", "--json")[0] == expected
    os.close(reader)
    piped(monkeypatch, "")
    assert "standard input: nothing came out of it." in terminal.refuses("evaluate", "piped", "-")


def test_a_run_from_a_pipe_goes_on_when_the_cache_is_lost(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    piped(monkeypatch, TEXT)
    terminal.done("train", "-", "--model", "ngram", "--out", "run")
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "other-cache"))
    (kept,) = Run.open(Path("run")).config.data.source
    Path(kept).unlink()
    told = terminal.refuses("train", "--resume", "--out", "run")
    assert f"{kept}: no such file or folder, and run was trained on it. If it was moved, name its new place" in told
    assert told.endswith("(- for standard input): seqwise train NEWPATH --resume --out run")
    piped(monkeypatch, TEXT)
    terminal.done("train", "-", "--resume", "--out", "run")
    terminal.done("evaluate", "run")


# -- names that are not UTF-8 ----------------------------------------------------------------------------------------


ODD = os.fsdecode(b"caf\xe9")
SHOWN = "caf\\udce9"


@pytest.fixture
def odd_names(terminal: Any) -> Any:
    try:
        Path(f"{ODD}.txt").write_text(TEXT)
    except OSError:
        pytest.skip("needs a file system that takes any bytes for a name")
    Path("cats.txt").write_text(TEXT)
    return terminal


def test_what_cannot_be_written_down_is_refused_by_its_name(odd_names: Any) -> None:
    sentence = "its name is not UTF-8, and runs are kept and read by such names only. Rename it."
    for arguments in (["train", f"{ODD}.txt", "--model", "ngram"], ["compare", f"{ODD}.txt", "--minutes", "0.1"]):
        assert odd_names.refuses(*arguments) == f"{Path.cwd()}/{SHOWN}.txt: {sentence}"
    assert odd_names.refuses("train", "cats.txt", "--model", "ngram", "--out", ODD) == f"{SHOWN}: {sentence}"
    assert odd_names.refuses("evaluate", ODD, "cats.txt") == f"{SHOWN}: {sentence}"
    assert not Path("runs").exists()


def test_what_is_only_read_may_have_any_name(odd_names: Any) -> None:
    out, _ = odd_names.done("data", "check", f"{ODD}.txt")
    assert out.startswith(f"{SHOWN}.txt: 3,240 characters")
    assert f'"description": "{SHOWN}.txt: ' in odd_names.done("data", "check", f"{ODD}.txt", "--json")[0]
    Path("folder").mkdir()
    Path(f"folder/{ODD}.txt").write_text(TEXT)
    Path("folder/dogs.txt").write_text(TEXT)
    _, err = odd_names.done("train", "folder", "--model", "ngram", "--out", "run")
    assert f"2 files are read as one text: {SHOWN}.txt, dogs.txt" in err
    odd_names.done("evaluate", "run", f"{ODD}.txt", "--json")
    assert odd_names.refuses("evaluate", "run", f"{ODD}.png") == f"{SHOWN}.png: no such file or folder."
