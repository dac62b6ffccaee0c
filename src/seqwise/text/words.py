"""Words: one token per word, rare ones become <unk>. Lines end in the boundary token.

A text that is already tokenised ("the cat , he said") is split at white space only. In ordinary prose, where commas
stick to words, punctuation becomes tokens of its own. Which of the two it is, `train` sees from the text itself.
Contractions are one word ("doesn't"), or, where asked for, two as in the Penn Treebank ("does n't", "it 's"): so prose
and texts that somebody has tokenised that way share their words.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..kernels.word_slots import BOUNDARY, UNKNOWN
from .encoded import Encoded
from .spelling import Spelling
from .word_counts import count_words
from .word_index import WordIndex

LONG = 1000  # characters that are worth the compiled loop
UNKNOWN_WORD = "<unk>"
PROSE = re.compile(r"<unk>|\w+(?:['’]\w+)*|[^\w\s]|\n")  # a word, a mark, or the end of the line
ENDINGS = r"['’](?:s|re|ve|ll|d|m)\b"  # of contractions; before n't the word loses its n: ca n't
CONTRACTED = re.compile(
    rf"<unk>|n['’]t\b|\w+?(?=n['’]t\b)|{ENDINGS}|\w+(?:(?!{ENDINGS})['’]\w+)*|[^\w\s]|\n", re.IGNORECASE
)  # as PROSE, with contractions in two parts
SPACE_WITHIN = re.compile(rf"(?<=\w) (?=n['’]t\b|{ENDINGS})", re.IGNORECASE)
TOKENISED = re.compile(r"[^\s]+|\n")
GLUED_MARK = re.compile(r"\w[.,;:!?](?=\s)")
SPACE_BEFORE = re.compile(r" (?=[.,;:!?)\]}%])|(?<=[(\[{]) ")


class WordTokenizer:
    kind = "word"
    boundary = BOUNDARY
    unknown = UNKNOWN

    def __init__(
        self,
        words: list[str],
        *,
        lower_case: bool = False,
        split_punctuation: bool = False,
        split_contractions: bool = False,
    ):
        """`words` in the order of their ids, after <unk> and the boundary."""
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("the vocabulary must be a list of words")
        self.words = words
        self.lower_case, self.split_punctuation = lower_case, split_punctuation
        self.split_contractions = split_contractions and split_punctuation
        self.pieces = [UNKNOWN_WORD, "\n", *words]
        self.vocab_size = len(self.pieces)
        self._id_of = {piece: index for index, piece in enumerate(self.pieces)}
        if len(self._id_of) < self.vocab_size:
            raise ValueError("each word must have one id")
        self._pattern = _pattern(split_punctuation, split_contractions)

    @classmethod
    def train(
        cls,
        blocks: Iterable[str],
        *,
        min_count: int = 1,
        vocab_size: int | None = None,
        lower_case: bool = False,
        split_punctuation: bool | None = None,
        split_contractions: bool = False,
    ) -> WordTokenizer:
        """Words by falling count. `split_punctuation=None` decides by how many words have a mark glued to them."""
        blocks = iter(blocks)
        first = next(blocks, "")
        if split_punctuation is None:
            split_punctuation = len(GLUED_MARK.findall(first)) > 0.02 * max(1, len(first.split()))
        texts = (block.lower() if lower_case else block for block in chain([first], blocks))
        if split_punctuation:
            pattern = _pattern(split_punctuation, split_contractions)
            counts = Counter(word for text in texts for word in pattern.findall(text))
            kept = sorted((w for w in counts if counts[w] >= min_count), key=lambda word: (-counts[word], word))
        else:
            kept = count_words(texts, min_count=min_count)[0]
        kept = [word for word in kept if word not in ("\n", UNKNOWN_WORD)]
        if vocab_size is not None:
            kept = kept[: max(0, vocab_size - 2)]
        return cls(
            kept,
            lower_case=lower_case,
            split_punctuation=bool(split_punctuation),
            split_contractions=split_contractions,
        )

    def encode(self, text: str) -> np.ndarray:
        read = self._as_read(text)
        if self.split_punctuation or len(read) < LONG:  # where each stands need not be known
            return np.array([self._id_of.get(word, UNKNOWN) for word in self._pattern.findall(read)], dtype=np.int64)
        return self._read(read)[0]

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        read = self._as_read(text)
        ids, spans = self._read(read)
        return ids, self._as_written(spans, read, text)

    def measure(self, text: str) -> Encoded:
        """White space belongs to the word after it; at the end of the text, to the last."""
        read = self._as_read(text)
        ids, spans = self._read(read)
        unknown = np.flatnonzero(ids == UNKNOWN)
        words = [read[begin:end] for begin, end in spans[unknown].tolist()]
        is_spelled = np.array([word != UNKNOWN_WORD for word in words], dtype=bool)
        spelling = self._spelling.nats([word for word in words if word != UNKNOWN_WORD]) if words else np.zeros(0)
        ends = self._as_written(spans, read, text)[:, 1]
        lengths = np.diff(ends, prepend=0).astype(np.int32)
        if len(lengths):
            lengths[-1] += len(text) - ends[-1]
        return Encoded(ids, lengths, unknown[is_spelled], spelling)

    @functools.cached_property
    def usual_lengths(self) -> np.ndarray:
        """With the space before it."""
        return np.array([len(piece) + (piece != "\n") for piece in self.pieces], dtype=np.int32)

    @functools.cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.words)

    def _as_written(self, spans: np.ndarray, read: str, text: str) -> np.ndarray:
        """Places in what was read, (T, 2), as places in the text: a few characters have longer small letters."""
        if len(read) == len(text):
            return spans
        ends = np.cumsum([len(char.lower()) for char in text])
        begins = np.searchsorted(ends, spans[:, 0], side="right")
        return np.stack([begins, np.searchsorted(ends, spans[:, 1]) + 1], axis=1)

    def _as_read(self, text: str) -> str:
        return text.lower() if self.lower_case else text

    def _read(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The ids (T,), and where each begins and ends (T, 2)."""
        if not self.split_punctuation and len(text) >= LONG:
            found = self._index.encode(text)
            if found is not None:
                return found
        return self._read_plainly(text)

    @functools.cached_property
    def _index(self) -> WordIndex:
        return WordIndex(self.pieces)

    def _read_plainly(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """What the index does too, for texts that are short, have rare kinds of white space, or are prose."""
        found = list(self._pattern.finditer(text))
        ids = np.fromiter((self._id_of.get(m.group(), UNKNOWN) for m in found), dtype=np.int64, count=len(found))
        return ids, np.array([m.span() for m in found], dtype=np.int64).reshape(-1, 2)

    def knows(self, word: str) -> bool:
        return word in self._id_of

    def with_words(self, words: Iterable[str]) -> WordTokenizer:
        """The same with more words, behind those that it has."""
        more = [word for word in words if not self.knows(word)]
        return WordTokenizer([*self.words, *more], lower_case=self.lower_case, split_punctuation=self.split_punctuation)

    def split(self, text: str) -> list[str]:
        """The words as they were written, one for each token."""
        return self._pattern.findall(text)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        lines: list[str] = []
        words: list[str] = []
        for token in ids:
            if token == BOUNDARY:
                lines.append(" ".join(words) + "\n")
                words = []
            else:
                words.append(self.pieces[token])
        text = "".join(lines) + " ".join(words)
        text = SPACE_WITHIN.sub("", text) if self.split_contractions else text
        return SPACE_BEFORE.sub("", text) if self.split_punctuation else text

    def piece(self, token: int) -> str:
        return self.pieces[token]

    def to_dict(self) -> dict[str, Any]:
        saved = {"words": self.words, "lower_case": self.lower_case, "split_punctuation": self.split_punctuation}
        return {**saved, "split_contractions": True} if self.split_contractions else saved

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> WordTokenizer:
        return cls(**saved)


def _pattern(split_punctuation: bool, split_contractions: bool) -> re.Pattern[str]:
    """What a token looks like."""
    if not split_punctuation:
        return TOKENISED
    return CONTRACTED if split_contractions else PROSE
