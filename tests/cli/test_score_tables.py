"""Scores as people read them: runs side by side, one run label by label, and neighbours compared in pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqwise.cli.score_tables import MAX_CONFUSED, MAX_ROWS, scores_shown
from seqwise.evaluation.answers import LabelScore, LabelSetScore, NumberScore
from seqwise.evaluation.entities import TagScore


def labels(num_labels: int = 3, *, noise: float = 0.2, seed: int = 0, unknown: int = 0) -> LabelScore:
    random, num = np.random.default_rng(seed), 300
    wanted = np.arange(num) % num_labels
    answers = np.where(random.random(num) < noise, (wanted + 1) % num_labels, wanted)
    log_probs = np.full((num, num_labels), np.log(0.2 / max(1, num_labels - 1)))
    log_probs[np.arange(num), answers] = np.log(0.8)
    wanted[:unknown] = -1
    names = [f"label {place}" for place in range(num_labels)]
    return LabelScore(wanted, answers, log_probs, names, f"accuracy|test|{seed}")


def cells(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell]


def table(lines: list[str], title: str) -> list[list[str]]:
    """The rows of the table that begins with this title, it among them."""
    start = next(place for place, line in enumerate(lines) if line.startswith(title))
    end = next((place for place in range(start, len(lines)) if not lines[place]), len(lines))
    return [[cell.strip() for cell in cells(line)] for line in lines[start:end]]


def test_runs_that_label_stand_side_by_side_and_are_compared() -> None:
    scores = {"good": labels(noise=0.1), "bad": labels(noise=0.3, seed=1)}
    lines = list(scores_shown(scores))
    titles, good, bad = (cells(line) for line in lines[:3])
    assert titles[0] == "run"
    found = dict(zip([title.strip() for title in titles], [cell.strip() for cell in good], strict=True))
    score = scores["good"]
    assert found["right"] == f"{100 * score.accuracy:.2f} %"
    assert found["macro F1"] == f"{100 * score.macro_f1:.2f} %"
    assert found["Matthews"] == f"{score.matthews:.3f}"
    assert found["calibration error"] == f"{100 * score.calibration_error:.2f} %"
    assert found["answers"] == "300"
    assert "AUC" not in found  # there are three labels
    assert bad[0] == "bad"
    assert "good: accuracy|test|0" in lines
    assert lines[-1].startswith("good is better than bad by 0.")
    assert not any(line.startswith("label") for line in lines)  # that would be too much of two


def test_a_single_run_is_told_label_by_label_with_what_it_confuses() -> None:
    score = labels(noise=0.2)
    lines = list(scores_shown({"run": score}))
    found = table(lines, "label  ")
    assert found[0] == ["label", "precision", "recall", "F1", "count"]
    one = score.by_label["label 1"]
    row = next(row for row in found if row[0] == "label 1")
    assert row[1:] == [f"{100 * share:.2f} %" for share in (one.precision, one.recall, one.f1)] + ["100"]
    matrix = table(lines, "label \\ answer")
    assert [[int(cell) for cell in row[1:]] for row in matrix[1:]] == score.confusion.tolist()
    assert [row[0] for row in matrix[1:]] == score.names == matrix[0][1:]


def test_of_many_labels_the_most_frequent_confusions_are_lines() -> None:
    score = labels(MAX_CONFUSED + 1)
    told = [line for line in scores_shown({"run": score}) if " was answered by " in line]
    wanted, answer, num = score.most_confused(1)[0]
    assert told[0] == f"{wanted} was answered by {answer} {num} times"
    assert not any("label \\ answer" in line for line in scores_shown({"run": score}))
    perfect = list(scores_shown({"run": labels(MAX_CONFUSED + 1, noise=0.0)}))
    assert "no label was taken for another" in perfect
    many = list(scores_shown({"run": labels(MAX_ROWS + 5)}))
    assert "and 5 rarer labels; --json tells all" in many


def test_labels_that_training_never_had_are_told() -> None:
    lines = list(scores_shown({"run": labels(unknown=2)}))
    assert "run: 2 rows with a label that training never had, counted as wrong" in lines


def test_two_labels_have_an_auc_and_what_is_not_defined_is_a_dash() -> None:
    always = LabelScore(np.arange(10) % 2, np.zeros(10, int), np.log([[0.9, 0.1]] * 10), ["no", "yes"], "x")
    found = list(scores_shown({"lstm": labels(2), "always": always}))
    titles, lstm, other = (cells(line) for line in found[:3])
    place = [title.strip() for title in titles].index("AUC")
    assert 0.5 < float(lstm[place]) < 1
    matthews = [title.strip() for title in titles].index("Matthews")
    assert other[matthews].strip() == "-"
    assert "cannot be compared" in found[-1]  # ten rows against three hundred


def test_names_of_labels_keep_to_their_column() -> None:
    score = labels(2)
    score.names[:] = ["a\nb\tc", "x" * 100]
    found = table(list(scores_shown({"run": score})), "label  ")
    assert {row[0] for row in found[1:]} == {"a b c", "x" * 39 + "…"}


def test_sets_of_labels_and_numbers_have_tables_of_their_own() -> None:
    wanted = np.random.default_rng(0).random((50, 3)) < 0.5
    answers = wanted ^ (np.random.default_rng(1).random((50, 3)) < 0.1)
    sets = LabelSetScore(wanted, answers, np.ones(50), ["a", "b", "c"], "x")
    lines = list(scores_shown({"run": sets}))
    assert f"{100 * sets.f1:.2f} %" in lines[1]
    assert f"{100 * sets.exact_match:.2f} %" in lines[1]
    assert [row[0] for row in table(lines, "label")[1:]] == sorted("abc", key=lambda name: -sets.by_label[name].wanted)
    values = np.arange(20.0)
    number = NumberScore(values, values + np.tile([0.5, -0.5], 10), np.ones(20), "x")
    titles, row = list(scores_shown({"run": number}))[:2]
    assert [title.strip() for title in cells(titles)][3:5] == ["Pearson", "Spearman"]
    assert cells(row)[1].strip() == "0.25000"


def tags(scheme: str = "IOB2", **more: Any) -> TagScore:
    wanted = [["B-PER", "O", "B-LOC"], ["O", "B-PER", "I-PER"]] * 5
    answers = [["B-PER", "O", "O"], ["O", "B-PER", "I-PER"]] * 5
    return TagScore(wanted, answers, 0.25, scheme, "F1 over entities|x", **more)


def test_tags_are_told_by_type_with_words_that_training_never_had_and_the_label_of_the_row() -> None:
    is_seen = [np.array([True, True, False]), np.array([True, True, True])] * 5
    label = labels(2, noise=0.1)
    lines = list(scores_shown({"run": tags(is_seen=is_seen, others={"intent": label})}))
    found = dict(zip(*([cell.strip() for cell in cells(line)] for line in lines[:2]), strict=True))
    assert (found["F1"], found["right tags"], found["of unseen words"]) == ("80.00 %", "83.33 %", "0.00 %")
    assert (found["precision"], found["recall"], found["entities"]) == ("100.00 %", "66.67 %", "15")
    assert table(lines, "type")[1:] == [
        ["PER", "100.00 %", "100.00 %", "100.00 %", "10"], ["LOC", "0.00 %", "0.00 %", "0.00 %", "5"],
    ]  # fmt: skip
    other = next(line for line in lines if line.startswith("run, intent"))
    assert f"{100 * label.accuracy:.2f} %" in other


def test_plain_tags_are_told_by_tag() -> None:
    score = TagScore([["DET", "NOUN"]] * 8, [["DET", "VERB"]] * 8, 0.5, "", "accuracy|x")
    lines = list(scores_shown({"run": score}))
    found = dict(zip(*([cell.strip() for cell in cells(line)] for line in lines[:2]), strict=True))
    assert (found["right tags"], found["words"]) == ("50.00 %", "16")
    assert "of unseen words" not in found  # nobody knows them
    by_tag = {row[0]: row[3] for row in table(lines, "tag")[1:]}
    assert by_tag == {"DET": "100.00 %", "NOUN": "0.00 %", "VERB": "0.00 %"}
    two = list(scores_shown({"a": tags(), "b": tags()}))
    assert sum("not distinguishable" in line for line in two) == 2  # by entities, and by words


def test_a_run_of_labelled_text_is_told_by_the_command_and_its_json(terminal: Any, tmp_path: Path) -> None:
    words = ["good fine film", "dull long film"]
    letters = [["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][n % 10] for n in range(200)]
    rows = "".join(f"{words[n % 2]} {letters[n]} {n}\t{('good', 'bad')[n % 2]}\n" for n in range(200))
    (tmp_path / "reviews.tsv").write_text("text\tlabel\n" + rows)
    terminal.done("train", "reviews.tsv", "--model", "ngram", "--out", "bag")
    out = terminal.done("evaluate", "bag")[0]
    assert "label \\ answer" in out
    assert out.splitlines()[1].split()[:3] == ["bag", "100.00", "%"]
    found = json.loads(terminal.done("evaluate", "bag", "--json")[0])["results"][0]
    assert (found["run"], found["labels"]) == ("bag", ["bad", "good"])
    assert np.array(found["confusion"]).trace() == found["answers"]
    assert found["by_label"]["good"]["f1"] == 1.0
    card = (tmp_path / "bag" / "card.md").read_text()
    assert "| F1 by label | " in card
    assert "seqwise predict bag" in card


@pytest.mark.parametrize("kind", ["label", "tag"])
def test_a_score_of_another_kind_is_told_by_its_headline(kind: str) -> None:
    class Own(LabelScore if kind == "label" else TagScore):  # type: ignore[misc]
        def headline(self) -> str:
            return "in its own words"

    made = labels() if kind == "label" else tags()
    own = Own(**{name: getattr(made, name) for name in made.__dataclass_fields__})
    assert next(scores_shown({"run": own})) == "run: in its own words"
