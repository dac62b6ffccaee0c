"""seqwise ask, and runs on drawn scenes: what is answered, and what is told where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import seqwise
from seqwise.cli import app
from seqwise.data import scene_questions
from seqwise.data.scenes import ScenePictures
from seqwise.errors import ConfigError, DataError

Image = pytest.importorskip("PIL.Image", reason="pictures are written with Pillow")
TINY = [
    "model.model_dim=16",
    "model.num_heads=2",
    "model.num_layers=2",
    "model.cross_layers=1",
    "training.batch_size=8",
]
EYES = ["model.widths=[8, 8]"]


def train(world: Path, data: str, **asked: Any) -> Path:
    out = world / asked.pop("name", data)
    overrides = [*TINY, *(EYES if data == "scenes" else []), *asked.pop("overrides", [])]
    seqwise.train(data, "crossmodal", out=out, steps=2, overrides=overrides, **asked)
    return out


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("asked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scene_questions, "SCENES", {"train": 12, "valid": 3, "test": 3})
        train(folder, "scenes")
        Image.fromarray(ScenePictures().read("test/1")).save(folder / "scene.png")
        (folder / "notes.png").write_text("no picture\n")
        yield folder


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_each_question_gets_its_most_probable_answers(world: Path) -> None:
    asked = ["what color is the circle?", "how many crosses are there?"]
    shown = run("ask", world / "scenes", world / "scene.png", *asked, "--num", "2")
    assert shown.exit_code == 0, shown.output
    assert [line for line in shown.stdout.splitlines() if line in asked] == asked
    assert len(shown.stdout.splitlines()) == 6
    told = run("ask", world / "scenes", world / "scene.png", asked[0], "--json")
    (found,) = json.loads(told.stdout)["results"] if "results" in told.stdout else [json.loads(told.stdout)]
    probabilities = list(found["answers"].values())
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) <= 1


@pytest.mark.parametrize(
    ("image", "question", "message"),
    [
        ("nowhere.png", "what?", "no such file"),
        ("notes.png", "what?", "no picture that can be read"),
        ("scene.png", " ", "a question is asked of a picture"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_sentence(world: Path, image: str, question: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        seqwise.load(world / "scenes").ask(world / image, [question])


def test_choices_and_pretraining_run_from_end_to_end_and_lend_their_body(world: Path) -> None:
    told: list[str] = []
    choices = seqwise.load(train(world, "scenes-choices", overrides=["model.shape=three-encoders"]))
    assert 0 <= choices.evaluate().accuracy <= 1
    base = train(world, "scenes-captions", overrides=["model.shape=two-streams"])
    score = seqwise.load(base).evaluate()
    assert score.ranks.shape == (2, 3)
    assert set(score.to_dict()) >= {"match_accuracy", "region_error", "picture_recall_1", "sentence_recall_1"}
    train(world, "scenes-regions", name="after", start_from=base, tell=told.append)
    (kept,) = [line for line in told if line.startswith("kept:")]
    assert "body.words" in kept and "body.shape" in kept and "body.regions" in kept  # noqa: PT018
    with pytest.raises(ConfigError, match="answers no questions on pictures"):
        seqwise.load(base).ask(world / "scene.png", ["what?"])


def test_the_words_start_from_a_bert_and_the_rest_anew(world: Path) -> None:
    parts, _, _ = scene_questions.scene_rows("scenes-regions", sizes={"train": 40})
    (world / "asked.txt").write_text("\n".join(row.texts[0] for row in parts["train"]) + "\n")
    small = ["data.next_sentence=false", "model.model_dim=16", "model.num_heads=2", "model.num_layers=2"]
    bert = world / "bert"
    seqwise.train(world / "asked.txt", "bert", task="masked", out=bert, steps=2, overrides=small)
    told: list[str] = []
    out = world / "from-bert"
    seqwise.train(
        "scenes-regions", "crossmodal", out=out, steps=1, start_from=bert, tell=told.append,
        overrides=["model.cross_layers=1", "model.shape=two-streams", "training.learning_rate=1e-9"],
    )  # fmt: skip
    assert any(line.startswith("kept: body.words") for line in told)
    assert any(line.startswith("started from scratch: body.regions") for line in told)
    before, after = (seqwise.load(path).run.load_model().state_dict() for path in (bert, out))
    for name in ("embedding.weight", "blocks.1.attention.qkv.weight"):
        assert np.allclose(before[f"body.{name}"], after[f"body.words.{name}"], atol=1e-6)
