"""All there is to see of how a model looks at a picture, as the tab Picture shows it.

Shapes: B batch, T tokens, N regions, K answers or words asked about, G glimpses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.annotated import LabelledRow
from ..data.batch import Batch, Images, Regions, Tokens
from ..data.schema import CAPTION, CHOICE, LABEL, MASKED_TOKEN, ImageSpec, LabelSpec, RegionSpec, Schema, TokenSpec
from ..evaluation.filling import hidden_one_by_one
from ..layers.stream import Stream
from ..models.contract import Answerer, Model, device_of, evaluating
from ..models.headed import HeadedModel
from .glimpses import Glimpses, Painting, glimpses_of, painting_of
from .occlusion import Occlusion, Scores, occlusion
from .picture_maps import (
    Looked,
    Maps,
    Places,
    energy_maps,
    fewer_panels,
    picture_maps,
    places_of,
    pooling_maps,
)
from .read_choice import choices_of
from .reading import Picture, Reading
from .trace import Trace, record

IMAGE = "image"
MAX_ASKED = 4  # answers that are asked about
WHOLE = "the whole sentence"


@dataclass(frozen=True)
class SeenPicture:
    picture: Picture
    places: Places | None
    """Of what the eyes found in it; None where they find patches or nothing."""
    maps: list[Maps]
    glimpses: Glimpses | None
    painting: Painting | None
    rests_on: Occlusion | None
    """Which part of it the answers, or the words of the caption, rest on."""
    notes: list[str] = field(default_factory=list)


def see(model: Model, schema: Schema, reading: Reading) -> SeenPicture:
    """Of a row that was read (seeing.py)."""
    assert reading.picture is not None
    seen, notes = reading.batch.inputs[IMAGE], list[str]()
    images = seen if isinstance(seen, Images) else None
    places = _named(_places(model, seen), schema, seen)
    trace, looked = _told_apart(model, reading, _words(schema, reading), places)
    maps = picture_maps(trace, looked, images)
    maps += [one for one in (pooling_maps(trace, places), energy_maps(trace)) if one is not None]
    maps, is_less = fewer_panels(maps)
    if is_less:
        notes.append("there is more attention than a page holds: of each layer the mean over its heads is drawn")
    names, scores = ASKED[schema.kind](model, schema, reading) if schema.kind in ASKED else ([], None)
    rests_on = None if scores is None else occlusion(model, scores, reading.batch, names, _paint(schema))
    glimpses, painting = None, None
    if images is not None:
        painting = painting_of(reading.trace, images)
        after_each = partial(_after_each, model, schema, reading, names) if schema.kind == LABEL else None
        glimpses = glimpses_of(reading.trace, images, names, after_each)
    return SeenPicture(reading.picture, places, maps, glimpses, painting, rests_on, notes)


def _places(model: object, seen: Images | Regions) -> Places | None:
    """What the eyes of a model find: they are a part of it by this name (models/eyes.py)."""
    if isinstance(seen, Regions):
        return places_of(seen)
    eyes = _eyes(model)
    if eyes is None:
        return None
    with torch.inference_mode(), evaluating(eyes):
        found = eyes(seen)
    return places_of(found) if isinstance(found, Regions) else None


def _named(places: Places | None, schema: Schema, seen: Images | Regions) -> Places | None:
    """With what each region shows, where the data says so."""
    spec = schema.specs[schema.inputs[IMAGE]]
    if places is None or not isinstance(spec, RegionSpec) or not isinstance(seen, Regions) or seen.labels is None:
        return places
    known = [spec.names[label] if 0 <= label < len(spec.names) else "" for label in seen.labels[0].tolist()]
    return replace(places, names=known if any(known) else [])


def _eyes(model: object) -> nn.Module | None:
    modules = model.named_modules() if isinstance(model, nn.Module) else ()
    return next((module for name, module in modules if name.rpartition(".")[2] == "eyes"), None)


def _paint(schema: Schema) -> Sequence[float]:
    """What hidden pixels are painted in: the mean of the training pictures, which a model sees as nothing."""
    spec = schema.specs[schema.inputs[IMAGE]]
    return [255 * mean for mean in spec.mean] if isinstance(spec, ImageSpec) else ()


def _words(schema: Schema, reading: Reading) -> list[str]:
    """What each step of the tokens is called: a word that is read, or of a caption the one that is written there."""
    if "tokens" not in reading.batch.inputs:
        return []
    pieces = reading.pieces[1:] if schema.kind == CAPTION else reading.pieces
    return [piece.strip() or piece for piece in pieces]


def _told_apart(model: Model, reading: Reading, words: list[str], places: Places | None) -> tuple[Trace, Looked]:
    """Words and regions are told apart by their numbers: where these are the same, padding, which nobody looks at, is
    put behind the words, and they are read once more."""
    T = len(words)
    sizes = set() if places is None else {len(places.boxes), len(places.boxes) + 1, places.num_frames}
    extra = next(extra for extra in range(len(sizes) + 1) if T + extra not in sizes) if words else 0
    if not extra:
        return reading.trace, Looked(words, T, places)

    def padded(tokens: Tokens) -> Tokens:
        is_token = torch.arange(T + extra, device=tokens.ids.device).unsqueeze(0) < T
        return Tokens(torch.nn.functional.pad(tokens.ids, (0, extra)), is_token)

    batch = reading.batch
    inputs, targets = (
        {name: padded(one) if isinstance(one, Tokens) else one for name, one in fields.items()}
        for fields in (batch.inputs, batch.targets)
    )
    with torch.inference_mode(), evaluating(model), record(model) as trace:
        model.score(Batch(inputs, targets))
    return trace, Looked(words, T + extra, places)


# -- what is asked about -----------------------------------------------------------------------------------------------


def _of_answers(model: Answerer, schema: Schema, reading: Reading) -> tuple[list[str], Scores]:
    """The answer, the one that was wanted, and the next probable ones."""
    spec = schema.target(schema.main, LabelSpec)
    probable = [option.piece for option in reading.expected[-1]]
    names = list(dict.fromkeys([*reading.answer, *(reading.wanted or []), *probable]))
    names = [name for name in names if name in spec.names][:MAX_ASKED]
    chosen = [spec.names.index(name) for name in names]

    def scores(batch: Batch) -> Tensor:
        found = model.predict(batch).log_probs
        assert found is not None
        return found[:, chosen]

    return names, scores


def _of_words(model: Model, schema: Schema, reading: Reading) -> tuple[list[str], Scores]:
    """The caption, and each of its words."""

    def scores(batch: Batch) -> Tensor:
        found, _ = model.score(batch)  # (B, T)
        return torch.cat([found.sum(dim=1, keepdim=True), found], dim=1)

    return [WHOLE, *_words(schema, reading)], scores


def _of_choices(model: HeadedModel, schema: Schema, reading: Reading) -> tuple[list[str], Scores]:
    """All of them, the most probable first: each picture is read with every choice."""
    row, choices = LabelledRow(reading.choices, ""), reading.choices[1:]
    names = [option.piece for option in reading.expected[-1]]
    chosen = [choices.index(name) for name in names]

    def scores(batch: Batch) -> Tensor:
        found = []
        for number in range(len(batch)):
            one = batch.rows(slice(number, number + 1))
            group = choices_of(schema, row, {IMAGE: one.inputs[IMAGE]}).to(device_of(model))
            log_probs = model.predict(group).log_probs
            assert log_probs is not None
            found.append(log_probs[:, chosen])
        return torch.cat(found)

    return names, scores


def _of_hidden_words(model: HeadedModel, schema: Schema, reading: Reading) -> tuple[list[str], Scores]:
    """The sentence, as the sum of its words, each hidden alone; and each of them."""
    spec, row = schema.input("tokens", TokenSpec), reading.batch.inputs["tokens"].ids[0]
    places = torch.arange(1, len(row) - 1, device=row.device)

    def scores(batch: Batch) -> Tensor:
        found = []
        for number in range(len(batch)):
            beside = {IMAGE: batch.rows(slice(number, number + 1)).inputs[IMAGE]}
            log_probs = hidden_one_by_one(model, spec, row, places, beside)  # (T, V)
            found.append(log_probs.gather(1, row[1:-1].unsqueeze(1)).squeeze(1))
        each = torch.stack(found)
        return torch.cat([each.sum(dim=1, keepdim=True), each], dim=1)

    return [WHOLE, *_words(schema, reading)[1:-1]], scores


ASKED: dict[str, Callable[[Any, Schema, Reading], tuple[list[str], Scores]]] = {
    LABEL: _of_answers,
    CHOICE: _of_choices,
    MASKED_TOKEN: _of_hidden_words,
    CAPTION: _of_words,
}
"""By the kind of the main target: the names of what is asked about, and their log-probabilities."""


def _after_each(model: Model, schema: Schema, reading: Reading, names: Sequence[str]) -> np.ndarray:
    """(G, K): how probable the head would hold each answer, had the model stopped behind each of its steps."""
    spec = schema.target(schema.main, LabelSpec)
    chosen = [spec.names.index(name) for name in names]
    if not isinstance(model, HeadedModel) or not chosen:
        return np.zeros((0, 0))
    with torch.inference_mode(), evaluating(model):
        stream = model.body.encode(reading.batch.inputs, None).stream
        head: Any = model.main_head
        found = [head.predict(Stream(stream.hidden[:, : step + 1])) for step in range(stream.hidden.shape[1])]
    return torch.stack([one.log_probs[0, chosen].exp() for one in found]).double().cpu().numpy()
