"""HMM tagger: tags are the hidden states of a Markov chain, and somebody has shown them: counting is learning.

Church 1988, Brants 2000 (TnT). Fixes in the HMM (hmm.py): states mean what people say they mean, two of them are
remembered instead of one, and words never seen are judged by how they are written. The boundary before and behind a row
is a tag too, the last; c counts, and P is a share of counts.

    lambda_1, lambda_2, lambda_3: each trigram i j k that was seen gives its count to that one of
                  (c(k) - 1) / (tags - 1),   (c(j k) - 1) / (c(j .) - 1),   (c(i j k) - 1) / (c(i j .) - 1)
                  which is highest: no trigram speaks for itself (deleted interpolation). They are the shares (1)
    p(k | j)    = [ lambda_1 P(k) + lambda_2 P(k | j) ] / (lambda_1 + lambda_2);  P(k) where j was not seen   (2)
    p(k | i, j) = (1 - lambda_3) p(k | j) + lambda_3 P(k | i, j);             p(k | j) where i j was not seen (3)

    p(k | w)    = [ c(trait, k) + kappa p(k | w so far) ] / (c(trait .) + kappa)  for each trait that w has and
                  training knows, one after the other, beginning with P(k): the kinds of characters in it, its
                  last 1, 2, ..., 10 characters, all of them but for capitals, all of them                    (4)

    p(tags, words) = product over words of p(k | i, j) p(k | w) / P(k) * p(boundary | the last two)           (5)

(5) lacks p(w) of each word, which is the same for all tags. In (4) shape and suffixes are counted in rare words only,
as unknown words are like them. TnT gives the shorter suffix a constant weight there; by counts it is right more often
(parts of speech of UD English EWT, validation: 93.0 and 92.6 %). TnT knows a word at the beginning of a sentence as it
is written there; here its form in small letters has its say, too. No tag is ever ruled out: each has been counted
`floor` times before. What is asked for is

    p(tag of a word | all words) = (5) summed over the tags of all other words, forward and backward by pairs (6)
    the likeliest tags of a row  = those with the highest (5), by Viterbi over pairs                          (7)

both exact. By (3) only trigrams that were seen are looked at one by one.

Shapes: B batch, T steps, W words, K characters of a word, L traits of a word, Z tags, S trigrams that were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Tags, Tokens
from ..data.pair_store import Rows
from ..data.schema import Schema, TokenSpec
from ..data.text_examples import TextStore
from ..errors import CheckpointError, ConfigError, DataError
from ..kernels.tag_chain import (
    CAPITAL,
    DIGIT,
    FOLDED,
    NO_TRAIT,
    NUM_TRAITS,
    OTHER,
    SHAPE,
    SMALL,
    WHOLE,
    best_tags,
    tag_posteriors,
    tag_shares,
    word_traits,
)
from ..layers.stream import Prediction, log_prob_of
from ..machine import check_memory
from .contract import State, check_tokens

SUM_SLACK = 1e-6  # by which probabilities in a file may miss a sum of one
TABLES = ("interpolation", "single", "pairs", "trigrams", "seen", "alphabet")


@dataclass(frozen=True)
class HMMTaggerConfig:
    order: int = 3
    """Tags that are looked at together: 3 predicts each from the two before it, 2 from one, 1 from none."""
    rare: int = 10
    """Words seen at most so often tell what unknown words are like."""
    suffix_strength: float = 10.0
    """Kappa of suffixes and shapes: how many occurrences of a longer suffix weigh as much as all shorter ones."""
    word_strength: float = 2.0
    """Kappa of whole words: how many occurrences of a word weigh as much as how it is written."""
    floor: float = 0.1
    """What each tag is counted more often than it was seen."""

    def __post_init__(self) -> None:
        if not 1 <= self.order <= 3:
            raise ConfigError(f"model.order = {self.order} should be 1, 2 or 3.")
        if self.rare < 1:
            raise ConfigError(f"model.rare = {self.rare} should be at least 1.")
        for name in ("suffix_strength", "word_strength", "floor"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"model.{name} = {getattr(self, name)} should be above 0.")


class HMMTagger:
    """Counts from `fit`, tags by (6) and (7)."""

    context = None
    carries_state = continues = False

    def __init__(self, config: HMMTaggerConfig, schema: Schema):
        spec = schema.input("tokens", TokenSpec)
        self.config, self.vocab_size, self.boundary = config, spec.size, spec.boundary
        self.field, self.num_tags, self._spelled_with = schema.main, schema.main_spec.size, spec.alphabet
        Z1 = self.num_tags + 1
        self.interpolation = np.array([1.0, 0.0, 0.0])
        """(1)"""
        self.single = np.full(Z1, 1 / Z1)
        """P(k), (Z + 1,)."""
        self.pairs = np.full((Z1, Z1), 1 / Z1)
        """(2), (Z + 1, Z + 1)."""
        self.trigrams, self.seen = np.zeros((0, 3), dtype=np.int32), np.zeros(0)
        """Those that were seen, (S, 3), and lambda_3 P(k | i, j) of each, (S,)."""
        self.alphabet = np.zeros(0, dtype=np.int64)
        """The code point of each character, 0 where it stands for none."""
        self.traits = Traits.none()
        self._read_alphabet()
        self._join()

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(
        self,
        tokens: Rows,
        tags: Rows | np.ndarray,
        characters: np.ndarray | None = None,
        *,
        alphabet: Sequence[str] | None = None,
    ) -> None:
        """Count rows of words and a tag for each; a boundary before and behind a row is no word.

        `characters` (tokens, K) spell each token, zeros behind the last character; where not given, words are known by
        their ids alone. `alphabet` has the character of each number, "" where it stands for none: it tells capitals,
        small letters and digits apart.
        """
        check_tokens(tokens.ids, self.vocab_size)
        is_word, row_of = tokens.ids != self.boundary, np.repeat(np.arange(len(tokens)), tokens.lengths)
        ids, row_of = tokens.ids[is_word], row_of[is_word]
        flat = np.asarray(tags.ids if isinstance(tags, Rows) else tags, dtype=np.int64)
        if len(ids) == 0 or len(flat) != len(ids):
            raise DataError(f"found {len(ids):,} words and {len(flat):,} tags; expected as many, and one at least.")
        if flat.min() < 0 or flat.max() >= self.num_tags:
            raise DataError(f"found tags from {flat.min()} to {flat.max()}; they go from 0 to {self.num_tags - 1}.")
        if alphabet is not None:
            self.alphabet = np.array([ord(c) if len(c) == 1 else 0 for c in alphabet], dtype=np.int64)
            self._read_alphabet()
        lengths = np.bincount(row_of, minlength=len(tokens))
        self._count_tags(flat, lengths[lengths > 0])
        spelled = np.zeros((len(ids), 0), dtype=np.int64) if characters is None else characters[is_word]
        self._count_traits(self._traits_of(ids, spelled, np.diff(row_of, prepend=-1) > 0), flat)

    def learn(self, train: TextStore, valid: TextStore, *, seed: int) -> None:
        """`fit` on rows as a task stores them: words that are cut into pieces are known by their first."""
        steps: Rows = train.main.steps
        first = steps.ids + np.repeat(train.tokens.edges[:-1], steps.lengths)  # of each word, in all tokens
        spelled = None if train.spelled is None else train.spelled.table[train.spelled.words[first]].astype(np.int64)
        alphabet = ["", "", *self._spelled_with]  # behind the end of a word, and what the alphabet does not have
        self.fit(Rows(train.tokens.ids[first], steps.edges), train.main.ids, spelled, alphabet=alphabet)

    def _count_tags(self, tags: np.ndarray, lengths: np.ndarray) -> None:
        """(1) to (3), from the tags of all rows and how many each row has."""
        Z, ends = self.num_tags, np.cumsum(lengths) + 3 * np.arange(1, len(lengths) + 1)
        chain = np.full(ends[-1], Z)
        places = np.arange(len(tags)) + 3 * np.repeat(np.arange(len(lengths)), lengths) + 2
        chain[places] = tags  # each row: boundary, boundary, tags, boundary
        asked = np.sort(np.concatenate([places, ends - 1]))
        i, j, k = chain[asked - 2], chain[asked - 1], chain[asked]
        shape = (Z + 1,) * 3
        found, counts = np.unique(np.ravel_multi_index((i, j, k), shape), return_counts=True)
        self.trigrams = np.stack(np.unravel_index(found, shape), axis=1).astype(np.int32)
        single, double, contexts = np.bincount(k, minlength=Z + 1), np.zeros(shape[:2]), np.zeros(shape[:2])
        np.add.at(double, (j, k), 1)
        np.add.at(contexts, (i, j), 1)
        self._interpolate(counts, single, double, contexts)

    def _interpolate(self, counts: np.ndarray, single: np.ndarray, double: np.ndarray, contexts: np.ndarray) -> None:
        i, j, k = self.trigrams.T
        before = double.sum(axis=1)  # c(j .)
        votes = [(single[k] - 1) / max(1, single.sum() - 1)]
        if self.config.order > 1:
            votes.append((double[j, k] - 1) / np.maximum(1, before[j] - 1))
        if self.config.order > 2:
            votes.append((counts - 1) / np.maximum(1, contexts[i, j] - 1))
        highest = len(votes) - 1 - np.argmax(votes[::-1], axis=0)  # of equal ones the longest
        given = np.bincount(highest, weights=counts, minlength=3)
        floor = self.config.floor
        given[0] += floor  # P(k) always has its say
        self.interpolation = given / given.sum()  # (1)
        first, second, third = self.interpolation
        self.single = (single + floor) / (single + floor).sum()
        share = np.divide(double, before[:, None], out=np.zeros_like(double), where=before[:, None] > 0)
        own = np.where(before > 0, second / (first + second), 0.0)[:, None]
        self.pairs = own * share + (1 - own) * self.single  # (2)
        self.seen = third * counts / contexts[i, j]  # (3)
        self._join()

    def _count_traits(self, traits: np.ndarray, tags: np.ndarray) -> None:
        """What was seen of each trait (W, L): words that are alike in everything are counted once."""
        _, which, counts = np.unique(traits[:, WHOLE], return_inverse=True, return_counts=True)
        is_rare = (counts <= self.config.rare)[which]
        _, alike = np.unique(
            traits[:, WHOLE] + traits[:, SHAPE], return_inverse=True
        )  # at the beginning, and elsewhere
        _, first, counts = np.unique(alike * self.num_tags + tags, return_index=True, return_counts=True)
        keys, tags = traits[first], tags[first]
        keys[~is_rare[first], :FOLDED] = NO_TRAIT
        is_there = keys != NO_TRAIT
        repeats = is_there.sum(axis=1)
        self.traits = Traits.of(keys[is_there], np.repeat(tags, repeats), np.repeat(counts, repeats))

    # -- the verbs -----------------------------------------------------------------------------------------------

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, None]:
        """log p(tag | all words of the row) of each word's tag by (6), (B, W): each by itself, not all together."""
        wanted: Tags = batch.targets[self.field]
        log_probs = self._log_marginals(*self._evidence(batch))
        return log_prob_of(log_probs, wanted.ids.cpu()), None

    def predict(self, batch: Batch) -> Prediction:
        """The likeliest tags of each row (7), (B, W), and the log of (6), (B, W, Z)."""
        evidence, edges, is_word = self._evidence(batch)
        answers = torch.zeros(is_word.shape, dtype=torch.long)
        answers[is_word] = torch.from_numpy(best_tags(evidence, edges, self._chain)[0])
        return Prediction(answers, self._log_marginals(evidence, edges, is_word))

    def _log_marginals(self, evidence: np.ndarray, edges: np.ndarray, is_word: Tensor) -> Tensor:
        """(6), (B, W, Z), nats; 0 behind the last word of a row."""
        posteriors, _ = tag_posteriors(evidence, edges, self._chain)
        result = torch.zeros(*is_word.shape, self.num_tags, dtype=torch.float64)
        result[is_word] = torch.from_numpy(np.log(posteriors))
        return result

    def _evidence(self, batch: Batch) -> tuple[np.ndarray, np.ndarray, Tensor]:
        """p(k | w) / P(k) of the words of all rows, (words, Z); where each row begins; which of (B, W) are words."""
        tokens: Tokens = batch.inputs["tokens"]
        steps, is_word = self._words(tokens, batch.targets.get(self.field))
        rows = torch.arange(tokens.shape[0]).unsqueeze(1).expand_as(steps)[is_word]
        steps = steps[is_word]
        ids = tokens.ids.cpu()[rows, steps].numpy()
        check_tokens(ids, self.vocab_size)
        lengths = is_word.sum(dim=1).numpy()
        check_memory(
            8 * (len(self._chain[0]) + self.num_tags) * (int(lengths.max(initial=0)) + 2),
            f"tagging a row of {lengths.max(initial=0):,} words with {self.num_tags} tags",
            "Cut the row into shorter ones.",
        )
        spelled = np.zeros((len(ids), 0), dtype=np.int64)
        if tokens.characters is not None:
            spelled = tokens.characters.cpu()[rows, steps].numpy()
        is_first = np.diff(rows.numpy(), prepend=-1) > 0
        shares = self.tag_shares(self._traits_of(ids, spelled, is_first))
        return shares / self.single[:-1], np.concatenate([[0], np.cumsum(lengths)]), is_word

    def _words(self, tokens: Tokens, tags: Tags | None) -> tuple[Tensor, Tensor]:
        """The step of each word (B, W), and which of them are words; all but boundaries where nobody tells."""
        if tags is not None:
            is_word = torch.ones(tags.shape, dtype=torch.bool) if tags.is_word is None else tags.is_word.cpu()
            return tags.steps.cpu(), is_word
        is_word = tokens.ids.cpu() != self.boundary
        if tokens.is_token is not None:
            is_word &= tokens.is_token.cpu()
        order = torch.argsort(~is_word, dim=1, stable=True)[:, : max(1, int(is_word.sum(dim=1).max()))]
        return order, is_word.gather(1, order)

    def tag_shares(self, traits: np.ndarray) -> np.ndarray:
        """(4), of words with these traits (words, L): (words, Z)."""
        strengths = np.full(NUM_TRAITS, self.config.suffix_strength)
        strengths[FOLDED : WHOLE + 1] = self.config.word_strength
        root = self.single[:-1] / self.single[:-1].sum()
        table = self.traits
        return tag_shares(traits, root, strengths, table.keys, table.edges, table.tags, table.counts)

    def _join(self) -> None:
        """What the compiled loops want: the pairs of tags that were seen, trigrams as steps from pair to pair."""
        i, j, k = self.trigrams.astype(np.int64).T
        Z1 = self.num_tags + 1
        codes = np.unique(np.append(j * Z1 + k, Z1 * Z1 - 1))  # and the two boundaries before a row, which come last
        pairs = np.stack([codes // Z1, codes % Z1], axis=1)
        loose = self.pairs.copy()
        loose[pairs[:, 0], pairs[:, 1]] = 0.0
        steps = np.stack([np.searchsorted(codes, i * Z1 + j), np.searchsorted(codes, j * Z1 + k)], axis=1)
        is_used = self.seen > 0
        kept = float(1 - self.interpolation[2])
        self._chain = pairs, self.pairs[pairs[:, 0], pairs[:, 1]], loose, kept, steps[is_used], self.seen[is_used]

    def _traits_of(self, ids: np.ndarray, characters: np.ndarray, is_first: np.ndarray) -> np.ndarray:
        return word_traits(
            ids.astype(np.int64), np.ascontiguousarray(characters, dtype=np.int64), is_first, self._folded, self._kinds
        )

    def _read_alphabet(self) -> None:
        """The small letter of each character, as its number (all digits are one), and what kind of character it is."""
        characters = [chr(code) if code else "" for code in self.alphabet.tolist()]
        number_of = {character: number for number, character in reversed(list(enumerate(characters))) if character}
        digits = [number for number, character in enumerate(characters) if character.isdigit()]
        self._folded, self._kinds = np.arange(len(characters)), np.zeros(len(characters), dtype=np.int64)
        for number, character in enumerate(characters):
            if character.isdigit():
                self._folded[number], self._kinds[number] = digits[0], DIGIT
            elif character.lower() != character:
                self._folded[number], self._kinds[number] = number_of.get(character.lower(), number), CAPITAL
            else:
                self._kinds[number] = SMALL if character.isalpha() else OTHER

    # -- the run folder ------------------------------------------------------------------------------------------

    @property
    def num_parameters(self) -> int:
        return self.single.size + self.pairs.size + self.seen.size + self.traits.counts.size

    def state_dict(self) -> dict[str, Tensor]:
        own = {name: getattr(self, name) for name in TABLES}
        table = self.traits
        own |= {"trait_keys": table.keys.view(np.int64), "trait_edges": table.edges}
        own |= {"trait_tags": table.tags, "trait_counts": table.counts}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in own.items()}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        names = (*TABLES, "trait_keys", "trait_edges", "trait_tags", "trait_counts")
        for name in names:
            if name not in saved:
                raise CheckpointError(f'the hmm tagger lacks "{name}"; its file is damaged.')
        found = {name: saved[name].cpu().numpy() for name in names}
        keys, edges, tags, counts = (found.pop(name) for name in names[len(TABLES) :])
        Z1 = self.num_tags + 1
        shapes = {"interpolation": (3,), "single": (Z1,), "pairs": (Z1, Z1)}
        shapes |= {"trigrams": (len(found["seen"]), 3)}
        for name, expected in shapes.items():
            if found[name].shape != expected:
                raise CheckpointError(
                    f'"{name}" of the hmm tagger has the shape {found[name].shape}; its tags ask for {expected}.'
                )
        table = Traits(keys.view(np.uint64), edges, tags, counts)
        for name in ("single", "pairs"):
            sums = found[name].sum(axis=-1)
            if not (found[name] > 0).all() or not (np.abs(sums - 1) < SUM_SLACK).all():
                raise CheckpointError(
                    f'"{name}" of the hmm tagger is damaged: it should hold probabilities above 0 that sum to 1 (found '
                    f"sums from {sums.min():.6g} to {sums.max():.6g})."
                )
        trigrams, seen = found["trigrams"], found["seen"]
        is_sound = (trigrams >= 0).all() and (trigrams < Z1).all() and (seen >= 0).all() and np.isfinite(seen).all()
        if not is_sound or not table.is_sound(self.num_tags):
            raise CheckpointError("the hmm tagger is damaged: its counts do not fit together.")
        for name, array in found.items():
            setattr(self, name, array)
        self.traits = table
        self._read_alphabet()
        self._join()


@dataclass(frozen=True)
class Traits:
    """Which tags words with a trait had: trait keys[i] those from edges[i] to edges[i+1]."""

    keys: np.ndarray
    """(number of traits,) uint64, rising."""
    edges: np.ndarray
    tags: np.ndarray
    """int32, rising within a trait."""
    counts: np.ndarray

    @classmethod
    def none(cls) -> Traits:
        return cls.of(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def of(cls, keys: np.ndarray, tags: np.ndarray, counts: np.ndarray) -> Traits:
        """From traits that may come several times with a tag."""
        order = np.lexsort((tags, keys))
        keys, tags, counts = keys[order], tags[order], counts[order].astype(np.float64)
        is_new = np.ones(len(keys), dtype=bool)
        is_new[1:] = (keys[1:] != keys[:-1]) | (tags[1:] != tags[:-1])
        first = np.flatnonzero(is_new)
        summed = np.add.reduceat(counts, first) if len(first) else counts
        found, begins = np.unique(keys[first], return_index=True)
        return cls(found, np.append(begins, len(first)), tags[first].astype(np.int32), summed)

    def is_sound(self, num_tags: int) -> bool:
        """Whether every place it names exists and every count is one."""
        if len(self.edges) != len(self.keys) + 1 or len(self.tags) != len(self.counts):
            return False
        are_all_there = self.edges[0] == 0 and self.edges[-1] == len(self.tags) and (np.diff(self.edges) > 0).all()
        is_known = (self.tags >= 0).all() and (self.tags < num_tags).all() and (self.keys[1:] > self.keys[:-1]).all()
        return bool(are_all_there and is_known and (self.counts > 0).all() and np.isfinite(self.counts).all())
