"""Text from anywhere: all of it can be seen, none of it can act."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.pages.text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, äöü 漢字 שלום", "plain, äöü 漢字 שלום"),
        ("a\x00b\x1b[2Jc\x7f", "a␀b␛[2Jc␡"),
        ("a\tb\r\n", "a␉b␍↵"),
        ("\x85\x9f", "⟨U+0085⟩⟨U+009F⟩"),
        ("abc\u202egpj.exe", "abc⟨U+202E⟩gpj.exe"),
        ("\u2066\u2069\u200f\u061c", "⟨U+2066⟩⟨U+2069⟩⟨U+200F⟩⟨U+061C⟩"),
        ("a\u200bb\ufeff\u00ad", "a⟨U+200B⟩b⟨U+FEFF⟩⟨U+00AD⟩"),
        ("a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\uffff\ufdd0\U0001ffff", "⟨U+FFFF⟩⟨U+FDD0⟩⟨U+1FFFF⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("e\u0301", "e\u0301"),
        ("\u0301", "◌\u0301"),
        (" \u0301", " ◌\u0301"),
        ("\n\u0301", "↵◌\u0301"),
        ("Z" + "\u0300" * 5, "Z" + "\u0300" * 3 + "◌" + "\u0300" * 2),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("\u200d", "⟨U+200D⟩"),
        ("a" + "\u200d" * 4, "a" + "\u200d" * 3 + "⟨U+200D⟩"),
    ],
)
def test_all_of_a_text_can_be_seen(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_newlines_are_shown_as_asked_and_long_texts_are_cut() -> None:
    assert visible("a\nb", newline="↵\n") == "a↵\nb"
    assert visible("abcdef", limit=3) == "abc…"
    assert visible("abc", limit=3) == "abc"


@given(st.text(st.characters(), max_size=60))
@settings(max_examples=150, deadline=None)
def test_no_text_can_act(text: str) -> None:
    shown = visible(text)
    shown.encode()
    kinds = {unicodedata.category(char) for char in shown if char not in "\u200c\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(shown, limit=10_000) == shown
