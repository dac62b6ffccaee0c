"""The table in words: figures where there are some, reasons for what failed, and text that cannot act."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from comparison.examples import (
    FINALS,
    LADDER,
    REASON,
    example_comparison,
    example_of_labels,
    example_of_numbers,
    example_of_tags,
    nothing_finished,
)

from seqwise.comparison.results import Comparison, Figure, Gap, Metric
from seqwise.comparison.table import gap_in_words, share_in_words, table_rows, write_html, write_markdown

BARE_PIPE = re.compile(r"(?<!\\)\|")


def test_the_titles_come_first_and_all_rows_are_as_long() -> None:
    titles, *rows = table_rows(example_comparison())
    assert titles[:2] == ["model", "bits/char (95 %)"]
    assert titles[2:] == ["perplexity", "parameters", "size", "training", "tokens/s", "ms/token", "memory", "why"]
    assert [row[0] for row in rows] == [*LADDER, "rnn", *FINALS]
    assert {len(row) for row in rows} == {len(titles)}
    figures = ["3.30", "587 k", "2.4 MB", "149 s", "48 k", "0.42 ms", "480 MB"]
    assert rows[1] == ["lstm", "1.724 (1.686 to 1.762)", *figures, ""]


def test_labels_and_tags_have_their_own_columns() -> None:
    assert table_rows(example_of_labels())[0][2:4] == ["accuracy", "macro F1"]
    assert table_rows(example_of_tags())[0][2:5] == ["accuracy", "unseen words", "label"]
    found = example_of_labels()
    even = [replace(one, more={"accuracy": 0.8, "macro_f1": 0.795}) for one in found.ladder]
    assert "macro F1" not in table_rows(replace(found, ladder=even))[0]  # it would say the same


def test_what_one_gets_without_learning_and_by_a_bag_of_words_is_said() -> None:
    told = "Without learning, by the most frequent label, one gets 0.4905 on validation; a bag of words gets 0.1925."
    assert told in write_markdown(example_of_labels())
    assert "of each word, one gets 0.8000 on validation.\n" in write_markdown(example_of_tags())
    assert "Without learning" not in write_markdown(example_comparison())


def test_what_failed_shows_its_reason_instead_of_figures() -> None:
    row = next(row for row in table_rows(example_comparison()) if row[0] == "rnn")
    assert row == ["rnn", "failed", *[""] * 7, REASON]


def test_a_failure_hides_figures_of_an_earlier_try() -> None:
    found = example_comparison()
    failed = replace(found.ladder[0], status="failed", reason="no memory left")
    row = table_rows(replace(found, ladder=[failed]))[1]
    assert (row[1], row[-1]) == ("failed", "no memory left")
    assert set(row[2:-1]) == {""}


def test_without_reasons_there_is_no_column_for_them() -> None:
    rows = table_rows(nothing_finished())
    assert rows == [
        ["model", "bits/char (95 %)"],
        ["ngram", "still running"],
        ["hmm", "not started yet"],
        ["gpt", "not started yet"],
    ]


def test_columns_follow_the_task() -> None:
    titles, first, *_ = table_rows(example_of_numbers())
    assert titles[1:4] == ["nats/step (95 %)", "mean error", "coverage"]
    assert titles[4:] == ["parameters", "size", "training", "ms/step", "memory"]
    assert first[2:4] == ["1.100", "94.0 %"]


def test_some_of_the_entries_make_a_table_of_their_own_with_the_same_columns() -> None:
    found = example_comparison()
    titles, *rows = table_rows(found, found.final)
    assert titles == table_rows(found)[0][:-1]
    assert [row[0] for row in rows] == ["gpt-final", "lstm-final"]


def test_values_that_are_no_numbers_are_told() -> None:
    found = example_comparison()
    odd = replace(found.ladder[0], test=Figure(math.inf, math.nan, math.inf), more={"perplexity": math.inf})
    assert table_rows(replace(found, ladder=[odd], final=[]))[1][1:3] == ["∞ (not a number to ∞)", "∞"]


@pytest.mark.parametrize("task", ["text", "numbers"])
def test_no_field_can_break_the_terminal_or_the_markdown(task: str) -> None:
    bad = "a|b\n# <img src=x onerror=alert(1)> \x1b[2J`code` [link](x) \ud800\u202e"
    found = example_comparison(task=task, command=bad, recommendation=[bad], gaps=[Gap(bad, bad, 1, 0, 2, True)])
    entries = [replace(e, name=e.name + bad, reason=bad, notes=[bad], runs=[bad]) for e in found.ladder]
    found = replace(found, ladder=entries, metric=Metric(bad, bad), data={"name": bad}, seconds={bad: 1.0})
    for row in table_rows(found):
        assert all(cell.isprintable() for cell in row)
    text = write_markdown(found)
    text.encode()
    assert all(line.isprintable() for line in text.split("\n"))
    prose = [line for line in text.split("\n") if not line.startswith("    ")]
    assert not any(re.search(r"(?<!\\)[<`\[]", line) for line in prose)
    heads = [line for line in prose if line.startswith("#")]
    assert len(heads) == 1 + text.count("\n## ")


# -- in words --


def test_neighbours_in_words() -> None:
    metric = Metric("bits per character", "bits/char")
    sure = gap_in_words(Gap("gpt", "lstm", 0.0631, 0.041, 0.085, True), metric)
    assert sure == "gpt is better than lstm by 0.063 bits/char (0.041 to 0.085)."
    unknown = gap_in_words(Gap("lstm", "gru", 0.007, -math.inf, math.inf, False, False), metric)
    assert unknown == "lstm or gru: too little data to tell which is better (0.007 bits/char apart)."
    open_ = gap_in_words(Gap("lstm", "gru", 0.007, -0.009, 0.022, False), metric)
    assert open_ == (
        "lstm and gru cannot be told apart: 0.007 bits/char, but anything from −0.009 to 0.022 fits the data."
    )


def test_shares_in_words() -> None:
    found = example_comparison()
    assert share_in_words(found.ladder) == "2.5 minutes"
    assert share_in_words(found.entries) == "2.5 to 8 minutes"
    assert share_in_words([replace(found.ladder[0], minutes=1.0)]) == "1 minute"
    assert share_in_words([replace(found.ladder[0], minutes=1 / 3)]) == "20 seconds"


def test_markdown_holds_what_the_page_holds() -> None:
    text = write_markdown(example_comparison())
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# harbour.txt: 8 models compared",
        "## Equal shares",
        "## Finals",
        "## Which differences are sure",
        "## Where the minutes went",
        "## How to repeat it",
    ]
    assert "Take gpt-final: 1.552 bits per character" in text
    assert "- lstm: its last update was cut short by the clock" in text
    assert "lstm and gru cannot be told apart" in text
    assert "preparing 31 s, training 32 min, scoring 164 s, rest 22 s; 35 min in all, of 36 minutes." in text
    assert "\n    seqwise compare harbour.txt --minutes 36" in text
    assert '\n    seqwise generate runs/gpt-0 --prompt "…"\n' in text
    assert "Not finished" not in text


def test_rows_of_markdown_have_as_many_cells_as_titles() -> None:
    for table in write_markdown(example_comparison()).split("## ")[1:3]:
        widths = {len(BARE_PIPE.findall(line)) for line in table.splitlines() if line.startswith("|")}
        assert len(widths) == 1


def test_numbers_are_forecast_and_names_of_folders_quoted() -> None:
    found = example_of_numbers()
    text = write_markdown(replace(found, ladder=[replace(found.ladder[0], runs=["my runs/kalman"])]))
    assert "\n    seqwise predict 'my runs/kalman'\n    seqwise evaluate 'my runs/kalman'\n" in text


def test_markdown_of_what_is_not_finished() -> None:
    text = write_markdown(nothing_finished())
    assert "**Not finished:**" in text
    assert "No recommendation yet." in text
    assert "| ngram | still running |" in text
    assert "seqwise evaluate" not in text


def test_a_comparison_of_nothing_can_be_written() -> None:
    found = Comparison({}, "text", Metric("bits per character", "bits/char"), "test", 1, 1, 1, 1, "seqwise compare x")
    assert table_rows(found) == [["model", "bits/char (95 %)"]]
    assert write_markdown(found).startswith("# the data: 0 models compared\n")
    assert "No recommendation yet." in write_html(found)


def test_a_notebook_shows_the_recommendation_and_the_table() -> None:
    found = example_comparison(recommendation=["<script>alert(1)</script>"])
    seen: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            seen.append(tag)

    Tags().feed(write_html(found))
    assert set(seen) == {"p", "bdi", "table", "thead", "tbody", "tr", "th", "td"}
    assert seen.count("tr") == 1 + len(found.entries)
