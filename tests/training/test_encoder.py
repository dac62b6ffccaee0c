"""Eyes of others: copied whole, frozen or tuned, each picture seen once; what is learned from is changed by step."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import seqwise
from seqwise.data.seen_store import Pixels, Views
from seqwise.errors import ConfigError, DataError
from seqwise.models.eyes import eyes_of
from seqwise.run import Run
from seqwise.training.preparing import prepare, resume
from seqwise.training.request import Request

OWN = ["model.widths=[4, 6, 8]", "training.batch_size=16", "training.optimizer=adamw"]
FAST = ["training.batch_size=16", "training.optimizer=adamw"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each digit, of 200 in all."""
    folder = tmp_path_factory.mktemp("pictures") / "digits"
    found = load_digits()
    for number, (picture, digit) in enumerate(zip(found.images[:200], found.target[:200], strict=True)):
        (folder / str(digit)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.round(picture * 255 / 16).astype(np.uint8)).save(folder / str(digit) / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def looking(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("looking") / "run"
    seqwise.train(digits, "conv", out=out, steps=3, overrides=OWN)
    return out


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    model = Run.open(run).load_model()
    found = eyes_of(model)
    assert found is not None
    return dict(found[1].network.state_dict())


@pytest.mark.parametrize("family", ["conv", "bert"])
def test_eyes_are_copied_stay_as_they_are_and_the_run_stands_alone(
    family: str, digits: Path, looking: Path, tmp_path: Path
) -> None:
    other = tmp_path / "moved"
    shutil.copytree(looking, other)
    small = ["model.num_layers=1", "model.model_dim=16"] if family == "bert" else []
    told: list[str] = []
    run = seqwise.train(
        digits,
        family,
        out=tmp_path / "run",
        steps=3,
        overrides=[f"model.encoder={other}", *FAST, *small],
        tell=told.append,
    )
    before, after = weights_of(other), weights_of(tmp_path / "run")
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert before.keys() == after.keys()
    assert any("which stay as they are" in sentence for sentence in told)
    shutil.rmtree(other)
    assert run.evaluate().accuracy == seqwise.load(tmp_path / "run").evaluate().accuracy


def test_eyes_that_are_tuned_learn_on(digits: Path, looking: Path, tmp_path: Path) -> None:
    asked = [f"model.encoder={looking}", "model.encoder_tuned=true", *FAST]
    seqwise.train(digits, "conv", out=tmp_path / "run", steps=3, overrides=asked)
    before, after = weights_of(looking), weights_of(tmp_path / "run")
    assert not all(torch.equal(before[name], after[name]) for name in before)


def prepared(digits: Path, out: Path, *overrides: str) -> Any:
    return prepare(Request.of(digits, model="conv", out=out, steps=4, overrides=[*FAST, *overrides]))


def test_each_picture_is_seen_once_and_as_it_would_be_seen_again(
    digits: Path, looking: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    session = prepared(digits, tmp_path / "run", f"model.encoder={looking}")
    views, plain = session.stores["train"], session.task.stores(session.data, session.run.schema)["train"]
    assert isinstance(views.pictures, Views)
    assert isinstance(plain.pictures, Pixels)
    files = sorted((tmp_path / "cache" / "views").iterdir())
    assert len(files) == len(session.stores)
    model = session.run.build_model()
    session.run.load_initial_weights(model)
    chosen = np.array([3, 0, 5])
    seen, again = views.batch(chosen).inputs["image"], model.body.eyes(plain.batch(chosen).inputs["image"])
    torch.testing.assert_close(seen.features, again.features, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(seen.boxes, again.boxes)
    made = [file.stat().st_mtime_ns for file in files]
    prepared(digits, tmp_path / "second", f"model.encoder={looking}")
    assert [file.stat().st_mtime_ns for file in files] == made
    assert sorted((tmp_path / "cache" / "views").iterdir()) == files


@pytest.mark.parametrize("encoder", [False, True])
def test_a_run_that_was_stopped_goes_on_to_the_bit(
    digits: Path, looking: Path, tmp_path: Path, *, encoder: bool
) -> None:
    """What pictures are changed to follows from the seed and the step."""
    asked = [f"model.encoder={looking}"] if encoder else [*OWN[:1], "training.flip=true", "training.shift=1"]
    asked += ["training.cutout=2", "training.checkpoint_seconds=0", "training.threads=1"]
    whole, stopped = prepared(digits, tmp_path / "whole", *asked), prepared(digits, tmp_path / "stopped", *asked)
    whole.train()
    reports: list[Any] = []
    stopped.train(reports.append, wants_stop=lambda: len(reports) >= 1)
    assert stopped.is_interrupted
    resume(tmp_path / "stopped").train()
    first, second = (Run.open(tmp_path / name).load_model().state_dict() for name in ("whole", "stopped"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_augmentation_changes_what_is_learned_from_and_nothing_else(digits: Path, tmp_path: Path) -> None:
    plain = prepared(digits, tmp_path / "plain", *OWN[:1])
    changed = prepared(digits, tmp_path / "changed", *OWN[:1], "training.flip=true", "training.shift=2")
    first, second = (
        one.goal.batches(one.stores["train"], None, one.run.config.training).batch(0) for one in (plain, changed)
    )
    assert torch.equal(first.targets["label"].ids, second.targets["label"].ids)
    assert not torch.equal(first.inputs["image"].pixels, second.inputs["image"].pixels)
    assert torch.equal(*(one.stores["valid"].batch(slice(0, 9)).inputs["image"].pixels for one in (plain, changed)))


def test_what_has_no_eyes_is_refused(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "w.pth").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"w\.pth: it holds more than tensors, or is damaged"):
        prepared(digits, tmp_path / "run", f"model.encoder={tmp_path / 'w.pth'}")
    with pytest.raises(ConfigError, match="encoder_stride = 5"):
        prepared(digits, tmp_path / "run", "model.encoder_stride=5")
    seqwise.train("adding", "gru", out=tmp_path / "adding", steps=1, overrides=["model.model_dim=4"])
    with pytest.raises(ConfigError, match="a run of gru on label, which has no eyes to take over"):
        prepared(digits, tmp_path / "run", f"model.encoder={tmp_path / 'adding'}")
    assert not (tmp_path / "run").exists()


def test_a_transformer_of_patches_lends_what_it_makes_of_each(digits: Path, tmp_path: Path) -> None:
    small = ["model.num_layers=1", "model.model_dim=16", "model.patch_size=4"]
    seqwise.train(digits, "bert", out=tmp_path / "patches", steps=2, overrides=[*FAST, *small])
    run = seqwise.train(
        digits, "conv", out=tmp_path / "run", steps=2, overrides=[f"model.encoder={tmp_path / 'patches'}", *FAST]
    )
    images = run.unseen_store().batch(slice(0, 3)).inputs
    lender = Run.open(tmp_path / "patches").load_model()
    with torch.no_grad():
        wanted = lender.body.encode(images).stream.hidden[:, 1:]
        torch.testing.assert_close(run.model.body.eyes(images["image"]).features, wanted, atol=1e-5, rtol=1e-5)
    eyes, weights = run.model.body.eyes, list(run.model.body.eyes.parameters())
    assert eyes.is_frozen
    assert not any(weight.requires_grad for weight in weights)


def test_what_starts_from_a_run_keeps_its_body_and_answers_anew(digits: Path, looking: Path, tmp_path: Path) -> None:
    """--from: digits that are even or odd, by the body that told digits apart."""
    other = tmp_path / "even"
    for folder in digits.iterdir():
        shutil.copytree(folder, other / ("odd" if int(folder.name) % 2 else "even"), dirs_exist_ok=True)
    told: list[str] = []
    run = seqwise.train(
        other, "conv", out=tmp_path / "run", steps=1, start_from=looking, overrides=FAST, tell=told.append
    )
    assert any("started from scratch: head.label" in sentence for sentence in told)
    before = Run.open(looking).load_model().state_dict()
    initial = Run.open(tmp_path / "run")
    model = initial.build_model()
    initial.load_initial_weights(model)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items() if name[:5] == "body.")
    assert run.model.head.label.output.weight.shape[0] == 2
