"""Pieces as Marian's translators have them: each side cuts texts by a SentencePiece model of its own (Kudo & Richardson
2018), and both number their pieces by one list.

    1. a language code at the beginning, ">>fr<<", is one piece
    2. the rest is cut by the library sentencepiece (an extra), which normalises it too
    3. the id of a piece is its place in the list, or that of <unk>

A text is read line by line; the boundary is the token that ends a text, </s>. None is learned here: models that are
imported bring them (interop/hf_marian.py). Marks such as </s> that stand in a text are cut as any text is.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..errors import ConfigError
from .by_line import lengths_by_ends, writable
from .encoded import Encoded
from .pieces import SPACE
from .spelling import Spelling

CODE_BEGINS, CODE_ENDS = ">>", "<<"
PIECES = 2  # field of the library's SentencePieceText
PIECE, BEGIN, END = 1, 4, 5  # fields of each piece in it; the last two count bytes


class MarianTokenizer:
    kind = "marian"

    def __init__(self, model: bytes, pieces: Sequence[str], *, boundary: int, unknown: int):
        """`model`: the content of a file .spm; `pieces` in the order of their ids, those of the other side too."""
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError:
            raise ConfigError('translators of Marian need sentencepiece: pip install ".[marian]"') from None
        if len(set(pieces)) != len(pieces):
            raise ValueError("a piece stands twice in the list")
        for token in (boundary, unknown):
            if not 0 <= token < len(pieces):
                raise ValueError(f"there is no token {token}; ids go from 0 to {len(pieces) - 1}")
        try:
            self._cutter = SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise ValueError(f"not a SentencePiece model: {error}") from None
        self.model, self.joint_pieces, self.vocab_size = model, list(pieces), len(pieces)
        self.boundary, self.unknown = boundary, unknown
        self._id_of = {piece: token for token, piece in enumerate(pieces)}

    def encode(self, text: str) -> np.ndarray:
        ids: list[int] = []
        for line in writable(text).split("\n"):
            code, rest = _without_code(line)
            pieces = [*([code] if code else []), *self._cutter.encode(rest, out_type=str)]
            ids += [*(self._id_of.get(piece, self.unknown) for piece in pieces), self.boundary]
        return np.array(ids[:-1], dtype=np.int64)  # behind the last line there is no newline

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        ids, spans, done = list[int](), list[tuple[int, int]](), 0
        for line in writable(text).split("\n"):
            code, rest = _without_code(line)
            found = [(code, 0, len(code))] if code else []
            found += [(piece, len(code) + begin, len(code) + end) for piece, begin, end in self._cuts(rest)]
            ids += [*(self._id_of.get(piece, self.unknown) for piece, _, _ in found), self.boundary]
            spans += [
                *((done + begin, done + end) for _, begin, end in found),
                (done + len(line), done + len(line) + 1),
            ]
            done += len(line) + 1
        offsets = np.array(spans[:-1], dtype=np.int64).reshape(-1, 2)
        offsets[:, 0] = np.minimum(offsets[:, 0], np.maximum(0, offsets[:, 1] - 1))
        offsets[:, 1] = np.maximum(offsets[:, 1], np.minimum(offsets[:, 0] + 1, len(text)))  # a space put before a text
        return np.array(ids[:-1], dtype=np.int64), offsets

    def _cuts(self, text: str) -> Iterator[tuple[str, int, int]]:
        """The pieces of a line, and which of its characters each stands for, from and to."""
        before = np.cumsum([0, *(len(character.encode()) for character in text)])  # bytes before each character
        for number, piece in _fields(self._cutter.encode(text, out_type="serialized_proto")):
            if number == PIECES:
                told = dict(_fields(cast(bytes, piece)))
                begin, end = (int(np.searchsorted(before, int(told.get(name, 0)))) for name in (BEGIN, END))
                yield cast(bytes, told[PIECE]).decode(), begin, end

    def measure(self, text: str) -> Encoded:
        ids, spans = self.encode_with_offsets(text)
        places = np.flatnonzero(ids == self.unknown)
        written = [text[begin:end] for begin, end in spans[places].tolist()]
        return Encoded(ids, lengths_by_ends(spans, len(text)), places, self._spelling.nats(written))

    @functools.cached_property
    def _spelling(self) -> Spelling:
        return Spelling([piece.lstrip(SPACE) for piece in self.joint_pieces])

    @functools.cached_property
    def usual_lengths(self) -> np.ndarray:
        lengths = [1 if token == self.boundary else len(piece) for token, piece in enumerate(self.joint_pieces)]
        return np.array(lengths, dtype=np.int32)

    def starts_word(self, token: int) -> bool:
        """Whether a word begins with it."""
        return token == self.boundary or self.joint_pieces[token].startswith((SPACE, CODE_BEGINS))

    def decode(self, ids: Sequence[int] | np.ndarray) -> str:
        lines: list[str] = []
        written, pieces = "", list[str]()
        for token in [*map(int, ids), self.boundary]:
            if token not in (self.boundary, self.unknown):
                pieces.append(self.joint_pieces[token])
                continue
            written, pieces = written + self._cutter.decode_pieces(pieces), []
            if token == self.unknown:
                written += f"{self.joint_pieces[token]} "  # as transformers writes it
            else:
                lines.append(written.replace(SPACE, " ").strip())
                written = ""
        return "\n".join(lines)

    def piece(self, token: int) -> str:
        return "\n" if token == self.boundary else self.joint_pieces[token].replace(SPACE, " ")

    def to_dict(self) -> dict[str, Any]:
        model = base64.b64encode(self.model).decode("ascii")
        return {"model": model, "pieces": self.joint_pieces, "boundary": self.boundary, "unknown": self.unknown}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> MarianTokenizer:
        model = base64.b64decode(saved["model"], validate=True)
        return cls(model, saved["pieces"], boundary=saved["boundary"], unknown=saved["unknown"])


def _without_code(line: str) -> tuple[str, str]:
    """A language code at the beginning, and what follows it."""
    end = line.find(CODE_ENDS) if line.startswith(CODE_BEGINS) else -1
    return ("", line) if end < 0 else (line[: end + len(CODE_ENDS)], line[end + len(CODE_ENDS) :])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and contents of the fields of a protobuf message: the one form of offsets that all versions of the
    library give."""
    done = 0

    def varint() -> int:
        nonlocal done
        value, shift = 0, 0
        while True:
            byte = message[done]
            done += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while done < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
            continue
        size = varint() if kind == 2 else 4  # text, or a float
        yield number, message[done : done + size]
        done += size
