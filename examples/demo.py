"""make demo: three families on Python's own language reference, about half a minute each.

Prints what each reached in bits per character, what it cost, and what it writes. The runs stay in runs/demo.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

from seqwise.api import TrainedRun
from seqwise.cli.progress import display
from seqwise.cli.tables import columns
from seqwise.models import num_parameters
from seqwise.training.session import prepare

DATA = "python-reference"
FOLDER = Path("runs/demo")
MINUTES = {"ngram": None, "lstm": 0.5, "gpt": 0.5}
PROMPT = "The statement "


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    rows = [["family", "bits/char", "95 % interval", "learned numbers", "seconds"]]
    samples = {}
    for family, minutes in MINUTES.items():
        began = time.perf_counter()
        with display() as shown:
            options = {} if minutes is None else {"minutes": minutes}
            session = prepare(
                DATA, model=family, out=FOLDER / family, tell=shown.tell, advance=shown.prepare, **options
            )
            for report in session.reports(tell=shown.tell):
                shown.report(report)
        seconds = time.perf_counter() - began
        run = TrainedRun(FOLDER / family)
        score = run.evaluate()
        low, high = score.bits_interval
        size = f"{num_parameters(run.model):,}"
        rows.append([family, f"{score.bits_per_char:.3f}", f"{low:.3f} to {high:.3f}", size, f"{seconds:.0f}"])
        samples[family] = run.generate(PROMPT, max_tokens=400, temperature=0.7)
    write = sys.stdout.write
    write(f"\n{DATA}, test part\n\n" + "\n".join(columns(rows)) + "\n")
    for family, text in samples.items():
        write(f"\n--- {family} writes\n{text}\n")
    write(f'\nThe runs are in {FOLDER}. Go on with: .venv/bin/seqwise generate {FOLDER}/gpt --prompt "A class "\n')


if __name__ == "__main__":
    main()
