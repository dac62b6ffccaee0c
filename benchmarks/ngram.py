"""n-grams: perplexity on the Penn Treebank, time and memory to build on WikiText-2, and scoring against KenLM.

    python -m benchmarks.ngram

Published, Penn Treebank test set, order 5, modified Kneser-Ney: 141.2 (closed vocabulary of 10,000, one <s> as context,
</s> scored). Limits: WikiText-2, order 5, in 15 s and 1 GB; scoring at three times the rate of the `kenlm` module.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import peak_bytes, say_load, take_turns
from seqwise.api import TrainedRun
from seqwise.data.batch import next_token_batch
from seqwise.data.schema import text_schema
from seqwise.data.source import open_text
from seqwise.data.store import build_store
from seqwise.interop.arpa import write_arpa
from seqwise.models.ngram import Ngram, NgramConfig
from seqwise.text import train_tokenizer
from seqwise.text.symbols import SymbolTokenizer
from seqwise.training.preparing import prepare
from seqwise.training.report import Report
from seqwise.training.request import Request

REPEATS = 3
LIMIT_SECONDS, LIMIT_BYTES, LIMIT_RATIO = 15.0, 1e9, 3.0
ORDER = 5


def perplexity() -> None:
    whole, counting = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            reports: list[Report] = []
            prepare(Request.of("ptb", model="ngram", out=Path(folder) / "run")).train(reports.append)
            whole.append(time.perf_counter() - began)
            counting.append(reports[-1].seconds)
            score = TrainedRun(Path(folder) / "run").evaluate(split="test")
    print(f"Penn Treebank: test perplexity {score.perplexity:.2f} on {score.tokens:,} tokens; {score.signature}")
    print(
        f"counting {statistics.median(counting):.2f} s ({min(counting):.2f} to {max(counting):.2f}); "
        f"from file to run folder {statistics.median(whole):.2f} s ({min(whole):.2f} to {max(whole):.2f})"
    )


def build_once() -> None:
    """In a process of its own: seconds and bytes to build, above what importing and compiling needs."""
    tiny = Ngram(NgramConfig(order=ORDER, across_lines=False), text_schema(SymbolTokenizer(4)))
    tiny.fit(np.tile(np.arange(4), 10))  # compiled here, or taken from numba's cache
    before = peak_bytes()
    began = time.perf_counter()
    data = open_text("wikitext-2")
    tokenizer = train_tokenizer("word", data.parts["train"].blocks())
    store = build_store(data, "train", tokenizer)
    counted = time.perf_counter()
    model = Ngram(NgramConfig(order=ORDER, across_lines=False), text_schema(tokenizer))
    model.fit(store.ids)
    done = time.perf_counter()
    found = {"whole": done - began, "counting": done - counted, "bytes": peak_bytes() - before}
    print(json.dumps(found | {"tokens": store.num_tokens, "grams": model.num_parameters}))


def build() -> None:
    """A new process each time, with an empty cache of tokens."""
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as cache:
            code = (
                f"import os; os.environ['SEQWISE_CACHE'] = {cache!r}; from benchmarks.ngram import build_once as b; b()"
            )
            done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    seconds, counting, peak = ([run[name] for run in runs] for name in ("whole", "counting", "bytes"))
    is_kept = max(seconds) < LIMIT_SECONDS and max(peak) < LIMIT_BYTES
    print(
        f"WikiText-2, order {ORDER}: {runs[0]['grams']:,} grams of {runs[0]['tokens']:,} tokens from file in "
        f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}), of which counting "
        f"{statistics.median(counting):.1f} s; {statistics.median(peak) / 1e6:,.0f} MB above imports "
        f"(limits {LIMIT_SECONDS:.0f} s, {LIMIT_BYTES / 1e6:,.0f} MB: {'kept' if is_kept else 'MISSED'})"
    )


def scoring() -> None:
    """The Penn Treebank test set, from the list of its sentences to the sum of their log-probabilities."""
    try:
        import kenlm
    except ImportError:
        print("scoring: skipped, there is no kenlm to compare with: pip install kenlm")
        return
    data = open_text("ptb")
    tokenizer = train_tokenizer("word", data.parts["train"].blocks())
    model = Ngram(NgramConfig(order=ORDER, across_lines=False), text_schema(tokenizer))
    model.fit(build_store(data, "train", tokenizer).ids)
    with tempfile.TemporaryDirectory() as folder:
        write_arpa(model, tokenizer, Path(folder) / "ptb.arpa")
        config = kenlm.Config()
        config.show_progress = False
        peer = kenlm.Model(str(Path(folder) / "ptb.arpa"), config)
    sentences = "".join(data.parts["test"].blocks()).splitlines()
    ids = np.concatenate([[tokenizer.boundary], tokenizer.encode("\n".join([*sentences, ""]))])

    def score_ids(ids: np.ndarray) -> float:
        return float(model.score(next_token_batch(torch.from_numpy(ids)[None]))[0].sum()) / np.log(10)

    def score_sentences() -> float:
        return score_ids(np.concatenate([[tokenizer.boundary], tokenizer.encode("\n".join([*sentences, ""]))]))

    def score_with_peer() -> float:
        return sum(peer.score(sentence) for sentence in sentences)

    def rate(score: Callable[[], float]) -> Callable[[], float]:
        """Million tokens per second."""

        def measure() -> float:
            began = time.perf_counter()
            score()
            return (len(ids) - 1) / (time.perf_counter() - began) / 1e6

        return measure

    print(
        f"scoring {len(ids) - 1:,} tokens, order {ORDER}, {torch.get_num_threads()} threads of ours and one of KenLM's"
    )
    print(f"log10 p: {score_sentences():.3f} and {score_with_peer():.3f}; million tokens per second:")
    print("                       ours      kenlm    ratio")
    for name, ours in (("from sentences", score_sentences), ("from ids", lambda: score_ids(ids))):
        ratio = take_turns(rate(ours), rate(score_with_peer), repeats=15)
        kept = "kept" if statistics.median(ratio.ratios) >= LIMIT_RATIO else "MISSED"
        print(f"{name:16} {ratio}; {LIMIT_RATIO:.0f}x: {kept}")


def main() -> None:
    say_load()
    perplexity()
    build()
    scoring()


if __name__ == "__main__":
    main()
