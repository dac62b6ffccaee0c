"""BLEU and chrF from sums, against sacrebleu itself; intervals and paired tests by sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from seqwise.evaluation.segments import Segments, compare_segments, same_data
from seqwise.evaluation.translations import Likelihood, TranslationScore

WORDS = ["ein", "Mann", "Hund", "läuft", "im", "Park", ",", "und", "zwei", "Kinder", "spielen", "."]
sentence = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def score_of(hypotheses: list[str], references: list[str], sources: list[str] | None = None) -> TranslationScore:
    return TranslationScore(sources or references, references, hypotheses, Likelihood(3.0, 6, 4), "test")


@how(max_examples=200)
@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=8))
def test_values_from_sums_are_those_of_sacrebleu(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [h for h, _ in pairs], [r for _, r in pairs]
    score = score_of(hypotheses, references)
    assert score.bleu == pytest.approx(BLEU().corpus_score(hypotheses, [references]).score, abs=1e-9)
    assert score.chrf == pytest.approx(CHRF().corpus_score(hypotheses, [references]).score, abs=1e-9)


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [("im Park", "im"), ("im", "im Park"), ("Mann", "Mannheim läuft"), (", im", "im"), ("ein", ""), ("", "ein")],
)
def test_sentences_of_fewer_letters_and_words_than_n_are_scored_as_sacrebleu_scores_them(
    hypothesis: str, reference: str
) -> None:
    score = score_of([hypothesis], [reference])
    assert score.bleu == pytest.approx(BLEU().corpus_score([hypothesis], [[reference]]).score, abs=1e-6)
    assert score.chrf == pytest.approx(CHRF().corpus_score([hypothesis], [[reference]]).score, abs=1e-9)


def test_an_interval_of_per_cents_ends_at_none_and_at_all() -> None:
    """Of eight sentences one is wrong, or one is right: stretched as few sentences ask for, it would go beyond."""
    references = many_references(8)
    wrong = ["x x x x x"] * 8
    for score, end in (
        (score_of([*references[:7], wrong[7]], references), 1),
        (score_of([*wrong[:7], references[7]], references), 0),
    ):
        for name, value in (("bleu", score.bleu), ("chrf", score.chrf)):
            interval = score.to_dict()[f"{name}_interval"]
            assert interval[end] == 100.0 * end
            assert interval[0] < value < interval[1]
            assert 0 < interval[1 - end] < 100


def noisy(references: list[str], share: float, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [
        " ".join(str(random.choice(WORDS)) if random.random() < share else w for w in r.split()) for r in references
    ]


def many_references(num: int = 300) -> list[str]:
    random = np.random.default_rng(9)
    return [" ".join(random.choice(WORDS, size=n)) for n in random.integers(4, 40, size=num)]


def test_the_better_of_two_systems_is_told_apart_and_equals_hardly_ever_are() -> None:
    references = many_references()
    good, bad = (score_of(noisy(references, share, seed), references) for share, seed in ((0.1, 1), (0.2, 2)))
    equals = [score_of(noisy(references, 0.1, seed), references) for seed in range(3, 13)]
    for number in range(2):
        (metric, first), (_, second) = (one.comparable[number] for one in (good, bad))
        assert metric.is_higher_better
        better = compare_segments(first, second)
        assert better.is_distinguishable
        assert better.gain == pytest.approx(metric.shown(first.value) - metric.shown(second.value))
        assert better.interval[0] < better.gain < better.interval[1]
        assert sum(compare_segments(first, one.comparable[number][1]).is_distinguishable for one in equals) <= 3
    low, high = good.bleu_segments.interval
    assert -high < good.bleu < -low
    assert good.to_dict()["bleu_interval"] == [-high, -low]


def test_the_interval_covers_what_sacrebleu_resamples() -> None:
    references = many_references(200)
    score = score_of(noisy(references, 0.3, 1), references)
    theirs = BLEU().corpus_score(list(score.hypotheses), [references], n_bootstrap=1000)
    low, high = score.to_dict()["bleu_interval"]
    assert (high - low) / 2 == pytest.approx(theirs._ci, rel=0.2)


def test_systems_on_other_references_are_not_compared() -> None:
    first = score_of(["ein Mann"], ["ein Mann"])
    second = score_of(["ein Hund läuft"], ["ein Hund läuft"])
    assert not same_data(first.segments, second.segments)
    assert same_data(first.segments, score_of(["zwei"], ["ein Mann"]).segments)


def test_bleu_by_length_sorts_sentences_by_the_words_of_their_source() -> None:
    sources = ["w " * 3, "w " * 8, "w " * 9, "w " * 50]
    score = score_of(["a b c d", "x", "y", "a b c d e"], ["a b c d", "a b c d", "a b c d", "a b c d e"], sources)
    assert [(words, num) for words, num, _ in score.by_length] == [("1 to 5", 1), ("6 to 10", 2), ("over 30", 1)]
    assert [round(bleu) for _, _, bleu in score.by_length] == [100, 0, 100]


def test_nothing_in_common_is_zero_and_not_minus_zero() -> None:
    score = score_of(["x x x x", "y y y y"] * 5, ["a b c d", "e f g h"] * 5)
    told = [score.headline(), *(value for _, value in score.rows()), json.dumps(score.to_dict()), repr(score)]
    assert [line for line in told if "-0.0" in line] == []
    assert score.headline().startswith("BLEU 0.00 (95 %: 0.00 to 0.00), chrF 0.00 (95 %: 0.00 to 0.00)")


def test_exact_matches_tokens_and_signature() -> None:
    score = score_of(["ein Mann", "zwei"], ["ein Mann", "drei"])
    assert (score.exact_match, score.token_accuracy, score.nats_per_token) == (0.5, 4 / 6, 0.5)
    assert "tok:13a" in score.signature
    assert score.signature.startswith("test|BLEU[")
    assert "tok:char" in score_of(["二千年"], ["二千一年"]).signature


def test_seeds_together_are_the_mean_of_their_values() -> None:
    references = many_references(50)
    parts = [score_of(noisy(references, 0.2, seed), references).segments for seed in (1, 2)]
    both = Segments(np.concatenate([one.statistics for one in parts]), "chrf")
    assert both.value == pytest.approx(sum(one.value for one in parts) / 2)
    assert both.interval[0] < both.value < both.interval[1]
    assert Segments.from_dict(both.to_dict()).value == both.value
