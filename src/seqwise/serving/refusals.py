"""Which status says what went wrong: one table, for answers and for streams that have begun."""

from __future__ import annotations

from .batching import FullError, LateError
from .hosting import UnknownRunError

STATUS: dict[type[Exception], int] = {FullError: 429, LateError: 408, UnknownRunError: 404}
BY_DEFAULT = 400  # what people can do wrong


def status_of(error: Exception) -> int:
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), BY_DEFAULT)
