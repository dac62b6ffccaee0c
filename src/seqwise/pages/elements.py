"""What a page is made of: a document that loads nothing, sections, facts, tables, notes, and switches.

Everything that comes from data passes through `shown` or `visible` on its way in. Style and script stand inline and are
the only ones the page's own security policy lets through, by their hashes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files

from .text import visible

OVER_TWO_COLUMNS = ' colspan="2"'


@dataclass(frozen=True)
class Section:
    """All but the anchor is HTML."""

    anchor: str
    title: str
    lead: str
    """One sentence on what to look for."""
    body: str
    """Nothing, where there is nothing to show: the section is then left out."""
    is_empty: bool = False
    """Whether it only says why there is nothing to see; the list of sections says so, too."""


def document(
    title: str,
    sections: Sequence[Section],
    *,
    command: str,
    version: str,
    head: str = "",
    opening: str = "",
    style: str = "",
    script: str = "",
    has_pictures: bool = False,
) -> str:
    """The whole page, as text to be written in UTF-8.

    `command` is the one that made it. `head` is HTML below the title, `opening` HTML before the list of sections.
    `style` and `script` are the page's own, behind those of all pages. `has_pictures`: some stand in the page itself.
    """
    style, script = _shared("page.css") + style, _shared("page.js") + script
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'"
    policy += "; img-src data:" if has_pictures else ""
    present = [section for section in sections if section.body]
    links = "".join(map(_link, present))
    inside = "\n".join(map(_section, present))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(visible(title))}</title>
<style>{style}</style>
</head>
<body>
<header>
<div class="top"><p class="kind">{escape(command)}</p>\
<button type="button" id="theme" class="needs-script" aria-pressed="false">Dark</button></div>
<h1>{shown(title)}</h1>
{head}
</header>
<main>
{opening}
<nav aria-label="Contents"><ul>{links}</ul></nav>
{inside}
</main>
<footer><p>Written by {shown(f"seqwise {version}".rstrip())}; loads nothing.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def shown(text: str, *, newline: str = "↵", limit: int = 2_000) -> str:
    """Text from data as HTML: visible, escaped, and unable to turn the text around it."""
    return f"<bdi>{escape(visible(text, newline=newline, limit=limit))}</bdi>"


def fact_list(facts: Mapping[str, str]) -> str:
    """Terms and what they stand for, without those that nothing is known of."""
    rows = "".join(f"<div><dt>{shown(term)}</dt><dd>{shown(fact)}</dd></div>" for term, fact in facts.items() if fact)
    return f'<dl class="facts">{rows}</dl>'


def titled_table(
    caption: str, heads: Sequence[str], rows: str, *, kind: str, over_two_columns: Collection[str] = ()
) -> str:
    """In a box of its own that scrolls. `rows` is HTML, `kind` the class that the style sheet knows the table by."""
    head = "".join(
        f'<th scope="col"{OVER_TWO_COLUMNS if title in over_two_columns else ""}>{escape(title)}</th>'
        for title in heads
    )
    table = (
        f'<table class="{kind}"><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )
    return f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">{table}</div>'


class Notes:
    """Footnotes, numbered over all tables of the page."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> str:
        """The sign that points to it."""
        self.texts.append(text)
        place = len(self.texts)
        return f'<sup><a href="#note-{place}" aria-label="Note {place}">{place}</a></sup>'

    def listed(self, start: int) -> str:
        """Those behind the first `start`."""
        items = "".join(
            f'<li id="note-{place}">{text}</li>' for place, text in enumerate(self.texts[start:], start=start + 1)
        )
        return f'<ol class="notes" start="{start + 1}">{items}</ol>' if items else ""


def switched(identity: str, label: str, panels: Sequence[tuple[str, str, str]]) -> str:
    """(key, name, content): one of them at a time where there is a script, all of them where there is none."""
    boxes = "".join(
        f'<figure class="chart-box" id="{identity}-panel-{key}">'
        f"<figcaption>{shown(name)}</figcaption>{content}</figure>"
        for key, name, content in panels
    )
    options = [(f"{identity}-panel-{key}", name) for key, name, _ in panels]
    return f"{switch(identity, label, options, controls='panels') if len(panels) > 1 else ''}{boxes}"


def switch(identity: str, label: str, options: Sequence[tuple[str, str]], *, controls: str) -> str:
    """(value, name): radio buttons, as the arrow keys come with them. A script finds them by `data-{controls}`."""
    radios = "".join(
        f'<label><input type="radio" name="{identity}-switch" value="{value}"{" checked" if place == 0 else ""}>'
        f"<span>{shown(name)}</span></label>"
        for place, (value, name) in enumerate(options)
    )
    return f'<fieldset class="switch needs-script" data-{controls}><legend>{label}</legend>{radios}</fieldset>'


def embedded_json(identity: str, found: object) -> str:
    """For a script to read; it cannot end the element it stands in: ASCII only, and no bracket of a tag."""
    text = json.dumps(found, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{identity}">{text}</script>'


def _link(section: Section) -> str:
    if not section.is_empty:
        return f'<li><a href="#{section.anchor}">{section.title}</a></li>'
    return f'<li><a href="#{section.anchor}" class="is-empty">{section.title} <small>(nothing to see)</small></a></li>'


def _section(section: Section) -> str:
    return (
        f'<section id="{section.anchor}" aria-labelledby="{section.anchor}-head">\n'
        f'<h2 id="{section.anchor}-head">{section.title}</h2>\n<p class="lead">{section.lead}</p>\n'
        f"{section.body}\n</section>"
    )


def _shared(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
