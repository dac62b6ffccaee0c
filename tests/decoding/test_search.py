"""Beam and exhaustive search against enumerating every continuation with `score`."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from seqwise.data.batch import next_token_batch, prompt_batch
from seqwise.decoding import DecodingConfig, Hypothesis, generate
from seqwise.decoding.beam import Candidates, beam_search
from seqwise.errors import ConfigError

MakeChain = Callable[[list[list[float]]], Any]
PROMPTS = [[0], [0, 1, 2, 1], [0, 2]]
PENALTIES = [0.0, 0.5, 1.0]
LENGTH = 4
each_penalty = pytest.mark.parametrize("penalty", PENALTIES)
each_stop = pytest.mark.parametrize("stop", [None, 1])


@torch.no_grad()
def log_prob(model: Any, prompt: list[int], tokens: list[int]) -> float:
    log_probs, _ = model.score(next_token_batch(torch.tensor([[*prompt, *tokens]])))
    return float(log_probs[0, len(prompt) - 1 :].double().sum())


def every_continuation(model: Any, prompt: list[int], stop: int | None, penalty: float) -> list[Hypothesis]:
    """All that end in `stop` or have LENGTH tokens, best first."""
    found = []
    for length in range(1, LENGTH + 1):
        for tokens in product(range(model.vocab_size), repeat=length):
            ends = tokens[-1] == stop
            if stop not in tokens[:-1] and (ends or length == LENGTH):
                found.append(Hypothesis(list(tokens), log_prob(model, prompt, list(tokens)), ends))
    return sorted(found, key=lambda h: -h.score(penalty))


def same(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """The same hypotheses; those that tie may stand in any order, and at the end one for the other."""
    assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in expected], abs=1e-4)
    places = {tuple(h.tokens): h for h in expected}
    for place, hypothesis in enumerate(found):
        twin = places.pop(tuple(hypothesis.tokens), expected[-1])
        assert hypothesis.log_prob == pytest.approx(twin.log_prob, abs=1e-4), f"place {place}"
        assert hypothesis.is_finished == twin.is_finished
        assert hypothesis.tokens == twin.tokens or twin is expected[-1]


@each_stop
def test_exhaustive_search_finds_the_best_of_all_continuations(model: Any, stop: int | None) -> None:
    for prompt in PROMPTS[:2]:
        for penalty in PENALTIES:
            config = DecodingConfig(
                method="exhaustive", max_tokens=LENGTH, num_results=12, stop=stop, length_penalty=penalty
            )
            same(generate(model, [prompt], config)[0], every_continuation(model, prompt, stop, penalty)[:12])


@each_stop
@each_penalty
def test_a_beam_as_wide_as_all_texts_finds_what_exhaustive_search_finds(
    model: Any, stop: int | None, penalty: float
) -> None:
    settings = {"max_tokens": LENGTH, "num_results": 10, "stop": stop, "length_penalty": penalty}
    exhaustive = generate(model, PROMPTS, DecodingConfig(method="exhaustive", **settings))
    wide = DecodingConfig(method="beam", beam_width=model.vocab_size**LENGTH, **settings)
    with torch.inference_mode():
        for found, expected in zip(
            beam_search(model, prompt_batch(PROMPTS), wide, [LENGTH] * 3), exhaustive, strict=True
        ):
            same(found, expected)


@each_stop
@each_penalty
def test_a_beam_as_wide_as_the_vocabulary_is_exact_over_two_tokens(
    model: Any, stop: int | None, penalty: float
) -> None:
    settings = {"max_tokens": 2, "num_results": model.vocab_size, "stop": stop, "length_penalty": penalty}
    exhaustive = generate(model, PROMPTS, DecodingConfig(method="exhaustive", **settings))
    beam = generate(model, PROMPTS, DecodingConfig(method="beam", beam_width=model.vocab_size, **settings))
    for found, expected in zip(beam, exhaustive, strict=True):
        same(found, expected)


@each_stop
@each_penalty
def test_a_narrow_beam_never_scores_above_exhaustive_search_and_tells_the_true_log_probability(
    model: Any, stop: int | None, penalty: float
) -> None:
    settings = {"max_tokens": LENGTH, "stop": stop, "length_penalty": penalty}
    best = generate(model, PROMPTS, DecodingConfig(method="exhaustive", **settings))
    for width in (1, 2, 3):
        beam = generate(model, PROMPTS, DecodingConfig(method="beam", beam_width=width, num_results=width, **settings))
        for prompt, found, (limit,) in zip(PROMPTS, beam, best, strict=True):
            assert found[0].score(penalty) <= limit.score(penalty) + 1e-5
            for hypothesis in found:
                assert hypothesis.log_prob == pytest.approx(log_prob(model, prompt, hypothesis.tokens), abs=1e-4)


@each_stop
@each_penalty
def test_the_n_best_are_sorted_and_distinct(model: Any, stop: int | None, penalty: float) -> None:
    config = DecodingConfig(method="beam", beam_width=3, num_results=3, max_tokens=6, stop=stop, length_penalty=penalty)
    for found in generate(model, PROMPTS, config):
        scores = [h.score(penalty) for h in found]
        assert len(found) == 3 == len({tuple(h.tokens) for h in found})
        assert scores == sorted(scores, reverse=True)


@each_penalty
@pytest.mark.parametrize("stop", [None, 0, 1, 2])
def test_a_beam_of_one_is_greedy(model: Any, stop: int | None, penalty: float) -> None:
    settings = {"max_tokens": 6, "stop": stop, "length_penalty": penalty}
    beam = generate(model, PROMPTS, DecodingConfig(method="beam", beam_width=1, **settings))
    greedy = generate(model, PROMPTS, DecodingConfig(method="greedy", **settings))
    assert [h.tokens for (h,) in beam] == [h.tokens for (h,) in greedy]
    for found, expected in zip(beam, greedy, strict=True):
        same(found, expected)


@pytest.mark.parametrize("seed", range(20))
def test_a_beam_of_one_is_greedy_where_tokens_tie_and_sentences_end(seed: int, make_chain: MakeChain) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(1, 4, (6, 6), generator=generator).float()
    chain = make_chain((rows / rows.sum(dim=1, keepdim=True)).tolist())
    settings = {"max_tokens": 8, "stop": 5, "length_penalty": 1.0}
    prompts = [[token] for token in range(6)]
    beam = generate(chain, prompts, DecodingConfig(method="beam", beam_width=1, **settings))
    greedy = generate(chain, prompts, DecodingConfig(method="greedy", **settings))
    assert [h.tokens for (h,) in beam] == [h.tokens for (h,) in greedy]


def test_an_end_right_behind_the_beam_is_not_of_it(make_chain: MakeChain) -> None:
    """The two best go on with 0.4 and 0.35, the end has 0.25: a beam of two does not keep it, one of three does."""
    chain = make_chain([[0.0, 0.4, 0.35, 0.25], *[[0.2, 0.3, 0.3, 0.2]] * 3])
    settings: dict[str, Any] = {"method": "beam", "max_tokens": 2, "stop": 3}
    (narrow,) = generate(chain, [[0]], DecodingConfig(beam_width=2, **settings))[0]
    assert narrow.tokens == [1, 1]
    (wide,) = generate(chain, [[0]], DecodingConfig(beam_width=3, **settings))[0]
    assert wide.tokens == [3]


def test_what_could_only_tie_with_what_is_found_is_not_searched_for(make_chain: MakeChain) -> None:
    chain = make_chain([[0.0, 0.5, 0.5], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])  # 2 ends; by way of 1 it is as probable
    (found,) = generate(chain, [[0]], DecodingConfig(method="beam", beam_width=2, max_tokens=9, stop=2))[0]
    assert found.tokens == [2]
    assert chain.num_steps == 0


def test_of_equal_hypotheses_the_one_with_the_lower_tokens_is_found(make_chain: MakeChain) -> None:
    chain = make_chain([[0.25] * 4] * 4)
    config = DecodingConfig(method="beam", beam_width=3, num_results=3, max_tokens=2)
    assert [h.tokens for h in generate(chain, [[0]], config)[0]] == [[0, 0], [0, 1], [0, 2]]


@each_stop
@each_penalty
def test_prompts_with_limits_of_their_own_give_what_each_gives_alone(
    chain: Any, stop: int | None, penalty: float
) -> None:
    config = DecodingConfig(method="beam", beam_width=2, num_results=2, max_tokens=9, stop=stop, length_penalty=penalty)
    limits = [5, 1, 3]
    with torch.inference_mode():
        together = beam_search(chain, prompt_batch(PROMPTS), config, limits)
        alone = [beam_search(chain, prompt_batch([p]), config, [n])[0] for p, n in zip(PROMPTS, limits, strict=True)]
    assert together == alone
    longest = [max(len(h.tokens) for h in found) for found in together]
    assert longest == limits if stop is None else all(n <= limit for n, limit in zip(longest, limits, strict=True))


def penalised(model: Any, prompt: list[int], tokens: list[int], penalty: float) -> float:
    """log p, with that of each token which was added before multiplied by the penalty."""
    before = [log_prob(model, prompt, tokens[:place]) if place else 0.0 for place in range(len(tokens) + 1)]
    return sum(
        (before[place + 1] - before[place]) * (penalty if token in tokens[:place] else 1.0)
        for place, token in enumerate(tokens)
    )


@each_stop
@pytest.mark.parametrize("repetition_penalty", [0.5, 1.5, 2.0])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_penalty_on_repeats_decides_the_order_and_the_true_log_probability_is_told(
    chain: Any, stop: int | None, repetition_penalty: float, length_penalty: float
) -> None:
    """Three prompts side by side, with a beam as wide as all texts, against ranking every continuation."""
    settings: dict[str, Any] = {"stop": stop, "length_penalty": length_penalty, "num_results": 4}
    config = DecodingConfig(
        method="beam", beam_width=81, max_tokens=LENGTH, repetition_penalty=repetition_penalty, **settings
    )
    with torch.inference_mode():
        beams = beam_search(chain, prompt_batch(PROMPTS), config, [LENGTH] * 3)
    for prompt, found in zip(PROMPTS, beams, strict=True):
        everything = every_continuation(chain, prompt, stop, 0.0)
        totals = {tuple(h.tokens): penalised(chain, prompt, h.tokens, repetition_penalty) for h in everything}
        expected = sorted((total / len(tokens) ** length_penalty for tokens, total in totals.items()), reverse=True)
        assert [h.score(length_penalty) for h in found] == pytest.approx(expected[:4])
        for hypothesis in found:
            tokens = hypothesis.tokens
            assert hypothesis.ranked_by == pytest.approx(totals[tuple(tokens)])
            assert hypothesis.log_prob == pytest.approx(log_prob(chain, prompt, tokens))


def test_whoever_watches_sees_the_candidates_of_each_step_and_which_of_them_go_on(make_chain: MakeChain) -> None:
    """A beam of two over two prompts; 3 ends. The second prompt is done at once, and is not seen again."""
    rows = [[0.0, 0.5, 0.3, 0.2], [0.0, 0.6, 0.1, 0.3], [0.0, 0.25, 0.35, 0.4], [0.02, 0.01, 0.01, 0.96]]
    config = DecodingConfig(method="beam", beam_width=2, max_tokens=2, stop=3)
    seen: list[Candidates] = []
    with torch.inference_mode():
        beams = beam_search(make_chain(rows), prompt_batch([[0], [3]]), config, [2, 2], seen.append)
    assert [[h.tokens for h in found] for found in beams] == [[[1, 1]], [[3]]]
    first, second = seen
    assert first.parents.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1]]
    assert first.tokens.tolist() == [[1, 2, 3, 0], [3, 0, 1, 2]]
    assert first.totals[0, :3].tolist() == pytest.approx([math.log(p) for p in (0.5, 0.3, 0.2)])
    assert first.ends.tolist() == [[False] * 4, [True, False, False, False]]  # 0.2 is behind the two that go on
    assert first.goes_on.tolist() == [[True, True, False, False], [False, True, True, False]]
    assert second.parents.tolist() == [[0, 0, 1, 1]]
    assert second.tokens.tolist() == [[1, 3, 3, 2]]
    expected = [math.log(p) for p in (0.5 * 0.6, 0.5 * 0.3, 0.3 * 0.4, 0.3 * 0.35)]
    assert second.totals[0].tolist() == pytest.approx(expected)
    assert second.ends.tolist() == [[False, True, True, False]]
    assert second.goes_on.tolist() == [[True, False, False, True]]


@each_stop
@pytest.mark.parametrize("method", ["beam", "exhaustive"])
def test_prompts_side_by_side_give_what_each_gives_alone(model: Any, method: Any, stop: int | None) -> None:
    config = DecodingConfig(method=method, beam_width=3, num_results=3, max_tokens=5, stop=stop, length_penalty=0.7)
    for prompt, found in zip(PROMPTS, generate(model, PROMPTS, config), strict=True):
        same(found, generate(model, [prompt], config)[0])


def test_a_longer_hypothesis_that_finishes_later_wins_under_length_normalisation(make_chain: MakeChain) -> None:
    """Stopping at once has log 0.4 = -0.92 per token; 0 0 0 stop has (log 0.6 + 2 log 0.95 + ...) / 4."""
    chain = make_chain([[0.01, 0.59, 0.4], [0.02, 0.95, 0.03], [0.3, 0.3, 0.4]])  # 0: start, 1: goes on, 2: stop
    config = DecodingConfig(method="beam", beam_width=2, max_tokens=7, length_penalty=1.0, stop=2)
    (found,) = generate(chain, [[0]], config)[0]
    (expected,) = generate(chain, [[0]], DecodingConfig(method="exhaustive", max_tokens=7, length_penalty=1.0, stop=2))[
        0
    ]
    assert found == expected
    assert len(found.tokens) == 7
    (by_probability,) = generate(chain, [[0]], DecodingConfig(method="beam", beam_width=2, max_tokens=2, stop=2))[0]
    assert by_probability.tokens == [1, 1]


def test_a_finished_hypothesis_far_behind_the_first_is_still_found(make_chain: MakeChain) -> None:
    """The n best are filled early with bad ones; a good one that ends at the last step must still push them out."""
    rows = [[0.0, 0.6, 0.2, 0.2], [0.0, 0.0, 0.98, 0.02], [0.0, 0.0, 0.9, 0.1], [0.25, 0.25, 0.25, 0.25]]
    chain = make_chain(rows)
    for penalty in (0.0, 0.3, 1.0, 2.0):
        settings = {"max_tokens": 6, "num_results": 2, "length_penalty": penalty, "stop": 3}
        with torch.inference_mode():
            config = DecodingConfig(method="beam", beam_width=64, **settings)
            beam = beam_search(chain, prompt_batch([[0]]), config, [6])[0]
        same(beam, generate(chain, [[0]], DecodingConfig(method="exhaustive", **settings))[0])


def test_search_stops_as_soon_as_nothing_can_beat_what_it_has(make_chain: MakeChain) -> None:
    chain = make_chain([[0.05, 0.05, 0.9], [0.3, 0.3, 0.4], [0.3, 0.3, 0.4]])
    (found,) = generate(chain, [[0]], DecodingConfig(method="beam", beam_width=2, max_tokens=100, stop=2))[0]
    assert found.tokens == [2]
    assert found.log_prob == pytest.approx(math.log(0.9))
    assert chain.num_steps == 0


def test_one_prompt_that_is_done_leaves_the_others_running(make_chain: MakeChain) -> None:
    chain = make_chain([[0.05, 0.05, 0.9], [0.1, 0.85, 0.05], [0.3, 0.3, 0.4]])
    config = DecodingConfig(method="beam", beam_width=2, max_tokens=6, stop=2)
    together = generate(chain, [[0], [1], [0]], config)
    assert [h.tokens for (h,) in together] == [[2], [1] * 6, [2]]
    same(together[1], generate(chain, [[1]], config)[0])


def test_search_that_runs_out_of_continuations_returns_what_it_has(make_chain: MakeChain) -> None:
    chain = make_chain([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])  # nothing but the stop token
    found = generate(chain, [[0]], DecodingConfig(method="beam", beam_width=3, num_results=3, max_tokens=5, stop=2))[0]
    assert [h.tokens for h in found] == [[2]]


@pytest.mark.parametrize("stop", [None, 3])
def test_what_is_impossible_is_no_result_even_where_more_are_asked_for(make_chain: MakeChain, stop: int | None) -> None:
    chain = make_chain([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25] * 4])  # one way only
    config = DecodingConfig(method="beam", beam_width=3, num_results=3, max_tokens=4, stop=stop)
    assert generate(chain, [[0]], config)[0] == [Hypothesis([1, 2, 0, 1], 0.0, False)]


def test_a_gpt_is_searched_beyond_its_context(gpt: Any) -> None:
    config = DecodingConfig(method="beam", beam_width=3, num_results=2, max_tokens=20)
    prompts = [[0], [0, 1, 2, 1, 1, 0, 2], [2, 1] * 10]
    for prompt, found in zip(prompts, generate(gpt, prompts, config), strict=True):
        assert all(len(h.tokens) == 20 for h in found)
        same(found, generate(gpt, [prompt], config)[0])


def test_exhaustive_search_over_too_many_texts_is_refused_before_it_begins(chain: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"exhaustive search over 3 tokens and 13 steps would score about 10\^6.2 texts"
    ):
        generate(chain, [[0]], DecodingConfig(method="exhaustive", max_tokens=13))
    with pytest.raises(ConfigError, match="use --method beam"):
        generate(chain, [[0]], DecodingConfig(method="exhaustive", max_tokens=100_000))
    assert chain.num_steps == 0


def test_a_beam_wider_than_the_vocabulary_is_refused(chain: Any) -> None:
    with pytest.raises(ConfigError, match="beam_width=4 is wider than the vocabulary of 3 tokens"):
        generate(chain, [[0]], DecodingConfig(method="beam", beam_width=4))
