"""What the pages for people say is there, is there: links, files, pictures, versions."""

from __future__ import annotations

import re
import shlex
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

import seqwise
from seqwise.cli import app

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "seqwise"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / ".github" / "pull_request_template.md"]
MAX_IMAGE_BYTES = 150_000


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", read(page))
    for target in targets:
        if not target.startswith(("https://", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_map_names_every_file_of_the_package_and_no_other() -> None:
    part = read(ARCHITECTURE).partition("<!-- the map begins -->")[2].partition("<!-- the map ends -->")[0]
    named = re.findall(r"^\| `([^`]+)` \|", part, flags=re.MULTILINE)
    files = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.suffix in (".py", ".css", ".js")}
    told = {path.as_posix() for path in files if path.name != "__init__.py" or len(path.parts) > 2}
    assert set(named) == told, "run: make map"
    assert len(named) == len(told)
    recipes = {path.stem for path in (PACKAGE / "recipes").glob("*.toml")}
    assert recipes <= set(re.findall(r"`([^`]+)`", part)), "run: make map"


def test_the_walk_names_files_that_exist() -> None:
    before = read(ARCHITECTURE).partition("## The map")[0]
    names = [name for name in re.findall(r"`([\w/]+\.py)`", before) if "NAME" not in name]
    assert len(names) > 15
    assert [name for name in names if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []


def test_the_walk_names_functions_where_they_are() -> None:
    walk = read(ARCHITECTURE).partition("## A walk")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+)`\s+in\s+`([\w/]+\.py)`", walk)
    assert len(named) > 15
    lost = [
        f"{name} in {file}" for name, file in named if not re.search(rf"(def|class) {name}\b", read(PACKAGE / file))
    ]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_the_pages_are_understood(page: Path) -> None:
    """Names and options; nothing is run."""
    program: Any = typer.main.get_command(app)
    text = read(page).replace("\\\n", " ")
    blocks = "\n".join(
        [*re.findall(r"```\w*\n(.*?)```", text, re.DOTALL), *re.findall(r"^ {4}.*$", text, re.MULTILINE)]
    )
    for line in re.findall(r"^\s*(?:\$ )?(?:echo .*\| )?(seqwise .*)$", blocks, re.MULTILINE):
        for command in re.split(r"&&|;|\|", re.split(r"\s#|[<>]|\s·", line)[0]):
            words = shlex.split(command)
            if words[:1] == ["seqwise"] and len(words) > 1 and words[1].isalpha() and "…" not in command:
                found, given = program, words[1:]
                while hasattr(found, "commands") and given:
                    assert given[0] in found.commands, command
                    found, given = found.commands[given[0]], given[1:]
                known = {option for one in found.params for option in one.opts}
                asked = {word.partition("=")[0] for word in given if word.startswith("--")} - {"--help"}
                assert asked <= known, command


def test_every_file_says_what_it_is() -> None:
    """The map is made of it."""
    silent = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if not read(path).startswith(('"""', 'r"""'))
    ]
    assert silent == []


def test_pictures_of_the_readme_are_small() -> None:
    images = re.findall(r"\]\((docs/images/[^)]+)\)", read(ROOT / "README.md"))
    assert images == ["docs/images/report.png", "docs/images/inspect.png"]
    for image in images:
        content = (ROOT / image).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < MAX_IMAGE_BYTES
        assert min(struct.unpack(">II", content[16:24])) > 400  # width and height: not a thumbnail


def test_one_version_everywhere() -> None:
    version = re.escape(seqwise.__version__)
    assert re.search(rf"^version: {version}$", read(ROOT / "CITATION.cff"), flags=re.MULTILINE)
    newest = re.search(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", read(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == seqwise.__version__


def test_releases_before_the_newest_are_dated() -> None:
    releases = re.findall(r"^## (.+)$", read(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)
    assert len(releases) > 1
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", release) for release in releases[1:])


def test_the_workflow_runs_what_contributors_run_on_every_python_that_is_promised() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "ci.yml")
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    promised = [line.rpartition(" :: ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    tested = re.search(r"python: \[(.*)\]", workflow)
    assert tested is not None
    assert re.findall(r'"([\d.]+)"', tested[1]) == promised
    assert f">={promised[0]}" == project["requires-python"]
    targets = re.findall(r"run: make (\w+)", workflow)
    assert targets == ["check", "test"]
    makefile = read(ROOT / "Makefile")
    assert all(f"\n{target}:" in makefile for target in targets)
