"""seqwise compare on texts of all sizes: which family wins, what was expected, and where the time went.

    python -m benchmarks.comparing names prose code        # the cases to run; all without
    python -m benchmarks.comparing shakespeare             # 30 minutes, against ten minutes of one family (hand work)
    python -m benchmarks.comparing budget                  # is the budget kept, on a quiet machine and on a busy one?

What should win is said beforehand, with the reason; the comparisons stay in --out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.synchronize
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import say_load
from seqwise.comparison.compare import run_comparison
from seqwise.comparison.request import ComparisonRequest
from seqwise.comparison.results import Comparison
from seqwise.data.builtin import builtin_file
from seqwise.data.public import find_public

# bits per character in sliding windows, as here: the recipe tinyshakespeare-10-minutes (docs/lab-notebook.md)
HAND_WORK = 1.4343 / np.log(2)


@dataclass(frozen=True)
class Case:
    minutes: float
    expected: tuple[str, ...]
    why: str
    text: Callable[[], str] | None = None
    """None where the case is a data set of the same name."""


def names() -> str:
    return find_public("names")["train"].read_text()[:2000]


def prose() -> str:
    return builtin_file("python-reference").read_text()[:100_000]


def code() -> str:
    return builtin_file("python-source").read_text()[:1_000_000]


def much() -> str:
    """100 MB: paragraphs of the language reference in random order, some of them many times, numbers changed."""
    random = np.random.default_rng(0)
    paragraphs = builtin_file("python-reference").read_text().split("\n\n")
    often = 1 / np.arange(1, len(paragraphs) + 1)
    parts, length = [], 0
    while length < 100_000_000:
        for place in random.choice(len(paragraphs), size=5000, p=often / often.sum()):
            parts.append(f"{random.integers(1000)}.{random.integers(100)} {paragraphs[place]}\n\n")
            length += len(parts[-1])
    return "".join(parts)


CASES = {
    "names": Case(2, ("ngram", "hmm"), "2 kB are too little for gradients: counts with good smoothing", names),
    "prose": Case(5, ("ngram",), "100 kB: a network has learned it by heart before it has learned the language", prose),
    "code": Case(10, ("gpt", "lstm", "gru"), "1 MB: enough to learn from, and code looks far back", code),
    "much": Case(20, ("ngram",), "100 MB of repetition: who has counted it knows it; networks read a part only", much),
    "markov": Case(2, ("ngram",), "an order-2 chain: three letters are all there is to know"),
    "hidden-markov": Case(4, ("hmm",), "hidden states: a belief is all there is to know"),
    "shakespeare": Case(30, ("gpt", "lstm", "gru"), "1 MB of plays, and ten minutes for a finalist"),
}


def busy(stop: multiprocessing.synchronize.Event) -> None:
    """Other work: matrix products on all cores, as another training would do."""
    matrix = np.random.default_rng(0).normal(size=(700, 700))
    while not stop.is_set():
        matrix = np.tanh(matrix @ matrix / 700)


@contextmanager
def load(num: int) -> Iterator[None]:
    """So many other processes at work."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    others = [context.Process(target=busy, args=(stop,)) for _ in range(num)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        stop.set()
        for other in others:
            other.join()


BUDGETS = (("prose", 1.0), ("python-reference", 2.0), ("dates:en-fr", 3.0))
ALLOWED = {0: 1.10, 1: 1.25}  # times the budget, and five seconds more, by number of other processes


def check_budgets(out: Path, repeats: int) -> None:
    """Wall clock of whole commands, quiet and busy in turns."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "prose.txt").write_text(prose())
    for name, minutes in BUDGETS:
        source = str(out / "prose.txt") if name == "prose" else name
        for repeat in range(repeats):
            for others, factor in ALLOWED.items():
                path = out / f"budget-{name.replace(':', '-')}-{others}-{repeat}"
                command = ["compare", source, "--minutes", str(minutes), "--out", str(path)]
                with load(others):
                    began = time.perf_counter()
                    subprocess.run([sys.executable, "-c", "from seqwise.cli import main; main()", *command], check=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
                    seconds = time.perf_counter() - began
                found = Comparison.read(path / "compare.json")
                most = factor * 60 * minutes + 5
                kept = "kept" if seconds <= most else "MISSED"
                print(f"{name}, {minutes:g} min, {others} other at work: {seconds:.0f} s of {most:.0f} allowed, {kept}")
                print(f"  {' '.join(found.recommendation)}")
                print(f"  {', '.join(f'{part} {spent:.0f} s' for part, spent in found.seconds.items())}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--out", type=Path, default=Path("runs/comparing"))
    parser.add_argument("--repeats", type=int, default=3, help="of the budgets")
    options = parser.parse_args()
    say_load()
    if "budget" in options.cases:
        check_budgets(options.out, options.repeats)
        options.cases.remove("budget")
    for name in options.cases:
        case = CASES[name]
        print(f"== {name}, {case.minutes:g} minutes; expected {' or '.join(case.expected)}: {case.why}", flush=True)
        source = "tinyshakespeare" if name == "shakespeare" else name
        if case.text is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            source = str(options.out / f"{name}.txt")
            Path(source).write_text(case.text())
        path = options.out / name
        has_begun = (path / "settings.json").exists()
        found = run_comparison(path, None if has_begun else ComparisonRequest(source, minutes=case.minutes).settings())
        for entry in found.entries:
            shown = f"{entry.test.value:.4f} ({entry.test.low:.4f} to {entry.test.high:.4f})" if entry.test else "-"
            print(f"  {entry.name:14} {shown}  {entry.training_seconds:.0f} s  {entry.reason}")
        for sentence in found.recommendation:
            print(f"  {sentence}")
        whole = sum(found.seconds.values())
        useful = (found.seconds["training"] + found.seconds["scoring"]) / whole
        print(f"  {whole:.0f} s in all, {100 * useful:.1f} % of it training and final scoring: {found.seconds}")
        winner = found.entry(found.winner).family if found.winner else "none"
        print(f"  {winner} wins: {'as expected' if winner in case.expected else 'NOT as expected'}")
        if name == "shakespeare" and found.winner:
            test = found.entry(found.winner).test
            assert test is not None
            print(f"  {test.value:.4f} against {HAND_WORK:.4f} by hand: {test.value / HAND_WORK - 1:+.1%} (limit +3 %)")


if __name__ == "__main__":
    main()
