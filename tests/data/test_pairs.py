"""DATA -> pairs: every format gives the same pairs, splits share no source, and mistakes get one sentence."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqwise.data.pair_files import source_texts
from seqwise.data.pair_split import split_pairs
from seqwise.data.pairs import Pair, PairData, as_trained, fingerprint, looks_like_pairs, open_pairs, open_whole_pairs
from seqwise.errors import ConfigError, DataError, SeqwiseError

EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True, database=None)
PAIRS = [(f"the number {i} is häßlich", f"die Zahl {i} ist 醜い") for i in range(40)]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def tsv(pairs: list[Pair]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def jsonl(pairs: list[Pair], source: str = "source", target: str = "target") -> str:
    return "".join(json.dumps({source: a, target: b}) + "\n" for a, b in pairs)


def parallel(folder: Path, pairs: list[Pair], stem: str = "train") -> list[Path]:
    sides = {"en": [a for a, _ in pairs], "de": [b for _, b in pairs]}
    return [write(folder / f"{stem}.{language}", "".join(f"{t}\n" for t in texts)) for language, texts in sides.items()]


def all_of(data: PairData) -> Counter[Pair]:
    return Counter(pair for pairs in data.parts.values() for pair in pairs)


def refusal(sources: list[Path | str], **options: object) -> str:
    with pytest.raises(SeqwiseError) as caught:
        open_pairs(sources, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- formats -----------------------------------------------------------------------------------------------------


def test_a_tsv_file_is_read_and_described(tmp_path: Path) -> None:
    data = open_pairs([write(tmp_path / "pairs.tsv", tsv(PAIRS))], split="80/10/10")
    assert all_of(data) == Counter(PAIRS)
    assert data.description == (
        "pairs.tsv: 40 pairs of sequences; split by source 80/10/10 (train 32, valid 4, test 4)"
    )
    assert data.notes == []


@pytest.mark.parametrize("packed", [".gz", ".xz", ".bz2"])
def test_a_packed_file_gives_the_same_pairs(packed: str, tmp_path: Path) -> None:
    plain = write(tmp_path / "pairs.tsv", tsv(PAIRS))
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[packed]
    path = tmp_path / f"pairs.tsv{packed}"
    path.write_bytes(pack(plain.read_bytes()))
    assert open_pairs([path]).fingerprint == open_pairs([plain]).fingerprint


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (lambda a, b: {"source": a, "target": b}, ()),
        (lambda a, b: {"id": 7, "tgt": b, "src": a, "by": "me"}, ()),
        (lambda a, b: {"id": 7, "en": a, "de": b}, ()),
        (lambda a, b: {"translation": {"en": a, "de": b}}, ()),
        (lambda a, b: {"translation": {"de": b, "fr": "x", "en": a}}, ("en", "de")),
        (lambda a, b: {"title": "x", "de": b, "en": a}, ("en", "de")),
        (lambda a, b: {"source": "x", "target": "y", "de": b, "en": a}, ("en", "de")),
    ],
)
def test_the_fields_of_a_jsonl_file_are_found(
    row: Callable[[str, str], dict[str, object]], columns: tuple[str, ...], tmp_path: Path
) -> None:
    text = "".join(json.dumps(row(a, b)) + "\n" for a, b in PAIRS)
    data = open_pairs([write(tmp_path / "pairs.jsonl", text)], columns=columns)
    assert all_of(data) == Counter(PAIRS)


def test_all_formats_give_the_same_parts(tmp_path: Path) -> None:
    found = [
        open_pairs([write(tmp_path / "pairs.tsv", tsv(PAIRS))]),
        open_pairs([write(tmp_path / "pairs.jsonl", jsonl(PAIRS))]),
        open_pairs(parallel(tmp_path, PAIRS)),
    ]
    assert {data.fingerprint for data in found} == {found[0].fingerprint}
    assert [data.name for data in found] == ["pairs.tsv", "pairs.jsonl", "train.en and train.de"]


def test_line_ends_byte_order_marks_and_outer_white_space_are_dropped(tmp_path: Path) -> None:
    text = "\ufeff" + "".join(f"  {a}\u202f\t{b}  \r\n" for a, b in PAIRS)
    assert all_of(open_pairs([write(tmp_path / "pairs.tsv", text)])) == Counter(PAIRS)


def test_inner_white_space_and_odd_line_separators_are_kept(tmp_path: Path) -> None:
    odd = [("a\u2028b", "c\x0bd"), ("e  f", "g\u00a0h"), ("i", "j")]
    assert all_of(open_pairs([write(tmp_path / "pairs.tsv", tsv(odd))])) == Counter(odd)


def test_texts_of_several_lines_become_one_line(tmp_path: Path) -> None:
    pairs = [*PAIRS, ("one\ntwo", "eins \r\n zwei\n")]
    data = open_pairs([write(tmp_path / "pairs.jsonl", jsonl(pairs))])
    assert ("one two", "eins zwei") in all_of(data)
    assert data.notes == ["pairs.jsonl: 2 texts of several lines are joined into one line each"]


def test_further_columns_of_a_tsv_file_are_ignored_and_told(tmp_path: Path) -> None:
    text = "".join(f"{a}\t{b}\tCC BY\n" for a, b in PAIRS)
    data = open_pairs([write(tmp_path / "pairs.tsv", text)])
    assert all_of(data) == Counter(PAIRS)
    assert data.notes == ["pairs.tsv: of 3 columns the first two are read, as source and target"]


def test_columns_of_a_tsv_file_with_a_header_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", "id\tde\ten\n" + "".join(f"7\t{b}\t{a}\n" for a, b in PAIRS))
    assert all_of(open_pairs([path], columns=["en", "de"])) == Counter(PAIRS)
    assert 'the first line names no column "fr". Known: id, de, en.' in refusal([path], columns=["fr", "de"])


def test_a_whole_file_is_one_part(tmp_path: Path) -> None:
    data = open_whole_pairs([write(tmp_path / "pairs.tsv", tsv([*PAIRS, ("x", "")]))])
    assert data.parts == {"whole": PAIRS}
    assert data.split == "scored whole"
    assert data.notes == ["1 of 41 pairs have an empty side and are left out"]
    assert open_whole_pairs(parallel(tmp_path, PAIRS)).parts == data.parts
    with pytest.raises(DataError, match=r"empty\.tsv: no pairs in it\. Give some with text on both sides\."):
        open_whole_pairs([write(tmp_path / "empty.tsv", "")])


# -- given parts -------------------------------------------------------------------------------------------------

HELD, OUT = [("held", "gehalten"), ("back", "zurück")], [("out", "aus"), ("of", "von")]


def test_given_files_are_the_parts(tmp_path: Path) -> None:
    train, valid = write(tmp_path / "a.tsv", tsv(PAIRS)), write(tmp_path / "b.jsonl", jsonl(HELD))
    test = ",".join(str(path) for path in parallel(tmp_path, OUT, "test"))
    data = open_pairs([train], valid=valid, test=test)
    assert data.parts == {"train": PAIRS, "valid": HELD, "test": OUT}
    assert data.split == "split as given"
    assert list(open_pairs([train], valid=valid).parts) == ["train", "valid"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_of_parallel_files_is_split_already(packed: bool, tmp_path: Path) -> None:
    for stem, pairs in (("train", PAIRS), ("val", HELD), ("test_2016", OUT)):
        for path in parallel(tmp_path / "set", pairs, stem):
            if packed:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
    write(tmp_path / "set" / "images_train.txt", "1.jpg\n")
    data = open_pairs([tmp_path / "set"], columns=["en", "de"])
    assert data.parts == {"train": PAIRS, "valid": HELD, "test": OUT}
    assert open_pairs([tmp_path / "set"], columns=["de", "en"]).parts["test"] == [("aus", "out"), ("von", "of")]
    assert refusal([tmp_path / "set"]).endswith(
        "set: holds the languages de, en. Name source and target with --columns, such as --columns de,en."
    )
    assert refusal([tmp_path / "set"], columns=["en", "fr"]).endswith('no train file in "fr". Known: de, en.')


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_a_folder_of_tables_is_split_already(suffix: str, tmp_path: Path) -> None:
    form = tsv if suffix == ".tsv" else jsonl
    for stem, pairs in (("x.train", PAIRS), ("x-dev", HELD), ("x_test", OUT)):
        write(tmp_path / "set" / f"{stem}{suffix}", form(pairs))
    assert open_pairs([tmp_path / "set"]).parts == {"train": PAIRS, "valid": HELD, "test": OUT}


def test_a_folder_with_a_training_file_alone_is_split_here(tmp_path: Path) -> None:
    write(tmp_path / "set" / "train.tsv", tsv(PAIRS))
    assert all_of(open_pairs([tmp_path / "set"])) == Counter(PAIRS)


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    write(tmp_path / "a" / "pairs.tsv", tsv(PAIRS))
    assert "no pairs to train on: expected train.tsv, train.jsonl, or files such as" in refusal([tmp_path / "a"])
    write(tmp_path / "b" / "train.tsv", tsv(PAIRS))
    write(tmp_path / "b" / "train.jsonl", jsonl(PAIRS))
    assert "cannot tell which files are the train part: train.jsonl, train.tsv" in refusal([tmp_path / "b"])
    write(tmp_path / "c" / "train.tsv", tsv(PAIRS))
    write(tmp_path / "c" / "test.tsv", tsv(OUT))
    assert "to test on but none to validate on. Add --valid FILE." in refusal([tmp_path / "c"])


def test_a_split_beside_given_files_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", tsv(PAIRS))
    assert 'a.tsv has parts already, and --split-at "90/10" would make others' in refusal(
        [path], valid=path, split="90/10"
    )


def test_sources_that_stand_in_two_given_parts_are_counted(tmp_path: Path) -> None:
    train = write(tmp_path / "a.tsv", tsv(PAIRS))
    valid = write(tmp_path / "b.tsv", tsv([*HELD, (PAIRS[0][0], "anders"), PAIRS[1]]))
    data = open_pairs([train], valid=valid)
    assert data.notes == ["valid: the source of 2 of 4 pairs stands in the training part too"]


# -- what is left out ---------------------------------------------------------------------------------------------


def test_pairs_with_an_empty_side_are_left_out_of_every_part(tmp_path: Path) -> None:
    train = write(tmp_path / "a.tsv", tsv([*PAIRS, ("x", " "), ("", "y")]) + "\n")
    valid = write(tmp_path / "b.tsv", tsv([*HELD, ("z", "")]))
    data = open_pairs([train], valid=valid)
    assert data.parts == {"train": PAIRS, "valid": HELD}
    assert data.notes == [
        "train: 3 of 43 pairs have an empty side and are left out",
        "valid: 1 of 3 pairs have an empty side and are left out",
    ]


def test_absurd_lengths_are_left_out_of_the_training_part_only(tmp_path: Path) -> None:
    plain = [(f"source {i:03}", f"target {i:03}") for i in range(100)]  # 10 characters each
    absurd = [("source 200", "x" * 100), ("y" * 100, "z" * 10)]
    fine = [("source 300", "x" * 90), ("q" * 90, "z" * 10), ("q" * 5, "z" * 50)]
    train = write(tmp_path / "a.tsv", tsv([*plain, *absurd, *fine]))
    valid = write(tmp_path / "b.tsv", tsv([("other", "x" * 1000)]))
    data = open_pairs([train], valid=valid)
    assert data.parts == {"train": [*plain, *fine], "valid": [("other", "x" * 1000)]}
    assert data.notes == [
        "train: 2 of 105 pairs differ absurdly in length (more than 9 times as long as by rule) and are left out"
    ]


def test_targets_that_are_short_by_rule_are_kept(tmp_path: Path) -> None:
    summaries = [(f"{i} " + "talk " * 200, "sum") for i in range(20)]
    data = open_pairs([write(tmp_path / "a.tsv", tsv(summaries))])
    assert sum(all_of(data).values()) == 20
    assert data.notes == []


def test_many_copies_are_kept_and_counted(tmp_path: Path) -> None:
    valid = write(tmp_path / "b.tsv", tsv(HELD))
    data = open_pairs([write(tmp_path / "a.tsv", tsv([*PAIRS, *PAIRS[:10]]))], valid=valid)
    assert len(data.parts["train"]) == 50
    assert data.notes == ["train: 10 of 50 pairs (20 %) are copies of others"]
    assert open_pairs([write(tmp_path / "a.tsv", tsv([*PAIRS, *PAIRS[:2]]))], valid=valid).notes == []


# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.tsv", "a\tb\nno tab here\n", 'line 2 has no TAB, expected source TAB target: "no tab here".'),
        ("x.tsv", "alone\na\tb\n", 'line 1 has no TAB, expected source TAB target: "alone".'),
        ("x.tsv", "a\tb\nc\td\te\n", "line 2 has 3 columns, but the first line has 2."),
        ("x.tsv", "a\tb\tc\n\nc\td\n", "line 3 has 2 columns, but the first line has 3."),
        ("x.tsv", "", "no pairs in it. Give some with text on both sides."),
        ("x.tsv", "a\t\n\tb\n \t \n", "no pairs in it. Give some with text on both sides."),
        ("x.tsv", "a\tb\na\tc\nd\te\n", "too few pairs: 2 distinct sources, and 3 are the fewest"),
        ("x.jsonl", '{"source": "a", "target": "b"}\n{"source": \n', "line 2 is not JSON (Expecting value"),
        ("x.jsonl", '{"source": "a", "target": "b"}\n["a", "b"]\n', "line 2 is no object, expected {"),
        ("x.jsonl", "[" * 100_000 + "\n", "line 1 is not JSON ("),
        ("x.jsonl", '{"a": "x", "b": "y", "c": "z"}\n', "line 1 has no fields source and target; it has a, b, c. Name"),
        ("x.jsonl", "{}\n", "line 1 has no fields source and target; it has none."),
        (
            "x.jsonl",
            '{"source": "a", "target": "b"}\n\n{"source": "a", "text": "b"}\n',
            'line 3 has no text in field "target": it has source, text.',
        ),
        (
            "x.jsonl",
            '{"source": "a", "target": "b"}\n{"source": null, "target": "b"}\n',
            'line 2 has no text in field "source": source is "null".',
        ),
        (
            "x.jsonl",
            '{"translation": {"en": "a", "de": "b"}}\n{"en": "a", "de": "b"}\n',
            'line 2 has no text in field "en"',
        ),
        ("x.jsonl", '{"source": "\\ud800", "target": "b"}\n', 'line 1: field "source" holds half a character'),
        ("x.txt", "a\tb\n", "x.txt: pairs are read from a .tsv file (source TAB target), a .jsonl file, or two"),
        ("x.csv", "a,b\n", "x.csv: pairs are read from a .tsv file"),
    ],
)
def test_a_bad_file_is_one_sentence(name: str, content: str, sentence: str, tmp_path: Path) -> None:
    told = refusal([write(tmp_path / name, content)])
    assert sentence in told
    assert name in told


def test_bad_bytes_are_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(b"a\tb\ncaf\xe9\tb\n")
    assert "x.tsv: not UTF-8: line 2, byte 7 is 0xe9." in refusal([path])


def test_parallel_files_of_different_length_are_refused(tmp_path: Path) -> None:
    english, german = parallel(tmp_path, PAIRS)
    with german.open("a") as file:
        file.write("eine mehr\n")
    assert refusal([english, german]).startswith(f"{english} has 40 lines and {german} has 41; in parallel files each ")


def test_other_mistakes_are_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", tsv(PAIRS))
    files = parallel(tmp_path, PAIRS)
    assert refusal([path, path, path]).startswith("a.tsv and a.tsv and a.tsv: pairs are read from ")
    assert refusal([path, files[0]]).startswith("a.tsv and train.en: pairs are read from ")
    assert refusal(["nothing.tsv"]) == "nothing.tsv: no such file or folder."
    assert refusal([path], valid="nothing.tsv") == "nothing.tsv: no such file or folder."
    assert refusal(files, columns=["en", "de"]).startswith("--columns goes with .jsonl, .tsv and folders")
    assert refusal([path], columns=["en"]).endswith("such as en,de; got 1.")
    assert 'Did you mean "multi30k"?' in refusal(["multi30"])
    assert "the valid part has no pairs with text on both sides" in refusal(
        [path], valid=write(tmp_path / "b.tsv", "x\t\n")
    )
    with pytest.raises(ConfigError, match=r"should be two or three shares that add up to 100"):
        open_pairs([path], split="90/20")


# -- what is taken for pairs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["pairs.tsv"], True),
        (["pairs.tsv.gz"], True),
        (["good.jsonl"], True),
        (["other.jsonl"], False),
        (["missing.jsonl"], False),
        (["train.en", "train.de"], True),
        (["train.en.gz", "train.pt-br.xz"], True),
        (["a.eng", "b.deu"], True),
        (["train.en", "other.en"], False),
        (["a.txt", "b.txt"], False),
        (["a.txt", "b.de"], False),
        (["a.py", "b.md"], False),
        (["a.log", "b.bak"], False),
        (["train.en"], False),
        (["train.en", "train.de", "train.fr"], False),
        (["poems.txt"], False),
        (["numbers.csv"], False),
        (["tables"], True),
        (["languages"], True),
        (["texts"], False),
        (["multi30k"], True),
        (["multi30k:de-en"], True),
        (["cmudict"], True),
        (["dates:en-fr"], True),
        (["numbers:en-de:50000"], True),
        (["ptb"], False),
        (["markov"], False),
        (["adding:200"], False),
    ],
)
def test_what_is_taken_for_pairs(
    sources: list[str], expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.jsonl", jsonl(PAIRS, "en", "de"))
    write(tmp_path / "other.jsonl", '{"text": "a", "stars": 5}\n')
    write(tmp_path / "tables" / "train.tsv", tsv(PAIRS))
    parallel(tmp_path / "languages", PAIRS)
    write(tmp_path / "texts" / "train.txt", "x")
    assert looks_like_pairs(sources) is expected


def test_a_file_that_has_the_name_of_a_set_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "cmudict", "x")
    assert not looks_like_pairs(["cmudict"])


# -- splits ------------------------------------------------------------------------------------------------------

SIDES = st.text("abc", min_size=1, max_size=3)
SOME_PAIRS = st.lists(st.tuples(SIDES, SIDES), min_size=3, max_size=80)


@EXAMPLES
@given(pairs=SOME_PAIRS, split=st.sampled_from([None, "90/5/5", "80/10/10", "90/10", "50/50", "34/33/33"]))
def test_a_split_is_complete_and_shares_no_source(pairs: list[Pair], split: str | None) -> None:
    try:
        parts = split_pairs("x", pairs, split)
    except DataError:  # only where groups are too few, or too large for their part
        sizes = Counter(source for source, _ in pairs)
        assert len(sizes) < 3 or max(sizes.values()) > 1 or split == "34/33/33"
        return
    assert Counter(pair for some in parts.values() for pair in some) == Counter(pairs)
    sources = [{source for source, _ in some} for some in parts.values()]
    assert sum(len(some) for some in sources) == len(set.union(*sources))
    assert all(parts.values())


@EXAMPLES
@given(pairs=SOME_PAIRS, order=st.randoms(use_true_random=False))
def test_a_split_depends_on_nothing_but_the_pairs(pairs: list[Pair], order: object) -> None:
    shuffled = list(pairs)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    try:
        parts = split_pairs("x", pairs, None)
    except DataError:
        return
    again = split_pairs("y", shuffled, None)
    assert {part: Counter(some) for part, some in parts.items()} == {p: Counter(some) for p, some in again.items()}


@EXAMPLES
@given(pairs=SOME_PAIRS)
def test_a_split_by_target_shares_no_target(pairs: list[Pair]) -> None:
    try:
        parts = split_pairs("x", pairs, None, side=1)
    except DataError:
        return
    targets = [{target for _, target in some} for some in parts.values()]
    assert sum(len(some) for some in targets) == len(set.union(*targets))


def test_distinct_sources_give_exact_shares() -> None:
    pairs = [(str(i), "x") for i in range(1_000)]
    assert {part: len(some) for part, some in split_pairs("x", pairs, None).items()} == {
        "train": 900,
        "valid": 50,
        "test": 50,
    }


def test_valid_and_test_are_bounded_where_no_split_was_asked_for() -> None:
    pairs = [(str(i), "x") for i in range(100_000)]
    assert {part: len(some) for part, some in split_pairs("x", pairs, None).items()} == {
        "train": 96_000,
        "valid": 2_000,
        "test": 2_000,
    }
    assert len(split_pairs("x", pairs, "90/5/5")["test"]) == 5_000


def test_a_sorted_file_is_split_into_parts_that_are_alike() -> None:
    pairs = [("x" * (1 + i // 100), str(i)) for i in range(10_000)]
    pairs = [(f"{source}{i}", target) for i, (source, target) in enumerate(pairs)]
    means = [sum(len(source) for source, _ in some) / len(some) for some in split_pairs("x", pairs, None).values()]
    assert max(means) - min(means) < 5
    beginning = split_pairs("x", pairs, None)["valid"][:100]
    assert abs(sum(len(source) for source, _ in beginning) / 100 - means[0]) < 8


def test_a_group_too_large_to_be_held_out_is_trained_on() -> None:
    pairs = [("same", str(i)) for i in range(100)] + [(str(i), "x") for i in range(50)]
    parts = split_pairs("x", pairs, None)
    assert sum(source == "same" for source, _ in parts["train"]) == 100
    assert (len(parts["valid"]), len(parts["test"])) == (7, 8)  # 5 % of 150 each, in whole pairs


def test_a_split_that_leaves_a_part_empty_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\nc\td\ne\tf\n")
    assert refusal([path], split="10/45/45") == (
        "a.tsv: 3 pairs with 3 distinct sources leave none to train (split 10/45/45). "
        "Give more pairs, or cut elsewhere with --split-at."
    )


def test_the_smallest_file_has_three_parts(tmp_path: Path) -> None:
    data = open_pairs([write(tmp_path / "a.tsv", "a\tb\nc\td\ne\tf\n")])
    assert {part: len(some) for part, some in data.parts.items()} == {"train": 1, "valid": 1, "test": 1}


def test_the_fingerprint_tells_contents_and_parts_apart() -> None:
    one = {"train": [("ab", "c")], "valid": [("d", "e")]}
    others = [
        {"train": [("a", "bc")], "valid": [("d", "e")]},
        {"train": [("ab", "c"), ("d", "e")], "valid": []},
        {"valid": [("ab", "c")], "train": [("d", "e")]},
    ]
    assert fingerprint(one) == fingerprint(dict(one))
    assert len({fingerprint(one), *map(fingerprint, others)}) == 4


# -- headers, and the direction of a run ----------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["source\ttarget", "en\tde", "English\tGerman", "input\toutput"])
def test_a_header_is_dropped_and_told(header: str, tmp_path: Path) -> None:
    data = open_pairs([write(tmp_path / "pairs.tsv", f"{header}\n{tsv(PAIRS)}")])
    assert all_of(data) == Counter(PAIRS)
    source, target = header.split("\t")
    assert data.notes == [f'pairs.tsv: line 1 ("{source}" and "{target}") names the columns and is no pair']


def test_a_header_that_names_source_and_target_tells_which_is_which(tmp_path: Path) -> None:
    rows = "".join(f"{place}\t{target}\t{source}\n" for place, (source, target) in enumerate(PAIRS))
    data = open_pairs([write(tmp_path / "pairs.tsv", f"id\ttarget\tsource\n{rows}")])
    assert all_of(data) == Counter(PAIRS)


def test_a_header_of_more_columns_asks_which_are_meant(tmp_path: Path) -> None:
    rows = "".join(f"{place}\t{source}\t{target}\n" for place, (source, target) in enumerate(PAIRS))
    told = refusal([write(tmp_path / "pairs.tsv", f"id\ten\tde\n{rows}")])
    assert "has the columns id, en, de. Name source and target with --columns, such as --columns en,de." in told


def test_a_line_that_may_be_a_header_is_kept_and_told(tmp_path: Path) -> None:
    data = open_pairs([write(tmp_path / "pairs.tsv", f"english_text\tgerman_text\n{tsv(PAIRS)}")])
    assert all_of(data)["english_text", "german_text"] == 1
    assert 'line 1 ("english_text" and "german_text") is read as a pair; if it names columns, add' in data.notes[0]


def test_the_first_of_single_words_is_a_pair(tmp_path: Path) -> None:
    pairs = [("it", "es"), *((f"word{n}", f"wort{n}") for n in range(30))]
    data = open_pairs([write(tmp_path / "pairs.tsv", tsv(pairs))])
    assert all_of(data) == Counter(pairs)
    assert "is read as a pair" in data.notes[0]
    plain = open_pairs([write(tmp_path / "plain.tsv", tsv(pairs[1:]))])
    assert (all_of(plain), plain.notes) == (Counter(pairs[1:]), [])


def test_files_beside_the_pairs_of_a_folder_are_named(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        parallel(tmp_path, [(f"{a} in {part}", b) for a, b in PAIRS], part)
    write(tmp_path / "README.md", "how this was made")
    data = open_pairs([tmp_path], columns=["en", "de"])
    assert data.notes == ["left out, as they are no part of the pairs: README.md"]
    assert {part: len(pairs) for part, pairs in data.parts.items()} == {"train": 40, "valid": 40, "test": 40}


def test_other_pairs_are_read_in_the_direction_of_the_run(tmp_path: Path) -> None:
    english, german = (str(path) for path in parallel(tmp_path, PAIRS, "test"))
    table = str(write(tmp_path / "test.tsv", f"en\tde\n{tsv(PAIRS)}"))
    nested = str(
        write(
            tmp_path / "test.jsonl", "".join(f'{{"translation": {json.dumps({"en": a, "de": b})}}}\n' for a, b in PAIRS)
        )
    )
    backwards = [(target, source) for source, target in PAIRS]
    for trained_on, columns in ((["a.de", "a.en"], []), (["multi30k:de-en"], []), (["folder"], ["de", "en"])):
        for other in ([english, german], [german, english], [table], [nested]):
            assert open_whole_pairs(*as_trained(other, trained_on, columns)).parts["whole"] == backwards
    for trained_on in (["a.en", "a.de"], ["multi30k:en-de"], ["pairs.tsv"]):
        for other in ([english, german], [table], [nested]):
            assert open_whole_pairs(*as_trained(other, trained_on, [])).parts["whole"] == PAIRS


def test_pairs_of_other_languages_than_the_runs_are_refused(tmp_path: Path) -> None:
    english, german = (str(path) for path in parallel(tmp_path, PAIRS, "test"))
    for other, trained_on in (([english, german], ["a.fr", "a.en"]), (["multi30k:en-de"], ["multi30k:de-en"])):
        with pytest.raises(DataError, match=r"from en to de, but the model was trained from (fr|de) to en\."):
            as_trained(other, trained_on, [])
    plain = str(write(tmp_path / "plain.tsv", tsv(PAIRS)))
    with pytest.raises(ConfigError, match='names no column "de"'):
        open_whole_pairs(*as_trained([plain], ["pairs.tsv"], ["de", "en"]))


def test_the_sources_of_a_table_are_found(tmp_path: Path) -> None:
    sources, notes = [source for source, _ in PAIRS], list[str]()
    backwards = tsv([(target, source) for source, target in PAIRS])
    assert list(source_texts(write(tmp_path / "a.tsv", f"de\ten\n{backwards}"), ["en", "de"], notes)) == sources
    assert list(source_texts(write(tmp_path / "b.tsv", tsv(PAIRS)), [], notes)) == sources
    assert notes == []
    assert list(source_texts(write(tmp_path / "c.tsv", f"en\tde\n{tsv(PAIRS)}"), [], notes)) == sources
    assert notes == ['c.tsv: line 1 ("en" and "de") names the columns and is no pair']
    assert list(source_texts(write(tmp_path / "d.jsonl", jsonl(PAIRS, "de", "en")), ["en", "de"], notes)) == [
        target for _, target in PAIRS
    ]
    alone = "".join(json.dumps({"source": source}) + "\n" for source in sources)
    assert list(source_texts(write(tmp_path / "e.jsonl", alone), [], notes)) == sources
    with pytest.raises(DataError, match=r"c2.tsv: line 2 has 1 columns, and the source is column 2\."):
        list(source_texts(write(tmp_path / "c2.tsv", "de\ten\nnur eine\n"), ["en", "de"], notes))
