"""Text with words hidden: what a model that reads from both sides learns from (Devlin et al. 2019).

    read      ⟨begin⟩ the cat ⟨mask⟩ on ⟨end⟩ it was dog   ⟨end⟩
    wanted       -     -   -   sat   -    -   -  -  tired   -
    texts        0     0   0   0     0    0   1  1   1      1

Of the tokens of each row a share is drawn, 15 %. 80 % of these are read as ⟨mask⟩, 10 % as a token by chance, 10 % as
they are; all of them are asked for. A row is a window of the text (RoBERTa), or two texts (BERT): the second follows
the first in the same document or, half of the time, is one of another document; which of the two is asked too.
Documents are parted by blank lines or, where there are none, are lines. Static masks hide the same tokens of a row
each time it is read, dynamic ones draw anew. Where whole words are hidden, all pieces of a word are drawn together.

Shapes: N tokens of the text, R rows, B batch, T steps, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch

from ..errors import DataError
from .batch import Batch, Labels, Tokens
from .schema import TokenSpec
from .source import TextData
from .store import TokenStore

READ_AS_MASK, READ_AS_OTHER = 0.8, 0.1  # shares of the tokens that are hidden
FOLLOWS = 1
"""The label of a second text that follows the first; 0 of one from elsewhere."""
ORDER, HIDDEN, SECOND = range(3)
"""What is drawn from a seed: the order of the rows, the tokens that are hidden, the second texts."""


@dataclass(frozen=True)
class MaskedText(TextData):
    """Text whose words are hidden."""

    has_pairs: bool = True
    """Whether rows are two texts, of which the second may be from elsewhere."""

    @classmethod
    def of(cls, text: TextData, *, has_pairs: bool) -> MaskedText:
        return cls(**{field.name: getattr(text, field.name) for field in fields(text)}, has_pairs=has_pairs)


@dataclass(frozen=True)
class Masking:
    """What is hidden of each row."""

    share: float = 0.15
    """Of the tokens."""
    whole_words: bool = False
    """Whether all pieces of a word are hidden together."""
    is_static: bool = False
    """Whether the same tokens of a row are hidden each time."""


@dataclass(frozen=True)
class MaskedStore:
    """A part of a text, to be read with words hidden."""

    text: TokenStore
    spec: TokenSpec
    has_pairs: bool
    """Whether rows are two texts, of which the second may be from elsewhere."""

    def __len__(self) -> int:
        return len(self.text)

    def take(self, limit: int | None) -> MaskedStore:
        return MaskedStore(self.text.take(limit), self.spec, self.has_pairs)

    def rows(self, context: int) -> MaskedRows:
        """The text cut into rows of at most so many tokens."""
        return MaskedRows(self, context)


@dataclass(frozen=True)
class Hider:
    """Hides tokens of rows."""

    spec: TokenSpec
    never: np.ndarray
    """Tokens that are not hidden."""

    @classmethod
    def of(cls, spec: TokenSpec) -> Hider:
        return cls(spec, np.array(sorted({spec.boundary, spec.begin, spec.separator, spec.special["mask"]})))

    @cached_property
    def starts_word(self) -> np.ndarray:
        """(V,) bool: tokens that a word begins with; all where tokens are words."""
        tokenizer = self.spec.tokenizer
        starts = getattr(tokenizer, "starts_word", None)
        found = np.ones(self.spec.size, dtype=bool)
        if starts is not None:
            found[: tokenizer.vocab_size] = [starts(token) for token in range(tokenizer.vocab_size)]
        return found

    def hidden(self, row: np.ndarray, length: int, masking: Masking, random: np.random.Generator) -> np.ndarray:
        """(T,) bool."""
        can_hide = (np.arange(len(row)) < length) & ~np.isin(row, self.never)
        draws = random.random(len(row))
        if masking.whole_words:  # pieces of a word have the number that was drawn for its first
            begins = self.starts_word[row] | ~can_hide
            draws = draws[np.maximum.accumulate(np.where(begins, np.arange(len(row)), 0))]
        return can_hide & (draws < masking.share)

    def as_read(self, ids: np.ndarray, hidden: np.ndarray, random: np.random.Generator) -> np.ndarray:
        how = random.random(ids.shape)
        read = np.where(hidden & (how < READ_AS_MASK), self.spec.special["mask"], ids)
        others = random.integers(self.spec.tokenizer.vocab_size, size=ids.shape)
        return np.where(hidden & (how >= READ_AS_MASK) & (how < READ_AS_MASK + READ_AS_OTHER), others, read)


class MaskedRows:
    def __init__(self, store: MaskedStore, context: int):
        self.store, self.context = store, context
        spec = store.spec
        self.begin, self.end, self.mask = spec.begin, spec.separator, spec.special["mask"]
        self.ids = store.text.ids[1:]  # the boundary that stands first is no token of the text
        self.hider = Hider.of(spec)
        length = (context - 3) // 2 if store.has_pairs else context - 2
        self.starts, self.ends, self.documents = cut(self.ids, spec.boundary, length, apart=store.has_pairs)
        follows = np.flatnonzero(self.documents[1:] == self.documents[:-1]) if store.has_pairs else None
        if follows is not None and len(follows) == 0:
            raise DataError(
                "no document has two pieces of text, of which one could follow the other: documents are parted by "
                "blank lines, or else are lines. Give longer ones, or add --set data.next_sentence=false."
            )
        self.first = np.arange(len(self.starts)) if follows is None else follows
        """(R,): which of the pieces of the text each row begins with."""

    def __len__(self) -> int:
        return len(self.first)

    def batch(self, chosen: np.ndarray, masking: Masking, seed: tuple[int, ...]) -> Batch:
        """Rows by their numbers (B,). What is drawn for one follows from the seed and its number; static masks follow
        from the beginning of the seed alone."""
        random = np.random.default_rng((*seed, SECOND))
        first = self.first[chosen]
        second, follows = None, None
        if self.store.has_pairs:
            follows = random.random(len(chosen)) < 0.5
            second = np.where(follows, first + 1, self._elsewhere(first, random))
        ids, segments, lengths = self._joined(first, second)
        is_token = np.arange(ids.shape[1]) < lengths[:, None]
        drawn_by = seed[:1] if masking.is_static else seed
        hidden = np.stack(
            [
                self.hider.hidden(row, length, masking, np.random.default_rng((*drawn_by, HIDDEN, int(number))))
                for row, length, number in zip(ids, lengths, chosen, strict=True)
            ]
        )
        read = self.hider.as_read(ids, hidden, random)
        given = None if is_token.all() else torch.from_numpy(is_token)
        inputs = Tokens(torch.from_numpy(read), given, None if second is None else torch.from_numpy(segments))
        wanted = Tokens(torch.from_numpy(ids), given, is_scored=torch.from_numpy(hidden))
        targets: dict[str, Tokens | Labels] = {"tokens": wanted}
        if follows is not None:
            targets["next"] = Labels(torch.from_numpy(follows.astype(np.int64)))
        return Batch({"tokens": inputs}, targets)

    def _elsewhere(self, first: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """A piece of another document for each, where there is one."""
        drawn = random.integers(len(self.starts), size=len(first))
        for _ in range(8):
            same = self.documents[drawn] == self.documents[first]
            if not same.any():
                break
            drawn[same] = random.integers(len(self.starts), size=int(same.sum()))
        return drawn

    def _joined(self, first: np.ndarray, second: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows with their marks, (B, T), the text that each token belongs to, and lengths (B,)."""
        rows, texts = [], []
        for row in range(len(first)):
            pieces = [first[row]] if second is None else [first[row], second[row]]
            ids, belongs = [np.array([self.begin])], [np.zeros(1, dtype=np.int64)]
            for number, piece in enumerate(pieces):
                found = self.ids[self.starts[piece] : self.ends[piece]]
                ids += [found.astype(np.int64), np.array([self.end])]
                belongs.append(np.full(len(found) + 1, number))
            rows.append(np.concatenate(ids))
            texts.append(np.concatenate(belongs))
        lengths = np.array([len(row) for row in rows])
        padded = [np.zeros((len(rows), lengths.max()), dtype=np.int64) for _ in range(2)]
        for place, length in enumerate(lengths.tolist()):
            padded[0][place, :length], padded[1][place, :length] = rows[place], texts[place]
        return padded[0], padded[1], lengths


class MaskedBatches:
    """All rows in an order that is drawn anew for each epoch."""

    def __init__(self, store: MaskedStore, *, context: int, batch_size: int, masking: Masking, seed: int):
        self.rows, self.masking, self.seed = store.rows(context), masking, seed
        self.batch_size = min(batch_size, len(self.rows))
        self.steps_per_epoch = max(1, len(self.rows) // self.batch_size)

    def batch(self, step: int, model: object = None) -> Batch:
        epoch, place = divmod(step, self.steps_per_epoch)
        order = np.random.default_rng((self.seed, ORDER, epoch)).permutation(len(self.rows))
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size]
        return self.rows.batch(chosen, self.masking, (self.seed, step))


def cut(ids: np.ndarray, boundary: int, length: int, *, apart: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pieces of at most so many tokens: where each begins and ends, and its document. `apart`: those of a document are
    alike in length, and two or more where it has as many tokens; none has parts of two documents, nor the boundary at
    its ends. Else they are windows of the whole text."""
    if not apart:
        starts = np.arange(0, max(1, len(ids)), length)
        return starts, np.minimum(starts + length, len(ids)), np.zeros(len(starts), dtype=np.int64)
    is_end = ids == boundary
    blank = is_end & np.concatenate([[True], is_end[:-1]])  # a line with nothing in it
    ends = np.flatnonzero(blank if blank[1:].any() else is_end)
    edges = np.unique(np.concatenate([[0], ends + 1, [len(ids)]]))
    pieces: list[np.ndarray] = []
    for document, (begin, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        while end > begin and is_end[end - 1]:
            end -= 1
        num = min(end - begin, max(2, -(-(end - begin) // length)))  # two at least, so that one follows the other
        places = begin + np.arange(num + 1) * (end - begin) // max(1, num)
        pieces.append(np.stack([places[:-1], places[1:], np.full(num, document)]))
    starts, stops, documents = np.concatenate(pieces, axis=1)
    return starts, stops, documents
