"""n-gram: the next token depends on the last n-1 tokens, and its probability is counted.

Shannon 1948. Most grams of a language are never seen in a text of it; how to answer for them is what `smoothing` is.
Here c(h w) is how often the token w stands behind the context h, c(h .) the sum over all w, h' the context without its
first token, n_c the number of k-grams seen c times, V the vocabulary. Every smoothing ends in the same form:

    p(w | h)   = the p of its own equation below where the gram h w is kept, else backoff(h) p(w | h')            (1)
    p(w | h')  = 1 / V  where h is empty                                                                          (2)
    backoff(h) = (1 - sum over kept w of p(w | h)) / (1 - sum over kept w of p(w | h'));
                 1 behind a context that is never continued                                                       (3)

Backing off: a gram that is kept answers alone, and what it leaves over goes to the shorter context by (3).

    maximum_likelihood   p = c(h w) / c(h .), and all that was not seen is impossible                             (4)
    add_delta            p = (c(h w) + delta) / (c(h .) + delta V)                          (Lidstone 1920)       (5)
                         The tokens not seen have their deltas together, shared out as the shorter context would.
    katz                 p = d(c) c(h w) / c(h .),  d(c) = (c*/c - A) / (1 - A)  for c <= 5, else 1,
                         c* = (c + 1) n_{c+1} / n_c,  A = 6 n_6 / n_1       (Good-Turing; Katz 1987)              (6)
                         Where no count is discounted, c(h .) counts one more, which is left over; where every token
                         was seen and nobody needs it, all p are divided by their sum.
    stupid               S(w | h) = c(h w) / c(h .) where kept, else stupid_factor S(w | h')  (Brants et al. 2007)
                         S is a score and no probability. We divide by its sum over the vocabulary, Z(h), which changes
                         no ranking and fits (1): p = S(w | h) / Z(h),  backoff(h) = stupid_factor Z(h') / Z(h)   (7)

Interpolating: a context gives away a discount D of each of its counts, and the shorter context always has its say.

    p          = (c(h w) - D(c)) / c(h .) + backoff(h) p(w | h')                                                  (8)
    backoff(h) = sum over w of D(c(h w)) / c(h .)                                                                 (9)
    kneser_ney           D = n_1 / (n_1 + 2 n_2)                            (Kneser & Ney 1995)                  (10)
    modified_kneser_ney  D(c) = c - (c + 1) Y n_{c+1} / n_c  for c = 1, 2, 3+,
                         Y = n_1 / (n_1 + 2 n_2)                            (Chen & Goodman 1998)                (11)

In both, for k < n the count c of a k-gram is the number of distinct tokens that stand before it, plus how often it
begins a text: "Francisco" is frequent, but follows little else than "San".

Leaving grams out, single tokens never. `min_count`: a gram seen fewer times in the text is not kept; c(h .) and n_c
still count it, so that its whole share is left over to (3), and is a discount D = c in (9). `prune` (Stolcke 1998): a
gram is not kept if the perplexity of the model on text like its own would rise by a smaller share, exp(loss) - 1:

    loss = p(h) [ p(w | h) (log p(w | h) - log p(w | h') - log b) + r (log backoff(h) - log b) ],
    r the numerator and l the denominator of (3),  b = (r + p(w | h)) / (l + p(w | h')) the backoff without the gram,
    p(h) = c(h .) / tokens: of the text, since in (8) short contexts do not have their own frequency             (12)

Then all backoffs follow from (3) once more, and probabilities sum to one as before.

The grams are a trie in sorted arrays. Level k holds all k-grams, sorted by their first k-1 tokens and then by the last:
the continuations of a context stand next to each other. Where they are few, one looks at each; where they are many,
an index of (context, token) tells the place.

Shapes: B batch, T steps, n order, V vocabulary, N_k number of k-grams, N of all grams.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tokens
from ..data.schema import Schema, TokenSpec
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.gram_trie import (
    EMPTY,
    MAX_SCANNED,
    NOTHING,
    count_grams,
    distributions,
    fill_index,
    read_grams,
    sort_by_key,
)
from ..layers.gram_counts import (
    KATZ_LIMIT,
    Grams,
    divide,
    estimate_discount,
    estimate_discounts,
    estimate_ratios,
    interpolate,
)
from ..layers.notes import is_recorded, note
from ..machine import check_memory
from .contract import State, check_tokens

USED = "tokens used"  # of the context of a token, by the longest gram that was found
SUM_SLACK = 1e-6  # by which the log of a probability in a file may be above zero
MAX_ORDER = 255  # the compiled loops count the tokens of a context in a byte
TINY = 1e-15  # a sum that is rounded to zero or below
PART = 1 << 14  # tokens to score that are worth a thread

Smoothing = Literal["modified_kneser_ney", "kneser_ney", "katz", "stupid", "add_delta", "maximum_likelihood"]


@dataclass(frozen=True)
class NgramConfig:
    order: int = 5
    """n: the next token is predicted from the n-1 before it; 0 tries several and keeps what validates best."""
    across_lines: bool = True
    """Whether contexts reach back over the end of a line; else each line is a text of its own."""
    smoothing: Smoothing = "modified_kneser_ney"
    """How grams that the text does not have get a probability; with maximum_likelihood they get none."""
    delta: float = 0.1
    """What add_delta adds to each count."""
    stupid_factor: float = 0.4
    """What stupid backoff multiplies with for each token that it drops from the context."""
    min_count: int = 1
    """Grams that are seen fewer times are left out; 1 keeps all."""
    min_count_from: int = 2
    """Tokens in the shortest grams to which min_count applies."""
    prune: float = 0.0
    """Grams whose absence raises the perplexity by a smaller share than this are left out; 0 keeps all."""
    method: Literal["bag", "generative"] = "bag"
    """Labels: weigh all grams of a text for and against each label, or count one model of text for each label."""
    strength: float = 0.0
    """Labels by a bag: pull of the weights towards zero; 0 tries several and keeps what validates best."""
    alpha: float = 0.5
    """Labels by a bag: what is added to each count; the more, the less is made of rare grams."""
    background: float = 100.0
    """Labels by models of text: how many tokens of a label weigh as much as the texts of all labels."""

    def __post_init__(self) -> None:
        if self.order < 0:
            raise ConfigError(f"model.order = {self.order} should be at least 1, or 0 to choose it by validation.")
        if self.order > MAX_ORDER:
            raise ConfigError(f"model.order = {self.order} should be at most {MAX_ORDER}.")
        if not self.delta > 0:
            raise ConfigError(f"model.delta = {self.delta} should be above 0.")
        if not 0 < self.stupid_factor <= 1:
            raise ConfigError(f"model.stupid_factor = {self.stupid_factor} should be above 0 and at most 1.")
        if self.min_count < 1:
            raise ConfigError(f"model.min_count = {self.min_count} should be at least 1.")
        if self.min_count_from < 2:
            raise ConfigError(
                f"model.min_count_from = {self.min_count_from} should be at least 2: single tokens are always kept."
            )
        if not 0 <= self.prune < 1:
            raise ConfigError(f"model.prune = {self.prune} should be at least 0 and below 1.")


@dataclass
class Level:
    """All grams of one length. The continuations of gram j are the places first[j] to first[j+1] of the next level."""

    words: np.ndarray  # (N_k,) the last token of each gram
    first: np.ndarray  # (N_k + 1,) into the next level
    log_prob: np.ndarray  # (N_k,) of the last token after the others, the first case of (1)
    log_backoff: np.ndarray  # (N_k,) of the gram as a context

    def is_sound(self, num_next: int, vocab_size: int) -> bool:
        """Whether every place it names exists and every number is one. `num_next` is the size of the next level."""
        sizes = {array.shape for array in (self.words, self.first[1:], self.log_prob, self.log_backoff)}
        if sizes != {(len(self.words),)} or any(array.dtype.kind != "i" for array in (self.words, self.first)):
            return False
        are_all_there = self.first[0] == 0 and self.first[-1] == num_next and (np.diff(self.first) >= 0).all()
        is_known = (self.words >= 0).all() and (self.words < vocab_size).all()
        is_number = (self.log_prob <= SUM_SLACK).all() and (self.log_backoff < np.inf).all()  # false of what is none
        return bool(are_all_there and is_known and is_number)


class Ngram:
    """Counts from `fit`, probabilities by (1). Its state is the last n-1 tokens."""

    context = None
    carries_state = continues = True
    score_tracks = 1
    """Reading several segments side by side gains a count model nothing, and would cut contexts."""

    def __init__(self, config: NgramConfig, schema: Schema):
        spec = schema.input("tokens", TokenSpec)
        self.config, self.vocab_size, self.boundary = config, spec.size, spec.boundary
        self.levels: list[Level] = []
        self.discounts: list[tuple[float, float, float]] = []
        """(10) or (11) of each level; zeros where the smoothing is another."""

    @classmethod
    def from_levels(cls, config: NgramConfig, schema: Schema, levels: list[Level]) -> Ngram:
        """A model whose probabilities were estimated elsewhere."""
        model = cls(config, schema)
        model.levels, model.discounts = levels, [(0.0, 0.0, 0.0)] * len(levels)
        model._join()
        return model

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, ids: np.ndarray) -> None:
        """Count a text: ids (N+1,) with the boundary first. Everything but that first token is predicted."""
        check_tokens(ids, self.vocab_size)
        if len(ids) < 2:
            raise DataError("an n-gram model needs at least one token to count.")
        if self.config.order == 0:
            raise ConfigError("model.order = 0 is chosen by training; to count, set it to 1 or more.")
        check_memory(
            counting_bytes(len(ids), self.config.order),
            f"counting grams of up to {self.config.order} tokens in a text of {len(ids) - 1:,}",
            "Lower model.order, or read less: training.train_tokens.",
        )
        levels = self._count(np.asarray(ids, dtype=np.int32))
        self._estimate(levels)
        if self.config.prune > 0:
            self._prune(levels)
        self._keep(levels)

    def _count(self, ids: np.ndarray) -> list[Grams]:
        """The empty gram, and all grams of 1, 2, ... tokens, up to the order or the longest that the text has."""
        V, words = self.vocab_size, ids[1:]  # (T,) what is predicted
        starts = np.zeros(1, dtype=np.int64) if self.config.across_lines else np.flatnonzero(ids == self.boundary)
        counts = np.bincount(words, minlength=V)
        empty, single = np.zeros(1, dtype=np.int32), np.zeros(V, dtype=np.int32)
        levels = [
            Grams(0, empty, empty, empty, empty, empty, empty == 0, prob=np.full(1, 1 / V)),  # (2)
            Grams(1, single, np.arange(V, dtype=np.int32), counts, single, single, counts > 0),
        ]
        by_word = sort_by_key(np.arange(len(words), dtype=np.int32), words, V)
        gram = words  # (T,) the k-gram that ends at each token, as a place in its level
        for k in range(2, self.config.order + 1):
            num_contexts, shorter, context = len(levels[-1].words), gram, self._contexts_after(gram, ids, k - 1)
            there = by_word[context[by_word] != NOTHING]
            if len(there) == 0:  # no text is that long
                break
            gram, parent, last, counts, seen_at = count_grams(sort_by_key(there, context, num_contexts), context, words)
            ends = starts + (k - 2)  # in words: where the k-grams end that begin a text
            begins = gram[ends[ends < len(words)]]
            begins = np.bincount(begins[begins != NOTHING], minlength=len(counts)).astype(np.int32)
            is_kept = counts >= (self.config.min_count if k >= self.config.min_count_from else 1)
            levels.append(Grams(num_contexts, parent, last, counts, shorter[seen_at], begins, is_kept))
        return levels

    def _contexts_after(self, gram: np.ndarray, ids: np.ndarray, k: int) -> np.ndarray:
        """The k-gram that stands before each predicted token: the gram that ended one place to the left."""
        context = np.full(len(gram), NOTHING, dtype=np.int32)
        context[1:] = gram[:-1]
        if k == 1:
            context[0] = ids[0]  # the boundary that stands first; level 1 is indexed by token
        elif not self.config.across_lines:
            context[1:][ids[1:-1] == self.boundary] = NOTHING  # behind a line's end only the boundary is context
        return context

    def _estimate(self, levels: list[Grams]) -> None:
        """`prob` of every gram, kept or not, and `backoff` of every context, from short to long."""
        is_modified = self.config.smoothing == "modified_kneser_ney"
        self.discounts = []
        scale = np.ones(1)  # Z(h') of (7)
        for k, (below, level) in enumerate(pairwise(levels), start=1):
            lower = below.prob[level.suffix]  # p(w | h')
            if is_modified or self.config.smoothing == "kneser_ney":
                counts = level.counts
                if k < len(levels) - 1:
                    counts = np.bincount(levels[k + 1].suffix, minlength=len(counts)) + level.begins
                discounts = estimate_discounts(counts) if is_modified else (estimate_discount(counts),) * 3
                level.prob, below.backoff = interpolate(level, lower, counts, discounts)
            else:
                discounts = 0.0, 0.0, 0.0
                share, rest = self._shares(level)
                left = 1 - level.sums(lower * level.is_kept)  # the denominator of (3)
                if self.config.smoothing == "stupid":
                    shorter = self.config.stupid_factor * scale[below.suffix]
                    scale = (1 - rest) + shorter * left
                    share, below.backoff = share / scale[level.parent], shorter / scale  # (7)
                else:
                    below.backoff = rest / np.maximum(left, TINY)  # (3)
                level.prob = np.where(level.is_kept, share, below.backoff[level.parent] * lower)  # (1)
            self.discounts.append(discounts)
        levels[-1].backoff = np.ones(len(levels[-1].words))

    def _shares(self, level: Grams) -> tuple[np.ndarray, np.ndarray]:
        """p of each kept gram, and what each context leaves over: the numerator of (3)."""
        V, counts, kept = self.vocab_size, level.counts, level.is_kept
        total, num_kept, rest = level.sums(counts), level.sums(kept), level.sums(counts * ~kept)
        if self.config.smoothing == "add_delta":  # (5)
            given = counts + self.config.delta
            total, rest = total + self.config.delta * V, rest + self.config.delta * (V - num_kept)
        elif self.config.smoothing == "katz":  # (6)
            given = np.array([1.0, *estimate_ratios(counts), 1.0])[np.minimum(counts, KATZ_LIMIT + 1)] * counts
            rest += level.sums((counts - given) * kept)
            is_all_seen = num_kept == V  # nobody is there to leave anything to
            total -= rest * is_all_seen
            rest *= ~is_all_seen
            is_all_given = (rest == 0) & ~is_all_seen
            total, rest = total + is_all_given, rest + is_all_given
        else:  # (4)
            given = counts
        return divide(given, total[level.parent], otherwise=0.0), divide(rest, total, otherwise=1.0)

    def _prune(self, levels: list[Grams]) -> None:
        """Leave grams out by (12), from long to short: a gram stays while a longer one that begins with it does."""
        num_tokens, rests = levels[1].counts.sum(), {}
        is_prefix = np.zeros(len(levels[-1].words), dtype=bool)
        for k in range(len(levels) - 1, 1, -1):
            below, level = levels[k - 1], levels[k]
            lower, p = below.prob[level.suffix], level.prob
            left = np.maximum(1 - level.sums(lower * level.is_kept), 0.0)
            rest = below.backoff * left
            r, without = rest[level.parent], (rest[level.parent] + p) / (left[level.parent] + lower)
            with np.errstate(divide="ignore", invalid="ignore"):  # of grams that are not kept
                loss = p * np.log(p / (lower * without))
                loss += np.where(r > 0, r * np.log(below.backoff[level.parent] / without), 0.0)
            loss *= level.sums(level.counts)[level.parent] / num_tokens  # (12)
            is_dropped = level.is_kept & ~is_prefix & (np.expm1(loss) < self.config.prune)
            level.is_kept = level.is_kept & ~is_dropped
            rests[k] = rest + level.sums(p * is_dropped)
            is_prefix = np.bincount(level.parent[level.is_kept], minlength=len(below.words)) > 0
        for k in range(2, len(levels)):
            below, level = levels[k - 1], levels[k]
            lower = below.prob[level.suffix]
            left = np.maximum(1 - level.sums(lower * level.is_kept), TINY)
            below.backoff = np.where(level.sums(level.is_kept) > 0, rests[k] / left, 1.0)  # (3)
            level.prob = np.where(level.is_kept, level.prob, below.backoff[level.parent] * lower)  # (1)

    def _keep(self, levels: list[Grams]) -> None:
        """The kept grams of each level, as a trie. What is done is freed: `levels` is empty afterwards."""
        self.levels = []
        place = np.zeros(1, dtype=np.int64)  # of each gram of the level below, among those kept
        levels[1].is_kept[:] = True
        del levels[0]
        while levels and levels[0].is_kept.any():
            level = levels.pop(0)
            kept = np.flatnonzero(level.is_kept)
            if self.levels:
                before = self.levels[-1]
                edges = np.searchsorted(place[level.parent[kept]], np.arange(len(before.words) + 1))
                before.first = edges.astype(np.int32)
            with np.errstate(divide="ignore"):
                log_prob, log_backoff = np.log(level.prob[kept]), np.log(level.backoff[kept])
            self.levels.append(Level(level.words[kept], np.zeros(len(kept) + 1, dtype=np.int32), log_prob, log_backoff))
            place = np.cumsum(level.is_kept) - 1
        levels.clear()
        self.discounts = self.discounts[: len(self.levels)]
        self._join()

    # -- the verbs -----------------------------------------------------------------------------------------------

    def initial_state(self, batch_size: int) -> State:
        return State({"context": torch.full((batch_size, self._memory), NOTHING)})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        inputs, targets = batch.inputs["tokens"], batch.targets["tokens"].ids.cpu()
        before, ids = (state or self.initial_state(len(batch))).per_row["context"], inputs.ids.cpu()
        if torch.equal(ids[:, 1:], targets[:, :-1]):  # what is predicted is read next, and looked up once
            log_probs, depths = self._score(torch.cat([before, ids[:, :1]], dim=1), targets)
        else:  # each target with a context of its own
            windows = torch.cat([before, ids], dim=1).unfold(1, self._memory + 1, 1)  # (B, T, n)
            found = self._score(windows.flatten(0, 1), targets.reshape(-1, 1))
            log_probs, depths = (each.reshape(targets.shape) for each in found)
        note(self, USED, torch.from_numpy(depths).unsqueeze(-1))
        return torch.from_numpy(log_probs), self._state_after(before, inputs)

    def _score(self, given: Tensor, targets: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Targets (B, T) that stand one after the other behind given (B, n): log p, and the tokens of context used, of
        each; long texts by several threads."""
        num_parts = max(1, min(torch.get_num_threads(), targets.shape[1] // PART))
        if num_parts == 1:
            return self._read(given, targets)[:2]
        parts = targets.tensor_split(num_parts, dim=1)
        befores = [given, *(part[:, -(self._memory + 1) :] for part in parts[:-1])]
        with ThreadPoolExecutor(num_parts) as pool:  # the compiled loop lets other threads run
            found = list(pool.map(self._read, befores, parts))
        log_probs, depths = (np.concatenate([part[number] for part in found], axis=1) for number in range(2))
        return log_probs, depths

    def start(self, prompt: Batch, state: State | None = None) -> tuple[Tensor, State]:
        before = (state or self.initial_state(len(prompt))).per_row["context"]
        if is_recorded():
            self._show_used(before, prompt.inputs["tokens"].ids)
        state = self._state_after(before, prompt.inputs["tokens"])
        return self._next(state), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        if is_recorded():
            self._show_used(state.per_row["context"], tokens.unsqueeze(1))
        text = torch.cat([state.per_row["context"], tokens.cpu().unsqueeze(1)], dim=1)
        state = State({"context": text[:, 1:]})
        return self._next(state), state

    def _show_used(self, before: Tensor, tokens: Tensor) -> None:
        note(self, USED, torch.from_numpy(self._read(before, tokens.cpu())[1]).unsqueeze(-1))

    def _next(self, state: State) -> Tensor:
        """log p of every token, (B, V)."""
        context = state.per_row["context"]
        _, _, contexts = self._read(context, context[:, :0])
        words, first, values, _ = self._arrays
        return torch.from_numpy(distributions(contexts, self.vocab_size, words, first, values))

    def _read(self, given: Tensor, targets: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log p of targets (B, T) behind given (B, ...), how many tokens of context each was found with (B, T), and
        the contexts in the end (B, levels - 1)."""
        check_tokens(given, self.vocab_size, lowest=NOTHING)
        check_tokens(targets, self.vocab_size)
        resets = NOTHING if self.config.across_lines else self.boundary  # the token behind which no context reaches
        tokens = given.contiguous().numpy(), targets.contiguous().numpy()
        return read_grams(*tokens, len(self.levels) - 1, resets, *self._arrays)

    def _state_after(self, before: Tensor, inputs: Tokens) -> State:
        """The last n-1 tokens of each row, after the state before it."""
        ids, memory = inputs.ids.cpu(), self._memory
        if inputs.is_token is None:
            ids = ids[:, max(0, ids.shape[1] - memory) :]
            return State({"context": torch.cat([before, ids], dim=1)[:, ids.shape[1] :]})
        places = inputs.lengths.cpu()[:, None] + torch.arange(memory)  # (B, n-1)
        return State({"context": torch.cat([before, ids], dim=1).gather(1, places)})

    @property
    def _memory(self) -> int:
        """Tokens that a context can have: n-1, or fewer where no text was that long."""
        return max(1, len(self.levels)) - 1

    def _join(self) -> None:
        """All levels end to end, as the compiled loops want them, and the index of contexts that go on in many ways."""
        ends = np.cumsum([len(level.words) for level in self.levels])
        words, values = np.empty(ends[-1], dtype=np.int32), np.empty((ends[-1], 2))
        first = np.full(ends[-1] + 1, ends[-1], dtype=np.int32)
        for level, end in zip(self.levels, ends, strict=True):
            here = slice(end - len(level.words), end)
            words[here], values[here, 0], values[here, 1] = level.words, level.log_prob, level.log_backoff
            if end < ends[-1]:
                first[here] = level.first[:-1] + end
            level.words, level.log_prob, level.log_backoff = words[here], values[here, 0], values[here, 1]
        num_next = np.diff(first)
        num_slots = 1 << int(4 * num_next[num_next > MAX_SCANNED].sum()).bit_length()  # an eighth to a quarter is full
        index = np.full(num_slots, EMPTY)
        fill_index(index, words, first)
        self._arrays = words, first, values, index

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
        except (KeyError, TypeError) as error:  # a name that is missing, or a list of numbers that is none of rows
            raise CheckpointError(f"the n-gram model lacks {error}; its file is damaged.") from None
        if any(len(row) != 3 for row in self.discounts) or not 1 <= len(self.levels) <= max(1, self.config.order):
            raise CheckpointError(
                f"the n-gram model is damaged: its file has discounts for {len(self.levels)} lengths of grams, "
                f"and model.order is {self.config.order}."
            )
        if len(self.levels[0].words) != self.vocab_size:
            raise CheckpointError(
                f"the n-gram model has {len(self.levels[0].words)} tokens, but the vocabulary has {self.vocab_size}."
            )
        for k, level in enumerate(self.levels, start=1):  # the compiled loops trust what they read
            num_next = len(self.levels[k].words) if k < len(self.levels) else 0
            if not level.is_sound(num_next, self.vocab_size) or (k == 1 and (np.diff(level.words) != 1).any()):
                raise CheckpointError(f"the n-gram model is damaged: its grams of {k} tokens do not fit together.")
        self._join()


def counting_bytes(num_tokens: int, order: int) -> int:
    """What counting a text takes, at most: where every long gram is new."""
    return num_tokens * 8 * (order + 8)
