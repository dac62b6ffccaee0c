"""What of this machine may be used: cores, threads."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def available_cores() -> int:
    """Cores that this process may really use: by its affinity, and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, cgroup_cores()))


def cgroup_cores(root: Path = CGROUP) -> int:
    """Whole cores of the container's quota (cgroup v2 or v1); very many where there is none."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = ((root / "cpu" / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        except OSError:
            return 1 << 20
    if quota in ("max", "-1"):
        return 1 << 20
    return max(1, math.ceil(int(quota) / int(period)))


def wanted_threads() -> int | None:
    """What OMP_NUM_THREADS asks for; None where it says nothing."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None
