"""Beam search: keep the best few hypotheses at each step.

All prompts run side by side, `beam_width` rows each; a prompt that is done leaves the batch. Hypotheses that end
compete by

    score = log p(tokens) / norm(length)          norm: length ** a, or ((5 + length) / 6) ** a         (1)

A prompt is done when no running hypothesis can still beat the worst of its n best. Log-probabilities only fall, norms
only rise: the best that one with log-probability l can reach is l / norm(longest)                      (2)
(to divide by the norm of the present length instead, as is often done, stops too early).

Shapes: N prompts, W beam width, R = N * W rows, V vocabulary, T tokens so far, C candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..data.batch import Batch
from ..models.contract import Continues, select_rows
from .choices import adjusted, best_of, top_tokens
from .settings import DecodingConfig, Hypothesis, length_norm


@dataclass(frozen=True)
class Candidates:
    """One step of the search, for whoever watches: the best continuations of each prompt, best first, (N, C) each."""

    parents: Tensor
    """Which of the hypotheses that went on before, counted over all prompts."""
    tokens: Tensor
    totals: Tensor
    """Log-probability, with penalties, of all tokens so far."""
    ends: Tensor
    """bool: complete with this token."""
    goes_on: Tensor
    """bool: one of the beam. What neither ends nor goes on is dropped."""


Watch = Callable[[Candidates], None]


def beam_search(
    model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int], watch: Watch | None = None
) -> list[list[Hypothesis]]:
    """The `num_results` best of each prompt; `limits` are the tokens to add to each at most."""
    log_probs, state = model.start(prompt)  # (N, V): one hypothesis each to begin with
    beams = _Beams(len(prompt), config, limits, log_probs.device, watch)
    while True:
        rows, sources = beams.advance(log_probs)
        if not len(sources):
            return [best_of(found, config) for found in beams.finished]
        state = select_rows(state, rows, None if len(sources) == beams.num_before else sources)
        log_probs, state = model.step(beams.tokens[:, -1], state)


class _Beams:
    """The hypotheses of the prompts that are not done yet."""

    def __init__(
        self,
        num_prompts: int,
        config: DecodingConfig,
        limits: Sequence[int],
        device: torch.device,
        watch: Watch | None = None,
    ):
        self.config, self.watch = config, watch
        self.finished: list[list[Hypothesis]] = [[] for _ in range(num_prompts)]
        self.prompts = torch.arange(num_prompts)  # which of them is still running, (N,)
        self.num_before = num_prompts
        self.limits = torch.tensor(limits)
        norms = [length_norm(limit, config.length_penalty, config.length_form) for limit in limits]
        self.norms = torch.tensor(norms, dtype=torch.float64)  # of the longest, for (2)
        self.worst = torch.full((num_prompts,), float("-inf"), dtype=torch.float64)  # of the n best, while there are n
        self.tokens = torch.empty(num_prompts, 0, dtype=torch.long, device=device)  # (R, T)
        self.totals = torch.zeros(num_prompts, 1, dtype=torch.float64, device=device)  # (N, W): what search adds up
        self.log_totals = self.totals  # the same without penalties

    def advance(self, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Add a token to each hypothesis: log_probs (R, V) -> the rows (R',) that go on, and which prompts (N',)."""
        N, width = self.totals.shape
        W, config = self.config.beam_width, self.config
        allowed = adjusted(log_probs, self.tokens, config)
        k = min(2 * W, log_probs.shape[1])
        values, tokens = top_tokens(allowed, k)  # (R, k)
        reached = (self.totals.view(-1, 1) + values.double()).view(N, width * k)
        # a stop token ends at most one continuation of each row, so 2W candidates hold W that go on
        best, place = reached.topk(min(2 * W, width * k), dim=1)  # (N, C)
        rows = place // k + torch.arange(N, device=place.device).unsqueeze(1) * width  # (N, C), of R
        chosen = tokens.view(N, width * k).gather(1, place)
        is_possible = best > float("-inf")
        ends = is_possible & (chosen == config.stop) if config.stop is not None else torch.zeros_like(is_possible)
        goes_on = is_possible & ~ends
        ends &= goes_on.cumsum(dim=1) < W  # those behind the W best that go on are not of the beam
        log_totals = best
        if allowed is not log_probs:
            log_totals = self.log_totals.view(-1)[rows] + log_probs.double()[rows, chosen]
        self._finish(ends, rows, chosen, best, log_totals, ends=True)

        first = (~goes_on).to(torch.uint8).argsort(dim=1, stable=True)[:, :W]  # the W best that go on, in order
        is_kept = goes_on.gather(1, first)
        if self.watch is not None:
            going = torch.zeros_like(goes_on).scatter(1, first, is_kept)
            self.watch(Candidates(rows, chosen, best, ends, going))
        kept = best.gather(1, first).masked_fill(~is_kept, float("-inf"))  # (N, W)
        length = self.tokens.shape[1] + 1
        is_done = (self.worst >= kept[:, 0].cpu() / self.norms) | ~is_kept[:, 0].cpu()  # (2), or nothing left
        is_out = ~is_done & (length >= self.limits)  # what is still running competes as it is
        if bool(is_out.any()):
            running = torch.zeros_like(goes_on).scatter(1, first, is_kept) & is_out.to(kept.device).unsqueeze(1)
            self._finish(running, rows, chosen, best, log_totals, ends=False)
        sources = (~(is_done | is_out)).nonzero().squeeze(1)
        self._keep(sources, rows.gather(1, first), chosen.gather(1, first), kept, log_totals.gather(1, first))
        return self.rows, sources.to(log_probs.device)

    def _finish(
        self, which: Tensor, rows: Tensor, chosen: Tensor, best: Tensor, log_totals: Tensor, *, ends: bool
    ) -> None:
        """Candidates (N, C) that are complete go to their prompts."""
        if not bool(which.any()):
            return
        prompts = which.nonzero()[:, 0].tolist()
        tokens = torch.cat([self.tokens[rows[which]], chosen[which].unsqueeze(1)], dim=1).tolist()
        is_penalised = self.config.repetition_penalty != 1.0
        for n, added, total, log_prob in zip(
            prompts, tokens, best[which].tolist(), log_totals[which].tolist(), strict=True
        ):
            found = Hypothesis(added, log_prob, ends, total if is_penalised else None)
            mine = self.finished[int(self.prompts[n])]
            mine.append(found)
        for n in set(prompts):
            mine = self.finished[int(self.prompts[n])] = best_of(self.finished[int(self.prompts[n])], self.config)
            if len(mine) == self.config.num_results:
                self.worst[n] = mine[-1].score(self.config.length_penalty, self.config.length_form)

    def _keep(self, sources: Tensor, rows: Tensor, chosen: Tensor, totals: Tensor, log_totals: Tensor) -> None:
        """Go on with these prompts (N',) and their W hypotheses."""
        self.num_before = len(self.prompts)
        here = sources.to(rows.device)
        self.rows = rows[here].view(-1)  # (R',)
        self.tokens = torch.cat([self.tokens[self.rows], chosen[here].view(-1, 1)], dim=1)
        self.totals, self.log_totals = totals[here], log_totals[here]
        self.prompts, self.limits, self.norms = self.prompts[sources], self.limits[sources], self.norms[sources]
        self.worst = self.worst[sources]
