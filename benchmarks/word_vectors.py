"""word2vec against gensim, from one file of lines: words per second, memory, and agreement with people.

    pip install gensim==4.4.0
    SEQWISE_DATA=... python -m benchmarks.word_vectors [--seeds 5] [--epochs 5] [--methods skip_gram,cbow]

The text is that of imdb (train) and WikiText-2 (train) in small letters. Both sides have the same settings and two
workers, take turns, and each run is a process of its own: words/s while learning and from the file on, the most memory
beyond imports, and Spearman's correlation on WordSim-353 and MEN. gensim reads the file itself (corpus_file), which is
its fastest way. There each of its workers lets the rate fall as if it had all lines to read: with two, by half as much
as it should, and back at the next epoch. With --by-line its quality is also shown with lines handed to it, where its
rate falls as the settings say and as ours does; and ours with a rate that falls to its half, as theirs in effect, and
both with our own rate.

Limits: 1.5 times its words/s, correlations not lower, memory not higher.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Ratio, say_load
from benchmarks.peers.word_scores import FILES
from seqwise.data.files import OPENERS, lines_of, read_text
from seqwise.data.paths import cache_folder, data_folders

SETTINGS: dict[str, Any] = {
    "embed_dim": 100,
    "window": 5,
    "negative": 5,
    "subsample": 1e-3,
    "min_count": 5,
    "learning_rate": 0.025,
    "final_rate": 0.004,
    "workers": 2,
}
OURS, THEIRS = "benchmarks.peers.seqwise_words", "benchmarks.peers.gensim_words"
OWN_RATE = {"learning_rate": 0.05, "final_rate": 0.002}
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
SOURCES = ("imdb/train.tsv", "wikitext-2/train.txt")
LIMIT = 1.5


def source(name: str) -> Path | None:
    """A file of a data folder, packed or not."""
    places = [folder / f"{name}{suffix}" for folder in data_folders() for suffix in ("", *OPENERS)]
    return next((place for place in places if place.exists()), None)


def texts() -> Iterator[str]:
    for name in SOURCES:
        path = source(name)
        if path is None:
            raise SystemExit(f"{name} is not at hand: set SEQWISE_DATA to a folder that has it")
        for number, line in enumerate(lines_of(read_text(path))):
            if path.parent.name != "imdb":
                yield line.replace("<unk>", " ")
            elif number > 0:  # behind the names of the columns
                yield line.split("\t", 2)[2].replace("<br />", " ")


def write_corpus(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for text in texts():
            if words := WORD.findall(text.lower()):
                file.write(" ".join(words) + "\n")


def run(module: str, **settings: Any) -> dict[str, Any]:
    """One training in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps({**SETTINGS, **settings})],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def in_words(found: list[float], digits: int = 3) -> str:
    spread = f" ± {statistics.stdev(found):.{digits}f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.{digits}f}{spread}"


def compare(corpus: Path, method: str, seeds: int, epochs: int, *, by_line: bool) -> None:
    what = {"corpus": str(corpus), "method": method, "epochs": epochs}
    sides: dict[str, tuple[str, dict[str, Any]]] = {
        "ours": (OURS, {}),
        "gensim": (THEIRS, {}),
        "ours, as theirs falls": (OURS, {"final_rate": 0.5}),
        "ours, rate 0.05": (OURS, OWN_RATE),
        "ours, 0.05 to its half": (OURS, {"learning_rate": 0.05, "final_rate": 0.5}),
        "gensim, rate 0.05": (THEIRS, OWN_RATE),
    }
    if by_line:
        sides["gensim, line by line"] = THEIRS, {"is_by_line": True}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for seed in range(1, seeds + 1):
        for name, (module, settings) in sides.items():
            found[name].append(run(module, **what, **settings, seed=seed))
    ours, theirs = found["ours"], found["gensim"]
    print(f"\n{method}, {epochs} epochs of {ours[0]['words']:,} words, {ours[0]['vocabulary']:,} different ones")
    print(f"  {ours[0]['version']}, {theirs[0]['version']}; {seeds} runs each; median, median, ratio (spread)")
    for title, name, unit in (
        ("learning", "rate", 1e3),
        ("from the file on", "whole_rate", 1e3),
        ("memory", "bytes", 1e6),
    ):
        ratio = Ratio([one[name] / unit for one in ours], [one[name] / unit for one in theirs])
        middle = statistics.median(ratio.ratios)
        is_kept = middle <= 1 if name == "bytes" else middle >= LIMIT
        told = "MB beyond imports" if name == "bytes" else "thousand words/s"
        print(f"  {title:<17} {ratio}  {told}: {'kept' if is_kept else 'MISSED'}")
    for name, runs in found.items():
        scores = ", ".join(f"{pairs} {in_words([one[pairs] for one in runs])}" for pairs in FILES)
        print(f"  Spearman, {name + ':':<22} {scores}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5, help="runs of each side")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--methods", default="skip_gram,cbow")
    parser.add_argument("--by-line", action="store_true", help="also gensim with lines handed to it one by one: slow")
    options = parser.parse_args()
    say_load()
    corpus = cache_folder() / "benchmarks" / "imdb-wikitext-2.txt"
    if not corpus.exists():
        write_corpus(corpus)
    for method in options.methods.split(","):
        compare(corpus, method, options.seeds, options.epochs, by_line=options.by_line)


if __name__ == "__main__":
    main()
