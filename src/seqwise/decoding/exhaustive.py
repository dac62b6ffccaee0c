"""Exhaustive search: every continuation is scored. For tiny cases, and as the proof of the other searches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ..data.batch import Batch
from ..errors import ConfigError
from ..models.contract import Continues, select_rows
from .candidates import adjusted, best_of
from .settings import DecodingConfig, Hypothesis

MAX_HYPOTHESES = 1_000_000


def exhaustive_search(
    model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int]
) -> list[list[Hypothesis]]:
    """The `num_results` best of all continuations that end in `stop` or have as many tokens as they may."""
    power = power_of_ten(model.vocab_size, max(limits))
    if power > math.log10(MAX_HYPOTHESES):
        raise ConfigError(
            f"exhaustive search over {model.vocab_size} tokens and {max(limits)} steps would score "
            f"about 10^{power:.1f} texts (the limit is {MAX_HYPOTHESES:,}). "
            "Lower --max-tokens, or use --method beam."
        )
    return [_search(model, prompt.rows(slice(n, n + 1)), config, limit) for n, limit in enumerate(limits)]


def power_of_ten(vocab_size: int, longest: int) -> float:
    """Of the number of texts that would be scored."""
    return longest * math.log10(vocab_size)


def is_tiny(vocab_size: int, longest: int) -> bool:
    """Whether every text can be scored."""
    return power_of_ten(vocab_size, longest) <= math.log10(MAX_HYPOTHESES)


def _search(model: Continues, prompt: Batch, config: DecodingConfig, limit: int) -> list[Hypothesis]:
    V, found = model.vocab_size, []
    log_probs, state = model.start(prompt)
    running = torch.empty(1, 0, dtype=torch.long, device=log_probs.device)  # (R, T)
    totals = ranked = torch.zeros(1, dtype=torch.float64, device=log_probs.device)
    for length in range(1, limit + 1):
        allowed = adjusted(log_probs, running, config)
        ranked = (ranked.unsqueeze(1) + allowed.double()).view(-1)  # every row with every token
        totals = (totals.unsqueeze(1) + log_probs.double()).view(-1)
        running = torch.cat(
            [
                running.repeat_interleave(V, dim=0),
                torch.arange(V, device=running.device).repeat(len(running)).view(-1, 1),
            ],
            dim=1,
        )
        ends = running[:, -1] == (-1 if config.stop is None else config.stop)
        is_complete = (ends | (length == limit)) & (ranked > float("-inf"))
        is_penalised = config.repetition_penalty != 1.0
        for tokens, total, rank, is_end in zip(
            running[is_complete].tolist(),
            totals[is_complete].tolist(),
            ranked[is_complete].tolist(),
            ends[is_complete].tolist(),
            strict=True,
        ):
            found.append(Hypothesis(tokens, total, is_end, rank if is_penalised else None))
        index = (~ends).nonzero().squeeze(1)
        if length == limit or not len(index):
            break
        running, totals, ranked = running[index], totals[index], ranked[index]
        log_probs, state = model.step(running[:, -1], select_rows(state, index // V))
    return best_of(found, config)
