"""ARPA files: what we write, KenLM reads and agrees with; what others write, we read; mistakes are named by line."""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import schemas
import torch
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from seqwise.data.batch import next_token_batch, prompt_batch
from seqwise.data.source import open_text
from seqwise.errors import ConfigError, DataError
from seqwise.interop.arpa import arpa_pieces, read_arpa, write_arpa
from seqwise.models.ngram import Ngram, NgramConfig, Smoothing
from seqwise.text import Tokenizer, train_tokenizer
from seqwise.text.characters import CharTokenizer
from seqwise.text.words import WordTokenizer

TEXT = """the cat sat on the mat
the dog saw the cat

a dog ran to the mat and sat
the cat and the dog ran
on the mat the cat saw a dog
"""
PROBE = """the cat ran

a mat saw the dog and the bird
sat
the cat sat on the mat
"""
SMALL = r"""
\data\
ngram 1=5
ngram 2=3

\1-grams:
-1.0	<unk>
-99	<s>	-0.5
-0.6	</s>
-0.5	a	-0.25
-0.4	b	-0.125

\2-grams:
-0.3	<s> a
-0.2	a b
-0.1	b </s>

\end\
"""
EXAMPLES = how(max_examples=30, deadline=None, derandomize=True, database=None)


def fit(text: str, tokenizer: Tokenizer, **settings: Any) -> Ngram:
    interface = schemas.of_text(tokenizer.vocab_size, tokenizer.boundary)
    model = Ngram(NgramConfig(**{"order": 4, "across_lines": False, **settings}), interface)
    model.fit(np.concatenate([[tokenizer.boundary], tokenizer.encode(text)]))
    return model


def log10_by_line(model: Ngram, tokenizer: Tokenizer, text: str) -> list[float]:
    """log10 p of each line with its end."""
    ids = torch.from_numpy(np.concatenate([[tokenizer.boundary], tokenizer.encode(text)]))
    log_probs = model.score(next_token_batch(ids[None]))[0][0]
    ends = (torch.nonzero(ids[1:] == tokenizer.boundary).squeeze(1) + 1).tolist()
    return [part.sum().item() / math.log(10) for part in log_probs.tensor_split(ends)[:-1]]


def write(folder: Path, content: str) -> Path:
    path = folder / "model.arpa"
    path.write_text(content, encoding="utf-8")
    return path


def log10_of(path: Path, *sentences: str) -> list[float]:
    model, tokenizer = read_arpa(path)
    return log10_by_line(model, tokenizer, "".join(f"{sentence}\n" for sentence in sentences))


def load_kenlm(path: Path) -> Any:
    kenlm = pytest.importorskip("kenlm", reason="KenLM is the peer to agree with: pip install kenlm")
    config = kenlm.Config()
    config.show_progress = False
    return kenlm.Model(str(path), config)


# -- what we write, others read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        *({"smoothing": smoothing} for smoothing in get_args(Smoothing) if smoothing != "maximum_likelihood"),
        {"order": 1},
        {"order": 6},
        {"min_count": 2},
        {"prune": 1e-3},
        {"prune": 0.02, "smoothing": "katz"},
    ],
    ids=str,
)
def test_kenlm_reads_what_we_write_and_agrees_on_every_sentence(tmp_path: Path, settings: dict[str, Any]) -> None:
    tokenizer = train_tokenizer("word", [TEXT])
    model = fit(TEXT, tokenizer, **settings)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    if settings.get("order") == 1:  # KenLM wants at least two
        pytest.importorskip("kenlm")
        return
    theirs = load_kenlm(tmp_path / "model.arpa")
    for text in (TEXT, PROBE):
        ours = log10_by_line(model, tokenizer, text)
        assert ours == pytest.approx([theirs.score(line) for line in text.splitlines()], abs=1e-4)


def read_line_by_line(model: Ngram, tokenizer: Tokenizer) -> Ngram:
    """The same counts, with contexts that end where a line begins."""
    interface = schemas.of_text(tokenizer.vocab_size, tokenizer.boundary)
    alone = Ngram(replace(model.config, across_lines=False), interface)
    alone.load_state_dict(model.state_dict())
    return alone


@pytest.mark.parametrize("kind", ["word", "char"])
@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"smoothing": "katz"}, {"prune": 1e-3}], ids=str)
def test_a_model_across_lines_is_written_as_it_reads_each_line(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    tokenizer = train_tokenizer(kind, [TEXT])
    model = fit(TEXT, tokenizer, across_lines=True, **settings)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    again, _ = read_arpa(tmp_path / "model.arpa")
    alone = read_line_by_line(model, tokenizer)
    for text in (TEXT, PROBE):
        expected = log10_by_line(alone, tokenizer, text)
        assert log10_by_line(again, tokenizer, text) == pytest.approx(expected, abs=1e-6)
        if kind == "word":
            theirs = load_kenlm(tmp_path / "model.arpa")
            assert expected == pytest.approx([theirs.score(line) for line in text.splitlines()], abs=1e-4)
    prompts = [[tokenizer.boundary, *tokenizer.encode(line)] for line in PROBE.splitlines()]
    for prompt in prompts:
        assert again.start(prompt_batch([prompt]))[0].exp().sum().item() == pytest.approx(1, abs=1e-6)


def test_kenlm_agrees_on_characters(tmp_path: Path) -> None:
    text = TEXT + "tab\there, ▁ and \u00a0\u2028 too\n"
    tokenizer = train_tokenizer("char", [text])
    model, pieces = fit(text, tokenizer), arpa_pieces(tokenizer)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    theirs = load_kenlm(tmp_path / "model.arpa")
    probe = "the cat,\nübrig\n▁\t\u2028x\n\n"
    for line, ours in zip(probe.split("\n")[:-1], log10_by_line(model, tokenizer, probe), strict=True):
        sentence = " ".join(pieces[token] for token in tokenizer.encode(line))
        assert ours == pytest.approx(theirs.score(sentence), abs=1e-4)


def test_kenlm_agrees_on_the_penn_treebank(tmp_path: Path, shared_data: Path) -> None:
    """Order 5, every sentence of the test set."""
    data = open_text("ptb")
    tokenizer = train_tokenizer("word", data.parts["train"].blocks())
    model = fit("".join(data.parts["train"].blocks()), tokenizer, order=5)
    write_arpa(model, tokenizer, tmp_path / "model.arpa")
    theirs = load_kenlm(tmp_path / "model.arpa")
    test = "".join(data.parts["test"].blocks())
    ours = log10_by_line(model, tokenizer, test)
    assert len(ours) == 3761
    assert ours == pytest.approx([theirs.score(line) for line in test.splitlines()], abs=1e-4)


@pytest.mark.parametrize("kind", ["word", "char"])
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize("smoothing", get_args(Smoothing))
def test_what_is_written_is_read_back(tmp_path: Path, kind: str, name: str, smoothing: Smoothing) -> None:
    tokenizer = train_tokenizer(kind, [TEXT])
    model = fit(TEXT, tokenizer, smoothing=smoothing)
    write_arpa(model, tokenizer, tmp_path / name)
    again, tokenizer_again = read_arpa(tmp_path / name)
    assert tokenizer_again.to_dict() == tokenizer.to_dict()
    assert again.num_parameters == model.num_parameters
    for text in (TEXT, PROBE):
        expected = log10_by_line(model, tokenizer, text)
        assert log10_by_line(again, tokenizer_again, text) == pytest.approx(expected, abs=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@EXAMPLES
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_every_character_can_be_written(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    text = text.replace("\r", "\n") + "\n"
    path = tmp_path_factory.getbasetemp() / "characters.arpa"
    tokenizer = train_tokenizer("char", [text])
    model = fit(text, tokenizer, order=3)
    write_arpa(model, tokenizer, path)
    again, tokenizer_again = read_arpa(path)
    assert tokenizer_again.to_dict() == tokenizer.to_dict()
    expected = log10_by_line(model, tokenizer, text)
    assert log10_by_line(again, tokenizer_again, text) == pytest.approx(expected, abs=1e-6)


def test_what_an_arpa_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    words = train_tokenizer("word", [TEXT])
    pairs = train_tokenizer("bpe", [TEXT], vocab_size=300)
    with pytest.raises(ConfigError, match=r'this model has the tokenizer "bpe". Train with --tokenizer word'):
        write_arpa(fit(TEXT, pairs), pairs, path)
    marks = train_tokenizer("word", ["<s> a b </s>\n"])
    with pytest.raises(DataError, match=r"the word '</s>' cannot stand in an ARPA file"):
        write_arpa(fit("a b\n", marks), marks, path)
    with pytest.raises(DataError, match=r"missing/model.arpa: cannot write: No such file"):
        write_arpa(fit(TEXT, words), words, tmp_path / "missing" / "model.arpa")
    assert list(tmp_path.iterdir()) == []


# -- what others write, we read ------------------------------------------------------------------------------------


def test_a_small_file_means_what_it_says(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    model, tokenizer = read_arpa(path)
    assert isinstance(tokenizer, WordTokenizer)
    assert tokenizer.pieces == ["<unk>", "\n", "a", "b"]
    assert (model.config.order, model.config.across_lines) == (2, False)
    assert log10_of(path, "a b", "b", "", "a what") == pytest.approx(
        [-0.3 - 0.2 - 0.1, -0.5 - 0.4 - 0.1, -0.5 - 0.6, -0.3 - 0.25 - 1.0 - 0.6]
    )
    theirs = load_kenlm(path)
    for sentence in (" ".join(words) for words in product(["a", "b", "what"], repeat=3)):
        assert log10_of(path, sentence) == pytest.approx([theirs.score(sentence)], abs=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("\t", "  \t "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "a comment\nngram 1=7\n" + text,
        lambda text: text.replace("\n\n", "\n"),
        lambda text: text.replace("ngram 1=5", "ngram  1 = 5"),
        lambda text: text.replace("<unk>", "<UNK>"),
        lambda text: text.replace("-99\t<s>", "0\t<s>"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("b </s>", "b </s>\t0"),
    ],
)
def test_the_same_file_in_other_hands(tmp_path: Path, change: Any) -> None:
    expected = log10_of(write(tmp_path, SMALL), "a b", "b what a")
    assert log10_of(write(tmp_path, change(SMALL)), "a b", "b what a") == pytest.approx(expected)


def test_a_file_without_an_unknown_word_gives_it_what_kenlm_gives(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL.replace("-1.0\t<unk>\n", "").replace("1=5", "1=4"))
    assert log10_of(path, "what") == pytest.approx([-0.5 - 100 - 0.6])


def test_grams_that_longer_ones_need_may_be_missing(tmp_path: Path) -> None:
    """A trigram whose first two words, or last two, are not a bigram: as after pruning by other programs."""
    content = SMALL.replace("ngram 2=3", "ngram 2=3\nngram 3=2")
    path = write(tmp_path, content.replace("\\end\\", "\\3-grams:\n-0.05\tb a b\n-0.06\ta a </s>\n\n\\end\\"))
    assert log10_of(path, "b a b", "a a", "b a a") == pytest.approx(
        [
            (-0.5 - 0.4) + (-0.125 - 0.5) - 0.05 - 0.1,
            -0.3 + (-0.25 - 0.5) - 0.06,
            (-0.5 - 0.4) + (-0.125 - 0.5) + (-0.25 - 0.5) - 0.06,
        ]
    )


def test_grams_that_no_sentence_has_are_passed_over(tmp_path: Path) -> None:
    content = SMALL.replace("ngram 2=3", "ngram 2=6")
    path = write(tmp_path, content.replace("-0.1\tb </s>", "-0.1\tb </s>\n-0.2\t</s> <s>\n-1\ta <s>\n-1\t</s> a"))
    assert log10_of(path, "a b", "b a") == log10_of(write(tmp_path, SMALL), "a b", "b a")


def test_a_level_without_grams_is_no_level(tmp_path: Path) -> None:
    content = SMALL.replace("ngram 2=3", "ngram 2=3\nngram 3=0")
    path = write(tmp_path, content.replace("\\end\\", "\\3-grams:\n\n\\end\\"))
    assert log10_of(path, "a b") == pytest.approx([-0.6])


def test_minus_99_is_a_probability_of_zero(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL.replace("-0.2\ta b", "-99\ta b"))
    assert log10_of(path, "a b", "b") == [-math.inf, pytest.approx(-1.0)]


# -- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "instead", "sentence"),
    [
        ("\\data\\", "data", r"line 18: the file ends here without a line \\data\\. Is it an ARPA file\?"),
        ("ngram 2=3", "ngram 3=3", r'line 4: "ngram 3=3" stands where "ngram 2=" and a count should'),
        ("ngram 1=5\nngram 2=3\n", "", r"line 4: the header names no grams"),
        ("ngram 2=3", "ngram 2=4", r"line 18: the 2-grams end here after 3, but the header has ngram 2=4"),
        ("ngram 1=5", "ngram 1=4", r"line 13: the 1-grams end here after 5, but the header has ngram 1=4"),
        ("\\2-grams:", "\\3-grams:", r'line 13: "\\3-grams:" stands where \\2-grams: should'),
        ("\\end\\", "\\3-grams:", r'line 18: "\\3-grams:" stands where \\end\\ should'),
        ("-0.2\ta b", "-0.2x\ta b", r"line 15: '-0.2x' is not a number"),
        ("-0.2\ta b", "nan\ta b", r"line 15: log10 p = nan should be at most 0"),
        ("-0.2\ta b", "0.2\ta b", r"line 15: log10 p = 0.2 should be at most 0"),
        ("a\t-0.25", "a\tnan", r"line 10: the backoff nan should be a finite number"),
        ("a\t-0.25", "a\t?", r"line 10: '\?' is not a number"),
        ("-0.2\ta b", "-0.2\ta c", r'line 15: the word "c" is not among the 1-grams. Add it there'),
        ("-0.2\ta b", "-0.2\ta", r"line 15: 2 fields, but a 2-gram has 3 or 4"),
        ("-0.2\ta b", "-0.2\ta b c d", r"line 15: 5 fields, but a 2-gram has 3 or 4"),
        ("-0.2\ta b", "-0.2\t<s> a", r"line 15: this gram stands here for the second time"),
        ("-0.4\tb", "-0.4\ta", r'line 11: the word "a" stands here for the second time'),
        ("</s>", "<t>", r"</s> is not among the 1-grams, but every sentence ends with it"),
    ],
)
def test_a_mistake_is_told_by_file_line_and_fix(tmp_path: Path, found: str, instead: str, sentence: str) -> None:
    assert found in SMALL
    with pytest.raises(DataError, match=sentence) as raised:
        read_arpa(write(tmp_path, SMALL.replace(found, instead)))
    assert str(raised.value).startswith(f"{tmp_path / 'model.arpa'}: ")


def test_a_file_cut_short_anywhere_is_named(tmp_path: Path) -> None:
    whole = SMALL.rstrip("\n")
    for length in range(0, len(whole) - 1, 7):
        with pytest.raises(DataError, match=r"model.arpa: line \d+: "):
            read_arpa(write(tmp_path, whole[:length]))
    packed = gzip.compress(SMALL.encode())
    (tmp_path / "model.arpa.gz").write_bytes(packed[:-10])
    with pytest.raises(DataError, match="damaged or cut-off archive"):
        read_arpa(tmp_path / "model.arpa.gz")
    with pytest.raises(DataError, match="cannot be read"):
        read_arpa(tmp_path / "nowhere.arpa")


def test_lines_are_counted_over_the_blocks_of_a_long_file(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(180_000)]
    lines = ["\\data\\", f"ngram 1={len(words) + 1}", "\\1-grams:", "-1\t</s>", *(f"-5\t{word}" for word in words)]
    path = write(tmp_path, "\n".join([*lines, "\\end\\"]))
    assert path.stat().st_size > 2 << 20
    assert log10_of(path, "word179999") == pytest.approx([-6])
    lines[-1] = "-5 word179999 x"
    with pytest.raises(DataError, match=r"line 180004: 'x' is not a number"):
        read_arpa(write(tmp_path, "\n".join([*lines, "\\end\\"])))


def test_characters_are_known_by_the_digits_that_spell_rare_ones(tmp_path: Path) -> None:
    tokenizer = train_tokenizer("char", ["a b\n"])
    write_arpa(fit("a b\n", tokenizer), tokenizer, tmp_path / "model.arpa")
    assert isinstance(read_arpa(tmp_path / "model.arpa")[1], CharTokenizer)
    assert arpa_pieces(tokenizer) == [*(f"<{d:x}>" for d in range(16)), "</s>", "▁", "a", "b"]
