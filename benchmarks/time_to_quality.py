"""Seconds of training until the full validation loss of tinyshakespeare is at most 1.88 nats per character.

    python -m benchmarks.time_to_quality [--minutes 0.5] [--seeds 5] [--model gpt] [--set …]

The settings are those of `seqwise train tinyshakespeare --model gpt --minutes 0.5`. Loss: mean over every validation
character in disjoint windows of the training context, no carried state. Clock: time spent in training steps; the
evaluations are excluded, and so is nothing else that happens between two steps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from benchmarks.measure import say_load
from seqwise.api import TrainedRun
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

TARGET = 1.88


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="gpt")
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--json", type=Path, help="write the curves here")
    options = parser.parse_args()
    say_load()
    reached, finals, curves = [], [], []
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            request = Request.of(
                "tinyshakespeare",
                model=options.model,
                out=Path(folder) / "run",
                minutes=options.minutes,
                seed=seed,
                overrides=["training.valid_tokens=111540", "training.num_samples=0", *options.set],
            )
            session = prepare(request, tell=print if seed == 0 else lambda _: None)
            curve = list(run_with_evaluations(session, options.evaluations))
            seconds = next((s for s, loss in curve if loss <= TARGET), float("inf"))
            sliding = TrainedRun(Path(folder) / "run").evaluate(split="valid", view="sliding")
        reached.append(seconds)
        finals.append(curve[-1][1])
        curves.append(curve)
        print(
            f"seed {seed}: {TARGET} after {seconds:.1f} s; {curve[-1][1]:.4f} after {curve[-1][0]:.1f} s "
            f"(sliding windows: {sliding.nats_per_token:.4f})",
            flush=True,
        )
    print(
        "loss against seconds, seed 0: "
        + "  ".join(f"{s:.1f}:{loss:.3f}" for s, loss in curves[0][:: max(1, len(curves[0]) // 10)])
    )
    print(
        f"seconds to {TARGET}: median {statistics.median(reached):.1f}, range {min(reached):.1f} to {max(reached):.1f}"
    )
    print(f"final loss: median {statistics.median(finals):.4f}, range {min(finals):.4f} to {max(finals):.4f}")
    if options.json:
        options.json.write_text(json.dumps(curves))


def run_with_evaluations(session, evaluations: int):
    """(seconds, validation loss) pairs; the number of evaluations follows from the steps that the budget becomes."""
    run = session.run
    save_config = run.save_config

    def save_and_space(config) -> None:
        every = max(1, config.training.steps // evaluations)
        save_config(run.with_training(steps=config.training.steps, evaluate_every=every))

    run.save_config = save_and_space
    for report in session.reports(tell=print):
        if report.valid is not None:
            yield report.seconds, report.valid


if __name__ == "__main__":
    main()
