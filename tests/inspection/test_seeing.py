"""What a model looked at: maps land where they were noted, a hidden square is found, and the page shows both."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from conftest import Terminal
from inspection.seen_models import (
    COLOURS,
    SIZE,
    TOKENIZER,
    Captioner,
    Made,
    Watcher,
    captioned,
    labelled,
    pictures,
    regions,
)
from PIL import Image
from torch import nn

from seqwise.api import TrainedRun, train
from seqwise.data.batch import Batch, Images, Regions
from seqwise.data.schema import (
    ImageSpec,
    LabelSpec,
    Schema,
    TokenSpec,
    picture_schema,
    seen_choice_schema,
    seen_masked_schema,
    with_mask,
)
from seqwise.data.seen_store import Pixels, Views
from seqwise.errors import ConfigError, DataError
from seqwise.evaluation.pictures import evaluate_pictures
from seqwise.inspection.evidence import LEFT_OUT
from seqwise.inspection.glimpses import glimpses_of, painting_of
from seqwise.inspection.inspect import Inspection, InspectOptions, inspect_run
from seqwise.inspection.occlusion import occlusion, place_named
from seqwise.inspection.page import write_inspection
from seqwise.inspection.picture_maps import Heat, Looked, Places, picture_maps, places_of
from seqwise.inspection.picture_view import LOOKS_EVERYWHERE
from seqwise.inspection.trace import record
from seqwise.layers.notes import note
from seqwise.models import MODELS
from seqwise.models.eyes import grid_boxes

FROM_WORDS, TO_WORDS = "attention from words to places", "attention from places to words"
AMONG, FROM_WHOLE = "attention among places", "attention from the whole picture to places"
CAPTION = [int(token) for token in TOKENIZER.encode("a red dog")]


def watcher(**more: Any) -> Inspection:
    return inspect_run(Made(Watcher(**more), labelled()))


def captioner(text: str | None = None, *, frames: int = 1, **more: Any) -> Inspection:
    model = Captioner([*CAPTION, TOKENIZER.boundary], TOKENIZER.vocab_size, **more)
    return inspect_run(Made(model, captioned(), pictures(frames=frames)), text)


def asked(attention: torch.Tensor, question: str = "the red dog", **more: Any) -> Inspection:
    """Of a question of T tokens."""
    return inspect_run(
        Made(Watcher(notes=[("attention", attention)], **more), labelled(question=True), question=question)
    )


# --- occlusion --------------------------------------------------------------------------------------------------------


def test_a_planted_square_is_found_by_brute_force() -> None:
    model, image = Watcher(), torch.from_numpy(pictures().content[:1])
    batch = Batch({"image": Images(image)}, {})
    found = occlusion(model, lambda each: model.predict(each).log_probs, batch, ["b", "d"], [127.5] * 3)
    edges = np.linspace(0, SIZE, 11).round().astype(int)
    whole, number = model.predict(batch).log_probs[0], 0
    for row in range(9):
        for column in range(9):
            hidden = image.clone()
            hidden[..., edges[row] : edges[row + 2], edges[column] : edges[column + 2]] = 128
            lost = whole - model.predict(Batch({"image": Images(hidden)}, {})).log_probs[0]
            assert found.lost[:, number] == pytest.approx(lost.detach().numpy(), abs=1e-6)
            box = [edges[column], edges[row], edges[column + 2], edges[row + 2]]
            assert found.places[number] == pytest.approx([edge / SIZE for edge in box])
            number += 1
    assert number == found.lost.shape[1]
    (left, top, right, bottom), lost = found.most(0)
    assert lost == found.lost[0].max() > 0.2
    assert left < 17 / SIZE < right  # the middle of the square
    assert top < 5 / SIZE < bottom
    assert found.heat[0, 1, 1] == pytest.approx(found.lost[0, [0, 1, 9, 10]].mean())
    assert found.heat[0].argmax() in (26, 27, 16, 17, 36, 37)
    assert np.abs(found.heat[0, 6:]).max() < 1e-6  # nothing of what was said stands there
    assert "upper right" in found.told(0)
    assert "hardly rests" in replace(found, lost=found.lost * 1e-3).told(0)


def test_one_frame_of_a_clip_is_hidden_at_a_time() -> None:
    content = pictures(frames=3).content[:1].copy()
    content[:, [0, 2]] = 128
    model, batch = Watcher(), Batch({"image": Images(torch.from_numpy(content))}, {})
    found = occlusion(model, lambda each: model.predict(each).log_probs, batch, ["b", "d"], [127.5] * 3)
    assert found.by_frame.shape == (2, 3)
    assert found.by_frame[0].argmax() == 1
    assert found.by_frame[0, [0, 2]] == pytest.approx([0, 0], abs=1e-6)


def test_regions_are_hidden_one_by_one() -> None:
    features = np.zeros((2, 3, 2), dtype=np.float32)
    features[:, 1] = 0.9  # what Watcher reads of regions
    boxes = np.array([[0, 0, 0.5, 0.5], [0.5, 0, 1, 0.4], [0.2, 0.6, 0.9, 1]], dtype=np.float32)
    views = Views(features, boxes, labels=np.tile([0, 1, 1], (2, 1)))
    found = inspect_run(Made(Watcher(grid=None), regions(["sky", "dog <b>"]), views))
    assert found.seen.rests_on.most(0)[0] == pytest.approx(boxes[1])
    assert found.seen.rests_on.heat.shape == (2, 3)
    assert found.seen.picture.frames is None
    page = write_inspection([found])
    assert page.count('class="box is-for"') >= 1
    assert page.count('class="region"') >= 3
    assert "sky, dog &lt;b&gt;, dog &lt;b&gt;" in page
    assert "and not the picture itself" in page


def test_small_and_narrow_pictures_can_be_hidden_in_parts() -> None:
    for height, width in ((1, 1), (2, 30), (8, 8)):
        image = torch.full((1, 1, 3, height, width), 200, dtype=torch.uint8)
        model = Watcher(square=(0, height, 0, width))
        batch = Batch({"image": Images(image)}, {})
        found = occlusion(model, lambda each, m=model: m.predict(each).log_probs, batch, ["b"], [0, 0, 0])
        assert np.isfinite(found.heat).all()
        assert found.most(0)[1] > 0


@pytest.mark.parametrize(
    ("box", "named"),
    [((0, 0, 0.2, 0.2), "upper left"), ((0.4, 0.4, 0.6, 0.6), "middle (40"), ((0.8, 0.9, 1, 1), "lower right")],
)
def test_places_have_names(box: tuple[float, float, float, float], named: str) -> None:
    assert place_named(box).startswith(named)


# --- places -----------------------------------------------------------------------------------------------------------


def test_grids_clips_frames_and_boxes_are_told_apart() -> None:
    def found(boxes: torch.Tensor | None, num: int = 0) -> Places:
        num = num or len(boxes)
        return places_of(Regions(torch.zeros(1, num, 2), None if boxes is None else boxes.unsqueeze(0)))

    assert found(grid_boxes(3, 5)).grid == (3, 5)
    assert found(grid_boxes(3, 5)).num_frames == 1
    clip = found(grid_boxes(2, 2).repeat(3, 1))
    assert (clip.grid, clip.frames.tolist()) == ((2, 2), [0] * 4 + [1] * 4 + [2] * 4)
    frames = found(None, 7)
    assert (frames.num_frames, frames.grid) == (7, (1, 1))
    things = found(torch.tensor([[0.1, 0.1, 0.4, 0.5], [0.3, 0.2, 0.9, 0.9], [0, 0, 1, 1]]))
    assert (things.num_frames, things.grid) == (1, None)
    assert found(grid_boxes(1, 1)).grid == (1, 1)
    assert clip.by_frame(np.arange(12.0)).tolist() == [6, 22, 38]


# --- attention --------------------------------------------------------------------------------------------------------


def test_a_captions_words_look_where_they_are_made_to() -> None:
    found = captioner()
    assert found.reading.answer == ["a red dog"]
    assert [piece.strip() for piece in found.reading.pieces] == ["⟨start⟩", "a", "red", "dog", "⟨end⟩"]
    (maps,) = found.seen.maps
    assert [name for name, _ in maps.panels] == ["all heads", "head 1", "head 2"]
    for head, (_, heats) in enumerate(maps.panels[1:]):
        assert [heat.name for heat in heats] == ["a", "red", "dog", "⟨end⟩"]  # of the word that is written
        assert [int(heat.values.argmax()) for heat in heats] == [step + 1 + head for step in range(4)]
        assert all(heat.spread == pytest.approx(1) for heat in heats)
    assert maps.panels[0][1][0].values[[1, 2]].tolist() == [0.5, 0.5]
    assert maps.places.grid == (4, 4)
    assert found.search.answers[0].tokens == [*CAPTION, TOKENIZER.boundary]
    assert all(bits >= 0 for bits in found.reading.bits[1:])
    assert found.seen.rests_on.asked == ["the whole sentence", "a", "red", "dog", "⟨end⟩"]
    assert found.seen.rests_on.lost[0] == pytest.approx(found.seen.rests_on.lost[1:].sum(axis=0))


def test_attention_that_goes_everywhere_is_not_bright() -> None:
    (maps,) = captioner().seen.maps
    assert maps.even == 1 / 16
    assert maps.brightness(np.full(16, 1 / 16)).max() == 0
    assert maps.brightness(np.eye(16)[3]).tolist() == np.eye(16)[3].tolist()
    slightly = np.full(16, 1 / 16) + 0.01 * np.eye(16)[3]
    assert 0 < maps.brightness(slightly)[3] < 0.1
    assert maps.first == 0
    assert maps.stands_out(maps.panels[0][1])
    assert not maps.stands_out([Heat("a", slightly)])
    assert LOOKS_EVERYWHERE not in write_inspection([captioner()])
    assert LOOKS_EVERYWHERE in write_inspection([asked(torch.ones(1, 1, T, N) / N)])


def test_layers_and_heads_are_panels_of_one_title() -> None:
    places, model = places_of(Regions(torch.zeros(1, 4, 2), grid_boxes(2, 2).unsqueeze(0))), nn.Module()
    model.layers = nn.ModuleList(nn.Module() for _ in range(2))
    with record(model) as trace:
        for layer in model.layers:
            note(layer, "attention", torch.full((1, 2, 3, 4), 0.25))
    (maps,) = picture_maps(trace, Looked(["a", "b", "c"], 3, places), None)
    names = [f"layer {layer}, {head}" for layer in (1, 2) for head in ("all heads", "head 1", "head 2")]
    assert [name for name, _ in maps.panels] == names
    assert maps.first == 3  # the last layer, all heads


def test_a_caption_that_is_given_is_read() -> None:
    found = captioner("the cat")
    assert [piece.strip() for piece in found.reading.pieces[1:]] == ["the", "cat", "⟨end⟩"]
    assert found.reading.bits[1] > 5  # it would have said something else
    page = write_inspection([found])
    assert "the cat" in page


def test_attention_over_frames() -> None:
    found = captioner(frames=3, grid=(1, 1))
    (maps,) = found.seen.maps
    assert maps.places.num_frames == 3
    assert [int(heat.values.argmax()) for heat in maps.panels[1][1]] == [1, 2, 0, 1]
    assert "frame 2, 100.0 %" in write_inspection([found])
    assert found.seen.rests_on.by_frame.shape == (5, 3)


T, N = 5, 16  # ⟨start⟩ the red dog ⟨end⟩, and a grid of 4 x 4 cells


def _joint(size: int, *pairs: tuple[int, int]) -> torch.Tensor:
    found = torch.zeros(1, 1, size, size)
    for row, column in pairs:
        found[0, 0, row, column] = 1.0
    return found


@pytest.mark.parametrize("whole", [0, 1])
def test_words_and_places_look_at_each_other_in_one_stream(whole: int) -> None:
    """Words stand first; a token for the whole picture may stand between them and the regions."""
    first = T + whole
    found = asked(_joint(T + whole + N, (2, first + 6), (first + 9, 3)))
    to_places, to_words, among = found.seen.maps
    assert "from words to places" in to_places.title
    assert int(to_places.panels[0][1][2].values.argmax()) == 6
    assert "from places to words" in to_words.title
    assert [float(heat.values.sum()) for heat in to_words.panels[0][1]] == [0, 0, 0, 1, 0]
    assert int(to_words.panels[0][1][3].values.argmax()) == 9
    assert "among places" in among.title


def test_words_of_one_stream_are_shown_among_themselves() -> None:
    found = asked(_joint(T + N, (2, 1), (3, T + 4)))
    (words,) = found.attention
    assert words.weights.shape == (1, T, T)
    assert words.weights[0, 2].tolist() == [0, 1, 0, 0, 0]
    assert words.weights[0, 3].sum() == 0  # it looks at the picture alone
    assert asked(torch.ones(1, 1, N, N)).attention == []


def test_a_question_tells_which_word_and_which_place() -> None:
    found = asked(torch.ones(1, 1, T, N) / N)
    assert "hardly rests on any one word" in write_inspection([found])  # Watcher reads none
    left_out = next(each for each in found.evidence.attributions if each.method == LEFT_OUT)
    left_out.values[0] = [0.0, 1.5, 0.2]
    assert "rests most on “<bdi>red</bdi>”: without it the answer loses 1.50 nats" in write_inspection([found])


def test_co_attention_is_told_by_its_shape() -> None:
    attention = torch.zeros(1, 3, T, N + 1)
    attention[0, 1, 4, 0 + 1] = 1.0
    (maps,) = asked(attention).seen.maps
    assert "from words to places" in maps.title
    assert int(maps.panels[2][1][4].values.argmax()) == 0
    back = torch.zeros(1, 3, N, T)
    back[0, 0, 7, 1] = 1.0
    (maps,) = asked(back).seen.maps
    assert "from places to words" in maps.title
    assert int(maps.panels[1][1][1].values.argmax()) == 7
    assert asked(torch.ones(1, 1, T, T) / T).seen.maps == []  # words among themselves


def test_as_many_words_as_regions_are_told_apart_by_padding() -> None:
    """Nine tokens and nine cells: the model is asked once more, with a word of padding that nobody sees."""

    def noted(batch: Batch) -> torch.Tensor:
        steps = batch.inputs["tokens"].shape[1]
        attention = torch.zeros(1, 1, steps, 9)
        attention[0, 0, 2, 5] = 1.0
        return attention

    found = asked(noted, "the red dog and the blue cat", grid=(3, 3))
    (maps,) = found.seen.maps
    assert "from words to places" in maps.title
    assert [heat.name for heat in maps.panels[0][1]] == [piece.strip() for piece in found.reading.pieces]
    assert int(maps.panels[0][1][2].values.argmax()) == 5


def test_patches_behind_a_token_for_the_whole() -> None:
    attention = torch.zeros(1, 2, 37, 37)
    attention[0, 1, 0, 1 + 13] = 1.0
    found = watcher(notes=[("attention", attention)], grid=None)
    whole, every = found.seen.maps
    assert whole.places.grid == (6, 6)
    assert [heat.name for heat in whole.panels[0][1]] == ["all heads", "head 1", "head 2"]
    assert int(whole.panels[0][1][2].values.argmax()) == 13
    assert every.panels[0][1][2].values[13] == pytest.approx(0 / 36)  # no patch looks there
    assert (
        watcher(notes=[("attention", torch.zeros(1, 1, 8, 8))], grid=None).seen.maps == []
    )  # no grid has 7 or 8 cells


def test_words_and_regions_in_boxes() -> None:
    boxes = np.array([[0, 0, 0.5, 0.5], [0.5, 0, 1, 0.4], [0.2, 0.6, 0.9, 1]])
    places = Places(boxes, np.zeros(3, dtype=int))
    model = nn.Module()
    with record(model) as trace:
        note(model, "attention", torch.tensor([[[[0.1, 0.7, 0.2], [0.0, 0.1, 0.9]]]]))
    (maps,) = picture_maps(trace, Looked(["red", "dog"], 2, places), None)
    assert [heat.values.argmax() for heat in maps.panels[0][1]] == [1, 2]


# --- glimpses and paintings -------------------------------------------------------------------------------------------


def _recorded(*steps: dict[str, torch.Tensor]) -> Any:
    model = nn.Module()
    with record(model) as trace:
        for step in steps:
            for what, value in step.items():
                note(model, what, value)
    return trace


def test_the_eyes_path_lies_where_it_looked() -> None:
    images = Images(torch.zeros(1, 1, 1, 9, 17, dtype=torch.uint8))
    patch = torch.zeros(1, 2, 1, 4, 4)
    patch[:, 0] = 1.0
    trace = _recorded(*({"place": torch.tensor([place]), "glimpse": patch} for place in ([-1.0, -1.0], [0.0, 0.5])))
    found = glimpses_of(trace, images, ["3", "8"], lambda: np.array([[0.4, 0.6], [0.1, 0.9]]))
    assert found.places == pytest.approx(np.array([[0.5 / 17, 0.5 / 9], [0.5, 6.5 / 9]]))
    assert found.boxes[1, 0] == pytest.approx([6.5 / 17, 4.5 / 9, 10.5 / 17, 8.5 / 9])
    assert found.boxes[1, 1] == pytest.approx([4.5 / 17, 2.5 / 9, 12.5 / 17, 10.5 / 9])
    assert found.patches.shape == (2, 2, 4, 4, 1)
    assert (found.patches[:, 0] == 255).all()
    assert found.answers == ["3", "8"]
    assert glimpses_of(_recorded({"place": torch.zeros(1, 1, 3, 4)}), images, [], None) is None


def test_a_canvas_is_shown_step_by_step() -> None:
    steps = [
        {"canvas": torch.full((1, 20), step / 2), "write box": torch.tensor([[0.0, 0.0, 0.2 * step, 0.4]])}
        for step in range(4)
    ]
    found = painting_of(_recorded(*steps), Images(torch.zeros(1, 1, 1, 4, 5, dtype=torch.uint8)))
    assert found.canvases.shape == (4, 4, 5, 1)
    assert found.canvases[:, 0, 0, 0].tolist() == [128, 159, 186, 208]
    assert found.reads is None
    assert found.writes[3] == pytest.approx([0, 0, 0.6, 0.4])


# --- the whole inspection ---------------------------------------------------------------------------------------------


def test_a_labelled_picture_shows_its_answers_and_what_they_rest_on() -> None:
    found = watcher()
    assert found.reading.answer == found.reading.wanted == ["bright"]
    assert found.reading.bits[-1] == pytest.approx(-math.log2(found.reading.expected[-1][0].probability), abs=1e-5)
    assert found.seen.rests_on.asked == ["bright", "dark"]
    assert found.evidence is None
    page = write_inspection([found])
    for view in found.absent:
        assert view in ("inside", "attention", "gradients", "memory", "search", "embeddings", "positions")
    assert "img-src data:" in page
    assert "<script src" not in page
    assert re.search(r"rests most on the upper right", page)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["seen"]["picture"]["frames"] == {"pixels": [1, SIZE, SIZE, 3]}
    assert len(plain["seen"]["rests_on"]["lost"][0]) == 81


def test_a_question_is_answered_by_its_words_and_its_picture() -> None:
    found = asked(torch.ones(1, 1, T, N) / N)
    assert found.evidence is not None  # which word
    assert found.evidence.words == ["the", "red", "dog"]
    assert found.seen.rests_on is not None  # and which place
    given = inspect_run(Made(Watcher(), labelled(question=True)), "a blue cat", target="dark")
    assert [piece.strip() for piece in given.reading.pieces[1:-1]] == ["a", "blue", "cat"]
    assert given.reading.wanted == ["dark"]
    assert given.seen.rests_on.asked[:2] == ["bright", "dark"]


def test_what_does_not_fit_is_refused() -> None:
    made = Made(Watcher(), labelled())
    with pytest.raises(DataError, match="3 rows"):
        inspect_run(made, options=InspectOptions(row=7))
    with pytest.raises(ConfigError, match="drop --text"):
        inspect_run(made, "what is it")
    with pytest.raises(ConfigError, match="not among"):
        inspect_run(made, target="green")


# --- families ---------------------------------------------------------------------------------------------------------

EYES: dict[str, Any] = {"widths": [4, 8], "eye_stride": 2}
FAMILIES: dict[str, tuple[str, Schema, dict[str, Any], set[str]]] = {
    "conv": ("conv", labelled(), EYES, {"Activity of the eyes"}),
    "glimpse": ("glimpse", labelled(), {"num_glimpses": 3, "glimpse_size": 4, "num_scales": 2}, set()),
    "soft": ("captioner", captioned(), {**EYES, "model_dim": 8}, {"Activity of the eyes", FROM_WORDS}),
    "hard": (
        "captioner",
        captioned(),
        {**EYES, "model_dim": 8, "attention": "hard"},
        {"Activity of the eyes", FROM_WORDS, "the chosen place, from words to places"},
    ),
    "transformer": (
        "captioner",
        captioned(),
        {**EYES, "model_dim": 8, "decoder": "transformer", "num_heads": 2, "num_layers": 2},
        {"Activity of the eyes", FROM_WORDS, AMONG},
    ),
    **{
        shape: (
            "crossmodal",
            labelled(question=True),
            {**EYES, "shape": shape, "model_dim": 8, "num_heads": 2, "num_layers": 2},
            {"Activity of the eyes", FROM_WORDS, TO_WORDS, AMONG, *more},
        )
        for shape, more in (("one-stream", ()), ("three-encoders", ()), ("two-streams", (FROM_WHOLE,)))
    },
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families_show_what_they_note(name: str) -> None:
    family, schema, settings, titles = FAMILIES[name]
    row = MODELS[family]
    torch.manual_seed(0)
    found = inspect_run(Made(row.build(row.config(**settings), schema), schema))
    assert {maps.title for maps in found.seen.maps} == titles
    assert found.seen.rests_on is not None
    for maps in found.seen.maps:
        assert all(np.isfinite(heat.values).all() for _, heats in maps.panels for heat in heats)
    assert (found.seen.glimpses is not None) == (family == "glimpse")
    if found.seen.glimpses is not None:
        assert found.seen.glimpses.patches.shape == (3, 2, 4, 4, 3)
        assert found.seen.glimpses.probabilities.shape == (3, 2)
        chosen = [option.probability for option in found.reading.expected[-1]]
        assert sorted(found.seen.glimpses.probabilities[-1]) == pytest.approx(sorted(chosen), abs=1e-5)
    assert "Picture" in write_inspection([found])


def crossmodal(schema: Schema, **settings: Any) -> Any:
    row, small = MODELS["crossmodal"], {**EYES, "model_dim": 8, "num_heads": 2, "num_layers": 2}
    model = row.build(row.config(**small, **settings), schema)
    torch.manual_seed(1)
    for weight in model.parameters():
        nn.init.normal_(weight, std=1.0)
    return model.eval()


def test_choices_are_weighed_with_every_place_hidden() -> None:
    schema = seen_choice_schema(COLOURS, TokenSpec(TOKENIZER, num_texts=2), LabelSpec(["1", "2", "3"]))
    model = crossmodal(schema)
    found = inspect_run(Made(model, schema), "the dog\tred\tblue\ta cat")
    assert set(found.seen.rests_on.asked) == {"red", "blue", "a cat"}
    assert found.reading.answer == found.seen.rests_on.asked[:1]
    chances = {option.piece: option.probability for option in found.reading.expected[-1]}
    told = dict(zip(found.seen.rests_on.asked, np.exp(found.seen.rests_on.log_probs), strict=True))
    assert told == pytest.approx(chances, abs=1e-5)
    assert found.seen.rests_on.lost.shape == (3, 81)
    assert np.abs(found.seen.rests_on.lost).max() > 1e-3
    assert found.seen.picture.frames is not None
    assert {FROM_WORDS, TO_WORDS} <= {maps.title for maps in found.seen.maps}
    assert "What it rests on" in write_inspection([found])


def test_hidden_words_rest_on_the_picture() -> None:
    schema = seen_masked_schema(COLOURS, with_mask(TokenSpec(TOKENIZER)))
    model = crossmodal(schema)
    found = inspect_run(Made(model, schema), "the red dog")
    assert found.seen.rests_on.asked == ["the whole sentence", "the", "red", "dog"]
    costs = [-log_prob / math.log(2) for log_prob in found.seen.rests_on.log_probs[1:]]
    assert costs == pytest.approx(found.reading.bits[1:-1], abs=1e-4)
    assert np.isfinite(found.seen.rests_on.lost).all()
    assert np.abs(found.seen.rests_on.lost[1:]).max() > 1e-3
    assert "What it rests on" in write_inspection([found])


def test_shares_of_attention_are_those_that_were_noted() -> None:
    family, schema, settings, _ = FAMILIES["soft"]
    found = inspect_run(Made(MODELS[family].build(MODELS[family].config(**settings), schema), schema), "the red dog")
    (maps,) = [maps for maps in found.seen.maps if maps.title == FROM_WORDS]
    ((_, heats),) = maps.panels
    assert [heat.name for heat in heats] == ["the", "red", "dog", "⟨end⟩"]
    assert [float(heat.values.sum()) for heat in heats] == pytest.approx([1] * 4, abs=1e-5)


def test_a_painter_shows_its_canvas_and_costs_what_it_is_scored_by() -> None:
    spec = ImageSpec(8, 8, (0.5,), (0.25,))
    schema, row = picture_schema(spec), MODELS["draw"]
    model = row.build(row.config(num_steps=3, latent_dim=2, model_dim=6, attention=True, read_size=2), schema)
    grey = Pixels(np.random.default_rng(0).integers(0, 256, (3, 1, 1, 8, 8), dtype=np.uint8))
    made = Made(model, schema, grey)
    found = inspect_run(made, options=InspectOptions(row=1))
    scored = evaluate_pictures(model, made.unseen_store())
    bound = scored.reconstruction[1] + scored.kl[1]
    assert found.reading.bits[0] * math.log(2) == pytest.approx(bound, rel=1e-5)
    assert found.seen.painting.canvases.shape == (3, 8, 8, 1)
    assert found.seen.painting.reads.shape == found.seen.painting.writes.shape == (3, 4)
    assert found.seen.painting.reads[0] == pytest.approx([0, 0, 1, 1], abs=0.1)  # it begins with all of the picture
    assert "Painted step by step" in write_inspection([found])


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    """Dark and bright squares."""
    folder = tmp_path_factory.mktemp("squares")
    random = np.random.default_rng(0)
    for label, low in (("bright", 150), ("dark", 0)):
        (folder / "data" / label).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(low, low + 100, (16, 12, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "data" / label / f"{number}.png")
    overrides = ["model.widths=[4, 8]", "model.blocks_per_stage=1"]
    return train(folder / "data", "conv", out=folder / "run", task="images", steps=2, overrides=overrides)


def test_a_file_is_looked_at(run: TrainedRun, terminal: Terminal, tmp_path: Path) -> None:
    Image.fromarray(np.full((40, 20), 200, dtype=np.uint8)).save(tmp_path / "grey.jpg")  # of another size and colour
    out, _ = terminal.done("inspect", run.path, "--image", "grey.jpg", "--json")
    found = json.loads(out)["results"][0]
    assert found["seen"]["picture"]["name"] == "grey.jpg"
    assert found["reading"]["wanted"] is None
    out, _ = terminal.done("inspect", run.path, "--row", "1", "--out", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "What it rests on" in page
    assert "Wanted: " in page


def test_what_is_no_picture_is_refused(run: TrainedRun, terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("hello")
    (tmp_path / "empty").mkdir()
    assert "text.jpg" in terminal.refuses("inspect", run.path, "--image", "text.jpg")
    assert "no pictures" in terminal.refuses("inspect", run.path, "--image", "empty")
    assert "no such file" in terminal.refuses("inspect", run.path, "--image", "missing.png")
    assert "drop --text" in terminal.refuses("inspect", run.path, "--text", "what is it")
    assert not list(tmp_path.glob("*.html"))


# --- in a browser -----------------------------------------------------------------------------------------------------


def test_heads_are_chosen_and_every_picture_is_told(show: Any) -> None:
    page = show(captioner())
    page.click("nav a[href='#picture']")
    tiles = "#picture [data-panel]:not([hidden]) svg.seen"
    assert page.locator(tiles).count() == 4
    first = page.locator(tiles).nth(1).get_attribute("aria-label")
    page.select_option("#picture select[data-chooses]", label="head 2")
    second = page.locator(tiles).nth(1).get_attribute("aria-label")
    assert first != second
    assert second.startswith("red: most on")
    for label in page.eval_on_selector_all(
        "#picture svg.seen", "all => all.map((one) => one.getAttribute('aria-label'))"
    ):
        assert label
    page.click("#picture details:visible summary >> nth=0")
    assert page.locator("#picture details[open] table").is_visible()


def test_pictures_fit_on_a_phone_and_in_the_dark(show: Any) -> None:
    page = show(captioner(), color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 740})
    page.click("nav a[href='#picture']")
    assert page.evaluate("document.documentElement.scrollWidth <= 360")
    assert page.locator("#picture svg.seen.is-large").first.bounding_box()["width"] <= 340


def test_small_pictures_are_saved_with_what_they_show(show: Any) -> None:
    page = show(captioner(), accept_downloads=True)
    page.click("nav a[href='#picture']")
    with page.expect_download() as download:
        page.locator("#picture button.save").nth(2).click()
    saved = ElementTree.fromstring(Path(download.value.path()).read_text())
    images = [one for one in saved.iter() if one.tag.endswith("image")]
    assert len(images) == 8  # four words, each a picture and its heat
    assert not [one for one in saved.iter() if one.tag.endswith("use")]
