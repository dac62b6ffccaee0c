"""make bench: every figure we claim, one after the other. Each also runs alone: python -m benchmarks.NAME"""

from __future__ import annotations

from benchmarks import (
    generation,
    hmm,
    memory,
    ngram,
    recurrent,
    startup,
    time_to_quality,
    translation_speed,
    translation_training,
)

for benchmark in (
    *(startup, ngram, hmm, recurrent, generation),
    *(translation_training, translation_speed, time_to_quality, memory),
):
    print(
        f"\n== {benchmark.__name__.removeprefix('benchmarks.')}: {(benchmark.__doc__ or '').splitlines()[0]}",
        flush=True,
    )
    benchmark.main()
