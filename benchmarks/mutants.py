"""Would the tests notice? Small faults are put into the code one at a time, and the tests that should fail are run.

    python -m benchmarks.mutants                           # 20 faults in each file, drawn by --seed
    python -m benchmarks.mutants segments beam --num 40    # more of them, in some files

A fault is one changed operator, constant or condition; messages, annotations and docstrings are left alone. One that no
test notices is listed with its line: it wants a test, or changes nothing that matters.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = {
    "loop": ("training/loop.py", ["training/test_loop.py", "training/test_timing.py"]),
    "session": (
        "training/session.py",
        ["training/test_session.py", "training/test_em.py", "tasks/test_tasks.py"],
    ),
    "preparing": (
        "training/preparing.py",
        ["training/test_session.py", "training/test_transfer.py", "tasks/test_tasks.py"],
    ),
    "likelihood": ("evaluation/likelihood.py", ["evaluation/test_likelihood.py", "cli/test_evaluate_text.py"]),
    "segments": (
        "evaluation/segments.py",
        ["evaluation/test_segments.py", "evaluation/test_translations.py", "evaluation/test_likelihood.py"],
    ),
    "beam": (
        "decoding/beam.py",
        ["decoding/test_search.py", "decoding/test_candidates.py", "decoding/test_translate.py"],
    ),
    "run": ("run.py", ["test_run.py", "test_old_formats.py", "tasks/test_pairs_task.py"]),
}
COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
COMPUTED |= {ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult}
PROCESSES = multiprocessing.get_context("forkserver")  # which imports what takes long once, and forks for each fault
PRELOADED = ["torch", "numba", "sklearn.decomposition", "sacrebleu", "safetensors.torch", "tokenizers"]
JOINED = {ast.And: ast.Or, ast.Or: ast.And}


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    line: int
    change: str
    source: str
    """Of the whole file, with the fault in it."""


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that may be changed: none of a message, an annotation or a decorator."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(
                node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                yield node
                yield from places(node)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The node with one fault in it, and what that is."""
    made = copy.deepcopy(node)
    if isinstance(made, ast.Compare) and type(made.ops[0]) in COMPARED:
        made.ops[0] = COMPARED[type(made.ops[0])]()
        yield "comparison", made
    elif isinstance(made, ast.BinOp | ast.AugAssign) and type(made.op) in COMPUTED:
        made.op = COMPUTED[type(made.op)]()
        yield "operator", made
    elif isinstance(made, ast.BoolOp):
        made.op = JOINED[type(made.op)]()
        yield "and/or", made
    elif isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.Not):
        yield "not", made.operand
    elif isinstance(made, ast.Constant) and type(made.value) in (int, float, bool):
        made.value = not made.value if isinstance(made.value, bool) else made.value + 1
        yield "constant", made
    elif isinstance(made, ast.IfExp):
        made.body, made.orelse = made.orelse, made.body
        yield "branches", made


class Replace(ast.NodeTransformer):
    def __init__(self, number: int, new: ast.AST):
        self.number, self.new = number, new

    def visit(self, node: ast.AST) -> ast.AST:
        if getattr(node, "number", None) == self.number:
            return self.new
        return self.generic_visit(node)


def mutants_of(name: str) -> list[Mutant]:
    file, _ = TARGETS[name]
    tree = ast.parse((ROOT / "src/seqwise" / file).read_text())
    for number, node in enumerate(ast.walk(tree)):
        node.number = number  # type: ignore[attr-defined]
    found = []
    for node in places(tree):
        for change, new in changes(node):
            number = node.number  # type: ignore[attr-defined]
            whole = Replace(number, new).visit(copy.deepcopy(tree))
            line = getattr(node, "lineno", 0)
            told = f"{change}: {ast.unparse(node)} -> {ast.unparse(new)}"
            found.append(Mutant(name, file, line, told, ast.unparse(ast.fix_missing_locations(whole))))
    return found


def run_tests(sources: str, tests: list[str]) -> None:
    """In a process of its own that knows nothing of seqwise yet: the exit code is that of pytest."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.chdir(ROOT)
    sys.path.insert(0, sources)
    os.environ["PYTHONPATH"] = sources
    sys.exit(int(pytest.main(["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *tests])))


def outcome(mutant: Mutant | None, name: str, seconds: float) -> str:
    """What tests say of a copy of the sources with this fault in it: "passed", "failed", or "hung" past the limit."""
    file, tests = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        if mutant is not None:
            (sources / "seqwise" / file).write_text(mutant.source)
        command = (str(sources), [str(ROOT / "tests" / test) for test in tests])
        tested = PROCESSES.Process(target=run_tests, args=command)
        tested.start()
        tested.join(seconds)
        end = "hung" if tested.is_alive() else "failed" if tested.exitcode else "passed"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tested.pid, signal.SIGKILL)  # with the processes that tests started
        tested.join()
        return end


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", default=list(TARGETS), help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--num", type=int, default=20, help="faults in each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    PROCESSES.set_forkserver_preload(PRELOADED)
    noticed = tried = 0
    for name in options.files:
        began = time.perf_counter()
        if outcome(None, name, 3600) != "passed":
            raise SystemExit(f"the tests of {name} fail without any fault; mend that first.")
        seconds = 60 + 4 * options.jobs * (time.perf_counter() - began)
        everything = mutants_of(name)
        chosen = random.Random(options.seed).sample(everything, min(options.num, len(everything)))
        ends = []
        with ThreadPoolExecutor(options.jobs) as workers:
            for mutant, end in zip(chosen, workers.map(outcome, chosen, repeat(name), repeat(seconds)), strict=True):
                ends.append(end)
                if end != "failed":
                    told = "hung" if end == "hung" else "not noticed"
                    print(f"  {told}: {mutant.file}:{mutant.line} {mutant.change}", flush=True)
        found = len(ends) - ends.count("passed")
        noticed, tried = noticed + found, tried + len(ends)
        hung = f", {ends.count('hung')} by the time limit of {seconds:.0f} s" if "hung" in ends else ""
        print(f"{name}: {found} of {len(ends)} noticed (of {len(everything)} possible){hung}", flush=True)
    print(f"all: {noticed} of {tried} noticed, {100 * noticed / tried:.1f} %")


if __name__ == "__main__":
    main()
