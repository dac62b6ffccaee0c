"""What pages and tables of a comparison call things, by the kind of target."""

from __future__ import annotations

from dataclasses import dataclass

from ..data.schema import CAPTION, CHOICE, LABEL, LABELS, NEXT_TOKEN, NEXT_VALUES, NUMBER, SEQUENCE, SPAN, TAG

IN_WINDOWS = (
    "Each model reads windows of the text from nothing. A line that keeps falling uses what stood long before; "
    "where it turns flat, more to look back on no longer helps."
)
BY_LENGTH = (
    "The score of sources of each length. Without attention all of a source must pass through one state of "
    "fixed size: watch how that line leaves the others as sources get longer."
)


@dataclass(frozen=True)
class Words:
    unit: str = "steps"
    """What parts are counted in."""
    step: str = "step"
    """What a model reads or answers at once."""
    use: str = "seqwise predict {}"
    """The next command, given a run."""
    position: str = "place in the window"
    """What the score is drawn against."""
    position_title: str = "Do they use a long context?"
    position_lead: str = IN_WINDOWS
    labelled: str = "label"
    """What curves are drawn against the number of."""
    samples_lead: str = (
        "What each model writes on its own; the marked segment stands word for word in the training part."
    )


WORDS = {
    NEXT_TOKEN: Words("characters", "token", 'seqwise generate {} --prompt "…"'),
    NEXT_VALUES: Words(),
    LABEL: Words("sequences", "sequence"),
    LABELS: Words("sequences", "sequence"),
    NUMBER: Words("sequences", "sequence"),
    CHOICE: Words("questions", "question"),
    CAPTION: Words(
        "captions",
        "token",
        "seqwise caption {} IMAGE",
        samples_lead="What each model writes about the same pictures; in brackets what a person wrote.",
    ),
    TAG: Words("words", "row", "seqwise predict {} FILE", labelled="sentence"),
    SPAN: Words("questions", "question", 'seqwise answer {} --context FILE "…?"', labelled="question"),
    SEQUENCE: Words(
        "words",
        "token",
        position="length of the source",
        position_title="Do long sources hurt?",
        position_lead=BY_LENGTH,
        samples_lead="What each model makes of the same sources; in brackets the answer, where it is another one.",
    ),
}
KIND_OF_TASK = {"text": NEXT_TOKEN, "numbers": NEXT_VALUES, "label": LABEL, "pairs": SEQUENCE}
"""In results that were written before they named the kind."""


def words_for(kind: str) -> Words:
    return WORDS.get(kind, Words())
