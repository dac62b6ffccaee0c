"""A body with a head that gives a whole sequence one answer: a label, or a number.

Shapes: B batch, N labels.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..data.batch import Batch, Labels
from ..layers.heads import LOG_TWO_PI, LabelHead
from .contract import Body, Loss, Prediction, State, Term


class LabelModel(nn.Module):
    body: Body
    head: LabelHead
    carries_state = False

    def __init__(self, body: nn.Module, head: LabelHead):
        super().__init__()
        self.body, self.head = body, head  # type: ignore[assignment]
        self.context = self.body.context

    def answers(self, batch: Batch) -> Tensor:
        """log p of each label (B, N), or the number (B, 1)."""
        (field,) = batch.inputs.values()
        hidden, _ = self.body.encode(field, None)
        return self.head(hidden, field.lengths)

    def score(self, batch: Batch, state: State | None = None) -> tuple[Tensor, State | None]:
        """log p of each row's label, or the log density of its number with an error of unit variance: (B, 1)."""
        answers, (wanted,) = self.answers(batch), batch.targets.values()
        if isinstance(wanted, Labels):
            return answers.gather(1, wanted.ids.unsqueeze(1)), None
        return -0.5 * (answers - wanted.values[:, 0]) ** 2 - 0.5 * LOG_TWO_PI, None

    def loss(self, batch: Batch, state: State | None = None) -> Loss:
        log_probs, _ = self.score(batch)
        ((name, wanted),) = batch.targets.items()
        return Loss({name: Term(-log_probs.sum(), wanted.count(), over=name)})

    def predict(self, batch: Batch) -> Prediction:
        answers = self.answers(batch)
        if self.head.num_labels:
            return Prediction(answers.argmax(dim=1), answers)
        return Prediction(answers[:, 0], None)
