"""Comparisons from beginning to end: what is found, what is left when something goes wrong, and what is refused.

One comparison on a small text is begun by the real command line, stopped by Ctrl-C and gone on with; most tests read
what it left. Others run the same jobs in this process (`Here`), or hand out what that one found (`Replay`).
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison.in_process import Here
from runs_by_hand import at_most, prepare

import seqwise
from seqwise.cli import comparing, main
from seqwise.comparison import compare as module
from seqwise.comparison import plan, verdict
from seqwise.comparison.aggregate import aggregate, repeat_command
from seqwise.comparison.compare import run_comparison
from seqwise.comparison.fork_server import Job
from seqwise.comparison.plan import Settings
from seqwise.comparison.request import ComparisonRequest
from seqwise.comparison.results import Comparison, Entry
from seqwise.comparison.table import table_rows
from seqwise.comparison.workspace import Workspace
from seqwise.errors import CheckpointError, ConfigError, DataError, SeqwiseError
from seqwise.models import MODELS
from seqwise.run import Run
from seqwise.training.preparing import resume

MODELS_COMPARED = ["ngram", "hmm", "rnn"]
MINUTES = "1"
ONE_CORE = """
import os
os.sched_getaffinity = lambda _: {0}
from seqwise.comparison import compare, plan, verdict
plan.PLANNED_UPDATES = plan.MIN_SECONDS = verdict.MIN_UPDATES = 0  # nobody is left out, however slow this machine is
plan.LADDER_SHARE = 0.2  # there is time to measure everything at the end
compare.MAX_TIMING = 10.0
from seqwise.cli import main
main()
"""
HOSTILE = '</script><script>alert("x")</script> & <img src=x onerror=alert(1)> **bold** | \u202egpt'
WORDS = ["the", "a", "cat", "dog", "frog", "house", "green", "old", "walks", "sleeps", "sees", "und", "schön", "日本"]


def make_text() -> str:
    chance = random.Random(0)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(3, 8))) + chance.choice(".!?") for _ in range(240)]
    lines[100] = lines[-5] = HOSTILE  # in the training part, and in the passage that is shown
    return "\n".join(lines) + "\n"


# -- in place of processes -------------------------------------------------------------------------------------------


FOUND_BY = {"time": "timed", "train": "trained", "score": "scored"}


class Replay(Here):
    """Each job hands out what the one of the same name found in another comparison, or fails where it should."""

    found_in: Path
    failing: tuple[Job, ...]
    done: list[Job]

    def work(self, job: Job) -> int:
        if job.kind == "check":
            return super().work(job)
        self.done.append(job)
        if job in self.failing:
            raise DataError(f"{job.kind} of {job.name} failed.")
        if job.kind == "prepare":
            shutil.copytree(self.found_in / "vocab", self.folder / "vocab", dirs_exist_ok=True)
            shutil.copy(self.found_in / "prepared.json", self.folder)
            return 0
        if job.kind == "baseline":
            shutil.copy(self.found_in / "baseline.json", self.folder)
            return 0
        found = f"{job.name}.{FOUND_BY[job.kind]}.json"
        (self.folder / "found").mkdir(exist_ok=True)
        if job.kind == "time":
            shutil.copy(self.found_in / "found" / found, self.folder / "found")
            return 0
        shutil.copytree(self.found_in / "runs" / job.name, self.folder / "runs" / job.name, dirs_exist_ok=True)
        shutil.copy(self.found_in / "found" / found, self.folder / "found")
        return int(json.loads((self.folder / "found" / found).read_text()).get("peak_bytes", 0))


@dataclass
class Told:
    """What a watcher was told; it may do something when a stage begins, or a trial ends."""

    on_begin: Callable[[str], None] = lambda what: None
    on_end: Callable[[str], None] = lambda trial: None

    def __post_init__(self) -> None:
        self.sentences: list[str] = []
        self.ended: list[tuple[str, str]] = []
        self.trials: list[str] = []

    def tell(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def begin(self, what: str, trials: Sequence[str]) -> None:
        self.trials += trials
        self.on_begin(what)

    def progress(self, trial: str, line: dict[str, Any]) -> None:
        assert trial in self.trials
        assert 0 <= line["step"] <= line["steps"]

    def end(self, trial: str, sentence: str) -> None:
        self.ended.append((trial, sentence))
        self.on_end(trial)


# -- the command line ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    errors: str

    def sentence(self) -> str:
        """Of what was refused: exit code 2, one sentence, no result."""
        assert "Traceback" not in self.errors
        assert (self.code, self.out) == (2, ""), self.errors
        told = [line for line in self.errors.splitlines() if line.startswith("error: ")]
        assert told == [self.errors.splitlines()[-1]]
        return told[0].removeprefix("error: ")


def call(*arguments: str | Path) -> Result:
    """A command, in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["seqwise", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
    return Result(code, out.getvalue(), errors.getvalue())


def wait_until(is_so: Callable[[], bool], *, seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.002)


def has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def processes_about(folder: Path) -> dict[int, int]:
    """Processes with the folder in their command line, and the parent of each."""
    found = {}
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if str(folder).encode() in (process / "cmdline").read_bytes().split(b"\0"):
                state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    found[int(process.name)] = int(parent)
    return found


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# -- one comparison for many tests -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a text, a cache of its own, and a machine of one core.

    The compiled loops are in their cache, as on every run but the first on a machine, and what torch loads for its
    first optimiser is loaded here, for the trials that run in this process.
    """
    folder = tmp_path_factory.mktemp("compare")
    (folder / "words.txt").write_text(make_text(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQWISE_CACHE", str(folder / "cache"))
        patch.delenv("SEQWISE_DATA", raising=False)
        patch.setattr(os, "sched_getaffinity", lambda _: {0})
        patch.delenv("OMP_NUM_THREADS", raising=False)
        patch.setattr(plan, "PLANNED_UPDATES", 0)  # nobody is left out, however slow this machine is
        patch.setattr(plan, "MIN_SECONDS", 0.0)
        patch.setattr(plan, "LADDER_SHARE", 0.2)  # there is time to measure everything at the end
        patch.setattr(module, "MAX_TIMING", 10.0)
        patch.setattr(verdict, "MIN_UPDATES", 0)
        for name in ("ngram", "hmm", "rnn"):
            seqwise.train(folder / "words.txt", name, out=folder / "warm" / name, steps=1)
        yield folder


@dataclass(frozen=True)
class Stopped:
    folder: Path
    result: Result
    processes_left: dict[int, int]


@pytest.fixture(scope="module")
def stopped(world: Path) -> Stopped:
    """By Ctrl-C, as a terminal sends it, while the RNN was learning. Tests take a copy."""
    out = world / "comparison"
    process = subprocess.Popen(
        [sys.executable, "-c", ONE_CORE, "compare", "words.txt", "--minutes", MINUTES, "--out", str(out),
         "--models", ",".join(reversed(MODELS_COMPARED))],
        cwd=world, env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    try:
        wait_until(lambda: process.poll() is not None or has_content(out / "runs" / "rnn" / "log.jsonl"))
        os.killpg(process.pid, signal.SIGINT)
        told, errors = process.communicate(timeout=90)
    finally:
        process.kill()
    left = processes_about(out)
    return Stopped(shutil.copytree(out, world / "stopped"), Result(process.returncode, told, errors), left)


def short_finals(settings: Settings, standings: Any, *, share: float, seconds: float) -> Any:
    """Whoever learns by gradients goes on, for a little longer than before, however slow this machine is."""
    improving = [replace(standing, best_at=1.0) for standing in standings]
    return plan.finals(settings, improving, share=share, seconds=1.2 * 60 * share)


@pytest.fixture(scope="module")
def finished(world: Path, stopped: Stopped) -> tuple[Path, Result]:
    """The same, gone on with."""
    with pytest.MonkeyPatch.context() as patch, at_most(180):
        patch.setattr(module, "finals", short_finals)
        result = call("compare", "--resume", "--out", world / "comparison", "--json")
    assert result.code == 0, result.errors
    return world / "comparison", result


@pytest.fixture(scope="module")
def folder(finished: tuple[Path, Result]) -> Path:
    return finished[0]


@pytest.fixture(scope="module")
def comparison(folder: Path) -> Comparison:
    return Comparison.read(folder / "compare.json")


@pytest.fixture
def replay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> type[Replay]:
    """Comparisons find what that one found, at once."""

    class Handed(Replay):
        found_in = folder
        failing = ()
        done: list[Job] = []  # noqa: RUF012

    monkeypatch.setattr(module, "ForkServer", Handed)
    monkeypatch.setattr(module, "finals", short_finals)
    return Handed


def settings_for(world: Path, **changes: Any) -> Settings:
    return ComparisonRequest(
        world / "words.txt", **{"minutes": float(MINUTES), "models": MODELS_COMPARED, **changes}
    ).settings()


def without_clock(comparison: Comparison) -> dict[str, Any]:
    """But for the time it took, and the shares that follow from it."""
    ladder, final = ([replace(entry, minutes=0) for entry in stage] for stage in (comparison.ladder, comparison.final))
    return replace(comparison, seconds={}, ladder=ladder, final=final).to_dict()


# -- stopped ---------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_with_130_and_says_how_to_go_on(world: Path, stopped: Stopped) -> None:
    assert stopped.result.code == 130
    assert "Traceback" not in stopped.result.errors
    assert f"seqwise compare --resume --out {world / 'comparison'}" in stopped.result.errors
    assert stopped.processes_left == {}


def test_what_was_found_before_ctrl_c_can_be_read(stopped: Stopped) -> None:
    found = Comparison.read(stopped.folder / "compare.json")
    assert not found.is_complete
    assert {entry.name: entry.status for entry in found.ladder} == {"ngram": "done", "hmm": "done", "rnn": "stopped"}
    assert [entry.name for entry in found.ladder][2] == "rnn"
    assert found.final == []
    assert all(entry.valid is not None and entry.test is None for entry in found.ladder[:2])
    for name in ("compare.md", "report.html"):
        shown = (stopped.folder / name).read_text(encoding="utf-8")
        assert all(family in shown for family in MODELS_COMPARED)
    assert "Not finished" in (stopped.folder / "compare.md").read_text(encoding="utf-8")
    assert not [path for path in stopped.folder.rglob(".*")]  # nothing unfinished


def test_going_on_trains_nothing_again(folder: Path, stopped: Stopped) -> None:
    before, after = content_of(stopped.folder), content_of(folder)
    for name in ("ngram", "hmm"):
        for file in (f"found/{name}.trained.json", f"runs/{name}/model.safetensors", f"runs/{name}/log.jsonl"):
            assert after[file] == before[file]


def test_a_trial_that_was_stopped_goes_on_from_its_last_step(folder: Path, stopped: Stopped) -> None:
    before, after = content_of(stopped.folder), content_of(folder)
    assert before["runs/rnn/log.jsonl"]
    assert after["runs/rnn/log.jsonl"].startswith(before["runs/rnn/log.jsonl"])
    steps = [json.loads(line)["step"] for line in after["runs/rnn/log.jsonl"].splitlines()]
    assert steps == sorted(set(steps))
    was, now = (tomllib.loads(content["runs/rnn/config.toml"].decode()) for content in (before, after))
    was["training"].pop("steps"), now["training"].pop("steps")  # may be planned anew
    assert now == was
    spent_before = json.loads(before["found/rnn.clock.json"])["seconds"]
    assert 0 < spent_before < json.loads(after["found/rnn.trained.json"])["seconds"]


# -- whole -----------------------------------------------------------------------------------------------------------


def test_a_comparison_is_a_folder_with_all_its_files(folder: Path, comparison: Comparison) -> None:
    assert {path.name for path in folder.iterdir()} >= {
        "settings.json", "prepared.json", "plan.json", "runs", "found", "logs", "compare.json", "compare.md",
        "report.html",
    }  # fmt: skip
    assert {path.name for path in (folder / "runs").iterdir()} == {*MODELS_COMPARED, "rnn-final"}
    assert not [path for path in folder.rglob(".*")]
    assert comparison.is_complete
    assert "Not finished" not in (folder / "compare.md").read_text(encoding="utf-8")


def test_the_command_prints_what_it_wrote(finished: tuple[Path, Result], comparison: Comparison) -> None:
    _, result = finished
    assert Comparison.from_dict(json.loads(result.out)["results"][0]) == comparison


def test_one_split_and_one_fingerprint_for_all(folder: Path, comparison: Comparison) -> None:
    runs = [Run.open(folder / run) for entry in comparison.entries for run in entry.runs]
    assert len(runs) == 4
    assert {run.config.data.fingerprint for run in runs} == {comparison.data["fingerprint"]}
    assert len({run.config.data.split for run in runs}) == 1
    for file in ("schema.json", "tokens.json"):
        assert len({(run.path / "vocab" / file).read_bytes() for run in runs}) == 1
    parts = comparison.data["parts"]
    assert sum(parts.values()) == len(make_text())
    assert parts["test"] == pytest.approx(0.05 * len(make_text()), rel=0.1)
    assert (comparison.scored, comparison.metric.name) == ("test", "bits per character")


def test_every_family_has_the_same_share_and_the_finalist_more(comparison: Comparison) -> None:
    assert len({entry.minutes for entry in comparison.ladder}) == 1
    (final,) = comparison.final
    assert (final.name, final.family, final.stage) == ("rnn-final", "rnn", "final")
    assert final.minutes > comparison.ladder[0].minutes


def test_every_entry_holds_all_that_was_measured(folder: Path, comparison: Comparison) -> None:
    assert {entry.name for entry in comparison.ladder} == set(MODELS_COMPARED)
    for entry in comparison.entries:
        assert (entry.status, entry.reason, entry.tokenizer) == ("done", "", "char")
        assert entry.settings.startswith(f"{entry.family}: ")
        assert entry.test is not None
        assert entry.test.low < entry.test.value < entry.test.high
        assert entry.by_seed == pytest.approx([entry.test.value])
        assert entry.valid is not None
        assert 0 < entry.valid < 8
        assert entry.more["perplexity"] > 1
        assert entry.runs == [f"runs/{entry.name}"]
        run = folder / "runs" / entry.name
        assert entry.parameters > 100
        assert entry.bytes_on_disk > (run / "model.safetensors").stat().st_size
        assert entry.training_seconds > 0.01
        assert entry.training_tokens_per_second > 1
        assert entry.generation_tokens_per_second is not None
        assert entry.ms_per_token is not None
        assert entry.generation_tokens_per_second > 1
        assert 0 < entry.ms_per_token < 1000
        assert 50e6 < entry.peak_bytes < 4e9
        assert len(entry.samples) == 3
        assert not entry.over_limit


def test_the_machine_and_the_time_are_told(comparison: Comparison) -> None:
    assert comparison.machine
    assert all(comparison.machine.values())
    assert comparison.seconds["training"] == pytest.approx(sum(e.training_seconds for e in comparison.entries))
    assert all(seconds >= 0 for seconds in comparison.seconds.values())
    assert (comparison.workers, comparison.threads, comparison.seeds) == (1, 1, 1)
    assert comparison.minutes == float(MINUTES)


def test_learning_curves_end_at_the_validation_that_ranks(comparison: Comparison) -> None:
    for entry in comparison.entries:
        assert entry.curve
        assert min(point.value for point in entry.curve) == pytest.approx(entry.valid, rel=0.02)
        assert all(a.seconds <= b.seconds and a.tokens < b.tokens for a, b in pairwise(entry.curve))


def test_samples_are_searched_for_in_the_training_part(comparison: Comparison) -> None:
    training = make_text()[: comparison.data["parts"]["train"]]
    for entry in comparison.entries:
        assert entry.memorization is not None
        assert len(entry.memorization.text) == entry.memorization.length
        assert entry.memorization.text in training
        assert any(entry.memorization.text in sample for sample in entry.samples)
    assert comparison.held_out_match is not None
    assert comparison.held_out_match.text in training
    assert comparison.held_out_match.text in comparison.passage


def test_the_passage_is_of_the_scored_part_and_coloured_as_the_score_says(comparison: Comparison) -> None:
    scored = make_text()[-comparison.data["parts"]["test"] :]
    assert scored.startswith(comparison.passage)
    assert HOSTILE in comparison.passage
    for entry in comparison.entries:
        pieces, bits = zip(*entry.surprise, strict=True)
        assert len(pieces) == len(comparison.passage)
        assert all(value >= 0 for value in bits)
        if comparison.passage == scored:
            assert entry.test is not None
            assert sum(bits) / len(scored) == pytest.approx(entry.test.value, rel=0.01)


def test_positions_begin_with_no_context_and_go_on_to_long_ones(comparison: Comparison) -> None:
    for entry in comparison.entries:
        places, values = zip(*entry.by_position, strict=True)
        assert places[0] == 0
        assert list(places) == sorted(set(places))
        assert all(0 < value < 40 for value in values)


def test_validation_ranks_and_chooses_the_winner(comparison: Comparison) -> None:
    for stage in (comparison.ladder, comparison.final):
        values = [entry.valid for entry in stage]
        assert values == sorted(values)
    best = min(comparison.entries, key=lambda entry: entry.valid or math.inf)
    assert comparison.winner == best.name
    assert 2 <= len(comparison.recommendation) <= 3
    assert comparison.recommendation[0].startswith(f"Use {best.name}: ")


def test_neighbours_are_compared_in_pairs(comparison: Comparison) -> None:
    by_test = sorted(comparison.ladder, key=lambda entry: entry.test.value if entry.test else math.inf)
    assert [(gap.better, gap.worse) for gap in comparison.gaps] == list(pairwise(entry.name for entry in by_test))
    for gap in comparison.gaps:
        better, worse = (comparison.entry(name).test for name in (gap.better, gap.worse))
        assert better is not None
        assert worse is not None
        assert gap.gain == pytest.approx(worse.value - better.value)
        assert gap.low <= gap.gain <= gap.high
        assert gap.is_distinguishable == (gap.low > 0)


def test_the_test_part_is_scored_once_when_all_is_trained(folder: Path) -> None:
    trained, scored = (sorted((folder / "found").glob(f"*.{what}.json")) for what in ("trained", "scored"))
    assert len(trained) == len(scored) == 4
    last = max(path.stat().st_mtime for path in trained)
    assert all(path.stat().st_mtime >= last for path in scored)


def test_each_run_can_be_used(folder: Path, comparison: Comparison) -> None:
    """Its own score of the test part is that of the table."""
    for entry in comparison.entries:
        run = seqwise.load(folder / entry.runs[0])
        assert len(run.generate("the ", max_tokens=20)) >= len("the ")
        assert entry.test is not None
        assert run.evaluate().bits_per_char == pytest.approx(entry.test.value, rel=1e-4)


def test_a_run_that_was_compared_can_be_resumed(folder: Path, tmp_path: Path) -> None:
    for name in ("hmm", "rnn"):
        session = resume(shutil.copytree(folder / "runs" / name, tmp_path / name))
        assert session.resume_from is not None
        assert (
            session.resume_from.step == json.loads((tmp_path / name / "log.jsonl").read_text().splitlines()[-1])["step"]
        )


def test_hostile_text_is_shown_as_text(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "onerror" in page  # it is shown
    for acting in ('<script>alert("x")', "<img src=x", "\u202e", "</script><script>alert"):
        assert acting not in page


# -- reports ---------------------------------------------------------------------------------------------------------


def test_reports_are_rebuilt_from_what_was_found(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    before = {name: (copy / name).read_bytes() for name in ("compare.json", "compare.md", "report.html")}
    for name in ("compare.md", "report.html"):
        (copy / name).unlink()
    result = call("report", copy)
    assert (result.code, result.errors) == (0, "")
    assert str(copy / "report.html") in result.out
    assert {name: (copy / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("damage", ["missing", "cut short"])
def test_a_report_can_be_rebuilt_when_compare_json_itself_is_lost(folder: Path, tmp_path: Path, damage: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "compare.json"
    before = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(before[: len(before) // 2])
    result = call("report", copy)
    assert result.code == 0, result.errors
    assert path.read_bytes() == before


def test_a_partial_report_is_rebuilt_as_partial(stopped: Stopped, tmp_path: Path) -> None:
    copy = shutil.copytree(stopped.folder, tmp_path / "copy")
    assert call("report", copy).code == 0
    assert not Comparison.read(copy / "compare.json").is_complete


def test_a_folder_without_a_comparison_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere"):
        assert f"{path} holds no comparison" in call("report", path).sentence()
    assert [p.name for p in tmp_path.rglob("*")] == ["empty"]


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 1}', '{"format": 99}'])
def test_a_file_that_is_no_comparison_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "compare.json").write_text(content)
    with pytest.raises(DataError, match=r"compare\.json|format"):
        Comparison.read(tmp_path / "compare.json")


def test_a_comparison_that_was_written_before_a_field_had_its_name_is_read(
    comparison: Comparison, tmp_path: Path
) -> None:
    written = comparison.to_dict()
    for entry in (*written["ladder"], *written["final"]):
        entry["memorised"] = entry.pop("memorization")
    assert any(entry["memorised"] for entry in written["ladder"])
    (tmp_path / "compare.json").write_text(json.dumps(written), encoding="utf-8")
    assert Comparison.read(tmp_path / "compare.json") == comparison


def test_numbers_without_end_can_be_written_and_read_back(comparison: Comparison, tmp_path: Path) -> None:
    """A model that found something impossible."""
    from seqwise.config import to_json

    lost = replace(comparison.ladder[-1], more={"perplexity": math.inf})
    changed = replace(comparison, ladder=[*comparison.ladder[:-1], lost])
    (tmp_path / "compare.json").write_text(to_json(changed.to_dict()), encoding="utf-8")
    found = Comparison.read(tmp_path / "compare.json")
    assert len(table_rows(found)) == 1 + len(found.entries)


# -- stopped and gone on with, anywhere ------------------------------------------------------------------------------


def test_everything_is_trained_before_anything_is_scored_and_each_once(
    world: Path, tmp_path: Path, replay: type[Replay]
) -> None:
    run_comparison(tmp_path / "x", settings_for(world))
    kinds = [job.kind for job in replay.done]
    assert kinds == ["prepare", *["time"] * 3, "baseline", *["train"] * 4, *["score"] * 4]
    assert len(replay.done) == len(set(replay.done))
    run_comparison(tmp_path / "x")
    assert len(replay.done) == len(kinds)  # nothing is left to do


@pytest.mark.parametrize("stop_after", [1, 2, 4, 5, 6, 8, 9, 10, 12, 13])
def test_wherever_it_is_stopped_what_was_found_is_kept_and_the_end_is_the_same(
    world: Path, tmp_path: Path, replay: type[Replay], comparison: Comparison, stop_after: int
) -> None:
    """After the data, while all are timed, in the ladder, before and behind the finals, while it is scored."""
    path = tmp_path / "x"
    part = run_comparison(path, settings_for(world), wants_stop=lambda: len(replay.done) >= stop_after)
    assert Comparison.read(path / "compare.json") == part
    assert has_content(path / "report.html")
    trained = [job.name for job in replay.done if job.kind == "train"]
    assert [entry.name for entry in part.entries if entry.status == "done"] == [
        entry.name for entry in part.entries if entry.name in trained
    ]
    end = run_comparison(path)
    assert end.is_complete
    assert len(replay.done) == len(set(replay.done)) == 13  # nothing was done twice
    assert without_clock(end) == without_clock(comparison)


def test_python_goes_on_where_it_was_stopped(
    world: Path, tmp_path: Path, replay: type[Replay], comparison: Comparison
) -> None:
    path = tmp_path / "x"
    part = run_comparison(path, settings_for(world), wants_stop=lambda: len(replay.done) >= 3)
    assert not part.is_complete
    end = seqwise.continue_comparison(str(path))
    assert end.is_complete
    assert end == Comparison.read(path / "compare.json")
    assert len(replay.done) == len(set(replay.done)) == 13  # nothing was done twice
    assert without_clock(end) == without_clock(comparison)


def test_all_that_were_at_work_are_told_when_it_is_stopped(
    world: Path, tmp_path: Path, replay: type[Replay], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    told = Told()
    run_comparison(tmp_path / "x", settings_for(world, workers=2), watch=told, wants_stop=lambda: bool(told.trials))
    assert sorted(name for name, _ in told.ended) == ["hmm", "ngram"]
    assert all(sentence.startswith("stopped") for _, sentence in told.ended)


@pytest.mark.parametrize(
    ("kind", "name"), [("train", "ngram"), ("train", "rnn"), ("train", "rnn-final"), ("score", "hmm"), ("score", "rnn")]
)
def test_whoever_fails_is_told_in_its_row_with_the_reason_and_the_others_go_on(
    world: Path, tmp_path: Path, replay: type[Replay], kind: str, name: str
) -> None:
    replay.failing = (Job(kind, name),)
    found = run_comparison(tmp_path / "x", settings_for(world))
    assert found.is_complete
    failed = found.entry(name)
    assert (failed.status, failed.reason) == ("failed", f"{kind} of {name} failed.")
    (row,) = [row for row in table_rows(found) if row[0] == name]
    assert failed.reason in " ".join(row)
    others = [entry for entry in found.entries if entry.name != name]
    assert all(entry.status == "done" and entry.test is not None for entry in others)
    assert found.winner in {entry.name for entry in others}
    assert failed.reason.removesuffix(".") in (tmp_path / "x" / "compare.md").read_text(encoding="utf-8")
    replay.failing = ()
    mended = run_comparison(tmp_path / "x")  # has another try
    assert mended.entry(name).status == "done"
    assert mended.entry(name).reason == ""


def test_where_all_fail_there_is_a_report_that_says_so(world: Path, tmp_path: Path, replay: type[Replay]) -> None:
    replay.failing = tuple(Job("train", name) for name in MODELS_COMPARED)
    found = run_comparison(tmp_path / "x", settings_for(world))
    assert found.is_complete
    assert found.winner is None
    assert [entry.status for entry in found.ladder] == ["failed"] * 3
    assert found.recommendation[0] == "No model could be trained; the reasons are in the table."
    assert has_content(tmp_path / "x" / "report.html")


def test_where_all_are_over_a_limit_they_are_shown_and_none_is_recommended(
    world: Path, tmp_path: Path, replay: type[Replay]
) -> None:
    found = run_comparison(tmp_path / "x", settings_for(world, max_megabytes=0.0001))
    assert found.winner is None
    assert found.limits == {"megabytes": 0.0001}
    assert all(entry.over_limit and entry.test is not None for entry in found.entries)
    assert "No model keeps all the limits" in found.recommendation[0]


def test_the_smallest_that_keeps_a_limit_is_recommended(
    world: Path, tmp_path: Path, replay: type[Replay], comparison: Comparison
) -> None:
    sizes = {entry.name: entry.bytes_on_disk for entry in comparison.entries}
    smallest = min(sizes, key=lambda name: sizes[name])
    found = run_comparison(tmp_path / "x", settings_for(world, max_megabytes=(sizes[smallest] + 1) / 1e6))
    assert found.winner == smallest
    assert len(found.ladder) == 3


def test_a_full_disk_leaves_the_report_as_it_was_and_can_be_gone_on_from(
    world: Path, tmp_path: Path, replay: type[Replay], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system itself refuses: from the end of the second trial on no file may be longer than 2,000 bytes."""
    path, limits = tmp_path / "x", resource.getrlimit(resource.RLIMIT_FSIZE)
    stages: list[str] = []
    before: dict[str, bytes] = {}
    monkeypatch.setattr(module, "WRITE_SECONDS", 0.0)  # after each trial

    def fill(trial: str) -> None:
        if trial == "hmm" and stages[-1] == "ladder":
            before.update(content_of(path))
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))

    try:
        with pytest.raises(SeqwiseError) as caught:
            run_comparison(path, settings_for(world), watch=Told(on_end=fill, on_begin=stages.append))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"cannot write {path}" in str(caught.value)
    assert f"seqwise compare --resume --out {path}" in str(caught.value)
    part = Comparison.read(path / "compare.json")
    assert not part.is_complete
    assert "ngram" in {entry.name for entry in part.entries if entry.status == "done"}
    assert (path / "report.html").read_bytes() == before["report.html"]
    assert not [unfinished for unfinished in path.rglob(".*")]
    assert run_comparison(path).is_complete


# -- what goes wrong in processes ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sabotaged(world: Path) -> tuple[Path, Comparison, Told]:
    """The HMM is killed while it learns, the RNN has a rate that makes its loss no number; only the window is well."""
    path = world / "sabotaged"

    def kill_the_hmm() -> None:
        wait_until((path / "runs" / "hmm" / "config.toml").exists)
        found = processes_about(path)
        for pid, parent in found.items():
            if parent in found:  # the fork server's child
                os.kill(pid, signal.SIGKILL)

    def sabotage(what: str) -> None:
        if what == "ladder":
            killing.start()
            rates = ["optimizer=sgd", "learning_rate=1e30", "warmup_steps=0", "clip_norm=0", "threads=1"]
            overrides = [f"training.{rate}" for rate in rates]
            prepare(world / "words.txt", model="rnn", out=path / "runs" / "rnn", minutes=0.05, overrides=overrides)

    killing, told = threading.Thread(target=kill_the_hmm, daemon=True), Told(on_begin=sabotage)
    settings = settings_for(world, models=["hmm", "window", "rnn"], minutes=1.0)
    with pytest.MonkeyPatch.context() as patch, at_most(180):
        patch.setattr(plan, "STILL_IMPROVING", 2.0)  # no finals
        found = run_comparison(path, settings, watch=told)
    killing.join()
    return path, found, told


def test_a_trial_whose_process_is_killed_is_told_and_takes_nothing_with_it(
    sabotaged: tuple[Path, Comparison, Told],
) -> None:
    _, found, told = sabotaged
    hmm = found.entry("hmm")
    assert (hmm.status, hmm.reason) == ("failed", "its process was killed, perhaps because memory ran out")
    assert hmm.test is None
    assert dict(told.ended)["hmm"] == f"failed: {hmm.reason}"
    window = found.entry("window")
    assert (window.status, found.winner) == ("done", "window")
    assert window.test is not None
    assert found.is_complete


def test_a_trial_whose_loss_is_no_number_is_told(sabotaged: tuple[Path, Comparison, Told]) -> None:
    path, found, _ = sabotaged
    rnn = found.entry("rnn")
    assert rnn.status == "failed"
    assert rnn.reason.startswith(("the loss became", "the gradient's length became"))
    page = (path / "report.html").read_text(encoding="utf-8")
    assert "its process was killed" in page
    assert "became" in page


def test_going_on_tries_again_what_failed_and_tells_what_is_damaged(
    sabotaged: tuple[Path, Comparison, Told], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    monkeypatch.setattr(plan, "STILL_IMPROVING", 2.0)
    whole, before, _ = sabotaged
    path = shutil.copytree(whole, tmp_path / "x")
    weights = path / "runs" / "window" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    (path / "found" / "window.scored.json").unlink()
    trained = (path / "found" / "window.trained.json").read_bytes()
    found = run_comparison(path)
    assert found.entry("hmm").status == "done"
    assert found.winner == "hmm"
    again, first = (one.entry("rnn") for one in (found, before))
    assert again.status == "failed"
    assert again.reason != first.reason  # it was tried with lower rates
    assert again.reason.partition(" at step")[0] == first.reason.partition(" at step")[0]
    assert (path / "found" / "window.trained.json").read_bytes() == trained
    assert found.entry("window").test is None
    assert str(weights) in found.entry("window").reason
    assert "damaged" in found.entry("window").reason


def test_going_on_with_other_data_is_refused_before_it_is_mixed_with_the_old(
    world: Path, stopped: Stopped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The n-gram has not begun, the HMM is trained, the RNN is in the middle."""
    path, text = shutil.copytree(stopped.folder, tmp_path / "x"), world / "words.txt"
    shutil.rmtree(path / "runs" / "ngram")
    (path / "found" / "ngram.trained.json").unlink()
    monkeypatch.setattr(module, "ForkServer", Here)
    text.write_text(make_text().replace("cat", "cow"), encoding="utf-8")
    try:
        result = call("compare", "--resume", "--out", path)
    finally:
        text.write_text(make_text(), encoding="utf-8")
    told = result.errors + (path / "compare.json").read_text(encoding="utf-8")
    assert "has changed since" in told
    found = Comparison.read(path / "compare.json")
    assert [entry.name for entry in found.entries if entry.test is not None] == []
    runs = [Run.open(run) for run in (path / "runs").iterdir()]
    assert {run.config.data.fingerprint for run in runs} == {found.data["fingerprint"]}


# -- other data, and several seeds -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    folder: Path
    comparison: Comparison
    seconds: float
    """Of the wall clock, all in all."""


def compare_in(folder: Path, *data: Path, **options: Any) -> Made:
    began = time.perf_counter()
    with at_most(180):
        found = seqwise.compare(data, out=folder, **options)
    return Made(folder, found, time.perf_counter() - began)


@pytest.fixture(scope="module")
def seeded(world: Path) -> Made:
    """Two seeds, two trials at once, each in a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        options = {"minutes": 1.0, "models": ["ngram", "hmm"], "seeds": 2, "seed": 3, "workers": 2}
        return compare_in(world / "seeded", world / "words.txt", **options)


@pytest.fixture(scope="module")
def series(world: Path) -> Made:
    """Two columns of numbers with gaps."""
    chance, steps = np.random.default_rng(0), np.arange(300)
    season = 20 + 5 * np.sin(2 * np.pi * steps / 12) + 0.5 * chance.normal(size=300)
    line = 0.1 * steps + chance.normal(size=300)
    rows = [f"{'' if t in (50, 280) else f'{a:.3f}'},{b:.3f}" for t, a, b in zip(steps, season, line, strict=True)]
    (world / "series.csv").write_text("\n".join(["season,line", *rows]) + "\n")
    seqwise.train(world / "series.csv", "kalman", out=world / "warm" / "kalman", steps=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ForkServer", Here)
        return compare_in(world / "series", world / "series.csv", minutes=1.0, models=["hmm", "kalman"])


def test_several_seeds_are_one_entry(seeded: Made) -> None:
    found, folder = seeded.comparison, seeded.folder
    assert (found.is_complete, found.seeds, found.workers, found.threads) == (True, 2, 2, 1)
    hmm = found.entry("hmm")
    assert (hmm.status, len(hmm.by_seed)) == ("done", 2)
    assert hmm.by_seed[0] != pytest.approx(hmm.by_seed[1], abs=1e-6)  # chance made them different
    assert set(hmm.runs) == {"runs/hmm", "runs/hmm-seed-1"}
    assert [Run.open(folder / run).config.training.seed for run in sorted(hmm.runs)] == [3, 4]
    assert hmm.test is not None
    assert hmm.test.value == pytest.approx(sum(hmm.by_seed) / 2)
    assert hmm.minutes == pytest.approx(2 * found.entry("ngram").minutes)
    trained = {f"runs/{n}": json.loads((folder / f"found/{n}.trained.json").read_text()) for n in ("hmm", "hmm-seed-1")}
    assert hmm.valid == pytest.approx(sum(one["valid"] for one in trained.values()) / 2)
    assert hmm.training_seconds == pytest.approx(sum(one["seconds"] for one in trained.values()))
    assert hmm.runs == sorted(trained, key=lambda run: trained[run]["valid"])  # the best by validation first
    assert [seqwise.load(folder / run).evaluate().bits_per_char for run in hmm.runs] == pytest.approx(hmm.by_seed)
    assert found.entry("ngram").by_seed == pytest.approx([found.entry("ngram").more["bits_per_char"]])  # no chance


def test_numbers_are_compared_by_their_likelihood(series: Made) -> None:
    found = series.comparison
    assert (found.task, found.is_complete) == ("numbers", True)
    assert found.metric.name == "nats per step"
    assert found.data["parts"] == {"train": 240, "valid": 30, "test": 30}
    assert {entry.name: entry.status for entry in found.ladder} == {"hmm": "done", "kalman": "done"}
    assert found.winner == "kalman"  # a season is nothing an HMM can follow
    for entry in found.entries:
        assert entry.test is not None
        assert entry.test.low < entry.test.value < entry.test.high
        assert entry.tokenizer == ""
        assert {"mae", "coverage"} <= set(entry.more)
        assert entry.ms_per_token is not None
        assert entry.forecast
        assert all(low <= middle <= high for middle, low, high in entry.forecast)
        assert entry.samples == []
    assert list(seqwise.load(series.folder / "runs" / "kalman").predict(horizon=3))


def test_what_is_returned_is_what_was_written(seeded: Made, series: Made) -> None:
    for made in (seeded, series):
        assert Comparison.read(made.folder / "compare.json") == made.comparison


def test_what_came_can_be_seen_against_what_was_foretold_where_numbers_are_missing(
    series: Made,
) -> None:
    """Row 280 has a gap, in a test part that begins with row 270: the values behind it still stand at their step."""
    found = series.comparison
    assert len(found.passage_values) == 30
    values = [math.nan if value is None else value for value in found.passage_values]
    expected = 20 + 5 * np.sin(2 * np.pi * np.arange(270, 300) / 12)
    assert np.nanmax(np.abs(np.array(values) - expected)) < 3
    assert np.flatnonzero(np.isnan(values)).tolist() == [10]


def test_the_parts_of_the_time_add_up_to_the_wall_clock(seeded: Made, series: Made) -> None:
    for made in (seeded, series):
        assert 0.5 * made.seconds < sum(made.comparison.seconds.values()) <= made.seconds + 0.1


def test_sequences_with_labels_are_compared(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    monkeypatch.setattr(plan, "STILL_IMPROVING", 2.0)  # no finals
    monkeypatch.setattr(plan, "MIN_SECONDS", 1.5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    path = world / "digits"
    found = seqwise.compare("digits-rows", minutes=1.0, models=["window"], out=path)
    assert (found.task, found.is_complete) == ("label", True)
    assert found.metric.name == "share of wrong answers"
    for entry in found.ladder:
        assert entry.status == "done", entry.reason
        assert entry.test is not None
        assert 0 <= entry.test.low <= entry.test.value <= entry.test.high <= 1
        assert entry.more["accuracy"] == pytest.approx(1 - entry.test.value)
        assert entry.ms_per_token is not None
        assert all(0 <= point.value <= 1 for point in entry.curve)  # the metric's own unit, or no curve
    assert found.winner is not None
    assert Comparison.read(path / "compare.json") == found
    assert "accuracy" in (path / "compare.md").read_text(encoding="utf-8")


def test_without_a_test_part_validation_is_scored_and_the_report_says_so(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    found = run_comparison(
        tmp_path / "x", ComparisonRequest(world / "words.txt", models=["ngram"], minutes=1.0, split="90/10").settings()
    )
    assert found.scored == "valid"
    (ngram,) = found.ladder
    assert ngram.test is not None
    assert ngram.test.value == pytest.approx(ngram.valid)
    assert "the valid part" in (tmp_path / "x" / "compare.md").read_text(encoding="utf-8")


def test_two_tokenizers_are_two_entries_on_one_scale(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    settings = ComparisonRequest(
        world / "words.txt", models=["ngram"], minutes=1.0, tokenizers=["char", "bpe"]
    ).settings()
    found = run_comparison(tmp_path / "x", settings)
    assert {entry.name: entry.tokenizer for entry in found.ladder} == {"ngram-char": "char", "ngram-bpe": "bpe"}
    for entry in found.ladder:
        assert entry.test is not None
        run = seqwise.load(tmp_path / "x" / entry.runs[0])
        assert run.evaluate().bits_per_char == pytest.approx(entry.test.value, rel=1e-4)
        assert run.tokenizer.kind == entry.tokenizer
    assert len(found.gaps) == 1


def test_words_and_characters_are_ranked_on_one_scale_with_unknown_words_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the words of the held-out parts are new. A model of words does not win by not saying which they are."""
    chance = random.Random(0)
    known = "".join(" ".join(chance.choices(WORDS, k=6)) + "\n" for _ in range(400))
    new = "".join(
        " ".join("".join(chance.choices("bdfgklmn", k=8)) + " the" for _ in range(3)) + "\n" for _ in range(60)
    )
    for part, text in (("train", known), ("valid", new[: len(new) // 2]), ("test", new[len(new) // 2 :])):
        (tmp_path / f"{part}.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "ForkServer", Here)
    settings = ComparisonRequest(
        tmp_path / "train.txt", models=["ngram"], minutes=0.1, tokenizers=["char", "word"],
        valid=str(tmp_path / "valid.txt"), test=str(tmp_path / "test.txt"),
    ).settings()  # fmt: skip
    found = run_comparison(tmp_path / "x", settings)
    char, word = (found.entry(f"ngram-{kind}") for kind in ("char", "word"))
    assert found.winner == char.name
    (gap,) = found.gaps
    assert (gap.better, gap.worse) == (char.name, word.name)
    for entry in (char, word):
        assert entry.test is not None
        run = seqwise.load(tmp_path / "x" / entry.runs[0])
        for split, value in (("test", entry.test.value), ("valid", entry.valid)):
            assert run.evaluate(split=split).bits_per_char == pytest.approx(value, rel=1e-4)
        assert entry.test.low == pytest.approx(run.evaluate().bits_interval[0])
        assert entry.curve[-1].value == pytest.approx(entry.valid, rel=1e-3)
        bits = sum(bits for _, bits in entry.surprise)
        assert found.data["parts"]["test"] == len(found.passage)
        assert bits / len(found.passage) == pytest.approx(entry.test.value, rel=0.02)
        assert entry.by_position[-1][1] == pytest.approx(entry.test.value, rel=0.3)
    assert not any("unknown" in note for note in char.notes)
    assert [note for note in word.notes if "% of its tokens are unknown words" in note]
    assert word.more["unknown_share"] == pytest.approx(3 / 7, abs=0.01)
    assert "tokens are unknown words" in (tmp_path / "x" / "compare.md").read_text(encoding="utf-8")


def test_too_little_data_to_tell_is_said_in_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test part of 40 characters has four segments."""
    for part, num in (("train", 4000), ("valid", 2000), ("test", 40)):
        (tmp_path / f"{part}.txt").write_text((make_text() * 2)[:num], encoding="utf-8")
    monkeypatch.setattr(module, "ForkServer", Here)
    parts = {part: str(tmp_path / f"{part}.txt") for part in ("valid", "test")}
    options = {"models": ["ngram"], "minutes": 0.1, "tokenizers": ["char", "bpe"], **parts}
    found = run_comparison(tmp_path / "x", ComparisonRequest(tmp_path / "train.txt", **options).settings())
    (gap,) = found.gaps
    assert not gap.is_enough
    assert not gap.is_distinguishable
    saved = json.loads((tmp_path / "x" / "compare.json").read_text(encoding="utf-8"))
    assert saved["gaps"][0]["is_enough"] is False
    assert Comparison.read(tmp_path / "x" / "compare.json").gaps == found.gaps
    assert [entry.test for entry in Comparison.read(tmp_path / "x" / "compare.json").ladder] == [
        entry.test for entry in found.ladder
    ]
    assert "(too little data)" in table_rows(found)[1][1]
    for name in ("compare.md", "report.html"):
        text = (tmp_path / "x" / name).read_text(encoding="utf-8")
        assert "too little data to tell" in text
        assert "∞" not in text


# -- what people get wrong -------------------------------------------------------------------------------------------


def empty(path: Path) -> None:
    path.write_text("")


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


def one_character(path: Path) -> None:
    path.write_text("x")


def words(path: Path) -> None:
    path.write_text(make_text(), encoding="utf-8")


def nothing(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "options", "told"),
    [
        (nothing, [], ["data.txt"]),
        (empty, [], ["data.txt: the file is empty"]),
        (binary, [], ["data.txt: not UTF-8"]),
        (one_character, [], ["data.txt: too little text"]),
        (words, ["--workers", "99"], ["--workers 99 is more than the", "cores that may be used here"]),
        (words, ["--workers", "0"], ["--workers 0 should be at least 1"]),
        (words, ["--models", "ngram,gtp"], ['unknown family "gtp". Did you mean "gpt"?']),
        (words, ["--models", "kalman"], ["kalman does not do the task text", "ngram"]),
        (words, ["--tokenizers", "chars"], ['"chars"', "char"]),
        (words, ["--minutes", "0"], ["--minutes 0 should be above 0"]),
        (words, ["--minutes", "nan"], ["--minutes nan"]),
        (words, ["--minutes", "inf"], ["--minutes inf"]),
        (words, ["--seeds", "0"], ["--seeds 0 should be at least 1"]),
        (words, ["--seed", "-1"], ["seed", "-1"]),
        (words, ["--max-parameters", "0"], ["--max-parameters 0 should be at least 1"]),
        (words, ["--max-latency-ms", "-1"], ["--max-latency-ms -1"]),
        (words, ["--max-megabytes", "nan"], ["--max-megabytes nan"]),
        (words, ["--task", "texts"], ['unknown task "texts". Did you mean "text"?']),
        (words, ["--columns", "a"], ["--columns goes with numbers"]),
        (words, ["--season", "7"], ["--season goes with numbers"]),
        (words, ["--season", "0"], ["--season 0 should be at least 1"]),
        (words, ["--split-at", "50/60"], ["50/60"]),
        (words, ["--valid", "nowhere.txt"], ["nowhere.txt"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value.__name__,
)
def test_bad_input_is_told_in_one_sentence_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], options: list[str], told: list[str]
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "data.txt")
    before = sorted(tmp_path.rglob("*"))
    if "--minutes" not in options:
        options = [*options, "--minutes", "0.05"]
    if "--models" not in options:
        options = [*options, "--models", "ngram"]
    sentence = call("compare", "data.txt", "--out", "x", *options).sentence()
    for part in told:
        assert part in sentence
    assert sorted(tmp_path.rglob("*")) == before


def test_tokenizers_go_with_text_only(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n" + "1\n2\n" * 50)
    told = call("compare", tmp_path / "x.csv", "--tokenizers", "char", "--out", tmp_path / "x").sentence()
    assert told == (
        "--tokenizers goes with text or label or span or choice or questions or seen-choice, and this is taken for "
        "numbers; drop it."
    )
    assert not (tmp_path / "x").exists()


def test_a_tokenizer_that_is_named_twice_is_used_once(world: Path) -> None:
    """Else two trials would share one run folder."""
    try:
        assert settings_for(world, tokenizers=["char", "char"]).tokenizers == ["char"]
    except ConfigError as refused:
        assert "char" in str(refused)  # noqa: PT017


def test_where_processes_cannot_be_forked_it_is_told_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "fork")
    (tmp_path / "words.txt").write_text(make_text(), encoding="utf-8")
    told = call("compare", tmp_path / "words.txt", "--out", tmp_path / "x").sentence()
    assert told.startswith(f"this system ({sys.platform}) cannot fork processes, and a comparison ")
    assert told.endswith("or train one family at a time: seqwise train DATA --model lstm")
    assert not (tmp_path / "x").exists()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "settings.json").touch()
    assert call("compare", "--resume", "--out", tmp_path / "begun").sentence() == told


@pytest.mark.parametrize("what", ["a folder with something in it", "a file"])
def test_a_folder_that_is_taken_is_left_alone(world: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "x"
    if what == "a file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    before = content_of(tmp_path)
    told = call("compare", world / "words.txt", "--out", out).sentence()
    assert str(out) in told
    assert "choose another --out" in told
    assert content_of(tmp_path) == before


def test_going_on_needs_to_know_where() -> None:
    assert call("compare", "--resume").sentence() == "--resume needs to know which comparison: add --out FOLDER."


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["words.txt"], "words.txt"),
        (["--minutes", "5"], "--minutes"),
        (["--models", "gpt"], "--models"),
        (["--workers", "2"], "--workers"),
        (["--seed", "3"], "--seed"),
        (["--max-parameters", "3"], "--max-parameters"),
        (["--split-at", "80/10/10"], "--split-at"),
    ],
)
def test_going_on_with_other_options_is_refused(
    stopped: Stopped, monkeypatch: pytest.MonkeyPatch, options: list[str], named: str
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    before = content_of(stopped.folder)
    told = call("compare", *options, "--resume", "--out", stopped.folder).sentence()
    assert told.startswith("--resume goes on with the comparison's own settings; drop ")
    assert named in told
    assert content_of(stopped.folder) == before


def test_going_on_where_nothing_was_begun_is_refused_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    told = call("compare", "--resume", "--out", tmp_path / "x").sentence()
    assert told == f"{tmp_path / 'x'} holds no comparison. Begin one with: seqwise compare DATA"
    with pytest.raises(CheckpointError) as caught:
        seqwise.continue_comparison(tmp_path / "x")
    assert str(caught.value) == told.replace("seqwise compare DATA", "seqwise.compare(DATA)")
    assert list(tmp_path.iterdir()) == []


def test_settings_that_were_damaged_are_named(
    stopped: Stopped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ForkServer", Here)
    for content in ("{", "{}", "[]"):
        path = shutil.copytree(stopped.folder, tmp_path / "x", dirs_exist_ok=True)
        (path / "settings.json").write_text(content)
        assert str(path / "settings.json") in call("compare", "--resume", "--out", path).sentence()


# -- what was asked for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7, 16])
def test_trials_at_once_share_the_cores(world: Path, monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    for workers in range(1, cores + 1):
        settings = settings_for(world, workers=workers)
        assert 1 <= settings.threads * settings.workers <= cores
        assert settings.threads == cores // workers
    with pytest.raises(
        ConfigError, match=f"--workers {cores + 1} is more than the {cores} cores that may be used here"
    ):
        settings_for(world, workers=cores + 1)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"minutes": 12.5, "seeds": 2, "seed": 7, "models": ["lstm", "gpt"]},
        {"max_parameters": 1_234_567, "max_latency_ms": 0.125, "max_megabytes": 12.5},
        {"max_parameters": 20_000_000},
        {"tokenizers": ["char", "bpe"], "split": "80/10/10"},
        {"task": "numbers", "columns": ["temperature", "wind speed"], "models": ["kalman"]},
        {"task": "numbers", "season": 24},
        {"valid": "it's held out.txt", "test": "test part.txt", "workers": 2},
    ],
    ids=lambda asked: " ".join(asked) or "nothing",
)
def test_the_command_of_a_report_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    """Typed in again, it asks for the same."""
    monkeypatch.chdir(tmp_path)
    for name in ("my words.txt", "it's held out.txt", "test part.txt"):
        Path(name).write_text(make_text(), encoding="utf-8")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    settings, typed = ComparisonRequest("my words.txt", **asked).settings(), list[Settings]()

    def note_settings(path: Path, settings: Settings, **_: Any) -> None:
        typed.append(settings)
        raise SystemExit(0)

    monkeypatch.setattr(comparing, "run_comparison", note_settings)
    program, *arguments = shlex.split(repeat_command(settings, tmp_path / "x"))
    assert program == "seqwise"
    result = call(*arguments)
    assert result.code == 0, result.errors
    assert typed == [settings]


def test_without_data_and_out_the_reference_is_compared_in_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[tuple[Path, Settings]] = []

    def note_settings(path: Path, settings: Settings, **_: Any) -> None:
        seen.append((path, settings))
        raise SystemExit(0)

    monkeypatch.setattr(comparing, "run_comparison", note_settings)
    assert call("compare").code == 0
    ((path, settings),) = seen
    assert path == Path("runs/python-reference-compare")
    assert (settings.source, settings.minutes, settings.seeds) == (["python-reference"], 10.0, 1)
    assert settings.models == [name for name, row in MODELS.items() if "next_token" in row.learns and row.takes_part]


def test_the_table_and_the_recommendation_are_printed(
    folder: Path, comparison: Comparison, replay: type[Replay], tmp_path: Path
) -> None:
    path = shutil.copytree(folder, tmp_path / "x")
    result = call("compare", "--resume", "--out", path)
    assert result.code == 0
    assert replay.done == []
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines[: 1 + len(comparison.entries)]] == [
        "model", *(entry.name for entry in comparison.entries)
    ]  # fmt: skip
    for sentence in comparison.recommendation:
        assert sentence in lines
    assert lines[-1] == f"report: {path / 'report.html'}"


def test_an_entry_is_the_same_when_read_back(comparison: Comparison) -> None:
    for entry in comparison.entries:
        assert {name for name in asdict(entry)} == set(Entry.__dataclass_fields__)
    assert Comparison.from_dict(json.loads(json.dumps(comparison.to_dict()))) == comparison


def test_assembling_changes_nothing(folder: Path, comparison: Comparison) -> None:
    before = content_of(folder)
    assert aggregate(Workspace(folder)) == comparison
    assert content_of(folder) == before
