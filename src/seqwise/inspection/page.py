"""The inspection as one HTML file that needs nothing else: a tab for each view, one column for each model."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from .. import __version__
from ..errors import DataError
from ..pages.elements import Section, document, embedded_json, fact_list, shown
from ..pages.quantities import count
from ..pages.text import visible
from ..wording import counted, plural
from .contrast_view import LEAD, TITLE, contrast_view
from .inspect import Inspection
from .page_data import script_data
from .scales import Scales
from .views import VIEWS, Body

SCRIPTS = ("parts.js", "figures.js", "answers.js", "pictures.js", "inspect.js")
"""In this order, in one function."""
IF_ANSWERED = ("answer",)
"""Views of what was answered to a text: where nothing was, there is no such tab."""
IF_SEEN = ("picture",)
"""Views of who looks at pictures."""
LEADS = {
    "reading": "The stronger the colour, the less the model expected what stands there: hover over it, or step through "
    "with the arrow keys, to see what it cost, what was expected instead, and what went on inside.",
    "picture": "Where the model looked, and what its answer rests on: bright places are looked at, blue ones speak for "
    "what was said. Both need not agree: where a model looks is not always what it concludes from.",
    "answer": "What was answered, and which words moved it: blue ones speak for it, red ones against it, each with its "
    "number; where several ways to ask agree, believe them, and where they do not, look twice.",
    "inside": "Choose a gate, a state or a belief, and look for units whose colour changes with something "
    "you can see in the text; where there is a table, it lists the units that follow a feature of unseen "
    "text most closely, beside what chance would give.",
    "attention": "Each row of the map is a token, each column what it looks at: look for a diagonal (the one before), "
    "a first column (nothing in particular), and for heads that join words that belong together.",
    "gradients": "How much of the error at a token reaches what stood k tokens before it: a line that falls straight "
    "down on this scale loses the same share at every step, one that stays flat can learn from far back.",
    "memory": "How far back a change of one token moves the prediction: what counts or has a window ends at a wall, "
    "what has a state fades.",
    "search": "Beam search from left to right, what was dropped in grey: look for a path that was dropped early "
    "although it began well.",
    "embeddings": "Tokens as points, where those that stand near each other are used alike: the two directions are "
    "those in which the table differs most, and show only their share of it.",
    "positions": "Each row is the vector that says where a token stands: look for slow waves at one end and fast ones "
    "at the other, and for how soon two places stop being alike.",
}
WHERE_IT_STANDS = (
    "What was answered, and where in the passage the model saw it: the stronger the colour, the more probable it is "
    "that the answer begins, or ends, there. Colour at several places is doubt."
)
TITLES = {
    "reading": "Reading",
    "picture": "Picture",
    "answer": "Answer",
    "inside": "Inside",
    "attention": "Attention",
    "gradients": "Gradients",
    "memory": "Memory",
    "search": "Search",
    "embeddings": "Embeddings",
    "positions": "Positions",
}


def write_inspection(found: Sequence[Inspection]) -> str:
    """One model, or two side by side on the same text."""
    is_answered = any(one.evidence or one.tagging or one.answering for one in found)
    is_seen = any(one.seen for one in found)
    left_out = [*([] if is_answered else IF_ANSWERED), *([] if is_seen else IF_SEEN)]
    views = {view: body for view, body in VIEWS.items() if view not in left_out}
    sections = [_section(found, view, body) for view, body in views.items()]
    if found[0].contrast is not None:
        sections.insert(1, Section("between", TITLE, escape(LEAD), contrast_view(found[0].contrast), False))
    names = _names(found)
    facts = {
        name: f"{one.family}, {count(one.parameters)} {plural(one.parameters, 'number')}; "
        f"{counted(len(one.reading.bits), 'step')}: "
        f"{visible(one.text, limit=200)}"
        for name, one in zip(names, found, strict=True)
    }
    warnings = "".join(
        f'<p class="warning">{shown(f"{name}: {note}")}</p>'
        for name, one in zip(names, found, strict=True)
        for note in one.reading.notes
    )
    return document(
        " and ".join(dict.fromkeys(visible(one.name) for one in found)),
        sections,
        command="seqwise inspect",
        version=__version__,
        head=fact_list(facts) + warnings,
        opening="".join(embedded_json(f"model-{place}", script_data(one)) for place, one in enumerate(found)),
        style=_own("inspect.css"),
        script=f'(() => {{\n"use strict";\n{"".join(map(_own, SCRIPTS))}}})();\n',
        has_pictures=is_seen,
    )


def save_inspection(found: Sequence[Inspection], path: Path) -> int:
    """The page as a file; how many bytes it has."""
    page = write_inspection(found).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from None
    return len(page)


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _names(found: Sequence[Inspection]) -> list[str]:
    """What each column is called: by its run, or where that is the same by its text."""
    names = [one.name for one in found]
    if len(set(names)) == len(names):
        return [visible(name) for name in names]
    texts = [visible(one.text, limit=60) for one in found]
    return texts if len(set(texts)) == len(texts) else [f"{name} ({n})" for n, name in enumerate(names, start=1)]


def _section(found: Sequence[Inspection], view: str, body: Body) -> Section:
    """A column for each model; where a family has nothing to show, the reason."""
    columns, scales, is_empty = [], Scales(), True
    for place, one in enumerate(found):  # the first time to know what is shown
        body(one, place, scales)
    for place, (name, one) in enumerate(zip(_names(found), found, strict=True)):
        head = f"<h3>{escape(name)}</h3>" if len(found) > 1 else ""
        inside = body(one, place, scales)
        if view in one.absent or not inside:
            why = one.absent.get(view, "there is nothing to show.")
            head += f'<p class="nothing">{"" if inside else "Nothing to see here: "}{shown(why)}</p>'
        is_empty = is_empty and not inside
        columns.append(f'<div class="column" data-model="{place}" data-view="{view}">{head}{inside}</div>')
    side_by_side = f'<div class="columns is-{len(columns)}">{"".join(columns)}</div>'
    is_in_passage = view in IF_ANSWERED and any(one.answering for one in found)
    lead = WHERE_IT_STANDS if is_in_passage else LEADS[view]
    return Section(view, TITLES[view], escape(lead), side_by_side, is_empty)
