"""What attention is worth, by the length of the source: seq2seq with and without it, otherwise alike.

    python -m benchmarks.attention_by_length numbers [--minutes 3]
    python -m benchmarks.attention_by_length multi30k [--steps 1800] [--parallel]

numbers: English number words to German, 1,000 and more unseen values in each bucket of lengths, the share that is right
to the letter, and chrF (what is right in part). multi30k: both take the same number of steps over the same batches;
BLEU on the test sentences of up to 15 words and of more, with a paired bootstrap of the difference. Side by side: a
process of one thread for each.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from seqwise.api import TrainedRun
from seqwise.data.pair_toys import number_in_words, number_values
from seqwise.evaluation.segments import Segments, compare_segments

NUMBERS, SENTENCES = "numbers:en-de", "multi30k:en-de"
KINDS = ("none", "general")
BUCKETS = ((1, 5), (6, 9), (10, 13), (14, 99))  # words of a source
IN_A_BUCKET, LONG = 1_000, 15


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", choices=["numbers", "multi30k"])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--out", type=Path, help="where runs are kept; those that are there are not trained again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.data == "numbers":
            by_length_of_numbers(train(NUMBERS, folder, ["--minutes", str(options.minutes)], options.parallel))
        else:
            by_length_of_sentences(train(SENTENCES, folder, ["--steps", str(options.steps)], options.parallel))


def train(data: str, folder: Path, budget: list[str], parallel: bool) -> dict[str, TrainedRun]:
    processes = []
    for kind in KINDS:
        out = folder / f"{data.partition(':')[0]}-{kind}"
        if not (out / "model.safetensors").exists():
            command = ["train", data, "--model", "seq2seq", "--out", str(out), *budget]
            command += ["--set", f"model.attention={kind}"]
            command += ["--set", "training.threads=1"] if parallel else []
            processes.append(subprocess.Popen([sys.executable, "-m", "seqwise", *command], stdout=subprocess.DEVNULL))
            if not parallel:
                processes[-1].wait()
    assert not any(process.wait() for process in processes)
    return {kind: TrainedRun(folder / f"{data.partition(':')[0]}-{kind}") for kind in KINDS}


def by_length_of_numbers(runs: dict[str, TrainedRun]) -> None:
    buckets = unseen_numbers()
    heads = [f"{low} to {high}" if high < 99 else f"{low} and more" for low, high in BUCKETS]
    print(f"| words of the source | {' | '.join(heads)} |")
    print(f"|---|{'---|' * len(BUCKETS)}")
    print(f"| pairs | {' | '.join(str(len(pairs)) for pairs in buckets)} |")
    for kind, run in runs.items():
        shares, letters = [], []
        for pairs in buckets:
            answers = [answer.text for answer in run.answers(source for source, _ in pairs)]
            targets = [target for _, target in pairs]
            right = sum(answer == target for answer, target in zip(answers, targets, strict=True))
            shares.append(f"{100 * right / len(pairs):.1f} %")
            letters.append(f"{CHRF().corpus_score(answers, [targets]).score:.1f}")
        print(f"| attention {kind}: right | {' | '.join(shares)} |")
        print(f"| attention {kind}: chrF | {' | '.join(letters)} |", flush=True)


def unseen_numbers() -> list[list[tuple[str, str]]]:
    """A thousand for each bucket, from four digits on: of shorter ones most were trained on."""
    seen = {value for values in number_values(20_000).values() for value in values}
    rng = random.Random("attention by length")
    found: list[list[tuple[str, str]]] = [[] for _ in BUCKETS]
    while any(len(pairs) < IN_A_BUCKET for pairs in found):
        digits = rng.randint(4, 9)
        value = rng.randrange(10 ** (digits - 1), 10**digits)
        source = number_in_words(value, "en")
        place = next(n for n, (low, high) in enumerate(BUCKETS) if low <= len(source.split()) <= high)
        if value not in seen and len(found[place]) < IN_A_BUCKET:
            seen.add(value)
            found[place].append((source, number_in_words(value, "de")))
    return found


def by_length_of_sentences(runs: dict[str, TrainedRun]) -> None:
    scores = {kind: run.evaluate() for kind, run in runs.items()}
    words = np.array([len(source.split()) for source in scores["none"].sources])
    for title, chosen in ((f"up to {LONG} words", words <= LONG), (f"more than {LONG} words", words > LONG)):
        parts = {kind: Segments(score.bleu_segments.statistics[:, chosen], "bleu") for kind, score in scores.items()}
        told = ", ".join(f"{kind} {-part.value:.2f}" for kind, part in parts.items())
        gap = compare_segments(parts["general"], parts["none"])
        low, high = gap.interval
        worth = f"attention is worth {gap.gain:.2f} (95 %: {low:.2f} to {high:.2f})"
        print(f"{title} ({chosen.sum()}): BLEU {told}; {worth}", flush=True)


if __name__ == "__main__":
    main()
