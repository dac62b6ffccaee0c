"""Compiled loops over hidden states, where a whole model would not show it; the rest is in models/test_hmm.py."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from seqwise.kernels.hidden_chain import best_path


@pytest.mark.parametrize("seed", range(12))
def test_of_equally_good_paths_the_lowest_from_the_end_is_found(seed: int) -> None:
    """Whole numbers as logs: sums are exact, and many paths tie."""
    random, Z, T = np.random.default_rng(seed), 3, 5
    log_initial, log_table = -random.integers(2, size=Z).astype(float), -random.integers(2, size=(T, Z)).astype(float)
    log_transition = -random.integers(2, size=(Z, Z)).astype(float)

    def log_joint(path: tuple[int, ...]) -> float:
        moves = sum(log_transition[i, j] for i, j in pairwise(path))
        return float(log_initial[path[0]] + moves + sum(log_table[t, state] for t, state in enumerate(path)))

    paths = list(product(range(Z), repeat=T))
    top = max(map(log_joint, paths))
    ties = [path for path in paths if log_joint(path) == top]
    assert len(ties) > 1
    path, found = best_path(np.arange(T), log_table, log_initial, np.ascontiguousarray(log_transition.T))
    assert found == top
    assert tuple(path) == min(ties, key=lambda path: path[::-1])
