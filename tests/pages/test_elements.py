"""The parts of a page: each shows what it was given as text, and the document lets nothing else in."""

from __future__ import annotations

import json
import re

import pytest
from pages.parsed import Page, hash_of

from seqwise.pages.elements import (
    Notes,
    Section,
    document,
    embedded_json,
    fact_list,
    shown,
    switch,
    switched,
    titled_table,
)

BAD = "<b onclick=x>&\"'</script>\u202e\x00"
SAFE = "<b onclick=x>&\"'</script>⟨U+202E⟩␀"


def page_of(*sections: Section, title: str = "A title", **more: str) -> str:
    return document(title, sections, command="seqwise inspect", version="0.1.0", **more)


def tags(page: Page) -> list[str]:
    return [tag for tag, _ in page.elements]


# -- the document --


def test_the_document_lets_only_its_own_style_and_script_through() -> None:
    page = Page(page_of(style=".own { color: red }", script="own();"))
    (style,), (script,) = page.inside("style"), page.inside("script")
    assert style.endswith(".own { color: red }")
    assert script.endswith("own();")
    (policy,) = [str(found["content"]) for found in page.all("meta", http_equiv="Content-Security-Policy")]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": hash_of(style),
        "script-src": hash_of(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_what_all_pages_share_names_nothing_that_must_be_loaded() -> None:
    page = Page(page_of())
    (style,), (script,) = page.inside("style"), page.inside("script")
    assert not re.search(r"url\(|@import|@font-face|image-set|//", style)
    assert not re.search(r"fetch|XMLHttpRequest|import|eval|innerHTML|//", script)


def test_the_title_is_text() -> None:
    page = Page(page_of(title=BAD))
    assert page.inside("title") == [SAFE]
    assert page.inside("bdi")[0] == SAFE
    assert not page.all("b")


def test_sections_come_in_their_order_and_empty_ones_are_left_out() -> None:
    bodies = {"a": "A", "b": "", "c": "C"}
    sections = [Section(anchor, f"About {anchor}", "What to look for.", body) for anchor, body in bodies.items()]
    page = Page(page_of(*sections, head="below the title", opening="before all"))
    assert page.open == []
    assert [found["id"] for found in page.all("section")] == ["a", "c"]
    assert page.values("href") == ["#a", "#c"]
    assert page.inside("h2") == ["About a", "About c"]
    places = [page.text.rindex(text) for text in ("A title", "below the title", "before all", "About a", "About c")]
    assert places == sorted(places)
    assert "Written by seqwise 0.1.0; loads nothing." in page.text


# -- parts --


def test_text_is_shown_and_cannot_act() -> None:
    page = Page(shown(BAD))
    assert (tags(page), page.text) == (["bdi"], SAFE)
    assert Page(shown("a\nb", newline="\n", limit=2)).text == "a\n…"


def test_facts_that_are_not_known_are_left_out() -> None:
    page = Page(fact_list({"Data": BAD, "Limits": ""}))
    assert page.text == f"Data{SAFE}"
    assert len(page.all("dt")) == len(page.all("dd")) == 1


def test_a_table_has_a_name_scrolls_and_can_have_wide_titles() -> None:
    page = Page(titled_table("Models", ["model", BAD], "<tr></tr>", kind="results", over_two_columns=[BAD]))
    assert page.all("div", class_="scroll", aria_label="Models", tabindex="0")
    assert page.inside("caption") == ["Models"]
    assert page.inside("th") == ["model", BAD]
    assert page.all("th") == [{"scope": "col"}, {"scope": "col", "colspan": "2"}]


def test_notes_are_numbered_over_all_tables() -> None:
    notes = Notes()
    assert notes.listed(0) == ""
    first = [notes.add("one"), notes.add("two")]
    assert [Page(sign).values("href") for sign in first] == [["#note-1"], ["#note-2"]]
    start = len(notes.texts)
    notes.add("three")
    later = Page(notes.listed(start))
    assert (later.text, later.values("id"), later.values("start")) == ("three", ["note-3"], ["3"])
    assert Page(notes.listed(0)).text == "onetwothree"


def test_panels_are_switched_by_their_ids() -> None:
    page = Page(switched("curves", "Against", [("seconds", BAD, "<p>1</p>"), ("tokens", "tokens", "<p>2</p>")]))
    ids = ["curves-panel-seconds", "curves-panel-tokens"]
    assert page.values("id") == page.values("value") == ids
    assert [("checked" in found) for found in page.all("input")] == [True, False]
    assert "data-panels" in page.all("fieldset")[0]
    assert page.text.count(SAFE) == 2
    assert not page.all("b")


def test_one_panel_needs_no_switch() -> None:
    page = Page(switched("curves", "Against", [("seconds", "seconds", "<p>1</p>")]))
    assert not page.all("fieldset")
    assert page.inside("p") == ["1"]


def test_a_switch_says_what_it_controls() -> None:
    page = Page(switch("passage", "Model", [("0", "gpt"), ("1", "lstm")], controls="passage"))
    assert "data-passage" in page.all("fieldset")[0]
    assert page.inside("legend") == ["Model"]
    assert {found["name"] for found in page.all("input")} == {"passage-switch"}


@pytest.mark.parametrize("text", [BAD, "<!--", "]]>", "\u2028\ud800", "\\u003c"])
def test_what_is_embedded_comes_back_as_it_was(text: str) -> None:
    element = embedded_json("found", {"text": [text, None, 1.5]})
    assert element.isascii()
    page = Page(element)
    assert page.all("script", type="application/json", id="found")
    (inside,) = page.inside("script")
    assert not re.search("[<>]", inside)
    assert json.loads(inside) == {"text": [text, None, 1.5]}
