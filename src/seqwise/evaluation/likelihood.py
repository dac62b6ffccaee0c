"""How well a model predicts a text: nats per token, perplexity, bits per character, with an interval and a signature.

    nats per token     = - sum of log p(token) / tokens                                  (1)
    perplexity         = exp(nats per token)                                             (2)
    bits per character = - sum of log p(token) / log(2) / characters                     (3)

(3) compares models with different tokenizers. How much of the past a model sees at each token is part of the number, so
the signature says it:

    disjoint    windows side by side, each read from nothing
    sliding     windows that overlap: every token but the first few sees at least context - stride tokens
    carried     the state goes on from chunk to chunk
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from .. import __version__
from ..data.batch import Batch
from ..data.batches import score_streams, score_windows
from ..data.store import TokenStore
from ..errors import ConfigError
from ..models.contract import Scores, device_of

View = Literal["disjoint", "sliding", "carried"]
CHUNK = 256  # tokens read at once where the state is carried
TRACKS = 16  # stretches of text that are read side by side where the state is carried
RESAMPLES = 1000
MOST_SEGMENTS = 2000  # to resample
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Score:
    """Sums over segments of a text, and what follows from them."""

    nats: np.ndarray
    """-log p of each segment's tokens, summed, (segments,)."""
    counts: np.ndarray
    """Tokens of each segment, (segments,)."""
    characters: int
    signature: str

    @property
    def tokens(self) -> int:
        return int(self.counts.sum())

    @property
    def nats_per_token(self) -> float:
        return float(self.nats.sum() / self.counts.sum())  # (1)

    @property
    def perplexity(self) -> float:
        return math.exp(min(700.0, self.nats_per_token))  # (2)

    @property
    def bits_per_char(self) -> float:
        return float(self.nats.sum() / math.log(2) / self.characters)  # (3)

    @property
    def interval(self) -> tuple[float, float]:
        """Nats per token, 95 %, by resampling whole segments."""
        return bootstrap_interval(self.nats, self.counts)

    @property
    def bits_interval(self) -> tuple[float, float]:
        """Bits per character, 95 %: the same resampling on the scale of (3)."""
        bits = self.tokens / self.characters / math.log(2)
        low, high = self.interval
        return low * bits, high * bits

    def to_dict(self) -> dict[str, Any]:
        return {
            "nats_per_token": self.nats_per_token,
            "perplexity": self.perplexity,
            "bits_per_char": self.bits_per_char,
            "tokens": self.tokens,
            "characters": self.characters,
            "interval": list(self.interval),
            "bits_interval": list(self.bits_interval),
            "signature": self.signature,
        }


def bootstrap_interval(totals: np.ndarray, counts: np.ndarray, *, seed: int = 0) -> tuple[float, float]:
    """The middle 95 % of total / count over texts made of as many segments, drawn with replacement."""
    every = -(-len(totals) // MOST_SEGMENTS)  # neighbours are put together where there are very many
    totals, counts = (np.add.reduceat(values, np.arange(0, len(values), every)) for values in (totals, counts))
    num_segments = len(totals)
    drawn = np.random.default_rng(seed).multinomial(num_segments, np.full(num_segments, 1 / num_segments), RESAMPLES)
    ratios = (drawn @ totals) / np.maximum(drawn @ counts, 1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return float(low), float(high)


@torch.inference_mode()
def evaluate(
    model: Scores,
    store: TokenStore,
    *,
    view: View | None = None,
    context: int | None = None,
    stride: int | None = None,
    batch_size: int = 64,
    about: str = "",
) -> Score:
    """Score every token of a store. Without a view: carried where the family carries its state, else disjoint windows.

    `context` is the window (default: the model's own), `about` what the signature says of data and tokenizer.
    """
    limit = getattr(model, "context", None)
    if view is None:
        is_carried = getattr(model, "carries_state", False) and context is None
        view = "sliding" if stride is not None else "carried" if is_carried else "disjoint"
    if context is not None and view == "carried":
        raise ConfigError(f"a context of {context} tokens says nothing where state is carried; drop one of them.")
    if stride is not None and view != "sliding":
        raise ConfigError(f"a stride of {stride} tokens goes with sliding windows, not with {view}; drop one of them.")
    context = (limit or CHUNK) if context is None else context
    if context < 1:
        raise ConfigError(f"a context of {context} tokens is too short; ask for at least 1.")
    if limit is not None and context > limit:
        raise ConfigError(f"a context of {context} tokens is longer than the model's, which is {limit}. Ask for less.")
    if view == "carried" and limit is not None:
        raise ConfigError(
            f"this model sees {limit} tokens at most and carries nothing on; use disjoint or sliding windows."
        )
    if view == "sliding":
        stride = max(1, context // 2) if stride is None else stride
        if not 0 < stride <= context:
            raise ConfigError(f"a stride of {stride} should lie between 1 and the context of {context}.")
        how = f"sliding:context={context},stride={stride}"
        batches: Iterator[Batch] = score_windows(store, context=context, stride=stride, batch_size=batch_size)
    elif view == "disjoint":
        how = f"disjoint:context={context}"
        batches = score_windows(store, context=context, batch_size=batch_size)
    else:
        tracks = max(1, min(getattr(model, "score_tracks", TRACKS), store.num_tokens // (4 * CHUNK)))
        how = f"carried:chunk={CHUNK},tracks={tracks}"
        batches = score_streams(store, chunk=CHUNK, tracks=tracks)
    nats, counts = _segment_sums(model, batches, carried=view == "carried")
    parts = [how, *([about] if about else []), f"bootstrap={RESAMPLES}x{len(nats)}", f"seqwise={__version__}"]
    return Score(nats, counts, store.num_chars, "|".join(parts))


def _segment_sums(model: Scores, batches: Iterator[Batch], *, carried: bool) -> tuple[np.ndarray, np.ndarray]:
    was_training = getattr(model, "training", False)
    if was_training:
        model.eval()  # type: ignore[attr-defined]
    nats, counts, state = [], [], None
    device = device_of(model)
    for batch in batches:
        log_probs, after = model.score(batch.to(device), state)  # (B, T)
        state = after if carried else None
        is_token = batch.targets["tokens"].is_token
        log_probs = log_probs.double().cpu()
        if is_token is not None:
            log_probs = log_probs.masked_fill(~is_token, 0.0)
        sums = -log_probs.sum(dim=1)
        number = torch.full_like(sums, batch.targets["tokens"].shape[1]) if is_token is None else is_token.sum(dim=1)
        nats.append(sums.numpy())
        counts.append(number.numpy().astype(np.int64))
    if was_training:
        model.train()  # type: ignore[attr-defined]
    all_nats, all_counts = np.concatenate(nats), np.concatenate(counts)
    return all_nats[all_counts > 0], all_counts[all_counts > 0]
