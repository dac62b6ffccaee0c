"""PEFT reads what a run with an adapter holds, and finds the same answers on the base as it was exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from runs_by_hand import prepare

from seqwise.data.batch import Batch, Tokens
from seqwise.interop.runs import export_run
from seqwise.run import Run

peft = pytest.importorskip("peft", reason="peft is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

BASE = ["model.model_dim=32", "model.num_layers=2", "model.num_heads=2", "model.context=24", "training.context=24"]
BASE += ["training.batch_size=8", "training.num_samples=0"]
GPT2 = ["model.norm=layer", "model.positions=learned", "model.activation=gelu_tanh", "model.biases=true"]
GPT2 += ["model.tied_embeddings=true", "model.normalise_queries=false", "model.embedding_scale=1.0"]
LORA = ["model.adapter=lora", "model.adapter_rank=3", "training.learning_rate=0.05", "training.keep=last"]
CLASSES = {"label": "AutoModelForSequenceClassification", "tags": "AutoModelForTokenClassification"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("peft")
    words = ["cat", "dog", "hat", "mat"]
    lines = [f"the {words[i % 4]} sat on my {words[i // 4 % 4]} {i} today" for i in range(160)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    rows = [f"{line},{'pet' if i % 4 < 2 else 'thing'}" for i, line in enumerate(lines)]
    (folder / "label.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    tagged = ["\n".join(f"{word}\t{'N' if word in words else 'X'}" for word in line.split()) for line in lines]
    (folder / "tags.conll").write_text("\n\n".join(tagged) + "\n")
    for family, more, kind in (("bert", ["data.next_sentence=false"], "wordpiece"), ("gpt", GPT2, "bpe")):
        asked: dict[str, Any] = {"model": family, "steps": 4, "tokenizer": kind, "overrides": [*BASE, *more]}
        prepare(folder / "text.txt", out=folder / family, **asked).train()
        export_run(Run.open(folder / family), "hf", folder / f"{family}-hf")
    return folder


@pytest.mark.parametrize(("data", "task"), [("label.csv", "label"), ("tags.conll", "tags")])
def test_an_encoder_with_its_head(world: Path, tmp_path: Path, data: str, task: str) -> None:
    prepare(
        world / data, model="bert", out=tmp_path / "run", start_from=world / "bert", steps=8,
        overrides=[*LORA, "model.adapter_targets=['query', 'value', 'up']"],
    ).train()  # fmt: skip
    run, tokens = Run.open(tmp_path / "run"), torch.tensor([[2, 9, 17, 30, 3]])
    plain = getattr(transformers, CLASSES[task]).from_pretrained(world / "bert-hf", num_labels=2).eval()
    before = plain.bert(tokens).last_hidden_state
    theirs = peft.PeftModel.from_pretrained(plain, tmp_path / "run").eval()
    model = run.load_model()
    encoded = model.body.encode({"tokens": Tokens(tokens)})
    torch.testing.assert_close(theirs.base_model.model.bert(tokens).last_hidden_state, encoded.stream.hidden)
    assert not torch.allclose(before, encoded.stream.hidden, atol=1e-3)  # it does something
    head = model.main_head
    ours = head.output(encoded.stream.pooled if task == "label" else encoded.stream.hidden)
    torch.testing.assert_close(theirs(tokens).logits, ours, atol=1e-5, rtol=1e-5)


def test_a_language_model(world: Path, tmp_path: Path) -> None:
    prepare(
        world / "text.txt", model="gpt", out=tmp_path / "run", start_from=world / "gpt", steps=8, overrides=LORA
    ).train()
    run, tokens = Run.open(tmp_path / "run"), torch.tensor([[5, 9, 17, 30, 3]])
    plain = transformers.AutoModelForCausalLM.from_pretrained(world / "gpt-hf").eval()
    before = plain(tokens).logits.log_softmax(-1)
    theirs = peft.PeftModel.from_pretrained(plain, tmp_path / "run").eval()
    wanted = Batch({"tokens": Tokens(tokens[:, :-1])}, {"tokens": Tokens(tokens[:, 1:])})
    ours = run.load_model().score(wanted)[0]
    found, without = (
        scores[:, :-1].gather(-1, tokens[:, 1:, None]).squeeze(-1)
        for scores in (theirs(tokens).logits.log_softmax(-1), before)
    )
    torch.testing.assert_close(found, ours, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(without, ours, atol=1e-3)
