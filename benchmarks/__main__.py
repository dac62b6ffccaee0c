"""make bench: every benchmark whose needs are met, one after the other; the others are named with the reason.

    python -m benchmarks --list         # name, what it measures, command, what it needs
    python -m benchmarks                # all of them with their quickest settings, which show that they run
    python -m benchmarks hmm ngram      # some of them
    python -m benchmarks --full         # with their own settings, as docs/lab-notebook.md reports them: hours

Each is a process of its own: one that fails is named at the end, and the others run all the same.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.llama2c import lacks as lacks_llama2c
from seqwise.data.paths import data_folders
from seqwise.data.public import find_public
from seqwise.errors import DataError

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "peers" / "bin" / "python"  # made as benchmarks/translation_training.py says


@dataclass(frozen=True)
class Need:
    what: str
    lacks: Callable[[], str | None]
    """None where it is at hand, else the reason why it is not, and what to do."""


@dataclass(frozen=True)
class Benchmark:
    name: str
    quick: str = ""
    """Its quickest settings. {folder} is an empty folder that is thrown away."""
    full: str = ""
    """Its own settings, where it cannot do without any."""
    needs: tuple[Need, ...] = ()

    def measures(self) -> str:
        """The first sentence of the file, which is not imported for it: what it imports may be missing."""
        text = (ROOT / "benchmarks" / f"{self.name}.py").read_text(encoding="utf-8")
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]

    def command(self, *, is_full: bool, folder: str) -> list[str]:
        settings = self.full if is_full else self.quick
        return ["-m", f"benchmarks.{self.name}", *shlex.split(settings.replace("{folder}", folder))]

    def lacks(self) -> list[str]:
        return [reason for need in self.needs if (reason := need.lacks())]


def package(name: str) -> Need:
    return Need(name, lambda: None if find_spec(name) else f"{name} is not installed: pip install -e '.[bench]'")


def data_set(name: str) -> Need:
    def lacks() -> str | None:
        try:
            find_public(name)
        except DataError as error:
            return str(error)
        return None

    return Need(f"the data set {name}", lacks)


def _lacks_series() -> str | None:
    if any(any((folder / "timeseries").glob("*.csv*")) for folder in data_folders()):
        return None
    return "no series are at hand: set SEQWISE_DATA to a folder with timeseries/*.csv"


def _lacks_words() -> str | None:
    names = ("imdb/train.tsv*", "wikitext-2/train.txt*", "wordsim/EN-WS-353-ALL.txt", "wordsim/EN-MEN-TR-3k.txt")
    missing = [name for name in names if not any(any(folder.glob(name)) for folder in data_folders())]
    return f"{', '.join(missing)} not at hand: set SEQWISE_DATA to a folder that has them" if missing else None


def _lacks_joeynmt() -> str | None:
    if PEERS.exists():
        return None
    return f"{PEERS.relative_to(ROOT)} is not there: benchmarks/translation_training.py says how to make it"


def _lacks_proc() -> str | None:
    return None if Path("/proc/self/status").exists() else "peak memory is read from /proc, which only Linux has"


LINUX, SERIES, JOEYNMT = Need("Linux", _lacks_proc), Need("series", _lacks_series), Need("joeynmt", _lacks_joeynmt)
SHAKESPEARE, WORDS = data_set("tinyshakespeare"), Need("imdb, wikitext-2 and wordsim", _lacks_words)
WITH_PEERS = f"--peer-python {PEERS.relative_to(ROOT)}"
BENCHMARKS = [
    Benchmark("startup"),
    Benchmark("ngram", needs=(data_set("ptb"), data_set("wikitext-2"), package("kenlm"), LINUX)),
    Benchmark("hmm", needs=(package("hmmlearn"),)),
    Benchmark("word_vectors", "--seeds 1 --epochs 1", needs=(package("gensim"), WORDS, LINUX)),
    Benchmark("recurrent", "--repeats 2"),
    Benchmark("crf", "--repeats 3"),
    Benchmark("generation", "--repeats 2", needs=(package("transformers"),)),
    Benchmark("recurrent_generation", "--repeats 2"),
    Benchmark("encoders", "--repeats 2 --sentences 200 --steps 3", needs=(package("transformers"),)),
    Benchmark("training_step", "--repeats 2"),
    Benchmark("recording", "--repeats 2"),
    Benchmark("memory", "--gigabytes 0.05", needs=(LINUX,)),
    Benchmark("time_to_quality", "--seeds 1", needs=(SHAKESPEARE,)),
    Benchmark("lineage", "--minutes 0.2 --out {folder}", needs=(SHAKESPEARE,)),
    Benchmark("gradient_flow", "--minutes 0.1"),
    Benchmark("hard_gradients", "--minutes 0.2"),
    Benchmark("forecasts", "--families kalman", "--families kalman,hmm,gru,conv,gpt", needs=(SERIES,)),
    Benchmark("comparing", "markov --out {folder}"),
    Benchmark("attention_by_length", "numbers --minutes 0.3", "numbers"),
    Benchmark("translation_speed", "--repeats 1 --sentences 100", needs=(package("transformers"),)),
    Benchmark("translation_training", f"--repeats 2 --steps 5 {WITH_PEERS}", WITH_PEERS, needs=(JOEYNMT, LINUX)),
    Benchmark("llama2c", "--tokens 60 --repeats 1", needs=(Need("a C compiler and files of llama2.c", lacks_llama2c),)),
    Benchmark("translation_memory", "--lines 20000", needs=(LINUX,)),
    Benchmark("mutants", "segments --num 4"),
]


def describe(benchmarks: Sequence[Benchmark], *, is_full: bool) -> str:
    lines = []
    for benchmark in benchmarks:
        needs = ", ".join(need.what for need in benchmark.needs) or "nothing more"
        lines += [
            f"{benchmark.name}: {benchmark.measures()}",
            f"    python {shlex.join(benchmark.command(is_full=is_full, folder='FOLDER'))}",
            f"    needs {needs}",
            *(f"    left out: {reason}" for reason in benchmark.lacks()),
        ]
    return "\n".join(lines)


def run(benchmarks: Sequence[Benchmark], *, is_full: bool) -> tuple[list[str], dict[str, list[str]]]:
    """Which of them failed, and which were left out, with the reasons."""
    failed: list[str] = []
    left_out: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        if reasons := benchmark.lacks():
            left_out[benchmark.name] = reasons
            continue
        print(f"\n== {benchmark.name}: {benchmark.measures()}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, *benchmark.command(is_full=is_full, folder=folder)]
            if subprocess.run(command, cwd=ROOT).returncode:
                failed.append(benchmark.name)
    return failed, left_out


def main() -> None:
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Every figure we claim, measured.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all without")
    parser.add_argument("--list", action="store_true", help="say what there is and run nothing")
    parser.add_argument(
        "--full", action="store_true", help="with the settings of the published figures, which take hours"
    )
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"unknown benchmark {unknown[0]}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    if options.list:
        print(describe(chosen, is_full=options.full))
        return
    failed, left_out = run(chosen, is_full=options.full)
    print(f"\n{len(chosen) - len(failed) - len(left_out)} of {len(chosen)} benchmarks ran", end="")
    print("." if options.full else ", with their quickest settings: figures to quote come with --full.")
    for name, reasons in left_out.items():
        print(f"left out: {name}: {'; '.join(reasons)}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
