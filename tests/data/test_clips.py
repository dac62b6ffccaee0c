"""Clips that are made up: captions say what is drawn, test combinations are new, each of their words is not."""

from __future__ import annotations

import numpy as np
import pytest

from seqwise.data.clips import COLOURS, DIGIT, FRAMES, SIDE, SIZES, digit_rows, draw_clip, shape_rows
from seqwise.data.seen import SeenRow

SETS = {"shapes": shape_rows(), "digits": digit_rows()}


@pytest.mark.parametrize("kind", SETS)
def test_test_combinations_are_new_and_their_words_are_not(kind: str) -> None:
    parts = SETS[kind]
    captions = {part: {row.texts[0] for row in rows} for part, rows in parts.items()}
    assert captions["test"].isdisjoint(captions["train"] | captions["valid"])
    words = {part: set(" ".join(found).split()) for part, found in captions.items()}
    assert words["test"] <= words["train"]
    assert words["valid"] <= words["train"]
    clips = [row.frames for rows in parts.values() for row in rows]
    assert len(set(clips)) == len(clips)
    assert all(len(frames) == FRAMES for frames in clips)


@pytest.mark.parametrize("kind", SETS)
def test_clips_are_always_the_same(kind: str) -> None:
    again = (shape_rows if kind == "shapes" else digit_rows)()
    assert again == SETS[kind]
    name = again["train"][0].frames[3]
    assert np.array_equal(draw_clip(name), draw_clip(name))


def centres(row: SeenRow) -> np.ndarray:
    """(frames, 2) of what is brighter than the ground."""
    frames = [draw_clip(name).max(axis=2) for name in row.frames]
    return np.array([np.argwhere(frame > 60).mean(axis=0) for frame in frames])


@pytest.mark.parametrize("place", range(0, 500, 61))
def test_a_shape_is_and_does_what_its_caption_says(place: int) -> None:
    row = SETS["shapes"]["test"][place]
    _, size, colour, _, _, direction = row.texts[0].split()
    moved = centres(row)[-1] - centres(row)[0]
    expected = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}[direction]
    np.testing.assert_allclose(moved / (2 * (FRAMES - 1)), expected, atol=1e-6)
    shown = draw_clip(row.frames[0])
    is_shape = (shown == COLOURS[colour]).all(axis=2)
    rows = np.flatnonzero(is_shape.any(axis=1))
    assert rows[-1] - rows[0] == 2 * SIZES[size]
    assert rows[0] > 0
    assert rows[-1] < SIDE - 1


def test_digits_begin_beside_each_other_and_stay_in_the_picture() -> None:
    for row in SETS["digits"]["train"][:200]:
        frames = [draw_clip(name) for name in row.frames]
        assert {frame.shape for frame in frames} == {(SIDE, SIDE, 1)}
        num = row.texts[0].count("digit")
        if num == 1:  # nothing covers it: the same pixels in every frame, elsewhere
            assert len({int(frame.sum()) for frame in frames}) == 1
        used = np.argwhere(frames[0][..., 0] > 0)
        assert num == 1 or (used.max(axis=0) - used.min(axis=0)).max() >= DIGIT


def test_of_two_digits_the_smaller_is_named_first() -> None:
    both = [row.texts[0].split() for row in SETS["digits"]["train"] if " and " in row.texts[0]]
    assert both
    assert all(int(words[2]) < int(words[8]) for words in both)
