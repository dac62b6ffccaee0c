"""Goals: what is done about a kind of target: how it is batched, validated, scored, sampled and predicted. GOALS is the
table.

next_token    of running text                  bits per character
next_values   of columns of numbers            log-likelihood, error and coverage of forecasts
label         of a whole sequence              accuracy
labels        of a whole sequence, any number  F1
number        of a whole sequence              squared error
tag           of each word                     F1 over entities, or accuracy
sequence      of tokens, for a source          BLEU, chrF, exact matches
span          of a passage, for a question     F1 over words, exact match
masked_token  of a text, hidden                accuracy, pseudo-perplexity
reconstruction  of a row of text, again          nats per token, the row being known
choice        of a few rows                    accuracy
caption       of a picture or a clip           CIDEr, BLEU
vector        of a text                        none: it is embedded with, or started from
picture       of nothing                       a bound in nats
"""

from __future__ import annotations

from ..data.schema import (
    CAPTION,
    CHOICE,
    LABEL,
    LABELS,
    MASKED_TOKEN,
    NEXT_TOKEN,
    NEXT_VALUES,
    NUMBER,
    PICTURE,
    RECONSTRUCTION,
    SEQUENCE,
    SPAN,
    TAG,
    VECTOR,
)
from .answer import AnswerGoal
from .caption import CaptionGoal
from .choice import ChoiceGoal
from .goal import AnyGoal as AnyGoal
from .goal import Goal as Goal
from .masked_token import MaskedTokenGoal
from .next_token import NextTokenGoal
from .next_values import NextValuesGoal
from .picture import PictureGoal
from .reconstruction import ReconstructionGoal
from .sequence import SequenceGoal
from .span import SpanGoal
from .tag import TagGoal
from .vector import VectorGoal

GOALS: dict[str, AnyGoal] = {
    NEXT_TOKEN: NextTokenGoal(),
    NEXT_VALUES: NextValuesGoal(),
    LABEL: AnswerGoal(),
    LABELS: AnswerGoal(),
    NUMBER: AnswerGoal(),
    TAG: TagGoal(),
    SEQUENCE: SequenceGoal(),
    RECONSTRUCTION: ReconstructionGoal(),
    MASKED_TOKEN: MaskedTokenGoal(),
    VECTOR: VectorGoal(),
    SPAN: SpanGoal(),
    CHOICE: ChoiceGoal(),
    PICTURE: PictureGoal(),
    CAPTION: CaptionGoal(),
}
