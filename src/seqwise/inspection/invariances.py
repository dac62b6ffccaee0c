"""The contract's invariances on a run and its own data: what must not change a model's numbers, measured. CHECKS is the
table.

found = check_run(run, model, store)
found[0].sentence      # "padding changes no log-probability"
found[0].difference    # 3e-12; None where it does not apply, and found[0].why_not says why

Log-probabilities are compared in 64 bits, in nats where they are small and relative to their size where they are not:
rounding would hide a fault.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from ..data.batch import Batch, Tokens, Values
from ..data.schema import BOUNDS, LABELS, VECTOR, Schema
from ..data.seen_store import SeenStore
from ..models.contract import Answerer, Learns, Model, evaluating, in_64_bits, noise_for
from ..run import Run
from .real_rows import padded_together, real_rows

BOUND = 1e-5  # nats, in 64 bits
EXACT = 0.0
PLACES = 4  # of each row, behind which everything is changed


@dataclass(frozen=True)
class Invariance:
    name: str
    sentence: str
    """What is so where it is kept."""
    difference: float | None
    """The largest that was found; None where the invariance does not apply."""
    bound: float
    why_not: str = ""
    """Why it does not apply."""

    @property
    def is_kept(self) -> bool:
        return self.difference is not None and self.difference <= self.bound

    @property
    def is_broken(self) -> bool:
        return self.difference is not None and not self.is_kept

    def __str__(self) -> str:
        if self.difference is None:
            return f"does not apply: {self.sentence}, because {self.why_not}"
        outcome = "kept" if self.is_kept else "FAILED"
        return f"{outcome}: {self.sentence} (largest difference {self.difference:.2g}, bound {self.bound:.2g})"

    def to_dict(self) -> dict[str, Any]:
        outcome = "does not apply" if self.difference is None else "kept" if self.is_kept else "failed"
        return {"name": self.name, "outcome": outcome, **vars(self)}


class Subject:
    """A model, and rows of its own data that it is judged by."""

    def __init__(self, run: Run, model: Model, store: Sized):
        self.run, self.model, self.schema = run, model, run.schema
        self.precise = in_64_bits(model)
        """The same in 64 bits."""
        store = store.with_noise(noise_for(model)) if isinstance(store, SeenStore) else store
        self.plain_rows = real_rows(run.schema.kind, store, model.context)
        self.rows = [row.in_64_bits() for row in self.plain_rows]
        """Each alone and without padding."""

    @cached_property
    def together(self) -> Batch:
        """All rows, each padded."""
        return padded_together(self.rows, self.model.context, pads_targets=self.model.continues)

    def each(self) -> Iterator[tuple[Batch, Batch]]:
        """The rows as they stand in `together`, one by one, and each without padding."""
        done = 0
        for row in self.rows:
            yield self.together.rows(slice(done, done + len(row))), row
            done += len(row)


Found = float | str
"""The largest difference; or why there is none to measure."""


def largest(found: Tensor, expected: Tensor) -> float:
    """The largest difference between numbers, relative to those expected where they are above one; infinite ones are
    alike where they are equal, and what is not a number is like nothing."""
    found, expected = found.double(), expected.double()
    gaps = (found - expected).abs() / expected.abs().clamp(min=1.0)
    gaps = gaps.masked_fill(gaps.isnan(), float("inf")).masked_fill(found == expected, 0.0)
    return float(gaps.max()) if gaps.numel() else 0.0


def _scores(model: Model, batch: Batch) -> Tensor:
    """log p of each target, (B, T); where there is none, the vector of each row, (B, D)."""
    return model.score(batch)[0] if batch.targets else cast(Answerer, model).predict(batch).answers


def _prompt(batch: Batch, main: str, steps: int | None = None) -> tuple[Batch, int]:
    """What comes before the first step that is asked for, and how many steps of the main field are then read.

    Where something else is read besides (a source), that is the prompt, and the boundary is read by itself.
    """
    others = {name: field for name, field in batch.inputs.items() if name != main}
    if others:
        return Batch(others, {}), 1
    field = batch.inputs[main]
    read = field.shape[1] if steps is None else steps
    return Batch({main: field.map(lambda tensor: tensor[:, :read])}, {}), read


def _expected(model: Any, batch: Batch, main: str) -> Tensor:
    """What comes after the prompt in numbers, (B, N): log-probabilities, or the moments of a distribution."""
    found, _ = model.start(_prompt(batch, main)[0])
    return found if isinstance(found, Tensor) else torch.cat([found.mean, found.variance], dim=-1)


def padding(subject: Subject) -> Found:
    model, main, gaps = subject.precise, subject.schema.main, [0.0]
    for padded, alone in subject.each():
        expected = _scores(model, alone)
        gaps.append(largest(_scores(model, padded)[:, : expected.shape[1]], expected))
        if model.continues:
            gaps.append(largest(_expected(model, padded, main), _expected(model, alone, main)))
    return max(gaps)


def batch_composition(subject: Subject) -> Found:
    """Rows are padded alike in both, so that padding is not what differs."""
    if len(subject.rows) < 2:
        return "the data has one row only"
    model, main, gaps = subject.precise, subject.schema.main, [0.0]
    scores = _scores(model, subject.together)
    next_ones = _expected(model, subject.together, main) if model.continues else None
    for number, (padded, alone) in enumerate(subject.each()):
        T = alone.targets[main].shape[1] if alone.targets else None
        gaps.append(largest(scores[number, :T], _scores(model, padded)[0, :T]))
        if next_ones is not None:
            gaps.append(largest(next_ones[number], _expected(model, padded, main)[0]))
    return max(gaps)


def accumulation(subject: Subject) -> Found:
    """Relative to the largest part of the gradient."""
    model, batch = subject.precise, subject.together
    if not isinstance(model, nn.Module):
        return f"{subject.run.config.model_name} does not learn by gradients"
    if not batch.targets:
        return "nothing is asked for that it could learn from"
    if len(batch) < 2:
        return "the data has one row only"
    whole = _gradient(model, [batch], batch)
    scale = max(float(whole.abs().max()), torch.finfo(whole.dtype).tiny)
    return max(largest(_gradient(model, batch.split(parts), batch) / scale, whole / scale) for parts in (2, len(batch)))


@torch.enable_grad()
def _gradient(model: nn.Module, parts: Sequence[Batch], batch: Batch) -> Tensor:
    """Of all weights, one behind the other, summed over the parts of a batch."""
    model.zero_grad()
    for part in parts:
        cast(Learns, model).loss(part).over({**batch.counts(), **batch.sizes()}).backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])


def causality(subject: Subject) -> Found:
    """From some step on all inputs are others; what was said before must not know."""
    if not subject.model.continues:
        return "a whole sequence is answered: the model may see all of it"
    model, main = subject.precise, subject.schema.main
    size, gaps = subject.schema.specs[subject.schema.inputs[main]].size, []
    for row in subject.rows:
        before, T = _scores(model, row), row.inputs[main].shape[1]
        for place in {1 + share * (T - 2) // (PLACES - 1) for share in range(PLACES if T > 1 else 0)}:
            changed = {**row.inputs, main: _changed(row.inputs[main], place, size)}
            after = _scores(model, replace(row, inputs=changed))
            gaps.append(largest(after[:, :place], before[:, :place]))
    return max(gaps) if gaps else "rows of one step have no future"


def _changed(field: Tokens | Values, place: int, size: int) -> Tokens | Values:
    """Every step from `place` on is another one."""
    if isinstance(field, Tokens):
        is_later = torch.arange(field.shape[1]) >= place
        return replace(field, ids=torch.where(is_later, (field.ids + 1) % size, field.ids))
    values = field.values.clone()
    values[:, place:] += 1.0
    return replace(field, values=values)


def stepping(subject: Subject) -> Found:
    if not subject.model.continues:
        return "a whole sequence is answered: the model does not go on from a prompt"
    model, main, gaps = subject.precise, subject.schema.main, []
    for row in subject.rows:
        parallel = _scores(model, row)[0]
        for step, found in _stepped(model, row, main):
            log_prob = _log_prob(found, row.targets[main], step)
            gaps += [] if log_prob is None else [largest(log_prob, parallel[step])]
    return max(gaps) if gaps else "a number is missing at every step"


def _stepped(model: Any, row: Batch, main: str) -> Iterator[tuple[int, Any]]:
    """What a model says of each target behind a prompt, which is half of the row where nothing else is read."""
    field = row.inputs[main]
    prompt, read = _prompt(row, main, max(1, field.shape[1] // 2))
    found, state = model.start(prompt)
    yield read - 1, found
    for step in range(read, field.shape[1]):
        if isinstance(field, Values):
            there = None if field.is_observed is None else field.is_observed[:, step]
            found, state = model.step(field.values[:, step], state, there)
        else:
            found, state = model.step(field.ids[:, step], state)
        yield step, found


def _log_prob(found: Any, wanted: Tokens | Values, step: int) -> Tensor | None:
    """Of the target at a step, (); None where it is not scored, or some of its numbers are missing: of the others alone
    it is not told."""
    if isinstance(wanted, Tokens):
        if wanted.is_scored is not None and not wanted.is_scored[0, step]:
            return None
        return found[0, wanted.ids[0, step]]
    if wanted.is_observed is not None and not wanted.is_observed[0, step].all():
        return None
    return found.log_prob(wanted.values[:, step])[0]


def save_and_load(subject: Subject) -> Found:
    """In the run's own precision, through a folder as training writes it."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Run.create(Path(folder) / "run", subject.run.config, subject.schema)
        saved.save_model(subject.model)
        loaded = Run.open(saved.path).load_model()
    return max(largest(_scores(loaded, row), _scores(subject.model, row)) for row in subject.plain_rows)


def sums(subject: Subject) -> Found:
    """The log of the sum, which is zero."""
    gaps = []
    if subject.schema.kind == VECTOR:
        return "it gives vectors, which are no probabilities"
    if subject.schema.kind in BOUNDS:
        return "it scores a bound, which is no likelihood"
    if subject.schema.kind == LABELS:
        return "each label is right or wrong by itself, so that their probabilities have no sum to keep"
    for row in subject.rows:
        for log_probs in _distributions(subject, row):
            if log_probs is None:
                return "it gives densities of numbers, which have no sum"
            total = log_probs.double().logsumexp(dim=-1)
            gaps.append(largest(total, torch.zeros_like(total)))
    return max(gaps)


def _distributions(subject: Subject, row: Batch) -> Iterator[Tensor | None]:
    """Log-probabilities of all answers, at each step where there are steps; None where the answers are numbers."""
    model = subject.precise
    if model.continues:
        for _, found in _stepped(model, row, subject.schema.main):
            yield found if isinstance(found, Tensor) else None
    else:
        yield cast(Answerer, model).predict(row).log_probs


@dataclass(frozen=True)
class Check:
    """A row of CHECKS."""

    name: str
    sentence: str
    measure: Callable[[Subject], Found]
    bound: float = BOUND

    def said_of(self, schema: Schema) -> str:
        """The sentence, where vectors stand in the place of probabilities too."""
        if schema.kind != VECTOR:
            return self.sentence
        return self.sentence.replace("log-probabilities", "vectors").replace("log-probability", "vector")


CHECKS = (
    Check("padding", "padding changes no log-probability", padding),
    Check("batch composition", "the other rows of a batch change no log-probability", batch_composition),
    Check("accumulation", "micro-batches give the gradient of the whole batch", accumulation),
    Check("causality", "what comes later changes no log-probability before it", causality),
    Check("stepping", "stepping gives the log-probabilities of the parallel pass", stepping),
    Check("save and load", "a saved and loaded model gives the same log-probabilities", save_and_load, EXACT),
    Check("sums", "probabilities sum to one", sums),
)


def check_run(run: Run, model: Model, store: Sized) -> list[Invariance]:
    """Each invariance, measured on rows of a part of the data that the run was not trained on."""
    subject, found = Subject(run, model, store), []
    with torch.no_grad(), evaluating(model), evaluating(subject.precise):
        for check in CHECKS:
            measured = check.measure(subject)
            difference, why_not = (None, measured) if isinstance(measured, str) else (measured, "")
            found.append(Invariance(check.name, check.said_of(run.schema), difference, check.bound, why_not))
    return found
