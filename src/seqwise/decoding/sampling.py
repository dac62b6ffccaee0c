"""Greedy and sampled continuation. Shapes: R prompts times samples, V vocabulary, T tokens so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..data.batch import Batch
from ..models.contract import Continues, select_rows
from .candidates import adjusted
from .settings import DecodingConfig, Hypothesis


def sample(model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int]) -> list[list[Hypothesis]]:
    """`num_results` continuations of each prompt. Sample number i of a prompt is the same in any batch."""
    n = config.num_results
    chosen: list[list[int]] = [[] for _ in range(len(prompt) * n)]
    totals = [0.0] * len(chosen)
    for rows, tokens, log_probs in choose_steps(model, prompt, config, limits):
        for row, token, log_prob in zip(rows, tokens.tolist(), log_probs.tolist(), strict=True):
            if len(chosen[row]) < limits[row // n] and (not chosen[row] or chosen[row][-1] != config.stop):
                chosen[row].append(token)
                totals[row] += log_prob
    found = [
        Hypothesis(tokens, total, config.stop is not None and tokens[-1] == config.stop)
        for tokens, total in zip(chosen, totals, strict=True)
    ]
    return [found[i : i + n] for i in range(0, len(found), n)]


def choose_steps(
    model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int]
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Yields, step by step, the rows that are running, the token chosen for each, (R,), and its log-probability.

    A prompt leaves when all its samples are done.
    """
    n = config.num_results
    log_probs, state = model.start(prompt)
    prompts = torch.arange(len(prompt))  # those still running
    limit_of = torch.tensor(limits)
    if n > 1:
        index = prompts.to(log_probs.device).repeat_interleave(n)
        log_probs, state = log_probs[index], select_rows(state, index)
    uniform = (
        torch.stack([_uniform(config, i) for i in range(n)], dim=1) if config.method == "sample" else None
    )  # (T, n)
    tokens = torch.empty(len(log_probs), 0, dtype=torch.long, device=log_probs.device)
    is_over = torch.zeros(len(log_probs), dtype=torch.bool)
    for step in range(max(limits)):
        allowed = adjusted(log_probs, tokens, config)
        if uniform is None:
            chosen = allowed.argmax(dim=1)
        else:
            chosen = draw(allowed, uniform[step].repeat(len(prompts)), config)
        rows = (prompts.unsqueeze(1) * n + torch.arange(n)).view(-1).tolist()
        yield rows, chosen.cpu(), log_probs.gather(1, chosen.unsqueeze(1)).squeeze(1).cpu().double()
        tokens = torch.cat([tokens, chosen.unsqueeze(1)], dim=1)
        is_over |= limit_of[prompts].repeat_interleave(n) <= step + 1
        if config.stop is not None:
            is_over |= chosen.cpu() == config.stop
        stays = (~is_over.view(-1, n).all(dim=1)).nonzero().squeeze(1)  # prompts
        if not len(stays):
            return
        if len(stays) < len(prompts):
            kept = (stays.unsqueeze(1) * n + torch.arange(n)).view(-1)
            prompts, is_over = prompts[stays], is_over[kept]
            index = kept.to(tokens.device)
            tokens, chosen, state = tokens[index], chosen[index], select_rows(state, index, stays.to(tokens.device))
        log_probs, state = model.step(chosen, state)


def draw(log_probs: Tensor, uniform: Tensor, config: DecodingConfig) -> Tensor:
    """One token per row: where a uniform number falls in the running sum of probabilities. (R, V), (R,) -> (R,)"""
    logits = log_probs.double()
    logits = (logits - logits.amax(dim=1, keepdim=True)) / config.temperature  # the highest is 0 however small that is
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
