"""A text as tokens, with what each of them stands for: by that models with different tokenizers are compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Encoded(NamedTuple):
    """T tokens, U of them unknown words. The lengths add up to the characters of the text, unless it has no token."""

    ids: np.ndarray
    """int64 (T,)."""
    lengths: np.ndarray
    """int32 (T,): characters each token stands for; 0 where it only ends one that a token before it began."""
    unknown: np.ndarray
    """int64 (U,): places of the words that the vocabulary does not have, a written "<unk>" not among them."""
    spelling: np.ndarray
    """float64 (U,): nats that the letters of these words take."""


def without_unknown(ids: np.ndarray, lengths: np.ndarray) -> Encoded:
    """Of a tokenizer that can write everything."""
    return Encoded(ids, lengths, np.zeros(0, dtype=np.int64), np.zeros(0))
