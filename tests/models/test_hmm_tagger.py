"""The HMM tagger against its equations written out with dictionaries, and against all tags that a tiny row can have."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from seqwise.data.batch import Batch, Tags, Tokens
from seqwise.data.pair_store import Rows
from seqwise.data.schema import LabelSpec, Schema, Target, TokenSpec
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.kernels.tag_chain import best_tags, tag_posteriors
from seqwise.models.hmm_tagger import HMMTagger, HMMTaggerConfig
from seqwise.text.words import WordTokenizer

ALPHABET = ["", "", *"aAbBcC12-"]
NUMBER = {character: number for number, character in enumerate(ALPHABET) if character}
SPELLED = 24  # K
BOUNDARY = 1

Row = list[tuple[str, int]]


class PlainTagger:
    """(1) to (5), one number at a time; the boundary is tag Z."""

    def __init__(self, rows: list[Row], num_tags: int, config: HMMTaggerConfig):
        self.Z, self.config = num_tags, config
        self.one: Counter[int] = Counter()
        self.two: Counter[tuple[int, int]] = Counter()
        self.three: Counter[tuple[int, int, int]] = Counter()
        self.contexts: Counter[tuple[int, int]] = Counter()
        for row in rows:
            tags = [num_tags, num_tags, *(tag for _, tag in row), num_tags]
            for i, j, k in zip(tags, tags[1:], tags[2:], strict=False):
                self.one[k] += 1
                self.two[j, k] += 1
                self.three[i, j, k] += 1
                self.contexts[i, j] += 1
        self.before: Counter[int] = Counter()
        for (j, _), count in self.two.items():
            self.before[j] += count
        self.total = sum(self.one.values())
        votes = [config.floor, 0.0, 0.0]
        for (i, j, k), count in self.three.items():
            shares = [(self.one[k] - 1) / max(1, self.total - 1)]
            shares += [(self.two[j, k] - 1) / max(1, self.before[j] - 1)] * (config.order > 1)
            shares += [(count - 1) / max(1, self.contexts[i, j] - 1)] * (config.order > 2)
            highest = max(shares)
            votes[max(place for place, share in enumerate(shares) if share == highest)] += count
        self.interpolation = [vote / sum(votes) for vote in votes]
        self._count_traits(rows)

    def _count_traits(self, rows: list[Row]) -> None:
        seen = Counter(word for row in rows for word, _ in row)
        self.traits: dict[Any, Counter[int]] = defaultdict(Counter)
        for row in rows:
            for place, (word, tag) in enumerate(row):
                for name, trait in traits_of(word, place == 0):
                    if name in ("folded", "whole") or seen[word] <= self.config.rare:
                        self.traits[name, trait][tag] += 1

    def single(self, k: int) -> float:
        floor = self.config.floor
        return (self.one[k] + floor) / (self.total + floor * (self.Z + 1))

    def double(self, j: int, k: int) -> float:
        first, second, _ = self.interpolation
        if not self.before[j]:
            return self.single(k)
        return (first * self.single(k) + second * self.two[j, k] / self.before[j]) / (first + second)

    def triple(self, i: int, j: int, k: int) -> float:
        third = self.interpolation[2]
        if not self.contexts[i, j]:
            return self.double(j, k)
        return (1 - third) * self.double(j, k) + third * self.three[i, j, k] / self.contexts[i, j]

    def share(self, word: str, is_first: bool) -> list[float]:
        """p(k | w) of all k."""
        known = sum(self.single(k) for k in range(self.Z))
        shares = [self.single(k) / known for k in range(self.Z)]
        for name, trait in traits_of(word, is_first):
            counts, config = self.traits.get((name, trait), Counter()), self.config
            kappa = config.word_strength if name in ("folded", "whole") else config.suffix_strength
            total = sum(counts.values())
            shares = [(counts[k] + kappa * shares[k]) / (total + kappa) for k in range(self.Z)]
        return shares

    def joint(self, words: list[list[float]], tags: tuple[int, ...]) -> float:
        """(5), from p(k | w) of each word."""
        chain = [self.Z, self.Z, *tags, self.Z]
        moves = math.prod(self.triple(*chain[t : t + 3]) for t in range(len(chain) - 2))
        return moves * math.prod(shares[k] / self.single(k) for shares, k in zip(words, tags, strict=True))

    def all_joints(self, words: list[str]) -> dict[tuple[int, ...], float]:
        shares = [self.share(word, place == 0) for place, word in enumerate(words)]
        return {tags: self.joint(shares, tags) for tags in product(range(self.Z), repeat=len(words))}


def traits_of(word: str, is_first: bool) -> list[tuple[Any, Any]]:
    kinds = {"digit" if c.isdigit() else "capital" if c.isupper() else "small" if c.isalpha() else "" for c in word}
    folded = "".join("1" if c.isdigit() else c.lower() for c in word)
    has_capital = word[0].isupper()
    found: list[tuple[Any, Any]] = [("shape", (frozenset(kinds), has_capital and (1 + is_first)))]
    found += [("suffix", (has_capital, folded[-n:])) for n in range(1, min(10, len(word)) + 1)]
    return [*found, ("folded", folded), ("whole", word)]


def random_rows(num: int, *, num_tags: int, seed: int = 0, longest: int = 6) -> list[Row]:
    """Words whose last letter depends on the tag, tags that depend on the two before."""
    random, rows = np.random.default_rng(seed), []
    for _ in range(num):
        row: Row = []
        for _ in range(random.integers(1, longest + 1)):
            likely = (sum(tag for _, tag in row[-2:]) + 1) % num_tags
            tag = int(likely if random.random() < 0.6 else random.integers(num_tags))
            word = "".join(random.choice(list("aAbBcC12-"), size=random.integers(0, 3)))
            row.append((word + "abc"[tag % 3] * int(random.random() < 0.8) or "b", tag))
        rows.append(row)
    return rows


def spelled(word: str) -> list[int]:
    return [NUMBER.get(character, 1) for character in word] + [0] * (SPELLED - len(word))


class Corpus:
    """Rows of words as models see them."""

    def __init__(self, rows: list[Row], num_tags: int):
        self.rows, self.num_tags = rows, num_tags
        self.tokenizer = WordTokenizer(sorted({word for row in rows for word, _ in row}))
        specs = {"tokens": TokenSpec(self.tokenizer), "tags": LabelSpec([str(tag) for tag in range(num_tags)])}
        self.schema = Schema(specs, {"tokens": "tokens"}, {"tags": Target("tags", "tags")})

    def ids(self, row: Row) -> list[int]:
        pieces = self.tokenizer.pieces
        return [BOUNDARY, *(pieces.index(word) if word in pieces else 0 for word, _ in row), BOUNDARY]

    def model(self, *, is_spelled: bool = True, alphabet: list[str] | None = ALPHABET, **settings: Any) -> HMMTagger:
        tagger = HMMTagger(HMMTaggerConfig(**settings), self.schema)
        tokens = Rows.of(np.array(self.ids(row)) for row in self.rows)
        tags = Rows.of(np.array([tag for _, tag in row]) for row in self.rows)
        letters = [spelled(word) for row in self.rows for word in ["", *(word for word, _ in row), ""]]
        tagger.fit(tokens, tags, np.array(letters) if is_spelled else None, alphabet=alphabet)
        return tagger

    def batch(self, rows: list[Row], *, is_spelled: bool = True, padding: int = 0) -> Batch:
        longest = max(len(row) for row in rows) + padding
        ids, letters = torch.zeros(len(rows), longest + 2, dtype=torch.long), []
        is_token, is_word = torch.zeros_like(ids, dtype=torch.bool), torch.zeros(len(rows), longest, dtype=torch.bool)
        tags, steps = torch.zeros(len(rows), longest, dtype=torch.long), torch.zeros(len(rows), longest).long()
        for r, row in enumerate(rows):
            n = len(row)
            ids[r, : n + 2], is_token[r, : n + 2], is_word[r, :n] = torch.tensor(self.ids(row)), True, True
            tags[r, :n], steps[r, :n] = torch.tensor([tag for _, tag in row]), torch.arange(1, n + 1)
            words = ["", *(word for word, _ in row), *[""] * (longest + 1 - n)]
            letters.append([spelled(word) for word in words])
        characters = torch.tensor(letters) if is_spelled else None
        tokens = Tokens(ids, is_token, characters=characters)
        return Batch({"tokens": tokens}, {"tags": Tags(tags, steps, is_word)})


CASES = [
    {"order": 3},
    {"order": 2},
    {"order": 1},
    {"order": 3, "suffix_strength": 0.5, "word_strength": 7.0, "rare": 2},
]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(random_rows(40, num_tags=3), 3)


# -- by the equations and by enumeration ------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", CASES)
@pytest.mark.parametrize("num_rows", [2, 40])
def test_tags_are_those_of_all_that_are_possible(settings: dict[str, Any], num_rows: int) -> None:
    """Words that are known, unknown, known in small letters only; pairs and triples of tags that were never seen."""
    rows = random_rows(num_rows, num_tags=4, seed=num_rows)
    corpus = Corpus(rows, 4)
    model, plain = corpus.model(**settings), PlainTagger(rows, 4, HMMTaggerConfig(**settings))
    np.testing.assert_allclose(model.interpolation, plain.interpolation, atol=1e-12)
    probes = random_rows(12, num_tags=4, seed=99, longest=4) + [row[:4] for row in rows[:3]]
    prediction, (scores, state) = model.predict(corpus.batch(probes)), model.score(corpus.batch(probes))
    assert state is None
    assert prediction.log_probs is not None
    for r, row in enumerate(probes):
        joints = plain.all_joints([word for word, _ in row])
        total, best = sum(joints.values()), max(joints.values())
        assert joints[tuple(prediction.answers[r, : len(row)].tolist())] == pytest.approx(best, rel=1e-9)
        for w, k in product(range(len(row)), range(4)):
            share = sum(joint for tags, joint in joints.items() if tags[w] == k) / total
            assert prediction.log_probs[r, w, k].item() == pytest.approx(math.log(share), abs=1e-9)
        for w, (_, tag) in enumerate(row):
            assert scores[r, w] == prediction.log_probs[r, w, tag]


@pytest.mark.parametrize("seed", range(5))
def test_likelihood_and_best_path_are_the_sum_and_the_maximum_of_all_paths(seed: int) -> None:
    rows = random_rows(6, num_tags=3, seed=seed)
    corpus = Corpus(rows, 3)
    model, plain = corpus.model(), PlainTagger(rows, 3, HMMTaggerConfig())
    probes = random_rows(4, num_tags=3, seed=seed + 50, longest=5)
    evidence, edges, _ = model._evidence(corpus.batch(probes))
    likelihoods, joints = (loop(evidence, edges, model._chain)[1] for loop in (tag_posteriors, best_tags))
    for row, likelihood, joint in zip(probes, likelihoods, joints, strict=True):
        expected = plain.all_joints([word for word, _ in row]).values()
        assert likelihood == pytest.approx(math.log(sum(expected)), abs=1e-9)
        assert joint == pytest.approx(math.log(max(expected)), abs=1e-9)


def test_transitions_sum_to_one(corpus: Corpus) -> None:
    model = corpus.model()
    np.testing.assert_allclose(model.pairs.sum(axis=1), 1.0)
    dense = np.zeros((4, 4, 4))
    np.add.at(dense, tuple(model.trigrams.T), model.seen)
    is_seen = dense.sum(axis=2) > 0
    dense += np.where(is_seen, 1 - model.interpolation[2], 1.0)[:, :, None] * model.pairs
    np.testing.assert_allclose(dense.sum(axis=2), 1.0)


def test_all_tags_of_a_word_sum_to_one_and_none_is_ruled_out(corpus: Corpus) -> None:
    wide = Corpus(corpus.rows, 5)  # two tags that training does not have
    found = wide.model().predict(wide.batch(random_rows(20, num_tags=3, seed=3))).log_probs
    assert found is not None
    assert torch.isfinite(found).all()
    is_word = wide.batch(random_rows(20, num_tags=3, seed=3)).targets["tags"].is_word
    np.testing.assert_allclose(found.exp().sum(dim=2)[is_word], 1.0, atol=1e-9)


# -- words ------------------------------------------------------------------------------------------------------------


def taught(pairs: str, num_tags: int = 2, **settings: Any) -> tuple[Corpus, HMMTagger]:
    """One word a row: "ab0 cb1" has the word ab with tag 0, and cb with tag 1."""
    corpus = Corpus([[(pair[:-1], int(pair[-1]))] for pair in pairs.split()], num_tags)
    return corpus, corpus.model(**settings)


def tag_of(corpus: Corpus, model: HMMTagger, word: str) -> tuple[int, float]:
    prediction = model.predict(corpus.batch([[(word, 0)]]))
    assert prediction.log_probs is not None
    return int(prediction.answers[0, 0]), float(prediction.log_probs.exp().max())


def test_an_unknown_word_is_judged_by_its_end() -> None:
    corpus, model = taught("ab0 cab0 aab0 ba1 cba1 aba1", suffix_strength=1.0)
    assert tag_of(corpus, model, "ccb")[0] == 0
    assert tag_of(corpus, model, "bbba")[0] == 1


def test_ends_of_frequent_words_say_nothing_of_unknown_ones() -> None:
    corpus, model = taught("ab0 " * 30 + "cb1 bcb1 accb1 aa0 ba0", rare=3)
    assert tag_of(corpus, model, "cacb")[0] == 1
    assert tag_of(corpus, model, "ab")[0] == 0


def test_capitals_tell_words_apart_where_only_they_do() -> None:
    corpus, model = taught("Ab0 Bc0 Ca0 ba1 cb1 ac1", suffix_strength=0.5)
    assert tag_of(corpus, model, "Bbb")[0] == 0
    assert tag_of(corpus, model, "bbb")[0] == 1


def test_a_known_word_with_a_capital_is_the_word() -> None:
    """At the beginning of a sentence: all other words with a capital have the other tag."""
    known = "abc0 " * 20 + "Ba1 Ca1 Bb1 Bc1 Cb1"
    corpus, model = taught(known)
    assert tag_of(corpus, model, "Abc")[0] == 0
    blind = corpus.model(alphabet=None)
    assert tag_of(corpus, blind, "Abc")[1] < tag_of(corpus, model, "Abc")[1]


def test_digits_are_alike() -> None:
    corpus, model = taught("1-1 0".replace(" ", "") + " 11-10 2-20 ab1 cc1 bca1")
    assert tag_of(corpus, model, "22-12")[0] == 0


def test_words_may_be_known_by_their_ids_alone(corpus: Corpus) -> None:
    model = corpus.model(is_spelled=False)
    frequent = Counter(word for row in corpus.rows for word, _ in row).most_common(1)[0][0]
    probes: list[Row] = [[(frequent, 0)], [("bAbAbA", 0)]]
    found = model.predict(corpus.batch(probes, is_spelled=False)).log_probs
    assert found is not None
    tags = Counter(tag for row in corpus.rows for word, tag in row if word == frequent)
    plain = PlainTagger([[(w, t)] for row in corpus.rows for w, t in row], 3, HMMTaggerConfig())
    known, unknown = found[0, 0] - found[1, 0], [plain.single(k) for k in range(3)]
    kappa, total = 2.0, sum(tags.values())
    norm = sum(unknown)
    expected = [math.log((tags[k] * norm / unknown[k] + kappa) / (total + kappa)) for k in range(3)]
    np.testing.assert_allclose(known - known[0], np.array(expected) - expected[0], atol=1e-9)


def test_letters_that_training_did_not_know_do_no_harm(corpus: Corpus) -> None:
    model, batch = corpus.model(), corpus.batch([[("ab", 0), ("cb", 1)]])
    tokens = batch.inputs["tokens"]
    tokens.characters[0, 1, 0] = 500
    found = model.predict(batch).log_probs
    assert found is not None
    assert torch.isfinite(found).all()


# -- the verbs --------------------------------------------------------------------------------------------------------


def test_padding_and_neighbours_change_nothing(corpus: Corpus) -> None:
    model, probes = corpus.model(), random_rows(10, num_tags=3, seed=5)
    together = model.predict(corpus.batch(probes, padding=4))
    assert together.log_probs is not None
    assert (together.log_probs[~corpus.batch(probes, padding=4).targets["tags"].is_word] == 0).all()
    for r, row in enumerate(probes):
        alone = model.predict(corpus.batch([row]))
        assert alone.log_probs is not None
        assert torch.equal(alone.answers[0], together.answers[r, : len(row)])
        np.testing.assert_allclose(alone.log_probs[0], together.log_probs[r, : len(row)], atol=1e-9)


def test_without_tags_all_tokens_but_boundaries_are_words(corpus: Corpus) -> None:
    model, batch = corpus.model(), corpus.batch(random_rows(8, num_tags=3, seed=6))
    told, found = model.predict(batch), model.predict(Batch(batch.inputs, {}))
    assert torch.equal(told.answers, found.answers)
    assert told.log_probs is not None
    assert found.log_probs is not None
    assert torch.equal(told.log_probs, found.log_probs)


def test_a_row_without_words_has_no_tags(corpus: Corpus) -> None:
    batch = corpus.batch([[], [("ab", 0)]])
    assert corpus.model().predict(batch).answers.shape == (2, 1)
    assert corpus.model().predict(Batch(batch.inputs, {})).answers.shape == (2, 1)


def test_a_long_row_is_tagged(corpus: Corpus) -> None:
    row: Row = [("ab", 0), ("cc", 1)] * 2000
    scores, _ = corpus.model().score(corpus.batch([row]))
    assert torch.isfinite(scores).all()


def test_it_learns_a_chain_that_was_planted() -> None:
    """Words say little of their tags, the two tags before them much."""
    random = np.random.default_rng(0)
    rows: list[Row] = []
    for _ in range(400):
        tags = random.integers(3, size=2).tolist()
        while len(tags) < 12:
            tags.append(int((tags[-1] + tags[-2]) % 3 if random.random() < 0.9 else random.integers(3)))
        rows.append([("abc"[tag if random.random() < 0.6 else random.integers(3)], int(tag)) for tag in tags])
    corpus, right = Corpus(rows[:300], 3), {}
    for order in (1, 2, 3):
        batch = corpus.batch(rows[300:])
        right[order] = (corpus.model(order=order).predict(batch).answers == batch.targets["tags"].ids).double().mean()
    assert right[3] > max(right[1], right[2]) + 0.05
    assert right[3] > 0.8


# -- the run folder, and mistakes -------------------------------------------------------------------------------------


def test_a_saved_model_gives_the_same_numbers(corpus: Corpus) -> None:
    model, batch = corpus.model(), corpus.batch(random_rows(10, num_tags=3, seed=7))
    other = HMMTagger(model.config, corpus.schema)
    other.load_state_dict(load(save(model.state_dict())))
    assert torch.equal(other.score(batch)[0], model.score(batch)[0])
    assert torch.equal(other.predict(batch).answers, model.predict(batch).answers)
    assert other.num_parameters == model.num_parameters > 0


def test_damaged_files_get_a_sentence(corpus: Corpus) -> None:
    model = corpus.model()
    saved, fresh = model.state_dict(), HMMTagger(model.config, corpus.schema)
    with pytest.raises(CheckpointError, match='lacks "pairs"'):
        fresh.load_state_dict({name: tensor for name, tensor in saved.items() if name != "pairs"})
    with pytest.raises(CheckpointError, match=r"\"single\" of the hmm tagger has the shape \(3,\)"):
        fresh.load_state_dict({**saved, "single": saved["single"][1:]})
    with pytest.raises(CheckpointError, match="sum to 1"):
        fresh.load_state_dict({**saved, "pairs": saved["pairs"] * 2})
    for name, changed in {
        "trigrams": saved["trigrams"] + 4,
        "trait_tags": saved["trait_tags"] + 3,
        "trait_edges": saved["trait_edges"].flip(0),
        "trait_keys": saved["trait_keys"].flip(0),
        "trait_counts": saved["trait_counts"] * float("nan"),
    }.items():
        with pytest.raises(CheckpointError, match="do not fit together"):
            fresh.load_state_dict({**saved, name: changed})


def test_mistakes_get_a_sentence(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match="order = 4 should be 1, 2 or 3"):
        HMMTaggerConfig(order=4)
    with pytest.raises(ConfigError, match="floor = 0 should be above 0"):
        HMMTaggerConfig(floor=0)
    with pytest.raises(ConfigError, match="rare = 0 should be at least 1"):
        HMMTaggerConfig(rare=0)
    tagger, tokens = HMMTagger(HMMTaggerConfig(), corpus.schema), Rows.of([np.array([1, 2, 3, 1])])
    with pytest.raises(DataError, match="found 2 words and 3 tags"):
        tagger.fit(tokens, np.array([0, 1, 2]))
    with pytest.raises(DataError, match="found tags from 0 to 3; they go from 0 to 2"):
        tagger.fit(tokens, np.array([0, 3]))
    with pytest.raises(DataError, match="is not in the vocabulary"):
        tagger.fit(Rows.of([np.array([1, 2000, 1])]), np.array([0]))
