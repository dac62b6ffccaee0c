"""Scores of a text against `model.score` over windows made by hand."""

from __future__ import annotations

import json
import math
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import schemas
import torch
from runs_by_hand import at_most

from seqwise.config import to_json
from seqwise.data.batch import Batch, Tokens, next_token_batch
from seqwise.data.store import Sparse, TokenStore, store_of_text
from seqwise.errors import ConfigError
from seqwise.evaluation.likelihood import (
    CHUNK,
    Score,
    evaluate,
    nats_by_position,
    num_segments,
    segment_edges,
    token_nats,
)
from seqwise.evaluation.segments import Difference, Segments, compare_segments, joined
from seqwise.models import MODELS
from seqwise.models.contract import State
from seqwise.text import train_tokenizer
from seqwise.text.spelling import Spelling

VOCAB, CONTEXT = 7, 6
SETTINGS: dict[str, dict[str, Any]] = {
    "ngram": {"order": 4},
    "conv": {"model_dim": 8, "num_layers": 2},
    "lstm": {"model_dim": 8, "num_layers": 1},
    "gpt": {"context": CONTEXT, "num_layers": 1, "model_dim": 8, "num_heads": 2},
}
each_family = pytest.mark.parametrize("name", list(SETTINGS))


def tiny_model(name: str, **settings: Any) -> Any:
    row = MODELS[name]
    model = row.build(row.config(**{**SETTINGS[name], **settings}), schemas.of_text(VOCAB))
    if row.learns["next_token"] == "counting":
        model.fit(random_store(300, seed=9).ids)
        return model
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()


def random_store(num_tokens: int, *, seed: int = 0) -> TokenStore:
    ids = np.random.default_rng(seed).integers(VOCAB, size=num_tokens).astype(np.uint16)
    return TokenStore(np.concatenate([[0], ids]).astype(np.uint16), 3 * num_tokens)


@torch.no_grad()
def nats_of(model: Any, ids: np.ndarray, last: int | None = None) -> float:
    """-log p of the last few tokens of a segment that is read from nothing; of all but its first where not said."""
    log_probs, _ = model.score(next_token_batch(torch.from_numpy(ids.astype(np.int64)).unsqueeze(0)))
    return -float(log_probs[0, -last if last else 0 :].double().sum())


@each_family
@pytest.mark.parametrize("num_tokens", [1, 2, CONTEXT, CONTEXT + 1, 41])
def test_disjoint_windows_are_read_each_from_nothing(name: str, num_tokens: int) -> None:
    model, store = tiny_model(name), random_store(num_tokens)
    windows = [store.ids[i : i + CONTEXT + 1] for i in range(0, num_tokens, CONTEXT)]
    score = evaluate(model, store, view="disjoint", context=CONTEXT, batch_size=4)
    assert score.tokens == num_tokens
    assert score.nats.sum() == pytest.approx(sum(nats_of(model, window) for window in windows), abs=1e-3)


@each_family
@pytest.mark.parametrize("stride", [1, 2, 4, 5, CONTEXT])
@pytest.mark.parametrize("num_tokens", [3, CONTEXT, 23])
def test_sliding_windows_score_each_token_once_in_the_first_window_that_has_it(
    name: str, stride: int, num_tokens: int
) -> None:
    model, store = tiny_model(name), random_store(num_tokens)
    expected = 0.0
    for place in range(1, num_tokens + 1):  # of the token that is predicted
        start = stride * max(0, math.ceil((place - CONTEXT) / stride))
        expected += nats_of(model, store.ids[start : place + 1], last=1)
    score = evaluate(model, store, context=CONTEXT, stride=stride, batch_size=3)
    assert score.tokens == num_tokens
    assert score.nats.sum() == pytest.approx(expected, abs=1e-3)
    assert score.nats_per_token == pytest.approx(expected / num_tokens, abs=1e-4)


@each_family
def test_a_stride_of_one_gives_every_token_a_full_context(name: str) -> None:
    model, store = tiny_model(name), random_store(30)
    expected = [nats_of(model, store.ids[max(0, place - CONTEXT) : place + 1], last=1) for place in range(1, 31)]
    score = evaluate(model, store, view="sliding", context=CONTEXT, stride=1)
    assert score.nats.sum() == pytest.approx(sum(expected), abs=1e-3)


@each_family
def test_a_stride_as_long_as_the_context_is_disjoint(name: str) -> None:
    model, store = tiny_model(name), random_store(50)
    sliding = evaluate(model, store, view="sliding", context=CONTEXT, stride=CONTEXT)
    disjoint = evaluate(model, store, view="disjoint", context=CONTEXT)
    assert sliding.nats_per_token == pytest.approx(disjoint.nats_per_token)


@pytest.mark.parametrize("name", ["ngram", "lstm"])
@pytest.mark.parametrize("num_tokens", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_carried_state_gives_the_score_of_the_text_read_at_once(name: str, num_tokens: int) -> None:
    model, store = tiny_model(name), random_store(num_tokens)
    score = evaluate(model, store, view="carried")
    assert score.tokens == num_tokens
    assert score.nats.sum() == pytest.approx(nats_of(model, store.ids), rel=1e-5)


@pytest.mark.parametrize("more", [0, 1, 2, 3, 100])
def test_tracks_side_by_side_are_each_read_from_nothing_and_every_token_counts_once(more: int) -> None:
    num_tokens = 3 * 4 * CHUNK + more  # three tracks; with 1 more the last chunk has rows with nothing in them
    model, store = tiny_model("lstm"), random_store(num_tokens)
    length = math.ceil(num_tokens / 3)
    expected = sum(nats_of(model, store.ids[i : i + length + 1]) for i in range(0, num_tokens, length))
    score = evaluate(model, store)
    assert score.signature.startswith(f"carried:chunk={CHUNK},tracks=3|")
    assert score.tokens == num_tokens
    assert score.nats.sum() == pytest.approx(expected, rel=1e-5)


@each_family
def test_the_number_of_rows_read_at_once_changes_no_score(name: str) -> None:
    model, store = tiny_model(name), random_store(60)
    scores = [evaluate(model, store, context=CONTEXT, stride=2, batch_size=size).nats for size in (1, 7, 64)]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-4)


def test_without_a_view_each_family_is_read_as_it_reads_best() -> None:
    store = random_store(40)
    assert evaluate(tiny_model("gpt"), store).signature.startswith(f"disjoint:context={CONTEXT}|")
    assert evaluate(tiny_model("lstm"), store).signature.startswith(f"carried:chunk={CHUNK},tracks=1|")
    assert evaluate(tiny_model("ngram"), random_store(5000)).signature.startswith(f"carried:chunk={CHUNK},tracks=1|")


def test_the_signature_names_view_context_stride_data_and_version() -> None:
    model, store = tiny_model("gpt"), random_store(40)
    sliding = evaluate(model, store, context=5, stride=2, scored="valid:abc|tokenizer=char:7").signature.split("|")
    assert sliding[0] == "sliding:context=5,stride=2"
    assert sliding[1:3] == ["valid:abc", "tokenizer=char:7"]
    assert sliding[3].startswith("bootstrap=1000x")
    assert sliding[4].startswith("seqwise=")
    assert evaluate(model, store, view="sliding").signature.startswith(f"sliding:context={CONTEXT},stride=3|")
    assert evaluate(model, store, view="sliding", context=1).signature.startswith("sliding:context=1,stride=1|")
    assert evaluate(model, store, view="disjoint", context=4).signature.startswith("disjoint:context=4|")


class Uniform:
    """Gives every token 1/4, and remembers whether it was asked in training."""

    def score(self, batch: Batch, state: State | None = None) -> tuple[torch.Tensor, State]:
        return torch.full(batch.targets["tokens"].shape, math.log(1 / 4)), State({})


def test_nats_perplexity_and_bits_of_a_model_that_knows_nothing() -> None:
    score = evaluate(Uniform(), random_store(100), context=7)  # 3 characters per token
    assert score.nats_per_token == pytest.approx(math.log(4))
    assert score.perplexity == pytest.approx(4)
    assert score.bits_per_char == pytest.approx(2 / 3)
    assert score.interval == pytest.approx((math.log(4), math.log(4)))
    assert score.bits_interval == pytest.approx((2 / 3, 2 / 3))


def test_formulas_are_sums_over_segments_divided_once() -> None:
    score = Score(np.array([10.0, 1.0, 7.0]), np.array([10, 1, 4]), 30, "by hand")
    assert score.tokens == 15
    assert score.nats_per_token == pytest.approx(18 / 15)
    assert score.perplexity == pytest.approx(math.exp(18 / 15))
    assert score.bits_per_char == pytest.approx(18 / math.log(2) / 30)
    ratio = score.bits_per_char / score.nats_per_token
    assert score.bits_interval == pytest.approx(tuple(ratio * bound for bound in score.interval))
    assert set(score.to_dict()) >= {
        "nats_per_token", "perplexity", "bits_per_char", "tokens", "interval", "signature"
    }  # fmt: skip


def test_letters_of_unknown_words_are_in_the_bits_and_their_interval_but_not_in_the_nats() -> None:
    score = Score(np.full(8, 10.0), np.full(8, 5), 240, "by hand", letters=np.full(8, 2.0), unknown=3)
    assert score.bits_per_char == pytest.approx(8 * 12 / math.log(2) / 240)
    assert score.bits_interval == pytest.approx((score.bits_per_char, score.bits_per_char))
    assert score.nats_per_token == pytest.approx(2.0)
    assert score.interval == pytest.approx((2.0, 2.0))
    share = 8 * 2.0 / math.log(2) / 240
    assert f"3 of 40 tokens are unknown words (7.50 %); their letters are {share:.4f} of the bits" in score.headline()
    without = Score(score.nats, score.counts, 240, "by hand")
    assert (without.unknown, without.unknown_share, without.letters_per_token) == (0, 0.0, 0.0)
    assert without.interval == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize(
    ("num_chars", "num"),
    [(1, 1), (19, 1), (20, 2), (95, 9), (100, 10), (999, 10), (1099, 10), (1100, 11), (39_999, 399), (10**6, 400)],
)
def test_segments_are_of_a_hundred_characters_up_to_four_hundred_and_ten_in_a_short_text(
    num_chars: int, num: int
) -> None:
    assert num_segments(num_chars) == num
    edges = segment_edges(num_chars, num)
    assert (edges[0], edges[-1], len(edges)) == (0, num_chars, num + 1)
    assert np.ptp(np.diff(edges)) <= 1


def test_a_hopeless_model_has_a_perplexity_that_is_still_a_number() -> None:
    assert math.isfinite(Score(np.array([1e6]), np.array([1]), 1, "").perplexity)


def test_the_interval_holds_the_estimate_and_is_the_same_each_time() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        counts = random.integers(1, 50, size=40)
        totals = counts * random.gamma(4.0, 0.5, size=40)
        low, high = Segments.of(totals, counts).interval
        assert low < totals.sum() / counts.sum() < high
        assert Segments.of(totals, counts).interval == (low, high)


def test_the_interval_shrinks_with_the_root_of_the_data() -> None:
    random = np.random.default_rng(4)
    totals, counts = random.gamma(4.0, 0.5, size=1600), np.ones(1600, dtype=np.int64)
    few, many = (Segments.of(totals[:n], counts[:n]).interval for n in (100, 1600))
    assert 2.5 < (few[1] - few[0]) / (many[1] - many[0]) < 6  # 4, were both samples alike


def test_the_interval_is_that_of_the_normal_approximation_for_many_segments() -> None:
    totals = np.random.default_rng(4).normal(2.0, 0.5, size=2000)
    low, high = Segments.of(totals, np.ones(2000, dtype=np.int64)).interval
    error = totals.std() / math.sqrt(2000)
    assert (low, high) == pytest.approx((totals.mean() - 1.96 * error, totals.mean() + 1.96 * error), abs=0.15 * error)


def test_the_interval_of_a_long_text_is_found_in_little_memory() -> None:
    """The validation part of a 1 GB text has near a million windows: memory must not be resamples x windows."""
    score = evaluate(tiny_model("ngram"), random_store(200_000))
    tracemalloc.start()
    try:
        assert score.interval[0] < score.interval[1]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6


@each_family
@pytest.mark.parametrize("view", ["disjoint", "sliding", "carried"])
def test_segments_are_equal_and_in_the_order_of_the_text_in_every_view(name: str, view: Any) -> None:
    """Token by token: what each view says of a segment is what it says of the tokens in it."""
    model, store = tiny_model(name), TokenStore(random_store(2000).ids, 2000)
    if view == "carried" and name == "gpt":
        pytest.skip("a GPT carries nothing on")
    options = {} if view == "carried" else {"context": CONTEXT}
    score = evaluate(model, store, view=view, **options)
    assert score.counts.tolist() == [100] * 20
    beginning = evaluate(model, TokenStore(store.ids[:1001], 1000), view=view, **options)
    if view != "carried":  # there, where a segment is cut into tracks depends on the length of the text
        assert score.nats[:9].tolist() == pytest.approx(beginning.nats[:9].tolist(), rel=0.02)


TEXTS = {
    "prose": "The cat, it said, sat on the mat.\n  Then -- as cats do -- it left; why?\n\nNobody knew!\n" * 40,
    "tokenised": " the cat <unk> sat on the mat \n then it left , as cats do \n" * 50,
    "other letters": "Größe, 東京 и Κόσμος — naïve €5 😀😀\n\tİstanbul DİYARBAKIR\n" * 40,
    "much white space": "   \n\n a   b \t c\u00a0d\u2003\n" * 60 + "    ",
}
TOKENIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "char": ("char", {}),
    "char with few seen": ("char", {"min_count": 200}),
    "bpe": ("bpe", {"vocab_size": 300}),
    "word": ("word", {}),
    "word with few known": ("word", {"min_count": 60}),
    "small letters": ("word", {"lower_case": True}),
}


class OneBitPerCharacter:
    """Each token costs one bit for each of its characters."""

    def __init__(self, lengths: np.ndarray):
        self.bits = torch.from_numpy(lengths).double()  # (tokens,) of the text in order

    def score(self, batch: Batch, state: State | None = None) -> tuple[torch.Tensor, State]:
        assert batch.places is not None
        places = batch.places.unsqueeze(1) + torch.arange(batch.targets["tokens"].shape[1])
        return -math.log(2) * self.bits[places.clamp(max=len(self.bits) - 1)], State({})


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(("kind", "settings"), TOKENIZERS.values(), ids=TOKENIZERS)
@pytest.mark.parametrize("options", [{}, {"context": 9}, {"context": 9, "stride": 4}], ids=str)
def test_one_bit_for_each_character_is_one_bit_whatever_the_tokenizer(
    text: str, kind: str, settings: dict[str, Any], options: dict[str, int]
) -> None:
    store = store_of_text(text, train_tokenizer(kind, [text], **settings))
    model = OneBitPerCharacter(store.lengths(np.arange(store.num_tokens)))
    score = evaluate(model, replace(store, spelling=Sparse(np.zeros(0, dtype=np.int64), np.zeros(0))), **options)
    assert score.tokens == store.num_tokens
    assert score.bits_per_char == pytest.approx(1.0)
    assert score.bits_interval == pytest.approx((1.0, 1.0))
    assert score.segments.statistics[0, :, 0] == pytest.approx(score.segments.statistics[0, :, 1])


def test_two_tokenizers_are_compared_on_the_same_segments() -> None:
    """Models that differ by a tenth of a bit at each character are told apart, whatever their tokens."""
    text, scores = TEXTS["prose"], []
    for kind, bits in (("char", 1.0), ("bpe", 1.1), ("word", 1.2)):
        store = store_of_text(text, train_tokenizer(kind, [text]))
        scores.append(evaluate(OneBitPerCharacter(bits * store.lengths(np.arange(store.num_tokens))), store))
    for better, worse in pairwise(scores):
        assert compare(better, worse).interval == pytest.approx((0.1, 0.1))
        assert compare(better, worse).is_distinguishable


def test_a_long_token_is_spread_over_all_segments_it_lies_in() -> None:
    text = "a" * 250 + "\n" + "b" * 749  # ten segments of 100 characters, and three tokens
    store = store_of_text(text, train_tokenizer("word", [text]))
    model = OneBitPerCharacter(np.array([500.0, 7.0, 749.0]))
    score = evaluate(model, store)
    expected = [200.0, 200.0, 100.0 + 7.0 + 49.0, *[100.0] * 7]
    assert (score.nats / math.log(2)).tolist() == pytest.approx(expected)
    assert score.tokens == 3


def test_a_character_of_several_tokens_costs_what_they_cost_together_where_it_stands() -> None:
    text = "a" * 99 + "é" + "b" * 900  # é ends the first of ten segments, and is spelled in four digits
    store = store_of_text(text, train_tokenizer("char", ["ab"]))
    score = evaluate(OneBitPerCharacter(np.ones(store.num_tokens)), store)
    assert (score.nats / math.log(2)).tolist() == pytest.approx([103.0, *[100.0] * 9])
    assert score.counts.tolist() == pytest.approx([103.0, *[100.0] * 9])


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_interval_of_evaluate_is_that_of_the_segments(text: str) -> None:
    """What compare prints is made of the segments; a model that knows nothing has the same costs for every token."""
    score = evaluate(Uniform(), store_of_text(text, train_tokenizer("bpe", [text], vocab_size=400)), context=7)
    assert score.bits_interval == score.segments.interval
    assert score.bits_interval[1] - score.bits_interval[0] > 0.005  # tokens are of many lengths


def test_unknown_words_are_spelled_in_bits_and_are_one_token_in_the_perplexity() -> None:
    text = "the cat sat on the mat\n" * 20
    tokenizer = train_tokenizer("word", [text])
    known, unknown, itself = (
        evaluate(Uniform(), store_of_text(text + more, tokenizer))
        for more in ("the cat sat on the mat\n", "the kitten sat on the mattress\n", "the <unk> sat on the mat\n")
    )
    letters = float(Spelling(tokenizer.to_dict()["words"]).nats(["kitten", "mattress"]).sum())
    assert unknown.nats_per_token == known.nats_per_token == pytest.approx(math.log(4))
    total = unknown.tokens * math.log(4) + letters
    assert unknown.bits_per_char == pytest.approx(total / math.log(2) / unknown.characters)
    assert unknown.nats[-1] + np.asarray(unknown.letters)[-1] == pytest.approx(unknown.nats[-1] + letters)
    assert unknown.unknown == 2
    assert unknown.unknown_share == pytest.approx(2 / unknown.tokens)
    assert unknown.to_dict()["unknown_words"] == 2
    assert "2 of 147 tokens are unknown words (1.36 %)" in dict(unknown.rows())["unknown words"]
    assert "2 of 147 tokens are unknown words" in unknown.headline()
    assert "unknown=2:one token,spelled in bits" in unknown.signature
    for score in (known, itself):
        assert score.unknown == 0
        assert "unknown" not in score.signature + score.headline() + str(dict(score.rows()))


def compare(first: Score, second: Score) -> Difference:
    return compare_segments(first.segments, second.segments)


def test_several_seeds_widen_the_interval_by_how_much_they_differ() -> None:
    random = np.random.default_rng(0)
    counts = np.full(200, 50.0)
    seeds = [Segments.of(random.normal(100 + apart, 5, size=200), counts) for apart in (0.0, 6.0, 12.0)]
    together = joined(seeds)
    assert together.value == pytest.approx(sum(one.value for one in seeds) / 3)
    widths = [high - low for low, high in (one.interval for one in (seeds[0], together))]
    assert widths[1] > 3 * widths[0]
    same = joined([seeds[0], seeds[0], seeds[0]])
    assert same.interval == pytest.approx(seeds[0].interval, abs=1e-9)
    lucky = Segments.of(
        seeds[1].statistics[0, :, 0] - 1.0, counts
    )  # better than the mean seed, but not than the best one
    assert not compare_segments(lucky, together).is_distinguishable
    assert compare_segments(lucky, seeds[1]).is_distinguishable


def test_two_scores_of_one_text_are_compared_segment_by_stretch() -> None:
    random = np.random.default_rng(0)
    hard = random.gamma(4.0, 50.0, size=100)  # passages differ much, models little
    counts = np.full(100, 100)
    first = Score(hard, counts, 10_000, "first")
    second = Score(hard + 2.0 + random.normal(0, 1, size=100), counts, 10_000, "second")
    assert first.bits_interval[1] > second.bits_interval[0]  # each alone says nothing
    difference = compare(first, second)
    assert difference.is_distinguishable
    assert difference.gain == pytest.approx(second.bits_per_char - first.bits_per_char)
    assert difference.interval[0] < difference.gain < difference.interval[1]
    same = compare(first, Score(hard + random.normal(0, 1, size=100), counts, 10_000, "third"))
    assert not same.is_distinguishable
    with pytest.raises(ConfigError, match="of the same data"):
        compare(first, Score(hard[:50], counts[:50], 5_000, "other"))


# -- token by token --------------------------------------------------------------------------------------------------


@torch.no_grad()
def nats_by_stepping(model: Any, ids: np.ndarray) -> list[float]:
    """-log p of each token but the first, read one by one as a text is written."""
    tokens = torch.from_numpy(ids.astype(np.int64))
    log_probs, state = model.start(Batch({"tokens": Tokens(tokens[:1].unsqueeze(0))}, {}))
    nats = []
    for token in tokens[1:]:
        nats.append(-float(log_probs[0, token]))
        log_probs, state = model.step(token.unsqueeze(0), state)
    return nats


@pytest.mark.parametrize("name", ["ngram", "conv", "lstm"])
@pytest.mark.parametrize("num_tokens", [1, 2, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_each_token_costs_what_it_costs_when_the_text_is_read_one_by_one(name: str, num_tokens: int) -> None:
    model, store = tiny_model(name), random_store(num_tokens)
    found = token_nats(model, store)
    assert found.shape == (num_tokens,)
    assert found.tolist() == pytest.approx(nats_by_stepping(model, store.ids), abs=1e-4)


@pytest.mark.parametrize("num_tokens", [1, 2, CONTEXT - 1])
def test_a_gpt_reads_a_text_that_fits_its_context_one_by_one_too(num_tokens: int) -> None:
    model, store = tiny_model("gpt"), random_store(num_tokens)
    assert token_nats(model, store).tolist() == pytest.approx(nats_by_stepping(model, store.ids), abs=1e-4)


@pytest.mark.parametrize("context", [2, 3, 6, 9])
@pytest.mark.parametrize("num_tokens", [9, 10, 200])
def test_a_gpt_sees_three_quarters_of_its_context_before_each_token_of_a_long_text(
    context: int, num_tokens: int
) -> None:
    model, store, stride = tiny_model("gpt", context=context), random_store(num_tokens), max(1, context // 4)
    expected = []
    for place in range(1, num_tokens + 1):
        start = stride * max(0, math.ceil((place - context) / stride))
        assert start == 0 or place - start >= context - stride
        expected.append(nats_of(model, store.ids[start : place + 1], last=1))
    assert token_nats(model, store).tolist() == pytest.approx(expected, abs=1e-4)


@each_family
def test_the_tokens_of_a_text_cost_together_what_the_text_costs(name: str) -> None:
    model, store = tiny_model(name), random_store(300)
    options: dict[str, Any] = {"stride": max(1, CONTEXT // 4)} if name == "gpt" else {"view": "carried"}
    assert token_nats(model, store).sum() == pytest.approx(evaluate(model, store, **options).nats.sum(), rel=1e-5)


@each_family
@pytest.mark.parametrize(("num_tokens", "context"), [(40, 5), (30, CONTEXT), (4, CONTEXT), (2, 1)])
def test_a_position_costs_the_mean_over_whole_windows_that_are_each_read_from_nothing(
    name: str, num_tokens: int, context: int
) -> None:
    model, store = tiny_model(name), random_store(num_tokens)
    length = min(context, num_tokens)
    windows = [store.ids[i : i + length + 1] for i in range(0, num_tokens - length + 1, length)]
    expected = [np.mean([nats_of(model, window[: place + 2], last=1) for window in windows]) for place in range(length)]
    assert nats_by_position(model, store, context=context).tolist() == pytest.approx(expected, abs=1e-4)


def test_no_position_lies_behind_what_the_model_can_see() -> None:
    assert nats_by_position(tiny_model("gpt"), random_store(100), context=50).shape == (CONTEXT,)
    assert nats_by_position(tiny_model("lstm"), random_store(100), context=50).shape == (50,)


class Places:
    """Each token costs its own id, so that it can be seen which were read."""

    def score(self, batch: Batch, state: State | None = None) -> tuple[torch.Tensor, State]:
        assert state is None
        return -batch.targets["tokens"].ids.float(), State({})


def test_of_a_long_text_so_many_windows_are_read_from_beginning_to_end() -> None:
    store = TokenStore(np.arange(10_001), 10_000)
    found = nats_by_position(Places(), store, context=10, max_windows=5)  # of 1000: the first, the last, and between
    starts = (found[0] - 1) * 5
    assert found.tolist() == pytest.approx([found[0] + place for place in range(10)])
    assert starts == pytest.approx(0 + 2490 + 4990 + 7490 + 9990, abs=40)
    whole = nats_by_position(Places(), store, context=10, max_windows=1000)
    assert whole.tolist() == pytest.approx([4996.0 + place for place in range(10)])


class Counting(Uniform):
    """Remembers how many tokens it was asked for at once."""

    most = 0

    def score(self, batch: Batch, state: State | None = None) -> tuple[torch.Tensor, State]:
        self.most = max(self.most, batch.targets["tokens"].ids.numel())
        return super().score(batch, state)


def test_positions_are_read_in_batches_no_larger_than_those_of_a_score() -> None:
    """With 8000 byte pairs the logits of 256 windows of 512 tokens are 4 GB."""
    scoring, by_position, store = Counting(), Counting(), random_store(512 * 256)
    evaluate(scoring, store, view="disjoint", context=512)
    nats_by_position(by_position, store, context=512)
    assert 0 < by_position.most <= scoring.most


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_leaves_the_model_in_the_mode_it_was_in(training: bool) -> None:
    model, store = tiny_model("gpt", dropout=0.5), random_store(40)
    expected = evaluate(model.eval(), store).nats
    model.train(training)
    assert np.array_equal(evaluate(model, store).nats, expected)  # no dropout while scoring
    assert np.array_equal(token_nats(model, store), token_nats(model, store))
    assert np.array_equal(nats_by_position(model, store, context=5), nats_by_position(model, store, context=5))
    assert model.training is training
    assert all(module.training is training for module in model.modules())


def test_evaluating_takes_no_gradient_and_no_chance() -> None:
    model, store = tiny_model("lstm", dropout=0.5).train(), random_store(40)
    before = torch.get_rng_state()
    evaluate(model, store)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"context": 7}, "a context of 7 tokens is longer than the model's, which is 6. Ask for less."),
        ({"context": 7, "stride": 2}, "a context of 7 tokens is longer than the model's, which is 6."),
        ({"view": "carried"}, "this model sees 6 tokens at most and carries nothing on; use disjoint or sliding"),
        ({"stride": 7}, "a stride of 7 should lie between 1 and the context of 6."),
        ({"stride": -1}, "a stride of -1 should lie between 1 and the context of 6."),
        ({"stride": 0}, "a stride of 0"),
        ({"view": "sliding", "stride": 0}, "a stride of 0"),
        ({"context": 0}, "a context of 0"),
        ({"context": -3}, "a context of -3"),
        ({"view": "disjoint", "stride": 2}, "a stride of 2"),
    ],
)
def test_what_cannot_be_scored_is_told_in_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with at_most(seconds=2), pytest.raises(ConfigError) as caught:
        evaluate(tiny_model("gpt"), random_store(20), **settings)
    assert str(caught.value).startswith(sentence)


def test_a_context_is_not_dropped_in_silence_where_state_is_carried() -> None:
    model, store = tiny_model("lstm"), random_store(600)
    try:
        score = evaluate(model, store, context=CONTEXT)
    except ConfigError:
        return
    assert f"context={CONTEXT}" in score.signature


def test_a_model_that_finds_something_impossible_loses_without_end_and_says_no_nan() -> None:
    """An unsmoothed n-gram meets what it never saw."""
    row = MODELS["ngram"]
    unsmoothed = row.build(row.config(order=2, smoothing="maximum_likelihood"), schemas.of_text(VOCAB))
    unsmoothed.fit(np.array([0, 1, 2, 1, 2, 1]))
    store = random_store(60)
    impossible, fine = evaluate(unsmoothed, store), evaluate(tiny_model("ngram"), store)
    assert impossible.perplexity == impossible.nats_per_token == math.inf
    assert impossible.interval == (math.inf, math.inf)
    assert compare(fine, impossible).gain == math.inf
    assert compare(fine, impossible).is_distinguishable
    assert compare(impossible, fine).gain == -math.inf
    assert not compare(impossible, impossible).is_distinguishable
    assert json.loads(to_json(impossible.to_dict()))["perplexity"] is None
