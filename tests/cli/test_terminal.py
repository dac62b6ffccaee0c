"""What a model or a file says is shown on a terminal and never obeyed by it; in a pipe it stays as it is."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import seqwise
from seqwise.cli.comparing import _Bars
from seqwise.cli.progress import _Bar, _Lines
from seqwise.cli.terminal import note, say, shown_on
from seqwise.config import to_json

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x00\x7f\u202e\u2066end\ttab\n"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def is_harmless(text: str) -> bool:
    return all(char in "\n\t" or (char.isprintable() and ord(char) not in range(0x80, 0xA0)) for char in text)


def test_on_a_terminal_every_character_that_acts_is_shown_by_its_number() -> None:
    shown = shown_on(Screen(), HOSTILE + "é — 日本 👍\u200d👍 a\u0301")
    assert shown.startswith("\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u000d\\u0000\\u007f\\u202e\\u2066end\ttab\n")
    assert shown.endswith("é — 日本 👍\u200d👍 a\u0301")
    assert shown_on(io.StringIO(), HOSTILE) == HOSTILE


def test_what_is_shown_of_json_is_json() -> None:
    assert json.loads(shown_on(Screen(), to_json({"text": HOSTILE}))) == {"text": HOSTILE}


def test_results_and_notes_go_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, tell in (("stdout", say), ("stderr", note), ("stderr", _Lines().tell)):
        screen = Screen()
        monkeypatch.setattr(sys, stream, screen)
        tell(HOSTILE)
        assert is_harmless(screen.getvalue())
        assert "\\u001b[2J" in screen.getvalue()


@pytest.mark.parametrize("kind", [_Bar, _Bars])
def test_what_is_told_above_a_bar_goes_through_it(kind: type) -> None:
    from rich.console import Console
    from rich.progress import Progress

    screen = Screen()
    console = Console(file=screen, force_terminal=False, width=200)
    kind(Progress(console=console)).tell(HOSTILE)
    assert is_harmless(screen.getvalue())
    assert "\\u001b[2J" in screen.getvalue()


def on_a_terminal(*arguments: str | Path) -> str:
    """All that the command writes to a real (pseudo) terminal."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "seqwise", *map(str, arguments)]
    with subprocess.Popen(command, stdout=other, stderr=other, stdin=subprocess.DEVNULL, close_fds=True) as process:
        os.close(other)
        found = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            found += part
        process.wait()
    os.close(main)
    reset = "\x1b[0m"  # that is all colorama, which numba brings, writes when Python ends
    return found.decode("utf-8").replace("\r\n", "\n").removesuffix(reset)


def test_a_model_that_learned_to_write_escapes_does_not_reach_the_terminal(tmp_path: Path) -> None:
    data = tmp_path / "hostile.txt"
    data.write_text("a\x1b[31mb\n" * 300)
    seqwise.train(data, "ngram", out=tmp_path / "run", overrides=["tokenizer.kind=char", "model.order=4"])
    arguments = ["generate", tmp_path / "run", "--prompt", "a", "--method", "greedy", "--max-tokens", "12"]
    assert "a\\u001b[31mb\n" in on_a_terminal(*arguments)
    assert is_harmless(on_a_terminal(*arguments))
    assert is_harmless(on_a_terminal(*arguments, "--json"))
    piped = subprocess.run([sys.executable, "-m", "seqwise", *map(str, arguments)], capture_output=True, check=True)
    assert b"a\x1b[31mb\n" in piped.stdout
