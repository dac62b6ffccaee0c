"""The lineage on one text under one budget: bits per character of every family that reads text.

    python -m benchmarks.lineage --minutes 10 --out runs/lineage

tinyshakespeare, characters, sizes by rule, validation part (the set has no other); a family whose run is there already
is only scored, so that the benchmark can be stopped and gone on with.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from benchmarks.measure import say_load
from seqwise.api import TrainedRun
from seqwise.cli.tables import columns
from seqwise.data.schema import NEXT_TOKEN
from seqwise.models import MODELS, num_parameters
from seqwise.training.preparing import prepare, resume
from seqwise.training.report import Report
from seqwise.training.request import Request

DATA = "tinyshakespeare"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("runs/lineage"))
    reading = [name for name, row in MODELS.items() if NEXT_TOKEN in row.learns]
    parser.add_argument("--families", default=",".join(reading))
    options = parser.parse_args()
    say_load()
    rows = [["family", "bits/char", "95 % interval", "nats/char", "learned numbers", "seconds"]]
    for name in options.families.split(","):
        path = options.out / name
        budget = {"minutes": options.minutes} if MODELS[name].learns_by == "gradients" else {}
        if (path / "config.toml").exists():
            session = resume(path)
        else:
            session = prepare(Request.of(DATA, model=name, out=path, **budget))
        if not (path / "card.md").exists():
            session.train(partial(say_valid, name))
        run = TrainedRun(path)
        score = run.evaluate(split="valid")
        low, high = score.bits_interval
        seconds = list(run.run.read_log())[-1]["seconds"]
        size = f"{num_parameters(run.model):,}"
        interval = f"{low:.3f} to {high:.3f}"
        found = [name, f"{score.bits_per_char:.4f}", interval, f"{score.nats_per_token:.4f}", size, f"{seconds:.0f}"]
        rows.append(found)
        print("\n".join(columns([rows[0], found])), flush=True)
    print("\n" + "\n".join(columns(rows)))


def say_valid(name: str, report: Report) -> None:
    if report.valid is not None:
        print(f"{name}: step {report.step}/{report.steps}, valid {report.valid:.4f}", flush=True)


if __name__ == "__main__":
    main()
