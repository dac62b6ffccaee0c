"""Runs go out as MarianMTModel or Pegasus and come in again; what those compute is written out in marian_folders.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import schemas
import torch
from marian_folders import PAIRS, byte_pairs, make_run, our_scores, their_scores

from seqwise.data.schema import TokenSpec
from seqwise.errors import ConfigError, DataError
from seqwise.interop.hf import export_hf, import_hf
from seqwise.interop.hf_marian import our_order
from seqwise.layers.positions import sinusoidal_table

CASES: list[dict[str, Any]] = [
    {"norm": "post"},
    {"norm": "pre"},
    {"norm": "post", "biases": True, "output_bias": True, "activation": "silu"},
    {"norm": "pre", "biases": True, "activation": "gelu", "embedding_scale": 1.0},
    {"norm": "post", "is_joint": False},
    {"norm": "post", "is_joint": False, "shared_embeddings": "none", "output_bias": True},
    {"norm": "post", "shared_embeddings": "output", "encoder_layers": None},
]


def all_close(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for some, others in zip(found, expected, strict=True):
        torch.testing.assert_close(some, others, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_written_computes_the_same_by_their_names_and_comes_in_again(
    case: dict[str, Any], tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", **case)
    export_hf(run, tmp_path / "out")
    expected = our_scores(run)
    all_close(their_scores(tmp_path / "out", run.schema), expected)
    again = import_hf(tmp_path / "out", tmp_path / "again")
    all_close(our_scores(again), expected)
    assert again.config.model.norm == case["norm"]


def test_positions_in_our_order_are_theirs() -> None:
    D = 8
    theirs = torch.tensor(
        [
            [f(t / 10000 ** (2 * i / D)) for f in (torch.sin, torch.cos) for i in range(D // 2)]
            for t in torch.arange(5.0)
        ]
    )
    torch.testing.assert_close(theirs[:, our_order(D)], sinusoidal_table(5, D))
    assert sorted(our_order(7).tolist()) == list(range(7))


def test_tokens_of_ours_end_each_text_and_say_how_they_are_loaded(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    run = make_run(tmp_path / "run", norm="post", is_joint=False)
    notes = export_hf(run, tmp_path / "out")
    assert "PreTrainedTokenizerFast" in notes[0]
    for side, folder, number in (("source", tmp_path / "out", 0), ("tokens", tmp_path / "out" / "target", 1)):
        spec = run.schema.input(side, TokenSpec)
        found = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(PAIRS[0][number]).ids
        assert found == [*spec.encode(PAIRS[0][number]).tolist(), spec.boundary]
        told = json.loads((folder / "tokenizer_config.json").read_text())
        assert told["eos_token"] == told["pad_token"] == "Ċ"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"positions": "learned", "norm": "post"}, 'model.positions = "learned"'),
        ({"embedding_scale": 2.0, "norm": "post"}, "model.embedding_scale = 2.0"),
        ({"norm": "pre", "is_joint": False}, "tokens of their own (tokenizer.joint)"),
        ({"norm": "pre", "shared_embeddings": "output"}, 'model.shared_embeddings = "output"'),
        ({"norm": "pre", "shared_embeddings": "none"}, 'model.shared_embeddings = "none"'),
    ],
)
def test_what_neither_can_hold_is_refused_by_the_name_of_the_setting(
    settings: dict[str, Any], named: str, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "run", **settings)
    with pytest.raises(ConfigError) as told:
        export_hf(run, tmp_path / "out")
    assert named in str(told.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_tokens_that_no_folder_holds_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", schema=schemas.of_pairs(9), norm="post")
    with pytest.raises(ConfigError, match="byte pairs"):
        export_hf(run, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    export_hf(make_run(tmp_path / "run", norm="post"), tmp_path / "folder")
    return tmp_path / "folder"


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"encoder_attention_heads": 2}, ConfigError, "encoder_attention_heads = 2 and decoder_attention_heads = 3"),
        ({"activation_function": "mish"}, ConfigError, 'activation_function = "mish" is not known'),
        ({"eos_token_id": 7}, DataError, "eos_token_id = 7, and by its tokenizer a text ends in"),
        ({"eos_token_id": -1}, DataError, "eos_token_id = -1 should be a whole number from 0"),
        ({"vocab_size": 20}, DataError, "tokens, and its embeddings have 20 rows"),
        ({"decoder_layers": 5}, DataError, "missing"),
        ({"encoder_layers": 1}, DataError, "unexpected"),
        ({"d_model": 24}, DataError, "asks for"),
    ],
)
def test_a_folder_that_does_not_fit_is_told(
    change: dict[str, Any], error: type[Exception], sentence: str, folder: Path, tmp_path: Path
) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(error) as told:
        import_hf(folder, tmp_path / "imported")
    assert sentence in str(told.value)
    assert not (tmp_path / "imported").exists()


def test_rows_of_a_table_that_stand_for_no_token_are_left_out(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    run = make_run(tmp_path / "run", norm="post", output_bias=True)
    folder = tmp_path / "folder"
    export_hf(run, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.shared.weight"] = torch.cat([tensors["model.shared.weight"], torch.ones(3, 12)])
    tensors["final_logits_bias"] = torch.cat([tensors["final_logits_bias"], torch.ones(1, 3)], dim=1)
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": config["vocab_size"] + 3}))
    all_close(our_scores(import_hf(folder, tmp_path / "again")), our_scores(run))


def test_the_table_is_found_by_whichever_of_its_names_a_file_has(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    expected = their_scores(folder, make_run(tmp_path / "other", norm="post").schema)
    tensors = load_file(folder / "model.safetensors")
    table = tensors.pop("model.shared.weight")
    again = {"model.decoder.embed_tokens.weight": table, "lm_head.weight": table.clone()}
    save_file({**tensors, **again}, folder / "model.safetensors")
    all_close(our_scores(import_hf(folder, tmp_path / "again")), expected)
    save_file({**tensors, **again, "lm_head.weight": table + 1}, folder / "model.safetensors")
    with pytest.raises(ConfigError, match=r"lm_head\.weight differs from"):
        import_hf(folder, tmp_path / "twice")


def test_a_run_is_described_by_the_name_that_was_given(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not by that of a folder in a cache."""
    kept = tmp_path / "cache" / "0123abcd"
    shutil.copytree(folder, kept)
    monkeypatch.setattr("seqwise.interop.hf.fetch_folder", lambda name: kept)
    run = import_hf(Path("org/translator"), tmp_path / "imported")
    assert run.config.data.description.startswith("imported from org/translator (MarianMTModel)")


def test_tokenizers_of_the_two_sides_differ() -> None:
    assert byte_pairs(0).to_dict() != byte_pairs(1).to_dict()  # else the cases above show less than they say
