"""How well a model predicts a text: nats per token, perplexity, bits per character, with an interval and a signature.

    nats per token     = - sum of log p(token) / tokens                                  (1)
    perplexity         = exp(nats per token)                                             (2)
    bits per character = - (sum of log p(token) + letters) / log(2) / characters         (3)

(3) compares models with different tokenizers: `letters` is log p of the spelling of unknown words (text/spelling.py),
each of which (1) and (2) take for one token, as is usual. Intervals come from segments of the text that are the same
for every tokenizer; what a token costs is spread evenly over its characters. How much of the past a model sees at each
token is part of the number, so the signature says it:

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
from .segments import RESAMPLES, Metric, Segments, interval_in_words

View = Literal["disjoint", "sliding", "carried"]
CHUNK = 256  # tokens read at once where the state is carried
WINDOWS = 64  # read at once
SPELLED_AT_ONCE = 4096  # unknown words
TRACKS = 16  # segments of text that are read side by side where the state is carried
MAX_SEGMENTS = 400  # of the text, to resample
MIN_SEGMENT_CHARACTERS = 100  # of a short text a tenth, so that there is something to resample


@dataclass(frozen=True)
class Score:
    """Sums over segments of a text, and what follows from them."""

    metric = Metric("bits per character", "bits/char")

    nats: np.ndarray
    """-log p of each segment's tokens, summed, (segments,)."""
    counts: np.ndarray
    """Tokens of each segment, (segments,); one that lies in two segments counts in both by its share."""
    characters: int
    signature: str
    letters: np.ndarray | float = 0.0
    """-log p of how the unknown words of each segment are spelled, nats, (segments,)."""
    unknown: int = 0
    """Words that the vocabulary does not have."""

    @property
    def tokens(self) -> int:
        return round(float(self.counts.sum()))

    @property
    def nats_per_token(self) -> float:
        return float(self.nats.sum() / self.counts.sum())  # (1)

    @property
    def perplexity(self) -> float:
        nats = self.nats_per_token
        return nats if math.isinf(nats) else math.exp(min(700.0, nats))  # (2)

    @property
    def bits_per_char(self) -> float:
        return self.segments.value  # (3)

    @property
    def unknown_share(self) -> float:
        """Of the tokens."""
        return self.unknown / max(1, self.tokens)

    @property
    def letters_per_token(self) -> float:
        """Nats: what (3) has more than (1)."""
        return float(np.sum(self.letters)) / max(1, self.tokens)

    @property
    def segments(self) -> Segments:
        """Bits of each segment over its characters (3)."""
        edges = segment_edges(self.characters, len(self.nats))
        return Segments.of((self.nats + self.letters) / math.log(2), np.diff(edges))

    @property
    def bits_interval(self) -> tuple[float, float]:
        """Bits per character, 95 %, by resampling whole segments of the text."""
        return self.segments.interval

    @property
    def interval(self) -> tuple[float, float]:
        """Nats per token, 95 %: the same resampling on the scale of (1)."""
        low, high = self.bits_interval
        nats = self.characters * math.log(2) / max(1, self.tokens)
        return low * nats - self.letters_per_token, high * nats - self.letters_per_token

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        return (
            f"{self.bits_per_char:.4f} bits per character ({interval_in_words(self.bits_interval, 4)}), "
            f"{self.nats_per_token:.4f} nats per token, perplexity {self.perplexity:.2f}"
            + (f", {unknown_in_words(self)}" if self.unknown else "")
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "bits per character", f"{self.bits_per_char:.4f} ({interval_in_words(self.bits_interval, 4)})"
        yield "nats per token", f"{self.nats_per_token:.4f}"
        yield "perplexity per token", f"{self.perplexity:.3f}"
        if self.unknown:
            yield "unknown words", unknown_in_words(self)
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "nats_per_token": self.nats_per_token,
            "perplexity": self.perplexity,
            "bits_per_char": self.bits_per_char,
            "tokens": self.tokens,
            "characters": self.characters,
            "unknown_words": self.unknown,
            "unknown_share": self.unknown_share,
            "interval": list(self.interval),
            "bits_interval": list(self.bits_interval),
            "is_enough": self.segments.is_enough,
            "signature": self.signature,
        }


def unknown_in_words(score: Score) -> str:
    """How many words the vocabulary did not have, and how they were counted."""
    letters = float(np.sum(score.letters)) / math.log(2) / score.characters
    return (
        f"{score.unknown:,} of {score.tokens:,} tokens are unknown words ({100 * score.unknown_share:.2f} %); their "
        f"letters are {letters:.4f} of the bits per character and not in the perplexity"
    )


@torch.inference_mode()
def evaluate(
    model: Scores,
    store: TokenStore,
    *,
    view: View | None = None,
    context: int | None = None,
    stride: int | None = None,
    batch_size: int = WINDOWS,
    scored: str = "",
) -> Score:
    """Score every token of a store. Without a view: carried where the family carries its state, else disjoint windows.

    `context` is the window (default: the model's own), `scored` what the signature says of data and tokenizer.
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
    edges = segment_edges(store.num_chars, num_segments(store.num_chars))
    nats, counts, letters = _sums_over(model, batches, store, edges, carried=view == "carried")
    parts = [how, *([scored] if scored else [])]
    parts += [f"unknown={len(store.spelling.places)}:one token,spelled in bits"] if len(store.spelling.places) else []
    parts += [f"bootstrap={RESAMPLES}x{len(nats)}", f"seqwise={__version__}"]
    return Score(nats, counts, store.num_chars, "|".join(parts), letters, len(store.spelling.places))


@torch.inference_mode()
def token_nats(model: Scores, store: TokenStore) -> np.ndarray:
    """-log p of each token after as much of the text before it as the model can see, (tokens,)."""
    limit = getattr(model, "context", None)
    if limit is None:
        batches = score_streams(store, chunk=CHUNK, tracks=1)
    else:
        batches = score_windows(store, context=limit, stride=max(1, limit // 4))
    nats = np.zeros(store.num_tokens)
    for places, found, is_token in _scored(model, batches, carried=limit is None):
        nats[places[is_token]] = found[is_token]
    return nats


@torch.inference_mode()
def nats_by_position(model: Scores, store: TokenStore, *, context: int, max_windows: int = 256) -> np.ndarray:
    """Mean -log p of the token at each position of windows that are read from nothing, (context,)."""
    context = min(context, getattr(model, "context", None) or context, store.num_tokens)
    whole = store.num_tokens // context  # windows
    starts = context * np.unique(np.linspace(0, whole - 1, min(whole, max_windows)).astype(int))
    total, device = np.zeros(context), device_of(model)
    with evaluating(model):
        for some in np.array_split(starts, -(-len(starts) // WINDOWS)):
            batch = store.batch(some[:, None] + np.arange(context + 1)).to(device)
            total -= model.score(batch)[0].double().sum(dim=0).cpu().numpy()
    return total / len(starts)


def num_segments(num_chars: int) -> int:
    """By characters, so that it is the same for every tokenizer: many, but each long enough to stand for itself."""
    of_full_length, short = num_chars // MIN_SEGMENT_CHARACTERS, num_chars // (MIN_SEGMENT_CHARACTERS // 10)
    return max(1, min(MAX_SEGMENTS, of_full_length), min(10, short))


def segment_edges(num_chars: int, num: int) -> np.ndarray:
    """Where `num` segments of a text begin and end, all of about the same length, in characters (num + 1,)."""
    return np.arange(num + 1) * num_chars // num


def _scored(
    model: Scores, batches: Iterator[Batch], *, carried: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each batch the places of its tokens in the text, their -log p, and which of them count, each (B, T)."""
    state, device = None, device_of(model)
    with evaluating(model):
        for batch in batches:
            log_probs, after = model.score(batch.to(device), state)  # (B, T)
            state = after if carried else None
            targets = batch.targets["tokens"]
            is_token = torch.ones_like(targets.ids, dtype=torch.bool) if targets.is_token is None else targets.is_token
            assert batch.places is not None
            places = batch.places.unsqueeze(1) + torch.arange(targets.shape[1])  # (B, T)
            yield places.numpy(), -log_probs.double().cpu().numpy(), is_token.numpy()


def _sums_over(
    model: Scores, batches: Iterator[Batch], store: TokenStore, edges: np.ndarray, *, carried: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Over segments of the text, whatever the view: -log p of the tokens, how many there are, and -log p of the
    letters of unknown words."""
    sums = np.zeros((len(edges) - 1, 2))
    for places, nats, is_token in _scored(model, batches, carried=carried):
        lengths = store.lengths(np.minimum(places, store.num_tokens - 1))
        ends = store.begins(np.minimum(places[:, 0], store.num_tokens))[:, None] + np.cumsum(lengths, axis=1)
        costs = np.stack([nats, np.ones_like(nats)], axis=-1)[is_token]
        _spread(sums, edges, (ends - lengths)[is_token], ends[is_token], costs)
    letters, (unknown, spelling) = np.zeros((len(edges) - 1, 1)), store.spelling
    for start in range(0, len(unknown), SPELLED_AT_ONCE):
        some = np.asarray(unknown[start : start + SPELLED_AT_ONCE])
        begins = store.begins(some)
        costs = np.asarray(spelling[start : start + SPELLED_AT_ONCE])[:, None]
        _spread(letters, edges, begins, begins + store.lengths(some), costs)
    return sums[:, 0], sums[:, 1], letters[:, 0]


def _spread(sums: np.ndarray, edges: np.ndarray, begins: np.ndarray, ends: np.ndarray, costs: np.ndarray) -> None:
    """Add what tokens cost, (N, K), to the segments, (segments, K), that hold their characters. A token without any
    ends a character that one before it began, and belongs to it."""
    num = len(sums)
    begins = np.where(ends > begins, begins, np.maximum(0, begins - 1))
    first = np.clip(np.searchsorted(edges, begins, side="right") - 1, 0, num - 1)
    last = np.clip(np.searchsorted(edges, ends, side="left") - 1, first, num - 1)
    within = first == last
    for column in range(costs.shape[1]):
        sums[:, column] += np.bincount(first[within], weights=costs[within, column], minlength=num)
    for token in np.flatnonzero(~within):  # as many as there are edges at most
        inner = edges[first[token] : last[token] + 2].astype(np.float64)
        inner[0], inner[-1] = begins[token], ends[token]
        shares = np.diff(inner) / (ends[token] - begins[token])
        sums[first[token] : last[token] + 1] += shares[:, None] * costs[token]
