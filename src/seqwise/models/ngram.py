"""n-gram: the next token depends on the last n-1 tokens, and its probability is counted.

Shannon 1948. Smoothing: interpolated modified Kneser-Ney (Kneser & Ney 1995; Chen & Goodman 1998), in which a longer
context gives away a discount D of each of its counts to the shorter one:

    p_k(w | h) = max(c(h w) - D_k(c), 0) / c(h .)  +  backoff(h) * p_{k-1}(w | h without its first token)    (1)
    backoff(h) = sum over w of D_k(c(h w)) / c(h .)                                                           (2)
    p_0(w)     = 1 / V                                                                                        (3)
    D_k(c)     = c - (c + 1) Y n_{c+1} / n_c  for c = 1, 2, 3+,  Y = n_1 / (n_1 + 2 n_2),
                 n_c: how many k-grams have count c                                                           (4)

For k < n the count c of a k-gram is the number of distinct tokens that stand before it, plus how often it begins a
text: "Francisco" is frequent, but follows little else than "San".

The grams are a trie in sorted arrays. Level k holds all k-grams, sorted by their first k-1 tokens and then by the last:
the continuations of a context stand next to each other, and are found by binary search.

Shapes: B batch, T steps, n order, V vocabulary, N_k number of k-grams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numba import njit
from torch import Tensor

from ..data.batch import Batch
from ..errors import CheckpointError, ConfigError, DataError
from .contract import Interface, State

NOTHING = -1  # in a context: no token there; as a gram: not in the trie


@dataclass(frozen=True)
class NgramConfig:
    order: int = 5
    """n: the next token is predicted from the n-1 before it."""
    across_lines: bool = True
    """Whether contexts reach back over the end of a line; else each line is a text of its own."""

    def __post_init__(self) -> None:
        if self.order < 1:
            raise ConfigError(f"model.order = {self.order} should be at least 1.")


@dataclass
class Level:
    """All grams of one length. The continuations of gram j are the places first[j] to first[j+1] of the next level."""

    words: np.ndarray  # (N_k,) the last token of each gram
    first: np.ndarray  # (N_k + 1,) into the next level
    log_prob: np.ndarray  # (N_k,) of the last token after the others, interpolated (1)
    log_backoff: np.ndarray  # (N_k,) of the gram as a context (2)


class Ngram:
    """Counts from `fit`, probabilities by (1). Its state is the last n-1 tokens."""

    context = None
    carries_state = True
    score_tracks = 1
    """Reading several stretches side by side gains a count model nothing, and would cut contexts."""

    def __init__(self, config: NgramConfig, interface: Interface):
        self.config, self.vocab_size, self.boundary = config, interface.vocab_size, interface.boundary
        self.levels: list[Level] = []
        self.discounts: list[tuple[float, float, float]] = []

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, ids: np.ndarray) -> None:
        """Count a text: ids (N+1,) with the boundary first. Everything but that first token is predicted."""
        if len(ids) < 2:
            raise DataError("an n-gram model needs at least one token to count.")
        V, order = self.vocab_size, self.config.order
        ids = np.asarray(ids, dtype=np.int64)
        words, ends_line = ids[1:], ids[1:] == self.boundary  # (N,) what is predicted
        grams: list[_Grams] = []
        previous_gram = np.empty(0, dtype=np.int64)
        # context[i]: the (k-1)-gram that stands before words[i], as a place in its level; for k = 1 the empty one
        context = np.zeros(len(words), dtype=np.int64)
        for k in range(1, order + 1):
            gram, level = _count_level(context, words, V, everything=k == 1)
            if k > 1:
                level.suffix = previous_gram[level.seen_at]  # the same gram without its first token
            level.starts_text = gram[(gram != NOTHING) & self._begins_text(ids, k)]
            grams.append(level)
            if len(level.words) == 0:  # no text is that long
                grams.pop()
                break
            previous_gram = gram
            context = self._contexts_after(gram, ids, ends_line, k)
        self._estimate(grams)

    def _contexts_after(self, gram: np.ndarray, ids: np.ndarray, ends_line: np.ndarray, k: int) -> np.ndarray:
        """The k-gram that stands before each predicted token: the gram that ended one place to the left."""
        context = np.full(len(gram), NOTHING, dtype=np.int64)
        context[1:] = gram[:-1]
        if k == 1:
            context[0] = ids[0]  # the boundary that stands first; level 1 is indexed by token
        elif not self.config.across_lines:
            context[1:][ends_line[:-1]] = NOTHING  # behind the end of a line only the boundary itself is context
        return context

    def _begins_text(self, ids: np.ndarray, k: int) -> np.ndarray:
        """(N,) whether the k-gram that ends at each predicted token begins where a text begins."""
        places = np.arange(1, len(ids)) - (k - 1)  # in ids: where the k-gram begins
        begins = places == 0
        if not self.config.across_lines and k > 1:
            begins |= (places > 0) & (ids[np.maximum(places, 0)] == self.boundary)
        return begins

    def _estimate(self, grams: list[_Grams]) -> None:
        V = self.vocab_size
        self.levels, self.discounts = [], []
        lower = np.full(1, 1.0 / V)  # (3)
        for k, level in enumerate(grams, start=1):
            is_highest = k == len(grams)
            counts = level.counts
            if not is_highest:
                above = grams[k]
                counts = np.bincount(above.suffix, minlength=len(counts)) + np.bincount(
                    level.starts_text, minlength=len(counts)
                )
            discounts = estimate_discounts(counts)
            discount = np.array([0.0, *discounts])[np.minimum(counts, 3)]
            num_contexts = len(grams[k - 2].words) if k > 1 else 1
            total = np.bincount(level.parent, weights=counts, minlength=num_contexts)
            given_away = np.bincount(level.parent, weights=discount, minlength=num_contexts)
            with np.errstate(divide="ignore", invalid="ignore"):
                backoff = np.where(total > 0, given_away / total, 1.0)  # (2); a context never continued passes all on
                prob = np.where(total[level.parent] > 0, (counts - discount) / total[level.parent], 0.0)
            prob = prob + backoff[level.parent] * lower[level.suffix if k > 1 else np.zeros(V, dtype=np.int64)]  # (1)
            if k > 1:
                self.levels[-1].log_backoff = np.log(backoff)
                self.levels[-1].first = np.searchsorted(level.parent, np.arange(num_contexts + 1))
            end = np.zeros(len(prob) + 1, dtype=np.int64)
            self.levels.append(Level(level.words, end, np.log(prob), np.zeros(len(prob))))
            self.discounts.append(discounts)
            lower = prob
        self._join()

    # -- the verbs -----------------------------------------------------------------------------------------------

    def fresh_state(self, batch_size: int) -> State:
        return State({"context": torch.full((batch_size, self._memory), NOTHING)})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        inputs, targets = batch.inputs["tokens"], batch.targets["tokens"]
        before = (state or self.fresh_state(len(batch))).own["context"]
        text = torch.cat([before, inputs.ids.cpu()], dim=1).numpy()  # (B, n-1+T)
        wanted = targets.ids.cpu().numpy()
        log_probs = _score(text, wanted, *self._arrays, self._resets)
        return torch.from_numpy(log_probs), self._state_after(text, inputs.lengths)

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        inputs = prompt.inputs["tokens"]
        before = self.fresh_state(len(prompt)).own["context"]
        state = self._state_after(torch.cat([before, inputs.ids.cpu()], dim=1).numpy(), inputs.lengths)
        return self._next(state), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        text = torch.cat([state.own["context"], tokens.cpu().unsqueeze(1)], dim=1)
        state = State({"context": text[:, 1:]})
        return self._next(state), state

    def _next(self, state: State) -> Tensor:
        """log p of every token, (B, V)."""
        return torch.from_numpy(_distributions(state.own["context"].numpy(), *self._arrays, self._resets))

    def _state_after(self, text: np.ndarray, lengths: Tensor) -> State:
        """The last n-1 tokens of each row, whose first n-1 places are the state before it."""
        ends = lengths.cpu().numpy() + self._memory  # (B,)
        places = ends[:, None] - self._memory + np.arange(self._memory)
        return State({"context": torch.from_numpy(np.take_along_axis(text, places, axis=1))})

    @property
    def _memory(self) -> int:
        return self.config.order - 1

    @property
    def _resets(self) -> int:
        """The token behind which no context reaches back, or NOTHING."""
        return NOTHING if self.config.across_lines else self.boundary

    def _join(self) -> None:
        """All levels end to end, as the compiled loops want them."""
        sizes = np.array([0, *(len(level.words) for level in self.levels)])
        joined = (
            np.concatenate([getattr(level, name) for level in self.levels])
            for name in ("words", "first", "log_prob", "log_backoff")
        )
        self._arrays = (np.cumsum(sizes), *joined)

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def num_parameters(self) -> int:
        return sum(len(level.words) for level in self.levels)

    def state_dict(self) -> dict[str, Tensor]:
        saved = {}
        for k, level in enumerate(self.levels, start=1):
            for name in ("words", "first", "log_prob", "log_backoff"):
                saved[f"level{k}.{name}"] = torch.from_numpy(np.ascontiguousarray(getattr(level, name)))
        saved["discounts"] = torch.tensor(self.discounts, dtype=torch.float64)
        return saved

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        try:
            self.discounts = [tuple(row) for row in saved["discounts"].tolist()]
            self.levels = [
                Level(*(saved[f"level{k}.{name}"].numpy() for name in ("words", "first", "log_prob", "log_backoff")))
                for k in range(1, len(self.discounts) + 1)
            ]
        except KeyError as error:
            raise CheckpointError(f"the n-gram model lacks {error}; its file is damaged.") from None
        if len(self.levels[0].words) != self.vocab_size:
            raise CheckpointError(
                f"the n-gram model has {len(self.levels[0].words)} tokens, but the vocabulary has {self.vocab_size}."
            )
        self._join()


@dataclass
class _Grams:
    """The distinct k-grams of a text while it is counted."""

    parent: np.ndarray  # (N_k,) the place of the first k-1 tokens in the level before; rising
    words: np.ndarray  # (N_k,) the last token
    counts: np.ndarray  # (N_k,)
    seen_at: np.ndarray  # (N_k,) one place in the text where the gram ends
    suffix: np.ndarray  # (N_k,) the gram without its first token, in the level before
    starts_text: np.ndarray  # the grams that begin where a text begins, one entry per occurrence


def _count_level(context: np.ndarray, words: np.ndarray, V: int, *, everything: bool) -> tuple[np.ndarray, _Grams]:
    """Count the grams (context, word); with `everything`, tokens that never occur get their place too."""
    nothing = np.empty(0, dtype=np.int64)
    if everything:
        counts = np.bincount(words, minlength=V)
        level = _Grams(np.zeros(V, dtype=np.int64), np.arange(V), counts, nothing, nothing, nothing)
        return words.copy(), level
    there = np.flatnonzero(context != NOTHING)
    keys, seen_at, gram_there, counts = np.unique(
        context[there] * V + words[there], return_index=True, return_inverse=True, return_counts=True
    )
    gram = np.full(len(words), NOTHING, dtype=np.int64)
    gram[there] = gram_there
    return gram, _Grams(keys // V, keys % V, counts, there[seen_at], nothing, nothing)


def estimate_discounts(counts: np.ndarray) -> tuple[float, float, float]:
    """(4), for counts of 1, 2, and 3 or more. Where a small text has no counts of counts: 0.5, 1 and 1.5."""
    n1, n2, n3, n4 = (int((counts == c).sum()) for c in (1, 2, 3, 4))
    if min(n1, n2, n3) > 0:
        y = n1 / (n1 + 2 * n2)
        found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
        if all(0 < d <= c for c, d in enumerate(found, start=1)):
            return found
    return 0.5, 1.0, 1.5


# The compiled loops. `offsets` (n+1,): where each level begins in the joined arrays. `first` has one entry more than
# grams in each level, so level k begins at offsets[k] + k in it. A gram is known by its place within its level.


@njit(cache=True)
def _child(level, gram, word, offsets, words, first):
    """The place in level + 1 of the gram continued by word, or NOTHING. `level` counts from 0."""
    base = offsets[level + 1]
    low = first[offsets[level] + level + gram]
    high = first[offsets[level] + level + gram + 1]
    while low < high:
        middle = (low + high) // 2
        if words[base + middle] < word:
            low = middle + 1
        else:
            high = middle
    end = first[offsets[level] + level + gram + 1]
    return low if low < end and words[base + low] == word else NOTHING


@njit(cache=True)
def _read(contexts, word, resets, offsets, words, first):
    """Update, in place, the places of the last 1, 2, ... tokens (one per level) by one more token."""
    if word == NOTHING:
        contexts[:] = NOTHING
        return
    for level in range(len(contexts) - 1, 0, -1):
        shorter = contexts[level - 1]
        if shorter == NOTHING or word == resets:
            contexts[level] = NOTHING
        else:
            contexts[level] = _child(level - 1, shorter, word, offsets, words, first)
    if len(contexts) > 0:
        contexts[0] = word


@njit(cache=True)
def _score(text, targets, offsets, words, first, log_prob, log_backoff, resets):
    """log p of targets (B, T) after text (B, n-1+T): the longest known gram, and a backoff for each unknown one."""
    num_rows, num_steps = targets.shape
    num_levels = len(offsets) - 1
    memory = text.shape[1] - num_steps
    result = np.empty((num_rows, num_steps))
    contexts = np.empty(num_levels - 1, dtype=np.int64)
    for row in range(num_rows):
        contexts[:] = NOTHING
        for place in range(text.shape[1]):
            _read(contexts, text[row, place], resets, offsets, words, first)
            step = place - memory
            if step < 0:
                continue
            target = targets[row, step]
            total = 0.0
            found = False
            for level in range(num_levels - 1, 0, -1):
                context = contexts[level - 1]
                if context == NOTHING:
                    continue
                gram = _child(level - 1, context, target, offsets, words, first)
                if gram != NOTHING:
                    total += log_prob[offsets[level] + gram]
                    found = True
                    break
                total += log_backoff[offsets[level - 1] + context]
            if not found:
                total += log_prob[target]
            result[row, step] = total
    return result


@njit(cache=True)
def _distributions(text, offsets, words, first, log_prob, log_backoff, resets):
    """log p of every token after each row of text (B, n-1): (B, V)."""
    num_rows = text.shape[0]
    num_levels = len(offsets) - 1
    vocab_size = offsets[1]
    result = np.empty((num_rows, vocab_size))
    contexts = np.empty(num_levels - 1, dtype=np.int64)
    for row in range(num_rows):
        contexts[:] = NOTHING
        for place in range(text.shape[1]):
            _read(contexts, text[row, place], resets, offsets, words, first)
        result[row] = log_prob[:vocab_size]
        for level in range(1, num_levels):
            context = contexts[level - 1]
            if context == NOTHING:
                continue
            result[row] += log_backoff[offsets[level - 1] + context]
            start = offsets[level - 1] + (level - 1) + context
            for gram in range(first[start], first[start + 1]):
                result[row, words[offsets[level] + gram]] = log_prob[offsets[level] + gram]
    return result
