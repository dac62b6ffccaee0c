"""Families that forecast numbers, on real series: error beside naive forecasts, and what the intervals cover.

    SEQWISE_DATA=... python -m benchmarks.forecasts --families kalman,hmm,gru,conv,gpt --minutes 0.3

The series of the folder `timeseries`, split 80/10/10 in order, sizes by rule, scored once on the last tenth. Each cell:
MAE as a share of the naive forecast's, and the share of numbers inside their 95 % intervals.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.measure import say_load
from seqwise.api import TrainedRun
from seqwise.cli.tables import columns
from seqwise.data.paths import data_folders
from seqwise.errors import SeqwiseError
from seqwise.models import family
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

HORIZONS = {
    "airline-passengers": 12,
    "monthly-car-sales": 12,
    "daily-total-female-births": 14,
    "monthly-sunspots": 24,
    "daily-min-temperatures": 30,
    "daily-max-temperatures": 30,
    "ETTh1": 24,
    "pollution": 24,
}
COLUMNS = {"pollution": ("pm2.5", "DEWP", "TEMP", "PRES", "Iws")}  # the others count hours, or rest at zero


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", default="kalman")
    parser.add_argument("--minutes", type=float, default=0.3, help="for families that learn by gradients")
    options = parser.parse_args()
    say_load()
    families = options.families.split(",")
    table = [["series (steps ahead)", "seasonal naive", *families]]
    for name, horizon in HORIZONS.items():
        found = [path for folder in data_folders() for path in sorted((folder / "timeseries").glob(f"{name}.csv*"))]
        if not found:
            print(f"{name}: not at hand")
            continue
        cells, seasonal = [], ""
        for model in families:
            budget = {"minutes": options.minutes} if family(model).learns_by == "gradients" else {}
            with tempfile.TemporaryDirectory() as folder:
                try:
                    asked = {"split": "80/10/10", "columns": COLUMNS.get(name, ()), **budget}
                    prepare(Request.of(found[0], model=model, out=Path(folder) / "run", **asked)).train()
                    score = TrainedRun(Path(folder) / "run").evaluate(split="test", horizon=horizon).to_dict()
                except SeqwiseError as error:
                    cells.append(f"failed: {error}")
                    continue
            cells.append(f"{score['mae_over_naive']:.3f}, {100 * score['coverage']:.0f} %")
            has_season = score["mae_seasonal_naive"] is not None
            seasonal = f"{score['mae_seasonal_naive'] / score['mae_naive']:.3f}" if has_season else "no season"
        table.append([f"{name} ({horizon})", seasonal, *cells])
        print("\n".join(columns([table[0], table[-1]])), flush=True)
    print("\n" + "\n".join(columns(table)))


if __name__ == "__main__":
    main()
