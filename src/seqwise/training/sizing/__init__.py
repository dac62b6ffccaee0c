"""Sizes by rule: what model and batch suit this much data and this much time. Every choice can be set by hand. SIZES is
the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...data.schema import (
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
from ...goals.goal import Facts
from . import answer, caption, masked_token, next_token, next_values, picture, reconstruction, sequence, span, tag
from .common import DEFAULT_MINUTES as DEFAULT_MINUTES
from .common import fitting_heads as fitting_heads
from .common import min_training_bytes as min_training_bytes
from .common import narrowed as narrowed
from .next_token import tried_tokens as tried_tokens

Sizes = tuple[dict[str, Any], dict[str, Any]]
"""Settings for the sections model and training."""
SIZES: dict[str, Callable[[str, Facts], Sizes]] = {
    NEXT_TOKEN: next_token.sizes,
    NEXT_VALUES: next_values.sizes,
    LABEL: answer.sizes,
    LABELS: answer.sizes,
    NUMBER: answer.sizes,
    TAG: tag.sizes,
    SEQUENCE: sequence.sizes,
    RECONSTRUCTION: reconstruction.sizes,
    MASKED_TOKEN: masked_token.sizes,
    VECTOR: answer.sizes,
    SPAN: span.sizes,
    CHOICE: answer.sizes,
    PICTURE: picture.sizes,
    CAPTION: caption.sizes,
}
"""By the kind of target: of which family, given what is known of the data."""


def suggest(model_name: str, kind: str, facts: Facts) -> Sizes:
    return SIZES[kind](model_name, facts)
