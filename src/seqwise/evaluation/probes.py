"""What each layer of a model knows: a linear classifier on top of it, trained on labels or tags (Alain & Bengio 2017).

A probe reads hidden states that nobody trained for what it asks. Where it does well, the layer holds the answer in a
form that a straight line can tell apart; which says what is there, not that the model uses it.

    p(answer | h) = softmax(W (h - mean) / spread + b)     of a word's state, or of the mean over a text

Shapes: N words or texts, T steps, D width of a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from ..data.batch import Batch, Tags, Tokens
from ..data.text_examples import TextStore
from ..errors import ConfigError
from ..models.contract import device_of, evaluating
from .segments import Segments, compare_segments, interval_in_words

ROWS = 64  # read at once
MAX_TRAIN, MAX_TEST = 20_000, 20_000  # words or texts
MAX_ITERATIONS = 200


@runtime_checkable
class HasLayers(Protocol):
    def layers(self, batch: Batch) -> Sequence[torch.Tensor]:
        """(B, T, D) of embeddings and of each layer."""
        ...


@dataclass(frozen=True)
class Probe:
    layer: int
    """0 is what stands below all layers: the embeddings."""
    width: int
    is_right: np.ndarray
    """(N,)"""

    @property
    def accuracy(self) -> float:
        return float(self.is_right.mean())

    @property
    def segments(self) -> Segments:
        return Segments.of(~self.is_right, np.ones(len(self.is_right)))

    @property
    def interval(self) -> tuple[float, float]:
        low, high = self.segments.interval
        return 1 - high, 1 - low

    def __str__(self) -> str:
        low, high = self.interval
        name = "embeddings" if self.layer == 0 else f"layer {self.layer}"
        return f"{name}: {100 * self.accuracy:.2f} % right ({interval_in_words((100 * low, 100 * high), 2)})"

    def to_dict(self) -> dict[str, Any]:
        return {"layer": self.layer, "width": self.width, "accuracy": self.accuracy, "interval": list(self.interval)}


@dataclass(frozen=True)
class Probes:
    layers: list[Probe]
    baseline: float
    """What one gets by always giving the most frequent answer."""
    num_train: int

    def sentences(self) -> list[str]:
        best = max(self.layers, key=lambda probe: probe.accuracy)
        told = [str(probe) for probe in self.layers]
        told.append(f"without reading anything, by the most frequent answer: {100 * self.baseline:.2f} %")
        others = [probe for probe in self.layers if probe is not best]
        surely = [probe for probe in others if compare_segments(best.segments, probe.segments).is_distinguishable]
        name = "the embeddings know" if best.layer == 0 else f"layer {best.layer} knows"
        if others and len(surely) == len(others):
            told.append(f"{name} most, surely (paired, 95 %)")
        elif others:
            told.append(f"{name} most, but not all differences are sure")
        return told


def probe_layers(
    model: object, train: TextStore, test: TextStore, *, on_progress: Callable[[str, int, int], None] = lambda *_: None
) -> Probes:
    """A probe for each layer, trained on words or texts of one part and judged on another."""
    if not isinstance(model, HasLayers):
        raise ConfigError(f"a {type(model).__name__} has no layers to probe; networks have.")
    known, wanted = _read(model, train, MAX_TRAIN), _read(model, test, MAX_TEST)
    found: list[Probe] = []
    for layer, (features, asked) in enumerate(zip(known.layers, wanted.layers, strict=True)):
        answers = _fit(features, known.answers)(asked)
        found.append(Probe(layer, features.shape[1], answers == wanted.answers))
        on_progress("probing layers", layer + 1, len(known.layers))
    labels, counts = np.unique(known.answers, return_counts=True)
    usual = float((wanted.answers == labels[counts.argmax()]).mean())
    return Probes(found, usual, len(known.answers))


@dataclass(frozen=True)
class _Read:
    layers: list[np.ndarray]
    """(N, D) each."""
    answers: np.ndarray
    """(N,)"""


@torch.inference_mode()
def _read(model: HasLayers, store: TextStore, limit: int) -> _Read:
    """Words, or texts, from the beginning of a part, as many as the limit."""
    pieces: list[list[np.ndarray]] = []
    answers: list[np.ndarray] = []
    with evaluating(model):
        for start in range(0, len(store), ROWS):
            batch = store.batch(np.arange(start, min(start + ROWS, len(store)))).to(device_of(model))
            batch = _within(batch, getattr(model, "context", None))
            layers, wanted = model.layers(batch), next(iter(batch.targets.values()))
            chosen = _of_words if isinstance(wanted, Tags) else _of_texts
            pieces.append([chosen(layer, batch, wanted).float().cpu().numpy() for layer in layers])
            ids = wanted.ids if wanted.is_target is None else wanted.ids[wanted.is_target]
            answers.append(ids.flatten().cpu().numpy())
            if sum(map(len, answers)) >= limit:
                break
    together = [np.concatenate(layer)[:limit] for layer in zip(*pieces, strict=True)]
    return _Read(together, np.concatenate(answers)[:limit])


def _within(batch: Batch, context: int | None) -> Batch:
    """What a model has places for: of a long text its beginning and its end, of tagged words those at the beginning."""
    tokens: Tokens = batch.inputs["tokens"]
    if context is None or tokens.shape[1] <= context:
        return batch
    name, wanted = next(iter(batch.targets.items()))
    if not isinstance(wanted, Tags):
        return Batch({"tokens": tokens.shortened(context)}, batch.targets)
    is_read = wanted.steps < context
    is_word = is_read if wanted.is_word is None else wanted.is_word & is_read
    read = Tags(wanted.ids, wanted.steps.clamp(max=context - 1), is_word)
    return Batch({"tokens": tokens.map(lambda tensor: tensor[:, :context])}, {name: read})


def _of_words(layer: torch.Tensor, batch: Batch, wanted: Tags) -> torch.Tensor:
    """(B, T, D) -> (N, D), where each word begins."""
    found = layer.gather(1, wanted.steps.unsqueeze(-1).expand(-1, -1, layer.shape[-1]))
    return found.flatten(0, 1) if wanted.is_word is None else found[wanted.is_word]


def _of_texts(layer: torch.Tensor, batch: Batch, wanted: Any) -> torch.Tensor:
    """(B, T, D) -> (B, D), the mean over the tokens of a text."""
    tokens = batch.inputs["tokens"]
    if tokens.is_token is None:
        return layer.mean(dim=1)
    return (layer * tokens.is_token.unsqueeze(-1)).sum(dim=1) / tokens.lengths.unsqueeze(1)


def _fit(features: np.ndarray, answers: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A linear classifier, with the features brought to mean zero and variance one."""
    from sklearn.linear_model import LogisticRegression

    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    if len(np.unique(answers)) < 2:
        return lambda asked: np.full(len(asked), answers[0])
    classifier = LogisticRegression(max_iter=MAX_ITERATIONS, tol=1e-3)
    classifier.fit((features - mean) / spread, answers)
    return lambda asked: np.asarray(classifier.predict((asked - mean) / spread))
