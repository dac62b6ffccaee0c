"""Beam search: keep the best few hypotheses at each step.

All prompts run side by side, `beam_width` rows each; a prompt that is done leaves the batch. Hypotheses that end
compete by

    score = log p(tokens) / norm(length)          norm: length ** a, or ((5 + length) / 6) ** a         (1)

A prompt is done when no running hypothesis can still beat the worst of its n best. Log-probabilities only fall, norms
only rise: the best that one with log-probability l can reach is l / norm(longest)                      (2)
(to divide by the norm of the present length instead, as is often done, stops too early). A beam of one is greedy
search: where its hypothesis ends, none is left to compete.

Of equally good candidates those of the hypothesis that stood before come first, then the lower token.

Models compute in torch; what is left of a step are a few numbers a prompt, which numpy adds up in less time.

Shapes: N prompts, W beam width, R = N * W rows, V vocabulary, T tokens so far, C candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..data.batch import Batch
from ..models.contract import Continues, State, select_rows
from ..models.engine import Searching
from .candidates import adjusted, best_of, top_tokens
from .settings import DecodingConfig, Hypothesis, length_norm


@dataclass(frozen=True)
class Candidates:
    """One step of the search, for whoever watches: the best continuations of each prompt, best first, (N, C) each."""

    parents: np.ndarray
    """Which of the hypotheses that went on before, counted over all prompts."""
    tokens: np.ndarray
    totals: np.ndarray
    """Log-probability, with penalties, of all tokens so far."""
    ends: np.ndarray
    """bool: complete with this token."""
    goes_on: np.ndarray
    """bool: one of the beam. What neither ends nor goes on is dropped."""


Watch = Callable[[Candidates], None]


def beam_search(
    model: Continues, prompt: Batch, config: DecodingConfig, limits: Sequence[int], watch: Watch | None = None
) -> list[list[Hypothesis]]:
    """The `num_results` best of each prompt; `limits` are the tokens to add to each at most."""
    log_probs, state = model.start(prompt)  # (N, V): one hypothesis each to begin with
    beams, searching = _Beams(len(prompt), config, limits, watch), _searching(model, config, watch)
    while True:
        rows, sources = beams.advance(log_probs)
        if not len(sources):
            return [best_of(found, config) for found in beams.finished]
        index, of_memory = (torch.from_numpy(numbers).to(log_probs.device) for numbers in (rows, sources))
        state = select_rows(state, index, None if len(sources) == beams.num_before else of_memory)
        log_probs, state = model.step(torch.from_numpy(beams.tokens[:, -1].copy()), state)
        if searching is not None:
            log_probs = beams.go_on(searching, log_probs, state)


def _searching(model: Continues, config: DecodingConfig, watch: Watch | None) -> Searching | None:
    """The compiled loop, for steps at which nothing ends and nobody watches."""
    if not isinstance(model, nn.Module) or watch is not None or config.repetition_penalty != 1.0:
        return None
    stop, never = (-1 if token is None else token for token in (config.stop, config.never))
    return Searching(model, config.beam_width, stop, never, config.min_tokens)


class _Beams:
    """The hypotheses of the prompts that are not done yet."""

    def __init__(self, num_prompts: int, config: DecodingConfig, limits: Sequence[int], watch: Watch | None = None):
        self.config, self.watch = config, watch
        self.finished: list[list[Hypothesis]] = [[] for _ in range(num_prompts)]
        self.prompts = np.arange(num_prompts)  # which of them is still running, (N,)
        self.num_before = num_prompts
        self.limits = np.array(limits)
        norms = [length_norm(limit, config.length_penalty, config.length_form) for limit in limits]
        self.norms = np.array(norms)  # of the longest, for (2)
        self.worst = np.full(num_prompts, -np.inf)  # of the n best, while there are n
        self.tokens = np.empty((num_prompts, 0), dtype=np.int64)  # (R, T)
        self.totals = np.zeros((num_prompts, 1))  # (N, W): what search adds up
        self.log_totals = self.totals  # the same without penalties

    def advance(self, log_probs: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Add a token to each hypothesis: log_probs (R, V) -> the rows (R',) that go on, and which prompts (N',)."""
        N, width = self.totals.shape
        W, stop = self.config.beam_width, self.config.stop
        allowed = adjusted(log_probs, torch.from_numpy(self.tokens).to(log_probs.device), self.config)
        k = min(2 * W, log_probs.shape[1])
        values, tokens = (found.cpu().numpy() for found in top_tokens(allowed, k))  # (R, k)
        reached = (self.totals.reshape(-1, 1) + values).reshape(N, width * k)
        # a stop token ends at most one continuation of each row, so 2W candidates hold W that go on
        place = np.argsort(-reached, axis=1, kind="stable")[:, : 2 * W]  # (N, C)
        each = np.arange(N)[:, None]
        best = reached[each, place]
        rows = place // k + each * width  # (N, C), of R
        chosen = tokens.reshape(N, width * k)[each, place]
        is_possible = best > -np.inf
        ends = is_possible & (chosen == stop) if stop is not None else np.zeros_like(is_possible)
        goes_on = is_possible & ~ends
        ends &= goes_on.cumsum(axis=1) < W  # those behind the W best that go on are not of the beam
        log_totals = best
        if allowed is not log_probs:
            here = tuple(torch.from_numpy(numbers).to(log_probs.device) for numbers in (rows, chosen))
            log_totals = self.log_totals.reshape(-1)[rows] + log_probs[here].double().cpu().numpy()
        self._finish(ends, rows, chosen, best, log_totals, ends=True)

        first = np.argsort(~goes_on, axis=1, kind="stable")[:, :W]  # the W best that go on, in order
        is_kept = goes_on[each, first]
        if self.watch is not None:
            self.watch(Candidates(rows, chosen, best, ends, _among(goes_on, first, is_kept)))
        kept = np.where(is_kept, best[each, first], -np.inf)  # (N, W)
        is_done = (self.worst >= kept[:, 0] / self.norms) | ~is_kept[:, 0]  # (2), or nothing left
        if W == 1:
            is_done |= ends.any(axis=1)
        is_out = ~is_done & (self.tokens.shape[1] + 1 >= self.limits)  # what is still running competes as it is
        if is_out.any():
            running = _among(goes_on, first, is_kept) & is_out[:, None]
            self._finish(running, rows, chosen, best, log_totals, ends=False)
        sources = np.flatnonzero(~(is_done | is_out))
        rows, chosen, log_totals = rows[each, first], chosen[each, first], log_totals[each, first]
        return self._keep(sources, rows, chosen, kept, log_totals), sources

    def go_on(self, searching: Searching, log_probs: Tensor, state: State) -> Tensor:
        """Steps in a compiled loop, as many as it takes; returns log p of what comes next."""
        limit = int(self.limits.min())
        while found := searching.go_on(log_probs, state, self.tokens, self.totals, self.worst, self.norms, limit):
            log_probs, self.tokens, self.totals = found
            self.log_totals = self.totals
        return log_probs

    def _finish(
        self,
        which: np.ndarray,
        rows: np.ndarray,
        chosen: np.ndarray,
        best: np.ndarray,
        log_totals: np.ndarray,
        *,
        ends: bool,
    ) -> None:
        """Candidates (N, C) that are complete go to their prompts."""
        if not which.any():
            return
        prompts = np.nonzero(which)[0].tolist()
        tokens = np.concatenate([self.tokens[rows[which]], chosen[which][:, None]], axis=1).tolist()
        is_penalised = self.config.repetition_penalty != 1.0
        for n, added, total, log_prob in zip(
            prompts, tokens, best[which].tolist(), log_totals[which].tolist(), strict=True
        ):
            found = Hypothesis(added, log_prob, ends, total if is_penalised else None)
            self.finished[int(self.prompts[n])].append(found)
        for n in set(prompts):
            mine = self.finished[int(self.prompts[n])] = best_of(self.finished[int(self.prompts[n])], self.config)
            if len(mine) == self.config.num_results:
                self.worst[n] = mine[-1].score(self.config.length_penalty, self.config.length_form)

    def _keep(
        self, sources: np.ndarray, rows: np.ndarray, chosen: np.ndarray, totals: np.ndarray, log_totals: np.ndarray
    ) -> np.ndarray:
        """Go on with these prompts (N',) and their W hypotheses, whose rows (R',) are returned."""
        self.num_before = len(self.prompts)
        kept = rows[sources].reshape(-1)
        self.tokens = np.concatenate([self.tokens[kept], chosen[sources].reshape(-1, 1)], axis=1)
        self.totals, self.log_totals = totals[sources], log_totals[sources]
        self.prompts, self.limits, self.norms = self.prompts[sources], self.limits[sources], self.norms[sources]
        self.worst = self.worst[sources]
        return kept


def _among(candidates: np.ndarray, places: np.ndarray, is_kept: np.ndarray) -> np.ndarray:
    """Which of all candidates (N, C) are those that are kept, given by their places (N, W)."""
    found = np.zeros_like(candidates)
    np.put_along_axis(found, places, is_kept, axis=1)
    return found
