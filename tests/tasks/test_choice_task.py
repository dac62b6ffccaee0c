"""Questions with choices from file to answer: brute force for the head, and a whole run by the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqwise
from seqwise.data.batch import Choices
from seqwise.errors import ConfigError, DataError
from seqwise.evaluation.choices import ChoiceScore
from seqwise.layers.choice_head import ChoiceHead
from seqwise.layers.heads import Pooling
from seqwise.layers.stream import Stream

ALIVE, THINGS = ["cat", "dog", "cow", "fox"], ["cup", "hat", "pen", "map", "box"]


def head_and_rows() -> tuple[ChoiceHead, Stream, Choices]:
    torch.manual_seed(0)
    head = ChoiceHead(Pooling("mean", 5), 4)
    torch.nn.init.normal_(head.output.weight)
    groups = torch.tensor([7, 7, 7, 2, 2, 9, 9, 9, 9])
    is_right = torch.tensor([0, 1, 0, 1, 0, 0, 0, 0, 0]).bool()
    return head, Stream(torch.randn(9, 3, 5)), Choices(is_right, groups)


def test_choices_of_a_group_share_their_probability() -> None:
    head, stream, wanted = head_and_rows()
    scores = head.output(stream.hidden.mean(dim=1)).squeeze(1)
    expected = [scores[rows].log_softmax(dim=0) for rows in (slice(0, 3), slice(3, 5), slice(5, 9))]
    found = head.score(stream, wanted)
    torch.testing.assert_close(found[:2, 0], torch.stack([expected[0][1], expected[1][0]]))
    assert found[2, 0] == -torch.inf  # nothing is known to be right
    predicted = head.predict(stream, wanted)
    assert predicted.log_probs is not None
    for group, log_probs in enumerate(expected):
        torch.testing.assert_close(predicted.log_probs[group, : len(log_probs)], log_probs)
        assert torch.isneginf(predicted.log_probs[group, len(log_probs) :]).all()
        assert int(predicted.answers[group]) == int(log_probs.argmax())


def test_a_score_tells_what_guessing_would_reach() -> None:
    log_probs = np.array([[np.log(0.7), np.log(0.3), -np.inf], np.log([0.2, 0.3, 0.5])])
    score = ChoiceScore(np.array([0, 1]), np.array([0, 2]), log_probs, ["1", "2", "3"], "s")
    assert (score.accuracy, score.chance) == (0.5, pytest.approx((1 / 2 + 1 / 3) / 2))
    assert "50.00 % right" in score.headline()
    assert score.headline().endswith("by guessing 41.67 %")
    assert score.to_dict()["accuracy"] == 0.5


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("choices"), random.Random(1)
    with (folder / "alive.jsonl").open("w") as file:
        for number in range(240):
            right = chance.randrange(3)
            choices = chance.sample(THINGS, 2)
            choices.insert(right, chance.choice(ALIVE))
            row = {"question": f"which is alive {number}", "choices": choices, "answer": "ABC"[right]}
            file.write(json.dumps(row) + "\n")
    settings = ["model.model_dim=16", "model.num_layers=1", "model.num_heads=2", "training.batch_size=16"]
    seqwise.train(folder / "alive.jsonl", "bert", out=folder / "run", steps=60, overrides=settings)
    return folder


def test_it_is_learned_judged_and_answered(world: Path, terminal: Any) -> None:
    run = seqwise.load(world / "run")
    assert run.run.config.task == "choice"
    assert run.evaluate().accuracy > 0.9
    (world / "new.jsonl").write_text('{"question": "which is alive", "choices": ["pen", "cow", "box"]}\n')
    out, _ = terminal.done("predict", world / "run", world / "new.jsonl")
    said, *probable = out.strip().split("\t")
    assert said == "cow"
    assert sum(map(float, probable)) == pytest.approx(1, abs=1e-3)
    assert float(probable[1]) == max(map(float, probable))
    (found,) = json.loads(terminal.done("predict", world / "run", world / "new.jsonl", "--json")[0])["results"]
    assert (found["choice"], found["number"]) == ("cow", 2)
    (answer,) = run.answer_texts([("which is alive", "hat", "fox")])
    assert answer["choice"] == "fox"
    assert "by guessing 33.33 %" in terminal.done("evaluate", world / "run")[0]
    assert terminal.done("check", world / "run")[0].count("kept") == 5


def test_it_is_looked_at(world: Path, terminal: Any) -> None:
    question = "which is alive\thatstand\tdog\tpen"
    terminal.done("inspect", world / "run", "--text", question, "--out", world / "page.html")
    page = (world / "page.html").read_text(encoding="utf-8")
    assert "dog" in page
    assert terminal.done("inspect", world / "run", "--row", "2", "--out", world / "row.html")[1]
    told = terminal.refuses("inspect", world / "run", "--text", "which is alive", "--out", world / "x.html")
    assert "at least two choices" in told


def test_data_is_checked_before_training(world: Path, terminal: Any) -> None:
    out, _ = terminal.done("data", "check", world / "alive.jsonl")
    assert "240 questions with 3 choices each" in out


def test_questions_without_choices_are_refused(world: Path, tmp_path: Path) -> None:
    run = seqwise.load(world / "run")
    with pytest.raises(ConfigError, match="at least two choices"):
        run.answer_texts([("which is alive", "hat")])
    (tmp_path / "more.jsonl").write_text('{"question": "which", "choices": ["a", "b", "c", "d"], "answer": "A"}\n' * 3)
    with pytest.raises(DataError, match=r"more\.jsonl has a question with 4 choices, and the model was made for 3"):
        run.evaluate(tmp_path / "more.jsonl")


def test_a_body_that_has_learned_is_tuned_for_choices(world: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("which is alive the cat the dog\n\na box a pen the hat\n\n" * 30)
    settings = ["model.model_dim=16", "model.num_layers=1", "model.num_heads=2", "data.next_sentence=false"]
    seqwise.train(tmp_path / "text.txt", "bert", out=tmp_path / "base", steps=2, tokenizer="word", overrides=settings)
    run = seqwise.train(
        world / "alive.jsonl", "bert", out=tmp_path / "run", start_from=tmp_path / "base", steps=2,
        overrides=["model.adapter=lora"],
    )  # fmt: skip
    assert run.run.config.training.start == str(tmp_path / "base")
    assert (tmp_path / "run" / "adapter_model.safetensors").exists()
    assert 0 <= run.evaluate().accuracy <= 1
