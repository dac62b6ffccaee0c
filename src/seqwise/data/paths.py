"""Where things lie on this machine: the cache of token stores, and the folder of public data sets."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """SEQWISE_CACHE, else seqwise below the user's cache folder."""
    if given := os.environ.get("SEQWISE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seqwise"


def data_folders() -> list[Path]:
    """Where data sets are looked up: the folder in SEQWISE_DATA first, then what `seqwise data get` fetched."""
    given = os.environ.get("SEQWISE_DATA")
    return [*([Path(given)] if given else []), cache_folder() / "data"]
