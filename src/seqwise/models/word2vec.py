"""word2vec: words that stand among the same words get vectors that point the same way.

Mikolov et al. 2013 (two papers: the models; negative sampling, subsampling, phrases). Fixes in the window model: no
hidden layer and no softmax over the vocabulary, so that millions of words are read in seconds, and the vectors, there a
by-product, are what is learned. They carry over to other tasks: any family's embedding can start from them.

A word w has a vector v_w, and an output u_w by which it is predicted. The context of w is the r words on either side of
it in its line, r drawn anew each time from 1 to `window`: near words count more. It predicts w from

    skip_gram   h = v_c, for each word c of the context by itself                                                 (1)
    cbow        h = mean of v_c over the context (continuous bag of words)                                        (2)

and what is maximised, by one small step after each h, is how well the outputs tell w from words that are not there:

    negative sampling      log sigmoid(u_w . h) + sum over `negative` drawn n of log sigmoid(-u_n . h),
                           n drawn by q(n) = count(n)^noise_power / sum; n = w is passed over                     (3)
                           They are drawn once for w and all of its context (Ji et al. 2016): the same on average, and
                           near at hand when they are needed again.
    hierarchical softmax   sum over the inner nodes k on the path to w of log sigmoid(±u_k . h), + where the path
                           turns left: the words are leaves of a Huffman tree, frequent ones near its root        (4)

    step                   u += rate (label - sigmoid(u . h)) h,   v_c += rate (sum of (label - sigmoid) u)       (5)
                           As in the authors' program, each v_c of (2) is moved by all of it, not by its share.

Frequent words tell little and are many: each one of frequency f stays in the text with the probability

    min(1, sqrt(subsample / f) + subsample / f)                                                                   (6)

Dropped words, unknown ones and those below `min_count` do not count as distance. The rate falls linearly to its end.
The text is read in blocks of lines, in another order each time.

What (3) learns is exp(u_w . h) = p / (1 - p) / (`negative` q(w)) with p = p(w | h), as a word is never its own negative
(Levy & Goldberg 2014 have it without the 1 - p, which is near one where words are many). So a probability follows:

    p(w | h) = sigmoid(u_w . h + log(`negative` q(w))) / sum over all words;   of (4), the product of its sigmoids (7)

Shapes: V vocabulary, E embedding width, B batch, T steps, N tokens of a text, L nodes of all paths together.
"""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch
from ..data.schema import Schema, TokenSpec
from ..data.word_vectors import WordVectors
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.skip_gram import LONGEST_LINE, alias_table, huffman_paths, learn_text
from ..layers.notes import note
from ..machine import check_memory
from ..wording import counted
from .contract import State, check_tokens

EPOCHS = 5.0
LEARNING_RATE, FINAL_RATE = 0.05, 0.002
"""Where nothing else is said: the rate at the beginning, and at the end as a share of that."""
BLOCK_TOKENS = 1_000  # that stay together when the order of a text is drawn; up to the end of a line more
BLOCKS_AT_ONCE = 8  # that a worker has in memory
STEP_TOKENS = 1_000_000  # between two reports
READ_AT_ONCE = 1 << 16  # tokens
SCORED_AT_ONCE = 256  # places, each with a number for every word


@dataclass(frozen=True)
class Word2VecConfig:
    method: Literal["skip_gram", "cbow"] = "skip_gram"
    """Whether each word of a context predicts the word it surrounds, or all of them together; cbow is faster."""
    embed_dim: int = 100
    """Width of the vectors."""
    window: int = 5
    """Words on either side that a context can have."""
    negative: int = 5
    """Negative sampling: words drawn beside each one that is there."""
    hierarchical: bool = False
    """Whether words are predicted along a Huffman tree, instead of by negative sampling."""
    subsample: float = 1e-3
    """Frequency above which words are dropped at random; 0 keeps all."""
    min_count: int = 1
    """Words that the text has fewer times get no vector; the tokenizer leaves rare ones out already."""
    noise_power: float = 0.75
    """Negative sampling: the power of a word's count that it is drawn by; 1 draws by frequency, 0 evenly."""

    def __post_init__(self) -> None:
        for name in ("embed_dim", "window", "negative", "min_count"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} = {getattr(self, name)} should be at least 1.")
        if not 0 <= self.subsample < math.inf:
            raise ConfigError(f"model.subsample = {self.subsample} should be at least 0; 1e-3 is usual.")
        if not 0 <= self.noise_power <= 1:
            raise ConfigError(f"model.noise_power = {self.noise_power} should be between 0 and 1; 0.75 is usual.")


@dataclass(frozen=True)
class Part:
    """What `fit` tells after each step: a part of the text was read."""

    step: int
    steps: int
    tokens: int
    """Read so far."""
    loss: float
    """Of this part: (3) or (4) with its sign changed, nats per prediction."""
    rate: float
    """At the end of the part."""
    seconds: float
    """That this part took."""


class Word2Vec:
    """Vectors from `fit`. As a model of text it knows one word before the next: (7) with h the vector of that word.

    A text has no likelihood under (3) or (4), which predict words at any distance up to the window, and each of them
    several times. So `score` gives what can be given honestly: the probability of the next token under (7), which sums
    to one. It is for evaluation, and no more than a smoothed bigram. Tokens without a vector (unknown and rare words,
    the end of a line) have the probability of their frequency, and say nothing of what comes next.
    """

    context = None
    carries_state = continues = True

    def __init__(self, config: Word2VecConfig, schema: Schema):
        spec = schema.input("tokens", TokenSpec)
        self.config, self.spec, self.vocab_size = config, spec, spec.size
        self.boundary, self.unknown = spec.boundary, getattr(spec.tokenizer, "unknown", None)
        self.counts = np.zeros(self.vocab_size, dtype=np.int64)
        """(V,): how often the text has each token."""
        self.vectors = np.zeros((self.vocab_size, config.embed_dim), dtype=np.float32)
        """(V, E): v of each word; zero where it has none."""
        self.outputs = np.zeros((self.vocab_size, config.embed_dim), dtype=np.float32)
        """(V, E): u of each word, or of each inner node of the tree."""

    @property
    def context_vectors(self) -> np.ndarray | None:
        """(V, E): u of each word, near the vectors of the words around it; None where the tree's nodes have them."""
        return None if self.config.hierarchical else self.outputs

    @property
    def has_vector(self) -> np.ndarray:
        """(V,) bool: the words that are often enough in the text."""
        has_vector = self.counts >= self.config.min_count
        has_vector[[token for token in (self.boundary, self.unknown) if token is not None]] = False
        return has_vector

    @cached_property
    def words(self) -> WordVectors:
        """The words that have a vector, by falling count: neighbours, analogies, similarity."""
        rows = self._by_count
        return WordVectors([self.spec.tokenizer.piece(int(row)) for row in rows], self.vectors[rows])

    @property
    def _by_count(self) -> np.ndarray:
        """The tokens that have a vector, the most frequent first."""
        rows = np.flatnonzero(self.has_vector)
        return rows[np.argsort(-self.counts[rows], kind="stable")]

    # -- learning ------------------------------------------------------------------------------------------------

    def initialise(self, ids: np.ndarray, seed: int = 0) -> None:
        """Count a text and draw vectors: between -1 / E and 1 / E, and outputs of zero."""
        check_memory(
            2 * self.vectors.nbytes,
            f"vectors of {self.config.embed_dim} numbers for {self.vocab_size:,} words",
            "Lower model.embed_dim, or choose fewer words: tokenizer.min_count.",
        )
        self.counts = np.zeros(self.vocab_size, dtype=np.int64)
        for start in range(0, len(ids), READ_AT_ONCE):
            check_tokens(ids[start : start + READ_AT_ONCE], self.vocab_size)
            self.counts += np.bincount(ids[start : start + READ_AT_ONCE], minlength=self.vocab_size)
            _let_go(ids)
        num_words = int(self.has_vector.sum())
        if num_words < 2:
            raise DataError(
                f"the text has {counted(num_words, 'word')} at least {self.config.min_count} times, and two are "
                "needed. Give more text, or lower model.min_count."
            )
        random, E = np.random.default_rng([seed, 0]), self.config.embed_dim
        self.vectors, self.outputs = (np.zeros((self.vocab_size, E), dtype=np.float32) for _ in range(2))
        for row in np.flatnonzero(self.has_vector):  # all at once would take twice the memory
            self.vectors[row] = random.uniform(-1 / E, 1 / E, E)
        self._forget()

    def take_vectors(self, vectors: np.ndarray) -> None:
        """Vectors (words, E) from elsewhere, of all tokens but the unknown word and the boundary, each seen once."""
        self.counts, self.vectors[:] = np.ones_like(self.counts), 0
        self.vectors[self.has_vector] = vectors
        self._forget()

    def fit(
        self,
        ids: np.ndarray,
        *,
        steps: int | None = None,
        learning_rate: float = LEARNING_RATE,
        final_rate: float = FINAL_RATE,
        workers: int = 1,
        seed: int = 0,
        begin: int = 0,
    ) -> Iterator[Part]:
        """Read a text (N,), of ids with the boundary behind each line, in so many steps; tells of each.

        `steps_per_epoch` says how many a pass over the text has. One worker repeats to the bit from its seed; several
        are as many times as fast, and differ a little each time. `begin` is the step to go on from, with the counts and
        vectors it left behind; at 0 they are made anew.
        """
        if begin == 0:
            self.initialise(ids, seed)
        edges, per_epoch = block_edges(ids, self.boundary), steps_per_epoch(len(ids))
        steps = round(EPOCHS * per_epoch) if steps is None else steps
        for step in range(begin, steps):
            began = time.perf_counter()
            epoch, part = divmod(step, per_epoch)
            order = np.random.default_rng([seed, 1, epoch]).permutation(len(edges) - 1)
            parts = np.array_split(order, per_epoch)
            rates = [learning_rate * (1 - (1 - final_rate) * place / steps) for place in (step, step + 1)]
            loss = self._learn(ids, edges, np.array_split(parts[part], workers), (rates[0], rates[1]), [seed, 2, step])
            read = epoch * len(ids) + int(np.diff(edges)[np.concatenate(parts[: part + 1])].sum())
            yield Part(step + 1, steps, read, loss, rates[1], time.perf_counter() - began)

    def _learn(
        self, ids: np.ndarray, edges: np.ndarray, shares: list[np.ndarray], rates: tuple[float, float], seed: list[int]
    ) -> float:
        """One thread for each share of the blocks, which it reads a few at a time; returns the mean loss."""
        keep, table, paths = self._tables
        negative = 0 if self.config.hierarchical else self.config.negative
        settings = keep, self.config.window, self.config.method == "cbow", negative, table, *paths

        def learn(worker: int) -> tuple[float, int]:
            blocks, total, num_measured = shares[worker], 0.0, 0
            starts = range(0, len(blocks), BLOCKS_AT_ONCE)
            seeds = np.random.SeedSequence([*seed, worker]).generate_state(len(starts), np.uint64)
            for start, drawn in zip(starts, seeds, strict=True):
                some = blocks[start : start + BLOCKS_AT_ONCE]
                here = [rates[0] + (rates[1] - rates[0]) * k / len(blocks) for k in (start, start + len(some))]
                text = _gather(ids, edges, some, self.boundary)
                loss, num = learn_text(
                    text, self.boundary, *settings, self.vectors, self.outputs, (here[0], here[1]), drawn
                )
                total, num_measured = total + loss, num_measured + num
            return total, num_measured

        with ThreadPoolExecutor(len(shares)) as pool:  # the compiled loop lets other threads run
            found = list(pool.map(learn, range(len(shares))))
        for name in ("words", "_normalisers"):
            self.__dict__.pop(name, None)
        return sum(loss for loss, _ in found) / max(1, sum(num for _, num in found))

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(6) of each token (V,), what negatives are drawn by (V, 2), and the paths of (4)."""
        has_vector = self.has_vector
        frequency = self.counts / max(1, self.counts[has_vector].sum())
        keep = has_vector.astype(np.float64)
        if self.config.subsample > 0:
            ratio = self.config.subsample / np.where(has_vector, frequency, 1)
            keep *= np.minimum(1, np.sqrt(ratio) + ratio)  # (6)
        noise = np.where(has_vector, self.counts.astype(np.float64) ** self.config.noise_power, 0)
        return keep, alias_table(noise), self._paths()

    def _paths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the path of each token begins (V + 1,), nodes and turns (L,): all empty where there is no tree."""
        if not self.config.hierarchical:
            return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
        rows = self._by_count
        first, nodes, turns = huffman_paths(self.counts[rows])
        lengths = np.zeros(self.vocab_size, dtype=np.int64)
        lengths[rows] = np.diff(first)
        begins = np.append(0, np.cumsum(lengths))
        places = np.concatenate([np.arange(first[rank], first[rank + 1]) for rank in np.argsort(rows)])
        return begins, nodes[places], turns[places]

    def _forget(self) -> None:
        """What follows from counts and vectors is computed anew."""
        for name in ("words", "_tables", "_log_shares", "_normalisers"):
            self.__dict__.pop(name, None)

    # -- the verbs -----------------------------------------------------------------------------------------------

    def initial_state(self, batch_size: int) -> State:
        return State({"last": torch.full((batch_size,), self.boundary)})

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State]:
        inputs, targets = batch.inputs["tokens"], batch.targets["tokens"].ids.cpu()
        ids, last = inputs.ids.cpu(), (state or self.initial_state(len(batch))).per_row["last"]
        check_tokens(ids, self.vocab_size)
        check_tokens(targets, self.vocab_size)
        note(self, "embedding", torch.from_numpy(self.vectors)[ids])
        pairs = zip(ids.flatten().split(SCORED_AT_ONCE), targets.flatten().split(SCORED_AT_ONCE), strict=True)
        log_probs = torch.cat([self._log_probs_of(word, target) for word, target in pairs])
        with_last = torch.cat([last.unsqueeze(1), ids], dim=1)
        after = with_last.gather(1, inputs.lengths.cpu().unsqueeze(1)).squeeze(1)
        return log_probs.view(targets.shape), State({"last": after})

    def start(self, prompt: Batch) -> tuple[Tensor, State]:
        tokens, last = prompt.inputs["tokens"], self.initial_state(len(prompt)).per_row["last"]
        with_last = torch.cat([last.unsqueeze(1), tokens.ids.cpu()], dim=1)
        note(self, "embedding", torch.from_numpy(self.vectors)[with_last[:, 1:]])
        return self._next(with_last.gather(1, tokens.lengths.cpu().unsqueeze(1)).squeeze(1))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        note(self, "embedding", torch.from_numpy(self.vectors)[tokens.cpu()].unsqueeze(1))
        return self._next(tokens.cpu())

    def _next(self, last: Tensor) -> tuple[Tensor, State]:
        """log p of every token, (B, V)."""
        return torch.cat([self._log_probs(some) for some in last.split(SCORED_AT_ONCE)]), State({"last": last})

    def _log_probs_of(self, words: Tensor, targets: Tensor) -> Tensor:
        """(7) of one target behind each word, (places,)."""
        if not self.config.hierarchical:
            met = (torch.from_numpy(self.vectors)[words] * torch.from_numpy(self.outputs)[targets]).sum(dim=1)
            shares = torch.from_numpy(self._log_shares)[targets]
            of_words = torch.nn.functional.logsigmoid(met.double() + shares) - self._normalisers_of(words)
            return torch.where(torch.from_numpy(self.has_vector)[targets], of_words, shares)
        begins, nodes, turns = self._tables[2]
        first, lengths = begins[targets], np.diff(begins)[targets]
        owner = np.repeat(np.arange(len(targets)), lengths)
        places = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + first[owner]
        met = np.einsum("le,le->l", self.vectors[words][owner], self.outputs[nodes[places]])
        signed = torch.from_numpy(np.where(turns[places] == 0, met, -met).astype(np.float64))
        along = torch.zeros(len(targets), dtype=torch.float64)
        along.index_add_(0, torch.from_numpy(owner), torch.nn.functional.logsigmoid(signed))
        return along + torch.from_numpy(self._log_shares)[targets]

    @cached_property
    def _normalisers(self) -> Tensor:
        """log of the sum in (7) behind each word (V,), not a number where it was not asked for yet."""
        return torch.full((self.vocab_size,), math.nan, dtype=torch.float64)

    def _normalisers_of(self, words: Tensor) -> Tensor:
        """Of these words (places,); the sum over all words is computed once for each."""
        new = words.unique()
        for some in new[self._normalisers[new].isnan()].split(SCORED_AT_ONCE):
            self._normalisers[some] = self._meets(some)[1].squeeze(1)
        return self._normalisers[words]

    def _meets(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """log of the terms of (7) of every token behind each word (places, V), and of what they are divided by."""
        met = torch.from_numpy(self.vectors)[words] @ torch.from_numpy(self.outputs).T
        has_vector, shares = torch.from_numpy(self.has_vector), torch.from_numpy(self._log_shares)
        meets = torch.nn.functional.logsigmoid(met.double() + shares).masked_fill(~has_vector, -math.inf)
        return meets, meets.logsumexp(dim=1, keepdim=True) - self._log_share_of_words

    def _log_probs(self, words: Tensor) -> Tensor:
        """(7) of every token behind each word, (places, V)."""
        if self.config.hierarchical:
            met = torch.from_numpy(self.vectors)[words] @ torch.from_numpy(self.outputs).T  # (places, V)
            return torch.stack([self._along_paths(each) for each in met.double()])
        meets, normaliser = self._meets(words)
        return torch.where(torch.from_numpy(self.has_vector), meets - normaliser, torch.from_numpy(self._log_shares))

    def _along_paths(self, met: Tensor) -> Tensor:
        """What a vector has in common with each node, (V,) -> (7) of every token, (V,)."""
        begins, nodes, turns = (torch.from_numpy(array) for array in self._tables[2])
        at_nodes = met[nodes.long()]
        turned = torch.nn.functional.logsigmoid(torch.where(turns == 0, at_nodes, -at_nodes))
        sums = torch.nn.functional.pad(turned.cumsum(0), (1, 0))
        return sums[begins[1:]] - sums[begins[:-1]] + torch.from_numpy(self._log_shares)

    @cached_property
    def _log_shares(self) -> np.ndarray:
        """log of the frequency of tokens without a vector, which is their probability; of words, log(`negative` q) and
        in a tree what all of them have together."""
        has_vector = self.has_vector
        if self.config.hierarchical:
            of_words = np.full(self.vocab_size, self._log_share_of_words)
        else:
            noise = np.where(has_vector, self.counts.astype(np.float64) ** self.config.noise_power, 0)
            of_words = np.log(np.maximum(noise, 1) / noise.sum() * self.config.negative)
        return np.where(has_vector, of_words, np.log((self.counts + 1) / self._total))

    @property
    def _total(self) -> float:
        """Of all counts, where each token without a vector has one more: none is impossible."""
        return float(self.counts.sum() + (~self.has_vector).sum())

    @property
    def _log_share_of_words(self) -> float:
        """log of what all words with a vector have together."""
        return math.log(max(1, self.counts[self.has_vector].sum()) / self._total)

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def num_parameters(self) -> int:
        return 2 * int(self.has_vector.sum()) * self.config.embed_dim

    def state_dict(self) -> dict[str, Tensor]:
        arrays = {"counts": self.counts, "vectors": self.vectors, "outputs": self.outputs}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        try:
            counts, vectors, outputs = (saved[name].numpy() for name in ("counts", "vectors", "outputs"))
        except KeyError as error:
            raise CheckpointError(f"the word2vec model lacks {error}; its file is damaged.") from None
        shape = self.vocab_size, self.config.embed_dim
        if counts.shape != (shape[0],) or vectors.shape != shape or outputs.shape != shape:
            raise CheckpointError(
                f"the word2vec model has vectors of shape {vectors.shape}, but the vocabulary has {shape[0]} tokens "
                f"and model.embed_dim is {shape[1]}."
            )
        is_sound = counts.dtype.kind == "i" and (counts >= 0).all() and np.isfinite(vectors).all()
        if not (is_sound and np.isfinite(outputs).all()):  # the compiled loops trust what they read
            raise CheckpointError("the word2vec model is damaged: it has counts or vectors that are no numbers.")
        self.counts = counts.astype(np.int64)
        self.vectors, self.outputs = (np.array(array, dtype=np.float32) for array in (vectors, outputs))
        self._forget()


def steps_per_epoch(num_tokens: int) -> int:
    """Parts that a text of so many tokens is read in."""
    return max(1, round(num_tokens / STEP_TOKENS))


def block_edges(ids: np.ndarray, boundary: int) -> np.ndarray:
    """Where blocks of whole lines begin, and where the last one ends; a line without end is cut."""
    edges = [0]
    while edges[-1] < len(ids):
        if len(edges) % BLOCKS_AT_ONCE == 0:
            _let_go(ids)
        last = edges[-1] + BLOCK_TOKENS - 1
        ends = np.flatnonzero(ids[last : last + LONGEST_LINE] == boundary)
        edges.append(min(len(ids), last + (int(ends[0]) + 1 if len(ends) else LONGEST_LINE)))
    return np.array(edges)


def _gather(ids: np.ndarray, edges: np.ndarray, blocks: np.ndarray, boundary: int) -> np.ndarray:
    """The tokens of some blocks, one after the other, with a boundary behind each."""
    lengths = edges[blocks + 1] - edges[blocks] + 1
    ends = np.cumsum(lengths)
    text = np.full(int(lengths.sum()), boundary, dtype=np.int32)
    for block, end, length in zip(blocks, ends, lengths, strict=True):
        text[end - length : end - 1] = ids[edges[block] : edges[block + 1]]
    _let_go(ids)
    return text


def _let_go(ids: np.ndarray) -> None:
    """Pages of a file that were read count as our memory until they are let go; the system still has them at hand."""
    if isinstance(ids, np.memmap) and ids.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
        mapped: object = ids
        while isinstance(mapped, np.ndarray):
            mapped = mapped.base
        if isinstance(mapped, mmap.mmap):
            mapped.madvise(mmap.MADV_DONTNEED)
