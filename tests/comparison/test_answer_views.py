"""Labels and tags in the report: every number and word is that of the comparison."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape

import pytest
from comparison.examples import REVIEWS, example_of_labels, example_of_tags

from seqwise.comparison.answer_views import (
    SHOWN_EXAMPLES,
    by_label,
    candidates,
    confusion,
    disagreements,
    hardest,
    reliability,
    tagged_rows,
    two_best,
)
from seqwise.comparison.page import looks_of
from seqwise.comparison.results import Comparison, Entry


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def rows_of(html: str) -> list[list[str]]:
    """The cells of all tables, row by row, without the heads."""
    bodies = re.findall(r"<tbody>(.*?)</tbody>", html, re.DOTALL)
    rows = [row for body in bodies for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)]
    return [[text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)] for row in rows]


def test_each_label_has_its_f1_from_every_model_and_the_best_in_bold() -> None:
    section = by_label(example_of_labels())
    assert rows_of(section.body) == [
        ["good", "400", "75.9", "74.7", "60.3"],
        ["bad", "300", "75.0", "75.0", "75.0"],
        ["mixed", "10", "24.0", "24.0", "24.0"],
    ]
    assert "<b>75.9</b>" in section.body
    assert "<b>74.7</b>" not in section.body
    assert by_label(example_of_tags()).title == "Tag by tag"


def test_the_matrix_of_each_model_shows_mistakes_by_their_share_of_the_row() -> None:
    found = example_of_labels()
    body = confusion(found).body
    assert body.count('<table class="confusion">') == 3
    assert rows_of(body)[:3] == [
        ["bad", "250", "45", "5", "83.3 %"], ["good", "70", "328", "2", "82.0 %"], ["mixed", "4", "6", "0", "0.0 %"],
    ]  # fmt: skip
    assert "<b>328</b>" in body
    levels = re.findall(r'<td class="s(\d)">(\d+)</td>', body)[:6]
    assert levels == [("4", "45"), ("1", "5"), ("4", "70"), ("0", "2"), ("6", "4"), ("7", "6")]
    many = replace(found, ladder=[replace(entry, confusion={}) for entry in found.ladder])
    section = confusion(many)
    assert rows_of(section.body)[:2] == [["good", "bad", "70"], ["bad", "good", "45"]]
    assert "most frequent mistakes first" in section.lead


def test_a_label_that_no_row_has_is_no_fault() -> None:
    found = example_of_labels()
    empty = replace(found.ladder[0], confusion={"labels": ["a", "b"], "counts": [[0, 0], [1, 2]]})
    assert rows_of(confusion(replace(found, ladder=[empty])).body) == [["a", "0", "0", ""], ["b", "1", "2", "66.7 %"]]


def test_confidence_is_drawn_against_the_share_of_right_answers() -> None:
    found = example_of_labels()
    section = reliability(found, looks_of(found))
    tips = re.findall(r"<title>(.*?)</title>", section.body, re.DOTALL)
    assert "lstm\nshare of right answers, %: 60.0\nprobability of the answer, %: 65.0" in tips
    assert not any("%: 20.0" in tip for tip in tips)  # three answers say nothing
    assert "ngram-bag 2.0 %, lstm 4.0 %, window 6.0 %" in text_of(section.body)
    assert reliability(example_of_tags(), looks_of(example_of_tags())).body == ""


def test_the_hardest_examples_are_those_whose_answer_is_least_probable_over_the_models_that_learned() -> None:
    section = hardest(example_of_labels())
    rows = rows_of(section.body)
    assert [row[0] for row in rows[:3]] == [REVIEWS[place][0] for place in (4, 5, 2)]
    assert rows[0] == ["it ends", "mixed", "good ngram-bag 40.0 % bad lstm 55.0 %", "26.2 %"]
    assert rows[2][2:] == ["bad ngram-bag 97.0 % good ✓ lstm 92.0 %", "46.8 %"]
    assert "window" not in section.body  # it learned nothing
    assert "Of 6 rows of the test part" in section.lead


def test_the_two_best_are_shown_where_they_disagree_the_surest_first() -> None:
    section = disagreements(example_of_labels())
    rows = rows_of(section.body)
    assert [row[0] for row in rows] == [REVIEWS[place][0] for place in (2, 5, 1, 4)]
    assert rows[0][1:] == ["good", "bad 97.0 %", "good ✓ 92.0 %"]
    lead = text_of(section.lead)
    assert "Of 6 rows, ngram-bag and lstm answer 4 differently: ngram-bag is right on 1 of them, lstm on 2." in lead


def test_the_two_best_are_of_different_families_where_there_are_several() -> None:
    found = example_of_labels()
    bag, lstm, _ = found.ladder
    other = replace(bag, name="ngram-generative")
    assert [one.name for one in two_best(replace(found, ladder=[bag, other, lstm])) or ()] == ["ngram-bag", "lstm"]
    assert [one.name for one in two_best(replace(found, ladder=[bag, other])) or ()] == [
        "ngram-bag",
        "ngram-generative",
    ]
    assert two_best(replace(found, ladder=[bag])) is None
    assert disagreements(replace(found, ladder=[bag])).body == ""
    final = replace(lstm, name="lstm-final", stage="final")
    longer = replace(found, ladder=[bag, lstm], final=[final], winner="lstm-final")
    assert two_best(longer) == (final, bag)
    assert candidates(longer) == [final, bag]  # the LSTM once


def test_where_nobody_learned_all_that_were_scored_are_shown() -> None:
    found = example_of_labels()
    idle = replace(found, ladder=[replace(entry, not_trained="6 updates") for entry in found.ladder])
    assert len(candidates(idle)) == 3
    assert len(rows_of(hardest(idle).body)) == 6


def test_numbers_are_hard_where_answers_are_far_off() -> None:
    def entry(name: str, *answers: tuple[int, str, float]) -> Entry:
        made = next(one for one in example_of_labels().ladder if one.name == "lstm")
        return replace(made, name=name, family=name, answers=[(row, said, 0.0, -error) for row, said, error in answers])

    found = replace(
        example_of_labels(),
        kind="number",
        winner="a",
        ladder=[entry("a", (0, "1.5", 0.5), (1, "9", 3.0)), entry("b", (0, "1.25", 0.25), (1, "6", math.inf))],
        examples=[(0, "one", "1"), (1, "two", "6")],
    )
    assert rows_of(hardest(found).body) == [["two", "6", "9 a 6 ✓ b", "∞"], ["one", "1", "1.5 a 1.25 b", "0.375"]]
    assert [row[0] for row in rows_of(disagreements(found).body)] == ["two", "one"]
    assert "%" not in hardest(found).body


def test_of_tagged_rows_the_wrong_words_are_marked_with_what_was_said_and_wanted() -> None:
    section = tagged_rows(example_of_tags())
    panels = re.findall(r"<figure.*?</figure>", section.body, re.DOTALL)
    assert [text_of(panel) for panel in panels] == [
        "lstm what is a d O → B-code 9 B-code → I-code s B-code → I-code show me the first flight",
        "window what is a d B-from → B-code 9 O → I-code s show me the first O → B-order flight",
    ]
    assert panels[0].count("<mark>") == 3
    assert "1 row has none from any" in section.lead
    nothing = replace(example_of_tags(), ladder=[replace(one, wrong_tags=[]) for one in example_of_tags().ladder])
    assert tagged_rows(nothing).body == ""


@pytest.mark.parametrize("num", [0, 1, SHOWN_EXAMPLES, SHOWN_EXAMPLES + 5])
def test_not_all_of_many_examples_are_shown(num: int) -> None:
    found = example_of_labels()
    ladder = [replace(one, answers=[(row, "bad", 0.5, 0.25) for row in range(num)]) for one in found.ladder]
    many = replace(found, ladder=ladder, examples=[(row, f"text {row}", "good") for row in range(num)])
    assert len(rows_of(hardest(many).body)) == min(num, SHOWN_EXAMPLES)


def test_rows_that_a_model_was_not_scored_on_are_left_out() -> None:
    """The part may have been too long for all of it."""
    found = example_of_labels()
    first, second, _ = found.ladder
    cut = replace(
        found, ladder=[replace(first, answers=first.answers[:3]), replace(second, answers=second.answers[:3])]
    )
    assert len(rows_of(hardest(cut).body)) == 3
    assert "Of 3 rows" in text_of(disagreements(cut).lead)


def test_what_is_written_is_read_back() -> None:
    for found in (example_of_labels(), example_of_tags()):
        read = Comparison.from_dict(found.to_dict())
        assert read == found


def test_results_of_versions_before_have_none_of_it() -> None:
    saved = example_of_labels().to_dict()
    new = {"by_label", "confusion", "confused", "reliability", "answers", "wrong_tags"}
    for entry in saved["ladder"]:
        for name in new:
            del entry[name]
    for name in ("examples", "tagged", "kind"):
        del saved[name]
    read = Comparison.from_dict(saved)
    assert read.ladder[0].answers == read.examples == read.tagged == []
    assert read.words.unit == "sequences"
    assert hardest(read).body == disagreements(read).body == confusion(read).body == by_label(read).body == ""
