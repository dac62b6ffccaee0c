"""SpanHead: where in a passage the answer to a question begins, and where it ends.

Devlin et al. 2019 (BERT, 4.2 and 4.3), after Wang & Jiang 2017. A row is a question and a window of the passage; its
first step stands for "the answer is not here".

    log p(begins at s) = log softmax(w_1 . h)_s        over the steps of the window and the first step      (1)
    log p(ends at e)   = log softmax(w_2 . h)_e                                                             (2)
    score(s, e)        = log p(begins at s) + log p(ends at e)                                              (3)
    answer             = argmax of (3) over s <= e < s + max_answer; none where score(0, 0) is higher
                         by more than a threshold                                                           (4)

Shapes: B batch, T steps, D model width, M longest answer, K spans that are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..data.batch import Spans
from .heads import zero_linear
from .stream import Prediction, Stream


class BestSpans(NamedTuple):
    """The most probable spans of each window, best first; minus infinity where there are fewer."""

    scores: Tensor
    """(B, K) nats (3)."""
    places: Tensor
    """(B, K, 2): the first and the last step."""


def best_spans(log_probs: Tensor, passages: Tensor, *, max_answer: int, num: int = 1) -> BestSpans:
    """(3) of all spans of a window, from log p (B, 2, T) and the window's first and last step (B, 2)."""
    B, _, T = log_probs.shape
    begins, ends = log_probs.masked_fill(~_in_passage(passages, T).unsqueeze(1), -torch.inf).unbind(dim=1)  # (B, T)
    longest = min(max_answer, T)
    reach = nn.functional.pad(ends, (0, longest - 1), value=-torch.inf).unfold(1, longest, 1)  # (B, T, M): e - s
    scores, flat = (begins.unsqueeze(2) + reach).flatten(1).topk(min(num, T * longest), dim=1)
    starts = flat // longest
    return BestSpans(scores, torch.stack([starts, starts + flat % longest], dim=2))


def _in_passage(passages: Tensor, T: int) -> Tensor:
    """(B, T) bool."""
    steps = torch.arange(T, device=passages.device)
    return (steps >= passages[:, :1]) & (steps <= passages[:, 1:])


class SpanHead(nn.Module):
    continues = False

    def __init__(self, model_dim: int, *, max_answer: int, may_lack: bool = False, threshold: float = 0.0):
        """`may_lack`: "none" is an answer; `threshold`: by how many nats it must be ahead to be the answer."""
        super().__init__()
        self.max_answer, self.may_lack, self.threshold = max_answer, may_lack, threshold
        self.output = zero_linear(model_dim, 2)

    def log_probs(self, stream: Stream, spans: Spans) -> Tensor:
        """(1) and (2): (B, T, D) -> (B, 2, T), nats; minus infinity where no answer can begin or end."""
        logits = self.output(stream.hidden).transpose(1, 2)  # (B, 2, T)
        can_answer = _in_passage(spans.passages, logits.shape[2])
        can_answer[:, 0] = True
        return logits.masked_fill(~can_answer.unsqueeze(1), -torch.inf).log_softmax(dim=-1)

    def score(self, stream: Stream, wanted: Spans) -> Tensor:
        """log p of where each answer begins and ends, (B, 1)."""
        return self.log_probs(stream, wanted).gather(2, wanted.places.unsqueeze(2)).sum(dim=1)

    objective = score

    def predict(self, stream: Stream, wanted: Spans) -> Prediction:
        """(4) for each window by itself, (B, 2), whose own answers are not looked at; log_probs (B, 2, T)."""
        log_probs = self.log_probs(stream, wanted)
        scores, places = best_spans(log_probs, wanted.passages, max_answer=self.max_answer)
        is_none = self.is_none(log_probs[:, :, 0].sum(dim=1), scores[:, 0])
        return Prediction(places[:, 0].masked_fill(is_none.unsqueeze(1), 0), log_probs)

    def is_none(self, none: Tensor, best: Tensor) -> Tensor:
        """Whether "none" is the answer: from its score and that of the best span, (...) each."""
        return (none - best > self.threshold) if self.may_lack else torch.isinf(best)
