"""Folders in the layout of Hugging Face, written by hand: what they hold comes in, and what is wrong is named."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_by_hand import (
    BERT,
    GPT2,
    LLAMA,
    Weights,
    bert_folder,
    bert_hidden,
    bert_logits,
    bert_weights,
    gpt2_logits,
    gpt2_weights,
    llama_logits,
    llama_weights,
    write,
)
from hf_tokens import LINES, TOKENS, tokens
from safetensors.torch import load_file, save_file
from torch import Tensor

from seqwise.api import TrainedRun
from seqwise.data.batch import Tokens
from seqwise.data.schema import MASKED_TOKEN, VECTOR, LabelSpec
from seqwise.interop.hf import import_hf
from seqwise.run import Run

SENTENCES = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}


def stream(run: Run, ids: Tensor, texts: Tensor | None = None) -> Any:
    segments = None if texts is None else texts.unsqueeze(0)
    return run.load_model().body.encode({"tokens": Tokens(ids.unsqueeze(0), segments=segments)}, None).stream


@torch.no_grad()
def test_bert_fills_in_what_its_equations_say(tmp_path: Path) -> None:
    weights = bert_weights()
    run = import_hf(write(tmp_path / "theirs", BERT, weights), tmp_path / "run")
    ids, texts = (torch.from_numpy(part) for part in run.schema.only_input().encode_texts(LINES[:2]))
    assert run.schema.kind == MASKED_TOKEN
    assert texts.max() == 1
    found = stream(run, ids, texts)
    torch.testing.assert_close(found.hidden[0], bert_hidden(weights, ids, texts), atol=1e-5, rtol=1e-5)
    logits = run.load_model().main_head.logits(found.hidden[0])
    torch.testing.assert_close(logits, bert_logits(weights, ids, texts), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_that_a_text_follows_is_its_first_answer_and_our_last(tmp_path: Path) -> None:
    weights = bert_weights() | {"cls.seq_relationship.weight": torch.randn(2, 8)}
    weights["cls.seq_relationship.bias"] = torch.randn(2)
    run = import_hf(write(tmp_path / "theirs", BERT, weights), tmp_path / "run")
    assert run.schema.target("next", LabelSpec).names == ["elsewhere", "follows"]
    ids, texts = (torch.from_numpy(part) for part in run.schema.only_input().encode_texts(LINES[:2]))
    first = bert_hidden(weights, ids, texts)[0]
    pooled = torch.tanh(weights["bert.pooler.dense.weight"] @ first + weights["bert.pooler.dense.bias"])
    follows, elsewhere = weights["cls.seq_relationship.weight"] @ pooled + weights["cls.seq_relationship.bias"]
    found = run.load_model().heads["next"].log_probs(stream(run, ids, texts))[0]
    wanted = torch.stack([elsewhere, follows]).log_softmax(dim=0)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("prefix", ["transformer.", ""], ids=["now", "as gpt2 itself is published"])
@torch.no_grad()
def test_gpt2_goes_on_as_its_equations_say(prefix: str, tmp_path: Path) -> None:
    weights = gpt2_weights(prefix)
    run = import_hf(write(tmp_path / "theirs", GPT2, weights, tokens="gpt2"), tmp_path / "run")
    ids = torch.from_numpy(run.tokenizer.encode(LINES[2]))
    logits = run.load_model().main_head.output(stream(run, ids).hidden[0])
    torch.testing.assert_close(logits, gpt2_logits(weights, ids, prefix), atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_llama_goes_on_as_its_equations_say(tmp_path: Path) -> None:
    weights = llama_weights()
    run = import_hf(write(tmp_path / "theirs", LLAMA, weights, tokens="gpt2"), tmp_path / "run")
    ids = torch.from_numpy(run.tokenizer.encode(LINES[2]))
    logits = run.load_model().main_head.output(stream(run, ids).hidden[0])
    torch.testing.assert_close(logits, llama_logits(weights, ids), atol=1e-4, rtol=1e-4)


def test_a_prompt_of_an_imported_model_begins_as_its_documents_did(tmp_path: Path) -> None:
    import_hf(write(tmp_path / "theirs", GPT2, gpt2_weights(), tokens="gpt2"), tmp_path / "run")
    run = TrainedRun(tmp_path / "run")
    assert run.prompt_ids("art")[0] == tokens("gpt2").token_to_id("<|endoftext|>")
    assert "<|endoftext|>" not in run.generate("art", max_tokens=3)


def test_rows_behind_the_last_token_are_left_out_and_said(tmp_path: Path) -> None:
    weights, told = bert_weights(), list[str]()
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
        weights[name] = torch.cat([weights[name], torch.full_like(weights[name][:3], 9.0)])
    config = BERT | {"vocab_size": TOKENS["bert"] + 3}
    run = import_hf(write(tmp_path / "theirs", config, weights), tmp_path / "run", tell=told.append)
    assert told == ["the last 3 rows of its embeddings stand for no token, and were left out"]
    found = run.load_model().state_dict()
    assert torch.equal(found["body.embedding.weight"], weights["bert.embeddings.word_embeddings.weight"][:-3])
    assert torch.equal(found["head.tokens.output.bias"], weights["cls.predictions.bias"][:-3])


def test_a_body_alone_is_a_sentence_encoder(tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", BERT | {"architectures": ["BertModel"]}, bert_weights(""))
    told: list[str] = []
    assert import_hf(folder, tmp_path / "plain", tell=told.append).config.model.pooling == "mean"
    assert told == ["its vectors are the mean over a text, as no other pooling is told"]
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in SENTENCES.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    for written in ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}):
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(written))
        run = import_hf(folder, tmp_path / f"as {len(written)}", tell=told.append)
        assert (run.schema.kind, run.config.task) == (VECTOR, "vectors")
        assert (run.config.model.pooling, run.config.model.normalise) == ("first", True)
    assert len(told) == 1


@pytest.mark.parametrize("form", ["shards", "bin", "old bin", "bin shards", "gamma and beta"])
def test_weights_come_in_however_they_are_kept(form: str, tmp_path: Path) -> None:
    weights, folder = bert_weights(), tmp_path / "theirs"
    import_hf(write(folder, BERT, weights), tmp_path / "plain")
    (folder / "model.safetensors").unlink()
    halves = dict(list(weights.items())[:9]), dict(list(weights.items())[9:])
    if form == "shards":
        for number, half in enumerate(halves):
            save_file(half, folder / f"model-{number}.safetensors")
        _index(folder / "model.safetensors.index.json", halves, "model-{}.safetensors")
    elif form == "bin shards":
        for number, half in enumerate(halves):
            torch.save(half, folder / f"pytorch_model-{number}.bin")
        _index(folder / "pytorch_model.bin.index.json", halves, "pytorch_model-{}.bin")
    elif form == "gamma and beta":
        for now, before in {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}.items():
            weights = {name.replace(now, before): tensor for name, tensor in weights.items()}
        save_file(weights, folder / "model.safetensors")
    else:
        torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=form == "bin")
    import_hf(folder, tmp_path / "run")
    plain, found = (load_file(tmp_path / name / "model.safetensors") for name in ("plain", "run"))
    assert plain.keys() == found.keys()
    assert all(torch.equal(plain[name], found[name]) for name in plain)


def _index(path: Path, halves: tuple[Weights, Weights], pattern: str) -> None:
    places = {name: pattern.format(number) for number, half in enumerate(halves) for name in half}
    path.write_text(json.dumps({"metadata": {}, "weight_map": places}))


def test_half_precision_is_read_in_32_bits(tmp_path: Path) -> None:
    weights = {name: tensor.bfloat16() for name, tensor in bert_weights().items()}
    run = import_hf(write(tmp_path / "theirs", BERT, weights), tmp_path / "run")
    found = run.load_model().state_dict()["body.positions.weight"]
    assert found.dtype == torch.float32
    assert torch.equal(found, weights["bert.embeddings.position_embeddings.weight"].float())


def test_the_card_says_where_it_came_from_and_by_which_licence(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path)
    (folder / "README.md").write_text("---\nlicense: mit\ndatasets:\n- snli\n- squad\ntags: x\n---\n# It\n")
    run = import_hf(folder, tmp_path / "run")
    card = (run.path / "card.md").read_text()
    assert "imported from theirs (BertForMaskedLM)" in card
    assert "- Licence: mit" in card
    assert "says: snli, squad. Test sets of today may be among it" in card
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() in card
    (folder / "README.md").unlink()
    assert "not told in its README.md" in (import_hf(folder, tmp_path / "other").path / "card.md").read_text()
