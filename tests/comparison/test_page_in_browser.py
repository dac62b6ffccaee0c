"""The page as a reader meets it, in Chromium: nothing is loaded, every switch works, by pointer and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from comparison.examples import (
    PASSAGE,
    example_comparison,
    example_of_labels,
    example_of_numbers,
    example_of_tags,
    hostile,
)

from seqwise.comparison.page import write_page
from seqwise.comparison.results import Comparison

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
DARK, LIGHT = "rgb(23, 24, 27)", "rgb(251, 250, 246)"

Show = Callable[..., Any]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Show]:
    """Opens a page from its file; at the end nothing else was asked for and nothing was complained about."""
    complaints: list[str] = []
    asked: list[str] = []
    contexts: list[Any] = []
    path = tmp_path / "report.html"

    def open_page(comparison: Comparison, *, width: int = 1280, **options: Any) -> Any:
        path.write_text(write_page(comparison), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(asked) == {path.as_uri()}


def colours(page: Any) -> list[str]:
    """Of the first pieces of the passage."""
    return page.evaluate(
        "[...document.querySelectorAll('#passage-text span')].slice(0, 200)"
        ".map((span) => getComputedStyle(span).backgroundColor)"
    )


def passage_text(page: Any) -> str:
    return str(page.locator("#passage-text").text_content()).replace("↵", "")


def choose(page: Any, group: str, name: str) -> None:
    page.locator(f"#{group} fieldset label", has_text=name).get_by_text(name, exact=True).click()


def focused_text(page: Any) -> str:
    return str(page.evaluate("document.activeElement.textContent"))


def test_switching_models_changes_colours_and_bits(show: Show) -> None:
    page = show(example_comparison())
    before, first = colours(page), page.locator("#passage-text span").first.get_attribute("title")
    assert page.locator("#passage-about").text_content().startswith("gpt-final: ")
    choose(page, "passage", "hmm")
    assert colours(page) != before
    assert page.locator("#passage-text span").first.get_attribute("title") != first
    assert page.locator("#passage-about").text_content().startswith("hmm: ")
    assert passage_text(page) == PASSAGE
    choose(page, "passage", "gpt-final")
    assert colours(page) == before


def test_models_are_switched_by_arrow_keys(show: Show) -> None:
    page = show(example_comparison())
    page.locator("#passage fieldset input").first.focus()
    for name in ("gpt", "lstm", "gru"):
        page.keyboard.press("ArrowRight")
        assert page.locator("#passage-about").text_content().startswith(f"{name}: ")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#passage-about").text_content().startswith("lstm: ")


def test_a_piece_under_the_pointer_shows_its_bits(show: Show) -> None:
    page = show(example_comparison())
    choose(page, "passage", "lstm")
    piece = page.locator("#passage-text span").nth(4)
    assert piece.text_content() == "h"
    piece.hover()
    assert page.locator("#readout").text_content() == f"h {piece.get_attribute('title')}"


def test_pieces_are_stepped_through_by_arrow_keys(show: Show) -> None:
    page = show(example_comparison())
    choose(page, "passage", "lstm")
    page.locator("#passage fieldset input:checked").focus()
    page.keyboard.press("Tab")
    assert focused_text(page) == "T"
    for letter in "he ":
        page.keyboard.press("ArrowRight")
        assert focused_text(page) == letter
        title = page.evaluate("document.activeElement.title")
        assert page.locator("#readout").text_content() == f"{letter} {title}"
    page.keyboard.press("ArrowLeft")
    assert focused_text(page) == "e"
    page.keyboard.press("End")
    assert focused_text(page) == "↵\n"
    page.keyboard.press("ArrowRight")
    assert focused_text(page) == "↵\n"
    page.keyboard.press("Home")
    assert focused_text(page) == "T"
    assert page.locator("#passage-text span[tabindex='0']").count() == 1


@pytest.mark.parametrize(
    ("section", "first", "second"),
    [("curves", "seconds", "tokens"), ("price", "speed", "size")],
)
def test_charts_take_turns(show: Show, section: str, first: str, second: str) -> None:
    page = show(example_comparison())
    one, other = (page.locator(f"#{section}-panel-{name}") for name in (first, second))
    assert (one.is_visible(), other.is_visible()) == (True, False)
    page.locator(f"#{section} fieldset input").first.focus()
    page.keyboard.press("ArrowRight")
    assert (one.is_visible(), other.is_visible()) == (False, True)
    page.locator(f"#{section} fieldset label").first.click()
    assert (one.is_visible(), other.is_visible()) == (True, False)


def test_forecasts_take_turns(show: Show) -> None:
    page = show(example_of_numbers())
    panels = page.locator("#forecasts figure")
    assert [panels.nth(place).is_visible() for place in range(4)] == [True, False, False, False]
    choose(page, "forecasts", "window")
    assert [panels.nth(place).is_visible() for place in range(4)] == [False, False, True, False]


def test_confusion_matrices_take_turns_by_keyboard_too(show: Show) -> None:
    page = show(example_of_labels())
    panels = page.locator("#confusion figure")
    assert [panels.nth(place).is_visible() for place in range(3)] == [True, False, False]
    choose(page, "confusion", "lstm")
    assert [panels.nth(place).is_visible() for place in range(3)] == [False, True, False]
    page.keyboard.press("ArrowRight")
    assert [panels.nth(place).is_visible() for place in range(3)] == [False, False, True]
    assert panels.nth(2).locator("td.s7").count() == 1


def test_tagged_rows_take_turns(show: Show) -> None:
    page = show(example_of_tags())
    panels = page.locator("#tagged figure")
    assert panels.nth(0).locator("mark").all_text_contents() == ["d", "9", "s"]
    choose(page, "tagged", "window")
    assert (panels.nth(0).is_visible(), panels.nth(1).is_visible()) == (False, True)


@pytest.mark.parametrize("example", [example_comparison, example_of_numbers, example_of_labels, example_of_tags])
@pytest.mark.parametrize("make_hostile", [False, True], ids=["usual", "hostile"])
def test_a_phone_never_scrolls_sideways(show: Show, example: Callable[[], Comparison], make_hostile: bool) -> None:
    comparison = example()
    page = show(hostile(comparison) if make_hostile else comparison, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("[...document.querySelectorAll('.scroll')].some((box) => box.scrollWidth > box.clientWidth)")
    page.evaluate("scrollTo(1000, 0)")
    assert page.evaluate("scrollX") == 0


@pytest.mark.parametrize(("scheme", "before", "after"), [("light", LIGHT, DARK), ("dark", DARK, LIGHT)])
def test_the_button_turns_dark_to_light_and_back(show: Show, scheme: str, before: str, after: str) -> None:
    page = show(example_comparison(), color_scheme=scheme)
    button = page.locator("#theme")
    assert page.evaluate(BACKGROUND) == before
    assert button.get_attribute("aria-pressed") == str(before == DARK).lower()
    button.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(BACKGROUND) == after
    assert button.get_attribute("aria-pressed") == str(after == DARK).lower()
    button.click()
    assert page.evaluate(BACKGROUND) == before


def test_paper_has_everything_but_the_controls(show: Show) -> None:
    page = show(example_comparison(), color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
    assert page.locator("#curves figure:visible").count() == page.locator("#price figure:visible").count() == 2
    assert page.locator("fieldset:visible, button:visible, nav:visible").count() == 0
    assert page.locator("table:visible").count() == 4
    page.set_viewport_size({"width": 690, "height": 900})  # between the margins of A4
    assert page.evaluate("document.documentElement.scrollWidth") <= 690


def test_without_a_script_everything_is_there(show: Show) -> None:
    page = show(example_comparison(), java_script_enabled=False)
    assert page.locator("#curves figure:visible").count() == page.locator("#price figure:visible").count() == 2
    assert page.locator("#passage-text span:visible").count() > 200
    assert page.locator("fieldset:visible, button:visible").count() == 0


def test_hostile_text_does_not_act(show: Show) -> None:
    page = show(hostile(example_comparison()))
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.locator("#passage fieldset label").nth(3).click()
    assert dialogs == []
    assert page.locator("img, main script:not([type='application/json'])").count() == 0
    assert "<script>alert(1)</script>" in page.locator("#passage-text").text_content()


def test_the_focus_can_be_seen(show: Show) -> None:
    page = show(example_comparison())
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
