"""The view of an answer that stands in a passage, as HTML: where it might begin and where it might end."""

from __future__ import annotations

from html import escape

import numpy as np

from ..pages.elements import shown, titled_table
from ..pages.quantities import per_cent
from .page_data import piece_shown
from .page_parts import strip_text
from .read_spans import Answering

LEVELS = 5  # shades
MIN_SHOWN = 0.01  # probabilities below are not written


def answering(found: Answering) -> str:
    rows = "".join(
        f"<tr><th>{shown(option.piece, limit=120)}</th><td>{per_cent(option.probability)}</td></tr>"
        for option in found.answers
    )
    told = f"<p>Answered: {shown(found.answers[0].piece, limit=120)}."
    if found.wanted is not None:
        told += f" Wanted: {shown(' | '.join(dict.fromkeys(found.wanted)), limit=200)}."
    return (
        f"{told}</p>"
        + titled_table("Answers", ["answer", "probability"], rows, kind="spans")
        + _strip("begins", "Where it begins", found.pieces, found.begins)
        + _strip("ends", "Where it ends", found.pieces, found.ends)
    )


def _strip(part: str, title: str, pieces: list[str], shares: np.ndarray) -> str:
    spans = "".join(
        f'<span class="shade-{round(LEVELS * float(share))}" data-below="{_told(share)}">'
        f"{escape(piece_shown(piece.strip() or piece))}</span>"
        for piece, share in zip(pieces, shares, strict=True)
    )
    about = "how probable it is at each token; the first place stands for no answer"
    text = strip_text(part, spans, needs_script=False, has_below=True, label=title)
    return f'<figure class="is-whole"><figcaption><b>{title}</b>: {about}.</figcaption>{text}</figure>'


def _told(share: float) -> str:
    return per_cent(share) if share >= MIN_SHOWN else ""
