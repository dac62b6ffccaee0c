"""What happened inside a model while it read or wrote: the one source of all views.

    with record(model) as trace:
        model.score(batch)
    trace["body.blocks.0.attention", "attention"]     # (B, H, T, S)
    trace.all("forget gate")                          # [(site, (B, T, D)), ...], from the first layer to the last

Layers and count models note what is worth seeing (layers/notes.py). Recording changes no result; models take their
plain path meanwhile, so it is slower. Gradients flow through what is noted where they are enabled.

Shapes: B batch, T steps, S steps seen, D width, H heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ..layers.notes import listening

Key = tuple[str, str]


class Trace:
    """What was noted, by site and by what it is; notes of one site follow one another in time."""

    def __init__(self, model: object):
        self._names = {id(model): ""}
        if isinstance(model, nn.Module):
            self._names = {id(module): name for name, module in model.named_modules()}
        self._calls: dict[Key, list[Tensor]] = {}

    def add(self, site: object, what: str, value: Tensor) -> None:
        name = self._names.get(id(site))
        if name is not None:  # another model may run meanwhile
            self._calls.setdefault((name, what), []).append(value)

    def __getitem__(self, key: Key) -> Tensor:
        """All notes of a site joined along time: (B, T, D), or (B, H, T, S) for attention."""
        sizes = sorted({len(call) for call in self._calls[key]})
        if len(sizes) > 1:
            raise ValueError(
                f"the batch had {' and '.join(map(str, sizes))} rows while {key} was noted, as a beam that widens has: "
                "see trace.calls(key), one tensor for each step."
            )
        return _joined(self._calls[key])

    def __contains__(self, key: Key) -> bool:
        return key in self._calls

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._calls)

    def calls(self, key: Key) -> list[Tensor]:
        """The tensors themselves, as they were noted: what gradients are asked of."""
        return self._calls[key]

    def all(self, what: str) -> list[tuple[str, Tensor]]:
        """By site, in the order in which they were first noted."""
        return [(site, self[site, what]) for site, name in self._calls if name == what]

    def passes(self, what: str, num_steps: int) -> list[tuple[str, Tensor]]:
        """The same where one text of so many steps was read in one go: a layer that is passed several times, its
        weights being shared, stands there once for each time, as if it were several layers."""
        found = []
        for site, name in self._calls:
            if name != what:
                continue
            calls = self._calls[site, name]
            if len(calls) > 1 and all(call.dim() > 2 and call.shape[-2] == num_steps > 1 for call in calls):
                found += [(_layer_behind(site, number), call) for number, call in enumerate(calls)]
            else:
                found.append((site, self[site, name]))
        return found

    def table(self) -> list[dict[str, Any]]:
        """One row for all notes of a kind: where, what, how many times, the last one's shape, what values are like."""
        rows = []
        for site, what in self._calls:
            calls = self._calls[site, what]
            values = torch.cat([call.detach().double().flatten() for call in calls])
            row: dict[str, Any] = {"site": site, "what": what, "times": len(calls), "shape": tuple(calls[-1].shape)}
            spread = float(values.std()) if len(values) > 1 else 0.0
            ends = {"low": float(values.min()), "high": float(values.max())}
            rows.append({**row, "mean": float(values.mean()), "sd": spread, **ends})
        return rows

    def arrays(self) -> dict[str, Any]:
        """For notebooks: 'site: what' -> numpy array."""
        return {f"{site}: {what}".lstrip(": "): self[site, what].detach().cpu().numpy() for site, what in self._calls}


@contextmanager
def record(model: object) -> Iterator[Trace]:
    """What `model` notes in this thread until the block ends."""
    trace = Trace(model)
    with listening(trace.add):
        yield trace


def _layer_behind(site: str, number: int) -> str:
    """'body.blocks.0.attention', 2 -> 'body.blocks.2.attention'."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", lambda found: str(int(found[0]) + number), site, count=1)


def _joined(calls: list[Tensor]) -> Tensor:
    if calls[0].dim() == 2:  # a step each
        return torch.stack(calls, dim=1)
    if len(calls) == 1:
        return calls[0]
    if calls[0].dim() == 3:
        return torch.cat(calls, dim=1)
    widest = max(call.shape[-1] for call in calls)  # attention: later steps see more
    return torch.cat([pad(call, (0, widest - call.shape[-1])) for call in calls], dim=2)
