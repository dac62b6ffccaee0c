"""Learning word vectors as a stream of reports: budgets, checkpoints, stops, and a loss that is no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seqwise.data.schema import text_schema
from seqwise.errors import TrainingError
from seqwise.models import word2vec
from seqwise.models.word2vec import Part, Word2Vec, Word2VecConfig
from seqwise.run import Checkpoint
from seqwise.settings import TrainingConfig
from seqwise.text.symbols import SymbolTokenizer
from seqwise.training.loop import Hooks
from seqwise.training.report import CLOCK_FIELDS, Report
from seqwise.training.skip_gram import learn_vectors, num_workers, planned_steps

V, N = 12, 6_000


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "STEP_TOKENS", 2_000)


def model_and_ids() -> tuple[Word2Vec, np.ndarray]:
    tokenizer = SymbolTokenizer(V)
    ids = np.random.default_rng(0).integers(V, size=N)
    ids[::10] = tokenizer.boundary
    return Word2Vec(Word2VecConfig(embed_dim=8, subsample=0.0), text_schema(tokenizer)), ids


def config(**settings: Any) -> TrainingConfig:
    return TrainingConfig(**{"steps": 6, "learning_rate": 0.05, "final_rate": 0.01, "threads": 1, **settings})


def without_clock(reports: list[Report]) -> list[dict[str, Any]]:
    return [{name: value for name, value in r.to_dict().items() if name not in CLOCK_FIELDS} for r in reports]


def test_one_report_for_each_part_with_the_last_kept() -> None:
    model, ids = model_and_ids()
    asked: list[str] = []

    def validate() -> float:
        asked.append("validate")
        return 1.5

    hooks = Hooks(validate=validate, keep_best=lambda: asked.append("keep"))
    reports = list(learn_vectors(model, ids, config(evaluate_every=3), hooks=hooks))
    assert [(r.step, r.steps, r.tokens) for r in reports] == [
        (k, 6, pytest.approx(2000 * k, abs=1000)) for k in range(1, 7)
    ]
    assert reports[-1].tokens == 2 * N
    assert [r.valid for r in reports] == [None, None, 1.5, None, None, 1.5]
    assert [r.is_best for r in reports] == [False] * 5 + [True]
    assert asked == ["validate", "validate", "keep"]
    assert reports[-1].learning_rate == pytest.approx(0.0005)
    assert all(r.tokens_per_second > 0 and r.loss > 0 for r in reports)


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not() -> None:
    model, ids = model_and_ids()
    whole = list(learn_vectors(model, ids, config()))
    wanted = model.vectors.copy()
    saved: list[Checkpoint] = []
    hooks = Hooks(checkpoint=lambda found: saved.append(found.copy()), wants_stop=lambda: True)
    first = list(learn_vectors(model, ids, config(), hooks=hooks))
    assert [r.step for r in first] == [1]
    assert len(saved) == 1
    assert not saved[0].progress["is_stopped"]
    again, _ = model_and_ids()
    last: list[Checkpoint] = []
    rest = list(learn_vectors(again, ids, config(), hooks=Hooks(checkpoint=last.append), resume=saved[0]))
    assert without_clock(first + rest) == without_clock(whole)
    assert np.array_equal(again.vectors, wanted)
    assert last[-1].progress["is_stopped"]
    assert last[-1].step == 6


def test_a_loss_that_is_no_number_stops_with_what_to_do() -> None:
    model, ids = model_and_ids()

    def broken(*_: object, **__: object) -> Any:
        yield Part(1, 6, 10, float("nan"), 0.05, 1.0)

    model.fit = broken  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match=r"the loss became nan in part 1 of 6\. .*learning_rate=0.025"):
        list(learn_vectors(model, ids, config()))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, 21), ({"epochs": 2.0}, 6), ({"epochs": 0.1}, 1), ({"epochs": 1.5}, 4)],
)
def test_budgets_become_parts_of_the_text(
    settings: dict[str, Any], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is asked for, a short text is read more often."""
    model, ids = model_and_ids()
    monkeypatch.setattr("seqwise.training.skip_gram.ENOUGH_TOKENS", 7 * len(ids))
    assert planned_steps(model, ids, config(**{"steps": 0, **settings}))[0] == expected


def test_minutes_become_as_many_parts_as_the_beginning_of_the_text_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = model_and_ids()
    monkeypatch.setattr(
        Word2Vec, "fit", lambda *_, **__: iter([Part(1, 2, 0, 1.0, 0.1, 99.0), Part(2, 2, 0, 1.0, 0.1, 6.0)])
    )
    assert planned_steps(model, ids, config(steps=0, minutes=1.0))[0] == 30  # ten epochs of six seconds, of three parts
    assert planned_steps(model, ids, config(steps=0, minutes=100.0))[0] == 150  # and no more than fifty
    assert planned_steps(model, ids, config(steps=0, minutes=0.001))[0] == 1


def test_trying_leaves_the_model_as_it_was() -> None:
    model, ids = model_and_ids()
    list(learn_vectors(model, ids, config(steps=1)))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert planned_steps(model, ids, config(steps=0, minutes=0.01))[0] >= 1
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_threads_are_workers() -> None:
    assert num_workers(config(threads=3)) == 3
    assert num_workers(config(threads=0)) == torch.get_num_threads()
