"""Exhaustive search: every continuation is scored. For tiny cases, and as the proof of the other searches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ..data.batch import prompt_batch
from ..errors import ConfigError
from ..models.contract import Continues, device_of, select_rows
from .settings import DecodingConfig, Hypothesis

MOST_HYPOTHESES = 1_000_000


def exhaustive_search(
    model: Continues, prompts: Sequence[Sequence[int]], config: DecodingConfig
) -> list[list[Hypothesis]]:
    """The `num_results` best of all continuations that end in `stop` or have `max_tokens` tokens."""
    power = config.max_tokens * math.log10(model.vocab_size)  # of ten
    if power > math.log10(MOST_HYPOTHESES):
        raise ConfigError(
            f"exhaustive search over {model.vocab_size} tokens and {config.max_tokens} steps would score "
            f"about 10^{power:.1f} texts (the limit is {MOST_HYPOTHESES:,}). "
            "Lower --max-tokens, or use --method beam."
        )
    return [_search(model, prompt, config) for prompt in prompts]


def _search(model: Continues, prompt: Sequence[int], config: DecodingConfig) -> list[Hypothesis]:
    V, found = model.vocab_size, []
    log_probs, state = model.start(prompt_batch([prompt], device=device_of(model)))
    running: list[list[int]] = [[]]
    totals = torch.zeros(1, dtype=torch.float64, device=log_probs.device)
    for length in range(1, config.max_tokens + 1):
        totals = (totals.unsqueeze(1) + log_probs.double()).view(-1)  # every row with every token
        running = [[*tokens, token] for tokens in running for token in range(V)]
        goes_on = []
        for i, (tokens, total) in enumerate(zip(running, totals.tolist(), strict=True)):
            ends = tokens[-1] == config.stop
            if ends or length == config.max_tokens:
                found.append(Hypothesis(tokens, total, is_finished=ends))
            else:
                goes_on.append(i)
        if not goes_on:
            break
        index = torch.tensor(goes_on, device=totals.device)
        running, totals = [running[i] for i in goes_on], totals[index]
        last = torch.tensor([tokens[-1] for tokens in running], device=totals.device)
        log_probs, state = model.step(last, select_rows(state, index // V))
    return sorted(found, key=lambda h: -h.score(config.length_penalty))[: config.num_results]
