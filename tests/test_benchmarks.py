"""make bench leaves nothing out in silence: every benchmark is in its table, and what cannot be run is named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks.__main__ import BENCHMARKS, Benchmark, Need

FOLDER = Path(runner.__file__).parent
ABSENT = Need("a peer", lambda: "the peer is not installed")


def test_every_benchmark_is_in_the_table() -> None:
    programs = {path.stem for path in FOLDER.glob("*.py") if "def main()" in path.read_text(encoding="utf-8")}
    assert {benchmark.name for benchmark in BENCHMARKS} == programs - {"__main__"}
    assert len(BENCHMARKS) == len(programs) - 1


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_settings_are_those_that_the_benchmark_has(benchmark: Benchmark) -> None:
    text = (FOLDER / f"{benchmark.name}.py").read_text(encoding="utf-8")
    known = set(re.findall(r'add_argument\("(--[\w-]+)"', text))
    for is_full in (False, True):
        arguments = benchmark.command(is_full=is_full, folder="somewhere")[2:]
        assert {word for word in arguments if word.startswith("--")} <= known
        assert not [word for word in arguments if "{" in word]
    assert benchmark.measures().endswith(".")


def test_what_is_missing_is_told_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQWISE_DATA", str(tmp_path))
    assert runner.package("no_such_package").lacks() == "no_such_package is not installed: pip install -e '.[bench]'"
    assert runner.package("numpy").lacks() is None
    told = runner.data_set("ptb").lacks()
    assert told is not None
    assert "seqwise data get ptb" in told
    assert "timeseries" in str(runner.SERIES.lacks())
    (tmp_path / "timeseries").mkdir()
    (tmp_path / "timeseries" / "births.csv").write_text("births\n1\n")
    assert runner.SERIES.lacks() is None


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that runs, one that fails, one that lacks something, in place of the real ones."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "good.py").write_text('"""Good."""\nimport sys\nprint("ran with", *sys.argv[1:], flush=True)\n')
    (folder / "bad.py").write_text('"""Bad."""\nraise SystemExit(3)\n')
    (folder / "alone.py").write_text('"""Alone."""\nraise AssertionError("is not to be run")\n')
    rows = [Benchmark("bad"), Benchmark("alone", needs=(ABSENT,)), Benchmark("good", "--quickly 1", "--whole 2")]
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "BENCHMARKS", rows)


@pytest.mark.parametrize(("options", "settings"), [([], "--quickly 1"), (["--full"], "--whole 2")])
@pytest.mark.usefixtures("three")
def test_one_that_fails_stops_nothing_and_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], options: list[str], settings: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *options])
    with pytest.raises(SystemExit, match="failed: bad"):
        runner.main()
    out = capfd.readouterr().out
    assert f"ran with {settings}\n" in out
    assert "1 of 3 benchmarks ran" in out
    assert "left out: alone: the peer is not installed" in out


@pytest.mark.usefixtures("three")
def test_some_of_them(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "good"])
    runner.main()
    assert "1 of 1 benchmarks ran" in capfd.readouterr().out


def test_the_list_runs_nothing() -> None:
    """Nor does it import what computes: a list takes no seconds."""
    code = "import sys; sys.argv = ['benchmarks', '--list']; from benchmarks.__main__ import main; main()"
    code += "; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER.parent, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    for benchmark in BENCHMARKS:
        assert (
            f"\n{benchmark.name}: {benchmark.measures()}\n    python -m benchmarks.{benchmark.name}"
            in f"\n{done.stdout}"
        )
