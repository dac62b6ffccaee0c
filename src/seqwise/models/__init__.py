"""The families, in the order of the lineage. MODELS is the table: adding a family is a file, a row, a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ConfigError, did_you_mean
from .contract import Interface
from .gpt import GPTConfig, build_gpt
from .ngram import Ngram, NgramConfig
from .recurrent import LSTMConfig, build_lstm


@dataclass(frozen=True)
class Family:
    """A row of MODELS: how to configure and build it, and the words that `seqwise models` prints."""

    config: type
    build: Callable[[Any, Interface], Any]
    learns_by: Literal["counting", "gradients"]
    year: int
    state: str
    fixed: str


MODELS = {
    "ngram": Family(
        NgramConfig, Ngram, "counting", 1948, "the last n-1 tokens", "counting what follows what gives a probability"
    ),
    "lstm": Family(LSTMConfig, build_lstm, "gradients", 1997, "h and c, of fixed size", "gradients survive many steps"),
    "gpt": Family(
        GPTConfig, build_gpt, "gradients", 2018, "keys and values of all tokens", "any two tokens are one step apart"
    ),
}


def family(name: str) -> Family:
    if name not in MODELS:
        raise ConfigError(f'unknown model "{name}". {did_you_mean(name, MODELS)}')
    return MODELS[name]


def num_parameters(model: Any) -> int:
    """Learned numbers: weights, each counted once where tied; for count models the number of grams."""
    if hasattr(model, "num_parameters"):
        return int(model.num_parameters)
    return sum(p.numel() for p in model.parameters())
