"""seqwise data list | get | check: results on standard output, one sentence on standard error, the right exit code."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seqwise.data.builtin import (
    BUILTIN,
    CHOICE_TOYS,
    EXAMPLE_SETS,
    LABEL_TOYS,
    PAIR_TOYS,
    SEEN_TOYS,
    SPAN_TOYS,
    TAG_TOYS,
)
from seqwise.data.public import PUBLIC, PublicData, PublicFile

TEXT = "".join(f"line {i}, which jumps quickly over the lazy dog, box of {i % 9}\n" for i in range(400))


@pytest.fixture
def poems(tmp_path: Path) -> Path:
    path = tmp_path / "poems.txt"
    path.write_text(TEXT)
    return path


def offer(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """A data set of one file with this content."""
    file = PublicFile("romeo.txt", "http://127.0.0.1:9/romeo", hashlib.sha256(content).hexdigest(), len(content))
    monkeypatch.setitem(PUBLIC, "romeo", PublicData("A play", "public domain", {"train": file}))


def test_the_list_names_every_data_set_and_how_to_get_it(terminal: Any) -> None:
    code, out, err = terminal.run("data", "list")
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines()}
    toys = [*(name for name, _ in PAIR_TOYS.values()), *LABEL_TOYS, *TAG_TOYS, *SPAN_TOYS, *CHOICE_TOYS, *SEEN_TOYS]
    assert list(rows) == [*BUILTIN, *EXAMPLE_SETS, *toys, *PUBLIC]
    assert rows["python-reference"].endswith("(built in)")
    assert rows["ptb"].endswith("(seqwise data get ptb)")


def test_the_list_can_be_read_by_a_program(terminal: Any) -> None:
    code, out, err = terminal.run("data", "list", "--json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["results"]}
    toys = [*(name for name, _ in PAIR_TOYS.values()), *LABEL_TOYS, *TAG_TOYS, *SPAN_TOYS, *CHOICE_TOYS, *SEEN_TOYS]
    assert list(rows) == [*BUILTIN, *EXAMPLE_SETS, *toys, *PUBLIC]
    assert rows["python-source"]["built_in"] is True
    assert rows["ptb"]["at_hand"] is False
    assert all(row["title"] and row["licence"] for row in rows.values())


def test_a_copy_at_hand_is_listed_and_got(terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, TEXT.encode())
    (tmp_path / "romeo.txt").write_bytes(TEXT.encode())
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    assert "romeo" in terminal.run("data", "list")[1]
    assert terminal.run("data", "list")[1].splitlines()[-1].endswith("(at hand)")
    code, out, _ = terminal.run("data", "get", "romeo")
    assert (code, out) == (0, f"romeo train: {tmp_path / 'romeo.txt'} (sha256 verified)\n")


def test_a_copy_at_hand_with_other_content_is_refused(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, b"something else")
    (tmp_path / "romeo.txt").write_bytes(TEXT.encode())
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    assert "not the expected content" in terminal.refuses("data", "get", "romeo")


def test_a_data_set_that_cannot_be_fetched_is_told(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, TEXT.encode())
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert "cannot be fetched" in terminal.refuses("data", "get", "romeo")


def test_an_unknown_data_set_gets_the_nearest_name(terminal: Any) -> None:
    assert terminal.refuses("data", "get", "wikitext2") == 'unknown data set "wikitext2". Did you mean "wikitext-2"?'


def test_a_built_in_corpus_need_not_be_fetched(terminal: Any) -> None:
    code, out, err = terminal.run("data", "get", "python-reference")
    assert code in (0, 2)
    assert "built in" in out + err
    assert "unknown" not in out + err


def test_a_check_tells_in_plain_words_what_is_in_a_text(terminal: Any, poems: Path) -> None:
    code, out, err = terminal.run("data", "check", poems)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"poems.txt: {len(TEXT):,} characters of text in 400 lines; split in order 90/5/5")
    assert "encoding: UTF-8, read from end to end" in lines
    assert any(line.startswith("train: ") and "median" in line for line in lines)
    assert any(line.startswith("valid: 0 of ") for line in lines)
    assert any(line.startswith("vocabulary of train: ") for line in lines)
    assert any(line.startswith("tokens: about ") for line in lines)
    assert any(line.startswith("time: ") for line in lines)
    assert any(line.startswith("memory: ") for line in lines)
    assert lines[-1] == "nothing suspicious found"


def test_a_check_shows_what_to_look_at(terminal: Any, poems: Path) -> None:
    code, out, _ = terminal.run("data", "check", poems, "--valid", poems)
    assert code == 0
    assert "look at this: valid: 400 of 400 longer lines (100 %) stand in the training part too" in out


def test_a_check_can_be_read_by_a_program(terminal: Any, poems: Path) -> None:
    code, out, err = terminal.run("data", "check", poems, "--split-at", "80/20", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)["results"][0]
    assert found["parts"]["train"]["characters"] == len(TEXT) * 8 // 10
    assert list(found["parts"]) == ["train", "valid"]
    assert found["estimate"]["tokens"] > 0
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "poems.txt: the file is empty. Give some text to learn from."),
        (
            b"x",
            "poems.txt: too little text: 1 character in all leave 0 to train. A model needs a few hundred at least.",
        ),
        (
            b"ok\ncaf\xe9\n",
            "poems.txt: not UTF-8: line 2, byte 6 is 0xe9. Convert it, for example: iconv -f latin1 -t utf-8 poems.txt",
        ),
    ],
)
def test_bad_text_is_one_sentence(terminal: Any, poems: Path, content: bytes, sentence: str) -> None:
    poems.write_bytes(content)
    assert terminal.refuses("data", "check", "poems.txt") == sentence
    assert not (poems.parent / "cache").exists()  # nothing half-written


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.txt"], "nothing.txt: no such file or folder."),
        (["poems.txt", "--split-at", "90/20"], '--split-at "90/20" should be two or three shares that add up to 100'),
        (["poems.txt", "--valid", "nothing.txt"], "nothing.txt: no such file or folder."),
        (["tinyshakespear"], 'Did you mean "tinyshakespeare"?'),
        (["empty"], "empty: no text files"),
    ],
)
def test_a_mistake_is_one_sentence(terminal: Any, poems: Path, arguments: list[str], sentence: str) -> None:
    (poems.parent / "empty").mkdir()
    assert sentence in terminal.refuses("data", "check", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [["data", "check"], ["data", "frob"], ["data", "list", "--nope"], ["data", "get"], ["frob"], ["data"], []],
)
def test_a_command_that_does_not_exist_or_lacks_something_is_the_users_mistake(
    terminal: Any, arguments: list[str]
) -> None:
    code, _, err = terminal.run(*arguments)
    assert code == 2
    assert "Usage: " in err
    assert "Traceback" not in err


def test_ctrl_c_ends_with_its_own_exit_code(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    Path("poems.txt").write_text(TEXT)
    monkeypatch.setattr("seqwise.tasks.text.open_text", interrupt)
    assert terminal.run("data", "check", "poems.txt")[0] == 130


def test_a_mistake_in_a_real_process_leaves_no_traceback(tmp_path: Path) -> None:
    code = "from seqwise.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "data", "get", "nosuch"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith('error: unknown data set "nosuch". Known: ')
    assert done.stderr.count("\n") == 1
