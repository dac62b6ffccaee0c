"""Every test has a cache of its own and sees no data sets but those it brings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

SHARED_DATA = os.environ.get("SEQWISE_DATA")


@pytest.fixture(autouse=True)
def _own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("SEQWISE_DATA", raising=False)
    torch.manual_seed(0)


@pytest.fixture
def shared_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of public data sets, for tests that need one; they skip where it is missing."""
    if not SHARED_DATA or not Path(SHARED_DATA).exists():
        pytest.skip("needs the public data sets: set SEQWISE_DATA to their folder")
    monkeypatch.setenv("SEQWISE_DATA", str(Path(SHARED_DATA).resolve()))
    return Path(SHARED_DATA).resolve()
