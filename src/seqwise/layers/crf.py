"""Linear-chain conditional random field: the tags of a row are judged together, not each by itself.

Lafferty, McCallum & Pereira 2001; on top of a network: Collobert et al. 2011, Lample et al. 2016.
Fixes in a softmax for each word: tags that do not fit each other (I-LOC after B-PER) can stand side by side.

    s_t[j] = what the network says of tag j at word t, and of being first (t = 1) or last (t = W)
    score(y) = sum over t of s_t[y_t] + sum over t > 1 of A[y_{t-1}, y_t]                          (1)
    log p(y) = score(y) - log Z,   Z = sum over all y of exp score(y)                              (2)

    alpha_t[j] = s_t[j] + logsumexp over i of alpha_{t-1}[i] + A[i, j]                             (3) words up to t
    beta_t[i]  = logsumexp over j of A[i, j] + s_{t+1}[j] + beta_{t+1}[j]                          (4) words after t
    p(y_t = j)                = exp(alpha_t[j] + beta_t[j] - log Z)                                (5)
    p(y_{t-1} = i, y_t = j)   = exp(alpha_{t-1}[i] + A[i, j] + s_t[j] + beta_t[j] - log Z)         (6)
    best_t[j]  = s_t[j] + max over i of best_{t-1}[i] + A[i, j]                                    (7) Viterbi 1967

Log Z is (3) at the last word, summed. Its slope by s_t[j] is (5), by A[i, j] the sum of (6) over the words of a row: so
the gradient of (2) comes from one pass forwards and one backwards, and no step of (3) has to be remembered. What a
scheme of tags rules out is -inf in s and A, and has probability zero and no gradient.

Shapes: B batch, W words, N tags.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..kernels.hidden_chain import best_path
from ..kernels.linear_chain import expect

Rule = Tensor | np.ndarray | None
"""Bool: what may be; None where all may."""


class Expected(NamedTuple):
    """What a chain says of its tags, row by row."""

    log_partition: Tensor
    """log Z, (B,); 0 of a row without words, -inf where no tags are possible."""
    marginals: Tensor
    """p(y_t = j), (B, W, N); zero behind the end of a row."""
    pairs: Tensor
    """How often j is expected to stand behind i, (B, N, N)."""


def plain_expectations(scores: Tensor, lengths: Tensor, follow: Tensor) -> Expected:
    """(3) to (6) as they stand: s (B, W, N), words of each row (B,), A (N, N), all in nats."""
    B, W, N = scores.shape
    alphas, betas, end = [scores[:, 0]], [torch.zeros_like(scores[:, 0])], torch.zeros_like(scores[:, 0])
    for t in range(1, W):
        alphas.append(scores[:, t] + (alphas[-1].unsqueeze(2) + follow).logsumexp(dim=1))  # (3)
    for t in reversed(range(1, W)):
        after = (follow + (scores[:, t] + betas[-1]).unsqueeze(1)).logsumexp(dim=2)  # (4)
        betas.append(torch.where((t < lengths).unsqueeze(1), after, end))
    alpha, beta = torch.stack(alphas, dim=1), torch.stack(betas[::-1], dim=1)  # (B, W, N)
    last = alpha[torch.arange(B, device=scores.device), lengths - 1]  # (B, N)
    log_partition = last.logsumexp(dim=1)
    # what is impossible anyway is compared with zero, since -inf has no distance from itself
    known = log_partition.masked_fill(log_partition == -math.inf, 0.0).view(B, 1, 1)
    is_word = torch.arange(W, device=scores.device) < lengths.unsqueeze(1)
    marginals = (alpha + beta - known).exp().masked_fill(~is_word.unsqueeze(2), 0.0)  # (5)
    pairs = scores.new_zeros(B, N, N)
    for t in range(1, W):
        both = alpha[:, t - 1].unsqueeze(2) + follow + (scores[:, t] + beta[:, t]).unsqueeze(1) - known
        pairs += both.exp().masked_fill(~is_word[:, t].view(B, 1, 1), 0.0)  # (6)
    return Expected(log_partition.masked_fill(lengths == 0, 0.0), marginals, pairs)


def expectations(scores: Tensor, lengths: Tensor, follow: Tensor) -> Expected:
    """The same by compiled loops, where they are exact: on the CPU, with numbers that are not too far apart."""
    if scores.device.type == "cpu":
        table, moves = (tensor.detach().double().contiguous().numpy() for tensor in (scores, follow))
        is_exact, *found = expect(table, lengths.numpy(), moves)
        if is_exact:
            return Expected(*map(torch.from_numpy, found))
    return plain_expectations(scores.detach(), lengths, follow.detach())


def plain_best_paths(scores: Tensor, lengths: Tensor, follow: Tensor) -> tuple[Tensor, Tensor]:
    """(7) as it stands: the best tags of each row (B, W), 0 behind its end, and their score (1), (B,)."""
    B, W, N = scores.shape
    best, came_from, is_word = scores[:, 0], [], torch.arange(W, device=scores.device) < lengths.unsqueeze(1)
    itself = torch.arange(N, device=scores.device).expand(B, N)
    for t in range(1, W):
        top, tag = (best.unsqueeze(2) + follow).max(dim=1)  # (B, N)
        best = torch.where(is_word[:, t : t + 1], scores[:, t] + top, best)  # (7)
        came_from.append(torch.where(is_word[:, t : t + 1], tag, itself))
    score, tag = best.max(dim=1)
    path = [tag]
    for before in reversed(came_from):
        path.append(before.gather(1, path[-1].unsqueeze(1)).squeeze(1))
    return torch.stack(path[::-1], dim=1).masked_fill(~is_word, 0), score.masked_fill(lengths == 0, 0.0)


def best_paths(scores: Tensor, lengths: Tensor, follow: Tensor) -> tuple[Tensor, Tensor]:
    """The same by compiled loops, on the CPU."""
    if scores.device.type != "cpu":
        return plain_best_paths(scores, lengths, follow)
    ids, score = torch.zeros(scores.shape[:2], dtype=torch.long), torch.zeros(len(scores), dtype=torch.float64)
    incoming, nothing_before = follow.T.double().contiguous().numpy(), np.zeros(len(follow))
    for row, length in enumerate(lengths.tolist()):
        if length:
            table = scores[row, :length].double().contiguous().numpy()
            path, score[row] = best_path(np.arange(length), table, nothing_before, incoming)
            ids[row, :length] = torch.from_numpy(path)
    return ids, score


class LogPartition(torch.autograd.Function):
    """log Z with (5) and (6) as its gradient: (B, W, N), (B,), (N, N) -> (B,)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, lengths: Tensor, follow: Tensor) -> Tensor:
        found = expectations(scores, lengths, follow)
        ctx.save_for_backward(found.marginals.to(scores.dtype), found.pairs.to(follow.dtype))
        return found.log_partition.to(scores.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        marginals, pairs = ctx.saved_tensors
        return slope.view(-1, 1, 1) * marginals, None, torch.einsum("b,bij->ij", slope, pairs)


class LinearChainCRF(nn.Module):
    """Rows of tags, from logits for each word; `is_word` (B, W) is False behind the last word of a row.

    >>> crf = LinearChainCRF(3)
    >>> crf.log_prob(logits, ids, is_word)        # (B, W, 3), (B, W), (B, W) -> (B,) nats, one for each row
    """

    can_follow: Tensor
    can_begin: Tensor
    can_end: Tensor

    def __init__(self, num_tags: int, *, can_follow: Rule = None, can_begin: Rule = None, can_end: Rule = None):
        """Which tags may stand behind which, (N, N), [before, after]; first in a row, and last, (N,)."""
        super().__init__()
        self.follow = nn.Parameter(torch.zeros(num_tags, num_tags))  # at the start tags know nothing of each other
        self.begin, self.end = nn.Parameter(torch.zeros(num_tags)), nn.Parameter(torch.zeros(num_tags))
        rules = {"can_follow": can_follow, "can_begin": can_begin, "can_end": can_end}
        for (name, rule), shape in zip(rules.items(), [(num_tags, num_tags), (num_tags,), (num_tags,)], strict=True):
            given = torch.ones(shape, dtype=torch.bool) if rule is None else torch.as_tensor(rule, dtype=torch.bool)
            if given.shape != shape:
                raise ValueError(f"{name} has the shape {tuple(given.shape)}, and should have {shape}.")
            self.register_buffer(name, given.clone(), persistent=False)  # follows from the names of the tags

    def log_prob(self, emissions: Tensor, ids: Tensor, is_word: Tensor | None = None) -> Tensor:
        """(2), in nats: (B, W, N), (B, W) -> (B,). Tags that are ruled out have -inf; no words have 0."""
        scores, is_there, follow = self._chain(emissions, is_word)
        log_partition = LogPartition.apply(scores, is_there.sum(dim=1), follow)
        ids = ids.masked_fill(~is_there, 0)
        of_words = scores.gather(2, ids.unsqueeze(2)).squeeze(2)  # (B, W); zero behind the end
        of_pairs = follow[ids[:, :-1], ids[:, 1:]].masked_fill(~is_there[:, 1:], 0.0)
        log_prob = of_words.sum(dim=1) + of_pairs.sum(dim=1) - log_partition  # (1) (2)
        return log_prob.masked_fill(log_partition == -math.inf, -math.inf).to(emissions.dtype)

    @torch.no_grad()
    def log_marginals(self, emissions: Tensor, is_word: Tensor | None = None) -> Tensor:
        """log p(tag of each word | the whole row), (B, W, N) nats; 0 behind the end of a row."""
        scores, is_there, follow = self._chain(emissions, is_word)
        marginals = expectations(scores, is_there.sum(dim=1), follow).marginals.clamp(max=1.0)  # but for rounding
        return marginals.log().masked_fill(~is_there.unsqueeze(2), 0.0).to(emissions.dtype)

    @torch.no_grad()
    def best_path(self, emissions: Tensor, is_word: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The tags that are most probable together, (B, W), 0 behind the end of a row; log p of them, (B,) nats."""
        scores, is_there, follow = self._chain(emissions, is_word)
        lengths = is_there.sum(dim=1)
        ids, score = best_paths(scores, lengths, follow)
        log_prob = score - expectations(scores, lengths, follow).log_partition
        return ids, log_prob.masked_fill(score == -math.inf, -math.inf).to(emissions.dtype)

    def _chain(self, emissions: Tensor, is_word: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """s (B, W, N), which places hold a word (B, W), and A (N, N)."""
        B, W, _ = emissions.shape
        wide = torch.float32 if emissions.device.type == "mps" else torch.float64  # which has no 64 bits
        is_there = emissions.new_ones(B, W, dtype=torch.bool) if is_word is None else is_word
        follow = self.follow.to(wide).masked_fill(~self.can_follow, -math.inf)
        begin = self.begin.to(wide).masked_fill(~self.can_begin, -math.inf)
        end = self.end.to(wide).masked_fill(~self.can_end, -math.inf)
        lengths = is_there.sum(dim=1, keepdim=True)
        places = torch.arange(W, device=emissions.device)
        scores = emissions.to(wide).masked_fill(~is_there.unsqueeze(2), 0.0)
        scores = scores + torch.where(((places == 0) & (lengths > 0)).unsqueeze(2), begin, 0.0)
        return scores + torch.where((places == lengths - 1).unsqueeze(2), end, 0.0), is_there, follow
