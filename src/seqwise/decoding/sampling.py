"""Greedy and sampled continuation. Shapes: B prompts times samples, V vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..data.batch import prompt_batch
from ..models.contract import Continues, device_of
from .settings import DecodingConfig, Hypothesis


def sample(model: Continues, prompts: Sequence[Sequence[int]], config: DecodingConfig) -> list[list[Hypothesis]]:
    """`num_results` continuations of each prompt. Sample number i of a prompt is the same in any batch."""
    rows = [prompt for prompt in prompts for _ in range(config.num_results)]
    chosen, chosen_log_probs = [], []
    is_running = torch.ones(len(rows), dtype=torch.bool)
    for tokens, log_probs in choose_steps(model, rows, config):
        chosen.append(tokens)
        chosen_log_probs.append(log_probs)
        if config.stop is not None:
            is_running &= tokens != config.stop
            if not is_running.any():
                break
    all_tokens, all_log_probs = torch.stack(chosen, dim=1), torch.stack(chosen_log_probs, dim=1)  # (B, T)
    found = [
        _cut(tokens, log_probs, config.stop)
        for tokens, log_probs in zip(all_tokens.tolist(), all_log_probs, strict=True)
    ]
    return [found[i : i + config.num_results] for i in range(0, len(found), config.num_results)]


def choose_steps(
    model: Continues, rows: Sequence[Sequence[int]], config: DecodingConfig
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the tokens chosen at each step (B,) and their log-probabilities (B,)."""
    log_probs, state = model.start(prompt_batch(rows, device=device_of(model)))
    uniform = None
    if config.method == "sample":
        uniform = torch.stack([_uniform(config, i % config.num_results) for i in range(len(rows))], dim=1)  # (T, B)
    for step in range(config.max_tokens):
        if uniform is None:
            tokens = log_probs.argmax(dim=1)
        else:
            tokens = draw(log_probs, uniform[step], config)
        yield tokens.cpu(), log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1).cpu()
        if step + 1 < config.max_tokens:
            log_probs, state = model.step(tokens, state)


def draw(log_probs: Tensor, uniform: Tensor, config: DecodingConfig) -> Tensor:
    """One token per row: where a uniform number falls in the running sum of probabilities. (B, V), (B,) -> (B,)"""
    logits = log_probs.double() / config.temperature
    if config.top_k is not None and config.top_k < logits.shape[1]:
        kept = logits.topk(config.top_k, dim=1)  # exactly k, also where tokens tie
        logits = torch.full_like(logits, float("-inf")).scatter(1, kept.indices, kept.values)
    probs = logits.softmax(dim=1)
    if config.top_p is not None and config.top_p < 1:
        ordered, order = probs.sort(dim=1, descending=True)
        before = ordered.cumsum(dim=1) - ordered  # what more probable tokens have together
        probs = probs.masked_fill((before >= config.top_p).gather(1, order.argsort(dim=1)), 0.0)
    reached = probs.cumsum(dim=1)
    threshold = uniform.to(reached).unsqueeze(1) * reached[:, -1:]
    return torch.searchsorted(reached, threshold, right=True).squeeze(1).clamp(max=probs.shape[1] - 1)


def _uniform(config: DecodingConfig, number: int) -> Tensor:
    """The chance behind sample `number` of a prompt: it depends on nothing else in the batch."""
    generator = torch.Generator().manual_seed((config.seed * 1_000_003 + number) % (1 << 63))
    return torch.rand(config.max_tokens, generator=generator, dtype=torch.float64)


def _cut(tokens: list[int], log_probs: Tensor, stop: int | None) -> Hypothesis:
    is_finished = stop is not None and stop in tokens
    length = tokens.index(stop) + 1 if stop is not None and is_finished else len(tokens)
    return Hypothesis(tokens[:length], float(log_probs[:length].double().sum()), is_finished)
