"""What an inspection can be told."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigError


@dataclass(frozen=True)
class InspectOptions:
    max_tokens: int = 500
    """Largest number of tokens to show."""
    beam_width: int | None = None
    """Hypotheses that the search keeps; where it is not said, as many as the run translates with, or 4 for text."""
    search_tokens: int = 12
    """Number of tokens that the search adds to a text."""
    max_lags: int = 100
    """How many steps back gradients and influence are followed."""
    held_out_tokens: int = 4000
    """How much held-out text the finder of units reads."""
    row: int = 0
    """Numbers, labels, tags: which row of the held-out part is read, or read first; from 0."""
    image: str | None = None
    """A picture, or a folder with the frames of a clip, to look at; a row of the held-out part where there is none."""
    phrase: str | None = None
    """Labels: what is put at many places of the text; where it is not said, the word that moves the answer most."""
    pairs: str | None = None
    """A file of minimal pairs; the built-in list where there is none."""
    analogies: tuple[str, ...] = ()
    """Each three words: "man king woman" asks for what is to woman as king is to man."""
    word: str | None = None
    """Of two texts: a word that stands in both, whose vectors are compared layer by layer."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("max_tokens", "beam_width", "search_tokens", "max_lags", "held_out_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"inspect.{name} = {value} should be at least 1.")
        for name in ("row", "seed"):
            if getattr(self, name) < 0:
                raise ConfigError(f"inspect.{name} = {getattr(self, name)} should not be negative.")
