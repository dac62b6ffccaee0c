"""The answer to a row and what moved it, as the page shows it: attribution.py asked for the answers that matter.

Shapes: A answers, U words, T tokens, P places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from ..data.batch import Tokens
from ..data.schema import LABEL, LABELS, NUMBER, LabelSpec, NumberSpec, Schema, TokenSpec
from ..errors import ConfigError
from ..layers.stream import Prediction
from ..models.contract import Answerer, evaluating
from ..text import Tokenizer
from ..text.unseen import unseen_in
from .attribution import (
    ROWS,
    Asked,
    Span,
    WeighsGrams,
    by_word,
    chosen_places,
    gradient_times_input,
    gram_parts,
    hidden,
    left_out,
    occlusion,
    shared_evenly,
    take_rows,
    with_phrase,
)
from .reading import END, START, Reading, known_before

MAX_ASKED = 6  # answers that can be chosen on the page: the most probable ones, and the one that is wanted
MAX_GRAMS = 8  # for an answer, and against it
NUM_PLACES = 20  # that a phrase is put at
GRADIENT, GRAMS, HIDDEN, LEFT_OUT = "gradient times input", "n-grams", "replaced", "left out"
ABOUT = {
    GRADIENT: "the slope of the answer at the embedding of the word, times that embedding: the exact parts of a linear "
    "model, a first guess of any other",
    GRAMS: "what the model adds for the n-grams that a word stands in, shared evenly by their words",
    HIDDEN: "what the answer loses where {unknown} is read in place of the word",
    LEFT_OUT: "what the answer loses where the word is not there",
}
"""A sentence about each way to ask."""


@dataclass(frozen=True)
class Attribution:
    """One way to ask what each word did."""

    method: str
    about: str
    values: np.ndarray
    """(A, U): for the answer where positive, against it where negative; nats, or what the number counts."""
    elsewhere: list[float] = field(default_factory=list)
    """What no word has of each answer: the boundaries, and what two texts share; none where that is not asked."""


@dataclass(frozen=True)
class Gram:
    text: str
    parts: list[float]
    """What it adds to the score of each answer, nats."""


@dataclass(frozen=True)
class MovedPhrase:
    """How the answer changes with the place of a phrase in the text."""

    phrase: str
    answer: str
    places: list[int]
    """How many words stand before it; the end of a first text counts as one more."""
    values: list[float]
    """The probability of the answer with the phrase at each place; or the number that is answered."""
    without: float
    """Where the phrase is not there at all."""
    stood_at: int | None
    """Its place in the text as it was given; None where the text does not have it."""
    as_given: float


@dataclass(frozen=True)
class Evidence:
    target: str
    answers: list[str]
    """Those that were asked for, the chosen one first."""
    scores: list[float]
    """Log-odds of each against all others, nats; or the number."""
    probabilities: list[float]
    """Of each; none of a number."""
    words: list[str]
    spans: list[Span]
    attributions: list[Attribution]
    pooling: np.ndarray | None = None
    """(T,): where attention pooling looked, as shares; None where there is none."""
    grams: list[Gram] = field(default_factory=list)
    """Those that move some answer most, of a model that counts them."""
    moved: MovedPhrase | None = None

    @property
    def unit(self) -> str:
        return "nats" if self.probabilities else "the unit of the number"

    @property
    def begins_text(self) -> list[bool]:
        """Of each word, whether it is the first of a second text."""
        return [place > 0 and self.spans[place - 1][1] < begin for place, (begin, _) in enumerate(self.spans)]


def find_evidence(
    model: Answerer,
    schema: Schema,
    reading: Reading,
    *,
    target: str,
    wanted: Sequence[str] = (),
    phrase: str | None = None,
) -> Evidence:
    """For the answer that was given, and others besides; those that are `wanted` come first."""
    tokens, spec = reading.batch.inputs["tokens"], schema.specs[schema.targets[target].spec]
    kind = schema.targets[target].head
    beside = known_before(reading.batch)
    asked = Asked(model, kind, [0], None if target == schema.main else target, beside)
    with torch.inference_mode(), evaluating(model):
        found = asked.predict(tokens)
    names = spec.names if isinstance(spec, LabelSpec) else reading.answer
    asked = replace(asked, answers=_asked_for(found, kind, names, wanted)).precise()
    scale, offset = (spec.scale, spec.mean) if isinstance(spec, NumberSpec) else (1.0, 0.0)
    (scores,) = torch.cat(list(asked.each(tokens)))
    tokenizer = schema.input("tokens", TokenSpec).tokenizer
    attributions = _attributions(asked, tokens, reading.words, tokenizer, found, scale)
    probabilities = [] if found.log_probs is None else found.log_probs[0].double().exp()[list(asked.answers)].tolist()
    answers = [names[answer] for answer in asked.answers]
    grams = _grams(asked, tokens, reading, found)
    moved = _moved(asked, schema, reading, attributions, phrase, answers[0], (scale, offset))
    pooling = _pooling(reading) if target == schema.main else None
    return Evidence(
        target, answers, (scores * scale + offset).tolist(), probabilities,
        ["".join(reading.pieces[begin:end]).strip() or "␣" for begin, end in reading.words], reading.words,
        attributions, pooling, grams, moved,
    )  # fmt: skip


def _asked_for(found: Prediction, kind: str, names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Numbers of the answers: those that are wanted, what was answered, then the most probable ones."""
    if found.log_probs is None:
        return [0]
    probable = found.log_probs[0].argsort(descending=True).tolist()[:MAX_ASKED]
    said = found.answers[0].nonzero().flatten().tolist() if kind == LABELS else [int(found.answers[0])]
    first = [names.index(name) for name in wanted]
    return list(dict.fromkeys([*first, *said, *probable]))[:MAX_ASKED]


def _attributions(
    asked: Asked, tokens: Tokens, spans: Sequence[Span], tokenizer: Tokenizer, found: Prediction, scale: float
) -> list[Attribution]:
    by_method: dict[str, np.ndarray] = {}
    elsewhere: dict[str, list[float]] = {}
    by_token = gradient_times_input(asked, tokens)
    if by_token is not None:
        by_method[GRADIENT] = by_word(by_token, spans)
        elsewhere[GRADIENT] = (scale * (by_token.sum(axis=1) - by_method[GRADIENT].sum(axis=1))).tolist()
    elif isinstance(asked.model, WeighsGrams) and found.log_probs is not None:
        T = tokens.shape[1]
        places, parts = gram_parts(asked.model, found.log_probs[0].cpu(), _ids(tokens), asked.answers)
        is_whole = (places == [0, T]).all(axis=1) & (tokens.segments is not None)  # what two texts share
        by_method[GRAMS] = by_word(shared_evenly(places[~is_whole], parts[~is_whole], T), spans)
        elsewhere[GRAMS] = (parts.sum(axis=0) - by_method[GRAMS].sum(axis=1)).tolist()
    unknown = getattr(tokenizer, "unknown", None)
    if spans and unknown is not None:
        by_method[HIDDEN] = occlusion(asked, tokens, hidden(tokens, spans, unknown))
    if spans:
        by_method[LEFT_OUT] = occlusion(asked, tokens, left_out(tokens, spans))
    name = "" if unknown is None else tokenizer.piece(unknown)
    return [
        Attribution(method, ABOUT[method].format(unknown=name), scale * values, elsewhere.get(method, []))
        for method, values in by_method.items()
    ]


def _ids(tokens: Tokens) -> np.ndarray:
    return tokens.ids[0].cpu().numpy()


def _pooling(reading: Reading) -> np.ndarray | None:
    """Weights of the tokens of the row, (T,)."""
    noted = reading.trace.all("pooling")
    if not noted:
        return None
    weights = noted[0][1].flatten(0, -2).double().cpu().numpy()  # (R, T')
    if reading.steps is None:
        return weights[0]
    found = np.zeros(len(reading.pieces))
    np.add.at(found, reading.steps[reading.steps >= 0], weights[reading.steps >= 0])
    return found / len(weights)  # each of two texts has weights of its own


def _grams(asked: Asked, tokens: Tokens, reading: Reading, found: Prediction) -> list[Gram]:
    """The strongest for and against each answer; one that comes several times counts once."""
    if not isinstance(asked.model, WeighsGrams) or found.log_probs is None:
        return []
    T, by_text = tokens.shape[1], dict[str, np.ndarray]()
    spans, parts = gram_parts(asked.model, found.log_probs[0].cpu(), _ids(tokens), asked.answers)
    for (begin, end), part in zip(spans.tolist(), parts, strict=True):
        is_whole = tokens.segments is not None and (begin, end) == (0, T)
        text = "what both texts share" if is_whole else _spoken(reading.pieces[begin:end])
        by_text[text] = by_text.get(text, 0.0) + part
    kept: set[str] = set()
    for place in range(len(asked.answers)):
        order = sorted(by_text, key=lambda text: by_text[text][place])
        kept |= {text for text in [*order[:MAX_GRAMS], *order[-MAX_GRAMS:]] if by_text[text][place] != 0}
    order = sorted(kept, key=lambda text: -by_text[text][0])
    return [Gram(text, by_text[text].tolist()) for text in order]


def _spoken(pieces: Sequence[str]) -> str:
    """With a space behind boundaries, too."""
    return "".join(f"{piece} " if piece in (START, END) else piece for piece in pieces).strip()


# -- a phrase at other places ------------------------------------------------------------------------------------------


def _moved(
    asked: Asked,
    schema: Schema,
    reading: Reading,
    attributions: Sequence[Attribution],
    phrase: str | None,
    answer: str,
    unit: tuple[float, float],
) -> MovedPhrase | None:
    """The given phrase, or the word whose loss moves the chosen answer most, at about twenty places."""
    tokens = reading.batch.inputs["tokens"]
    if phrase is None:
        lost = next((each.values[0] for each in attributions if each.method == LEFT_OUT), np.zeros(0))
        if len(lost) < 2:
            return None
        span: Span | None = reading.words[int(np.abs(lost).argmax())]
        assert span is not None
        moved = chosen_places(tokens, [range(*span)])
        phrase = "".join(reading.pieces[span[0] : span[1]]).strip()
    else:
        moved = _as_tokens(phrase, schema, tokens)
        seen = unseen_in(schema.input("tokens", TokenSpec).tokenizer, phrase)
        reading.notes.extend(f"of the phrase: {sentence}" for sentence in seen)
        span = _found_in(_ids(tokens), _ids(moved))
    rest, words = tokens, list(reading.words)
    if span is not None:
        rest = left_out(tokens, [span])
        words = [_shifted(word, span) for word in words if not span[0] <= word[0] < span[1]]
    gaps = sorted({*(begin for begin, _ in words), *_ends(reading, span)})
    if len(gaps) < 2:
        return None
    places = sorted({round(place) for place in np.linspace(0, len(gaps) - 1, NUM_PLACES)})
    values = _values(asked, with_phrase(rest, moved, [gaps[place] for place in places]), unit)
    return MovedPhrase(
        phrase,
        answer,
        places,
        values,
        _values(asked, rest, unit)[0],
        None if span is None else sum(gap < span[0] for gap in gaps),
        _values(asked, tokens, unit)[0],
    )


def _as_tokens(phrase: str, schema: Schema, tokens: Tokens) -> Tokens:
    """A phrase as it is read in the middle of a text."""
    spec = schema.input("tokens", TokenSpec)
    words = phrase.split()
    if not words:
        raise ConfigError("--phrase is empty; give the words that are to be moved, or leave it out.")
    if tokens.characters is not None:
        ids, steps = spec.encode_words(words)
        pieces = np.diff([*steps, len(ids) - 1])
        spelled = torch.from_numpy(np.repeat(spec.spell(words), pieces, axis=0).astype(np.int64))
        found = Tokens(torch.from_numpy(ids[1:-1])[None], characters=spelled[None])
    else:
        written = f" {phrase.strip()}" if spec.tokenizer.kind == "bpe" else phrase.strip()
        read = torch.from_numpy(spec.tokenizer.encode(written))[None]
        found = Tokens(read, segments=None if tokens.segments is None else torch.zeros_like(read))
    return found.map(lambda tensor: tensor.to(tokens.ids.device))


def _found_in(row: np.ndarray, phrase: np.ndarray) -> Span | None:
    """Where it first stands."""
    places = range(len(row) - len(phrase) + 1)
    return next(((p, p + len(phrase)) for p in places if (row[p : p + len(phrase)] == phrase).all()), None)


def _shifted(word: Span, without: Span) -> Span:
    """Where a word stands when `without` is taken out before it."""
    by = without[1] - without[0] if word[0] >= without[1] else 0
    return word[0] - by, word[1] - by


def _ends(reading: Reading, without: Span | None) -> list[int]:
    """The boundaries behind texts: before them, too, a phrase can stand."""
    in_words = {place for begin, end in reading.words for place in range(begin, end)}
    ends = [(place, place + 1) for place in range(1, len(reading.pieces)) if place not in in_words]
    return [end[0] if without is None else _shifted(end, without)[0] for end in ends]


def _values(asked: Asked, tokens: Tokens, unit: tuple[float, float]) -> list[float]:
    """Probabilities of the chosen answer, or numbers in the data's own unit (scale, offset)."""
    found: list[float] = []
    with torch.inference_mode(), evaluating(asked.model):
        for first in range(0, tokens.shape[0], ROWS):
            prediction = asked.predict(take_rows(tokens, slice(first, first + ROWS)))
            if prediction.log_probs is None:
                found += (prediction.answers.double() * unit[0] + unit[1]).tolist()
            else:
                found += prediction.log_probs[:, asked.answers[0]].double().exp().tolist()
    return found


KINDS = (LABEL, LABELS, NUMBER)
"""Targets that a whole row is answered by."""
