"""What keeps the frame open: nothing asks for a task by its name, and types say what is passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import seqwise
from seqwise.comparison.measure import SUBJECTS
from seqwise.comparison.words import WORDS
from seqwise.data.schema import BESIDE, UNRANKED
from seqwise.goals import GOALS
from seqwise.inspection.readers import READERS
from seqwise.models import MODELS
from seqwise.models.build import HEADS
from seqwise.tasks import TASKS
from seqwise.training.learners import LEARNERS
from seqwise.training.sizing import SIZES

ROOT = Path(seqwise.__file__).parent
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
FLAGS = {"is_text", "is_pairs", "is_numbers", "is_label", "is_labels"}
LOOSE = {"model", "models", "store", "stores", "task", "tasks"}
MAX_LOOSE = 10


def tree_of(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def names_in(node: ast.AST) -> set[str]:
    """Words that a piece of code is made of."""
    found = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return found | {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}


def asks_for_a_task(tree: ast.AST) -> Iterator[int]:
    """Lines that compare something called a task, or its name, with one of the names."""
    for node in ast.walk(tree):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        words = {child.value for side in sides for child in ast.walk(side) if isinstance(child, ast.Constant)}
        if words & set(TASKS) and any("task" in name for side in sides for name in names_in(side)):
            yield node.lineno


@pytest.mark.parametrize("file", [file for file in FILES if not file.startswith("tasks/")])
def test_nothing_compares_with_the_name_of_a_task(file: str) -> None:
    assert list(asks_for_a_task(tree_of(file))) == []


def test_a_comparison_with_the_name_of_a_task_is_seen() -> None:
    for code in (
        'run.task == "text"',
        'task in ("text", "pairs")',
        '"label" != settings.task.name',
        'x.task_name == "pairs"',
    ):
        assert list(asks_for_a_task(ast.parse(code))) == [1]
    assert not list(asks_for_a_task(ast.parse('toy.kind == "numbers"')))


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.split("/")[0] in ("inspection", "comparison", "training")]
)
def test_no_flag_stands_for_a_task(file: str) -> None:
    """What is asked for is the kind of a target; whether pieces are text is a fact of a reading, not of a task."""
    named = names_in(tree_of(file)) & FLAGS
    assert named <= (
        {"is_text"}
        if file
        in ("inspection/reading.py", "inspection/read_numeric.py", "inspection/views.py", "inspection/page_data.py")
        else set()
    )


def loosely_typed() -> Iterator[str]:
    """Parameters and fields that are models, stores or tasks, and typed as anything."""
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            arguments = []
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = node.args
                arguments = [(a.arg, a.annotation) for a in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                arguments = [(node.target.id, node.annotation)]
            for name, annotation in arguments:
                if name in LOOSE and isinstance(annotation, ast.Name) and annotation.id == "Any":
                    yield f"{file}:{node.lineno} {name}"


def test_models_stores_and_tasks_are_typed() -> None:
    found = list(loosely_typed())
    assert len(found) < MAX_LOOSE, "\n".join(found)


KINDS = {kind for row in MODELS.values() for kind in row.learns}


@pytest.mark.parametrize("table", [GOALS, SIZES, READERS], ids=["goals", "sizes", "readers"])
def test_every_table_has_a_row_for_every_kind_of_target(table: dict[str, object]) -> None:
    assert set(table) == KINDS - set(BESIDE)


@pytest.mark.parametrize("table", [SUBJECTS, WORDS], ids=["subjects", "words"])
def test_comparisons_have_a_row_for_every_kind_of_target_that_is_ranked(table: dict[str, object]) -> None:
    assert set(table) == KINDS - {*UNRANKED, *BESIDE}


def test_heads_are_there_for_all_that_bodies_answer() -> None:
    by_bodies = {*MODELS["gru"].learns, *MODELS["bert"].learns, *MODELS["crossmodal"].learns}
    assert set(HEADS) == by_bodies


def test_every_way_to_learn_is_a_row() -> None:
    assert {learner for row in MODELS.values() for learner in row.learns.values()} == set(LEARNERS)


def test_every_task_asks_for_kinds_that_are_known() -> None:
    for task in TASKS.values():
        assert set(task.kinds) <= set(GOALS)
