"""seqwise check: the contract's invariances on a run and its data, a line each and a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from ..api import TrainedRun
from ..inspection.invariances import Invariance
from ..wording import counted
from .results import say_results
from .terminal import note, say


def verify_run(path: str, data: str | None, *, split: str | None, as_json: bool) -> bool:
    """Whether every invariance that applies is kept."""
    found = TrainedRun(path).check(data, split=split, tell=note)
    if as_json:
        say_results("check", ({"run": path, **invariance.to_dict()} for invariance in found))
    else:
        for invariance in found:
            say(str(invariance))
        say(_verdict(path, found))
    return not any(invariance.is_broken for invariance in found)


def _verdict(path: str, found: Sequence[Invariance]) -> str:
    broken = [invariance.name for invariance in found if invariance.is_broken]
    applying = counted(sum(invariance.difference is not None for invariance in found), "invariance")
    if not broken:
        return f"{path} keeps all {applying} that apply"
    return f"{path} fails {len(broken)} of {applying}: {', '.join(broken)}"
