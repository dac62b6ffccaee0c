"""The pictures of the README, taken of real pages by a real browser: make images

    python docs/make_images.py                           # compares for five minutes first
    python docs/make_images.py --compared runs/demo      # of a comparison that is there, such as that of make demo

Needs playwright (one of the packages for development) and Chromium: SEQWISE_CHROMIUM, else `chromium` on the path. No
browser is downloaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import seqwise
from seqwise.inspection.inspect import inspect_run
from seqwise.inspection.page import save_inspection

IMAGES = Path(__file__).parent / "images"
DATA, MINUTES = "python-reference", 5.0
TEXT, SHOWN = "The statement is executed when the condition is true", "when"  # its first letter is looked at
WIDTH, MARGIN, MAX_BYTES = 1280, 24, 150_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def write_inspection(runs: Path, out: Path) -> None:
    """Of a recurrent network and a GPT, side by side."""
    trained = [seqwise.load(runs / name) for name in ("lstm", "gpt")]
    save_inspection([inspect_run(run, TEXT) for run in trained], out)


def photograph(page: Any, first: str, last: str, out: Path) -> None:
    """From the top of one element to the end of another."""
    top = page.locator(first).bounding_box()["y"]
    end = page.locator(last).bounding_box()
    height = end["y"] + end["height"] - top + 2 * MARGIN
    page.screenshot(path=out, full_page=True, clip={"x": 0, "y": top - MARGIN, "width": WIDTH, "height": height})
    if out.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{out}: {out.stat().st_size:,} bytes are more than {MAX_BYTES:,}; show less of the page.")
    print(f"{out}: {out.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the README anew.")
    parser.add_argument("--compared", type=Path, help="a comparison that is there; without, one is made")
    options = parser.parse_args()
    executable = os.environ.get("SEQWISE_CHROMIUM") or shutil.which("chromium")
    if not executable:
        raise SystemExit("needs Chromium: install it, or set SEQWISE_CHROMIUM to its executable.")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        compared, inside = options.compared or Path(scratch) / "compared", Path(scratch) / "inside.html"
        if not options.compared:
            seqwise.compare(DATA, minutes=MINUTES, out=compared)
        write_inspection(compared / "runs", inside)
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        IMAGES.mkdir(exist_ok=True)
        page.goto((compared / "report.html").resolve().as_uri())
        photograph(page, "#results-head", "#results", IMAGES / "report.png")
        page.goto(inside.as_uri())
        page.locator("#reading [tabindex]").nth(1 + TEXT.index(SHOWN)).click()
        photograph(page, "nav", "#reading", IMAGES / "inspect.png")
        browser.close()


if __name__ == "__main__":
    main()
