"""Greedy and sampled continuation. Shapes: R prompts times samples, V vocabulary, T tokens so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..models.contract import Continues, select_rows
from ..models.engine import Choice, Writing, compiled_step
from .candidates import adjusted
from .settings import DecodingConfig, Hypothesis


def sample(model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int]) -> list[list[Hypothesis]]:
    """`num_results` continuations of each prompt. Sample number i of a prompt is the same in any batch."""
    n = config.num_results
    chosen: list[list[int]] = [[] for _ in range(len(prompt) * n)]
    totals = [0.0] * len(chosen)
    for rows, tokens, log_probs in choose_steps(model, prompt, config, limits):
        for row, more, their_log_probs in zip(rows, tokens.tolist(), log_probs.tolist(), strict=True):
            for token, log_prob in zip(more, their_log_probs, strict=True):
                if len(chosen[row]) == limits[row // n] or (chosen[row] and chosen[row][-1] == config.stop):
                    break
                chosen[row].append(token)
                totals[row] += log_prob
    found = [
        Hypothesis(tokens, total, config.stop is not None and tokens[-1] == config.stop)
        for tokens, total in zip(chosen, totals, strict=True)
    ]
    return [found[i : i + n] for i in range(0, len(found), n)]


def choose_steps(
    model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int]
) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Yields, bit by bit, the rows that are running, the tokens chosen for each, (R, t), and their log-probabilities.

    A prompt leaves when all its samples are done. t is one, or as many as a compiled loop chose (models/engine.py).
    """
    n = config.num_results
    log_probs, state = model.start(prompt)
    prompts = np.arange(len(prompt))  # those still running
    uniform = np.stack([_uniform(config, i) for i in range(n)], axis=1) if config.method == "sample" else None  # (T, n)
    if n > 1:
        index = torch.from_numpy(prompts.repeat(n)).to(log_probs.device)
        log_probs, state = log_probs[index], select_rows(state, index)
    tokens = np.empty((len(log_probs), 0), dtype=np.int64)
    limit_of = np.repeat(np.array(limits, dtype=np.int64), n)
    writing = None
    while True:
        writing = writing or _writing(model, len(tokens), config, uniform)
        found = None if writing is None else writing.go_on(log_probs, state, tokens, limit_of)
        chosen, chosen_log_probs, following = found or (*_choose(log_probs, tokens, config, uniform), None)
        yield (prompts[:, None] * n + np.arange(n)).reshape(-1).tolist(), chosen, chosen_log_probs
        tokens = np.concatenate([tokens, chosen], axis=1)
        is_over = limit_of <= tokens.shape[1]
        if config.stop is not None:
            is_over |= (tokens == config.stop).any(axis=1)
        stays = np.flatnonzero(~is_over.reshape(-1, n).all(axis=1))  # prompts
        if not len(stays):
            return
        if len(stays) < len(prompts):
            kept = (stays[:, None] * n + np.arange(n)).reshape(-1)
            prompts, tokens, limit_of = prompts[stays], tokens[kept], limit_of[kept]
            index, sources = (torch.from_numpy(rows).to(log_probs.device) for rows in (kept, stays))
            state = select_rows(state, index, sources)
        if following is None:
            log_probs, state = model.step(torch.from_numpy(tokens[:, -1]).to(log_probs.device), state)
        else:
            log_probs = following


def _writing(model: Continues, num_rows: int, config: DecodingConfig, uniform: np.ndarray | None) -> Writing | None:
    """The compiled loop, where the model has a compiled step."""
    step = compiled_step(model, num_rows) if isinstance(model, nn.Module) else None
    if step is None:
        return None
    choice = Choice(
        stop=-1 if config.stop is None else config.stop,
        never=-1 if config.never is None else config.never,
        min_tokens=config.min_tokens,
        top_k=config.top_k or -1,
        temperature=config.temperature,
        top_p=1.0 if config.top_p is None else config.top_p,
        penalty=config.repetition_penalty,
    )
    return step.write(choice, uniform, config.num_results)


def _choose(
    log_probs: Tensor, tokens: np.ndarray, config: DecodingConfig, uniform: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """One more token for each row, after `tokens` (R, T), and its log p: (R, 1) each."""
    allowed = adjusted(log_probs, torch.from_numpy(tokens).to(log_probs.device), config)
    if uniform is None:
        chosen = allowed.argmax(dim=1)
    else:
        chances = torch.from_numpy(np.resize(uniform[tokens.shape[1]], len(tokens)))
        chosen = draw(allowed, chances.to(allowed.device), config)
    found = log_probs.gather(1, chosen.unsqueeze(1))
    return chosen.unsqueeze(1).cpu().numpy(), found.cpu().double().numpy()


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


def _uniform(config: DecodingConfig, number: int) -> np.ndarray:
    """The chance behind sample `number` of a prompt: it depends on nothing else in the batch."""
    generator = torch.Generator().manual_seed((config.seed * 1_000_003 + number) % (1 << 63))
    return torch.rand(config.max_tokens, generator=generator, dtype=torch.float64).numpy()
