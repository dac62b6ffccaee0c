"""Faults, through the real command line: kills, Ctrl-C, damaged files, a full disk, and what people get wrong.

After each, either the work goes on to the very same weights, or one sentence says what to do, and nothing is
half-written. Commands that are killed are started as users start them; the others are forked from a process that has
imported torch already, which saves two seconds each.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from seqwise.training.report import CLOCK_FIELDS

PROGRAM = [sys.executable, "-c", "from seqwise.cli import main; main()"]
FORKING = """
import json, os, sys
import seqwise.cli, seqwise.cli.training, seqwise.cli.writing, seqwise.cli.tables, seqwise.training.estimate
for line in sys.stdin:
    command = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in enumerate((os.devnull, command["out"], command["errors"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["seqwise", *command["arguments"]]
        sys.exit(seqwise.cli.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(f"\\n{peak}", file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat, and a frog.\n" * 60
STEPS = 60
SETTINGS = {
    "lstm": ["model.model_dim=16", "model.num_layers=2", "model.dropout=0.2", "training.context=16"],
    "gpt": ["model.model_dim=16", "model.num_heads=2", "model.num_layers=2", "model.context=16", "model.dropout=0.2"],
}
TRAINING = ["checkpoint_seconds=0", "threads=1", "batch_size=4", "evaluate_every=20", "sample_tokens=8"]


@dataclass(frozen=True)
class World:
    """A folder with a text, a cache of its own, and a process to fork commands from."""

    folder: Path
    text: Path
    environment: dict[str, str]
    forking: subprocess.Popen[str]

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

    def call(self, *arguments: str | Path) -> Result:
        """Run a command to its end."""
        out, errors = self.folder / "out", self.folder / "errors"
        command = {"arguments": [str(a) for a in arguments], "out": str(out), "errors": str(errors)}
        assert self.forking.stdin is not None
        assert self.forking.stdout is not None
        self.forking.stdin.write(json.dumps(command) + "\n")
        self.forking.stdin.flush()
        code = int(self.forking.stdout.readline())
        return Result(code, out.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8"))

    def training(self, family: str, out: Path, *, steps: int = STEPS) -> list[str | Path]:
        """The command line of a short run in which every step is a checkpoint."""
        settings = [*SETTINGS[family], *(f"training.{name}" for name in TRAINING)]
        sets = [part for setting in settings for part in ("--set", setting)]
        return ["train", self.text, "--model", family, "--out", out, "--steps", str(steps), *sets]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    errors: str
    memory: int = field(default=0)

    def is_done(self) -> None:
        assert self.code == 0, self.errors
        assert "Traceback" not in self.errors

    def is_refused(self, *words: str) -> None:
        """Exit code 2 and one sentence, which has all these words."""
        assert "Traceback" not in self.errors
        assert self.code == 2, (self.code, self.errors)
        told = [line for line in self.errors.splitlines() if line.startswith("error:")]
        assert len(told) == 1
        assert self.errors.splitlines()[-1] == told[0]
        assert told[0].rstrip().endswith((".", "?")) or "iconv" in told[0]
        for word in words:
            assert word in told[0]
        assert self.out == ""


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def steps_saved(run: Path) -> list[int]:
    folder = run / "checkpoints"
    return sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit()) if folder.exists() else []


def wait_for_step(process: subprocess.Popen[str], run: Path, step: int, *, seconds: float = 60) -> None:
    """Until a checkpoint of this step or a later one is there, and the process still at work."""
    until = time.monotonic() + seconds
    while not steps_saved(run) or steps_saved(run)[-1] < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.002)


def log_without_clock(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in line.items() if name not in CLOCK_FIELDS} for line in lines]


def same_run(found: Path, expected: Path) -> None:
    """The best weights, the last weights and optimiser to the bit, and the log but for its clock."""
    for name in ("model.safetensors", *(f"checkpoints/{STEPS}/{n}.safetensors" for n in ("weights", "optimizer"))):
        assert (found / name).read_bytes() == (expected / name).read_bytes(), f"{name} differs"
    assert log_without_clock(found) == log_without_clock(expected)
    assert not [p for p in found.rglob(".*")]  # nothing unfinished is left behind


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("faults")
    (folder / "cats.txt").write_text(TEXT)
    kept = {name: value for name, value in os.environ.items() if name != "SEQWISE_DATA"}
    environment = {**kept, "OMP_NUM_THREADS": "1", "SEQWISE_CACHE": str(folder / "cache")}
    forking = subprocess.Popen(
        [sys.executable, "-c", FORKING],
        cwd=folder,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with forking:
        yield World(folder, folder / "cats.txt", environment, forking)
        forking.kill()


@pytest.fixture(scope="module")
def whole_runs(world: World) -> dict[str, Path]:
    """Runs that were never stopped."""
    for family in SETTINGS:
        world.call(*world.training(family, world.folder / f"whole-{family}")).is_done()
    return {family: world.folder / f"whole-{family}" for family in SETTINGS}


@pytest.fixture(scope="module")
def interrupted(world: World) -> tuple[Path, Result]:
    """An LSTM stopped by Ctrl-C somewhere in the middle, and what it said. Tests take a copy."""
    run = world.folder / "interrupted"
    process = world.start(*world.training("lstm", run))
    wait_for_step(process, run, 20)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    return run, Result(process.returncode, out, errors)


@pytest.fixture
def stopped(interrupted: tuple[Path, Result], tmp_path: Path) -> Path:
    return Path(shutil.copytree(interrupted[0], tmp_path / "stopped"))


# -- stopped from outside --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["lstm", "gpt"])
def test_a_run_killed_twice_at_random_moments_ends_as_the_run_never_stopped(
    world: World, whole_runs: dict[str, Path], family: str
) -> None:
    run = world.folder / f"killed-{family}"
    command, reached, chance = world.training(family, run), 0, random.SystemRandom()
    for _ in range(2):
        process = world.start(*command)
        wait_for_step(process, run, reached + chance.randint(1, STEPS // 3))
        time.sleep(chance.uniform(0, 0.03))
        assert process.poll() is None, "the run was over before it could be killed; it needs more steps"
        process.kill()
        process.communicate()
        reached = steps_saved(run)[-1]
        assert 0 < reached < STEPS
        command = ["train", "--resume", "--out", run]
    done = world.call(*command)
    done.is_done()
    assert "going on from step" in done.errors
    same_run(run, whole_runs[family])


def test_a_run_killed_before_its_first_checkpoint_starts_again(world: World, whole_runs: dict[str, Path]) -> None:
    run = world.folder / "killed-early"
    process = world.start(*world.training("lstm", run))
    until = time.monotonic() + 60
    while not (run / "config.toml").exists():
        assert time.monotonic() < until
        time.sleep(0.001)
    process.kill()
    process.communicate()
    world.call("train", "--resume", "--out", run).is_done()
    same_run(run, whole_runs["lstm"])


def test_ctrl_c_saves_and_says_how_to_resume(interrupted: tuple[Path, Result]) -> None:
    run, result = interrupted
    assert result.code == 130
    assert "Traceback" not in result.errors
    assert f"seqwise train --resume --out {run}" in result.errors
    assert result.out == ""
    assert 20 <= steps_saved(run)[-1] < STEPS
    assert not [p for p in run.rglob(".*")]


def test_a_run_stopped_by_ctrl_c_resumes_to_the_same_weights(
    world: World, stopped: Path, whole_runs: dict[str, Path]
) -> None:
    done = world.call("train", "--resume", "--out", stopped)
    done.is_done()
    assert "bits per character" in done.out
    same_run(stopped, whole_runs["lstm"])


# -- damaged and full ------------------------------------------------------------------------------------------------


def test_a_checkpoint_cut_short_is_named_and_the_one_before_is_used(
    world: World, stopped: Path, whole_runs: dict[str, Path]
) -> None:
    before, newest = steps_saved(stopped)
    weights = stopped / "checkpoints" / str(newest) / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    done = world.call("train", "--resume", "--out", stopped)
    done.is_done()
    assert f"{weights}: damaged" in done.errors
    assert f"going on from step {before} of {STEPS}" in done.errors
    same_run(stopped, whole_runs["lstm"])


def test_a_full_disk_keeps_the_old_checkpoint_and_the_run_goes_on_when_there_is_room(
    world: World, stopped: Path, whole_runs: dict[str, Path]
) -> None:
    """The system itself refuses: no file may grow beyond the size of half the weights."""
    before = content_of(stopped)
    newest = steps_saved(stopped)[-1]
    limit = (stopped / "checkpoints" / str(newest) / "weights.safetensors").stat().st_size // 2

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = world.start("train", "--resume", "--out", stopped, preexec_fn=no_room)
    out, errors = process.communicate(timeout=60)
    result = Result(process.returncode, out, errors)
    result.is_refused(str(stopped), "cannot write", "What was saved before is whole", "--resume")
    after = content_of(stopped)
    assert {n: c for n, c in after.items() if n != "log.jsonl"} == {n: c for n, c in before.items() if n != "log.jsonl"}
    world.call("train", "--resume", "--out", stopped).is_done()
    same_run(stopped, whole_runs["lstm"])


@pytest.mark.parametrize("name", ["model.safetensors", "config.toml", "vocab/schema.json", "vocab/tokens.json"])
def test_a_damaged_file_of_a_run_is_named(world: World, stopped: Path, name: str) -> None:
    file = stopped / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] + b'\x00"')
    world.call("generate", stopped, "--max-tokens", "3").is_refused(str(file))


# -- resumed with something else -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        (["--seed", "5"], "was trained with training.seed = 0, not 5."),
        (["--set", "model.num_layers=3"], "was trained with model.num_layers = 2, not 3."),
    ],
)
def test_resuming_with_other_settings_is_refused(world: World, stopped: Path, others: list[str], sentence: str) -> None:
    before = content_of(stopped)
    world.call("train", "--resume", "--out", stopped, *others).is_refused(sentence, "another --out")
    assert content_of(stopped) == before


@pytest.fixture
def edited_text(world: World) -> Iterator[None]:
    world.text.write_text(TEXT.replace("frog", "toad"))
    yield
    world.text.write_text(TEXT)


@pytest.mark.usefixtures("edited_text")
def test_resuming_with_other_data_is_refused(world: World, stopped: Path) -> None:
    before = content_of(stopped)
    world.call("train", "--resume", "--out", stopped).is_refused("cats.txt has changed since", "Restore the data")
    assert content_of(stopped) == before


# -- what people get wrong -------------------------------------------------------------------------------------------


def empty_file(folder: Path) -> None:
    (folder / "data.txt").write_text("")


def one_character(folder: Path) -> None:
    (folder / "data.txt").write_text("x")


def invalid_utf8(folder: Path) -> None:
    (folder / "data.txt").write_bytes(b"good line\nbad \xff line\n" + TEXT.encode())


def no_text(folder: Path) -> None:
    (folder / "data.txt").mkdir()
    (folder / "data.txt" / "table.xlsx").write_bytes(b"PK")


def good_text(folder: Path) -> None:
    (folder / "data.txt").write_text(TEXT)


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (empty_file, [], ["data.txt: the file is empty. Give some text"]),
        (one_character, [], ["data.txt: too little text: 1 character in all"]),
        (invalid_utf8, [], ["data.txt: not UTF-8: line 2, byte 14 is 0xff"]),
        (no_text, [], ["data.txt: no text files", ".xlsx"]),
        (good_text, ["--model", "gtp"], ['unknown model "gtp". Did you mean "gpt"?']),
        (good_text, ["--set", "model.n_layers=2"], ['unknown setting "model.n_layers"', 'mean "model.num_layers"?']),
        (good_text, ["--seed", "-1"], ["seed"]),
        (good_text, ["--device", "toaster"], ["device toaster cannot be used here"]),
    ],
    ids=[
        "empty",
        "one character",
        "not UTF-8",
        "no text",
        "unknown model",
        "unknown setting",
        "bad seed",
        "bad device",
    ],
)
def test_bad_input_is_told_in_one_sentence_and_nothing_is_written(
    world: World, tmp_path: Path, make: Callable[[Path], None], options: list[str], words: list[str]
) -> None:
    make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    out = tmp_path / "runs" / "x"
    result = world.call("train", tmp_path / "data.txt", "--out", out, "--steps", "2", *options)
    result.is_refused(*words)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_context_longer_than_the_models_is_refused(world: World, whole_runs: dict[str, Path]) -> None:
    result = world.call("evaluate", whole_runs["gpt"], "--context", "64", "--json")
    result.is_refused("a context of 64 tokens is longer than the model's, which is 16")


def test_a_prompt_with_characters_never_seen_is_continued_with_a_note(
    world: World, whole_runs: dict[str, Path]
) -> None:
    before = content_of(whole_runs["gpt"])
    done = world.call("generate", whole_runs["gpt"], "--prompt", "Ж the ☃", "--max-tokens", "20")
    done.is_done()
    assert done.out.startswith("Ж the ☃")
    assert len(done.out) > len("Ж the ☃\n")
    assert "note: the model has never seen Ж ☃" in done.errors
    assert content_of(whole_runs["gpt"]) == before


def test_a_line_of_50_megabytes_is_just_a_long_line(world: World, tmp_path: Path) -> None:
    """The slow one."""
    line, valid = tmp_path / "line.txt", tmp_path / "valid.txt"
    line.write_bytes(b"the cat sat on the mat and looked at the dog " * (50_000_000 // 45))
    valid.write_text(TEXT)
    checked = call_and_measure(world, "data", "check", line, "--valid", valid, "--json")
    checked.is_done()
    assert json.loads(checked.out)["results"][0]["parts"]["train"]["longest_line"] == line.stat().st_size
    trained = call_and_measure(
        world, "train", line, "--valid", valid, "--model", "lstm", "--tokenizer", "char", "--steps", "2",
        "--set", "model.model_dim=8", "--set", "training.threads=1", "--out", tmp_path / "run",
    )  # fmt: skip
    trained.is_done()
    assert (tmp_path / "run" / "card.md").exists()
    for result in (checked, trained):
        assert result.memory < 1_000_000_000


def call_and_measure(world: World, *arguments: str | Path) -> Result:
    """With the most memory that the process had, in bytes.

    What a process had counts from what the one that started it had: a small process stands between it and the tests.
    """
    process = subprocess.run(
        [sys.executable, "-c", MEASURE, *PROGRAM, *map(str, arguments)],
        cwd=world.folder, env=world.environment, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    errors, _, measured = process.stderr.rstrip("\n").rpartition("\n")
    return Result(process.returncode, process.stdout, errors, int(measured))


def test_memory_is_measured_without_that_of_the_tests(world: World) -> None:
    held = b"x" * 400_000_000
    measured = call_and_measure(world, "--version")
    measured.is_done()
    assert 10_000_000 < measured.memory < len(held)
