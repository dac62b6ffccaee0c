"""The schema of a run: what its fields are made of, which of them a model reads, and which it should answer.

    text      tokens -> the next token                 Schema({"tokens": TokenSpec}, {"tokens": "tokens"},
                                                              {"tokens": Target("tokens", NEXT_TOKEN)})
    pairs     source, tokens so far -> the next token  two specs, or one that both sides share
    numbers   values -> the next values
    label     tokens or values -> a label, all labels that are right, or a number
    tags      tokens -> a tag for each word, and a label where rows have one
    reconstruct  tokens, then the same tokens so far -> the next of them

A spec knows its size, encodes what people write, decodes what models answer, and saves itself. The kind of a target
says what is asked for; every stage that differs by that has a table keyed by it (heads, sizes, scores, measures of a
comparison, readers of an inspection). A run keeps its schema in vocab/: schema.json, and a file for each spec.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ..config import parse_json
from ..errors import CheckpointError
from ..text import Tokenizer, tokenizer_from_dict

NEXT_TOKEN = "next_token"
"""Of a text: each token, those before it being known."""
NEXT_VALUES = "next_values"
"""Of a series: the numbers of each step, those before it being known."""
LABEL = "label"
"""Of a sequence: which of a few names it has."""
LABELS = "labels"
"""Of a sequence: which of a few names are right, any number of them."""
NUMBER = "number"
"""Of a sequence: a number."""
TAG = "tag"
"""Of each word of a sequence: which of a few names it has."""
SEQUENCE = "sequence"
"""Of a source: a sequence of tokens, one after the other."""
RECONSTRUCTION = "reconstruction"
"""Of a row of text: the same row again, token by token, behind its end."""
STARTS = (RECONSTRUCTION,)
"""What is asked for to learn a start for other models: it is judged by what goes on from it, and never ranked."""
ASKED_FOR = {
    NEXT_TOKEN: "the next token",
    NEXT_VALUES: "the next row",
    LABEL: "a label",
    LABELS: "all labels that are right",
    NUMBER: "a number",
    TAG: "a tag for each word",
    SEQUENCE: "a sequence",
    RECONSTRUCTION: "the same row again",
}
"""In a sentence."""


MAX_WORD_CHARACTERS = 24  # that a word is spelled with


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
            pieces.append(found if len(found) else np.array([self.boundary]))
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


SPECS: dict[str, type[Spec]] = {spec.kind: spec for spec in (TokenSpec, ValueSpec, LabelSpec, TagSpec, NumberSpec)}
S = TypeVar("S", bound=Spec)


@dataclass(frozen=True)
class Target:
    spec: str
    """The name of its spec."""
    head: str
    """What kind of answer is asked for, and so which head gives it: NEXT_TOKEN, LABEL, …"""
    weight: float = 1.0
    """Of its term in the objective."""

    def __post_init__(self) -> None:
        if not (isinstance(self.spec, str) and isinstance(self.head, str) and isinstance(self.weight, int | float)):
            raise TypeError("a target is told by the name of its spec, its kind and its weight")


@dataclass(frozen=True)
class Schema:
    specs: Mapping[str, Spec]
    inputs: Mapping[str, str]
    """Fields that a model reads, each with the name of its spec."""
    targets: Mapping[str, Target]
    """Fields that it should answer; the first one is what it is judged by."""

    def __post_init__(self) -> None:
        used = {*self.inputs.values(), *(target.spec for target in self.targets.values())}
        if unknown := used - self.specs.keys():
            raise ValueError(f"the schema has no spec {', '.join(sorted(unknown))}; it has {', '.join(self.specs)}")
        if not self.inputs or not self.targets:
            raise ValueError("a schema has at least one input and one target")

    @property
    def main(self) -> str:
        """The field by which a model is judged."""
        return next(iter(self.targets))

    @property
    def main_spec(self) -> Spec:
        """What its answers are made of."""
        return self.specs[self.targets[self.main].spec]

    @property
    def kind(self) -> str:
        """Of the main target: the key of every table."""
        return self.targets[self.main].head

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of all targets, each once."""
        return tuple(dict.fromkeys(target.head for target in self.targets.values()))

    def input(self, field_name: str, kind: type[S]) -> S:
        return self._spec(self.inputs[field_name], kind)

    def target(self, field_name: str, kind: type[S]) -> S:
        return self._spec(self.targets[field_name].spec, kind)

    def only_input(self) -> Spec:
        """Of what a model with one input reads."""
        (name,) = self.inputs.values()
        return self.specs[name]

    def _spec(self, name: str, kind: type[S]) -> S:
        found = self.specs[name]
        if not isinstance(found, kind):
            raise TypeError(f"{name} is made of {found.kind}, not of {kind.kind}")
        return found

    def save(self, folder: Path) -> None:
        for name, spec in self.specs.items():
            _write(folder / f"{name}.json", json.dumps(spec.to_dict()))
        saved = {
            "specs": {name: spec.kind for name, spec in self.specs.items()},
            "inputs": dict(self.inputs),
            "targets": {name: asdict(target) for name, target in self.targets.items()},
        }
        _write(folder / "schema.json", json.dumps(saved, indent=1))  # what has none is of an older format

    @staticmethod
    def load(folder: Path) -> Schema:
        with damage_named(folder / "schema.json") as saved:
            kinds = {str(name): SPECS[kind] for name, kind in saved["specs"].items()}
            inputs = {str(name): str(spec) for name, spec in saved["inputs"].items()}
            targets = {str(name): Target(**target) for name, target in saved["targets"].items()}
        specs: dict[str, Spec] = {}
        for name, kind in kinds.items():
            with damage_named(folder / f"{name}.json") as saved:
                specs[name] = kind.from_dict(saved)
        with damage_named(folder / "schema.json"):
            return Schema(specs, inputs, targets)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a folder of an older format may have a file of this name."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


class damage_named:
    """Reads a file of JSON; whatever is wrong with it, or with what is made of it, is told by its name."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Any:
        try:
            return parse_json(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be read: {error.strerror}.") from None
        except ValueError:
            raise damaged(self.path) from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        if isinstance(error, ValueError | LookupError | TypeError | AttributeError):
            raise damaged(self.path) from None


def damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path}: damaged: not what seqwise wrote. Restore it or train again.")


def text_schema(tokenizer: Tokenizer) -> Schema:
    """Running text: predict the next token."""
    return Schema({"tokens": TokenSpec(tokenizer)}, {"tokens": "tokens"}, {"tokens": Target("tokens", NEXT_TOKEN)})


def row_schema(tokenizer: Tokenizer) -> Schema:
    """Rows of text: write each again."""
    return Schema({"tokens": TokenSpec(tokenizer)}, {"tokens": "tokens"}, {"tokens": Target("tokens", RECONSTRUCTION)})


def series_schema(values: ValueSpec) -> Schema:
    """Columns of numbers: predict the next row."""
    return Schema({"values": values}, {"values": "values"}, {"values": Target("values", NEXT_VALUES)})


def pair_schema(source: Tokenizer, target: Tokenizer) -> Schema:
    """A source and its target, made of the same tokens where both have one tokenizer."""
    targets = {"tokens": Target("tokens", SEQUENCE)}
    if source is target:
        return Schema({"tokens": TokenSpec(target)}, {"source": "tokens", "tokens": "tokens"}, targets)
    specs = {"source": TokenSpec(source), "tokens": TokenSpec(target)}
    return Schema(specs, {"source": "source", "tokens": "tokens"}, targets)


def pair_tokenizers(schema: Schema) -> tuple[Tokenizer, Tokenizer]:
    """Of source and target."""
    return schema.input("source", TokenSpec).tokenizer, schema.target("tokens", TokenSpec).tokenizer


def answer_schema(inputs: TokenSpec | ValueSpec, answer: LabelSpec | NumberSpec, *, several: bool = False) -> Schema:
    """Sequences with one answer each: one of these labels, all that are right, or a number."""
    name = LABELS if several else answer.kind
    targets = {name: Target(answer.kind, LABELS if several else LABEL if isinstance(answer, LabelSpec) else NUMBER)}
    return Schema({inputs.kind: inputs, answer.kind: answer}, {inputs.kind: inputs.kind}, targets)


def tag_schema(inputs: TokenSpec, tags: TagSpec, label: LabelSpec | None = None) -> Schema:
    """Words with a tag each, by which a model is judged; and a label for the row, where there is one."""
    specs: dict[str, Spec] = {"tokens": inputs, "tags": tags}
    targets = {"tags": Target("tags", TAG)}
    if label is not None:
        specs["label"], targets["label"] = label, Target("label", LABEL)
    return Schema(specs, {"tokens": "tokens"}, targets)
