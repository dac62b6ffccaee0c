"""Settings that stand once, in a dataclass, as named parameters of every function that hands them on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
AS_SET: Any = object()


def takes(settings: type, *, default: Any = AS_SET, without: tuple[str, ...] = ()) -> Callable[[Function], Function]:
    """A function with **settings, seen from outside as one with the fields of a dataclass, each by its name.

    `default` takes the place of the fields' own: None, where what is not said is left to somebody else.
    """
    named = [
        inspect.Parameter(
            found.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(found) if default is AS_SET else default,
            annotation=found.type,
        )
        for found in fields(settings)
        if found.name not in without
    ]

    def told(function: Function) -> Function:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        added = [p for p in named if p.name not in own.parameters]
        signature = own.replace(parameters=sorted([*kept, *added], key=lambda parameter: parameter.kind))

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            signature.bind(*args, **kwargs)  # refuses a name that is not known, as Python does
            return function(*args, **kwargs)

        called.__signature__ = signature  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return told


def _default(found: Any) -> Any:
    if found.default is not MISSING:
        return found.default
    return inspect.Parameter.empty if found.default_factory is MISSING else found.default_factory()
