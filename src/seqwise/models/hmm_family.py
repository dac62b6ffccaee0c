"""What a hidden Markov model is asked for: what comes next, with states that nobody has seen; the label of a sequence,
by a model for each label; or tags, which are its states."""

from __future__ import annotations

from ..data.schema import LABEL, TAG, Schema
from .hmm import HMM, HMMConfig
from .hmm_classifier import HMMClassifier, HMMClassifierConfig
from .hmm_tagger import HMMTagger, HMMTaggerConfig


def build_hmm(config: HMMConfig, schema: Schema) -> HMM | HMMClassifier | HMMTagger:
    if schema.kind == TAG:
        return HMMTagger(HMMTaggerConfig(order=config.order), schema)
    if schema.kind == LABEL:
        return HMMClassifier(HMMClassifierConfig(config.num_states, config.smoothing, config.min_scale), schema)
    return HMM(config, schema)
