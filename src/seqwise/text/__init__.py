"""str -> ids -> str. Tokenizers behind one small interface; TOKENIZERS is the table of those that are learned here.

Every tokenizer has one `boundary` token: the newline. It ends a line, and since a line also begins where another
ended, it is what stands before the first token of a text. No other special token is needed for language models; for
others `special_of` tells those that a vocabulary brings, by role.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import ConfigError, did_you_mean
from .blocks import pieces_of as pieces_of
from .blocks import whole_blocks as whole_blocks
from .bpe import BPETokenizer
from .characters import CharTokenizer
from .encoded import Encoded as Encoded
from .marian import MarianTokenizer
from .pieces import PieceTokenizer
from .sentence_pieces import SentencePieceTokenizer
from .symbols import SymbolTokenizer
from .wordpiece import WordPieceTokenizer
from .words import UNKNOWN_WORD as UNKNOWN_WORD
from .words import WordTokenizer


class Tokenizer(Protocol):
    """Turns text into ids and back. `encode` may be given a text in blocks that end where `whole_blocks` cuts."""

    kind: str
    vocab_size: int
    boundary: int
    """The id of the newline, which also stands before the first token of a text."""

    @property
    def usual_lengths(self) -> np.ndarray:
        """Characters that each token mostly stands for, (V,)."""
        ...

    def encode(self, text: str) -> np.ndarray: ...  # int64 (T,)
    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The same, and which characters of the text each token stands for: (T, 2), from and to.

        A character that takes several tokens belongs to each of them.
        """
        ...

    def measure(self, text: str) -> Encoded: ...  # the same, and what each token stands for
    def decode(self, ids: Sequence[int] | np.ndarray) -> str: ...
    def piece(self, token: int) -> str: ...  # the text of one token, for people to read
    def to_dict(self) -> dict[str, Any]: ...


TOKENIZERS: dict[str, Any] = {
    "char": CharTokenizer,
    "word": WordTokenizer,
    "bpe": BPETokenizer,
    "wordpiece": WordPieceTokenizer,
}
NOT_LEARNED: dict[str, Any] = {
    "symbol": SymbolTokenizer,
    "pieces": PieceTokenizer,
    "sentencepiece": SentencePieceTokenizer,
    "marian": MarianTokenizer,
}
IN_WORDS = {"char": "characters", "word": "words", "bpe": "byte pairs", "wordpiece": "pieces of words"}
"""What a text is made of, by the kind of its tokenizer."""


def train_tokenizer(kind: str, blocks: Iterable[str], **settings: Any) -> Tokenizer:
    """Learn a vocabulary from blocks of training text, in memory that does not grow with the text."""
    if kind in NOT_LEARNED:
        raise ConfigError(
            f'the tokenizer "{kind}" is not learned here: a model that is imported brings its own. '
            f"Choose {', '.join(TOKENIZERS)}."
        )
    if kind not in TOKENIZERS:
        raise ConfigError(f'unknown tokenizer "{kind}". {did_you_mean(kind, TOKENIZERS)}')
    return TOKENIZERS[kind].train(whole_blocks(blocks), **settings)


def special_of(tokenizer: Tokenizer) -> dict[str, int]:
    """The special tokens that a vocabulary was learned with, by role: begin, separator, mask, padding, unknown."""
    return dict(getattr(tokenizer, "special", {}))


def tokenizer_from_dict(saved: dict[str, Any]) -> Tokenizer:
    """What `to_dict` and the kind gave; errors of Python's own where it is something else."""
    return {**TOKENIZERS, **NOT_LEARNED}[saved.pop("kind")].from_dict(saved)
