"""Rooms: passages that say where things are, with questions whose answers are known. Made here, the same everywhere.

Room 12. The key is in the blue box. The lamp is behind the old door.
Where is the lamp?      behind the old door
Where is the cup?       the passage does not say: a third of the questions
"""

from __future__ import annotations

import numpy as np

from .questions import Question, Reference

NUM_ROOMS = 1000
QUESTIONS = 3  # of each room, the last one on a thing that is not there
THINGS = ("key", "lamp", "cup")
PLACES = ("in", "on", "under", "behind", "beside")
LOOKS = ("blue", "red", "old", "small", "broken", "wooden", "green", "tall")
FURNITURE = ("box", "door", "chair", "table", "bed", "shelf", "window", "chest")


def room_questions() -> list[Question]:
    random = np.random.default_rng(0)
    return [question for room in range(1, NUM_ROOMS + 1) for question in _room(room, random)]


def _room(number: int, random: np.random.Generator) -> list[Question]:
    things = [THINGS[place] for place in random.permutation(len(THINGS))[:QUESTIONS]]
    passage, references = f"Room {number}.", list[tuple[Reference, ...]]()
    for thing in things[:-1]:
        where = " ".join([_one_of(PLACES, random), "the", _one_of(LOOKS, random), _one_of(FURNITURE, random)])
        passage += f" The {thing} is "
        references.append((Reference(where, len(passage)),))
        passage += f"{where}."
    return [
        Question(f"{number}-{thing}", f"Where is the {thing}?", passage, found, f"room {number}")
        for thing, found in zip(things, [*references, ()], strict=True)
    ]


def _one_of(words: tuple[str, ...], random: np.random.Generator) -> str:
    return words[random.integers(len(words))]
