"""Whatever is wrong with a folder in the layout of Hugging Face is said in a sentence, and nothing is written."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_by_hand import BERT, GPT2, LLAMA, Weights, bert_folder, bert_weights, gpt2_weights, llama_weights, write
from hf_tokens import TOKENS, write_tokens
from safetensors.torch import load_file, save_file

from seqwise.errors import SeqwiseError
from seqwise.interop.hf import ARCHITECTURES, import_hf

WORDS = "bert.embeddings.word_embeddings.weight"
KEY = "bert.encoder.layer.1.attention.self.key.weight"


def change(**changes: Any) -> Callable[[Path], None]:
    """Settings of config.json; those that are None are left out."""

    def changed(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text()) | changes
        kept = {name: value for name, value in config.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(kept))

    return changed


def weights(change: Callable[[Weights], object]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file(found, folder / "model.safetensors")

    return changed


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode()) and None
    )


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut_short(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])


class Runs:
    """What a pickle may say: run this."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("it ran"),)


def pickled(content: Any, name: str = "pytorch_model.bin") -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / name).write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol=2))

    return changed


def saved(content: Any) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save(content, folder / "pytorch_model.bin")

    return changed


def shards(places: dict[str, str] | list[int], *files: str) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        index = {"weight_map": dict.fromkeys(found, "one.safetensors") | places if isinstance(places, dict) else places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        for file in files:
            save_file(found, folder / file)

    return changed


def more_tokens(folder: Path) -> None:
    write_tokens("gpt2", folder)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (remove("config.json"), r"theirs: no config\.json in it, which a Hugging Face folder begins with"),
        (text("config.json", "{"), r"config\.json: not JSON: "),
        (text("config.json", "[]"), r"config\.json: expected an object of JSON"),
        (change(model_type=None), r"config\.json: model_type is missing"),
        (change(model_type="t5"), r'model_type = "t5" is an architecture that is not read here; these are: bert, '),
        (change(architectures=["BertForMultipleChoice"]), r"BertForMultipleChoice has a head that is not read here"),
        (change(hidden_size=None), r"config\.json: hidden_size is missing"),
        (change(hidden_size="wide"), r"hidden_size = 'wide' should be a whole number above 0"),
        (change(hidden_size=0), r"hidden_size = 0 should be a whole number above 0"),
        (change(hidden_act="swish"), r'hidden_act = "swish" is not known here; these are: gelu, '),
        (change(num_attention_heads=3), r"config\.json: num_heads=3 does not divide model_dim=8"),
        (change(type_vocab_size=3), r"type_vocab_size = 3: at most two texts stand in a row here"),
        (change(position_embedding_type="relative_key"), r"position_embedding_type = 'relative_key'"),
        (change(is_decoder=True), r"is_decoder = True: an encoder is expected"),
        (change(intermediate_size=13), r"intermediate\.dense\.weight is 12 x 8, and config\.json asks for 13 x 8"),
        (change(num_hidden_layers=3), r"bert\.encoder\.layer\.2\.\S+ and 11 more are missing"),
        (change(num_hidden_layers=1), r"bert\.encoder\.layer\.1\.\S+ and 11 more are unexpected"),
        (change(vocab_size=TOKENS["bert"] - 1), rf"has {TOKENS['bert']} tokens, .* have {TOKENS['bert'] - 1} rows"),
        (change(vocab_size=TOKENS["bert"] + 1), r"word_embeddings\.weight is .*, and config\.json asks for"),
        (more_tokens, rf"its tokenizer has {TOKENS['gpt2']} tokens, and its embeddings have {TOKENS['bert']} rows"),
        (remove("tokenizer.json"), r"theirs: no tokenizer in it; expected tokenizer\.json"),
        (remove("model.safetensors"), r"theirs: no weights in it; expected model\.safetensors"),
        (cut_short, r"model\.safetensors: damaged or cut short"),
        (weights(lambda w: w.pop(KEY)), rf"model\.safetensors: {KEY} is missing; config\.json asks for it"),
        (
            weights(lambda w: w.update({"bert.adapter.weight": torch.zeros(2)})),
            r"model\.safetensors: bert\.adapter\.weight is unexpected: such a model would compute otherwise",
        ),
        (weights(lambda w: w.update({KEY: torch.zeros(8, 7)})), rf"{KEY} is 8 x 7, and config\.json asks for 8 x 8"),
        (weights(lambda w: w[KEY].fill_(torch.nan)), rf"damaged: {KEY} holds what is not a number"),
        (
            weights(lambda w: w.update({KEY: torch.ones(8, 8, dtype=torch.int8)})),
            rf"{KEY} holds int8, expected numbers",
        ),
        (
            weights(lambda w: w.update({"cls.predictions.decoder.weight": w[WORDS] + 1})),
            r"decoder\.weight differs from bert\.embeddings\.word_embeddings\.weight: bert has one table for both",
        ),
        (pickled(Runs()), r"pytorch_model\.bin: a pickle that holds more than tensors, .* it was not opened"),
        (pickled(b""), r"pytorch_model\.bin: damaged or cut short"),
        (pickled(b"PK\x03\x04 and no more"), r"pytorch_model\.bin: damaged or cut short"),
        (saved([torch.zeros(2)]), r"pytorch_model\.bin: expected tensors by name"),
        (saved({"state_dict": {"a": torch.zeros(2)}}), r"pytorch_model\.bin: expected tensors by name"),
        (shards({}), r"one\.safetensors: missing, one of the 1 shards in model\.safetensors\.index\.json"),
        (shards({KEY: "two.safetensors"}, "one.safetensors"), r"two\.safetensors: missing, one of the 2 shards"),
        (shards({KEY: "../two.safetensors"}, "one.safetensors"), r"\.\./two\.safetensors is not the name of a file"),
        (shards({"more": "one.safetensors"}, "one.safetensors"), r"more should be in one\.safetensors, and is not"),
        (shards([1]), r'index\.json: no "weight_map" that names a file for each tensor'),
        (text("modules.json", '[{"type": 1}]'), None),
    ],
)
def test_a_damaged_folder_is_named(damage: Callable[[Path], None], sentence: str | None, tmp_path: Path) -> None:
    folder = bert_folder(tmp_path)
    damage(folder)
    if sentence is None:  # nothing that a model of hidden words looks at
        import_hf(folder, tmp_path / "run")
        return
    with pytest.raises(SeqwiseError, match=sentence):
        import_hf(folder, tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["theirs"]
    assert not Path("it ran").exists()


@pytest.mark.parametrize(
    ("config", "changes", "sentence"),
    [
        (
            GPT2,
            {"scale_attn_by_inverse_layer_idx": True},
            r"inverse_layer_idx = True: attention is scaled",
        ),
        (GPT2, {"activation_function": "relu"}, r'activation_function = "relu" is not one that gpt has'),
        (GPT2, {"architectures": ["GPT2ForSequenceClassification"]}, r"GPT2ForSequenceClassification has a head"),
        (GPT2, {"tie_word_embeddings": False}, r"lm_head\.weight is missing"),
        (LLAMA, {"attention_bias": True}, r"attention_bias = True: biases are in all layers here, or in none"),
        (LLAMA, {"sliding_window": 4096}, r"sliding_window = 4096: attention reaches back over the whole context"),
        (LLAMA, {"head_dim": 8}, r"head_dim = 8: heads share hidden_size evenly here"),
        (LLAMA, {"hidden_act": "gelu"}, r"hidden_act = 'gelu': the gate is opened by silu here"),
        (LLAMA, {"rope_scaling": {"rope_type": "llama3", "factor": 8}}, r"rope_scaling of the kind 'llama3'"),
        (LLAMA, {"rope_parameters": {"rope_type": "yarn"}}, r"rope_parameters of the kind 'yarn'"),
        (LLAMA, {"rope_theta": "x"}, r"rope_theta = 'x' should be a number above 0"),
        (LLAMA, {"num_key_value_heads": 3}, r"config\.json: num_kv_heads=3 does not divide num_heads=2"),
        (LLAMA, {"tie_word_embeddings": True}, r"lm_head\.weight differs from model\.embed_tokens\.weight"),
    ],
)
def test_what_a_decoder_of_ours_cannot_hold_is_named(
    config: dict[str, Any], changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    made = gpt2_weights() if config is GPT2 else llama_weights()
    folder = write(tmp_path / "theirs", config | changes, made, tokens="gpt2")
    with pytest.raises(SeqwiseError, match=sentence):
        import_hf(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, r"id2label should have a name of its own for 0, 1, 2"),
        ({"id2label": {"0": "a", "1": "a"}}, r"id2label should have a name of its own for 0, 1, 2"),
        ({"id2label": {"0": "a", "1": "b"}, "problem_type": "regression"}, r"2 numbers for each text; one is known"),
    ],
)
def test_labels_that_are_not_told_apart_are_named(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    config = BERT | {"architectures": ["BertForSequenceClassification"]} | changes
    with pytest.raises(SeqwiseError, match=sentence):
        import_hf(write(tmp_path / "theirs", config, bert_weights()), tmp_path / "run")


def test_a_file_or_nothing_in_the_place_of_a_folder_is_named(tmp_path: Path, terminal: Any) -> None:
    folder = bert_folder(tmp_path)
    said = terminal.refuses("import", "hf", folder / "config.json", "--out", "run")
    assert said.endswith("config.json: is a file; name the folder that it is in.")
    said = terminal.refuses("import", "hf", folder / "not" / "here", "--out", "run")
    assert "no such folder" in said
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert "exists already" in terminal.refuses("import", "hf", folder, "--out", tmp_path / "full")


def test_a_full_disk_leaves_no_run_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seqwise.tensors.write_durably", full)
    with pytest.raises(SeqwiseError, match="No space left"):
        import_hf(bert_folder(tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_every_architecture_is_named_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pretrained.md").read_text()
    assert [name for name in ARCHITECTURES if f"`{name}`" not in page] == []
