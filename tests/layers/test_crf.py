"""The linear-chain CRF against sums over every path of tiny chains; what is ruled out; padding; gradients."""

from __future__ import annotations

import copy
import math
from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from seqwise.data.tag_schemes import legal_transitions, to_scheme
from seqwise.kernels.linear_chain import expect
from seqwise.layers.crf import (
    LinearChainCRF,
    best_paths,
    expectations,
    plain_best_paths,
    plain_expectations,
)

N, W = 3, 4
LENGTHS = [4, 1, 3, 0, 2]
seeds = pytest.mark.parametrize("seed", range(6))


def random_crf(
    seed: int, *, num_tags: int = N, share: float = 0.7, dtype: torch.dtype = torch.float64
) -> LinearChainCRF:
    """With random scores; of all that could be, about such a share may be."""
    torch.manual_seed(seed)
    rules = {name: torch.rand(shape) < share for name, shape in shapes_of_rules(num_tags).items()}
    crf = LinearChainCRF(num_tags, **rules).to(dtype)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=2.0)
    return crf


def shapes_of_rules(num_tags: int) -> dict[str, tuple[int, ...]]:
    return {"can_follow": (num_tags, num_tags), "can_begin": (num_tags,), "can_end": (num_tags,)}


def batch(lengths: list[int] = LENGTHS, num_tags: int = N, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Logits (B, W, N), and which places hold a word (B, W)."""
    emissions = 2 * torch.randn(len(lengths), max(lengths), num_tags, dtype=dtype)
    return emissions, torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def score_of(crf: LinearChainCRF, emissions: Tensor, path: tuple[int, ...]) -> float:
    """(1) of one row, word by word; -inf where a rule forbids it."""
    if not path:
        return 0.0
    begin, follow, end = (parameter.tolist() for parameter in (crf.begin, crf.follow, crf.end))
    is_legal = crf.can_begin[path[0]] and crf.can_end[path[-1]] and all(crf.can_follow[a, b] for a, b in pairwise(path))
    total = begin[path[0]] + end[path[-1]] + sum(float(emissions[t, tag]) for t, tag in enumerate(path))
    return total + sum(follow[a][b] for a, b in pairwise(path)) if is_legal else -math.inf


def enumerated(crf: LinearChainCRF, emissions: Tensor, length: int) -> dict[tuple[int, ...], float]:
    """log p of every path of one row."""
    scores = {path: score_of(crf, emissions, path) for path in product(range(emissions.shape[-1]), repeat=length)}
    log_partition = float(torch.tensor(list(scores.values()), dtype=torch.float64).logsumexp(dim=0))
    return {path: score - log_partition if score > -math.inf else -math.inf for path, score in scores.items()}


@seeds
def test_every_path_has_the_probability_that_enumeration_gives_it(seed: int) -> None:
    crf = random_crf(seed)
    emissions, is_word = batch()
    for row, length in enumerate(LENGTHS):
        paths = enumerated(crf, emissions[row], length)
        ids = torch.zeros(len(paths), W, dtype=torch.long)
        for place, path in enumerate(paths):
            ids[place, :length] = torch.tensor(path)
        found = crf.log_prob(emissions[row].expand(len(paths), W, N), ids, is_word[row].expand(len(paths), W))
        assert found.tolist() == pytest.approx(list(paths.values()), abs=1e-9)
        if length and max(paths.values()) > -math.inf:
            assert sum(found.exp().tolist()) == pytest.approx(1.0)


@seeds
def test_the_best_path_is_the_best_of_all(seed: int) -> None:
    crf = random_crf(seed)
    emissions, is_word = batch()
    ids, log_prob = crf.best_path(emissions, is_word)
    for row, length in enumerate(LENGTHS):
        paths = enumerated(crf, emissions[row], length)
        best = max(paths, key=paths.__getitem__)
        assert float(log_prob[row]) == pytest.approx(paths[best], abs=1e-9)
        if paths[best] > -math.inf:
            assert tuple(ids[row, :length].tolist()) == best
        assert not ids[row, length:].any()
    torch.testing.assert_close(crf.log_prob(emissions, ids, is_word), log_prob)


@seeds
def test_marginals_are_sums_over_paths(seed: int) -> None:
    crf = random_crf(seed)
    emissions, is_word = batch()
    found, expected = crf.log_marginals(emissions, is_word).exp(), torch.zeros(len(LENGTHS), W, N, dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        for path, log_prob in enumerated(crf, emissions[row], length).items():
            for t, tag in enumerate(path):
                expected[row, t, tag] += math.exp(log_prob)
        expected[row, length:] = 1.0  # log 1, which stands behind the end
    torch.testing.assert_close(found, expected)


@seeds
@pytest.mark.parametrize("infer", [expectations, plain_expectations])
def test_expected_transitions_are_sums_over_paths(seed: int, infer: type[expectations]) -> None:
    crf = random_crf(seed)
    emissions, is_word = batch()
    scores, is_there, follow = (tensor.detach() for tensor in crf._chain(emissions, is_word))
    expected = torch.zeros(len(LENGTHS), N, N, dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        for path, log_prob in enumerated(crf, emissions[row], length).items():
            for before, after in pairwise(path):
                expected[row, before, after] += math.exp(log_prob)
    torch.testing.assert_close(infer(scores, is_there.sum(dim=1), follow).pairs, expected)


def chain(crf: LinearChainCRF, emissions: Tensor, is_word: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    scores, is_there, follow = crf._chain(emissions, is_word)
    return scores.detach(), is_there.sum(dim=1), follow.detach()


@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
def test_compiled_loops_agree_with_the_plain_recursion(scale: float) -> None:
    crf = random_crf(1, num_tags=7, share=0.9)
    emissions, is_word = batch([40, 13, 1, 27, 0, 40], 7)
    given = chain(crf, emissions * scale, is_word)
    for found, expected in zip(expectations(*given), plain_expectations(*given), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
    for found, expected in zip(best_paths(*given), plain_best_paths(*given), strict=True):
        torch.testing.assert_close(found, expected)


def test_numbers_too_far_apart_are_left_to_the_plain_recursion() -> None:
    """The rules force the row through a tag that is e**-2000 beside another one, which leads nowhere."""
    crf = LinearChainCRF(2, can_follow=torch.tensor([[True, False], [True, True]]), can_end=torch.tensor([False, True]))
    emissions = torch.zeros(1, 3, 2, dtype=torch.float64)
    emissions[0, :2, 0] = 2000.0
    scores, lengths, follow = chain(crf, emissions, None)
    assert not is_exact(scores, lengths, follow)
    log_prob = crf.log_prob(emissions, torch.ones(1, 3, dtype=torch.long))
    assert log_prob.tolist() == [0.0]  # the only path that there is
    assert crf.log_marginals(emissions)[0, :, 1].tolist() == [0.0, 0.0, 0.0]


def is_exact(scores: Tensor, lengths: Tensor, follow: Tensor) -> bool:
    return expect(scores.double().numpy(), lengths.numpy(), follow.double().numpy())[0]


def test_what_falls_far_behind_and_wins_all_the_same_is_not_forgotten() -> None:
    """Tag 1 is e**-800 at first, and e**600 ahead at each of the two words after it."""
    scores = torch.tensor([[[0.0, -800.0], [-600.0, 0.0], [-600.0, 0.0]]])
    follow = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    given = scores.double(), torch.tensor([3]), follow.double()
    assert not is_exact(*given)
    assert expectations(*given).log_partition.tolist() == [-800.0]
    assert expectations(*given).marginals[0, :, 1].tolist() == [1.0, 1.0, 1.0]
    flat, steep = torch.zeros(1, 2, 2), torch.tensor([[0.0, -5000.0], [0.0, 0.0]])
    assert is_exact(flat, torch.tensor([2]), follow)
    assert not is_exact(flat, torch.tensor([2]), steep)


def test_a_tag_that_cannot_be_reached_has_no_say_however_much_the_words_ask_for_it() -> None:
    follow, scores = torch.zeros(3, 3).double(), torch.zeros(1, 40, 3).double()
    follow[:2, 2], scores[0, 0, 2], scores[0, 1:, 2] = -math.inf, -math.inf, 50.0  # e**2000 for those who could
    given = scores, torch.tensor([40]), follow
    assert is_exact(*given)
    assert expectations(*given).log_partition.tolist() == pytest.approx([40 * math.log(2)])
    assert expectations(*given).marginals.flatten().tolist() == pytest.approx([0.5, 0.5, 0.0] * 40)


def test_rows_of_one_word_need_no_transition() -> None:
    given = torch.zeros(2, 1, 2).double(), torch.tensor([1, 1]), torch.full((2, 2), -math.inf).double()
    assert is_exact(*given)
    assert expectations(*given).log_partition.tolist() == pytest.approx([math.log(2)] * 2)


@seeds
def test_gradients_are_those_of_finite_differences(seed: int) -> None:
    crf = random_crf(seed, share=0.85)
    emissions, is_word = batch([4, 2, 3])
    ids, log_prob = crf.best_path(emissions, is_word)  # legal, where anything is
    weight = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64)  # of each row its own
    kept = weight.masked_fill(log_prob == -math.inf, 0.0)

    def weighted(emissions: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(("follow", "begin", "end"), parameters, strict=True))
        found = torch.func.functional_call(crf, named, (emissions, ids, is_word))
        return (kept * found.masked_fill(kept == 0, 0.0)).sum()

    crf.forward = crf.log_prob  # type: ignore[method-assign]
    inputs = (emissions, crf.follow, crf.begin, crf.end)
    assert torch.autograd.gradcheck(weighted, tuple(one.detach().clone().requires_grad_() for one in inputs))


def test_padding_changes_nothing_whatever_it_holds() -> None:
    crf = random_crf(3, num_tags=5, share=0.9)
    for parameter in crf.parameters():
        parameter.grad = None
    emissions, is_word = batch([6, 3, 5, 1], 5)
    ids = crf.best_path(emissions, is_word)[0]
    dirty, strange = emissions.masked_fill(~is_word.unsqueeze(2), math.nan), ids.masked_fill(~is_word, -100)
    dirty.requires_grad_()
    together = crf.log_prob(dirty, strange, is_word)
    together.sum().backward()
    assert torch.isfinite(together).all()
    assert dirty.grad is not None
    assert not dirty.grad[~is_word].any()
    gradients = [parameter.grad.clone() for parameter in crf.parameters() if parameter.grad is not None]
    paths, marginals = crf.best_path(dirty, is_word), crf.log_marginals(dirty, is_word)
    crf.zero_grad()
    for row, length in enumerate([6, 3, 5, 1]):
        alone = emissions[row : row + 1, :length].clone().requires_grad_()
        log_prob = crf.log_prob(alone, ids[row : row + 1, :length])
        log_prob.sum().backward()
        torch.testing.assert_close(log_prob[0], together[row])
        torch.testing.assert_close(alone.grad, dirty.grad[row : row + 1, :length])
        assert crf.best_path(alone)[0].tolist() == [paths[0][row, :length].tolist()]
        torch.testing.assert_close(crf.log_marginals(alone)[0], marginals[row, :length])
    for parameter, gradient in zip(crf.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES"])
def test_what_a_scheme_forbids_never_wins_and_has_no_probability(scheme: str) -> None:
    """Logits that ask for nothing but broken tags."""
    letters = "BI" if scheme.startswith("IOB") else "BIES"
    names = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("x", "y"))]
    can_follow, can_begin, can_end = legal_transitions(names, scheme)
    crf = LinearChainCRF(len(names), can_follow=can_follow, can_begin=can_begin, can_end=can_end)
    torch.manual_seed(0)
    emissions, is_word = batch([9, 5, 1] * 20, len(names), torch.float32)
    emissions = (10 * emissions).requires_grad_()
    paths, log_prob = crf.best_path(emissions, is_word)
    for row, length in enumerate(is_word.sum(dim=1).tolist()):
        tags = [names[tag] for tag in paths[row, :length].tolist()]
        assert to_scheme(tags, scheme) == tags
    by_itself = emissions.argmax(dim=2)
    is_broken = torch.tensor(
        [
            (tags := [names[tag] for tag in by_itself[row, :length].tolist()]) != to_scheme(tags, scheme)
            for row, length in enumerate(is_word.sum(dim=1).tolist())
        ]
    )
    assert is_broken.sum() > 10
    found = crf.log_prob(emissions, by_itself, is_word)
    assert (found[is_broken] == -math.inf).all()
    assert torch.isfinite(found[~is_broken]).all()
    assert crf.log_marginals(emissions, is_word)[:, 0].exp()[:, ~torch.from_numpy(can_begin)].sum() == 0
    crf.log_prob(emissions, paths, is_word).sum().backward()
    assert emissions.grad is not None
    assert torch.isfinite(emissions.grad).all()
    for parameter, rule in ((crf.follow, crf.can_follow), (crf.begin, crf.can_begin), (crf.end, crf.can_end)):
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()
        assert not parameter.grad[~rule].any()


def test_gradients_stay_finite_where_the_truth_is_ruled_out_or_nothing_is_possible() -> None:
    crf = LinearChainCRF(2, can_follow=torch.tensor([[False, True], [False, False]]))
    emissions = torch.randn(3, 3, 2, requires_grad=True)
    is_word = torch.tensor([[True, True, False], [True, True, False], [True, True, True]])
    ids = torch.tensor([[0, 1, 0], [1, 0, 0], [0, 1, 1]])
    found = crf.log_prob(emissions, ids, is_word)
    assert found.tolist() == [0.0, -math.inf, -math.inf]  # the only path, one that is ruled out, three words: none
    found[:1].sum().backward(retain_graph=True)
    found[1:].sum().backward()
    assert emissions.grad is not None
    assert torch.isfinite(emissions.grad).all()
    assert not emissions.grad[2].any()
    paths, log_prob = crf.best_path(emissions, is_word)
    assert (paths[0].tolist(), log_prob.tolist()) == ([0, 1, 0], [0.0, 0.0, -math.inf])
    assert (crf.log_marginals(emissions, is_word)[2] == -math.inf).all()


def test_without_scores_of_its_own_it_is_a_softmax_for_each_word() -> None:
    crf, (emissions, is_word) = LinearChainCRF(4), batch([5, 2, 5], 4, torch.float32)
    ids = torch.randint(4, is_word.shape)
    log_probs = emissions.log_softmax(dim=2)
    expected = log_probs.gather(2, ids.unsqueeze(2)).squeeze(2).masked_fill(~is_word, 0.0).sum(dim=1)
    torch.testing.assert_close(crf.log_prob(emissions, ids, is_word), expected)
    torch.testing.assert_close(crf.log_marginals(emissions)[is_word], log_probs[is_word])
    assert (crf.best_path(emissions)[0] == emissions.argmax(dim=2)).all()


def test_floats_of_32_bits_are_summed_in_64() -> None:
    """Logits far from zero: what all tags have in common must not cost digits."""
    single = random_crf(5, num_tags=6, share=1.0, dtype=torch.float32)
    exact = copy.deepcopy(single).double()
    emissions, is_word = batch([500, 80], 6, torch.float32)
    emissions = emissions + 100.0
    ids = torch.randint(6, is_word.shape)
    found = single.log_prob(emissions, ids, is_word)
    assert found.dtype == torch.float32
    expected = exact.log_prob(emissions.double(), ids, is_word)
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-5)
    assert single.log_marginals(emissions).dtype == torch.float32


def test_a_long_row_neither_overflows_nor_vanishes() -> None:
    crf = random_crf(2, num_tags=4, share=1.0)
    emissions = 20 * torch.randn(1, 5000, 4, dtype=torch.float64)
    marginals = crf.log_marginals(emissions).exp().sum(dim=2)
    torch.testing.assert_close(marginals, torch.ones_like(marginals))
    ids, log_prob = crf.best_path(emissions)
    assert -math.inf < float(log_prob) < 0


def test_it_learns_which_tag_follows_which() -> None:
    """The words say nothing: every row goes 0 1 2 0 1 2."""
    crf, ids = LinearChainCRF(3), (torch.arange(12) % 3).expand(4, 12)
    emissions, optimizer = torch.zeros(4, 12, 3), torch.optim.Adam(crf.parameters(), lr=0.3)
    for _ in range(40):
        optimizer.zero_grad()
        (-crf.log_prob(emissions, ids).sum()).backward()
        optimizer.step()
    assert crf.best_path(emissions)[0].tolist() == ids.tolist()
    assert float(crf.log_prob(emissions, ids)[0].detach().exp()) > 0.9


def test_what_is_saved_are_its_scores_alone() -> None:
    assert set(LinearChainCRF(3, can_begin=torch.tensor([True, False, True])).state_dict()) == {
        "follow",
        "begin",
        "end",
    }


def test_rules_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"can_follow has the shape \(2, 2\), and should have \(3, 3\)"):
        LinearChainCRF(3, can_follow=torch.ones(2, 2))
