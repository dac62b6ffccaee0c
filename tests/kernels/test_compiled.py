"""Compiled code on disk: found again, compiled by a process of its own where it is not, left out where that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from steppers import GPTS, build, draw, prompt_of, step_along

import seqwise.kernels
from seqwise.kernels import compiled as compiled_file
from seqwise.kernels.compiled import ENTRIES, Entry
from seqwise.models.engine import compiled_step, engine

TINY = """
from numba import carray

from .arithmetic import ints_at
from .also_read import ADDED


def tiny(rank, ranks, meetings, met, frame):
    numbers = carray(ints_at(frame), (2,))
    numbers[1] = numbers[0] * 10 + rank
    return met + ADDED


def never(rank, ranks, meetings, met, frame):
    return met.no_such_thing
"""
BEGIN = """
import os, sys, time, warnings
import numpy as np
from kernels.compiled import Entry

def use(entry):
    numbers = np.array([4, 0])
    found = entry(3, 1, 0, 100, numbers.ctypes.data)
    return found, numbers[1]

entry = Entry("tiny_step", "tiny")
"""
PATIENCE = 120


class Package:
    """A copy of the compiled loops with one more, which does next to nothing; each script is a process of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        here = Path(seqwise.kernels.__file__).parent
        shutil.copytree(here, folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "kernels/tiny_step.py").write_text(TINY)
        (folder / "kernels/also_read.py").write_text("ADDED = 7\n")

    def run(self, script: str, **more: str) -> list[str]:
        """What it prints, line by line."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        environment |= {"PYTHONPATH": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "of-the-user"), **more}
        command = [sys.executable, "-c", BEGIN + script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    def kept(self) -> list[Path]:
        return sorted(self.folder.glob("**/tiny_step.tiny-*.nbi"))


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path)


FROM_NOTHING = """
began = time.monotonic()
assert not entry.load()
took = time.monotonic() - began
num = 1
while not entry.load():
    time.sleep(0.02)
    num += 1
print(num > 1, took < 5, *use(entry))
print(entry.load())
"""
FROM_DISK = """
import subprocess
subprocess.run = None  # which would be an error
print(entry.load(wait=True), *use(entry))
"""
FROM_DISK_OR_NOT = """
print(entry._read())
"""


def test_what_is_not_there_is_compiled_by_another_process_and_then_found(package: Package) -> None:
    assert package.run(FROM_DISK_OR_NOT) == ["False"]
    assert package.run(FROM_NOTHING) == ["True True 107 43", "True"]
    assert len(package.kept()) == 1
    assert package.run(FROM_DISK) == ["True 107 43"]


def test_any_changed_file_of_the_package_makes_it_stale(package: Package) -> None:
    """A constant of another file is compiled in: numba alone would not see it."""
    assert package.run("entry.compile(); print(*use(entry))") == ["107 43"]
    assert package.run(FROM_DISK) == ["True 107 43"]
    (package.folder / "kernels/also_read.py").write_text("ADDED = 8\n")
    assert package.run(FROM_DISK_OR_NOT) == ["False"]
    assert package.run("print(entry.load(wait=True), *use(entry))") == ["True 108 43"]


@pytest.mark.parametrize("where", ["of-the-user", "by-setting"])
def test_a_package_that_cannot_be_written_to(package: Package, where: str) -> None:
    """No folder can be made in the place of a file; permissions would not stop an administrator."""
    beside = package.folder / "kernels/__pycache__"
    beside.touch()
    more = {"NUMBA_CACHE_DIR": str(package.folder / where)} if where == "by-setting" else {}
    assert package.run("print(entry.load(wait=True), *use(entry))", **more) == ["True 107 43"]
    assert [path.is_relative_to(package.folder / where) for path in package.kept()] == [True]
    assert package.run(FROM_DISK, **more) == ["True 107 43"]


def test_several_processes_that_need_it_at_once_all_get_it(package: Package) -> None:
    script = BEGIN + "print(entry.load(wait=True), *use(entry))"
    environment = {**os.environ, "PYTHONPATH": str(package.folder)}
    command = [sys.executable, "-c", script]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=PATIENCE)[0] for process in started] == ["True 107 43\n"] * 3


def test_what_cannot_be_compiled_is_told_once(package: Package) -> None:
    script = """
entry = Entry("tiny_step", "never")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always", UserWarning)
    found = [entry.load()]
    while len(told) == 0:
        found.append(entry.load())
        time.sleep(0.02)
    found += [entry.load(), entry.load(wait=True)]
print(any(found), len(told), told[0].message)
"""
    (line,) = package.run(script)
    assert line.startswith("False 1 a step could not be compiled, so torch takes it, more slowly: tiny_step:never: ")
    assert len(line) > 100  # and why


def test_an_unknown_entry_is_told(package: Package) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kernels.compiled", "tiny_step:never"],
        env={**os.environ, "PYTHONPATH": str(package.folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("tiny_step:never: ")
    assert "Traceback" not in done.stderr


def test_every_entry_is_a_function_of_its_module() -> None:
    for entry in ENTRIES.values():
        assert callable(getattr(__import__(f"seqwise.kernels.{entry.module}", fromlist=["_"]), entry.function))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", ENTRIES)
def test_entries_of_the_package_load_from_disk_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(ENTRIES[name].module, ENTRIES[name].function)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert entry.load(wait=True)
    assert entry.address


class Nowhere(Entry):
    """What is never found on disk."""

    def _read(self) -> bool:
        return False


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python"])
def test_where_nothing_can_be_compiled_torch_steps(monkeypatch: pytest.MonkeyPatch, python: str) -> None:
    """One sentence, and the numbers are those of torch."""
    shape = GPTS[0]
    model, prompt, said = build(shape), prompt_of(shape, [3, 5]), draw(6, 2)
    monkeypatch.setitem(ENTRIES, "gpt", Nowhere("gpt_step", "gpt_step"))
    monkeypatch.setattr(sys, "executable", python)
    expected = step_along(model, prompt, said, "off")
    with warnings.catch_warnings(record=True) as told, torch.inference_mode(), engine("on"):
        warnings.simplefilter("always")
        log_probs, state = model.start(prompt)
        for number, tokens in enumerate(said):
            log_probs, state = model.step(tokens, state)
            assert torch.equal(log_probs, expected[number + 1])
        assert compiled_step(model, 2) is None
    assert [str(warning.message)[:51] for warning in told] == ["a step could not be compiled, so torch takes it, mo"]


def test_while_it_is_compiled_torch_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and without a word; and when it is there, it is taken."""
    shape = GPTS[0]
    model, prompt, said = build(shape), prompt_of(shape, [3, 5]), draw(6, 2)
    entry = Nowhere("gpt_step", "gpt_step")
    monkeypatch.setitem(ENTRIES, "gpt", entry)
    started, is_begun, is_over = list[Any](), threading.Event(), threading.Event()
    monkeypatch.setattr(compiled_file, "PATIENCE", 1.0)
    monkeypatch.setattr(Entry, "began", None)

    def compiling(command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        started.append(command)
        is_begun.set()
        is_over.wait(PATIENCE)
        return subprocess.CompletedProcess(command, 1, "", "given up")

    monkeypatch.setattr(compiled_file.subprocess, "run", compiling)
    expected = step_along(model, prompt, said, "off")
    with torch.inference_mode(), engine("auto"):
        began = time.monotonic()
        assert compiled_step(model, 2) is None
        assert time.monotonic() - began < 5
        log_probs, state = model.start(prompt)
        for number, tokens in enumerate(said):
            log_probs, state = model.step(tokens, state)
            assert torch.equal(log_probs, expected[number + 1])
    assert not started  # a text that is done by now needs no other process
    assert is_begun.wait(PATIENCE)
    is_over.set()
    assert len(started) == 1
    assert started[0][1:] == ["-m", "seqwise.kernels.compiled", "gpt_step:gpt_step"]
