"""What an n-gram is asked for: the next token, or the label of a text. METHODS is the table of the ways to label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..data.schema import LABEL, Schema
from .bag_of_ngrams import BagConfig, BagOfNgrams
from .ngram import Ngram, NgramConfig
from .ngram_classifier import NgramClassifier, NgramClassifierConfig


def _bag(config: NgramConfig, schema: Schema) -> BagOfNgrams:
    min_count = config.min_count if config.min_count > 1 else 0  # by rule
    return BagOfNgrams(BagConfig(config.order, min_count, config.strength, config.alpha), schema)


def _generative(config: NgramConfig, schema: Schema) -> NgramClassifier:
    smoothing, delta = config.smoothing, config.delta
    return NgramClassifier(NgramClassifierConfig(config.order, smoothing, delta, config.background), schema)


METHODS: dict[str, Callable[[NgramConfig, Schema], Any]] = {"bag": _bag, "generative": _generative}


def build_ngram(config: NgramConfig, schema: Schema) -> Any:
    return METHODS[config.method](config, schema) if schema.kind == LABEL else Ngram(config, schema)
