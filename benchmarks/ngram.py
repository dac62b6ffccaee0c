"""Penn Treebank, order 5, modified Kneser-Ney: perplexity and seconds.

    python -m benchmarks.ngram

Published: 141.2 (closed vocabulary of 10,000, one <s> as context, </s> scored).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.measure import say_load
from seqwise.api import TrainedRun
from seqwise.training.session import prepare

REPEATS = 3


def main() -> None:
    say_load()
    whole, counting = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            session = prepare("ptb", model="ngram", out=Path(folder) / "run")
            report = list(session.reports())[-1]
            whole.append(time.perf_counter() - began)
            counting.append(report.seconds)
            score = TrainedRun(Path(folder) / "run").evaluate(split="test")
    print(f"test perplexity {score.perplexity:.2f} on {score.tokens:,} tokens; {score.signature}")
    print(
        f"counting {statistics.median(counting):.2f} s ({min(counting):.2f} to {max(counting):.2f}); "
        f"from file to run folder {statistics.median(whole):.2f} s ({min(whole):.2f} to {max(whole):.2f})"
    )


if __name__ == "__main__":
    main()
