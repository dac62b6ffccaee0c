"""A search drawn from left to right: a column for each step, the best candidate on top."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..pages.text import visible
from .search_tree import DROPPED, ENDED, Node

ROW, LEFT, TOP, LINK = 24.0, 12.0, 30.0, 54.0
LETTER, VALUE = 7.4, 48.0  # widths
MAX_LETTERS = 10


def tree_chart(nodes: Sequence[Node], pieces: dict[int, str], best: set[int], *, identity: str) -> str:
    """`best`: the places of the nodes of the answer."""
    shown = {token: visible(piece, newline="↵", limit=MAX_LETTERS).replace(" ", "␣") for token, piece in pieces.items()}
    text_width = VALUE + LETTER * max((len(shown[node.token]) for node in nodes), default=1)
    step_width = text_width + LINK
    rows: list[int] = []
    for node in nodes:
        rows.append(sum(1 for other in nodes[: len(rows)] if other.step == node.step))
    width = LEFT + step_width * (1 + max((node.step for node in nodes), default=0))
    height = TOP + ROW * (1 + max(rows, default=0))
    places = [(LEFT + step_width * node.step, TOP + ROW * row) for node, row in zip(nodes, rows, strict=True)]
    links, marks = "", ""
    for number, (node, (x, y)) in enumerate(zip(nodes, places, strict=True)):
        kind = _class(node, number in best)
        if node.parent is not None:
            from_x, from_y = places[node.parent]
            start, middle = from_x + text_width, (from_x + text_width + x - 4) / 2
            points = ((start, from_y), (middle, from_y), (middle, y), (x - 4, y))
            a, b, c, d = (f"{across:.0f} {down - 4:.0f}" for across, down in points)
            path = f"M{a}C{b} {c} {d}"
            links += f'<path class="link {kind}" d="{path}"/>'
        piece = shown[node.token]
        fate = {ENDED: ", ended", DROPPED: ", dropped"}.get(node.fate, ", kept")
        tip = f"{piece}: log-probability {node.log_prob:.2f}, score {node.score:.2f}{fate}"
        marks += (
            f'<g class="node {kind}"><title>{escape(tip)}</title>'
            f'<text x="{x:.0f}" y="{y:.0f}">{escape(piece)}</text>'
            f'<text class="value" x="{x + text_width - 4:.0f}" y="{y:.0f}" text-anchor="end">'
            f"{node.log_prob:.1f}</text></g>"
        )
    heads = "".join(
        f'<text class="tick" x="{LEFT + step_width * step:.0f}" y="12">{step + 1}</text>'
        for step in range(1 + max((node.step for node in nodes), default=0))
    )
    about = "Hypotheses of beam search by step; what was dropped is grey, what ended is underlined."
    return (
        f'<svg class="tree" id="{identity}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="{identity}-title">'
        f'<title id="{identity}-title">{about}</title>{heads}{links}{marks}</svg>'
    )


def _class(node: Node, is_best: bool) -> str:
    return f"is-{node.fate}" + (" is-best" if is_best else "")
