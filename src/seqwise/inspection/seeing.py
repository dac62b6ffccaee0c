"""A picture as a model reads it: with a label, a question and its answer, or a caption; or as it paints it again.

SEEN_READERS is the table, by the kind of the main target: what READERS (readers.py) is for sequences.

Shapes: B batch, T tokens, F frames, H and W pixels, C channels, K answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..data.annotated import LabelledRow
from ..data.batch import Batch, Images, Labels, Noise, Regions, Tokens
from ..data.binarised import SCORED, in_black_and_white
from ..data.films import FilmPictures, with_moments
from ..data.picture_sources import FolderPictures
from ..data.pixels import moments, read_fitted
from ..data.region_files import RegionFiles
from ..data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    MASKED_TOKEN,
    PICTURE,
    ImageSpec,
    LabelSpec,
    RegionSpec,
    Schema,
    TokenSpec,
)
from ..data.seen import SeenRow
from ..data.seen_build import prepare_pictures
from ..data.seen_looks import FEATURE_SUFFIXES, FILM_SUFFIXES, files_below, is_picture_name
from ..data.seen_store import NoiseColumn, SeenStore
from ..errors import DataError
from ..evaluation.pictures import SEED
from ..goals.sequence import search_settings
from ..models.contract import Answerer, LanguageModel, device_of, evaluating, noise_for
from ..run import Run
from ..text import Tokenizer
from ..text.unseen import unseen_in
from ..wording import counted
from .attribution import Span
from .options import InspectOptions
from .read_answers import check_names, most_probable, pieces_of_texts, word_spans
from .read_choice import chosen_row, read_choice
from .read_masked import read_masked
from .reader import Inspectable, Reader, WholeReader
from .reading import BIT, END, NUM_EXPECTED, START, Picture, Reading, pieces_in, prompt_of, read_batch
from .search_tree import SearchTree, search_tree
from .trace import record

IMAGE = "image"
SEEN = "⟨picture⟩"
"""Stands for a picture where texts have their tokens."""
MAX_CAPTION = 40  # tokens that are searched for


def picture_at(run: Inspectable, options: InspectOptions) -> tuple[Images | Regions, SeenRow, str]:
    """What is looked at, as a batch of one row; what is known of it; and where it is from."""
    if options.image is not None:
        spec = run.run.schema.specs[run.run.schema.inputs[IMAGE]]
        assert isinstance(spec, ImageSpec | RegionSpec)
        return given_picture(Path(options.image), spec), SeenRow((options.image,), ()), options.image
    kept = run.unseen_store()
    store: SeenStore = getattr(kept, "seen", kept)  # as it is, where words or regions would be hidden
    if options.row >= len(store):
        raise DataError(f"the part has {counted(len(store), 'row')}; there is none with the number {options.row:,}.")
    row = store.rows[options.row]
    where = f"row {options.row:,} of the held-out part: {_name_of(row)}"
    return store.pictures.field(store.picture_of[options.row : options.row + 1]), row, where


def chance_for(model: object, options: InspectOptions) -> dict[str, Noise]:
    """What a model draws by where it does, as when the row is scored; nothing else."""
    num = noise_for(model)
    return {"noise": NoiseColumn(np.array([options.row]), num).field(np.arange(1))} if num else {}


def given_picture(path: Path, spec: ImageSpec | RegionSpec) -> Images | Regions:
    """A file as a model of this spec sees it: a picture, a film, or features; a folder of pictures is a clip."""
    name = path.name.lower()
    if isinstance(spec, RegionSpec) or name.endswith(FEATURE_SUFFIXES):
        source = RegionFiles(path.parent, [path.name]) if name.endswith(FEATURE_SUFFIXES) else _files(path)
        return prepare_pictures(source, [(path.name,)], spec).field(np.arange(1))
    if name.endswith(FILM_SUFFIXES):
        (row,) = with_moments([SeenRow((path.name,), ())], spec.max_frames)
        films = FilmPictures(path.parent, [path.name])
        frames = [read_fitted(films, moment, spec) for moment in row.frames]
    else:
        pictures = _files(path)
        frames = [read_fitted(pictures, frame, spec) for frame in moments(pictures.names, spec.max_frames)]
    return Images(torch.from_numpy(np.stack([spec.encode(frame) for frame in frames])).unsqueeze(0))


def _files(path: Path) -> FolderPictures:
    """One picture, or all those of a folder, in order of their names."""
    if not path.is_dir():
        return FolderPictures(path.parent, [path.name])
    names = [name for name in files_below(path) if is_picture_name(name)]
    if not names:
        raise DataError(f"{path}: the folder has no pictures. Give one, or a folder with the frames of a clip.")
    return FolderPictures(path, names)


def _shown(field: Images | Regions, row: SeenRow) -> Picture:
    frames = None
    if isinstance(field, Images):
        frames = field.pixels[0].permute(0, 2, 3, 1).contiguous().cpu().numpy()  # (F, H, W, C)
    return Picture(_name_of(row), frames)


def _name_of(row: SeenRow) -> str:
    """A picture by its name, a clip by that of its first frame."""
    more = len(row.frames) - 1
    return row.frames[0] + (f" and {counted(more, 'frame')} more" if more else "")


# -- labels of pictures, answers to questions --------------------------------------------------------------------------


def _read_answered(
    run: Inspectable, text: str | None, target: str | None, options: InspectOptions
) -> tuple[Reading, str]:
    """A label, or the answer to a question: the row's own, or one that was given."""
    field, row, where = picture_at(run, options)
    schema = run.run.schema
    has_words = "tokens" in schema.inputs
    texts = row.texts if text is None else (text.strip(),)
    answer = row.answer if text is None else None  # of another question it is not known
    if target is not None:
        check_names([target], schema.target(schema.main, LabelSpec))
        answer = target
    if has_words and not any(texts):
        raise DataError("there is no question; give one: --text QUESTION.")
    reading = read_seen(run.model, schema, field, row._replace(texts=texts, answer=answer), options)
    return reading, f"{where} / {' / '.join(texts)}" if has_words else where


def read_seen(
    model: Answerer, schema: Schema, field: Images | Regions, row: SeenRow, options: InspectOptions
) -> Reading:
    """A picture with one answer, which is known or not; and what is asked about it, if anything is."""
    names = schema.target(schema.main, LabelSpec)
    inputs: dict[str, Any] = {IMAGE: field, **chance_for(model, options)}
    pieces, words, ids, notes = [SEEN], list[Span](), list[int](), list[str]()
    if "tokens" in schema.inputs:
        inputs["tokens"], pieces, words = _question(schema, row.texts)
        if len(pieces) > options.max_tokens:
            raise DataError(f"the question has {len(pieces):,} tokens, and the page holds {options.max_tokens:,}.")
        ids = inputs["tokens"].ids[0].tolist()
        notes = [note for text in row.texts for note in unseen_in(schema.input("tokens", TokenSpec).tokenizer, text)]
    wanted = -1 if row.answer is None else int(names.encode([row.answer])[0])
    batch = Batch(inputs, {}).to(device_of(model))
    with torch.inference_mode(), evaluating(model):
        found = model.predict(batch)
        assert found.log_probs is not None
        said = int(found.answers[0])
        answer = torch.tensor([wanted if wanted >= 0 else said]).to(found.answers)
        known = Batch(batch.inputs, {schema.main: Labels(answer)})
        with record(model) as trace:
            model.score(known)
    cost = -float(found.log_probs[0, wanted]) / BIT if wanted >= 0 else math.nan if row.answer is None else math.inf
    silent = len(pieces) - 1
    return Reading(
        pieces,
        ids,
        [math.nan] * silent + [cost],
        [*([] for _ in range(silent)), most_probable(found.log_probs[0], names.names, NUM_EXPECTED)],
        known,
        trace,
        unit="bits for the answer",
        is_text=False,
        is_answer=True,
        answer=[names.decode(said)],
        wanted=None if row.answer is None else [row.answer],
        words=words,
        picture=_shown(field, row),
        notes=notes,
    )


def _question(schema: Schema, texts: Sequence[str]) -> tuple[Tokens, list[str], list[Span]]:
    """As one row: its tokens, their names, and where words begin and end."""
    spec = schema.input("tokens", TokenSpec)
    ids, _ = spec.encode_texts(texts)
    pieces, is_boundary = pieces_of_texts(spec, texts)
    by_piece = spec.tokenizer.kind in ("char", "word")
    row = torch.from_numpy(ids.astype(np.int64)).unsqueeze(0)
    return Tokens(row), pieces, word_spans(pieces, is_boundary, by_piece=by_piece)


# -- choices, and hidden words -----------------------------------------------------------------------------------------


def _read_chosen(
    run: Inspectable, text: str | None, target: str | None, options: InspectOptions
) -> tuple[Reading, str]:
    field, seen, where = picture_at(run, options)
    if text is None and not seen.texts:
        raise DataError('there is no question; give one with its choices: --text "question TAB choice TAB choice".')
    row = LabelledRow(seen.texts, seen.answer or "") if text is None else chosen_row(text)
    beside = {IMAGE: field}
    is_known = text is None and seen.answer is not None
    reading = read_choice(
        run.model, run.run.schema, row, is_known=is_known, max_tokens=options.max_tokens, beside=beside
    )
    return replace(reading, picture=_shown(field, seen)), f"{where} / {' / '.join(row.texts)}"


def _read_hidden(
    run: Inspectable, text: str | None, target: str | None, options: InspectOptions
) -> tuple[Reading, str]:
    field, seen, where = picture_at(run, options)
    said = seen.texts[0] if text is None and seen.texts else text or ""
    spec, beside = run.run.schema.input("tokens", TokenSpec), Batch({IMAGE: field}, {}).to(device_of(run.model)).inputs
    reading = read_masked(run.model, spec, said.strip(), max_tokens=options.max_tokens, beside=beside)
    return replace(reading, picture=_shown(field, seen)), f"{where} / {said}"


# -- captions ----------------------------------------------------------------------------------------------------------


class CaptionReader:
    """A picture and a caption: one that was given, or the model's own."""

    has_source = True
    is_running_text = False
    answers_options: tuple[str, ...] = ("row",)
    no_gradients = "what reaches a word from the picture is shown under picture."
    no_memory = "a caption depends on its picture; see there."

    def reads_text(self, run: Run) -> bool:
        return True

    def takes_target(self, run: Run) -> bool:
        return False

    def read(
        self, run: Inspectable, text: str | None, target: str | None, options: InspectOptions
    ) -> tuple[Reading, str]:
        field, row, where = picture_at(run, options)
        spec = run.run.schema.target("tokens", TokenSpec)
        prompt = Batch({IMAGE: field}, {}).to(device_of(run.model))
        if text is None:
            found = _searched(run, prompt, options).answers[0].tokens
            wanted = np.array([token for token in found if token != spec.boundary], dtype=np.int64)
            text = spec.decode(wanted)
        else:
            wanted = spec.encode(text.strip())
        reading = read_caption(run.model, spec, prompt, wanted, text, options.max_tokens)
        about = _shown(field, row)
        return replace(reading, picture=about, wanted=list(row.texts) or None, answer=[text]), f"{where} / {text}"

    def flow_steps(self, reading: Reading) -> Sequence[int]:
        return []

    def search(self, run: Inspectable, reading: Reading, options: InspectOptions) -> SearchTree:
        """How the model's own caption was found."""
        return _searched(run, prompt_of(reading.batch), options)

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return schema.target("tokens", TokenSpec).tokenizer


def _searched(run: Inspectable, prompt: Batch, options: InspectOptions) -> SearchTree:
    spec = run.run.schema.target("tokens", TokenSpec)
    width = None if options.beam_width is None else min(options.beam_width, spec.size)
    config = search_settings(run.run.schema, beam_width=width, max_tokens=min(MAX_CAPTION, options.max_tokens))
    return search_tree(run.model, prompt, config)


def read_caption(
    model: LanguageModel, spec: TokenSpec, prompt: Batch, wanted: np.ndarray, text: str, max_tokens: int = 500
) -> Reading:
    """The tokens of a caption, (T,), each with what it cost."""
    room = max_tokens if model.context is None else min(max_tokens, model.context - 1)
    notes = list(unseen_in(spec.tokenizer, text))
    if len(wanted) > room:
        notes.append(f"the caption has {len(wanted):,} tokens: the first {room:,} are read")
        wanted = wanted[:room]
    framed = np.concatenate([[spec.begin], wanted, [spec.separator]]).astype(np.int64)
    row = torch.from_numpy(framed).unsqueeze(0)
    batch = Batch({**prompt.inputs, "tokens": Tokens(row[:, :-1])}, {"tokens": Tokens(row[:, 1:])})
    pieces = [START, *pieces_in(spec.tokenizer, wanted.tolist(), text), END]
    return read_batch(model, spec.tokenizer, batch.to(device_of(model)), pieces, framed.tolist(), notes)


# -- pictures that are painted -----------------------------------------------------------------------------------------


def _read_painted(
    run: Inspectable, text: str | None, target: str | None, options: InspectOptions
) -> tuple[Reading, str]:
    field, row, where = picture_at(run, options)
    assert isinstance(field, Images)
    batch = Batch({IMAGE: field, **chance_for(run.model, options)}, {})
    uniform = np.random.default_rng((SEED, SCORED, options.row)).random(field.pixels.shape, dtype=np.float32)
    batch = in_black_and_white(batch, uniform).to(device_of(run.model))
    with torch.inference_mode(), evaluating(run.model), record(run.model) as trace:
        bound = -float(run.model.score(batch)[0][0, 0]) / BIT
    reading = Reading([SEEN], [], [bound], [[]], batch, trace, unit="bits for the picture, at most", is_text=False)
    return replace(reading, picture=_shown(batch.inputs[IMAGE], row)), where


class SeenReader(WholeReader):
    """Of a row of pictures: where no words are read there is no text to give."""

    def reads_text(self, run: Run) -> bool:
        return "tokens" in run.schema.inputs

    def tokenizer(self, schema: Schema) -> Tokenizer | None:
        return schema.input("tokens", TokenSpec).tokenizer if "tokens" in schema.inputs else None


NO_GRADIENTS = "see under picture which part of it the answer rests on."
NO_MEMORY = "it is measured by what comes next in a text, and here a picture is looked at."
SEEN_READERS: dict[str, Reader] = {
    LABEL: SeenReader(
        _read_answered,
        no_search="all answers are weighed at once; see them under picture.",
        no_gradients=NO_GRADIENTS,
        no_memory=NO_MEMORY,
        answers_options=("row", "phrase"),
        has_target=True,
    ),
    CHOICE: SeenReader(
        _read_chosen,
        no_search="all choices are weighed at once; see them under reading.",
        no_gradients=NO_GRADIENTS,
        no_memory=NO_MEMORY,
        answers_options=("row",),
    ),
    MASKED_TOKEN: SeenReader(
        _read_hidden,
        no_search="words are filled in where they stand, not one after the other.",
        no_gradients=NO_GRADIENTS,
        no_memory=NO_MEMORY,
        answers_options=("row",),
    ),
    CAPTION: CaptionReader(),
    PICTURE: SeenReader(
        _read_painted,
        no_search="a picture is painted, not searched for.",
        no_gradients="nothing is read step by step; see under picture how it was painted.",
        no_memory=NO_MEMORY,
        answers_options=("row",),
    ),
}
"""By the kind of the main target, of who looks at pictures."""
