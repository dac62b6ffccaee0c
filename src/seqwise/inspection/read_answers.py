"""A text that is answered, as a model reads it: a labelled text, or two; a row of words with a tag each.

The row is the boundary, the text, the boundary, as in training; an answer to the whole stands behind its last piece,
one to a word at the first piece of that word.

Shapes: T tokens, U words, R rows that a network reads of one, N answers to choose from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ..data.annotated import LabelledRow, TaggedRow
from ..data.batch import Batch, Labels, LabelSets, Tags, Values
from ..data.schema import LABEL, LABELS, NUMBER, LabelSpec, NumberSpec, Schema, TokenSpec
from ..data.text_examples import build_label_store, build_tag_store
from ..errors import ConfigError, DataError
from ..layers.stream import Prediction
from ..models.contract import Answerer, AnswersSeveral, device_of, evaluating
from ..models.headed import HeadedModel
from ..tasks.label import UNANSWERED
from ..text import Tokenizer
from ..text.unseen import unseen_in
from ..text.words import WordTokenizer
from .attribution import Span, steps_read
from .reading import BIT, END, NUM_EXPECTED, START, UNKNOWN_MARK, Expected, Reading, pieces_in
from .trace import record

MAX_ANSWERS = 10  # that are shown of many
BETWEEN = "\t"
"""What stands between two texts that belong together."""


def labelled_row(text: str, target: str | None, schema: Schema) -> LabelledRow:
    """A text as it is given, two with a TAB between; and the answer that is wanted, where one is."""
    num_texts = schema.input("tokens", TokenSpec).num_texts
    text = text.rstrip("\n")
    texts = tuple(text.split(BETWEEN)) if num_texts > 1 else (text,)
    if len(texts) != num_texts:
        raise DataError(
            f'the model reads two texts that belong together, and {len(texts)} came: --text "first TAB second", with a '
            "tabulator for TAB."
        )
    return LabelledRow(texts, UNANSWERED[schema.kind] if target is None else _given_answer(target, schema))


def _given_answer(target: str, schema: Schema) -> Any:
    """A label by its name, several with | between them, or a number."""
    if schema.kind == NUMBER:
        try:
            return float(target)
        except ValueError:
            raise ConfigError(f'--target "{target}" should be a number, as the model answers with one.') from None
    return tuple(given_labels(target, schema)) if schema.kind == LABELS else given_labels(target, schema)[0]


def given_labels(target: str, schema: Schema) -> list[str]:
    """That are asked for, by their names; none of a number."""
    spec = schema.main_spec
    if not isinstance(spec, LabelSpec):
        return []
    given = [name.strip() for name in target.split("|")] if schema.kind == LABELS else [target]
    given = [name for name in given if name or schema.kind == LABEL]
    check_names(given, spec)
    return given


def check_names(given: Sequence[str], spec: LabelSpec) -> None:
    for name in given:
        if name not in spec.names:
            known = ", ".join(spec.names[:20]) + (", …" if len(spec.names) > 20 else "")
            raise ConfigError(f'--target "{name}" is not among what the model answers with: {known}.')


def read_labelled(
    model: Answerer, schema: Schema, row: LabelledRow, *, is_known: bool = True, max_tokens: int
) -> Reading:
    """`is_known`: whether the answer of the row is; else the model's own stands for it where gradients need one."""
    if not any(text.strip() for text in row.texts):
        raise DataError("there is no text to look at; give at least one character.")
    spec = schema.input("tokens", TokenSpec)
    batch = build_label_store([row], schema).batch(slice(0, 1))
    pieces, is_boundary = pieces_of_texts(spec, row.texts)
    notes = [note for text in row.texts for note in unseen_in(spec.tokenizer, text)]
    kept = kept_places(model, len(pieces), max_tokens, notes)
    tokens = batch.inputs["tokens"].map(lambda tensor: tensor[:, kept])
    pieces, is_boundary = [pieces[place] for place in kept], [is_boundary[place] for place in kept]
    batch = Batch({"tokens": tokens}, batch.targets).to(device_of(model))
    with torch.no_grad(), evaluating(model):  # what is answered may be a target where gradients are asked for
        prediction = model.predict(batch)
        bits = _cost(float(model.score(batch)[0][0, 0]), schema) if is_known else math.nan
        if math.isnan(bits) or math.isinf(bits):  # gradients need something that can be answered
            batch = Batch(batch.inputs, {schema.main: _as_target(prediction, schema.kind)})
        with record(model) as trace:
            model.score(batch)
    silent = len(pieces) - 1
    return Reading(
        pieces,
        tokens.ids[0].tolist(),
        [math.nan] * silent + [bits],
        [*([] for _ in range(silent)), _answers(prediction, schema)],
        batch,
        trace,
        unit="bits for the answer",
        is_answer=True,
        answer=_said(prediction, schema),
        wanted=_written(row.answer, schema.kind) if is_known else None,
        words=word_spans(pieces, is_boundary, by_piece=spec.tokenizer.kind in ("char", "word")),
        steps=_steps(model, batch),
        notes=notes,
    )


def pieces_of_texts(spec: TokenSpec, texts: Sequence[str]) -> tuple[list[str], list[bool]]:
    """Of a row of texts, and which of them are boundaries."""
    pieces, is_boundary = [START], [True]
    for number, text in enumerate(texts):
        found = pieces_in(spec.tokenizer, spec.encode(text).tolist(), text)
        ends = [END] * len(spec.behind(is_last=number == len(texts) - 1))
        pieces += [*found, *ends]
        is_boundary += [*[False] * len(found), *[True] * len(ends)]
    return pieces, is_boundary


def kept_places(model: Answerer, num_tokens: int, max_tokens: int, notes: list[str]) -> list[int]:
    """Places of the tokens that are read: of texts that are too long, the beginning and the end."""
    own = getattr(model, "max_steps", 0) or num_tokens
    room = max(2, min(max_tokens + 2, own, model.context or num_tokens))
    if num_tokens <= room:
        return list(range(num_tokens))
    whose = "the model reads" if room == own else "the page holds" if room == max_tokens + 2 else "the model sees"
    half = room - room // 2
    notes.append(
        f"the text has {num_tokens:,} tokens and {whose} {room:,}: the first {half:,} and the last {room // 2:,} "
        "are read, and what is said is of these"
    )
    return [*range(half), *range(num_tokens - room // 2, num_tokens)]


def word_spans(pieces: Sequence[str], is_boundary: Sequence[bool], *, by_piece: bool) -> list[Span]:
    """Pieces that belong together: each by itself, or all up to the next white space."""
    spans: list[Span] = []
    for place, piece in enumerate(pieces):
        if is_boundary[place]:
            continue
        is_begun = bool(spans) and spans[-1][1] == place and not pieces[place - 1][-1:].isspace()
        if by_piece or not is_begun or piece[:1].isspace():
            spans.append((place, place + 1))
        else:
            spans[-1] = (spans[-1][0], place + 1)
    return spans


def _steps(model: Answerer, batch: Batch) -> np.ndarray | None:
    is_apart = isinstance(model, HeadedModel) and model.siamese is not None
    return steps_read(model, batch.inputs["tokens"]) if is_apart else None


def _as_target(prediction: Prediction, kind: str) -> Labels | LabelSets | Values:
    """What was answered, as if it had been wanted."""
    if kind == LABEL:
        return Labels(prediction.answers)
    if kind == LABELS:
        return LabelSets(prediction.answers)
    return Values((prediction.answers - 1.0).view(-1, 1, 1))  # an error of one, whose slope is that of the number


def _cost(log_prob: float, schema: Schema) -> float:
    """In bits; of a number in the data's own units."""
    spec = schema.main_spec
    return (math.log(spec.scale if isinstance(spec, NumberSpec) else 1.0) - log_prob) / BIT


def _answers(prediction: Prediction, schema: Schema) -> list[Expected]:
    """With their probabilities, the most probable first."""
    spec = schema.main_spec
    if prediction.log_probs is None:
        return [Expected(str(spec.decode(prediction.answers[0])), 1.0)]
    assert isinstance(spec, LabelSpec)
    return most_probable(prediction.log_probs[0], spec.names, MAX_ANSWERS)


def most_probable(log_probs: Tensor, names: Sequence[str], limit: int) -> list[Expected]:
    """Of (N,) nats."""
    values, places = log_probs.double().cpu().topk(min(limit, len(names)))
    pairs = zip(places.tolist(), values.exp().tolist(), strict=True)
    return [Expected(names[place], probability) for place, probability in pairs]


def _said(prediction: Prediction, schema: Schema) -> list[str]:
    spec, answer = schema.main_spec, prediction.answers[0]
    if schema.kind == LABELS and isinstance(spec, LabelSpec):
        return [spec.names[place] for place in answer.nonzero().flatten().tolist()]
    return [str(spec.decode(answer))]


def _written(answer: Any, kind: str) -> list[str]:
    return list(answer) if kind == LABELS else [f"{answer:.6g}" if kind == NUMBER else str(answer)]


# -- tags --------------------------------------------------------------------------------------------------------------


def tagged_row(text: str, target: str | None, spec: LabelSpec) -> TaggedRow:
    """Words with white space between them, and their tags, where they are told."""
    words = tuple(text.split())
    if target is None:
        return TaggedRow(words, ("",) * len(words))
    tags = tuple(target.split())
    if len(tags) != len(words):
        raise ConfigError(f"--target has {len(tags):,} tags and the text {len(words):,} words; each word has one.")
    check_names(tags, spec)
    return TaggedRow(words, tags)


def read_tagged(model: Answerer, schema: Schema, row: TaggedRow, *, is_known: bool = True, max_tokens: int) -> Reading:
    """`is_known`: whether the tags of the row are."""
    spec, tags = schema.input("tokens", TokenSpec), schema.target(schema.main, LabelSpec)
    if not row.words:
        raise DataError("there are no words to look at; give at least one.")
    notes = list(unseen_in(spec.tokenizer, " ".join(row.words))) if isinstance(spec.tokenizer, WordTokenizer) else []
    row = _that_fit(row, spec, max_tokens if model.context is None else min(max_tokens, model.context - 2), notes)
    batch = build_tag_store([row], schema).batch(slice(0, 1)).to(device_of(model))
    with torch.no_grad(), evaluating(model):
        prediction = model.predict(batch)
        batch = _with_known_answers(model, schema, batch, prediction, is_known=is_known)
        with record(model) as trace:
            model.score(batch)
    assert prediction.log_probs is not None
    ids, steps = batch.inputs["tokens"].ids[0], batch.targets[schema.main].steps[0].tolist()
    spans = list(zip(steps, [*steps[1:], len(ids) - 1], strict=True))
    bits = [math.nan] * len(ids)
    expected: list[list[Expected]] = [[] for _ in ids]
    wanted = tags.encode(row.tags)
    for word, (step, tag) in enumerate(zip(steps, wanted.tolist(), strict=True)):
        log_probs = prediction.log_probs[0, word]
        expected[step] = most_probable(log_probs, tags.names, NUM_EXPECTED)
        bits[step] = math.nan if not is_known else math.inf if tag < 0 else -float(log_probs[tag]) / BIT
    return Reading(
        _pieces_of_words(spec.tokenizer, row.words, ids.tolist(), spans),
        ids.tolist(),
        bits,
        expected,
        batch,
        trace,
        unit="bits a tag",
        is_answer=True,
        answer=[tags.decode(tag) for tag in prediction.answers[0]],
        wanted=list(row.tags) if is_known else None,
        words=spans,
        notes=notes,
    )


def _that_fit(row: TaggedRow, spec: TokenSpec, room: int, notes: list[str]) -> TaggedRow:
    """The words from the beginning that have room."""
    ids, steps = spec.encode_words(row.words)
    ends = np.append(steps[1:], len(ids) - 1) - 1  # tokens up to the end of each word
    fitting = max(1, int((ends <= room).sum()))
    if fitting == len(row.words):
        return row
    notes.append(f"the row has {len(row.words):,} words; the first {fitting:,} are read")
    return TaggedRow(row.words[:fitting], row.tags[:fitting], row.label)


def _with_known_answers(
    model: Answerer, schema: Schema, batch: Batch, prediction: Prediction, *, is_known: bool
) -> Batch:
    """Where nothing is known, or not by the model, what it answers stands for it."""
    targets = dict(batch.targets)
    words: Tags = targets[schema.main]
    targets[schema.main] = replace(words, ids=prediction.answers if not is_known else _filled(words.ids, prediction))
    for name in (name for name in targets if name != schema.main):
        found = cast(AnswersSeveral, model).predict(batch, name)
        targets[name] = Labels(_filled(targets[name].ids, found))
    return Batch(batch.inputs, targets)


def _filled(ids: Tensor, prediction: Prediction) -> Tensor:
    return torch.where(ids < 0, prediction.answers, ids)


def _pieces_of_words(
    tokenizer: Tokenizer, words: Sequence[str], ids: Sequence[int], spans: Sequence[Span]
) -> list[str]:
    """Words as they were written, with a mark where they are not known; or the pieces they are cut into."""
    pieces = [START]
    for word, (begin, end) in zip(words, spans, strict=True):
        found = [tokenizer.piece(token) for token in ids[begin:end]]
        if isinstance(tokenizer, WordTokenizer) and len(found) == 1:
            found = [f"{word}{UNKNOWN_MARK if ids[begin] == tokenizer.unknown else ''}"]
        pieces += [*found[:-1], f"{found[-1]} "]
    return [*pieces, END]
