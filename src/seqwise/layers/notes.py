"""What a layer shows to whoever looks inside: `note(self, "forget gate", f)`.

In training and serving nobody looks, and a note costs one comparison. Under `record` (inspection/trace.py) it reaches
the recorder, and layers whose fast kernels hide what is inside take their plain path: `is_recorded()`.

What is noted has its time in a fixed place: (B, D) is one step, (B, T, D) a stretch, (B, H, T, S) attention of H heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

Listener = Callable[[object, str, Tensor], None]
_listener: Listener | None = None


def note(site: object, what: str, value: Tensor) -> None:
    """Show `value` of the layer or model `site` under the name `what`."""
    if _listener is not None:
        _listener(site, what, value)


def noted(site: object, what: str, value: Tensor) -> Tensor:
    """The same, for a value whose gradient is asked for: what is used from here on is the tensor that was shown."""
    if _listener is None:
        return value
    value = value.view_as(value)
    _listener(site, what, value)
    return value


def is_recorded() -> bool:
    return _listener is not None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Notes go to `listener` until the block ends; to one at a time."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before
