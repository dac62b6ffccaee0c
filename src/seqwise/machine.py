"""What of this machine may be used: cores, threads, memory; a sentence instead of a crash where memory is too small."""

from __future__ import annotations

import math
import os
from pathlib import Path

from .errors import ConfigError

ROOT = Path("/")
NO_LIMIT = 1 << 20  # cores
ALWAYS_THERE = 10_000_000  # bytes: so few are not worth looking for what is free


def available_cores() -> int:
    """Cores that this process may really use: by its affinity, and by the quota of the control group it runs in."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, group_cores()))


def group_cores(root: Path = ROOT) -> int:
    """Cores of the nearest quota, by either version of control groups, rounded up; very many where there is none."""
    found = [NO_LIMIT]
    for place in _groups(root, ""):
        quota, _, period = _read(place / "cpu.max").strip().partition(" ")
        if quota.isdigit() and period.isdigit():
            found.append(max(1, math.ceil(int(quota) / int(period))))
    for place in _groups(root, "cpu"):
        quota, period = (_read(place / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
        if quota.isdigit() and period.isdigit():
            found.append(max(1, math.ceil(int(quota) / int(period))))
    return min(found)


def cpu_vendor(root: Path = ROOT) -> str:
    """Who made the processor, as Linux has it: "GenuineIntel", "AuthenticAMD"; empty where nobody tells."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "vendor_id":
            return value.strip()
    return ""


def wanted_threads() -> int | None:
    """What OMP_NUM_THREADS asks for; None where it says nothing."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None


def available_memory(root: Path = ROOT) -> int | None:
    """Bytes that can still be taken: of the machine, and of the control group we run in. None where nobody tells."""
    found = [left for left in (_of_machine(root), _of_group(root)) if left is not None]
    return min(found) if found else None


def check_memory(needed: int, what: str, advice: str) -> None:
    """Refuse what cannot fit, before anything is allocated."""
    if needed < ALWAYS_THERE:
        return
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
    left = []
    for controller, most, used, droppable in (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for place in _groups(root, controller):
            limit, taken = _read(place / most).strip(), _read(place / used).strip()
            if limit.isdigit() and taken.isdigit():
                stat = dict(line.split(" ", 1) for line in _read(place / "memory.stat").splitlines() if " " in line)
                left.append(max(0, int(limit) - int(taken) + int(stat.get(droppable, 0))))
    return min(left) if left else None


def _groups(root: Path, controller: str) -> set[Path]:
    """Folders of the control groups that we may be in; of version 1 each controller has its own."""
    own = [line.split(":", 2)[-1].strip("/") for line in _read(root / "proc/self/cgroup").splitlines()]
    folder = root / "sys/fs/cgroup" / controller
    return {folder, *(folder / name for name in own)}


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
