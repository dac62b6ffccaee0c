"""Exact match and F1 by the rules of SQuAD, against another way to compute them; and when to answer at all."""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.data.files import read_text
from seqwise.data.public import PUBLIC, find_file
from seqwise.evaluation.segments import compare_segments
from seqwise.evaluation.spans import SpanScore, best_threshold, f1_of, is_match, judge, normalized

# -- the rules once more, character by character --------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """Lower case, no punctuation, and of what stands between other characters no article."""
    kept = "".join(character for character in text.lower() if character not in set(string.punctuation))
    pieces = re.split(r"(\W+)", kept)
    without = "".join(" " if piece in ("a", "an", "the") else piece for piece in pieces)
    return without.split()


def shared_words(first: list[str], second: list[str]) -> int:
    left = list(second)
    found = 0
    for word in first:
        if word in left:
            left.remove(word)
            found += 1
    return found


def expected(answer: str, references: list[str], *, version: str) -> tuple[float, float]:
    if version == "2.0":
        references = [one for one in references if words_of(one)] or [""]
    matches, scores = [], []
    for reference in references:
        ours, theirs = words_of(answer), words_of(reference)
        matches.append(float(ours == theirs))
        if version == "2.0" and (not ours or not theirs):
            scores.append(float(ours == theirs))
            continue
        num = shared_words(ours, theirs)
        if num == 0:
            scores.append(0.0)
            continue
        precision, recall = num / len(ours), num / len(theirs)
        scores.append(2 * precision * recall / (precision + recall))
    return max(matches), max(scores)


def perturbed(text: str, passage: str, random: np.random.Generator) -> str:
    """An answer as models give them: right, cut, longer, of another place, dressed up, or none."""
    words = text.split()
    start = passage.find(text)
    return [
        text,
        f"The {text.upper()}.",
        " ".join(words[: max(1, len(words) // 2)]),
        passage[max(0, start - 15) : start + len(text) + 9],
        " ".join(passage.split()[: random.integers(1, 8)]),
        f"{text}, {text}!",
        "",
        "a",
    ][random.integers(8)]


def public_questions(name: str) -> list[tuple[str, list[str]]]:
    """Passage and references of each question, read without the package's reader."""
    file = PUBLIC[name].files["test" if name == "squad" else "train"]
    path = find_file(file)
    if path is None:
        pytest.skip(f"needs {file.path} below SEQWISE_DATA")
    whole = json.loads("".join(read_text(path)))
    paragraphs = [paragraph for article in whole["data"] for paragraph in article["paragraphs"]]
    return [(p["context"], [one["text"] for one in q["answers"]]) for p in paragraphs for q in p["qas"]]


@pytest.mark.parametrize(("name", "version"), [("squad", "1.1"), ("squad-v2", "2.0")])
def test_scores_are_those_of_the_official_rules_on_the_dev_parts(name: str, version: str, shared_data: Path) -> None:
    random, rows = np.random.default_rng(0), public_questions(name)[::4]
    answers = [
        perturbed(references[0] if references else passage.split()[0], passage, random) for passage, references in rows
    ]
    wanted = np.array(
        [expected(answer, refs, version=version) for answer, (_, refs) in zip(answers, rows, strict=True)]
    )
    score = SpanScore(answers, [references for _, references in rows], 0.0, "")
    assert score.may_lack == (version == "2.0")
    np.testing.assert_allclose([score.exact_match, score.f1], wanted.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(score.segments.statistics[0, :, 0], wanted[:, 1], atol=1e-12)
    assert 0.1 < score.exact_match < score.f1 < 0.9
    if version == "2.0":
        has = np.array([bool(references) for _, references in rows])
        for answerable in (True, False):
            np.testing.assert_allclose(score.of_those(answerable=answerable), wanted[has == answerable].mean(axis=0))


def test_scores_are_those_of_torchmetrics(shared_data: Path) -> None:
    metrics = pytest.importorskip("torchmetrics.text", reason="needs torchmetrics, an independent implementation")
    random = np.random.default_rng(1)
    rows = public_questions("squad")[::20]
    answers = [perturbed(references[0], passage, random) for passage, references in rows]
    squad = metrics.SQuAD()
    squad.update(
        [{"prediction_text": answer, "id": str(n)} for n, answer in enumerate(answers)],
        [{"answers": {"answer_start": [0] * len(r), "text": r}, "id": str(n)} for n, (_, r) in enumerate(rows)],
    )
    theirs = squad.compute()
    score = SpanScore(answers, [references for _, references in rows], 0.0, "")
    assert 100 * score.exact_match == pytest.approx(float(theirs["exact_match"]), abs=1e-4)
    assert 100 * score.f1 == pytest.approx(float(theirs["f1"]), abs=1e-4)


@pytest.mark.parametrize(
    ("answer", "references", "may_lack", "match", "f1"),
    [
        ("the  Blue Box!", ["blue box"], False, 1, 1),
        ("blue", ["blue box"], False, 0, 2 / 3),
        ("box box", ["box"], False, 0, 2 / 3),
        ("red", ["blue box", "red"], False, 1, 1),
        ("theatre", ["atre"], False, 0, 0),
        ("a-an", ["aan"], False, 1, 1),  # punctuation goes before articles do
        ("", ["blue"], False, 0, 0),
        ("", ["the"], False, 1, 0),  # as the program of 1.1 has it
        ("", [], True, 1, 1),
        ("box", [], True, 0, 0),
        ("", ["box"], True, 0, 0),
        ("the", [], True, 1, 1),
        ("box", ["a", "box"], True, 1, 1),
    ],
)
def test_rules(answer: str, references: list[str], may_lack: bool, match: float, f1: float) -> None:
    assert judge(answer, references, may_lack=may_lack) == pytest.approx((match, f1))
    assert expected(answer, references, version="2.0" if may_lack else "1.1") == pytest.approx((match, f1))


def test_normalizing_and_its_parts() -> None:
    assert normalized(" The\tU.S. Army,\nan army ") == "us army army"
    assert is_match("The cat", "cat.")
    assert f1_of("", "", may_lack=True) == 1
    assert f1_of("", "") == 0


def brute_force(gaps: np.ndarray, answered: np.ndarray, none: np.ndarray) -> float:
    """The best mean over thresholds at, below and above every gap."""
    tried = [*gaps - 1e-9, *gaps + 1e-9, gaps.min() - 1, gaps.max() + 1]
    return max(float(np.where(gaps > threshold, none, answered).mean()) for threshold in tried)


@pytest.mark.parametrize("seed", range(20))
def test_no_threshold_does_better(seed: int) -> None:
    random = np.random.default_rng(seed)
    num = int(random.integers(1, 12))
    gaps = random.integers(-3, 4, num).astype(float)  # with ties
    answered, none = random.random(num), (random.random(num) < 0.5).astype(float)
    threshold = best_threshold(gaps, answered, none)
    assert float(np.where(gaps > threshold, none, answered).mean()) == pytest.approx(brute_force(gaps, answered, none))


def scored(answers: list[str]) -> Any:
    return SpanScore(answers, [["blue box"], ["red"], ["key"], ["old door"], ["lamp"], ["cup"], ["hat"]], 0.5, "sig")


def test_scores_are_told_with_intervals_and_compared_in_pairs() -> None:
    good = scored(["blue box", "red", "key", "door", "lamp", "cup", "map"])
    bad = scored(["box", "x", "key", "x", "x", "x", "x"])
    assert good.f1 == pytest.approx((5 + 2 / 3) / 7)
    assert good.exact_match == pytest.approx(5 / 7)
    low, high = good.interval
    assert 0 <= low < good.f1 < high <= 1
    assert compare_segments(good.segments, bad.segments).gain == pytest.approx(good.f1 - bad.f1)
    assert "exact match 71.43 %" in good.headline()
    told = good.to_dict()
    assert (told["f1"], told["exact_match"], told["questions"]) == (good.f1, good.exact_match, 7)
    assert "has_answer" not in told
    lacking = SpanScore(["", "box"], [[], ["box"]], 0.5, "sig").to_dict()
    assert lacking["has_answer"] == {"exact_match": 1.0, "f1": 1.0, "questions": 1}
    assert lacking["no_answer"]["questions"] == 1
