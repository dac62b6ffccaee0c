"""Drawn scenes: what is said of them is what is drawn."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from seqwise.data.scene_questions import (
    SCENE_SETS,
    choices_about,
    described,
    entailed_by,
    questions_about,
    said_of,
    scene_rows,
)
from seqwise.data.scenes import COLORS, CURTAIN, SIZE, UNSEEN, ScenePictures, SceneRegions, Thing

NAMES = [f"{part}/{number}" for part in ("train", "test") for number in range(40)]


def things_in(name: str) -> list[tuple[str, str, str, float, float]]:
    """Read off the regions: colour, shape, size, middle across and down."""
    found = SceneRegions().regions(name)
    things = []
    for (left, top, right, bottom), label in zip(found.boxes.tolist(), found.labels, strict=True):
        if label != "curtain":
            size = "large" if bottom - top > 15 / SIZE else "small"
            things.append((*label.split(), size, (left + right) / 2, (top + bottom) / 2))
    return things


def answer_to(question: str, things: list[tuple[str, str, str, float, float]]) -> str:
    """By another way than that which asked."""
    words = re.findall(r"\w+", question)
    if question.startswith("what color"):
        return next(color for color, shape, *_ in things if shape == words[-1])
    if question.startswith("what shape"):
        return next(shape for color, shape, *_ in things if color == words[-2])
    if question.startswith("what size"):
        return next(size for color, shape, size, *_ in things if [color, shape] == words[-2:])
    if question.startswith("how many"):
        asked = words[2]
        return str(sum(asked == color or asked in (shape + "s", shape + "es") for color, shape, *_ in things))
    if question.startswith("is there"):
        return "yes" if any([color, shape] == words[-2:] for color, shape, *_ in things) else "no"
    one, other = (next(t for t in things if [t[0], t[1]] == pair) for pair in (words[2:4], words[-2:]))
    axis = 3 if "left" in words else 4
    return "yes" if one[axis] < other[axis] else "no"


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_what_the_boxes_say(name):
    asked = questions_about(ScenePictures().scene(name), np.random.default_rng(NAMES.index(name)))
    assert asked
    assert [answer for _, answer, _ in asked] == [answer_to(question, things_in(name)) for question, _, _ in asked]


@pytest.mark.parametrize("name", NAMES)
def test_boxes_hold_what_is_drawn_and_nothing_else_is_there(name):
    pixels, found = ScenePictures().read(name), SceneRegions().regions(name)
    is_ground = (pixels == pixels[0, 0]).all(axis=-1) | (pixels == pixels[-1, -1]).all(axis=-1)
    covered = np.zeros((SIZE, SIZE), dtype=bool)
    for box, label in zip((found.boxes * SIZE).round().astype(int).tolist(), found.labels, strict=True):
        left, top, right, bottom = box
        inside = (pixels[top:bottom, left:right] == COLORS[label.split()[0]]).all(axis=-1)
        assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()  # noqa: PT018
        covered[top:bottom, left:right] |= inside
    assert (covered | is_ground).all()


def test_a_curtain_hides_its_side_and_is_a_region():
    pixels, found = ScenePictures().read("train/3/left"), SceneRegions().regions("train/3/left")
    assert (pixels[:, : SIZE // 3] == CURTAIN).all()
    assert found.labels[-1] == "curtain"
    assert found.boxes[-1].tolist() == [0, 0, SIZE // 3 / SIZE, 1]


def test_a_scene_follows_from_its_seed_and_name():
    assert np.array_equal(ScenePictures(1).read("train/5"), ScenePictures(1).read("train/5"))
    assert not np.array_equal(ScenePictures(1).read("train/5"), ScenePictures(2).read("train/5"))
    assert ScenePictures(1).fingerprint != ScenePictures(2).fingerprint


def test_the_test_part_has_what_no_other_part_has():
    for name in NAMES:
        here = {(color, shape) for color, shape, *_ in things_in(name)}
        assert bool(here & UNSEEN) == name.startswith("test")
    parts, _, _ = scene_rows("scenes", sizes={"train": 150})
    names = [" ".join(pair) for pair in UNSEEN]
    assert not [row.texts for row in parts["train"] if any(name in row.texts[0] for name in names)]


def test_of_choices_the_right_one_is_true_and_the_others_are_not():
    asked = 0
    for name in NAMES:
        scene, things = ScenePictures().scene(name), things_in(name)
        rows = list(choices_about(scene, np.random.default_rng(NAMES.index(name))))
        if not rows:
            continue
        asked += 1
        ((question, *answers), right), ((told, *reasons), why) = rows
        assert answers[int(right) - 1] == answer_to(question, things)
        assert told == f"{question} {answers[int(right) - 1]}"
        assert [reason in map(said_of, scene.things) for reason in reasons] == [n == int(why) - 1 for n in range(4)]
        assert len(set(answers)) == len(set(reasons)) == 4
    assert asked > 50


@pytest.mark.parametrize("curtain", ["", "/left"])
def test_a_sentence_follows_from_what_is_shown(curtain):
    seen = Counter()
    for number in range(60):
        name = f"train/{number}{curtain}"
        sentence, label = entailed_by(ScenePictures().scene(name), np.random.default_rng(number))
        shown = any(f"{color} {shape}" in sentence for color, shape, *_ in things_in(name))
        claims = " a " in sentence
        wanted = "neutral" if curtain and not shown else "entailment" if shown == claims else "contradiction"
        assert label == wanted
        seen[label] += 1
    assert len(seen) == (3 if curtain else 2)


def test_all_things_are_described():
    scene = ScenePictures().scene("test/1")
    said = described(scene, np.random.default_rng(0)).split(" and ")
    assert sorted(said) == sorted(f"a {thing.size} {thing.name}" for thing in scene.things)


@pytest.mark.parametrize("name", SCENE_SETS)
def test_sets_have_parts_that_are_drawn_again_alike(name):
    sizes = {"train": 8, "valid": 3, "test": 3}
    (parts, source, _), (again, _, _) = (scene_rows(name, sizes=sizes) for _ in range(2))
    assert parts == again
    assert all(0 < len({row.frames for row in rows}) <= sizes[part] for part, rows in parts.items())
    assert source.fingerprint
    assert all(isinstance(thing, Thing) for thing in source.scene(parts["test"][0].frames[0]).things)
