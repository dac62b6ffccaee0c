"""What changed between two texts, as a part of the page: the heads that moved most, and a word's vector by layer."""

from __future__ import annotations

from html import escape

from ..pages.charts import Axis, Look, Series
from ..pages.elements import shown, titled_table
from ..pages.quantities import number, per_cent
from .contrast import Contrast, HeadMove, Shift
from .page_data import piece_shown, site_name
from .scales import Scales

TITLE = "Between"
LEAD = (
    "Two texts that differ in a little: the heads that look elsewhere stand first, and the line falls where a layer "
    "has read the difference into the word."
)
MAX_MOVES = 20  # heads in the table


def contrast_view(found: Contrast) -> str:
    whose = "all tokens that both texts have" if found.word is None else f"“{found.word}”"
    changed = ", ".join(f"{piece_shown(first)} → {piece_shown(second)}" for first, second in found.changed)
    body = f"<p>Of {shown(whose)}.{f' What differs: {shown(changed)}.' if changed else ''}</p>"
    if found.by_layer:
        body += _by_layer(found, whose)
    if found.moves:
        rows = "".join(_row(move) for move in found.moves[:MAX_MOVES])
        heads = ["layer", "head", "moved", "what it looks at more or less"]
        body += titled_table("Heads that moved most", heads, rows, kind="moves")
        left = len(found.moves) - MAX_MOVES
        more = f" {left:,} others moved less; --json has them all." if left > 0 else ""
        body += f'<p class="aside">Moved: 0 looks at the same, 1 at nothing of it any more.{more}</p>'
    return f'<div class="columns is-1"><div class="column" data-model="0" data-view="between">{body}</div></div>'


def _by_layer(found: Contrast, whose: str) -> str:
    lines = [Series(found.word or "all", list(enumerate(found.by_layer)), Look.of(0))]
    if found.others_by_layer:
        lines.append(Series("other words of both", list(enumerate(found.others_by_layer)), Look.of(1, 1)))
    return Scales().figure(
        lines,
        "between-layers",
        "Similarity by layer",
        f"Cosine of the vectors of {whose} in both texts, from the embeddings (0) up.",
        Axis("layer", "{:.0f}".format),
        Axis("cosine", "{:.2f}".format),
    )


def _row(move: HeadMove) -> str:
    shifts = "; ".join(map(_told, move.shifts))
    return (
        f"<tr><th>{escape(site_name(move.site, move.kind))}</th><td>{move.head + 1}</td>"
        f"<td>{number(move.moved, 3)}</td><td>{shown(shifts)}</td></tr>"
    )


def _told(shift: Shift) -> str:
    first, second = piece_shown(shift.first), piece_shown(shift.second)
    name = first if first == second else f"{first} / {second}"
    return f"{name} {per_cent(shift.before)} → {per_cent(shift.after)}"
