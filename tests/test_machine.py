"""What of this machine may be used; what cannot fit into memory is refused before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import schemas
import torch
from runs_by_hand import prepare

from seqwise import machine as module
from seqwise.decoding import DecodingConfig, generate
from seqwise.errors import ConfigError
from seqwise.machine import (
    available_cores,
    available_memory,
    check_memory,
    group_cores,
    in_words,
    wanted_threads,
)
from seqwise.models import MODELS
from seqwise.models.ngram import Ngram, NgramConfig

GB = 10**9


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_nearest_limit_counts_and_what_can_be_dropped_is_free(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None
    machine(tmp_path, {"proc/meminfo": "MemTotal: 900 kB\nMemAvailable:     500 kB\n"})
    assert available_memory(tmp_path) == 500 * 1024
    group = {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "100\n"}
    assert available_memory(machine(tmp_path, group)) == 500 * 1024
    machine(tmp_path, {"sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.stat": "anon 9\ninactive_file 50\n"})
    assert available_memory(tmp_path) == 950
    own = {"sys/fs/cgroup/user/memory.max": "300\n", "sys/fs/cgroup/user/memory.current": "200\n"}
    machine(tmp_path, {**own, "proc/self/cgroup": "0::/user\n"})
    assert available_memory(tmp_path) == 100
    first = {"memory.limit_in_bytes": "40\n", "memory.usage_in_bytes": "30\n"}
    machine(tmp_path, {f"sys/fs/cgroup/memory/{name}": text for name, text in first.items()})
    assert available_memory(tmp_path) == 10


def test_this_machine_has_some() -> None:
    found = available_memory()
    assert found is None or found > 1 << 20


def test_a_need_is_told_beside_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_memory", lambda: 2 * GB)
    check_memory(2 * GB, "this", "")
    with pytest.raises(ConfigError) as caught:
        check_memory(3 * GB, "this", "Ask for less.")
    assert str(caught.value) == "this needs about 3.0 GB of memory, and 2.0 GB are free. Ask for less."
    monkeypatch.setattr(module, "available_memory", lambda: None)
    check_memory(10**15, "this", "")
    assert [in_words(number) for number in (5, 2_500_000, 10**13)] == ["0.0 kB", "2.5 MB", "10.0 TB"]


HUGE: dict[str, dict[str, Any]] = {
    "hmm": {"num_states": 10**6},
    "window": {"window": 10**6},
    "conv": {"model_dim": 10**6},
    "rnn": {"model_dim": 10**6},
    "gru": {"model_dim": 10**6},
    "lstm": {"model_dim": 10**6, "embed_dim": 16},
    "gpt": {"model_dim": 10**6, "num_heads": 4},
    "kalman": {"state_dim": 10**6},
    "bert": {"model_dim": 10**6, "num_heads": 4},
    "word2vec": {"embed_dim": 10**9},
    "elmo": {"model_dim": 10**6, "memory_dim": 2 * 10**6},
    "seq2seq": {"model_dim": 10**6},
    "transformer": {"model_dim": 10**6, "num_heads": 4},
    "captioner": {"model_dim": 10**6},
    "glimpse": {"model_dim": 10**6},
    "draw": {"model_dim": 10**6},
    "crossmodal": {"model_dim": 10**6, "num_heads": 4},
}


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row.learns_by != "counting"])
def test_a_model_that_is_too_large_is_refused(name: str) -> None:
    row = MODELS[name]
    schema = schemas.of_family(name, 9)
    with pytest.raises(ConfigError, match=r"a model of this size needs about [\d,.]+ [GT]B of memory, and .* are free"):
        row.build(row.config(**HUGE[name]), schema)


@pytest.mark.parametrize("name", ["lstm", "gpt", "window"])
def test_the_size_that_is_told_is_that_of_the_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, interface = MODELS[name], schemas.of_text(300)
    model = row.build(row.config(), interface)
    exact = sum(tensor.numel() * tensor.element_size() for tensor in (*model.parameters(), *model.buffers()))
    assert row.bytes_of(row.config(), interface) >= exact  # roughly, and at most
    monkeypatch.setattr("seqwise.models.SURELY_FITS", 0)
    state = torch.get_rng_state()
    assert row.bytes_of(row.config(), interface) == exact
    assert torch.equal(torch.get_rng_state(), state)


def test_counting_that_would_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_memory", lambda: 10_000)
    model = Ngram(NgramConfig(order=100), schemas.of_text(3))
    with pytest.raises(ConfigError, match=r"counting grams of up to 100 tokens in a text of 499 needs about 432\.0 kB"):
        model.fit(torch.ones(500, dtype=torch.long).numpy())


def test_a_training_that_would_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cats.txt").write_text("the cat sat on the mat.\n" * 60)
    monkeypatch.setattr(module, "available_memory", lambda: 100_000_000)
    settings = ["model.model_dim=64", "training.batch_size=100000", "training.context=500"]
    with pytest.raises(ConfigError, match=r"training [\d,]+ weights, 100000 x 500 steps at a time, needs about"):
        prepare(tmp_path / "cats.txt", model="lstm", out=tmp_path / "run", steps=1, overrides=settings)
    assert not (tmp_path / "run").exists()
    prepare(tmp_path / "cats.txt", model="lstm", out=tmp_path / "run", steps=1, overrides=settings[:1])


@pytest.mark.parametrize("more", [{"num_results": 10**6}, {"method": "beam", "beam_width": 9, "max_tokens": 10**6}])
def test_a_generation_that_would_not_fit_is_refused(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    row = MODELS["gpt"]
    model = row.build(row.config(model_dim=8, num_heads=2, num_layers=1, context=64), schemas.of_text(9)).eval()
    monkeypatch.setattr(module, "available_memory", lambda: 100_000_000)
    with pytest.raises(
        ConfigError, match=r"generating [\d,]+ texts side by side, of [\d,]+ tokens at most, needs about"
    ):
        generate(model, [[0]], DecodingConfig(**more))
    assert len(generate(model, [[0]], DecodingConfig(num_results=20, max_tokens=2))[0]) == 20


def test_texts_without_end_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"max_tokens = 1000000000000 should be at most 1,000,000\."):
        DecodingConfig(max_tokens=10**12)
    with pytest.raises(ConfigError, match=r"model\.num_layers = 1000000 should be at most 1,000\."):
        MODELS["gpt"].config(num_layers=10**6)
    with pytest.raises(ConfigError, match=r"model\.order = 256 should be at most 255\."):
        NgramConfig(order=256)


@pytest.mark.parametrize(
    ("content", "cores"), [("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("max 100000", 1 << 20)]
)
def test_the_quota_of_a_container_is_read(tmp_path: Path, content: str, cores: int) -> None:
    assert group_cores(machine(tmp_path, {"sys/fs/cgroup/cpu.max": content + "\n"})) == cores


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("-1", 1 << 20)])
def test_that_of_an_older_kernel_too(tmp_path: Path, quota: str, cores: int) -> None:
    files = {"quota": quota, "period": "100000"}
    machine(tmp_path, {f"sys/fs/cgroup/cpu/cpu.cfs_{name}_us": text + "\n" for name, text in files.items()})
    assert group_cores(tmp_path) == cores


def test_without_a_quota_there_is_no_limit(tmp_path: Path) -> None:
    assert group_cores(tmp_path) == 1 << 20


def test_cores_are_the_fewer_of_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for quota, cores in ((3, 3), (1 << 20, 8)):
        monkeypatch.setattr(module, "group_cores", lambda quota=quota: quota)
        assert available_cores() == cores


@pytest.mark.parametrize(("value", "threads"), [("1", 1), ("4,2", 4), ("", None), ("0", None), ("many", None)])
def test_the_wish_for_threads_is_heard(monkeypatch: pytest.MonkeyPatch, value: str, threads: int | None) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert wanted_threads() == threads
