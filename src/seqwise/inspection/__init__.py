"""Looking inside a model: what its layers note while it reads or writes, and the views that are made of it."""

from .trace import Trace, record

__all__ = ["Trace", "record"]
