"""seqwise doctor: what this machine has."""

from __future__ import annotations

import os
import platform
import shutil
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from .. import __version__
from ..data.paths import cache_folder, data_folders
from ..wording import counted

PACKAGES = ("torch", "numpy", "numba", "tokenizers", "safetensors", "typer", "rich")


def examine() -> dict[str, str]:
    cache = cache_folder()
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    found = {
        "seqwise": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": f"{os.cpu_count()} ({counted(torch.get_num_threads(), 'torch thread')})",
        "load": f"{os.getloadavg()[0]:.1f}" + (" (busy: timings will be off)" if os.getloadavg()[0] > 1.5 else ""),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none; the CPU does it",
        "matrix products": f"{_gigaflops():.0f} GFLOP/s in float32",
        "cache": f"{cache} ({shutil.disk_usage(existing).free / 1e9:.0f} GB free)",
        "cache is writable": "yes" if os.access(existing, os.W_OK) else "no: set SEQWISE_CACHE to a folder that is",
        "data folders": ", ".join(str(folder) for folder in data_folders() if Path(folder).exists()) or "none yet",
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing: install seqwise again"
    return found


def _gigaflops(size: int = 512, repeats: int = 10) -> float:
    a, b = torch.randn(4 * size, size), torch.randn(size, size)
    a @ b
    began = time.perf_counter()
    for _ in range(repeats):
        a @ b
    return repeats * 2 * 4 * size**3 / (time.perf_counter() - began) / 1e9
