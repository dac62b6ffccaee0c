"""How well hidden words are told from a picture, whether the right picture is known, and which one is found.

    retrieval: of N pictures with a sentence each, all N x N pairs are scored by how probable it is that they match;
    recall at k = share of sentences whose own picture is among the k best (Chen et al. 2020), and the other way round

Pictures of the same content cannot be told apart: what is drawn from few words has such.

Shapes: N pairs, B batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..data.batch import Batch
from ..data.masking import Masking
from ..data.seen_masking import MATCHES, SeenMaskedStore
from ..models.contract import device_of, evaluating
from ..models.headed import HeadedModel
from .masked import SCORED_AT_ONCE, SEED, MaskedScore, judged, share_in_words
from .segments import Segments

MAX_RETRIEVED = 64  # N
PAIRS_AT_ONCE = 256
RANKS = (1, 5, 10)


@dataclass(frozen=True, repr=False)
class SeenMaskedScore(MaskedScore):
    matched: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """(rows,) whether it was told rightly if the picture is the right one."""
    region_errors: np.ndarray | None = None
    """Of each hidden region, the mean square of what its features were told wrong by."""
    regions_right: np.ndarray | None = None
    """Of each hidden region whose class is known, whether it was told rightly."""
    ranks: np.ndarray = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))
    """(2, N): how many are found more probable than the right one: of pictures for each sentence, and of sentences."""

    def recall(self, k: int) -> tuple[float, float]:
        """Of pictures by a sentence, and of sentences by a picture."""
        of_pictures, of_sentences = (self.ranks < k).mean(axis=1).tolist()
        return of_pictures, of_sentences

    @property
    def match_interval(self) -> tuple[float, float]:
        low, high = Segments.of(~self.matched, np.ones(len(self.matched))).interval
        return 1 - high, 1 - low

    def headline(self) -> str:
        hidden = (
            f"{int(self.hidden.sum()):,} hidden words {share_in_words(self.accuracy, self.accuracy_interval)} right"
        )
        match = f"right picture known {share_in_words(float(self.matched.mean()), self.match_interval)}"
        return f"{hidden}, {self.nats_per_token:.4f} nats each; {match}; picture found {100 * self.recall(1)[0]:.1f} %"

    def rows(self) -> Iterator[tuple[str, str]]:
        yield "hidden words that are right", share_in_words(self.accuracy, self.accuracy_interval)
        yield "nats per hidden word", f"{self.nats_per_token:.4f}"
        yield "right picture or another", share_in_words(float(self.matched.mean()), self.match_interval)
        if self.region_errors is not None:
            yield "features of hidden regions", f"mean square error {float(self.region_errors.mean()):.4f}"
        if self.regions_right is not None:
            yield "what hidden regions show", f"{100 * float(self.regions_right.mean()):.2f} % right"
        for name, place in (("picture for a sentence", 0), ("sentence for a picture", 1)):
            told = ", ".join(f"{100 * self.recall(k)[place]:.1f} % among {k}" for k in RANKS)
            yield name, f"{told}, of {self.ranks.shape[1]}"
        yield "signature", f"`{self.signature}`"

    def to_dict(self) -> dict[str, Any]:
        kept = ("masked_nats_per_token", "interval", "masked_accuracy", "masked_accuracy_interval", "hidden_tokens")
        whole = super().to_dict()
        return {
            **{name: whole[name] for name in kept},
            "match_accuracy": float(self.matched.mean()),
            "match_accuracy_interval": list(self.match_interval),
            "region_error": None if self.region_errors is None else float(self.region_errors.mean()),
            "region_accuracy": None if self.regions_right is None else float(self.regions_right.mean()),
            **{f"picture_recall_{k}": self.recall(k)[0] for k in RANKS},
            **{f"sentence_recall_{k}": self.recall(k)[1] for k in RANKS},
            "signature": self.signature,
        }


@torch.inference_mode()
def evaluate_seen_masked(
    model: HeadedModel, store: SeenMaskedStore, *, with_retrieval: bool = True, scored: str = ""
) -> SeenMaskedScore:
    """Every row once, always with the same words and regions hidden and the same pictures exchanged."""
    masking, device = Masking(is_static=True), device_of(model)
    found: list[tuple[np.ndarray, ...]] = []
    matched: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    right: list[np.ndarray] = []
    with evaluating(model):
        for start in range(0, len(store), SCORED_AT_ONCE):
            chosen = np.arange(start, min(len(store), start + SCORED_AT_ONCE))
            batch = store.batch(chosen, masking, (SEED, start)).to(device)
            found.append(judged(model, model._encode(batch).stream, batch))
            matched.append((model.predict(batch, "match").answers == batch.targets["match"].ids).cpu().numpy())
            if "image" in batch.targets:
                error, _ = model.score(replace(batch, targets={"image": batch.targets["image"]}))
                errors.append(-error[batch.targets["image"].is_target].cpu().numpy())
            if "shown" in batch.targets:
                wanted = batch.targets["shown"]
                told = model.predict(batch, "shown").answers
                right.append((told == wanted.labels)[wanted.is_target].cpu().numpy())
        ranks = retrieval_ranks(model, store) if with_retrieval else np.zeros((2, 0), dtype=np.int64)
    nats, hidden, hit = (np.concatenate(column) for column in zip(*found, strict=True))
    return SeenMaskedScore(
        nats,
        hidden,
        hit,
        scored=scored,
        matched=np.concatenate(matched),
        region_errors=_joined(errors),
        regions_right=_joined(right),
        ranks=ranks,
    )


def _joined(found: list[np.ndarray]) -> np.ndarray | None:
    """None where nothing was hidden."""
    return np.concatenate(found) if sum(map(len, found)) else None


@torch.inference_mode()
def match_table(model: HeadedModel, store: SeenMaskedStore, chosen: np.ndarray) -> np.ndarray:
    """log p that they match, of each of the sentences (rows) with each of their pictures (columns): (N, N)."""
    seen, device, N = store.seen, device_of(model), len(chosen)
    assert seen.tokens is not None
    pairs = np.stack(np.meshgrid(np.arange(N), np.arange(N), indexing="ij"), axis=-1).reshape(-1, 2)  # (N * N, 2)
    told = []
    for some in np.array_split(pairs, -(-len(pairs) // PAIRS_AT_ONCE)):
        image = seen.pictures.field(seen.picture_of[chosen[some[:, 1]]])
        batch = Batch({"image": image, "tokens": seen.tokens.padded(chosen[some[:, 0]])}, {}).to(device)
        log_probs = model.predict(batch, "match").log_probs
        assert log_probs is not None
        told.append(log_probs[:, MATCHES].double().cpu().numpy())
    return np.concatenate(told).reshape(N, N)


def retrieval_ranks(model: HeadedModel, store: SeenMaskedStore) -> np.ndarray:
    """(2, N), of the first N pictures, with a sentence each."""
    _, chosen = np.unique(store.seen.picture_of, return_index=True)
    table = match_table(model, store, np.sort(chosen)[:MAX_RETRIEVED])
    own = np.diag(table)
    return np.stack([(table > own[:, None]).sum(axis=1), (table > own[None]).sum(axis=0)])
