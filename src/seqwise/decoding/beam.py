"""Beam search: keep the best few hypotheses at each step.

All prompts run side by side, `beam_width` rows each. Hypotheses that end leave the beam and compete by

    score = log p(tokens) / length ** length_penalty                                       (1)

A prompt is done when no running hypothesis can still beat the worst of its n best: since log-probabilities only fall,
the best that one with log-probability l can reach is l / max_tokens ** length_penalty      (2)

Shapes: N prompts, W beam width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.batch import prompt_batch
from ..models.contract import Continues, device_of, select_rows
from .settings import DecodingConfig, Hypothesis


def beam_search(model: Continues, prompts: Sequence[Sequence[int]], config: DecodingConfig) -> list[list[Hypothesis]]:
    num_prompts, width, V = len(prompts), config.beam_width, model.vocab_size
    device = device_of(model)
    log_probs, state = model.start(prompt_batch(prompts, device=device))
    state = select_rows(state, torch.arange(num_prompts, device=device).repeat_interleave(width))
    log_probs = log_probs.double().repeat_interleave(width, dim=0)  # (N*W, V)
    # one hypothesis to begin with: the other rows of each prompt are held back, or all would be alike
    totals = torch.full((num_prompts, width), float("-inf"), dtype=torch.float64, device=device)
    totals[:, 0] = 0.0
    tokens = torch.empty(num_prompts * width, 0, dtype=torch.long, device=device)  # what each row has added so far
    finished: list[list[Hypothesis]] = [[] for _ in prompts]
    is_done = [False] * num_prompts

    for length in range(1, config.max_tokens + 1):
        reached = (totals.view(-1, 1) + log_probs).view(num_prompts, width * V)
        # a stop token ends at most one continuation of each row, so 2W candidates hold W that go on
        best, place = reached.topk(min(2 * width, width * V), dim=1)  # (N, 2W)
        rows, chosen = place // V, place % V  # row within the prompt, token
        keep_rows, keep_tokens, keep_totals = _settle(
            best, rows, chosen, tokens.view(num_prompts, width, -1), finished, is_done, config, length
        )
        if all(is_done):
            break
        from_rows = (keep_rows + torch.arange(num_prompts, device=device).unsqueeze(1) * width).view(-1)  # (N*W,)
        totals, last = keep_totals, keep_tokens.view(-1)
        tokens = torch.cat([tokens[from_rows], last.unsqueeze(1)], dim=1)
        if length < config.max_tokens:
            log_probs, state = model.step(last, select_rows(state, from_rows))
            log_probs = log_probs.double()

    for n in range(num_prompts):
        if not is_done[n]:  # ran into max_tokens: what is still running competes as it is
            for row in range(width):
                if totals[n, row] > float("-inf"):
                    found = tokens[n * width + row].tolist()
                    finished[n].append(Hypothesis(found, float(totals[n, row]), is_finished=False))
    return [_best(hypotheses, config) for hypotheses in finished]


def _settle(
    best: Tensor,
    rows: Tensor,
    chosen: Tensor,
    tokens: Tensor,
    finished: list[list[Hypothesis]],
    is_done: list[bool],
    config: DecodingConfig,
    length: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sort candidates (N, 2W) into those that end, which go to `finished`, and the W best that go on."""
    num_prompts, width = tokens.shape[:2]
    keep_rows = torch.zeros(num_prompts, width, dtype=torch.long, device=best.device)
    keep_tokens = torch.zeros_like(keep_rows)
    keep_totals = torch.full((num_prompts, width), float("-inf"), dtype=torch.float64, device=best.device)
    for n in range(num_prompts):
        if is_done[n]:
            continue
        kept = 0
        for total, row, token in zip(best[n].tolist(), rows[n].tolist(), chosen[n].tolist(), strict=True):
            if total == float("-inf") or kept == width:
                break
            if token == config.stop:
                finished[n].append(Hypothesis([*tokens[n, row].tolist(), token], total, is_finished=True))
            else:
                keep_rows[n, kept], keep_tokens[n, kept], keep_totals[n, kept] = row, token, total
                kept += 1
        finished[n] = _best(finished[n], config)
        if kept == 0:
            is_done[n] = True
        elif len(finished[n]) == config.num_results:
            reachable = float(keep_totals[n, 0]) / max(config.max_tokens, length) ** config.length_penalty  # (2)
            is_done[n] = finished[n][-1].score(config.length_penalty) >= reachable
    return keep_rows, keep_tokens, keep_totals


def _best(hypotheses: list[Hypothesis], config: DecodingConfig) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda h: -h.score(config.length_penalty))[: config.num_results]
