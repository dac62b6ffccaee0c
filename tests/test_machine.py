"""What of this machine may be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seqwise import machine
from seqwise.machine import available_cores, cgroup_cores, wanted_threads


@pytest.mark.parametrize(
    ("content", "cores"), [("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("max 100000", 1 << 20)]
)
def test_the_quota_of_a_container_is_read(tmp_path: Path, content: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(content + "\n")
    assert cgroup_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("-1", 1 << 20)])
def test_that_of_an_older_kernel_too(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert cgroup_cores(tmp_path) == cores


def test_without_a_quota_there_is_no_limit(tmp_path: Path) -> None:
    assert cgroup_cores(tmp_path) == 1 << 20


def test_cores_are_the_fewer_of_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for quota, cores in ((3, 3), (1 << 20, 8)):
        monkeypatch.setattr(machine, "cgroup_cores", lambda quota=quota: quota)
        assert available_cores() == cores


@pytest.mark.parametrize(("value", "threads"), [("1", 1), ("4,2", 4), ("", None), ("0", None), ("many", None)])
def test_the_wish_for_threads_is_heard(monkeypatch: pytest.MonkeyPatch, value: str, threads: int | None) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert wanted_threads() == threads
