"""What a layer shows to whoever looks inside: `note(self, "forget gate", f)`.

In training and serving nobody looks, and a note costs one look at an empty tuple. Under `record` (inspection/trace.py)
it reaches the recorder, and layers whose fast kernels hide what is inside take their plain path: `is_recorded()`.

What is noted has its time in a fixed place: (B, D) is one step, (B, T, D) a segment, (B, H, T, S) attention of H heads.
What is shown over a picture is listed in inspection/picture_maps.py and glimpses.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

Listener = Callable[[object, str, Tensor], None]


class _Heard(threading.local):
    listeners: tuple[Listener, ...] = ()


_heard = _Heard()  # each thread has its own


def note(site: object, what: str, value: Tensor) -> None:
    """Show `value` of the layer or model `site` under the name `what`."""
    for listener in _heard.listeners:
        listener(site, what, value)


def tap(site: object, what: str, value: Tensor) -> Tensor:
    """Notes a value and hands it on: what is used from here on is the very tensor that was shown, so that its gradient
    can be asked for."""
    if not _heard.listeners:
        return value
    if value.requires_grad:
        value = value.view_as(value)
    note(site, what, value)
    return value


def is_recorded() -> bool:
    return bool(_heard.listeners)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Notes of this thread go to `listener`, too, until the block ends."""
    _heard.listeners = (*_heard.listeners, listener)
    try:
        yield
    finally:
        _heard.listeners = tuple(other for other in _heard.listeners if other is not listener)


@contextmanager
def pause_recording() -> Iterator[None]:
    """Nothing is noted in the block: for work that is no step of its own, since what was read before is read again."""
    before, _heard.listeners = _heard.listeners, ()
    try:
        yield
    finally:
        _heard.listeners = before
