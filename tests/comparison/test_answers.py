"""What the jobs of a comparison write of labels and tags, from data to page, in this process; and before the first fork
everything is loaded without a thread that a child would wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqwise.comparison import jobs
from seqwise.comparison.aggregate import aggregate
from seqwise.comparison.answers import MAX_EXAMPLES, answers_to_show, rows_to_show, wrong_tags
from seqwise.comparison.page import write_page
from seqwise.comparison.plan import MIN_SCORED, ladder
from seqwise.comparison.request import ComparisonRequest
from seqwise.comparison.table import write_markdown
from seqwise.comparison.workspace import Workspace
from seqwise.evaluation.answers import LabelScore, LabelSetScore, NumberScore
from seqwise.evaluation.entities import TagScore
from seqwise.models.ngram_family import METHODS
from seqwise.training.preparing import prepare
from seqwise.training.request import Request

WORDS = ["the", "film", "is", "long", "and", "quiet", "so", "it", "was", "here"]


def write_reviews(path: Path, num: int = 300) -> Path:
    """What is good says so, but for one in ten."""
    random = np.random.default_rng(0)
    lines = ["text\tlabel"]
    for place in range(num):
        is_good = place % 3 > 0
        word = "fine" if is_good == (random.random() < 0.9) else "dull"
        lines.append(
            " ".join(random.permutation([word, *random.choice(WORDS, 6)])) + f"\t{'good' if is_good else 'bad'}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def write_flights(path: Path, num: int = 60) -> Path:
    cities, lines = ["boston", "denver", "oslo", "rome"], []
    for place in range(num):
        first, second = cities[place % 4], cities[(place // 4) % 4]
        lines += [f"from O\n{first} B-city\nto O\n{second} B-city\nplease O\n"]
    path.write_text("\n".join(lines) + "\n")
    return path


def never() -> bool:
    return False


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Does the jobs of a comparison one after the other, in a few steps each; returns the folder."""

    def in_steps(request: Request, **options: Any) -> Any:
        steps = None if request.model in ("ngram", "hmm") else 30
        return prepare(replace(request, minutes=None, steps=steps), **options)

    monkeypatch.setattr(jobs, "prepare", in_steps)
    monkeypatch.setattr(jobs, "MAX_OVERRUN", 1e9)

    def run(source: Path, **options: Any) -> Workspace:
        threads, folder = torch.get_num_threads(), Workspace(tmp_path / "comparison")
        settings = ComparisonRequest(source, minutes=0.2, **options).settings()
        folder.create(settings)
        jobs.prepare_data(folder.path, "data", never)
        amounts = {"valid_amount": 2000, "scored_amount": 2000, "measuring_seconds": 60.0, "left_out": {}}
        folder.save_plan(ladder(settings, 0.0).trials, threads=1, **amounts)
        jobs.score_baseline(folder.path, "2000", never)
        for trial in folder.trials:
            assert not jobs.time_trial(folder.path, trial.name, never)
            assert not jobs.train_trial(folder.path, trial.name, never)
            assert not jobs.score_trial(folder.path, trial.name, never)
        torch.set_num_threads(threads)
        folder.save_clock(1.0, is_complete=True)
        return folder

    return run


def test_labelled_text_is_compared_from_file_to_page(compared: Any, tmp_path: Path) -> None:
    folder = compared(write_reviews(tmp_path / "reviews.tsv"), models=["ngram", "hmm", "window"])
    found = aggregate(folder)
    bag = found.entry("ngram-bag")
    assert {entry.name for entry in found.ladder} == {trial.name for trial in folder.trials}
    assert (found.kind, bag.family) == ("label", "ngram")
    assert bag.more["accuracy"] > 0.8
    assert [label for label, *_ in bag.by_label] == ["good", "bad"]
    counts = np.array(bag.confusion["counts"])
    assert counts.sum() == found.data["parts"]["test"] == sum(num for _, _, num in bag.reliability)
    assert counts.trace() / counts.sum() == pytest.approx(bag.more["accuracy"])
    assert {row for row, *_ in bag.answers} == {row for row, *_ in found.examples}
    said = {row: answer for row, answer, _, _ in bag.answers}
    assert np.mean([said[row] == wanted for row, _, wanted in found.examples]) == pytest.approx(bag.more["accuracy"])
    assert all(0 <= right <= 1 and 0.5 <= sure <= 1 for _, _, sure, right in bag.answers)
    assert found.baseline["name"] == "the most frequent label"
    assert found.baseline["value"] > 2 * found.baseline["simple"]["value"]
    page, markdown = write_page(found), write_markdown(found)
    told = "Without learning, by the most frequent label, one gets 0.3333 on validation; a bag of words gets 0."
    assert told in page
    assert told in markdown
    for anchor in ("by-label", "confusion", "reliability", "hardest"):
        assert f'<section id="{anchor}"' in page


def test_tagged_words_are_compared_from_file_to_page(compared: Any, tmp_path: Path) -> None:
    folder = compared(write_flights(tmp_path / "flights.conll"), models=["hmm", "window"], task="tags")
    found = aggregate(folder)
    assert found.entry("hmm").more["f1"] > 0.9  # words tell it all
    entry = found.entry("window")
    assert [row for row, *_ in entry.by_label] == ["city"]
    tagged = {row: (words, tags) for row, words, tags in found.tagged}
    wrong = sum(len(places) for _, places in entry.wrong_tags)
    words = sum(len(words) for words, _ in tagged.values())
    assert 1 - wrong / words == pytest.approx(entry.more["accuracy"])
    for row, places in entry.wrong_tags:
        assert all(tagged[row][1][place] != said for place, said in places)
    assert found.baseline == {"name": "the most frequent tag of each word", "value": 1.0}
    assert '<section id="by-label"' in write_page(found)


def test_who_can_only_count_texts_takes_no_part_in_other_examples(tmp_path: Path) -> None:
    folder = Workspace(tmp_path / "comparison")
    folder.create(ComparisonRequest("parity:8", minutes=0.2, models=["ngram", "rnn"]).settings())
    jobs.prepare_data(folder.path, "data", never)
    prepared = folder.read("prepared.json")
    assert prepared["unfit"] == [f"ngram-{method}" for method in METHODS]
    assert "examples" not in prepared


@pytest.mark.parametrize("num", [0, 1, 7, MAX_EXAMPLES, MAX_EXAMPLES + 1, MIN_SCORED, 10 * MIN_SCORED])
def test_rows_to_show_are_spread_over_those_that_everybody_is_scored_on(num: int) -> None:
    rows = rows_to_show(num).tolist()
    assert len(rows) == len(set(rows)) == min(num, MAX_EXAMPLES)
    assert rows == sorted(rows)
    if num:
        assert (rows[0], rows[-1]) == (0, min(num, MIN_SCORED) - 1)


def test_what_was_said_of_each_row_stands_beside_how_probable_the_right_answer_was() -> None:
    log_probs = np.log([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]])
    label = LabelScore(np.array([0, 1, -1]), np.array([0, 2, 1]), log_probs, ["a", "b", "c"], "")
    assert [(row, said) for row, said, _, _ in answers_to_show(label)] == [(0, "a"), (1, "c"), (2, "b")]
    sure, right = (np.array([one[place] for one in answers_to_show(label)]) for place in (2, 3))
    assert sure == pytest.approx([0.7, 0.6, 0.5])
    assert right == pytest.approx([0.7, 0.3, 0.0])  # nobody can know the last
    is_right = np.array([[True, True], [False, False]])
    several = LabelSetScore(is_right, is_right, np.array([0.0, np.log(2)]), ["x", "y"], "")
    assert answers_to_show(several) == [(0, "x|y", 0.0, 1.0), (1, "none", 0.0, pytest.approx(0.5))]
    number = NumberScore(np.array([1.0, 2.0]), np.array([1.5, 2.0]), np.zeros(2), "")
    assert answers_to_show(number) == [(0, "1.5", 0.0, -0.5), (1, "2", 0.0, 0.0)]


def test_wrong_tags_are_named_by_the_place_of_their_word() -> None:
    score = TagScore([["A", "B", "A"], ["A"]], [["A", "A", "B"], ["A"]], 0.1, "", "")
    assert wrong_tags(score) == [(0, [(1, "A"), (2, "B")]), (1, [])]


FORKED = """
import os, sys, torch
from pathlib import Path
from seqwise.comparison.warm_up import warm_up
warm_up(Path(sys.argv[1]))
child = os.fork()
if not child:
    torch.set_num_threads(2)
    torch.randn(600, 600) @ torch.randn(600, 600)
    torch.randn(2000, 2000).log_softmax(dim=1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(("write", "task"), [(write_reviews, "label"), (write_flights, "tags")])
def test_what_is_loaded_before_the_fork_leaves_children_their_threads(tmp_path: Path, write: Any, task: str) -> None:
    folder = Workspace(tmp_path / "comparison")
    folder.create(ComparisonRequest(write(tmp_path / "data.tsv"), minutes=0.2, task=task).settings())
    command = [sys.executable, "-c", FORKED, str(folder.path)]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "2"}, timeout=60, check=False)
    assert done.returncode == 0
