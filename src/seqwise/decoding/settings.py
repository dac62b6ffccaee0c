"""What a search is told, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError


@dataclass(frozen=True)
class DecodingConfig:
    method: Literal["sample", "greedy", "beam", "exhaustive"] = "sample"
    """How the next token is chosen."""
    max_tokens: int = 200
    """Tokens to add to the prompt at most."""
    temperature: float = 1.0
    """Below 1 the model is surer of itself than it is, above 1 less sure; for sampling."""
    top_k: int | None = None
    """Sample among the k most probable tokens only."""
    top_p: float | None = None
    """Sample among the fewest tokens whose probabilities reach p together."""
    seed: int = 0
    """The same seed gives the same text."""
    num_results: int = 1
    """Samples per prompt, or the n best of a search."""
    beam_width: int = 4
    """Hypotheses kept at each step of beam search."""
    length_penalty: float = 0.0
    """Hypotheses compete by log-probability / length ** length_penalty; 1 is the average per token."""
    stop: int | None = None
    """A token that ends a hypothesis; it stays at its end."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "num_results", "beam_width"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)} should be at least 1.")
        if not self.temperature > 0:
            raise ConfigError(
                f"temperature = {self.temperature} should be above 0; for no chance at all: --method greedy."
            )
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k = {self.top_k} should be at least 1.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p = {self.top_p} should lie in (0, 1].")
        if self.length_penalty < 0:
            raise ConfigError(f"length_penalty = {self.length_penalty} should not be negative.")
        if self.method == "beam" and self.num_results > self.beam_width:
            raise ConfigError(f"{self.num_results} results need a beam_width of as many; it is {self.beam_width}.")
        if self.method == "greedy" and self.num_results > 1:
            raise ConfigError("greedy search has one result; for several use --method sample or beam.")


@dataclass(frozen=True)
class Hypothesis:
    """A continuation of a prompt."""

    tokens: list[int]
    """What was added, the stop token included."""
    log_prob: float
    """log p(tokens | prompt) under the model as it is (no temperature, no cut), nats."""
    is_finished: bool
    """Whether it ended in the stop token."""

    def score(self, length_penalty: float) -> float:
        return self.log_prob / len(self.tokens) ** length_penalty
