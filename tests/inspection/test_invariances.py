"""seqwise check: every family keeps what it should on every kind of target, and a model that does not is found out."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Terminal
from torch import Tensor, nn

from seqwise.api import TrainedRun, train
from seqwise.data.batch import Batch, Tokens
from seqwise.data.schema import (
    CHOICE,
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    RECONSTRUCTION,
    SEQUENCE,
    SEQUENCES,
    SPAN,
    TAG,
    VECTOR,
)
from seqwise.data.store import store_of_text
from seqwise.goals import GOALS
from seqwise.inspection.invariances import CHECKS, Invariance, check_run, largest
from seqwise.inspection.real_rows import CUTS, PADDING, padded_together
from seqwise.models import MODELS
from seqwise.models.contract import Loss
from seqwise.run import Run

SETTINGS: dict[str, list[str]] = {
    "ngram": ["model.order=3"],
    "hmm": ["model.num_states=3"],
    "kalman": ["model.state_dim=3"],
    "window": ["model.window=3", "model.embed_dim=4", "model.model_dim=8"],
    "conv": ["model.model_dim=8", "model.num_layers=2"],
    "word2vec": ["model.embed_dim=4", "tokenizer.min_count=1"],
    "seq2seq": ["model.model_dim=8"],
    "transformer": ["model.model_dim=8", "model.num_layers=1", "model.num_heads=2"],
    "gpt": ["model.model_dim=8", "model.num_layers=1", "model.num_heads=2", "model.context=40"],
    "bert": ["model.model_dim=8", "model.num_layers=1", "model.num_heads=2", "model.context=40"],
}
DATA = {
    NEXT_TOKEN: "cats.txt",
    NEXT_VALUES: "numbers.csv",
    LABEL: "parity:12",
    LABELS: "several.jsonl",
    NUMBER: "adding:10",
    TAG: "tags.conll",
    SEQUENCE: "p.tsv",
    RECONSTRUCTION: "rows.txt",
    MASKED_TOKEN: "cats.txt",
    SPAN: "rooms",
    CHOICE: "choices.jsonl",
}
PICTURES = "digits8x8"
RUNS = [
    (name, kind)
    for name, row in MODELS.items()
    for kind in row.learns
    if kind != VECTOR  # models/test_vectors
    and (row.can_read(*SEQUENCES) or (row.can_read(frozenset({"images"})) and kind in (LABEL, PICTURE)))
]
NAMES = [check.name for check in CHECKS]
ANSWERS = {"causality", "stepping"}  # of a whole sequence, which has no next step
LEFT_OUT: dict[str, set[str]] = {
    LABEL: ANSWERS,
    LABELS: {*ANSWERS, "sums"},
    NUMBER: {*ANSWERS, "sums"},
    TAG: ANSWERS,
    MASKED_TOKEN: ANSWERS,
    SPAN: ANSWERS,
    CHOICE: ANSWERS,
    PICTURE: {*ANSWERS, "sums"},
    NEXT_VALUES: {"sums"},
}
"""What does not apply, by the kind of target."""


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """A tiny run of a family on a kind of target; networks with random weights, as fresh heads say the same of all."""
    folder = tmp_path_factory.mktemp("checked")
    words = [f"{a}{b}{c}" for a in "crmbdlgp" for b in ("a", "oo", "eau") for c in "tnsdr"]
    (folder / "cats.txt").write_text("the cat sat on the mat.\nthe dog and the rat sat on a log.\n" * 40)
    holes = ("" if n % 11 == 0 else str(n % 7 + n % 3) for n in range(300))
    (folder / "numbers.csv").write_text("a,b\n" + "".join(f"{n % 5},{hole}\n" for n, hole in enumerate(holes)))
    texts = [(f"the {animal}{' and the mat' * (n % 4)} {n}", animal) for n in range(60) for animal in ("cat", "rat")]
    (folder / "labels.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in texts))
    several = [{"text": text, "labels": ["animal", label]} for text, label in texts]
    (folder / "several.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in several))
    choices = [{"question": text, "choices": ["cat", "the rat", "mat"][: 2 + n % 2], "answer": n % 2}
               for n, (text, _) in enumerate(texts)]  # fmt: skip
    (folder / "choices.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in choices))
    tagged = ("".join(f"{word}\t{'N' if word == animal else 'X'}\n" for word in text.split()) for text, animal in texts)
    (folder / "tags.conll").write_text("\n".join(tagged))
    lines = (" ".join(words[n : n + 1 + n % 5]) for n in range(len(words)))
    (folder / "rows.txt").write_text("".join(f"{line}\n" for line in lines) * 3)
    (folder / "p.tsv").write_text("".join(f"{word}\t{word[::-1]}{word}\n" for word in words))

    def make(family: str, kind: str) -> Path:
        path = folder / f"{family}-{kind}"
        if path.exists():
            return path
        is_counted = MODELS[family].learns[kind] == "counting"
        file = folder / ("labels.csv" if is_counted and kind == LABEL else DATA.get(kind, ""))
        overrides = SETTINGS.get(family, ["model.model_dim=8"])
        budget = {} if is_counted else {"steps": 2}
        overrides = [*overrides, "model.characters=none"] if kind == TAG and not is_counted else overrides
        task = "reconstruct" if kind == RECONSTRUCTION else None
        source = file if file.exists() else DATA.get(kind, "")
        source = source if MODELS[family].can_read(*SEQUENCES) else PICTURES
        found = train(source, family, out=path, task=task, overrides=overrides, **budget)
        if isinstance(found.model, nn.Module):
            for weight in found.model.parameters():
                nn.init.normal_(weight, std=0.4)
            found.run.save_model(found.model)
        return path

    return make


@pytest.mark.parametrize(("family", "kind"), RUNS, ids=lambda one: one)
def test_every_family_keeps_every_invariance_that_applies(
    make_run: Callable[[str, str], Path], family: str, kind: str
) -> None:
    found = TrainedRun(make_run(family, kind)).check()
    assert [invariance.name for invariance in found] == NAMES
    assert [str(invariance) for invariance in found if invariance.is_broken] == []
    left_out = LEFT_OUT.get(kind, set()) | (set() if MODELS[family].learns[kind] == "gradients" else {"accumulation"})
    assert {invariance.name for invariance in found if invariance.why_not} == left_out
    for invariance in found:
        assert invariance.is_kept == (invariance.difference is not None)
        assert str(invariance).startswith("does not apply: " if invariance.why_not else "kept: ")


def test_rows_are_cut_for_every_kind_of_target() -> None:
    assert CUTS.keys() == GOALS.keys()


@pytest.mark.parametrize("kind", DATA)
def test_rows_are_the_data_and_padded_ones_hold_the_same_behind_a_mask(
    make_run: Callable[[str, str], Path], kind: str
) -> None:
    run = TrainedRun(make_run({SEQUENCE: "seq2seq", MASKED_TOKEN: "bert"}.get(kind, "gru"), kind))
    rows = list(CUTS[kind](run.unseen_store(), 12))
    lengths = [row.num_steps for row in rows]
    assert len(rows) > 1
    assert len(set(lengths)) > 1
    assert all(field.shape[1] <= 12 for row in rows for field in row.inputs.values())
    together = padded_together(rows, None, pads_targets=run.model.continues)
    counts = {name: sum(row.counts()[name] for row in rows) for name in run.run.schema.targets}
    assert (together.num_steps, together.counts()) == (sum(lengths), counts)
    each = [row.rows(slice(number, number + 1)) for row in rows for number in range(len(row))]
    for name, field in together.inputs.items():
        assert field.shape == (len(each), max(row.inputs[name].shape[1] for row in each) + PADDING)
        for number, row in enumerate(each):
            mine, length = row.inputs[name], row.inputs[name].shape[1]
            content = (lambda one: one.ids) if isinstance(mine, Tokens) else (lambda one: one.values)
            assert torch.equal(content(field)[number, :length], content(mine)[0])
            assert field.is_step[number].tolist() == [step < length for step in range(field.shape[1])]


def test_rows_of_numbers_are_of_the_unseen_part(make_run: Callable[[str, str], Path]) -> None:
    store = TrainedRun(make_run("gru", NEXT_VALUES)).unseen_store()
    for row in CUTS[NEXT_VALUES](store, 4):
        wanted = row.targets["values"].values[0].double().numpy()
        places = [p for p in range(1, len(store.values) + 1 - len(wanted))
                  if np.allclose(store.values[p : p + len(wanted)], wanted)]  # fmt: skip
        assert max(places) >= store.first
    assert store.first > 200


# --- models that do not keep one --------------------------------------------------------------------------------------


class Wrapped(nn.Module):
    """A model as it is; one of its verbs is then replaced by another."""

    def __init__(self, inner: Any):
        super().__init__()
        self.inner = inner
        self.context, self.continues, self.carries_state = inner.context, inner.continues, inner.carries_state

    def score(self, batch: Batch, state: Any = None) -> Any:
        return self.inner.score(batch, state)

    def loss(self, batch: Batch, state: Any = None) -> Loss:
        return self.inner.loss(batch, state)

    def start(self, prompt: Batch) -> Any:
        return self.inner.start(prompt)

    def step(self, *said: Any) -> Any:
        return self.inner.step(*said)

    def predict(self, batch: Batch) -> Any:
        return self.inner.predict(batch)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.state_dict()

    def parameters(self, recurse: bool = True) -> Any:
        return self.inner.parameters()


class LooksAhead(Wrapped):
    """By one step, so that it knows what it is asked for. Stepping finds that out as well: there is no ahead."""

    def score(self, batch: Batch, state: Any = None) -> Any:
        found, state = super().score(batch, state)
        (field,) = (field for name, field in batch.inputs.items() if name != "source")
        content = field.ids.double() if isinstance(field, Tokens) else field.values.sum(dim=-1)
        if field.is_step is not None:
            content = content.masked_fill(~field.is_step, 0.0)
        ahead = torch.cat([content[:, 1:], torch.zeros_like(content[:, :1])], dim=1)
        return found + 0.01 * ahead, state


class MixesRows(Wrapped):
    def score(self, batch: Batch, state: Any = None) -> Any:
        found, state = super().score(batch, state)
        return found + 1e-3 * (found.mean(dim=0) - found), state


class MixesPrompts(Wrapped):
    def start(self, prompt: Batch) -> Any:
        found, state = super().start(prompt)
        return found.roll(1, dims=0), state


class CountsPadding(Wrapped):
    def score(self, batch: Batch, state: Any = None) -> Any:
        found, state = super().score(batch, state)
        masks = [field.is_step for field in batch.inputs.values() if field.is_step is not None]
        return found + 1e-3 * sum(float((~mask[:1]).sum() > 0) for mask in masks), state


class DividesByItsOwnCount(Wrapped):
    """The mean of a micro-batch, added up: the bug of averaged averages."""

    def loss(self, batch: Batch, state: Any = None) -> Loss:
        loss = super().loss(batch, state)
        return Loss({name: replace(term, total=term.total / term.count) for name, term in loss.terms.items()}, None)


class StepsOtherwise(Wrapped):
    """From the second step on what is expected is not the same, though it sums to one."""

    def step(self, *said: Any) -> Any:
        found, state = super().step(*said)
        if isinstance(found, Tensor):
            return (1.01 * found).log_softmax(dim=-1), state
        return torch.distributions.Independent(torch.distributions.Normal(found.mean + 0.01, found.stddev), 1), state


class SavesSomethingElse(Wrapped):
    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return {name: tensor * (1 + 1e-3) for name, tensor in self.inner.state_dict().items()}


class SumsToMore(Wrapped):
    """To 1.01, with all verbs that agree with each other."""

    more = math.log(1.01)

    def score(self, batch: Batch, state: Any = None) -> Any:
        found, state = super().score(batch, state)
        return found + self.more, state

    def start(self, prompt: Batch) -> Any:
        found, state = super().start(prompt)
        return found + self.more, state

    def step(self, *said: Any) -> Any:
        found, state = super().step(*said)
        return found + self.more, state

    def predict(self, batch: Batch) -> Any:
        found = super().predict(batch)
        return replace(found, log_probs=found.log_probs + self.more)


ALL, STEPS = (NEXT_TOKEN, NEXT_VALUES, LABEL, NUMBER, SEQUENCE), (NEXT_TOKEN, NEXT_VALUES, SEQUENCE)
BROKEN: list[tuple[type[Wrapped], set[str], tuple[str, ...]]] = [
    (LooksAhead, {"causality", "stepping"}, STEPS),
    (MixesRows, {"batch composition"}, ALL),
    (MixesPrompts, {"batch composition"}, (NEXT_TOKEN, SEQUENCE)),
    (CountsPadding, {"padding"}, ALL),
    (DividesByItsOwnCount, {"accumulation"}, ALL),
    (StepsOtherwise, {"stepping"}, STEPS),
    (SavesSomethingElse, {"save and load"}, ALL),
    (SumsToMore, {"sums"}, (NEXT_TOKEN, LABEL, SEQUENCE)),
]
CASES = [(kind, breaks, failing) for breaks, failing, kinds in BROKEN for kind in kinds]


def test_every_invariance_has_a_model_that_does_not_keep_it() -> None:
    assert set().union(*(failing for _, failing, _ in BROKEN)) == set(NAMES)


@pytest.mark.parametrize(
    ("kind", "breaks", "failing"),
    CASES,
    ids=lambda one: "-".join(sorted(one)) if isinstance(one, set) else getattr(one, "__name__", one),
)
def test_a_broken_model_fails_what_it_breaks_and_nothing_else(
    make_run: Callable[[str, str], Path],
    kind: str,
    breaks: type[Wrapped],
    failing: set[str],
    monkeypatch: pytest.MonkeyPatch,
    terminal: Terminal,
) -> None:
    path, load_model = make_run("seq2seq" if kind == SEQUENCE else "gru", kind), Run.load_model
    monkeypatch.setattr(Run, "load_model", lambda run: breaks(load_model(run)).eval())
    code, out, _ = terminal.run("check", path)
    failed = [line for line in out.splitlines() if line.startswith("FAILED: ")]
    sentences = {check.sentence for check in CHECKS if check.name in failing}
    assert {line.removeprefix("FAILED: ").partition(" (largest difference ")[0] for line in failed} == sentences
    assert code == 1
    verdict = out.splitlines()[-1]
    assert f"{path} fails {len(failing)} of " in verdict
    assert all(name in verdict for name in failing)


@pytest.mark.parametrize("family", ["ngram", "hmm"])
def test_a_model_without_gradients_is_found_out_too(make_run: Callable[[str, str], Path], family: str) -> None:
    run = TrainedRun(make_run(family, NEXT_TOKEN))
    plain = run.model.score
    run.model.score = lambda batch, state=None: (plain(batch, state)[0] + 1e-4 * len(batch), None)
    assert {one.name for one in run.check() if one.is_broken} >= {"batch composition"}


# --- numbers, words and the command -----------------------------------------------------------------------------------


def test_the_largest_difference_is_relative_above_one_and_knows_infinities() -> None:
    infinite = float("inf")
    assert largest(torch.tensor([0.5, -1000.1]), torch.tensor([0.5, -1000.0])) == pytest.approx(1e-4, rel=1e-3)
    assert largest(torch.tensor([0.25]), torch.tensor([0.5])) == 0.25
    assert largest(torch.tensor([-infinite]), torch.tensor([-infinite])) == 0
    assert largest(torch.tensor([-infinite]), torch.tensor([-1.0])) == infinite
    assert largest(torch.tensor([-1.0]), torch.tensor([-infinite])) == infinite
    assert largest(torch.tensor([float("nan")]), torch.tensor([float("nan")])) == infinite
    assert not Invariance("", "", infinite, 1e-5).is_kept
    assert Invariance("", "", float("nan"), 1e-5).is_broken


def test_checking_changes_neither_run_nor_model(make_run: Callable[[str, str], Path]) -> None:
    run = TrainedRun(make_run("gru", NEXT_TOKEN))
    files = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    before = copy.deepcopy(run.model.state_dict())
    run.check()
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == files
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.model.state_dict().items())
    assert all(weight.grad is None for weight in run.model.parameters())
    assert not run.model.training


@pytest.mark.parametrize("text", ["the cat sat.\n", "th"])
def test_a_short_text_is_enough(make_run: Callable[[str, str], Path], tmp_path: Path, text: str) -> None:
    (tmp_path / "short.txt").write_text(text)
    told: list[str] = []
    found = TrainedRun(make_run("gru", NEXT_TOKEN)).check(tmp_path / "short.txt", tell=told.append)
    assert not any(invariance.is_broken for invariance in found)
    assert "short.txt" in told[0]


def test_one_step_has_no_future(make_run: Callable[[str, str], Path]) -> None:
    run = TrainedRun(make_run("gru", NEXT_TOKEN))
    found = {one.name: one for one in check_run(run.run, run.model, store_of_text("t", run.tokenizer))}
    assert found["causality"].why_not == "rows of one step have no future"
    assert all(one.is_kept for name, one in found.items() if name != "causality")


def test_one_pair_has_no_others_beside_it(make_run: Callable[[str, str], Path], tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("cat\ttac\n")
    found = TrainedRun(make_run("seq2seq", SEQUENCE)).check(tmp_path / "one.tsv")
    alone = {one.name for one in found if one.why_not == "the data has one row only"}
    assert alone == {"batch composition", "accumulation"}
    assert all(one.is_kept for one in found if not one.why_not)
