"""Candidates for the next token: log-probabilities as the settings adjust them, and the best of a large vocabulary.

Shapes: R hypotheses, V vocabulary, T tokens so far.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..kernels.compiled import ENTRIES
from ..models.engine import is_ready
from .settings import DecodingConfig, Hypothesis

BLOCK = 64  # tokens whose best is found at once
BEST = ENTRIES["best"]
LARGE_VOCAB = 1024  # from here on looking into few blocks is faster than sorting all


class Choosing(Protocol):
    """What is said of how the next token is chosen, by all of a search's settings or by those of one text."""

    @property
    def stop(self) -> int | None: ...
    @property
    def never(self) -> int | None: ...
    @property
    def min_tokens(self) -> int: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_k(self) -> int | None: ...
    @property
    def top_p(self) -> float | None: ...
    @property
    def repetition_penalty(self) -> float: ...


def adjusted(log_probs: Tensor, tokens: Tensor, config: Choosing) -> Tensor:
    """`log_probs` (R, V) after `tokens` (R, T): no early stop and no token that is never chosen, which is written in
    place, and in a copy what was added before less probable."""
    if config.never is not None:
        log_probs[:, config.never] = float("-inf")
    if config.stop is not None and tokens.shape[1] + 1 < config.min_tokens:
        log_probs[:, config.stop] = float("-inf")
    if config.repetition_penalty == 1.0 or not tokens.shape[1]:
        return log_probs
    return log_probs.scatter(1, tokens, log_probs.gather(1, tokens) * config.repetition_penalty)


def top_tokens(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row and their tokens, (R, k) each, highest first; of equals the lower token."""
    if log_probs.device.type == "cpu" and log_probs.dtype == torch.float32 and is_ready(BEST):
        return _compiled_top_tokens(log_probs.contiguous(), k)
    values, tokens = _some_top_tokens(log_probs, k)
    if bool(((log_probs >= values[:, -1:]).sum(dim=1) > k).any()):  # more are equal to the last than there is room for
        values, tokens = (found[:, :k] for found in log_probs.sort(dim=1, descending=True, stable=True))
        return values, tokens
    tokens, order = tokens.sort(dim=1)
    values, by_value = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, tokens.gather(1, by_value)


def _compiled_top_tokens(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    R, V = log_probs.shape
    values, tokens = log_probs.new_empty(R, k), torch.empty(R, k, dtype=torch.long)
    numbers = [R, V, k, log_probs.data_ptr(), values.data_ptr(), tokens.data_ptr()]
    frame = np.array(numbers, dtype=np.int64)
    BEST(0, 1, 0, 0, frame.ctypes.data)
    return values, tokens


def _some_top_tokens(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same, but of equals any. The k highest stand in the k blocks with the highest maxima, so the rest is not
    looked at."""
    R, V = log_probs.shape
    num_blocks = V // BLOCK
    if V < LARGE_VOCAB or num_blocks <= k:
        found = log_probs.topk(k, dim=1)
        return found.values, found.indices
    whole = log_probs[:, : num_blocks * BLOCK].unflatten(1, (num_blocks, BLOCK))  # (R, blocks, BLOCK)
    blocks = whole.amax(dim=2).topk(k, dim=1).indices  # (R, k)
    candidates = whole.gather(1, blocks.unsqueeze(2).expand(-1, -1, BLOCK)).flatten(1)  # (R, k * BLOCK)
    tokens = (blocks.unsqueeze(2) * BLOCK + torch.arange(BLOCK, device=blocks.device)).flatten(1)
    if rest := V - num_blocks * BLOCK:
        candidates = torch.cat([candidates, log_probs[:, -rest:]], dim=1)
        tokens = torch.cat([tokens, torch.arange(V - rest, V, device=tokens.device).expand(R, -1)], dim=1)
    found = candidates.topk(k, dim=1)
    return found.values, tokens.gather(1, found.indices)


def best_of(hypotheses: list[Hypothesis], config: DecodingConfig) -> list[Hypothesis]:
    """The `num_results` best, best first."""
    ranked = sorted(hypotheses, key=lambda h: -h.score(config.length_penalty, config.length_form))
    return ranked[: config.num_results]
