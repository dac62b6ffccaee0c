"""Translators that transformers writes come in and go out: the same log-probabilities, the same translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_folders import PAIRS, fill, make_run, our_scores, write_pieces

from seqwise.decoding.translate import translate
from seqwise.errors import DataError
from seqwise.goals.sequence import search_settings
from seqwise.interop.hf import export_hf, import_hf
from seqwise.run import Run

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
pytest.importorskip("sentencepiece", reason="needs the extra marian")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
SIZES = {
    **{"d_model": 12, "encoder_layers": 2, "decoder_layers": 3, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20},
    **{"encoder_attention_heads": 3, "decoder_attention_heads": 3, "max_position_embeddings": 64},
}
TOKENS = 40
END_BIAS = 1.5
SOURCES = [*(source for source, _ in PAIRS), "then the cat sleeps and the dog", "if not ☃ or x", "a"]
CASES = {
    "marian": ("Marian", {"activation_function": "swish", "scale_embedding": True}),
    "unscaled": ("Marian", {"activation_function": "gelu", "scale_embedding": False}),
    "apart": ("Marian", {"share_encoder_decoder_embeddings": False, "scale_embedding": True}),
    "untied": ("Marian", {"tie_word_embeddings": False, "activation_function": "relu"}),
    "pegasus": ("Pegasus", {"activation_function": "relu", "scale_embedding": True}),
}


def their_folder(folder: Path, case: str) -> Any:
    folder.mkdir()
    write_pieces(folder)
    vocab_size = len(json.loads((folder / "vocab.json").read_text()))
    kind, settings = CASES[case]
    marks = {"pad_token_id": vocab_size - 1, "decoder_start_token_id": vocab_size - 1, "eos_token_id": 0}
    config = getattr(transformers, f"{kind}Config")(vocab_size=vocab_size, **SIZES, **marks, **settings)
    name = "MarianMTModel" if kind == "Marian" else "PegasusForConditionalGeneration"
    model = getattr(transformers, name)(config).eval()
    fill(model)
    generator = torch.Generator().manual_seed(5)
    model.final_logits_bias.normal_(std=0.3, generator=generator)
    model.final_logits_bias[0, 0] = END_BIAS  # so that some texts end
    model.save_pretrained(folder)
    return model


def their_scores(model: Any, tokenizer: Any) -> list[torch.Tensor]:
    given = tokenizer([source for source, _ in PAIRS], padding=True, return_tensors="pt")
    wanted = tokenizer(text_target=[target for _, target in PAIRS], padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model(input_ids=given.input_ids, attention_mask=given.attention_mask, labels=wanted.input_ids).logits
    found = logits.log_softmax(dim=-1).gather(-1, wanted.input_ids.unsqueeze(-1)).squeeze(-1)
    return [row[: int(mask.sum())] for row, mask in zip(found, wanted.attention_mask, strict=True)]


def their_translations(model: Any, tokenizer: Any, beams: int) -> list[list[int]]:
    given = tokenizer(SOURCES, padding=True, return_tensors="pt", return_token_type_ids=False)
    start = model.config.decoder_start_token_id
    never = {} if start == model.config.eos_token_id else {"bad_words_ids": [[start]]}
    stops = {"early_stopping": "never"} if beams > 1 else {}
    search = {"num_beams": beams, "max_new_tokens": TOKENS, "do_sample": False, "forced_eos_token_id": None}
    found = model.generate(**given, **search, **stops, **never)[:, 1:].tolist()
    end = model.config.eos_token_id
    return [row[: row.index(end) + 1] if end in row else row for row in found]


def our_translations(run: Run, beams: int) -> list[list[int]]:
    asked = {"method": "beam", "beam_width": beams, "length_penalty": 1.0, "length_form": "power"}
    search = search_settings(run.schema, max_tokens=TOKENS, **(asked if beams > 1 else {"method": "greedy"}))
    model = run.load_model().eval()
    return [answer.hypotheses[0].tokens for answer in translate(model, run.schema, SOURCES, search, length_ratio=99.0)]


def compare(run: Run, model: Any, tokenizer: Any) -> None:
    for found, expected in zip(our_scores(run), their_scores(model, tokenizer), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    for beams in (1, 4):
        found = our_translations(run, beams)
        assert found == their_translations(model, tokenizer, beams)
        assert len({*map(tuple, found)}) > 1  # else the sources were not read


@pytest.mark.parametrize("case", CASES)
def test_a_translator_comes_in_and_goes_out(case: str, tmp_path: Path) -> None:
    model = their_folder(tmp_path / "theirs", case)
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "theirs")
    run = import_hf(tmp_path / "theirs", tmp_path / "run")
    compare(run, model, tokenizer)
    export_hf(run, tmp_path / "back")
    again, report = type(model).from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(report.values())
    compare(run, again.eval(), transformers.MarianTokenizer.from_pretrained(tmp_path / "back"))


def test_two_lists_of_pieces(tmp_path: Path) -> None:
    """The target's in target_vocab.json."""
    (folder := tmp_path / "theirs").mkdir()
    write_pieces(folder, separate=True)
    sizes = [len(json.loads((folder / name).read_text())) for name in ("vocab.json", "target_vocab.json")]
    assert sizes[0] != sizes[1]
    start = min(sizes) - 1
    marks = {"pad_token_id": start, "decoder_start_token_id": start, "eos_token_id": 0}
    config = transformers.MarianConfig(
        vocab_size=sizes[0], decoder_vocab_size=sizes[1], share_encoder_decoder_embeddings=False, **SIZES, **marks
    )
    transformers.MarianMTModel(config).save_pretrained(folder)
    run = import_hf(folder, tmp_path / "run")
    assert [run.schema.specs[name].size for name in ("source", "tokens")] == sizes
    export_hf(run, tmp_path / "back")
    assert (tmp_path / "back" / "target_vocab.json").read_bytes()
    again = import_hf(tmp_path / "back", tmp_path / "again")
    for found, expected in zip(our_scores(again), our_scores(run), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "settings", [{"norm": "pre"}, {"norm": "post", "biases": True}, {"norm": "post", "is_joint": False}], ids=str
)
def test_runs_of_ours_are_loaded_and_translate_alike(settings: dict[str, Any], tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", **settings)
    export_hf(run, tmp_path / "out")
    model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values())
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for beams in (1, 4):
        assert our_translations(run, beams) == their_translations(model.eval(), tokenizer, beams)


def test_a_damaged_file_of_pieces_is_named(tmp_path: Path) -> None:
    their_folder(tmp_path / "theirs", "marian")
    (tmp_path / "theirs" / "target.spm").write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"target\.spm: not a SentencePiece model"):
        import_hf(tmp_path / "theirs", tmp_path / "run")
    (tmp_path / "theirs" / "target.spm").unlink()
    with pytest.raises(DataError, match=r"target\.spm: cannot be read"):
        import_hf(tmp_path / "theirs", tmp_path / "run")
    (tmp_path / "theirs" / "vocab.json").write_text('{"</s>": 0, "<unk>": 2}')
    with pytest.raises(DataError, match=r"vocab\.json: the ids of its 2 pieces are not 0 to 1"):
        import_hf(tmp_path / "theirs", tmp_path / "run")
    assert not (tmp_path / "run").exists()
