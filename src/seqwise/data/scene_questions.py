"""Questions about drawn scenes (scenes.py), choices with a rationale, entailment. The answers are known exactly.

    what color is the circle?                  red
    what shape is the red thing?               circle
    what size is the red circle?               large
    how many crosses are there?                2
    is there a red circle?                     yes      as often as no; what is not there shares a colour or a shape
    is the red circle left of the blue cross?  no       or above

Shapes: N things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .scenes import COLORS, CURTAINS, PAIRS, RADII, SHAPES, SIZE, UNSEEN, Scene, ScenePictures, SceneRegions, Thing
from .seen import SeenRow

SCENES = {"train": 3000, "valid": 300, "test": 500}
"""Pictures of each part."""
QUESTIONS = 6
"""Of a picture."""
NUM_CHOICES = 4
PLURALS = {shape: f"{shape}es" if shape.endswith("s") else f"{shape}s" for shape in SHAPES}
NUMBERS = ("0", "1", "2", "3", "4")
SIDES = {"left of": lambda one, other: one.x < other.x, "above": lambda one, other: one.y < other.y}
Asked = tuple[str, str, str]
"""A question, its answer, and the reason, which is a sentence about the scene."""
Random = np.random.Generator


def one_of(random: Random, names: Sequence[str]) -> str:
    return names[int(random.integers(len(names)))]


def place_of(thing: Thing) -> str:
    """In words: which third of the picture, down and across."""
    thirds = [min(2, int(3 * value / SIZE)) for value in (thing.y, thing.x)]
    return f"{('top', 'middle', 'bottom')[thirds[0]]} {('left', 'center', 'right')[thirds[1]]}"


def said_of(thing: Thing) -> str:
    return f"there is a {thing.size} {thing.name} in the {place_of(thing)}"


def _color(scene: Scene, random: Random) -> Asked | None:
    thing = scene.only(shape=one_of(random, SHAPES))
    return None if thing is None else (f"what color is the {thing.shape}?", thing.color, said_of(thing))


def _shape(scene: Scene, random: Random) -> Asked | None:
    thing = scene.only(color=one_of(random, list(COLORS)))
    return None if thing is None else (f"what shape is the {thing.color} thing?", thing.shape, said_of(thing))


def _size(scene: Scene, random: Random) -> Asked:
    thing = scene.things[random.integers(len(scene.things))]
    return f"what size is the {thing.name}?", thing.size, said_of(thing)


def _count(scene: Scene, random: Random) -> Asked:
    by_shape = random.random() < 0.5
    name = one_of(random, SHAPES if by_shape else list(COLORS))
    num = sum(name in thing.pair for thing in scene.things)
    asked = PLURALS[name] if by_shape else f"{name} things"
    return f"how many {asked} are there?", str(num), f"of {len(scene.things)} things {num} are so"


def absent(scene: Scene, random: Random) -> tuple[str, str]:
    """A colour and a shape that no thing has together, but some thing has one of them. Of scenes for training, a pair
    that others have: else those that are never there would be known by their names."""
    here = {thing.pair for thing in scene.things}
    possible = [pair for pair in PAIRS if pair not in here and (pair not in UNSEEN or here & UNSEEN)]
    near = [pair for pair in possible if any(set(pair) & set(other) for other in here)]
    return near[random.integers(len(near))]


def _there(scene: Scene, random: Random) -> Asked:
    if random.random() < 0.5:
        thing = scene.things[random.integers(len(scene.things))]
        return f"is there a {thing.name}?", "yes", said_of(thing)
    color, shape = absent(scene, random)
    return f"is there a {color} {shape}?", "no", f"there is no {color} {shape} among {len(scene.things)} things"


def _side(scene: Scene, random: Random) -> Asked | None:
    if len(scene.things) < 2:
        return None
    one, other = (scene.things[place] for place in random.permutation(len(scene.things))[:2])
    side = one_of(random, list(SIDES))
    answer = "yes" if SIDES[side](one, other) else "no"
    return f"is the {one.name} {side} the {other.name}?", answer, said_of(one)


ASKED: tuple[Callable[[Scene, Random], Asked | None], ...] = (_color, _shape, _size, _count, _there, _side)
"""Kinds of question; None where the scene has nothing to ask for."""
ANSWERS = (*COLORS, *SHAPES, *RADII, *NUMBERS, "yes", "no")


def questions_about(scene: Scene, random: Random, num: int = QUESTIONS) -> list[Asked]:
    """Of different kinds, as far as there are; none twice."""
    found: dict[str, Asked] = {}
    for _ in range(8):
        for place in random.permutation(len(ASKED)):
            asked = ASKED[place](scene, random)
            if asked is not None and len(found) < num:
                found.setdefault(asked[0], asked)
    return list(found.values())


def choices_about(scene: Scene, random: Random) -> Iterator[tuple[tuple[str, ...], str]]:
    """A question with four answers; then the question with its answer, and four reasons. Each with the number of the
    right one (Zellers et al. 2019: Q to A, and QA to R). Nothing, where no colour or shape can be asked for."""
    found = [asked for kind in (_color, _shape) for _ in range(4) if (asked := kind(scene, random)) is not None]
    if not found:
        return
    question, answer, reason = found[random.integers(len(found))]
    names = list(COLORS) if answer in COLORS else list(SHAPES)
    yield _mixed(question, answer, [name for name in names if name != answer], random)
    true = {said_of(thing): thing for thing in scene.things}
    wrong = [said for other in _changed(true[reason], random) if (said := said_of(other)) not in true]
    yield _mixed(f"{question} {answer}", reason, wrong, random)


def _changed(thing: Thing, random: Random) -> list[Thing]:
    """The same in another colour, shape or size, or elsewhere."""
    color = one_of(random, [name for name in COLORS if name != thing.color])
    shape = one_of(random, [name for name in SHAPES if name != thing.shape])
    size = one_of(random, [name for name in RADII if name != thing.size])
    third = SIZE / 3
    return [
        replace(thing, color=color),
        replace(thing, shape=shape),
        replace(thing, size=size),
        replace(thing, y=(thing.y + third) % SIZE),
        replace(thing, x=(thing.x + third) % SIZE),
    ]


def _mixed(question: str, right: str, wrong: Sequence[str], random: Random) -> tuple[tuple[str, ...], str]:
    kept = [wrong[place] for place in random.permutation(len(wrong))[: NUM_CHOICES - 1]]
    number = int(random.integers(NUM_CHOICES))
    return (question, *kept[:number], right, *kept[number:]), str(number + 1)


def entailed_by(scene: Scene, random: Random) -> tuple[str, str]:
    """A sentence, and whether the picture entails it, contradicts it, or leaves it open: behind a curtain may be more.

    What is right follows from the sentence and the picture together, and from neither alone.
    """
    is_shown, says_there = random.random() < 0.5, random.random() < 0.5
    thing = scene.things[random.integers(len(scene.things))]
    name = thing.name if is_shown else " ".join(absent(scene, random))
    sentence = f"there is {'a' if says_there else 'no'} {name}"
    if not is_shown and scene.curtain is not None:
        return sentence, "neutral"
    return sentence, "entailment" if is_shown == says_there else "contradiction"


def described(scene: Scene, random: Random) -> str:
    """All that can be seen, in an order by chance."""
    things = [scene.things[place] for place in random.permutation(len(scene.things))]
    return " and ".join(f"a {thing.size} {thing.name}" for thing in things)


Source = ScenePictures | SceneRegions
Parts = dict[str, list[SeenRow]]
Said = Iterator[tuple[tuple[str, ...], str | None]]
"""Texts of a row, and its answer."""


def _ask(scene: Scene, random: Random) -> Said:
    yield from (((question,), answer) for question, answer, _ in questions_about(scene, random))


def _entail(scene: Scene, random: Random) -> Said:
    found = {entailed_by(scene, random) for _ in range(3)}
    yield from (((sentence,), answer) for sentence, answer in sorted(found))


def _describe(scene: Scene, random: Random) -> Said:
    yield (described(scene, random),), None


@dataclass(frozen=True)
class SceneSet:
    source: Callable[[int], Source]
    say: Callable[[Scene, Random], Said]
    has_curtains: bool = False
    """Of every other picture a side is hidden."""


SCENE_SETS = {
    "scenes": SceneSet(ScenePictures, _ask),
    "scenes-regions": SceneSet(SceneRegions, _ask),
    "scenes-choices": SceneSet(SceneRegions, choices_about),
    "scenes-entailment": SceneSet(SceneRegions, _entail, has_curtains=True),
    "scenes-captions": SceneSet(SceneRegions, _describe),
}
"""By name."""


def scene_rows(name: str, *, seed: int = 0, sizes: Mapping[str, int] | None = None) -> tuple[Parts, Source, list[str]]:
    """A set by its name: its rows in parts of so many pictures, where those are from, and what should be known."""
    what, parts = SCENE_SETS[name], Parts()
    source = what.source(seed)
    for place, (part, num) in enumerate((sizes or SCENES).items()):
        parts[part] = []
        for number in range(num):
            random = np.random.default_rng((seed, 1 + place, number))
            side = f"/{one_of(random, CURTAINS)}" if what.has_curtains and number % 2 else ""
            picture = f"{part}/{number}{side}"
            said = what.say(source.scene(picture), random)
            parts[part] += [SeenRow((picture,), texts, answer) for texts, answer in said]
    unseen = ", ".join(f"{color} {shape}" for color, shape in sorted(UNSEEN))
    return parts, source, [f"each picture of the test part shows what no other part does, one of: {unseen}"]
