"""One body, several targets: each has its head, its named term and its weight."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seqwise.data.batch import Batch, Labels, Tokens, Values
from seqwise.data.schema import LABEL, NEXT_TOKEN, NUMBER, LabelSpec, NumberSpec, Schema, Target, TokenSpec
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.settings import TrainingConfig
from seqwise.text.symbols import SymbolTokenizer
from seqwise.training.loop import train

SPECS: dict[str, Any] = {
    "tokens": TokenSpec(SymbolTokenizer(5)),
    "label": LabelSpec(["a", "b", "c"]),
    "number": NumberSpec(),
}
TWO = Schema(SPECS, {"tokens": "tokens"}, {"label": Target("label", LABEL), "number": Target("number", NUMBER, 0.5)})


class Rows:
    steps_per_epoch = 3

    def batch(self, step: int, model: object = None) -> Batch:
        chance = torch.Generator().manual_seed(step)
        ids = torch.randint(5, (4, 6), generator=chance)
        number = ids.float().mean(dim=1)
        return Batch(
            {"tokens": Tokens(ids)},
            {"label": Labels(ids[:, 0] % 3), "number": Values(number.view(-1, 1, 1))},
        )


def build(schema: Schema = TWO, name: str = "gru", **settings: Any) -> Any:
    torch.manual_seed(0)
    row = MODELS[name]
    return row.build(row.config(model_dim=8, **settings), schema)


def only(batch: Batch, name: str) -> Batch:
    return Batch(batch.inputs, {name: batch.targets[name]})


@pytest.fixture
def model() -> Any:
    made = build()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def test_the_objective_is_the_weighted_sum_of_its_terms(model: Any) -> None:
    batch = Rows().batch(0)
    loss = model.loss(batch)
    assert list(loss.terms) == ["label", "number"]
    apart = {name: -model.score(only(batch, name))[0].mean() for name in loss.terms}
    expected = apart["label"] + 0.5 * apart["number"]
    assert torch.isclose(loss.over(batch.counts()), expected)


def test_the_first_target_is_what_a_model_is_judged_by(model: Any) -> None:
    batch = Rows().batch(0)
    assert torch.equal(model.score(batch)[0], model.score(only(batch, "label"))[0])
    assert model.predict(batch).log_probs.shape == (4, 3)
    assert model.predict(batch, "number").log_probs is None


def test_each_head_has_weights_of_its_own_name(model: Any) -> None:
    assert {name.split(".")[1] for name in model.state_dict() if name.startswith("head.")} == {"label", "number"}


def test_reports_show_each_term() -> None:
    config = TrainingConfig(steps=30, report_every=10, batch_size=4, learning_rate=0.01, micro_batches=2)
    reports = list(train(build(), Rows(), config))
    assert all(report.terms is not None and set(report.terms) == {"label", "number"} for report in reports)
    first, last = reports[0], reports[-1]
    assert first.terms is not None
    assert last.terms is not None
    assert first.loss == pytest.approx(first.terms["label"] + 0.5 * first.terms["number"], rel=1e-5)
    assert last.terms["label"] < first.terms["label"]
    assert first.tokens == 10 * 4 * 6  # what was read, not the sum over targets
    assert "terms" in first.to_dict()


def test_one_term_is_not_listed() -> None:
    schema = Schema(SPECS, {"tokens": "tokens"}, {"label": Target("label", LABEL)})

    class One(Rows):
        def batch(self, step: int, model: object = None) -> Batch:
            return only(super().batch(step), "label")

    report = next(iter(train(build(schema), One(), TrainingConfig(steps=2, batch_size=4))))
    assert report.terms is None
    assert "terms" not in report.to_dict()


def test_who_predicts_the_next_token_too_may_not_see_the_future() -> None:
    both = Schema(
        SPECS, {"tokens": "tokens"}, {"tokens": Target("tokens", NEXT_TOKEN), "label": Target("label", LABEL)}
    )
    assert build(both).continues
    with pytest.raises(ConfigError, match=r"model\.bidirectional reads what is to be predicted"):
        build(both, bidirectional=True)
