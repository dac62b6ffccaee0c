"""What turns data into what a model reads, and its answers back: a run's vocab folder.

tokenizer.json   text; of pairs the target
source.json      pairs: the source, where it is made of other tokens than the target
scaling.json     numbers: the columns with their mean and scale
labels.json      answers: the names of the labels, and how many tokens sequences are made of
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..config import parse_json
from ..errors import CheckpointError
from ..text import Tokenizer, load_tokenizer, save_tokenizer
from .numbers import Scaling


@dataclass(frozen=True)
class Vocab:
    tokenizer: Tokenizer | None = None
    """Of a text; of pairs that of the target."""
    source_tokenizer: Tokenizer | None = None
    """Pairs: of the source, the same as `tokenizer` where the vocabulary is joint."""
    scaling: Scaling | None = None
    labels: list[str] | None = None
    """None where nothing is labelled; empty where the answer is a number."""
    input_size: int = 0
    """Labelled sequences: how many tokens, or columns, they are made of."""
    inputs_are_tokens: bool = False

    @property
    def is_joint(self) -> bool:
        return self.source_tokenizer is self.tokenizer

    def save(self, folder: Path) -> None:
        if self.tokenizer is not None:
            save_tokenizer(self.tokenizer, folder / "tokenizer.json")
        if self.source_tokenizer is not None and not self.is_joint:
            save_tokenizer(self.source_tokenizer, folder / "source.json")
        if self.scaling is not None:
            (folder / "scaling.json").write_text(json.dumps(self.scaling.to_dict()), encoding="utf-8")
        if self.labels is not None:
            saved = {"labels": self.labels, "input_size": self.input_size, "inputs_are_tokens": self.inputs_are_tokens}
            (folder / "labels.json").write_text(json.dumps(saved), encoding="utf-8")

    @staticmethod
    def load(folder: Path, task: str) -> Vocab:
        if task == "text":
            return Vocab(load_tokenizer(folder / "tokenizer.json"))
        if task == "pairs":
            target, other = load_tokenizer(folder / "tokenizer.json"), folder / "source.json"
            return Vocab(target, load_tokenizer(other) if other.exists() else target)
        path = folder / ("scaling.json" if task == "numbers" else "labels.json")
        try:
            saved = parse_json(path.read_text(encoding="utf-8"))
            if task == "numbers":
                return Vocab(scaling=Scaling.from_dict(saved))
            return Vocab(
                labels=[str(label) for label in saved["labels"]],
                input_size=int(saved["input_size"]),
                inputs_are_tokens=bool(saved["inputs_are_tokens"]),
            )
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckpointError(f"{path}: damaged: not what seqwise wrote. Restore it or train again.") from None
