"""Runs of ours go out as Hugging Face folders and come in again with the same weights; what cannot is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_tokens import LINES, TEXT, write_tokens
from schemas import values

from seqwise.data.batch import Tokens
from seqwise.data.schema import (
    LabelSpec,
    NumberSpec,
    Schema,
    TagSpec,
    TokenSpec,
    answer_schema,
    masked_schema,
    series_schema,
    tag_schema,
    text_schema,
    vector_schema,
)
from seqwise.errors import SeqwiseError
from seqwise.interop.hf import export_hf, import_hf
from seqwise.interop.hf_decoders import by_halves
from seqwise.interop.hf_layout import FLIPPED, TRANSPOSED, cut, repeated, scaled
from seqwise.interop.hf_tokenizers import read_hf_tokenizer
from seqwise.interop.runs import export_run
from seqwise.models import family
from seqwise.models.bert import BERTConfig
from seqwise.models.gpt import GPT2, LLAMA, GPTConfig
from seqwise.run import Run, RunConfig
from seqwise.settings import DataConfig, TokenizerConfig, TrainingConfig
from seqwise.text import train_tokenizer

PIECES = train_tokenizer("wordpiece", [TEXT], vocab_size=90)
BYTES = train_tokenizer("bpe", [TEXT], vocab_size=290)
SPEC = masked_schema(PIECES, next_sentence=False).input("tokens", TokenSpec)
SHAPE: dict[str, Any] = {"context": 40, "num_layers": 2, "model_dim": 8, "num_heads": 2, "feed_forward_dim": 12}
ENCODER = SHAPE | {"pooling": "first"}
LABELS = LabelSpec(["bad", "good", "so so"])


def roberta_spec(folder: Path) -> TokenSpec:
    write_tokens("roberta", folder)
    return TokenSpec(*read_hf_tokenizer(folder))


def made(path: Path, config: Any, schema: Schema, *, task: str = "masked") -> Run:
    name = "bert" if isinstance(config, BERTConfig) else "gpt"
    model = family(name).build(config, schema)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    settings = RunConfig(name, DataConfig(), TokenizerConfig(), config, TrainingConfig(), task)
    run = Run.create(path, settings, schema)
    run.save_model(model)
    return run


def bert(**settings: Any) -> BERTConfig:
    return BERTConfig(**{**ENCODER, **settings})


def gpt(shape: dict[str, Any], **settings: Any) -> GPTConfig:
    return GPTConfig(**{**shape, **SHAPE, **settings})


CASES: dict[str, tuple[Any, Schema, str, str]] = {
    "hidden words": (bert(), masked_schema(PIECES, next_sentence=False), "masked", "BertForMaskedLM"),
    "and next sentences": (
        *(bert(activation="relu"), masked_schema(PIECES, next_sentence=True), "masked"),
        "BertForPreTraining",
    ),
    "of byte pairs": (bert(), masked_schema(BYTES, next_sentence=True), "masked", "BertForPreTraining"),
    "shared layers": (
        *(bert(shared_layers=True, activation="gelu_tanh"), masked_schema(PIECES, next_sentence=False), "masked"),
        "AlbertForMaskedLM",
    ),
    "narrow embeddings": (bert(embed_dim=4), masked_schema(PIECES, next_sentence=False), "masked", "AlbertForMaskedLM"),
    "both": (
        *(bert(embed_dim=4, shared_layers=True), masked_schema(PIECES, next_sentence=False), "masked"),
        "AlbertForMaskedLM",
    ),
    "a label": (bert(), answer_schema(SPEC, LABELS), "label", "BertForSequenceClassification"),
    "labels": (bert(), answer_schema(SPEC, LABELS, several=True), "label", "BertForSequenceClassification"),
    "a number": (bert(), answer_schema(SPEC, NumberSpec()), "label", "BertForSequenceClassification"),
    "tags": (
        *(bert(), tag_schema(SPEC, TagSpec(["B-X", "I-X", "O"], scheme="IOB2")), "tags"),
        "BertForTokenClassification",
    ),
    "a vector": (bert(pooling="mean", normalise=True), vector_schema(SPEC), "vectors", "BertModel"),
    "GPT-2": (gpt(GPT2), text_schema(BYTES), "text", "GPT2LMHeadModel"),
    "GPT-2 untied": (
        *(gpt(GPT2, tied_embeddings=False, activation="gelu"), text_schema(PIECES), "text"),
        "GPT2LMHeadModel",
    ),
    "Llama": (gpt(LLAMA, num_kv_heads=1, rotary_base=77.0), text_schema(BYTES), "text", "LlamaForCausalLM"),
    "Llama tied": (
        gpt(LLAMA, tied_embeddings=True, norm_epsilon=1e-3),
        text_schema(PIECES),
        "text",
        "LlamaForCausalLM",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_goes_out_comes_in_again(name: str, tmp_path: Path) -> None:
    config, schema, task, architecture = CASES[name]
    run = made(tmp_path / "run", config, schema, task=task)
    export_hf(run, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == [architecture]
    again = import_hf(tmp_path / "out", tmp_path / "again")
    assert (again.config.task, again.schema.kinds) == (run.config.task, run.schema.kinds)
    unchanged = {"size", "max_steps", "threshold", "dropout"}
    assert {
        setting: (value, getattr(again.config.model, setting))
        for setting, value in vars(config).items()
        if setting not in unchanged and (value or None) != (getattr(again.config.model, setting) or None)
    } == {}
    before, now = run.load_model().state_dict(), again.load_model().state_dict()
    assert before.keys() == now.keys()
    assert all(torch.equal(before[name], now[name]) for name in before)
    for line in LINES:
        ids, found = (
            spec.encode_texts([line])[0].tolist() for spec in (run.schema.only_input(), again.schema.only_input())
        )
        assert ids == found
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_labels_and_tags_keep_their_names(tmp_path: Path) -> None:
    for name, field in {"a label": "label", "tags": "tags"}.items():
        config, schema, task, _ = CASES[name]
        export_hf(made(tmp_path / name, config, schema, task=task), tmp_path / f"{name} out")
        again = import_hf(tmp_path / f"{name} out", tmp_path / f"{name} again")
        before, now = (run.target(field, LabelSpec) for run in (schema, again.schema))
        assert (before.names, getattr(before, "scheme", "")) == (now.names, getattr(now, "scheme", ""))


@torch.no_grad()
def test_a_number_is_written_as_people_write_it(tmp_path: Path) -> None:
    run = made(tmp_path / "run", bert(), answer_schema(SPEC, NumberSpec(mean=3.0, scale=2.0)), task="label")
    export_hf(run, tmp_path / "out")
    again = import_hf(tmp_path / "out", tmp_path / "again")
    for line in LINES:
        row = {"tokens": Tokens(torch.from_numpy(SPEC.encode_texts([line])[0]).unsqueeze(0))}
        ours, theirs = (
            float(model.main_head.number(model.body.encode(row, None).stream))
            for model in (run.load_model(), again.load_model())
        )
        assert theirs == pytest.approx(3.0 + 2.0 * ours, abs=1e-5)


@pytest.mark.parametrize("alike", [True, False])
def test_texts_that_roberta_does_not_tell_apart_have_one_row(alike: bool, tmp_path: Path) -> None:
    spec = roberta_spec(tmp_path / "tokens")
    run = made(tmp_path / "run", bert(), answer_schema(spec, LABELS), task="label")
    model = run.load_model()
    if alike:
        with torch.no_grad():
            model.body.texts.weight[1] = model.body.texts.weight[0]
    run.save_model(model)
    export_hf(run, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    told = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert written["architectures"] == ["RobertaForSequenceClassification"]
    assert written["max_position_embeddings"] == 40 + spec.special["padding"] + 1
    assert written["type_vocab_size"] == (1 if alike else 2)
    assert ("token_type_ids" in told.get("model_input_names", [])) is not alike
    before, now = model.state_dict(), import_hf(tmp_path / "out", tmp_path / "again").load_model().state_dict()
    assert all(torch.equal(before[name], now[name]) for name in before)


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
def test_a_factor_of_the_embeddings_is_folded_into_them(tied: bool, tmp_path: Path) -> None:
    config = gpt(LLAMA, embedding_scale=3.0, tied_embeddings=tied)
    run = made(tmp_path / "run", config, text_schema(BYTES), task="text")
    export_hf(run, tmp_path / "out")
    again = import_hf(tmp_path / "out", tmp_path / "again")
    assert again.config.model.embedding_scale == 1.0
    row = {"tokens": Tokens(torch.from_numpy(BYTES.encode(LINES[2])).unsqueeze(0))}
    ours, theirs = (
        model.main_head.expect(model.body.encode(row, None).stream.hidden)
        for model in (run.load_model(), again.load_model())
    )
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_every_way_has_its_inverse() -> None:
    ours = torch.randn(12, 5)
    for way in (TRANSPOSED, FLIPPED, cut(2, 3), by_halves(3), by_halves(1)):
        assert torch.equal(way.to_ours(way.to_theirs(ours)), ours)
        assert not way.to_theirs(ours).equal(ours)
    torch.testing.assert_close(scaled(3.0, 2.0).to_ours(scaled(3.0, 2.0).to_theirs(ours)), ours)
    assert torch.equal(repeated(2).to_ours(ours[:1]), ours[:1].expand(2, -1))


def test_queries_and_keys_change_places_within_a_head() -> None:
    """Rows 0 and K/2 of theirs are turned together, rows 0 and 1 of ours."""
    theirs = torch.arange(8.0).unsqueeze(1)  # two heads of width 4
    assert by_halves(2).to_ours(theirs).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


# -- what cannot go out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "schema", "task", "sentence"),
    [
        (
            *(bert(pooling="mean"), answer_schema(SPEC, LABELS), "label"),
            r"model\.pooling = mean: .* reads labels off the first place\. .* --set model\.pooling=first",
        ),
        (
            *(bert(pairing="siamese"), answer_schema(replace(SPEC, num_texts=2), LABELS), "label"),
            r"model\.pairing = siamese: .* reads two texts as one row",
        ),
        (
            *(bert(crf=True), tag_schema(SPEC, TagSpec(["B-X", "I-X", "O"], scheme="IOB2")), "tags"),
            r"model\.crf = true: .* has no linear-chain CRF\. Train one that fits: --set model\.crf=false",
        ),
        (
            *(bert(), tag_schema(SPEC, TagSpec(["A", "O"]), LABELS), "tags"),
            r"run answers tags and label; a Hugging Face folder holds one of them",
        ),
        (
            *(bert(pooling="concat"), vector_schema(SPEC), "vectors"),
            r"model\.pooling = concat: .* has no such pooling",
        ),
        (
            *(bert(positions="rotary"), masked_schema(PIECES, next_sentence=True), "masked"),
            r'run: model\.positions = "rotary": BERT, .* Train with --set model\.positions=learned',
        ),
        (
            bert(),
            answer_schema(values(2), LABELS),
            "label",
            r"run reads numbers; .* holds models of text",
        ),
        (
            *(gpt({}), text_schema(BYTES), "text"),
            r"model\.norm = layer, model\.activation = squared_relu, model\.normalise_queries = true: Llama .* "
            r"--set model\.norm=rms --set model\.activation=swiglu --set model\.normalise_queries=false .*stories15m",
        ),
        (
            *(gpt(GPT2, num_kv_heads=1, biases=False), text_schema(BYTES), "text"),
            r"model\.biases = false, model\.num_kv_heads = 1: GPT-2 .* --set model\.biases=true .*model\.size=gpt2",
        ),
        (
            *(gpt(LLAMA, adaptive_softmax=True), text_schema(BYTES), "text"),
            r"model\.adaptive_softmax = true: Llama",
        ),
        (gpt({}), series_schema(values(2)), "numbers", r"run answers numbers; of gpt, models of text are written"),
        (gpt({}), answer_schema(SPEC, LABELS), "label", r"run answers label; of gpt, models of text are written"),
        (
            *(gpt(GPT2), text_schema(train_tokenizer("char", [TEXT])), "text"),
            r"holds byte pairs or pieces of words, and these are tokens of characters\. Train with --tokenizer bpe",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(config: Any, schema: Schema, task: str, sentence: str, tmp_path: Path) -> None:
    run = made(tmp_path / "run", config, schema, task=task)
    with pytest.raises(SeqwiseError, match=sentence):
        export_hf(run, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, schema, task, _ = CASES["hidden words"]
    run = made(tmp_path / "run", config, schema, task=task)
    (tmp_path / "there").mkdir()
    with pytest.raises(SeqwiseError, match="there exists already"):
        export_run(run, "hf", tmp_path / "there")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seqwise.interop.hf.save_file", full)
    with pytest.raises(SeqwiseError, match="out: cannot write: No space left on device"):
        export_run(run, "hf", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "there"]


def test_from_the_command_line_and_back(tmp_path: Path, terminal: Any) -> None:
    config, schema, task, _ = CASES["and next sentences"]
    made(tmp_path / "run", config, schema, task=task)
    out, err = terminal.done("export", tmp_path / "run", "out", "--to", "hf")
    assert out.startswith("out: written (")
    assert "note: newlines are read as [SEP], and transformers drops them: write [SEP] in their place" in err
    out, _ = terminal.done("import", "hf", "out", "--out", "again")
    assert out.startswith("again: imported from out (BertForPreTraining), ")
    assert 'next: seqwise fill again "… [MASK] …"' in out
    out, _ = terminal.done("fill", "again", "a [MASK] day", "--num", "2")
    assert len(out.splitlines()) >= 3
