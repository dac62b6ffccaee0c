"""Greedy and sampled continuations against distributions that are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from seqwise.data.batch import next_token_batch, prompt_batch
from seqwise.decoding import DecodingConfig, generate, stream
from seqwise.decoding.sampling import draw
from seqwise.errors import ConfigError

MakeChain = Callable[[list[list[float]]], Any]
PROMPTS = [[0], [0, 1, 2, 1, 1], [0, 2, 2]]
EXACT = [0.5, 0.25, 0.125, 0.0625, 0.0625]  # powers of two: their sums have no rounding


def tokens_of(model: Any, prompts: list[list[int]], **settings: Any) -> list[list[list[int]]]:
    return [[h.tokens for h in found] for found in generate(model, prompts, DecodingConfig(**settings))]


def shares_drawn(probs: list[float], **settings: Any) -> Tensor:
    """How often each token is drawn when chance runs evenly from 0 to 1: its probability, to one in 4096."""
    number = 4096
    log_probs = torch.tensor([probs], dtype=torch.float64).log().expand(number, -1)
    uniform = (torch.arange(number, dtype=torch.float64) + 0.5) / number
    drawn = draw(log_probs, uniform, DecodingConfig(**settings))
    return torch.bincount(drawn, minlength=len(probs)).double() / number


def normalised(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64) / sum(values)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=5e-4, rtol=0)


@torch.no_grad()
def test_greedy_takes_the_most_probable_token_at_every_step(model: Any) -> None:
    log_probs, state = model.start(prompt_batch([[0, 2]]))
    expected = []
    for _ in range(6):
        token = log_probs.argmax(dim=1)
        expected.append(int(token))
        log_probs, state = model.step(token, state)
    assert tokens_of(model, [[0, 2]], method="greedy", max_tokens=6) == [[expected]]


def test_samples_follow_the_distribution_of_the_model(chain: Any) -> None:
    number = 6000
    found = tokens_of(chain, [[1, 2]], num_results=number, max_tokens=2)[0]
    first = chain.log_table[1, 2].exp()
    second = chain.log_table[2].exp()  # after [2, first]
    expected = {(a, b): float(first[a] * second[a, b]) * number for a in range(3) for b in range(3)}
    observed = Counter(tuple(tokens) for tokens in found)
    chi_square = sum((observed[pair] - e) ** 2 / e for pair, e in expected.items())
    assert chi_square < 26.1  # 8 degrees of freedom: one in a thousand


def test_chance_is_spread_over_tokens_by_their_probability() -> None:
    close(shares_drawn(EXACT), torch.tensor(EXACT, dtype=torch.float64))


@pytest.mark.parametrize("temperature", [0.25, 0.8, 2.0])
def test_temperature_raises_probabilities_to_its_inverse(temperature: float) -> None:
    probs = [0.1, 0.5, 0.15, 0.25]
    close(shares_drawn(probs, temperature=temperature), normalised([p ** (1 / temperature) for p in probs]))


def test_a_temperature_near_zero_is_greedy_and_does_not_overflow(model: Any) -> None:
    greedy = tokens_of(model, PROMPTS, method="greedy", max_tokens=5)
    for temperature in (1e-6, 1e-300, 5e-324):
        assert tokens_of(model, PROMPTS, temperature=temperature, max_tokens=5) == greedy


@pytest.mark.parametrize("k", [1, 2, 4, 5, 9])
def test_top_k_keeps_the_k_most_probable_tokens(k: int) -> None:
    probs = [0.1, 0.4, 0.05, 0.3, 0.15]
    kept = sorted(probs, reverse=True)[:k]
    close(shares_drawn(probs, top_k=k), normalised([p if p in kept else 0.0 for p in probs]))


def test_top_k_of_one_is_greedy(model: Any) -> None:
    greedy = tokens_of(model, PROMPTS, method="greedy", max_tokens=5)
    assert tokens_of(model, PROMPTS, top_k=1, max_tokens=5) == greedy


@pytest.mark.parametrize(("k", "certain", "possible"), [(1, {1}, {1}), (2, {1}, {0, 1, 2}), (3, {0, 1, 2}, {0, 1, 2})])
def test_top_k_keeps_no_more_than_k_where_tokens_tie(k: int, certain: set[int], possible: set[int]) -> None:
    shares = shares_drawn([0.2, 0.4, 0.2, 0.1, 0.1], top_k=k)
    kept = {token for token, share in enumerate(shares.tolist()) if share > 0}
    assert certain <= kept <= possible
    assert len(kept) == k


def test_top_k_of_one_is_greedy_where_all_tokens_tie() -> None:
    log_probs = torch.full((9, 4), 0.25).log()
    drawn = draw(log_probs, torch.linspace(0, 0.99, 9, dtype=torch.float64), DecodingConfig(top_k=1))
    assert len(set(drawn.tolist())) == 1


@pytest.mark.parametrize(
    ("p", "kept"),
    [(1e-9, 1), (0.499, 1), (0.5, 1), (0.501, 2), (0.75, 2), (0.7501, 3), (0.875, 3), (0.93, 4), (0.9376, 5), (1.0, 5)],
)
def test_top_p_keeps_the_fewest_tokens_that_reach_p(p: float, kept: int) -> None:
    close(shares_drawn(EXACT, top_p=p), normalised([*EXACT[:kept], *[0.0] * (5 - kept)]))


def test_top_p_keeps_the_fewest_tokens_in_any_order_of_the_vocabulary() -> None:
    probs = [0.0625, 0.5, 0.125, 0.0625, 0.25]
    close(shares_drawn(probs, top_p=0.8), normalised([0, 0.5, 0.125, 0, 0.25]))


@pytest.mark.parametrize(("p", "kept"), [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 4)])
def test_top_p_with_ties_keeps_no_more_tokens_than_it_needs(p: float, kept: int) -> None:
    shares = shares_drawn([0.25] * 4, top_p=p)
    assert int((shares > 0).sum()) == kept
    close(shares[shares > 0], torch.full((kept,), 1 / kept, dtype=torch.float64))


def test_top_p_cuts_what_temperature_and_top_k_have_left() -> None:
    # temperature 0.5 squares: 16 4 1 1 (of 22 after top_k = 4); p = 0.8 needs 16 + 4
    probs = [4 / 9, 2 / 9, 1 / 9, 1 / 9, 1 / 9]
    shares = shares_drawn(probs, temperature=0.5, top_k=2, top_p=0.85)
    close(shares, normalised([16, 4, 0, 0, 0]))
    assert torch.equal(shares_drawn(probs, temperature=0.5, top_k=2, top_p=0.79) > 0, torch.arange(5) < 1)


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    log_probs = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).log().expand(3, -1)
    uniform = torch.tensor([0.0, 0.5, 1 - 2**-53], dtype=torch.float64)
    assert draw(log_probs, uniform, DecodingConfig()).tolist() == [1, 3, 3]


def test_the_same_seed_gives_the_same_text_and_another_seed_another(model: Any) -> None:
    first, again, other = (tokens_of(model, PROMPTS, max_tokens=20, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_samples_of_one_prompt_differ_from_each_other(model: Any) -> None:
    found = tokens_of(model, [[0]], num_results=5, max_tokens=20)[0]
    assert len({tuple(tokens) for tokens in found}) == 5


def test_a_sample_is_the_same_alone_and_in_any_batch(model: Any) -> None:
    together = generate(model, PROMPTS, DecodingConfig(num_results=3, max_tokens=20))
    for prompt, expected in zip(PROMPTS, together, strict=True):
        alone = generate(model, [prompt], DecodingConfig(num_results=3, max_tokens=20))[0]
        assert [h.tokens for h in alone] == [h.tokens for h in expected]
        assert [h.log_prob for h in alone] == pytest.approx([h.log_prob for h in expected], abs=1e-3)
        first = generate(model, [prompt], DecodingConfig(num_results=1, max_tokens=20))[0]
        assert first[0].tokens == expected[0].tokens  # however many samples are asked for


@pytest.mark.parametrize("shorter", [1, 5, 15, 16, 17, 33])
def test_a_longer_sample_begins_with_the_shorter_one(chain: Any, shorter: int) -> None:
    long, short = (tokens_of(chain, PROMPTS, num_results=2, max_tokens=n) for n in (40, shorter))
    assert [[tokens[:shorter] for tokens in found] for found in long] == short


def test_the_log_probability_is_that_of_the_model_without_temperature_or_cut(model: Any) -> None:
    config = DecodingConfig(max_tokens=3, temperature=0.7, top_k=2, num_results=3)
    for prompt, found in zip(PROMPTS, generate(model, PROMPTS, config), strict=True):
        for hypothesis in found:
            with torch.no_grad():
                log_probs, _ = model.score(next_token_batch(torch.tensor([[*prompt, *hypothesis.tokens]])))
            assert hypothesis.log_prob == pytest.approx(float(log_probs[0, -3:].double().sum()), abs=1e-4)


@pytest.mark.parametrize("method", ["sample", "greedy"])
def test_a_stop_token_ends_a_sample_and_stays_at_its_end(make_chain: MakeChain, method: str) -> None:
    chain = make_chain([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])  # 0 -> 1 -> 2 -> 0
    prompts = [[0], [1], [2]]
    found = generate(chain, prompts, DecodingConfig(method=method, max_tokens=30, stop=2))  # type: ignore[arg-type]
    for prompt, (hypothesis,) in zip(prompts, found, strict=True):
        assert hypothesis.is_finished
        assert hypothesis.tokens.index(2) == len(hypothesis.tokens) - 1
        log_probs, _ = chain.score(next_token_batch(torch.tensor([[*prompt, *hypothesis.tokens]])))
        assert hypothesis.log_prob == pytest.approx(float(log_probs[0, len(prompt) - 1 :].sum()))


def test_a_sample_that_meets_no_stop_token_is_not_finished(make_chain: MakeChain) -> None:
    chain = make_chain([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    (hypothesis,) = generate(chain, [[0]], DecodingConfig(max_tokens=9, stop=2))[0]
    assert len(hypothesis.tokens) == 9
    assert not hypothesis.is_finished


def test_no_more_steps_are_made_than_tokens_need(make_chain: MakeChain) -> None:
    chain = make_chain([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    generate(chain, [[0]], DecodingConfig(method="greedy", max_tokens=50, stop=2))
    assert chain.num_steps == 1  # 1 from the start, 2 after one step


@pytest.mark.parametrize("method", ["sample", "greedy"])
@pytest.mark.parametrize("stop", [None, 2])
def test_a_stream_yields_the_tokens_that_generate_returns(model: Any, method: Any, stop: int | None) -> None:
    config = DecodingConfig(method=method, max_tokens=12, stop=stop, seed=3)
    assert list(stream(model, [0, 1], config)) == generate(model, [[0, 1]], config)[0][0].tokens


def test_a_stream_yields_each_token_before_the_next_step_is_made(chain: Any) -> None:
    tokens = stream(chain, [0], DecodingConfig(max_tokens=10))
    next(tokens)
    assert chain.num_steps == 0


@torch.no_grad()
def test_a_gpt_goes_on_beyond_its_context_alone_and_in_a_ragged_batch(gpt: Any) -> None:
    prompts = [[0], [0, 1, 2, 1, 1, 0, 2], [0, 2, 2, 1], [0, 1] * 4, [1, 2, 0] * 7]  # the last two fill the context
    for settings in ({"method": "greedy"}, {"seed": 1}):
        together = tokens_of(gpt, prompts, max_tokens=30, **settings)
        for prompt, expected in zip(prompts, together, strict=True):
            assert len(expected[0]) == 30 > gpt.context
            assert tokens_of(gpt, [prompt], max_tokens=30, **settings) == [expected]


@torch.no_grad()
def test_a_gpt_beyond_its_context_predicts_from_the_last_tokens_it_kept(gpt: Any) -> None:
    """Each greedy token is the most probable one after some recent segment of 6 to 8 tokens (3/4 of 8 are kept)."""
    found = tokens_of(gpt, [[0]], method="greedy", max_tokens=40)[0][0]
    text = [0, *found]
    kept = 1
    for place in range(1, len(text)):
        log_probs, _ = gpt.start(prompt_batch([text[max(0, place - kept) : place]])) if kept < 8 else (None, None)
        if log_probs is None:  # a full cache: what `score` sees at the last of eight places
            row = torch.tensor([text[place - kept : place + 1]])
            by_token = [
                gpt.score(next_token_batch(torch.cat([row[:, :-1], torch.tensor([[v]])], dim=1)))[0][0, -1]
                for v in range(3)
            ]
            assert int(torch.stack(by_token).argmax()) == text[place]
        else:
            assert int(log_probs.argmax()) == text[place]
        kept = 7 if kept == 8 else kept + 1  # six are read anew, and the next one


def test_a_prompt_longer_than_the_context_is_continued_from_its_end(gpt: Any) -> None:
    end = [2, 1, 0, 1, 2, 2]  # three quarters of the context
    expected = tokens_of(gpt, [end], method="greedy", max_tokens=4)
    assert tokens_of(gpt, [[1] * 50 + end], method="greedy", max_tokens=4) == expected


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"temperature": 0.0}, "temperature = 0.0 should be above 0; for no chance at all: --method greedy."),
        ({"temperature": -1.0}, "temperature = -1.0 should be above 0"),
        ({"temperature": float("nan")}, "temperature = nan should be above 0"),
        ({"temperature": float("inf")}, "temperature = inf should be a finite number"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty = inf should be a finite number"),
        ({"repetition_penalty": float("nan")}, "repetition_penalty = nan should be above 0"),
        ({"length_penalty": float("nan")}, "length_penalty = nan should be at most 10."),
        ({"length_penalty": float("inf")}, "length_penalty = inf should be at most 10."),
        ({"length_penalty": 11.0}, "length_penalty = 11.0 should be at most 10."),
        ({"top_p": float("nan")}, "top_p = nan should lie in"),
        ({"top_p": float("inf")}, "top_p = inf should lie in"),
        ({"top_k": 0}, "top_k = 0 should be at least 1."),
        ({"top_p": 0.0}, "top_p = 0.0 should lie in (0, 1]."),
        ({"top_p": 1.5}, "top_p = 1.5 should lie in (0, 1]."),
        ({"max_tokens": 0}, "max_tokens = 0 should be at least 1."),
        ({"num_results": 0}, "num_results = 0 should be at least 1."),
        ({"beam_width": 0}, "beam_width = 0 should be at least 1."),
        ({"length_penalty": -0.5}, "length_penalty = -0.5 should not be negative."),
        ({"method": "beam", "beam_width": 2, "num_results": 3}, "3 results need a beam_width of as many; it is 2."),
        ({"method": "greedy", "num_results": 2}, "greedy search has one result"),
    ],
)
def test_settings_that_make_no_sense_are_told_in_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        DecodingConfig(**settings)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("seed", [-1, 0, 2**31, 2**62])
def test_any_seed_gives_a_text_or_a_sentence(chain: Any, seed: int) -> None:
    try:
        found = tokens_of(chain, [[0]], seed=seed, max_tokens=3)
    except ConfigError:
        return
    assert len(found[0][0]) == 3


def test_an_empty_prompt_is_told_in_a_sentence(chain: Any) -> None:
    for prompts in ([], [[0], []]):
        with pytest.raises(ConfigError, match="a prompt needs at least one token; begin it with the boundary token"):
            generate(chain, prompts, DecodingConfig())


def test_a_model_that_does_not_continue_is_told_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="object does not continue text: it has no start and step"):
        generate(object(), [[0]], DecodingConfig())  # type: ignore[arg-type]


def test_a_search_cannot_be_streamed(chain: Any) -> None:
    with pytest.raises(ConfigError, match="beam search knows its answer only at the end"):
        next(stream(chain, [0], DecodingConfig(method="beam", beam_width=2)))
