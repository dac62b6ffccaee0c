"""Specs: what the fields of a run are made of. Each knows its size, encodes what people write, decodes what models
answer, and saves itself. SPECS is the table.

Shapes: T tokens of a row, W words, N labels or words, K characters, C columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ..text import Tokenizer, tokenizer_from_dict

MAX_WORD_CHARACTERS = 24  # that a word is spelled with
FITS = ("contain", "cover", "stretch")


class Spec(Protocol):
    kind: ClassVar[str]
    """Of field, and the name of its row in SPECS."""

    @property
    def size(self) -> int:
        """How many a model has to tell apart: tokens, columns, labels."""
        ...

    def encode(self, written: Any) -> np.ndarray: ...
    def decode(self, encoded: Any) -> Any: ...
    def describe(self) -> str:
        """For people: "Tokenizer: char, 65 tokens"."""
        ...

    def to_dict(self) -> dict[str, Any]: ...
    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Any: ...


@dataclass(frozen=True)
class TokenSpec:
    """Text as tokens."""

    kind: ClassVar[str] = "tokens"
    tokenizer: Tokenizer
    special: Mapping[str, int] = field(default_factory=dict)
    """Tokens that no text has, by role: their ids, which may lie behind those of the tokenizer.

    begin        [CLS], <s>       before a row of texts or words; where not set, the boundary
    separator    [SEP], </s>      behind each text, or behind the words; where not set, the boundary
    between      </s>             a second one between two texts, where a model is used to that (RoBERTa)
    mask         [MASK], <mask>   in the place of a token that is to be guessed
    padding      [PAD], <pad>     behind the end of a row
    unknown      [UNK], <unk>     in the place of what the vocabulary does not have
    """
    alphabet: str = ""
    """Characters that words are spelled with, beside their token; empty where they are not spelled."""
    num_texts: int = 1
    """That stand in a row, one behind the other: segments tell which of them a token belongs to."""

    @property
    def size(self) -> int:
        return max([self.tokenizer.vocab_size, *(token + 1 for token in self.special.values())])

    @property
    def boundary(self) -> int:
        """The token that ends a line, and stands before the first."""
        return self.tokenizer.boundary

    @property
    def begin(self) -> int:
        """The token before a row of texts or words."""
        return self.special.get("begin", self.boundary)

    @property
    def unwritten(self) -> int | None:
        """A token that begins a row and is never an answer; None where that is the boundary."""
        return None if self.begin == self.boundary else self.begin

    @property
    def separator(self) -> int:
        """The token behind each text of a row."""
        return self.special.get("separator", self.boundary)

    def behind(self, *, is_last: bool) -> np.ndarray:
        """What stands behind a text of a row: one token, or two where another text follows and a model wants that."""
        between = [self.special["between"]] if "between" in self.special and not is_last else []
        return np.array([self.separator, *between])

    def encode(self, written: str) -> np.ndarray:
        return self.tokenizer.encode(written)

    def encode_texts(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Texts that belong together as one row, [CLS] a [SEP] b [SEP], or with the boundary before, between and behind
        them; and which of the texts each token belongs to. Shapes: (T,), (T,)."""
        pieces, segments = [np.array([self.begin])], [np.array([0])]
        for number, text in enumerate(texts):
            pieces += [self.tokenizer.encode(text), self.behind(is_last=number == len(texts) - 1)]
            segments.append(np.full(len(pieces[-2]) + len(pieces[-1]), number))
        return np.concatenate(pieces), np.concatenate(segments)

    def encode_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Words as one row, with what begins and ends it, or the boundary; and where the first piece of each stands.

        A word of which the tokenizer makes nothing (white space) is read as the boundary. Shapes: (T,), (W,).
        """
        pieces = [np.array([self.begin])]
        for word in words:
            found = self.tokenizer.encode(word)
            pieces.append(found if len(found) else np.array([self.separator]))
        steps = np.cumsum([len(piece) for piece in pieces])
        return np.concatenate([*pieces, self.behind(is_last=True)]), steps[:-1] if len(words) else steps[:0]

    def spell(self, words: Sequence[str]) -> np.ndarray:
        """Characters of each word, (N, K): 0 behind the last, 1 for one that the alphabet does not have, then those of
        the alphabet. A word of more than K characters keeps its beginning and its end."""
        place = {character: number for number, character in enumerate(self.alphabet, start=2)}
        half, found = MAX_WORD_CHARACTERS // 2, np.zeros((len(words), MAX_WORD_CHARACTERS), dtype=np.int16)
        for row, word in enumerate(words):
            kept = word if len(word) <= MAX_WORD_CHARACTERS else word[:half] + word[-half:]
            found[row, : len(kept)] = [place.get(character, 1) for character in kept]
        return found

    @property
    def num_characters(self) -> int:
        """Ids that `spell` gives; 0 where words are not spelled."""
        return len(self.alphabet) + 2 if self.alphabet else 0

    def decode(self, encoded: Sequence[int] | np.ndarray) -> str:
        """Special tokens stand for nothing that is written, but for one that is the newline, or that says unknown."""
        special = set(self.special.values()) - {self.boundary, self.special.get("unknown")}
        return self.tokenizer.decode([token for token in encoded if token not in special] if special else encoded)

    def describe(self) -> str:
        return f"Tokenizer: {self.tokenizer.kind}, {self.size:,} tokens"

    def to_dict(self) -> dict[str, Any]:
        more: dict[str, Any] = {"alphabet": self.alphabet} if self.alphabet else {}
        more |= {"num_texts": self.num_texts} if self.num_texts > 1 else {}
        return {"kind": self.tokenizer.kind, **self.tokenizer.to_dict(), "special": dict(self.special), **more}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> TokenSpec:
        special = {str(role): int(token) for role, token in saved.pop("special", {}).items()}
        alphabet, num_texts = str(saved.pop("alphabet", "")), int(saved.pop("num_texts", 1))
        return cls(tokenizer_from_dict(saved), special, alphabet, num_texts)


@dataclass(frozen=True)
class ValueSpec:
    """Columns of numbers, as models see them: mean zero, variance one in the training part."""

    kind: ClassVar[str] = "values"
    columns: list[str]
    mean: np.ndarray  # (C,)
    scale: np.ndarray  # (C,)

    @staticmethod
    def unscaled(columns: Sequence[str]) -> ValueSpec:
        """Numbers as they are."""
        return ValueSpec(list(columns), np.zeros(len(columns)), np.ones(len(columns)))

    @property
    def size(self) -> int:
        return len(self.columns)

    def encode(self, written: np.ndarray) -> np.ndarray:
        return (written - self.mean) / self.scale

    def decode(self, encoded: np.ndarray) -> np.ndarray:
        return encoded * self.scale + self.mean

    def describe(self) -> str:
        is_scaled = bool(self.mean.any() or (self.scale != 1).any())
        return f"Columns: {', '.join(self.columns)}" + is_scaled * ", each brought to mean zero and variance one"

    def to_dict(self) -> dict[str, Any]:
        return {"columns": self.columns, "mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> ValueSpec:
        columns = [str(name) for name in saved["columns"]]
        mean, scale = (np.array(saved[name], dtype=np.float64) for name in ("mean", "scale"))
        is_sound = mean.shape == scale.shape == (len(columns),) and np.isfinite(mean).all()
        if not is_sound or not (np.isfinite(scale).all() and (scale > 0).all()):
            raise ValueError("columns, mean and scale do not fit each other")
        return cls(columns, mean, scale)


@dataclass(frozen=True)
class LabelSpec:
    """One of a few names."""

    kind: ClassVar[str] = "label"
    names: list[str]
    counts: list[int] = field(default_factory=list)
    """How often each is right in the training part; none where that was not counted."""

    def __post_init__(self) -> None:
        if self.counts and len(self.counts) != len(self.names):
            raise ValueError("names and counts do not fit each other")

    @property
    def size(self) -> int:
        return len(self.names)

    def encode(self, written: Sequence[str]) -> np.ndarray:
        """-1 for a name that is not known: whatever is answered is wrong."""
        places = {name: place for place, name in enumerate(self.names)}
        return np.array([places.get(name, -1) for name in written], dtype=np.int64)

    def decode(self, encoded: Any) -> str:
        return self.names[int(encoded)]

    def describe(self) -> str:
        return f"Labels: {', '.join(self.names[:20])}" + (", …" if len(self.names) > 20 else "")

    def to_dict(self) -> dict[str, Any]:
        return {"names": self.names, **({"counts": self.counts} if self.counts else {})}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> LabelSpec:
        return cls([str(name) for name in saved["names"]], [int(count) for count in saved.get("counts", ())])


@dataclass(frozen=True)
class TagSpec(LabelSpec):
    """For each word, one of a few names."""

    kind: ClassVar[str] = "tags"
    scheme: str = ""
    """How tags mark where an entity begins and ends (IOB2); empty where each stands for itself."""

    def describe(self) -> str:
        marks = f" ({self.scheme})" if self.scheme else ""
        return f"Tags{marks}: {', '.join(self.names[:20])}" + (", …" if len(self.names) > 20 else "")

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "scheme": self.scheme}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> TagSpec:
        labels = LabelSpec.from_dict(saved)
        return cls(labels.names, labels.counts, str(saved["scheme"]))


@dataclass(frozen=True)
class NumberSpec:
    """A number, as models see it: mean zero and variance one in the training part, or as it is."""

    kind: ClassVar[str] = "number"
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.scale) and self.scale > 0):
            raise ValueError("mean and scale should be numbers, the scale above zero")

    @property
    def size(self) -> int:
        return 1

    def encode(self, written: Sequence[float]) -> np.ndarray:
        return ((np.array(written, dtype=np.float64) - self.mean) / self.scale).astype(np.float32)

    def decode(self, encoded: Any) -> str:
        return f"{float(encoded) * self.scale + self.mean:.6g}"

    def describe(self) -> str:
        return "Answer: a number"

    def to_dict(self) -> dict[str, Any]:
        return {} if (self.mean, self.scale) == (0.0, 1.0) else {"mean": self.mean, "scale": self.scale}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> NumberSpec:
        return cls(**saved)


@dataclass(frozen=True)
class SpanSpec:
    """A span of a passage: the characters from one place up to another."""

    kind: ClassVar[str] = "span"
    may_lack: bool = False
    """Whether some passages of the training part do not hold the answer, so that "none" is one (SQuAD 2.0)."""

    @property
    def size(self) -> int:
        """Where it begins, and where it ends."""
        return 2

    def encode(self, written: Sequence[tuple[int, int]]) -> np.ndarray:
        """(N, 2) from and to."""
        return np.array(written, dtype=np.int64).reshape(-1, 2)

    def decode(self, encoded: Any) -> tuple[int, int]:
        begin, end = (int(place) for place in encoded)
        return begin, end

    def describe(self) -> str:
        return f"Answer: a span of the passage{', or none' if self.may_lack else ''}"

    def to_dict(self) -> dict[str, Any]:
        return {"may_lack": self.may_lack}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> SpanSpec:
        return cls(bool(saved["may_lack"]))


@dataclass(frozen=True)
class ImageSpec:
    """Pictures of one size, or clips of them, as models see them: each channel has mean zero and variance one."""

    kind: ClassVar[str] = "images"
    height: int
    width: int
    mean: tuple[float, ...]
    """Of each channel in the training part, pixels going from 0 to 1: one of grey, three of colour."""
    scale: tuple[float, ...]
    fit: str = "contain"
    """How pictures of other shapes are brought to this one: all of it between bars (contain), its middle (cover), or
    out of proportion (stretch)."""
    max_frames: int = 1
    """Of a clip; longer ones are read at so many evenly spaced moments."""

    def __post_init__(self) -> None:
        is_sound = len(self.mean) == len(self.scale) in (1, 3) and all(map(math.isfinite, (*self.mean, *self.scale)))
        if not is_sound or min(self.scale) <= 0 or self.fit not in FITS:
            raise ValueError("channels, mean, scale and fit of pictures do not fit each other")
        if min(self.height, self.width, self.max_frames) < 1:
            raise ValueError("pictures have a height, a width and a frame at least")

    @property
    def size(self) -> int:
        """Channels."""
        return len(self.mean)

    def encode(self, written: np.ndarray) -> np.ndarray:
        """(H, W, C) pixels of the right size, from 0 to 255 -> as a batch has them, (C, H, W)."""
        return np.ascontiguousarray(written.transpose(2, 0, 1))

    def decode(self, encoded: np.ndarray) -> np.ndarray:
        """(C, H, W) -> (H, W, C), to be shown."""
        return np.ascontiguousarray(encoded.transpose(1, 2, 0))

    def describe(self) -> str:
        colour = "grey" if self.size == 1 else "colour"
        clips = f", up to {self.max_frames} frames" if self.max_frames > 1 else ""
        return f"Pictures: {self.width} x {self.height}, {colour} ({self.fit}){clips}"

    def to_dict(self) -> dict[str, Any]:
        saved = {"height": self.height, "width": self.width, "mean": list(self.mean), "scale": list(self.scale)}
        return {**saved, "fit": self.fit, "max_frames": self.max_frames}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> ImageSpec:
        mean, scale = (tuple(float(value) for value in saved[name]) for name in ("mean", "scale"))
        height, width, frames = (int(saved[name]) for name in ("height", "width", "max_frames"))
        return cls(height, width, mean, scale, str(saved["fit"]), frames)


@dataclass(frozen=True)
class RegionSpec:
    """Places of a picture that were found beforehand, each as a vector: things in boxes, or frames of a clip."""

    kind: ClassVar[str] = "regions"
    feature_dim: int
    """Numbers of each vector."""
    names: list[str] = field(default_factory=list)
    """What a region may show; none where nobody said."""
    has_boxes: bool = True
    max_regions: int = 36
    """Of a row; of more, the first are read, of a clip evenly spaced ones."""

    @property
    def size(self) -> int:
        return self.feature_dim

    def encode(self, written: np.ndarray) -> np.ndarray:
        """(N, F) vectors, as they are."""
        return np.asarray(written, dtype=np.float32)

    def decode(self, encoded: Any) -> str:
        """What a region shows."""
        return self.names[int(encoded)]

    def describe(self) -> str:
        boxes = "regions in boxes" if self.has_boxes else "frames"
        return f"Pictures: up to {self.max_regions} {boxes}, {self.feature_dim:,} numbers each"

    def to_dict(self) -> dict[str, Any]:
        return {
            "feature_dim": self.feature_dim,
            "names": self.names,
            "has_boxes": self.has_boxes,
            "max_regions": self.max_regions,
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> RegionSpec:
        names, sizes = [str(name) for name in saved["names"]], (int(saved["feature_dim"]), int(saved["max_regions"]))
        if min(sizes) < 1:
            raise ValueError("regions have a number at least")
        return cls(sizes[0], names, bool(saved["has_boxes"]), sizes[1])


SPECS: dict[str, type[Spec]] = {
    spec.kind: spec for spec in (TokenSpec, ValueSpec, LabelSpec, TagSpec, NumberSpec, SpanSpec, ImageSpec, RegionSpec)
}
S = TypeVar("S", bound=Spec)
