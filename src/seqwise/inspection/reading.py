"""A text as a model reads it: its tokens, what each cost, what was expected instead, and what went on inside.

Step t of a pass reads token t and expects token t + 1; token 0 is the boundary that stands before every text.

Shapes: T steps, S source steps, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tokens
from ..data.pair_store import PairStore, Rows, source_ids
from ..data.row_store import build_row_store
from ..data.schema import Schema, TokenSpec, pair_tokenizers
from ..errors import DataError
from ..models.contract import LanguageModel, Translator, device_of, evaluating
from ..models.headed import HeadedModel
from ..text import Tokenizer
from ..text.unseen import unseen_in
from ..text.wordpiece import GOES_ON, WordPieceTokenizer
from ..text.words import WordTokenizer
from .trace import Trace, record

NUM_EXPECTED = 6
BIT = math.log(2)
UNKNOWN_MARK = "⟨unk⟩"
START, END = "⟨start⟩", "⟨end⟩"


@dataclass(frozen=True)
class Expected:
    """What might have stood at a place."""

    piece: str
    probability: float


@dataclass(frozen=True)
class Column:
    """A column of a series at each step: what was read, what was expected, and between what 95 times of 100."""

    name: str
    values: list[float]
    """Not a number where it is missing."""
    middle: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Picture:
    """What was looked at, as the model sees it: in its size, and no finer."""

    name: str
    frames: np.ndarray | None
    """(F, H, W, C) uint8: one, or those of a clip; None where only what was found in it is known."""


@dataclass(frozen=True)
class Reading:
    pieces: list[str]
    """START, the pieces of the text, and for pairs END. Examples: their steps alone."""
    ids: list[int]
    bits: list[float]
    """What each token cost; nothing is known of the cost of the first: it is not a number."""
    expected: list[list[Expected]]
    """After each step the most probable tokens, most probable first."""
    batch: Batch
    """One row. Text: the last target is not known, and stands for nothing."""
    trace: Trace
    columns: list[Column] = field(default_factory=list)
    """Numbers: what was read and expected."""
    source: list[str] = field(default_factory=list)
    """Pairs: the pieces of the source, and END."""
    unit: str = "bits a token"
    """What the mean of `bits` is called."""
    is_text: bool = True
    """Whether pieces, read and expected, are segments of a text."""
    is_answer: bool = False
    """Whether what is expected is the answer: behind the last step that to all of them, else that to the step."""
    answer: list[str] = field(default_factory=list)
    """Of a text: its label, all labels that were found right, its number, or a tag for each word."""
    wanted: list[str] | None = None
    """What should have been answered; None where it is not known."""
    words: list[tuple[int, int]] = field(default_factory=list)
    """Where each word of a text that is answered begins and ends among the pieces; boundaries are no words."""
    steps: np.ndarray | None = None
    """Where among the pieces each step stands that was read, (R, T'), -1 for padding; None where they are the same."""
    choices: tuple[str, ...] = ()
    """Of a question with choices: the question, and all of them."""
    picture: Picture | None = None
    """What was looked at beside the text, if anything was."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know: text that was cut, characters never seen."""

    @property
    def num_scored(self) -> int:
        """Steps whose target is known."""
        return sum(not math.isnan(bits) for bits in self.bits)


def read_text(model: LanguageModel, tokenizer: Tokenizer, text: str, *, max_tokens: int) -> Reading:
    """The text from its start, as far as the model can see."""
    ids, notes = tokenizer.encode(text), list(unseen_in(tokenizer, text))
    if not len(ids):
        raise DataError("there is no text to look at; give at least one character.")
    context = model.context
    room = max_tokens if context is None else min(max_tokens, context - 1)
    if len(ids) > room:
        limit = f"a page holds {room:,}" if room == max_tokens else f"the model sees {room:,} at a time"
        notes.append(f"the text has {len(ids):,} tokens and {limit}: the first {room:,} are shown")
        ids = ids[:room]
    row = torch.from_numpy(np.concatenate([[tokenizer.boundary], ids, [tokenizer.boundary]])).unsqueeze(0)
    batch = Batch({"tokens": Tokens(row[:, :-1])}, {"tokens": Tokens(row[:, 1:])}).to(device_of(model))
    pieces = [START, *pieces_in(tokenizer, ids.tolist(), text)]
    return read_batch(model, tokenizer, batch, pieces, row[0, :-1].tolist(), notes)


def read_pair(model: Translator, schema: Schema, source: str, target: str, *, max_tokens: int) -> Reading:
    """A source with a target: one that was given, or the model's own."""
    reader, writer = pair_tokenizers(schema)
    room = max_tokens if model.context is None else min(max_tokens, model.context)
    given, wanted = source_ids(source.strip(), reader), writer.encode(target)
    notes = [*unseen_in(reader, source), *unseen_in(writer, target)]
    if len(given) < 2:
        raise DataError("there is no source to look at; give at least one character.")
    if len(given) > room or len(wanted) >= room:
        notes.append(f"source or target have more than the {room:,} tokens that can be shown: you see their beginnings")
        given, wanted = np.append(given[: room - 1], reader.boundary), wanted[: room - 1]
    framed = np.concatenate([[writer.boundary], wanted, [writer.boundary]])
    batch = PairStore(Rows.of([given]), Rows.of([framed]), []).batch(np.arange(1)).to(device_of(model))
    pieces = [START, *pieces_in(writer, wanted.tolist(), target), END]
    reading = read_batch(model, writer, batch, pieces, framed.tolist(), notes)
    return replace(reading, source=[*pieces_in(reader, given[:-1].tolist(), source.strip()), END])


def read_copy(model: LanguageModel, tokenizer: Tokenizer, text: str, *, max_tokens: int) -> Reading:
    """A row, and behind its end the same row again, which alone has a cost: what the model would say of the first was
    never asked of it."""
    store, notes = build_row_store([text], tokenizer, max_tokens), list(unseen_in(tokenizer, text))
    if not len(store.rows):
        raise DataError("there is no text to look at; give at least one character.")
    if len(store.rows) > 1:
        notes.append(f"the row has more than {max_tokens:,} tokens: the first {max_tokens:,} are read")
    batch = store.batch(np.arange(1)).to(device_of(model))
    ids = [*batch.inputs["tokens"].ids[0].tolist(), tokenizer.boundary]
    once = pieces_in(tokenizer, ids[1 : len(ids) // 2], text)
    reading = read_batch(model, tokenizer, batch, [START, *once, END, *once, END], ids, notes)
    is_scored = batch.targets["tokens"].is_scored[0].tolist()
    bits = [cost if counts else math.nan for cost, counts in zip(reading.bits, [False, *is_scored], strict=True)]
    expected = [options if counts else [] for options, counts in zip(reading.expected, is_scored, strict=True)]
    return replace(reading, bits=bits, expected=expected, unit="bits a token, written again")


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """What each token looks like in a text: words with the space behind them that a tokenizer of words leaves out."""
    pieces = [tokenizer.piece(token) for token in ids]
    if isinstance(tokenizer, WordPieceTokenizer):
        ends = [*(tokenizer.starts_word(token) for token in ids[1:]), True]
        pieces = [piece.removeprefix(GOES_ON) for piece in pieces]
        return [f"{piece} " if is_end and piece != "\n" else piece for piece, is_end in zip(pieces, ends, strict=False)]
    if tokenizer.kind != "word":
        return pieces
    return [piece if piece.endswith("\n") else f"{piece} " for piece in pieces]


def pieces_in(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[str]:
    """The same where the text is at hand: words that are not in the vocabulary as they were written, with a mark."""
    pieces = pieces_of(tokenizer, ids)
    if not isinstance(tokenizer, WordTokenizer):
        return pieces
    return [
        f"{word}{UNKNOWN_MARK} " if token == tokenizer.unknown else piece
        for piece, token, word in zip(pieces, ids, tokenizer.split(text), strict=False)  # the end may be cut off
    ]


def known_before(batch: Batch) -> dict[str, Any]:
    """What a text is written about, whole before its first token; nothing of running text."""
    return {name: field for name, field in batch.inputs.items() if name != "tokens"}


def prompt_of(batch: Batch) -> Batch:
    """What is known before the first token: the boundary, or the source, or the picture."""
    if known := known_before(batch):
        return Batch(known, {})
    return Batch({"tokens": Tokens(batch.inputs["tokens"].ids[:, :1])}, {})


def later_steps(reading: Reading, count: int) -> Sequence[int]:
    """About `count` steps of the later half, where there is a past to look back at."""
    T = reading.num_scored
    return sorted({int(place) for place in np.linspace(T // 2, T - 1, min(count, T))})


@torch.inference_mode()
def read_batch(
    model: LanguageModel, tokenizer: Tokenizer, batch: Batch, pieces: list[str], ids: list[int], notes: list[str]
) -> Reading:
    """What each token cost, and what was expected instead: by `score`, and by `start` and `step`."""
    with evaluating(model):
        with record(model) as trace:
            log_probs, _ = model.score(batch)
        expected = _expected(model, tokenizer, batch)
    bits = (-log_probs[0].double().cpu() / BIT).tolist()[: len(pieces) - 1]
    return Reading(pieces, ids, [math.nan, *bits], expected, batch, trace, notes=notes)


def _expected(model: LanguageModel, tokenizer: Tokenizer, batch: Batch) -> list[list[Expected]]:
    """By `start` and `step`, which every family has."""
    inputs, found = batch.inputs["tokens"].ids, []
    log_probs, state = model.start(prompt_of(batch))
    for t in range(inputs.shape[1]):
        found.append(most_probable(log_probs[0], tokenizer, ends=bool(known_before(batch))))
        if t + 1 < inputs.shape[1]:
            log_probs, state = model.step(inputs[:, t + 1], state)
    return found


def most_probable(log_probs: Tensor, tokenizer: Tokenizer, *, ends: bool) -> list[Expected]:
    values, tokens = log_probs.double().topk(min(NUM_EXPECTED, len(log_probs)))
    return [
        Expected(END if ends and token == tokenizer.boundary else tokenizer.piece(token), p)
        for token, p in zip(tokens.tolist(), values.exp().tolist(), strict=True)
    ]


def framed_row(
    model: HeadedModel, spec: TokenSpec, text: str, *, max_tokens: int
) -> tuple[Tensor, list[str], list[str]]:
    """A text as an encoder reads it, between the tokens that begin and end a row: ids (T,), pieces, and what to say."""
    ids, notes = spec.tokenizer.encode(text), list(unseen_in(spec.tokenizer, text))
    if not len(ids):
        raise DataError("there is no text to look at; give at least one character.")
    room = max_tokens if model.context is None else min(max_tokens, model.context - 2)
    if len(ids) > room:
        notes.append(f"the text has {len(ids):,} tokens: the first {room:,} are shown")
        ids = ids[:room]
    row = torch.tensor([spec.begin, *ids.tolist(), spec.separator], device=device_of(model))
    return row, [START, *pieces_in(spec.tokenizer, ids.tolist(), text), END], notes
