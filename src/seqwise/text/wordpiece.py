"""WordPiece (Schuster & Nakajima 2012; as BERT has it, Devlin et al. 2019), by the `tokenizers` library.

A text is cut at white space and around every mark; a word is written with the longest piece that it begins with, then
with the longest that what is left begins with: "unaffable" -> "un", "##aff", "##able". Pieces that go on with a word
begin with "##". A word with a character that no piece has is one [UNK].

    [PAD] [UNK] [CLS] [SEP] [MASK]       special tokens: fill, unknown, before a text, behind it, to be guessed

A newline is [SEP], the boundary: as in pretraining, it stands where one line ends and the next begins. Which pieces
there are is learned by joining the most frequent neighbours, as byte pairs are; BERT's own vocabularies were learned by
likelihood, and are read from their vocab.txt.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from .by_line import (
    UnknownSpelled,
    check_ids,
    decode_by_line,
    encode_by_line,
    encode_by_line_with_offsets,
    writable,
)
from .encoded import Encoded
from .word_counts import count_words

PADDING, UNKNOWN, BEGIN, SEPARATOR, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = {"begin": BEGIN, "separator": SEPARATOR, "mask": MASK, "padding": PADDING, "unknown": UNKNOWN}
GOES_ON = "##"
LONGEST_WORD = 100  # characters; longer ones are unknown, as in BERT
MAX_CHARACTERS = 1000  # that a learned vocabulary has; words with rarer ones are unknown
REPEATED = 10_000  # times that a word is handed to the library at once


class WordPieceTokenizer:
    kind = "wordpiece"

    def __init__(self, backend: Backend, *, separator: str = SEPARATOR):
        """`separator`: the token that newlines are read as."""
        vocab = backend.get_vocab()
        check_ids(vocab)
        if not isinstance(backend.model, models.WordPiece):
            raise ValueError("this is not a tokenizer of WordPiece")
        self._backend, self._separator, self._vocab = backend, separator, vocab
        for needed in (separator, backend.model.unk_token):
            if needed not in vocab:
                raise ValueError(f"the vocabulary has no {needed}")
        self.vocab_size = len(vocab)
        self.boundary, self.unknown = vocab[separator], vocab[backend.model.unk_token]
        self._pieces = sorted(vocab, key=vocab.__getitem__)
        self._goes_on = backend.model.continuing_subword_prefix
        self._added = set(backend.get_added_tokens_decoder())

    @classmethod
    def of_pieces(
        cls,
        pieces: Sequence[str],
        *,
        lower_case: bool = False,
        strip_accents: bool | None = None,
        split_chinese: bool = True,
        special: Iterable[str] = SPECIAL,
        unknown: str = UNKNOWN,
        separator: str = SEPARATOR,
    ) -> WordPieceTokenizer:
        """A vocabulary, in the order of its ids, as vocab.txt has it. Accents go with the capitals where not told."""
        vocab = {piece: number for number, piece in enumerate(pieces)}
        if len(vocab) < len(pieces):
            twice = next(piece for number, piece in enumerate(pieces) if vocab[piece] != number)
            raise ValueError(f"each piece must have one id; {twice} is there twice")
        model = models.WordPiece(vocab, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD)
        backend = Backend(model)
        backend.normalizer = _normalizer(lower_case, strip_accents, split_chinese)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece(prefix=GOES_ON, cleanup=True)
        backend.add_special_tokens([piece for piece in special if piece in vocab])
        return cls(backend, separator=separator)

    @classmethod
    def train(
        cls, blocks: Iterable[str], *, vocab_size: int = 8000, min_count: int = 2, lower_case: bool = False
    ) -> WordPieceTokenizer:
        """Neighbours seen fewer than `min_count` times are not joined."""
        counts = _count_words(blocks, lower_case=lower_case)
        alphabet = _alphabet(counts, room=max(1, (vocab_size - len(SPECIAL)) // 2))
        counts = Counter({word: count for word, count in counts.items() if alphabet.issuperset(word)})
        inside = {character for word in counts for character in word[1:]}
        # characters are named to the trainer: left to itself, it numbers those inside of words by chance
        single = [*sorted(alphabet), *(GOES_ON + character for character in sorted(inside))]
        backend = Backend(models.WordPiece(unk_token=UNKNOWN))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordPieceTrainer(
            vocab_size=max(vocab_size, len(SPECIAL) + len(single)),
            min_frequency=min_count,
            special_tokens=[*SPECIAL, *single],
            limit_alphabet=len(alphabet),
            continuing_subword_prefix=GOES_ON,
            show_progress=False,
        )
        backend.train_from_iterator(_repeated(counts), trainer)
        vocab = backend.get_vocab()
        return cls.of_pieces(sorted(vocab, key=vocab.__getitem__), lower_case=lower_case)

    @property
    def special(self) -> dict[str, int]:
        """The special tokens by role, those that the vocabulary has."""
        return {role: self._vocab[piece] for role, piece in ROLES.items() if piece in self._vocab}

    def encode(self, text: str) -> np.ndarray:
        return encode_by_line(self._backend, text, self.boundary)

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        return encode_by_line_with_offsets(self._backend, text, self.boundary)

    def measure(self, text: str) -> Encoded:
        """White space belongs to the piece after it; at the end of the text, to the last."""
        return self._unknown_spelled.measure(text, *self.encode_with_offsets(text))

    @functools.cached_property
    def _unknown_spelled(self) -> UnknownSpelled:
        words = [piece for token, piece in enumerate(self._pieces) if self._is_word(token)]
        return UnknownSpelled(self._backend, self.unknown, words)

    def _is_word(self, token: int) -> bool:
        return self.starts_word(token) and token not in self._added

    @functools.cached_property
    def usual_lengths(self) -> np.ndarray:
        """Words with the space before them; marks mostly have none."""
        lengths = [
            1
            if token == self.boundary
            else len(piece) + piece[:1].isalnum()
            if self.starts_word(token)
            else len(piece) - len(self._goes_on)
            for token, piece in enumerate(self._pieces)
        ]
        return np.array(lengths, dtype=np.int32)

    def starts_word(self, token: int) -> bool:
        """Whether a word begins with it; pieces up to the next that does are one word. Special tokens stand alone."""
        return token in self._added or not self._pieces[token].startswith(self._goes_on)

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        return "\n".join(decode_by_line(self._backend, ids, self.boundary))

    def piece(self, token: int) -> str:
        return "\n" if token == self.boundary else self._pieces[token]

    @property
    def backend(self) -> Backend:
        """The tokenizer of the library, which reads one line."""
        return self._backend

    def to_dict(self) -> dict[str, Any]:
        return {"backend": self._backend.to_str(), "separator": self._separator}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> WordPieceTokenizer:
        try:
            return cls(Backend.from_str(saved["backend"]), separator=saved["separator"])
        except Exception as error:
            raise ValueError(str(error)) from None


def _normalizer(
    lower_case: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> normalizers.BertNormalizer:
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lower_case
    )


def _count_words(blocks: Iterable[str], *, lower_case: bool) -> Counter[str]:
    """The words as they are cut: how often each is there."""
    normalizer, cutter, counts = _normalizer(lower_case), pre_tokenizers.BertPreTokenizer(), Counter[str]()
    for written, count in zip(*count_words(writable(block) for block in blocks), strict=True):
        for word, _ in cutter.pre_tokenize_str(normalizer.normalize_str(written)):
            counts[word] += int(count)
    return Counter({word: count for word, count in counts.items() if len(word) <= LONGEST_WORD})


def _alphabet(counts: Counter[str], *, room: int) -> set[str]:
    """The most frequent characters."""
    characters = Counter[str]()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    ordered = sorted(characters, key=lambda character: (-characters[character], character))
    return set(ordered[: min(room, MAX_CHARACTERS)])


def _repeated(counts: Counter[str]) -> Iterator[str]:
    """Each word as often as it is there: the library counts for itself."""
    for word, count in sorted(counts.items()):
        for start in range(0, count, REPEATED):
            yield f"{word} " * min(REPEATED, count - start)
