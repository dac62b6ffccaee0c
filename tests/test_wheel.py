"""What people install: the wheel, built as `make wheel` builds it, in an environment that has never seen the source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import torch

import seqwise

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "seqwise"
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".*cache", ".hypothesis", "runs", "build", "dist", "*.egg-info", "__pycache__"
)
RECIPES = list((SOURCE / "recipes").glob("*.toml"))
SMALL = ["--steps", "5", "--set", "model.model_dim=16"]
CATS = """
family = "lstm"
[recipe]
title = "an LSTM on cats"
data = "cats.txt"
metric = "nats_per_token"
published = 100.0
source = "made up"
signature = "nats per character"
minutes = 0.1
[model]
model_dim = 16
[training]
steps = 5
"""
TEXT = "the cat sat on the mat.\nthe dog sat on the log.\na cat and a dog sat.\n" * 40


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints, with none of the paths and settings that this test runs with."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive and the wheel built from it, without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "source", ignore=NOT_COPIED)  # building leaves files beside the source
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(archives: Path) -> Path:
    (path,) = archives.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it; what it depends on is borrowed from this one, the source is not."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (packages / "borrowed.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--ignore-installed", wheel, cwd=folder)
    return folder


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    files = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    expected = {name for name in files if "__pycache__" not in name}
    assert {name for name in expected if not name.endswith(".py")} >= {"seqwise/py.typed", "seqwise/pages/page.css"}
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if name.startswith("seqwise/")} == expected


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = archive.read(name).decode().partition("\n\n")[0].splitlines()
        (license_file,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
        assert archive.read(license_file) == (ROOT / "LICENSE").read_bytes()
    assert {f"Version: {seqwise.__version__}", "License-Expression: Apache-2.0", "Requires-Python: >=3.11"} <= set(told)
    assert "Author: The seqwise authors" in told


def test_the_source_archive_has_what_the_tests_need(archives: Path) -> None:
    (path,) = archives.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "constraints.txt",
        "README.md",
        "LICENSE",
        "docs/images/report.png",
        ".github/workflows/ci.yml",
    } <= names
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    assert tests <= names


def test_what_is_installed_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    told = run(installed / "bin" / "python", "-c", "import seqwise; print(seqwise.__file__)", cwd=tmp_path)
    assert Path(told.strip()).is_relative_to(installed)
    assert run(installed / "bin" / "seqwise", "--version", cwd=tmp_path) == f"seqwise {seqwise.__version__}\n"


def test_recipes_come_with_it_and_are_run_from_any_folder(installed: Path, tmp_path: Path) -> None:
    program = installed / "bin" / "seqwise"
    listed = run(program, "reproduce", cwd=tmp_path)
    names = [line.split()[0] for line in listed.splitlines()[1:]]
    assert names == sorted(path.stem for path in RECIPES)
    assert "ptb-lstm" in names
    (tmp_path / "cats.txt").write_text(TEXT)
    (tmp_path / "cats.toml").write_text(CATS)
    assert run(program, "reproduce", "cats.toml", cwd=tmp_path).splitlines()[-1] == "reached"
    assert (tmp_path / "runs" / "cats" / "card.md").exists()


def test_a_file_is_trained_on(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "cats.txt").write_text(TEXT)
    run(installed / "bin" / "seqwise", "train", "cats.txt", "--model", "gru", *SMALL, "--out", "run", cwd=tmp_path)
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert f'seqwise = "{seqwise.__version__}"' in (tmp_path / "run" / "config.toml").read_text()
