"""Units that track something: which of a network's numbers follow a feature of the text (Karpathy et al. 2015).

    r(unit, feature) = correlation over the characters of held-out text                                       (1)
    chance = the highest |r| of any unit when the feature is shifted against the text, over several shifts     (2)

Shifted rather than shuffled: a feature that stays on for long segments would correlate with anything that does, and
(2) has to know that. A unit counts only where |r| stands above (2).

Shapes: T tokens, U units, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

NUM_SHIFTS = 20
STRAIGHT = '"'
QUOTES = {STRAIGHT: STRAIGHT, "“": "”", "„": "“”", "«": "»"}
"""Opening marks, and what closes them."""


@dataclass(frozen=True)
class Tracking:
    feature: str
    site: str
    what: str
    unit: int
    correlation: float
    chance: float
    """The highest |correlation| of any unit with the shifted feature, of all shifts."""

    @property
    def is_found(self) -> bool:
        return abs(self.correlation) > self.chance


def _inside_quotes(text: str) -> np.ndarray:
    """1 between quotation marks: straight ones, odd and even ones of a line; “these”, „these“ and «these», up to the
    end of the paragraph where nobody closes them."""
    found, closing = np.zeros(len(text)), ""
    for place, char in enumerate(text):
        if closing:
            ends_here = char == "\n" and (closing == STRAIGHT or text[place - 1] == "\n")
            closing = "" if char in closing or ends_here else closing
        else:
            closing = QUOTES.get(char, "")
        found[place] = bool(closing)
    return found


def _inside(text: str, opening: str, closing: str) -> np.ndarray:
    """1 between an opening and a closing mark."""
    found, depth = np.zeros(len(text)), 0
    for place, char in enumerate(text):
        if char in opening:
            depth += 1
        elif char in closing:
            depth = max(0, depth - 1)
        found[place] = depth > 0
    return found


def _since(text: str, mark: str) -> np.ndarray:
    found, count = np.zeros(len(text)), 0
    for place, char in enumerate(text):
        count = 0 if char == mark else count + 1
        found[place] = count
    return found


FEATURES: dict[str, Callable[[str], np.ndarray]] = {
    "inside quotes": _inside_quotes,
    "inside brackets": lambda text: _inside(text, "([{", ")]}"),
    "place in the line": lambda text: _since(text, "\n"),
    "place in the word": lambda text: _since(text, " "),
    "digit": lambda text: np.array([char.isdigit() for char in text], dtype=float),
    "capital": lambda text: np.array([char.isupper() for char in text], dtype=float),
    "space": lambda text: np.array([char.isspace() for char in text], dtype=float),
    "mark": lambda text: np.array([not char.isalnum() and not char.isspace() for char in text], dtype=float),
    "vowel": lambda text: np.array([char.lower() in "aeiou" for char in text], dtype=float),
}


def by_token(values: np.ndarray, pieces: Sequence[str]) -> np.ndarray:
    """A feature of characters, read at the last character of each token, but for the space behind a word."""
    has_space = np.array([len(piece) > 1 and piece.endswith(" ") for piece in pieces], dtype=int)
    ends = np.cumsum([len(piece) for piece in pieces]) - 1 - has_space
    return values[np.clip(ends, 0, len(values) - 1)]


def find_units(
    units: dict[tuple[str, str], np.ndarray], pieces: Sequence[str], *, seed: int = 0, best: int = 3
) -> list[Tracking]:
    """`units`: site and what -> (T, U). The `best` units of each feature that occurs, strongest first."""
    text, random = "".join(pieces), np.random.default_rng(seed)
    names = [(site, what, unit) for (site, what), values in units.items() for unit in range(values.shape[1])]
    activity = _standardised(np.concatenate(list(units.values()), axis=1))  # (T, U)
    T, found = len(pieces), []
    for feature, read in FEATURES.items():
        values = by_token(read(text), pieces)
        if values.std() == 0:
            continue
        target = _standardised(values[:, None])[:, 0]  # (T,)
        r = target @ activity / T  # (1)
        shifts = random.integers(T // 10 + 1, T - T // 10, size=NUM_SHIFTS) if T > 20 else [1]
        shifted = np.stack([np.roll(target, shift) for shift in shifts])
        chance = float(np.abs(shifted @ activity / T).max())  # (2)
        for unit in np.argsort(-np.abs(r))[:best].tolist():
            site, what, number = names[unit]
            found.append(Tracking(feature, site, what, number, float(r[unit]), chance))
    return found


def _standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
