"""The README's tour, really run, in an empty folder."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def tour(language: str, name: str = "tour") -> str:
    """All blocks of a name, in their order."""
    blocks = re.findall(rf"```{language} {name}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    return "".join(blocks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tour")


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def test_every_command_of_the_tour_works(folder: Path) -> None:
    outputs = {command: run(["bash", "-c", command], folder) for command in tour("sh").strip().splitlines()}
    shown = {command.split()[1]: output for command, output in outputs.items()}
    assert "ngram" in shown["models"]
    assert "python-reference" in outputs["seqwise data list"]
    assert all(output.strip() for output in outputs.values())
    evaluation = next(out for command, out in outputs.items() if command.startswith("seqwise evaluate runs/counts"))
    assert "runs/counts" in evaluation
    assert "bits/char" in evaluation
    written = next(out for command, out in outputs.items() if "runs/counts --prompt" in command)
    assert written.startswith("The statement ")
    assert len(written) > 150
    assert "under the red chair" in shown["answer"]


def test_the_commands_for_numbers_work(folder: Path) -> None:
    degrees = (10 + 8 * math.sin(hour * math.pi / 12) + 0.1 * (hour % 7) for hour in range(480))
    (folder / "temperatures.csv").write_text("degrees\n" + "".join(f"{value:.2f}\n" for value in degrees))
    outputs = [run(["bash", "-c", command], folder) for command in tour("sh", "csv").strip().splitlines()]
    assert "mae" in outputs[1].lower()
    forecast = (folder / "forecast.csv").read_text().splitlines()
    assert forecast[0] == "step,degrees,degrees_low,degrees_high"
    assert len(forecast) == 25


def test_the_commands_for_labels_and_tags_work(folder: Path) -> None:
    good, bad = ("fine", "funny", "warm", "wise"), ("dull", "loud", "slow", "cold")
    rows = [
        (f"a {words[n % 4]} and {words[n // 4 % 4]} {'film' if n % 3 else 'story'} number {n}", label)
        for n in range(120)
        for words, label in ((good, "good"), (bad, "bad"))
    ]
    (folder / "reviews.csv").write_text("review,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    (folder / "questions.txt").write_text("for x in range ( 10 ) :\n")
    outputs = [run(["bash", "-c", command], folder) for command in tour("sh", "labels").strip().splitlines()]
    assert "100.00" in outputs[1]
    assert outputs[2].startswith("good\t")
    assert "<html" in (folder / "runs" / "reviews.html").read_text()[:200]
    assert [line.split("\t") for line in outputs[5].split("\n")[:2]] == [["for", "keyword"], ["x", "name"]]


def test_the_commands_for_pairs_work(folder: Path) -> None:
    outputs = [run(["bash", "-c", command], folder) for command in tour("sh", "pairs").strip().splitlines()]
    assert "chrF" in outputs[1]
    assert outputs[2].splitlines()[1].startswith("beam")
    score, text, links = outputs[3].rstrip("\n").split("\t")
    assert float(score) < 0
    assert len(links.split()) == len(text)


def test_the_python_tour_works(folder: Path) -> None:
    output = run([sys.executable, "-c", tour("python")], folder)
    assert output.startswith("A class ")
    assert 0.5 < float(output.strip().splitlines()[-1]) < 4
