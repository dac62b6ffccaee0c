"""Numbers as people read them: few digits, a unit, and a word for what is no number."""

from __future__ import annotations

import math
from collections.abc import Sequence

UNKNOWN = "—"


def number(value: float, digits: int) -> str:
    """With so many digits behind the point: "1.713", "−0.250", "∞"."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.2e}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−", 1)


def per_cent(share: float) -> str:
    """Of a share: 0.94 is "94.0 %"."""
    return f"{number(100 * share, 1)} %"


def count(value: float) -> str:
    """ "950", "326 k", "1.2 M"."""
    return _scaled(value, ("", "k", "M", "B", "T"))


def size(value: float) -> str:
    """ "512 B", "4.8 MB"."""
    return _scaled(value, ("B", "kB", "MB", "GB", "TB"))


def duration(seconds: float) -> str:
    """ "0.4 s", "312 s", "14 min", "2.5 h"."""
    if not 0 < seconds < math.inf:
        return UNKNOWN
    for unit, length, limit in (("s", 1, 600), ("min", 60, 7200)):
        if seconds < limit:
            return f"{two_figures(seconds / length)} {unit}"
    return f"{two_figures(seconds / 3600)} h"


def milliseconds(value: float) -> str:
    """ "0.42 ms"."""
    return f"{two_figures(value)} ms" if 0 < value < math.inf else UNKNOWN


def two_figures(value: float) -> str:
    """Two that matter, or all before the point: "0.042", "4.2", "312"."""
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value >= 0.001 else "<0.001"


def _scaled(value: float, units: Sequence[str]) -> str:
    if not 0 < value < math.inf:
        return UNKNOWN
    power = 0
    while value >= 999.5 and power < len(units) - 1:
        value, power = value / 1000, power + 1
    text = f"{value:.1f}" if power and value < 9.95 else f"{value:,.0f}"
    return f"{text} {units[power]}".rstrip()
