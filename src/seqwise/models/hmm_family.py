"""What a hidden Markov model is asked for: what comes next, with states that nobody has seen; or tags, which are its
states."""

from __future__ import annotations

from ..data.schema import TAG, Schema
from .hmm import HMM, HMMConfig
from .hmm_tagger import HMMTagger, HMMTaggerConfig


def build_hmm(config: HMMConfig, schema: Schema) -> HMM | HMMTagger:
    if schema.kind == TAG:
        return HMMTagger(HMMTaggerConfig(order=config.order), schema)
    return HMM(config, schema)
