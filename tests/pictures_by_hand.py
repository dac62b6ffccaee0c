"""Folders of little pictures, for tests of who reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def write_pictures(folder: Path, names: Iterable[str], size: tuple[int, int] = (8, 8)) -> Path:
    """Noise of a seed each, so that no two are alike."""
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, size=(*size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    return folder


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """As a .csv, .tsv, .jsonl or .json file."""
    rows = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = "," if path.suffix == ".csv" else "\t"
        lines = [list(rows[0]), *(map(str, row.values()) for row in rows)]
        path.write_text("".join(mark.join(line) + "\n" for line in lines))
    return path


def labelled_folder(folder: Path, num: int = 10) -> Path:
    """Cats and dogs."""
    return write_pictures(folder, [f"{label}/{n}.png" for label in ("cat", "dog") for n in range(num)])


def captioned_folder(folder: Path, num: int = 12, suffix: str = ".csv") -> Path:
    """Two captions a picture."""
    write_pictures(folder, [f"images/{n}.png" for n in range(num)])
    rows = [{"image": f"{n}.png", "caption": f"picture {n} said {k}"} for n in range(num) for k in ("once", "twice")]
    write_rows(folder / f"captions{suffix}", rows)
    return folder


def asked_folder(folder: Path, num: int = 12) -> Path:
    write_pictures(folder, [f"images/{n}.png" for n in range(num)])
    rows = [
        {"image": f"{n}.png", "question": f"is it {what}?", "answer": "yes" if n % 2 == (what == "even") else "no"}
        for n in range(num)
        for what in ("odd", "even")
    ]
    write_rows(folder / "questions.json", rows)
    return folder
