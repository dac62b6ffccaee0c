"""The page: one file that loads nothing, shows everything as text, and holds for whatever a comparison found."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from comparison.examples import (
    REASON,
    example_comparison,
    example_of_labels,
    example_of_numbers,
    example_of_tags,
    hostile,
    nothing_finished,
)
from pages.parsed import Page, hash_of

from seqwise.comparison.page import looks_of, write_page
from seqwise.comparison.results import Comparison, Entry, Figure, Gap, Match, Metric, Point
from seqwise.comparison.views import MAX_SAMPLE_CHARACTERS


def label_comparison() -> Comparison:
    """Labels have neither samples nor a passage nor curves by position."""
    entries = [
        Entry("lstm", "lstm", "", "ladder", 1.0, "done", test=Figure(0.02, 0.01, 0.03), more={"accuracy": 0.98}),
        Entry("rnn", "rnn", "", "ladder", 1.0, "stopped", "Ctrl-C"),
    ]
    return Comparison(
        {"name": "digits"}, "label", Metric("share of wrong answers", "errors"), "test", 2, 1, 2, 1, "x", ladder=entries
    )


EVERY = {
    "text": example_comparison(),
    "numbers": example_of_numbers(),
    "few labels": label_comparison(),
    "labels": example_of_labels(),
    "tags": example_of_tags(),
    "nothing finished": nothing_finished(),
    "nothing at all": Comparison({}, "text", Metric("bits per character", "bits/char"), "valid", 1, 1, 1, 1, ""),
    "no final": example_comparison(final=[], winner="gpt"),
    "one entry": example_comparison(ladder=example_comparison().ladder[:1], final=[], gaps=[], winner="gpt"),
    "only failures": example_comparison(ladder=example_comparison().ladder[-1:], final=[], gaps=[], winner=None),
    "limits": example_comparison(limits={"parameters": 1e6, "latency_ms": 2.5, "megabytes": 10.0, "new": 3.0}),
    "hostile": hostile(example_comparison()),
    "hostile numbers": hostile(example_of_numbers()),
    "hostile labels": hostile(example_of_labels()),
    "hostile tags": hostile(example_of_tags()),
}
every = pytest.mark.parametrize("comparison", EVERY.values(), ids=EVERY.keys())


@every
def test_the_document_is_whole_and_can_be_written(comparison: Comparison) -> None:
    page = write_page(comparison)
    page.encode()
    parsed = Page(page)
    assert parsed.open == []
    assert page.startswith("<!DOCTYPE html>\n")
    assert parsed.all("html", lang="en")
    assert [tag for tag, _ in parsed.elements if tag in ("title", "main", "h1")].count("h1") == 1
    ids = parsed.values("id")
    assert len(ids) == len(set(ids))
    named = " ".join(parsed.values("aria-labelledby") + parsed.values("aria-describedby")).split()
    assert set(named) <= set(ids)
    assert {link.removeprefix("#") for link in parsed.values("href")} <= set(ids)
    assert {radio["value"] for radio in parsed.all("input") if "panel" in (radio["value"] or "")} <= set(ids)


@every
def test_headings_go_down_one_step_at_a_time(comparison: Comparison) -> None:
    levels = [int(tag[1]) for tag, _ in Page(write_page(comparison)).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@every
def test_the_policy_lets_only_the_own_style_and_script_through(comparison: Comparison) -> None:
    parsed = Page(write_page(comparison))
    (policy,) = [found["content"] for found in parsed.all("meta", http_equiv="Content-Security-Policy")]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    (style,) = parsed.inside("style")
    script = [text for text in parsed.inside("script") if text.startswith('"use strict"')]
    data = [text for text in parsed.inside("script") if not text.startswith('"use strict"')]
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["style-src"] == hash_of(style)
    assert [rules["script-src"]] == [hash_of(text) for text in script]
    assert len(data) == len(parsed.all("script", type="application/json")) <= 1
    attributes = {name for _, found in parsed.elements for name in found}
    assert not {name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")}


@every
def test_nothing_is_loaded(comparison: Comparison) -> None:
    parsed = Page(write_page(comparison))
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video", "image", "use"}
    attributes = {name for _, found in parsed.elements for name in found}
    assert not attributes & {"src", "srcset", "data", "action", "poster", "background", "xlink:href", "ping"}
    assert all(link.startswith("#") for link in parsed.values("href"))
    (style,) = parsed.inside("style")
    assert not re.search(r"url\(|@import|@font-face|image-set", style)


def test_no_address_stands_on_a_page_of_harmless_data() -> None:
    assert "//" not in write_page(example_comparison())
    assert "//" not in write_page(example_of_numbers())
    assert "//" not in write_page(example_of_labels())


@pytest.mark.parametrize("kind", ["text", "numbers", "labels", "tags"])
def test_no_element_comes_from_data(kind: str) -> None:
    """Hostile strings in every field leave the same elements with the same attributes."""
    usual, worst = (
        [(tag, sorted(found)) for tag, found in Page(write_page(one)).elements if tag != "mark"]
        for one in (EVERY[kind], hostile(EVERY[kind]))
    )
    assert worst == usual


@pytest.mark.parametrize("kind", ["hostile", "hostile numbers", "hostile labels", "hostile tags"])
def test_hostile_text_is_shown_and_cannot_act(kind: str) -> None:
    page = write_page(EVERY[kind])
    parsed = Page(page)
    assert parsed.comments == []
    assert "<script>alert(1)</script><img src=x onerror=alert(1)>" in parsed.text
    assert "⟨U+202E⟩evil⟨U+2066⟩" in parsed.text
    assert "␀␛[2J⟨U+0085⟩⟨U+D800⟩" in parsed.text
    acting = {char for char in page if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert acting == {"\n"}


def test_every_text_of_the_data_is_on_the_page() -> None:
    found = example_comparison()
    text = Page(write_page(found)).text
    assert found.command in text
    assert "text of 1,115,394 characters" in text
    assert "train 1,003,854, valid 55,770, test 55,770 characters" in text
    assert all(sentence in text for sentence in found.recommendation)
    assert all(entry.settings in text for entry in found.entries)
    assert all(sample in text for entry in found.entries for sample in entry.samples)
    assert all(run in text for entry in found.entries for run in entry.runs)
    assert all(value in text for value in found.machine.values())
    assert all(note in text for entry in found.entries for note in entry.notes)


def test_sections_come_in_their_order() -> None:
    anchors = [found["id"] for found in Page(write_page(example_comparison())).all("section")]
    assert anchors == [
        "recommendation",
        "results",
        "neighbours",
        "curves",
        "price",
        "positions",
        "samples",
        "passage",
        "settings",
        "time",
        "repeat",
    ]
    numbers = [found["id"] for found in Page(write_page(example_of_numbers())).all("section")]
    assert "forecasts" in numbers
    assert not {"samples", "passage", "positions"} & set(numbers)


@every
def test_tables_and_charts_can_be_read_aloud(comparison: Comparison) -> None:
    parsed = Page(write_page(comparison))
    assert all(found.get("scope") in ("col", "row") for found in parsed.all("th"))
    assert len(parsed.all("caption")) == len(parsed.all("table")) == len(parsed.all("div", class_="scroll"))
    charts = parsed.all("svg", class_="chart") + parsed.all("svg", class_="bar")
    assert all(found["role"] == "img" and found["aria-labelledby"] for found in charts)
    small = parsed.all("svg", class_="sign") + parsed.all("svg", class_="strip")
    assert all(found["aria-hidden"] == "true" for found in small)
    assert "alert(" not in "".join(parsed.values("aria-label"))


def rows_of(page: str) -> list[str]:
    table = page.split("<tbody>")[1].split("</tbody>")[0]
    return re.findall(r"<tr.*?</tr>", table, flags=re.DOTALL)


def test_the_winner_and_the_front_are_marked() -> None:
    rows = rows_of(write_page(example_comparison(winner="gru")))
    assert [">winner<" in row for row in rows] == [False, False, True, *[False] * 5]
    assert [">front<" in row for row in rows] == [True, True, False, True, *[False] * 4]
    assert [re.findall(r"<td>(\d?)</td>", row)[0] for row in rows] == [*"1234567", ""]


def test_what_failed_shows_its_reason_in_its_row() -> None:
    row = rows_of(write_page(example_comparison()))[-1]
    assert f"failed: {REASON}" in Page(row).text
    assert row.count("<td") == 2
    assert 'colspan="10"' in row


def test_over_a_limit_is_marked_and_explained_below() -> None:
    found = example_comparison()
    over = replace(found.ladder[0], over_limit=True, notes=["818,000 parameters are more than the 500,000 allowed"])
    page = write_page(replace(found, ladder=[over, *found.ladder[1:]], limits={"parameters": 500_000}))
    assert "over a limit" in rows_of(page)[0]
    assert '<a href="#note-1"' in rows_of(page)[0]
    text = Page(page).text
    assert "at most 500,000 parameters" in text
    assert "gpt: 818,000 parameters are more" in text


def test_what_is_not_finished_says_so_at_the_top() -> None:
    page = write_page(nothing_finished())
    assert "Not finished." in page
    assert page.index("Not finished.") < page.index('id="recommendation"')
    assert "3 of 3 entries have no result yet" in page
    assert "No recommendation yet." in page
    assert "Not finished" not in write_page(example_comparison())


def test_without_a_test_part_it_says_what_was_scored() -> None:
    assert "The data has no test part" in write_page(example_comparison(scored="valid"))
    assert "The data has no test part" not in write_page(example_comparison())


def test_sure_differences_are_told_from_open_ones() -> None:
    page = write_page(
        example_comparison(gaps=[Gap("a", "b", 0.2, 0.1, 0.3, True), Gap("b", "c", 0.1, -0.1, 0.3, False)])
    )
    section = page.split('id="neighbours"')[1].split("</section>")[0]
    sure, open_ = re.findall(r"<tr.*?</tr>", section.split("<tbody>")[1])
    assert ("sure" in sure, "cannot be told apart" in open_) == (True, True)


def test_the_memorized_segment_is_marked_once() -> None:
    found = example_comparison()
    entry = replace(
        found.ladder[0], samples=["before <copied> and <copied>", "<copied>"], memorization=Match(8, "<copied>")
    )
    parsed = Page(write_page(replace(found, ladder=[entry], final=[])))
    assert parsed.inside("mark") == ["<copied>"]
    assert "Copied at most 8 characters in a row." in parsed.text
    assert "shares 31 characters in a row" in parsed.text


@pytest.mark.parametrize("match", [None, Match(0, ""), Match(9, "elsewhere")])
def test_nothing_is_marked_where_nothing_was_memorized(match: Match | None) -> None:
    found = example_comparison(held_out_match=None)
    page = write_page(replace(found, ladder=[replace(found.ladder[0], memorization=match)], final=[]))
    assert not Page(page).all("mark")


def passage_of(page: str) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """(class, title) of each piece as the page comes, and what the script can put in its place."""
    parsed = Page(page)
    spans = [(str(found["class"]), str(found["title"])) for found in parsed.all("span") if "title" in found]
    (data,) = [text for text in parsed.inside("script") if not text.startswith('"use strict"')]
    assert "<" not in data
    return spans, json.loads(data)


def test_the_passage_is_shown_as_the_winner_reads_it() -> None:
    found = example_comparison()
    spans, data = passage_of(write_page(found))
    model = data["models"][0]
    assert model["about"].startswith("gpt-final: ")
    assert [f"s{level}" for level in model["levels"]] == [kind for kind, _ in spans]
    assert [f"{bits} bits" for bits in model["bits"]] == [title for _, title in spans]
    pieces = data["cuts"][model["cut"]]
    assert len(pieces) == len(spans)
    assert "".join(pieces).replace("↵\n", "\n").rstrip(" ") == found.passage


def test_each_cut_of_the_passage_is_kept_once() -> None:
    _, data = passage_of(write_page(example_comparison()))
    assert len(data["models"]) == 9
    assert len(data["cuts"]) == 2
    for model in data["models"]:
        assert len(model["levels"]) == len(model["bits"]) == len(data["cuts"][model["cut"]])


def test_colours_count_bits_a_character() -> None:
    surprise = [
        ("a", 0.1),
        ("b", 0.25),
        ("c", 7.9),
        ("d", 8.0),
        ("four", 4.0),
        ("e", math.inf),
        ("f", math.nan),
        ("", 1.0),
    ]
    found = example_comparison(passage="abcdfouref", final=[])
    spans, _ = passage_of(write_page(replace(found, ladder=[replace(found.ladder[0], surprise=surprise)])))
    assert [kind for kind, _ in spans] == ["s0", "s1", "s6", "s7", "s3", "s7", "s7", "s3"]
    assert [title for _, title in spans][5:7] == ["∞ bits", "not a number bits"]


def test_words_have_spaces_between_them() -> None:
    surprise = [("so", 1.0), ("<unk>", 2.0), ("\n", 0.5), ("it", 1.0)]
    found = example_comparison(passage="so X\nit", final=[])
    entry = replace(found.ladder[0], surprise=surprise, tokenizer="word")
    _, data = passage_of(write_page(replace(found, ladder=[entry])))
    assert data["cuts"] == [["so ", "<unk> ", "↵\n", "it "]]


def test_pieces_of_words_have_spaces_behind_the_last() -> None:
    surprise = [("un", 1.0), ("##do", 2.0), ("it", 2.0), ("\n", 0.5), ("now", 1.0), ("##here", 1.0)]
    found = example_comparison(passage="undo it\nnowhere", final=[])
    entry = replace(found.ladder[0], surprise=surprise, tokenizer="wordpiece")
    _, data = passage_of(write_page(replace(found, ladder=[entry])))
    assert data["cuts"] == [["un", "do ", "it ", "↵\n", "now", "here "]]


def test_a_hostile_piece_survives_the_way_into_the_script() -> None:
    pieces = ["</script>", "<!--", "\u2028", "\ud800", "\u202e", "\x00", "\u0301", '"', "\\", "&lt;"]
    found = example_comparison(final=[])
    entry = replace(found.ladder[0], surprise=[(piece, 1.0) for piece in pieces])
    _, data = passage_of(write_page(replace(found, ladder=[entry])))
    shown = ["</script>", "<!--", "⟨U+2028⟩", "⟨U+D800⟩", "⟨U+202E⟩", "␀", "◌\u0301", '"', "\\", "&lt;"]
    assert data["cuts"] == [shown]


def test_each_entry_keeps_its_look_on_the_whole_page() -> None:
    found = example_comparison()
    looks = looks_of(found)
    assert len(set(looks.values())) == len(looks)
    assert (looks["gpt"].colour, looks["gpt"].shape) == (looks["gpt-final"].colour, looks["gpt-final"].shape)
    assert looks["gpt"].dash != looks["gpt-final"].dash
    page = write_page(found)
    for kind in ("curves-seconds", "curves-tokens", "positions-chart"):
        chart = page.split(f'id="{kind}-title"')[1].split('</svg><ul class="legend">')[0]
        names = re.findall(r'<g class="name c(\d)">.*?<text [^>]*>([\w-]+)', chart)
        assert {name: int(colour) for colour, name in names} == {name: looks[name].colour for _, name in names}
        assert len(names) == 9


def geometry(page: str) -> list[str]:
    names = ("d", "x", "y", "cx", "cy", "r", "width", "height", "viewBox")
    return [value for name in names for value in Page(page).values(name)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0])
@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_odd_values_are_drawn_or_left_out(bad: float, kind: str) -> None:
    found = EVERY[kind]
    entry = replace(
        found.ladder[0],
        test=Figure(bad, bad, bad),
        valid=bad,
        by_seed=[bad],
        more={name: bad for name in found.ladder[0].more},
        training_seconds=bad,
        generation_tokens_per_second=bad,
        ms_per_token=bad,
        curve=[Point(bad, 1, 2.0), Point(1.0, 1, bad), Point(2.0, 2, 2.0)],
        by_position=[(0, bad), (1, 2.0)],
        surprise=[("a", bad), ("b", 1.0)],
        forecast=[(bad, bad, bad), (1.0, bad, 2.0), (1.0, 0.5, 2.0)],
    )
    gaps = [Gap("gpt", "lstm", bad, bad, bad, True)]
    values = [bad, 1.0, 2.0] if kind == "numbers" else []
    for ladder in ([entry], [entry, *found.ladder[1:]]):
        made = replace(found, ladder=ladder, gaps=gaps, seconds={"training": bad, "rest": 1.0}, passage_values=values)
        page = write_page(made)
        assert Page(page).open == []
        assert not [value for value in geometry(page) if re.search("nan|inf|e", value)]


def test_the_page_stays_small() -> None:
    assert len(write_page(example_comparison()).encode()) < 300_000
    assert len(write_page(nothing_finished()).encode()) < 40_000


def test_a_huge_comparison_makes_no_huge_page() -> None:
    found = example_comparison()
    huge = replace(
        found.ladder[0],
        reason="long " * 100_000,
        notes=["long " * 100_000],
        curve=[Point(float(step), step, 2.0 + 1 / (step + 1)) for step in range(50_000)],
        samples=["x" * 1_000_000] * 3,
        surprise=[("x", 1.0)] * 100_000,
        settings="y" * 100_000,
    )
    ladder = [replace(huge, name=f"gpt-{number}") for number in range(12)]
    page = write_page(replace(found, ladder=ladder, passage="x" * 100_000))
    assert len(page.encode()) < 3_000_000
    assert "x" * MAX_SAMPLE_CHARACTERS + "…" in page


def test_folders_and_commands_for_what_comes_next() -> None:
    text = Page(write_page(example_comparison())).text
    assert 'seqwise generate runs/gpt-final-0 --prompt "…"' in text
    assert "seqwise evaluate runs/gpt-0 runs/lstm-0" in text
    assert "runs/rnn" not in text
    numbers = Page(write_page(example_of_numbers())).text
    assert "seqwise predict runs/kalman-0" in numbers
    assert "seqwise generate" not in numbers


def test_forecasts_share_one_frame() -> None:
    page = write_page(example_of_numbers())
    charts = [part.split("</figure>")[0] for part in page.split('<figure class="chart-box" id="forecast-panel-')[1:]]
    assert len(charts) == 4
    ticks = {tuple(re.findall(r'text-anchor="end">([^<]*)<', chart.split('class="base"')[0])) for chart in charts}
    assert len(ticks) == 1
    assert all('class="band' in chart and "what came" in chart for chart in charts)


def test_who_was_not_trained_has_no_place_and_who_was_left_out_is_not_counted() -> None:
    made = example_comparison()
    idle = replace(made.ladder[1], not_trained="6 updates; give it about 50 minutes", training_seconds=300.0)
    absent = Entry("conv", "conv", "", "ladder", 0.0, "left out", "to learn anything it needs an hour")
    ladder = [made.ladder[0], idle, absent]
    baseline = {"name": "the frequency of each token", "value": 4.25}
    page = write_page(replace(made, ladder=ladder, final=[], winner="gpt", gaps=[], baseline=baseline))
    assert ">2 models compared" in page
    assert "not trained: 6 updates; give it about 50 minutes" in page
    assert '<span class="badge is-over">not trained</span>' in page
    assert "left out: to learn anything it needs an hour" in page
    assert "by the frequency of each token, one gets 4.250 on validation" in page
    assert " took 300 s, the longest" in page
    before = page[: page.index("not trained</span>")]
    assert before[before.rindex("<tr") :].startswith("<tr><td></td>")  # no rank
