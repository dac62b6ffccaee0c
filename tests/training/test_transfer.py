"""From one run to another: what is kept, what starts anew, what is left out, and what is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemas
import torch
from runs_by_hand import prepare

from seqwise.data.schema import LabelSpec, Schema, Target, TokenSpec
from seqwise.errors import ConfigError
from seqwise.models import MODELS
from seqwise.text.symbols import SymbolTokenizer
from seqwise.training.learners import freeze
from seqwise.training.transfer import transfer

TEXT = "the cat sat on the mat and the rat sat on the cat\n" * 30
SMALL = ["model.model_dim=8", "training.context=16", "training.batch_size=4", "training.num_samples=0"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    (folder / "cats.txt").write_text(TEXT)
    prepare(folder / "cats.txt", model="gru", out=folder / "run", steps=4, overrides=SMALL).train()
    return folder / "run"


def of_symbols(num: int, special: dict[str, int] | None = None, head: str = "next_token") -> Schema:
    spec = TokenSpec(SymbolTokenizer(num), special or {})
    return Schema({"tokens": spec}, {"tokens": "tokens"}, {"tokens": Target("tokens", head)})


def build(schema: Schema, **settings: Any) -> Any:
    return MODELS["gru"].build(MODELS["gru"].config(model_dim=8, **settings), schema)


def moved(old: Schema, new: Schema) -> Any:
    before, after = build(old), build(new)
    return before.state_dict(), transfer(before.state_dict(), old, after, new, where="runs/base", changed="")


def test_where_nothing_differs_all_is_kept() -> None:
    schema = of_symbols(6)
    before, found = moved(schema, schema)
    assert (found.started, found.grown, found.left) == ([], [], [])
    assert all(torch.equal(found.weights[name], tensor) for name, tensor in before.items())


def test_new_special_tokens_append_rows() -> None:
    old, new = of_symbols(6), of_symbols(6, {"mask": 6, "separator": 7})
    before, found = moved(old, new)
    assert found.grown == ["body.embedding.weight"]
    table = found.weights["body.embedding.weight"]
    assert table.shape == (8, 8)
    assert torch.equal(table[:6], before["body.embedding.weight"])
    assert [name for name in found.started if name.startswith("head.")] == ["head.tokens.output.weight"]
    assert "kept, with new rows: body.embedding" in list(found.sentences())


def test_a_head_with_other_answers_starts_anew_though_its_shape_is_the_same() -> None:
    old = schemas.of_answers(2, vocab_size=6)
    new = Schema({**old.specs, "label": LabelSpec(["even", "odd"])}, old.inputs, old.targets)
    assert moved(old, old)[1].started == []
    _, found = moved(old, new)
    assert found.started == found.left == ["head.label.output.weight", "head.label.output.bias"]


def test_of_another_task_the_body_is_kept_and_what_is_read_and_asked_for_starts_anew() -> None:
    old, new = schemas.of_numbers(2), of_symbols(6)
    before, found = moved(old, new)
    assert found.kept == [name for name in before if name.startswith("body.stack.")]
    assert all(torch.equal(found.weights[name], before[name]) for name in found.kept)
    assert list(found.sentences())[1:] == [
        "started from scratch: body.embedding, head.tokens",
        "left out: body.embedding (2 tensors), head.values (2 tensors)",
    ]
    again = transfer(before, old, build(new), new, where="runs/base", changed="model.dropout = 0.5")
    assert again.started == found.started  # no setting is to blame for what the data asks for


def test_a_setting_that_changes_the_body_is_refused() -> None:
    schema = of_symbols(6)
    small, large = build(schema, num_layers=1), build(schema, num_layers=2)
    for before, after, layers in ((small, large, 2), (large, small, 1)):
        changed = f"model.num_layers = {layers}"
        with pytest.raises(ConfigError, match=rf"^runs/base has other weights than {changed} asks for; drop that"):
            transfer(before.state_dict(), schema, after, schema, where="runs/base", changed=changed)


def test_the_same_answers_asked_for_in_another_way_have_a_new_head() -> None:
    old, other = of_symbols(6), of_symbols(6, head="masked_token")
    model = build(old)
    found = transfer(model.state_dict(), old, model, other, where="runs/base", changed="")
    assert found.started == ["head.tokens.output.weight"]


def test_a_body_of_another_size_is_refused() -> None:
    old, new = of_symbols(6), of_symbols(4)
    with pytest.raises(ConfigError, match=r"runs/base has weights of other shapes than this data asks for: body"):
        moved(old, new)


def test_the_same_task_goes_on_with_all_weights(base: Path, tmp_path: Path) -> None:
    said: list[str] = []
    session = prepare(
        base.parent / "cats.txt", model="gru", out=tmp_path / "run", steps=1, start_from=base, tell=said.append,
        overrides=["training.batch_size=4"],
    )  # fmt: skip
    model = session.run.build_model()
    assert session.run.load_initial_weights(model)
    before = session.run.open(base).load_model().state_dict()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(sentence.startswith(("kept", "started")) for sentence in said)
    assert session.run.config.model.model_dim == 8
    assert session.run.config.training.context == 16


def test_a_setting_that_does_not_fit_the_base_is_named(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has weights of other shapes than model\.model_dim = 12"):
        prepare(
            base.parent / "cats.txt", model="gru", out=tmp_path / "run", steps=1, start_from=base,
            overrides=["model.model_dim=12"],
        )  # fmt: skip
    assert not (tmp_path / "run").exists()


def test_what_is_frozen_stays_and_the_rest_learns(base: Path, tmp_path: Path) -> None:
    overrides = [*SMALL, "training.freeze=['body.embedding*', 'body.stack.*']"]
    session = prepare(base.parent / "cats.txt", model="gru", out=tmp_path / "run", steps=3, overrides=overrides)
    torch.manual_seed(session.run.config.training.seed)
    start = session.run.build_model().state_dict()
    session.train()
    end = session.run.load_model().state_dict()
    assert all(torch.equal(start[name], tensor) for name, tensor in end.items() if name.startswith("body."))
    assert not torch.equal(start["head.tokens.output.weight"], end["head.tokens.output.weight"])


def test_a_pattern_that_names_nothing_or_everything_is_refused(base: Path, tmp_path: Path) -> None:
    model = build(of_symbols(6))
    with pytest.raises(ConfigError, match=r'"boby\.\*" is the name of no weight\. They begin with body\.embedding, '):
        freeze(model, ["boby.*"])
    with pytest.raises(ConfigError, match="leaves nothing to train"):
        freeze(model, ["*"])
    for wrong in ("boby.*", "*"):
        overrides = [*SMALL, f"training.freeze=['{wrong}']"]
        with pytest.raises(ConfigError, match=r"training\.freeze"):
            prepare(base.parent / "cats.txt", model="gru", out=tmp_path / "run", steps=3, overrides=overrides)
    assert not (tmp_path / "run").exists()
