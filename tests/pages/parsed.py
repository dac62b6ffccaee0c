"""A page as a browser takes it apart."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html.parser import HTMLParser

VOID = {"meta", "br", "input"}


class Page(HTMLParser):
    """The elements in their order, with their attributes, and the text of each kind of element."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.comments: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> stands there twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", text))

    def handle_comment(self, text: str) -> None:
        self.comments.append(text)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [found for kind, found in self.elements if kind == tag and named.items() <= found.items()]

    def values(self, attribute: str) -> list[str]:
        return [found[attribute] or "" for _, found in self.elements if attribute in found]

    def inside(self, tag: str) -> list[str]:
        return [text for kind, text in self.texts if kind == tag]

    @property
    def text(self) -> str:
        return "".join(text for kind, text in self.texts if kind not in ("script", "style"))


def hash_of(text: str) -> str:
    """As a security policy names a style or script."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
