"""The schema of a run: what its fields are made of, which of them a model reads, and which it should answer.

    text      tokens -> the next token                 Schema({"tokens": TokenSpec}, {"tokens": "tokens"},
                                                              {"tokens": Target("tokens", NEXT_TOKEN)})
    pairs     source, tokens so far -> the next token  two specs, or one that both sides share
    numbers   values -> the next values
    label     tokens or values -> a label, all labels that are right, or a number
    tags      tokens -> a tag for each word, and a label where rows have one
    masked    tokens, some of them hidden -> those      and whether the second of two texts follows the first
    span      tokens of a question and of a passage -> where in the passage the answer stands
    reconstruct  tokens, then the same tokens so far -> the next of them
    vectors   tokens -> a vector of the whole text
    choice    tokens of a few rows -> which row is right
    seen      a picture -> a label; a picture and tokens of a question -> a label
    caption   a picture or a clip, tokens so far -> the next token
    picture   a picture -> the same picture, painted step by step

What fields are made of stands in specs.py. The kind of a target
says what is asked for; every stage that differs by that has a table keyed by it (heads, sizes, scores, measures of a
comparison, readers of an inspection). A run keeps its schema in vocab/: schema.json, and a file for each spec.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..text import Tokenizer, special_of
from .saved import damage_named as damage_named
from .saved import damaged as damaged
from .saved import write_whole
from .specs import SPECS, S
from .specs import ImageSpec as ImageSpec
from .specs import LabelSpec as LabelSpec
from .specs import NumberSpec as NumberSpec
from .specs import RegionSpec as RegionSpec
from .specs import SpanSpec as SpanSpec
from .specs import Spec as Spec
from .specs import TagSpec as TagSpec
from .specs import TokenSpec as TokenSpec
from .specs import ValueSpec as ValueSpec

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
MASKED_TOKEN = "masked_token"
"""Of a text: tokens that are hidden, all others being known."""
VECTOR = "vector"
"""Of a text: a vector that says what it is about. No answer is right or wrong: it is embedded with, or started from."""
SPAN = "span"
"""Of a question and a passage: where in the passage the answer stands, if it has one."""
CHOICE = "choice"
"""Of a few rows that belong together: which of them is right."""
CAPTION = "caption"
"""Of a picture or a clip: a sentence about it."""
PICTURE = "picture"
"""Of nothing: a picture, such as those that were seen."""
MASKED_REGION = "masked_region"
"""Of a picture whose regions some are hidden: their features."""
REGION_CLASS = "region_class"
"""Of the same: what they show."""
ALIGNMENT = "alignment"
"""Of words and regions: which of them belong together, as a plan by which one becomes the other."""
STARTS = (RECONSTRUCTION, MASKED_TOKEN, VECTOR)
"""What is asked for to learn a start for other models: it is judged by what goes on from it, and never ranked."""
BOUNDS = (PICTURE,)
"""What is scored by a bound: how far it is from a likelihood nobody knows, so that it is never ranked with others."""
UNRANKED = (*STARTS, *BOUNDS)
BESIDE = (MASKED_REGION, REGION_CLASS, ALIGNMENT)
"""What is learned beside another target, and is never the one that a model is judged by."""
ASKED_FOR = {
    NEXT_TOKEN: "the next token",
    NEXT_VALUES: "the next row",
    LABEL: "a label",
    LABELS: "all labels that are right",
    NUMBER: "a number",
    TAG: "a tag for each word",
    SEQUENCE: "a sequence",
    RECONSTRUCTION: "the same row again",
    MASKED_TOKEN: "hidden words",
    VECTOR: "a vector",
    SPAN: "a span of a passage",
    CHOICE: "a choice",
    CAPTION: "a caption",
    PICTURE: "a picture",
    MASKED_REGION: "hidden regions",
    REGION_CLASS: "what regions show",
    ALIGNMENT: "words beside regions",
}
"""In a sentence."""

SEQUENCES = (frozenset({"tokens"}), frozenset({"values"}), frozenset({"values", "tokens"}))
"""Kinds of spec that inputs are made of: text, numbers, or both."""
PICTURES = (frozenset({"images"}), frozenset({"regions"}))
"""Pictures alone, or what was found in them."""
PICTURES_AND_WORDS = (frozenset({"images", "tokens"}), frozenset({"regions", "tokens"}))


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

    @property
    def reads(self) -> frozenset[str]:
        """Kinds of spec that its inputs are made of."""
        return frozenset(self.specs[name].kind for name in self.inputs.values())

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
            write_whole(folder / f"{name}.json", json.dumps(spec.to_dict()))
        saved = {
            "specs": {name: spec.kind for name, spec in self.specs.items()},
            "inputs": dict(self.inputs),
            "targets": {name: asdict(target) for name, target in self.targets.items()},
        }
        write_whole(folder / "schema.json", json.dumps(saved, indent=1))  # what has none is of an older format

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


def text_schema(tokenizer: Tokenizer) -> Schema:
    """Running text: predict the next token."""
    return Schema({"tokens": TokenSpec(tokenizer)}, {"tokens": "tokens"}, {"tokens": Target("tokens", NEXT_TOKEN)})


def masked_schema(tokenizer: Tokenizer, *, next_sentence: bool) -> Schema:
    """Text with words hidden: which they are, and whether the second of two texts follows the first."""
    spec = with_mask(TokenSpec(tokenizer, special_of(tokenizer)))
    targets = {"tokens": Target("tokens", MASKED_TOKEN)}
    if not next_sentence:
        return Schema({"tokens": spec}, {"tokens": "tokens"}, targets)
    specs: dict[str, Spec] = {"tokens": spec, "next": LabelSpec(["elsewhere", "follows"])}
    return Schema(specs, {"tokens": "tokens"}, {**targets, "next": Target("next", LABEL)})


def seen_masked_schema(image: ImageSpec | RegionSpec, tokens: TokenSpec) -> Schema:
    """Pictures with sentences, parts of which are hidden: these, and whether picture and sentence belong together. Of
    regions their features too, and what they show where that is known. Weights as Chen et al. 2020 have them."""
    match = LabelSpec(["another picture", "the right picture"])
    specs: dict[str, Spec] = {"image": image, "tokens": tokens, "match": match}
    targets = {"tokens": Target("tokens", MASKED_TOKEN), "match": Target("match", LABEL)}
    if isinstance(image, RegionSpec):
        targets["image"] = Target("image", MASKED_REGION)
        if image.names:
            targets["shown"] = Target("image", REGION_CLASS)
    targets["alignment"] = Target("match", ALIGNMENT, 0.1)
    return Schema(specs, {"image": "image", "tokens": "tokens"}, targets)


def with_mask(spec: TokenSpec) -> TokenSpec:
    """With tokens that begin a row and stand for hidden ones; where the vocabulary has none, they stand behind it."""
    special = dict(spec.special)
    for role in ("begin", "mask"):
        special.setdefault(role, max([spec.tokenizer.vocab_size - 1, *special.values()]) + 1)
    return replace(spec, special=special)


def vector_schema(inputs: TokenSpec) -> Schema:
    """Texts: a vector of each."""
    return Schema({"tokens": inputs}, {"tokens": "tokens"}, {"vector": Target("tokens", VECTOR)})


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


def choice_schema(inputs: TokenSpec, numbers: LabelSpec) -> Schema:
    """Rows of what is asked and a choice each: the number of the right one."""
    return Schema({"tokens": inputs, "choice": numbers}, {"tokens": "tokens"}, {"choice": Target("choice", CHOICE)})


def tag_schema(inputs: TokenSpec, tags: TagSpec, label: LabelSpec | None = None) -> Schema:
    """Words with a tag each, by which a model is judged; and a label for the row, where there is one."""
    specs: dict[str, Spec] = {"tokens": inputs, "tags": tags}
    targets = {"tags": Target("tags", TAG)}
    if label is not None:
        specs["label"], targets["label"] = label, Target("label", LABEL)
    return Schema(specs, {"tokens": "tokens"}, targets)


def span_schema(inputs: TokenSpec, spans: SpanSpec) -> Schema:
    """A question and a passage, one behind the other: where in the passage the answer stands."""
    return Schema({"tokens": inputs, "span": spans}, {"tokens": "tokens"}, {"span": Target("span", SPAN)})


def seen_schema(image: ImageSpec | RegionSpec, answer: LabelSpec, question: TokenSpec | None = None) -> Schema:
    """Pictures, or pictures with a question each: one of these labels."""
    specs: dict[str, Spec] = {"image": image, answer.kind: answer}
    inputs = {"image": "image"}
    if question is not None:
        specs["tokens"], inputs["tokens"] = question, "tokens"
    return Schema(specs, inputs, {answer.kind: Target(answer.kind, LABEL)})


def seen_choice_schema(image: ImageSpec | RegionSpec, tokens: TokenSpec, numbers: LabelSpec) -> Schema:
    """Pictures, and rows of what is asked and a choice each: the number of the right one."""
    specs: dict[str, Spec] = {"image": image, "tokens": tokens, "choice": numbers}
    return Schema(specs, {"image": "image", "tokens": "tokens"}, {"choice": Target("choice", CHOICE)})


def caption_schema(image: ImageSpec | RegionSpec, tokens: TokenSpec) -> Schema:
    """Pictures or clips: a sentence about each."""
    inputs = {"image": "image", "tokens": "tokens"}
    return Schema({"image": image, "tokens": tokens}, inputs, {"tokens": Target("tokens", CAPTION)})


def picture_schema(image: ImageSpec) -> Schema:
    """Pictures: others of their kind."""
    return Schema({"image": image}, {"image": "image"}, {"image": Target("image", PICTURE)})
