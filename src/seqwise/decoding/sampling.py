"""Greedy and sampled continuation. Shapes: R prompts times samples, V vocabulary, T tokens so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..kernels.writing import SAMPLE
from ..models.contract import Continues, select_rows
from ..models.engine import Writing, compiled_step
from ..models.texts import Choice, Texts
from .candidates import Choosing, adjusted
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
    if n > 1:
        index = torch.from_numpy(prompts.repeat(n)).to(log_probs.device)
        log_probs, state = log_probs[index], select_rows(state, index)
    choices = [choice_of(config)] * len(log_probs)
    texts = Texts.begin(choices, np.repeat(limits, n).tolist(), chances_of(config), samples=n)
    writing = None
    while True:
        writing = writing or loop_for(model, len(texts))
        found = None if writing is None else writing.go_on(log_probs, state, texts)
        chosen, chosen_log_probs, following = found or (*choose(log_probs, texts), None)
        yield (prompts[:, None] * n + np.arange(n)).reshape(-1).tolist(), chosen, chosen_log_probs
        texts.add(chosen)
        stays = np.flatnonzero(~texts.is_over.reshape(-1, n).all(axis=1))  # prompts
        if not len(stays):
            return
        last = texts.last
        if len(stays) < len(prompts):
            kept = (stays[:, None] * n + np.arange(n)).reshape(-1)
            prompts, texts, last = prompts[stays], texts.select(kept), last[kept]
            index, sources = (torch.from_numpy(rows).to(log_probs.device) for rows in (kept, stays))
            state = select_rows(state, index, sources)
        if following is None:
            log_probs, state = model.step(torch.from_numpy(last).to(log_probs.device), state)
        else:
            log_probs = following


def loop_for(model: Continues, num_rows: int) -> Writing | None:
    """The compiled loop, where the model has a compiled step."""
    step = compiled_step(model, num_rows) if isinstance(model, nn.Module) else None
    return None if step is None else step.write()


def choice_of(config: DecodingConfig) -> Choice:
    """The part of it that is about the next token."""
    same = {part.name: getattr(config, part.name) for part in fields(Choice) if part.name != "is_sampled"}
    return Choice(is_sampled=config.method == "sample", **same)


def chances_of(config: DecodingConfig) -> np.ndarray:
    """The chance behind each token of each sample of a prompt, (n, T): it depends on nothing else in the batch."""
    if config.method != "sample":
        return np.zeros((1, 0))
    return np.stack([_uniform(config, number) for number in range(config.num_results)])


def choose(log_probs: Tensor, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """One more token for each text and its log p, (R, 1) each. Those that choose alike are looked at together."""
    alike: dict[tuple[Choice, int], list[int]] = {}
    for row, key in enumerate(zip(texts.choices, texts.lengths.tolist(), strict=True)):
        alike.setdefault(key, []).append(row)
    chosen = torch.empty(len(texts), dtype=torch.long, device=log_probs.device)
    for (choice, length), rows in alike.items():
        some = slice(None) if len(alike) == 1 else rows  # all at once without a copy
        of_these = log_probs[some]
        allowed = adjusted(of_these, torch.from_numpy(texts.tokens[some, :length]).to(log_probs.device), choice)
        if choice.is_sampled:
            chances = torch.from_numpy(texts.chances[texts.settings[rows, SAMPLE], length])
            chosen[some] = draw(allowed, chances.to(allowed.device), choice)
        else:
            chosen[some] = allowed.argmax(dim=1)
    found = log_probs.gather(1, chosen.unsqueeze(1))
    return chosen.unsqueeze(1).cpu().numpy(), found.cpu().double().numpy()


def draw(log_probs: Tensor, uniform: Tensor, config: Choosing) -> Tensor:
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
    """The chances of sample `number` of a prompt."""
    generator = torch.Generator().manual_seed((config.seed * 1_000_003 + number) % (1 << 63))
    return torch.rand(config.max_tokens, generator=generator, dtype=torch.float64).numpy()
