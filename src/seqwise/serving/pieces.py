"""Tokens -> text, bit by bit, as it is shown while it is being written.

    pieces = Pieces(tokenizer, prompt="Once", stops=["\\n\\n"])
    pieces.add([17, 4])     -> what can be shown by now
    pieces.is_stopped       -> a stop string has come; nothing of it or behind it is shown
    pieces.finish()         -> what was held back

Held back is what may still change: half a character (bytes that a later token completes), and the beginning of a stop
string. What is shown, put together, is what would be shown all at once. Only the last few tokens are looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..text import Tokenizer

HALF = "\N{REPLACEMENT CHARACTER}"  # what decoding shows of bytes that are no character yet
MAX_HALF = 4  # bytes of a character: more of them will not be completed
REACH = 8  # tokens before the new ones that say how these are written


class Pieces:
    def __init__(self, tokenizer: Tokenizer, prompt: str = "", stops: Sequence[str] = ()):
        self.is_stopped, self.text = False, ""
        """All that was shown."""
        self._decode = tokenizer.decode
        before = tokenizer.encode(prompt).tolist()
        beginning = self._decode(before)
        self._is_spaced = prompt[-1:].isspace() and not beginning.endswith(prompt[-1])  # words leave spaces out
        self._stops, self._settled = [stop for stop in stops if stop], ""
        self._settle(before)

    def add(self, tokens: Sequence[int]) -> str:
        """More of the text, as far as it can be shown."""
        if self.is_stopped:
            return ""
        self._ids.extend(tokens)
        text = self._settled + self._new()
        first = len(self.text) - max(map(len, self._stops), default=0)  # a stop string was not there before
        ends = [place for stop in self._stops if (place := text.find(stop, max(0, first))) >= 0]
        if ends:
            self.is_stopped = True
            return self._show(text[: min(ends)])
        if not text.endswith(HALF):
            self._settled = text
            self._settle(self._ids)
        return self._show(text[: len(text) - self._held_back(text)])

    def finish(self) -> str:
        """The rest: no more tokens will come."""
        return "" if self.is_stopped else self._show(self._settled + self._new())

    def _settle(self, ids: list[int]) -> None:
        """What these stand for will not change. The first that is looked at again follows one that stands for something
        by itself: of characters that take several tokens none is cut apart."""
        first = max(0, len(ids) - REACH)
        while first and self._decode([ids[first - 1]]) in ("", HALF):
            first -= 1
        self._ids = ids[first:]
        self._known, self._beginning = len(self._ids), self._decode(self._ids)

    def _new(self) -> str:
        """The text of the tokens that came since."""
        written = self._decode(self._ids)
        if not written.startswith(self._beginning):  # tokens may complete a character that the prompt began
            return self._decode(self._ids[self._known :])
        new = written[len(self._beginning) :]
        return new.removeprefix(" ") if self._is_spaced and not self._settled else new

    def _show(self, text: str) -> str:
        new = text[len(self.text) :]
        self.text += new
        return new

    def _held_back(self, text: str) -> int:
        """Characters at the end that may change."""
        halves = len(text) - len(text.rstrip(HALF))
        held = halves if halves <= MAX_HALF else 0
        whole = text[: len(text) - held]
        longest = [
            next(size for size in range(min(len(stop) - 1, len(whole)), -1, -1) if whole.endswith(stop[:size]))
            for stop in self._stops
        ]
        return held + max(longest, default=0)
