"""Everything that the page shows, for programs: plain lists and numbers with five digits that matter."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .inspect import Inspection
from .minimal_pairs import by_distance
from .reading import Reading


def to_plain(value: Any) -> Any:
    """Dataclasses become objects, arrays lists, and what is no number nothing."""
    if isinstance(value, Reading):  # the pass itself stays behind
        shown = ("pieces", "source", "ids", "bits", "expected", "columns", "answer", "wanted", "notes")
        return {name: to_plain(getattr(value, name)) for name in shown}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:  # pixels stay behind
        return {"pixels": list(value.shape)}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    return value


def inspection_as_json(found: Inspection) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(found)
    plain["attention_heads"] = [to_plain(each.heads()) for each in found.attention]
    plain["half_lives"] = [{"site": flow.site, "what": flow.what, "lag": flow.half_life()} for flow in found.flow]
    plain["reach"] = None if found.influence is None else found.influence.reach()
    plain["units_found"] = [track.is_found for track in found.tracked]
    plain["minimal_pairs_by_distance"] = to_plain(by_distance(found.minimal_pairs))
    return plain
