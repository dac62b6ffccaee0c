"""Which part of a picture an answer, a label or a caption rests on: what it loses where that part is hidden.

    lost(place) = log p(answer | picture) - log p(answer | picture with the place hidden)     (1)   Zeiler & Fergus 2014
    heat(cell)  = mean of (1) over the hidden places that cover the cell                       (2)

A place is a square of 2 x 2 cells of a coarse grid, painted in the mean colour of the training pictures, so that the
model sees about nothing there; it is moved cell by cell. In clips it is hidden in all frames, and each frame once by
itself. Where a model is given regions and no picture, a hidden region is the mean of the others.

What is measured needs answers alone, so any model can be asked. Parts that say the same hide each other, and what is
painted over is itself something to be seen: believe large numbers, not small ones.

Shapes: B batch, K answers (or words) asked about, P places, h and w cells, T frames, N regions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import torch
from torch import Tensor

from ..data.batch import Batch, Images, Regions, rows_of
from ..models.contract import device_of, evaluating
from ..pages.pictures import Box, as_box

ROWS = 32  # that are scored at once
MAX_CELLS = 10  # along the longer side
SPAN = 2  # cells of a hidden place, in each direction
MIN_LOST = 0.1  # nats: below, an answer hardly rests on any one place
MOST = 700.0  # nats
IMAGE = "image"

Scores = Callable[[Batch], Tensor]
"""Log-probability of each thing asked about, of each row: (B, K), nats."""


@dataclass(frozen=True)
class Occlusion:
    asked: list[str]
    """Answers, or a caption and its words."""
    log_probs: list[float]
    """Of each, nothing being hidden: nats."""
    places: list[Box]
    """That were hidden."""
    lost: np.ndarray
    """(K, P), nats: (1)."""
    heat: np.ndarray
    """(K, h, w), nats: (2); (K, N) of regions."""
    by_frame: np.ndarray | None = None
    """(K, T), nats: what is lost without each frame; None where there is one."""

    def most(self, asked: int) -> tuple[Box, float]:
        """The place whose loss costs most, and how much."""
        place = int(self.lost[asked].argmax())
        return self.places[place], float(self.lost[asked, place])

    def told(self, asked: int) -> str:
        """In a sentence."""
        box, lost = self.most(asked)
        if lost < MIN_LOST:
            return "It hardly rests on any one place: hiding none of them costs a tenth of a nat."
        return f"It rests most on the {place_named(box)}: with that hidden it loses {lost:.2f} nats."


def place_named(box: Box) -> str:
    """ "upper left (12 to 37 % from the left, 0 to 25 % from the top)"."""
    left, top, right, bottom = box
    column = min(2, int(3 * (left + right) / 2))
    row = min(2, int(3 * (top + bottom) / 2))
    name = (("upper left", "upper middle", "upper right"), ("middle left", "middle", "middle right"),
            ("lower left", "lower middle", "lower right"))[row][column]  # fmt: skip
    x, y = (f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in ((left, right), (top, bottom)))
    return f"{name} ({x} from the left, {y} from the top)"


def occlusion(
    model: object, scores: Scores, batch: Batch, asked: Sequence[str], fill: Sequence[float] = ()
) -> Occlusion:
    """Of one row. `fill`: what hidden pixels are painted in, from 0 to 255 for each channel."""
    seen = batch.inputs[IMAGE]
    with torch.inference_mode(), evaluating(model):
        whole = _finite(scores(batch.to(device_of(model))))  # (1, K)
        if isinstance(seen, Regions):
            boxes = _boxes(seen)
            lost = whole.T - _scored(model, scores, batch, _without_regions(seen)).T
            return Occlusion(list(asked), whole[0].tolist(), boxes, lost, lost)
        paint = torch.tensor([round(value) for value in fill], dtype=torch.uint8).view(-1, 1, 1)
        rows, columns = _edges(seen)
        places = list(_squares(rows, columns))
        lost = whole.T - _scored(model, scores, batch, _painted(seen, places, paint)).T  # (K, P)
        by_frame = None
        if seen.shape[1] > 1:
            by_frame = whole.T - _scored(model, scores, batch, _without_frames(seen, paint)).T
    heat = _heat(lost, (len(rows) - 1, len(columns) - 1))
    (height, width) = rows[-1], columns[-1]
    boxes = [
        as_box((left / width, top / height, right / width, bottom / height)) for top, bottom, left, right in places
    ]
    return Occlusion(list(asked), whole[0].tolist(), boxes, lost, heat, by_frame)


def _scored(model: object, scores: Scores, batch: Batch, hidden: Iterator[Images | Regions]) -> np.ndarray:
    """Of the row with each of these instead of its picture, (P, K)."""
    found, waiting = [], []
    for one in [*hidden, None]:
        if one is not None:
            waiting.append(one)
        if waiting and (one is None or len(waiting) == ROWS):
            inputs, targets = (
                {name: rows_of(field, len(waiting)) for name, field in fields.items()}
                for fields in (batch.inputs, batch.targets)
            )
            rows = Batch({**inputs, IMAGE: _joined(waiting)}, targets)
            found.append(_finite(scores(rows.to(device_of(model)))))
            waiting = []
    return np.concatenate(found)


def _finite(log_probs: Tensor) -> np.ndarray:
    """What is impossible has no difference: it counts as very improbable."""
    return log_probs.double().clamp(min=-MOST).cpu().numpy()


def _joined(rows: Sequence[Images | Regions]) -> Images | Regions:
    first = rows[0]
    if isinstance(first, Images):
        pixels = torch.cat([row.pixels for row in rows if isinstance(row, Images)])
        return replace(first, pixels=pixels, is_step=_expanded(first.is_step, len(rows)))
    features = torch.cat([row.features for row in rows if isinstance(row, Regions)])
    others = (first.boxes, first.is_region, first.labels, first.is_scored)
    return Regions(features, *(_expanded(other, len(rows)) for other in others))


def _expanded(tensor: Tensor | None, num: int) -> Tensor | None:
    return None if tensor is None else tensor.expand(num, *tensor.shape[1:])


# -- what is hidden ----------------------------------------------------------------------------------------------------


def _edges(seen: Images) -> tuple[list[int], list[int]]:
    """Of the rows and the columns of the coarse grid, in pixels."""
    height, width = seen.pixels.shape[-2:]
    longer = max(height, width)
    cells = min(MAX_CELLS, longer)
    found = []
    for side in (height, width):
        num = max(1, round(cells * side / longer))
        found.append(np.linspace(0, side, num + 1).round().astype(int).tolist())
    return found[0], found[1]


def _spans(num: int) -> list[tuple[int, int]]:
    """First cell, and the one behind the last, of each place along one side."""
    span = min(SPAN, num)
    return [(first, first + span) for first in range(num - span + 1)]


def _squares(rows: Sequence[int], columns: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Top, bottom, left and right of each, in pixels, row by row."""
    for (top, bottom), (left, right) in product(_spans(len(rows) - 1), _spans(len(columns) - 1)):
        yield rows[top], rows[bottom], columns[left], columns[right]


def _painted(seen: Images, places: Sequence[tuple[int, int, int, int]], paint: Tensor) -> Iterator[Images]:
    for top, bottom, left, right in places:
        pixels = seen.pixels.clone()
        pixels[..., top:bottom, left:right] = paint.to(pixels.device)
        yield replace(seen, pixels=pixels)


def _without_frames(seen: Images, paint: Tensor) -> Iterator[Images]:
    for frame in range(seen.shape[1]):
        pixels = seen.pixels.clone()
        pixels[:, frame] = paint.to(pixels.device)
        yield replace(seen, pixels=pixels)


def _without_regions(seen: Regions) -> Iterator[Regions]:
    for region in range(seen.shape[1]):
        features = seen.features.clone()
        others = [place for place in range(seen.shape[1]) if place != region]
        features[:, region] = features[:, others].mean(dim=1) if others else 0.0
        yield replace(seen, features=features)


def _boxes(seen: Regions) -> list[Box]:
    if seen.boxes is None:
        return [(0.0, 0.0, 1.0, 1.0)] * seen.shape[1]
    return [as_box(box) for box in seen.boxes[0].tolist()]


def _heat(lost: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(2): (K, P) -> (K, h, w)."""
    total, covered = np.zeros((len(lost), *shape)), np.zeros(shape)
    for place, ((top, bottom), (left, right)) in enumerate(product(_spans(shape[0]), _spans(shape[1]))):
        total[:, top:bottom, left:right] += lost[:, place, None, None]
        covered[top:bottom, left:right] += 1
    return total / covered
