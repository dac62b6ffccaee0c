"""How well hidden words are filled in, and whether the second text follows the first.

    nats per hidden token = - sum of log p(token | all that is not hidden) / hidden tokens                         (1)
    accuracy              = share of hidden tokens that were the most probable
    pseudo-perplexity     = exp(- sum over tokens of log p(token | all others) / tokens)                           (2)

(2) hides one token at a time (Salazar et al. 2020), so that each row is read as often as it is long: a sample of rows
is enough. What stands behind a word is known in (1) and (2): neither is a likelihood of the text, or ranked with one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .. import __version__
from ..data.batch import Batch, Tokens
from ..data.masking import MaskedStore, Masking
from ..layers.stream import Stream
from ..models.contract import device_of, evaluating
from ..models.headed import HeadedModel
from ..wording import counted
from .segments import RESAMPLES, Metric, Segments, interval_in_words

SCORED_AT_ONCE = 32  # rows
PSEUDO_TOKENS = 512  # that (2) is taken of
SEED = 0  # of what is hidden


@dataclass(frozen=True)
class MaskedScore:
    metric = Metric("nats per hidden token", "nats/hidden", digits=4)

    nats: np.ndarray
    """(R,): -log p of the hidden tokens of each row."""
    hidden: np.ndarray
    """(R,): how many there were."""
    right: np.ndarray
    """(R,): how many of them were the most probable."""
    follows: np.ndarray | None = None
    """(R,) bool: of rows of two texts, whether it was said rightly if the second follows the first."""
    pseudo_nats: np.ndarray | None = None
    """(rows,): -log p of the tokens of some rows, each hidden alone."""
    pseudo_tokens: np.ndarray | None = None
    """(rows,): how many."""
    scored: str = ""

    @property
    def nats_per_token(self) -> float:
        return float(self.nats.sum() / max(1, self.hidden.sum()))  # (1)

    @property
    def accuracy(self) -> float:
        return float(self.right.sum() / max(1, self.hidden.sum()))

    @property
    def pseudo_perplexity(self) -> float | None:
        if self.pseudo_nats is None or self.pseudo_tokens is None:
            return None
        return math.exp(min(700.0, float(self.pseudo_nats.sum() / max(1, self.pseudo_tokens.sum()))))  # (2)

    @cached_property
    def segments(self) -> Segments:
        """Row by row, (1)."""
        return Segments.of(self.nats, self.hidden)

    @cached_property
    def accuracy_interval(self) -> tuple[float, float]:
        low, high = Segments.of(self.hidden - self.right, self.hidden).interval
        return 1 - high, 1 - low

    @cached_property
    def follows_interval(self) -> tuple[float, float] | None:
        if self.follows is None:
            return None
        low, high = Segments.of(~self.follows, np.ones(len(self.follows))).interval
        return 1 - high, 1 - low

    @property
    def signature(self) -> str:
        parts = ["hidden words", self.scored, f"bootstrap={RESAMPLES}x{len(self.nats)}", f"seqwise={__version__}"]
        return "|".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def headline(self) -> str:
        num = counted(int(self.hidden.sum()), "hidden token")
        right = share_in_words(self.accuracy, self.accuracy_interval)
        told = f"{right} of {num} right, {self.nats_per_token:.4f} nats each"
        if self.follows is not None and self.follows_interval is not None:
            told += f"; next text told rightly {share_in_words(float(self.follows.mean()), self.follows_interval)}"
        if self.pseudo_perplexity is not None:
            told += f"; pseudo-perplexity {self.pseudo_perplexity:.2f}"
        return told + "; no likelihood of the text, as what follows is known"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "hidden tokens that are right", share_in_words(self.accuracy, self.accuracy_interval)
        yield "nats per hidden token", f"{self.nats_per_token:.4f} ({interval_in_words(self.segments.interval, 4)})"
        if self.follows is not None and self.follows_interval is not None:
            yield "next text, told rightly", share_in_words(float(self.follows.mean()), self.follows_interval)
        if self.pseudo_perplexity is not None and self.pseudo_tokens is not None:
            yield "pseudo-perplexity", f"{self.pseudo_perplexity:.2f} (of {int(self.pseudo_tokens.sum()):,} tokens)"
        yield "what it is not", "a likelihood of the text: what stands behind a word is known"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        return {
            "masked_nats_per_token": self.nats_per_token,
            "interval": list(self.segments.interval),
            "masked_accuracy": self.accuracy,
            "masked_accuracy_interval": list(self.accuracy_interval),
            "next_accuracy": None if self.follows is None else float(self.follows.mean()),
            "next_accuracy_interval": None if self.follows_interval is None else list(self.follows_interval),
            "pseudo_perplexity": self.pseudo_perplexity,
            "hidden_tokens": int(self.hidden.sum()),
            "signature": self.signature,
        }


def share_in_words(value: float, interval: tuple[float, float]) -> str:
    return f"{100 * value:.2f} % ({interval_in_words((100 * interval[0], 100 * interval[1]), 2)})"


@torch.inference_mode()
def evaluate_masked(
    model: HeadedModel, store: MaskedStore, *, context: int, with_pseudo: bool = True, scored: str = ""
) -> MaskedScore:
    """Every row once, always with the same tokens hidden."""
    rows, masking, device = store.rows(context), Masking(is_static=True), device_of(model)
    found: list[tuple[np.ndarray, ...]] = []
    follows: list[np.ndarray] = []
    with evaluating(model):
        for start in range(0, len(rows), SCORED_AT_ONCE):
            chosen = np.arange(start, min(len(rows), start + SCORED_AT_ONCE))
            batch = rows.batch(chosen, masking, (SEED, start)).to(device)
            stream = model._encode(batch).stream  # read once for both
            found.append(judged(model, stream, batch))
            if "next" in batch.targets:
                next_head: Any = model.heads["next"]
                told = next_head.predict(stream, batch.targets["next"]).answers
                follows.append((told == batch.targets["next"].ids).cpu().numpy())
        pseudo = _pseudo(model, store, context, device) if with_pseudo else None
    nats, hidden, right = (np.concatenate(column) for column in zip(*found, strict=True))
    more = {} if pseudo is None else {"pseudo_nats": pseudo[0], "pseudo_tokens": pseudo[1]}
    return MaskedScore(nats, hidden, right, np.concatenate(follows) if follows else None, **more, scored=scored)


def judged(model: HeadedModel, stream: Stream, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nats, hidden tokens and right ones of each row."""
    wanted = batch.targets["tokens"]
    head = model.main_head
    log_probs = head.score(stream, wanted).double()
    best = torch.zeros_like(wanted.ids)
    best[wanted.is_scored] = head.logits(stream.hidden[wanted.is_scored]).argmax(dim=-1)  # type: ignore[attr-defined]
    right = (best == wanted.ids) & wanted.is_scored
    sums = -log_probs.sum(dim=1), wanted.is_scored.sum(dim=1), right.sum(dim=1)
    return tuple(column.cpu().numpy() for column in sums)  # type: ignore[return-value]


def _pseudo(
    model: HeadedModel, store: MaskedStore, context: int, device: torch.device
) -> tuple[np.ndarray, np.ndarray] | None:
    """(2) of rows taken evenly from the text: nats and tokens of each."""
    rows = store.rows(context)
    num = max(1, min(len(rows), PSEUDO_TOKENS // context))
    nats, tokens = [], []
    for number in np.linspace(0, len(rows) - 1, num).round().astype(int):
        batch = rows.batch(np.array([number]), Masking(share=1.0, is_static=True), (SEED, int(number))).to(device)
        wanted, places = batch.targets["tokens"], batch.targets["tokens"].is_scored[0].nonzero().squeeze(1)
        total = 0.0
        for some in places.split(SCORED_AT_ONCE):
            ids = wanted.ids.repeat(len(some), 1)
            ids[torch.arange(len(some)), some] = rows.mask
            segments = batch.inputs["tokens"].segments
            read = Tokens(ids, None, None if segments is None else segments.repeat(len(some), 1))
            hidden = model.body.encode({"tokens": read}, None).stream.hidden[torch.arange(len(some)), some]
            told = model.main_head.logits(hidden).log_softmax(dim=-1)  # type: ignore[attr-defined]
            total -= float(told.gather(1, wanted.ids[0, some].unsqueeze(1)).double().sum())
        nats.append(total)
        tokens.append(len(places))
    return np.array(nats), np.array(tokens)
