"""What a search is told, and what it returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError

LengthForm = Literal["power", "gnmt"]
MAX_TOKENS = 1_000_000
MAX_LENGTH_PENALTY = 10.0  # a million tokens to this power are still a number


@dataclass(frozen=True)
class DecodingConfig:
    method: Literal["sample", "greedy", "beam", "exhaustive"] = "sample"
    """How the next token is chosen."""
    max_tokens: int = 200
    """Largest number of tokens to add to the prompt."""
    min_tokens: int = 0
    """Smallest number of tokens, the stop token included, before it may be chosen."""
    temperature: float = 1.0
    """Below 1 the model is surer of itself than it is, above 1 less sure; for sampling."""
    top_k: int | None = None
    """Sample among the k most probable tokens only."""
    top_p: float | None = None
    """Sample among the fewest tokens whose probabilities reach p together."""
    seed: int = 0
    """Random seed; the same seed gives the same text."""
    num_results: int = 1
    """Number of samples per prompt, or of the best results of a search."""
    beam_width: int = 4
    """Number of hypotheses that beam search keeps at each step."""
    length_penalty: float = 0.0
    """Hypotheses compete by log-probability / length ** length_penalty; 1 is the average per token."""
    length_form: LengthForm = "power"
    """power: length ** length_penalty; gnmt: ((5 + length) / 6) ** length_penalty (Wu et al. 2016)."""
    repetition_penalty: float = 1.0
    """What the log-probability of a token that was added before is multiplied with; above 1 repeats less."""
    stop: int | None = None
    """A token that ends a hypothesis; it stays at its end."""
    never: int | None = None
    """A token that is not chosen: what a target begins with, where the vocabulary has one for that alone."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "num_results", "beam_width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)} should be at least 1.")
        if self.max_tokens > MAX_TOKENS:
            raise ConfigError(f"max_tokens = {self.max_tokens} should be at most {MAX_TOKENS:,}.")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ConfigError(
                f"min_tokens = {self.min_tokens} should lie between 0 and max_tokens = {self.max_tokens}."
            )
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature = {self.temperature} should be above 0; for no chance at all: --method greedy."
            )
        for name in ("temperature", "repetition_penalty"):
            if math.isinf(getattr(self, name)):
                raise ConfigError(f"{name} = {getattr(self, name)} should be a finite number.")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k = {self.top_k} should be at least 1.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p = {self.top_p} should lie in (0, 1].")
        if self.length_penalty < 0:
            raise ConfigError(f"length_penalty = {self.length_penalty} should not be negative.")
        if not self.length_penalty <= MAX_LENGTH_PENALTY:
            raise ConfigError(f"length_penalty = {self.length_penalty} should be at most {MAX_LENGTH_PENALTY:g}.")
        if not self.repetition_penalty > 0:
            raise ConfigError(f"repetition_penalty = {self.repetition_penalty} should be above 0; 1 changes nothing.")
        if self.method == "beam" and self.num_results > self.beam_width:
            raise ConfigError(f"{self.num_results} results need a beam_width of as many; it is {self.beam_width}.")
        if self.method == "greedy" and self.num_results > 1:
            raise ConfigError("greedy search has one result; for several use --method sample or beam.")


def length_norm(length: int, penalty: float, form: LengthForm = "power") -> float:
    """What the log-probability of a hypothesis of so many tokens is divided by; it never falls with length."""
    return (length if form == "power" else (5 + length) / 6) ** penalty


@dataclass(frozen=True)
class Hypothesis:
    """A continuation of a prompt."""

    tokens: list[int]
    """What was added, the stop token included."""
    log_prob: float
    """log p(tokens | prompt) under the model as it is (no temperature, no cut, no penalty), nats."""
    is_finished: bool
    """Whether it ended in the stop token."""
    ranked_by: float | None = None
    """What search added up in its place where tokens were penalised."""

    def score(self, length_penalty: float, form: LengthForm = "power") -> float:
        total = self.log_prob if self.ranked_by is None else self.ranked_by
        return total / length_norm(len(self.tokens), length_penalty, form)
