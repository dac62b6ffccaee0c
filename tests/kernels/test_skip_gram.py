"""Compiled loops of word2vec: against autograd, against brute force, and against a plain reading of the card."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
import torch

from seqwise.kernels.skip_gram import (
    LONGEST_LINE,
    MAX_LOGIT,
    TABLE_SIZE,
    alias_table,
    draw_words,
    huffman_paths,
    learn_targets,
    learn_text,
)

TABLE_ERROR = MAX_LOGIT / TABLE_SIZE / 4  # half a step of the table, where the logistic function is steepest
NO_PATHS = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
END = 0  # of a line


def step(
    hidden: np.ndarray, outputs: np.ndarray, rows: list[int], labels: list[float], rate: float
) -> tuple[float, np.ndarray]:
    """The loss, and by how much `hidden` should move; outputs move in place."""
    change, gains = np.empty_like(hidden), np.empty(len(rows), dtype=np.float32)
    targets = np.array(rows, dtype=np.int32), np.array(labels, dtype=np.float32), len(rows)
    return learn_targets(hidden, outputs, *targets, np.float32(rate), gains, change, True), change


@pytest.mark.parametrize("num", range(1, 9))
@pytest.mark.parametrize("embed_dim", [1, 16, 37])
def test_a_step_follows_the_gradient(num: int, embed_dim: int) -> None:
    random, rate = np.random.default_rng(num), 0.1
    hidden = random.standard_normal(embed_dim).astype(np.float32)
    outputs = random.standard_normal((12, embed_dim)).astype(np.float32)
    rows, labels = random.permutation(12)[:num].tolist(), (np.arange(num) % 3 == 0).astype(float).tolist()
    h, u = torch.from_numpy(hidden.copy()).requires_grad_(), torch.from_numpy(outputs.copy()).requires_grad_()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(u[rows] @ h, torch.tensor(labels), reduction="sum")
    loss.backward()
    found, change = step(hidden, outputs, rows, labels, rate)
    assert found == pytest.approx(loss.item(), rel=1e-5)
    assert u.grad is not None
    assert h.grad is not None
    slack = rate * TABLE_ERROR * max(np.abs(hidden).max(), num * np.abs(outputs).max()) * 1.1 + 1e-6
    np.testing.assert_allclose(outputs, (u - rate * u.grad).detach().numpy(), atol=slack)
    np.testing.assert_allclose(change, -rate * h.grad.numpy(), atol=slack)


def test_beyond_the_table_the_step_vanishes_on_the_right_side_and_stays_whole_on_the_wrong_one() -> None:
    hidden, outputs = np.full(4, 10, dtype=np.float32), np.full((1, 4), 10, dtype=np.float32)
    assert np.abs(step(hidden, outputs.copy(), [0], [1.0], 1.0)[1]).max() < 0.01
    np.testing.assert_allclose(step(hidden, outputs.copy(), [0], [0.0], 1.0)[1], -10, rtol=1e-3)


@pytest.mark.parametrize(
    "logit", [-8.0, 8.0, np.nextafter(np.float32(8), np.float32(0)), 1e30, np.inf, -np.inf, np.nan]
)
def test_no_number_reads_outside_of_the_table(logit: float) -> None:
    hidden, outputs, change = (
        np.ones(1, dtype=np.float32),
        np.full((1, 1), logit, dtype=np.float32),
        np.zeros(1, np.float32),
    )
    rows, labels, gains = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
    learn_targets(hidden, outputs, rows, labels, 1, np.float32(1), gains, change, False)
    wanted = 1 / (1 + np.exp(-np.clip(np.nan_to_num(logit, nan=-8.0), -8, 8)))
    assert gains[0] == pytest.approx(-wanted, abs=TABLE_ERROR)


@pytest.mark.parametrize("rows", [[3, 3], [1, 3, 3], [3, 1, 3, 2], [3, 3, 3, 3]])
def test_a_row_that_is_drawn_twice_is_moved_twice(rows: list[int]) -> None:
    random = np.random.default_rng(0)
    hidden, outputs = random.standard_normal(33).astype(np.float32), np.zeros((4, 33), dtype=np.float32)
    step(hidden, outputs, rows, [0.0] * len(rows), 0.1)
    np.testing.assert_allclose(outputs[3], -0.05 * rows.count(3) * hidden, rtol=2e-3)


@pytest.mark.parametrize("weights", [[1.0], [1, 1], [5, 1, 0, 3], [0, 0, 7], [0.1] * 9 + [100]])
def test_an_alias_table_stands_for_its_weights(weights: list[float]) -> None:
    table, share = alias_table(np.array(weights, dtype=np.float64)), np.zeros(len(weights))
    for place, (itself, other) in enumerate(table.astype(np.float64)):
        share[place] += (itself + 1) / 2**32
        share[int(other)] += 1 - (itself + 1) / 2**32
    np.testing.assert_allclose(share / len(weights), np.array(weights) / sum(weights), atol=1e-9)


def test_words_are_drawn_by_their_weights() -> None:
    weights = np.array([4.0, 0, 1, 2, 1])
    drawn = np.bincount(draw_words(alias_table(weights), 3, 80_000), minlength=5)
    assert drawn[1] == 0
    np.testing.assert_allclose(drawn / 80_000, weights / 8, atol=0.01)


def codes_of(counts: list[int]) -> list[list[tuple[int, int]]]:
    """The path of each word: inner nodes, and which way it turns at each."""
    first, nodes, turns = huffman_paths(np.array(counts))
    return [list(zip(nodes[a:b].tolist(), turns[a:b].tolist(), strict=True)) for a, b in pairwise(first)]


@pytest.mark.parametrize(
    "counts", [[3, 1], [1, 1, 1], [5, 1, 1], [8, 4, 2, 1], [7, 7, 6, 5], [9, 8, 3, 3, 1], [2, 2, 2, 2, 2]]
)
def test_no_code_is_shorter_than_a_huffman_code(counts: list[int]) -> None:
    """Of all lengths that a binary tree with so many leaves can have (Kraft's sum is one)."""
    V = len(counts)
    trees = [lengths for lengths in product(range(1, V), repeat=V) if math.isclose(sum(2.0**-n for n in lengths), 1.0)]
    shortest = min(sum(c * n for c, n in zip(counts, lengths, strict=True)) for lengths in trees)
    assert sum(c * len(path) for c, path in zip(counts, codes_of(counts), strict=True)) == shortest


def test_paths_are_those_of_one_tree() -> None:
    counts = sorted(np.random.default_rng(1).integers(1, 500, size=60).tolist(), reverse=True)
    paths, below = codes_of(counts), {}
    for word, path in enumerate(paths):
        assert path[0][0] == len(counts) - 2  # the root
        for (node, turn), (after, _) in pairwise([*path, (f"word {word}", 0)]):
            assert below.setdefault((node, turn), after) == after
    assert len(below) == 2 * (len(counts) - 1)  # both ways of every inner node are taken
    assert sum(2.0 ** -len(path) for path in paths) == 1.0


class Plain:
    """Equations (1) to (6) of the card, one number at a time, with the same random numbers as the compiled loop."""

    mask = (1 << 64) - 1

    def __init__(self, seed: int):
        self.random = seed

    def bits(self) -> int:
        self.random = (self.random + 0x9E3779B97F4A7C15) & self.mask
        mixed = self.random
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & self.mask
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & self.mask
        return mixed ^ mixed >> 31

    def word(self, table: np.ndarray) -> int:
        bits = self.bits()
        place = (bits >> 32) * len(table) >> 32
        return place if bits & 0xFFFFFFFF <= int(table[place, 0]) else int(table[place, 1])

    def learn(
        self,
        lines: list[list[int]],
        keep: np.ndarray,
        window: int,
        is_cbow: bool,
        targets: tuple[int, np.ndarray, list[list[tuple[int, int]]]],
        v: np.ndarray,
        u: np.ndarray,
        rates: tuple[float, float],
    ) -> None:
        negative, table, paths = targets
        num_tokens, read = sum(len(line) + 1 for line in lines), 0
        for line in lines:
            kept = [word for word in line if (self.bits() >> 11) * 2.0**-53 < keep[word]]
            read += len(line)
            rate = rates[0] + (rates[1] - rates[0]) * read / num_tokens
            read += 1
            for place, word in enumerate(kept):
                reach = 1 + ((self.bits() >> 32) * window >> 32)
                context = [*kept[max(0, place - reach) : place], *kept[place + 1 : place + 1 + reach]]
                if not context:
                    continue
                if negative:
                    drawn = [self.word(table) for _ in range(negative)]
                    wanted = [(word, 1.0), *((other, 0.0) for other in drawn if other != word)]
                else:
                    wanted = [(node, 1.0 - turn) for node, turn in paths[word]]
                for group in [context] if is_cbow else [[other] for other in context]:
                    h = v[group].mean(axis=0)
                    gains = [(row, rate * (label - 1 / (1 + math.exp(-float(u[row] @ h))))) for row, label in wanted]
                    change = sum(gain * u[row] for row, gain in gains)
                    for row, gain in gains:
                        u[row] += gain * h
                    for other in group:
                        v[other] += change


@pytest.mark.parametrize("is_cbow", [False, True])
@pytest.mark.parametrize("negative", [0, 1, 5])
def test_a_text_is_learned_as_the_card_says(is_cbow: bool, negative: int) -> None:
    random, V, E = np.random.default_rng(negative), 300, 8
    lines = [random.integers(1, 30, size=size).tolist() for size in (9, 1, 0, 14, 2, 30)]
    keep = np.where(np.arange(V) % 7 == 3, 0.0, random.uniform(0.4, 1.0, V))  # some words have no vector
    table, counts = alias_table(random.uniform(0.5, 2, V)), np.sort(random.integers(1, 90, V))[::-1].copy()
    paths = huffman_paths(counts) if not negative else NO_PATHS
    start = random.standard_normal((2, V, E)).astype(np.float32) * 0.5
    v, u, plain_v, plain_u = start[0].copy(), start[1].copy(), *start.astype(np.float64)
    text = np.array([token for line in lines for token in [*line, END]], dtype=np.int32)
    rates = 0.06, 0.03  # small: a row that is drawn twice is moved in between
    learn_text(text, END, keep, 3, is_cbow, negative, table, *paths, v, u, rates, np.uint64(7))
    targets = negative, table, codes_of(counts.tolist())
    Plain(7).learn(lines, keep, 3, is_cbow, targets, plain_v, plain_u, rates)
    moved = max(np.abs(plain_v - start[0]).max(), np.abs(plain_u - start[1]).max())
    assert moved > 0.1
    np.testing.assert_allclose(v, plain_v, atol=0.01 * moved)  # what the table leaves out
    np.testing.assert_allclose(u, plain_u, atol=0.01 * moved)


def learned(text: list[int], *, seed: int = 1, keep: float = 1.0, is_cbow: bool = False) -> tuple[np.ndarray, float]:
    random, V = np.random.default_rng(0), max(text) + 1
    v, u = random.standard_normal((V, 4)).astype(np.float32), np.zeros((V, 4), dtype=np.float32)
    table, ids = alias_table(np.ones(V)), np.array(text, dtype=np.int32)
    chances = np.full(V, keep), 2, is_cbow, 2, table
    loss, num = learn_text(ids, END, *chances, *NO_PATHS, v, u, (0.1, 0.1), np.uint64(seed))
    return np.concatenate([v, u]), loss / max(1, num)


@pytest.mark.parametrize("is_cbow", [False, True])
def test_a_seed_is_one_result_to_the_bit(is_cbow: bool) -> None:
    text = [*np.random.default_rng(0).integers(1, 9, size=200).tolist(), END]
    first, second, other = (learned(text, seed=seed, keep=0.7, is_cbow=is_cbow)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("is_cbow", [False, True])
def test_words_of_different_lines_never_meet(is_cbow: bool) -> None:
    alone, _ = learned([1, END, 2, END, END, 3, END], is_cbow=is_cbow)
    together, _ = learned([1, 2, END, END, END, 3, END], is_cbow=is_cbow)
    nothing, _ = learned([3, END], is_cbow=is_cbow)
    assert np.array_equal(alone, nothing)
    assert not np.array_equal(together, nothing)


def test_the_end_of_the_text_ends_its_last_line() -> None:
    assert np.array_equal(learned([1, 2, 3, END])[0] != 0, learned([1, 2, 3])[0] != 0)
    assert not np.array_equal(learned([1, 2, 3])[0], learned([3])[0])


def test_a_line_without_end_is_cut() -> None:
    text = np.random.default_rng(0).integers(1, 5, size=2 * LONGEST_LINE + 10).tolist()
    vectors, loss = learned(text)
    assert np.isfinite(vectors).all()
    assert 1.0 < loss < 3 * math.log(2) + 0.2
