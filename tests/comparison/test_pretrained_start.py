"""A comparison with a pretrained encoder: tuned beside rows from scratch, and no part in what cannot be ranked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from comparison.in_process import Here
from comparison.test_label_curves import reviews
from runs_by_hand import at_most

import seqwise
from seqwise.comparison import compare as module
from seqwise.comparison import plan, verdict
from seqwise.comparison.compare import run_comparison
from seqwise.comparison.entrants import choose_models, not_ranked
from seqwise.comparison.request import ComparisonRequest
from seqwise.errors import ConfigError
from seqwise.run import Run
from seqwise.training import planning
from seqwise.training.sizing import answer


class Listening:
    def __init__(self) -> None:
        self.told: list[str] = []

    def tell(self, sentence: str) -> None:
        self.told.append(sentence)

    def begin(self, what: str, trials: Sequence[str]) -> None: ...
    def progress(self, trial: str, line: dict[str, Any]) -> None: ...
    def end(self, trial: str, sentence: str) -> None: ...


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Reviews, and a small encoder of their words; jobs in this process, one core."""
    made = tmp_path_factory.mktemp("pretrained")
    (made / "reviews.csv").write_text(reviews(160), encoding="utf-8")
    texts = [line.rpartition(",")[0] for line in reviews(160).splitlines()[1:]]
    (made / "words.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQWISE_CACHE", str(made / "cache"))
        patch.setattr(os, "sched_getaffinity", lambda _: {0})
        patch.setattr(plan, "PLANNED_UPDATES", 0)  # nobody is left out, however slow this machine is
        patch.setattr(plan, "MIN_SECONDS", 0.0)
        patch.setattr(plan, "STILL_IMPROVING", 2.0)  # no finals
        patch.setattr(planning, "MIN_STEPS", 5)
        patch.setattr(answer, "TEXT_EPOCHS", 3)
        patch.setitem(answer.TEXT_SIZES, "bert", {"num_layers": 1, "model_dim": 16, "num_heads": 2})
        patch.setattr(module, "MAX_TIMING", 10.0)
        patch.setattr(verdict, "MIN_UPDATES", 0)
        patch.setattr(module, "ForkServer", Here)
        small = ["model.model_dim=8", "model.num_layers=1", "model.num_heads=2", "model.context=24"]
        small += ["training.context=24", "data.next_sentence=false"]
        seqwise.train(made / "words.txt", "bert", tokenizer="word", out=made / "encoder", steps=5, overrides=small)
        yield made


def test_a_tuned_encoder_stands_beside_one_from_scratch(world: Path) -> None:
    path = world / "compared"
    with at_most(120):
        found = seqwise.compare(
            world / "reviews.csv", models=["bert", "ngram-bag"], start_from=world / "encoder", minutes=0.8, out=path,
            seeds=1,
        )  # fmt: skip
    done = {entry.name: entry.status for entry in found.ladder}
    assert done == {"ngram-bag": "done", "bert": "done", "bert-from-encoder": "done"}
    assert found.entry("bert-from-encoder").start_from == str((world / "encoder").resolve())
    tuned, scratch = (
        Run.open(next(path.glob(f"**/{name}/config.toml")).parent).config for name in ("bert-from-encoder", "bert")
    )
    assert (tuned.model.model_dim, tuned.training.learning_rate) == (8, 5e-4)  # by the rule of fine-tuning
    assert (scratch.model.model_dim, scratch.training.learning_rate) == (16, 2e-3)
    assert "bert-from-encoder" in (path / "report.html").read_text(encoding="utf-8")


def test_choices_are_compared_by_how_many_are_right(world: Path) -> None:
    rows = [{"question": f"what {n}", "choices": ["a cup", "a cat", "a pen"][: 2 + n % 2]} for n in range(80)]
    lines = [json.dumps({**row, "answer": "B"}) for row in rows]
    (world / "alive.jsonl").write_text("\n".join(lines) + "\n")
    with at_most(120):
        found = seqwise.compare(world / "alive.jsonl", models=["bert"], minutes=0.4, out=world / "choices", seeds=1)
    assert [(entry.name, entry.status) for entry in found.ladder] == [("bert", "done")]
    assert found.kind == "choice"
    assert all(" | a cup | a cat" in text and wanted == "2" for _, text, wanted in found.examples)
    assert "bert" in (world / "choices" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("task", ["label", "tags", "choice"])
def test_an_encoder_from_scratch_takes_part_where_there_are_answers(task: str) -> None:
    assert "bert" in choose_models(None, task)
    assert not_ranked(task) == {}


def test_raw_text_leaves_the_encoder_out_and_says_why(world: Path) -> None:
    assert list(not_ranked("text")) == ["bert"]
    settings = ComparisonRequest(world / "words.txt", models=["ngram"], minutes=0.3, seeds=1).settings()
    watch = Listening()
    with at_most(120):
        run_comparison(world / "text", settings, watch=watch)
    (sentence,) = [line for line in watch.told if line.startswith("bert is left out: ")]
    assert "(pseudo-perplexity) is no likelihood" in sentence
    with pytest.raises(ConfigError, match=r"^bert takes no part in comparisons of text: .*pseudo-perplexity"):
        choose_models(["ngram", "bert"], "text")
