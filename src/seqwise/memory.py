"""Memory: how much there is, and a sentence instead of a crash where something would need more."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ConfigError

ROOT = Path("/")


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes that can still be taken: of the machine, and of the control group we run in. None where nobody tells."""
    found = [left for left in (_of_machine(root), _of_group(root)) if left is not None]
    return min(found) if found else None


def check_memory(needed: int, what: str, advice: str) -> None:
    """Refuse what cannot fit, before anything is allocated."""
    there = available_memory()
    if there is not None and needed > there:
        raise ConfigError(f"{what} needs about {in_words(needed)} of memory, and {in_words(there)} are free. {advice}")


def in_words(num_bytes: int) -> str:
    """1,500,000 -> 1.5 MB"""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes / 1e3:,.1f} kB"


def _of_machine(root: Path) -> int | None:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if root == ROOT else None
    except (ValueError, OSError, AttributeError):
        return None


def _of_group(root: Path) -> int | None:
    """What the nearest limit leaves, by either version of control groups; files that can be dropped count as free."""
    groups = root / "sys/fs/cgroup"
    own = [line.split(":", 2)[-1].strip("/") for line in _read(root / "proc/self/cgroup").splitlines()]
    left = []
    for folder, most, used, droppable in (
        (groups, "memory.max", "memory.current", "inactive_file"),
        (groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for place in {folder, *(folder / name for name in own)}:
            limit, taken = _read(place / most).strip(), _read(place / used).strip()
            if limit.isdigit() and taken.isdigit():
                stat = dict(line.split(" ", 1) for line in _read(place / "memory.stat").splitlines() if " " in line)
                left.append(max(0, int(limit) - int(taken) + int(stat.get(droppable, 0))))
    return min(left) if left else None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
