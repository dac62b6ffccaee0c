"""Runs that hold an adapter: small, to be used like any other, resumed to the bit, and nothing without their base."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from runs_by_hand import log_without_clock, prepare, stop_after
from safetensors.torch import load_file

import seqwise
from seqwise.errors import CheckpointError, ConfigError
from seqwise.run import Run
from seqwise.training.preparing import resume

LORA = ["model.adapter=lora", "model.adapter_rank=2", "training.threads=1", "training.learning_rate=0.02"]
BASE = ["model.model_dim=64", "model.num_layers=2", "model.num_heads=2", "model.context=16", "training.context=16"]
BASE += ["training.batch_size=8", "training.num_samples=0"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder, a language model, and rows whose label is told by a word."""
    folder = tmp_path_factory.mktemp("adapters")
    words = ["cat", "dog", "hat", "mat"]
    lines = [f"the {words[i % 4]} sat on my {words[i // 4 % 4]} {i} today" for i in range(160)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    rows = [f"{line},{'pet' if i % 4 < 2 else 'thing'}" for i, line in enumerate(lines)]
    (folder / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    for family, more in (("bert", ["data.next_sentence=false"]), ("gpt", [])):
        asked: dict[str, Any] = {"model": family, "steps": 4, "tokenizer": "word", "overrides": [*BASE, *more]}
        prepare(folder / "text.txt", out=folder / family, **asked).train()
    session = prepare(
        folder / "rows.csv", model="bert", out=folder / "tuned", start_from=folder / "bert", steps=60, overrides=LORA
    )
    session.train()
    return folder


def test_the_folder_is_as_small_as_the_adapter(world: Path) -> None:
    run = world / "tuned"
    assert not (run / "model.safetensors").exists()
    learned = load_file(run / "adapter_model.safetensors")
    assert sum(tensor.numel() for tensor in learned.values()) == 2 * 2 * (64 * 2 + 64 * 2) + 2 * 64 + 2
    for file in (*run.glob("*.safetensors"), *run.glob("checkpoints/*/weights.safetensors")):
        assert file.stat().st_size < 0.1 * (world / "bert" / "model.safetensors").stat().st_size
    told = json.loads((run / "adapter_config.json").read_text())
    assert (told["peft_type"], told["r"], told["task_type"]) == ("LORA", 2, "SEQ_CLS")
    assert told["base_model_name_or_path"] == str(world / "bert")
    assert "LoRA of rank 2 beside query, value" in (run / "card.md").read_text()
    assert (run / "model.sha256").read_text().split()[1] == "adapter_model.safetensors"


def test_it_is_used_like_any_other_run(world: Path) -> None:
    run = seqwise.load(world / "tuned")
    assert run.evaluate(split="valid").accuracy > 0.9
    assert [found["label"] for found in run.answer_texts(["the cat sat on my hat 3 today"])] == ["pet"]
    base, whole = (seqwise.load(world / name).run.load_model().state_dict() for name in ("bert", "tuned"))
    changed = {name for name in base.keys() & whole.keys() if not torch.equal(base[name], whole[name])}
    assert changed == {f"body.blocks.{layer}.attention.qkv.weight" for layer in range(2)}
    difference = (whole["body.blocks.0.attention.qkv.weight"] - base["body.blocks.0.attention.qkv.weight"])[64:128]
    assert not difference.any()  # keys


def test_a_run_that_was_stopped_goes_on_to_the_bit(world: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"model": "bert", "start_from": world / "bert", "steps": 20, "overrides": LORA}
    prepare(world / "rows.csv", out=tmp_path / "whole", **asked).train()
    for _ in prepare(world / "rows.csv", out=tmp_path / "stopped", **asked).reports(wants_stop=stop_after(9)):
        pass
    resume(tmp_path / "stopped").train()
    assert log_without_clock(tmp_path / "stopped") == log_without_clock(tmp_path / "whole")
    before, after = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "stopped"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_base_that_is_gone_or_another_is_named(world: Path, tmp_path: Path) -> None:
    base, run = tmp_path / "base", tmp_path / "run"
    shutil.copytree(world / "bert", base)
    prepare(world / "rows.csv", model="bert", out=run, start_from=base, steps=1, overrides=LORA).train()
    expected = {name: tensor.clone() for name, tensor in Run.open(run).load_model().state_dict().items()}
    base.rename(tmp_path / "moved")
    with pytest.raises(CheckpointError, match=r"run holds what was learned beside .*base, which is not there\. Put it"):
        Run.open(run).load_model()
    with pytest.raises(CheckpointError, match=r"which is not there"):
        resume(run).train()
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace(f'"{base}"', f'"{tmp_path / "moved"}"'))
    found = Run.open(run).load_model().state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    shutil.copy(world / "gpt" / "model.safetensors", tmp_path / "moved" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"has other weights now \(sha256 \w{12}…, was \w{12}…\)\. Restore them"):
        Run.open(run).load_model()


def test_what_starts_from_it_has_its_knowledge_and_no_adapter(world: Path, tmp_path: Path) -> None:
    session = prepare(world / "rows.csv", model="bert", out=tmp_path / "run", start_from=world / "tuned", steps=1)
    assert session.run.config.model.adapter == "none"
    start, tuned = load_file(tmp_path / "run" / "initial.safetensors"), Run.open(world / "tuned").load_model()
    assert all(torch.equal(start[name], tensor) for name, tensor in tuned.state_dict().items())
    session.train()
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_language_model_has_an_adapter_for_more_text(world: Path, tmp_path: Path) -> None:
    session = prepare(
        world / "text.txt", model="gpt", out=tmp_path / "run", start_from=world / "gpt", steps=12,
        overrides=["model.adapter=lora", "training.batch_size=8"],
    )  # fmt: skip
    assert (session.run.config.training.optimizer, session.run.config.training.learning_rate) == ("adamw", 5e-3)
    score = session.train()
    before = seqwise.load(world / "gpt").evaluate(split="valid")
    assert score is not None
    assert seqwise.load(tmp_path / "run").evaluate(split="valid").nats_per_token < before.nats_per_token
    assert not any("head." in name for name in load_file(tmp_path / "run" / "adapter_model.safetensors"))
    assert seqwise.load(tmp_path / "run").generate("the ", max_tokens=4)
    assert not (tmp_path / "run" / "adapter_config.json").exists()  # a shape that PEFT does not know


def test_mistakes_are_told_before_anything_is_written(world: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.adapter is learned beside a body that knows something .* --from"):
        prepare(world / "rows.csv", model="bert", out=tmp_path / "run", steps=1, overrides=LORA)
    with pytest.raises(ConfigError, match=r'unknown setting "model\.adapter"'):
        prepare(world / "rows.csv", model="lstm", out=tmp_path / "run", steps=1, overrides=["model.adapter=lora"])
    with pytest.raises(ConfigError, match=r"has no feed_forward\.gate"):
        prepare(
            world / "rows.csv", model="bert", out=tmp_path / "run", start_from=world / "bert", steps=1,
            overrides=[*LORA, "model.adapter_targets=['gate']"],
        )  # fmt: skip
    assert not (tmp_path / "run").exists()
