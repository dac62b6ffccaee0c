"""Goals: what is done about a kind of target: how it is batched, validated, scored, sampled and predicted. GOALS is the
table.

next_token    of running text                  bits per character
next_values   of columns of numbers            log-likelihood, error and coverage of forecasts
label         of a whole sequence              accuracy
labels        of a whole sequence, any number  F1
number        of a whole sequence              squared error
tag           of each word                     F1 over entities, or accuracy
sequence      of tokens, for a source          BLEU, chrF, exact matches
reconstruction  of a row of text, again          nats per token, the row being known
"""

from __future__ import annotations

from ..data.schema import LABEL, LABELS, NEXT_TOKEN, NEXT_VALUES, NUMBER, RECONSTRUCTION, SEQUENCE, TAG
from .answer import AnswerGoal
from .goal import AnyGoal as AnyGoal
from .goal import Goal as Goal
from .next_token import NextTokenGoal
from .next_values import NextValuesGoal
from .reconstruction import ReconstructionGoal
from .sequence import SequenceGoal
from .tag import TagGoal

GOALS: dict[str, AnyGoal] = {
    NEXT_TOKEN: NextTokenGoal(),
    NEXT_VALUES: NextValuesGoal(),
    LABEL: AnswerGoal(),
    LABELS: AnswerGoal(),
    NUMBER: AnswerGoal(),
    TAG: TagGoal(),
    SEQUENCE: SequenceGoal(),
    RECONSTRUCTION: ReconstructionGoal(),
}
