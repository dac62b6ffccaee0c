"""Every smoothing, cut-off and pruning against dictionaries, one gram at a time, from the equations of the card."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import schemas
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from seqwise.data.batch import Batch, Tokens, next_token_batch, prompt_batch
from seqwise.data.source import open_text
from seqwise.data.store import build_store
from seqwise.errors import CheckpointError, ConfigError, DataError
from seqwise.kernels.gram_trie import MAX_SCANNED
from seqwise.layers.gram_counts import estimate_discount, estimate_discounts, estimate_ratios
from seqwise.models import ngram
from seqwise.models.ngram import Ngram, NgramConfig, Smoothing
from seqwise.text import train_tokenizer

Gram = tuple[int, ...]
EXAMPLES = how(max_examples=60, deadline=None, derandomize=True, database=None)
ALL = get_args(Smoothing)
BACKING_OFF = ("maximum_likelihood", "add_delta", "katz")
each_smoothing = pytest.mark.parametrize("smoothing", ALL)
CUTS: list[dict[str, Any]] = [{}, {"min_count": 2}, {"min_count": 3, "min_count_from": 3}]


class Plain:
    """Equations (1) to (11) with dictionaries. The text is a list of lines, each beginning with the boundary."""

    def __init__(self, lines: list[list[int]], config: NgramConfig, vocab_size: int):
        self.config, self.V = config, vocab_size
        raw: list[Counter[Gram]] = [Counter() for _ in range(config.order + 2)]
        begins: Counter[Gram] = Counter()
        for line in lines:
            for end in range(1, len(line)):
                for k in range(1, min(config.order, end + 1) + 1):
                    gram = tuple(line[end + 1 - k : end + 1])
                    raw[k][gram] += 1
                    begins[gram] += end + 1 == k
        self.highest = max(k for k in range(1, config.order + 1) if raw[k])
        self.raw: Counter[Gram] = sum(raw, Counter())
        self.kept = {
            gram for gram in self.raw if len(gram) < config.min_count_from or self.raw[gram] >= config.min_count
        }
        self.counts = dict(self.raw)
        if config.smoothing.endswith("kneser_ney"):
            for k in range(1, self.highest):
                before = Counter(gram[1:] for gram in raw[k + 1])
                self.counts |= {gram: before[gram] + begins[gram] for gram in raw[k]}
        of_length = [[c for gram, c in self.counts.items() if len(gram) == k] for k in range(self.highest + 1)]
        self.of_length = [np.array(counts) for counts in of_length]
        self.num_tokens = sum(len(line) - 1 for line in lines)

    def next(self, context: Gram) -> dict[int, int]:
        return {gram[-1]: c for gram, c in self.counts.items() if gram[:-1] == context}

    def kept_next(self, context: Gram) -> dict[int, int]:
        return {w: c for w, c in self.next(context).items() if (*context, w) in self.kept}

    def prob(self, word: int, context: Gram) -> float:
        context = context[max(0, len(context) - self.highest + 1) :]
        if self.config.smoothing == "stupid":
            return self.score(word, context) / sum(self.score(w, context) for w in range(self.V))
        return self._prob(word, context)

    def _lower(self, word: int, context: Gram) -> float:
        return self._prob(word, context[1:]) if context else 1 / self.V

    def _prob(self, word: int, context: Gram) -> float:
        total = sum(self.next(context).values())
        if total == 0:
            return self._lower(word, context)
        if self.config.smoothing.endswith("kneser_ney"):
            discounts = {w: self.discount((*context, w), c) for w, c in self.next(context).items()}
            backoff = sum(discounts.values()) / total
            given = self.next(context).get(word, 0) - discounts.get(word, 0)
            return given / total + backoff * self._lower(word, context)
        shares = self.shares(context)
        if word in shares:
            return shares[word]
        rest = 1 - sum(shares.values())
        if rest < 1e-12:
            return 0.0
        return rest * self._lower(word, context) / (1 - sum(self._lower(w, context) for w in shares))

    def discount(self, gram: Gram, count: int) -> float:
        if gram not in self.kept:
            return count
        if self.config.smoothing == "kneser_ney":
            return estimate_discount(self.of_length[len(gram)])
        return estimate_discounts(self.of_length[len(gram)])[min(count, 3) - 1]

    def shares(self, context: Gram) -> dict[int, float]:
        """p of the kept continuations: (4), (5) or (6)."""
        kept, total = self.kept_next(context), sum(self.next(context).values())
        if self.config.smoothing == "maximum_likelihood":
            return {w: c / total for w, c in kept.items()}
        if self.config.smoothing == "add_delta":
            delta = self.config.delta
            return {w: (c + delta) / (total + delta * self.V) for w, c in kept.items()}
        ratios = estimate_ratios(self.of_length[len(context) + 1])
        given = {w: c * (ratios[c - 1] if c <= 5 else 1) for w, c in kept.items()}
        if len(kept) == self.V:
            return {w: g / sum(given.values()) for w, g in given.items()}
        if math.isclose(sum(given.values()), total):
            total += 1
        return {w: g / total for w, g in given.items()}

    def score(self, word: int, context: Gram) -> float:
        """S of (7)."""
        kept, total = self.kept_next(context), sum(self.next(context).values())
        if word in kept:
            return kept[word] / total
        shorter = self.score(word, context[1:]) if context else 1 / self.V
        return self.config.stupid_factor * shorter


def random_text(length: int, vocab_size: int, seed: int) -> np.ndarray:
    """Some tokens are frequent and some rare, so that counts of counts differ; the last never occurs."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, vocab_size)
    return np.concatenate([[0], random.choice(vocab_size - 1, size=length, p=weights / weights.sum())])


def lines_of(text: np.ndarray) -> list[list[int]]:
    """Each line begins with the boundary that ended the one before."""
    cuts = [0, *(np.flatnonzero(text[1:] == 0) + 1), len(text) - 1]
    return [text[a : b + 1].tolist() for a, b in pairwise(cuts) if b > a]


def fit(text: np.ndarray, vocab_size: int, **settings: Any) -> Ngram:
    model = Ngram(NgramConfig(**settings), schemas.of_text(vocab_size))
    model.fit(text)
    return model


def distribution(model: Ngram, context: Gram) -> np.ndarray:
    """p of every token; an empty context is a state before anything is read."""
    if context:
        return model.start(prompt_batch([context]))[0][0].exp().numpy()
    return model._next(model.initial_state(1))[0].exp().numpy()


def kept_grams(model: Ngram) -> set[Gram]:
    found: set[Gram] = set()
    contexts: list[Gram] = [()] * model.vocab_size
    for level in model.levels:
        grams = [(*context, int(word)) for context, word in zip(contexts, level.words, strict=True)]
        found |= set(grams)
        contexts = [gram for gram, num_next in zip(grams, np.diff(level.first), strict=True) for _ in range(num_next)]
    return found


@each_smoothing
@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize(("order", "across_lines"), [(1, True), (2, True), (2, False), (3, True), (4, False)])
def test_probabilities_are_those_of_the_equations(
    smoothing: Smoothing, cut: dict[str, Any], order: int, across_lines: bool
) -> None:
    V, text = 7, random_text(160, vocab_size=7, seed=order)
    settings = {"order": order, "across_lines": across_lines, "smoothing": smoothing, **cut}
    model = fit(text, V, **settings)
    plain = Plain([text.tolist()] if across_lines else lines_of(text), NgramConfig(**settings), V)
    random = np.random.default_rng(9)
    for _ in range(12):
        context = tuple(
            random.choice(V, size=random.integers(0, order), p=[0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]).tolist()
        )
        seen = context
        if not across_lines and 0 in context:  # what stands before the last boundary is of another line
            seen = context[len(context) - 1 - context[::-1].index(0) :]
        expected = [plain.prob(w, seen) for w in range(V)]
        np.testing.assert_allclose(distribution(model, context), expected, rtol=1e-9, atol=1e-15)


@each_smoothing
def test_many_continuations_are_found_by_the_index_and_few_one_by_one(smoothing: Smoothing) -> None:
    V, text = 40, random_text(600, vocab_size=40, seed=1)
    model = fit(text, V, order=3, smoothing=smoothing)
    num_next = np.concatenate([np.diff(level.first) for level in model.levels[:-1]])
    assert (num_next > MAX_SCANNED).any()
    assert ((num_next > 0) & (num_next <= MAX_SCANNED)).any()
    probe = random_text(200, vocab_size=40, seed=2)
    log_probs, _ = model.score(next_token_batch(torch.tensor(probe[None])))
    one_by_one = [distribution(model, tuple(probe[max(0, i - 2) : i]))[probe[i]] for i in range(1, len(probe))]
    np.testing.assert_allclose(log_probs[0].exp().numpy(), one_by_one, rtol=1e-12)


@each_smoothing
@pytest.mark.parametrize("cut", [*CUTS, {"prune": 1e-3}, {"prune": 0.02, "min_count": 2}], ids=str)
def test_probabilities_sum_to_one_behind_every_context(smoothing: Smoothing, cut: dict[str, Any]) -> None:
    model = fit(random_text(300, vocab_size=5, seed=3), 5, order=4, smoothing=smoothing, **cut)
    contexts = [context for length in (1, 2, 3) for context in product(range(5), repeat=length)]
    log_probs, _ = model.start(prompt_batch(contexts))
    assert not log_probs.isnan().any()
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(len(contexts), dtype=torch.float64))


@EXAMPLES
@given(
    text=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    vocab_size=st.integers(4, 6),
    order=st.integers(1, 6),
    smoothing=st.sampled_from(ALL),
    across_lines=st.booleans(),
    min_count=st.integers(1, 3),
    prune=st.sampled_from([0.0, 1e-6, 0.05, 0.9]),
)
def test_texts_however_small_never_give_a_nan(text: list[int], vocab_size: int, **settings: Any) -> None:
    model = fit(np.array([0, *text]), vocab_size, **settings)
    contexts = [[0], [1, 1], [3, 2, 1, 0, 1, 2], text]
    log_probs, _ = model.start(prompt_batch(contexts))
    assert not log_probs.isnan().any()
    assert (log_probs <= 1e-12).all()
    torch.testing.assert_close(log_probs.exp().sum(dim=1), torch.ones(len(contexts), dtype=torch.float64))
    scores, _ = model.score(next_token_batch(torch.tensor([[0, *text]])))
    assert not scores.isnan().any()
    if settings["smoothing"] != "maximum_likelihood":
        assert torch.isfinite(log_probs).all()


def test_a_vocabulary_of_one_token_is_certain() -> None:
    for smoothing in ALL:
        model = fit(np.array([0, 0, 0]), 1, order=3, smoothing=smoothing)
        assert model.start(prompt_batch([[0, 0]]))[0].tolist() == [[pytest.approx(0.0)]]


def test_maximum_likelihood_is_a_share_of_counts_and_knows_nothing_else() -> None:
    model = fit(np.array([0, 1, 2, 1, 3, 1, 2]), 5, order=2, smoothing="maximum_likelihood")
    assert distribution(model, (1,)).tolist() == pytest.approx([0, 0, 2 / 3, 1 / 3, 0])
    assert distribution(model, (4,)).tolist() == pytest.approx([0, 3 / 6, 2 / 6, 1 / 6, 0])  # never seen: shorter
    assert model.score(next_token_batch(torch.tensor([[1, 1, 4]])))[0].tolist() == [[-math.inf, -math.inf]]


def test_add_delta_gives_seen_tokens_and_all_unseen_together_what_lidstone_gives() -> None:
    text = random_text(100, vocab_size=6, seed=4)
    model = fit(text, 6, order=2, smoothing="add_delta", delta=0.5)
    counts = Counter(pairwise(text.tolist()))
    p, total = distribution(model, (1,)), sum(c for (a, _), c in counts.items() if a == 1)
    unseen = [w for w in range(6) if counts[1, w] == 0]
    for w in set(range(6)) - set(unseen):
        assert p[w] == pytest.approx((counts[1, w] + 0.5) / (total + 3))
    assert p[unseen].sum() == pytest.approx(0.5 * len(unseen) / (total + 3))


def test_stupid_backoff_ranks_as_its_scores_do() -> None:
    text = random_text(80, vocab_size=6, seed=5)
    settings = {"order": 3, "smoothing": "stupid", "stupid_factor": 0.3}
    model, plain = fit(text, 6, **settings), Plain([text.tolist()], NgramConfig(**settings), 6)
    for context in product(range(5), repeat=2):
        scores = np.array([plain.score(w, context) for w in range(6)])
        ratio = distribution(model, context) / scores
        assert ratio == pytest.approx(ratio[0])


# -- leaving grams out ---------------------------------------------------------------------------------------------


@each_smoothing
def test_cut_grams_are_those_seen_too_seldom(smoothing: Smoothing) -> None:
    text = random_text(300, vocab_size=6, seed=6)
    plain = Plain([text.tolist()], NgramConfig(order=3), 6)
    singles = {(w,) for w in range(6)}
    for cut in CUTS:
        least, length = cut.get("min_count", 1), cut.get("min_count_from", 2)
        expected = {gram for gram, c in plain.raw.items() if len(gram) < length or c >= least}
        assert kept_grams(fit(text, 6, order=3, smoothing=smoothing, **cut)) == expected | singles


def test_a_cut_that_leaves_only_tokens_leaves_a_model_of_tokens() -> None:
    model = fit(random_text(50, vocab_size=6, seed=7), 6, order=3, min_count=1000)
    assert len(model.levels) == 1
    assert distribution(model, (1, 2)).sum() == pytest.approx(1)


def pruning_loss(model: Ngram, gram: Gram, share_of_context: float) -> float:
    """How much log p of text like the model's own falls without the gram, by adding up over the vocabulary."""
    context, word = gram[:-1], gram[-1]
    p, lower = distribution(model, context), distribution(model, context[1:])
    kept = [g[-1] for g in kept_grams(model) if g[:-1] == context and g != gram]
    without = np.where(np.isin(np.arange(len(p)), kept), p, lower * (1 - p[kept].sum()) / (1 - lower[kept].sum()))
    terms = p[p > 0] * np.log(p[p > 0] / without[p > 0])
    assert without[word] > 0
    return share_of_context * terms.sum()


@each_smoothing
@pytest.mark.parametrize("threshold", [0.0005, 0.005])
def test_pruning_leaves_out_what_changes_the_model_least(smoothing: Smoothing, threshold: float) -> None:
    text = random_text(250, vocab_size=6, seed=8)
    settings = {"order": 3, "smoothing": smoothing}
    whole, pruned = fit(text, 6, **settings), fit(text, 6, **settings, prune=threshold)
    plain = Plain([text.tolist()], NgramConfig(order=3), 6)
    expected = {gram for gram in kept_grams(whole) if len(gram) == 1}
    for length in (3, 2):
        for gram in (g for g in kept_grams(whole) if len(g) == length):
            share = sum(c for g, c in plain.raw.items() if g[:-1] == gram[:-1]) / plain.num_tokens
            is_prefix = any(g[:-1] == gram for g in expected)
            if is_prefix or math.expm1(pruning_loss(whole, gram, share)) >= threshold:
                expected.add(gram)
    assert kept_grams(pruned) == expected
    assert 6 < len(expected) < whole.num_parameters
    for gram in expected:  # what is kept, is kept as it was
        if len(gram) > 1:
            assert distribution(pruned, gram[:-1])[gram[-1]] == pytest.approx(distribution(whole, gram[:-1])[gram[-1]])


@each_smoothing
def test_a_higher_threshold_leaves_out_more(smoothing: Smoothing) -> None:
    text = random_text(400, vocab_size=8, seed=9)
    kept = [
        kept_grams(fit(text, 8, order=4, smoothing=smoothing, prune=threshold)) for threshold in (0, 1e-5, 1e-3, 0.02)
    ]
    for more, fewer in pairwise(kept):
        assert fewer < more or fewer == more
    assert len(kept[-1]) < len(kept[0])


def test_pruning_costs_little_of_what_the_model_knows() -> None:
    text, probe = random_text(5000, vocab_size=12, seed=10), random_text(2000, vocab_size=12, seed=11)
    batch = next_token_batch(torch.tensor(probe[None]))
    whole, pruned = (fit(text, 12, order=4, prune=prune) for prune in (0.0, 1e-4))
    assert pruned.num_parameters < 0.5 * whole.num_parameters
    assert -pruned.score(batch)[0].mean() < 0.02 - whole.score(batch)[0].mean()


# -- the loops -----------------------------------------------------------------------------------------------------


def test_a_long_text_is_scored_in_parts_with_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_text(500, vocab_size=8, seed=12)
    for across_lines in (True, False):
        model = fit(text, 8, order=4, across_lines=across_lines)
        batch = next_token_batch(torch.tensor(text[None]))
        whole, _ = model.score(batch)
        with monkeypatch.context() as patch:
            patch.setattr(ngram, "PART", 7)
            patch.setattr(torch, "get_num_threads", lambda: 3)
            in_parts, _ = model.score(batch)
            two_rows, _ = model.score(next_token_batch(torch.tensor(np.stack([text, text]))))
        assert torch.equal(in_parts, whole)
        assert torch.equal(two_rows, whole.repeat(2, 1))


def test_targets_need_not_be_what_is_read_next() -> None:
    model = fit(random_text(300, vocab_size=6, seed=13), 6, order=3)
    rows = torch.tensor([[0, 1, 2, 3, 1], [2, 2, 1, 0, 4]])
    targets = torch.tensor([[3, 3, 1, 1, 5], [0, 1, 2, 3, 4]])
    log_probs, _ = model.score(Batch({"tokens": Tokens(rows)}, {"tokens": Tokens(targets)}))
    for row in range(2):
        for step in range(5):
            p = distribution(model, tuple(rows[row, max(0, step - 1) : step + 1].tolist()))
            assert log_probs[row, step].item() == pytest.approx(math.log(p[targets[row, step]]))


def test_nothing_to_score_is_scored() -> None:
    model = fit(np.array([0, 1, 2]), 3, order=3)
    assert model.score(next_token_batch(torch.zeros(2, 1, dtype=torch.long)))[0].shape == (2, 0)


# -- the run folder and settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("level2.words", lambda words: words + 100),
        ("level2.words", lambda words: words[:-1]),
        ("level1.first", lambda first: first + 1000),
        ("level1.first", lambda first: first.flip(0)),
        ("level3.log_prob", lambda log_prob: log_prob[1:]),
        ("level2.first", lambda first: first.clamp(max=int(first[-1]) - 1)),
        ("level1.first", lambda first: first.clamp(min=1)),
        ("level1.first", lambda first: first[:0]),
        ("level1.words", lambda words: words.flip(0)),
        ("level2.words", lambda words: words.double()),
        ("level2.words", lambda words: words[:, None]),
        ("level2.log_prob", lambda log_prob: log_prob * torch.nan),
        ("level2.log_prob", lambda log_prob: log_prob + 100),
        ("level2.log_backoff", lambda log_backoff: log_backoff * torch.nan),
        ("level2.log_backoff", lambda log_backoff: log_backoff + torch.inf),
    ],
)
def test_a_damaged_trie_is_named_before_it_is_read(name: str, damage: Any) -> None:
    model = fit(random_text(100, vocab_size=6, seed=14), 6, order=3)
    saved = model.state_dict()
    saved[name] = damage(saved[name])
    copy = Ngram(NgramConfig(order=3), schemas.of_text(6))
    with pytest.raises(CheckpointError, match=r"grams of \d tokens do not fit together"):
        copy.load_state_dict(saved)


@pytest.mark.parametrize("discounts", [torch.zeros(0, 3), torch.zeros(3), torch.zeros(3, 2), torch.zeros(4, 3)])
def test_discounts_that_no_trie_has_are_named(discounts: torch.Tensor) -> None:
    saved = fit(random_text(100, vocab_size=6, seed=14), 6, order=3).state_dict() | {"discounts": discounts}
    with pytest.raises(CheckpointError, match="damaged"):
        Ngram(NgramConfig(order=3), schemas.of_text(6)).load_state_dict(saved)


def test_a_trie_with_longer_grams_than_the_settings_have_is_named() -> None:
    saved = fit(random_text(100, vocab_size=6, seed=14), 6, order=3).state_dict()
    with pytest.raises(CheckpointError, match=r"discounts for 3 lengths of grams, and model\.order is 2"):
        Ngram(NgramConfig(order=2), schemas.of_text(6)).load_state_dict(saved)


@pytest.mark.parametrize("token", [6, 10**6, 2**40, -2, -(10**6)])
def test_a_token_beyond_the_vocabulary_reaches_no_compiled_loop(token: int) -> None:
    model = fit(random_text(100, vocab_size=6, seed=14), 6, order=3)
    sentence = rf"token {token} is not in the vocabulary, which goes from 0 to 5"
    ids = torch.tensor([[1, 2, token, 3]])
    _, state = model.start(prompt_batch([[1, 2]]))
    for use in (
        lambda: model.start(prompt_batch([[1, 2, token]])),
        lambda: model.step(torch.tensor([token]), state),
        lambda: model.score(next_token_batch(ids)),
        lambda: model.score(Batch({"tokens": Tokens(ids)}, {"tokens": Tokens(ids)})),
        lambda: model.fit(ids[0].numpy()),
    ):
        with pytest.raises(DataError, match=sentence):
            use()


def test_a_target_that_is_nothing_is_none() -> None:
    model = fit(random_text(100, vocab_size=6, seed=14), 6, order=3)
    with pytest.raises(DataError, match="token -1 is not in the vocabulary"):
        model.score(next_token_batch(torch.tensor([[1, 2, -1]])))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"delta": 0.0}, "model.delta = 0.0 should be above 0"),
        ({"stupid_factor": 1.5}, "model.stupid_factor = 1.5 should be above 0 and at most 1"),
        ({"min_count": 0}, "model.min_count = 0 should be at least 1"),
        ({"min_count_from": 1}, "model.min_count_from = 1 should be at least 2: single tokens are always kept"),
        ({"prune": 1.0}, "model.prune = 1.0 should be at least 0 and below 1"),
    ],
)
def test_bad_settings_get_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        NgramConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "published"),
    [
        ({"order": 3}, 148.3),
        ({"order": 3, "smoothing": "katz", "min_count": 2, "min_count_from": 3}, 165.2),
        ({"order": 5, "smoothing": "katz", "min_count": 2, "min_count_from": 3}, 162.3),
    ],
)
def test_penn_treebank_perplexities_are_near_the_published_ones(
    shared_data: Path, settings: dict[str, Any], published: float
) -> None:
    """Mikolov et al. 2011, table 1: KN3, GT3, GT5; the latter discount counts up to 7 where Katz and we stop at 5."""
    data = open_text("ptb")
    tokenizer = train_tokenizer("word", data.parts["train"].blocks())
    model = Ngram(NgramConfig(across_lines=False, **settings), schemas.of_text(10_000, tokenizer.boundary))
    model.fit(build_store(data, "train", tokenizer).ids)
    test = torch.from_numpy(build_store(data, "test", tokenizer).ids.astype(np.int64))
    log_probs, _ = model.score(next_token_batch(test[None]))
    assert math.exp(-log_probs.mean()) == pytest.approx(published, abs=0.5)
