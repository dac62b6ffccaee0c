"""Folders are the stages of the data flow: each imports only from those before it, and --help none that compute."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import seqwise
from seqwise.cli import app

ROOT = Path(seqwise.__file__).parent
STAGES = [
    {"errors", "config", "settings", "checks", "machine", "signatures", "wording"},
    {"kernels"},
    {"pages", "text"},
    {"data"},
    {"layers"},
    {"models"},
    {"tensors"},
    {"run"},
    {"decoding"},
    {"evaluation"},
    {"goals"},
    {"tasks"},
    {"training"},
    {"interop"},
    {"comparison", "inspection"},
    {"opened_run"},
    {"short_answers"},
    {"trained_run"},
    {"api"},
    {"serving", "client"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, stage in enumerate(STAGES) for name in stage}
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
MAX_LINES, MAX_LINES_OF_A_FUNCTION = 500, 60
STILL_LONG: set[str] = set()
HEAVY = ("torch", "numba", "tokenizers", "numpy", "safetensors")
COMPUTING = tuple(name for name, rank in RANK.items() if RANK["data"] < rank < RANK["cli"] or name == "kernels")


def stage_of(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def imported_stages(file: str) -> Iterator[tuple[int, str]]:
    """Line and stage of everything of ours that a file imports, inside functions too."""
    package = ["seqwise", *file.split("/")[:-1]]
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            modules = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            ours, _, rest = module.partition(".")
            stage = rest.split(".")[0]
            if ours == "seqwise" and stage != "__version__":
                yield node.lineno, stage


def is_allowed(importer: str, imported: str) -> bool:
    """Files of one stage may use each other; two stages of one rank may not."""
    return importer == imported or RANK[imported] < RANK[importer] or RANK[imported] == RANK[importer] == 0


def test_every_file_belongs_to_a_stage() -> None:
    assert {stage_of(file) for file in FILES} <= set(RANK)


@pytest.mark.parametrize("file", FILES)
def test_a_stage_imports_only_from_the_stages_before_it(file: str) -> None:
    wrong = [
        f"{file}:{line} imports {imported}"
        for line, imported in imported_stages(file)
        if imported not in RANK or not is_allowed(stage_of(file), imported)
    ]
    assert wrong == []


def test_the_imports_are_really_seen() -> None:
    assert {stage for _, stage in imported_stages("models/gpt.py")} >= {"data", "errors", "layers", "models"}
    assert {stage for _, stage in imported_stages("cli/__init__.py")} >= {"api", "config", "data", "errors", "decoding"}
    assert not is_allowed("layers", "models")
    assert not is_allowed("decoding", "evaluation")
    assert is_allowed("cli", "text")


def libraries(file: str) -> set[str]:
    """What a file imports from outside of the standard library and of ours."""
    found = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"seqwise"}


def test_what_numba_compiles_stands_in_kernels_and_needs_nothing_else() -> None:
    uses = {file: libraries(file) for file in FILES}
    compiled = {file for file, names in uses.items() if "numba" in names}
    assert compiled == {file for file in FILES if stage_of(file) == "kernels"} - {"kernels/__init__.py"}
    assert set().union(*(uses[file] for file in compiled)) == {
        "numba",
        "llvmlite",
        "numpy",
    }  # numba writes LLVM with it
    assert {stage for file in compiled for _, stage in imported_stages(file)} <= {"kernels"}


def long_parts(file: str) -> Iterator[str]:
    """The file, and the functions in it, that have too many lines to be read as one."""
    tree, num_lines = parsed(file), len((ROOT / file).read_text(encoding="utf-8").splitlines())
    if num_lines > MAX_LINES:
        yield file
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            num_lines = (node.end_lineno or 0) - node.lineno + 1
            yield from [f"{file} {node.name}"] if num_lines > MAX_LINES_OF_A_FUNCTION else []


def test_no_file_and_no_function_is_long() -> None:
    assert {part for file in FILES for part in long_parts(file)} == STILL_LONG


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("module", ["seqwise", "seqwise.cli", "seqwise.data.public", "seqwise.pages.elements"])
def test_nothing_that_computes_is_imported_before_it_is_needed(module: str) -> None:
    done = python(f"import sys, {module}; sys.stdout.write(' '.join(m for m in {HEAVY} if m in sys.modules))")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The program itself, and every command and group of commands that it has."""
    yield before
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*before, name))


ALL_COMMANDS = list(commands(typer.main.get_command(app)))


def test_every_command_is_seen() -> None:
    assert {(), ("train",), ("import",), ("data",), ("data", "check")} <= set(ALL_COMMANDS)


@pytest.mark.parametrize(
    "arguments", [*((*command, "--help") for command in ALL_COMMANDS), ("data", "list")], ids=" ".join
)
def test_help_is_shown_without_importing_what_computes(arguments: tuple[str, ...]) -> None:
    code = f"""
import sys, time
began = time.perf_counter()
from seqwise.cli import main
sys.argv = ["seqwise", *{arguments}]
try:
    main()
finally:
    found = [m for m in sys.modules if m in {HEAVY} or m.startswith("seqwise.") and m.split(".")[1] in {COMPUTING}]
    print(f"{{time.perf_counter() - began:.3f}} s")
    sys.stderr.write(" ".join(found))
"""
    done = python(code)
    *_, seconds = done.stdout.splitlines() or [""]
    sys.stdout.write(f"seqwise {' '.join(arguments)}: {seconds}\n")
    assert (done.stderr, done.returncode) == ("", 0)
    assert "seqwise" in done.stdout
