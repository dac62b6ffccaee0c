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
from ..models.contract import Scores, device_of, evaluating
from .segments import RESAMPLES, Metric, Segments, bootstrap_interval

View = Literal["disjoint", "sliding", "carried"]
CHUNK = 256  # tokens read at once where the state is carried
WINDOWS = 64  # read at once
TRACKS = 16  # stretches of text that are read side by side where the state is carried
MOST_STRETCHES = 400  # of the text, to resample
SHORTEST_STRETCH = 100  # characters; of a short text a tenth, so that there is something to resample


@dataclass(frozen=True)
class Score:
    """Sums over stretches of a text, all of the same length, and what follows from them."""

    metric = Metric("bits per character", "bits/char")

    nats: np.ndarray
    """-log p of each stretch's tokens, summed, (stretches,)."""
    counts: np.ndarray
    """Tokens of each stretch, (stretches,)."""
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
        nats = self.nats_per_token
        return nats if math.isinf(nats) else math.exp(min(700.0, nats))  # (2)

    @property
    def bits_per_char(self) -> float:
        return float(self.nats.sum() / math.log(2) / self.characters)  # (3)

    @property
    def segments(self) -> Segments:
        """Bits of each stretch over its characters (3)."""
        return Segments.of(self.nats / math.log(2), np.full(len(self.nats), self.characters / len(self.nats)))

    @property
    def interval(self) -> tuple[float, float]:
        """Nats per token, 95 %, by resampling whole stretches of the text."""
        return bootstrap_interval(self.nats, self.counts)

    @property
    def bits_interval(self) -> tuple[float, float]:
        """Bits per character, 95 %: the same resampling on the scale of (3)."""
        bits = self.tokens / self.characters / math.log(2)
        low, high = self.interval
        return low * bits, high * bits

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        low, high = self.bits_interval
        return (
            f"{self.bits_per_char:.4f} bits per character (95 %: {low:.4f} to {high:.4f}), "
            f"{self.nats_per_token:.4f} nats per token, perplexity {self.perplexity:.2f}"
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        low, high = self.bits_interval
        yield "bits per character", f"{self.bits_per_char:.4f} (95 %: {low:.4f} to {high:.4f})"
        yield "nats per token", f"{self.nats_per_token:.4f}"
        yield "perplexity per token", f"{self.perplexity:.3f}"
        yield "signature", f"`{self.signature}`"

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


@torch.inference_mode()
def evaluate(
    model: Scores,
    store: TokenStore,
    *,
    view: View | None = None,
    context: int | None = None,
    stride: int | None = None,
    batch_size: int = WINDOWS,
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
    num = min(num_stretches(store.num_chars), store.num_tokens)
    nats, counts = _sums_over(model, batches, store, num, carried=view == "carried")
    parts = [how, *([about] if about else []), f"bootstrap={RESAMPLES}x{len(nats)}", f"seqwise={__version__}"]
    return Score(nats, counts, store.num_chars, "|".join(parts))


@torch.inference_mode()
def token_nats(model: Scores, store: TokenStore) -> np.ndarray:
    """-log p of each token after as much of the text before it as the model can see, (tokens,)."""
    limit = getattr(model, "context", None)
    if limit is None:
        batches = score_streams(store, chunk=CHUNK, tracks=1)
    else:
        batches = score_windows(store, context=limit, stride=max(1, limit // 4))
    return _sums_over(model, batches, store, store.num_tokens, carried=limit is None)[0]


@torch.inference_mode()
def nats_by_position(model: Scores, store: TokenStore, *, context: int, most_windows: int = 256) -> np.ndarray:
    """Mean -log p of the token at each position of windows that are read from nothing, (context,)."""
    context = min(context, getattr(model, "context", None) or context, store.num_tokens)
    whole = store.num_tokens // context  # windows
    starts = context * np.unique(np.linspace(0, whole - 1, min(whole, most_windows)).astype(int))
    total, device = np.zeros(context), device_of(model)
    with evaluating(model):
        for some in np.array_split(starts, -(-len(starts) // WINDOWS)):
            batch = store.batch(some[:, None] + np.arange(context + 1)).to(device)
            total -= model.score(batch)[0].double().sum(dim=0).cpu().numpy()
    return total / len(starts)


def num_stretches(num_chars: int) -> int:
    """By characters, so that it is the same for every tokenizer: many, but each long enough to stand for itself."""
    return max(1, min(MOST_STRETCHES, num_chars // SHORTEST_STRETCH), min(10, num_chars // (SHORTEST_STRETCH // 10)))


def _sums_over(
    model: Scores, batches: Iterator[Batch], store: TokenStore, num: int, *, carried: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of -log p and counts of tokens over `num` equal stretches of the text, whatever the view."""
    nats, counts, state = np.zeros(num), np.zeros(num, dtype=np.int64), None
    device = device_of(model)
    with evaluating(model):
        for batch in batches:
            log_probs, after = model.score(batch.to(device), state)  # (B, T)
            state = after if carried else None
            targets = batch.targets["tokens"]
            is_token = torch.ones_like(targets.ids, dtype=torch.bool) if targets.is_token is None else targets.is_token
            assert batch.places is not None
            places = batch.places.unsqueeze(1) + torch.arange(targets.shape[1])  # (B, T)
            stretch = (places * num // store.num_tokens)[is_token].numpy()
            nats += np.bincount(stretch, weights=-log_probs.double().cpu()[is_token].numpy(), minlength=num)
            counts += np.bincount(stretch, minlength=num)
    return nats, counts
