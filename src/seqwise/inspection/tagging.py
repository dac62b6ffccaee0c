"""Tags of a row as the page shows them: how probable each is, what else it might have been, which words it rests on,
and which tag a CRF has learned to put behind which.

Shapes: W words, N tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..data.schema import Schema, TagSpec, TokenSpec
from ..layers.heads import CRFTagHead
from ..models.contract import Answerer, evaluating
from ..models.headed import HeadedModel
from .attribution import tag_occlusion
from .reading import Expected, Reading

MAX_WORDS = 200  # of which it is asked what each rests on: that takes their square
MAX_TAGS = 40  # of a map of transitions


@dataclass(frozen=True)
class TaggedWord:
    word: str
    tag: str
    kind: str
    """What the tag is of, whether it begins or goes on: B-city and I-city are both of a city; empty outside."""
    probability: float
    """Of the tag, whatever the others are."""
    options: list[Expected]
    """Most probable first."""
    wanted: str | None
    """None where it is not known."""
    bits: float
    """What the wanted tag cost; not a number where it is not known."""


@dataclass(frozen=True)
class Transitions:
    """Of a linear-chain CRF: what it adds where one tag follows another."""

    tags: list[str]
    """Those of the row, and the most frequent ones of the training part."""
    scores: np.ndarray
    """(N, N), nats: a row for the tag before, a column for the one behind; -inf where the scheme rules it out."""


@dataclass(frozen=True)
class Tagging:
    words: list[TaggedWord]
    scheme: str
    """How tags mark where an entity begins; empty where each stands for itself."""
    rests_on: np.ndarray | None
    """(W, W), nats: how much the log-odds of a word's tag (row) lose where a word (column) is hidden."""
    transitions: Transitions | None = None


def find_tagging(model: Answerer, schema: Schema, reading: Reading) -> Tagging:
    spec = schema.target(schema.main, TagSpec)
    with torch.inference_mode(), evaluating(model):
        found = model.predict(reading.batch)
    assert found.log_probs is not None
    tags = found.answers[0].cpu().numpy()
    probabilities = found.log_probs[0].double().exp().cpu().numpy()  # (W, N)
    wanted: Sequence[str | None] = reading.wanted or [None] * len(tags)
    words = [
        TaggedWord(
            "".join(reading.pieces[begin:end]).strip(),
            spec.decode(tag),
            kind_of_tag(spec.decode(tag), spec.scheme),
            float(probabilities[place, tag]),
            reading.expected[begin],
            wanted[place],
            reading.bits[begin],
        )
        for place, ((begin, end), tag) in enumerate(zip(reading.words, tags, strict=True))
    ]
    rests_on = None
    if len(words) <= MAX_WORDS:
        tokens = schema.input("tokens", TokenSpec)
        unknown = getattr(tokens.tokenizer, "unknown", tokens.boundary)
        rests_on = tag_occlusion(model, reading.batch, reading.words, unknown, tags)
    return Tagging(words, spec.scheme, rests_on, _transitions(model, spec, words))


def kind_of_tag(tag: str, scheme: str) -> str:
    """ "B-city" and "I-city" of a scheme are both "city", "O" is nothing; a tag that stands for itself is its own."""
    if not scheme:
        return tag
    return tag.partition("-")[2] if "-" in tag else "" if tag == "O" else tag


def _transitions(model: Answerer, spec: TagSpec, words: list[TaggedWord]) -> Transitions | None:
    head = model.main_head if isinstance(model, HeadedModel) else None
    if not isinstance(head, CRFTagHead):
        return None
    frequent = np.argsort(-np.array(spec.counts or [0] * spec.size), kind="stable")
    in_row = [spec.names.index(word.tag) for word in words]
    shown = list(dict.fromkeys([*in_row, *frequent.tolist()]))[:MAX_TAGS]
    shown.sort(key=lambda tag: (kind_of_tag(spec.names[tag], spec.scheme), spec.names[tag]))
    follow = head.crf.follow.detach().double().masked_fill(~head.crf.can_follow, -torch.inf).cpu().numpy()
    return Transitions([spec.names[tag] for tag in shown], follow[np.ix_(shown, shown)])
